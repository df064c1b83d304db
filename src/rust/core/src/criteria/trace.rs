//! A trajectory as the criteria look at it: facts that several need are found
//! once.

use super::arguments::{same_json, value};
use crate::canon;
use crate::trajectory::{Step, StepKind, Trajectory};
use std::cell::OnceCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// A trajectory and what was found in it.
pub struct Trace<'a> {
    record: &'a Trajectory<'a>,
    calls: Vec<(u64, &'a Step<'a>)>,
    repeat: OnceCell<Repeat>,
    route: OnceCell<Option<Vec<&'a str>>>,
}

/// The longest run of equal adjacent calls: its length, and the position of its
/// first call among the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Repeat {
    pub(crate) longest: u64,
    pub(crate) first: usize,
}

impl<'a> Trace<'a> {
    /// Looks at a record.
    pub fn new(record: &'a Trajectory<'a>) -> Self {
        let calls = record
            .calls()
            .map(|(position, step)| (position as u64 + 1, step))
            .collect();
        Self {
            record,
            calls,
            repeat: OnceCell::new(),
            route: OnceCell::new(),
        }
    }

    /// The record.
    pub fn record(&self) -> &'a Trajectory<'a> {
        self.record
    }

    /// How many steps.
    pub fn steps(&self) -> u64 {
        self.record.steps.len() as u64
    }

    /// Whether it is a prefix.
    pub fn truncated(&self) -> bool {
        self.record.truncated
    }

    /// The tool calls with their step index.
    pub fn calls(&self) -> &[(u64, &'a Step<'a>)] {
        &self.calls
    }

    /// The name of the tool of a call.
    pub(crate) fn tool(&self, call: usize) -> &'a str {
        self.calls
            .get(call)
            .and_then(|(_, step)| step.tool.as_deref())
            .unwrap_or_default()
    }

    /// The names of the called tools, in order.
    pub(crate) fn called(&self) -> impl Iterator<Item = &'a str> + '_ {
        (0..self.calls.len()).map(|call| self.tool(call))
    }

    /// The route, where the steps name their agents.
    pub(crate) fn route(&self) -> Option<&[&'a str]> {
        self.route.get_or_init(|| self.record.route()).as_deref()
    }

    /// The longest run of calls with equal tool and arguments.
    pub(crate) fn repeat(&self) -> Repeat {
        *self.repeat.get_or_init(|| {
            self.longest_run(|a, b| {
                let (a, b) = (self.calls[a].1, self.calls[b].1);
                a.tool == b.tool && same_json(a.arguments, b.arguments)
            })
        })
    }

    /// The longest run of calls that also came back with equal results: a call
    /// repeated with changing results is polling, not a loop.
    pub(crate) fn repeat_with_result(&self) -> Repeat {
        let results = self.results();
        self.longest_run(|i, j| {
            let (a, b) = (self.calls[i].1, self.calls[j].1);
            a.tool == b.tool
                && same_json(a.arguments, b.arguments)
                && same_json(results[i].0, results[j].0)
                && results[i].1 == results[j].1
        })
    }

    /// Calls that were made in parallel stand side by side and carry the same
    /// `metadata.batch`: ranges over the calls, in order, and whether each is a
    /// batch.
    pub(crate) fn batches(&self) -> Vec<(Range<usize>, bool)> {
        let mut batches: Vec<(Range<usize>, bool)> = Vec::new();
        let mut last: Option<String> = None;
        for (position, (_, step)) in self.calls.iter().enumerate() {
            let batch = batch_of(step.metadata);
            match batches.last_mut() {
                Some((range, _)) if batch.is_some() && batch == last => range.end = position + 1,
                _ => batches.push((position..position + 1, batch.is_some())),
            }
            last = batch;
        }
        batches
    }

    fn longest_run(&self, equal: impl Fn(usize, usize) -> bool) -> Repeat {
        let mut longest = Repeat::default();
        let mut start = 0;
        for call in 0..self.calls.len() {
            if call > 0 && !equal(call - 1, call) {
                start = call;
            }
            let length = (call - start + 1) as u64;
            if length > longest.longest {
                longest = Repeat {
                    longest: length,
                    first: start,
                };
            }
        }
        longest
    }

    /// For each call its result and error: its own, or those of the first result
    /// after it with its tool and call id that no earlier call took.
    fn results(&self) -> Vec<(&'a str, Option<&'a str>)> {
        type Key<'k> = (Option<&'k str>, Option<&'k str>);
        let mut open: BTreeMap<Key<'a>, VecDeque<usize>> = BTreeMap::new();
        let mut results = Vec::with_capacity(self.calls.len());
        for step in &self.record.steps {
            let key = (step.tool.as_deref(), step.call_id.as_deref());
            if step.kind == StepKind::ToolCall {
                if step.result == "null" && step.error.is_none() {
                    open.entry(key).or_default().push_back(results.len());
                }
                results.push((step.result, step.error.as_deref()));
            } else if step.kind == StepKind::ToolResult {
                if let Some(call) = open.get_mut(&key).and_then(VecDeque::pop_front) {
                    results[call] = (step.result, step.error.as_deref());
                }
            }
        }
        results
    }
}

