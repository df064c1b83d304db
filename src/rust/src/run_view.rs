//! Runs as R lists: steps, requests, what is used and what is left.

use crate::convert::{to_robj, to_text, Fields};
use crate::run_setup::Content;
use extendr_api::prelude::*;
use serde_json::Value;
use warrant_core::canon;
use warrant_core::digest::Digest;
use warrant_core::event::{Decision, Usage};
use warrant_core::limits::{Limits, Used};
use warrant_core::outcome::Outcome;
use warrant_core::run::{Action, Closed, Progress, Request, State, Step};

/// The normal form of a value: read back from its canonical content.
pub(crate) fn value_at(content: &Content, address: Option<&Digest>) -> Robj {
    let found = address.and_then(|a| content.get(a));
    match found.and_then(|bytes| canon::parse(bytes).ok()) {
        Some(value) => to_robj(&value, None, &Value::Null),
        None => ().into(),
    }
}

/// Canonical JSON as it is kept.
fn text_at(content: &Content, address: &Digest) -> Option<String> {
    let bytes = content.get(address)?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// R's NULL where there is nothing; by itself it would become NA.
pub(crate) fn or_null<T: Into<Robj>>(x: Option<T>) -> Robj {
    x.map_or_else(|| ().into(), Into::into)
}

fn count(n: u64) -> Robj {
    match i32::try_from(n) {
        Ok(n) => n.into(),
        Err(_) => (n as f64).into(),
    }
}

fn units(nano: u64) -> f64 {
    nano as f64 / 1e9
}

/// A step that is over.
pub(crate) fn closed(step: &Closed, content: &Content) -> Robj {
    match step.decision {
        Decision::Act => acted(step.number, &step.actions, (step.note, step.usage), content),
        Decision::Finish => list!(
            step = count(step.number),
            decision = "finish",
            tool = (),
            arguments = (),
            outcome = (),
            result = (),
            error = "`done` did not accept this answer.",
            answer = value_at(content, step.answer.as_ref()),
            usage = usage(step.usage),
            note = value_at(content, step.note.as_ref()),
            actions = List::new(0)
        )
        .into(),
    }
}

/// A step whose actions have not all ended.
pub(crate) fn open(step: &Step, content: &Content) -> Robj {
    acted(step.number, &step.actions, (step.note, step.usage), content)
}

static USAGE: [&str; 2] = ["tokens", "cost"];

fn usage(usage: Usage) -> Robj {
    Fields::new(&USAGE, &[])
        .number(usage.tokens as f64)
        .number(units(usage.cost_nano))
        .finish()
}

static STEP: [&str; 11] = [
    "step",
    "decision",
    "tool",
    "arguments",
    "outcome",
    "result",
    "error",
    "answer",
    "usage",
    "note",
    "actions",
];

fn acted(
    number: u64,
    actions: &[Action],
    (note, used): (Option<Digest>, Usage),
    content: &Content,
) -> Robj {
    let values: Vec<Values> = actions.iter().map(|a| Values::of(a, content)).collect();
    let lists = actions
        .iter()
        .zip(&values)
        .map(|(a, v)| action(a, v, content));
    let lists = List::from_values(lists.collect::<Vec<Robj>>());
    let outcomes: Vec<Option<&'static str>> = actions
        .iter()
        .map(|a| a.outcome().map(Outcome::word))
        .collect();
    let tools: Vec<&str> = actions.iter().map(|a| a.tool.as_str()).collect();
    // What a step with one action says of it is the same R value.
    let one = |part: fn(&Values) -> &Robj| match values.as_slice() {
        [only] => part(only).clone(),
        several => List::from_values(several.iter().map(part)).into(),
    };
    let step = Fields::new(&STEP, &[])
        .count(number)
        .word("act")
        .texts(&tools)
        .robj(&one(|v| &v.arguments));
    let step = match outcomes.as_slice() {
        [Some(outcome)] => step.word(outcome),
        _ => step.robj(&outcomes.into()),
    };
    step.robj(&one(|v| &v.result))
        .robj(&one(|v| &v.error))
        .null()
        .robj(&usage(used))
        .robj(&value_at(content, note.as_ref()))
        .robj(&lists.into())
        .finish()
}

/// What a step and its action both show.
struct Values {
    arguments: Robj,
    result: Robj,
    error: Robj,
}

impl Values {
    fn of(action: &Action, content: &Content) -> Self {
        let ending = action.ending();
        let text = ending.and_then(|e| e.text.as_ref());
        Values {
            arguments: value_at(content, Some(&action.arguments)),
            result: value_at(content, ending.and_then(|e| e.result.as_ref())),
            error: match action.outcome() {
                Some(Outcome::Executed) | None => ().into(),
                Some(Outcome::ApprovalRequired) => {
                    warrant_core::archive::trajectory::PENDING.into()
                }
                Some(_) => value_at(content, text),
            },
        }
    }
}

static ACTION: [&str; 11] = [
    "tool",
    "arguments",
    "outcome",
    "result",
    "error",
    "asked",
    "edited_by",
    "warnings",
    "shown",
    "progress",
    "attempts",
];

fn action(action: &Action, values: &Values, content: &Content) -> Robj {
    let result = action.ending().and_then(|e| e.result.as_ref());
    Fields::new(&ACTION, &[])
        .text(&action.tool)
        .robj(&values.arguments)
        .word_or_na(action.outcome().map(Outcome::word))
        .robj(&values.result)
        .robj(&values.error)
        .text_or_null(text_at(content, &action.asked).as_deref())
        .text_or_null(action.edited_by.as_deref())
        .robj(&warnings(action, content))
        .robj(&shown(result, content))
        .word(progress(action))
        .count(action.attempts)
        .finish()
}

fn warnings(action: &Action, content: &Content) -> Robj {
    if action.warnings.is_empty() {
        return ().into();
    }
    let texts = action.warnings.iter().map(|a| value_at(content, Some(a)));
    List::from_values(texts).into()
}

/// A result as a model is shown it: a text as it is, anything else as JSON.
fn shown(result: Option<&Digest>, content: &Content) -> Robj {
    let found = result.and_then(|address| content.get(address));
    match found.and_then(|bytes| std::str::from_utf8(bytes).ok()) {
        Some(json) if json.starts_with('"') => value_at(content, result),
        Some(json) => to_text(json),
        None => ().into(),
    }
}

fn progress(action: &Action) -> &'static str {
    match action.progress {
        Progress::Answered(_) => "approved",
        Progress::Asking(_) => "asking",
        Progress::Calling => "calling",
        Progress::Ended(_) => "ended",
        Progress::Granted => "granted",
        Progress::Open => "open",
    }
}

