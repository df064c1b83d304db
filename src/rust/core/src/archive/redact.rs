//! Leaving out what must not be handed over.

use super::Content;
use crate::digest::Digest;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Stands where a value was.
pub const REDACTED: &str = "<redacted>";

/// The shortest text that is looked for in other values.
const SHORTEST: usize = 4;

/// What is left out of the content of a run.
#[derive(Debug, Clone, Default)]
pub struct Redaction {
    /// Names of members whose values are left out, anywhere in any value.
    pub names: BTreeSet<String>,
    /// Texts that no value may hold.
    pub texts: BTreeSet<String>,
    /// Values to put in place of others, by address.
    pub replaced: BTreeMap<Digest, Value>,
}

impl Redaction {
    /// The content as it may be shown, and the addresses of the values that differ.
    ///
    /// What stands under a name that is left out is also looked for, as a text of four
    /// characters or more, in every other value: one that holds it is left out whole.
    pub fn apply(&self, content: &Content) -> (Content, BTreeSet<Digest>) {
        let mut shown = Content::new();
        let mut texts = self.texts.clone();
        let mut changed = BTreeSet::new();
        for (address, bytes) in content {
            let Ok(mut value) = crate::canon::parse(bytes) else {
                continue;
            };
            if let Some(other) = self.replaced.get(address) {
                value = other.clone();
                changed.insert(*address);
            }
            if self.cover(&mut value, &mut texts) {
                changed.insert(*address);
            }
            shown.insert(*address, crate::canon::to_vec(&value));
        }
        texts.retain(|t| t.chars().count() >= SHORTEST);
        if !texts.is_empty() {
            for (address, bytes) in &mut shown {
                if holds(bytes, &texts) {
                    *bytes = crate::canon::to_vec(&REDACTED.into());
                    changed.insert(*address);
                }
            }
        }
        (shown, changed)
    }

    /// Whether anything in the value was covered.
    fn cover(&self, value: &mut Value, texts: &mut BTreeSet<String>) -> bool {
        match value {
            Value::Object(map) => {
                let mut covered = false;
                for (name, member) in map.iter_mut() {
                    if !self.names.contains(name) {
                        covered |= self.cover(member, texts);
                    } else if member.as_str() != Some(REDACTED) {
                        gather(member, texts);
                        *member = REDACTED.into();
                        covered = true;
                    }
                }
                covered
            }
            Value::Array(items) => {
                let mut covered = false;
                for item in items {
                    covered |= self.cover(item, texts);
                }
                covered
            }
            // Arguments that were no JSON object are kept as the text that came.
            Value::String(text) => {
                let named = |n: &String| {
                    text.contains(&format!("\"{n}\"")) || text.contains(&format!("\"{n}\\\""))
                };
                let covered = self.names.iter().any(named);
                if covered {
                    *value = REDACTED.into();
                }
                covered
            }
            Value::Bool(_) | Value::Null | Value::Number(_) => false,
        }
    }
}

/// The scalars of a value as texts.
fn gather(value: &Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.values().for_each(|v| gather(v, texts)),
        Value::Array(items) => items.iter().for_each(|v| gather(v, texts)),
        Value::String(text) => {
            texts.insert(text.clone());
        }
        Value::Number(number) => {
            texts.insert(number.to_string());
        }
        Value::Bool(_) | Value::Null => {}
    }
}

/// Whether a value, as JSON, holds one of the texts: as JSON writes it, once or, in a
/// text that is JSON itself, twice.
fn holds(bytes: &[u8], texts: &BTreeSet<String>) -> bool {
    texts.iter().any(|text| {
        let once = escaped(text);
        let twice = escaped(&once);
        let found = |part: &str| memchr::memmem::find(bytes, part.as_bytes()).is_some();
        found(&once) || found(&twice)
    })
}

/// A text as JSON writes it, without the quotes.
fn escaped(text: &str) -> String {
    let quoted = crate::canon::to_string(&text.into());
    quoted[1..quoted.len() - 1].to_owned()
}

