//! The journal of a run as a story: what happened to each action, in order.
//!
//! Unlike the fold of `run`, this one takes records as they are: a trail that was
//! tampered with must be looked at as well, and the verifier says what is wrong.

use crate::digest::Digest;
use crate::event::{
    ApprovalRequested, CallFinished, Decided, Event, Finished, Guardrail, GuardrailFacts,
    LateResult, Resumed, RunStarted,
};
use crate::journal::Line;
use crate::limits::{Limit, Limits, Used};
use crate::outcome::Outcome;
use crate::policy::{Policy, ToolFacts};
use std::collections::BTreeMap;

/// A run as it is told.
#[derive(Debug, Default)]
pub(super) struct Story {
    pub(super) run: String,
    pub(super) records: u64,
    pub(super) unreadable: u64,
    pub(super) head: Option<Digest>,
    pub(super) started_ms: Option<u64>,
    pub(super) last_ms: u64,
    pub(super) active_ms: u64,
    pub(super) goal: Option<Digest>,
    pub(super) limits: Limits,
    pub(super) policy: Option<Policy>,
    pub(super) tools: Vec<ToolFacts>,
    pub(super) guardrails: Vec<GuardrailFacts>,
    pub(super) used: Used,
    /// Verdicts on the goal.
    pub(super) rails: Vec<Guardrail>,
    /// What happened outside any step.
    pub(super) moments: Vec<Moment>,
    pub(super) steps: Vec<Step>,
    pub(super) end: Option<Finished>,
    paused: bool,
    requests: BTreeMap<Digest, (usize, usize)>,
}

/// One plan, and what came of it.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) number: u64,
    pub(super) at_ms: u64,
    pub(super) active_ms: u64,
    pub(super) decided: Option<Decided>,
    pub(super) actions: Vec<Action>,
    /// Verdicts on the answer.
    pub(super) rails: Vec<Guardrail>,
    pub(super) moments: Vec<Moment>,
    pub(super) answer: AnswerFate,
}

/// What became of the answer of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerFate {
    Open,
    Rejected,
}

/// One action.
#[derive(Debug)]
pub(super) struct Action {
    pub(super) tool: String,
    /// Address of what the planner asked for.
    pub(super) asked: Digest,
    pub(super) outcome: Option<Outcome>,
    pub(super) limit: Option<Limit>,
    /// Address of the text shown instead of a result.
    pub(super) text: Option<Digest>,
    pub(super) end: Option<CallFinished>,
    pub(super) attempts: u64,
    pub(super) rails: Vec<Guardrail>,
    pub(super) moments: Vec<Moment>,
    /// The request that waits.
    pub(super) pending: Option<ApprovalRequested>,
    /// Who said no.
    pub(super) refused_by: Option<String>,
    /// The tool's own limit when it was refused.
    pub(super) max_calls: Option<u64>,
}

/// Something that happened at a time.
#[derive(Debug)]
pub(super) struct Moment {
    pub(super) at_ms: u64,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    Approved {
        by: String,
    },
    Asked(ApprovalRequested),
    Edited {
        by: String,
        arguments: Digest,
    },
    Expired,
    GrantUsed {
        grant: u64,
    },
    Late(LateResult),
    Paused {
        pending: usize,
    },
    Recovered {
        again: bool,
        attempt: u64,
    },
    Rejected {
        by: String,
    },
    Resumed(Resumed),
    Started {
        attempt: u64,
        timeout_ms: Option<u64>,
    },
}

