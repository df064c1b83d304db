//! The `agent_trajectory/v1` record of a run.

use super::{value_at, Content};
use crate::event::Status;
use crate::outcome::Outcome;
use crate::run::{Action, Closed, History, Step};
use serde_json::{json, Map, Value};

/// Whether somebody judges the answers of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// A `done` criterion accepted the answer.
    ByDone,
    /// Nobody says whether the answer is right.
    ByNobody,
}

/// Whether a record has the values of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// It has.
    Shown,
    /// It says what happened, and no value.
    Withheld,
}

/// The record of a run. A call that started is a `tool_call` and a `tool_result`;
/// any other action, and an answer that was not accepted, a `decision`.
pub fn trajectory(history: &History, content: &Content, judged: Judged, values: Values) -> Value {
    let mut record = Record {
        content,
        values,
        steps: Vec::new(),
    };
    for step in &history.steps {
        record.closed(step);
    }
    let state = &history.state;
    if let Some(step) = state.step() {
        record.open(step);
    }
    let status = state.status();
    let answer = state.end().and_then(|end| end.answer);
    if status == Status::Completed && answer.is_some() {
        record.push("final", |r, step| {
            r.value(step, "result", answer.as_ref());
        });
    }
    let limit = state.charter().and_then(|c| c.limits.steps);
    json!({
        "checkpoints": [],
        "constraints": [],
        "step_limit": limit.filter(|n| *n > 0),
        "steps": record.steps,
        "terminal_status": match (status, judged) {
            (Status::Completed, Judged::ByDone) => "success",
            (Status::Failed, _) => "failure",
            _ => "unknown",
        },
        "truncated": !matches!(status, Status::Completed | Status::Failed),
    })
}

struct Record<'a> {
    content: &'a Content,
    values: Values,
    steps: Vec<Value>,
}

type Fields = Map<String, Value>;

impl Record<'_> {
    fn push(&mut self, kind: &str, fill: impl FnOnce(&Self, &mut Fields)) {
        let mut step = Fields::new();
        step.insert("index".into(), (self.steps.len() + 1).into());
        step.insert("kind".into(), kind.into());
        fill(self, &mut step);
        self.steps.push(Value::Object(step));
    }

    /// A value that is there and not null.
    fn value(&self, into: &mut Fields, name: &str, address: Option<&crate::digest::Digest>) {
        if self.values == Values::Withheld {
            return;
        }
        if let Some(value) = value_at(self.content, address).filter(|v| !v.is_null()) {
            into.insert(name.into(), value);
        }
    }

    fn closed(&mut self, step: &Closed) {
        match step.decision {
            crate::event::Decision::Act => self.acted(step.number, &step.actions),
            crate::event::Decision::Finish => self.push("decision", |r, fields| {
                let mut note = Fields::new();
                note.insert("outcome".into(), "answer_rejected".into());
                if r.values == Values::Shown {
                    let answer = value_at(r.content, step.answer.as_ref());
                    note.insert("answer".into(), answer.unwrap_or(Value::Null));
                }
                fields.insert("metadata".into(), Value::Object(note));
            }),
        }
    }

    fn open(&mut self, step: &Step) {
        self.acted(step.number, &step.actions);
    }

    fn acted(&mut self, number: u64, actions: &[Action]) {
        for (i, action) in actions.iter().enumerate() {
            let mut note = Fields::new();
            note.insert("step".into(), number.into());
            if actions.len() > 1 {
                note.insert("batch".into(), number.into());
            }
            let outcome = action.outcome().map(Outcome::word);
            note.insert("outcome".into(), outcome.into());
            if action.attempts > 0 {
                self.called(action, &format!("{number}.{}", i + 1), &note);
            } else {
                self.decided(action, note);
            }
        }
    }

    fn called(&mut self, action: &Action, id: &str, note: &Fields) {
        let head = |fields: &mut Fields| {
            fields.insert("call_id".into(), id.into());
            fields.insert("metadata".into(), Value::Object(note.clone()));
            fields.insert("tool_name".into(), action.tool.as_str().into());
        };
        self.push("tool_call", |r, fields| {
            head(fields);
            r.value(fields, "arguments", Some(&action.arguments));
        });
        if action.outcome().is_none() {
            return;
        }
        self.push("tool_result", |r, fields| {
            head(fields);
            let ending = action.ending();
            r.value(fields, "result", ending.and_then(|e| e.result.as_ref()));
            if let Some(error) = r.error(action) {
                fields.insert("error".into(), error);
            }
        });
    }

    fn error(&self, action: &Action) -> Option<Value> {
        let text = match action.outcome()? {
            Outcome::Executed => return None,
            Outcome::ApprovalRequired => return Some(PENDING.into()),
            _ => action.ending()?.text?,
        };
        match self.values {
            // A text that was put in place of another one need not be a text.
            Values::Shown => match value_at(self.content, Some(&text)) {
                None => None,
                Some(Value::Null) => Some(WITHHELD.into()),
                Some(Value::String(text)) => Some(text.into()),
                Some(other) => Some(crate::canon::to_string(&other).into()),
            },
            Values::Withheld => Some(WITHHELD.into()),
        }
    }

    fn decided(&mut self, action: &Action, mut note: Fields) {
        note.insert("tool".into(), action.tool.as_str().into());
        if self.values == Values::Shown {
            let arguments = value_at(self.content, Some(&action.arguments));
            note.insert("arguments".into(), arguments.unwrap_or(Value::Null));
        }
        self.push("decision", |_, fields| {
            fields.insert("metadata".into(), Value::Object(note));
        });
    }
}

