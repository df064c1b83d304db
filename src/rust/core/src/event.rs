//! The events of a run: what its journal records, with the exact `data` of each.
//!
//! `data` is a JSON object whose members are the fields of the struct of that
//! event, all present, an absent value `null`, every number an integer. Members
//! are declared in canonical order, so that writing is canonical. Values that
//! somebody could want to keep to themselves (arguments, results, answers, texts)
//! stand in it as addresses: HMAC-SHA-256 of their canonical JSON under the key of
//! the run ([`address`]), in lowercase hex. Steps and attempts count from 1,
//! actions within a step from 0.

use crate::canon;
use crate::digest::Digest;
use crate::error::{Fault, Kind};
use crate::limits::{Limit, Limits};
use crate::outcome::Outcome;
use crate::policy::{Policy, SideEffects, ToolFacts};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
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

/// The first event: what the run may do and with what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunStarted {
    /// SHA-256 of the run's content key ([`key_commitment`]).
    pub content_key: Digest,
    /// Address of the goal.
    pub goal: Digest,
    /// The guardrails, in the order in which they are asked; the member is there only
    /// where there are some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guardrails: Vec<GuardrailFacts>,
    /// The limits.
    pub limits: Limits,
    /// 32 random bytes, so that no two runs begin with the same record.
    pub nonce: Digest,
    /// The policy.
    pub policy: Policy,
    /// [`SCHEMA`].
    pub schema: String,
    /// The tools, sorted by name.
    pub tools: Vec<ToolFacts>,
}

/// The planner is about to be asked; a step is charged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanStarted {
    /// The step.
    pub step: u64,
}

/// What the planner decided, and what deciding used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decided {
    /// What it wants done, in order; empty for `finish`.
    pub actions: Vec<Asked>,
    /// Address of the answer; null for `act`.
    pub answer: Option<Digest>,
    /// Which of the two.
    pub decision: Decision,
    /// Address of what the planner wants to be told again of this decision; the
    /// member is there only where there is such a note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Digest>,
    /// The step.
    pub step: u64,
    /// What the planner used; charged here.
    pub usage: Usage,
}

/// The two decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Call tools.
    Act,
    /// Give the answer.
    Finish,
}

/// One action as the planner asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Address of the arguments: of the object, or of the text where it is not one.
    pub arguments: Digest,
    /// The name it gave, cut to 256 bytes.
    pub tool: String,
}

/// What a plan used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Cost in 1e-9 units.
    pub cost_nano: u64,
    /// Tokens.
    pub tokens: u64,
}

/// An action was refused before it could start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Denied {
    /// The action.
    pub action: u64,
    /// Which limit, for `limit_reached`.
    pub limit: Option<Limit>,
    /// Why: never one of a call that started.
    pub outcome: Outcome,
    /// The step.
    pub step: u64,
    /// Address of the text the planner is shown.
    pub text: Digest,
}

/// What a journal says of a guardrail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardrailFacts {
    /// Digest of its check: its code and what that captures.
    pub digest: Digest,
    /// Its name.
    pub name: String,
    /// Its verdict where the check says no; `block` where the check itself fails.
    pub on_fail: GuardrailVerdict,
    /// Where it looks; sorted.
    pub stages: Vec<Stage>,
}

/// A guardrail gave its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guardrail {
    /// The action; null where it judged the goal or the answer.
    pub action: Option<u64>,
    /// The guardrail's name.
    pub name: String,
    /// Where it looked.
    pub stage: Stage,
    /// The step; 0 before the first.
    pub step: u64,
    /// Address of what it said; null when it said nothing.
    pub text: Option<Digest>,
    /// What it decided.
    pub verdict: GuardrailVerdict,
}

/// Where a guardrail looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The goal.
    Input,
    /// The answer.
    Output,
    /// A call: its arguments, then its result.
    Tool,
}

/// What a guardrail decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardrailVerdict {
    /// Nothing may happen.
    Block,
    /// Noted, nothing more.
    Flag,
    /// Fine.
    Pass,
    /// Allowed, with a warning.
    Warn,
}

/// A standing grant answered instead of a person; one use of it is charged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantUsed {
    /// The action.
    pub action: u64,
    /// Which one: its place in the policy, from 0.
    pub grant: u64,
    /// The step.
    pub step: u64,
}

