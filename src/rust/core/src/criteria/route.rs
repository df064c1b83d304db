//! The task went through the agents that the case declares.

use super::trace::Trace;
use super::{first_divergence, Evidence};
use crate::verdict::{Reason, Verdict};

pub(crate) fn judge(declared: &[String], trace: &Trace<'_>) -> Verdict {
    let Some(route) = trace.route() else {
        return Verdict::Missing(Reason::NoAgentIdentity);
    };
    let common = route.len() <= declared.len() && route.iter().zip(declared).all(|(a, b)| a == b);
    Verdict::decided(
        trace.truncated(),
        !common,
        common && route.len() == declared.len(),
    )
}

pub(crate) fn explain(declared: &[String], trace: &Trace<'_>) -> Evidence {
    let route = trace.route().unwrap_or_default();
    let divergence = first_divergence(declared, route, |a, b| a == b);
    Evidence::default()
        .with("declared", declared.to_vec())
        .with("route", route.to_vec())
        .with("first_divergence", divergence)
        .at(divergence.and_then(|entry| step_of(entry, trace)))
}

/// The step that added an entry of the route.
fn step_of(entry: usize, trace: &Trace<'_>) -> Option<u64> {
    let mut added = 0;
    let mut last = None;
    for (position, step) in trace.record().steps.iter().enumerate() {
        for name in [&step.agent, &step.to_agent].into_iter().flatten() {
            if last != Some(name) {
                if added == entry {
                    return Some(position as u64 + 1);
                }
                added += 1;
                last = Some(name);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::criteria::testing::*;
    use serde_json::json;

    #[test]
    fn a_prefix_of_the_declared_route_decides_nothing() {
        let route = criterion(json!({"type": "agent_route"}));
        let declared = json!({"route": ["x", "y", "x"]});
        for (steps, want) in [
            ("x:a x>y y:b y>x", "pass"),
            ("x:a x>y y:b", "fail"),
            ("x>y y>x x>z", "fail"),
            ("x>y x:-", "pass"),
            ("", "fail"),
            ("...", TRUNCATED),
            ("x:a x>y ...", TRUNCATED),
            ("x>y y>x ...", TRUNCATED),
            ("x>z ...", "fail"),
            ("a", "no_agent_identity"),
            ("a ...", "no_agent_identity"),
        ] {
            assert_eq!(
                verdict(&route, declared.clone(), &record(steps)),
                want,
                "{steps}"
            );
        }
        assert_eq!(
            verdict(&route, json!({}), &record("a")),
            "no_declared_route"
        );
    }

    #[test]
    fn evidence_names_the_step_that_left_the_route() {
        let route = criterion(json!({"type": "agent_route"}));
        let found = evidence(&route, json!({"route": ["x", "y"]}), &record("x:a x>z z:b"));
        let want = json!({"declared": ["x", "y"], "route": ["x", "z"], "first_divergence": 1});
        assert_eq!(found, (want, vec![2]));
    }
}
