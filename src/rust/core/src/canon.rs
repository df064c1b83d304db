//! Canonical JSON: strict reading, RFC 8785 writing.
//!
//! A document is read once, strictly, and written in one form. The form is
//! RFC 8785 (JCS) with one extension: an integer token (no `.`, no exponent)
//! beyond ±(2^53-1) keeps its digits.

use crate::error::{Fault, Kind};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::RefCell;
use std::fmt;

/// How deep arrays and objects may nest.
pub const MAX_DEPTH: usize = 128;

/// Reads one JSON document, refusing what two readers could understand
/// differently: repeated keys, numbers that no double holds, lone surrogates,
/// deep nesting, bytes after the document.
///
/// # Errors
/// [`Error`], with the position or the JSON pointer.
pub fn parse(bytes: &[u8]) -> Result<Value, Error> {
    let refusal = RefCell::new(Refusal::default());
    let seed = Strict {
        depth: 0,
        refusal: &refusal,
    };
    let mut de = serde_json::Deserializer::from_slice(bytes);
    // The seed counts the depth, so that passing it is an error of ours.
    de.disable_recursion_limit();
    let value = seed
        .deserialize(&mut de)
        .and_then(|value| de.end().map(|()| value));
    value.map_err(|e| {
        refusal
            .take()
            .into_error()
            .unwrap_or_else(|| Error::Syntax {
                line: e.line(),
                column: e.column(),
                what: strip_position(&e.to_string()),
            })
    })
}

/// The canonical bytes of a value.
pub fn to_vec(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    write(value, &mut out);
    out
}

/// The canonical text of a value.
pub fn to_string(value: &Value) -> String {
    // The writer emits only whole `str`s and ASCII.
    String::from_utf8(to_vec(value)).unwrap_or_default()
}

/// Appends the canonical bytes of a value.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(n) => write_number(n, out),
        Value::String(s) => write_string(s, out),
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        Value::Object(map) => write_object(map, out),
    }
}

/// Appends a string as RFC 8785 section 3.2.2.2 spells it.
pub fn write_string(s: &str, out: &mut Vec<u8>) {
    string_pieces(s, |piece| out.extend_from_slice(piece));
}

/// Hands out the canonical bytes of a string, piece by piece.
pub(crate) fn string_pieces(s: &str, mut piece: impl FnMut(&[u8])) {
    piece(b"\"");
    let bytes = s.as_bytes();
    let mut start = 0;
    for (i, &b) in bytes.iter().enumerate() {
        if b >= 0x20 && b != b'"' && b != b'\\' {
            continue;
        }
        piece(&bytes[start..i]);
        match b {
            b'"' => piece(b"\\\""),
            b'\\' => piece(b"\\\\"),
            0x08 => piece(b"\\b"),
            0x09 => piece(b"\\t"),
            0x0a => piece(b"\\n"),
            0x0c => piece(b"\\f"),
            0x0d => piece(b"\\r"),
            _ => piece(format!("\\u{b:04x}").as_bytes()),
        }
        start = i + 1;
    }
    piece(&bytes[start..]);
    piece(b"\"");
}

/// Appends a finite double as ECMAScript's `Number::toString` spells it
/// (RFC 8785 section 3.2.2.3). A double that is not finite is written `null`;
/// no reader of this module lets one in.
pub fn write_double(x: f64, out: &mut Vec<u8>) {
    if !x.is_finite() {
        out.extend_from_slice(b"null");
    } else if x == 0.0 {
        out.push(b'0');
    } else {
        write_shortest(x, out);
    }
}

/// A number from a double; integers in the exact range become integer tokens.
pub fn number(x: f64) -> Option<Number> {
    if x.is_finite() && x == x.trunc() && x.abs() <= MAX_SAFE {
        // In range and whole, so the cast is exact; -0 becomes 0.
        return Some(Number::from(x as i64));
    }
    Number::from_f64(x)
}

