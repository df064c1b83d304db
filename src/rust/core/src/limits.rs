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

/// What a run has used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Used {
    /// Working time in milliseconds.
    pub active_ms: u64,
    /// Cost in 1e-9 units.
    pub cost_nano: u64,
    /// Calls by tool, every attempt.
    pub per_tool: BTreeMap<String, u64>,
    /// Plans.
    pub steps: u64,
    /// Tokens.
    pub tokens: u64,
    /// Calls, every attempt.
    pub tool_calls: u64,
}

impl Used {
    /// Charges one call.
    pub fn charge_call(&mut self, tool: &str, cost_nano: u64) {
        self.tool_calls = self.tool_calls.saturating_add(1);
        self.cost_nano = self.cost_nano.saturating_add(cost_nano);
        match self.per_tool.get_mut(tool) {
            Some(calls) => *calls = calls.saturating_add(1),
            None => {
                self.per_tool.insert(tool.to_owned(), 1);
            }
        }
    }

    /// Calls of one tool.
    pub fn calls_of(&self, tool: &str) -> u64 {
        self.per_tool.get(tool).copied().unwrap_or(0)
    }
}

impl Limits {
    /// The limit that forbids asking the planner again. A plan's tokens are known
    /// only afterwards, so one that may use none is not started.
    pub fn before_plan(&self, used: &Used) -> Option<Limit> {
        let reached = |limit: Option<u64>, used: u64| limit.is_some_and(|l| used >= l);
        if reached(self.steps, used.steps) {
            Some(Limit::Steps)
        } else if reached(self.tokens, used.tokens) {
            Some(Limit::Tokens)
        } else if reached(self.active_ms, used.active_ms) {
            Some(Limit::Seconds)
        } else {
            None
        }
    }

    /// The limit that a plan has passed by what it used.
    pub fn after_plan(&self, used: &Used) -> Option<Limit> {
        let passed = |limit: Option<u64>, used: u64| limit.is_some_and(|l| used > l);
        if passed(self.tokens, used.tokens) {
            Some(Limit::Tokens)
        } else if passed(self.cost_nano, used.cost_nano) {
            Some(Limit::Cost)
        } else {
            None
        }
    }

    /// The limit that forbids one more call of this tool, when `reserved` has been
    /// promised to others.
    pub fn before_call(
        &self,
        used: &Used,
        reserved: &Used,
        tool: &str,
        cost_nano: u64,
    ) -> Option<Limit> {
        let room = |limit: Option<u64>, used: u64, reserved: u64, more: u64| {
            limit.is_none_or(|l| {
                used.checked_add(reserved)
                    .and_then(|sum| sum.checked_add(more))
                    .is_some_and(|sum| sum <= l)
            })
        };
        let of_tool = self.per_tool.get(tool).copied();
        if !room(of_tool, used.calls_of(tool), reserved.calls_of(tool), 1) {
            Some(Limit::PerTool)
        } else if !room(self.tool_calls, used.tool_calls, reserved.tool_calls, 1) {
            Some(Limit::ToolCalls)
        } else if !room(
            self.cost_nano,
            used.cost_nano,
            reserved.cost_nano,
            cost_nano,
        ) {
            Some(Limit::Cost)
        } else if self.active_ms.is_some_and(|l| used.active_ms >= l) {
            Some(Limit::Seconds)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_none_and_absent_is_unlimited() {
        let used = Used::default();
        let none = |set: fn(&mut Limits)| {
            let mut limits = Limits::default();
            set(&mut limits);
            limits
        };
        assert_eq!(Limits::default().before_plan(&used), None);
        assert_eq!(
            none(|l| l.steps = Some(0)).before_plan(&used),
            Some(Limit::Steps)
        );
        assert_eq!(
            none(|l| l.tokens = Some(0)).before_plan(&used),
            Some(Limit::Tokens)
        );
        assert_eq!(
            none(|l| l.active_ms = Some(0)).before_plan(&used),
            Some(Limit::Seconds)
        );
        let call = |l: &Limits, cost| l.before_call(&used, &used, "t", cost);
        assert_eq!(call(&Limits::default(), u64::MAX), None);
        assert_eq!(
            call(&none(|l| l.tool_calls = Some(0)), 0),
            Some(Limit::ToolCalls)
        );
        assert_eq!(call(&none(|l| l.cost_nano = Some(0)), 1), Some(Limit::Cost));
        assert_eq!(call(&none(|l| l.cost_nano = Some(0)), 0), None);
        let one = none(|l| {
            l.per_tool.insert("t".to_owned(), 0);
        });
        assert_eq!(call(&one, 0), Some(Limit::PerTool));
        assert_eq!(one.before_call(&used, &used, "u", 0), None);
    }

    #[test]
    fn a_reservation_counts_and_a_sum_never_wraps() {
        let limits = Limits {
            tool_calls: Some(2),
            cost_nano: Some(u64::MAX - 1),
            ..Limits::default()
        };
        let mut used = Used::default();
        used.charge_call("t", u64::MAX);
        assert_eq!(limits.after_plan(&used), Some(Limit::Cost));
        let mut reserved = Used::default();
        reserved.charge_call("t", 0);
        let fresh = Used::default();
        assert_eq!(limits.before_call(&fresh, &reserved, "t", 0), None);
        assert_eq!(
            limits.before_call(&used, &reserved, "t", 0),
            Some(Limit::ToolCalls)
        );
        assert_eq!(
            limits.before_call(&fresh, &fresh, "t", u64::MAX),
            Some(Limit::Cost)
        );
    }
}
