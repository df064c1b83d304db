//! One call of a tool: begin, the R function, finish. Two crossings.

use crate::convert::{inherits, named, text_of, to_robj, to_value, Fields};
use crate::fault::guard;
use crate::run_setup::redactions;
use crate::tool::{handle, locked, random, session_key, span, Handle};
use extendr_api::prelude::*;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use warrant_core::digest::Digest;
use warrant_core::error::{Fault, Kind};
use warrant_core::outcome::Outcome;
use warrant_core::render::{self, Shown};
use warrant_core::schema::member_schema;
use warrant_core::tool::{Arguments, Entry, Ledger, Record, Refused, Texts};

/// A call that began and has not ended.
struct Open {
    arguments: Arguments,
    entry: Entry,
    since: Option<Instant>,
}

/// The open calls of the process, by number.
static OPEN: LazyLock<Mutex<HashMap<u64, Open>>> = LazyLock::new(Mutex::default);

/// Calls in the order they began.
static ORDER: AtomicU64 = AtomicU64::new(1);

// Checks the arguments and, unless a person must be asked first, takes one call of
// the budget. Gives the arguments as R values, or the end of the call.
#[extendr]
fn rs_call_begin(
    ptr: Robj,
    arguments: Robj,
    clock: Robj,
    approved: bool,
    origin: f64,
    step: f64,
    round: f64,
) -> Robj {
    guard(|| {
        let handle = handle(&ptr)?;
        let ts = clock.as_real().unwrap_or_else(wall_clock);
        let entry = blank(ts, [origin as u32, step as u32, round as u32]);
        match read(&handle, &arguments)? {
            Err(refused) => Ok(refuse(&handle, entry, refused)),
            Ok(arguments) => begin(&handle, entry, arguments, approved),
        }
    })
}

fn begin(
    handle: &Handle,
    entry: Entry,
    arguments: Arguments,
    approved: bool,
) -> Result<Robj, Box<dyn Fault>> {
    let tool = &handle.tool;
    let mut open = Open {
        arguments,
        entry,
        since: None,
    };
    open.entry.arguments = open.arguments.digest();
    let unsure = unsure(handle, open.entry.arguments);
    let ask = (tool.requires_approval() || unsure) && !approved;
    let exhausted = if ask {
        !tool.max_calls().allows(handle.meter.used() + 1)
    } else {
        !handle.meter.start(tool.max_calls())
    };
    if exhausted {
        return Ok(exhaust(handle, open));
    }
    let args = values(handle, &open.arguments);
    let recorded = ask.then(|| String::from_utf8_lossy(open.arguments.recorded()).into_owned());
    let call = open.entry.order;
    open.since = (!ask).then(Instant::now);
    locked(&OPEN).insert(call, open);
    let begun = Fields::new(&BEGUN, &[]).number(call as f64);
    let begun = match args {
        Some(args) => begun.robj(&args),
        None => begun.null(),
    };
    let begun = match recorded {
        Some(recorded) => begun.text(&recorded),
        None => begun.null(),
    };
    let reason = if unsure { "unknown_effect" } else { "tool" };
    Ok(begun
        .text(reason)
        .number(handle.meter.used() as f64)
        .finish())
}

// Records what is shown in place of redacted arguments of a call that began.
#[extendr]
fn rs_call_shown(call: f64, texts: Robj) -> Robj {
    guard(|| {
        let mut calls = locked(&OPEN);
        let open = calls.get_mut(&(call as u64)).ok_or(Error::Closed)?;
        open.entry.arguments = open.arguments.show(&redactions(&texts));
        Ok(())
    })
}

// The arguments of a call as R values, where they are valid; else NULL.
#[extendr]
fn rs_call_arguments(ptr: Robj, arguments: Robj) -> Robj {
    guard(|| {
        let handle = handle(&ptr)?;
        let read = read(&handle, &arguments)?.ok();
        Ok(read
            .and_then(|a| values(&handle, &a))
            .unwrap_or_else(|| ().into()))
    })
}

/// The arguments by name, as R values.
fn values(handle: &Handle, arguments: &Arguments) -> Option<Robj> {
    let schema = handle.tool.schema().as_value();
    let map = arguments.value().as_object()?;
    let values = map
        .iter()
        .map(|(name, value)| to_robj(value, member_schema(schema, name), schema));
    Some(named(map.keys().map(String::as_str), values))
}

