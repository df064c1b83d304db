//! Which values a trail refers to: the addresses that its records state, so that
//! they can be held against the content of a store.

use super::format::{Line, MAX_LINE};
use crate::digest::Digest;
use crate::event::Event;
use crate::policy::{Policy, ToolFacts};

/// One address that a record states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The run.
    pub run: String,
    /// The record's number.
    pub seq: u64,
    /// The line, from 1.
    pub line: u64,
    /// What the value is: the member that states its address; `content_key` is the
    /// commitment to the run's key.
    pub member: &'static str,
    /// The address.
    pub address: Digest,
}

/// Collects the addresses of a trail that is fed in blocks.
#[derive(Debug, Default)]
pub struct Claims {
    rest: Vec<u8>,
    lines: u64,
    found: Vec<Claimed>,
}

impl Claims {
    /// Nothing collected.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of the trail. What is not a record is passed over.
    pub fn feed(&mut self, block: &[u8]) {
        let mut from = 0;
        for end in memchr::memchr_iter(b'\n', block) {
            let mut whole = std::mem::take(&mut self.rest);
            whole.extend_from_slice(&block[from..end]);
            from = end + 1;
            self.lines += 1;
            self.line(&whole);
            whole.clear();
            self.rest = whole;
        }
        // A longer line is no record, whatever follows.
        if self.rest.len() <= MAX_LINE {
            self.rest.extend_from_slice(&block[from..]);
        }
    }

    /// What was collected, in the order of the lines.
    pub fn finish(self) -> Vec<Claimed> {
        self.found
    }

    fn line(&mut self, bytes: &[u8]) {
        let Some(line) = Line::read(bytes) else {
            return;
        };
        let Ok(event) = Event::read(line.event, line.data.as_bytes()) else {
            return;
        };
        for (member, address) in addresses(&event) {
            self.found.push(Claimed {
                run: line.run.to_owned(),
                seq: line.seq,
                line: self.lines,
                member,
                address,
            });
        }
    }
}

/// The addresses that an event states, with the member that states each.
pub fn addresses(event: &Event) -> Vec<(&'static str, Digest)> {
    let mut out = Vec::new();
    let mut add = |member, address: Option<Digest>| out.extend(address.map(|a| (member, a)));
    match event {
        Event::AnswerRejected(_)
        | Event::Approved(_)
        | Event::GrantUsed(_)
        | Event::Paused(_)
        | Event::PlanStarted(_) => {}
        Event::ApprovalRequested(data) => {
            add("arguments", Some(data.arguments));
            add("prompt", data.prompt);
        }
        Event::CallFinished(data) => {
            add("notes", data.notes);
            add("result", data.result);
            add("text", data.text);
        }
        Event::CallStarted(data) => add("arguments", Some(data.arguments)),
        Event::Decided(data) => {
            for asked in &data.actions {
                add("arguments", Some(asked.arguments));
            }
            add("answer", data.answer);
        }
        Event::Denied(data) => add("text", Some(data.text)),
        Event::Edited(data) => add("arguments", Some(data.arguments)),
        Event::Expired(data) => add("text", Some(data.text)),
        Event::Finished(data) => {
            add("answer", data.answer);
            add("error", data.error);
        }
        Event::Guardrail(data) => add("text", data.text),
        Event::LateResult(data) => add("result", data.result),
        Event::Recovered(data) => add("text", data.text),
        Event::Rejected(data) => add("text", Some(data.text)),
        Event::Resumed(data) => {
            declared(&mut add, data.policy.as_ref(), data.tools.as_deref());
        }
        Event::RunStarted(data) => {
            add("content_key", Some(data.content_key));
            add("goal", Some(data.goal));
            declared(&mut add, Some(&data.policy), Some(&data.tools));
        }
    }
    out
}

fn declared(
    add: &mut impl FnMut(&'static str, Option<Digest>),
    policy: Option<&Policy>,
    tools: Option<&[ToolFacts]>,
) {
    for grant in policy.map(|p| p.grants.as_slice()).unwrap_or_default() {
        add("grant", Some(grant.arguments));
    }
    for tool in tools.unwrap_or_default() {
        add("schema", Some(tool.schema));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Denied, PlanStarted};
    use crate::journal::{Chain, RunId};
    use crate::outcome::Outcome;

    #[test]
    fn addresses_are_collected_with_their_place_however_the_bytes_come() {
        let mut chain = Chain::start(RunId::new("r").expect("an id"));
        let text = Digest::of_bytes(b"text");
        let denied = Denied {
            action: 0,
            limit: None,
            outcome: Outcome::UnknownTool,
            step: 1,
            text,
        };
        let mut bytes = b"not a record\n".to_vec();
        for event in [PlanStarted { step: 1 }.into(), Event::from(denied)] {
            let record = chain.append(&event, 1, 1).expect("seals");
            bytes.extend_from_slice(record.line().as_bytes());
            bytes.push(b'\n');
        }
        for block in [1, 50, 4096] {
            let mut claims = Claims::new();
            bytes.chunks(block).for_each(|b| claims.feed(b));
            let found = claims.finish();
            assert_eq!(found.len(), 1);
            assert_eq!((found[0].line, found[0].seq), (3, 1));
            assert_eq!((found[0].member, found[0].address), ("text", text));
        }
    }
}
