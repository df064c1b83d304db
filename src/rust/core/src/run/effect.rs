//! What crosses the machine's border: clock readings, decisions and results come
//! in; effects, records and content go out.

use crate::digest::Digest;
use crate::event::{GuardrailVerdict, StopReason};
use crate::journal::Record;
use crate::outcome::Outcome;
use crate::tool::Redactions;
use serde_json::Value;
use std::collections::BTreeMap;

/// A reading of both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Clock {
    /// Wall clock, milliseconds since 1970.
    pub at_ms: u64,
    /// Working time of the run in milliseconds: monotonic, without pauses.
    pub active_ms: u64,
}

/// What shall be done next.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Ask the approver about this request.
    Ask {
        /// The request.
        request: Digest,
    },
    /// Run a tool.
    Call(Call),
    /// Ask the guardrails.
    Check(Check),
    /// Nothing: the run ended.
    Ended,
    /// Ask `done` about the answer.
    Judge {
        /// The answer.
        answer: Value,
    },
    /// Nothing: the run waits for people.
    Paused,
    /// Ask the planner.
    Plan {
        /// The step.
        step: u64,
    },
}

/// What guardrails look at, before anything happens.
#[derive(Debug, Clone, PartialEq)]
pub enum Check {
    /// An action: its place, its tool, and arguments with secrets masked.
    Action {
        /// The action.
        action: u64,
        /// The arguments.
        arguments: Value,
        /// Tools whose calls started, or stand before this one in its step.
        called: Vec<String>,
        /// The tool.
        tool: String,
    },
    /// The answer.
    Answer(Value),
    /// The goal.
    Goal,
}

/// What a guardrail said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its name.
    pub name: String,
    /// Why, where it said so.
    pub text: Option<String>,
    /// What it decided.
    pub verdict: GuardrailVerdict,
}

/// A call that is recorded as started and must now be made, once.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The action.
    pub action: u64,
    /// The arguments, with literal secrets; a secret given by reference still is one.
    pub arguments: Value,
    /// The attempt.
    pub attempt: u64,
    /// Whether a second equal call changes nothing more; if not, the record of the
    /// start must be on disk before the call is made.
    pub idempotent: bool,
    /// The same for every attempt of this call and for no other call.
    pub key: String,
    /// The step.
    pub step: u64,
    /// Its time limit in milliseconds.
    pub timeout_ms: Option<u64>,
    /// The tool.
    pub tool: String,
}

/// A planner's decision.
#[derive(Debug, Clone, PartialEq)]
pub enum Decided {
    /// Call tools.
    Act(Vec<Proposal>),
    /// Give the answer.
    Finish(Value),
}

/// One action of a decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The tool's name as the planner gave it.
    pub tool: String,
    /// The arguments as it gave them.
    pub arguments: Given,
    /// What is shown in place of redacted ones.
    pub shown: Redactions,
}

/// Arguments as a planner gives them.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    /// JSON text.
    Text(String),
    /// A value of R.
    Value(Value),
    /// A value of R, and the secrets in it that were given by reference: the name
    /// of the argument and of the environment variable.
    Referring(Value, BTreeMap<String, String>),
}

/// A person's decision about a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Yes.
    Approve,
    /// Yes, with these arguments.
    Edit(Value),
    /// No, and why.
    Reject(Option<String>),
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// Bytes of the text a model is shown.
    pub bytes: u64,
    /// Microseconds it ran.
    pub duration_us: u64,
    /// The result itself, where `result` is only what is shown in its place: of this a
    /// keyed digest is kept.
    pub hidden: Option<Value>,
    /// `error_class`, `messages`, `warnings`, and hashes of what was cut.
    pub notes: Option<Value>,
    /// `executed`, `error`, `timed_out` or `tool_exhausted`.
    pub outcome: Outcome,
    /// The result as the planner sees it; there is one exactly when it executed.
    pub result: Option<Value>,
    /// The text shown, where it is not the result.
    pub text: Option<String>,
    /// Whether the result was cut.
    pub truncated: bool,
}

/// Why a run ends without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The reason.
    pub reason: StopReason,
    /// What happened.
    pub text: String,
}

/// What must be kept before the next effect is performed: content first, then the
/// records, in order.
#[derive(Debug, Default)]
pub struct Output {
    /// Values by address, canonical JSON.
    pub content: Vec<(Digest, Vec<u8>)>,
    /// Records.
    pub records: Vec<Record>,
}
