//! Driving a run: R performs what the machine asks for, and keeps what it records
//! before that.

use crate::convert::{named, text_of, to_robj, to_text, to_value, Fields, Members};
use crate::fault::{boxed, guard};
use crate::run_late;
use crate::run_setup::{self, unusable, Boxed, Content, KEY_NAME};
use crate::run_view;
use extendr_api::prelude::*;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use warrant_core::canon;
use warrant_core::digest::{hex, Digest};
use warrant_core::event::{LateResult, Status, StopReason};
use warrant_core::journal::{Chain, RunId};
use warrant_core::run::{
    secret_reference, Acceptance, Call, Check, Clock, Effect, Failure, Given, History, Log,
    Machine, Output, Setup, State,
};

/// A run that this session drives.
pub(crate) struct Drive {
    machine: Machine,
    /// Values of the step under way, and the answer.
    content: Content,
    /// The head the store has.
    kept: Option<Digest>,
    /// Content that was handed to the store in this drive: once is enough.
    handed: BTreeSet<Digest>,
    /// Working time before the clock was started last.
    base_ms: u64,
    /// When it was; nothing while a person is asked.
    since: Option<Instant>,
    /// Of the time since then, what was no work.
    waited_ms: u64,
}

impl Drive {
    fn new(machine: Machine, content: Content, kept: Option<Digest>) -> Self {
        Drive {
            base_ms: machine.state().used().active_ms,
            machine,
            content,
            kept,
            handed: BTreeSet::new(),
            since: Some(Instant::now()),
            waited_ms: 0,
        }
    }

    fn clock(&self, at: f64) -> Clock {
        let ran = self.since.map_or(0, |s| s.elapsed().as_millis() as u64);
        Clock {
            at_ms: at as u64,
            // Never less than what is recorded.
            active_ms: self
                .base_ms
                .saturating_add(ran.saturating_sub(self.waited_ms))
                .max(self.machine.state().used().active_ms),
        }
    }

    /// The next effect, with what must be kept before it is performed.
    fn next(&mut self, at: f64) -> Result<Robj, Boxed> {
        if self.since.is_none() {
            self.since = Some(Instant::now());
        }
        let clock = self.clock(at);
        let effect = self.machine.next(clock).map_err(boxed)?;
        let mut output = self.machine.take_output();
        let sync = matches!(&effect, Effect::Call(call) if !call.idempotent);
        self.content.extend(output.content.iter().cloned());
        output
            .content
            .retain(|(address, _)| self.handed.insert(*address));
        let kept = keep(&mut self.kept, &output, sync);
        if matches!(effect, Effect::Ask { .. }) {
            // The time a person takes is not the run's.
            self.base_ms = clock.active_ms;
            self.since = None;
            self.waited_ms = 0;
        }
        let closed = match self.machine.take_closed() {
            Some(step) => {
                let list = run_view::closed(&step, &self.content);
                if matches!(effect, Effect::Plan { .. }) {
                    self.content.clear();
                }
                list
            }
            None => ().into(),
        };
        Ok(Fields::new(&NEXT, &[])
            .word(word(&effect))
            .robj(&kept)
            .robj(&closed)
            .robj(&self.about(&effect))
            .finish())
    }

    pub(crate) fn late(&mut self, late: LateResult, at: f64) -> Result<(), Boxed> {
        let clock = self.clock(at);
        self.machine.late(late, clock).map_err(boxed)
    }

    fn about(&self, effect: &Effect) -> Robj {
        let state = self.machine.state();
        match effect {
            Effect::Plan { .. } => match state.charter() {
                Some(charter) => run_view::left(&charter.limits, state.used()),
                None => ().into(),
            },
            Effect::Call(call) => call_list(call),
            Effect::Ask { request } => {
                let found = state.step().and_then(|s| s.request(request));
                match found {
                    Some((_, request)) => run_view::request(request, &self.content),
                    None => ().into(),
                }
            }
            Effect::Judge { answer } => to_robj(answer, None, &Value::Null),
            Effect::Check(check) => check_list(check),
            Effect::Ended | Effect::Paused => ().into(),
        }
    }
}

fn word(effect: &Effect) -> &'static str {
    match effect {
        Effect::Ask { .. } => "ask",
        Effect::Call(_) => "call",
        Effect::Check(_) => "check",
        Effect::Ended => "ended",
        Effect::Judge { .. } => "judge",
        Effect::Paused => "paused",
        Effect::Plan { .. } => "plan",
    }
}

