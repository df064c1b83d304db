//! The timeline: each step, its actions, and what happened to them.

use super::html::Html;
use super::moments::{moments, time, verdicts};
use super::story::{Action, AnswerFate, Step, Story, What};
use super::value::{Secrets, Values};
use super::words::{self, Sort};
use crate::event::{Decision, GuardrailVerdict};
use crate::outcome::Outcome;
use serde_json::Value;

/// Runs of more steps begin folded, except where something needs a look.
const OPEN_STEPS: usize = 40;

pub(super) fn timeline(html: &mut Html, story: &Story, values: &Values<'_>) {
    html.raw("<section aria-labelledby=\"steps\"><h2 id=\"steps\">Steps</h2>\n");
    verdicts(html, &story.rails, values);
    moments(html, &story.moments, values);
    if story.steps.is_empty() {
        html.raw("<p>The planner was not asked yet.</p>");
    } else {
        tally(html, story);
        html.raw("<ol class=\"steps\">\n");
        for step in &story.steps {
            one(html, step, story, values);
        }
        html.raw("</ol>\n");
    }
    html.raw("</section>\n");
}

/// How many actions ended how.
fn tally(html: &mut Html, story: &Story) {
    let mut counts: Vec<(Option<Outcome>, u64)> = Vec::new();
    for (_, action) in story.actions() {
        match counts.iter_mut().find(|(o, _)| *o == action.outcome) {
            Some((_, n)) => *n += 1,
            None => counts.push((action.outcome, 1)),
        }
    }
    if counts.is_empty() {
        return;
    }
    html.raw("<p class=\"tally\">");
    for (outcome, n) in counts {
        badge_with(html, outcome, |html| {
            html.text(&words::grouped(n)).raw(" ");
        });
        html.raw(" ");
    }
    html.raw("</p>\n");
}

fn one(html: &mut Html, step: &Step, story: &Story, values: &Values<'_>) {
    let calm = step
        .actions
        .iter()
        .all(|a| words::sort(a.outcome) == Sort::Done);
    let open = story.steps.len() <= OPEN_STEPS || !calm || step.answer == AnswerFate::Rejected;
    html.raw("<li class=\"");
    html.raw(worst(step)).raw("\" id=\"step-");
    html.number(step.number).raw("\"><details");
    html.raw(if open { " open" } else { "" });
    html.raw("><summary><h3>Step ")
        .text(&words::grouped(step.number))
        .raw("</h3>");
    summary(html, step);
    html.raw("</summary>\n<div class=\"body\">");
    plan(html, step, values);
    match step.actions.as_slice() {
        // The step's own line names its tool and outcome.
        [only] => told(html, only, values),
        several => {
            for (place, action) in several.iter().enumerate() {
                act(html, (step.number, place as u64), action, values);
            }
        }
    }
    verdicts(html, &step.rails, values);
    if step.answer == AnswerFate::Rejected {
        html.raw("<p class=\"why refused\">")
            .raw(sign(Sort::Refused));
        html.raw(" <code>done</code> did not accept this answer; the run went on.</p>");
    }
    moments(html, &step.moments, values);
    html.raw("</div></details></li>\n");
}

/// The sort of the step's action that most needs a look.
fn worst(step: &Step) -> &'static str {
    let sorts = || step.actions.iter().map(|a| words::sort(a.outcome));
    let found = [Sort::Waiting, Sort::Failed, Sort::Refused, Sort::Open]
        .into_iter()
        .find(|kind| sorts().any(|s| s == *kind));
    match (found, step.answer) {
        (None, AnswerFate::Rejected) => class(Sort::Refused),
        (None, AnswerFate::Open) if step.decided.is_none() => class(Sort::Open),
        (None, AnswerFate::Open) => class(Sort::Done),
        (Some(kind), _) => class(kind),
    }
}

fn summary(html: &mut Html, step: &Step) {
    html.raw("<span class=\"sum\">");
    match &step.decided {
        None => {
            html.raw("<span class=\"quiet\">the planner was asked</span>");
        }
        Some(d) if d.decision == Decision::Finish => {
            html.raw("<span>answer</span>");
        }
        Some(_) => {
            for (i, action) in step.actions.iter().enumerate().take(4) {
                html.raw(if i > 0 { " " } else { "" })
                    .raw("<span class=\"pair\"><code>");
                html.text(&action.tool).raw("</code>");
                badge(html, action.outcome);
                html.raw("</span>");
            }
            if step.actions.len() > 4 {
                html.raw(" <span class=\"quiet\">and ");
                html.text(&words::grouped(step.actions.len() as u64 - 4))
                    .raw(" more</span>");
            }
        }
    }
    html.raw("</span><span class=\"at\">");
    html.text(&words::duration_ms(step.active_ms))
        .raw("</span>");
}

