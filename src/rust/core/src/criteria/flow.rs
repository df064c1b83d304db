//! After a call of some tools, no call of some others.

use super::trace::Trace;
use super::{config, Evidence};
use crate::declare::{Error, Fields};
use crate::verdict::Verdict;
use serde_json::{Map, Value};

/// `agent_flow`: what a flow guardrail holds, of a run that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    after: Vec<String>,
    never: Vec<String>,
}

impl Flow {
    pub(crate) fn parse(fields: &mut Fields) -> Result<Self, Error> {
        Ok(Self {
            after: some_names(fields, "after")?,
            never: some_names(fields, "never")?,
        })
    }

    pub(crate) fn config(&self) -> Map<String, Value> {
        config([
            ("after", self.after.clone().into()),
            ("never", self.never.clone().into()),
        ])
    }

    /// A prefix decides only when the rule is broken in it.
    pub(crate) fn judge(&self, trace: &Trace<'_>) -> Verdict {
        let kept = self.broken(trace).is_none();
        Verdict::decided(trace.truncated(), !kept, kept)
    }

    pub(crate) fn explain(&self, trace: &Trace<'_>) -> Evidence {
        let step = |call: usize| trace.calls().get(call).map(|(index, _)| *index);
        match self.broken(trace) {
            None => Evidence::default(),
            Some((first, call)) => Evidence::default()
                .with("after", trace.tool(first))
                .with("called", trace.tool(call))
                .at([first, call].into_iter().filter_map(step)),
        }
    }

    /// The first call of `after`, and the first of `never` that stands later in the
    /// record. Calls made in parallel count in the order of the record, which is that
    /// in which a run starts them, so that a guardrail and this agree.
    fn broken(&self, trace: &Trace<'_>) -> Option<(usize, usize)> {
        let calls = 0..trace.calls().len();
        let first = calls
            .clone()
            .find(|call| named(&self.after, trace.tool(*call)))?;
        let mut later = calls.skip(first + 1);
        let call = later.find(|call| named(&self.never, trace.tool(*call)))?;
        Some((first, call))
    }
}

fn named(names: &[String], tool: &str) -> bool {
    names.iter().any(|name| name == tool)
}

fn some_names(fields: &mut Fields, key: &'static str) -> Result<Vec<String>, Error> {
    match fields.names(key)? {
        Some(names) if !names.is_empty() => Ok(names),
        Some(_) => fields.refuse(key, "names at least one tool"),
        None => fields.missing(key),
    }
}

#[cfg(test)]
mod tests {
    use crate::criteria::testing::*;
    use serde_json::json;

    #[test]
    fn a_prefix_decides_only_when_the_rule_is_broken_in_it() {
        let rule = criterion(json!({"type": "agent_flow", "after": ["r", "q"], "never": ["s"]}));
        for (steps, want) in [
            ("", "pass"),
            ("s r", "pass"),
            ("s - r - r", "pass"),
            ("r - s", "fail"),
            ("x q s", "fail"),
            ("s r ...", TRUNCATED),
            ("r s ...", "fail"),
        ] {
            assert_eq!(verdict(&rule, json!(null), &record(steps)), want, "{steps}");
        }
        let (fields, steps) = evidence(&rule, json!(null), &record("s r - s s"));
        assert_eq!(
            (fields, steps),
            (json!({"after": "r", "called": "s"}), vec![2, 4])
        );
    }

    #[test]
    fn a_tool_on_both_sides_may_be_called_once() {
        let once = criterion(json!({"type": "agent_flow", "after": ["s"], "never": ["s"]}));
        assert_eq!(verdict(&once, json!(null), &record("s")), "pass");
        assert_eq!(verdict(&once, json!(null), &record("s - s")), "fail");
    }

    #[test]
    fn calls_made_in_parallel_count_in_their_order() {
        let rule = criterion(json!({"type": "agent_flow", "after": ["r"], "never": ["s"]}));
        let call = |i: u64, tool: &str| json!({"index": i, "kind": "tool_call", "tool_name": tool, "metadata": {"batch": 1}});
        let record = |a, b| json!({"steps": [call(1, a), call(2, b)]}).to_string();
        assert_eq!(verdict(&rule, json!(null), &record("r", "s")), "fail");
        assert_eq!(verdict(&rule, json!(null), &record("s", "r")), "pass");
    }
}
