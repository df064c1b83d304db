//! The tool log of a run, read from its journal: one row an action.

use crate::convert::named;
use crate::fault::{boxed, guard};
use crate::run_late;
use crate::run_setup::{self, unusable, Content};
use extendr_api::prelude::*;
use serde_json::Value;
use std::collections::HashMap;
use warrant_core::canon;
use warrant_core::digest::Digest;
use warrant_core::event::{CallFinished, Event, LateResult};
use warrant_core::journal::Line;
use warrant_core::outcome::Outcome;

/// One action, as far as the journal tells.
struct Row {
    name: String,
    step: u64,
    arguments: Digest,
    outcome: Option<Outcome>,
    end: Option<CallFinished>,
    text: Option<Digest>,
    span: Option<String>,
    at_ms: u64,
    guardrails: Vec<String>,
    late: Vec<LateResult>,
}

#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    place: HashMap<(u64, u64), usize>,
    requests: HashMap<Digest, usize>,
}

impl Rows {
    fn at(&mut self, step: u64, action: u64) -> Option<&mut Row> {
        let place = *self.place.get(&(step, action))?;
        self.rows.get_mut(place)
    }

    fn end(&mut self, step: u64, action: u64, outcome: Outcome, text: Option<Digest>) {
        if let Some(row) = self.at(step, action) {
            row.outcome = Some(outcome);
            row.text = text;
        }
    }

    fn end_request(&mut self, request: &Digest, outcome: Outcome, text: Digest) {
        let row = self
            .requests
            .get(request)
            .and_then(|p| self.rows.get_mut(*p));
        if let Some(row) = row {
            row.outcome = Some(outcome);
            row.text = Some(text);
        }
    }

    fn take(&mut self, line: &Line<'_>, event: Event, digest: Digest) {
        match event {
            Event::Decided(e) => {
                for (i, asked) in e.actions.into_iter().enumerate() {
                    self.place.insert((e.step, i as u64), self.rows.len());
                    self.rows.push(Row {
                        name: asked.tool,
                        step: e.step,
                        arguments: asked.arguments,
                        outcome: None,
                        end: None,
                        text: None,
                        span: None,
                        at_ms: line.at,
                        guardrails: Vec::new(),
                        late: Vec::new(),
                    });
                }
            }
            Event::Denied(e) => self.end(e.step, e.action, e.outcome, Some(e.text)),
            Event::ApprovalRequested(e) => {
                if let Some(place) = self.place.get(&(e.step, e.action)) {
                    self.requests.insert(digest, *place);
                }
                self.end(e.step, e.action, Outcome::ApprovalRequired, None);
            }
            Event::Rejected(e) => self.end_request(&e.request, Outcome::ApprovalDenied, e.text),
            Event::Expired(e) => self.end_request(&e.request, Outcome::ApprovalExpired, e.text),
            Event::CallStarted(e) => {
                if let Some(row) = self.at(e.step, e.action) {
                    row.arguments = e.arguments;
                    row.outcome = None;
                    row.at_ms = line.at;
                    row.span.get_or_insert(digest.to_hex()[..16].to_owned());
                }
            }
            Event::CallFinished(e) => {
                self.end(e.step, e.action, e.outcome, e.text);
                if let Some(row) = self.at(e.step, e.action) {
                    row.end = Some(e);
                }
            }
            Event::Recovered(e) => {
                if let Some((action, outcome)) = e.action.zip(e.outcome) {
                    self.end(e.step, action, outcome, e.text);
                }
            }
            Event::Guardrail(e) => {
                let verdict = serde_json::to_value(e.verdict).unwrap_or_default();
                let text = format!("{}: {}", e.name, verdict.as_str().unwrap_or_default());
                if let Some(row) = e.action.and_then(|a| self.at(e.step, a)) {
                    row.guardrails.push(text);
                }
            }
            Event::LateResult(e) => self.late(e),
            _ => {}
        }
    }

    fn late(&mut self, late: LateResult) {
        if let Some(row) = self.at(late.step, late.action) {
            if row.late.iter().all(|l| l.attempt != late.attempt) {
                row.late.push(late);
            }
        }
    }
}

