//! What a run may do: side effects, scopes, approvals, standing grants.

use crate::digest::Digest;
use serde::{Deserialize, Serialize};

/// What a tool does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideEffects {
    /// It reaches people or systems that are not the user's.
    External,
    /// It only computes.
    None,
    /// It looks and changes nothing.
    Read,
    /// It changes something of the user's.
    Write,
}

impl SideEffects {
    /// The word in R, JSON and docs.
    pub fn word(self) -> &'static str {
        match self {
            SideEffects::External => "external",
            SideEffects::None => "none",
            SideEffects::Read => "read",
            SideEffects::Write => "write",
        }
    }

    /// The side effects of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::External, Self::None, Self::Read, Self::Write]
            .into_iter()
            .find(|s| s.word() == word)
    }
}

/// The policy of a run, as it stands in its journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Side effects that a tool may have at all; sorted, unique.
    pub allow_effects: Vec<SideEffects>,
    /// Side effects whose calls ask a person first; sorted, unique.
    pub approve_effects: Vec<SideEffects>,
    /// Scopes that a tool may need; sorted, unique.
    pub granted_scopes: Vec<String>,
    /// Standing grants, in the order they are tried.
    pub grants: Vec<Grant>,
}

/// A person's standing yes to calls of one tool, within bounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Address of the JSON Schema that the arguments must match.
    pub arguments: Digest,
    /// How many calls it covers in one run; null: any number.
    pub count: Option<u64>,
    /// The one run it holds for; null: any run.
    pub run: Option<String>,
    /// The exact name of the tool.
    pub tool: String,
    /// Until when, in milliseconds since 1970; null: for ever.
    pub until_ms: Option<u64>,
}

/// What the journal says of one tool, at the start of a run and at each resume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFacts {
    /// Calls the tool object had made before, outside this run.
    pub calls_before: u64,
    /// Cost of a call in 1e-9 units; null: not known.
    pub cost_nano: Option<u64>,
    /// Whether a second equal call changes nothing more.
    pub idempotent: bool,
    /// The tool's own limit over the life of the object; null: none.
    pub max_calls: Option<u64>,
    /// The name, unique in a run.
    pub name: String,
    /// Whether every call asks a person, whatever the policy says.
    pub requires_approval: bool,
    /// Address of the tool's JSON Schema.
    pub schema: Digest,
    /// Scopes it needs; sorted, unique.
    pub scopes: Vec<String>,
    /// Its side effects.
    pub side_effects: SideEffects,
    /// `hash_tool_spec()` of it.
    pub spec_hash: Digest,
    /// Time limit of a call in milliseconds; null: none of its own.
    pub timeout_ms: Option<u64>,
    /// How long a request for approval stays open, in milliseconds; null: for ever.
    pub ttl_ms: Option<u64>,
}

impl Policy {
    /// Digest of its canonical JSON.
    pub fn digest(&self) -> Digest {
        // Members are declared in canonical order, numbers are integers.
        Digest::of_bytes(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// Scopes the tool needs and the policy does not grant.
    pub fn missing_scopes<'a>(&self, facts: &'a ToolFacts) -> Vec<&'a str> {
        facts
            .scopes
            .iter()
            .filter(|s| self.granted_scopes.binary_search(s).is_err())
            .map(String::as_str)
            .collect()
    }
}
