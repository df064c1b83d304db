//! What the fold makes of the events of a call: its start, its end, its loss.

use super::meaning::Meaning;
use super::state::{out_of_place, same_step, Charter, State, MAX_ATTEMPTS};
use super::step::{Action, Ending, Progress};
use crate::digest::Digest;
use crate::event::{CallFinished, CallStarted, Recovered, Stage};
use crate::limits::Used;
use crate::outcome::Outcome;
use crate::policy::ToolFacts;

impl State {
    pub(super) fn call_started(
        &mut self,
        data: &CallStarted,
        digest: Digest,
    ) -> Result<(), Meaning> {
        let index = self.open_action(data.step, data.action)?;
        self.start_is_right(data, index)?;
        self.used.charge_call(&data.tool, data.cost_nano);
        self.counts.calls_started += 1;
        let action = &mut self.acting_mut()?.actions[index];
        action.attempts = data.attempt;
        // They look again at what comes of it.
        action.looked.clear();
        action.call.get_or_insert(digest);
        action.progress = Progress::Calling;
        Ok(())
    }

    pub(super) fn start_is_right(&self, data: &CallStarted, index: usize) -> Result<(), Meaning> {
        let charter = self.known()?;
        let step = self.acting()?;
        let action = &step.actions[index];
        let tool = || data.tool.clone();
        let facts = charter
            .tools
            .get(&action.tool)
            .filter(|_| data.tool == action.tool)
            .ok_or_else(|| Meaning::ToolNotDeclared { tool: tool() })?;
        if let Some(limit) = step.over {
            return Err(Meaning::OverLimit { limit });
        }
        if !charter.policy.allow_effects.contains(&facts.side_effects) {
            return Err(Meaning::EffectNotAllowed { tool: tool() });
        }
        if !charter.policy.missing_scopes(facts).is_empty() {
            return Err(Meaning::ScopeNotGranted { tool: tool() });
        }
        if action.blocked {
            return Err(out_of_place("call_started"));
        }
        self.all_looked(Stage::Tool, &action.looked)?;
        let again = data.attempt > 1;
        if data.attempt != action.attempts.saturating_add(1)
            || data.attempt > MAX_ATTEMPTS
            || (again && !facts.idempotent)
        {
            return Err(Meaning::Repeated {
                tool: tool(),
                attempt: data.attempt,
            });
        }
        let expected = facts.cost_nano.unwrap_or(0);
        if data.cost_nano != expected {
            return Err(Meaning::Cost {
                expected,
                found: data.cost_nano,
            });
        }
        if data.timeout_ms != facts.timeout_ms.or(charter.limits.call_timeout_ms) {
            return Err(Meaning::Timeout);
        }
        if self.exhausted(facts, &Used::default()) {
            return Err(Meaning::OverMaxCalls { tool: tool() });
        }
        if let Some(limit) =
            charter
                .limits
                .before_call(&self.used, &Used::default(), &data.tool, data.cost_nano)
        {
            return Err(Meaning::OverLimit { limit });
        }
        self.approval_is_right(data, action, facts, charter)
    }

    pub(super) fn approval_is_right(
        &self,
        data: &CallStarted,
        action: &Action,
        facts: &ToolFacts,
        charter: &Charter,
    ) -> Result<(), Meaning> {
        let not_as_approved = |what| Err(Meaning::NotAsApproved { what });
        if data.arguments != action.arguments {
            return not_as_approved("arguments");
        }
        if data.spec_hash != facts.spec_hash {
            return not_as_approved("tool");
        }
        let not_approved = Err(Meaning::NotApproved {
            tool: data.tool.clone(),
        });
        match &action.progress {
            Progress::Answered(request) => {
                if data.request != Some(request.digest) {
                    return not_as_approved("request");
                }
                if request.data.spec_hash != facts.spec_hash
                    || request.data.scopes != facts.scopes
                    || request.data.side_effects != facts.side_effects
                {
                    return not_as_approved("tool");
                }
                if request.data.policy != charter.policy_digest {
                    return not_as_approved("policy");
                }
                Ok(())
            }
            Progress::Granted | Progress::Open if data.request.is_some() => {
                not_as_approved("request")
            }
            Progress::Granted => Ok(()),
            Progress::Open if self.ask_reason(facts, action.arguments).is_none() => Ok(()),
            Progress::Open | Progress::Asking(_) => not_approved,
            Progress::Calling | Progress::Ended(_) => Err(out_of_place("call_started")),
        }
    }

