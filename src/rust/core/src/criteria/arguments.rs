//! When two values are the same, and what a case says about a call.

use crate::canon;
use serde_json::Value;

/// A tool that a case declares.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRef {
    /// Its name.
    pub name: String,
    /// What it says about the arguments, if anything.
    pub arguments: Option<Value>,
}

impl ToolRef {
    /// Reads `expected.tools`: names, or `{name, arguments}`.
    pub(crate) fn list(value: &Value) -> Result<Vec<Self>, String> {
        const RULE: &str =
            "`expected.tools` must be an array of tool names or of {name, arguments}";
        let items = value.as_array().ok_or(RULE)?;
        items
            .iter()
            .map(|item| Self::read(item).ok_or_else(|| RULE.to_owned()))
            .collect()
    }

    fn read(item: &Value) -> Option<Self> {
        if let Value::String(name) = item {
            return Some(Self {
                name: name.clone(),
                arguments: None,
            });
        }
        let map = item.as_object()?;
        if map.keys().any(|key| key != "name" && key != "arguments") {
            return None;
        }
        Some(Self {
            name: map.get("name")?.as_str()?.to_owned(),
            arguments: map.get("arguments").cloned(),
        })
    }
}

/// Whether two checked JSON texts are the same value: equal canonical forms.
pub(crate) fn same_json(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    // Plain texts of one value are permutations of each other.
    let differ = match (fingerprint(a.as_bytes()), fingerprint(b.as_bytes())) {
        (Some(a), Some(b)) => a != b,
        _ => false,
    };
    !differ
        && value(a)
            .zip(value(b))
            .is_some_and(|(a, b)| canon::same(&a, &b))
}

/// The value of a checked JSON text.
pub(crate) fn value(text: &str) -> Option<Value> {
    canon::parse(text.as_bytes()).ok()
}

/// Whether `part` is contained in `whole`: an object may have further keys, at
/// every depth; anything else must be the same.
pub(crate) fn contained(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part
            .iter()
            .all(|(key, value)| whole.get(key).is_some_and(|w| contained(value, w))),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() == whole.len() && part.iter().zip(whole).all(|(p, w)| contained(p, w))
        }
        _ => canon::same(part, whole),
    }
}

/// Length and sum of bytes of a text in which one value has one spelling but
/// for the order of keys: no white space, no escape, no double, no `-0`.
fn fingerprint(bytes: &[u8]) -> Option<(usize, u64)> {
    let mut inside = false;
    let mut sum = 0u64;
    let mut before = 0u8;
    for &b in bytes {
        if b == b'"' {
            inside = !inside;
        } else if inside {
            if b == b'\\' {
                return None;
            }
        } else {
            let exponent = b == b'e' && before.is_ascii_digit();
            let minus_zero = b == b'0' && before == b'-';
            if exponent || minus_zero || matches!(b, b' ' | b'\n' | b'\t' | b'\r' | b'.' | b'E') {
                return None;
            }
        }
        sum += u64::from(b) * u64::from(b) + u64::from(b);
        before = b;
    }
    Some((bytes.len(), sum))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn equal_values_in_any_spelling() {
        for (a, b, same) in [
            ("1", "1.0", true),
            ("100", "1e2", true),
            ("-0", "0", true),
            ("-0.0", "0", true),
            ("9007199254740993", "9007199254740992", false),
            ("true", "1", false),
            ("null", "{}", false),
            (r#"{"a":1,"b":[2]}"#, r#"{"b":[2],"a":1}"#, true),
            (r#"{"a":1,"b":[2]}"#, r#"{ "b": [2], "a": 1.0 }"#, true),
            ("[1,2]", "[2,1]", false),
            (r#""\u00e9""#, "\"é\"", true),
            (r#"{"order":"ord-001"}"#, r#"{"order":"ord-010"}"#, false),
            (r#"{"order":"ord-001"}"#, r#"{"order":"ord-002"}"#, false),
        ] {
            assert_eq!(same_json(a, b), same, "{a} {b}");
            assert_eq!(same_json(b, a), same, "{b} {a}");
        }
    }

    #[test]
    fn contained_values() {
        for (part, whole, want) in [
            (json!({}), json!({"q": 1}), true),
            (json!({"q": 1}), json!({"q": 1.0, "page": 2}), true),
            (json!({"q": {"a": 1}}), json!({"q": {"a": 1, "b": 2}}), true),
            (json!({"q": 1}), json!({"page": 2}), false),
            (json!({"q": [1]}), json!({"q": [1, 2]}), false),
            (json!({"q": null}), json!({}), false),
            (json!({}), json!(null), false),
        ] {
            assert_eq!(contained(&part, &whole), want, "{part} {whole}");
        }
    }
}