/// Whether the text is an integer token of JSON.
pub fn is_integer_token(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    match digits {
        [] => false,
        [b'0'] => true,
        [b'0', ..] => false,
        _ => digits.iter().all(u8::is_ascii_digit),
    }
}

/// Whether two values are the same JSON value: equal canonical forms.
pub fn same(a: &Value, b: &Value) -> bool {
    a == b || to_vec(a) == to_vec(b)
}

fn write_object(map: &Map<String, Value>, out: &mut Vec<u8>) {
    let mut keys: Vec<&String> = map.keys().collect();
    // UTF-16 order differs from byte order only beyond U+FFFF.
    if keys.iter().all(|k| k.is_ascii()) {
        keys.sort_unstable();
    } else {
        keys.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
    }
    out.push(b'{');
    for (i, key) in keys.into_iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write_string(key, out);
        out.push(b':');
        write(&map[key], out);
    }
    out.push(b'}');
}

fn write_number(n: &Number, out: &mut Vec<u8>) {
    let text = n.as_str();
    if is_integer_token(text) {
        let zero = text == "-0";
        out.extend_from_slice(if zero { b"0" } else { text.as_bytes() });
    } else {
        write_double(n.as_f64().unwrap_or(f64::NAN), out);
    }
}

/// The shortest digits that read back as `x`, laid out by ECMAScript's rules.
/// `{:e}` of Rust gives the shortest round-trip digits; only its layout differs.
fn write_shortest(x: f64, out: &mut Vec<u8>) {
    use std::io::Write as _;
    let mut buffer = [0u8; 40];
    let mut rest: &mut [u8] = &mut buffer;
    // 40 bytes hold any `{:e}` of a double: at most 17 digits and an exponent.
    let written = write!(rest, "{:e}", x.abs()).map(|()| 40 - rest.len());
    let text = &buffer[..written.unwrap_or(0)];
    let mut digits = [0u8; 20];
    let mut count = 0;
    let mut exponent = 0i32;
    let mut at = 0;
    while at < text.len() && text[at] != b'e' {
        if text[at] != b'.' {
            digits[count] = text[at];
            count += 1;
        }
        at += 1;
    }
    let negative_exponent = text.get(at + 1) == Some(&b'-');
    for d in text.iter().skip(at + 1).filter(|c| c.is_ascii_digit()) {
        exponent = exponent * 10 + i32::from(d - b'0');
    }
    if negative_exponent {
        exponent = -exponent;
    }
    if x < 0.0 {
        out.push(b'-');
    }
    lay_out(&digits[..count], exponent + 1, out);
}

/// ECMA-262, `Number::toString`, steps 6 to 12, with the point after `n` digits.
fn lay_out(digits: &[u8], n: i32, out: &mut Vec<u8>) {
    let k = digits.len() as i32;
    if k <= n && n <= 21 {
        out.extend_from_slice(digits);
        out.extend(std::iter::repeat_n(b'0', (n - k) as usize));
    } else if 0 < n && n <= 21 {
        out.extend_from_slice(&digits[..n as usize]);
        out.push(b'.');
        out.extend_from_slice(&digits[n as usize..]);
    } else if -6 < n && n <= 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', (-n) as usize));
        out.extend_from_slice(digits);
    } else {
        out.push(digits[0]);
        if k > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.extend_from_slice(if n > 0 { b"e+" } else { b"e-" });
        out.extend_from_slice((n - 1).unsigned_abs().to_string().as_bytes());
    }
}

fn strip_position(text: &str) -> String {
    text.split(" at line ").next().unwrap_or(text).to_owned()
}

const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// The key under which serde_json hands over the text of a number.
const NUMBER_TOKEN: &str = "$serde_json::private::Number";

