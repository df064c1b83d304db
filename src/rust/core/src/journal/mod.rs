//! The journal of a run: sealed records, the chain that links them, and the
//! reader that verifies it.
//!
//! Writing ([`chain`]) and verifying ([`verify`]) share the spelling of a line
//! ([`mod@format`]) and nothing else.

pub mod chain;
pub mod content;
pub mod finding;
pub mod format;
pub mod record;
mod scan;
pub mod verify;

pub use chain::Chain;
pub use finding::{Finding, FindingKind, Head, Report, TrailState};
pub use format::{Line, RunId};
pub use record::Record;
pub use verify::Verifier;

use crate::error::{Fault, Kind};
use serde_json::{Map, Value};

/// What can be wrong with a record that shall be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number in the data that is not an integer.
    #[error("a journal holds integers only, and the data of \"{event}\" has another number")]
    NotInteger {
        /// The event.
        event: String,
    },
    /// A text that cannot name a run.
    #[error("a run id has 1 to 128 letters, digits, \".\", \"_\" or \"-\" and begins with a letter or digit, not {text:?}")]
    NotARunId {
        /// What was given, cut at 40 characters.
        text: String,
    },
    /// A word that cannot name an event.
    #[error("an event is a lower-case word, not {text:?}")]
    NotAnEvent {
        /// What was given, cut at 40 characters.
        text: String,
    },
    /// The data of an event is not an object.
    #[error("the data of \"{event}\" must be an object")]
    NotAnObject {
        /// The event.
        event: String,
    },
    /// A count or clock reading that JSON numbers do not hold exactly.
    #[error("{quantity} must be at most 2^53 - 1, not {value}")]
    TooLarge {
        /// Which number.
        quantity: &'static str,
        /// The number.
        value: u64,
    },
    /// A record longer than a reader accepts.
    #[error("a record may have at most {limit} bytes, and \"{event}\" has {bytes}")]
    TooLong {
        /// The event.
        event: String,
        /// Bytes of the line.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A line that is not a record.
    #[error("line {line} of the journal is not a record: {what}")]
    Unreadable {
        /// Line, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
}

impl Fault for Error {
    fn code(&self) -> &'static str {
        match self {
            Error::NotInteger { .. } => "journal_not_integer",
            Error::NotARunId { .. } => "journal_run_id",
            Error::NotAnEvent { .. } => "journal_event",
            Error::NotAnObject { .. } => "journal_not_object",
            Error::TooLarge { .. } => "journal_too_large",
            Error::TooLong { .. } => "journal_too_long",
            Error::Unreadable { .. } => "journal_unreadable",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Error::NotARunId { .. } => Kind::Input,
            _ => Kind::Audit,
        }
    }

    fn facts(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        match self {
            Error::NotInteger { event } | Error::NotAnObject { event } => {
                facts.insert("event".into(), event.as_str().into());
            }
            Error::NotARunId { text } | Error::NotAnEvent { text } => {
                facts.insert("text".into(), text.as_str().into());
            }
            Error::TooLarge { quantity, value } => {
                facts.insert("quantity".into(), (*quantity).into());
                facts.insert("value".into(), (*value).into());
            }
            Error::TooLong {
                event,
                bytes,
                limit,
            } => {
                facts.insert("event".into(), event.as_str().into());
                facts.insert("bytes".into(), (*bytes).into());
                facts.insert("limit".into(), (*limit).into());
            }
            Error::Unreadable { line, .. } => {
                facts.insert("line".into(), (*line).into());
            }
        }
        facts
    }
}
