//! Tools of the session: compiled declarations, counts and logs.
//!
//! A tool in R carries an id and a count; what is live hangs on the id here. The
//! count of an id is kept as long as the session lives, the log as long as a
//! copy of the tool does.

use crate::convert::{named, text_of, to_lists, to_text, to_value};
use crate::fault::guard;
use extendr_api::prelude::*;
use serde_json::{json, Map, Value};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use warrant_core::digest::{hex, Digest};
use warrant_core::error::{Fault, Kind};
use warrant_core::provider::{render, Provider, Strict};
use warrant_core::tool::{Entry, Ledger, Meter, Tool, ToolSpec};

/// A tool as R points to it.
pub(crate) struct Handle {
    pub(crate) tool: Tool,
    pub(crate) meter: Arc<Meter>,
    pub(crate) ledger: Arc<Mutex<Ledger>>,
}

/// What is live under an id.
struct Live {
    meter: Arc<Meter>,
    ledger: Weak<Mutex<Ledger>>,
}

static LIVE: LazyLock<Mutex<HashMap<String, Live>>> = LazyLock::new(Mutex::default);

/// Run and agent of the calls that belong to a run, by number; 0 is none.
static ORIGINS: Mutex<Vec<[String; 2]>> = Mutex::new(Vec::new());

/// A lock that a panic elsewhere cannot take away: what it guards is always whole.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The key under which literal secrets are recorded, made once a session.
pub(crate) fn session_key() -> &'static [u8; 32] {
    static KEY: OnceLock<[u8; 32]> = OnceLock::new();
    KEY.get_or_init(random)
}

/// Random bytes of the operating system. Without them there is no id that could
/// be trusted, so the process says so and ends the call by a panic, which becomes
/// an error of class `internal`.
#[allow(clippy::expect_used)]
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

// A new random id: 128 bits in hex.
#[extendr]
fn rs_random_id() -> Robj {
    guard(|| Ok(hex(&random::<16>())))
}

// A checked tool under an id, with the count it brings along.
#[extendr]
fn rs_tool_new(spec: Robj, id: Robj, calls: f64) -> Robj {
    guard(|| {
        let spec: ToolSpec = serde_json::from_value(to_value(&spec)?).map_err(Error::Spec)?;
        let tool = Tool::new(spec)?;
        let id = text_of(&id, "id")?;
        let (meter, ledger) = attach(&id, calls as u64);
        Ok(ExternalPtr::new(Handle {
            tool,
            meter,
            ledger,
        }))
    })
}

fn attach(id: &str, calls: u64) -> (Arc<Meter>, Arc<Mutex<Ledger>>) {
    let mut live = locked(&LIVE);
    let entry = live.entry(id.to_owned()).or_insert_with(|| Live {
        meter: Arc::default(),
        ledger: Weak::new(),
    });
    entry.meter.at_least(calls);
    let ledger = entry.ledger.upgrade().unwrap_or_default();
    entry.ledger = Arc::downgrade(&ledger);
    (entry.meter.clone(), ledger)
}

/// The tool behind a pointer of R; one that was saved and read back has none.
pub(crate) fn handle(ptr: &Robj) -> Result<ExternalPtr<Handle>, Box<dyn Fault>> {
    ExternalPtr::<Handle>::try_from(ptr)
        .ok()
        .filter(|h| h.try_addr().is_ok())
        .ok_or_else(|| Error::NotATool.into())
}

// Whether a pointer still points: one that was saved and read back does not.
#[extendr]
fn rs_tool_alive(ptr: Robj) -> bool {
    handle(&ptr).is_ok()
}

// What R shows of a tool.
#[extendr]
fn rs_tool_info(ptr: Robj) -> Robj {
    guard(|| {
        let handle = handle(&ptr)?;
        let tool = &handle.tool;
        Ok(named(
            [
                "schema",
                "timeout_s",
                "requires_approval",
                "isolation",
                "side_effects",
                "idempotent",
                "scopes",
                "secrets",
                "policy",
            ]
            .into_iter(),
            [
                to_lists(tool.schema().as_value()),
                tool.timeout_s().map_or_else(|| ().into(), Robj::from),
                tool.requires_approval().into(),
                tool.isolation().word().into(),
                tool.side_effects().word().into(),
                tool.idempotent().into(),
                tool.scopes()
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .into(),
                tool.schema().secrets().collect::<Vec<_>>().into(),
                to_lists(&tool.policy()),
            ]
            .into_iter(),
        ))
    })
}

