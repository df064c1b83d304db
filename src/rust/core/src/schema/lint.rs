//! The checks that a validator does not make: it ignores what it does not know.

use super::Error;
use crate::canon;
use crate::near::nearest;
use serde_json::Value;

/// What stands under a keyword.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// Anything: data, not schema.
    Data,
    /// An array of data, which R writes as a scalar when it has one element.
    DataArray,
    /// A schema.
    Schema,
    /// An array of schemas.
    SchemaArray,
    /// An object whose values are schemas.
    SchemaMap,
    /// A schema, or an array of them (`items` before 2020-12).
    SchemaOrArray,
    /// An object whose values are arrays of names or schemas.
    NamesMap,
}

/// The keywords of drafts 7 to 2020-12, and `secret`, which is ours.
const KEYWORDS: [(&str, Holds); 63] = {
    use Holds::*;
    [
        ("$anchor", Data),
        ("$comment", Data),
        ("$defs", SchemaMap),
        ("$dynamicAnchor", Data),
        ("$dynamicRef", Data),
        ("$id", Data),
        ("$ref", Data),
        ("$schema", Data),
        ("$vocabulary", Data),
        ("additionalItems", Schema),
        ("additionalProperties", Schema),
        ("allOf", SchemaArray),
        ("anyOf", SchemaArray),
        ("const", Data),
        ("contains", Schema),
        ("contentEncoding", Data),
        ("contentMediaType", Data),
        ("contentSchema", Schema),
        ("default", Data),
        ("definitions", SchemaMap),
        ("dependencies", NamesMap),
        ("dependentRequired", NamesMap),
        ("dependentSchemas", SchemaMap),
        ("deprecated", Data),
        ("description", Data),
        ("else", Schema),
        ("enum", DataArray),
        ("examples", DataArray),
        ("exclusiveMaximum", Data),
        ("exclusiveMinimum", Data),
        ("format", Data),
        ("if", Schema),
        ("items", SchemaOrArray),
        ("maxContains", Data),
        ("maxItems", Data),
        ("maxLength", Data),
        ("maxProperties", Data),
        ("maximum", Data),
        ("minContains", Data),
        ("minItems", Data),
        ("minLength", Data),
        ("minProperties", Data),
        ("minimum", Data),
        ("multipleOf", Data),
        ("not", Schema),
        ("nullable", Data),
        ("oneOf", SchemaArray),
        ("pattern", Data),
        ("patternProperties", SchemaMap),
        ("prefixItems", SchemaArray),
        ("properties", SchemaMap),
        ("propertyNames", Schema),
        ("readOnly", Data),
        ("redact", Data),
        ("required", DataArray),
        ("secret", Data),
        ("then", Schema),
        ("title", Data),
        ("type", Data),
        ("unevaluatedItems", Schema),
        ("unevaluatedProperties", Schema),
        ("uniqueItems", Data),
        ("writeOnly", Data),
    ]
};

/// Puts right what R's lists cannot say: an array of one, an empty object.
pub(super) fn normalise(schema: &mut Value) {
    empty_object(schema);
    let Some(map) = schema.as_object_mut() else {
        return;
    };
    for (keyword, value) in map.iter_mut() {
        match holds(keyword) {
            Some(Holds::DataArray) => one_element(value),
            Some(Holds::Schema) => normalise(value),
            Some(Holds::SchemaArray) => {
                if value.is_object() {
                    one_element(value);
                }
                each(value, normalise);
            }
            Some(Holds::SchemaMap) => {
                empty_object(value);
                each(value, normalise);
            }
            Some(Holds::SchemaOrArray) => match value {
                Value::Array(items) if !items.is_empty() => each(value, normalise),
                _ => normalise(value),
            },
            Some(Holds::NamesMap) => {
                empty_object(value);
                each(value, |v| match v {
                    Value::String(_) => one_element(v),
                    Value::Object(_) => normalise(v),
                    _ => {}
                });
            }
            Some(Holds::Data) | None => {}
        }
    }
}

/// Refuses unknown keywords and references that leave the document.
pub(super) fn check(schema: &Value) -> Result<(), Error> {
    let mut path = Vec::new();
    walk(schema, &mut path)
}

fn walk(schema: &Value, path: &mut Vec<String>) -> Result<(), Error> {
    let Some(map) = schema.as_object() else {
        return Ok(());
    };
    for (keyword, value) in map {
        let Some(holds) = holds(keyword) else {
            if keyword.starts_with("x-") {
                continue;
            }
            return Err(Error::UnknownKeyword {
                pointer: pointer(path),
                keyword: keyword.clone(),
                nearest: nearest(keyword, KEYWORDS.iter().map(|(k, _)| *k)),
            });
        };
        if matches!(keyword.as_str(), "$ref" | "$dynamicRef") {
            let target = value.as_str().unwrap_or_default();
            if !target.starts_with('#') {
                return Err(Error::RemoteReference {
                    pointer: pointer(path),
                    target: super::violation::clip(&value.to_string(), 120),
                });
            }
        }
        path.push(keyword.clone());
        match (holds, value) {
            (Holds::Schema | Holds::SchemaOrArray, Value::Object(_)) => walk(value, path)?,
            (Holds::SchemaArray | Holds::SchemaOrArray, Value::Array(items)) => {
                for (i, item) in items.iter().enumerate() {
                    path.push(i.to_string());
                    walk(item, path)?;
                    path.pop();
                }
            }
            (Holds::SchemaMap | Holds::NamesMap, Value::Object(inner)) => {
                for (name, item) in inner {
                    path.push(name.clone());
                    walk(item, path)?;
                    path.pop();
                }
            }
            _ => {}
        }
        path.pop();
    }
    Ok(())
}

fn holds(keyword: &str) -> Option<Holds> {
    KEYWORDS
        .binary_search_by(|(k, _)| k.cmp(&keyword))
        .ok()
        .map(|i| KEYWORDS[i].1)
}

fn empty_object(value: &mut Value) {
    if value.as_array().is_some_and(Vec::is_empty) {
        *value = Value::Object(serde_json::Map::new());
    }
}

fn one_element(value: &mut Value) {
    if !value.is_array() {
        *value = Value::Array(vec![value.take()]);
    }
}

fn each(value: &mut Value, f: impl Fn(&mut Value)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(f),
        Value::Object(map) => map.values_mut().for_each(f),
        _ => {}
    }
}

fn pointer(path: &[String]) -> String {
    canon::pointer(path.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_so_that_it_can_be_searched() {
        assert!(KEYWORDS.windows(2).all(|w| w[0].0 < w[1].0));
    }
}
