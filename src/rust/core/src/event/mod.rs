//! The events of a run: what its journal records, with the exact `data` of each.
//!
//! `data` is a JSON object whose members are the fields of the struct of that
//! event, all present, an absent value `null`, every number an integer. Members
//! are declared in canonical order, so that writing is canonical. Values that
//! somebody could want to keep to themselves (arguments, results, answers, texts)
//! stand in it as addresses: HMAC-SHA-256 of their canonical JSON under the key of
//! the run ([`address`]), in lowercase hex. Steps and attempts count from 1,
//! actions within a step from 0.

mod action;
mod approval;
mod plan;
mod run;

pub use action::{
    CallFinished, CallStarted, Denied, Guardrail, GuardrailVerdict, LateResult, Stage,
};
pub use approval::{ApprovalRequested, Approved, AskReason, Edited, Expired, GrantUsed, Rejected};
pub use plan::{AnswerRejected, Asked, Decided, Decision, PlanStarted, Usage};
pub use run::{
    Counts, Finished, GuardrailFacts, Paused, Recovered, Resumed, RunStarted, Status, StopReason,
};

use crate::canon;
use crate::digest::Digest;
use crate::error::{Fault, Kind};
use serde::de::DeserializeOwned;
use serde::Serialize;
use serde_json::{Map, Value};

/// The name and version of the journal's vocabulary, in `run_started`.
pub const SCHEMA: &str = "warrant_audit/v1";

/// Where a value of a run is found: HMAC-SHA-256 of its canonical JSON under the
/// key of the run.
pub fn address(key: &[u8; 32], value: &Value) -> Digest {
    Digest::keyed(key, &canon::to_vec(value))
}

/// What `run_started` says of a key without giving it away: its SHA-256.
pub fn key_commitment(key: &[u8; 32]) -> Digest {
    Digest::of_bytes(key)
}

macro_rules! events {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// One event of a run.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Event {
            $($(#[$doc])* $variant($variant),)+
        }

        impl Event {
            /// Every event name.
            pub const NAMES: &'static [&'static str] = &[$($name,)+];

            /// The word in the record's member `event`.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Event::$variant(_) => $name,)+
                }
            }

            /// The canonical JSON of the record's member `data`.
            pub fn data(&self) -> Vec<u8> {
                match self {
                    $(Event::$variant(data) => write(data),)+
                }
            }

            /// Reads an event from a record's members `event` and `data` (JSON).
            ///
            /// # Errors
            /// [`Error`], when the name is unknown or the data are not those of
            /// this event: a member too many, missing, or of another type.
            pub fn read(name: &str, data: &[u8]) -> Result<Event, Error> {
                match name {
                    $($name => read(name, data).map(Event::$variant),)+
                    _ => Err(Error::UnknownEvent { event: name.to_owned() }),
                }
            }
        }

        $(impl From<$variant> for Event {
            fn from(data: $variant) -> Event {
                Event::$variant(data)
            }
        })+
    };
}

events! {
    /// The planner's answer was not accepted; the run goes on.
    AnswerRejected = "answer_rejected",
    /// A person asked for an approval.
    ApprovalRequested = "approval_requested",
    /// A person said yes.
    Approved = "approved",
    /// A call ended.
    CallFinished = "call_finished",
    /// A call is about to start; it is charged.
    CallStarted = "call_started",
    /// The planner decided.
    Decided = "decided",
    /// An action was refused before it could start.
    Denied = "denied",
    /// A person said yes to other arguments.
    Edited = "edited",
    /// A request ran out of time.
    Expired = "expired",
    /// The run ended; nothing follows.
    Finished = "finished",
    /// A standing grant answered instead of a person.
    GrantUsed = "grant_used",
    /// A guardrail gave its verdict.
    Guardrail = "guardrail",
    /// A call that another owner had given up on did end.
    LateResult = "late_result",
    /// The run waits for people.
    Paused = "paused",
    /// The planner is about to be asked.
    PlanStarted = "plan_started",
    /// Something was under way when the last owner vanished.
    Recovered = "recovered",
    /// A person said no.
    Rejected = "rejected",
    /// A new owner drives the run.
    Resumed = "resumed",
    /// The first event of a run.
    RunStarted = "run_started",
}

fn write<T: Serialize>(data: &T) -> Vec<u8> {
    // Fields in canonical order, integers and ASCII keys: what serde_json writes is
    // canonical (a test compares). Writing such a struct to memory cannot fail.
    serde_json::to_vec(data).unwrap_or_default()
}

fn read<T: DeserializeOwned>(name: &str, data: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(data).map_err(|e| Error::Data {
        event: name.to_owned(),
        what: e.to_string(),
    })
}

