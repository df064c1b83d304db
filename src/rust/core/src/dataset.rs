//! Cases as people keep them: one JSON object a line.
//!
//! A case has an `input`, and may have an `id`, `expected`, `metadata` and a
//! `group_id`. Values are kept as canonical JSON text.

use crate::canon;
use crate::digest::Digest;
use crate::error::{Fault, Kind};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use thiserror::Error as ThisError;

/// The cases of a suite, by column; all columns have the same length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cases {
    /// Unique, not empty.
    pub id: Vec<String>,
    /// What the system is given; JSON, never null.
    pub input: Vec<String>,
    /// What the case declares; JSON, null when nothing.
    pub expected: Vec<String>,
    /// A JSON object.
    pub metadata: Vec<String>,
    /// The item that a trial repeats, when cases carry one.
    pub group_id: Option<Vec<String>>,
}

impl Cases {
    /// Reads JSON Lines, split at `\n` only. Blank lines are passed over.
    ///
    /// # Errors
    /// The first line that is not a case, or repeats an id.
    pub fn read(bytes: &[u8]) -> Result<Cases, Error> {
        let mut reader = Reader::default();
        for (i, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if !line.iter().all(u8::is_ascii_whitespace) {
                reader.line(i + 1, line)?;
            }
        }
        reader.end()
    }
}

/// What is wrong with a line of cases.
#[derive(Debug, Clone, PartialEq, Eq, ThisError)]
#[error("{}{what}", in_field(.field))]
#[non_exhaustive]
pub struct Error {
    code: &'static str,
    /// Counted from 1.
    pub line: usize,
    /// JSON pointer; empty for the whole line.
    pub field: String,
    what: String,
}

impl Fault for Error {
    fn code(&self) -> &'static str {
        self.code
    }

    fn kind(&self) -> Kind {
        Kind::Suite
    }

    fn facts(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        facts.insert("line".to_owned(), self.line.into());
        facts.insert("pointer".to_owned(), self.field.clone().into());
        facts
    }
}

fn in_field(field: &str) -> String {
    if field.is_empty() {
        String::new()
    } else {
        format!("`{field}` ")
    }
}

#[derive(Default)]
struct Reader {
    cases: Cases,
    groups: Vec<String>,
    seen: BTreeMap<String, usize>,
    first: Option<(usize, [bool; 3])>,
}

impl Reader {
    fn line(&mut self, line: usize, bytes: &[u8]) -> Result<(), Error> {
        let wrong = |code, field: &str, what: String| Error {
            code,
            line,
            field: field.to_owned(),
            what,
        };
        let value =
            canon::parse(bytes).map_err(|error| wrong("json_syntax", "", error.to_string()))?;
        let Value::Object(map) = value else {
            return Err(wrong("wrong_type", "", "must be a JSON object".to_owned()));
        };
        let given = |key: &str| map.get(key).filter(|value| !value.is_null());
        let Some(input) = given("input") else {
            let what = "is required and must not be null".to_owned();
            return Err(wrong("missing_field", "/input", what));
        };
        let metadata = given("metadata").cloned().unwrap_or_else(empty_object);
        if !metadata.is_object() {
            let what = "must be an object".to_owned();
            return Err(wrong("wrong_type", "/metadata", what));
        }
        let expected = given("expected").cloned().unwrap_or(Value::Null);
        let optional = OPTIONAL.map(|key| given(key).is_some());
        let (first, pattern) = *self.first.get_or_insert((line, optional));
        if let Some(i) = (0..OPTIONAL.len()).find(|i| pattern[*i] != optional[*i]) {
            let what = format!("must be on all lines or on none; line {first} is different");
            return Err(wrong("partly_given", &format!("/{}", OPTIONAL[i]), what));
        }
        if let Some(group) = given("group_id") {
            let Some(group) = name(group) else {
                return Err(wrong("wrong_type", "/group_id", NAME_RULE.to_owned()));
            };
            self.groups.push(group);
        }
        let key = if map.contains_key("id") {
            "id"
        } else {
            "case_id"
        };
        let id = match map.get(key) {
            Some(value) => name(value)
                .ok_or_else(|| wrong("wrong_type", &format!("/{key}"), NAME_RULE.to_owned()))?,
            None => self.derived(input, &expected, &metadata),
        };
        if let Some(earlier) = self.seen.insert(id.clone(), line) {
            let what = format!("repeats the id `{id}` of line {earlier}; ids are unique");
            return Err(wrong("duplicate_case", &format!("/{key}"), what));
        }
        self.cases.id.push(id);
        self.cases.input.push(canon::to_string(input));
        self.cases.expected.push(canon::to_string(&expected));
        self.cases.metadata.push(canon::to_string(&metadata));
        Ok(())
    }