/// What can be wrong with a JSON document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Arrays and objects nest too deep.
    #[error("arrays and objects nest deeper than {MAX_DEPTH} levels")]
    Depth,
    /// A key occurs twice in one object.
    #[error("key \"{key}\" occurs twice in the object at \"{pointer}\"")]
    DuplicateKey {
        /// JSON pointer of the object.
        pointer: String,
        /// The key.
        key: String,
    },
    /// A number that no double holds.
    #[error("number {text} at \"{pointer}\" is beyond the range of a double")]
    NotFinite {
        /// JSON pointer of the number.
        pointer: String,
        /// The number as written, cut at 40 characters.
        text: String,
    },
    /// The text is not JSON.
    #[error("not JSON at line {line}, column {column}: {what}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
        /// What the parser found.
        what: String,
    },
}

impl Fault for Error {
    fn code(&self) -> &'static str {
        match self {
            Error::Depth => "json_depth",
            Error::DuplicateKey { .. } => "json_duplicate_key",
            Error::NotFinite { .. } => "json_not_finite",
            Error::Syntax { .. } => "json_syntax",
        }
    }

    fn kind(&self) -> Kind {
        Kind::Input
    }

    fn facts(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        match self {
            Error::Depth => {}
            Error::DuplicateKey { pointer, key } => {
                facts.insert("pointer".into(), pointer.as_str().into());
                facts.insert("key".into(), key.as_str().into());
            }
            Error::NotFinite { pointer, text } => {
                facts.insert("pointer".into(), pointer.as_str().into());
                facts.insert("text".into(), text.as_str().into());
            }
            Error::Syntax { line, column, .. } => {
                facts.insert("line".into(), (*line).into());
                facts.insert("column".into(), (*column).into());
            }
        }
        facts
    }
}

/// Why the seed refused, and where: the path is filled from the inside out
/// while the parser unwinds, so that reading a good document costs nothing.
#[derive(Default)]
struct Refusal {
    error: Option<Error>,
    path: Vec<String>,
}

impl Refusal {
    fn into_error(self) -> Option<Error> {
        let at = pointer(self.path.iter().rev().map(String::as_str));
        let mut error = self.error?;
        match &mut error {
            Error::DuplicateKey { pointer, .. } | Error::NotFinite { pointer, .. } => *pointer = at,
            Error::Depth | Error::Syntax { .. } => {}
        }
        Some(error)
    }
}

#[derive(Clone, Copy)]
struct Strict<'a> {
    depth: usize,
    refusal: &'a RefCell<Refusal>,
}

impl Strict<'_> {
    fn refuse<E: serde::de::Error>(&self, error: Error) -> E {
        let text = error.to_string();
        self.refusal.borrow_mut().error = Some(error);
        E::custom(text)
    }

    fn inside(&self, part: impl FnOnce() -> String) {
        let mut refusal = self.refusal.borrow_mut();
        if refusal.error.is_some() {
            refusal.path.push(part());
        }
    }

    fn inner<E: serde::de::Error>(&self) -> Result<Self, E> {
        if self.depth >= MAX_DEPTH {
            return Err(self.refuse(Error::Depth));
        }
        Ok(Self {
            depth: self.depth + 1,
            ..*self
        })
    }

    fn number<E: serde::de::Error>(&self, text: String) -> Result<Value, E> {
        let number = Number::from_string_unchecked(text);
        let finite =
            is_integer_token(number.as_str()) || number.as_f64().is_some_and(f64::is_finite);
        if !finite {
            let text = number.as_str().chars().take(40).collect();
            let pointer = String::new();
            return Err(self.refuse(Error::NotFinite { pointer, text }));
        }
        Ok(Value::Number(number))
    }
}