/// What late drivers left beside a journal that had no place for it.
fn left_beside(content: &Robj) -> Vec<LateResult> {
    let texts = Strings::try_from(content).unwrap_or_default();
    let named = content.names().into_iter().flatten().zip(texts.iter());
    named
        .filter(|(name, _)| name.starts_with(run_late::PREFIX))
        .filter_map(|(name, text)| run_late::left(name, text.as_ref()))
        .collect()
}

fn late_text(late: &LateResult, content: &Content) -> String {
    let value = text_of(content, late.result.or(late.text));
    let value = value.map_or(String::new(), |v| format!(": {v}"));
    format!("attempt {}, {}{value}", late.attempt, late.outcome.word())
}

// The columns of `tool_log()` of a run.
#[extendr]
fn rs_run_log(lines: Robj, content: Robj) -> Robj {
    guard(|| {
        let beside = left_beside(&content);
        let (content, _) = run_setup::content(&content)?;
        let lines = Strings::try_from(&lines).map_err(|e| unusable("a journal", e))?;
        let mut rows = Rows::default();
        let mut run = String::new();
        for text in lines.iter() {
            let text: &str = text.as_ref();
            let line = Line::read(text.as_bytes());
            let line = line.ok_or_else(|| unusable("a journal", "a line is no record"))?;
            let event = Event::read(line.event, line.data.as_bytes()).map_err(boxed)?;
            let digest = line.digest.parse().map_err(boxed)?;
            run = line.run.to_owned();
            rows.take(&line, event, digest);
        }
        beside.into_iter().for_each(|late| rows.late(late));
        Ok(columns(&rows.rows, &run, &content))
    })
}

// The records of a journal as columns.
#[extendr]
fn rs_run_events(lines: Robj) -> Robj {
    guard(|| {
        let lines = Strings::try_from(&lines).map_err(|e| unusable("a journal", e))?;
        let bad = || unusable("a journal", "a line is no record");
        let mut read = Vec::new();
        for text in lines.iter() {
            let text: &str = text.as_ref();
            read.push(Line::read(text.as_bytes()).ok_or_else(bad)?);
        }
        let text = |f: fn(&Line) -> Option<String>| strings(read.iter().map(f));
        let number =
            |f: fn(&Line) -> f64| -> Robj { read.iter().map(f).collect::<Vec<f64>>().into() };
        Ok(list!(
            run_id = text(|l| Some(l.run.to_owned())),
            seq = number(|l| l.seq as f64),
            event = text(|l| Some(l.event.to_owned())),
            at = number(|l| l.at as f64 / 1e3),
            active_ms = number(|l| l.active_ms as f64),
            data = text(|l| Some(l.data.to_owned())),
            prev = text(|l| l.prev.map(str::to_owned)),
            digest = text(|l| Some(l.digest.to_owned()))
        ))
    })
}