// How many calls have started.
#[extendr]
fn rs_tool_calls(ptr: Robj) -> Robj {
    guard(|| Ok(handle(&ptr)?.meter.used() as f64))
}

// The specification as canonical JSON, and its digest. `captures` and
// `not_covered` and `redact` are named lists of texts or objects.
#[extendr]
fn rs_tool_spec(ptr: Robj, code: Robj, captures: Robj, not_covered: Robj, redact: Robj) -> Robj {
    guard(|| {
        let handle = handle(&ptr)?;
        let function: Digest = text_of(&code, "code")?.parse()?;
        let spec = handle.tool.spec(
            function,
            object(&captures)?,
            object(&not_covered)?,
            object(&redact)?,
        );
        let text = warrant_core::canon::to_string(&spec);
        Ok(list!(
            spec = to_text(&text),
            digest = Digest::of_bytes(text.as_bytes()).to_hex()
        ))
    })
}

// The definition of a tool in a provider's format, as lists that are to be
// written as JSON again.
#[extendr]
fn rs_tool_schema(ptr: Robj, provider: Robj, strict: bool) -> Robj {
    guard(|| {
        let handle = handle(&ptr)?;
        let word = text_of(&provider, "provider")?;
        let provider = Provider::from_word(&word).ok_or(Error::Provider(word))?;
        let strict = if strict {
            Strict::WherePossible
        } else {
            Strict::Off
        };
        Ok(to_lists(&render(&handle.tool, provider, strict)))
    })
}

fn object(x: &Robj) -> Result<Map<String, Value>, Box<dyn Fault>> {
    Ok(match to_value(x)? {
        Value::Object(map) => map,
        _ => Map::new(),
    })
}

// A number for a run and an agent, under which calls are logged.
#[extendr]
fn rs_origin(run: Robj, agent: Robj) -> Robj {
    guard(|| {
        let origin = [text_of(&run, "run")?, text_of(&agent, "agent")?];
        let mut origins = locked(&ORIGINS);
        let place = origins.iter().rposition(|o| *o == origin);
        let place = place.unwrap_or_else(|| {
            origins.push(origin);
            origins.len() - 1
        });
        Ok(place as f64 + 1.0)
    })
}

// The log of some tools, in the order of the calls: a list of columns.
#[extendr]
fn rs_tool_log(ptrs: List) -> Robj {
    guard(|| {
        let mut seen: Vec<*const Mutex<Ledger>> = Vec::new();
        let mut rows: Vec<(String, Entry)> = Vec::new();
        for ptr in ptrs.values() {
            let handle = handle(&ptr)?;
            if seen.contains(&Arc::as_ptr(&handle.ledger)) {
                continue;
            }
            seen.push(Arc::as_ptr(&handle.ledger));
            let name = handle.tool.name();
            rows.extend(
                locked(&handle.ledger)
                    .iter()
                    .map(|e| (name.to_owned(), e.clone())),
            );
        }
        rows.sort_by_key(|(_, e)| e.order);
        Ok(columns(&rows))
    })
}

