//! What the fold makes of the events that concern the run as a whole.

use super::meaning::Meaning;
use super::state::{
    by_name, checked_policy, out_of_place, same_step, Answer, Charter, Phase, State,
};
use super::step::{Action, Closed, Progress, Step};
use crate::digest::Digest;
use crate::event::{
    Counts, Decided, Decision, Finished, PlanStarted, Resumed, RunStarted, Stage, Status,
    StopReason, SCHEMA,
};
use std::collections::BTreeSet;

impl State {
    pub(super) fn run_started(&mut self, data: &RunStarted, active_ms: u64) -> Result<(), Meaning> {
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
            guardrails: data.guardrails.clone(),
            limits: data.limits.clone(),
            policy_digest: data.policy.digest(),
            policy: checked_policy(&data.policy)?,
            tools: by_name(&data.tools)?,
        });
        self.used.active_ms = active_ms;
        self.phase = Phase::Ready;
        Ok(())
    }

    pub(super) fn resumed(&mut self, data: &Resumed) -> Result<(), Meaning> {
        let Some(charter) = &mut self.charter else {
            return Err(out_of_place("resumed"));
        };
        if let Some(guardrails) = &data.guardrails {
            charter.guardrails = guardrails.clone();
        }
        if let Some(limits) = &data.limits {
            charter.limits = limits.clone();
        }
        if let Some(policy) = &data.policy {
            charter.policy_digest = policy.digest();
            charter.policy = checked_policy(policy)?;
        }
        if let Some(tools) = &data.tools {
            charter.tools = by_name(tools)?;
        }
        self.paused = false;
        Ok(())
    }

    pub(super) fn plan_started(&mut self, data: &PlanStarted) -> Result<(), Meaning> {
        if !matches!(self.phase, Phase::Ready) || self.stop.is_some() {
            return Err(out_of_place("plan_started"));
        }
        let expected = self.used.steps.saturating_add(1);
        same_step(expected, data.step)?;
        if let Some(limit) = self.limits()?.before_plan(&self.used) {
            return Err(Meaning::OverLimit { limit });
        }
        if expected == 1 {
            self.all_looked(Stage::Input, &self.goal_looked)?;
        }
        self.used.steps = expected;
        self.phase = Phase::Planning;
        Ok(())
    }

    pub(super) fn decided(&mut self, data: &Decided) -> Result<(), Meaning> {
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
                    note: data.note,
                    usage: data.usage,
                })
            }
            (Decision::Finish, Some(answer)) if data.actions.is_empty() => {
                Phase::Answering(Answer {
                    answer,
                    looked: BTreeSet::new(),
                    over,
                    note: data.note,
                    usage: data.usage,
                })
            }
            (Decision::Act | Decision::Finish, _) => return Err(out_of_place("decided")),
        };
        Ok(())
    }

    pub(super) fn paused(&mut self, pending: &[Digest]) -> Result<(), Meaning> {
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

    pub(super) fn answer_rejected(&mut self, step: u64) -> Result<(), Meaning> {
        let Phase::Answering(answer) = &self.phase else {
            return Err(out_of_place("answer_rejected"));
        };
        same_step(self.used.steps, step)?;
        if answer.over.is_some() {
            return Err(out_of_place("answer_rejected"));
        }
        self.all_looked(Stage::Output, &answer.looked)?;
        self.closed = Some(Closed {
            number: step,
            decision: Decision::Finish,
            actions: Vec::new(),
            answer: Some(answer.answer),
            note: answer.note,
            usage: answer.usage,
        });
        self.phase = Phase::Ready;
        Ok(())
    }

    pub(super) fn finished(&mut self, data: &Finished) -> Result<(), Meaning> {
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
        if let (None, Phase::Answering(answer)) = (data.stop_reason, &self.phase) {
            self.all_looked(Stage::Output, &answer.looked)?;
        }
        self.same_counts(&data.counts)?;
        self.phase = Phase::Ended(data.clone());
        Ok(())
    }

    pub(super) fn same_counts(&self, found: &Counts) -> Result<(), Meaning> {
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
}
