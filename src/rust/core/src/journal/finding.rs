//! What a verifier finds, and the report it makes of it.

use super::RunId;
use crate::digest::Digest;
use std::fmt;
use std::str::FromStr;

/// What is wrong at a place of a trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingKind {
    /// A record after the end of its run.
    AfterEnd,
    /// The trail ends before a known head.
    Cut,
    /// The stated digest is not that of the line.
    Digest,
    /// The event's data are not those of an event.
    Event,
    /// A known head names another record than the trail has at its place.
    Head,
    /// A link that does not fit the line before it, or the file.
    Link,
    /// A run begins or has ended without its link.
    LinkMissing,
    /// No run could have recorded this here.
    Meaning,
    /// Records are missing before this one.
    Missing,
    /// A record, but not in canonical form.
    NotCanonical,
    /// A record again, or out of place.
    Order,
    /// The record does not build on the one before it.
    Prev,
    /// Working time falls.
    Time,
    /// The last line is not terminated.
    Torn,
    /// The line is not a record.
    Unreadable,
}

impl FindingKind {
    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            FindingKind::AfterEnd => "after_end",
            FindingKind::Cut => "cut",
            FindingKind::Digest => "digest",
            FindingKind::Event => "event",
            FindingKind::Head => "head",
            FindingKind::Link => "link",
            FindingKind::LinkMissing => "link_missing",
            FindingKind::Meaning => "meaning",
            FindingKind::Missing => "missing",
            FindingKind::NotCanonical => "not_canonical",
            FindingKind::Order => "order",
            FindingKind::Prev => "prev",
            FindingKind::Time => "time",
            FindingKind::Torn => "torn",
            FindingKind::Unreadable => "unreadable",
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub kind: FindingKind,
    /// The line, from 1; none where no line is at fault.
    pub line: Option<u64>,
    /// The run, where it is known.
    pub run: Option<String>,
    /// The record's number: of the first that is missing where records are.
    pub seq: Option<u64>,
    /// A sentence.
    pub what: String,
}

/// What a trail is as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrailState {
    /// Something is wrong.
    Broken,
    /// It ends too early: in the middle of a line, or before a known head.
    Cut,
    /// Nothing is wrong, and not every run has ended.
    Open,
    /// Nothing is wrong, and every run has ended.
    Sound,
}

impl TrailState {
    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            TrailState::Broken => "broken",
            TrailState::Cut => "cut",
            TrailState::Open => "open",
            TrailState::Sound => "sound",
        }
    }
}

/// A record kept in mind elsewhere: `run:seq:digest`, or the digest alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The run and the record's number in it.
    pub place: Option<(RunId, u64)>,
    /// The record's digest.
    pub digest: Digest,
}

impl FromStr for Head {
    type Err = NotAHead;

    fn from_str(text: &str) -> Result<Self, NotAHead> {
        let refuse = |_| NotAHead {
            text: text.chars().take(40).collect(),
        };
        match text.split(':').collect::<Vec<_>>()[..] {
            [digest] => Ok(Self {
                place: None,
                digest: digest.parse().map_err(|_| refuse(()))?,
            }),
            [run, seq, digest] => Ok(Self {
                place: Some((
                    run.parse().map_err(|_| refuse(()))?,
                    seq.parse().map_err(|_| refuse(()))?,
                )),
                digest: digest.parse().map_err(|_| refuse(()))?,
            }),
            _ => Err(refuse(())),
        }
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some((run, seq)) => write!(f, "{run}:{seq}:{}", self.digest),
            None => write!(f, "{}", self.digest),
        }
    }
}

/// A text that is not a head.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a head is \"run:seq:digest\" or a digest of 64 hex digits, not {text:?}")]
pub struct NotAHead {
    /// What was given, cut at 40 characters.
    pub text: String,
}

impl crate::error::Fault for NotAHead {
    fn code(&self) -> &'static str {
        "not_a_head"
    }
    fn kind(&self) -> crate::error::Kind {
        crate::error::Kind::Input
    }
}

/// What verifying a trail gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What is wrong, in the order of the lines.
    pub findings: Vec<Finding>,
    /// The trail as a whole.
    pub state: TrailState,
    /// Lines, whatever they are.
    pub lines: u64,
    /// Records that are what they state.
    pub records: u64,
    /// Runs that have a record.
    pub runs: u64,
    /// Runs without an end.
    pub open: u64,
    /// Torn tails that were set aside.
    pub recoveries: u64,
    /// The heads that cover the trail: of its own lines, of each open run, and where
    /// it has no lines of its own of each run.
    pub heads: Vec<Head>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_round_trip_and_other_texts_are_refused() {
        let digest = Digest::of_bytes(b"x").to_hex();
        for text in [digest.clone(), format!("r-1:12:{digest}")] {
            let head: Head = text.parse().expect("a head");
            assert_eq!(head.to_string(), text);
        }
        for bad in [
            "",
            "r:1",
            &digest[1..],
            &format!("r:-1:{digest}"),
            &format!("r/:1:{digest}"),
        ] {
            assert!(bad.parse::<Head>().is_err(), "{bad}");
        }
    }
}
