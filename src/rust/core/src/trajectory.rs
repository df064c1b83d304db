//! The record `agent_trajectory/v1`: what an agent did, step by step.
//!
//! A record is read once, strictly, and borrows from its text. Values that only
//! some criteria look into (arguments, results) stay as checked JSON text.

use crate::canon;
use crate::error::Kind;
use crate::scan::{Fault, Scanner, What};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;

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
            .map_err(|fault| Error::new(&fault))?;
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
                Err((Error::new(&fault), id))
            }
            // The field check above refuses a line without its case.
            (Ok(()), None) => Err((
                Error::of("missing_field", "a line must have `case_id`"),
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

/// A record that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule} (at \"{pointer}\")")]
pub struct Error {
    /// JSON pointer of what is wrong, from the text that was read.
    pub pointer: String,
    /// The rule, in words.
    pub rule: String,
    /// The rule, as a stable code.
    pub code: &'static str,
}

impl Error {
    fn of(code: &'static str, rule: &str) -> Self {
        Self {
            pointer: String::new(),
            rule: rule.to_owned(),
            code,
        }
    }

    fn new(fault: &Fault) -> Self {
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
        Self {
            pointer: fault.pointer(),
            rule,
            code,
        }
    }
}

impl crate::error::Fault for Error {
    fn code(&self) -> &'static str {
        self.code
    }

    fn kind(&self) -> Kind {
        Kind::Trajectory
    }

    fn facts(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        facts.insert("pointer".into(), self.pointer.as_str().into());
        facts.insert("rule".into(), self.rule.as_str().into());
        facts.insert("error_kind".into(), self.code().into());
        facts
    }
}

type Read<T> = Result<T, Fault>;

/// Which fields of an object were read.
#[derive(Default)]
struct Seen(u32);

impl Seen {
    fn once(&mut self, s: &Scanner<'_>, bit: u32, key: &str) -> Read<()> {
        if self.0 & (1 << bit) != 0 {
            // The pointer already ends in the key.
            return Err(s.fault(What::DuplicateKey(key.to_owned())));
        }
        self.0 |= 1 << bit;
        Ok(())
    }

    fn all(&self, s: &Scanner<'_>, required: &[(u32, &str)], what: &str) -> Read<()> {
        match required.iter().find(|(bit, _)| self.0 & (1 << bit) == 0) {
            Some((_, key)) => rule(s, "missing_field", format!("{what} must have `{key}`")),
            None => Ok(()),
        }
    }
}

fn rule<T>(s: &Scanner<'_>, code: &'static str, text: impl Into<String>) -> Read<T> {
    Err(s.fault(What::Rule(code, text.into())))
}

fn unknown(s: &Scanner<'_>, what: &str, key: &str) -> Read<()> {
    rule(
        s,
        "unknown_field",
        format!("{what} must not have a field `{key}`"),
    )
}

/// The case of a line whose record is broken, where the line is JSON at all.
fn id_of(text: &str) -> Option<String> {
    let line = canon::parse(text.as_bytes()).ok()?;
    match line.get("case_id")? {
        Value::String(id) if !id.is_empty() => Some(id.clone()),
        Value::Number(id) if canon::is_integer_token(id.as_str()) => Some(id.as_str().to_owned()),
        _ => None,
    }
}

fn read_id<'a>(s: &mut Scanner<'a>) -> Read<Cow<'a, str>> {
    match s.peek() {
        b'-' | b'0'..=b'9' => {
            let text = s.number()?;
            if canon::is_integer_token(text) {
                return Ok(Cow::Borrowed(text));
            }
            rule(s, "wrong_type", "`case_id` must be a string or an integer")
        }
        _ => name(s, "`case_id`"),
    }
}

fn object<'a>(
    s: &mut Scanner<'a>,
    field: impl FnMut(&mut Scanner<'a>, &str) -> Read<()>,
) -> Read<()> {
    typed(s, b'{', "must be an object")?;
    s.object(field)
}

fn array<'a>(s: &mut Scanner<'a>, item: impl FnMut(&mut Scanner<'a>) -> Read<()>) -> Read<()> {
    typed(s, b'[', "must be an array")?;
    s.array(item)
}

