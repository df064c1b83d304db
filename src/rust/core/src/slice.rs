//! Groups of cases by what they are or what happened in them. Slices describe;
//! they never decide.

use crate::canon;
use crate::criteria::trace::Trace;
use crate::declare::{broken, Error};
use serde_json::Value;
use std::borrow::Cow;

/// What groups the cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slice {
    /// The first tool that was called.
    FirstTool,
    /// A value of the case's metadata; the key is flat, dots included.
    Metadata(String),
    /// Whether a call was repeated at once.
    RepeatedAction,
    /// The agents that held the task.
    Route,
    /// How many tool calls.
    ToolCalls(Bounds),
    /// How many steps.
    TrajectoryLength(Bounds),
}

/// Upper ends of buckets. Invariant: positive, strictly increasing, not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds(Vec<u64>);

impl Slice {
    /// Reads a slice as it is declared, such as `trajectory_length:4,8`.
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(key) = name.strip_prefix("metadata.") {
            return is_key(key).then(|| Slice::Metadata(key.to_owned()));
        }
        if let Some(bounds) = name.strip_prefix("trajectory_length:") {
            return Bounds::parse(bounds).map(Slice::TrajectoryLength);
        }
        if let Some(bounds) = name.strip_prefix("tool_calls:") {
            return Bounds::parse(bounds).map(Slice::ToolCalls);
        }
        match name {
            "first_tool" => Some(Slice::FirstTool),
            "repeated_action" => Some(Slice::RepeatedAction),
            "route" => Some(Slice::Route),
            _ => None,
        }
    }

    /// Whether membership is read from the trajectory.
    pub fn reads_trajectory(&self) -> bool {
        !matches!(self, Slice::Metadata(_))
    }

    /// The group of a case by its metadata.
    ///
    /// # Errors
    /// An object or array under the key.
    pub fn of_case(&self, metadata: &Value) -> Result<Option<String>, Error> {
        let Slice::Metadata(key) = self else {
            return Ok(None);
        };
        match metadata.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => Ok(Some(canon::to_string(value))),
            Some(Value::Array(_) | Value::Object(_)) => {
                let pointer = canon::pointer(["metadata", key]);
                let rule = "a value that slices cases must be a string, a number or a flag";
                Err(broken("malformed_metadata", &pointer, rule))
            }
        }
    }

    /// The group of a case by its one trajectory.
    pub fn of_trace<'t>(&self, trace: &Trace<'t>) -> Option<Cow<'t, str>> {
        let complete = !trace.truncated();
        match self {
            Slice::FirstTool => trace.called().next().map(Cow::Borrowed),
            Slice::Metadata(_) => None,
            Slice::RepeatedAction if trace.repeat().longest >= 2 => Some(Cow::Borrowed("true")),
            Slice::RepeatedAction => complete.then_some(Cow::Borrowed("false")),
            Slice::Route => {
                let route = trace
                    .route()
                    .filter(|route| complete && !route.is_empty())?;
                Some(match route {
                    [only] => Cow::Borrowed(*only),
                    names => Cow::Owned(names.join(">")),
                })
            }
            Slice::ToolCalls(bounds) => {
                complete.then(|| bounds.bucket(trace.calls().len() as u64).into())
            }
            Slice::TrajectoryLength(bounds) => {
                complete.then(|| bounds.bucket(trace.steps()).into())
            }
        }
    }

    /// Where a group stands among those of its slice.
    pub fn rank(&self, value: &str) -> usize {
        match self {
            Slice::ToolCalls(bounds) | Slice::TrajectoryLength(bounds) => bounds.rank(value),
            Slice::FirstTool | Slice::Metadata(_) | Slice::RepeatedAction | Slice::Route => 0,
        }
    }
}

impl Bounds {
    fn parse(text: &str) -> Option<Self> {
        let bounds: Option<Vec<u64>> = text
            .split(',')
            .map(|bound| {
                let digits = !bound.is_empty() && bound.bytes().all(|b| b.is_ascii_digit());
                digits.then(|| bound.parse().ok()).flatten()
            })
            .collect();
        let bounds = bounds?;
        let increasing = bounds.windows(2).all(|pair| pair[0] < pair[1]);
        (increasing && bounds.first() != Some(&0)).then_some(Self(bounds))
    }

