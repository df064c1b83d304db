//! At most so many transfers between agents.

use super::trace::Trace;
use super::{config, Evidence};
use crate::declare::{Error, Fields};
use crate::verdict::{Reason, Verdict};
use serde_json::{Map, Value};

/// `agent_max_handoffs`: transfers of the route, not hand-over steps.
#[derive(Debug, Clone, PartialEq)]
pub struct MaxHandoffs {
    max_handoffs: u64,
}

impl MaxHandoffs {
    pub(crate) fn parse(fields: &mut Fields) -> Result<Self, Error> {
        let max_handoffs = fields.required_count("max_handoffs", 0)?;
        Ok(Self { max_handoffs })
    }

    pub(crate) fn default_name(&self) -> String {
        format!("agent_handoffs_le_{}", self.max_handoffs)
    }

    pub(crate) fn config(&self) -> Map<String, Value> {
        config([("max_handoffs", self.max_handoffs.into())])
    }

    pub(crate) fn judge(&self, trace: &Trace<'_>) -> Verdict {
        let Some(route) = trace.route() else {
            return Verdict::Missing(Reason::NoAgentIdentity);
        };
        let within = transfers(route) <= self.max_handoffs;
        Verdict::decided(trace.truncated(), !within, within)
    }

    pub(crate) fn explain(&self, trace: &Trace<'_>) -> Evidence {
        let route = trace.route().unwrap_or_default();
        Evidence::default()
            .with("handoffs", transfers(route))
            .with("route", route.to_vec())
    }
}

fn transfers(route: &[&str]) -> u64 {
    route.len().saturating_sub(1) as u64
}

#[cfg(test)]
mod tests {
    use crate::criteria::testing::*;
    use serde_json::json;

    #[test]
    fn transfers_are_counted_on_the_route() {
        let one = criterion(json!({"type": "agent_max_handoffs", "max_handoffs": 1}));
        for (steps, want) in [
            ("", "pass"),
            ("x:- x>y y:-", "pass"),
            ("x>y x:-", "fail"),
            ("x:- y:- x:-", "fail"),
            ("x>y ...", TRUNCATED),
            ("x>y y>x ...", "fail"),
            ("-", "no_agent_identity"),
        ] {
            assert_eq!(verdict(&one, json!(null), &record(steps)), want, "{steps}");
        }
        let found = evidence(&one, json!(null), &record("x>y y>x"));
        assert_eq!(found.0, json!({"handoffs": 2, "route": ["x", "y", "x"]}));
    }
}