/// Whether a value holds the keyed digest of one that was not recorded. Under the key
/// guesses of it could be tried.
pub fn holds_secret(content: &Content) -> bool {
    let marks: [&[u8]; 2] = [b"\"secret_hmac\":\"", b"\"result_hmac\":\""];
    let holds = |bytes: &Vec<u8>| {
        marks
            .iter()
            .any(|m| memchr::memmem::find(bytes, m).is_some())
    };
    content.values().any(holds)
}

/// Names of the environment variables that values of secret parameters refer to.
pub fn secret_variables(content: &Content) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mark = b"{\"secret_env\":";
    for bytes in content.values() {
        if memchr::memmem::find(bytes, mark).is_some() {
            if let Ok(value) = crate::canon::parse(bytes) {
                references(&value, &mut found);
            }
        }
    }
    found
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            if let Some(name) = crate::run::secret_reference(value) {
                found.insert(name.to_owned());
            }
            map.values().for_each(|v| references(v, found));
        }
        Value::Array(items) => items.iter().for_each(|v| references(v, found)),
        Value::Bool(_) | Value::Null | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(values: &[&str]) -> Content {
        let address = |v: &&str| (Digest::of_bytes(v.as_bytes()), v.as_bytes().to_vec());
        values.iter().map(address).collect()
    }

    fn shown(redaction: &Redaction, values: &[&str]) -> Vec<String> {
        let (shown, _) = redaction.apply(&content(values));
        let text = |v: &&str| {
            let bytes = &shown[&Digest::of_bytes(v.as_bytes())];
            String::from_utf8_lossy(bytes).into_owned()
        };
        values.iter().map(text).collect()
    }

    #[test]
    fn a_name_is_covered_at_any_depth_and_its_value_everywhere() {
        let redaction = Redaction {
            names: ["ssn".to_owned()].into(),
            ..Redaction::default()
        };
        let got = shown(
            &redaction,
            &[
                r#"{"a":[{"ssn":"123-45"}],"b":1}"#,
                r#""no customer has 123-45""#,
                r#""{\"ssn\": \"9\"""#,
                r#"{"b":"123"}"#,
                r#"{"raw":"{\"x\": \"{\\\"ssn\\\": 1}\"}"}"#,
            ],
        );
        assert_eq!(
            got,
            [
                r#"{"a":[{"ssn":"<redacted>"}],"b":1}"#,
                r#""<redacted>""#,
                r#""<redacted>""#,
                r#"{"b":"123"}"#,
                r#"{"raw":"<redacted>"}"#
            ]
        );
    }

    #[test]
    fn a_value_is_found_in_json_within_json() {
        let redaction = Redaction {
            texts: ["say \"hi\"".to_owned()].into(),
            ..Redaction::default()
        };
        let got = shown(
            &redaction,
            &[r#""say \"hi\"""#, r#""{\"a\":\"say \\\"hi\\\"\"}""#],
        );
        assert_eq!(got, [r#""<redacted>""#, r#""<redacted>""#]);
    }

    #[test]
    fn what_does_not_change_is_not_named() {
        let redaction = Redaction {
            texts: ["sk-test-1".to_owned()].into(),
            ..Redaction::default()
        };
        let values = content(&["\"sk-test-1 is bad\"", "[1,2]"]);
        let (_, changed) = redaction.apply(&values);
        assert_eq!(
            changed.into_iter().collect::<Vec<_>>(),
            [Digest::of_bytes(b"\"sk-test-1 is bad\"")]
        );
    }

    #[test]
    fn secrets_are_found_where_they_are_named() {
        let values = content(&[r#"{"k":{"secret_env":"A_KEY"},"q":[{"secret_env":"B"}]}"#]);
        let names: Vec<String> = secret_variables(&values).into_iter().collect();
        assert_eq!(names, ["A_KEY", "B"]);
        assert!(!holds_secret(&values));
        assert!(holds_secret(&content(&[r#"{"k":{"secret_hmac":"00"}}"#])));
    }
}