/// A person is asked. The digest of this event's record names the request, and so
/// covers the run, all that is below, and the journal's head before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRequested {
    /// The action.
    pub action: u64,
    /// Address of the arguments that would run.
    pub arguments: Digest,
    /// When the request ends, in milliseconds since 1970; null: never.
    pub expires_ms: Option<u64>,
    /// Digest of the policy's canonical JSON.
    pub policy: Digest,
    /// Address of the tool's own question; null: none.
    pub prompt: Option<Digest>,
    /// Why somebody is asked.
    pub reason: AskReason,
    /// Scopes the tool needs.
    pub scopes: Vec<String>,
    /// Side effects of the tool.
    pub side_effects: SideEffects,
    /// Spec hash of the tool.
    pub spec_hash: Digest,
    /// The step.
    pub step: u64,
    /// The tool.
    pub tool: String,
}

/// Why a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskReason {
    /// The policy asks for side effects of this kind.
    Policy,
    /// The tool always asks.
    Tool,
    /// An equal call of a tool that is not idempotent has an unknown effect.
    UnknownEffect,
}

impl AskReason {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            AskReason::Policy => "policy",
            AskReason::Tool => "tool",
            AskReason::UnknownEffect => "unknown_effect",
        }
    }
}

/// A person said yes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approved {
    /// Who.
    pub approver: String,
    /// When, by the deciding machine's wall clock, in milliseconds since 1970.
    pub decided_ms: u64,
    /// Digest of the request's record.
    pub request: Digest,
}

/// A person said no: the action's outcome is `approval_denied`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rejected {
    /// Who.
    pub approver: String,
    /// When, by the deciding machine's wall clock, in milliseconds since 1970.
    pub decided_ms: u64,
    /// Digest of the request's record.
    pub request: Digest,
    /// Address of the text the planner is shown.
    pub text: Digest,
}

/// A person said yes to other arguments, which are theirs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edited {
    /// Who.
    pub approver: String,
    /// Address of the arguments that shall run.
    pub arguments: Digest,
    /// When, by the deciding machine's wall clock, in milliseconds since 1970.
    pub decided_ms: u64,
    /// Digest of the request's record.
    pub request: Digest,
}

/// A request ran out of time: the action's outcome is `approval_expired`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expired {
    /// Digest of the request's record.
    pub request: Digest,
    /// Address of the text the planner is shown.
    pub text: Digest,
}

/// A call is about to start; it and its cost are charged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallStarted {
    /// The action.
    pub action: u64,
    /// Address of the arguments that run.
    pub arguments: Digest,
    /// 1, and one more after each crash; at most 3.
    pub attempt: u64,
    /// The cost charged, in 1e-9 units.
    pub cost_nano: u64,
    /// Digest of the request whose approval is used up; null: none was needed.
    pub request: Option<Digest>,
    /// Spec hash of the tool that runs.
    pub spec_hash: Digest,
    /// The step.
    pub step: u64,
    /// The time limit in milliseconds; null: none.
    pub timeout_ms: Option<u64>,
    /// The tool.
    pub tool: String,
}

/// A call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallFinished {
    /// The action.
    pub action: u64,
    /// The attempt that ended.
    pub attempt: u64,
    /// Bytes of the text a model is shown.
    pub bytes: u64,
    /// How long it ran, in microseconds.
    pub duration_us: u64,
    /// Address of what else is known: `error_class`, `warnings`, `messages`, and the
    /// hashes of a result that was cut; null: nothing.
    pub notes: Option<Digest>,
    /// `executed`, `error`, `timed_out`, or `guardrail_blocked` where the result is withheld.
    pub outcome: Outcome,
    /// Address of the result as the planner sees it; null where there is none.
    pub result: Option<Digest>,
    /// The step.
    pub step: u64,
    /// Address of the text shown where it is not the result: an error, a refusal; else null.
    pub text: Option<Digest>,
    /// Whether the result was cut to the tool's `max_bytes`.
    pub truncated: bool,
}

/// A call that a new owner had given up on (`recovered`) did end; known too late to
/// count. Its members mean what they mean in [`CallFinished`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LateResult {
    /// The action.
    pub action: u64,
    /// The attempt that ended.
    pub attempt: u64,
    /// Address of what else is known; null: nothing.
    pub notes: Option<Digest>,
    /// How it ended.
    pub outcome: Outcome,
    /// Address of the result; null where there is none.
    pub result: Option<Digest>,
    /// The step.
    pub step: u64,
    /// Address of the text that would have been shown where it is not the result; else null.
    pub text: Option<Digest>,
}

impl From<&CallFinished> for LateResult {
    fn from(end: &CallFinished) -> Self {
        LateResult {
            action: end.action,
            attempt: end.attempt,
            notes: end.notes,
            outcome: end.outcome,
            result: end.result,
            step: end.step,
            text: end.text,
        }
    }
}