/// Refuses a value of another type; text that is no value at all stays a
/// syntax fault.
fn typed(s: &mut Scanner<'_>, open: u8, what: &str) -> Read<()> {
    if s.peek() == open {
        return Ok(());
    }
    let position = s.fault(What::Rule("wrong_type", format!("the value {what}")));
    s.raw()?;
    Err(position)
}

fn read_record<'a>(s: &mut Scanner<'a>) -> Read<Trajectory<'a>> {
    let mut record = Trajectory {
        steps: Vec::new(),
        constraints: Vec::new(),
        terminal: Terminal::Unknown,
        truncated: false,
    };
    let mut checkpoints = Checkpoints::default();
    let mut seen = Seen::default();
    object(s, |s, key| match key {
        "steps" => {
            seen.once(s, 0, key)?;
            record.steps.reserve(16);
            array(s, |s| {
                let at = record.steps.len() as u64 + 1;
                let (step, index) = read_step(s)?;
                if index != at && record.steps.len() < usize::MAX {
                    checkpoints.gap.get_or_insert(record.steps.len());
                }
                record.steps.push(step);
                Ok(())
            })
        }
        "terminal_status" => {
            seen.once(s, 1, key)?;
            let word = one_of(s, Terminal::from_word, "success, failure, unknown")?;
            record.terminal = word;
            Ok(())
        }
        "truncated" => {
            seen.once(s, 2, key)?;
            record.truncated = boolean(s, "`truncated`")?;
            Ok(())
        }
        "step_limit" => {
            seen.once(s, 3, key)?;
            nullable(s, |s| whole(s, "`step_limit`")).map(|_| ())
        }
        "constraints" => {
            seen.once(s, 4, key)?;
            array(s, |s| {
                record.constraints.push(read_constraint(s)?);
                Ok(())
            })
        }
        "checkpoints" => {
            seen.once(s, 5, key)?;
            array(s, |s| checkpoints.read(s))
        }
        _ => unknown(s, "a record", key),
    })?;
    seen.all(s, &[(0, "steps")], "a record")?;
    check_record(s, &record, &checkpoints)?;
    Ok(record)
}

/// What the record rules need of the checkpoints, and the first step whose
/// index is not its position.
#[derive(Default)]
struct Checkpoints<'a> {
    ids: Vec<Cow<'a, str>>,
    steps: Vec<Option<u64>>,
    gap: Option<usize>,
}

impl<'a> Checkpoints<'a> {
    fn read(&mut self, s: &mut Scanner<'a>) -> Read<()> {
        let mut seen = Seen::default();
        let mut step = None;
        object(s, |s, key| match key {
            "checkpoint_id" => {
                seen.once(s, 0, key)?;
                self.ids.push(name(s, "`checkpoint_id`")?);
                Ok(())
            }
            "kind" => {
                seen.once(s, 1, key)?;
                one_of(
                    s,
                    checkpoint_kind,
                    "tool_result, tool_arguments, checkpoint",
                )
            }
            "step_index" => {
                seen.once(s, 2, key)?;
                step = nullable(s, |s| whole(s, "`step_index`"))?;
                Ok(())
            }
            "description" => {
                seen.once(s, 3, key)?;
                nullable(s, |s| string(s, "`description`")).map(|_| ())
            }
            "payload" => {
                seen.once(s, 4, key)?;
                s.raw().map(|_| ())
            }
            _ => unknown(s, "a checkpoint", key),
        })?;
        self.steps.push(step);
        seen.all(s, &[(0, "checkpoint_id"), (1, "kind")], "a checkpoint")
    }
}

fn checkpoint_kind(word: &str) -> Option<()> {
    matches!(word, "tool_result" | "tool_arguments" | "checkpoint").then_some(())
}

