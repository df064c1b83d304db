//! Files that people write, taken apart without losing what is a list.

use crate::fault::guard;
use extendr_api::prelude::*;
use serde_json::Value;
use warrant_core::canon;
use warrant_core::error::Fault;

// The members of a JSON array or object as JSON texts, with the names of an
// object; NULL for anything else.
#[extendr]
fn rs_members(text: &str) -> Robj {
    guard(|| {
        let value =
            canon::parse(text.as_bytes()).map_err(|error| -> Box<dyn Fault> { Box::new(error) })?;
        Ok(match value {
            Value::Array(items) => {
                let texts: Vec<String> = items.iter().map(canon::to_string).collect();
                list!(names = (), texts = texts).into()
            }
            Value::Object(map) => {
                let names: Vec<&str> = map.keys().map(String::as_str).collect();
                let texts: Vec<String> = map.values().map(canon::to_string).collect();
                list!(names = names, texts = texts).into()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Robj::from(()),
        })
    })
}

extendr_module! {
    mod config;
    fn rs_members;
}
