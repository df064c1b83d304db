//! The texts a planner is shown instead of a result. Each begins with the fixed
//! word of its outcome.

use crate::limits::Limit;
use crate::near::near;
use crate::outcome::Outcome;
use crate::policy::{Policy, ToolFacts};

fn with_word(outcome: Outcome, text: &str) -> String {
    format!("{} {text}", outcome.first_word())
}

pub(super) fn unknown_tool<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let mut known = known.peekable();
    let offer = if known.peek().is_none() {
        "There are no tools.".to_owned()
    } else {
        match near(name, known).as_slice() {
            [] => "No tool has a name like it.".to_owned(),
            [one] => format!("Did you mean `{one}`?"),
            all => format!("Near it are `{}`.", all[..all.len().min(5)].join("`, `")),
        }
    };
    let name: String = name.chars().take(60).collect();
    with_word(
        Outcome::UnknownTool,
        &format!("there is no tool `{name}`. {offer}"),
    )
}

pub(super) fn guardrail(why: Option<&String>) -> String {
    let why = why.map_or("a guardrail refused.", String::as_str);
    format!("{} {why}", Outcome::GuardrailBlocked.first_word())
}

pub(super) fn effect_denied(facts: &ToolFacts) -> String {
    with_word(
        Outcome::EffectDenied,
        &format!(
            "the policy of this run does not allow side effects of kind `{}`, which `{}` has. It did not run.",
            facts.side_effects.word(),
            facts.name
        ),
    )
}

pub(super) fn scope_denied(facts: &ToolFacts, policy: &Policy) -> String {
    let missing = policy.missing_scopes(facts).join("`, `");
    with_word(
        Outcome::ScopeDenied,
        &format!(
            "`{}` needs the scope `{missing}`, which this run is not granted. It did not run.",
            facts.name
        ),
    )
}

pub(super) fn tool_exhausted(facts: &ToolFacts) -> String {
    with_word(
        Outcome::ToolExhausted,
        &format!(
            "`{}` may be called {} times and was. It did not run.",
            facts.name,
            facts.max_calls.unwrap_or(0)
        ),
    )
}

pub(super) fn limit_reached(limit: Limit, tool: &str) -> String {
    with_word(
        Outcome::LimitReached,
        &format!(
            "the limit `{}` of this run leaves no room for a call of `{tool}`. It did not run, and the run ends.",
            limit.word()
        ),
    )
}

pub(super) fn superseded() -> String {
    with_word(
        Outcome::ApprovalDenied,
        "a person changed this very request earlier in this run, and what they put in its place ran. The original must not run.",
    )
}

pub(super) fn rejected(reason: Option<&str>) -> String {
    let reason = reason.map_or(String::new(), |r| format!(": {}", clip(r, 500)));
    with_word(
        Outcome::ApprovalDenied,
        &format!("a person said no{reason}. It did not run."),
    )
}

pub(super) fn expired() -> String {
    with_word(
        Outcome::ApprovalExpired,
        "nobody decided in time. It did not run, and will not.",
    )
}

pub(super) fn stale(what: &str) -> String {
    with_word(
        Outcome::ApprovalStale,
        &format!(
            "{what} changed after the request. It did not run; ask again if it is still needed."
        ),
    )
}

pub(super) fn interrupted(why: &str) -> String {
    with_word(Outcome::Interrupted, why)
}

fn clip(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(most).collect();
    cut.push_str(" ...");
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_are_near_are_offered() {
        let text = |name| unknown_tool(name, ["read", "search", "searches", "write"].into_iter());
        assert!(text("serch").ends_with("Did you mean `search`?"));
        assert!(text("search_").ends_with("Near it are `search`, `searches`."));
        assert!(text("weather").ends_with("No tool has a name like it."));
        assert!(text("serch").starts_with("ERROR: there is no tool `serch`. "));
        let none = unknown_tool("x", std::iter::empty());
        assert!(none.ends_with("There are no tools."));
    }

    #[test]
    fn a_long_reason_is_cut_at_a_character() {
        let text = rejected(Some(&"é".repeat(900)));
        assert!(text.starts_with("DENIED: a person said no: é"));
        assert!(text.chars().count() < 600);
    }
}
