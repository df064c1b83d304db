//! What leaves of a result: text or JSON, never longer than the bound, valid
//! UTF-8, and JSON only by whole items.

use crate::canon;
use crate::digest::Digest;
use crate::tool::Bound;
use serde_json::Value;

/// A result as the model is shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The text. Invariant: not longer than the bound.
    pub text: String,
    /// Whether something was left out.
    pub truncated: bool,
    /// Digest of the canonical JSON of the whole result.
    pub result_hash: Digest,
    /// SHA-256 of the shown text.
    pub shown_hash: Digest,
}

/// Shows text as it is, cut at a character boundary with the marker inside the
/// bound.
pub fn text(whole: &str, bound: Bound) -> Shown {
    let result_hash = Digest::of_string(whole);
    let shown = if bound.allows(whole.len() as u64) {
        None
    } else {
        Some(cut(whole, bound.limit().unwrap_or(0)))
    };
    finish(whole, shown, result_hash)
}

/// Shows a value: a string as it is, anything else as canonical JSON; an array or
/// object that must shrink keeps whole items.
pub fn value(whole: &Value, bound: Bound) -> Shown {
    if let Value::String(s) = whole {
        return text(s, bound);
    }
    let bytes = canon::to_string(whole);
    let result_hash = Digest::of_bytes(bytes.as_bytes());
    let shown = if bound.allows(bytes.len() as u64) {
        None
    } else {
        Some(shrink(whole, bound.limit().unwrap_or(0)))
    };
    finish(&bytes, shown, result_hash)
}

/// Shows JSON text that a tool wrote itself, as it wrote it; it shrinks as the
/// value that it is.
pub fn json_text(written: &str, parsed: &Value, bound: Bound) -> Shown {
    if bound.allows(written.len() as u64) {
        return finish(written, None, Digest::of_value(parsed));
    }
    value(parsed, bound)
}

fn finish(whole: &str, cut: Option<String>, result_hash: Digest) -> Shown {
    let truncated = cut.is_some();
    let text = cut.unwrap_or_else(|| whole.to_owned());
    Shown {
        shown_hash: Digest::of_bytes(text.as_bytes()),
        text,
        truncated,
        result_hash,
    }
}

fn cut(whole: &str, limit: u64) -> String {
    let marker = format!("\n[truncated: {} bytes in all]", whole.len());
    let Some(room) = usize::try_from(limit)
        .ok()
        .and_then(|l| l.checked_sub(marker.len()))
    else {
        return String::new();
    };
    let mut end = room.min(whole.len());
    while !whole.is_char_boundary(end) {
        end -= 1;
    }
    if end == 0 {
        return String::new();
    }
    format!("{}{marker}", &whole[..end])
}

fn shrink(whole: &Value, limit: u64) -> String {
    match whole {
        Value::Array(items) => by_items(
            items.iter().map(canon::to_string).collect(),
            ('[', ']'),
            limit,
        ),
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
            let member = |key: &&String| {
                let mut out = Vec::new();
                canon::write_string(key, &mut out);
                out.push(b':');
                canon::write(&map[*key], &mut out);
                String::from_utf8(out).unwrap_or_default()
            };
            by_items(keys.iter().map(member).collect(), ('{', '}'), limit)
        }
        // A number or a word is whole or it is nothing.
        _ => String::new(),
    }
}

/// As many whole items as fit with the frame that counts them.
fn by_items(items: Vec<String>, (open, close): (char, char), limit: u64) -> String {
    let total = items.len();
    let frame =
        |k: usize| format!("{{\"items\":{open}{close},\"shown\":{k},\"total\":{total}}}").len();
    let mut inner = 0;
    let mut kept = 0;
    for (i, item) in items.iter().enumerate() {
        inner += item.len() + usize::from(i > 0);
        if (inner + frame(i + 1)) as u64 > limit {
            break;
        }
        kept = i + 1;
    }
    let body = items[..kept].join(",");
    let text = format!("{{\"items\":{open}{body}{close},\"shown\":{kept},\"total\":{total}}}");
    if text.len() as u64 <= limit {
        text
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn the_marker_is_inside_the_bound_and_the_cut_at_a_character() {
        let whole = "é".repeat(100);
        for limit in 0..260 {
            let shown = text(&whole, Bound::AtMost(limit));
            assert!(shown.text.len() as u64 <= limit);
            assert_eq!(shown.truncated, limit < 200);
            if shown.truncated && !shown.text.is_empty() {
                assert!(shown.text.ends_with("[truncated: 200 bytes in all]"));
            }
        }
        assert_eq!(text("", Bound::AtMost(0)).text, "");
        assert!(!text("", Bound::AtMost(0)).truncated);
    }

    #[test]
    fn digests_are_of_the_whole_and_of_what_was_shown() {
        let shown = text("abc", Bound::Unlimited);
        assert_eq!(shown.result_hash, Digest::of_bytes(b"\"abc\""));
        assert_eq!(shown.shown_hash, Digest::of_bytes(b"abc"));
        let long = text(&"a\n".repeat(500), Bound::AtMost(100));
        assert_eq!(
            long.result_hash,
            Digest::of_value(&json!("a\n".repeat(500)))
        );
        assert_ne!(
            long.shown_hash,
            Digest::of_bytes("a\n".repeat(500).as_bytes())
        );
    }

    #[test]
    fn arrays_and_objects_shrink_by_whole_items_and_say_how_many() {
        let rows = json!([{"a": 1}, {"a": 2}, {"a": 3}]);
        let all = r#"[{"a":1},{"a":2},{"a":3}]"#;
        assert_eq!(value(&rows, Bound::AtMost(25)).text, all);
        let shown = value(
            &json!([1, 2, 3, "a long text that does not fit at all"]),
            Bound::AtMost(40),
        );
        assert_eq!(shown.text, r#"{"items":[1,2,3],"shown":3,"total":4}"#);
        let object = value(
            &json!({"b": 1, "a": "0123456789012345678901234567890123456789"}),
            Bound::AtMost(40),
        );
        assert_eq!(object.text, r#"{"items":{},"shown":0,"total":2}"#);
        assert_eq!(value(&rows, Bound::AtMost(12)).text, "");
        assert_eq!(value(&json!(12345), Bound::AtMost(2)).text, "");
    }

    #[test]
    fn text_that_is_json_already_is_shown_as_written() {
        let written = "{\"b\": 1, \"a\": 2}";
        let parsed = canon::parse(written.as_bytes()).expect("JSON");
        let shown = json_text(written, &parsed, Bound::Unlimited);
        assert_eq!(shown.text, written);
        assert_eq!(shown.result_hash, Digest::of_bytes(br#"{"a":2,"b":1}"#));
    }

    proptest! {
        #[test]
        fn what_leaves_fits_and_is_json_or_empty(
            items in prop::collection::vec(".{0,20}", 0..40), limit in 0u64..400
        ) {
            let total = items.len();
            let shown = value(&json!(items), Bound::AtMost(limit));
            prop_assert!(shown.text.len() as u64 <= limit);
            if !shown.text.is_empty() {
                let back = canon::parse(shown.text.as_bytes()).expect("JSON");
                if shown.truncated {
                    let kept = back["items"].as_array().expect("items").len();
                    prop_assert_eq!(back["shown"].as_u64(), Some(kept as u64));
                    prop_assert_eq!(back["total"].as_u64(), Some(total as u64));
                    prop_assert_eq!(&back["items"], &json!(items[..kept]));
                }
            }
        }
    }
}