// What a person decided of a call that asked: approve takes one call of the budget.
#[extendr]
fn rs_call_decided(ptr: Robj, call: f64, decision: Robj, why: Robj) -> Robj {
    guard(|| {
        let handle = handle(&ptr)?;
        let decision = text_of(&decision, "decision")?;
        let mut open = take(call)?;
        if decision == "approve" {
            if !handle.meter.start(handle.tool.max_calls()) {
                return Ok(exhaust(&handle, open));
            }
            open.since = Some(Instant::now());
            locked(&OPEN).insert(call as u64, open);
            return Ok(().into());
        }
        let name = handle.tool.name();
        let why = text_of(&why, "why").unwrap_or_default();
        let (outcome, what) = match decision.as_str() {
            "reject" if why.is_empty() => (
                Outcome::ApprovalDenied,
                format!("a person said no to this call of \"{name}\". It was not run."),
            ),
            "reject" => (
                Outcome::ApprovalDenied,
                format!("a person said no to this call of \"{name}\": {why}. It was not run."),
            ),
            _ => (
                Outcome::ApprovalRequired,
                format!(
                    "\"{name}\" needs a person's approval{}{}. It was not run.",
                    if unsure(&handle, open.arguments.digest()) {
                        ", since it is not known what an equal call did"
                    } else {
                        ""
                    },
                    pause_words(&why)
                ),
            ),
        };
        Ok(settle(
            &handle,
            open,
            outcome,
            said(outcome, &what),
            Texts::default(),
            None,
        ))
    })
}

/// Whether it is not known what an equal call did: it is not repeated unasked.
fn unsure(handle: &Handle, arguments: Digest) -> bool {
    !handle.tool.idempotent() && locked(&handle.ledger).has_unknown_effect(arguments)
}

fn pause_words(why: &str) -> &'static str {
    match why {
        "loop" => ", and the loop that called it cannot pause to ask for one",
        _ => ", and nobody has answered",
    }
}

// Drops a call that asked and is asked anew (its arguments were edited).
#[extendr]
fn rs_call_drop(call: f64) {
    locked(&OPEN).remove(&(call as u64));
}

// Ends a call with what the R function gave: `how` is a word of the outcomes, and
// `value` the value, or the text of an error.
#[extendr]
fn rs_call_finish(
    ptr: Robj,
    call: f64,
    how: Robj,
    value: Robj,
    error_class: Robj,
    warnings: Robj,
    messages: Robj,
) -> Robj {
    guard(|| {
        let handle = handle(&ptr)?;
        let how = text_of(&how, "how")?;
        let open = take(call)?;
        let texts = |x: &Robj| -> Vec<String> { x.as_string_vector().unwrap_or_default() };
        let mut extra = Texts {
            error_class: texts(&error_class),
            warnings: texts(&warnings),
            messages: texts(&messages),
            ..Texts::default()
        };
        let (outcome, shown) = match Outcome::from_word(&how) {
            Some(Outcome::Executed) => match shown(&handle, &value) {
                Ok(shown) => (Outcome::Executed, shown),
                Err(e) => {
                    extra.error_class = vec![
                        format!("warrant_error_{}", e.code()),
                        "warrant_error_input".into(),
                        "error".into(),
                    ];
                    (
                        Outcome::Error,
                        said(Outcome::Error, &format!("the result cannot be shown: {e}")),
                    )
                }
            },
            Some(outcome) => (
                outcome,
                said(outcome, &text_of(&value, "value").unwrap_or_default()),
            ),
            None => return Err(Error::Word(how).into()),
        };
        let shown = bounded(&handle, outcome, shown);
        Ok(settle(&handle, open, outcome, shown, extra, Some(value)))
    })
}

/// What a failure says is bounded like a result; its digest is of no result.
fn bounded(handle: &Handle, outcome: Outcome, shown: Shown) -> Shown {
    let bound = handle.tool.max_bytes();
    if outcome == Outcome::Executed || bound.allows(shown.text.len() as u64) {
        return shown;
    }
    render::text(&shown.text, bound)
}

fn shown(handle: &Handle, value: &Robj) -> Result<Shown, Box<dyn Fault>> {
    let bound = handle.tool.max_bytes();
    if inherits(value, "json") {
        let parsed = to_value(value)?;
        let written = value.as_str().unwrap_or_default();
        return Ok(render::json_text(written, &parsed, bound));
    }
    match to_value(value)? {
        Value::String(s) if value.len() == 1 => Ok(render::text(&s, bound)),
        other => Ok(render::value(&other, bound)),
    }
}

