//! A suite: the criteria, metrics and slices that runs are judged by.

use crate::criteria::Criterion;
use crate::declare::{broken, Error, Fields};
use crate::slice::Slice;
use crate::trajectory::SCHEMA;
use serde_json::{json, Map, Value};
use std::collections::BTreeSet;

/// What runs are judged by.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// The criteria in declared order. Invariant: names are unique.
    pub criteria: Vec<Evaluator>,
    /// The quantile metrics in declared order.
    pub metrics: Vec<Quantile>,
    /// The slices in declared order, with the text they were declared by.
    pub slices: Vec<(String, Slice)>,
    /// Below so many cases a slice has no interval.
    pub min_slice_support: u64,
}

/// A criterion under its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluator {
    /// The name; it is the id of its rate.
    pub name: String,
    /// What is asked.
    pub criterion: Criterion,
    /// What a case counts as whose system did not answer.
    pub on_execution_error: OnExecutionError,
}

/// What a case counts as whose system did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum OnExecutionError {
    Fail,
    Missing,
}

/// A quantile of a count.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantile {
    /// Its id.
    pub id: String,
    /// What is counted.
    pub source: Source,
    /// Which quantile, as the decimal it was written as.
    pub quantile: String,
}

/// What a quantile is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Steps of any kind.
    AgentSteps,
    /// Tool calls.
    AgentToolCalls,
    /// The time the system took for the case, where it was measured.
    LatencyMs,
}

impl Suite {
    /// Reads a suite as its file declares it.
    ///
    /// # Errors
    /// [`Error`], with the JSON pointer of the field.
    pub fn parse(value: &Value) -> Result<Self, Error> {
        let (mut suite, records) = Self::project(value)?;
        let slices = value.get("slices").unwrap_or(&Value::Null);
        suite.slices = parse_slices(slices, "/slices")?;
        if let Some(records) = records {
            suite.check_records(&records)?;
        }
        Ok(suite)
    }

    /// Reads all but the names of slices, which is how far a file can be read
    /// without a meaning.
    ///
    /// # Errors
    /// [`Error`], with the JSON pointer of the field.
    pub fn project(value: &Value) -> Result<(Self, Option<Vec<String>>), Error> {
        let mut fields = Fields::new(value, "")?;
        if fields
            .count("version", 0)?
            .is_some_and(|version| version != 1)
        {
            return fields.refuse("version", "`version` must be 1");
        }
        fields.name("project")?;
        fields.name("dataset")?;
        let records = match fields.take("system") {
            None | Some(Value::Null) => None,
            Some(system) => Some(parse_system(&system)?),
        };
        let criteria = match fields.take("evaluators") {
            Some(list) => parse_evaluators(&list, "/evaluators")?,
            None => {
                // A misspelt key is the likelier reason, so it is told first.
                let missing = fields.missing("evaluators");
                for key in ["metrics", "slices", "min_slice_support"] {
                    fields.take(key);
                }
                return fields.end().and(missing);
            }
        };
        let metrics = parse_metrics(fields.take("metrics"), &criteria)?;
        if !matches!(
            fields.take("slices"),
            None | Some(Value::Null | Value::Array(_))
        ) {
            return fields.refuse("slices", "`slices` must be an array");
        }
        let support = fields.count("min_slice_support", 1)?;
        fields.end()?;
        let suite = Self {
            criteria,
            metrics,
            slices: Vec::new(),
            min_slice_support: support.unwrap_or(30),
        };
        Ok((suite, records))
    }

    /// Refuses what reads trajectories from a system that records none.
    fn check_records(&self, records: &[String]) -> Result<(), Error> {
        if records.iter().any(|name| name == SCHEMA) {
            return Ok(());
        }
        let criterion = self
            .criteria
            .iter()
            .position(|e| e.criterion.reads_trajectory());
        let slice = self
            .slices
            .iter()
            .position(|(_, slice)| slice.reads_trajectory());
        let pointer = match (criterion, slice) {
            (Some(i), _) => format!("/evaluators/{i}"),
            (None, Some(i)) => format!("/slices/{i}"),
            (None, None) => return Ok(()),
        };
        Err(not_recorded(&pointer))
    }

