//! A plain typed reader of the same lines, with no rule checked: what the speed of
//! judging is compared with.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// How many steps the record of a line has, where the line can be read.
pub fn steps(line: &str) -> Option<usize> {
    let line = serde_json::from_str::<Line<'_>>(line).ok()?;
    Some(
        line.trajectory
            .map_or(0, |trajectory| trajectory.steps.len()),
    )
}

#[derive(Deserialize)]
#[allow(dead_code)]
struct Line<'a> {
    #[serde(borrow)]
    case_id: Cow<'a, str>,
    #[serde(borrow)]
    trajectory: Option<Trajectory<'a>>,
}

#[derive(Deserialize)]
#[allow(dead_code)]
struct Trajectory<'a> {
    #[serde(borrow)]
    steps: Vec<Step<'a>>,
    terminal_status: Option<&'a str>,
    truncated: Option<bool>,
    step_limit: Option<u64>,
    #[serde(borrow)]
    constraints: Option<Vec<Constraint<'a>>>,
    #[serde(borrow)]
    checkpoints: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[allow(dead_code)]
struct Step<'a> {
    index: u64,
    kind: &'a str,
    #[serde(borrow)]
    tool_name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    call_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    agent: Option<Cow<'a, str>>,
    #[serde(borrow)]
    to_agent: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<Cow<'a, str>>,
    latency_ms: Option<f64>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[allow(dead_code)]
struct Constraint<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    passed: bool,
    #[serde(borrow)]
    detail: Option<Cow<'a, str>>,
    step_index: Option<u64>,
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_reads_a_line() {
        let line =
            r#"{"case_id":"a","trajectory":{"steps":[{"index":1,"kind":"final","result":[1]}]}}"#;
        assert_eq!(super::steps(line), Some(1));
        assert_eq!(super::steps("{"), None);
    }
}
