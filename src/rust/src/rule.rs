//! Release rules: a policy as JSON text, the metrics as columns.

use crate::fault::guard;
use extendr_api::prelude::*;
use serde_json::json;
use warrant_core::canon;
use warrant_core::error::Fault;
use warrant_core::rule::{
    max_verdict, min_verdict, Demand, Dependence, Extent, Facts, Gate, MetricKind, Policy,
};

// The policy with every default filled in, as JSON; its rules are checked against
// the metrics unless `ids` is empty.
#[extendr]
fn rs_policy(text: &str, ids: Vec<String>, kinds: Vec<String>) -> Robj {
    guard(|| {
        let policy = parse(text)?;
        if !ids.is_empty() {
            let known = |id: &str| ids.iter().position(|x| x == id);
            policy
                .check(|id| known(id).map(|i| kind(&kinds[i])))
                .map_err(boxed)?;
        }
        Ok(resolved(&policy))
    })
}

// The gate of a policy over the columns of metrics().
#[extendr]
fn rs_decide(text: &str, columns: List, partial: bool) -> Robj {
    guard(|| {
        let policy = parse(text)?;
        let table = Table::new(&columns);
        let extent = if partial {
            Extent::Partial
        } else {
            Extent::Complete
        };
        let gate = policy.decide(|id| table.facts(id), extent).map_err(boxed)?;
        Ok(of_gate(&gate))
    })
}

// State and reason of bounds against thresholds; `min` says which kind of rule.
#[extendr]
fn rs_bound_verdicts(lower: &[f64], upper: &[f64], threshold: &[f64], min: Logicals) -> Robj {
    guard(|| {
        let verdicts: Vec<(&str, &str)> = (0..threshold.len())
            .map(|i| {
                let verdict = if min.elt(i).is_true() {
                    min_verdict
                } else {
                    max_verdict
                };
                let (state, reason) = verdict(bound(lower, i), bound(upper, i), threshold[i]);
                (state.word(), reason)
            })
            .collect();
        let (state, reason): (Vec<_>, Vec<_>) = verdicts.into_iter().unzip();
        Ok(list!(state = state, reason = reason))
    })
}

fn parse(text: &str) -> std::result::Result<Policy, Box<dyn Fault>> {
    let value = canon::parse(text.as_bytes()).map_err(boxed)?;
    Policy::parse(&value).map_err(boxed)
}

fn boxed<E: Fault + 'static>(error: E) -> Box<dyn Fault> {
    Box::new(error)
}

fn kind(word: &str) -> MetricKind {
    if word == "quantile" {
        MetricKind::Quantile
    } else {
        MetricKind::Rate
    }
}

fn bound(values: &[f64], i: usize) -> Option<f64> {
    values.get(i).copied().filter(|value| !value.is_nan())
}

fn resolved(policy: &Policy) -> String {
    let words = |states: &std::collections::BTreeSet<warrant_core::rule::State>| {
        states.iter().map(|state| state.word()).collect::<Vec<_>>()
    };
    let rules: Vec<_> = policy
        .rules
        .iter()
        .map(|rule| {
            let (kind, direction, threshold) = match rule.demand {
                Demand::Max(t) => ("interval_threshold", "max", t),
                // Parsed from a number below 2^53.
                Demand::MaxFailures(t) => ("observed_count", "max_failures", t as f64),
                Demand::Min(t) => ("interval_threshold", "min", t),
            };
            json!({
                "id": rule.id, "metric": rule.metric, "kind": kind, direction: threshold,
                "requires_manual_review": rule.requires_manual_review,
                "max_missing_fraction": rule.max_missing_fraction,
            })
        })
        .collect();
    json!({
        "version": 1,
        "confidence_level": policy.confidence_level,
        "block_on": words(&policy.block_on),
        "warn_on": words(&policy.warn_on),
        "block_on_partial_run": policy.block_on_partial_run,
        "require_approval": policy.require_approval,
        "rules": rules,
    })
    .to_string()
}

/// The columns of metrics(), by name.
struct Table {
    metric: Vec<String>,
    kind: Vec<String>,
    columns: [Vec<f64>; 7],
    dependent: Logicals,
}

impl Table {
    fn new(columns: &List) -> Self {
        let find = |name: &str| columns.iter().find(|(key, _)| *key == name).map(|(_, x)| x);
        let doubles = |name: &str| {
            find(name)
                .and_then(|x| x.as_real_slice().map(<[f64]>::to_vec))
                .unwrap_or_default()
        };
        let texts = |name: &str| {
            find(name)
                .and_then(|x| x.as_string_vector())
                .unwrap_or_default()
        };
        Table {
            metric: texts("metric"),
            kind: texts("type"),
            columns: [
                doubles("n_eligible"),
                doubles("n_observed"),
                doubles("n_failed"),
                doubles("n_missing"),
                doubles("confidence_level"),
                doubles("lower"),
                doubles("upper"),
            ],
            dependent: find("dependent")
                .and_then(|x| Logicals::try_from(x).ok())
                .unwrap_or_else(|| Logicals::new(0)),
        }
    }

    fn facts(&self, id: &str) -> Option<Facts> {
        let i = self.metric.iter().position(|metric| metric == id)?;
        let [eligible, observed, failed, missing, level, lower, upper] = &self.columns;
        // Counts of cases; NA (a quantile has no failures) reads as 0.
        let count = |column: &[f64]| bound(column, i).map_or(0, |n| n as u64);
        let dependence = if self.dependent.elt(i).is_true() {
            Dependence::Unsupported
        } else {
            Dependence::Supported
        };
        Some(Facts {
            kind: kind(&self.kind[i]),
            n_eligible: count(eligible),
            n_observed: count(observed),
            n_failed: count(failed),
            n_missing: count(missing),
            has_interval: bound(level, i).is_some(),
            lower: bound(lower, i),
            upper: bound(upper, i),
            dependence,
        })
    }
}

type Bounds = (Option<f64>, Option<f64>);

fn of_gate(gate: &Gate) -> List {
    let each = |f: fn(&warrant_core::rule::Decision) -> &str| {
        gate.decisions.iter().map(f).collect::<Vec<&str>>()
    };
    let decided = |f: fn(Bounds) -> Option<f64>| {
        gate.decisions
            .iter()
            .map(|d| d.decided.and_then(f).map_or(Rfloat::na(), Rfloat::from))
            .collect::<Doubles>()
    };
    let reasons: Vec<Robj> = gate
        .decisions
        .iter()
        .map(|d| d.reasons.clone().into())
        .collect();
    list!(
        release_action = gate.action.word(),
        exit_code = i32::from(gate.exit_code),
        gate_reasons = gate.reasons.clone(),
        rule_id = each(|d| &d.rule_id),
        metric = each(|d| &d.metric),
        state = each(|d| d.state.word()),
        reasons = List::from_values(reasons),
        decided_lower = decided(|bounds| bounds.0),
        decided_upper = decided(|bounds| bounds.1),
        action = each(|d| d.action.word())
    )
}

extendr_module! {
    mod rule;
    fn rs_policy;
    fn rs_decide;
    fn rs_bound_verdicts;
}