    /// The suite with its defaults and names.
    pub fn resolved(&self) -> Value {
        let evaluators: Vec<Value> = self.criteria.iter().map(Evaluator::resolved).collect();
        let metrics: Vec<Value> = self.metrics.iter().map(Quantile::resolved).collect();
        let slices: Vec<&str> = self.slices.iter().map(|(name, _)| name.as_str()).collect();
        json!({
            "evaluators": evaluators, "metrics": metrics, "slices": slices,
            "min_slice_support": self.min_slice_support
        })
    }
}

impl Evaluator {
    /// Reads one evaluator; where it names no criterion the default name stands.
    ///
    /// # Errors
    /// [`Error`], with the JSON pointer of the field.
    pub fn parse(value: &Value, at: &str) -> Result<Self, Error> {
        read_evaluator(value, at).map(|(evaluator, _)| evaluator)
    }

    /// The declaration with its defaults and name.
    pub fn resolved(&self) -> Value {
        let word = match self.on_execution_error {
            OnExecutionError::Fail => "fail",
            OnExecutionError::Missing => "missing",
        };
        json!({
            "type": self.criterion.kind(), "criterion": self.name,
            "config": self.criterion.config(), "on_execution_error": word
        })
    }
}

impl Quantile {
    /// Reads one metric.
    ///
    /// # Errors
    /// [`Error`], with the JSON pointer of the field.
    pub fn parse(value: &Value, at: &str) -> Result<Self, Error> {
        let mut fields = Fields::new(value, at)?;
        let id = fields.required_name("id")?;
        if fields.choice("type", &[("quantile", ())])?.is_none() {
            return fields.missing("type");
        }
        let Some(source) = fields.choice("source", &SOURCES)? else {
            return fields.missing("source");
        };
        let quantile = match fields.take("quantile") {
            None => return fields.missing("quantile"),
            Some(Value::Number(n)) => n.as_str().to_owned(),
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(_) => String::new(),
        };
        let between = quantile.parse::<f64>().is_ok_and(|q| q > 0.0 && q < 1.0);
        if !between {
            return fields.refuse("quantile", "`quantile` must be a number between 0 and 1");
        }
        fields.end()?;
        Ok(Self {
            id,
            source,
            quantile,
        })
    }

    fn resolved(&self) -> Value {
        // A decimal between 0 and 1, checked when it was read.
        let number = self.quantile.parse::<f64>().unwrap_or(0.0);
        json!({
            "id": self.id, "type": "quantile", "source": self.source.word(), "quantile": number
        })
    }
}

const SOURCES: [(&str, Source); 3] = [
    ("agent_steps", Source::AgentSteps),
    ("agent_tool_calls", Source::AgentToolCalls),
    ("latency_ms", Source::LatencyMs),
];

impl Source {
    /// The word in a declaration.
    pub fn word(self) -> &'static str {
        match self {
            Source::AgentSteps => "agent_steps",
            Source::AgentToolCalls => "agent_tool_calls",
            Source::LatencyMs => "latency_ms",
        }
    }
}

/// Reads the slices and refuses one that is declared twice.
///
/// # Errors
/// [`Error`], with the JSON pointer of the slice.
pub fn parse_slices(value: &Value, at: &str) -> Result<Vec<(String, Slice)>, Error> {
    let list = match value {
        Value::Null => &[][..],
        Value::Array(list) => list.as_slice(),
        _ => return Err(broken("wrong_value", at, "`slices` must be an array")),
    };
    let mut slices: Vec<(String, Slice)> = Vec::new();
    for (position, name) in list.iter().enumerate() {
        let at = format!("{at}/{position}");
        let read = name
            .as_str()
            .and_then(|name| Some((name, Slice::parse(name)?)));
        let Some((name, slice)) = read else {
            return Err(broken("unknown_slice", &at, SLICE_RULE));
        };
        if slices.iter().any(|(_, other)| *other == slice) {
            return Err(broken(
                "duplicate_slice",
                &at,
                "a slice must be declared once",
            ));
        }
        slices.push((name.to_owned(), slice));
    }
    Ok(slices)
}

const SLICE_RULE: &str = "a slice must be metadata.KEY, first_tool, repeated_action, route, \
    trajectory_length:a,b or tool_calls:a,b, with positive bounds that increase, without spaces";

/// That a system records no trajectories.
pub(crate) fn not_recorded(pointer: &str) -> Error {
    let rule = format!("this reads trajectories: the system must declare `records: [{SCHEMA}]`");
    broken("records_not_declared", pointer, rule)
}