fn check_list(check: &Check) -> Robj {
    match check {
        Check::Action {
            action,
            arguments,
            called,
            tool,
        } => list!(
            stage = "tool",
            action = *action as f64,
            tool = tool.as_str(),
            arguments = to_robj(arguments, None, &Value::Null),
            called = called.clone()
        )
        .into(),
        Check::Answer(answer) => list!(
            stage = "output",
            value = to_robj(answer, None, &Value::Null)
        )
        .into(),
        Check::Goal => list!(stage = "input").into(),
    }
}

fn call_list(call: &Call) -> Robj {
    let list = Fields::new(&CALL, &[])
        .text(&call.tool)
        .robj(&arguments_of(call))
        .number(call.action as f64)
        .number(call.attempt as f64)
        .number(call.step as f64)
        .text(&call.key);
    match call.timeout_ms {
        Some(ms) => list.number(ms as f64 / 1e3).finish(),
        None => list.null().finish(),
    }
}

/// JSON text, or a list where secrets are given by reference.
fn arguments_of(call: &Call) -> Robj {
    let map = call.arguments.as_object();
    let refers =
        |m: &serde_json::Map<String, Value>| m.values().any(|v| secret_reference(v).is_some());
    let Some(map) = map.filter(|m| refers(m)) else {
        return to_text(&canon::to_string(&call.arguments));
    };
    let values = map.values().map(|value| match secret_reference(value) {
        Some(variable) => {
            let mut secret = list!(env = variable);
            let _ = secret.set_class(&["warrant_secret"]);
            secret.into()
        }
        None => to_robj(value, None, &Value::Null),
    });
    named(map.keys().map(String::as_str), values)
}

/// What an append to a store takes.
pub(crate) fn keep(kept: &mut Option<Digest>, output: &Output, sync: bool) -> Robj {
    let before = kept.map_or(String::new(), |d| d.to_hex());
    let Some(last) = output.records.last() else {
        if output.content.is_empty() {
            return ().into();
        }
        return keep_list(&[], &before, &before, output, sync);
    };
    *kept = Some(last.digest());
    let lines: Vec<&str> = output.records.iter().map(|r| r.line()).collect();
    keep_list(&lines, &before, &last.digest().to_hex(), output, sync)
}

fn keep_list(lines: &[&str], before: &str, head: &str, output: &Output, sync: bool) -> Robj {
    let content: Vec<(String, &str)> = output
        .content
        .iter()
        .map(|(address, bytes)| (address.to_hex(), utf8(bytes)))
        .collect();
    Fields::new(&KEEP, &[])
        .texts(lines)
        .text(before)
        .text(head)
        .named_texts(&content)
        .flag(sync)
        .finish()
}

/// Content is canonical JSON, which is UTF-8.
fn utf8(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

static NEXT: [&str; 4] = ["effect", "keep", "closed", "about"];
static CALL: [&str; 7] = [
    "tool",
    "arguments",
    "action",
    "attempt",
    "step",
    "key",
    "timeout_s",
];
static KEEP: [&str; 5] = ["lines", "expect_head", "head", "content", "sync"];

type Handle = ExternalPtr<RefCell<Drive>>;

pub(crate) fn with<T>(
    handle: &Robj,
    f: impl FnOnce(&mut Drive) -> Result<T, Boxed>,
) -> Result<T, Boxed> {
    let gone = || unusable("this handle", "it is not of this session");
    let handle: Handle = handle.clone().try_into().map_err(|_| gone())?;
    let drive = handle.try_addr().map_err(|_| gone())?;
    let mut drive = drive
        .try_borrow_mut()
        .map_err(|_| unusable("this handle", "it is in use"))?;
    f(&mut drive)
}

fn new_handle(drive: Drive) -> Robj {
    ExternalPtr::new(RefCell::new(drive)).into()
}

fn random() -> Result<[u8; 32], Boxed> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|e| unusable("random bytes", e))?;
    Ok(bytes)
}

fn id_of(x: &Robj) -> Result<RunId, Boxed> {
    match x.as_str() {
        Some(id) => RunId::new(id).map_err(boxed),
        None => {
            let bytes = random()?;
            let mut id = [0; 16];
            id.copy_from_slice(&bytes[..16]);
            Ok(RunId::of_random(id))
        }
    }
}

pub(crate) fn lines_of(x: &Robj) -> Vec<String> {
    Strings::try_from(x)
        .map(|s| s.iter().map(|t| t.to_string()).collect())
        .unwrap_or_default()
}

fn digest_of(x: &Robj) -> Result<Digest, Boxed> {
    text_of(x, "digest")?.parse().map_err(boxed)
}