fn batch_of(metadata: &str) -> Option<String> {
    if !metadata.contains("batch") {
        return None;
    }
    let batch = value(metadata)?.get("batch")?.clone();
    (!batch.is_null()).then(|| canon::to_string(&batch))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trace in short: calls and results of one tool each.
    fn with<T>(steps: &[&str], look: impl FnOnce(&Trace<'_>) -> T) -> T {
        let steps: Vec<String> = steps
            .iter()
            .enumerate()
            .map(|(i, fields)| format!(r#"{{"index":{},{fields}}}"#, i + 1))
            .collect();
        let text = format!(r#"{{"steps":[{}]}}"#, steps.join(","));
        let record = Trajectory::parse(&text).expect("valid");
        look(&Trace::new(&record))
    }

    const GET: &str = r#""kind":"tool_call","tool_name":"get","arguments":{"a":1}"#;
    const GET_DOUBLE: &str = r#""kind":"tool_call","tool_name":"get","arguments":{"a":1.0}"#;
    const PUT: &str = r#""kind":"tool_call","tool_name":"put","arguments":{"a":1}"#;
    const MESSAGE: &str = r#""kind":"message""#;
    const ONE: &str = r#""kind":"tool_result","tool_name":"get","result":1"#;
    const TWO: &str = r#""kind":"tool_result","tool_name":"get","result":2"#;

    #[test]
    fn repeats_ignore_what_stands_between_calls() {
        for (steps, longest, first) in [
            (vec![], 0, 0),
            (vec![MESSAGE], 0, 0),
            (vec![GET, ONE, MESSAGE, GET_DOUBLE, TWO], 2, 0),
            (vec![PUT, GET, GET, PUT, PUT], 2, 1),
            (vec![GET, PUT, GET, PUT], 1, 0),
        ] {
            assert_eq!(
                with(&steps, |t| t.repeat()),
                Repeat { longest, first },
                "{steps:?}"
            );
        }
    }

    #[test]
    fn polling_is_told_from_a_loop_by_its_results() {
        assert_eq!(
            with(&[GET, ONE, GET, TWO, GET, ONE], |t| t
                .repeat_with_result()
                .longest),
            1
        );
        assert_eq!(
            with(&[GET, ONE, GET, ONE, GET, TWO], |t| t
                .repeat_with_result()
                .longest),
            2
        );
        assert_eq!(
            with(&[GET, GET, ONE, ONE], |t| t.repeat_with_result().longest),
            2
        );
        assert_eq!(with(&[GET, GET], |t| t.repeat_with_result().longest), 2);
    }

    #[test]
    fn batches_are_runs_of_calls_with_one_mark() {
        let marked = |tool: &str, mark: &str| {
            format!(r#""kind":"tool_call","tool_name":"{tool}","metadata":{{"batch":{mark}}}"#)
        };
        let (a, b, c) = (marked("a", "1"), marked("b", "1"), marked("c", "2"));
        let batches = with(&[&a, MESSAGE, &b, &c, GET, GET], |t| t.batches());
        assert_eq!(
            batches,
            [(0..2, true), (2..3, true), (3..4, false), (4..5, false)]
        );
    }
}
