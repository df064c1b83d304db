//! The declared tools were called: in order, in any order, at most, at least.

use super::arguments::{contained, value, ToolRef};
use super::matching::pairing;
use super::trace::Trace;
use super::{config, first_divergence, Evidence};
use crate::canon;
use crate::declare::{Error, Fields};
use crate::verdict::Verdict;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// `agent_tool_sequence`.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSequence {
    order: Match,
    arguments: Arguments,
}

/// How the called tools must relate to the declared ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    Exact,
    Subset,
    Superset,
    Unordered,
}

/// Whether declared arguments are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arguments {
    Exact,
    Ignore,
    Subset,
}

const MATCHES: [(&str, Match); 4] = [
    ("exact", Match::Exact),
    ("unordered", Match::Unordered),
    ("subset", Match::Subset),
    ("superset", Match::Superset),
];

const ARGUMENTS: [(&str, Arguments); 3] = [
    ("ignore", Arguments::Ignore),
    ("exact", Arguments::Exact),
    ("subset", Arguments::Subset),
];

impl ToolSequence {
    pub(crate) fn parse(fields: &mut Fields) -> Result<Self, Error> {
        let ordered = fields.flag("ordered")?.map(|ordered| match ordered {
            true => Match::Exact,
            false => Match::Unordered,
        });
        let order = fields.choice("match", &MATCHES)?;
        if ordered.is_some() && order.is_some() && ordered != order {
            return fields.refuse("ordered", "`ordered` must agree with `match`");
        }
        let arguments = fields.choice("arguments", &ARGUMENTS)?;
        Ok(Self {
            order: order.or(ordered).unwrap_or(Match::Exact),
            arguments: arguments.unwrap_or(Arguments::Ignore),
        })
    }

    pub(crate) fn config(&self) -> Map<String, Value> {
        let word = |order| MATCHES.iter().find(|(_, m)| *m == order).map(|(w, _)| *w);
        let arguments = ARGUMENTS.iter().find(|(_, a)| *a == self.arguments);
        let mut config = config([
            ("match", word(self.order).into()),
            ("arguments", arguments.map(|(word, _)| *word).into()),
        ]);
        if let Some(ordered) = self.ordered() {
            config.insert("ordered".to_owned(), ordered.into());
        }
        config
    }

    pub(crate) fn judge(&self, declared: &[ToolRef], trace: &Trace<'_>) -> Verdict {
        let truncated = trace.truncated();
        if self.order == Match::Exact {
            let agrees = self.divergence(declared, trace).is_none();
            let met = agrees && trace.calls().len() == declared.len();
            return Verdict::decided(truncated, !agrees, met);
        }
        let left = self.left_over(declared, trace);
        let (no_extra, none_missing) = (left.calls.is_empty(), left.declared.is_empty());
        match self.order {
            Match::Superset => Verdict::decided(truncated, none_missing, none_missing),
            Match::Subset => Verdict::decided(truncated, !no_extra, no_extra),
            Match::Exact | Match::Unordered => {
                Verdict::decided(truncated, !no_extra, no_extra && none_missing)
            }
        }
    }

    pub(crate) fn explain(&self, declared: &[ToolRef], trace: &Trace<'_>) -> Evidence {
        let left = self.left_over(declared, trace);
        let missing: Vec<&str> = left.declared.iter().map(|&i| &*declared[i].name).collect();
        let extra = trace.calls().len().saturating_sub(declared.len());
        let names: Vec<&str> = declared.iter().map(|tool| tool.name.as_str()).collect();
        let mut found = Evidence::default()
            .with("declared", names)
            .with("called", trace.called().collect::<Vec<_>>())
            .with("extra_calls", extra)
            .with("missing_calls", missing);
        found = match self.ordered() {
            Some(ordered) => found.with("ordered", ordered),
            None => found.with("match", self.config().remove("match")),
        };
        if self.arguments != Arguments::Ignore {
            found = found.with("arguments", self.config().remove("arguments"));
        }
        let divergence = match self.order {
            Match::Exact => self.full_divergence(declared, trace),
            Match::Subset | Match::Superset | Match::Unordered => None,
        };
        let step = |call: usize| trace.calls().get(call).map(|(index, _)| *index);
        let steps: Vec<u64> = match self.order {
            Match::Exact => divergence.and_then(step).into_iter().collect(),
            Match::Superset => Vec::new(),
            Match::Subset | Match::Unordered => {
                left.calls.iter().filter_map(|&call| step(call)).collect()
            }
        };
        found.with("first_divergence", divergence).at(steps)
    }

    /// The two modes that have an older spelling.
    fn ordered(&self) -> Option<bool> {
        match self.order {
            Match::Exact => Some(true),
            Match::Unordered => Some(false),
            Match::Subset | Match::Superset => None,
        }
    }

