//! A tool was called, at least so often.

use super::trace::Trace;
use super::{config, Evidence};
use crate::declare::{Error, Fields};
use crate::verdict::Verdict;
use serde_json::{Map, Value};

/// `agent_tool_called`.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCalled {
    tool_name: String,
    min_calls: u64,
}

impl ToolCalled {
    pub(crate) fn parse(fields: &mut Fields) -> Result<Self, Error> {
        Ok(Self {
            tool_name: fields.required_name("tool_name")?,
            min_calls: fields.count("min_calls", 1)?.unwrap_or(1),
        })
    }

    /// Runs of other characters become one `_`.
    pub(crate) fn default_name(&self) -> String {
        let words: Vec<&str> = self
            .tool_name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        let slug = words.join("_").to_ascii_lowercase();
        let slug = if slug.is_empty() { "tool" } else { &slug };
        format!("agent_tool_{slug}_called")
    }

    pub(crate) fn config(&self) -> Map<String, Value> {
        config([
            ("tool_name", self.tool_name.as_str().into()),
            ("min_calls", self.min_calls.into()),
        ])
    }

    pub(crate) fn judge(&self, trace: &Trace<'_>) -> Verdict {
        let calls = trace.called().filter(|name| *name == self.tool_name);
        let enough = calls.count() as u64 >= self.min_calls;
        Verdict::decided(trace.truncated(), enough, enough)
    }

    pub(crate) fn explain(&self, trace: &Trace<'_>) -> Evidence {
        let calls = trace.calls().iter();
        let ours = calls.filter(|(_, step)| step.tool.as_deref() == Some(&self.tool_name));
        let steps: Vec<u64> = ours.map(|(index, _)| *index).collect();
        Evidence::default().with("calls", steps.len()).at(steps)
    }
}

#[cfg(test)]
mod tests {
    use crate::criteria::testing::*;
    use serde_json::json;

    #[test]
    fn a_prefix_decides_only_when_it_has_enough_calls() {
        let once = criterion(json!({"type": "agent_tool_called", "tool_name": "a"}));
        let twice =
            criterion(json!({"type": "agent_tool_called", "tool_name": "a", "min_calls": 2}));
        for (steps, one, two) in [
            ("", "fail", "fail"),
            ("b A", "fail", "fail"),
            ("b a", "pass", "fail"),
            ("a - a", "pass", "pass"),
            ("...", TRUNCATED, TRUNCATED),
            ("a ...", "pass", TRUNCATED),
            ("a a ...", "pass", "pass"),
        ] {
            assert_eq!(verdict(&once, json!(null), &record(steps)), one, "{steps}");
            assert_eq!(verdict(&twice, json!(null), &record(steps)), two, "{steps}");
        }
        let found = evidence(&once, json!(null), &record("a - a"));
        assert_eq!(found, (json!({"calls": 2}), vec![1, 3]));
    }

    #[test]
    fn the_default_name_keeps_letters_and_digits() {
        for (tool, name) in [
            ("Lookup Order!", "agent_tool_lookup_order_called"),
            ("__a--b__", "agent_tool_a_b_called"),
            ("検索", "agent_tool_tool_called"),
            ("naïve", "agent_tool_na_ve_called"),
        ] {
            let called = criterion(json!({"type": "agent_tool_called", "tool_name": tool}));
            assert_eq!(called.default_name().as_deref(), Some(name));
        }
    }
}