pub(crate) fn history(lines: &Robj, upto: &Robj) -> Result<History, Boxed> {
    let upto = match upto.as_str() {
        Some(text) if !text.is_empty() => Some(text.parse().map_err(boxed)?),
        _ => None,
    };
    History::read(lines_of(lines).iter().map(String::as_str), upto).map_err(boxed)
}

/// The steps that are over, and the goal, as R is told of them.
fn told(history: &History, content: &Content) -> (List, Robj) {
    let steps = history.steps.iter();
    let steps = steps.map(|s| run_view::closed(s, content));
    let goal = history.state.charter().map(|c| c.goal);
    (
        List::from_values(steps.collect::<Vec<Robj>>()),
        run_view::value_at(content, goal.as_ref()),
    )
}

fn handle_list(drive: Drive, run: &RunId) -> Robj {
    let run = run.as_str().to_owned();
    list!(handle = new_handle(drive), run_id = run).into()
}

// The wall clock, in whole milliseconds.
#[extendr]
fn rs_clock_ms() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |d| d.as_millis() as f64)
}

// A random run id.
#[extendr]
fn rs_run_id() -> Robj {
    guard(|| Ok(id_of(&().into())?.as_str().to_owned()))
}

// Whether a setup would do: the checks of a start, without one.
#[extendr]
fn rs_run_check(setup: Robj, tools: Robj) -> Robj {
    guard(|| {
        run_setup::setup(&setup, &tools, &[0; 32])?;
        Ok(())
    })
}

// Begins a run. Nothing is kept yet: rs_run_next() gives what must be.
#[extendr]
fn rs_run_start(setup: Robj, tools: Robj, run_id: Robj, goal: Robj, at: f64) -> Robj {
    guard(|| {
        let (key, nonce) = (random()?, random()?);
        let setup: Setup = run_setup::setup(&setup, &tools, &key)?;
        let run = id_of(&run_id)?;
        let goal = to_value(&goal)?;
        let clock = Clock {
            at_ms: at as u64,
            active_ms: 0,
        };
        let chain = Chain::start(run.clone());
        let machine = Machine::start(setup, chain, key, nonce, &goal, clock).map_err(boxed)?;
        let list = handle_list(Drive::new(machine, Content::new(), None), &run);
        Ok(list!(run = list, key_name = KEY_NAME, key = hex(&key)))
    })
}

// Takes up a run from its journal and content.
#[extendr]
fn rs_run_resume(
    setup: Robj,
    tools: Robj,
    lines: Robj,
    content: Robj,
    secrets: Robj,
    at: f64,
) -> Robj {
    guard(|| {
        let (content, key) = run_setup::content(&content)?;
        let history = history(&lines, &().into())?;
        let setup = run_setup::setup(&setup, &tools, &key)?;
        let run = history.chain.run().clone();
        let kept = history.chain.head();
        let (steps, goal) = told(&history, &content);
        let clock = Clock {
            at_ms: at as u64,
            active_ms: history.state.used().active_ms,
        };
        let secrets = secrets.as_list().map(|l| l.values().collect::<Vec<Robj>>());
        let secrets = secrets
            .unwrap_or_default()
            .iter()
            .map(|s| to_value(s).map_err(Into::into))
            .collect::<Result<Vec<Value>, Boxed>>()?;
        let log = Log::open(history.state, history.chain, key).map_err(boxed)?;
        let machine = Machine::resume(log, setup, &content, secrets, clock).map_err(boxed)?;
        let lost: Vec<String> = machine.state().lost().map(run_late::name_of).collect();
        let list = handle_list(Drive::new(machine, content, kept), &run);
        Ok(list!(run = list, steps = steps, goal = goal, lost = lost))
    })
}

// What comes next.
#[extendr]
fn rs_run_next(handle: Robj, at: f64) -> Robj {
    guard(|| with(&handle, |drive| drive.next(at)))
}

// The planner decided; then what comes next.
#[extendr]
fn rs_run_decided(handle: Robj, decision: Robj, at: f64) -> Robj {
    guard(|| {
        let note = Members::of(&decision).value("note")?;
        let (decided, usage) = run_setup::decision(&decision)?;
        with(&handle, |drive| {
            let clock = drive.clock(at);
            if let Some(note) = &note {
                drive.machine.noted(note);
            }
            drive
                .machine
                .decided(decided, usage, clock)
                .map_err(boxed)?;
            drive.next(at)
        })
    })
}

// Seconds of the time since the last call of this kind that were no work.
#[extendr]
fn rs_run_waited(handle: Robj, seconds: f64) -> Robj {
    guard(|| {
        with(&handle, |drive| {
            drive.waited_ms += (seconds * 1e3) as u64;
            Ok(())
        })
    })
}