    pub(super) fn call_finished(
        &mut self,
        data: &CallFinished,
        digest: Digest,
    ) -> Result<(), Meaning> {
        let index = self.open_action(data.step, data.action)?;
        self.is_calling(index, data.attempt, data.action)?;
        let blocked = self.acting()?.actions[index].blocked;
        if data.outcome == Outcome::GuardrailBlocked && !blocked {
            return Err(Meaning::Outcome {
                outcome: data.outcome,
            });
        }
        ends_a_call(data.outcome, data.result)?;
        if data.outcome == Outcome::Executed {
            self.all_looked(Stage::Tool, &self.acting()?.actions[index].looked)?;
        }
        self.counts.calls_finished += 1;
        if data.outcome == Outcome::TimedOut {
            self.note_unknown_effect(index)?;
        }
        self.end_action(
            index,
            Ending {
                outcome: data.outcome,
                limit: None,
                result: data.result,
                text: data.text,
                notes: data.notes,
                truncated: data.truncated,
                bytes: data.bytes,
                duration_us: data.duration_us,
                record: digest,
            },
        )
    }

    pub(super) fn recovered(&mut self, data: &Recovered, digest: Digest) -> Result<(), Meaning> {
        let Some(action) = data.action else {
            let fits = self.planning() && data.outcome.is_none() && data.attempt == 0;
            return if fits {
                same_step(self.used.steps, data.step)
            } else {
                Err(out_of_place("recovered"))
            };
        };
        let index = self.open_action(data.step, action)?;
        self.is_calling(index, data.attempt, action)?;
        let lost = (data.step, action, data.attempt);
        let tool = self.acting()?.actions[index].tool.clone();
        let idempotent = self.known()?.tools.get(&tool).is_some_and(|f| f.idempotent);
        match data.outcome {
            None if idempotent && data.attempt < MAX_ATTEMPTS => {
                self.acting_mut()?.actions[index].progress = Progress::Open;
                self.lost.insert(lost);
                Ok(())
            }
            None => Err(Meaning::Repeated {
                tool,
                attempt: data.attempt.saturating_add(1),
            }),
            Some(Outcome::Interrupted) if !idempotent || data.attempt >= MAX_ATTEMPTS => {
                self.note_unknown_effect(index)?;
                self.lost.insert(lost);
                self.end_action(
                    index,
                    Ending::refused(Outcome::Interrupted, data.text, digest),
                )
            }
            Some(outcome) => Err(Meaning::Outcome { outcome }),
        }
    }

    pub(super) fn note_unknown_effect(&mut self, index: usize) -> Result<(), Meaning> {
        let action = &self.acting()?.actions[index];
        let call = (action.tool.clone(), action.arguments);
        let idempotent = self
            .known()?
            .tools
            .get(&call.0)
            .is_some_and(|f| f.idempotent);
        if !idempotent {
            self.unknown_effects.insert(call);
        }
        Ok(())
    }

    pub(super) fn is_calling(
        &self,
        index: usize,
        attempt: u64,
        action: u64,
    ) -> Result<(), Meaning> {
        let found = &self.acting()?.actions[index];
        if found.progress == Progress::Calling && found.attempts == attempt {
            Ok(())
        } else {
            Err(Meaning::NoSuchAction { action })
        }
    }
}

/// How a call can end, and that it has a result exactly when it executed.
pub(super) fn ends_a_call(outcome: Outcome, result: Option<Digest>) -> Result<(), Meaning> {
    let withheld = match outcome {
        Outcome::Executed => false,
        Outcome::Error | Outcome::TimedOut | Outcome::GuardrailBlocked | Outcome::ToolExhausted => {
            true
        }
        _ => return Err(Meaning::Outcome { outcome }),
    };
    if withheld == result.is_none() {
        Ok(())
    } else {
        Err(Meaning::Outcome { outcome })
    }
}
