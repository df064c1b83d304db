//! The machine: says what comes next, and records it first.

use super::effect::{Call, Check, Clock, Decided, Effect, Ended, Failure, Output, Verdict};
use super::gate::{Gate, Refusal};
use super::log::{By, Log};
use super::setup::{Error, Presence, Setup};
use super::state::{Phase, State};
use super::step::{Closed, Progress};
use super::text;
use crate::canon;
use crate::digest::Digest;
use crate::event::{
    self, key_commitment, AnswerRejected, ApprovalRequested, AskReason, CallFinished, CallStarted,
    Decision, Denied, Finished, GrantUsed, Paused, PlanStarted, RunStarted, Status, StopReason,
    Usage, SCHEMA,
};
use crate::journal::Chain;
use crate::outcome::Outcome;
use crate::schema::Schema;
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A run that is being driven.
///
/// The driver performs what [`Machine::next`] asks for, hands in what came of it,
/// and asks again. Before it performs an effect it keeps [`Machine::take_output`].
#[derive(Debug)]
pub struct Machine {
    pub(super) log: Log,
    pub(super) setup: Setup,
    /// Arguments of the open step's actions, secrets replaced by their HMAC.
    pub(super) values: Vec<Value>,
    /// Why the arguments are not valid.
    pub(super) refused: Vec<Option<String>>,
    pub(super) admitted: Vec<bool>,
    /// Requests the approver did not answer in this drive.
    pub(super) unanswered: BTreeSet<Digest>,
    pub(super) answer: Value,
    /// What the planner noted of the decision that comes next.
    note: Option<Digest>,
    /// Actions of the open step that guardrails let pass in this drive.
    pub(super) checked: BTreeSet<usize>,
    /// Why guardrails blocked actions of the open step.
    pub(super) blocked_by: BTreeMap<usize, String>,
    pub(super) goal_checked: bool,
    pub(super) answer_checked: bool,
}

impl Machine {
    /// Begins a run: records what it may do and with what. `nonce` is random.
    ///
    /// # Errors
    /// When the journal refuses.
    pub fn start(
        setup: Setup,
        chain: Chain,
        key: [u8; 32],
        nonce: [u8; 32],
        goal: &Value,
        clock: Clock,
    ) -> Result<Self, Error> {
        let mut log = Log::start(chain, key);
        let goal = log.keep(goal);
        for value in setup.content() {
            log.keep(&value);
        }
        let started = RunStarted {
            content_key: key_commitment(&key),
            goal,
            guardrails: setup.guards.clone(),
            limits: setup.limits.clone(),
            nonce: Digest::from_bytes(nonce),
            policy: setup.policy.clone(),
            schema: SCHEMA.to_owned(),
            tools: setup.facts(),
        };
        log.record(started, clock)?;
        Ok(Machine::over(log, setup))
    }

    pub(super) fn over(log: Log, setup: Setup) -> Self {
        Machine {
            log,
            setup,
            values: Vec::new(),
            refused: Vec::new(),
            admitted: Vec::new(),
            unanswered: BTreeSet::new(),
            answer: Value::Null,
            note: None,
            checked: BTreeSet::new(),
            blocked_by: BTreeMap::new(),
            goal_checked: false,
            answer_checked: false,
        }
    }

    /// What comes next. Asking twice gives the same answer.
    ///
    /// # Errors
    /// When a call is under way whose end was not handed in, or the journal refuses.
    pub fn next(&mut self, clock: Clock) -> Result<Effect, Error> {
        self.log.state.advance_to(clock.active_ms);
        loop {
            if self.log.state.status() == Status::AwaitingApproval {
                return Ok(Effect::Paused);
            }
            match self.log.state.phase() {
                Phase::Unstarted => return Err(Error::Misuse { what: "this" }),
                Phase::Ended(_) => return Ok(Effect::Ended),
                Phase::Planning => {
                    return Ok(Effect::Plan {
                        step: self.log.state.used().steps,
                    })
                }
                Phase::Ready if self.must_check_goal() => return Ok(Effect::Check(Check::Goal)),
                Phase::Ready => self.ready(clock)?,
                Phase::Answering(answer) => match (answer.over, self.setup.judge) {
                    (Some(limit), _) => self.finish(Some(limit.into()), None, clock)?,
                    (None, _) if self.must_check_answer() => {
                        return Ok(Effect::Check(Check::Answer(self.answer.clone())))
                    }
                    (None, Presence::Absent) => self.finish(None, None, clock)?,
                    (None, Presence::Present) => {
                        return Ok(Effect::Judge {
                            answer: self.answer.clone(),
                        })
                    }
                },
                Phase::Acting(_) => {
                    if let Some(effect) = self.act(clock)? {
                        return Ok(effect);
                    }
                }
            }
        }
    }

