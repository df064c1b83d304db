//! What the fold makes of the events before a call: refusals, grants, and people's
//! decisions.

use super::meaning::Meaning;
use super::state::{out_of_place, Phase, State};
use super::step::{Ending, Progress, Request};
use crate::digest::Digest;
use crate::event::{
    ApprovalRequested, AskReason, Denied, GrantUsed, Guardrail, GuardrailVerdict, Stage,
};
use crate::outcome::Outcome;

impl State {
    pub(super) fn denied(&mut self, data: &Denied, digest: Digest) -> Result<(), Meaning> {
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

    pub(super) fn denial_is_right(&self, data: &Denied, index: usize) -> Result<(), Meaning> {
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

    pub(super) fn guardrail(&mut self, data: &Guardrail) -> Result<(), Meaning> {
        self.guardrail_is_declared(data)?;
        let name = data.name.clone();
        match (data.stage, &mut self.phase) {
            (Stage::Input, Phase::Ready) if self.used.steps == 0 => {
                self.goal_looked.insert(name.clone());
            }
            (Stage::Output, Phase::Answering(answer)) => {
                answer.looked.insert(name.clone());
            }
            (Stage::Tool, Phase::Acting(_)) => {}
            (Stage::Input | Stage::Output | Stage::Tool, _) => {
                return Err(out_of_place("guardrail"));
            }
        }
        if (data.stage == Stage::Tool) != data.action.is_some() {
            return Err(out_of_place("guardrail"));
        }
        if let Some(action) = data.action {
            let index = self.open_action(data.step, action)?;
            let action = &mut self.acting_mut()?.actions[index];
            action.looked.insert(name);
            match data.verdict {
                GuardrailVerdict::Block => action.blocked = true,
                GuardrailVerdict::Warn => action.warnings.extend(data.text),
                GuardrailVerdict::Flag | GuardrailVerdict::Pass => {}
            }
        }
        Ok(())
    }

    /// A guardrail that is in force, at a stage where it looks, with a verdict it can give.
    fn guardrail_is_declared(&self, data: &Guardrail) -> Result<(), Meaning> {
        let guards = &self.known()?.guardrails;
        let found = guards.iter().find(|g| g.name == data.name);
        let always = matches!(
            data.verdict,
            GuardrailVerdict::Block | GuardrailVerdict::Pass
        );
        let fits = found.is_some_and(|g| {
            g.stages.contains(&data.stage) && (always || data.verdict == g.on_fail)
        });
        if fits {
            Ok(())
        } else {
            Err(Meaning::GuardrailNotDeclared {
                name: data.name.clone(),
            })
        }
    }

    pub(super) fn grant_used(&mut self, data: &GrantUsed) -> Result<(), Meaning> {
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

    pub(super) fn approval_requested(
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

    pub(super) fn decided_by_person(
        &self,
        request: &Digest,
        decided_ms: u64,
    ) -> Result<usize, Meaning> {
        let step = self.acting().map_err(|_| Meaning::NoSuchRequest)?;
        let (index, request) = step.request(request).ok_or(Meaning::NoSuchRequest)?;
        if request.data.expires_ms.is_some_and(|end| decided_ms > end) {
            return Err(Meaning::DecidedTooLate);
        }
        Ok(index)
    }

    pub(super) fn approved(&mut self, request: &Digest, decided_ms: u64) -> Result<(), Meaning> {
        let index = self.decided_by_person(request, decided_ms)?;
        let action = &mut self.acting_mut()?.actions[index];
        if let Progress::Asking(request) = std::mem::replace(&mut action.progress, Progress::Open) {
            action.progress = Progress::Answered(request);
        }
        Ok(())
    }

    pub(super) fn edited(
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

    pub(super) fn expired(
        &mut self,
        request: &Digest,
        text: Digest,
        digest: Digest,
    ) -> Result<(), Meaning> {
        let step = self.acting().map_err(|_| Meaning::NoSuchRequest)?;
        let (_, asked) = step.request(request).ok_or(Meaning::NoSuchRequest)?;
        if asked.data.expires_ms.is_none() {
            return Err(out_of_place("expired"));
        }
        self.end_request(request, Outcome::ApprovalExpired, text, digest)
    }

    pub(super) fn end_request(
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
}