/// A request, as an approver is shown it.
pub(crate) fn request(request: &Request, content: &Content) -> Robj {
    let asked = &request.data;
    list!(
        request = request.digest.to_hex(),
        step = count(asked.step),
        action = count(asked.action + 1),
        tool = to_text(&asked.tool),
        arguments = value_at(content, Some(&asked.arguments)),
        side_effects = asked.side_effects.word(),
        scopes = asked.scopes.clone(),
        reason = asked.reason.word(),
        prompt = value_at(content, asked.prompt.as_ref()),
        expires_ms = or_null(asked.expires_ms.map(|ms| ms as f64)),
        spec_hash = asked.spec_hash.to_hex()
    )
    .into()
}

/// The open requests of a run.
pub(crate) fn pending(state: &State, content: &Content) -> Robj {
    let requests = state.step().map(Step::pending).unwrap_or_default();
    List::from_values(requests.into_iter().map(|r| request(r, content))).into()
}

/// Limits, used and left are lists of one shape.
fn meters(numbers: [f64; 5], per_tool: impl Iterator<Item = (String, f64)>) -> Robj {
    let (names, counts): (Vec<String>, Vec<f64>) = per_tool.unzip();
    let mut tools: Robj = counts.into();
    let _ = tools.set_attrib(names_symbol(), names);
    let list = Fields::new(&METERS, &[]);
    numbers
        .into_iter()
        .fold(list, Fields::number)
        .robj(&tools)
        .finish()
}

static METERS: [&str; 6] = [
    "steps",
    "tool_calls",
    "tokens",
    "cost",
    "seconds",
    "per_tool",
];

fn infinite(limit: Option<u64>) -> f64 {
    limit.map_or(f64::INFINITY, |n| n as f64)
}

/// The limits.
pub(crate) fn limits(limits: &Limits) -> Robj {
    meters(
        [
            infinite(limits.steps),
            infinite(limits.tool_calls),
            infinite(limits.tokens),
            infinite(limits.cost_nano) / 1e9,
            infinite(limits.active_ms) / 1e3,
        ],
        limits.per_tool.iter().map(|(t, n)| (t.clone(), *n as f64)),
    )
}

/// What is used.
pub(crate) fn used(used: &Used) -> Robj {
    meters(
        [
            used.steps as f64,
            used.tool_calls as f64,
            used.tokens as f64,
            units(used.cost_nano),
            used.active_ms as f64 / 1e3,
        ],
        used.per_tool.iter().map(|(t, n)| (t.clone(), *n as f64)),
    )
}

/// What is left of the limits.
pub(crate) fn left(limits: &Limits, used: &Used) -> Robj {
    let rest = |limit: Option<u64>, used: u64| infinite(limit.map(|l| l.saturating_sub(used)));
    meters(
        [
            rest(limits.steps, used.steps),
            rest(limits.tool_calls, used.tool_calls),
            rest(limits.tokens, used.tokens),
            rest(limits.cost_nano, used.cost_nano) / 1e9,
            rest(limits.active_ms, used.active_ms) / 1e3,
        ],
        limits
            .per_tool
            .iter()
            .map(|(t, n)| (t.clone(), n.saturating_sub(used.calls_of(t)) as f64)),
    )
}