    /// What the planner wants to be told again of the decision it is about to make.
    pub fn noted(&mut self, note: &Value) {
        self.note = Some(self.log.keep(note));
    }

    /// The planner decided.
    ///
    /// # Errors
    /// When the planner was not asked.
    pub fn decided(&mut self, decided: Decided, usage: Usage, clock: Clock) -> Result<(), Error> {
        if !self.log.state.planning() {
            return Err(Error::Misuse { what: "a decision" });
        }
        let (actions, answer, decision) = match decided {
            Decided::Act(proposals) => (self.propose(proposals), None, Decision::Act),
            Decided::Finish(answer) => {
                let address = self.log.keep(&answer);
                self.answer = answer;
                (Vec::new(), Some(address), Decision::Finish)
            }
        };
        let step = self.log.state.used().steps;
        let decided = event::Decided {
            actions,
            answer,
            decision,
            note: self.note.take(),
            step,
            usage,
        };
        self.answer_checked = false;
        self.log.record(decided, clock).map(|_| ())
    }

    /// The planner raised an error or returned no decision, `done` failed, or a
    /// guardrail ended the run.
    ///
    /// # Errors
    /// When the run is not at such a place.
    pub fn failed(&mut self, failure: &Failure, clock: Clock) -> Result<(), Error> {
        let text = self.log.keep_text(&failure.text);
        self.finish(Some(failure.reason), Some(text), clock)
    }

    /// `done` accepted the answer, or not.
    ///
    /// # Errors
    /// When no answer waits.
    pub fn judged(&mut self, accepted: Acceptance, clock: Clock) -> Result<(), Error> {
        match accepted {
            Acceptance::Accepted => self.finish(None, None, clock),
            Acceptance::Rejected => {
                let step = self.log.state.used().steps;
                self.log.record(AnswerRejected { step }, clock).map(|_| ())
            }
        }
    }

    /// The approver answered a request, or (nothing) did not.
    ///
    /// # Errors
    /// As [`Log::decide`].
    pub fn answered(
        &mut self,
        request: Digest,
        verdict: Option<Verdict>,
        by: By,
        clock: Clock,
    ) -> Result<(), Error> {
        let Some(verdict) = verdict else {
            self.unanswered.insert(request);
            return Ok(());
        };
        let step = self
            .log
            .state
            .step()
            .ok_or(Error::NoSuchRequest { request })?;
        let (index, open) = step
            .request(&request)
            .ok_or(Error::NoSuchRequest { request })?;
        let known = self.setup.tools.get(&open.data.tool);
        let schema = known.map(|t| t.tool.schema());
        if let Some(arguments) = self.log.decide(request, verdict, by, schema, clock)? {
            self.values[index] = arguments;
            self.refused[index] = None;
            self.checked.remove(&index);
        }
        Ok(())
    }

    /// A call ended.
    ///
    /// # Errors
    /// When that call is not under way.
    pub fn called(
        &mut self,
        action: u64,
        attempt: u64,
        ended: Ended,
        clock: Clock,
    ) -> Result<(), Error> {
        let step = self.log.state.used().steps;
        let result = ended.result.as_ref().map(|v| self.log.keep(v));
        let text = ended.text.as_deref().map(|t| self.log.keep_text(t));
        let mut notes = ended.notes;
        if let Some(hidden) = &ended.hidden {
            let digest = Digest::keyed(&self.log.key, &canon::to_vec(hidden));
            notes.get_or_insert_with(|| json!({}))["result_hmac"] = json!(digest.to_hex());
        }
        let notes = notes.map(|v| self.log.keep(&v));
        let finished = CallFinished {
            action,
            attempt,
            bytes: ended.bytes,
            duration_us: ended.duration_us,
            notes,
            outcome: ended.outcome,
            result,
            step,
            text,
            truncated: ended.truncated,
        };
        self.log.record(finished, clock).map(|_| ())
    }