/// The rules across the fields of a record.
fn check_record(s: &Scanner<'_>, record: &Trajectory<'_>, points: &Checkpoints<'_>) -> Read<()> {
    if let Some(position) = points.gap {
        let fault: Read<()> = rule(
            s,
            "indexes_not_contiguous",
            format!(
                "step indexes must be 1, 2, ... in list order: step {} has another",
                position + 1
            ),
        );
        return fault.map_err(|f| {
            f.inside("index")
                .inside(&position.to_string())
                .inside("steps")
        });
    }
    let known = |step: Option<u64>| step.is_none_or(|i| i <= record.steps.len() as u64);
    let text = "`step_index` must be the index of a recorded step";
    let lists = [
        ("checkpoints", points.steps.iter().position(|&i| !known(i))),
        (
            "constraints",
            record.constraints.iter().position(|c| !known(c.step)),
        ),
    ];
    for (list, position) in lists {
        if let Some(position) = position {
            let fault: Read<()> = rule(s, "unknown_step", text);
            return fault.map_err(|f| {
                f.inside("step_index")
                    .inside(&position.to_string())
                    .inside(list)
            });
        }
    }
    let mut ids = BTreeSet::new();
    if let Some(position) = points.ids.iter().position(|id| !ids.insert(id)) {
        let fault: Read<()> = rule(
            s,
            "duplicate_checkpoint_id",
            format!(
                "checkpoint ids must be unique: \"{}\" is repeated",
                points.ids[position]
            ),
        );
        return fault.map_err(|f| {
            f.inside("checkpoint_id")
                .inside(&position.to_string())
                .inside("checkpoints")
        });
    }
    let named = record
        .steps
        .iter()
        .filter(|step| step.agent.is_some())
        .count();
    if named != 0 && named != record.steps.len() {
        let position = record.steps.iter().position(|step| step.agent.is_none());
        let position = position.unwrap_or(0).to_string();
        let fault: Read<()> = rule(
            s,
            "agents_partly_named",
            "either every step must name its agent or none",
        );
        return fault.map_err(|f| f.inside(&position).inside("steps"));
    }
    Ok(())
}

fn read_step<'a>(s: &mut Scanner<'a>) -> Read<(Step<'a>, u64)> {
    let mut index = 0;
    let mut step = Step {
        kind: StepKind::Message,
        tool: None,
        call_id: None,
        agent: None,
        to_agent: None,
        arguments: "null",
        result: "null",
        error: None,
        metadata: "{}",
    };
    let mut seen = Seen::default();
    object(s, |s, key| {
        let bit = STEP_FIELDS.iter().position(|field| *field == key);
        let Some(bit) = bit else {
            return unknown(s, "a step", key);
        };
        seen.once(s, bit as u32, key)?;
        match key {
            "index" => index = whole(s, "`index`")?,
            "kind" => {
                step.kind = one_of(
                    s,
                    StepKind::from_word,
                    "message, tool_call, tool_result, observation, decision, final, handoff",
                )?;
            }
            "tool_name" => step.tool = nullable(s, |s| name(s, "`tool_name`"))?,
            "call_id" => step.call_id = nullable(s, |s| name(s, "`call_id`"))?,
            "agent" => step.agent = nullable(s, |s| name(s, "`agent`"))?,
            "to_agent" => step.to_agent = nullable(s, |s| name(s, "`to_agent`"))?,
            "arguments" => step.arguments = s.raw()?,
            "result" => step.result = s.raw()?,
            "error" => step.error = nullable(s, |s| string(s, "`error`"))?,
            "latency_ms" => latency(s)?,
            _ => {
                typed(s, b'{', "must be an object")?;
                step.metadata = s.raw()?;
            }
        }
        Ok(())
    })?;
    seen.all(s, &[(0, "index"), (1, "kind")], "a step")?;
    check_step(s, &step)?;
    Ok((step, index))
}

const STEP_FIELDS: [&str; 11] = [
    "index",
    "kind",
    "tool_name",
    "arguments",
    "result",
    "call_id",
    "agent",
    "error",
    "latency_ms",
    "metadata",
    "to_agent",
];

/// The rules across the fields of a step.
fn check_step(s: &Scanner<'_>, step: &Step<'_>) -> Read<()> {
    match step.kind {
        StepKind::ToolCall | StepKind::ToolResult if step.tool.is_none() => rule(
            s,
            "tool_name_required",
            format!(
                "a step of kind {} must have a `tool_name`",
                step.kind.word()
            ),
        ),
        StepKind::Handoff => match (&step.agent, &step.to_agent) {
            (Some(from), Some(to)) if from == to => {
                rule(s, "handoff_to_self", "a handoff must go to another agent")
            }
            (Some(_), Some(_)) => Ok(()),
            _ => rule(
                s,
                "handoff_parties_required",
                "a handoff must have both `agent` and `to_agent`",
            ),
        },
        _ if step.to_agent.is_some() => rule(
            s,
            "to_agent_not_allowed",
            "only a handoff must have a `to_agent`",
        ),
        _ => Ok(()),
    }
}

