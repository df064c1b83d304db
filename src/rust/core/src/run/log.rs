//! The run's own end of the journal: records events, keeps content, and takes
//! people's decisions. It needs no tools, so that a person can decide anywhere.

use super::effect::{Clock, Output, Verdict};
use super::setup::Error;
use super::state::State;
use super::text;
use crate::canon;
use crate::digest::Digest;
use crate::event::{key_commitment, Approved, Edited, Event, Expired, Rejected};
use crate::journal::Chain;
use crate::schema::{guide, Schema};
use crate::tool::{mask, masked_digest, Arguments, Tool};
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// A run's state, the end of its chain, and its content key.
#[derive(Debug)]
pub struct Log {
    pub(super) state: State,
    pub(super) chain: Chain,
    pub(super) key: [u8; 32],
    pub(super) out: Output,
    secrets: BTreeMap<Digest, Value>,
}

/// Who decided, and when by their clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By {
    /// The person.
    pub approver: String,
    /// Milliseconds since 1970.
    pub decided_ms: u64,
}

impl Log {
    /// The log of a run without records.
    pub fn start(chain: Chain, key: [u8; 32]) -> Self {
        Log {
            state: State::new(),
            chain,
            key,
            out: Output::default(),
            secrets: BTreeMap::new(),
        }
    }

    /// The log of a run whose journal was folded into `state`.
    ///
    /// # Errors
    /// [`Error::WrongKey`], when the run committed to another key.
    pub fn open(state: State, chain: Chain, key: [u8; 32]) -> Result<Self, Error> {
        let committed = state.charter().map(|c| c.content_key);
        if committed != Some(key_commitment(&key)) {
            return Err(Error::WrongKey);
        }
        Ok(Log {
            state,
            ..Log::start(chain, key)
        })
    }

    /// The state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The end of the chain.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// What must be kept, once.
    pub fn take_output(&mut self) -> Output {
        std::mem::take(&mut self.out)
    }

    /// Records a person's decision. A request that has expired is recorded as such,
    /// and the decision is not taken. Arguments of an edit are checked against
    /// `schema`, and given back as they are kept.
    ///
    /// # Errors
    /// No such request, an expired one, or arguments that break the schema.
    pub fn decide(
        &mut self,
        request: Digest,
        verdict: Verdict,
        by: By,
        schema: Option<&Schema>,
        clock: Clock,
    ) -> Result<Option<Value>, Error> {
        let step = self.state.step().ok_or(Error::NoSuchRequest { request })?;
        let (_, open) = step
            .request(&request)
            .ok_or(Error::NoSuchRequest { request })?;
        if open.data.expires_ms.is_some_and(|end| by.decided_ms > end) {
            self.expire(request, clock)?;
            return Err(Error::Expired { request });
        }
        let By {
            approver,
            decided_ms,
        } = by;
        match verdict {
            Verdict::Approve => self.record(
                Approved {
                    approver,
                    decided_ms,
                    request,
                },
                clock,
            ),
            Verdict::Reject(reason) => {
                let text = self.keep_text(&text::rejected(reason.as_deref()));
                let rejected = Rejected {
                    approver,
                    decided_ms,
                    request,
                    text,
                };
                self.record(rejected, clock)
            }
            Verdict::Edit(arguments) => {
                let value = match schema {
                    Some(schema) => self.edit(arguments, schema)?,
                    None => arguments,
                };
                let edited = Edited {
                    approver,
                    arguments: self.keep(&value),
                    decided_ms,
                    request,
                };
                self.record(edited, clock)?;
                return Ok(Some(value));
            }
        }
        .map(|_| None)
    }

    fn edit(&mut self, mut arguments: Value, schema: &Schema) -> Result<Value, Error> {
        if arguments.as_array().is_some_and(Vec::is_empty) {
            arguments = json!({});
        }
        guide(&mut arguments, Some(schema.as_value()), schema.as_value());
        match schema.violations(&arguments) {
            Some(broken) => Err(Error::InvalidEdit {
                what: broken.to_string(),
            }),
            None => Ok(self.redact(&arguments, schema)),
        }
    }