fn parse_system(value: &Value) -> Result<Vec<String>, Error> {
    let mut fields = Fields::new(value, "/system")?;
    fields.name("name")?;
    fields.name("version")?;
    fields.name("callable")?;
    let records = fields.names("records")?.unwrap_or_default();
    fields.end()?;
    Ok(records)
}

fn parse_metrics(list: Option<Value>, criteria: &[Evaluator]) -> Result<Vec<Quantile>, Error> {
    let list = match list {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => {
            return Err(broken(
                "wrong_value",
                "/metrics",
                "`metrics` must be an array",
            ))
        }
    };
    let mut ids: BTreeSet<String> = criteria.iter().map(|e| e.name.clone()).collect();
    let mut metrics = Vec::new();
    for (position, value) in list.iter().enumerate() {
        let at = format!("/metrics/{position}");
        let metric = Quantile::parse(value, &at)?;
        if !ids.insert(metric.id.clone()) {
            let rule = format!("metric ids must be unique: \"{}\" is taken", metric.id);
            return Err(broken("duplicate_metric", &format!("{at}/id"), rule));
        }
        metrics.push(metric);
    }
    Ok(metrics)
}

/// Where a name came from.
#[derive(Clone, Copy, PartialEq)]
enum Named {
    ByDefault,
    ByHand,
}

fn read_evaluator(value: &Value, at: &str) -> Result<(Evaluator, Named), Error> {
    let mut fields = Fields::new(value, at)?;
    let kind = fields.required_name("type")?;
    let criterion = Criterion::parse(&kind, &mut fields)?;
    let given = match value.get("criterion") {
        Some(Value::Null) if criterion.null_name_is_default() => {
            fields.take("criterion");
            None
        }
        _ => fields.name("criterion")?,
    };
    let named = if given.is_some() {
        Named::ByHand
    } else {
        Named::ByDefault
    };
    let Some(name) = given.or_else(|| criterion.default_name()) else {
        return fields.missing("criterion");
    };
    let on_execution_error = fields.choice(
        "on_execution_error",
        &[
            ("missing", OnExecutionError::Missing),
            ("fail", OnExecutionError::Fail),
        ],
    )?;
    fields.end()?;
    let evaluator = Evaluator {
        name,
        criterion,
        on_execution_error: on_execution_error.unwrap_or(OnExecutionError::Missing),
    };
    Ok((evaluator, named))
}

/// Reads the evaluators. Different criteria with one default name get a numeric
/// suffix; the same criterion twice, and a name given twice, are refused.
///
/// # Errors
/// [`Error`], with the JSON pointer of the field.
pub fn parse_evaluators(value: &Value, at: &str) -> Result<Vec<Evaluator>, Error> {
    let Some(list) = value.as_array().filter(|list| !list.is_empty()) else {
        let rule = "`evaluators` must be an array with at least one entry";
        return Err(broken("wrong_value", at, rule));
    };
    let mut read = Vec::new();
    for (position, value) in list.iter().enumerate() {
        read.push(read_evaluator(value, &format!("{at}/{position}"))?);
    }
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for (position, (evaluator, named)) in read.iter().enumerate() {
        let twice = *named == Named::ByHand && !taken.insert(evaluator.name.clone());
        let again = *named == Named::ByDefault && read[..position].contains(&read[position]);
        if twice || again {
            let rule = format!(
                "criterion names must be unique: \"{}\" is repeated",
                evaluator.name
            );
            return Err(broken(
                "duplicate_criterion",
                &format!("{at}/{position}"),
                rule,
            ));
        }
    }
    for (evaluator, named) in &mut read {
        if *named == Named::ByDefault {
            evaluator.name = free_name(&evaluator.name, &taken);
            taken.insert(evaluator.name.clone());
        }
    }
    Ok(read.into_iter().map(|(evaluator, _)| evaluator).collect())
}

fn free_name(name: &str, taken: &BTreeSet<String>) -> String {
    if !taken.contains(name) {
        return name.to_owned();
    }
    let mut number = 2u64;
    loop {
        let candidate = format!("{name}_{number}");
        if !taken.contains(&candidate) {
            return candidate;
        }
        number += 1;
    }
}