    /// The state.
    pub fn state(&self) -> &State {
        &self.log.state
    }

    /// The log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// What must be kept before the next effect, once.
    pub fn take_output(&mut self) -> Output {
        self.log.take_output()
    }

    /// The step that ended last, once.
    pub fn take_closed(&mut self) -> Option<Closed> {
        self.log.state.take_closed()
    }

    fn ready(&mut self, clock: Clock) -> Result<(), Error> {
        let state = &self.log.state;
        let limits = state.charter().map(|c| &c.limits);
        let reached = limits.and_then(|l| l.before_plan(state.used()));
        match state.stop().or(reached) {
            Some(limit) => self.finish(Some(limit.into()), None, clock),
            None => {
                let step = state.used().steps.saturating_add(1);
                self.log.record(PlanStarted { step }, clock).map(|_| ())
            }
        }
    }

    pub(super) fn finish(
        &mut self,
        reason: Option<StopReason>,
        error: Option<Digest>,
        clock: Clock,
    ) -> Result<(), Error> {
        let answer = match self.log.state.phase() {
            Phase::Answering(a) if error.is_none() => Some(a.answer),
            _ => None,
        };
        let finished = Finished {
            answer,
            counts: self.log.state.counts(),
            error,
            status: reason.map_or(Status::Completed, StopReason::status),
            stop_reason: reason,
        };
        self.log.record(finished, clock).map(|_| ())
    }

    /// One round over the open step: gates for what has not passed them, then the
    /// approver, then the calls; nothing when the step is over.
    fn act(&mut self, clock: Clock) -> Result<Option<Effect>, Error> {
        let count = self.values.len();
        for index in 0..count {
            if let Some(check) = self.admit(index, clock)? {
                return Ok(Some(Effect::Check(check)));
            }
        }
        if let Some(request) = self.to_ask() {
            return Ok(Some(Effect::Ask { request }));
        }
        for index in 0..count {
            if self.startable(index) {
                // Since it was admitted, time may have passed, and an equal call may have
                // ended with an effect that is not known.
                match self.gate(index, clock) {
                    Some(Gate::Refuse(refusal)) => {
                        self.deny(index, &refusal, clock)?;
                        continue;
                    }
                    Some(Gate::Ask(_) | Gate::Grant(_)) => {
                        self.admitted[index] = false;
                        return self.act(clock);
                    }
                    Some(Gate::Check | Gate::Free) | None => {}
                }
                return self.begin(index, clock);
            }
        }
        let Some(step) = self.log.state.step() else {
            return Ok(None);
        };
        if step.actions.iter().any(|a| a.progress == Progress::Calling) {
            return Err(Error::Misuse {
                what: "this before the end of the call",
            });
        }
        let pending = step.pending().iter().map(|r| r.digest).collect();
        self.log.record(Paused { pending }, clock)?;
        Ok(Some(Effect::Paused))
    }

    fn progress(&self, index: usize) -> Option<&Progress> {
        let step = self.log.state.step()?;
        step.actions.get(index).map(|a| &a.progress)
    }

    fn startable(&self, index: usize) -> bool {
        self.admitted[index]
            && matches!(
                self.progress(index),
                Some(Progress::Answered(_) | Progress::Granted | Progress::Open)
            )
    }

    fn admit(&mut self, index: usize, clock: Clock) -> Result<Option<Check>, Error> {
        let waits = matches!(
            self.progress(index),
            Some(Progress::Answered(_) | Progress::Granted | Progress::Open)
        );
        if self.admitted[index] || !waits {
            return Ok(None);
        }
        match self.gate(index, clock) {
            None => Ok(None),
            Some(Gate::Check) => Ok(self.to_check(index)),
            Some(Gate::Free) => {
                self.admitted[index] = true;
                Ok(None)
            }
            Some(Gate::Refuse(refusal)) => self.deny(index, &refusal, clock).map(|()| None),
            Some(Gate::Grant(grant)) => {
                self.admitted[index] = true;
                let (step, action) = self.place(index);
                let used = GrantUsed {
                    action,
                    grant,
                    step,
                };
                self.log.record(used, clock).map(|_| None)
            }
            Some(Gate::Ask(reason)) => self.request(index, reason, clock).map(|()| None),
        }
    }

