//! Reading a record: the rules of each field, then those across fields.

use super::{Constraint, Step, StepKind, Terminal, Trajectory};
use crate::canon;
use crate::scan::{Fault, Scanner, What};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;

pub(super) type Read<T> = Result<T, Fault>;

/// Which fields of an object were read.
#[derive(Default)]
pub(super) struct Seen(u32);

impl Seen {
    pub(super) fn once(&mut self, s: &Scanner<'_>, bit: u32, key: &str) -> Read<()> {
        if self.0 & (1 << bit) != 0 {
            // The pointer already ends in the key.
            return Err(s.fault(What::DuplicateKey(key.to_owned())));
        }
        self.0 |= 1 << bit;
        Ok(())
    }

    pub(super) fn all(&self, s: &Scanner<'_>, required: &[(u32, &str)], what: &str) -> Read<()> {
        match required.iter().find(|(bit, _)| self.0 & (1 << bit) == 0) {
            Some((_, key)) => rule(s, "missing_field", format!("{what} must have `{key}`")),
            None => Ok(()),
        }
    }
}

fn rule<T>(s: &Scanner<'_>, code: &'static str, text: impl Into<String>) -> Read<T> {
    Err(s.fault(What::Rule(code, text.into())))
}

pub(super) fn unknown(s: &Scanner<'_>, what: &str, key: &str) -> Read<()> {
    rule(
        s,
        "unknown_field",
        format!("{what} must not have a field `{key}`"),
    )
}

/// The case of a line whose record is broken, where the line is JSON at all.
pub(super) fn id_of(text: &str) -> Option<String> {
    let line = canon::parse(text.as_bytes()).ok()?;
    match line.get("case_id")? {
        Value::String(id) if !id.is_empty() => Some(id.clone()),
        Value::Number(id) if canon::is_integer_token(id.as_str()) => Some(id.as_str().to_owned()),
        _ => None,
    }
}

pub(super) fn read_id<'a>(s: &mut Scanner<'a>) -> Read<Cow<'a, str>> {
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

pub(super) fn object<'a>(
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

pub(super) fn read_record<'a>(s: &mut Scanner<'a>) -> Read<Trajectory<'a>> {
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