/// A JSON pointer (RFC 6901) from its parts.
pub fn pointer<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut out = String::new();
    for part in parts {
        out.push('/');
        out.push_str(&part.replace('~', "~0").replace('/', "~1"));
    }
    out
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, x: bool) -> Result<Value, E> {
        Ok(Value::Bool(x))
    }

    fn visit_u64<E>(self, x: u64) -> Result<Value, E> {
        Ok(Value::Number(x.into()))
    }

    fn visit_i64<E>(self, x: i64) -> Result<Value, E> {
        Ok(Value::Number(x.into()))
    }

    fn visit_str<E>(self, x: &str) -> Result<Value, E> {
        Ok(Value::String(x.to_owned()))
    }

    fn visit_string<E>(self, x: String) -> Result<Value, E> {
        Ok(Value::String(x))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut items = Vec::new();
        loop {
            match seq.next_element_seed(inner) {
                Ok(Some(item)) => items.push(item),
                Ok(None) => return Ok(Value::Array(items)),
                Err(e) => {
                    self.inside(|| items.len().to_string());
                    return Err(e);
                }
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let Some(mut key) = access.next_key::<String>()? else {
            return self.inner().map(|_| Value::Object(Map::new()));
        };
        if key == NUMBER_TOKEN {
            return self.number(access.next_value_seed(NumberText)?);
        }
        let inner = self.inner()?;
        let mut map = Map::new();
        loop {
            if map.contains_key(&key) {
                let pointer = String::new();
                return Err(self.refuse(Error::DuplicateKey { pointer, key }));
            }
            match access.next_value_seed(inner) {
                Ok(value) => map.insert(key, value),
                Err(e) => {
                    self.inside(|| key);
                    return Err(e);
                }
            };
            match access.next_key()? {
                Some(next) => key = next,
                None => return Ok(Value::Object(map)),
            }
        }
    }
}

/// Takes the text of a number as serde_json hands it over, and nothing else: an
/// object of the document under the same key fails here, since its value is not
/// read as a unit.
struct NumberText;

impl<'de> DeserializeSeed<'de> for NumberText {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_unit(self)
    }
}