fn text_of(content: &Content, address: Option<Digest>) -> Option<String> {
    let bytes = content.get(&address?)?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// What a model was shown: a text as it is, anything else as JSON.
fn shown(row: &Row, content: &Content) -> Option<String> {
    let result = row.end.as_ref().and_then(|e| e.result);
    let json = text_of(content, row.text.or(result))?;
    match canon::parse(json.as_bytes()) {
        Ok(Value::String(text)) => Some(text),
        _ => Some(json),
    }
}

fn notes(row: &Row, content: &Content) -> Value {
    let notes = row.end.as_ref().and_then(|e| e.notes);
    let bytes = notes.and_then(|a| content.get(&a));
    bytes
        .and_then(|b| canon::parse(b).ok())
        .unwrap_or(Value::Null)
}

fn note_texts(notes: &Value, name: &str) -> Robj {
    let texts = notes.get(name).and_then(Value::as_array);
    let texts: Vec<String> = texts
        .into_iter()
        .flatten()
        .filter_map(|t| t.as_str().map(str::to_owned))
        .collect();
    texts.into()
}

fn columns(rows: &[Row], run: &str, content: &Content) -> Robj {
    let sha = |text: Option<String>| text.map(|t| Digest::of_bytes(t.as_bytes()).to_hex());
    let all_notes: Vec<Value> = rows.iter().map(|r| notes(r, content)).collect();
    let noted = |i: usize, name: &str| {
        let value = all_notes[i].get(name);
        value.and_then(Value::as_str).map(str::to_owned)
    };
    let end = |r: &Row, f: fn(&CallFinished) -> f64| r.end.as_ref().map_or(0.0, f);
    let lists = |name: &str| -> Robj {
        List::from_values(all_notes.iter().map(|n| note_texts(n, name))).into()
    };
    let result_hash = rows.iter().enumerate().map(|(i, r)| {
        let result = r.end.as_ref().and_then(|e| e.result);
        noted(i, "result_hash").or_else(|| sha(text_of(content, result)))
    });
    let shown_hash = rows
        .iter()
        .enumerate()
        .map(|(i, r)| noted(i, "shown_hash").or_else(|| sha(shown(r, content))));
    let doubles =
        |f: &dyn Fn(&Row) -> f64| -> Robj { rows.iter().map(f).collect::<Vec<f64>>().into() };
    let guardrails = rows.iter().map(|r| -> Robj { r.guardrails.clone().into() });
    let late = rows.iter().map(|r| -> Robj {
        let texts = r.late.iter().map(|l| late_text(l, content));
        texts.collect::<Vec<String>>().into()
    });
    let round = std::iter::repeat_n(Rint::na(), rows.len());
    let values: Vec<(&str, Robj)> = vec![
        ("run_id", strings(rows.iter().map(|_| Some(run.to_owned())))),
        ("span_id", strings(rows.iter().map(|r| r.span.clone()))),
        ("agent_id", strings(rows.iter().map(|_| None))),
        (
            "step",
            rows.iter()
                .map(|r| r.step as i32)
                .collect::<Vec<i32>>()
                .into(),
        ),
        ("round", round.collect::<Integers>().into()),
        ("name", strings(rows.iter().map(|r| Some(r.name.clone())))),
        (
            "arguments_hash",
            strings(
                rows.iter()
                    .map(|r| sha(text_of(content, Some(r.arguments)))),
            ),
        ),
        ("result_hash", strings(result_hash)),
        ("shown_hash", strings(shown_hash)),
        (
            "arguments",
            strings(rows.iter().map(|r| text_of(content, Some(r.arguments)))),
        ),
        ("result", strings(rows.iter().map(|r| shown(r, content)))),
        (
            "status",
            strings(rows.iter().map(|r| r.outcome.map(|o| o.word().to_owned()))),
        ),
        (
            "truncated",
            rows.iter()
                .map(|r| r.end.as_ref().is_some_and(|e| e.truncated))
                .collect::<Vec<bool>>()
                .into(),
        ),
        ("bytes", doubles(&|r| end(r, |e| e.bytes as f64))),
        (
            "duration_s",
            doubles(&|r| end(r, |e| e.duration_us as f64 / 1e6)),
        ),
        ("ts", doubles(&|r| r.at_ms as f64 / 1e3)),
        ("error_class", lists("error_class")),
        ("warnings", lists("warnings")),
        ("messages", lists("messages")),
        ("guardrails", List::from_values(guardrails).into()),
        ("late", List::from_values(late).into()),
    ];
    let names: Vec<&str> = values.iter().map(|(n, _)| *n).collect();
    named(names.into_iter(), values.into_iter().map(|(_, v)| v))
}

fn strings(cells: impl Iterator<Item = Option<String>>) -> Robj {
    let cells = cells.map(|c| {
        c.map_or(Rstr::na(), |s| {
            Rstr::from(s.replace('\0', "\u{fffd}").as_str())
        })
    });
    Strings::from_values(cells.collect::<Vec<_>>()).into()
}

extendr_module! {
    mod run_log;
    fn rs_run_events;
    fn rs_run_log;
}
