//! The state of a run as a fold over its events.
//!
//! The same fold reads a journal, checks the meaning of a trail, and is what the
//! machine itself stands on: an event that [`State::apply`] refuses is one the
//! machine could not have recorded.

use super::late::Attempt;
use super::meaning::Meaning;
use super::step::{Closed, Ending, Progress, Step};
use crate::digest::Digest;
use crate::event::{AskReason, Counts, Decision, Event, Finished, GuardrailFacts, Stage, Status};
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
    /// The guardrails, in the order in which they are asked.
    pub guardrails: Vec<GuardrailFacts>,
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
    pub(super) charter: Option<Charter>,
    pub(super) phase: Phase,
    pub(super) paused: bool,
    pub(super) used: Used,
    pub(super) counts: Counts,
    pub(super) stop: Option<Limit>,
    pub(super) grants_used: BTreeMap<u64, u64>,
    pub(super) unknown_effects: BTreeSet<CallOf>,
    pub(super) superseded: BTreeMap<CallOf, Digest>,
    /// Guardrails that looked at the goal.
    pub(super) goal_looked: BTreeSet<String>,
    /// Attempts that an owner gave up on and that may still end.
    pub(super) lost: BTreeSet<Attempt>,
    pub(super) closed: Option<Closed>,
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
    /// Guardrails that looked at it.
    pub(super) looked: BTreeSet<String>,
    pub(super) over: Option<Limit>,
    pub(super) note: Option<Digest>,
    pub(super) usage: crate::event::Usage,
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

    /// Ends one action, and with the last of them the step.
    pub(super) fn end_action(&mut self, index: usize, ending: Ending) -> Result<(), Meaning> {
        let step = self.acting_mut()?;
        step.actions[index].progress = Progress::Ended(ending);
        if step.actions.iter().all(|a| a.ending().is_some()) {
            if let Phase::Acting(step) = std::mem::replace(&mut self.phase, Phase::Ready) {
                self.closed = Some(Closed {
                    number: step.number,
                    decision: Decision::Act,
                    actions: step.actions,
                    answer: None,
                    note: step.note,
                    usage: step.usage,
                });
            }
        }
        Ok(())
    }

    pub(super) fn open_action(&self, step: u64, action: u64) -> Result<usize, Meaning> {
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

    pub(super) fn acting(&self) -> Result<&Step, Meaning> {
        match &self.phase {
            Phase::Acting(step) => Ok(step),
            _ => Err(Meaning::NoSuchAction { action: 0 }),
        }
    }

    pub(super) fn acting_mut(&mut self) -> Result<&mut Step, Meaning> {
        match &mut self.phase {
            Phase::Acting(step) => Ok(step),
            _ => Err(Meaning::NoSuchAction { action: 0 }),
        }
    }

    /// Whether all guardrails of a stage are among those that looked.
    pub(super) fn all_looked(
        &self,
        stage: Stage,
        looked: &BTreeSet<String>,
    ) -> Result<(), Meaning> {
        let of_stage = |g: &&GuardrailFacts| g.stages.contains(&stage);
        let guards = &self.known()?.guardrails;
        match guards
            .iter()
            .filter(of_stage)
            .find(|g| !looked.contains(&g.name))
        {
            None => Ok(()),
            Some(guard) => Err(Meaning::GuardrailSkipped {
                name: guard.name.clone(),
            }),
        }
    }

    pub(super) fn known(&self) -> Result<&Charter, Meaning> {
        self.charter.as_ref().ok_or(Meaning::NotStarted {
            event: "run_started",
        })
    }

    pub(super) fn limits(&self) -> Result<&Limits, Meaning> {
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

pub(super) fn out_of_place(event: &'static str) -> Meaning {
    Meaning::OutOfPlace { event }
}

pub(super) fn same_step(expected: u64, found: u64) -> Result<(), Meaning> {
    if expected == found {
        Ok(())
    } else {
        Err(Meaning::Step { expected, found })
    }
}

pub(super) fn checked_policy(policy: &Policy) -> Result<Policy, Meaning> {
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

pub(super) fn by_name(tools: &[ToolFacts]) -> Result<BTreeMap<String, ToolFacts>, Meaning> {
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