impl Visitor<'_> for NumberText {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another key (this one is reserved)")
    }

    fn visit_string<E>(self, text: String) -> Result<String, E> {
        Ok(text)
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(text: &str) -> String {
        to_string(&parse(text.as_bytes()).expect(text))
    }

    fn code(text: &[u8]) -> &'static str {
        parse(text).expect_err("must be refused").code()
    }

    #[test]
    fn numbers_of_rfc_8785_appendix_b() {
        let vectors: [(u64, &str); 22] = [
            (0x0000000000000000, "0"),
            (0x8000000000000000, "0"),
            (0x0000000000000001, "5e-324"),
            (0x8000000000000001, "-5e-324"),
            (0x7fefffffffffffff, "1.7976931348623157e+308"),
            (0xffefffffffffffff, "-1.7976931348623157e+308"),
            (0x4340000000000000, "9007199254740992"),
            (0xc340000000000000, "-9007199254740992"),
            (0x4430000000000000, "295147905179352830000"),
            (0x44b52d02c7e14af5, "9.999999999999997e+22"),
            (0x44b52d02c7e14af6, "1e+23"),
            (0x44b52d02c7e14af7, "1.0000000000000001e+23"),
            (0x444b1ae4d6e2ef4e, "999999999999999700000"),
            (0x444b1ae4d6e2ef4f, "999999999999999900000"),
            (0x444b1ae4d6e2ef50, "1e+21"),
            (0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"),
            (0x3eb0c6f7a0b5ed8d, "0.000001"),
            (0x41b3de4355555553, "333333333.3333332"),
            (0x41b3de4355555554, "333333333.33333325"),
            (0x41b3de4355555555, "333333333.3333333"),
            (0x41b3de4355555556, "333333333.3333334"),
            (0xbecbf647612f3696, "-0.0000033333333333333333"),
        ];
        for (bits, want) in vectors {
            let mut out = Vec::new();
            write_double(f64::from_bits(bits), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), want);
        }
    }

    #[test]
    fn keys_are_in_utf16_order() {
        // RFC 8785 section 3.2.3.
        let text = r#"{"\u20ac":"Euro","\r":"CR","\ufb33":"Dalet","1":"One","\ud83d\ude00":"Smile","\u0080":"Control","\u00f6":"Latin"}"#;
        let out = canonical(text);
        let order: Vec<usize> = ["CR", "One", "Control", "Latin", "Euro", "Smile", "Dalet"]
            .iter()
            .map(|name| out.find(name).expect("is there"))
            .collect();
        assert!(order.windows(2).all(|w| w[0] < w[1]), "{out}");
    }

    #[test]
    fn integers_keep_their_digits_and_doubles_are_doubles() {
        for (text, want) in [
            ("76561198003753554", "76561198003753554"),
            (
                "1267650600228229401496703205376",
                "1267650600228229401496703205376",
            ),
            ("-9007199254740993", "-9007199254740993"),
            ("9007199254740993.0", "9007199254740992"),
            ("1.0", "1"),
            ("1e2", "100"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("1e-7", "1e-7"),
            ("1E21", "1e+21"),
            ("0.30000000000000004", "0.30000000000000004"),
            ("1e-400", "0"),
        ] {
            assert_eq!(canonical(text), want);
        }
    }

    #[test]
    fn text_is_escaped_as_little_as_possible() {
        assert_eq!(
            canonical(r#""\u0000\u001f\b\t\n\f\r\"\\\/\u00e9\u007f\u2028""#),
            "\"\\u0000\\u001f\\b\\t\\n\\f\\r\\\"\\\\/é\u{7f}\u{2028}\""
        );
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        for text in [
            "",
            " ",
            "{",
            r#"{"x":1"#,
            r#"{"x":01}"#,
            r#"{"x":NaN}"#,
            r#"{"x":Infinity}"#,
            "[1,]",
            "{} {}",
            "'a'",
            "\u{feff}{}",
            r#""\ud800""#,
            r#""\udc00\ud800""#,
            "+1",
            ".5",
            "1.",
        ] {
            assert_eq!(code(text.as_bytes()), "json_syntax", "{text}");
        }
        assert_eq!(code(b"\"\xff\""), "json_syntax");
        assert_eq!(
            code(br#"{"$serde_json::private::Number":"12"}"#),
            "json_syntax"
        );
        assert_eq!(
            parse(br#"{"a":[1,{"b":1,"b":2}]}"#),
            Err(Error::DuplicateKey {
                pointer: "/a/1".into(),
                key: "b".into()
            })
        );
        assert_eq!(code(br#"{"a":1,"\u0061":2}"#), "json_duplicate_key");
        assert_eq!(
            parse(br#"{"x/y":[0,1e400]}"#),
            Err(Error::NotFinite {
                pointer: "/x~1y/1".into(),
                text: "1e+400".into()
            })
        );
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(parse(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert_eq!(code(nested(MAX_DEPTH + 1).as_bytes()), "json_depth");
        assert_eq!(code("[".repeat(100_000).as_bytes()), "json_depth");
        let objects = |n: usize| format!("{}1{}", r#"{"a":"#.repeat(n), "}".repeat(n));
        assert!(parse(objects(MAX_DEPTH).as_bytes()).is_ok());
        assert_eq!(code(objects(MAX_DEPTH + 1).as_bytes()), "json_depth");
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(|i| Value::Number(i.into())),
            any::<f64>().prop_filter_map("finite", |x| Number::from_f64(x).map(Value::Number)),
            any::<String>().prop_map(Value::String),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_canonical_form_is_a_fixed_point(value in any_value()) {
            let once = to_vec(&value);
            let again = to_vec(&parse(&once).expect("canonical text is JSON"));
            prop_assert_eq!(once, again);
        }

        #[test]
        fn doubles_read_back_and_agree_with_another_writer(bits in any::<u64>()) {
            let x = f64::from_bits(bits);
            prop_assume!(x.is_finite());
            let mut out = Vec::new();
            write_double(x, &mut out);
            let text = String::from_utf8(out).expect("ASCII");
            prop_assert_eq!(text.parse::<f64>().expect("a number"), x);
            let other = ryu_js::Buffer::new().format_finite(x).to_owned();
            prop_assert_eq!(text, other);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = parse(&bytes);
        }
    }
}
