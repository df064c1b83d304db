//! Events that concern a run as a whole: its start, its owners, its end.

use super::action::{GuardrailVerdict, Stage};
use crate::digest::Digest;
use crate::limits::{Limit, Limits};
use crate::outcome::Outcome;
use crate::policy::{Policy, ToolFacts};
use serde::{Deserialize, Serialize};

/// The first event: what the run may do and with what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunStarted {
    /// SHA-256 of the run's content key ([`super::key_commitment`]).
    pub content_key: Digest,
    /// Address of the goal.
    pub goal: Digest,
    /// The guardrails, in the order in which they are asked; the member is there only
    /// where there are some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guardrails: Vec<GuardrailFacts>,
    /// The limits.
    pub limits: Limits,
    /// 32 random bytes, so that no two runs begin with the same record.
    pub nonce: Digest,
    /// The policy.
    pub policy: Policy,
    /// [`super::SCHEMA`].
    pub schema: String,
    /// The tools, sorted by name.
    pub tools: Vec<ToolFacts>,
}

/// What a journal says of a guardrail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardrailFacts {
    /// Digest of its check: its code and what that captures.
    pub digest: Digest,
    /// Its name.
    pub name: String,
    /// Its verdict where the check says no; `block` where the check itself fails.
    pub on_fail: GuardrailVerdict,
    /// Where it looks; sorted.
    pub stages: Vec<Stage>,
}

/// The run waits for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paused {
    /// Digests of the open requests, in the order of their actions.
    pub pending: Vec<Digest>,
}

/// A new owner drives the run. What is null is as it was declared last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resumed {
    /// The guardrails from here on; the member is there only where they changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guardrails: Option<Vec<GuardrailFacts>>,
    /// The limits from here on.
    pub limits: Option<Limits>,
    /// The policy from here on.
    pub policy: Option<Policy>,
    /// The tools from here on, sorted by name.
    pub tools: Option<Vec<ToolFacts>>,
}

/// The last owner vanished while this was under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recovered {
    /// The action whose call was under way; null: the planner was being asked.
    pub action: Option<u64>,
    /// The attempt under way; 0 for a plan.
    pub attempt: u64,
    /// `interrupted` where the call is not repeated; null where it starts again.
    pub outcome: Option<Outcome>,
    /// The step.
    pub step: u64,
    /// Address of the text the planner is shown; null where the call starts again.
    pub text: Option<Digest>,
}

/// The run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finished {
    /// Address of the answer, of a completed run; else null.
    pub answer: Option<Digest>,
    /// What was counted, to be compared with what is here.
    pub counts: Counts,
    /// Address of the error's text, of a failed run; else null.
    pub error: Option<Digest>,
    /// `completed`, `stopped` or `failed`.
    pub status: Status,
    /// Why it stopped or failed; null of a completed run.
    pub stop_reason: Option<StopReason>,
}

/// Totals of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Actions asked for.
    pub actions: u64,
    /// Calls that ended.
    pub calls_finished: u64,
    /// Calls that started, every attempt.
    pub calls_started: u64,
    /// Cost in 1e-9 units.
    pub cost_nano: u64,
    /// Actions refused before they could start.
    pub denied: u64,
    /// Requests for approval.
    pub requests: u64,
    /// Plans.
    pub steps: u64,
    /// Tokens.
    pub tokens: u64,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It waits for people.
    AwaitingApproval,
    /// It gave an answer that was accepted.
    Completed,
    /// Something that is not a limit ended it.
    Failed,
    /// It is, or could be, driven on.
    Running,
    /// A limit ended it.
    Stopped,
}

impl Status {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Status::AwaitingApproval => "awaiting_approval",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Running => "running",
            Status::Stopped => "stopped",
        }
    }
}

/// Why a run stopped or failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The cost limit.
    Cost,
    /// `done` raised an error or answered something other than yes or no.
    DoneFailed,
    /// A guardrail refused the goal or the answer.
    GuardrailBlocked,
    /// The planner returned something that is no decision.
    InvalidDecision,
    /// The limit of one tool.
    PerTool,
    /// The planner raised an error.
    PlannerFailed,
    /// The limit of working time.
    Seconds,
    /// The limit of steps.
    Steps,
    /// The limit of tokens.
    Tokens,
    /// The limit of calls.
    ToolCalls,
}

impl StopReason {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            StopReason::Cost => "cost",
            StopReason::DoneFailed => "done_failed",
            StopReason::GuardrailBlocked => "guardrail_blocked",
            StopReason::InvalidDecision => "invalid_decision",
            StopReason::PerTool => "per_tool",
            StopReason::PlannerFailed => "planner_failed",
            StopReason::Seconds => "seconds",
            StopReason::Steps => "steps",
            StopReason::Tokens => "tokens",
            StopReason::ToolCalls => "tool_calls",
        }
    }

    /// The status a run ends in for this reason.
    pub fn status(self) -> Status {
        match self {
            StopReason::Cost
            | StopReason::PerTool
            | StopReason::Seconds
            | StopReason::Steps
            | StopReason::Tokens
            | StopReason::ToolCalls => Status::Stopped,
            StopReason::DoneFailed
            | StopReason::GuardrailBlocked
            | StopReason::InvalidDecision
            | StopReason::PlannerFailed => Status::Failed,
        }
    }
}

impl From<Limit> for StopReason {
    fn from(limit: Limit) -> Self {
        match limit {
            Limit::Cost => StopReason::Cost,
            Limit::PerTool => StopReason::PerTool,
            Limit::Seconds => StopReason::Seconds,
            Limit::Steps => StopReason::Steps,
            Limit::Tokens => StopReason::Tokens,
            Limit::ToolCalls => StopReason::ToolCalls,
        }
    }
}
