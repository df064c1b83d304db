//! The one table of outcomes: how a tool call, or an action that asked for one,
//! can end. `inst/spec/outcomes.md` is this table in prose.

use serde::{Deserialize, Serialize};

/// How an action ended, or that it still waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A person, or the run's own rule, said no.
    ApprovalDenied,
    /// The request's time ran out before anyone decided.
    ApprovalExpired,
    /// Nobody has decided yet; nothing ran.
    ApprovalRequired,
    /// What was approved is no longer what would run.
    ApprovalStale,
    /// The policy does not allow the tool's side effects.
    EffectDenied,
    /// The tool raised an error.
    Error,
    /// The tool ran and returned.
    Executed,
    /// A guardrail refused.
    GuardrailBlocked,
    /// The call started and nobody knows how it ended.
    Interrupted,
    /// The arguments do not parse or do not match the schema.
    InvalidArguments,
    /// A limit of the run does not leave room for the call.
    LimitReached,
    /// The policy does not grant the tool's scopes.
    ScopeDenied,
    /// The tool ran into its time limit.
    TimedOut,
    /// The tool's own `max_calls` is used up.
    ToolExhausted,
    /// There is no tool of that name.
    UnknownTool,
}

impl Outcome {
    /// Every outcome, in the order of the published table.
    pub const ALL: [Outcome; 15] = [
        Outcome::Executed,
        Outcome::Error,
        Outcome::TimedOut,
        Outcome::InvalidArguments,
        Outcome::UnknownTool,
        Outcome::EffectDenied,
        Outcome::ScopeDenied,
        Outcome::GuardrailBlocked,
        Outcome::ToolExhausted,
        Outcome::LimitReached,
        Outcome::ApprovalRequired,
        Outcome::ApprovalDenied,
        Outcome::ApprovalExpired,
        Outcome::ApprovalStale,
        Outcome::Interrupted,
    ];

    /// The word in logs, journals and trajectories.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::ApprovalDenied => "approval_denied",
            Outcome::ApprovalExpired => "approval_expired",
            Outcome::ApprovalRequired => "approval_required",
            Outcome::ApprovalStale => "approval_stale",
            Outcome::EffectDenied => "effect_denied",
            Outcome::Error => "error",
            Outcome::Executed => "executed",
            Outcome::GuardrailBlocked => "guardrail_blocked",
            Outcome::Interrupted => "interrupted",
            Outcome::InvalidArguments => "invalid_arguments",
            Outcome::LimitReached => "limit_reached",
            Outcome::ScopeDenied => "scope_denied",
            Outcome::TimedOut => "timed_out",
            Outcome::ToolExhausted => "tool_exhausted",
            Outcome::UnknownTool => "unknown_tool",
        }
    }

    /// The outcome of that word.
    pub fn from_word(word: &str) -> Option<Outcome> {
        Outcome::ALL.into_iter().find(|o| o.word() == word)
    }

    /// The first word of the text a model is shown; an executed call has none.
    /// For people and models only: nothing is ever inferred from it.
    pub fn first_word(self) -> &'static str {
        match self {
            Outcome::Executed => "",
            Outcome::Error | Outcome::UnknownTool => "ERROR:",
            Outcome::TimedOut => "TIMED OUT:",
            Outcome::InvalidArguments => "INVALID ARGUMENTS:",
            Outcome::EffectDenied
            | Outcome::ScopeDenied
            | Outcome::GuardrailBlocked
            | Outcome::ToolExhausted
            | Outcome::LimitReached => "BLOCKED:",
            Outcome::ApprovalRequired => "PENDING:",
            Outcome::ApprovalDenied | Outcome::ApprovalExpired | Outcome::ApprovalStale => {
                "DENIED:"
            }
            Outcome::Interrupted => "INTERRUPTED:",
        }
    }

    /// Whether the tool's function was started.
    pub fn started(self) -> bool {
        matches!(
            self,
            Outcome::Executed | Outcome::Error | Outcome::TimedOut | Outcome::Interrupted
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip_and_match_their_serialised_form() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::from_word(outcome.word()), Some(outcome));
            let json = serde_json::to_string(&outcome).expect("a word");
            assert_eq!(json, format!("\"{}\"", outcome.word()));
        }
        assert_eq!(Outcome::from_word("Executed"), None);
    }

    #[test]
    fn only_an_executed_call_has_no_first_word() {
        for outcome in Outcome::ALL {
            assert_eq!(
                outcome.first_word().is_empty(),
                outcome == Outcome::Executed
            );
        }
    }
}
