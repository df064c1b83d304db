//! Events of an action: what guardrails say, refusals, calls and their ends.

use crate::digest::Digest;
use crate::limits::Limit;
use crate::outcome::Outcome;
use serde::{Deserialize, Serialize};

/// An action was refused before it could start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Denied {
    /// The action.
    pub action: u64,
    /// Which limit, for `limit_reached`.
    pub limit: Option<Limit>,
    /// Why: never one of a call that started.
    pub outcome: Outcome,
    /// The step.
    pub step: u64,
    /// Address of the text the planner is shown.
    pub text: Digest,
}

/// A guardrail gave its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guardrail {
    /// The action; null where it judged the goal or the answer.
    pub action: Option<u64>,
    /// The guardrail's name.
    pub name: String,
    /// Where it looked.
    pub stage: Stage,
    /// The step; 0 before the first.
    pub step: u64,
    /// Address of what it said; null when it said nothing.
    pub text: Option<Digest>,
    /// What it decided.
    pub verdict: GuardrailVerdict,
}

/// Where a guardrail looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The goal.
    Input,
    /// The answer.
    Output,
    /// A call: its arguments, then its result.
    Tool,
}

/// What a guardrail decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardrailVerdict {
    /// Nothing may happen.
    Block,
    /// Noted, nothing more.
    Flag,
    /// Fine.
    Pass,
    /// Allowed, with a warning.
    Warn,
}

/// A call is about to start; it and its cost are charged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallStarted {
    /// The action.
    pub action: u64,
    /// Address of the arguments that run.
    pub arguments: Digest,
    /// 1, and one more after each crash; at most 3.
    pub attempt: u64,
    /// The cost charged, in 1e-9 units.
    pub cost_nano: u64,
    /// Digest of the request whose approval is used up; null: none was needed.
    pub request: Option<Digest>,
    /// Spec hash of the tool that runs.
    pub spec_hash: Digest,
    /// The step.
    pub step: u64,
    /// The time limit in milliseconds; null: none.
    pub timeout_ms: Option<u64>,
    /// The tool.
    pub tool: String,
}

/// A call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallFinished {
    /// The action.
    pub action: u64,
    /// The attempt that ended.
    pub attempt: u64,
    /// Bytes of the text a model is shown.
    pub bytes: u64,
    /// How long it ran, in microseconds.
    pub duration_us: u64,
    /// Address of what else is known: `error_class`, `warnings`, `messages`, and the
    /// hashes of a result that was cut; null: nothing.
    pub notes: Option<Digest>,
    /// `executed`, `error`, `timed_out`, or `guardrail_blocked` where the result is withheld.
    pub outcome: Outcome,
    /// Address of the result as the planner sees it; null where there is none.
    pub result: Option<Digest>,
    /// The step.
    pub step: u64,
    /// Address of the text shown where it is not the result: an error, a refusal; else null.
    pub text: Option<Digest>,
    /// Whether the result was cut to the tool's `max_bytes`.
    pub truncated: bool,
}

/// A call that a new owner had given up on (`recovered`) did end; known too late to
/// count. Its members mean what they mean in [`CallFinished`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LateResult {
    /// The action.
    pub action: u64,
    /// The attempt that ended.
    pub attempt: u64,
    /// Address of what else is known; null: nothing.
    pub notes: Option<Digest>,
    /// How it ended.
    pub outcome: Outcome,
    /// Address of the result; null where there is none.
    pub result: Option<Digest>,
    /// The step.
    pub step: u64,
    /// Address of the text that would have been shown where it is not the result; else null.
    pub text: Option<Digest>,
}

impl From<&CallFinished> for LateResult {
    fn from(end: &CallFinished) -> Self {
        LateResult {
            action: end.action,
            attempt: end.attempt,
            notes: end.notes,
            outcome: end.outcome,
            result: end.result,
            step: end.step,
            text: end.text,
        }
    }
}
