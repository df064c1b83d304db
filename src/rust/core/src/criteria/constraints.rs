//! The checks that the system recorded held.

use super::trace::Trace;
use super::{config, Evidence};
use crate::declare::{Error, Fields};
use crate::trajectory::Constraint;
use crate::verdict::{Reason, Verdict};
use serde_json::{Map, Value};

/// `agent_constraints_satisfied`: an empty list asks for all recorded checks.
#[derive(Debug, Clone, PartialEq)]
pub struct Constraints {
    names: Vec<String>,
}

impl Constraints {
    pub(crate) fn parse(fields: &mut Fields) -> Result<Self, Error> {
        let names = fields.names("constraints")?.unwrap_or_default();
        Ok(Self { names })
    }

    pub(crate) fn config(&self) -> Map<String, Value> {
        config([("constraints", self.names.clone().into())])
    }

    /// Whether the record was cut plays no part: a recorded check is a fact.
    pub(crate) fn judge(&self, trace: &Trace<'_>) -> Verdict {
        let mut any = false;
        for check in self.selected(trace) {
            any = true;
            if !check.passed {
                return Verdict::Fail;
            }
        }
        let unchecked = self.missing(trace).next().is_some();
        match (any, unchecked) {
            (false, _) if self.names.is_empty() => Verdict::Excluded(Reason::NoAgentConstraints),
            (false, _) | (true, true) => Verdict::Excluded(Reason::MissingAgentConstraints),
            (true, false) => Verdict::Pass,
        }
    }

    pub(crate) fn explain(&self, trace: &Trace<'_>) -> Evidence {
        let mut checked: Vec<&str> = Vec::new();
        let mut failed: Vec<&str> = Vec::new();
        let mut failed_steps: Map<String, Value> = Map::new();
        let mut steps = Vec::new();
        for check in self.selected(trace) {
            let name: &str = &check.name;
            if !checked.contains(&name) {
                checked.push(name);
            }
            if check.passed {
                continue;
            }
            if !failed.contains(&name) {
                failed.push(name);
            }
            let list = failed_steps
                .entry(name)
                .or_insert_with(|| Value::Array(Vec::new()));
            if let (Value::Array(list), Some(step)) = (list, check.step) {
                list.push(step.into());
                steps.push(step);
            }
        }
        steps.sort_unstable();
        steps.dedup();
        Evidence::default()
            .with("checked", checked)
            .with("failed", failed)
            .with("failed_steps", failed_steps)
            .with("missing", self.missing(trace).collect::<Vec<_>>())
            .at(steps)
    }

    fn selected<'t>(&'t self, trace: &'t Trace<'_>) -> impl Iterator<Item = &'t Constraint<'t>> {
        let checks: std::slice::Iter<'t, Constraint<'t>> = trace.record().constraints.iter();
        checks.filter(|check| {
            self.names.is_empty() || self.names.iter().any(|name| *name == check.name)
        })
    }

    fn missing<'t>(&'t self, trace: &'t Trace<'_>) -> impl Iterator<Item = &'t str> {
        let checks: &'t [Constraint<'t>] = &trace.record().constraints;
        let names = self.names.iter().map(String::as_str);
        names.filter(move |name| !checks.iter().any(|check| check.name == *name))
    }
}

#[cfg(test)]
mod tests {
    use crate::criteria::testing::*;
    use serde_json::json;

    /// `a+` a check of a that passed, `a-` one that failed, `a-2` at step 2.
    fn checks(short: &str) -> String {
        let checks: Vec<String> = short
            .split_whitespace()
            .map(|word| {
                let (name, step) = word.split_at(2);
                let step = if step.is_empty() { "null" } else { step };
                let passed = name.ends_with('+');
                format!(
                    r#"{{"name":"{}","passed":{passed},"step_index":{step}}}"#,
                    &name[..1]
                )
            })
            .collect();
        format!(
            r#"{{"steps":[{{"index":1,"kind":"final"}},{{"index":2,"kind":"final"}}],
                "truncated":true,"constraints":[{}]}}"#,
            checks.join(",")
        )
    }

    #[test]
    fn selected_checks_decide() {
        let named = |names: &[&str]| {
            criterion(json!({"type": "agent_constraints_satisfied", "constraints": names}))
        };
        for (names, recorded, want) in [
            (&[][..], "", "no_agent_constraints"),
            (&[], "a+ b+", "pass"),
            (&[], "a+ b-", "fail"),
            (&["a"], "", "missing_agent_constraints"),
            (&["a"], "b-", "missing_agent_constraints"),
            (&["a", "b"], "a+", "missing_agent_constraints"),
            (&["a", "b"], "a-", "fail"),
            (&["a", "b"], "a+ b+ c-", "pass"),
            (&["a"], "a+ a- a+", "fail"),
        ] {
            let verdict = verdict(&named(names), json!(null), &checks(recorded));
            assert_eq!(verdict, want, "{names:?} {recorded}");
        }
    }

    #[test]
    fn evidence_names_checks_and_steps() {
        let named = criterion(
            json!({"type": "agent_constraints_satisfied", "constraints": ["b", "a", "x", "x"]}),
        );
        let found = evidence(&named, json!(null), &checks("a-2 b+ a-1 a- c-"));
        let want = json!({
            "checked": ["a", "b"], "failed": ["a"], "failed_steps": {"a": [2, 1]},
            "missing": ["x", "x"]
        });
        assert_eq!(found, (want, vec![1, 2]));
    }
}
