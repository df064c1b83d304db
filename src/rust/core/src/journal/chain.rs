//! The writer: appends records over a head.

use super::{Error, Record, RunId};
use crate::digest::Digest;
use crate::event::Event;

/// The end of a journal, ready for the next record.
///
/// ```
/// use warrant_core::journal::{Chain, RunId};
/// let mut chain = Chain::start(RunId::new("r1")?);
/// let event = warrant_core::event::PlanStarted { step: 1 }.into();
/// let record = chain.append(&event, 1_700_000_000_000, 12)?;
/// assert_eq!(record.seq(), 0);
/// assert_eq!(chain.head(), Some(record.digest()));
/// # Ok::<(), warrant_core::journal::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    run: RunId,
    next: u64,
    head: Option<Digest>,
    active_ms: u64,
}

impl Chain {
    /// The chain of a run without records.
    pub fn start(run: RunId) -> Self {
        Self {
            run,
            next: 0,
            head: None,
            active_ms: 0,
        }
    }

    /// The chain whose last record is number `seq` with this digest.
    pub fn resume(run: RunId, seq: u64, head: Digest, active_ms: u64) -> Self {
        Self {
            run,
            next: seq.saturating_add(1),
            head: Some(head),
            active_ms,
        }
    }

    /// Seals the next record. Working time never falls: an earlier reading is
    /// written as the last one.
    ///
    /// # Errors
    /// As [`Record::seal`]; the chain is then as before.
    pub fn append(&mut self, event: &Event, at: u64, active_ms: u64) -> Result<Record, Error> {
        self.append_data(event.name(), &event.data(), at, active_ms)
    }

    /// Seals the next record from its event's name and canonical data.
    ///
    /// # Errors
    /// As [`Record::seal`]; the chain is then as before.
    pub fn append_data(
        &mut self,
        event: &str,
        data: &[u8],
        at: u64,
        active_ms: u64,
    ) -> Result<Record, Error> {
        let active_ms = active_ms.max(self.active_ms);
        let record =
            Record::seal_bytes(&self.run, self.next, self.head, event, data, at, active_ms)?;
        self.next += 1;
        self.head = Some(record.digest());
        self.active_ms = active_ms;
        Ok(record)
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The number that the next record gets.
    pub fn next_seq(&self) -> u64 {
        self.next
    }

    /// The digest of the last record.
    pub fn head(&self) -> Option<Digest> {
        self.head
    }

    /// Working time as last written, in milliseconds.
    pub fn active_ms(&self) -> u64 {
        self.active_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::PlanStarted;

    #[test]
    fn records_build_on_each_other_and_a_resumed_chain_goes_on() {
        let run = RunId::new("r1").expect("an id");
        let mut chain = Chain::start(run.clone());
        let plan = PlanStarted { step: 1 }.into();
        let first = chain.append(&plan, 1, 5).expect("seals");
        let mut resumed = Chain::resume(run, first.seq(), first.digest(), first.active_ms());
        assert_eq!(resumed, chain);
        let second = chain.append(&plan, 0, 3).expect("seals");
        assert_eq!(resumed.append(&plan, 0, 3), Ok(second.clone()));
        let parts = second.parts().expect("reads back");
        assert_eq!(parts.prev, Some(first.digest().to_hex().as_str()));
        assert_eq!((parts.seq, parts.at, parts.active_ms), (1, 0, 5));
    }

    #[test]
    fn a_record_that_cannot_be_sealed_leaves_the_chain_alone() {
        let mut chain = Chain::start(RunId::new("r1").expect("an id"));
        let before = chain.clone();
        assert!(chain.append_data("decided", b"{\"x\":0.1}", 0, 9).is_err());
        assert_eq!(chain, before);
    }
}
