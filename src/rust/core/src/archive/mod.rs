//! What an archive of a study says of its runs: trajectories, rows of tables, what
//! was redacted, and the list of digests that seals it.
//!
//! Everything here is made from journals and content alone, by the writer of an
//! archive as by its verifier.

pub mod account;
pub mod check;
pub mod pack;
pub mod redact;
#[cfg(test)]
mod sample;
pub mod seal;
pub mod table;
pub mod trajectory;

pub use account::Account;
pub use redact::Redaction;
pub use trajectory::{trajectory, withhold, Judged, Values};

use crate::digest::Digest;
use std::collections::BTreeMap;

/// Values of a run by address, as canonical JSON.
pub type Content = BTreeMap<Digest, Vec<u8>>;

/// A value at its address.
fn value_at(content: &Content, address: Option<&Digest>) -> Option<serde_json::Value> {
    crate::canon::parse(content.get(address?)?).ok()
}
