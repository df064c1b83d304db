//! What a record can mean that no run could have produced.

use crate::error::{Fault, Kind};
use crate::event::SCHEMA;
use crate::limits::Limit;
use crate::outcome::Outcome;
use serde_json::{Map, Value};

/// Why an event is not one the run machine could have recorded at this place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Meaning {
    /// Working time went backwards.
    #[error("working time falls from {before} to {found} ms")]
    ActiveTimeFell {
        /// Before.
        before: u64,
        /// In the record.
        found: u64,
    },
    /// The run has ended.
    #[error("`{event}` follows the end of the run")]
    AfterEnd {
        /// The event.
        event: &'static str,
    },
    /// A call that needs a person's yes has none.
    #[error("a call of `{tool}` starts without the approval it needs")]
    NotApproved {
        /// The tool.
        tool: String,
    },
    /// What starts is not what was approved.
    #[error("what starts is not what was approved: the {what} differs")]
    NotAsApproved {
        /// What differs.
        what: &'static str,
    },
    /// The charge is not the tool's cost.
    #[error("the call is charged {found} where the tool costs {expected} (1e-9 units)")]
    Cost {
        /// As declared.
        expected: u64,
        /// As charged.
        found: u64,
    },
    /// The totals at the end are not those of the events.
    #[error("the end counts differ from the events: {what}")]
    Counts {
        /// Which.
        what: String,
    },
    /// A decision came after the request had expired.
    #[error("a decision comes after the request had expired")]
    DecidedTooLate,
    /// The policy does not allow the tool's side effects.
    #[error("a call of `{tool}` starts although its side effects are not allowed")]
    EffectNotAllowed {
        /// The tool.
        tool: String,
    },
    /// A standing grant is used beyond what it covers.
    #[error("grant {grant} does not cover this call")]
    Grant {
        /// Its place.
        grant: u64,
    },
    /// A guardrail speaks that is not in force there, or says what it cannot.
    #[error("the guardrail `{name}` is not declared for this place and verdict")]
    GuardrailNotDeclared {
        /// Its name.
        name: String,
    },
    /// Something goes on that a guardrail had to look at first.
    #[error("the guardrail `{name}` has not looked at this")]
    GuardrailSkipped {
        /// Its name.
        name: String,
    },
    /// A refusal for a limit that is not reached.
    #[error("an action is refused for a limit that is not reached")]
    LimitNotReached,
    /// The step has no such action.
    #[error("the step has no action {action} that this could be about")]
    NoSuchAction {
        /// The action.
        action: u64,
    },
    /// No open request has this digest.
    #[error("no open request has this digest")]
    NoSuchRequest,
    /// The first event is not `run_started`.
    #[error("`{event}` comes before `run_started`")]
    NotStarted {
        /// The event.
        event: &'static str,
    },
    /// The outcome cannot be that of this event here.
    #[error("the outcome `{}` cannot be right here", outcome.word())]
    Outcome {
        /// The outcome.
        outcome: Outcome,
    },
    /// The event cannot come here.
    #[error("`{event}` cannot come here")]
    OutOfPlace {
        /// The event.
        event: &'static str,
    },
    /// A limit is passed.
    #[error("the limit `{}` is passed", limit.word())]
    OverLimit {
        /// The limit.
        limit: Limit,
    },
    /// The tool's own `max_calls` is passed.
    #[error("`{tool}` starts more often than its `max_calls`")]
    OverMaxCalls {
        /// The tool.
        tool: String,
    },
    /// A call is repeated that must not be.
    #[error("attempt {attempt} of a call of `{tool}` must not be")]
    Repeated {
        /// The tool.
        tool: String,
        /// The attempt.
        attempt: u64,
    },
    /// The request does not say what is true of the tool and the policy.
    #[error("the request does not match what it asks about: the {what} differs")]
    RequestDiffers {
        /// What differs.
        what: &'static str,
    },
    /// The vocabulary is of another version.
    #[error("the journal's schema is `{found}`; this version of the package reads `{SCHEMA}`")]
    Schema {
        /// As found.
        found: String,
    },
    /// The policy does not grant the tool's scopes.
    #[error("a call of `{tool}` starts although a scope it needs is not granted")]
    ScopeNotGranted {
        /// The tool.
        tool: String,
    },
    /// Not the next step.
    #[error("step {found} where step {expected} must be")]
    Step {
        /// As it must be.
        expected: u64,
        /// As found.
        found: u64,
    },
    /// No such tool is declared.
    #[error("a tool `{tool}` is not declared")]
    ToolNotDeclared {
        /// The tool.
        tool: String,
    },
    /// What `run_started` declares is not in its normal form.
    #[error("the declared {what} are not sorted and unique")]
    Unsorted {
        /// Which list.
        what: &'static str,
    },
    /// The time limit of the call is not the declared one.
    #[error("the call's time limit is not the declared one")]
    Timeout,
}

impl Fault for Meaning {
    fn code(&self) -> &'static str {
        match self {
            Meaning::ActiveTimeFell { .. } => "active_time_fell",
            Meaning::AfterEnd { .. } => "after_end",
            Meaning::NotApproved { .. } => "not_approved",
            Meaning::NotAsApproved { .. } => "not_as_approved",
            Meaning::Cost { .. } => "wrong_cost",
            Meaning::Counts { .. } => "wrong_counts",
            Meaning::DecidedTooLate => "decided_too_late",
            Meaning::EffectNotAllowed { .. } => "effect_not_allowed",
            Meaning::Grant { .. } => "grant_misused",
            Meaning::GuardrailNotDeclared { .. } => "guardrail_not_declared",
            Meaning::GuardrailSkipped { .. } => "guardrail_skipped",
            Meaning::LimitNotReached => "limit_not_reached",
            Meaning::NoSuchAction { .. } => "no_such_action",
            Meaning::NoSuchRequest => "no_such_request",
            Meaning::NotStarted { .. } => "not_started",
            Meaning::Outcome { .. } => "wrong_outcome",
            Meaning::OutOfPlace { .. } => "out_of_place",
            Meaning::OverLimit { .. } => "over_limit",
            Meaning::OverMaxCalls { .. } => "over_max_calls",
            Meaning::Repeated { .. } => "repeated_call",
            Meaning::RequestDiffers { .. } => "request_differs",
            Meaning::Schema { .. } => "unknown_schema",
            Meaning::ScopeNotGranted { .. } => "scope_not_granted",
            Meaning::Step { .. } => "wrong_step",
            Meaning::ToolNotDeclared { .. } => "tool_not_declared",
            Meaning::Unsorted { .. } => "unsorted",
            Meaning::Timeout => "wrong_timeout",
        }
    }
    fn kind(&self) -> Kind {
        Kind::State
    }
    fn facts(&self) -> Map<String, Value> {
        let Meaning::Schema { found } = self else {
            return Map::new();
        };
        let facts = [("found", found.as_str()), ("expected", SCHEMA)];
        facts
            .map(|(name, text)| (name.to_owned(), text.into()))
            .into_iter()
            .collect()
    }
}