    /// Records that a request ran out of time.
    ///
    /// # Errors
    /// As the fold.
    pub fn expire(&mut self, request: Digest, clock: Clock) -> Result<(), Error> {
        let text = self.keep_text(&text::expired());
        self.record(Expired { request, text }, clock).map(|_| ())
    }

    /// Seals and applies one event; gives the digest of its record. An event that
    /// cannot come here leaves the chain as it was.
    pub(super) fn record(
        &mut self,
        event: impl Into<Event>,
        clock: Clock,
    ) -> Result<Digest, Error> {
        let event = event.into();
        let before = self.chain.clone();
        let record = self.chain.append(&event, clock.at_ms, clock.active_ms)?;
        let digest = record.digest();
        if let Err(meaning) = self.state.apply(&event, digest, record.active_ms()) {
            self.chain = before;
            return Err(meaning.into());
        }
        self.out.records.push(record);
        Ok(digest)
    }

    /// Keeps a value; gives its address.
    pub(super) fn keep(&mut self, value: &Value) -> Digest {
        let bytes = canon::to_vec(value);
        let address = Digest::keyed(&self.key, &bytes);
        self.out.content.push((address, bytes));
        address
    }

    pub(super) fn keep_text(&mut self, text: &str) -> Digest {
        self.keep(&Value::from(text))
    }

    /// The arguments as they may be kept; their literal secrets are remembered for
    /// this drive.
    pub(super) fn remember(
        &mut self,
        arguments: &Arguments,
        tool: &Tool,
        references: &BTreeMap<String, String>,
    ) -> Value {
        let mut hidden = false;
        for name in tool.schema().secrets() {
            if let Some(secret) = arguments.value().get(name) {
                hidden = true;
                if !references.contains_key(name) {
                    self.know_secret(secret.clone());
                }
            }
        }
        if hidden {
            canon::parse(arguments.recorded()).unwrap_or(Value::Null)
        } else {
            arguments.value().clone()
        }
    }

    /// Puts an HMAC where a secret stands, and remembers the secret for this drive.
    fn redact(&mut self, arguments: &Value, schema: &Schema) -> Value {
        let mut kept = arguments.clone();
        if let Some(map) = kept.as_object_mut() {
            for name in schema.secrets() {
                if let Some(value) = map.get_mut(name) {
                    if !is_kept_secret(value) {
                        let hidden = mask(value, &self.key);
                        self.know_secret(std::mem::replace(value, hidden));
                    }
                }
            }
        }
        kept
    }

    /// Remembers a secret for this drive.
    pub(super) fn know_secret(&mut self, value: Value) -> Digest {
        let address = Digest::keyed(&self.key, &canon::to_vec(&value));
        self.secrets.insert(address, value);
        address
    }

    /// The arguments with their literal secrets; nothing when one is not known. Only
    /// where the schema marks a secret: elsewhere a digest is what somebody typed.
    pub(super) fn reveal(&self, arguments: &Value, schema: Option<&Schema>) -> Option<Value> {
        let mut live = arguments.clone();
        let map = live.as_object_mut()?;
        for name in schema.into_iter().flat_map(Schema::secrets) {
            if let Some(value) = map.get_mut(name) {
                if let Some(address) = masked_digest(value) {
                    *value = self.secrets.get(&address)?.clone();
                }
            }
        }
        Some(live)
    }
}

/// The environment variable that stands for a secret.
pub fn secret_reference(value: &Value) -> Option<&str> {
    member(value, "secret_env")
}

fn member<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    let map = value.as_object().filter(|m| m.len() == 1)?;
    map.get(name)?.as_str()
}

fn is_kept_secret(value: &Value) -> bool {
    masked_digest(value).is_some() || secret_reference(value).is_some()
}
