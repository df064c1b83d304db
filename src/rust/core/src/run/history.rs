//! Reading a journal back: the chain is checked, the events are folded, and the
//! steps are kept.

use super::meaning::Meaning;
use super::setup::Error;
use super::state::State;
use super::step::Closed;
use crate::digest::Digest;
use crate::event::{other_schema, Event};
use crate::journal::{Chain, Line, RunId};
use crate::limits::Used;

/// A run as its journal tells it.
#[derive(Debug)]
pub struct History {
    /// The state after the last record.
    pub state: State,
    /// The end of the chain.
    pub chain: Chain,
    /// Wall clock of the last record, milliseconds since 1970.
    pub at_ms: u64,
    /// The steps that are over.
    pub steps: Vec<Closed>,
    /// What had been used when each plan began, the plan itself included.
    pub plans: Vec<Used>,
}

impl History {
    /// Reads whole lines, without newlines, in order. `upto`, where it is given, is
    /// the digest of the last record to read.
    ///
    /// # Errors
    /// A line that is no record, a record that does not follow the one before it or
    /// belongs to another run, an event that no run could have recorded there, no
    /// record at all, or none with the digest `upto`.
    pub fn read<'a>(
        lines: impl IntoIterator<Item = &'a str>,
        upto: Option<Digest>,
    ) -> Result<Self, Error> {
        let mut reader: Option<History> = None;
        let mut met = upto.is_none();
        for (place, text) in lines.into_iter().enumerate() {
            let seq = place as u64;
            let broken = |what| Error::Broken { seq, what };
            let line = Line::read(text.as_bytes()).ok_or(broken("is not a record"))?;
            let stated: Digest = line.digest.parse().map_err(|_| broken("is not a record"))?;
            if line.hash() != stated {
                return Err(broken("was changed: it does not have its digest"));
            }
            let history = match &mut reader {
                Some(history) => history,
                None => reader.insert(History::of(RunId::new(line.run)?)),
            };
            history.take(&line, stated, seq)?;
            if upto == Some(stated) {
                met = true;
                break;
            }
        }
        match (reader, upto) {
            (None, _) => Err(Error::Broken {
                seq: 0,
                what: "is missing",
            }),
            (Some(_), Some(head)) if !met => Err(Error::LacksHead { head }),
            (Some(history), _) => Ok(history),
        }
    }

    fn of(run: RunId) -> Self {
        History {
            state: State::new(),
            chain: Chain::start(run),
            at_ms: 0,
            steps: Vec::new(),
            plans: Vec::new(),
        }
    }

    fn take(&mut self, line: &Line<'_>, digest: Digest, seq: u64) -> Result<(), Error> {
        let broken = |what| Error::Broken { seq, what };
        if line.run != self.chain.run().as_str() {
            return Err(broken("belongs to another run"));
        }
        let prev = self.chain.head().map(|h| h.to_hex());
        if line.seq != seq || line.prev != prev.as_deref() {
            return Err(broken("does not follow the record before it"));
        }
        let data = line.data.as_bytes();
        let event = Event::read(line.event, data).map_err(|error| {
            // Of another version nothing else can be said.
            match other_schema(line.event, data) {
                Some(found) => Error::from(Meaning::Schema { found }),
                None => error.into(),
            }
        })?;
        self.state.apply(&event, digest, line.active_ms)?;
        if matches!(event, Event::PlanStarted(_)) {
            self.plans.push(self.state.used().clone());
        }
        self.steps.extend(self.state.take_closed());
        let run = self.chain.run().clone();
        self.chain = Chain::resume(run, seq, digest, line.active_ms);
        self.at_ms = line.at;
        Ok(())
    }
}
