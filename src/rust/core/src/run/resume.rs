//! Taking up a run that another driver left: paused, or in the middle of something.

use super::effect::Clock;
use super::gate::Refusal;
use super::log::{secret_reference, Log};
use super::machine::Machine;
use super::setup::{Error, Presence, Setup};
use super::state::{Charter, Phase, State, MAX_ATTEMPTS};
use super::step::{Action, Progress, Request};
use super::text;
use crate::canon;
use crate::digest::Digest;
use crate::event::{Recovered, Resumed, Status};
use crate::outcome::Outcome;
use crate::policy::ToolFacts;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

impl State {
    /// Addresses of the values that a driver needs to go on.
    pub fn needs(&self) -> Vec<Digest> {
        match self.phase() {
            Phase::Acting(step) => step.actions.iter().map(|a| a.arguments).collect(),
            Phase::Answering(answer) => vec![answer.answer],
            Phase::Ended(_) | Phase::Planning | Phase::Ready | Phase::Unstarted => Vec::new(),
        }
    }
}

impl Machine {
    /// Takes up a run. `content` holds the canonical JSON of what [`State::needs`];
    /// `secrets` are secret arguments that were kept only as HMACs.
    ///
    /// A paused run in which nothing has been decided, has expired or has changed is
    /// left as it is, without a record.
    ///
    /// # Errors
    /// A value that is not what its address says, or a journal that refuses.
    pub fn resume(
        mut log: Log,
        mut setup: Setup,
        content: &BTreeMap<Digest, Vec<u8>>,
        secrets: Vec<Value>,
        clock: Clock,
    ) -> Result<Self, Error> {
        log.state.advance_to(clock.active_ms);
        for secret in secrets {
            log.know_secret(secret);
        }
        keep_calls_before(&mut setup, log.state.charter());
        let mut machine = Machine::over(log, setup);
        machine.load(content)?;
        if machine.log.state.end().is_some() || machine.nothing_new(clock) {
            return Ok(machine);
        }
        machine.declare(clock)?;
        machine.recover(clock)?;
        machine.recheck(clock)?;
        Ok(machine)
    }

    fn load(&mut self, content: &BTreeMap<Digest, Vec<u8>>) -> Result<(), Error> {
        let mut values = Vec::new();
        for address in self.log.state.needs() {
            let found = content
                .get(&address)
                .filter(|bytes| Digest::keyed(&self.log.key, bytes) == address)
                .and_then(|bytes| canon::parse(bytes).ok());
            values.push(found.ok_or(Error::Content { address })?);
        }
        if let Phase::Answering(_) = self.log.state.phase() {
            self.answer = values.pop().unwrap_or(Value::Null);
        }
        self.admitted = vec![false; values.len()];
        self.refused = self.recheck_arguments(&values);
        self.values = values;
        Ok(())
    }

    /// Why the arguments are not valid for the tools as they are now. Where a secret
    /// is not known again, they cannot be judged; the call will not start either.
    fn recheck_arguments(&self, values: &[Value]) -> Vec<Option<String>> {
        let actions = self.log.state.step().map_or(&[][..], |s| &s.actions);
        let check = |(value, action): (&Value, &Action)| {
            let known = self.setup.tools.get(&action.tool)?;
            let refers =
                |map: &Map<String, Value>| map.values().any(|v| secret_reference(v).is_some());
            let live = self.log.reveal(value, Some(known.tool.schema()));
            if value
                .as_object()
                .is_some_and(|map| live.is_none() || refers(map))
            {
                return None;
            }
            let given = live.unwrap_or_else(|| value.clone());
            let checked = known.tool.take_arguments(given, &self.log.key);
            checked.err().map(|refused| refused.text)
        };
        values.iter().zip(actions).map(check).collect()
    }

    fn nothing_new(&self, clock: Clock) -> bool {
        let state = &self.log.state;
        let waits = |p: &Progress| matches!(p, Progress::Asking(_) | Progress::Ended(_));
        state.status() == Status::AwaitingApproval
            && self.setup.approver == Presence::Absent
            && state.step().is_some_and(|s| {
                s.actions.iter().all(|a| waits(&a.progress))
                    && s.pending().iter().all(|r| !has_expired(r, clock))
            })
            && self.changes() == Changes::default()
    }

