//! The spelling of a journal line: the one place that knows it.
//!
//! A line is the canonical JSON of eight members, so they stand in this order:
//! `active_ms`, `at`, `data`, `digest`, `event`, `prev`, `run`, `seq`. All but
//! `data` have a fixed spelling, so a reader finds them from both ends and the
//! `digest` member can be cut out by position: what is hashed is the line's own
//! bytes, never a second rendering of them.

use super::scan;
use super::Error;
use crate::digest::Digest;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// The longest line that is written or read, in bytes, without its newline.
pub const MAX_LINE: usize = 16 << 20;

/// The largest count or clock reading: the integers that a double holds.
pub const MAX_COUNT: u64 = (1 << 53) - 1;

/// The event of the lines by which an audit file chains whole runs.
pub const LINK: &str = "link";

/// The event of the line that states a torn tail which was set aside.
pub const RECOVERED: &str = "recovered";

/// The event that opens a run.
pub const RUN_STARTED: &str = "run_started";

/// The event that ends a run.
pub const FINISHED: &str = "finished";

pub(super) const ACTIVE_MS: &[u8] = b"{\"active_ms\":";
pub(super) const AT: &[u8] = b",\"at\":";
pub(super) const DATA: &[u8] = b",\"data\":";
pub(super) const DIGEST: &[u8] = b",\"digest\":\"";
pub(super) const EVENT: &[u8] = b"\",\"event\":\"";
pub(super) const PREV: &[u8] = b"\",\"prev\":";
pub(super) const RUN: &[u8] = b",\"run\":\"";
pub(super) const SEQ: &[u8] = b"\",\"seq\":";

const HEX_LEN: usize = 64;
const MAX_EVENT: usize = 40;
const MAX_RUN_ID: usize = 128;

/// The name of a run.
///
/// Invariant: 1 to 128 letters, digits, `.`, `_` or `-` of ASCII, the first a
/// letter or digit; so it is a file name on every system and needs no escape.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(String);

impl RunId {
    /// A run id from its text.
    ///
    /// # Errors
    /// [`Error::NotARunId`].
    pub fn new(text: &str) -> Result<Self, Error> {
        if is_run_id(text.as_bytes()) {
            return Ok(Self(text.to_owned()));
        }
        let text = text.chars().take(40).collect();
        Err(Error::NotARunId { text })
    }

    /// The id that 16 random bytes give: 32 hex digits.
    pub fn of_random(bytes: [u8; 16]) -> Self {
        Self(crate::digest::hex(&bytes))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RunId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::new(text)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A line read by its fixed spelling; it borrows the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// Working time of the run in milliseconds.
    pub active_ms: u64,
    /// Wall clock in milliseconds since 1970, UTC.
    pub at: u64,
    /// Canonical JSON of the event's data.
    pub data: &'a str,
    /// The digest that the line states, 64 hex digits.
    pub digest: &'a str,
    /// The event.
    pub event: &'a str,
    /// The digest of the record before it in the run.
    pub prev: Option<&'a str>,
    /// The run.
    pub run: &'a str,
    /// The record's number in the run, from 0.
    pub seq: u64,
    bytes: &'a [u8],
    /// Invariant: `bytes[cut.0..cut.1]` is `"digest":"...",`.
    cut: (usize, usize),
}

impl<'a> Line<'a> {
    /// Reads a line without its newline; nothing where it is not a record in
    /// canonical form. [`diagnose`] then says why.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let head = Cursor { bytes, at: 0 };
        let (active_ms, head) = head.skip(ACTIVE_MS)?.count()?;
        let (at, head) = head.skip(AT)?.count()?;
        let start = head.skip(DATA)?.at;

        let tail = Tail {
            bytes,
            end: bytes.len(),
        };
        let (seq, tail) = tail.drop(b"}")?.count()?;
        let (run, tail) = tail.drop(SEQ)?.word(is_run_id, MAX_RUN_ID)?;
        let tail = tail.drop(RUN)?;
        let (prev, tail) = match tail.drop(b"null") {
            Some(tail) => (None, tail),
            None => {
                let (prev, tail) = tail.drop(b"\"")?.hex()?;
                (Some(prev), tail.drop(b"\"")?)
            }
        };
        let (event, tail) = tail.drop(PREV)?.word(is_event, MAX_EVENT)?;
        let (digest, tail) = tail.drop(EVENT)?.hex()?;
        let end = tail.drop(DIGEST)?.end;

        if end <= start || !scan::is_object(&bytes[start..end]) {
            return None;
        }
        Some(Line {
            active_ms,
            at,
            data: &text[start..end],
            digest: &text[digest..digest + HEX_LEN],
            event: &text[event.0..event.1],
            prev: prev.map(|p| &text[p..p + HEX_LEN]),
            run: &text[run.0..run.1],
            seq,
            bytes,
            cut: (end + 1, digest + HEX_LEN + 2),
        })
    }

