//! Which values a trail refers to: the addresses that its records state, so that
//! they can be held against the content of a store.

use super::format::{Line, FINISHED, MAX_LINE};
use crate::digest::Digest;
use crate::event::Event;
use crate::policy::{Policy, ToolFacts};
use std::collections::HashMap;

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

/// A value that must match a JSON Schema, both by address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The run.
    pub run: String,
    /// The record's number.
    pub seq: u64,
    /// The line, from 1.
    pub line: u64,
    /// Whose rule: `arguments` of the tool's, `grant` of a standing grant's.
    pub member: &'static str,
    /// Address of the value.
    pub value: Digest,
    /// Address of the schema.
    pub schema: Digest,
}

/// What a trail says that only values can show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claimings {
    /// The addresses that are stated.
    pub addresses: Vec<Claimed>,
    /// The rules that values must keep.
    pub rules: Vec<Rule>,
}

/// Collects the addresses and rules of a trail that is fed in blocks.
#[derive(Debug, Default)]
pub struct Claims {
    rest: Vec<u8>,
    lines: u64,
    found: Claimings,
    declared: HashMap<String, Declared>,
}

/// What a run has declared so far.
#[derive(Debug, Default)]
struct Declared {
    schemas: HashMap<String, Digest>,
    grants: Vec<Digest>,
    /// Which grant answered for an action of a step.
    granted: HashMap<(u64, u64), u64>,
}

impl Declared {
    /// Takes an event in; gives the rules that it is under.
    fn rules(&mut self, event: &Event) -> Vec<(&'static str, Digest, Digest)> {
        match event {
            Event::RunStarted(data) => self.take(Some(&data.policy), Some(&data.tools)),
            Event::Resumed(data) => self.take(data.policy.as_ref(), data.tools.as_deref()),
            Event::GrantUsed(data) => {
                self.granted.insert((data.step, data.action), data.grant);
            }
            Event::PlanStarted(_) => self.granted.clear(),
            Event::CallStarted(data) => {
                let own = self.schemas.get(&data.tool).copied();
                let grant = self.granted.get(&(data.step, data.action));
                let place = grant.and_then(|g| usize::try_from(*g).ok());
                let grant = place.and_then(|g| self.grants.get(g).copied());
                let own = own.map(|schema| ("arguments", data.arguments, schema));
                let grant = grant.map(|schema| ("grant", data.arguments, schema));
                return own.into_iter().chain(grant).collect();
            }
            _ => {}
        }
        Vec::new()
    }

    fn take(&mut self, policy: Option<&Policy>, tools: Option<&[ToolFacts]>) {
        if let Some(policy) = policy {
            self.grants = policy.grants.iter().map(|g| g.arguments).collect();
        }
        if let Some(tools) = tools {
            self.schemas = tools.iter().map(|t| (t.name.clone(), t.schema)).collect();
        }
    }
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
    pub fn finish(self) -> Claimings {
        self.found
    }

    fn line(&mut self, bytes: &[u8]) {
        let Some(line) = Line::read(bytes) else {
            return;
        };
        let Ok(event) = Event::read(line.event, line.data.as_bytes()) else {
            return;
        };
        if !self.declared.contains_key(line.run) {
            self.declared
                .insert(line.run.to_owned(), Declared::default());
        }
        if let Some(declared) = self.declared.get_mut(line.run) {
            for (member, value, schema) in declared.rules(&event) {
                self.found.rules.push(Rule {
                    run: line.run.to_owned(),
                    seq: line.seq,
                    line: self.lines,
                    member,
                    value,
                    schema,
                });
            }
        }
        if line.event == FINISHED {
            self.declared.remove(line.run);
        }
        for (member, address) in addresses(&event) {
            self.found.addresses.push(Claimed {
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
            add("note", data.note);
        }
        Event::Denied(data) => add("text", Some(data.text)),
        Event::Edited(data) => add("arguments", Some(data.arguments)),
        Event::Expired(data) => add("text", Some(data.text)),
        Event::Finished(data) => {
            add("answer", data.answer);
            add("error", data.error);
        }
        Event::Guardrail(data) => add("text", data.text),
        Event::LateResult(data) => {
            add("notes", data.notes);
            add("result", data.result);
            add("text", data.text);
        }
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
            let found = claims.finish().addresses;
            assert_eq!(found.len(), 1);
            assert_eq!((found[0].line, found[0].seq), (3, 1));
            assert_eq!((found[0].member, found[0].address), ("text", text));
        }
    }
}
