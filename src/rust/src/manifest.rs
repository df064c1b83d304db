//! JSON documents as text: pretty, leaf by leaf, and against a JSON Schema.

use crate::convert::to_text;
use crate::fault::{boxed, guard};
use extendr_api::prelude::*;
use serde_json::{Map, Value};
use warrant_core::canon;
use warrant_core::error::{Fault, Kind};
use warrant_core::schema::Schema;

/// A document that cannot be indented; none is known.
#[derive(Debug, thiserror::Error)]
#[error("the JSON text cannot be indented")]
struct Unwritable;

impl Fault for Unwritable {
    fn code(&self) -> &'static str {
        "json_write"
    }
    fn kind(&self) -> Kind {
        Kind::Input
    }
    fn facts(&self) -> Map<String, Value> {
        Map::new()
    }
}

/// Each leaf with its path; an empty object or array is a leaf.
fn leaves(value: &Value, path: &str, out: &mut Vec<(String, String)>) {
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (name, member) in map {
                leaves(member, &below(name), out);
            }
        }
        Value::Array(_)
        | Value::Bool(_)
        | Value::Null
        | Value::Number(_)
        | Value::Object(_)
        | Value::String(_) => out.push((path.to_owned(), canon::to_string(value))),
    }
}

// JSON text with line breaks and two spaces a level, names in order, numbers as they are.
#[extendr]
fn rs_json_pretty(text: &str) -> Robj {
    guard(|| {
        let value = canon::parse(text.as_bytes())?;
        let pretty = serde_json::to_string_pretty(&value).map_err(|_| boxed(Unwritable))?;
        Ok(to_text(&pretty))
    })
}

// The leaves of JSON text: dotted paths and values.
#[extendr]
fn rs_json_leaves(text: &str) -> Robj {
    guard(|| {
        let mut found = Vec::new();
        leaves(&canon::parse(text.as_bytes())?, "", &mut found);
        let (path, value): (Vec<String>, Vec<String>) = found.into_iter().unzip();
        Ok(list!(path = path, value = value))
    })
}

// The canonical form of a JSON object without some of its members.
#[extendr]
fn rs_json_without(text: &str, members: Vec<String>) -> Robj {
    guard(|| {
        let mut value = canon::parse(text.as_bytes())?;
        if let Some(map) = value.as_object_mut() {
            map.retain(|name, _| !members.contains(name));
        }
        Ok(to_text(&canon::to_string(&value)))
    })
}

// What breaks a JSON Schema; NULL when nothing does.
#[extendr]
fn rs_schema_violations(schema: &str, text: &str) -> Robj {
    guard(|| {
        let schema = Schema::new(canon::parse(schema.as_bytes())?).map_err(boxed)?;
        let value = canon::parse(text.as_bytes())?;
        Ok(match schema.violations(&value) {
            Some(broken) => to_text(&broken.to_string()),
            None => ().into(),
        })
    })
}

extendr_module! {
    mod manifest;
    fn rs_json_pretty;
    fn rs_json_leaves;
    fn rs_json_without;
    fn rs_schema_violations;
}
