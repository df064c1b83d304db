//! What a planner wants done, as it is recorded: names cut, arguments checked, and
//! secrets replaced by their digests.

use super::effect::{Given, Proposal};
use super::machine::Machine;
use crate::canon;
use crate::event::Asked;
use crate::tool;
use serde_json::Value;
use std::collections::BTreeMap;

impl Machine {
    pub(super) fn propose(&mut self, proposals: Vec<Proposal>) -> Vec<Asked> {
        self.values.clear();
        self.refused.clear();
        self.admitted = vec![false; proposals.len()];
        self.checked.clear();
        self.blocked_by.clear();
        let mut asked = Vec::with_capacity(proposals.len());
        for proposal in proposals {
            let tool = clip_bytes(&proposal.tool, MAX_NAME);
            let (mut value, refused) = self.check(&tool, proposal.arguments);
            tool::show(&mut value, &proposal.shown);
            asked.push(Asked {
                arguments: self.log.keep(&value),
                tool,
            });
            self.values.push(value);
            self.refused.push(refused);
        }
        asked
    }

    /// The arguments as they may be kept, and why they are not valid.
    fn check(&mut self, tool: &str, given: Given) -> (Value, Option<String>) {
        let Some(known) = self.setup.tools.get(tool) else {
            return (unchecked(given), None);
        };
        let none = BTreeMap::new();
        let (checked, references) = match &given {
            Given::Text(text) => {
                let read = known.tool.read_arguments(text.as_bytes(), &self.log.key);
                (read, &none)
            }
            Given::Value(value) => {
                let value = value.clone();
                (
                    known.tool.take_with_references(value, &self.log.key, &none),
                    &none,
                )
            }
            Given::Referring(value, names) => {
                let value = value.clone();
                (
                    known.tool.take_with_references(value, &self.log.key, names),
                    names,
                )
            }
        };
        match checked {
            Ok(arguments) => (self.log.remember(&arguments, &known.tool, references), None),
            Err(refused) => {
                let readable = refused.recorded.and_then(|r| canon::parse(&r).ok());
                let value = readable.unwrap_or_else(|| unchecked(given));
                (value, Some(refused.text))
            }
        }
    }
}

/// The longest tool name in a journal, in bytes.
const MAX_NAME: usize = 256;

fn clip_bytes(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// Arguments that nothing checks, because there is no such tool or they cannot be read.
fn unchecked(given: Given) -> Value {
    match given {
        Given::Text(text) => canon::parse(text.as_bytes()).unwrap_or(Value::String(text)),
        Given::Value(value) => value,
        Given::Referring(value, names) => tool::by_reference(value, &names),
    }
}