// Ends a call that the person interrupted.
#[extendr]
fn rs_call_abandon(ptr: Robj, call: f64) -> Robj {
    guard(|| {
        let handle = handle(&ptr)?;
        if let Ok(open) = take(call) {
            let what = "the call was interrupted; what it did is not known.";
            settle(
                &handle,
                open,
                Outcome::Interrupted,
                said(Outcome::Interrupted, what),
                Texts::default(),
                None,
            );
        }
        Ok(())
    })
}

fn take(call: f64) -> Result<Open, Error> {
    locked(&OPEN).remove(&(call as u64)).ok_or(Error::Closed)
}

fn wall_clock() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |d| d.as_secs_f64())
}

fn blank(ts: f64, [origin, step, round]: [u32; 3]) -> Entry {
    let order = ORDER.fetch_add(1, Ordering::Relaxed);
    Entry {
        order,
        span: span_of(order),
        origin,
        step,
        round,
        outcome: Outcome::Interrupted,
        truncated: false,
        ts,
        duration_s: 0.0,
        bytes: 0,
        arguments: Entry::no_digest(),
        result: Entry::no_digest(),
        shown: Entry::no_digest(),
        texts: None,
    }
}

/// Ids that do not repeat in a process nor, but by a chance of 2^-64, over
/// processes: a bijection of the order (splitmix64), started at random. A fork
/// starts anew.
fn span_of(order: u64) -> u64 {
    static START: OnceLock<Mutex<(u32, u64)>> = OnceLock::new();
    let pid = std::process::id();
    let fresh = || (pid, u64::from_le_bytes(random()));
    let mut start = locked(START.get_or_init(|| Mutex::new(fresh())));
    if start.0 != pid {
        *start = fresh();
    }
    let mut z = start
        .1
        .wrapping_add(order.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

type Read = std::result::Result<Arguments, Refused>;

/// The arguments of a call: JSON text, or a list whose secrets are references.
fn read(handle: &Handle, arguments: &Robj) -> Result<Read, Box<dyn Fault>> {
    let key = session_key();
    if arguments.rtype() == Rtype::Strings && arguments.len() == 1 {
        let text = text_of(arguments, "arguments")?;
        return Ok(handle.tool.read_arguments(text.as_bytes(), key));
    }
    let Some(list) = arguments
        .as_list()
        .filter(|l| l.values().any(|v| inherits(&v, "warrant_secret")))
    else {
        return Ok(handle.tool.take_arguments(to_value(arguments)?, key));
    };
    let mut map = serde_json::Map::new();
    let mut references = BTreeMap::new();
    for (name, value) in list.iter() {
        let member = if inherits(&value, "warrant_secret") {
            let env = value
                .as_list()
                .and_then(|l| l.iter().find(|(n, _)| *n == "env").map(|(_, v)| v));
            let variable = text_of(&env.ok_or(Error::Reference)?, "env")?;
            let secret = std::env::var(&variable).map_err(|_| Error::Secret(variable.clone()))?;
            references.insert(name.to_owned(), variable);
            Value::String(secret)
        } else {
            to_value(&value)?
        };
        map.insert(name.to_owned(), member);
    }
    Ok(handle
        .tool
        .take_with_references(Value::Object(map), key, &references))
}

fn refuse(handle: &Handle, mut entry: Entry, refused: Refused) -> Robj {
    let recorded = refused.recorded.unwrap_or_default();
    if !recorded.is_empty() {
        entry.arguments = Digest::of_bytes(&recorded);
    }
    let text = refused.text;
    let shown = render::text(&text, handle.tool.max_bytes());
    log(
        handle,
        entry,
        Outcome::InvalidArguments,
        shown,
        Texts::default(),
        (&recorded, None),
        None,
    )
}

fn exhaust(handle: &Handle, open: Open) -> Robj {
    let tool = &handle.tool;
    let limit = tool.max_calls().limit().unwrap_or(0);
    let what = format!(
        "\"{}\" has used up its calls ({limit} in all). It was not run.",
        tool.name()
    );
    settle(
        handle,
        open,
        Outcome::ToolExhausted,
        said(Outcome::ToolExhausted, &what),
        Texts::default(),
        None,
    )
}

/// The text of an outcome that is not a result.
fn said(outcome: Outcome, what: &str) -> Shown {
    render::text(
        &format!("{} {what}", outcome.first_word()),
        warrant_core::tool::Bound::Unlimited,
    )
}

fn settle(
    handle: &Handle,
    open: Open,
    outcome: Outcome,
    shown: Shown,
    extra: Texts,
    value: Option<Robj>,
) -> Robj {
    let mut entry = open.entry;
    entry.duration_s = open.since.map_or(0.0, |s| s.elapsed().as_secs_f64());
    log(
        handle,
        entry,
        outcome,
        shown,
        extra,
        (open.arguments.recorded(), Some(open.arguments.digest())),
        value,
    )
}

/// Writes the row and gives the end of the call. `of` is the digest by which equal
/// calls are known.
fn log(
    handle: &Handle,
    mut entry: Entry,
    outcome: Outcome,
    shown: Shown,
    mut extra: Texts,
    (recorded, of): (&[u8], Option<Digest>),
    value: Option<Robj>,
) -> Robj {
    entry.outcome = outcome;
    entry.truncated = shown.truncated;
    entry.bytes = shown.text.len() as u64;
    entry.shown = shown.shown_hash;
    if outcome == Outcome::Executed {
        entry.result = shown.result_hash;
    }
    let arguments = String::from_utf8_lossy(recorded);
    let hash = |d: Digest| (d != Entry::no_digest()).then(|| d.to_hex());
    let mut end = Fields::new(&FIELDS, &["tool_result"])
        .text(handle.tool.name())
        .text(outcome.word())
        .text(&shown.text);
    end = match value.filter(|_| outcome == Outcome::Executed) {
        Some(value) => end.robj(&value),
        None => end.null(),
    };
    let end = end
        .text(&arguments)
        .text_or_na(hash(entry.arguments).as_deref())
        .text_or_na(hash(entry.result).as_deref())
        .text_or_na(hash(entry.shown).as_deref())
        .flag(entry.truncated)
        .number(entry.bytes as f64)
        .number(entry.duration_s)
        .number(entry.ts)
        .text(&span(entry.span))
        .texts(&extra.error_class)
        .texts(&extra.warnings)
        .texts(&extra.messages)
        .finish();
    if handle.tool.record() == Record::Full {
        extra.arguments = (!recorded.is_empty()).then(|| arguments.to_string());
        extra.result = Some(shown.text);
    }
    if extra != Texts::default() {
        entry.texts = Some(Box::new(extra));
    }
    let ledger: &Mutex<Ledger> = &handle.ledger;
    let mut ledger = locked(ledger);
    if matches!(outcome, Outcome::TimedOut | Outcome::Interrupted) && !handle.tool.idempotent() {
        of.into_iter()
            .for_each(|digest| ledger.note_unknown_effect(digest));
    }
    ledger.push(entry);
    end
}

/// The fields of a call that began, in order.
static BEGUN: [&str; 5] = ["call", "args", "recorded", "reason", "used"];

/// The fields of a `tool_result`, in order.
static FIELDS: [&str; 16] = [
    "tool",
    "status",
    "content",
    "value",
    "arguments",
    "arguments_hash",
    "result_hash",
    "shown_hash",
    "truncated",
    "bytes",
    "duration_s",
    "ts",
    "span_id",
    "error_class",
    "warnings",
    "messages",
];

/// What can be wrong with the course of a call.
#[derive(Debug)]
enum Error {
    Closed,
    Reference,
    Secret(String),
    Word(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Closed => f.write_str("the call has ended already"),
            Error::Reference => f.write_str("a secret must be made by `secret_env()`"),
            Error::Secret(name) => write!(
                f,
                "the environment variable \"{name}\" of a secret is not set"
            ),
            Error::Word(word) => write!(f, "\"{word}\" is not an outcome"),
        }
    }
}

impl std::error::Error for Error {}

impl Fault for Error {
    fn code(&self) -> &'static str {
        match self {
            Error::Closed => "call_closed",
            Error::Reference => "secret_reference",
            Error::Secret(_) => "secret_not_set",
            Error::Word(_) => "not_an_outcome",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Error::Reference | Error::Secret(_) => Kind::Secret,
            Error::Closed | Error::Word(_) => Kind::State,
        }
    }
}

extendr_module! {
    mod call;
    fn rs_call_arguments;
    fn rs_call_begin;
    fn rs_call_decided;
    fn rs_call_drop;
    fn rs_call_finish;
    fn rs_call_abandon;
    fn rs_call_shown;
}