/// What is told of an action that waits for a person.
pub const PENDING: &str = "PENDING: a person has been asked and has not decided. It did not run.";

/// Stands where the text of an error was.
const WITHHELD: &str = "withheld";

/// What is left of a record, of a run or of anything else, without its values.
pub fn withhold(record: &Value) -> Value {
    let list = |name: &str, each: &dyn Fn(&Value) -> Value| -> Value {
        let items = record.get(name).and_then(Value::as_array);
        items.into_iter().flatten().map(each).collect()
    };
    json!({
        "checkpoints": list("checkpoints", &|c| pick(c, &["checkpoint_id", "kind", "step_index"])),
        "constraints": list("constraints", &|c| pick(c, &["name", "passed", "step_index"])),
        "step_limit": record.get("step_limit").cloned().unwrap_or(Value::Null),
        "steps": list("steps", &withhold_step),
        "terminal_status": record.get("terminal_status").cloned().unwrap_or("unknown".into()),
        "truncated": record.get("truncated").cloned().unwrap_or(false.into()),
    })
}

fn withhold_step(step: &Value) -> Value {
    let mut left = pick(
        step,
        &[
            "index",
            "kind",
            "tool_name",
            "call_id",
            "agent",
            "to_agent",
            "latency_ms",
        ],
    );
    if let Some(fields) = left.as_object_mut() {
        if let Some(error) = step.get("error").and_then(Value::as_str) {
            let kept = if error == PENDING { PENDING } else { WITHHELD };
            fields.insert("error".into(), kept.into());
        }
        if let Some(note) = step.get("metadata") {
            let note = pick(note, &["step", "batch", "outcome", "tool"]);
            fields.insert("metadata".into(), note);
        }
    }
    left
}

fn pick(value: &Value, names: &[&str]) -> Value {
    let members = value.as_object().into_iter().flatten();
    let kept = members.filter(|(name, _)| names.contains(&name.as_str()));
    Value::Object(kept.map(|(n, v)| (n.clone(), v.clone())).collect())
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::*;

    fn record(values: Values) -> Value {
        let sample = Sample::new();
        let history = History::read(sample.lines(), None).unwrap();
        trajectory(&history, &sample.kept.content, sample.kept.judged, values)
    }

    #[test]
    fn a_run_is_a_valid_record_with_its_values() {
        let shown = record(Values::Shown);
        let text = shown.to_string();
        crate::trajectory::Trajectory::parse(&text).unwrap();
        assert_eq!(shown["steps"][0]["arguments"], json!({"mail": "a@x.org"}));
        assert_eq!(shown["steps"][1]["result"], json!(["ok"]));
        assert_eq!(shown["steps"][2]["result"], json!("sent to a@x.org"));
        assert_eq!(shown["terminal_status"], "success");
        assert_eq!(shown["truncated"], false);
    }

    #[test]
    fn what_is_withheld_is_what_is_left_without_values() {
        assert_eq!(withhold(&record(Values::Shown)), record(Values::Withheld));
        let text = record(Values::Withheld).to_string();
        crate::trajectory::Trajectory::parse(&text).unwrap();
        assert!(!text.contains("x.org") && !text.contains("ok"));
    }

    #[test]
    fn nothing_of_any_record_is_left_but_what_happened() {
        let any = json!({
            "steps": [
                {"index": 1, "kind": "tool_result", "tool_name": "t", "error": "no 1234", "metadata": {"why": 1234}},
                {"index": 2, "kind": "message", "agent": "a", "result": {"code": 1234}}
            ],
            "constraints": [{"name": "c", "passed": true, "detail": "1234"}],
            "checkpoints": [{"checkpoint_id": "p", "kind": "checkpoint", "payload": 1234, "description": "1234"}]
        });
        let left = withhold(&any).to_string();
        assert!(!left.contains("1234"));
        assert!(left.contains("\"error\":\"withheld\"") && left.contains("\"passed\":true"));
    }
}
