//! The record `agent_trajectory/v1`: what an agent did, step by step.
//!
//! A record is read once, strictly, and borrows from its text. Values that only
//! some criteria look into (arguments, results) stay as checked JSON text.

mod read;

use crate::canon;
use crate::error::ReadFrom;
use crate::scan::{Fault, Scanner, What};
use read::{id_of, object, read_id, read_record, unknown, Seen};
use std::borrow::Cow;

/// The name and version of the format.
pub const SCHEMA: &str = "agent_trajectory/v1";

/// One checked record.
#[derive(Debug, Clone, PartialEq)]
pub struct Trajectory<'a> {
    /// The steps. Invariant: their indexes are 1, 2, ..., n.
    pub steps: Vec<Step<'a>>,
    /// The checks that the system recorded, in order.
    pub constraints: Vec<Constraint<'a>>,
    /// How the agent ended.
    pub terminal: Terminal,
    /// Whether the record is a prefix of what the agent would have done.
    pub truncated: bool,
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub struct Step<'a> {
    /// What happened.
    pub kind: StepKind,
    /// The tool. Invariant: present on tool calls and tool results.
    pub tool: Option<Cow<'a, str>>,
    /// The caller's id of the call; it may repeat.
    pub call_id: Option<Cow<'a, str>>,
    /// Who acted. Invariant: on every step of a record or on none.
    pub agent: Option<Cow<'a, str>>,
    /// Who was handed the task. Invariant: on hand-overs only.
    pub to_agent: Option<Cow<'a, str>>,
    /// Arguments, as checked JSON text; `null` when absent.
    pub arguments: &'a str,
    /// Result, as checked JSON text; `null` when absent.
    pub result: &'a str,
    /// The error text of a call that failed.
    pub error: Option<Cow<'a, str>>,
    /// Free notes, as the checked JSON text of an object.
    pub metadata: &'a str,
}

/// What a step records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum StepKind {
    Decision,
    Final,
    Handoff,
    Message,
    Observation,
    ToolCall,
    ToolResult,
}

/// How a record says the agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Terminal {
    Failure,
    Success,
    Unknown,
}

/// A recorded check of a constraint.
#[derive(Debug, Clone, PartialEq)]
pub struct Constraint<'a> {
    /// Its name; names may repeat.
    pub name: Cow<'a, str>,
    /// Whether it held.
    pub passed: bool,
    /// The step it is about. Invariant: one of the record's.
    pub step: Option<u64>,
}

/// One line of a file of records.
#[derive(Debug, Clone, PartialEq)]
pub struct Line<'a> {
    /// The case.
    pub case_id: Cow<'a, str>,
    /// Its record, or nothing when none was recorded.
    pub trajectory: Option<Trajectory<'a>>,
}

impl<'a> Trajectory<'a> {
    /// Reads and checks one record.
    ///
    /// # Errors
    /// [`Error`], with the JSON pointer and the rule that is broken.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        let mut scanner = Scanner::new(text);
        let record = read_record(&mut scanner)
            .and_then(|record| scanner.end().map(|()| record))
            .map_err(|fault| broken(&fault))?;
        Ok(record)
    }

    /// The tool calls, with their position among the steps.
    pub fn calls(&self) -> impl Iterator<Item = (usize, &Step<'a>)> {
        self.steps
            .iter()
            .enumerate()
            .filter(|(_, step)| step.kind == StepKind::ToolCall)
    }

    /// The agents in the order they held the task, or nothing when the steps do
    /// not name them. Without steps it is empty.
    pub fn route(&self) -> Option<Vec<&str>> {
        let mut route: Vec<&str> = Vec::new();
        for step in &self.steps {
            let agent = step.agent.as_deref()?;
            for name in std::iter::once(agent).chain(step.to_agent.as_deref()) {
                if route.last() != Some(&name) {
                    route.push(name);
                }
            }
        }
        Some(route)
    }
}

impl<'a> Line<'a> {
    /// Reads and checks one line `{"case_id": ..., "trajectory": ...}`.
    ///
    /// # Errors
    /// The error, and the case where it was read before the fault.
    pub fn parse(text: &'a str) -> Result<Self, (Error, Option<String>)> {
        let mut case_id = None;
        let mut trajectory = None;
        let mut scanner = Scanner::new(text);
        let mut seen = Seen::default();
        let read = object(&mut scanner, |s, key| match key {
            "case_id" => {
                seen.once(s, 0, key)?;
                case_id = Some(read_id(s)?);
                Ok(())
            }
            "trajectory" => {
                seen.once(s, 1, key)?;
                trajectory = match s.peek() {
                    b'n' => s.null().map(|()| None)?,
                    _ => Some(read_record(s)?),
                };
                Ok(())
            }
            _ => unknown(s, "a line", key),
        })
        .and_then(|()| scanner.end())
        .and_then(|()| seen.all(&scanner, &[(0, "case_id"), (1, "trajectory")], "a line"));
        match (read, case_id) {
            (Ok(()), Some(case_id)) => Ok(Self {
                case_id,
                trajectory,
            }),
            (Err(fault), case_id) => {
                let id = case_id.map(Cow::into_owned).or_else(|| id_of(text));
                Err((broken(&fault), id))
            }
            // The field check above refuses a line without its case.
            (Ok(()), None) => Err((
                Error::new(
                    ReadFrom::Trajectory,
                    "missing_field",
                    "",
                    "a line must have `case_id`",
                ),
                None,
            )),
        }
    }
}