/// What one declaration of a kind is worth: the checks that a file goes through
/// piece by piece.
///
/// # Errors
/// [`Error`], with the JSON pointer of the field.
pub fn check_declaration(kind: &str, value: &Value) -> Result<Value, Error> {
    match kind {
        "evaluator" => Evaluator::parse(value, "").map(|evaluator| evaluator.resolved()),
        "evaluators" => {
            let evaluators = parse_evaluators(value, "")?;
            Ok(evaluators.iter().map(Evaluator::resolved).collect())
        }
        "metric" => Quantile::parse(value, "").map(|metric| metric.resolved()),
        "project" => Suite::project(value).map(|(suite, _)| suite.resolved()),
        "slices" => check_slices(value),
        "expected" => check_expected(value),
        _ => Err(broken("wrong_value", "", "unknown kind of declaration")),
    }
}

fn check_slices(value: &Value) -> Result<Value, Error> {
    let mut fields = Fields::new(value, "")?;
    fields.count("min_slice_support", 1)?;
    let metadata = fields.take("metadata").unwrap_or(Value::Object(Map::new()));
    let records = fields.names("records")?;
    let slices = parse_slices(&fields.take("slices").unwrap_or_default(), "/slices")?;
    fields.end()?;
    let reads = slices
        .iter()
        .position(|(_, slice)| slice.reads_trajectory());
    if let (Some(position), Some(records)) = (reads, records) {
        if !records.iter().any(|name| name == SCHEMA) {
            return Err(not_recorded(&format!("/slices/{position}")));
        }
    }
    let groups: Result<Vec<_>, _> = slices
        .iter()
        .map(|(_, slice)| slice.of_case(&metadata))
        .collect();
    Ok(json!(groups?))
}

