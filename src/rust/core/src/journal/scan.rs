//! Whether some bytes are canonical JSON, without building a value.
//!
//! Journals hold integers only, so a number with a point or an exponent is
//! refused here. The text must be UTF-8; the caller has checked that.

use crate::canon::MAX_DEPTH;

/// Whether the bytes are one object in canonical form.
pub(super) fn is_object(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'{') && value(bytes, 0, 0) == Some(bytes.len())
}

/// Where the value that begins at `at` ends.
fn value(bytes: &[u8], at: usize, depth: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => string(bytes, at + 1),
        b'{' => object(bytes, at + 1, depth),
        b'[' => array(bytes, at + 1, depth),
        b't' => fixed(bytes, at, b"true"),
        b'f' => fixed(bytes, at, b"false"),
        b'n' => fixed(bytes, at, b"null"),
        b'-' | b'0'..=b'9' => integer(bytes, at),
        _ => None,
    }
}

fn object(bytes: &[u8], mut at: usize, depth: usize) -> Option<usize> {
    if depth >= MAX_DEPTH {
        return None;
    }
    if bytes.get(at) == Some(&b'}') {
        return Some(at + 1);
    }
    let mut last: Option<&[u8]> = None;
    loop {
        if bytes.get(at) != Some(&b'"') {
            return None;
        }
        let end = string(bytes, at + 1)?;
        let key = &bytes[at + 1..end - 1];
        if last.is_some_and(|last| !before(last, key)) {
            return None;
        }
        last = Some(key);
        if bytes.get(end) != Some(&b':') {
            return None;
        }
        at = value(bytes, end + 1, depth + 1)?;
        match bytes.get(at)? {
            b',' => at += 1,
            b'}' => return Some(at + 1),
            _ => return None,
        }
    }
}

fn array(bytes: &[u8], mut at: usize, depth: usize) -> Option<usize> {
    if depth >= MAX_DEPTH {
        return None;
    }
    if bytes.get(at) == Some(&b']') {
        return Some(at + 1);
    }
    loop {
        at = value(bytes, at, depth + 1)?;
        match bytes.get(at)? {
            b',' => at += 1,
            b']' => return Some(at + 1),
            _ => return None,
        }
    }
}

/// Where the string ends whose first byte after the quote is at `at`.
fn string(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        // Eight bytes at a time while none of them needs a look.
        while let Some(chunk) = bytes.get(at..at + 8) {
            let word = u64::from_le_bytes(chunk.try_into().ok()?);
            let found = special(word);
            if found != 0 {
                at += (found.trailing_zeros() / 8) as usize;
                break;
            }
            at += 8;
        }
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at = escape(bytes, at + 1)?,
            0..=0x1f => return None,
            _ => at += 1,
        }
    }
}

/// A high bit at the first byte of the word that is a quote, a backslash or a
/// control character; later bits may be wrong (borrows run upward).
fn special(word: u64) -> u64 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let equals = |byte: u8| {
        let x = word ^ (LOW * u64::from(byte));
        x.wrapping_sub(LOW) & !x
    };
    let control = word.wrapping_sub(LOW * 0x20) & !word;
    (equals(b'"') | equals(b'\\') | control) & HIGH
}

/// RFC 8785 section 3.2.2.2: these escapes and no others.
fn escape(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 1),
        b'u' => {
            let code = bytes.get(at + 1..at + 5)?;
            let short = matches!(code, b"0008" | b"0009" | b"000a" | b"000c" | b"000d");
            let control = code.starts_with(b"00")
                && matches!(code[2], b'0' | b'1')
                && matches!(code[3], b'0'..=b'9' | b'a'..=b'f');
            (control && !short).then_some(at + 5)
        }
        _ => None,
    }
}

fn fixed(bytes: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    let end = at + word.len();
    (bytes.get(at..end)? == word).then_some(end)
}

fn integer(bytes: &[u8], at: usize) -> Option<usize> {
    let negative = bytes[at] == b'-';
    let first = at + usize::from(negative);
    let len = bytes[first..]
        .iter()
        .take_while(|b| b.is_ascii_digit())
        .count();
    let zero = bytes.get(first) == Some(&b'0');
    // No "-0", no leading zero; "." or "e" after it is refused by the caller.
    (len > 0 && !(zero && (len > 1 || negative))).then_some(first + len)
}

/// Whether one key sorts before another: by UTF-16 units, escapes resolved.
fn before(a: &[u8], b: &[u8]) -> bool {
    let plain = |key: &[u8]| key.iter().all(|b| b.is_ascii() && *b != b'\\');
    if plain(a) && plain(b) {
        return a < b;
    }
    let units = |key: &[u8]| -> Option<Vec<u16>> {
        let quoted = [b"\"", key, b"\""].concat();
        let text: String = serde_json::from_slice(&quoted).ok()?;
        Some(text.encode_utf16().collect())
    };
    match (units(a), units(b)) {
        (Some(a), Some(b)) => a < b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn canonical_objects_pass_and_others_do_not() {
        for text in [
            "{}",
            r#"{"a":[1,-2,true,false,null,"x",{}],"b":"\u0000\u001f\b\"\\é"}"#,
            r#"{"a":123456789012345678901234567890}"#,
            "{\"€\":1,\"😀\":2,\"\u{fb33}\":3}",
        ] {
            assert!(is_object(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "[]",
            "{",
            "{}}",
            "{} ",
            "{\"a\":1,}",
            "{\"a\":01}",
            "{\"a\":-0}",
            "{\"a\":1.0}",
            "{\"a\":1e3}",
            "{\"a\":\"\\/\"}",
            "{\"a\":\"\\u0041\"}",
            "{\"a\":\"\\u000a\"}",
            "{\"a\":\"\\u001F\"}",
            "{\"a\":\"\n\"}",
            "{\"b\":1,\"a\":1}",
            "{\"a\":1,\"a\":1}",
            "{\"a\" :1}",
            "{\"a\":tru}",
            "{a:1}",
            "{\"a\":-}",
            "{\"\u{fb33}\":3,\"😀\":2}",
        ] {
            assert!(!is_object(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n), "]".repeat(n));
        assert!(is_object(nested(MAX_DEPTH - 1).as_bytes()));
        assert!(!is_object(nested(MAX_DEPTH).as_bytes()));
        assert!(!is_object(nested(1_000_000).as_bytes()));
    }

    fn integers_only(value: &Value) -> bool {
        match value {
            Value::Number(n) => canon::is_integer_token(n.as_str()),
            Value::Array(items) => items.iter().all(integers_only),
            Value::Object(map) => map.values().all(integers_only),
            _ => true,
        }
    }

    proptest! {
        #[test]
        fn agrees_with_reading_and_writing_again(
            keys in prop::collection::vec(any::<String>(), 0..5),
            text in any::<String>(), n in any::<i64>(), flip in any::<(u16, u8)>(),
        ) {
            let map: serde_json::Map<String, Value> = keys
                .into_iter()
                .map(|k| (k, serde_json::json!([text, n, { "x": text }])))
                .collect();
            let mut bytes = canon::to_vec(&Value::Object(map));
            prop_assert!(is_object(&bytes));
            let at = usize::from(flip.0) % bytes.len();
            bytes[at] = flip.1;
            if std::str::from_utf8(&bytes).is_ok() {
                let again = canon::parse(&bytes).ok();
                let canonical = again.is_some_and(|v| {
                    v.is_object() && integers_only(&v) && canon::to_vec(&v) == bytes
                });
                prop_assert_eq!(is_object(&bytes), canonical);
            }
        }
    }
}