    /// Where the calls leave the declared order, read as a prefix of it: calls
    /// that were made in parallel are a set. A batch that may have been cut
    /// must only be found among what is still declared.
    fn divergence(&self, declared: &[ToolRef], trace: &Trace<'_>) -> Option<usize> {
        let batches = trace.batches();
        let last = batches.len().saturating_sub(1);
        for (position, (calls, batch)) in batches.into_iter().enumerate() {
            let open = trace.truncated() && batch && position == last;
            let end = if open { declared.len() } else { calls.end };
            let fits = declared
                .get(calls.start..end)
                .is_some_and(|window| self.fits(&calls, window, trace));
            if !fits {
                return Some(calls.start);
            }
        }
        None
    }

    fn full_divergence(&self, declared: &[ToolRef], trace: &Trace<'_>) -> Option<usize> {
        if trace.batches().iter().any(|(calls, _)| calls.len() > 1) {
            let calls = trace.calls().len();
            let short = (calls < declared.len()).then_some(calls);
            return self.divergence(declared, trace).or(short);
        }
        let calls: Vec<usize> = (0..trace.calls().len()).collect();
        first_divergence(declared, &calls, |tool, &call| {
            self.pairs(tool, call, trace)
        })
    }

    /// Whether each of these calls has its own entry in the window.
    fn fits(&self, calls: &Range<usize>, window: &[ToolRef], trace: &Trace<'_>) -> bool {
        if let ([tool], 1) = (window, calls.len()) {
            return self.pairs(tool, calls.start, trace);
        }
        let partner = pairing(calls.len(), window.len(), |call, entry| {
            self.pairs(&window[entry], calls.start + call, trace)
        });
        partner.iter().flatten().count() == calls.len()
    }

    fn pairs(&self, tool: &ToolRef, call: usize, trace: &Trace<'_>) -> bool {
        if tool.name != trace.tool(call) {
            return false;
        }
        let wanted = match (&tool.arguments, self.arguments) {
            (None, _) | (_, Arguments::Ignore) => return true,
            (Some(wanted), _) => wanted,
        };
        let Some(made) = trace
            .calls()
            .get(call)
            .and_then(|(_, step)| value(step.arguments))
        else {
            return false;
        };
        match self.arguments {
            Arguments::Ignore => true,
            Arguments::Exact => canon::same(wanted, &made),
            Arguments::Subset => contained(wanted, &made),
        }
    }

    /// What a largest pairing leaves over on either side.
    fn left_over(&self, declared: &[ToolRef], trace: &Trace<'_>) -> LeftOver {
        let by_name = self.arguments == Arguments::Ignore
            || declared.iter().all(|tool| tool.arguments.is_none());
        if by_name {
            return by_names(declared, trace);
        }
        let calls = trace.calls().len();
        let partner = pairing(calls, declared.len(), |call, entry| {
            self.pairs(&declared[entry], call, trace)
        });
        let mut paired = vec![false; calls];
        partner
            .iter()
            .flatten()
            .for_each(|&call| paired[call] = true);
        LeftOver {
            calls: (0..calls).filter(|&call| !paired[call]).collect(),
            declared: (0..declared.len())
                .filter(|&i| partner[i].is_none())
                .collect(),
        }
    }
}

/// Positions without a partner.
#[derive(Debug, Default)]
struct LeftOver {
    calls: Vec<usize>,
    declared: Vec<usize>,
}

/// By name alone every choice is as good: each call takes its first entry.
fn by_names(declared: &[ToolRef], trace: &Trace<'_>) -> LeftOver {
    let mut open: BTreeMap<&str, VecDeque<usize>> = BTreeMap::new();
    for (entry, tool) in declared.iter().enumerate() {
        open.entry(&tool.name).or_default().push_back(entry);
    }
    let mut left = LeftOver::default();
    for call in 0..trace.calls().len() {
        let entry = open.get_mut(trace.tool(call)).and_then(VecDeque::pop_front);
        if entry.is_none() {
            left.calls.push(call);
        }
    }
    left.declared = open.into_values().flatten().collect();
    left.declared.sort_unstable();
    left
}

#[cfg(test)]
mod tests {
    use crate::criteria::testing::*;
    use serde_json::{json, Value};

    fn sequence(mode: &str) -> crate::criteria::Criterion {
        criterion(json!({"type": "agent_tool_sequence", "match": mode}))
    }

