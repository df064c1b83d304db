//! The state of a run as a fold over its events.
//!
//! The same fold reads a journal, checks the meaning of a trail, and is what the
//! machine itself stands on: an event that [`State::apply`] refuses is one the
//! machine could not have recorded.

use super::meaning::Meaning;
use super::step::{Action, Closed, Ending, Progress, Request, Step};
use crate::digest::Digest;
use crate::event::{
    ApprovalRequested, AskReason, CallFinished, CallStarted, Counts, Decided, Decision, Denied,
    Event, Finished, GrantUsed, Guardrail, GuardrailVerdict, LateResult, PlanStarted, Recovered,
    Resumed, RunStarted, Status, StopReason, SCHEMA,
};
use crate::limits::{Limit, Limits, Used};
use crate::outcome::Outcome;
use crate::policy::{Policy, ToolFacts};
use std::collections::{BTreeMap, BTreeSet};

/// A call of one tool with these arguments.
type CallOf = (String, Digest);

/// How often a call may start in all.
pub(super) const MAX_ATTEMPTS: u64 = 3;

/// What holds for a run from its start or its last resume on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charter {
    /// Commitment to the content key.
    pub content_key: Digest,
    /// Address of the goal.
    pub goal: Digest,
    /// The limits.
    pub limits: Limits,
    /// The policy.
    pub policy: Policy,
    /// Digest of its canonical JSON.
    pub policy_digest: Digest,
    /// The tools by name.
    pub tools: BTreeMap<String, ToolFacts>,
}

/// Where a run stands. Everything in it follows from the events alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    charter: Option<Charter>,
    phase: Phase,
    paused: bool,
    used: Used,
    counts: Counts,
    stop: Option<Limit>,
    grants_used: BTreeMap<u64, u64>,
    unknown_effects: BTreeSet<CallOf>,
    superseded: BTreeMap<CallOf, Digest>,
    closed: Option<Closed>,
}

/// What the run is at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Phase {
    /// Actions of a step are under way.
    Acting(Step),
    /// An answer waits to be accepted.
    Answering(Answer),
    /// It ended.
    Ended(Finished),
    /// The planner is being asked.
    Planning,
    /// Between steps.
    Ready,
    /// Nothing is recorded.
    #[default]
    Unstarted,
}

/// An answer that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) answer: Digest,
    pub(super) over: Option<Limit>,
    usage: crate::event::Usage,
}

impl State {
    /// The state before the first event.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event. `digest` is that of its record, `active_ms` the
    /// record's working time.
    ///
    /// # Errors
    /// [`Meaning`], when no run could have recorded the event here. The state is
    /// then no longer that of a run, and must be dropped.
    pub fn apply(&mut self, event: &Event, digest: Digest, active_ms: u64) -> Result<(), Meaning> {
        if let Event::RunStarted(data) = event {
            return self.run_started(data, active_ms);
        }
        if self.charter.is_none() {
            return Err(Meaning::NotStarted {
                event: event.name(),
            });
        }
        if matches!(self.phase, Phase::Ended(_)) {
            return Err(Meaning::AfterEnd {
                event: event.name(),
            });
        }
        if active_ms < self.used.active_ms {
            return Err(Meaning::ActiveTimeFell {
                before: self.used.active_ms,
                found: active_ms,
            });
        }
        self.used.active_ms = active_ms;
        if self.paused && !may_come_while_paused(event) {
            return Err(out_of_place(event.name()));
        }
        self.dispatch(event, digest)
    }

