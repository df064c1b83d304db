//! No call repeated more than so often in a row.

use super::arguments::value;
use super::trace::{Repeat, Trace};
use super::{config, Evidence};
use crate::declare::{Error, Fields};
use crate::verdict::Verdict;
use serde_json::{Map, Value};

/// `agent_no_tool_loop`.
#[derive(Debug, Clone, PartialEq)]
pub struct NoToolLoop {
    max_repeats: u64,
    equal: Equal,
}

/// When one call repeats another.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Equal {
    Call,
    CallAndResult,
}

impl NoToolLoop {
    pub(crate) fn parse(fields: &mut Fields) -> Result<Self, Error> {
        let same_result = fields.flag("same_result")?.unwrap_or(false);
        Ok(Self {
            max_repeats: fields.count("max_repeats", 1)?.unwrap_or(2),
            equal: if same_result {
                Equal::CallAndResult
            } else {
                Equal::Call
            },
        })
    }

    pub(crate) fn config(&self) -> Map<String, Value> {
        config([
            ("max_repeats", self.max_repeats.into()),
            ("same_result", (self.equal == Equal::CallAndResult).into()),
        ])
    }

    pub(crate) fn judge(&self, trace: &Trace<'_>) -> Verdict {
        let within = self.repeat(trace).longest <= self.max_repeats;
        Verdict::decided(trace.truncated(), !within, within)
    }

    pub(crate) fn explain(&self, trace: &Trace<'_>) -> Evidence {
        let repeat = self.repeat(trace);
        let found = Evidence::default().with("longest_repeat", repeat.longest);
        let run = trace.calls().iter().skip(repeat.first);
        let run: Vec<_> = run.take(repeat.longest as usize).collect();
        match run.first() {
            None => found,
            Some((_, call)) => found
                .with("repeated_tool", trace.tool(repeat.first))
                .with(
                    "repeated_arguments",
                    value(call.arguments).unwrap_or_default(),
                )
                .at(run.iter().map(|(index, _)| *index)),
        }
    }

    fn repeat(&self, trace: &Trace<'_>) -> Repeat {
        match self.equal {
            Equal::Call => trace.repeat(),
            Equal::CallAndResult => trace.repeat_with_result(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::criteria::testing::*;
    use serde_json::json;

    #[test]
    fn a_prefix_decides_only_when_it_loops() {
        let twice = criterion(json!({"type": "agent_no_tool_loop"}));
        for (steps, want) in [
            ("", "pass"),
            ("- -", "pass"),
            ("a - a b a", "pass"),
            ("a - a b a ...", TRUNCATED),
            ("a - a - a", "fail"),
            ("b a a a ...", "fail"),
        ] {
            assert_eq!(
                verdict(&twice, json!(null), &record(steps)),
                want,
                "{steps}"
            );
        }
    }

    #[test]
    fn the_first_longest_run_is_the_evidence() {
        let twice = criterion(json!({"type": "agent_no_tool_loop"}));
        let (fields, steps) = evidence(&twice, json!(null), &record("a b - b c c"));
        let want = json!({"longest_repeat": 2, "repeated_tool": "b", "repeated_arguments": null});
        assert_eq!((fields, steps), (want, vec![2, 4]));
        let (fields, steps) = evidence(&twice, json!(null), &record("-"));
        assert_eq!((fields, steps), (json!({"longest_repeat": 0}), vec![]));
    }

    #[test]
    fn with_same_result_polling_is_no_loop() {
        let polls = |results: &[u64]| {
            let steps: Vec<String> = results
                .iter()
                .enumerate()
                .map(|(i, r)| {
                    let (call, result) = (2 * i + 1, 2 * i + 2);
                    format!(
                        r#"{{"index":{call},"kind":"tool_call","tool_name":"s"}},
                           {{"index":{result},"kind":"tool_result","tool_name":"s","result":{r}}}"#
                    )
                })
                .collect();
            format!(r#"{{"steps":[{}]}}"#, steps.join(","))
        };
        let call = criterion(json!({"type": "agent_no_tool_loop"}));
        let both = criterion(json!({"type": "agent_no_tool_loop", "same_result": true}));
        assert_eq!(
            verdict(&call, json!(null), &polls(&[1, 2, 3, 4, 5])),
            "fail"
        );
        assert_eq!(
            verdict(&both, json!(null), &polls(&[1, 2, 3, 4, 5])),
            "pass"
        );
        assert_eq!(
            verdict(&both, json!(null), &polls(&[1, 1, 1, 1, 1])),
            "fail"
        );
    }
}
