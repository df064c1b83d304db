//! A strict JSON scanner that borrows: for records that are read by the million.
//!
//! It accepts exactly what [`crate::canon::parse`] accepts, but hands over
//! pieces of the text instead of building values. A value that nothing asks for
//! is checked in passing and never built.

use crate::canon::MAX_DEPTH;
use std::borrow::Cow;

/// What makes a text unreadable, and where. The pointer is filled from the
/// inside out while the caller unwinds, so that a good text costs nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) what: What,
    /// Byte position in the text.
    pub(crate) at: usize,
    path: Vec<String>,
}

/// The ways in which a text is not acceptable JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    Depth,
    DuplicateKey(String),
    LoneSurrogate,
    NotFinite,
    Syntax(&'static str),
    /// Left to the reader of a record: a rule and its sentence.
    Rule(&'static str, String),
}

impl Fault {
    pub(crate) fn inside(mut self, part: &str) -> Self {
        self.path.push(part.to_owned());
        self
    }

    pub(crate) fn pointer(&self) -> String {
        crate::canon::pointer(self.path.iter().rev().map(String::as_str))
    }
}

type Scan<T> = Result<T, Fault>;

/// A position in a text.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    /// Keys of the open objects, as ranges of the text with their quotes.
    keys: Vec<(usize, usize)>,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            depth: 0,
            keys: Vec::new(),
        }
    }

    /// The first byte of the next value, without taking it; 0 at the end.
    pub(crate) fn peek(&mut self) -> u8 {
        self.space();
        self.byte()
    }

    /// Nothing but white space may follow.
    pub(crate) fn end(&mut self) -> Scan<()> {
        self.space();
        if self.at < self.bytes.len() {
            return self.syntax("text after the end of the value");
        }
        Ok(())
    }

    pub(crate) fn null(&mut self) -> Scan<()> {
        self.space();
        self.literal(b"null")
    }

    pub(crate) fn boolean(&mut self) -> Scan<bool> {
        self.space();
        let yes = self.byte() == b't';
        self.literal(if yes { b"true" } else { b"false" })?;
        Ok(yes)
    }

    /// The text of a number, checked to be finite.
    pub(crate) fn number(&mut self) -> Scan<&'a str> {
        self.space();
        let start = self.at;
        self.skip_number()?;
        Ok(self.slice(start, self.at))
    }

    pub(crate) fn string(&mut self) -> Scan<Cow<'a, str>> {
        self.space();
        let start = self.at;
        let escaped = self.skip_string()?;
        let inner = self.slice(start + 1, self.at - 1);
        Ok(if escaped {
            Cow::Owned(unescape(inner))
        } else {
            Cow::Borrowed(inner)
        })
    }

    /// Any value: checked, and handed over as its text.
    pub(crate) fn raw(&mut self) -> Scan<&'a str> {
        self.space();
        let start = self.at;
        self.skip_value()?;
        Ok(self.slice(start, self.at))
    }

    /// An object: `field` takes the value of each key. Repeated keys are the
    /// caller's to refuse, since it knows the fields.
    pub(crate) fn object(
        &mut self,
        mut field: impl FnMut(&mut Self, &str) -> Scan<()>,
    ) -> Scan<()> {
        self.space();
        self.enter(b'{')?;
        if self.peek() == b'}' {
            return self.leave();
        }
        loop {
            self.space();
            if self.byte() != b'"' {
                return self.syntax("expected a key");
            }
            let key = self.string()?;
            self.colon()?;
            field(self, &key).map_err(|fault| fault.inside(&key))?;
            if self.next_or(b'}')? {
                return self.leave();
            }
        }
    }

    /// An array: `item` takes each value.
    pub(crate) fn array(&mut self, mut item: impl FnMut(&mut Self) -> Scan<()>) -> Scan<()> {
        self.space();
        self.enter(b'[')?;
        if self.peek() == b']' {
            return self.leave();
        }
        let mut position = 0usize;
        loop {
            item(self).map_err(|fault| fault.inside(&position.to_string()))?;
            position += 1;
            if self.next_or(b']')? {
                return self.leave();
            }
        }
    }

    pub(crate) fn fault(&self, what: What) -> Fault {
        Fault {
            what,
            at: self.at,
            path: Vec::new(),
        }
    }

    fn syntax<T>(&self, what: &'static str) -> Scan<T> {
        Err(self.fault(What::Syntax(what)))
    }

    fn slice(&self, start: usize, end: usize) -> &'a str {
        // Every token starts and ends at an ASCII byte.
        self.text.get(start..end).unwrap_or_default()
    }

    #[inline]
    fn byte(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    #[inline]
    fn space(&mut self) {
        while matches!(self.byte(), b' ' | b'\n' | b'\t' | b'\r') {
            self.at += 1;
        }
    }

    fn enter(&mut self, open: u8) -> Scan<()> {
        if self.byte() != open {
            return self.unexpected();
        }
        if self.depth >= MAX_DEPTH {
            return Err(self.fault(What::Depth));
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    fn leave(&mut self) -> Scan<()> {
        self.depth -= 1;
        self.at += 1;
        Ok(())
    }

    fn colon(&mut self) -> Scan<()> {
        self.space();
        if self.byte() != b':' {
            return self.syntax("expected `:`");
        }
        self.at += 1;
        Ok(())
    }

    /// Whether the container ends here; otherwise a comma is taken.
    #[inline]
    fn next_or(&mut self, close: u8) -> Scan<bool> {
        self.space();
        match self.byte() {
            b',' => {
                self.at += 1;
                Ok(false)
            }
            b if b == close => Ok(true),
            0 if self.at >= self.bytes.len() => self.syntax("the text ends in the middle"),
            _ => self.syntax("expected `,` or the end of the array or object"),
        }
    }

    fn literal(&mut self, word: &'static [u8]) -> Scan<()> {
        if !self.bytes[self.at.min(self.bytes.len())..].starts_with(word) {
            return self.unexpected();
        }
        self.at += word.len();
        Ok(())
    }

    fn unexpected<T>(&self) -> Scan<T> {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        let unsigned = rest.strip_prefix(b"-").unwrap_or(rest);
        if unsigned.starts_with(b"NaN") || unsigned.starts_with(b"Infinity") {
            return Err(self.fault(What::NotFinite));
        }
        self.syntax(if rest.is_empty() {
            "the text ends in the middle"
        } else {
            "expected a value"
        })
    }

    fn skip_value(&mut self) -> Scan<()> {
        match self.byte() {
            b'"' => self.skip_string().map(|_| ()),
            b'{' => self.skip_object(),
            b'[' => self.skip_array(),
            b'-' | b'0'..=b'9' => self.skip_number(),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            _ => self.unexpected(),
        }
    }

    fn skip_array(&mut self) -> Scan<()> {
        self.enter(b'[')?;
        if self.peek() == b']' {
            return self.leave();
        }
        let mut position = 0usize;
        loop {
            self.space();
            self.skip_value()
                .map_err(|fault| fault.inside(&position.to_string()))?;
            position += 1;
            if self.next_or(b']')? {
                return self.leave();
            }
        }
    }

    fn skip_object(&mut self) -> Scan<()> {
        self.enter(b'{')?;
        if self.peek() == b'}' {
            return self.leave();
        }
        let base = self.keys.len();
        let mut escaped = false;
        loop {
            self.space();
            let start = self.at;
            if self.byte() != b'"' {
                return self.syntax("expected a key");
            }
            escaped |= self.skip_string()?;
            self.keys.push((start + 1, self.at - 1));
            let key = (start + 1, self.at - 1);
            self.colon()?;
            self.space();
            if let Err(fault) = self.skip_value() {
                return Err(fault.inside(&unescape(self.slice(key.0, key.1))));
            }
            if self.next_or(b'}')? {
                self.distinct(base, escaped)?;
                self.keys.truncate(base);
                return self.leave();
            }
        }
    }

    /// Keys of one object must differ, once unescaped.
    fn distinct(&self, base: usize, escaped: bool) -> Scan<()> {
        let keys = &self.keys[base..];
        let repeated = if escaped || keys.len() > 16 {
            let mut texts: Vec<Cow<'a, str>> = keys
                .iter()
                .map(|&(a, b)| match self.slice(a, b) {
                    plain if !escaped => Cow::Borrowed(plain),
                    raw => Cow::Owned(unescape(raw)),
                })
                .collect();
            texts.sort_unstable();
            let twice = texts.windows(2).find(|w| w[0] == w[1]);
            twice.map(|w| w[0].clone().into_owned())
        } else {
            let twice = keys.iter().enumerate().find(|&(i, &(a, b))| {
                let key = &self.bytes[a..b];
                keys[..i].iter().any(|&(c, d)| &self.bytes[c..d] == key)
            });
            twice.map(|(_, &(a, b))| self.slice(a, b).to_owned())
        };
        match repeated {
            Some(key) => Err(self.fault(What::DuplicateKey(key))),
            None => Ok(()),
        }
    }

    /// Skips a string with its quotes; whether it holds an escape.
    fn skip_string(&mut self) -> Scan<bool> {
        if self.byte() != b'"' {
            return self.unexpected();
        }
        self.at += 1;
        let mut escaped = false;
        loop {
            self.at += plain_run(&self.bytes[self.at..]);
            match self.byte() {
                b'"' => {
                    self.at += 1;
                    return Ok(escaped);
                }
                b'\\' => {
                    escaped = true;
                    self.skip_escape()?;
                }
                _ if self.at >= self.bytes.len() => {
                    return self.syntax("the text ends in the middle")
                }
                _ => return self.syntax("a control character in a string"),
            }
        }
    }

    fn skip_escape(&mut self) -> Scan<()> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => match self.hex(self.at + 2) {
                None => self.syntax("an escape that is not four hex digits"),
                Some(0xD800..=0xDBFF) => {
                    let pair = self.bytes.get(self.at + 6..self.at + 8) == Some(b"\\u");
                    match self.hex(self.at + 8) {
                        Some(0xDC00..=0xDFFF) if pair => {
                            self.at += 12;
                            Ok(())
                        }
                        _ => Err(self.fault(What::LoneSurrogate)),
                    }
                }
                Some(0xDC00..=0xDFFF) => Err(self.fault(What::LoneSurrogate)),
                Some(_) => {
                    self.at += 6;
                    Ok(())
                }
            },
            _ => self.syntax("an unknown escape"),
        }
    }

    fn hex(&self, at: usize) -> Option<u32> {
        hex4(self.bytes.get(at..at + 4)?)
    }

    fn skip_number(&mut self) -> Scan<()> {
        let start = self.at;
        if self.byte() == b'-' {
            self.at += 1;
        }
        match self.byte() {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.digits(),
            _ => {
                self.at = start;
                return self.unexpected();
            }
        }
        let integer = self.at;
        if self.byte() == b'.' {
            self.at += 1;
            self.some_digits()?;
        }
        let mut exponent = false;
        if matches!(self.byte(), b'e' | b'E') {
            exponent = true;
            self.at += 1;
            if matches!(self.byte(), b'+' | b'-') {
                self.at += 1;
            }
            self.some_digits()?;
        }
        // Without an exponent only some 300 digits leave the range of a double;
        // an integer has no range.
        if exponent || (self.at > integer && self.at - start > 300) {
            let finite = self.slice(start, self.at).parse::<f64>();
            if !finite.is_ok_and(f64::is_finite) {
                self.at = start;
                return Err(self.fault(What::NotFinite));
            }
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.byte().is_ascii_digit() {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Scan<()> {
        if !self.byte().is_ascii_digit() {
            return self.syntax("expected a digit");
        }
        self.digits();
        Ok(())
    }
}

/// How many bytes at the start are neither quote, backslash nor control
/// character: eight at a time ("Bit Twiddling Hacks", haszero).
fn plain_run(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut run = 0;
    for chunk in bytes.chunks_exact(8) {
        let Ok(array) = <[u8; 8]>::try_from(chunk) else {
            break;
        };
        let word = u64::from_le_bytes(array);
        let quote = word ^ (ONES * u64::from(b'"'));
        let slash = word ^ (ONES * u64::from(b'\\'));
        let stop = (quote.wrapping_sub(ONES) & !quote)
            | (slash.wrapping_sub(ONES) & !slash)
            | (word.wrapping_sub(ONES * 0x20) & !word);
        let stop = stop & HIGH;
        if stop != 0 {
            return run + (stop.trailing_zeros() / 8) as usize;
        }
        run += 8;
    }
    run + bytes[run..]
        .iter()
        .take_while(|&&b| b != b'"' && b != b'\\' && b >= 0x20)
        .count()
}

fn hex4(digits: &[u8]) -> Option<u32> {
    let mut code = 0;
    for &d in digits {
        code = code * 16 + char::from(d).to_digit(16)?;
    }
    Some(code)
}

/// The text behind a checked spelling.
fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let (c, taken) = escape(&rest.as_bytes()[at + 1..]);
        out.push(c);
        rest = rest.get(at + 1 + taken..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// The character of an escape, and how many bytes follow its backslash.
fn escape(bytes: &[u8]) -> (char, usize) {
    let unit = |at: usize| bytes.get(at..at + 4).and_then(hex4).unwrap_or(0);
    let plain = match bytes.first() {
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => {
            let high = unit(1);
            if !(0xD800..0xDC00).contains(&high) {
                return (char::from_u32(high).unwrap_or('\u{fffd}'), 5);
            }
            let low = unit(7).wrapping_sub(0xDC00) & 0x3ff;
            let code = 0x10000 + ((high - 0xD800) << 10) + low;
            return (char::from_u32(code).unwrap_or('\u{fffd}'), 11);
        }
        Some(&other) => char::from(other),
        None => '\\',
    };
    (plain, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon;
    use proptest::prelude::*;

    fn accepts(text: &str) -> Result<(), What> {
        let mut scanner = Scanner::new(text);
        scanner
            .raw()
            .and_then(|_| scanner.end())
            .map_err(|f| f.what)
    }

    #[test]
    fn it_accepts_and_refuses_what_the_strict_reader_does() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        let digits = "9".repeat(400);
        for text in [
            "",
            " ",
            "{",
            "{}",
            "[]",
            "[1,]",
            "{} {}",
            "'a'",
            "\u{feff}{}",
            "+1",
            ".5",
            "1.",
            "01",
            "-",
            "-0",
            "-0.0",
            "1e",
            "1e+",
            "1e400",
            "-1e400",
            "1e-400",
            "1E5",
            "[1 2]",
            "tru",
            "true",
            "nullx",
            r#""\ud800""#,
            r#""\udc00\ud800""#,
            r#""\ud83d\ude00""#,
            r#""\x""#,
            r#""\u12g4""#,
            "\"\u{1}\"",
            "\"\t\"",
            r#"{"a":1,"a":2}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"a":{"a":1},"b":[{"a":1},{"a":1}]}"#,
            r#"{a:1}"#,
            r#"{"a" 1}"#,
            r#"{"a":1,}"#,
            "NaN",
            "[-Infinity]",
            " [ 1 , \"x\" ]\n",
            "\u{a0}1",
            &nested(128),
            &nested(129),
            &digits,
            &format!("{digits}.0"),
            &format!("-{digits}.5e-200"),
        ] {
            assert_eq!(
                accepts(text).is_ok(),
                canon::parse(text.as_bytes()).is_ok(),
                "{text}"
            );
        }
        assert_eq!(accepts("[NaN]"), Err(What::NotFinite));
        assert_eq!(accepts(r#"["\ud800"]"#), Err(What::LoneSurrogate));
        assert_eq!(accepts(&nested(129)), Err(What::Depth));
    }

    #[test]
    fn many_keys_and_escaped_keys_are_compared() {
        let keys: Vec<String> = (0..40).map(|i| format!("\"k{i}\":{i}")).collect();
        assert!(accepts(&format!("{{{}}}", keys.join(","))).is_ok());
        let twice = format!("{{{},\"k7\":1}}", keys.join(","));
        assert_eq!(accepts(&twice), Err(What::DuplicateKey("k7".into())));
    }

    proptest! {
        #[test]
        fn strings_read_as_the_strict_reader_reads_them(text in any::<String>()) {
            let spelled = serde_json::to_string(&text).expect("a string");
            let ascii: String = spelled.chars().flat_map(|c| {
                let mut units = [0u16; 2];
                if c.is_ascii() { vec![c.to_string()] } else {
                    c.encode_utf16(&mut units).iter().map(|u| format!("\\u{u:04x}")).collect()
                }
            }).collect();
            for form in [&spelled, &ascii] {
                let mut scanner = Scanner::new(form);
                prop_assert_eq!(&scanner.string().expect("a string"), &text);
            }
        }

        #[test]
        fn it_agrees_with_the_strict_reader_on_broken_text(
            cut in 0usize..80, byte in proptest::sample::select(b"{}[],:\"\\0e.-nt u".to_vec())
        ) {
            let good = r#"{"a":[1,-2.5e3,"x\n\u00e9",null,true],"b":{"c":{},"d":[[]]}, "e":false}"#;
            let mut text = good.to_owned();
            let at = cut.min(text.len() - 1);
            text.replace_range(at..=at, std::str::from_utf8(&[byte]).expect("ASCII"));
            prop_assert_eq!(accepts(&text).is_ok(), canon::parse(text.as_bytes()).is_ok(), "{}", text);
            let part = &good[..at];
            prop_assert_eq!(accepts(part).is_ok(), canon::parse(part.as_bytes()).is_ok());
        }
    }
}
