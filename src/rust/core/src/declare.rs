//! Reading declarations: the fields of an evaluator, a metric, a suite.
//!
//! Counts and flags are read as configuration files write them: `"10"`, `10.0`
//! and `true` are integers, `yes` and `0` are flags. Unknown fields are refused.

use crate::canon;
use crate::error::ReadFrom;
use serde_json::{Map, Value};

pub use crate::error::Broken as Error;

/// A declaration that breaks a rule.
pub(crate) fn broken(code: &'static str, pointer: &str, rule: impl Into<String>) -> Error {
    Error::new(ReadFrom::Declaration, code, pointer, rule)
}

/// The fields of one declared object; each is taken once, what is left is
/// unknown.
pub(crate) struct Fields {
    map: Map<String, Value>,
    at: String,
    known: Vec<&'static str>,
}

impl Fields {
    pub(crate) fn new(value: &Value, at: &str) -> Result<Self, Error> {
        let Value::Object(map) = value else {
            return Err(broken("wrong_value", at, "must be an object of fields"));
        };
        Ok(Self {
            map: map.clone(),
            at: at.to_owned(),
            known: Vec::new(),
        })
    }

    pub(crate) fn take(&mut self, key: &'static str) -> Option<Value> {
        self.known.push(key);
        self.map.remove(key)
    }

    pub(crate) fn at(&self, key: &str) -> String {
        format!("{}{}", self.at, canon::pointer([key]))
    }

    pub(crate) fn refuse<T>(&self, key: &str, rule: impl Into<String>) -> Result<T, Error> {
        Err(broken("wrong_value", &self.at(key), rule))
    }

    pub(crate) fn missing<T>(&self, key: &str) -> Result<T, Error> {
        let rule = format!("`{key}` is required");
        Err(broken("missing_field", &self.at(key), rule))
    }

    /// A string that is not empty.
    pub(crate) fn name(&mut self, key: &'static str) -> Result<Option<String>, Error> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
            Some(_) => self.refuse(key, format!("`{key}` must be a string that is not empty")),
        }
    }

    pub(crate) fn required_name(&mut self, key: &'static str) -> Result<String, Error> {
        match self.name(key)? {
            Some(name) => Ok(name),
            None => self.missing(key),
        }
    }

    /// A dotted path, or null.
    pub(crate) fn path(&mut self, key: &'static str) -> Result<Option<String>, Error> {
        match self.take(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => self.refuse(key, format!("`{key}` must be a dotted path or null")),
        }
    }

    /// An integer of at least `least`.
    pub(crate) fn count(&mut self, key: &'static str, least: u64) -> Result<Option<u64>, Error> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        match lenient_integer(&value) {
            Some(n) if n >= least => Ok(Some(n)),
            _ => self.refuse(
                key,
                format!("`{key}` must be an integer of at least {least}"),
            ),
        }
    }

    pub(crate) fn required_count(&mut self, key: &'static str, least: u64) -> Result<u64, Error> {
        match self.count(key, least)? {
            Some(n) => Ok(n),
            None => self.missing(key),
        }
    }

    pub(crate) fn flag(&mut self, key: &'static str) -> Result<Option<bool>, Error> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        match lenient_flag(&value) {
            Some(flag) => Ok(Some(flag)),
            None => self.refuse(key, format!("`{key}` must be true or false")),
        }
    }

    /// One of some words; the first is the default.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, Error> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let found = words.iter().find(|(word, _)| value.as_str() == Some(word));
        match found {
            Some((_, choice)) => Ok(Some(*choice)),
            None => {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                self.refuse(key, format!("`{key}` must be one of {}", words.join(", ")))
            }
        }
    }

    /// An array of strings that are not empty.
    pub(crate) fn names(&mut self, key: &'static str) -> Result<Option<Vec<String>>, Error> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        match names(&value) {
            Some(names) => Ok(Some(names)),
            None => {
                let rule = format!("`{key}` must be an array of strings that are not empty");
                self.refuse(key, rule)
            }
        }
    }

    /// Every field was known.
    pub(crate) fn end(self) -> Result<(), Error> {
        let Some(key) = self.map.keys().next() else {
            return Ok(());
        };
        let unknown: Vec<String> = self.map.keys().map(|key| format!("`{key}`")).collect();
        let rule = format!(
            "unknown field {}; known here: {}",
            unknown.join(", "),
            self.known.join(", ")
        );
        Err(broken("unknown_field", &self.at(key), rule))
    }
}

/// Strings that are not empty.
pub(crate) fn names(value: &Value) -> Option<Vec<String>> {
    let items = value.as_array()?;
    items
        .iter()
        .map(|item| item.as_str().filter(|name| !name.is_empty()))
        .map(|name| name.map(str::to_owned))
        .collect()
}

fn lenient_integer(value: &Value) -> Option<u64> {
    match value {
        Value::Bool(flag) => Some(u64::from(*flag)),
        Value::Number(n) => whole(n.as_str()),
        Value::String(text) => whole(text.trim()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn whole(text: &str) -> Option<u64> {
    if let Ok(n) = text.parse::<u64>() {
        return Some(n);
    }
    let x = text.parse::<f64>().ok()?;
    // Whole and far below 2^53, so the cast is exact.
    (x == x.trunc() && (0.0..1e15).contains(&x)).then_some(x as u64)
}

fn lenient_flag(value: &Value) -> Option<bool> {
    let word = match value {
        Value::Bool(flag) => return Some(*flag),
        Value::Number(n) => {
            let x = n.as_f64()?;
            return (x == 0.0 || x == 1.0).then_some(x == 1.0);
        }
        Value::String(text) => text.to_ascii_lowercase(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    match word.as_str() {
        "true" | "t" | "yes" | "y" | "on" | "1" => Some(true),
        "false" | "f" | "no" | "n" | "off" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counts_and_flags_are_read_leniently() {
        for (value, want) in [
            (json!(10), Some(10)),
            (json!(10.0), Some(10)),
            (json!("10"), Some(10)),
            (json!(true), Some(1)),
            (json!(10.5), None),
            (json!(-1), None),
            (json!("ten"), None),
            (json!(null), None),
        ] {
            assert_eq!(lenient_integer(&value), want, "{value}");
        }
        for (value, want) in [
            (json!("yes"), Some(true)),
            (json!(0), Some(false)),
            (json!("maybe"), None),
            (json!(2), None),
        ] {
            assert_eq!(lenient_flag(&value), want, "{value}");
        }
    }

    #[test]
    fn what_is_left_is_unknown_and_named() {
        let mut fields = Fields::new(&json!({"a": 1, "b/c": 2}), "/evaluators/0").expect("object");
        assert_eq!(fields.count("a", 1), Ok(Some(1)));
        let error = fields.end().expect_err("b/c is unknown");
        assert_eq!(error.pointer, "/evaluators/0/b~1c");
        assert_eq!(error.code, "unknown_field");
    }
}