    #[test]
    fn the_four_modes() {
        const CUT: &str = TRUNCATED;
        for (tools, steps, exact, unordered, subset, superset) in [
            ("", "", "pass", "pass", "pass", "pass"),
            ("", "- -", "pass", "pass", "pass", "pass"),
            ("", "a", "fail", "fail", "fail", "pass"),
            ("a b", "a - b", "pass", "pass", "pass", "pass"),
            ("a b", "b a", "fail", "pass", "pass", "pass"),
            ("a b", "a", "fail", "fail", "pass", "fail"),
            ("a b", "a b b", "fail", "fail", "fail", "pass"),
            ("a a", "a", "fail", "fail", "pass", "fail"),
            ("a a", "a a", "pass", "pass", "pass", "pass"),
            ("a b", "...", CUT, CUT, CUT, CUT),
            ("a b", "a b ...", CUT, CUT, CUT, "pass"),
            ("a b", "b ...", "fail", CUT, CUT, CUT),
            ("a b", "a b c ...", "fail", "fail", "fail", "pass"),
            ("a b", "c ...", "fail", "fail", "fail", CUT),
        ] {
            let tools: Vec<&str> = tools.split_whitespace().collect();
            for (mode, want) in [
                ("exact", exact),
                ("unordered", unordered),
                ("subset", subset),
                ("superset", superset),
            ] {
                let found = verdict(&sequence(mode), json!({"tools": tools}), &record(steps));
                assert_eq!(found, want, "{mode}: {tools:?} {steps}");
            }
        }
    }

    #[test]
    fn evidence_of_an_ordered_match() {
        let found = evidence(
            &sequence("exact"),
            json!({"tools": ["a", "b", "a"]}),
            &record("a c"),
        );
        let want = json!({
            "declared": ["a", "b", "a"], "called": ["a", "c"], "ordered": true,
            "first_divergence": 1, "extra_calls": 0, "missing_calls": ["b", "a"]
        });
        assert_eq!(found, (want, vec![2]));
    }

    /// Calls of `f` with these arguments, each in the batch given, if any.
    fn calls(calls: &[(Value, Option<u64>)]) -> String {
        let steps: Vec<Value> = calls
            .iter()
            .enumerate()
            .map(|(i, (arguments, batch))| {
                json!({
                    "index": i + 1, "kind": "tool_call", "tool_name": "f",
                    "arguments": arguments, "metadata": {"batch": batch}
                })
            })
            .collect();
        json!({"steps": steps}).to_string()
    }

    #[test]
    fn pairing_with_arguments_is_optimal() {
        let mode = |order: &str, arguments: &str| {
            criterion(
                json!({"type": "agent_tool_sequence", "match": order, "arguments": arguments}),
            )
        };
        // The first entry fits both calls, the second only the first call.
        let declared = json!({"tools": [
            {"name": "f", "arguments": {}}, {"name": "f", "arguments": {"q": 1}}
        ]});
        let made = calls(&[(json!({"q": 1.0, "p": 2}), None), (json!({"z": 0}), None)]);
        assert_eq!(
            verdict(&mode("unordered", "subset"), declared.clone(), &made),
            "pass"
        );
        assert_eq!(
            verdict(&mode("exact", "subset"), declared.clone(), &made),
            "fail"
        );
        assert_eq!(
            verdict(&mode("unordered", "exact"), declared.clone(), &made),
            "fail"
        );
        assert_eq!(verdict(&mode("exact", "ignore"), declared, &made), "pass");
        let equal = json!({"tools": [{"name": "f", "arguments": {"q": 1, "p": 2}}, "f"]});
        assert_eq!(verdict(&mode("exact", "exact"), equal, &made), "pass");
    }

    #[test]
    fn parallel_calls_are_a_set() {
        let exact = criterion(json!({"type": "agent_tool_sequence", "arguments": "exact"}));
        let entry = |q: u64| json!({"name": "f", "arguments": {"q": q}});
        let declared = json!({"tools": [entry(1), entry(2), entry(3)]});
        let made = |order: [u64; 3], batch: [Option<u64>; 3]| {
            let made: Vec<_> = order
                .iter()
                .zip(batch)
                .map(|(q, b)| (json!({"q": q}), b))
                .collect();
            calls(&made)
        };
        for (order, batch, want) in [
            ([1, 2, 3], [None, None, None], "pass"),
            ([2, 1, 3], [None, None, None], "fail"),
            ([2, 1, 3], [Some(7), Some(7), None], "pass"),
            ([2, 1, 3], [Some(7), Some(8), None], "fail"),
            ([3, 1, 2], [Some(7), Some(7), Some(7)], "pass"),
            ([3, 1, 2], [None, Some(7), Some(7)], "fail"),
        ] {
            let found = verdict(&exact, declared.clone(), &made(order, batch));
            assert_eq!(found, want, "{order:?} {batch:?}");
        }
        let cut = made([1, 3, 2], [None, Some(7), None])
            .replace("\"steps\"", "\"truncated\":true,\"steps\"");
        assert_eq!(verdict(&exact, declared.clone(), &cut), "fail");
        let open = calls(&[(json!({"q": 1}), None), (json!({"q": 3}), Some(7))])
            .replace("\"steps\"", "\"truncated\":true,\"steps\"");
        assert_eq!(verdict(&exact, declared, &open), TRUNCATED);
    }
}