    fn changes(&self) -> Changes {
        let mut changes = Changes::default();
        if let Some(charter) = self.log.state.charter() {
            let facts = self.setup.facts();
            changes.guardrails = charter.guardrails != self.setup.guards;
            changes.limits = charter.limits != self.setup.limits;
            changes.policy = charter.policy != self.setup.policy;
            changes.tools = !charter.tools.values().eq(facts.iter());
        }
        changes
    }

    fn declare(&mut self, clock: Clock) -> Result<(), Error> {
        let changes = self.changes();
        if changes != Changes::default() {
            for value in self.setup.content() {
                self.log.keep(&value);
            }
        }
        let resumed = Resumed {
            guardrails: changes.guardrails.then(|| self.setup.guards.clone()),
            limits: changes.limits.then(|| self.setup.limits.clone()),
            policy: changes.policy.then(|| self.setup.policy.clone()),
            tools: changes.tools.then(|| self.setup.facts()),
        };
        self.log.record(resumed, clock).map(|_| ())
    }

    /// What was under way when the last driver vanished.
    fn recover(&mut self, clock: Clock) -> Result<(), Error> {
        let step = self.log.state.used().steps;
        if self.log.state.planning() {
            let recovered = Recovered {
                action: None,
                attempt: 0,
                outcome: None,
                step,
                text: None,
            };
            return self.log.record(recovered, clock).map(|_| ());
        }
        for index in 0..self.values.len() {
            let Some((attempt, again)) = self.in_flight(index) else {
                continue;
            };
            let text = if again {
                None
            } else {
                Some(self.log.keep_text(&text::interrupted(
                    "the process vanished while the call was under way. Whether it took effect is not known, and it is not repeated.",
                )))
            };
            let recovered = Recovered {
                action: Some(index as u64),
                attempt,
                outcome: (!again).then_some(Outcome::Interrupted),
                step,
                text,
            };
            self.log.record(recovered, clock)?;
        }
        Ok(())
    }

    fn in_flight(&self, index: usize) -> Option<(u64, bool)> {
        let action = self.log.state.step()?.actions.get(index)?;
        if action.progress != Progress::Calling {
            return None;
        }
        let facts = self.log.state.charter()?.tools.get(&action.tool);
        let again = facts.is_some_and(|f| f.idempotent) && action.attempts < MAX_ATTEMPTS;
        Some((action.attempts, again))
    }

    /// Requests that have expired, and requests whose subject has changed.
    fn recheck(&mut self, clock: Clock) -> Result<(), Error> {
        for index in 0..self.values.len() {
            let Some((request, open)) = self.asked(index) else {
                continue;
            };
            if open && has_expired(&request, clock) {
                self.log.expire(request.digest, clock)?;
            } else if let Some(what) = self.stale(&request) {
                let refusal = Refusal::new(Outcome::ApprovalStale, text::stale(what));
                self.deny(index, &refusal, clock)?;
            }
        }
        Ok(())
    }

    fn asked(&self, index: usize) -> Option<(Request, bool)> {
        match &self.log.state.step()?.actions.get(index)?.progress {
            Progress::Asking(request) => Some((request.clone(), true)),
            Progress::Answered(request) => Some((request.clone(), false)),
            Progress::Calling | Progress::Ended(_) | Progress::Granted | Progress::Open => None,
        }
    }

    fn stale(&self, request: &Request) -> Option<&'static str> {
        let charter = self.log.state.charter()?;
        let asked = &request.data;
        let same = |f: &ToolFacts| {
            f.spec_hash == asked.spec_hash
                && f.scopes == asked.scopes
                && f.side_effects == asked.side_effects
        };
        if !charter.tools.get(&asked.tool).is_some_and(same) {
            Some("the tool")
        } else if charter.policy_digest != asked.policy {
            Some("the policy of the run")
        } else {
            None
        }
    }
}

/// What a new driver brings that was not declared before.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changes {
    guardrails: bool,
    limits: bool,
    policy: bool,
    tools: bool,
}

fn has_expired(request: &Request, clock: Clock) -> bool {
    request.data.expires_ms.is_some_and(|end| clock.at_ms > end)
}

/// Calls before the run are as they were when it started: its own calls are
/// counted from the journal.
fn keep_calls_before(setup: &mut Setup, charter: Option<&Charter>) {
    for tool in setup.tools.values_mut() {
        if let Some(known) = charter.and_then(|c| c.tools.get(&tool.facts.name)) {
            tool.facts.calls_before = known.calls_before;
        }
    }
}
