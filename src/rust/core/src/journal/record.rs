//! A sealed record: made once, with the bytes that are written.

use super::format::{
    self, hash_around, is_event, RunId, ACTIVE_MS, AT, DATA, DIGEST, EVENT, MAX_COUNT, MAX_LINE,
    PREV, RUN, SEQ,
};
use super::{scan, Error};
use crate::canon;
use crate::digest::Digest;
use serde_json::Value;

/// A record of a journal.
///
/// Invariant: `line` is canonical, has no newline, and [`format::Line::read`]
/// reads it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    seq: u64,
    active_ms: u64,
    digest: Digest,
    line: String,
}

impl Record {
    /// Seals a record: writes its canonical line and takes the digest of it.
    ///
    /// # Errors
    /// [`Error`] where the event is not a word, the data not an object of
    /// integers and texts, a number too large or the line too long.
    pub fn seal(
        run: &RunId,
        seq: u64,
        prev: Option<Digest>,
        event: &str,
        data: &Value,
        at: u64,
        active_ms: u64,
    ) -> Result<Self, Error> {
        if !data.is_object() {
            let event = event.to_owned();
            return Err(Error::NotAnObject { event });
        }
        Self::seal_bytes(run, seq, prev, event, &canon::to_vec(data), at, active_ms)
    }

    /// Seals a record whose data is already canonical JSON.
    ///
    /// # Errors
    /// As [`Record::seal`].
    pub fn seal_bytes(
        run: &RunId,
        seq: u64,
        prev: Option<Digest>,
        event: &str,
        data: &[u8],
        at: u64,
        active_ms: u64,
    ) -> Result<Self, Error> {
        check(seq, event, data, at, active_ms)?;
        let mut before = Vec::with_capacity(data.len() + 320);
        before.extend_from_slice(ACTIVE_MS);
        before.extend_from_slice(active_ms.to_string().as_bytes());
        before.extend_from_slice(AT);
        before.extend_from_slice(at.to_string().as_bytes());
        before.extend_from_slice(DATA);
        before.extend_from_slice(data);
        let mut after = Vec::with_capacity(240);
        // The two bytes that close the digest member belong to no hash.
        after.extend_from_slice(&EVENT[2..]);
        after.extend_from_slice(event.as_bytes());
        after.extend_from_slice(PREV);
        match prev {
            Some(prev) => after.extend_from_slice(format!("\"{prev}\"").as_bytes()),
            None => after.extend_from_slice(b"null"),
        }
        after.extend_from_slice(RUN);
        after.extend_from_slice(run.as_str().as_bytes());
        after.extend_from_slice(SEQ);
        after.extend_from_slice(seq.to_string().as_bytes());
        after.push(b'}');

        before.push(b',');
        let digest = hash_around(&before, &after);
        before.extend_from_slice(&DIGEST[1..]);
        before.extend_from_slice(digest.to_hex().as_bytes());
        before.extend_from_slice(&EVENT[..2]);
        before.extend_from_slice(&after);
        if before.len() > MAX_LINE {
            return Err(Error::TooLong {
                event: event.to_owned(),
                bytes: before.len(),
                limit: MAX_LINE,
            });
        }
        let line = String::from_utf8(before).map_err(|_| Error::NotAnObject {
            event: event.to_owned(),
        })?;
        Ok(Self {
            seq,
            active_ms,
            digest,
            line,
        })
    }

    /// The record's number in its run, from 0.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Working time of the run in milliseconds.
    pub fn active_ms(&self) -> u64 {
        self.active_ms
    }

    /// The digest that the next record builds on.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The canonical line, without a newline.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// The canonical line, without a newline.
    pub fn into_line(self) -> String {
        self.line
    }

    /// The parts of the line.
    pub fn parts(&self) -> Option<format::Line<'_>> {
        format::Line::read(self.line.as_bytes())
    }
}

fn check(seq: u64, event: &str, data: &[u8], at: u64, active_ms: u64) -> Result<(), Error> {
    if !is_event(event.as_bytes()) {
        let text = event.chars().take(40).collect();
        return Err(Error::NotAnEvent { text });
    }
    for (quantity, value) in [("seq", seq), ("at", at), ("active_ms", active_ms)] {
        if value > MAX_COUNT {
            return Err(Error::TooLarge { quantity, value });
        }
    }
    if !scan::is_object(data) {
        // Canonical bytes that the scan refuses hold a number that is no integer.
        let event = event.to_owned();
        return Err(Error::NotInteger { event });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Fault;
    use serde_json::json;

    #[test]
    fn the_digest_is_that_of_the_canonical_line_without_it() {
        let run = RunId::new("r1").expect("an id");
        let data = json!({"b": [1, "é\n"], "a": {"y": null, "x": true}});
        let prev = Digest::of_bytes(b"before");
        let record = Record::seal(&run, 3, Some(prev), "decided", &data, 5, 6).expect("seals");
        let mut value = canon::parse(record.line().as_bytes()).expect("JSON");
        assert_eq!(canon::to_string(&value), record.line());
        let map = value.as_object_mut().expect("an object");
        let stated = map.remove("digest");
        assert_eq!(stated, Some(json!(record.digest().to_hex())));
        assert_eq!(Digest::of_value(&value), record.digest());
        let parts = record.parts().expect("reads back");
        assert_eq!(parts.hash(), record.digest());
        assert_eq!(parts.prev, Some(prev.to_hex().as_str()));
        assert_eq!((parts.run, parts.seq, parts.event), ("r1", 3, "decided"));
    }

    #[test]
    fn what_a_reader_would_refuse_is_not_sealed() {
        let run = RunId::new("r1").expect("an id");
        let code = |seq, event: &str, data: Value, at| {
            Record::seal(&run, seq, None, event, &data, at, 0).map_err(|e| e.code())
        };
        assert!(code(0, "decided", json!({}), 0).is_ok());
        let refused = [
            (code(0, "Decided", json!({}), 0), "journal_event"),
            (code(0, "decided", json!([]), 0), "journal_not_object"),
            (
                code(0, "decided", json!({"a": 0.5}), 0),
                "journal_not_integer",
            ),
            (code(1 << 53, "decided", json!({}), 0), "journal_too_large"),
            (code(0, "decided", json!({}), u64::MAX), "journal_too_large"),
            (
                code(0, "decided", json!({"a": "x".repeat(MAX_LINE)}), 0),
                "journal_too_long",
            ),
        ];
        for (result, want) in refused {
            assert_eq!(result.err(), Some(want));
        }
    }
}