// Guardrails looked: at the goal, the answer, or an action; then what comes next.
#[extendr]
fn rs_run_checked(handle: Robj, stage: Robj, action: f64, found: Robj, at: f64) -> Robj {
    guard(|| {
        let stage = text_of(&stage, "stage")?;
        let found = run_setup::findings(&found)?;
        with(&handle, |drive| {
            let clock = drive.clock(at);
            match stage.as_str() {
                "input" => drive.machine.goal_checked(found, clock).map_err(boxed)?,
                "output" => drive.machine.answer_checked(found, clock).map_err(boxed)?,
                _ => drive
                    .machine
                    .action_checked(action as u64, found, clock)
                    .map_err(boxed)?,
            }
            if stage == "result" {
                return Ok(().into());
            }
            drive.next(at)
        })
    })
}

// The run cannot go on; then what comes next.
#[extendr]
fn rs_run_failed(handle: Robj, reason: Robj, text: Robj, at: f64) -> Robj {
    guard(|| {
        let word = text_of(&reason, "reason")?;
        let reason: StopReason =
            serde_json::from_value(Value::from(word)).map_err(|e| unusable("a reason", e))?;
        let text = text_of(&text, "text")?;
        with(&handle, |drive| {
            let clock = drive.clock(at);
            let failure = Failure { reason, text };
            drive.machine.failed(&failure, clock).map_err(boxed)?;
            drive.next(at)
        })
    })
}

// `done` said yes or no; then what comes next.
#[extendr]
fn rs_run_judged(handle: Robj, accepted: bool, at: f64) -> Robj {
    guard(|| {
        let accepted = if accepted {
            Acceptance::Accepted
        } else {
            Acceptance::Rejected
        };
        with(&handle, |drive| {
            let clock = drive.clock(at);
            drive.machine.judged(accepted, clock).map_err(boxed)?;
            drive.next(at)
        })
    })
}

// The approver answered, or (a decision of NULL) did not; then what comes next.
#[extendr]
fn rs_run_answered(handle: Robj, request: Robj, decision: Robj, at: f64) -> Robj {
    guard(|| {
        let request = digest_of(&request)?;
        let (verdict, by) = run_setup::verdict(&decision)?;
        with(&handle, |drive| {
            let clock = drive.clock(at);
            drive
                .machine
                .answered(request, verdict, by, clock)
                .map_err(boxed)?;
            drive.next(at)
        })
    })
}

// A call ended; then what comes next.
#[extendr]
fn rs_run_called(handle: Robj, action: f64, attempt: f64, result: Robj, at: f64) -> Robj {
    guard(|| {
        let ended = run_setup::ended(&result)?;
        with(&handle, |drive| {
            let clock = drive.clock(at);
            drive
                .machine
                .called(action as u64, attempt as u64, ended, clock)
                .map_err(boxed)?;
            drive.next(at)
        })
    })
}

// The run as it stands, without its closed steps.
#[extendr]
fn rs_run_view(handle: Robj) -> Robj {
    guard(|| {
        with(&handle, |drive| {
            let log = drive.machine.log();
            Ok(view(log.state(), log.chain(), &drive.content))
        })
    })
}

// A run as its journal tells it, up to a head.
#[extendr]
fn rs_run_read(lines: Robj, content: Robj, upto: Robj) -> Robj {
    guard(|| {
        let (content, _) = run_setup::content(&content)?;
        let history = history(&lines, &upto)?;
        let (steps, goal) = told(&history, &content);
        Ok(list!(
            view = view(&history.state, &history.chain, &content),
            steps = steps,
            goal = goal,
            at_ms = history.at_ms as f64
        ))
    })
}

// What was left of the limits when each plan began.
#[extendr]
fn rs_run_lefts(lines: Robj) -> Robj {
    guard(|| {
        let history = history(&lines, &().into())?;
        let limits = history.state.charter().map(|c| c.limits.clone());
        let limits = limits.unwrap_or_default();
        let lefts = history
            .plans
            .iter()
            .map(|used| run_view::left(&limits, used));
        Ok(List::from_values(lefts.collect::<Vec<Robj>>()))
    })
}

