//! Calls that end after another owner took their run over and gave them up.
//!
//! A lease can be lost while its owner lives. What the call did then come to is no
//! outcome any more: the run has gone on without it, or made it again. It is kept
//! as `late_result`, once, behind the `recovered` that gave up that very attempt and
//! before the run's end, and changes nothing that the planner sees.

use super::effect::Clock;
use super::fold_call::ends_a_call;
use super::log::Log;
use super::machine::Machine;
use super::meaning::Meaning;
use super::setup::Error;
use super::state::State;
use super::step::{Action, Progress};
use crate::event::{CallFinished, LateResult, Stage};
use crate::outcome::Outcome;

/// An attempt of a call: step, action, attempt.
pub type Attempt = (u64, u64, u64);

/// What became of the end of a call that came too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Nobody had given the call up: it ended as any other.
    Finished,
    /// It is in the journal as late.
    Late,
    /// The journal has no place for it: the run has ended, or it is there already.
    Nowhere,
}

impl State {
    /// Attempts that an owner gave up on and of whose end nothing is recorded.
    pub fn lost(&self) -> impl Iterator<Item = &Attempt> {
        self.lost.iter()
    }

    pub(super) fn late_result(&mut self, data: &LateResult) -> Result<(), Meaning> {
        if !self.lost.remove(&(data.step, data.action, data.attempt)) {
            return Err(Meaning::NoSuchAction {
                action: data.action,
            });
        }
        ends_a_call(data.outcome, data.result)
    }

    fn waits_for(&self, end: &CallFinished) -> bool {
        let step = self.step().filter(|s| s.number == end.step);
        let place = usize::try_from(end.action).ok();
        let action = step.zip(place).and_then(|(s, i)| s.actions.get(i));
        // What guardrails said of the result is not recorded where its end was not.
        let looked = |a: &Action| {
            end.outcome != Outcome::Executed || self.all_looked(Stage::Tool, &a.looked).is_ok()
        };
        action.is_some_and(|a| {
            a.progress == Progress::Calling && a.attempts == end.attempt && looked(a)
        })
    }
}

impl Log {
    /// Records the end of a call whose owner lost the run, where it belongs.
    ///
    /// # Errors
    /// When the journal refuses.
    pub fn settle(&mut self, end: CallFinished, clock: Clock) -> Result<Settled, Error> {
        let attempt = (end.step, end.action, end.attempt);
        if self.state.end().is_some() {
            Ok(Settled::Nowhere)
        } else if self.state.lost.contains(&attempt) {
            self.record(LateResult::from(&end), clock)?;
            Ok(Settled::Late)
        } else if self.state.waits_for(&end) && end.outcome != Outcome::GuardrailBlocked {
            self.record(end, clock)?;
            Ok(Settled::Finished)
        } else {
            Ok(Settled::Nowhere)
        }
    }
}

impl Machine {
    /// Records what became of a call that was given up when this drive, or one
    /// before it, took the run over.
    ///
    /// # Errors
    /// When no such attempt was given up, or the run has ended.
    pub fn late(&mut self, late: LateResult, clock: Clock) -> Result<(), Error> {
        self.log.record(late, clock).map(|_| ())
    }
}