    fn bucket(&self, count: u64) -> String {
        match self.0.iter().find(|bound| count <= **bound) {
            Some(bound) => format!("le_{bound}"),
            None => format!("gt_{}", self.0.last().copied().unwrap_or(0)),
        }
    }

    fn rank(&self, value: &str) -> usize {
        let bound = value.strip_prefix("le_").and_then(|text| text.parse().ok());
        let position = bound.and_then(|bound: u64| self.0.iter().position(|b| *b == bound));
        position.unwrap_or(self.0.len())
    }
}

/// `[A-Za-z0-9_][A-Za-z0-9_.-]*`
fn is_key(key: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    key.bytes().next().is_some_and(word) && key.bytes().all(|b| word(b) || b == b'.' || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criteria::testing::record;
    use crate::trajectory::Trajectory;
    use serde_json::json;

    #[test]
    fn names_are_read_or_refused() {
        for name in [
            "metadata.k",
            "metadata.a.b",
            "metadata.0-_.",
            "first_tool",
            "repeated_action",
            "route",
            "trajectory_length:4,8",
            "trajectory_length:04",
            "tool_calls:2",
        ] {
            assert!(Slice::parse(name).is_some(), "{name}");
        }
        for name in [
            "",
            "k",
            "metadata.",
            "metadata.a b",
            "metadata.-a",
            "Route",
            "trajectory_length",
            "trajectory_length:",
            "trajectory_length:0,4",
            "trajectory_length:8,4",
            "trajectory_length:4,4",
            "trajectory_length:4, 8",
            "trajectory_length:4.5",
            "trajectory_length:4,",
            "tool_calls:-1",
            "tool_calls:99999999999999999999",
        ] {
            assert_eq!(Slice::parse(name), None, "{name}");
        }
    }

    #[test]
    fn groups_by_metadata() {
        let by = |key: &str| Slice::parse(&format!("metadata.{key}")).expect("a slice");
        let metadata = json!({
            "s": "", "n": 1.0, "b": true, "x": 1e22, "z": null, "a.b": "flat", "a": {"b": 1}
        });
        for (key, want) in [
            ("s", Some("")),
            ("n", Some("1")),
            ("b", Some("true")),
            ("x", Some("1e+22")),
            ("z", None),
            ("gone", None),
            ("a.b", Some("flat")),
        ] {
            assert_eq!(
                by(key).of_case(&metadata).expect("fine").as_deref(),
                want,
                "{key}"
            );
        }
        assert_eq!(
            by("a").of_case(&metadata).map_err(|e| e.pointer),
            Err("/metadata/a".into())
        );
    }

    #[test]
    fn groups_by_what_happened() {
        for (slice, steps, want) in [
            ("first_tool", "- b a", Some("b")),
            ("first_tool", "- b ...", Some("b")),
            ("first_tool", "-", None),
            ("repeated_action", "a - a", Some("true")),
            ("repeated_action", "a a ...", Some("true")),
            ("repeated_action", "a b", Some("false")),
            ("repeated_action", "", Some("false")),
            ("repeated_action", "a ...", None),
            ("route", "x>y y>x", Some("x>y>x")),
            ("route", "x:-", Some("x")),
            ("route", "x>y ...", None),
            ("route", "", None),
            ("route", "a", None),
            ("trajectory_length:1,3", "", Some("le_1")),
            ("trajectory_length:1,3", "- -", Some("le_3")),
            ("trajectory_length:1,3", "- - - -", Some("gt_3")),
            ("trajectory_length:1,3", "- ...", None),
            ("tool_calls:1", "- a -", Some("le_1")),
            ("tool_calls:1", "a b", Some("gt_1")),
        ] {
            let text = record(steps);
            let record = Trajectory::parse(&text).expect("valid");
            let slice = Slice::parse(slice).expect("a slice");
            let trace = Trace::new(&record);
            assert_eq!(slice.of_trace(&trace).as_deref(), want, "{slice:?} {steps}");
        }
    }

    #[test]
    fn buckets_ascend() {
        let slice = Slice::parse("tool_calls:2,10").expect("a slice");
        let ranks = ["le_2", "le_10", "gt_10"].map(|value| slice.rank(value));
        assert_eq!(ranks, [0, 1, 2]);
    }
}