    /// SHA-256 of the line without its `digest` member.
    pub fn hash(&self) -> Digest {
        hash_around(&self.bytes[..self.cut.0], &self.bytes[self.cut.1..])
    }
}

/// SHA-256 of two pieces, one after the other.
pub(super) fn hash_around(before: &[u8], after: &[u8]) -> Digest {
    let mut sha = Sha256::new();
    sha.update(before);
    sha.update(after);
    Digest::from_bytes(sha.finalize().into())
}

/// Why a line is not a record in canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Defect {
    /// A record, in other bytes than the canonical ones.
    NotCanonical {
        /// The run it names.
        run: String,
        /// The number it states.
        seq: u64,
        /// The digest it states.
        digest: Digest,
        /// The record before it, as it states.
        prev: Option<Digest>,
        /// The event it states.
        event: String,
    },
    /// Not a record.
    Unreadable {
        /// What is wrong.
        what: String,
    },
}

/// Says why [`Line::read`] gave nothing. Slow; for lines that are wrong.
pub fn diagnose(bytes: &[u8]) -> Defect {
    let unreadable = |what: &str| Defect::Unreadable { what: what.into() };
    if bytes.is_empty() {
        return unreadable("the line is empty");
    }
    if std::str::from_utf8(bytes).is_err() {
        return unreadable("the line is not UTF-8");
    }
    let value = match crate::canon::parse(bytes) {
        Ok(value) => value,
        Err(error) => return unreadable(&error.to_string()),
    };
    members(&value).unwrap_or_else(|| {
        unreadable(
            "the line is not an object of the eight members of a record with values of their kind",
        )
    })
}

/// The record in a value that has exactly its eight members, each of its kind.
fn members(value: &Value) -> Option<Defect> {
    let map = value.as_object().filter(|map| map.len() == 8)?;
    let count = |key: &str| map.get(key)?.as_u64().filter(|n| *n <= MAX_COUNT);
    let text = |key: &str| map.get(key)?.as_str();
    count("active_ms")?;
    count("at")?;
    map.get("data")?.as_object()?;
    let prev = match map.get("prev")? {
        Value::Null => None,
        other => Some(other.as_str()?.parse().ok()?),
    };
    Some(Defect::NotCanonical {
        run: text("run").filter(|r| is_run_id(r.as_bytes()))?.to_owned(),
        seq: count("seq")?,
        digest: text("digest")?.parse().ok()?,
        prev,
        event: text("event").filter(|w| is_event(w.as_bytes()))?.to_owned(),
    })
}

/// Whether the bytes can name a run.
pub(super) fn is_run_id(bytes: &[u8]) -> bool {
    bytes.len() <= MAX_RUN_ID
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|b| RUN_BYTES[usize::from(*b)])
}

/// Whether the bytes can name an event.
pub(super) fn is_event(bytes: &[u8]) -> bool {
    bytes.len() <= MAX_EVENT
        && bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.iter().all(|b| b.is_ascii_lowercase() || *b == b'_')
}

const RUN_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut i = 0;
    while i < 128 {
        let b = i as u8;
        table[i] = b.is_ascii_alphanumeric() || b == b'.' || b == b'_' || b == b'-';
        i += 1;
    }
    table
};

const HEX_BYTES: [u8; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        table[i] = (b.is_ascii_digit() || (b >= b'a' && b <= b'f')) as u8;
        i += 1;
    }
    table
};

/// Reads forward.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn skip(self, fixed: &[u8]) -> Option<Self> {
        let at = self.at + fixed.len();
        (self.bytes.get(self.at..at)? == fixed).then_some(Self { at, ..self })
    }

    fn count(self) -> Option<(u64, Self)> {
        let digits = &self.bytes[self.at..];
        // 16 digits hold every count, so nothing overflows.
        let len = digits
            .iter()
            .take(17)
            .take_while(|b| b.is_ascii_digit())
            .count();
        let value = count(&digits[..len])?;
        Some((
            value,
            Self {
                at: self.at + len,
                ..self
            },
        ))
    }
}

/// Reads backward: `end` is where the part not yet read ends.
struct Tail<'a> {
    bytes: &'a [u8],
    end: usize,
}

