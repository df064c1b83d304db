//! Calls that end after another driver took their run over.

use crate::convert::text_of;
use crate::fault::{boxed, guard};
use crate::run::{history, keep, lines_of, with};
use crate::run_setup::{self, unusable, Boxed};
use crate::run_view::or_null;
use extendr_api::prelude::*;
use warrant_core::event::{CallFinished, Event, LateResult};
use warrant_core::journal::Line;
use warrant_core::run::{Attempt, Clock, Log, Settled};

/// Where a late driver leaves what it has for the one that drives: in the content,
/// under this name, the data of a `late_result`.
pub(crate) fn name_of(attempt: &Attempt) -> String {
    let (step, action, attempt) = attempt;
    format!("{PREFIX}{step}x{action}x{attempt}")
}

/// How those names begin: no address does.
pub(crate) const PREFIX: &str = "late";

/// What was left under such a name, where it is what it should be.
pub(crate) fn left(name: &str, text: &str) -> Option<LateResult> {
    match Event::read("late_result", text.as_bytes()) {
        Ok(Event::LateResult(data)) if name_of(&(data.step, data.action, data.attempt)) == name => {
            Some(data)
        }
        _ => None,
    }
}

fn ended(lines: &[String]) -> Option<CallFinished> {
    lines.iter().find_map(|text| {
        let line = Line::read(text.as_bytes())?;
        match Event::read(line.event, line.data.as_bytes()) {
            Ok(Event::CallFinished(end)) => Some(end),
            _ => None,
        }
    })
}

fn text(bytes: Vec<u8>) -> Result<String, Boxed> {
    String::from_utf8(bytes).map_err(|e| unusable("an event", e))
}

// The call whose end stands in lines that a store refused, or NULL.
#[extendr]
fn rs_run_unkept(lines: Robj) -> Robj {
    guard(|| {
        let Some(end) = ended(&lines_of(&lines)) else {
            return Ok(().into());
        };
        let late = LateResult::from(&end);
        Ok(Robj::from(list!(
            name = name_of(&(end.step, end.action, end.attempt)),
            late = text(Event::from(late).data())?,
            step = end.step as f64,
            action = end.action as f64 + 1.0,
            attempt = end.attempt as f64,
            outcome = end.outcome.word(),
            result = or_null(end.result.map(|d| d.to_hex()))
        )))
    })
}

// Records that call's end in the journal as it is now: `late`, `finished` where
// nobody had given the call up, or `nowhere`.
#[extendr]
fn rs_run_settle(lines: Robj, content: Robj, unkept: Robj, at: f64) -> Robj {
    guard(|| {
        let (_, key) = run_setup::content(&content)?;
        let history = history(&lines, &().into())?;
        let end = ended(&lines_of(&unkept)).ok_or_else(|| unusable("lines", "no call ended"))?;
        let mut kept = history.chain.head();
        let clock = Clock {
            at_ms: at as u64,
            active_ms: history.chain.active_ms(),
        };
        let mut log = Log::open(history.state, history.chain, key).map_err(boxed)?;
        let settled = log.settle(end, clock).map_err(boxed)?;
        let word = match settled {
            Settled::Finished => "finished",
            Settled::Late => "late",
            Settled::Nowhere => "nowhere",
        };
        let keep = keep(&mut kept, &log.take_output(), true);
        Ok(list!(settled = word, keep = keep))
    })
}

// The driver records what a late one left.
#[extendr]
fn rs_run_late(handle: Robj, name: Robj, data: Robj, at: f64) -> Robj {
    guard(|| {
        let late = left(&text_of(&name, "name")?, &text_of(&data, "data")?);
        let late = late.ok_or_else(|| unusable("a late result", "it is none"))?;
        with(&handle, |drive| drive.late(late, at))
    })
}

extendr_module! {
    mod run_late;
    fn rs_run_late;
    fn rs_run_settle;
    fn rs_run_unkept;
}