/// The run waits for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paused {
    /// Digests of the open requests, in the order of their actions.
    pub pending: Vec<Digest>,
}

/// A new owner drives the run. What is null is as it was declared last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resumed {
    /// The guardrails from here on; the member is there only where they changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guardrails: Option<Vec<GuardrailFacts>>,
    /// The limits from here on.
    pub limits: Option<Limits>,
    /// The policy from here on.
    pub policy: Option<Policy>,
    /// The tools from here on, sorted by name.
    pub tools: Option<Vec<ToolFacts>>,
}

/// The last owner vanished while this was under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recovered {
    /// The action whose call was under way; null: the planner was being asked.
    pub action: Option<u64>,
    /// The attempt under way; 0 for a plan.
    pub attempt: u64,
    /// `interrupted` where the call is not repeated; null where it starts again.
    pub outcome: Option<Outcome>,
    /// The step.
    pub step: u64,
    /// Address of the text the planner is shown; null where the call starts again.
    pub text: Option<Digest>,
}

/// `done` did not accept the answer of this step; the run goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerRejected {
    /// The step.
    pub step: u64,
}

/// The run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finished {
    /// Address of the answer, of a completed run; else null.
    pub answer: Option<Digest>,
    /// What was counted, to be compared with what is here.
    pub counts: Counts,
    /// Address of the error's text, of a failed run; else null.
    pub error: Option<Digest>,
    /// `completed`, `stopped` or `failed`.
    pub status: Status,
    /// Why it stopped or failed; null of a completed run.
    pub stop_reason: Option<StopReason>,
}

/// Totals of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Actions asked for.
    pub actions: u64,
    /// Calls that ended.
    pub calls_finished: u64,
    /// Calls that started, every attempt.
    pub calls_started: u64,
    /// Cost in 1e-9 units.
    pub cost_nano: u64,
    /// Actions refused before they could start.
    pub denied: u64,
    /// Requests for approval.
    pub requests: u64,
    /// Plans.
    pub steps: u64,
    /// Tokens.
    pub tokens: u64,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It waits for people.
    AwaitingApproval,
    /// It gave an answer that was accepted.
    Completed,
    /// Something that is not a limit ended it.
    Failed,
    /// It is, or could be, driven on.
    Running,
    /// A limit ended it.
    Stopped,
}

impl Status {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Status::AwaitingApproval => "awaiting_approval",
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Running => "running",
            Status::Stopped => "stopped",
        }
    }
}

/// Why a run stopped or failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The cost limit.
    Cost,
    /// `done` raised an error or answered something other than yes or no.
    DoneFailed,
    /// A guardrail refused the goal or the answer.
    GuardrailBlocked,
    /// The planner returned something that is no decision.
    InvalidDecision,
    /// The limit of one tool.
    PerTool,
    /// The planner raised an error.
    PlannerFailed,
    /// The limit of working time.
    Seconds,
    /// The limit of steps.
    Steps,
    /// The limit of tokens.
    Tokens,
    /// The limit of calls.
    ToolCalls,
}

impl StopReason {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            StopReason::Cost => "cost",
            StopReason::DoneFailed => "done_failed",
            StopReason::GuardrailBlocked => "guardrail_blocked",
            StopReason::InvalidDecision => "invalid_decision",
            StopReason::PerTool => "per_tool",
            StopReason::PlannerFailed => "planner_failed",
            StopReason::Seconds => "seconds",
            StopReason::Steps => "steps",
            StopReason::Tokens => "tokens",
            StopReason::ToolCalls => "tool_calls",
        }
    }

    /// The status a run ends in for this reason.
    pub fn status(self) -> Status {
        match self {
            StopReason::Cost
            | StopReason::PerTool
            | StopReason::Seconds
            | StopReason::Steps
            | StopReason::Tokens
            | StopReason::ToolCalls => Status::Stopped,
            StopReason::DoneFailed
            | StopReason::GuardrailBlocked
            | StopReason::InvalidDecision
            | StopReason::PlannerFailed => Status::Failed,
        }
    }
}

impl From<Limit> for StopReason {
    fn from(limit: Limit) -> Self {
        match limit {
            Limit::Cost => StopReason::Cost,
            Limit::PerTool => StopReason::PerTool,
            Limit::Seconds => StopReason::Seconds,
            Limit::Steps => StopReason::Steps,
            Limit::Tokens => StopReason::Tokens,
            Limit::ToolCalls => StopReason::ToolCalls,
        }
    }
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
    use crate::policy::Grant;
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
        let page = include_str!("../../../../inst/spec/audit-v1.md");
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