impl Tail<'_> {
    fn drop(&self, fixed: &[u8]) -> Option<Self> {
        let end = self.end.checked_sub(fixed.len())?;
        (&self.bytes[end..self.end] == fixed).then_some(Tail {
            bytes: self.bytes,
            end,
        })
    }

    fn count(self) -> Option<(u64, Self)> {
        let part = &self.bytes[..self.end];
        let digits = part
            .iter()
            .rev()
            .take(17)
            .take_while(|b| b.is_ascii_digit());
        let end = self.end - digits.count();
        Some((count(&self.bytes[end..self.end])?, Self { end, ..self }))
    }

    /// A text without escapes between quotes; the quotes belong to what is
    /// dropped before and after.
    fn word(self, allowed: fn(&[u8]) -> bool, longest: usize) -> Option<((usize, usize), Self)> {
        let first = self.end.saturating_sub(longest + 1);
        let quote = self.bytes[first..self.end]
            .iter()
            .rposition(|b| *b == b'"')?;
        let end = first + quote + 1;
        let word = &self.bytes[end..self.end];
        allowed(word).then_some(((end, self.end), Self { end, ..self }))
    }

    fn hex(self) -> Option<(usize, Self)> {
        let end = self.end.checked_sub(HEX_LEN)?;
        let hex = &self.bytes[end..self.end];
        let all = hex
            .iter()
            .fold(1, |all, b| all & HEX_BYTES[usize::from(*b)]);
        (all == 1).then_some((end, Self { end, ..self }))
    }
}

/// A count without leading zeros, at most [`MAX_COUNT`].
fn count(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 || (digits[0] == b'0' && digits.len() > 1) {
        return None;
    }
    let value = digits.iter().fold(0, |n, d| n * 10 + u64::from(d - b'0'));
    (value <= MAX_COUNT).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: &str = "0000000000000000000000000000000000000000000000000000000000000000";

    fn line(data: &str, tail: &str) -> String {
        format!(
            "{{\"active_ms\":1,\"at\":2,\"data\":{data},\"digest\":\"{ZERO}\",\"event\":\"link\",{tail}}}"
        )
    }

    #[test]
    fn a_line_is_read_from_both_ends() {
        let text = line(
            "{\"a\":\"\\\",\\\"digest\\\":\"}",
            "\"prev\":null,\"run\":\"r-1\",\"seq\":7",
        );
        let read = Line::read(text.as_bytes()).expect("a record");
        assert_eq!((read.active_ms, read.at, read.seq), (1, 2, 7));
        assert_eq!((read.run, read.event, read.prev), ("r-1", "link", None));
        assert_eq!(read.digest, ZERO);
        let without = text.replace(&format!("\"digest\":\"{ZERO}\","), "");
        assert_eq!(read.hash(), Digest::of_bytes(without.as_bytes()));
    }

    #[test]
    fn other_spellings_are_not_read_and_named() {
        let good = line("{}", "\"prev\":null,\"run\":\"r\",\"seq\":0");
        assert!(Line::read(good.as_bytes()).is_some());
        let canonical = [
            good.replace("{}", "{ }"),
            good.replace(":1,", ":1 ,"),
            format!("{good}\r"),
            format!(" {good}"),
            good.replace("\"r\"", "\"\\u0072\""),
            good.replace("{}", "{\"b\":1,\"a\":2}"),
            good.replace("{}", "{\"a\":1.5}"),
        ];
        for text in canonical {
            assert_eq!(Line::read(text.as_bytes()), None, "{text}");
            let defect = diagnose(text.as_bytes());
            assert!(
                matches!(&defect, Defect::NotCanonical { run, seq: 0, .. } if run == "r"),
                "{text}: {defect:?}"
            );
        }
        let other = [
            String::new(),
            "null".into(),
            "{}".into(),
            good.replace("\"seq\":0", "\"seq\":-1"),
            good.replace("\"seq\":0", "\"seq\":00"),
            good.replace("\"seq\":0", "\"seq\":9007199254740992"),
            good.replace("link", "Link"),
            good.replace("\"r\"", "\"r/../x\""),
            good.replace("{}", "[]"),
            good.replace(ZERO, &ZERO.replace('0', "A")),
            good.replace(",\"seq\":0", ""),
            format!("\u{feff}{good}"),
        ];
        for text in other {
            assert_eq!(Line::read(text.as_bytes()), None, "{text}");
            let defect = diagnose(text.as_bytes());
            assert!(matches!(defect, Defect::Unreadable { .. }), "{text}");
        }
        let mut torn = good.into_bytes();
        torn.push(0xc3);
        assert_eq!(Line::read(&torn), None);
    }

    #[test]
    fn run_ids_are_safe_file_names() {
        for good in ["a", "A-1.b_c", "0", &"x".repeat(128)] {
            assert!(RunId::new(good).is_ok());
        }
        for bad in [
            "",
            ".",
            "..",
            "-a",
            "_a",
            "a/b",
            "a\\b",
            "é",
            "a b",
            "a\n",
            &"x".repeat(129),
        ] {
            assert!(RunId::new(bad).is_err(), "{bad}");
        }
        assert_eq!(RunId::of_random([7; 16]).as_str().len(), 32);
    }
}
