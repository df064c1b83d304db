//! Limits of a run and what has been used of them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The limits of a run, as they stand in its journal. `null` is no limit, `0` is none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Working time in milliseconds; pauses do not count.
    pub active_ms: Option<u64>,
    /// Time limit of a call whose tool has none, in milliseconds.
    pub call_timeout_ms: Option<u64>,
    /// Cost in 1e-9 units, of plans and of calls.
    pub cost_nano: Option<u64>,
    /// Calls of one tool within the run, by its name.
    pub per_tool: BTreeMap<String, u64>,
    /// Plans.
    pub steps: Option<u64>,
    /// Tokens, as the planner reports them.
    pub tokens: Option<u64>,
    /// Calls that start.
    pub tool_calls: Option<u64>,
}

/// Which limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Cost of plans and calls.
    Cost,
    /// Calls of one tool.
    PerTool,
    /// Working time.
    Seconds,
    /// Plans.
    Steps,
    /// Tokens.
    Tokens,
    /// Calls.
    ToolCalls,
}

impl Limit {
    /// The word: a name of `agent_limits()` and a stop reason.
    pub fn word(self) -> &'static str {
        match self {
            Limit::Cost => "cost",
            Limit::PerTool => "per_tool",
            Limit::Seconds => "seconds",
            Limit::Steps => "steps",
            Limit::Tokens => "tokens",
            Limit::ToolCalls => "tool_calls",
        }
    }
}
