//! Answers from JSON Lines: `{case_id, status, output, error, latency_ms}`.

use super::problem::{Problem, Refused};
use super::{boxed, Result};
use extendr_api::prelude::*;
use serde_json::Value;
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use warrant_core::canon;

/// The columns of a file of answers, and what was set aside.
pub(super) fn read(path: &str, name: &str, strict: bool) -> Result<List> {
    let unreadable = |e: std::io::Error| boxed(Refused::file(name, &e));
    let mut reader = BufReader::new(std::fs::File::open(path).map_err(unreadable)?);
    let mut columns = Columns::default();
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(unreadable)? == 0 {
            return Ok(columns.into_list());
        }
        number += 1;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        if let Err(mut problem) = columns.push(&line) {
            problem.line = Some(number);
            if strict {
                return Err(boxed(Refused::record(Some(name), *problem)));
            }
            columns.problems.push(*problem);
        }
    }
}

#[derive(Default)]
struct Columns {
    known: HashMap<String, ()>,
    case_id: Vec<String>,
    status: Vec<String>,
    output: Vec<Option<String>>,
    error: Vec<Option<String>>,
    latency: Vec<f64>,
    problems: Vec<Problem>,
}

const STATUSES: [&str; 4] = ["OK", "ERROR", "TIMEOUT", "NOT_RUN"];
const FIELDS: [&str; 5] = ["case_id", "status", "output", "error", "latency_ms"];

impl Columns {
    fn push(&mut self, line: &[u8]) -> std::result::Result<(), Box<Problem>> {
        let refuse = |code, rule: String, pointer: &str, id: Option<&str>| {
            let mut problem = Problem::plain(code, rule, id.map(str::to_owned));
            problem.pointer = pointer.to_owned();
            Err(Box::new(problem))
        };
        let value = match canon::parse(line) {
            Ok(value) => value,
            Err(error) => return refuse("not_json", error.to_string(), "", None),
        };
        let Some(map) = value.as_object() else {
            return refuse("wrong_type", "a line must be an object".into(), "", None);
        };
        let id = match map.get("case_id") {
            Some(Value::String(id)) if !id.is_empty() => id.clone(),
            Some(Value::Number(id)) if canon::is_integer_token(id.as_str()) => id.to_string(),
            _ => {
                let rule = "a line must have a `case_id`, a string or an integer".to_owned();
                return refuse("missing_field", rule, "/case_id", None);
            }
        };
        if let Some(key) = map.keys().find(|key| !FIELDS.contains(&key.as_str())) {
            let rule = format!("a line must not have a field `{key}`");
            return refuse(
                "unknown_field",
                rule,
                &canon::pointer([key.as_str()]),
                Some(&id),
            );
        }
        let status = map.get("status").and_then(Value::as_str).unwrap_or("OK");
        if !STATUSES.contains(&status) || map.get("status").is_some_and(|s| !s.is_string()) {
            let rule = format!("`status` must be one of {}", STATUSES.join(", "));
            return refuse("not_in_enum", rule, "/status", Some(&id));
        }
        if self.known.insert(id.clone(), ()).is_some() {
            let rule = "a case must have one answer in the file".to_owned();
            return refuse("duplicate_record", rule, "/case_id", Some(&id));
        }
        let text = |key: &str| map.get(key).map(canon::to_string);
        self.case_id.push(super::counts::no_nul(&id));
        self.status.push(status.to_owned());
        self.output.push(text("output").filter(|_| status == "OK"));
        self.error
            .push(text("error").filter(|error| error != "null"));
        let latency = map.get("latency_ms").and_then(Value::as_f64);
        self.latency
            .push(latency.filter(|ms| *ms >= 0.0).unwrap_or(f64::NAN));
        Ok(())
    }

    fn into_list(self) -> List {
        let texts = |column: Vec<Option<String>>| -> Strings {
            column
                .into_iter()
                .map(|text| text.map_or(Rstr::na(), Rstr::from))
                .collect()
        };
        list!(
            case_id = self.case_id,
            status = self.status,
            output = texts(self.output),
            error = texts(self.error),
            latency_ms = self.latency,
            problems = super::tables::problems(&self.problems)
        )
    }
}
