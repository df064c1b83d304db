//! At most so many steps, of any kind.

use super::trace::Trace;
use super::{config, Evidence};
use crate::declare::{Error, Fields};
use crate::verdict::Verdict;
use serde_json::{Map, Value};

/// `agent_max_steps`.
#[derive(Debug, Clone, PartialEq)]
pub struct MaxSteps {
    max_steps: u64,
}

impl MaxSteps {
    pub(crate) fn parse(fields: &mut Fields) -> Result<Self, Error> {
        let max_steps = fields.required_count("max_steps", 1)?;
        Ok(Self { max_steps })
    }

    pub(crate) fn default_name(&self) -> String {
        format!("agent_steps_le_{}", self.max_steps)
    }

    pub(crate) fn config(&self) -> Map<String, Value> {
        config([("max_steps", self.max_steps.into())])
    }

    pub(crate) fn judge(&self, trace: &Trace<'_>) -> Verdict {
        let within = trace.steps() <= self.max_steps;
        Verdict::decided(trace.truncated(), !within, within)
    }

    pub(crate) fn explain(&self, trace: &Trace<'_>) -> Evidence {
        let beyond = self.max_steps + 1..=trace.steps();
        Evidence::default()
            .with("steps", trace.steps())
            .at(beyond.take(1))
    }
}

#[cfg(test)]
mod tests {
    use crate::criteria::testing::*;
    use serde_json::json;

    #[test]
    fn a_prefix_decides_only_when_it_is_over_the_bound() {
        let two = criterion(json!({"type": "agent_max_steps", "max_steps": 2}));
        for (steps, want) in [
            ("", "pass"),
            ("- a", "pass"),
            ("- a -", "fail"),
            ("- a ...", TRUNCATED),
            ("- a - ...", "fail"),
        ] {
            assert_eq!(verdict(&two, json!(null), &record(steps)), want, "{steps}");
        }
        let (fields, steps) = evidence(&two, json!(null), &record("- a - -"));
        assert_eq!((fields, steps), (json!({"steps": 4}), vec![3]));
    }
}