/// The columns of `tool_log()`.
pub(crate) fn columns(rows: &[(String, Entry)]) -> Robj {
    let origins = locked(&ORIGINS);
    let origin = |e: &Entry, part: usize| -> Option<String> {
        let place = (e.origin as usize).checked_sub(1)?;
        origins.get(place).map(|o| o[part].clone())
    };
    let digest = |d: &Digest| (*d != Entry::no_digest()).then(|| d.to_hex());
    let counted = |n: u32| {
        if n == 0 {
            Rint::na()
        } else {
            Rint::from(n as i32)
        }
    };
    let texts = |f: fn(&warrant_core::tool::Texts) -> Vec<String>| -> Robj {
        let cells = rows
            .iter()
            .map(|(_, e)| -> Robj { e.texts.as_ref().map_or(Vec::new(), |t| f(t)).into() });
        List::from_values(cells.collect::<Vec<_>>()).into()
    };
    let text = |f: fn(&warrant_core::tool::Texts) -> Option<String>| -> Robj {
        let cells = rows
            .iter()
            .map(|(_, e)| e.texts.as_ref().and_then(|t| f(t)));
        strings(cells)
    };
    let values: Vec<(&str, Robj)> = vec![
        ("run_id", strings(rows.iter().map(|(_, e)| origin(e, 0)))),
        (
            "span_id",
            strings(rows.iter().map(|(_, e)| Some(span(e.span)))),
        ),
        ("agent_id", strings(rows.iter().map(|(_, e)| origin(e, 1)))),
        (
            "step",
            rows.iter()
                .map(|(_, e)| counted(e.step))
                .collect::<Integers>()
                .into(),
        ),
        (
            "round",
            rows.iter()
                .map(|(_, e)| counted(e.round))
                .collect::<Integers>()
                .into(),
        ),
        ("name", strings(rows.iter().map(|(n, _)| Some(n.clone())))),
        (
            "arguments_hash",
            strings(rows.iter().map(|(_, e)| digest(&e.arguments))),
        ),
        (
            "result_hash",
            strings(rows.iter().map(|(_, e)| digest(&e.result))),
        ),
        (
            "shown_hash",
            strings(rows.iter().map(|(_, e)| digest(&e.shown))),
        ),
        ("arguments", text(|t| t.arguments.clone())),
        ("result", text(|t| t.result.clone())),
        (
            "status",
            strings(rows.iter().map(|(_, e)| Some(e.outcome.word().to_owned()))),
        ),
        (
            "truncated",
            rows.iter()
                .map(|(_, e)| Rbool::from(e.truncated))
                .collect::<Logicals>()
                .into(),
        ),
        (
            "bytes",
            rows.iter()
                .map(|(_, e)| Rfloat::from(e.bytes as f64))
                .collect::<Doubles>()
                .into(),
        ),
        (
            "duration_s",
            rows.iter()
                .map(|(_, e)| Rfloat::from(e.duration_s))
                .collect::<Doubles>()
                .into(),
        ),
        (
            "ts",
            rows.iter()
                .map(|(_, e)| Rfloat::from(e.ts))
                .collect::<Doubles>()
                .into(),
        ),
        ("error_class", texts(|t| t.error_class.clone())),
        ("warnings", texts(|t| t.warnings.clone())),
        ("messages", texts(|t| t.messages.clone())),
        ("guardrails", texts(|t| t.guardrails.clone())),
    ];
    let names: Vec<&str> = values.iter().map(|(n, _)| *n).collect();
    named(names.into_iter(), values.into_iter().map(|(_, v)| v))
}

/// 16 hex digits, as trace viewers know them.
pub(crate) fn span(span: u64) -> String {
    format!("{span:016x}")
}

fn strings(cells: impl Iterator<Item = Option<String>>) -> Robj {
    let cells = cells.map(|c| {
        c.map_or(Rstr::na(), |s| {
            Rstr::from(s.replace('\0', "\u{fffd}").as_str())
        })
    });
    Strings::from_values(cells.collect::<Vec<_>>()).into()
}

/// What can be wrong with a tool that R hands over.
#[derive(Debug)]
enum Error {
    NotATool,
    Provider(String),
    Spec(serde_json::Error),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::NotATool => f.write_str("the tool must be one made by `agent_tool()`"),
            Error::Provider(word) => write!(f, "\"{word}\" is not a provider's format"),
            Error::Spec(e) => write!(f, "the declaration of the tool cannot be read: {e}"),
        }
    }
}

impl std::error::Error for Error {}

impl Fault for Error {
    fn code(&self) -> &'static str {
        match self {
            Error::NotATool => "not_a_tool",
            Error::Provider(_) => "provider",
            Error::Spec(_) => "tool_spec",
        }
    }

    fn kind(&self) -> Kind {
        Kind::Input
    }

    fn facts(&self) -> Map<String, Value> {
        json!({}).as_object().cloned().unwrap_or_default()
    }
}

extendr_module! {
    mod tool;
    fn rs_random_id;
    fn rs_tool_new;
    fn rs_tool_alive;
    fn rs_tool_info;
    fn rs_tool_calls;
    fn rs_tool_spec;
    fn rs_tool_schema;
    fn rs_origin;
    fn rs_tool_log;
}