/// The schema that the data of a `run_started` name, where it is not [`SCHEMA`].
pub(crate) fn other_schema(name: &str, data: &[u8]) -> Option<String> {
    if name != "run_started" {
        return None;
    }
    let data: Value = serde_json::from_slice(data).ok()?;
    let found = data.get("schema").and_then(Value::as_str)?;
    (found != SCHEMA).then(|| found.to_owned())
}

/// What can be wrong with an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The data are not those of this event.
    #[error("the data of `{event}` are not as they must be: {what}")]
    Data {
        /// The event.
        event: String,
        /// What is wrong.
        what: String,
    },
    /// No event has this name.
    #[error("there is no event `{event}`")]
    UnknownEvent {
        /// The name.
        event: String,
    },
}

impl Fault for Error {
    fn code(&self) -> &'static str {
        match self {
            Error::Data { .. } => "event_data",
            Error::UnknownEvent { .. } => "unknown_event",
        }
    }
    fn kind(&self) -> Kind {
        Kind::Audit
    }
    fn facts(&self) -> Map<String, Value> {
        let (Error::Data { event, .. } | Error::UnknownEvent { event }) = self;
        Map::from_iter([("event".to_owned(), Value::from(event.as_str()))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{Limit, Limits};
    use crate::outcome::Outcome;
    use crate::policy::{Grant, Policy, SideEffects, ToolFacts};
    use std::collections::BTreeMap;

    fn d(text: &str) -> Digest {
        Digest::of_bytes(text.as_bytes())
    }

    fn facts(name: &str) -> ToolFacts {
        ToolFacts {
            calls_before: 0,
            cost_nano: Some(250_000_000),
            idempotent: true,
            max_calls: None,
            name: name.to_owned(),
            requires_approval: false,
            schema: d("schema"),
            scopes: vec!["docs:read".to_owned()],
            side_effects: SideEffects::Read,
            spec_hash: d(name),
            timeout_ms: Some(2000),
            ttl_ms: None,
        }
    }

    fn policy() -> Policy {
        Policy {
            allow_effects: vec![SideEffects::None, SideEffects::Read],
            approve_effects: vec![SideEffects::External, SideEffects::Write],
            granted_scopes: vec!["docs:read".to_owned()],
            grants: vec![Grant {
                arguments: d("rule"),
                count: Some(2),
                run: None,
                tool: "lookup".to_owned(),
                until_ms: Some(1_800_000_000_000),
            }],
        }
    }

    /// One of each.
    fn one_of_each() -> Vec<Event> {
        vec![
            RunStarted {
                content_key: key_commitment(&[7; 32]),
                goal: d("goal"),
                guardrails: vec![GuardrailFacts {
                    digest: d("check"),
                    name: "g".to_owned(),
                    on_fail: GuardrailVerdict::Warn,
                    stages: vec![Stage::Input, Stage::Tool],
                }],
                limits: Limits {
                    steps: Some(4),
                    cost_nano: Some(u64::MAX),
                    per_tool: BTreeMap::from([("lookup".to_owned(), 2)]),
                    ..Limits::default()
                },
                nonce: d("nonce"),
                policy: policy(),
                schema: SCHEMA.to_owned(),
                tools: vec![facts("lookup")],
            }
            .into(),
            PlanStarted { step: 1 }.into(),
            Decided {
                actions: vec![Asked {
                    arguments: d("a"),
                    tool: "lo\"ok\u{1f600}\u{1}\u{7f}up".to_owned(),
                }],
                answer: None,
                decision: Decision::Act,
                note: Some(d("note")),
                step: 1,
                usage: Usage {
                    cost_nano: 1,
                    tokens: 2,
                },
            }
            .into(),
            Denied {
                action: 0,
                limit: Some(Limit::PerTool),
                outcome: Outcome::LimitReached,
                step: 1,
                text: d("text"),
            }
            .into(),
            Guardrail {
                action: Some(0),
                name: "g".to_owned(),
                stage: Stage::Tool,
                step: 1,
                text: None,
                verdict: GuardrailVerdict::Pass,
            }
            .into(),
            GrantUsed {
                action: 0,
                grant: 0,
                step: 1,
            }
            .into(),
            ApprovalRequested {
                action: 0,
                arguments: d("a"),
                expires_ms: None,
                policy: d("p"),
                prompt: None,
                reason: AskReason::UnknownEffect,
                scopes: vec![],
                side_effects: SideEffects::Write,
                spec_hash: d("s"),
                step: 1,
                tool: "write".to_owned(),
            }
            .into(),
            Approved {
                approver: "reviewer 1".to_owned(),
                decided_ms: 1,
                request: d("r"),
            }
            .into(),
            Rejected {
                approver: "reviewer 1".to_owned(),
                decided_ms: 1,
                request: d("r"),
                text: d("no"),
            }
            .into(),
            Edited {
                approver: "reviewer 1".to_owned(),
                arguments: d("b"),
                decided_ms: 1,
                request: d("r"),
            }
            .into(),
            Expired {
                request: d("r"),
                text: d("t"),
            }
            .into(),
            CallStarted {
                action: 0,
                arguments: d("a"),
                attempt: 1,
                cost_nano: 0,
                request: None,
                spec_hash: d("s"),
                step: 1,
                timeout_ms: None,
                tool: "lookup".to_owned(),
            }
            .into(),
            CallFinished {
                action: 0,
                attempt: 1,
                bytes: 4,
                duration_us: 10,
                notes: None,
                outcome: Outcome::Executed,
                result: Some(d("v")),
                step: 1,
                text: None,
                truncated: false,
            }
            .into(),
            LateResult {
                action: 0,
                attempt: 1,
                notes: None,
                outcome: Outcome::Error,
                result: None,
                step: 1,
                text: Some(d("text")),
            }
            .into(),
            Paused {
                pending: vec![d("r")],
            }
            .into(),
            Resumed {
                guardrails: Some(Vec::new()),
                limits: None,
                policy: Some(policy()),
                tools: Some(vec![facts("lookup")]),
            }
            .into(),
            Recovered {
                action: Some(0),
                attempt: 1,
                outcome: Some(Outcome::Interrupted),
                step: 1,
                text: Some(d("t")),
            }
            .into(),
            AnswerRejected { step: 1 }.into(),
            Finished {
                answer: Some(d("a")),
                counts: Counts::default(),
                error: None,
                status: Status::Completed,
                stop_reason: None,
            }
            .into(),
        ]
    }

    #[test]
    fn every_event_writes_canonical_data_and_reads_back() {
        let events = one_of_each();
        assert_eq!(events.len(), Event::NAMES.len());
        for event in events {
            let data = event.data();
            let value = canon::parse(&data).expect("JSON");
            assert_eq!(canon::to_vec(&value), data, "{}", event.name());
            assert_eq!(Event::read(event.name(), &data), Ok(event));
        }
    }

    /// Members of `data` by event, as the page on the format lists them.
    fn listed() -> BTreeMap<String, Vec<String>> {
        let page = include_str!("../../../../../inst/spec/audit-v1.md");
        let words = |cell: &str| -> Vec<String> {
            let parts = cell.split('`').skip(1).step_by(2);
            parts.map(str::to_owned).collect()
        };
        let rows = page.lines().map(|line| line.split('|').collect::<Vec<_>>());
        rows.filter(|cells| cells.len() == 5)
            .filter_map(|cells| Some((words(cells[1]).pop()?, words(cells[2]))))
            .collect()
    }

    #[test]
    fn the_page_on_the_format_lists_the_members_of_every_event() {
        let listed = listed();
        for event in one_of_each() {
            let data = canon::parse(&event.data()).expect("JSON");
            let members: Vec<&String> = data.as_object().expect("an object").keys().collect();
            let found = listed.get(event.name()).expect("it is listed");
            assert_eq!(
                found.iter().collect::<Vec<_>>(),
                members,
                "{}",
                event.name()
            );
        }
    }

    #[test]
    fn a_member_too_many_missing_or_of_another_type_is_refused() {
        let read = |data: &str| Event::read("plan_started", data.as_bytes());
        assert!(read(r#"{"step":1}"#).is_ok());
        for bad in [
            r#"{"step":1,"x":2}"#,
            r#"{}"#,
            r#"{"step":1.0}"#,
            r#"{"step":-1}"#,
            r#"{"step":"1"}"#,
            r#"{"step":1,"step":1}"#,
            "[]",
            "",
        ] {
            let error = read(bad).expect_err(bad);
            assert_eq!(error.code(), "event_data");
        }
        assert!(Event::read("planned", b"{}").is_err());
    }

    #[test]
    fn words_are_those_of_the_serialised_form() {
        for status in [Status::AwaitingApproval, Status::Completed, Status::Stopped] {
            let json = serde_json::to_string(&status).expect("a word");
            assert_eq!(json, format!("\"{}\"", status.word()));
        }
        for reason in [StopReason::PerTool, StopReason::InvalidDecision] {
            let json = serde_json::to_string(&reason).expect("a word");
            assert_eq!(json, format!("\"{}\"", reason.word()));
        }
    }
}