    fn dispatch(&mut self, event: &Event, digest: Digest) -> Result<(), Meaning> {
        match event {
            Event::AnswerRejected(data) => self.answer_rejected(data.step),
            Event::ApprovalRequested(data) => self.approval_requested(data, digest),
            Event::Approved(data) => self.approved(&data.request, data.decided_ms),
            Event::CallFinished(data) => self.call_finished(data, digest),
            Event::CallStarted(data) => self.call_started(data, digest),
            Event::Decided(data) => self.decided(data),
            Event::Denied(data) => self.denied(data, digest),
            Event::Edited(data) => self.edited(
                &data.request,
                data.decided_ms,
                data.arguments,
                &data.approver,
            ),
            Event::Expired(data) => self.expired(&data.request, data.text, digest),
            Event::Finished(data) => self.finished(data),
            Event::GrantUsed(data) => self.grant_used(data),
            Event::Guardrail(data) => self.guardrail(data),
            Event::LateResult(data) => self.late_result(data),
            Event::Paused(data) => self.paused(&data.pending),
            Event::PlanStarted(data) => self.plan_started(data),
            Event::Recovered(data) => self.recovered(data, digest),
            Event::Rejected(data) => {
                self.decided_by_person(&data.request, data.decided_ms)?;
                self.end_request(&data.request, Outcome::ApprovalDenied, data.text, digest)
            }
            Event::Resumed(data) => self.resumed(data),
            // Handled by `apply`.
            Event::RunStarted(_) => Err(out_of_place("run_started")),
        }
    }

    /// What holds for the run; nothing before it started.
    pub fn charter(&self) -> Option<&Charter> {
        self.charter.as_ref()
    }

    /// Status of the run.
    pub fn status(&self) -> Status {
        match &self.phase {
            Phase::Ended(end) => end.status,
            _ if self.paused => Status::AwaitingApproval,
            _ => Status::Running,
        }
    }

