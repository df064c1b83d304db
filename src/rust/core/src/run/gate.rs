//! The gates an action passes, in their fixed order.

use super::effect::Clock;
use super::machine::Machine;
use super::state::Charter;
use super::step::{Action, Progress};
use super::text;
use crate::event::{AskReason, Stage};
use crate::limits::Limit;
use crate::outcome::Outcome;
use crate::policy::ToolFacts;
use crate::schema::Schema;

/// What the gates say of an action.
pub(super) enum Gate {
    /// A person must be asked.
    Ask(AskReason),
    /// Guardrails must look at it first.
    Check,
    /// It may start.
    Free,
    /// A standing grant covers it.
    Grant(u64),
    /// It may not start.
    Refuse(Refusal),
}

/// Why an action may not start.
pub(super) struct Refusal {
    pub(super) outcome: Outcome,
    pub(super) limit: Option<Limit>,
    pub(super) text: String,
}

impl Refusal {
    /// For any reason but a limit of the run.
    pub(super) fn new(outcome: Outcome, text: String) -> Self {
        Refusal {
            outcome,
            limit: None,
            text,
        }
    }
}

fn refuse(outcome: Outcome, text: String) -> Gate {
    Gate::Refuse(Refusal::new(outcome, text))
}

/// The action that is at the gates, and what is declared of it.
#[derive(Clone, Copy)]
struct Subject<'a> {
    index: usize,
    action: &'a Action,
    facts: &'a ToolFacts,
    charter: &'a Charter,
    clock: Clock,
}

impl Machine {
    /// Known tool, valid arguments, effect, scopes, guardrails, `max_calls`, run
    /// limits with what is reserved, approval. No gate does anything but look.
    pub(super) fn gate(&self, index: usize, clock: Clock) -> Option<Gate> {
        let charter = self.log.state.charter()?;
        let step = self.log.state.step()?;
        let action = step.actions.get(index)?;
        if let Some(limit) = step.over {
            return Some(out_of(limit, &action.tool));
        }
        let Some(facts) = charter.tools.get(&action.tool) else {
            let known = charter.tools.keys().map(String::as_str);
            let text = text::unknown_tool(&action.tool, known);
            return Some(refuse(Outcome::UnknownTool, text));
        };
        if let Some(text) = &self.refused[index] {
            return Some(refuse(Outcome::InvalidArguments, text.clone()));
        }
        Some(self.may_start(Subject {
            index,
            action,
            facts,
            charter,
            clock,
        }))
    }

    fn may_start(&self, subject: Subject<'_>) -> Gate {
        let Subject {
            index,
            action,
            facts,
            charter,
            ..
        } = subject;
        let state = &self.log.state;
        let policy = &charter.policy;
        if !policy.allow_effects.contains(&facts.side_effects) {
            return refuse(Outcome::EffectDenied, text::effect_denied(facts));
        }
        if !policy.missing_scopes(facts).is_empty() {
            return refuse(Outcome::ScopeDenied, text::scope_denied(facts, policy));
        }
        if action.blocked {
            let why = self.blocked_by.get(&index);
            return refuse(Outcome::GuardrailBlocked, text::guardrail(why));
        }
        if self.setup.looks_at(Stage::Tool) && !self.checked.contains(&index) {
            return Gate::Check;
        }
        let reserved = state.reserved_before(index);
        if state.exhausted(facts, &reserved) {
            return refuse(Outcome::ToolExhausted, text::tool_exhausted(facts));
        }
        let cost = facts.cost_nano.unwrap_or(0);
        let limits = &charter.limits;
        if let Some(limit) = limits.before_call(state.used(), &reserved, &facts.name, cost) {
            return out_of(limit, &facts.name);
        }
        match &action.progress {
            Progress::Answered(_) | Progress::Granted => Gate::Free,
            _ => self.must_ask(subject),
        }
    }

    fn must_ask(&self, subject: Subject<'_>) -> Gate {
        let Subject { action, clock, .. } = subject;
        let state = &self.log.state;
        if action.edited_by.is_none()
            && state
                .superseded_by(&action.tool, action.arguments)
                .is_some()
        {
            return refuse(Outcome::ApprovalDenied, text::superseded());
        }
        let Some(reason) = state.ask_reason(subject.facts, action.arguments) else {
            return Gate::Free;
        };
        if reason == AskReason::UnknownEffect {
            return Gate::Ask(reason);
        }
        let run = self.log.chain.run().as_str();
        let covers = |(place, rule): (usize, &Schema)| {
            let grant = subject.charter.policy.grants.get(place)?;
            let place = place as u64;
            let fits = grant.tool == action.tool
                && grant.run.as_deref().is_none_or(|r| r == run)
                && grant.until_ms.is_none_or(|end| clock.at_ms <= end)
                && grant.count.is_none_or(|n| state.grant_uses(place) < n)
                && rule.is_valid(&self.values[subject.index]);
            fits.then_some(place)
        };
        match self.setup.rules.iter().enumerate().find_map(covers) {
            Some(place) => Gate::Grant(place),
            None => Gate::Ask(reason),
        }
    }
}

fn out_of(limit: Limit, tool: &str) -> Gate {
    Gate::Refuse(Refusal {
        outcome: Outcome::LimitReached,
        limit: Some(limit),
        text: text::limit_reached(limit, tool),
    })
}
