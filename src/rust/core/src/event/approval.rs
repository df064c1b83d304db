//! Events of people: requests, decisions, standing grants.

use crate::digest::Digest;
use crate::policy::SideEffects;
use serde::{Deserialize, Serialize};

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
