//! How often a tool was called, and what became of each call.

use crate::digest::Digest;
use crate::outcome::Outcome;
use crate::tool::Bound;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

/// The count of calls that started: exact, however many ask at once.
#[derive(Debug, Default)]
pub struct Meter(AtomicU64);

impl Meter {
    /// How many calls have started.
    pub fn used(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Takes one call of the budget, or refuses and leaves the count as it is.
    pub fn start(&self, limit: Bound) -> bool {
        self.0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |used| {
                let next = used.checked_add(1)?;
                limit.allows(next).then_some(next)
            })
            .is_ok()
    }

    /// Carries on from a count that was saved, where it is the larger one.
    pub fn at_least(&self, used: u64) {
        self.0.fetch_max(used, Ordering::SeqCst);
    }
}

/// One call in the log.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Place in the order of all calls of the session.
    pub order: u64,
    /// Identifies the call.
    pub span: u64,
    /// Which run and agent, by number; 0 is none.
    pub origin: u32,
    /// Step of the run, from 1; 0 outside a run.
    pub step: u32,
    /// Round of the tool loop, from 1; 0 where there is none.
    pub round: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether the shown result was cut.
    pub truncated: bool,
    /// Wall clock at the start, in seconds since 1970.
    pub ts: f64,
    /// How long it took, in seconds.
    pub duration_s: f64,
    /// Bytes of the shown text.
    pub bytes: u64,
    /// Digest of the arguments; all zero where they could not be read.
    pub arguments: Digest,
    /// Digest of the whole result; all zero where there is none.
    pub result: Digest,
    /// SHA-256 of the shown text.
    pub shown: Digest,
    /// Texts, where they are kept or there is something to say.
    pub texts: Option<Box<Texts>>,
}

/// The texts of one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    /// Canonical arguments, secrets hidden.
    pub arguments: Option<String>,
    /// The shown text.
    pub result: Option<String>,
    /// Classes of the R error.
    pub error_class: Vec<String>,
    /// Warnings in order.
    pub warnings: Vec<String>,
    /// Messages in order.
    pub messages: Vec<String>,
    /// Guardrail verdicts.
    pub guardrails: Vec<String>,
}

impl Entry {
    /// No digest.
    pub fn no_digest() -> Digest {
        Digest::from_bytes([0; 32])
    }
}

/// The calls of one tool, in order.
///
/// Invariant: all chunks but the last are full, so that the cost of the n-th call
/// does not grow with n and nothing is ever moved.
#[derive(Debug, Default)]
pub struct Ledger {
    chunks: Vec<Vec<Entry>>,
    /// Arguments of calls that ended without its being known what they did.
    unknown_effects: BTreeSet<Digest>,
}

impl Ledger {
    /// Adds a call and gives its place.
    pub fn push(&mut self, entry: Entry) -> usize {
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(entry),
            _ => {
                // A tool that is called a few times holds a few rows.
                let room = if self.chunks.is_empty() { 4 } else { CHUNK };
                let mut chunk = Vec::with_capacity(room);
                chunk.push(entry);
                self.chunks.push(chunk);
            }
        }
        self.len() - 1
    }

    /// Notes that a call with these arguments has an unknown effect, so that an
    /// equal one is put to a person.
    pub fn note_unknown_effect(&mut self, arguments: Digest) {
        self.unknown_effects.insert(arguments);
    }

    /// Whether an equal call has an unknown effect.
    pub fn has_unknown_effect(&self, arguments: Digest) -> bool {
        self.unknown_effects.contains(&arguments)
    }

    /// The call at a place, to settle what was pending.
    pub fn get_mut(&mut self, place: usize) -> Option<&mut Entry> {
        self.chunks.get_mut(place / CHUNK)?.get_mut(place % CHUNK)
    }

    /// How many calls.
    pub fn len(&self) -> usize {
        match self.chunks.split_last() {
            None => 0,
            Some((last, full)) => full.len() * CHUNK + last.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The calls in order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.chunks.iter().flatten()
    }
}

const CHUNK: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(order: u64) -> Entry {
        Entry {
            order,
            span: order,
            origin: 0,
            step: 0,
            round: 0,
            outcome: Outcome::Executed,
            truncated: false,
            ts: 0.0,
            duration_s: 0.0,
            bytes: 0,
            arguments: Entry::no_digest(),
            result: Entry::no_digest(),
            shown: Entry::no_digest(),
            texts: None,
        }
    }

    #[test]
    fn a_logged_call_is_small() {
        assert!(
            std::mem::size_of::<Entry>() <= 184,
            "{}",
            std::mem::size_of::<Entry>()
        );
    }

    #[test]
    fn calls_stay_in_order_and_can_be_settled() {
        let mut ledger = Ledger::default();
        for i in 0..3000 {
            assert_eq!(ledger.push(entry(i)), i as usize);
        }
        ledger.get_mut(2048).expect("is there").outcome = Outcome::Error;
        assert!(ledger.iter().enumerate().all(|(i, e)| e.order == i as u64));
        assert_eq!(
            ledger
                .iter()
                .filter(|e| e.outcome == Outcome::Error)
                .count(),
            1
        );
        assert!(ledger.get_mut(3000).is_none());
    }

    #[test]
    fn the_meter_stops_at_its_limit_and_carries_on_from_the_larger_count() {
        let meter = Meter::default();
        assert!(!meter.start(Bound::AtMost(0)));
        assert!(meter.start(Bound::AtMost(1)) && !meter.start(Bound::AtMost(1)));
        meter.at_least(5);
        meter.at_least(3);
        assert_eq!(meter.used(), 5);
        assert!(meter.start(Bound::Unlimited));
    }

    #[test]
    fn threads_that_race_for_the_last_call_start_exactly_the_limit() {
        for limit in [1u64, 7, 100] {
            let meter = Meter::default();
            let started = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        for _ in 0..50 {
                            if meter.start(Bound::AtMost(limit)) {
                                started.fetch_add(1, Ordering::SeqCst);
                            }
                        }
                    });
                }
            });
            assert_eq!(started.into_inner(), limit);
            assert_eq!(meter.used(), limit);
        }
    }
}