fn check_expected(value: &Value) -> Result<Value, Error> {
    let mut fields = Fields::new(value, "")?;
    let evaluator = Evaluator::parse(&fields.take("evaluator").unwrap_or_default(), "/evaluator")?;
    let expected = crate::case::Expected::new(fields.take("expected").unwrap_or_default());
    fields.end()?;
    evaluator.criterion.check_case(&expected)?;
    let reason = evaluator
        .criterion
        .excludes(&expected)
        .map(|reason| reason.code());
    Ok(json!({"applicability": reason}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(kind: &str, value: Value) -> &'static str {
        check_declaration(kind, &value).map_or_else(|e| e.code, |_| "")
    }

    #[test]
    fn evaluators_are_read_or_refused() {
        for (value, want) in [
            (json!({"type": "agent_route"}), ""),
            (
                json!({"type": "agent_route", "on_execution_error": "fail"}),
                "",
            ),
            (
                json!({"type": "agent_route", "on_execution_error": "pass"}),
                "wrong_value",
            ),
            (
                json!({"type": "agent_route", "route": ["a"]}),
                "unknown_field",
            ),
            (json!({"type": "agent_unknown"}), "wrong_value"),
            (json!({"criterion": "c"}), "missing_field"),
            (json!({"type": "contains"}), "missing_field"),
            (
                json!({"type": "contains", "criterion": "c", "field": 1}),
                "wrong_value",
            ),
            (json!({"type": "agent_max_steps"}), "missing_field"),
            (
                json!({"type": "agent_max_steps", "max_steps": 0}),
                "wrong_value",
            ),
            (
                json!({"type": "agent_max_steps", "max_steps": 3, "criterion": null}),
                "",
            ),
            (
                json!({"type": "agent_no_tool_loop", "criterion": null}),
                "wrong_value",
            ),
            (
                json!({"type": "agent_tool_sequence", "ordered": 0, "match": "unordered"}),
                "",
            ),
            (
                json!({"type": "agent_tool_sequence", "ordered": 0, "match": "exact"}),
                "wrong_value",
            ),
            (
                json!({"type": "agent_tool_sequence", "match": "some"}),
                "wrong_value",
            ),
            (
                json!({"type": "agent_constraints_satisfied", "constraints": "x"}),
                "wrong_value",
            ),
            (
                json!({"type": "agent_tool_permissions", "permissions": {}}),
                "wrong_value",
            ),
            (
                json!({"type": "agent_tool_permissions", "permissions": {"a": [""]}}),
                "wrong_value",
            ),
            (json!({"type": "agent_max_handoffs", "max_handoffs": 0}), ""),
            (json!(["agent_route"]), "wrong_value"),
        ] {
            assert_eq!(code("evaluator", value.clone()), want, "{value}");
        }
    }

    #[test]
    fn names_that_collide_are_told_apart_or_refused() {
        let names = |list: Value| {
            parse_evaluators(&list, "")
                .map(|list| list.into_iter().map(|e| e.name).collect::<Vec<_>>())
                .map_err(|e| (e.code, e.pointer))
        };
        let all = json!({"type": "agent_constraints_satisfied"});
        let one = json!({"type": "agent_constraints_satisfied", "constraints": ["a"]});
        let name = "agent_constraints_satisfied".to_owned();
        assert_eq!(
            names(json!([all, one])),
            Ok(vec![name.clone(), format!("{name}_2")])
        );
        assert_eq!(
            names(json!([all, one, all])),
            Err(("duplicate_criterion", "/2".into()))
        );
        let other = json!({"type": "agent_route", "criterion": name});
        assert_eq!(
            names(json!([all, other])),
            Ok(vec![format!("{name}_2"), name.clone()])
        );
        let again = json!({"type": "agent_max_steps", "max_steps": 1, "criterion": name});
        assert_eq!(
            names(json!([other, again])),
            Err(("duplicate_criterion", "/1".into()))
        );
    }

    #[test]
    fn metrics_are_read_or_refused() {
        let metric = |q: Value| json!({"id": "q", "type": "quantile", "source": "agent_steps", "quantile": q});
        for (q, want) in [
            (json!(0.5), ""),
            (json!("0.5"), ""),
            (json!(0), "wrong_value"),
            (json!(1), "wrong_value"),
            (json!(null), "wrong_value"),
        ] {
            assert_eq!(code("metric", metric(q.clone())), want, "{q}");
        }
        let mut extra = metric(json!(0.5));
        extra["criterion"] = json!("x");
        assert_eq!(code("metric", extra), "unknown_field");
    }

    #[test]
    fn a_suite_is_read_whole() {
        let suite = |change: Value| {
            let mut suite = json!({
                "version": 1, "evaluators": [{"type": "agent_route"}],
                "system": {"name": "s", "records": ["agent_trajectory/v1"]},
                "metrics": [{"id": "p", "type": "quantile", "source": "agent_steps", "quantile": 0.9}],
                "slices": ["route"]
            });
            for (key, value) in change.as_object().expect("an object") {
                suite[key] = value.clone();
            }
            Suite::parse(&suite).map_or_else(|e| (e.code, e.pointer), |_| ("", String::new()))
        };
        let records = json!({"records": []});
        let taken = json!([{"id": "agent_route", "type": "quantile", "source": "agent_steps", "quantile": 0.9}]);
        for (change, want, pointer) in [
            (json!({}), "", ""),
            (json!({"version": 2}), "wrong_value", "/version"),
            (json!({"evaluators": []}), "wrong_value", "/evaluators"),
            (json!({"evaluaters": []}), "unknown_field", "/evaluaters"),
            (
                json!({"system": records}),
                "records_not_declared",
                "/evaluators/0",
            ),
            (
                json!({"slices": ["route", "tool_calls:0"]}),
                "unknown_slice",
                "/slices/1",
            ),
            (
                json!({"slices": ["route", "route"]}),
                "duplicate_slice",
                "/slices/1",
            ),
            (
                json!({"metrics": taken}),
                "duplicate_metric",
                "/metrics/0/id",
            ),
            (
                json!({"min_slice_support": 0}),
                "wrong_value",
                "/min_slice_support",
            ),
        ] {
            assert_eq!(
                suite(change.clone()),
                (want, pointer.to_owned()),
                "{change}"
            );
        }
    }

    #[test]
    fn a_case_is_checked_only_by_what_needs_it() {
        let check = |evaluator: Value, expected: Value| {
            code(
                "expected",
                json!({"evaluator": evaluator, "expected": expected}),
            )
        };
        let malformed = json!({"tools": "search", "route": []});
        let steps = json!({"type": "agent_max_steps", "max_steps": 3});
        assert_eq!(check(steps, malformed.clone()), "");
        assert_eq!(
            check(json!({"type": "agent_route"}), malformed.clone()),
            "malformed_expected"
        );
        assert_eq!(
            check(json!({"type": "agent_tool_sequence"}), malformed),
            "malformed_expected"
        );
    }
}