fn read_constraint<'a>(s: &mut Scanner<'a>) -> Read<Constraint<'a>> {
    let mut check = Constraint {
        name: Cow::Borrowed(""),
        passed: false,
        step: None,
    };
    let mut seen = Seen::default();
    object(s, |s, key| match key {
        "name" => {
            seen.once(s, 0, key)?;
            check.name = name(s, "`name`")?;
            Ok(())
        }
        "passed" => {
            seen.once(s, 1, key)?;
            check.passed = boolean(s, "`passed`")?;
            Ok(())
        }
        "detail" => {
            seen.once(s, 2, key)?;
            nullable(s, |s| string(s, "`detail`")).map(|_| ())
        }
        "step_index" => {
            seen.once(s, 3, key)?;
            check.step = nullable(s, |s| whole(s, "`step_index`"))?;
            Ok(())
        }
        _ => unknown(s, "a constraint", key),
    })?;
    seen.all(s, &[(0, "name"), (1, "passed")], "a constraint")?;
    Ok(check)
}

fn nullable<'a, T>(
    s: &mut Scanner<'a>,
    read: impl FnOnce(&mut Scanner<'a>) -> Read<T>,
) -> Read<Option<T>> {
    if s.peek() == b'n' {
        return s.null().map(|()| None);
    }
    read(s).map(Some)
}

fn string<'a>(s: &mut Scanner<'a>, what: &str) -> Read<Cow<'a, str>> {
    if s.peek() == b'"' {
        return s.string();
    }
    other(s, "wrong_type", format!("{what} must be a string"))
}

/// A string that is not empty; white space alone counts as something.
fn name<'a>(s: &mut Scanner<'a>, what: &str) -> Read<Cow<'a, str>> {
    let text = string(s, what)?;
    if text.is_empty() {
        return rule(s, "empty_string", format!("{what} must not be empty"));
    }
    Ok(text)
}

fn boolean(s: &mut Scanner<'_>, what: &str) -> Read<bool> {
    match s.peek() {
        b't' | b'f' => s.boolean(),
        _ => other(s, "wrong_type", format!("{what} must be true or false")),
    }
}

/// An integer from 1; one beyond 2^64 is larger than any index.
fn whole(s: &mut Scanner<'_>, what: &str) -> Read<u64> {
    if !matches!(s.peek(), b'-' | b'0'..=b'9') {
        return other(s, "wrong_type", format!("{what} must be an integer"));
    }
    let token = s.number()?;
    if !canon::is_integer_token(token) {
        return rule(s, "wrong_type", format!("{what} must be an integer"));
    }
    if token.starts_with('-') || token == "0" {
        return rule(s, "below_minimum", format!("{what} must be at least 1"));
    }
    Ok(token.parse().unwrap_or(u64::MAX))
}

fn one_of<T>(s: &mut Scanner<'_>, from: fn(&str) -> Option<T>, words: &str) -> Read<T> {
    if s.peek() != b'"' {
        return other(
            s,
            "not_in_enum",
            format!("the value must be one of {words}"),
        );
    }
    match from(&s.string()?) {
        Some(value) => Ok(value),
        None => rule(
            s,
            "not_in_enum",
            format!("the value must be one of {words}"),
        ),
    }
}

/// Nothing reads a latency; its check is lenient about numbers in strings.
fn latency(s: &mut Scanner<'_>) -> Read<()> {
    const WHAT: &str = "`latency_ms` must be a finite number, 0 or more, or null";
    let value = match s.peek() {
        b'n' => return s.null(),
        b't' | b'f' => return s.boolean().map(|_| ()),
        b'-' | b'0'..=b'9' => s.number()?.parse().ok(),
        b'"' => s.string()?.trim().parse::<f64>().ok(),
        _ => return other(s, "wrong_type", WHAT.to_owned()),
    };
    match value {
        None => rule(s, "wrong_type", WHAT),
        Some(x) if !f64::is_finite(x) => rule(s, "not_finite", WHAT),
        Some(x) if x < 0.0 => rule(s, "below_minimum", WHAT),
        Some(_) => Ok(()),
    }
}

/// A value of the wrong type, unless it is no value at all.
fn other<T>(s: &mut Scanner<'_>, code: &'static str, text: String) -> Read<T> {
    let fault = s.fault(What::Rule(code, text));
    s.raw()?;
    Err(fault)
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
