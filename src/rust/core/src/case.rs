//! A case: what it declares about the answer, the tools and the route.

use crate::canon;
use crate::criteria::arguments::ToolRef;
use crate::declare::{broken, Error};
use serde_json::Value;
use std::borrow::Cow;

/// What a case expects.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// The declared value; null when the case declares nothing.
    pub value: Value,
    /// `expected.tools`.
    pub tools: Declared<Vec<ToolRef>>,
    /// `expected.route`.
    pub route: Declared<Vec<String>>,
}

/// Absent, malformed and declared are three different things.
#[derive(Debug, Clone, PartialEq)]
pub enum Declared<T> {
    /// The case says nothing about it.
    Absent,
    /// The case declares this.
    Is(T),
    /// The case declares something that is not of the form.
    Malformed(String),
}

impl Expected {
    /// Reads the `expected` value of a case. What is malformed is refused only
    /// by a criterion that needs it.
    pub fn new(value: Value) -> Self {
        let tools = declared(&value, "tools", ToolRef::list);
        let route = declared(&value, "route", route);
        Self {
            value,
            tools,
            route,
        }
    }
}

impl<T> Declared<T> {
    /// The declared value, if there is one.
    pub fn get(&self) -> Option<&T> {
        match self {
            Declared::Is(value) => Some(value),
            Declared::Absent | Declared::Malformed(_) => None,
        }
    }

    /// Refuses what is malformed.
    ///
    /// # Errors
    /// The rule that the declaration breaks.
    pub(crate) fn check(&self, pointer: &str) -> Result<(), Error> {
        match self {
            Declared::Malformed(rule) => Err(broken("malformed_expected", pointer, rule)),
            Declared::Absent | Declared::Is(_) => Ok(()),
        }
    }
}

fn declared<T>(value: &Value, key: &str, read: fn(&Value) -> Result<T, String>) -> Declared<T> {
    match value.as_object().and_then(|map| map.get(key)) {
        None => Declared::Absent,
        Some(value) => match read(value) {
            Ok(declared) => Declared::Is(declared),
            Err(rule) => Declared::Malformed(rule),
        },
    }
}

fn route(value: &Value) -> Result<Vec<String>, String> {
    let names = crate::declare::names(value).filter(|names| !names.is_empty());
    let Some(names) = names else {
        return Err("`expected.route` must be a non-empty array of agent names".into());
    };
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!(
            "`expected.route` must not name an agent twice in a row: \"{}\"",
            pair[0]
        )),
        None => Ok(names),
    }
}

/// The value at a dotted path; no path is the whole.
pub(crate) fn lookup<'a>(value: &'a Value, path: Option<&str>) -> Option<&'a Value> {
    let mut value = value;
    for part in path.into_iter().flat_map(|path| path.split('.')) {
        value = match value {
            Value::Object(map) => map.get(part)?,
            Value::Array(items) => {
                let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
                items.get(digits.then(|| part.parse::<usize>().ok()).flatten()?)?
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
    }
    Some(value)
}

/// How a value reads as text: a string is itself, null is empty, anything else
/// its canonical JSON.
pub(crate) fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => Cow::Borrowed(text),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Cow::Owned(canon::to_string(value))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn absent_malformed_and_declared_differ() {
        for (value, tools, route) in [
            (json!(null), "absent", "absent"),
            (json!(["tools"]), "absent", "absent"),
            (json!({"tools": [], "route": ["a", "b", "a"]}), "is", "is"),
            (
                json!({"tools": null, "route": null}),
                "malformed",
                "malformed",
            ),
            (
                json!({"tools": [""], "route": ["a", "a"]}),
                "is",
                "malformed",
            ),
            (json!({"tools": [1], "route": []}), "malformed", "malformed"),
            (
                json!({"tools": {"a": 1}, "route": [""]}),
                "malformed",
                "malformed",
            ),
            (
                json!({"tools": [{"name": "x", "arguments": {}}]}),
                "is",
                "absent",
            ),
            (
                json!({"tools": [{"name": "x", "args": {}}]}),
                "malformed",
                "absent",
            ),
        ] {
            let expected = Expected::new(value.clone());
            assert_eq!(word(&expected.tools), tools, "{value}");
            assert_eq!(word(&expected.route), route, "{value}");
        }
    }

    fn word<T>(declared: &Declared<T>) -> &'static str {
        match declared {
            Declared::Absent => "absent",
            Declared::Is(_) => "is",
            Declared::Malformed(_) => "malformed",
        }
    }

    #[test]
    fn paths_lead_into_objects_and_arrays() {
        let value = json!({"a": {"b": ["x", {"": 1}]}, "n": null});
        for (path, want) in [
            (Some("a.b.0"), Some(json!("x"))),
            (Some("a.b.01"), Some(json!({"": 1}))),
            (Some("a.b.1."), Some(json!(1))),
            (Some("a.b.2"), None),
            (Some("a.b.-1"), None),
            (Some("a.b.+1"), None),
            (Some("n"), Some(json!(null))),
            (Some("n.x"), None),
            (Some(""), None),
            (None, Some(value.clone())),
        ] {
            assert_eq!(lookup(&value, path).cloned(), want, "{path:?}");
        }
    }

    #[test]
    fn text_forms() {
        for (value, want) in [
            (json!(null), ""),
            (json!("x"), "x"),
            (json!(true), "true"),
            (json!(1.0), "1"),
            (json!(1e22), "1e+22"),
            (json!(["a", 1]), r#"["a",1]"#),
        ] {
            assert_eq!(text(&value), want);
        }
    }
}
