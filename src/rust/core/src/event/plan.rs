//! Events of the planner: it is asked, it decides.

use crate::digest::Digest;
use serde::{Deserialize, Serialize};

/// The planner is about to be asked; a step is charged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanStarted {
    /// The step.
    pub step: u64,
}

/// What the planner decided, and what deciding used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decided {
    /// What it wants done, in order; empty for `finish`.
    pub actions: Vec<Asked>,
    /// Address of the answer; null for `act`.
    pub answer: Option<Digest>,
    /// Which of the two.
    pub decision: Decision,
    /// Address of what the planner wants to be told again of this decision; the
    /// member is there only where there is such a note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Digest>,
    /// The step.
    pub step: u64,
    /// What the planner used; charged here.
    pub usage: Usage,
}

/// The two decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Call tools.
    Act,
    /// Give the answer.
    Finish,
}

/// One action as the planner asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Address of the arguments: of the object, or of the text where it is not one.
    pub arguments: Digest,
    /// The name it gave, cut to 256 bytes.
    pub tool: String,
}

/// What a plan used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Cost in 1e-9 units.
    pub cost_nano: u64,
    /// Tokens.
    pub tokens: u64,
}

/// `done` did not accept the answer of this step; the run goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerRejected {
    /// The step.
    pub step: u64,
}
