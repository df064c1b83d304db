//! No tool beyond those that the case declares.

use super::arguments::ToolRef;
use super::trace::Trace;
use super::Evidence;
use crate::verdict::Verdict;
use std::collections::BTreeSet;

pub(crate) fn judge(declared: &[ToolRef], trace: &Trace<'_>) -> Verdict {
    let clean = trace.called().all(|name| is_declared(declared, name));
    Verdict::decided(trace.truncated(), !clean, clean)
}

pub(crate) fn explain(declared: &[ToolRef], trace: &Trace<'_>) -> Evidence {
    let called: BTreeSet<&str> = trace.called().collect();
    let undeclared: Vec<&str> = called
        .into_iter()
        .filter(|name| !is_declared(declared, name))
        .collect();
    let names: BTreeSet<&str> = declared.iter().map(|tool| tool.name.as_str()).collect();
    let steps = trace.calls().iter().enumerate();
    let steps = steps.filter(|&(call, _)| undeclared.contains(&trace.tool(call)));
    let steps: Vec<u64> = steps.map(|(_, (index, _))| *index).collect();
    Evidence::default()
        .with("undeclared", undeclared)
        .with("declared", names.into_iter().collect::<Vec<_>>())
        .at(steps)
}

fn is_declared(declared: &[ToolRef], name: &str) -> bool {
    declared.iter().any(|tool| tool.name == name)
}

#[cfg(test)]
mod tests {
    use crate::criteria::testing::*;
    use serde_json::json;

    #[test]
    fn absent_and_empty_declarations_differ() {
        let none = criterion(json!({"type": "agent_no_undeclared_tool"}));
        for (tools, steps, want) in [
            (json!({}), "a", "no_declared_tools"),
            (json!({"tools": []}), "-", "pass"),
            (json!({"tools": []}), "a", "fail"),
            (json!({"tools": ["a", "a"]}), "a a a", "pass"),
            (json!({"tools": ["a"]}), "a ...", TRUNCATED),
            (json!({"tools": ["a"]}), "a b ...", "fail"),
        ] {
            assert_eq!(verdict(&none, tools, &record(steps)), want, "{steps}");
        }
        let found = evidence(&none, json!({"tools": ["z", "a"]}), &record("c - b a c"));
        let want = json!({"undeclared": ["b", "c"], "declared": ["a", "z"]});
        assert_eq!(found, (want, vec![1, 3, 5]));
    }
}