/// What the planner said and used.
fn plan(html: &mut Html, step: &Step, values: &Values<'_>) {
    html.raw("<p class=\"facts\">Asked at ");
    time(html, step.at_ms);
    html.raw(", after ")
        .text(&words::duration_ms(step.active_ms))
        .raw(" of working time");
    let Some(decided) = &step.decided else {
        html.raw(". No decision is recorded.</p>");
        return;
    };
    let usage = decided.usage;
    if usage.tokens > 0 {
        html.raw("; ")
            .text(&words::counted(usage.tokens, "token", "tokens"));
    }
    if usage.cost_nano > 0 {
        html.raw("; cost ").text(&words::cost(usage.cost_nano));
    }
    if let [Action { end: Some(end), .. }] = step.actions.as_slice() {
        html.raw("; the call took ")
            .text(&words::duration_us(end.duration_us));
    }
    html.raw(".</p>");
    if let Some(note) = &decided.note {
        html.raw("<div class=\"field\"><p class=\"label\">Said by the planner</p>");
        note_block(html, note, values);
        html.raw("</div>");
    }
    if let Some(answer) = &decided.answer {
        html.raw("<div class=\"field\"><p class=\"label\">Answer</p>");
        values.block(html, answer, Secrets::Show);
        html.raw("</div>");
    }
}

/// A model's text where the note is a chat message, else the note.
fn note_block(html: &mut Html, note: &crate::digest::Digest, values: &Values<'_>) {
    let whole = values.get(note);
    let Some(text) = whole.as_ref().and_then(said) else {
        return values.block(html, note, Secrets::Show);
    };
    values.show(html, &Value::from(text), Secrets::Show);
    if whole.is_some_and(|v| v.as_object().is_some_and(|m| m.len() > 1)) {
        html.raw("<details class=\"fold\"><summary>The message as it came</summary>");
        values.block(html, note, Secrets::Show);
        html.raw("</details>");
    }
}