    pub(super) fn deny(
        &mut self,
        index: usize,
        refusal: &Refusal,
        clock: Clock,
    ) -> Result<(), Error> {
        let text = self.log.keep_text(&refusal.text);
        let (step, action) = self.place(index);
        let denied = Denied {
            action,
            limit: refusal.limit,
            outcome: refusal.outcome,
            step,
            text,
        };
        self.log.record(denied, clock).map(|_| ())
    }

    fn request(&mut self, index: usize, reason: AskReason, clock: Clock) -> Result<(), Error> {
        let (step, action) = self.place(index);
        let Some((asked, charter)) = self
            .log
            .state
            .step()
            .and_then(|s| s.actions.get(index))
            .zip(self.log.state.charter())
        else {
            return Ok(());
        };
        let Some((facts, known)) = charter
            .tools
            .get(&asked.tool)
            .zip(self.setup.tools.get(&asked.tool))
        else {
            return Ok(());
        };
        let mut request = ApprovalRequested {
            action,
            arguments: asked.arguments,
            expires_ms: facts.ttl_ms.map(|ttl| clock.at_ms.saturating_add(ttl)),
            policy: charter.policy_digest,
            prompt: None,
            reason,
            scopes: facts.scopes.clone(),
            side_effects: facts.side_effects,
            spec_hash: facts.spec_hash,
            step,
            tool: asked.tool.clone(),
        };
        let prompt = known.tool.prompt().map(str::to_owned);
        request.prompt = prompt.map(|p| self.log.keep_text(&p));
        self.log.record(request, clock).map(|_| ())
    }

    fn to_ask(&self) -> Option<Digest> {
        if self.setup.approver == Presence::Absent {
            return None;
        }
        let pending = self.log.state.step()?.pending();
        let next = pending
            .iter()
            .find(|r| !self.unanswered.contains(&r.digest));
        next.map(|r| r.digest)
    }

    fn begin(&mut self, index: usize, clock: Clock) -> Result<Option<Effect>, Error> {
        let (step, action) = self.place(index);
        let schema = self.schema_of(index);
        let Some(arguments) = self.log.reveal(&self.values[index], schema) else {
            let text = text::interrupted(
                "the call needs a secret that was not given again. It did not run.",
            );
            let refusal = Refusal::new(Outcome::Interrupted, text);
            self.deny(index, &refusal, clock)?;
            return Ok(None);
        };
        let state = &self.log.state;
        let Some((asked, charter)) = state
            .step()
            .and_then(|s| s.actions.get(index))
            .zip(state.charter())
        else {
            return Ok(None);
        };
        let Some(facts) = charter.tools.get(&asked.tool) else {
            return Ok(None);
        };
        let request = match &asked.progress {
            Progress::Answered(request) => Some(request.digest),
            _ => None,
        };
        let started = CallStarted {
            action,
            arguments: asked.arguments,
            attempt: asked.attempts + 1,
            cost_nano: facts.cost_nano.unwrap_or(0),
            request,
            spec_hash: facts.spec_hash,
            step,
            timeout_ms: facts.timeout_ms.or(charter.limits.call_timeout_ms),
            tool: asked.tool.clone(),
        };
        let call = Call {
            action,
            arguments,
            attempt: started.attempt,
            idempotent: facts.idempotent,
            key: format!("{}/{step}/{action}", self.log.chain.run()),
            step,
            timeout_ms: started.timeout_ms,
            tool: started.tool.clone(),
        };
        self.log.record(started, clock)?;
        Ok(Some(Effect::Call(call)))
    }

    /// The schema of the arguments of an action, where its tool is known.
    fn schema_of(&self, index: usize) -> Option<&Schema> {
        let action = self.log.state.step()?.actions.get(index)?;
        self.setup.tools.get(&action.tool).map(|t| t.tool.schema())
    }

    pub(super) fn place(&self, index: usize) -> (u64, u64) {
        (self.log.state.used().steps, index as u64)
    }
}

/// What `done` said of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// Yes.
    Accepted,
    /// No: the run goes on.
    Rejected,
}