impl StepKind {
    /// The word in the record.
    pub fn word(self) -> &'static str {
        match self {
            StepKind::Decision => "decision",
            StepKind::Final => "final",
            StepKind::Handoff => "handoff",
            StepKind::Message => "message",
            StepKind::Observation => "observation",
            StepKind::ToolCall => "tool_call",
            StepKind::ToolResult => "tool_result",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "decision" => StepKind::Decision,
            "final" => StepKind::Final,
            "handoff" => StepKind::Handoff,
            "message" => StepKind::Message,
            "observation" => StepKind::Observation,
            "tool_call" => StepKind::ToolCall,
            "tool_result" => StepKind::ToolResult,
            _ => return None,
        })
    }
}

impl Terminal {
    fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "failure" => Terminal::Failure,
            "success" => Terminal::Success,
            "unknown" => Terminal::Unknown,
            _ => return None,
        })
    }
}

pub use crate::error::Broken as Error;

fn broken(fault: &Fault) -> Error {
    let (code, rule) = match &fault.what {
        What::Depth => (
            "too_deep",
            format!(
                "arrays and objects must not nest deeper than {} levels",
                canon::MAX_DEPTH
            ),
        ),
        What::DuplicateKey(key) => (
            "duplicate_key",
            format!("a key must not occur twice in one object: \"{key}\""),
        ),
        What::LoneSurrogate => (
            "not_utf8",
            "text must be encodable as UTF-8, without lone surrogates".to_owned(),
        ),
        What::NotFinite => ("not_finite", "every number must be finite".to_owned()),
        What::Rule(code, rule) => (*code, rule.clone()),
        What::Syntax(what) => (
            "not_json",
            format!("the record must be JSON: {what}, at byte {}", fault.at + 1),
        ),
    };
    Error::new(ReadFrom::Trajectory, code, fault.pointer(), rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> (&'static str, String) {
        match Trajectory::parse(text) {
            Ok(_) => ("", String::new()),
            Err(e) => (e.code, e.pointer),
        }
    }

    /// A record with one step that has these further fields.
    fn step(fields: &str) -> String {
        format!(r#"{{"steps":[{{"index":1,"kind":"message"{fields}}}]}}"#)
    }

    #[test]
    fn a_record_is_read() {
        let text = r#"{"steps":[
            {"index":1,"kind":"handoff","agent":"a","to_agent":"b"},
            {"index":2,"kind":"tool_call","tool_name":"look up","arguments":{"x": 1},"agent":"b",
             "call_id":"c\u0031","result":[1],"metadata":{"batch":1},"latency_ms":" 1e3 "}],
            "terminal_status":"success","truncated":true,"step_limit":1,
            "constraints":[{"name":"n","passed":false,"detail":"","step_index":2}],
            "checkpoints":[{"checkpoint_id":"k","kind":"checkpoint","payload":[null]}]}"#;
        let record = Trajectory::parse(text).expect("valid");
        assert_eq!(record.route(), Some(vec!["a", "b"]));
        assert_eq!(record.calls().map(|(i, _)| i).collect::<Vec<_>>(), [1]);
        let call = &record.steps[1];
        assert_eq!(call.tool.as_deref(), Some("look up"));
        assert_eq!(call.call_id.as_deref(), Some("c1"));
        assert_eq!((call.arguments, call.result), (r#"{"x": 1}"#, "[1]"));
        assert_eq!(record.constraints[0].step, Some(2));
        assert_eq!(
            (record.terminal, record.truncated),
            (Terminal::Success, true)
        );
    }

    #[test]
    fn a_field_that_breaks_its_rule_is_named() {
        for (text, want, pointer) in [
            ("{}", "missing_field", ""),
            ("null", "wrong_type", ""),
            (r#"{"steps":{}}"#, "wrong_type", "/steps"),
            (r#"{"steps":[1]}"#, "wrong_type", "/steps/0"),
            (r#"{"steps":[],"schema":"x"}"#, "unknown_field", "/schema"),
            (r#"{"steps":[],"truncated":1}"#, "wrong_type", "/truncated"),
            (
                r#"{"steps":[],"terminal_status":null}"#,
                "not_in_enum",
                "/terminal_status",
            ),
            (
                r#"{"steps":[],"step_limit":12.0}"#,
                "wrong_type",
                "/step_limit",
            ),
            (
                r#"{"steps":[],"step_limit":0}"#,
                "below_minimum",
                "/step_limit",
            ),
            (r#"{"steps":[],"steps":[]}"#, "duplicate_key", "/steps"),
            (
                r#"{"steps":[{"index":1,"kind":"x"}]}"#,
                "not_in_enum",
                "/steps/0/kind",
            ),
            (r#"{"steps":[{"index":1}]}"#, "missing_field", "/steps/0"),
            (
                r#"{"steps":[{"index":2,"kind":"final"}]}"#,
                "indexes_not_contiguous",
                "/steps/0/index",
            ),
            (
                r#"{"steps":[],"constraints":[{"name":"","passed":true}]}"#,
                "empty_string",
                "/constraints/0/name",
            ),
            (
                r#"{"steps":[],"constraints":[{"name":"n","passed":true,"step_index":1}]}"#,
                "unknown_step",
                "/constraints/0/step_index",
            ),
            (
                r#"{"steps":[],"checkpoints":[{"checkpoint_id":"a","kind":"x"}]}"#,
                "not_in_enum",
                "/checkpoints/0/kind",
            ),
            (r#"{"steps":[NaN]}"#, "not_finite", "/steps/0"),
            (r#"{"steps":[]"#, "not_json", ""),
        ] {
            assert_eq!(code(text), (want, pointer.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_step_that_breaks_a_rule_is_named() {
        for (fields, want) in [
            (r#","tool_name":"""#, "empty_string"),
            (r#","agent":1"#, "wrong_type"),
            (r#","agent":"\ud800""#, "not_utf8"),
            (r#","to_agent":"b""#, "to_agent_not_allowed"),
            (r#","metadata":null"#, "wrong_type"),
            (r#","latency_ms":-5e-324"#, "below_minimum"),
            (r#","latency_ms":"nan""#, "not_finite"),
            (r#","latency_ms":"fast""#, "wrong_type"),
            (r#","latency_ms":Infinity"#, "not_finite"),
            (r#","result":{"a":[1e400]}"#, "not_finite"),
            (r#","arguments":{"a":1,"a":2}"#, "duplicate_key"),
            (r#","content":"hi""#, "unknown_field"),
            (
                r#","latency_ms":true,"error":"","agent":null,"to_agent":null"#,
                "",
            ),
        ] {
            assert_eq!(code(&step(fields)).0, want, "{fields}");
        }
        let two = |a: &str, b: &str| {
            format!(r#"{{"steps":[{{"index":1,"kind":{a}}},{{"index":2,"kind":{b}}}]}}"#)
        };
        for (a, b, want) in [
            (r#""tool_call""#, r#""final""#, "tool_name_required"),
            (
                r#""handoff","agent":"a","to_agent":"a""#,
                r#""final""#,
                "handoff_to_self",
            ),
            (
                r#""handoff","agent":"a""#,
                r#""final""#,
                "handoff_parties_required",
            ),
            (
                r#""message","agent":"a""#,
                r#""final","agent":null"#,
                "agents_partly_named",
            ),
        ] {
            assert_eq!(code(&two(a, b)).0, want, "{a} {b}");
        }
    }

    #[test]
    fn a_line_keeps_the_case_of_a_broken_record() {
        let id = |text| {
            Line::parse(text)
                .map(|l| l.case_id.into_owned())
                .map_err(|(e, id)| (e.code, id))
        };
        assert_eq!(id(r#"{"case_id":7,"trajectory":null}"#), Ok("7".into()));
        assert_eq!(
            id(r#"{"case_id":"a","trajectory":{}}"#),
            Err(("missing_field", Some("a".into())))
        );
        assert_eq!(
            id(r#"{"trajectory":{},"case_id":"a"}"#),
            Err(("missing_field", Some("a".into())))
        );
        assert_eq!(
            id(r#"{"case_id":"a","traject"#),
            Err(("not_json", Some("a".into())))
        );
        assert_eq!(id(r#"{"case"#), Err(("not_json", None)));
        assert_eq!(
            id(r#"{"case_id":"a"}"#),
            Err(("missing_field", Some("a".into())))
        );
        assert_eq!(
            id(r#"{"case_id":true,"trajectory":null}"#),
            Err(("wrong_type", None))
        );
        assert_eq!(
            id(r#"{"case_id":"a","trajectory":null,"x":1}"#),
            Err(("unknown_field", Some("a".into())))
        );
    }
}