impl Story {
    /// Reads lines without newlines. What is no record is counted and passed over.
    pub(super) fn read<'a>(lines: impl IntoIterator<Item = &'a str>) -> Story {
        let mut story = Story::default();
        for text in lines {
            let line = Line::read(text.as_bytes());
            let digest = line.as_ref().and_then(|l| l.digest.parse::<Digest>().ok());
            match line.zip(digest) {
                Some((line, digest)) => story.line(&line, digest),
                None => story.unreadable += 1,
            }
        }
        story
    }

    /// Actions of every step.
    pub(super) fn actions(&self) -> impl Iterator<Item = (&Step, &Action)> {
        self.steps
            .iter()
            .flat_map(|s| s.actions.iter().map(move |a| (s, a)))
    }

    /// The word for where the run stands.
    pub(super) fn status(&self) -> &'static str {
        match &self.end {
            Some(end) => end.status.word(),
            None if self.paused => "awaiting_approval",
            None => "running",
        }
    }

    fn line(&mut self, line: &Line<'_>, digest: Digest) {
        let Ok(event) = Event::read(line.event, line.data.as_bytes()) else {
            self.unreadable += 1;
            return;
        };
        if self.run.is_empty() {
            line.run.clone_into(&mut self.run);
        }
        self.records += 1;
        self.head = Some(digest);
        self.started_ms.get_or_insert(line.at);
        self.last_ms = line.at;
        self.active_ms = line.active_ms;
        self.used.active_ms = line.active_ms;
        self.take(event, digest, line);
    }

    fn take(&mut self, event: Event, digest: Digest, line: &Line<'_>) {
        let at = line.at;
        match event {
            Event::RunStarted(data) => self.run_started(data),
            Event::PlanStarted(data) => {
                self.used.steps += 1;
                self.steps.push(Step::new(data.step, line));
            }
            Event::Decided(data) => self.decided(data),
            Event::AnswerRejected(data) => {
                if let Some(step) = self.step(data.step) {
                    step.answer = AnswerFate::Rejected;
                }
            }
            Event::Denied(data) => {
                let tools = std::mem::take(&mut self.tools);
                if let Some(action) = self.action(data.step, data.action) {
                    action.ended(Some(data.outcome), Some(data.text));
                    action.limit = data.limit;
                    let facts = tools.iter().find(|t| t.name == action.tool);
                    action.max_calls = facts.and_then(|t| t.max_calls);
                }
                self.tools = tools;
            }
            Event::Guardrail(data) => self.guardrail(data),
            Event::GrantUsed(data) => {
                let what = What::GrantUsed { grant: data.grant };
                self.note(data.step, data.action, at, what);
            }
            Event::ApprovalRequested(data) => self.asked(data, digest, at),
            Event::Approved(data) => {
                let by = data.approver;
                self.answered(data.request, data.decided_ms, What::Approved { by }, None);
            }
            Event::Edited(data) => {
                let what = What::Edited {
                    by: data.approver,
                    arguments: data.arguments,
                };
                self.answered(data.request, data.decided_ms, what, None);
            }
            Event::Rejected(data) => {
                let (by, outcome) = (data.approver, Outcome::ApprovalDenied);
                self.refuse(data.request, &by);
                let ended = Some((outcome, data.text));
                self.answered(data.request, data.decided_ms, What::Rejected { by }, ended);
            }
            Event::Expired(data) => {
                let ended = Some((Outcome::ApprovalExpired, data.text));
                self.answered(data.request, at, What::Expired, ended);
            }
            Event::CallStarted(data) => {
                self.used.charge_call(&data.tool, data.cost_nano);
                let what = What::Started {
                    attempt: data.attempt,
                    timeout_ms: data.timeout_ms,
                };
                self.note(data.step, data.action, at, what);
                if let Some(action) = self.action(data.step, data.action) {
                    action.attempts = data.attempt;
                    action.outcome = None;
                }
            }
            Event::CallFinished(data) => {
                if let Some(action) = self.action(data.step, data.action) {
                    action.ended(Some(data.outcome), data.text);
                    action.end = Some(data);
                }
            }
            Event::LateResult(data) => {
                self.note(data.step, data.action, at, What::Late(data));
            }
            Event::Recovered(data) => {
                let what = What::Recovered {
                    again: data.outcome.is_none(),
                    attempt: data.attempt,
                };
                match data.action {
                    None => self.moment(at, what),
                    Some(action) => {
                        self.note(data.step, action, at, what);
                        if let Some(action) = self.action(data.step, action) {
                            action.ended(data.outcome, data.text);
                        }
                    }
                }
            }
            Event::Paused(data) => {
                self.paused = true;
                self.moment(
                    at,
                    What::Paused {
                        pending: data.pending.len(),
                    },
                );
            }
            Event::Resumed(data) => self.resumed(data, at),
            Event::Finished(data) => self.end = Some(data),
        }
    }

    fn run_started(&mut self, data: RunStarted) {
        self.goal = Some(data.goal);
        self.limits = data.limits;
        self.policy = Some(data.policy);
        self.tools = data.tools;
        self.guardrails = data.guardrails;
    }

    fn resumed(&mut self, data: Resumed, at: u64) {
        self.paused = false;
        if let Some(limits) = &data.limits {
            self.limits = limits.clone();
        }
        if data.policy.is_some() {
            self.policy.clone_from(&data.policy);
        }
        if let Some(tools) = &data.tools {
            self.tools.clone_from(tools);
        }
        if let Some(guardrails) = &data.guardrails {
            self.guardrails.clone_from(guardrails);
        }
        self.moment(at, What::Resumed(data));
    }

    fn decided(&mut self, data: Decided) {
        self.used.tokens = self.used.tokens.saturating_add(data.usage.tokens);
        self.used.cost_nano = self.used.cost_nano.saturating_add(data.usage.cost_nano);
        if let Some(step) = self.step(data.step) {
            let one = |a: &crate::event::Asked| Action::new(a.tool.clone(), a.arguments);
            step.actions = data.actions.iter().map(one).collect();
            step.decided = Some(data);
        }
    }

    fn guardrail(&mut self, data: Guardrail) {
        let action = data.action;
        match (self.steps.last_mut(), action) {
            (Some(step), None) if data.step > 0 => step.rails.push(data),
            (_, None) => self.rails.push(data),
            (_, Some(place)) => {
                if let Some(action) = self.action(data.step, place) {
                    action.rails.push(data);
                }
            }
        }
    }

    fn asked(&mut self, data: ApprovalRequested, digest: Digest, at: u64) {
        let (step, action) = (data.step, data.action);
        let place = self.steps.iter().rposition(|s| s.number == step);
        if let Some(place) = place.zip(usize::try_from(action).ok()) {
            self.requests.insert(digest, place);
        }
        if let Some(action) = self.action(step, action) {
            action.outcome = Some(Outcome::ApprovalRequired);
            action.pending = Some(data.clone());
        }
        self.note(step, action, at, What::Asked(data));
    }

    fn answered(
        &mut self,
        request: Digest,
        at_ms: u64,
        what: What,
        ended: Option<(Outcome, Digest)>,
    ) {
        let Some(action) = self.requested(request) else {
            return;
        };
        action.pending = None;
        action.moments.push(Moment { at_ms, what });
        match ended {
            Some((outcome, text)) => action.ended(Some(outcome), Some(text)),
            None => action.outcome = None,
        }
    }

    fn refuse(&mut self, request: Digest, by: &str) {
        if let Some(action) = self.requested(request) {
            action.refused_by = Some(by.to_owned());
        }
    }

    fn requested(&mut self, request: Digest) -> Option<&mut Action> {
        let (step, action) = *self.requests.get(&request)?;
        self.steps.get_mut(step)?.actions.get_mut(action)
    }

    fn note(&mut self, step: u64, action: u64, at_ms: u64, what: What) {
        if let Some(action) = self.action(step, action) {
            action.moments.push(Moment { at_ms, what });
        }
    }

    /// Of the run: told in the step under way.
    fn moment(&mut self, at_ms: u64, what: What) {
        let moment = Moment { at_ms, what };
        match self.steps.last_mut() {
            Some(step) => step.moments.push(moment),
            None => self.moments.push(moment),
        }
    }

    fn step(&mut self, number: u64) -> Option<&mut Step> {
        self.steps.iter_mut().rev().find(|s| s.number == number)
    }

    fn action(&mut self, step: u64, action: u64) -> Option<&mut Action> {
        let place = usize::try_from(action).ok()?;
        self.step(step)?.actions.get_mut(place)
    }
}

impl Step {
    fn new(number: u64, line: &Line<'_>) -> Step {
        Step {
            number,
            at_ms: line.at,
            active_ms: line.active_ms,
            decided: None,
            actions: Vec::new(),
            rails: Vec::new(),
            moments: Vec::new(),
            answer: AnswerFate::Open,
        }
    }
}

impl Action {
    fn new(tool: String, asked: Digest) -> Action {
        Action {
            tool,
            asked,
            outcome: None,
            limit: None,
            text: None,
            end: None,
            attempts: 0,
            rails: Vec::new(),
            moments: Vec::new(),
            pending: None,
            refused_by: None,
            max_calls: None,
        }
    }

    fn ended(&mut self, outcome: Option<Outcome>, text: Option<Digest>) {
        self.outcome = outcome;
        self.text = text;
        self.pending = None;
    }
}