/// The text of a chat message: a string, or blocks some of which are texts.
fn said(message: &Value) -> Option<String> {
    let content = message.get("content").or_else(|| message.get("text"))?;
    let text = match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|b| b.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

fn act(html: &mut Html, (step, place): (u64, u64), action: &Action, values: &Values<'_>) {
    html.raw("<div class=\"act ")
        .raw(class(words::sort(action.outcome)));
    html.raw("\" id=\"action-")
        .number(step)
        .raw("-")
        .number(place + 1)
        .raw("\"><h4><code>");
    html.text(&action.tool).raw("</code> ");
    badge(html, action.outcome);
    if let Some(end) = &action.end {
        html.raw(" <span class=\"quiet\">")
            .text(&words::duration_us(end.duration_us));
        html.raw("</span>");
    }
    html.raw("</h4>");
    told(html, action, values);
    html.raw("</div>\n");
}

fn told(html: &mut Html, action: &Action, values: &Values<'_>) {
    reason(html, action, values);
    let edited = action
        .moments
        .iter()
        .any(|m| matches!(m.what, What::Edited { .. }));
    let name = if edited {
        "Arguments as the planner gave them"
    } else {
        "Arguments"
    };
    field(html, name, |html| {
        values.block(html, &action.asked, Secrets::Redact);
    });
    result(html, action, values);
    verdicts(html, &action.rails, values);
    moments(html, &action.moments, values);
}

fn field(html: &mut Html, name: &'static str, body: impl FnOnce(&mut Html)) {
    html.raw("<div class=\"field\"><p class=\"label\">")
        .raw(name)
        .raw("</p>");
    body(html);
    html.raw("</div>");
}

fn result(html: &mut Html, action: &Action, values: &Values<'_>) {
    let Some(end) = &action.end else { return };
    if let Some(result) = &end.result {
        let name = if end.truncated {
            "Result, cut to the tool’s bytes"
        } else {
            "Result"
        };
        field(html, name, |html| values.block(html, result, Secrets::Show));
    }
    let notes = end
        .notes
        .and_then(|a| values.get(&a))
        .unwrap_or(Value::Null);
    for (member, name) in [
        ("error_class", "Class of the error"),
        ("warnings", "Warnings"),
        ("messages", "Messages"),
    ] {
        let said = notes
            .get(member)
            .filter(|v| v.as_array().is_some_and(|a| !a.is_empty()));
        if let Some(said) = said {
            field(html, name, |html| values.show(html, said, Secrets::Show));
        }
    }
}

/// What refused an action, and what the planner was told.
fn reason(html: &mut Html, action: &Action, values: &Values<'_>) {
    let kind = words::sort(action.outcome);
    if !matches!(kind, Sort::Failed | Sort::Refused) {
        return;
    }
    html.raw("<div class=\"why ").raw(class(kind)).raw("\"><p>");
    if kind == Sort::Refused {
        html.raw("Refused by ");
        refuser(html, action);
        html.raw(if withheld(action) {
            ". It did run; its result is withheld."
        } else {
            ". It did not run."
        });
    } else if action.outcome == Some(Outcome::Interrupted) {
        html.raw("The process vanished during the call. Its effect is unknown.");
    } else if action.outcome == Some(Outcome::TimedOut) {
        html.raw("It ran into its time limit.");
    } else {
        html.raw("The tool raised an error.");
    }
    html.raw("</p>");
    if let Some(text) = &action.text {
        html.raw("<p class=\"told\">The planner was told:</p>");
        values.block(html, text, Secrets::Show);
    }
    html.raw("</div>");
}

fn withheld(action: &Action) -> bool {
    action.outcome == Some(Outcome::GuardrailBlocked) && action.end.is_some()
}

fn refuser(html: &mut Html, action: &Action) {
    match action.outcome {
        Some(Outcome::InvalidArguments) => {
            html.raw("the tool’s schema: the arguments do not match it")
        }
        Some(Outcome::UnknownTool) => html.raw("the list of tools: none has this name"),
        Some(Outcome::EffectDenied) => {
            html.raw("the policy: it does not allow the tool’s side effects")
        }
        Some(Outcome::ScopeDenied) => {
            html.raw("the policy: it does not grant a scope the tool needs")
        }
        Some(Outcome::ToolExhausted) => {
            html.raw("the tool’s own limit of ");
            html.text(&words::counted(
                action.max_calls.unwrap_or(0),
                "call",
                "calls",
            ))
        }
        Some(Outcome::LimitReached) => {
            html.raw("the run’s limit <code>");
            html.raw(action.limit.map_or("of the run", |l| l.word()))
                .raw("</code>")
        }
        Some(Outcome::ApprovalDenied) => match &action.refused_by {
            Some(by) => html.raw("<bdi>").text(by).raw("</bdi>"),
            None => html.raw("an earlier decision of a person about this very request"),
        },
        Some(Outcome::ApprovalExpired) => html.raw("time: nobody decided before the request ended"),
        Some(Outcome::ApprovalStale) => {
            html.raw("the approval’s own terms: what would run is no longer what was approved")
        }
        Some(Outcome::GuardrailBlocked) => {
            html.raw("the guardrail");
            for rail in action
                .rails
                .iter()
                .filter(|r| r.verdict == GuardrailVerdict::Block)
            {
                html.raw(" <code>").text(&rail.name).raw("</code>");
            }
            html
        }
        _ => html.raw("the run"),
    };
}

/// An outcome with its sign.
pub(super) fn badge(html: &mut Html, outcome: Option<Outcome>) {
    badge_with(html, outcome, |_| {});
}

fn badge_with(html: &mut Html, outcome: Option<Outcome>, before: impl FnOnce(&mut Html)) {
    let kind = words::sort(outcome);
    html.raw("<span class=\"badge ")
        .raw(class(kind))
        .raw("\">")
        .raw(sign(kind))
        .raw(" ");
    before(html);
    html.raw(words::outcome(outcome)).raw("</span>");
}

pub(super) fn class(kind: Sort) -> &'static str {
    match kind {
        Sort::Done => "done",
        Sort::Failed => "failed",
        Sort::Open => "open",
        Sort::Refused => "refused",
        Sort::Waiting => "waiting",
    }
}

pub(super) fn sign(kind: Sort) -> &'static str {
    match kind {
        Sort::Done => "<svg class=\"sign\" aria-hidden=\"true\"><use href=\"#sign-done\"/></svg>",
        Sort::Failed => {
            "<svg class=\"sign\" aria-hidden=\"true\"><use href=\"#sign-failed\"/></svg>"
        }
        Sort::Open => "<svg class=\"sign\" aria-hidden=\"true\"><use href=\"#sign-open\"/></svg>",
        Sort::Refused => {
            "<svg class=\"sign\" aria-hidden=\"true\"><use href=\"#sign-refused\"/></svg>"
        }
        Sort::Waiting => {
            "<svg class=\"sign\" aria-hidden=\"true\"><use href=\"#sign-waiting\"/></svg>"
        }
    }
}