    /// How it ended, when it did.
    pub fn end(&self) -> Option<&Finished> {
        match &self.phase {
            Phase::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// The step whose actions are under way.
    pub fn step(&self) -> Option<&Step> {
        match &self.phase {
            Phase::Acting(step) => Some(step),
            _ => None,
        }
    }

    /// Whether the planner is being asked.
    pub fn planning(&self) -> bool {
        matches!(self.phase, Phase::Planning)
    }

    /// What has been used.
    pub fn used(&self) -> &Used {
        &self.used
    }

    /// What has been counted.
    pub fn counts(&self) -> Counts {
        Counts {
            cost_nano: self.used.cost_nano,
            steps: self.used.steps,
            tokens: self.used.tokens,
            ..self.counts
        }
    }

    /// Uses of the grant at this place of the policy.
    pub fn grant_uses(&self, grant: u64) -> u64 {
        self.grants_used.get(&grant).copied().unwrap_or(0)
    }

    /// The step that ended with the last event, once.
    pub fn take_closed(&mut self) -> Option<Closed> {
        self.closed.take()
    }

    /// Takes note that working time has passed, though nothing is recorded yet.
    pub fn advance_to(&mut self, active_ms: u64) {
        self.used.active_ms = self.used.active_ms.max(active_ms);
    }

    pub(super) fn phase(&self) -> &Phase {
        &self.phase
    }

    /// The limit that ends the run as soon as its step is over.
    pub(super) fn stop(&self) -> Option<Limit> {
        self.stop
    }

    /// What a person changed this very request into, earlier in the run.
    pub(super) fn superseded_by(&self, tool: &str, arguments: Digest) -> Option<Digest> {
        if self.superseded.is_empty() {
            return None;
        }
        self.superseded.get(&(tool.to_owned(), arguments)).copied()
    }

    /// Why a person must be asked about such a call.
    pub(super) fn ask_reason(&self, facts: &ToolFacts, arguments: Digest) -> Option<AskReason> {
        let policy = self.charter.as_ref().map(|c| &c.policy);
        if !self.unknown_effects.is_empty()
            && self
                .unknown_effects
                .contains(&(facts.name.clone(), arguments))
        {
            Some(AskReason::UnknownEffect)
        } else if facts.requires_approval {
            Some(AskReason::Tool)
        } else if policy.is_some_and(|p| p.approve_effects.contains(&facts.side_effects)) {
            Some(AskReason::Policy)
        } else {
            None
        }
    }

    /// Room promised to the actions before this one that they have not been charged for.
    pub(super) fn reserved_before(&self, action: usize) -> Used {
        let mut reserved = Used::default();
        if let (Phase::Acting(step), Some(charter)) = (&self.phase, &self.charter) {
            for other in step.actions.iter().take(action).filter(|a| a.reserves()) {
                let facts = charter.tools.get(&other.tool);
                let cost = facts.and_then(|f| f.cost_nano).unwrap_or(0);
                reserved.charge_call(&other.tool, cost);
            }
        }
        reserved
    }

    /// Whether the tool's own `max_calls` leaves no room for one more call.
    pub(super) fn exhausted(&self, facts: &ToolFacts, reserved: &Used) -> bool {
        let so_far = facts
            .calls_before
            .saturating_add(self.used.calls_of(&facts.name))
            .saturating_add(reserved.calls_of(&facts.name));
        facts.max_calls.is_some_and(|max| so_far >= max)
    }

    fn run_started(&mut self, data: &RunStarted, active_ms: u64) -> Result<(), Meaning> {
        if self.charter.is_some() {
            return Err(out_of_place("run_started"));
        }
        if data.schema != SCHEMA {
            return Err(Meaning::Schema {
                found: data.schema.clone(),
            });
        }
        self.charter = Some(Charter {
            content_key: data.content_key,
            goal: data.goal,
            limits: data.limits.clone(),
            policy_digest: policy_digest(&data.policy),
            policy: checked_policy(&data.policy)?,
            tools: by_name(&data.tools)?,
        });
        self.used.active_ms = active_ms;
        self.phase = Phase::Ready;
        Ok(())
    }

    fn resumed(&mut self, data: &Resumed) -> Result<(), Meaning> {
        let Some(charter) = &mut self.charter else {
            return Err(out_of_place("resumed"));
        };
        if let Some(limits) = &data.limits {
            charter.limits = limits.clone();
        }
        if let Some(policy) = &data.policy {
            charter.policy_digest = policy_digest(policy);
            charter.policy = checked_policy(policy)?;
        }
        if let Some(tools) = &data.tools {
            charter.tools = by_name(tools)?;
        }
        self.paused = false;
        Ok(())
    }

    fn plan_started(&mut self, data: &PlanStarted) -> Result<(), Meaning> {
        if !matches!(self.phase, Phase::Ready) || self.stop.is_some() {
            return Err(out_of_place("plan_started"));
        }
        let expected = self.used.steps.saturating_add(1);
        same_step(expected, data.step)?;
        if let Some(limit) = self.limits()?.before_plan(&self.used) {
            return Err(Meaning::OverLimit { limit });
        }
        self.used.steps = expected;
        self.phase = Phase::Planning;
        Ok(())
    }

    fn decided(&mut self, data: &Decided) -> Result<(), Meaning> {
        if !matches!(self.phase, Phase::Planning) {
            return Err(out_of_place("decided"));
        }
        same_step(self.used.steps, data.step)?;
        self.used.tokens = self.used.tokens.saturating_add(data.usage.tokens);
        self.used.cost_nano = self.used.cost_nano.saturating_add(data.usage.cost_nano);
        let over = self.limits()?.after_plan(&self.used);
        self.counts.actions = self
            .counts
            .actions
            .saturating_add(data.actions.len() as u64);
        self.phase = match (data.decision, data.answer) {
            (Decision::Act, None) if !data.actions.is_empty() => {
                let one =
                    |asked: &crate::event::Asked| Action::new(asked.tool.clone(), asked.arguments);
                Phase::Acting(Step {
                    number: data.step,
                    actions: data.actions.iter().map(one).collect(),
                    over,
                    usage: data.usage,
                })
            }
            (Decision::Finish, Some(answer)) if data.actions.is_empty() => {
                Phase::Answering(Answer {
                    answer,
                    over,
                    usage: data.usage,
                })
            }
            (Decision::Act | Decision::Finish, _) => return Err(out_of_place("decided")),
        };
        Ok(())
    }

    fn denied(&mut self, data: &Denied, digest: Digest) -> Result<(), Meaning> {
        let index = self.open_action(data.step, data.action)?;
        self.denial_is_right(data, index)?;
        self.counts.denied += 1;
        let mut ending = Ending::refused(data.outcome, Some(data.text), digest);
        ending.limit = data.limit;
        if let Some(limit) = data.limit {
            self.stop.get_or_insert(limit);
        }
        self.end_action(index, ending)
    }

    fn denial_is_right(&self, data: &Denied, index: usize) -> Result<(), Meaning> {
        let wrong = Meaning::Outcome {
            outcome: data.outcome,
        };
        let charter = self.known()?;
        let step = self.acting()?;
        let action = &step.actions[index];
        let facts = charter.tools.get(&action.tool);
        if let Progress::Calling | Progress::Ended(_) = action.progress {
            return Err(out_of_place("denied"));
        }
        if (data.limit.is_some()) != (data.outcome == Outcome::LimitReached) {
            return Err(wrong);
        }
        let asked = matches!(action.progress, Progress::Asking(_) | Progress::Answered(_));
        let right = match (data.outcome, facts) {
            (Outcome::ApprovalStale, _) => asked,
            _ if matches!(action.progress, Progress::Asking(_)) => false,
            (Outcome::LimitReached, _) if step.over.is_some() => data.limit == step.over,
            (Outcome::UnknownTool, found) => found.is_none(),
            (_, None) => false,
            (Outcome::InvalidArguments, Some(_)) => true,
            (Outcome::EffectDenied, Some(f)) => {
                !charter.policy.allow_effects.contains(&f.side_effects)
            }
            (Outcome::ScopeDenied, Some(f)) => !charter.policy.missing_scopes(f).is_empty(),
            (Outcome::GuardrailBlocked, Some(_)) => action.blocked,
            (Outcome::ToolExhausted, Some(f)) => f.max_calls.is_some(),
            (Outcome::LimitReached, Some(f)) => {
                let reserved = self.reserved_before(index);
                let cost = f.cost_nano.unwrap_or(0);
                let limit = charter
                    .limits
                    .before_call(&self.used, &reserved, &f.name, cost);
                if limit != data.limit {
                    return Err(Meaning::LimitNotReached);
                }
                true
            }
            (Outcome::ApprovalDenied, Some(_)) => {
                self.superseded_by(&action.tool, action.arguments).is_some()
            }
            // A secret that was not given again after a pause.
            (Outcome::Interrupted, Some(_)) => true,
            (
                Outcome::ApprovalExpired
                | Outcome::ApprovalRequired
                | Outcome::Error
                | Outcome::Executed
                | Outcome::TimedOut,
                Some(_),
            ) => false,
        };
        if right {
            Ok(())
        } else {
            Err(wrong)
        }
    }

    fn guardrail(&mut self, data: &Guardrail) -> Result<(), Meaning> {
        if let Some(action) = data.action {
            let index = self.open_action(data.step, action)?;
            if data.verdict == GuardrailVerdict::Block {
                self.acting_mut()?.actions[index].blocked = true;
            }
        }
        Ok(())
    }

    fn grant_used(&mut self, data: &GrantUsed) -> Result<(), Meaning> {
        let index = self.open_action(data.step, data.action)?;
        let covers = |state: &Self| -> Result<bool, Meaning> {
            let action = &state.acting()?.actions[index];
            let charter = state.known()?;
            let place = usize::try_from(data.grant).unwrap_or(usize::MAX);
            let Some(grant) = charter.policy.grants.get(place) else {
                return Ok(false);
            };
            let reason = charter
                .tools
                .get(&action.tool)
                .and_then(|f| state.ask_reason(f, action.arguments));
            Ok(action.progress == Progress::Open
                && grant.tool == action.tool
                && grant.count.is_none_or(|n| state.grant_uses(data.grant) < n)
                && matches!(reason, Some(AskReason::Policy | AskReason::Tool)))
        };
        if !covers(self)? {
            return Err(Meaning::Grant { grant: data.grant });
        }
        *self.grants_used.entry(data.grant).or_insert(0) += 1;
        self.acting_mut()?.actions[index].progress = Progress::Granted;
        Ok(())
    }

    fn approval_requested(
        &mut self,
        data: &ApprovalRequested,
        digest: Digest,
    ) -> Result<(), Meaning> {
        let index = self.open_action(data.step, data.action)?;
        let action = &self.acting()?.actions[index];
        if action.progress != Progress::Open {
            return Err(out_of_place("approval_requested"));
        }
        let charter = self.known()?;
        let facts = charter
            .tools
            .get(&action.tool)
            .ok_or_else(|| Meaning::ToolNotDeclared {
                tool: action.tool.clone(),
            })?;
        let differs = |what| Err(Meaning::RequestDiffers { what });
        if data.tool != action.tool {
            return differs("tool");
        }
        if data.arguments != action.arguments {
            return differs("arguments");
        }
        if data.spec_hash != facts.spec_hash {
            return differs("spec hash");
        }
        if data.side_effects != facts.side_effects || data.scopes != facts.scopes {
            return differs("side effects or scopes");
        }
        if data.policy != charter.policy_digest {
            return differs("policy");
        }
        if Some(data.reason) != self.ask_reason(facts, action.arguments) {
            return differs("reason");
        }
        self.counts.requests += 1;
        let request = Request {
            digest,
            data: data.clone(),
        };
        self.acting_mut()?.actions[index].progress = Progress::Asking(request);
        Ok(())
    }

    fn decided_by_person(&self, request: &Digest, decided_ms: u64) -> Result<usize, Meaning> {
        let step = self.acting().map_err(|_| Meaning::NoSuchRequest)?;
        let (index, request) = step.request(request).ok_or(Meaning::NoSuchRequest)?;
        if request.data.expires_ms.is_some_and(|end| decided_ms > end) {
            return Err(Meaning::DecidedTooLate);
        }
        Ok(index)
    }

    fn approved(&mut self, request: &Digest, decided_ms: u64) -> Result<(), Meaning> {
        let index = self.decided_by_person(request, decided_ms)?;
        let action = &mut self.acting_mut()?.actions[index];
        if let Progress::Asking(request) = std::mem::replace(&mut action.progress, Progress::Open) {
            action.progress = Progress::Answered(request);
        }
        Ok(())
    }

    fn edited(
        &mut self,
        request: &Digest,
        decided_ms: u64,
        arguments: Digest,
        approver: &str,
    ) -> Result<(), Meaning> {
        let index = self.decided_by_person(request, decided_ms)?;
        self.approved(request, decided_ms)?;
        let action = &mut self.acting_mut()?.actions[index];
        let original = (action.tool.clone(), action.arguments);
        action.arguments = arguments;
        action.edited_by = Some(approver.to_owned());
        if original.1 != arguments {
            self.superseded.insert(original, arguments);
        }
        Ok(())
    }

    fn expired(&mut self, request: &Digest, text: Digest, digest: Digest) -> Result<(), Meaning> {
        let step = self.acting().map_err(|_| Meaning::NoSuchRequest)?;
        let (_, asked) = step.request(request).ok_or(Meaning::NoSuchRequest)?;
        if asked.data.expires_ms.is_none() {
            return Err(out_of_place("expired"));
        }
        self.end_request(request, Outcome::ApprovalExpired, text, digest)
    }

    fn end_request(
        &mut self,
        request: &Digest,
        outcome: Outcome,
        text: Digest,
        digest: Digest,
    ) -> Result<(), Meaning> {
        let step = self.acting().map_err(|_| Meaning::NoSuchRequest)?;
        let (index, _) = step.request(request).ok_or(Meaning::NoSuchRequest)?;
        self.end_action(index, Ending::refused(outcome, Some(text), digest))
    }

    fn call_started(&mut self, data: &CallStarted, digest: Digest) -> Result<(), Meaning> {
        let index = self.open_action(data.step, data.action)?;
        self.start_is_right(data, index)?;
        self.used.charge_call(&data.tool, data.cost_nano);
        self.counts.calls_started += 1;
        let action = &mut self.acting_mut()?.actions[index];
        action.attempts = data.attempt;
        action.call.get_or_insert(digest);
        action.progress = Progress::Calling;
        Ok(())
    }

    fn start_is_right(&self, data: &CallStarted, index: usize) -> Result<(), Meaning> {
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

    fn approval_is_right(
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

    fn call_finished(&mut self, data: &CallFinished, digest: Digest) -> Result<(), Meaning> {
        let index = self.open_action(data.step, data.action)?;
        self.is_calling(index, data.attempt, data.action)?;
        let withheld = match data.outcome {
            Outcome::Executed => false,
            Outcome::Error
            | Outcome::TimedOut
            | Outcome::GuardrailBlocked
            | Outcome::ToolExhausted => true,
            outcome => return Err(Meaning::Outcome { outcome }),
        };
        if withheld != data.result.is_none() {
            return Err(Meaning::Outcome {
                outcome: data.outcome,
            });
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

    fn recovered(&mut self, data: &Recovered, digest: Digest) -> Result<(), Meaning> {
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
        let tool = self.acting()?.actions[index].tool.clone();
        let idempotent = self.known()?.tools.get(&tool).is_some_and(|f| f.idempotent);
        match data.outcome {
            None if idempotent && data.attempt < MAX_ATTEMPTS => {
                self.acting_mut()?.actions[index].progress = Progress::Open;
                Ok(())
            }
            None => Err(Meaning::Repeated {
                tool,
                attempt: data.attempt.saturating_add(1),
            }),
            Some(Outcome::Interrupted) if !idempotent || data.attempt >= MAX_ATTEMPTS => {
                self.note_unknown_effect(index)?;
                self.end_action(
                    index,
                    Ending::refused(Outcome::Interrupted, data.text, digest),
                )
            }
            Some(outcome) => Err(Meaning::Outcome { outcome }),
        }
    }

    fn late_result(&self, data: &LateResult) -> Result<(), Meaning> {
        if data.outcome.started() && data.step <= self.used.steps {
            Ok(())
        } else {
            Err(Meaning::Outcome {
                outcome: data.outcome,
            })
        }
    }

    fn paused(&mut self, pending: &[Digest]) -> Result<(), Meaning> {
        let step = self.acting()?;
        let open: Vec<Digest> = step.pending().iter().map(|r| r.digest).collect();
        let waits = step
            .actions
            .iter()
            .all(|a| matches!(a.progress, Progress::Asking(_) | Progress::Ended(_)));
        if !waits || open.is_empty() || open != pending {
            return Err(out_of_place("paused"));
        }
        self.paused = true;
        Ok(())
    }

    fn answer_rejected(&mut self, step: u64) -> Result<(), Meaning> {
        let Phase::Answering(answer) = &self.phase else {
            return Err(out_of_place("answer_rejected"));
        };
        same_step(self.used.steps, step)?;
        if answer.over.is_some() {
            return Err(out_of_place("answer_rejected"));
        }
        self.closed = Some(Closed {
            number: step,
            decision: Decision::Finish,
            actions: Vec::new(),
            answer: Some(answer.answer),
            usage: answer.usage,
        });
        self.phase = Phase::Ready;
        Ok(())
    }

    fn finished(&mut self, data: &Finished) -> Result<(), Meaning> {
        let wrong = Err(out_of_place("finished"));
        let status = data
            .stop_reason
            .map_or(Status::Completed, StopReason::status);
        let answer = match &self.phase {
            Phase::Answering(answer) => Some(answer.answer),
            _ => None,
        };
        if data.status != status || data.answer.is_some_and(|a| Some(a) != answer) {
            return wrong;
        }
        let fits = match (data.stop_reason, &self.phase) {
            (None, Phase::Answering(a)) => a.over.is_none() && data.answer == Some(a.answer),
            (Some(StopReason::PlannerFailed | StopReason::InvalidDecision), phase) => {
                *phase == Phase::Planning
            }
            (Some(StopReason::DoneFailed), Phase::Answering(_)) => true,
            (Some(StopReason::GuardrailBlocked), Phase::Answering(_) | Phase::Ready) => true,
            (Some(reason), Phase::Answering(a)) => a.over.map(StopReason::from) == Some(reason),
            (Some(reason), Phase::Ready) => {
                let limit = self.stop.or(self.limits()?.before_plan(&self.used));
                limit.map(StopReason::from) == Some(reason)
            }
            _ => false,
        };
        if !fits {
            return wrong;
        }
        self.same_counts(&data.counts)?;
        self.phase = Phase::Ended(data.clone());
        Ok(())
    }

    fn same_counts(&self, found: &Counts) -> Result<(), Meaning> {
        let own = self.counts();
        let pairs = [
            ("actions", own.actions, found.actions),
            ("calls_finished", own.calls_finished, found.calls_finished),
            ("calls_started", own.calls_started, found.calls_started),
            ("cost_nano", own.cost_nano, found.cost_nano),
            ("denied", own.denied, found.denied),
            ("requests", own.requests, found.requests),
            ("steps", own.steps, found.steps),
            ("tokens", own.tokens, found.tokens),
        ];
        match pairs.iter().find(|(_, own, found)| own != found) {
            None => Ok(()),
            Some((name, own, found)) => Err(Meaning::Counts {
                what: format!("{name} is {found}, the events give {own}"),
            }),
        }
    }

    fn note_unknown_effect(&mut self, index: usize) -> Result<(), Meaning> {
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

    /// Ends one action, and with the last of them the step.
    fn end_action(&mut self, index: usize, ending: Ending) -> Result<(), Meaning> {
        let step = self.acting_mut()?;
        step.actions[index].progress = Progress::Ended(ending);
        if step.actions.iter().all(|a| a.ending().is_some()) {
            if let Phase::Acting(step) = std::mem::replace(&mut self.phase, Phase::Ready) {
                self.closed = Some(Closed {
                    number: step.number,
                    decision: Decision::Act,
                    actions: step.actions,
                    answer: None,
                    usage: step.usage,
                });
            }
        }
        Ok(())
    }

    fn is_calling(&self, index: usize, attempt: u64, action: u64) -> Result<(), Meaning> {
        let found = &self.acting()?.actions[index];
        if found.progress == Progress::Calling && found.attempts == attempt {
            Ok(())
        } else {
            Err(Meaning::NoSuchAction { action })
        }
    }

    fn open_action(&self, step: u64, action: u64) -> Result<usize, Meaning> {
        let none = Meaning::NoSuchAction { action };
        let Phase::Acting(open) = &self.phase else {
            return Err(none);
        };
        same_step(open.number, step)?;
        let index = usize::try_from(action).map_err(|_| none.clone())?;
        let found = open.actions.get(index).ok_or(none.clone())?;
        if found.ending().is_some() {
            return Err(none);
        }
        Ok(index)
    }

    fn acting(&self) -> Result<&Step, Meaning> {
        match &self.phase {
            Phase::Acting(step) => Ok(step),
            _ => Err(Meaning::NoSuchAction { action: 0 }),
        }
    }

    fn acting_mut(&mut self) -> Result<&mut Step, Meaning> {
        match &mut self.phase {
            Phase::Acting(step) => Ok(step),
            _ => Err(Meaning::NoSuchAction { action: 0 }),
        }
    }

    fn known(&self) -> Result<&Charter, Meaning> {
        self.charter.as_ref().ok_or(Meaning::NotStarted {
            event: "run_started",
        })
    }

    fn limits(&self) -> Result<&Limits, Meaning> {
        self.known().map(|c| &c.limits)
    }
}

fn may_come_while_paused(event: &Event) -> bool {
    matches!(
        event,
        Event::Approved(_)
            | Event::Edited(_)
            | Event::Expired(_)
            | Event::LateResult(_)
            | Event::Rejected(_)
            | Event::Resumed(_)
    )
}

fn out_of_place(event: &'static str) -> Meaning {
    Meaning::OutOfPlace { event }
}

fn same_step(expected: u64, found: u64) -> Result<(), Meaning> {
    if expected == found {
        Ok(())
    } else {
        Err(Meaning::Step { expected, found })
    }
}

fn policy_digest(policy: &Policy) -> Digest {
    policy.digest()
}

fn checked_policy(policy: &Policy) -> Result<Policy, Meaning> {
    if !sorted(&policy.allow_effects) || !sorted(&policy.approve_effects) {
        return Err(Meaning::Unsorted {
            what: "side effects",
        });
    }
    if !sorted(&policy.granted_scopes) {
        return Err(Meaning::Unsorted { what: "scopes" });
    }
    Ok(policy.clone())
}

fn by_name(tools: &[ToolFacts]) -> Result<BTreeMap<String, ToolFacts>, Meaning> {
    if !tools.windows(2).all(|w| w[0].name < w[1].name) {
        return Err(Meaning::Unsorted { what: "tools" });
    }
    if !tools.iter().all(|t| sorted(&t.scopes)) {
        return Err(Meaning::Unsorted { what: "scopes" });
    }
    Ok(tools.iter().map(|t| (t.name.clone(), t.clone())).collect())
}

fn sorted<T: Ord>(items: &[T]) -> bool {
    items.windows(2).all(|w| w[0] < w[1])
}
