//! Cases as people keep them: one JSON object a line.
//!
//! A case has an `input`, and may have an `id`, `expected`, `metadata` and a
//! `group_id`. Values are kept as canonical JSON text.

use crate::canon;
use crate::digest::Digest;
use crate::error::ReadFrom;
use serde_json::{Map, Value};
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};

/// The cases of a suite, by column; all columns have the same length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cases {
    /// Unique, not empty.
    pub id: Texts,
    /// What the system is given; JSON, never null.
    pub input: Texts,
    /// What the case declares; JSON, null when nothing.
    pub expected: Repeats,
    /// A JSON object.
    pub metadata: Repeats,
    /// The item that a trial repeats, when cases carry one.
    pub group_id: Option<Repeats>,
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
        Ok(reader.end())
    }
}

/// Texts end to end: millions of short ones cost little more than their bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    all: String,
    ends: Vec<usize>,
}

impl Texts {
    fn push(&mut self, text: &str) {
        self.all.push_str(text);
        self.ends.push(self.all.len());
    }

    /// The text at a position, counted from 0.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<&str> {
        let start = match at.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.all.get(start..*self.ends.get(at)?)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.ends.len()).map(|at| self.get(at).unwrap_or_default())
    }
}

/// Texts that are often the same: each different one is kept once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repeats {
    unique: Texts,
    known: BTreeMap<String, usize>,
    index: Vec<usize>,
}

impl Repeats {
    fn push(&mut self, text: String) {
        let unique = &mut self.unique;
        let at = *self.known.entry(text).or_insert_with_key(|text| {
            unique.push(text);
            unique.ends.len() - 1
        });
        self.index.push(at);
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        let text = |at: &usize| self.unique.get(*at).unwrap_or_default();
        self.index.iter().map(text)
    }
}

pub use crate::error::Broken as Error;

// The line is that of the file, so what is said of it names a column only.
fn in_line(error: canon::Error) -> String {
    match error {
        canon::Error::Syntax { column, what, .. } => format!("not JSON at column {column}: {what}"),
        other => other.to_string(),
    }
}

/// Reads cases line by line, for files that are not held in memory.
#[derive(Debug, Default)]
pub struct Reader {
    cases: Cases,
    groups: Repeats,
    seen: Seen,
    first: Option<(usize, [bool; 3])>,
}

impl Reader {
    /// Takes a line, without its end, that is not blank; `line` is counted from 1.
    ///
    /// # Errors
    /// When it is not a case, or repeats an id.
    pub fn line(&mut self, line: usize, bytes: &[u8]) -> Result<(), Error> {
        let wrong =
            |code, field: &str, what: String| Error::new(ReadFrom::Case(line), code, field, what);
        let value =
            canon::parse(bytes).map_err(|error| wrong("json_syntax", "", in_line(error)))?;
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
        if let Some(earlier) = self.seen.line_of(&id, &self.cases.id) {
            let what = format!("repeats the id `{id}` of line {earlier}; ids are unique");
            return Err(wrong("duplicate_case", &format!("/{key}"), what));
        }
        self.seen.push(&id, line);
        self.cases.id.push(&id);
        self.cases.input.push(&canon::to_string(input));
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
        while self.seen.line_of(&id, &self.cases.id).is_some() {
            id = format!("{stem}_{n}");
            n += 1;
        }
        id
    }

    /// The cases of all lines.
    #[must_use]
    pub fn end(mut self) -> Cases {
        if !self.groups.index.is_empty() {
            self.cases.group_id = Some(self.groups);
        }
        self.cases
    }
}

/// Which ids there were, by a hash: the texts themselves stand in the column.
#[derive(Debug, Default)]
struct Seen {
    by_hash: HashMap<u64, usize>,
    /// Ids whose hash was that of another one.
    further: BTreeMap<String, usize>,
    lines: Vec<usize>,
}

impl Seen {
    /// The line of an id among those that were pushed.
    fn line_of(&self, id: &str, ids: &Texts) -> Option<usize> {
        let at = *self.by_hash.get(&hash(id))?;
        if ids.get(at) == Some(id) {
            return self.lines.get(at).copied();
        }
        self.further.get(id).copied()
    }

    /// Adds an id that is new; it is the next of the column.
    fn push(&mut self, id: &str, line: usize) {
        let at = self.lines.len();
        if *self.by_hash.entry(hash(id)).or_insert(at) != at {
            self.further.insert(id.to_owned(), line);
        }
        self.lines.push(line);
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
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
        assert!(cases.id.iter().eq(["a", "7"]));
        assert!(cases.input.iter().eq(["1", "\"x\u{2028}\""]));
        assert!(cases.expected.iter().eq(["{\"a\":2,\"b\":1}", "null"]));
        assert!(cases.metadata.iter().eq(["{}", "{\"k\":\"v\"}"]));
        assert_eq!(cases.group_id, None);
    }

    #[test]
    fn equal_cases_without_an_id_are_kept_apart() {
        let cases = Cases::read(b"{\"input\":1}\n{\"input\":1}\n{\"input\":2}").unwrap();
        let ids: Vec<&str> = cases.id.iter().collect();
        assert_eq!(ids[1], format!("{}_2", ids[0]));
        assert_ne!(ids[0], ids[2]);
    }

    #[test]
    fn ids_that_share_a_hash_are_told_apart() {
        let mut seen = Seen::default();
        let mut ids = Texts::default();
        for (id, line) in [("a", 1), ("b", 3)] {
            seen.by_hash.insert(hash("b"), 0);
            assert_eq!(seen.line_of(id, &ids), None);
            seen.push(id, line);
            ids.push(id);
        }
        assert_eq!(seen.line_of("a", &ids), Some(1));
        assert_eq!(seen.line_of("b", &ids), Some(3));
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
                (error.code, &error.read_from, error.pointer.as_str()),
                (code, &ReadFrom::Case(2), field),
                "{bad}"
            );
        }
    }

    #[test]
    fn groups_are_kept_when_every_line_has_one() {
        let text = b"{\"input\":1,\"group_id\":\"g\"}\n{\"input\":2,\"group_id\":3}";
        let groups = Cases::read(text).unwrap().group_id.unwrap();
        assert!(groups.iter().eq(["g", "3"]));
    }
}
