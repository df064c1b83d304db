//! Each agent called only the tools that it may call.

use super::trace::Trace;
use super::{config, Evidence};
use crate::declare::{names, Error, Fields};
use crate::verdict::{Reason, Verdict};
use serde_json::{json, Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// `agent_tool_permissions`: an agent that is not named may call nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolPermissions {
    permissions: BTreeMap<String, BTreeSet<String>>,
}

impl ToolPermissions {
    pub(crate) fn parse(fields: &mut Fields) -> Result<Self, Error> {
        const RULE: &str =
            "`permissions` must map agent names to arrays of tool names, none of them empty";
        let Some(value) = fields.take("permissions") else {
            return fields.missing("permissions");
        };
        let map = value.as_object().filter(|map| !map.is_empty());
        let entries = map.into_iter().flatten().map(|(agent, tools)| {
            let tools = names(tools).filter(|_| !agent.is_empty())?;
            Some((agent.clone(), tools.into_iter().collect()))
        });
        match entries.collect::<Option<BTreeMap<_, _>>>() {
            Some(permissions) if !permissions.is_empty() => Ok(Self { permissions }),
            _ => fields.refuse("permissions", RULE),
        }
    }

    pub(crate) fn config(&self) -> Map<String, Value> {
        config([("permissions", json!(self.permissions))])
    }

    pub(crate) fn judge(&self, trace: &Trace<'_>) -> Verdict {
        if trace.route().is_none() {
            return Verdict::Missing(Reason::NoAgentIdentity);
        }
        let clean = self.violations(trace).next().is_none();
        Verdict::decided(trace.truncated(), !clean, clean)
    }

    pub(crate) fn explain(&self, trace: &Trace<'_>) -> Evidence {
        let violations: Vec<Value> = self
            .violations(trace)
            .map(|(step, agent, tool)| json!({"step": step, "agent": agent, "tool": tool}))
            .collect();
        Evidence::default()
            .with("violations", violations)
            .at(self.violations(trace).map(|(step, _, _)| step))
    }

    fn violations<'t>(
        &'t self,
        trace: &'t Trace<'_>,
    ) -> impl Iterator<Item = (u64, &'t str, &'t str)> {
        trace.calls().iter().filter_map(|(index, step)| {
            let agent = step.agent.as_deref().unwrap_or_default();
            let tool = step.tool.as_deref().unwrap_or_default();
            let allowed = self
                .permissions
                .get(agent)
                .is_some_and(|tools| tools.contains(tool));
            (!allowed).then_some((*index, agent, tool))
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::criteria::testing::*;
    use serde_json::json;

    #[test]
    fn any_violation_fails_and_a_clean_prefix_decides_nothing() {
        let may = criterion(json!({
            "type": "agent_tool_permissions", "permissions": {"x": ["a"], "y": []}
        }));
        for (steps, want) in [
            ("", "pass"),
            ("x:a x>y y:-", "pass"),
            ("x:a x>y y:a", "fail"),
            ("x:a ...", TRUNCATED),
            ("x:b ...", "fail"),
            ("z:a", "fail"),
            ("a", "no_agent_identity"),
            ("...", TRUNCATED),
        ] {
            assert_eq!(verdict(&may, json!(null), &record(steps)), want, "{steps}");
        }
        let found = evidence(&may, json!(null), &record("x:a z:a y:b"));
        let want = json!({"violations": [
            {"step": 2, "agent": "z", "tool": "a"}, {"step": 3, "agent": "y", "tool": "b"}
        ]});
        assert_eq!(found, (want, vec![2, 3]));
    }
}