// The arguments of a decision as the journal of a run with this key would hold them:
// canonical JSON.
#[extendr]
fn rs_run_normal(tool: Robj, arguments: Robj, redacted: Robj, key: Robj) -> Robj {
    guard(|| {
        let given = run_setup::given(&arguments)?;
        let raw = match &given {
            Given::Text(text) => {
                canon::parse(text.as_bytes()).unwrap_or(Value::from(text.as_str()))
            }
            Given::Value(value) | Given::Referring(value, _) => value.clone(),
        };
        let plain = canon::to_string(&raw);
        if tool.is_null() {
            return Ok(to_text(&plain));
        }
        let tool = &crate::tool::handle(&tool)?.tool;
        let key = digest_of(&key)?;
        let key = key.as_bytes();
        let read = match &given {
            Given::Text(text) => tool.read_arguments(text.as_bytes(), key),
            Given::Value(value) => tool.take_arguments(value.clone(), key),
            Given::Referring(value, names) => tool.take_with_references(value.clone(), key, names),
        };
        let recorded = match read {
            Ok(mut arguments) => {
                arguments.show(&run_setup::redactions(&redacted));
                Some(arguments.recorded().to_vec())
            }
            Err(refused) => refused.recorded,
        };
        let text = recorded.and_then(|r| String::from_utf8(r).ok());
        Ok(to_text(&text.unwrap_or(plain)))
    })
}

// Records a person's decision about a request of a run that nobody drives. An
// expired request is recorded as such; `error` then says so.
#[extendr]
fn rs_run_decide(lines: Robj, content: Robj, request: Robj, decision: Robj, at: f64) -> Robj {
    guard(|| {
        let (content, key) = run_setup::content(&content)?;
        let history = history(&lines, &().into())?;
        let request = digest_of(&request)?;
        let (verdict, by) = run_setup::verdict(&decision)?;
        let verdict = verdict.ok_or_else(|| unusable("a decision", "there is none"))?;
        let schema = asked_schema(&history.state, &request, &content)?;
        let mut kept = history.chain.head();
        let clock = Clock {
            at_ms: at as u64,
            active_ms: history.chain.active_ms(),
        };
        let mut log = Log::open(history.state, history.chain, key).map_err(boxed)?;
        let decided = log.decide(request, verdict, by, schema.as_ref(), clock);
        let output = log.take_output();
        let kept = keep(&mut kept, &output, true);
        match decided {
            Ok(_) => Ok(list!(keep = kept, expired = false)),
            Err(warrant_core::run::Error::Expired { .. }) => Ok(list!(keep = kept, expired = true)),
            Err(error) => Err(boxed(error)),
        }
    })
}

/// The schema of the tool that a request is about.
fn asked_schema(
    state: &State,
    request: &Digest,
    content: &Content,
) -> Result<Option<warrant_core::schema::Schema>, Boxed> {
    let asked = state.step().and_then(|s| s.request(request));
    let facts = asked
        .zip(state.charter())
        .and_then(|((_, request), charter)| charter.tools.get(&request.data.tool));
    let bytes = facts.and_then(|f| content.get(&f.schema));
    let Some(value) = bytes.and_then(|b| canon::parse(b).ok()) else {
        return Ok(None);
    };
    warrant_core::schema::Schema::new(value)
        .map(Some)
        .map_err(boxed)
}

fn view(state: &State, chain: &Chain, content: &Content) -> Robj {
    let end = state.end();
    let limits = state.charter().map(|c| run_view::limits(&c.limits));
    let step = state.step().map(|s| run_view::open(s, content));
    let answer = match end {
        Some(end) if end.status == Status::Completed => end.answer,
        _ => None,
    };
    list!(
        run_id = chain.run().as_str(),
        status = state.status().word(),
        stop_reason = run_view::or_null(end.and_then(|e| e.stop_reason).map(StopReason::word)),
        answer = run_view::value_at(content, answer.as_ref()),
        error = run_view::value_at(content, end.and_then(|e| e.error.as_ref())),
        open_step = step.unwrap_or_else(|| ().into()),
        pending = run_view::pending(state, content),
        used = run_view::used(state.used()),
        limits = limits.unwrap_or_else(|| ().into()),
        head = run_view::or_null(chain.head().map(|h| h.to_hex())),
        records = chain.next_seq() as f64
    )
    .into()
}

extendr_module! {
    mod run;
    fn rs_clock_ms;
    fn rs_run_id;
    fn rs_run_check;
    fn rs_run_start;
    fn rs_run_resume;
    fn rs_run_next;
    fn rs_run_checked;
    fn rs_run_decided;
    fn rs_run_failed;
    fn rs_run_judged;
    fn rs_run_answered;
    fn rs_run_called;
    fn rs_run_view;
    fn rs_run_waited;
    fn rs_run_read;
    fn rs_run_lefts;
    fn rs_run_normal;
    fn rs_run_decide;
}