    /// An id from the content; equal cases are numbered, since they are run apart.
    fn derived(&self, input: &Value, expected: &Value, metadata: &Value) -> String {
        let content = Value::Array(vec![input.clone(), expected.clone(), metadata.clone()]);
        let digest = Digest::of_value(&content).to_string();
        let stem = format!("case_{}", &digest[..12]);
        let mut id = stem.clone();
        let mut n = 2;
        while self.seen.contains_key(&id) {
            id = format!("{stem}_{n}");
            n += 1;
        }
        id
    }

    fn end(mut self) -> Result<Cases, Error> {
        if !self.groups.is_empty() {
            self.cases.group_id = Some(self.groups);
        }
        Ok(self.cases)
    }
}

/// A text that is not empty, or an integer as text.
fn name(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => (!text.is_empty()).then(|| text.clone()),
        Value::Number(number) => {
            let token = number.to_string();
            canon::is_integer_token(&token).then_some(token)
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn empty_object() -> Value {
    Value::Object(Map::new())
}

const NAME_RULE: &str = "must be a text that is not empty, or an integer";

/// Keys that stand on all lines or on none.
const OPTIONAL: [&str; 3] = ["group_id", "time_order", "initial_state"];

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_columns() {
        let text = "{\"id\":\"a\",\"input\":1.0,\"expected\":{\"b\":1,\"a\":2}}\n\n\
                    {\"id\":7,\"input\":\"x\u{2028}\",\"metadata\":{\"k\":\"v\"},\"other\":0}\n";
        let cases = Cases::read(text.as_bytes()).unwrap();
        assert_eq!(cases.id, ["a", "7"]);
        assert_eq!(cases.input, ["1", "\"x\u{2028}\""]);
        assert_eq!(cases.expected, ["{\"a\":2,\"b\":1}", "null"]);
        assert_eq!(cases.metadata, ["{}", "{\"k\":\"v\"}"]);
        assert_eq!(cases.group_id, None);
    }

    #[test]
    fn equal_cases_without_an_id_are_kept_apart() {
        let cases = Cases::read(b"{\"input\":1}\n{\"input\":1}\n{\"input\":2}").unwrap();
        assert_eq!(cases.id[1], format!("{}_2", cases.id[0]));
        assert_ne!(cases.id[0], cases.id[2]);
    }

    #[test]
    fn no_lines_are_no_cases() {
        assert_eq!(Cases::read(b"").unwrap(), Cases::default());
    }

    #[test]
    fn faults_name_line_and_field() {
        let good = "{\"id\":\"a\",\"input\":1}";
        let table = [
            ("{\"id\":\"b\",\"in", "json_syntax", ""),
            ("[1]", "wrong_type", ""),
            ("{\"id\":\"b\"}", "missing_field", "/input"),
            ("{\"id\":\"b\",\"input\":null}", "missing_field", "/input"),
            ("{\"id\":\"a\",\"input\":1}", "duplicate_case", "/id"),
            ("{\"id\":true,\"input\":1}", "wrong_type", "/id"),
            ("{\"id\":\"\",\"input\":1}", "wrong_type", "/id"),
            ("{\"id\":1.5,\"input\":1}", "wrong_type", "/id"),
            (
                "{\"id\":\"b\",\"input\":1,\"metadata\":[]}",
                "wrong_type",
                "/metadata",
            ),
            (
                "{\"id\":\"b\",\"input\":1,\"group_id\":\"g\"}",
                "partly_given",
                "/group_id",
            ),
            ("{\"id\":\"b\",\"id\":\"c\",\"input\":1}", "json_syntax", ""),
        ];
        for (bad, code, field) in table {
            let error = Cases::read(format!("{good}\n{bad}\n").as_bytes()).unwrap_err();
            assert_eq!(
                (error.code(), error.line, error.field.as_str()),
                (code, 2, field),
                "{bad}"
            );
        }
    }

    #[test]
    fn groups_are_kept_when_every_line_has_one() {
        let text = b"{\"input\":1,\"group_id\":\"g\"}\n{\"input\":2,\"group_id\":3}";
        let groups = Cases::read(text).unwrap().group_id.unwrap();
        assert_eq!(groups, ["g", "3"]);
    }
}
