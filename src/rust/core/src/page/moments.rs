//! What happened to an action or a run besides its outcome: guardrails, people,
//! pauses, crashes.

use super::html::Html;
use super::steps::sign;
use super::story::{Moment, What};
use super::value::{Secrets, Values};
use super::words::{self, Sort};
use crate::event::{AskReason, Guardrail, GuardrailVerdict, LateResult, Resumed};

pub(super) fn verdicts(html: &mut Html, rails: &[Guardrail], values: &Values<'_>) {
    if rails.is_empty() {
        return;
    }
    html.raw("<ul class=\"rails\" aria-label=\"Guardrails\">");
    passed(html, rails);
    for rail in rails.iter().filter(|r| !calm(r)) {
        let (class, word) = match rail.verdict {
            GuardrailVerdict::Block => ("refused", "blocks"),
            GuardrailVerdict::Flag => ("waiting", "flags"),
            GuardrailVerdict::Pass => ("done", "passes"),
            GuardrailVerdict::Warn => ("waiting", "warns"),
        };
        html.raw("<li class=\"").raw(class).raw("\">");
        html.raw(SHIELD).raw(" Guardrail <code>");
        html.text(&rail.name).raw("</code> ").raw(word);
        if let Some(text) = &rail.text {
            html.raw(": ");
            values.line(html, text);
        }
        html.raw("</li>");
    }
    html.raw("</ul>");
}

fn calm(rail: &Guardrail) -> bool {
    rail.verdict == GuardrailVerdict::Pass && rail.text.is_none()
}

/// Those that had nothing to say, in one line.
fn passed(html: &mut Html, rails: &[Guardrail]) {
    let mut names: Vec<&str> = Vec::new();
    for rail in rails.iter().filter(|r| calm(r)) {
        if !names.contains(&rail.name.as_str()) {
            names.push(&rail.name);
        }
    }
    if names.is_empty() {
        return;
    }
    html.raw("<li class=\"done\">").raw(SHIELD).raw(" Passed:");
    for name in names {
        html.raw(" <code>").text(name).raw("</code>");
    }
    html.raw("</li>");
}

pub(super) fn moments(html: &mut Html, moments: &[Moment], values: &Values<'_>) {
    // A single first attempt says nothing that the outcome does not.
    let plain = |m: &Moment| matches!(m.what, What::Started { attempt: 1, .. });
    if moments.iter().all(plain) {
        return;
    }
    html.raw("<ul class=\"moments\" aria-label=\"What happened\">");
    let mut paused_ms = None;
    for moment in moments {
        html.raw("<li>").raw(moment_sign(&moment.what)).raw(" ");
        tell(html, &moment.what, values);
        match (&moment.what, paused_ms) {
            (What::Paused { .. }, _) => paused_ms = Some(moment.at_ms),
            (What::Resumed(_), Some(from)) => {
                html.raw(" It had waited for ");
                html.text(&words::duration_ms(moment.at_ms.saturating_sub(from)))
                    .raw(".");
                paused_ms = None;
            }
            _ => {}
        }
        html.raw(" ");
        time(html, moment.at_ms);
        match &moment.what {
            What::Edited { arguments, .. } => values.block(html, arguments, Secrets::Redact),
            What::Late(LateResult {
                result: Some(result),
                ..
            }) => {
                values.block(html, result, Secrets::Show);
            }
            _ => {}
        }
        html.raw("</li>");
    }
    html.raw("</ul>");
}

fn moment_sign(what: &What) -> &'static str {
    match what {
        What::Approved { .. } | What::Edited { .. } | What::Rejected { .. } | What::Asked(_) => {
            "<svg class=\"sign\" aria-hidden=\"true\"><use href=\"#sign-person\"/></svg>"
        }
        What::Paused { .. } => {
            "<svg class=\"sign\" aria-hidden=\"true\"><use href=\"#sign-pause\"/></svg>"
        }
        What::Expired => sign(Sort::Waiting),
        What::GrantUsed { .. } => sign(Sort::Done),
        What::Late(_) | What::Recovered { .. } => sign(Sort::Failed),
        What::Resumed(_) | What::Started { .. } => sign(Sort::Open),
    }
}

fn tell(html: &mut Html, what: &What, values: &Values<'_>) {
    match what {
        What::Asked(request) => {
            html.raw("A person was asked: ")
                .raw(ask_reason(request.reason));
            if let Some(prompt) = &request.prompt {
                html.raw(" “");
                values.line(html, prompt);
                html.raw("”");
            }
            if let Some(end) = request.expires_ms {
                html.raw(" Open until ").text(&words::time(end)).raw(".");
            }
        }
        What::Approved { by } => by_whom(html, "Approved by ", by),
        What::Rejected { by } => by_whom(html, "Rejected by ", by),
        What::Edited { by, .. } => by_whom(html, "Approved with other arguments by ", by),
        What::Expired => {
            html.raw("The request ended before anyone decided.");
        }
        What::GrantUsed { grant } => {
            html.raw("Standing grant ").number(grant + 1);
            html.raw(" of the policy answered instead of a person.");
        }
        What::Late(late) => {
            html.raw("The call ended after its run had been taken over (");
            html.raw(words::outcome(Some(late.outcome)))
                .raw("); this result does not count.");
        }
        What::Paused { pending } => {
            html.raw("The run paused, with ");
            html.text(&words::counted(*pending as u64, "request", "requests"))
                .raw(" open.");
        }
        What::Recovered { again, attempt } => {
            html.raw("The process vanished during ");
            match attempt {
                0 => html.raw("the plan"),
                n => html.raw("attempt ").number(*n),
            };
            html.raw(if *again {
                "; it starts again."
            } else {
                "; the call is not repeated."
            });
        }
        What::Resumed(data) => resumed(html, data),
        What::Started {
            attempt,
            timeout_ms,
        } => {
            html.raw("Attempt ").number(*attempt).raw(" started");
            if let Some(ms) = timeout_ms {
                html.raw(", with a limit of ")
                    .text(&words::duration_ms(*ms));
            }
            html.raw(".");
        }
    }
}

fn by_whom(html: &mut Html, did: &'static str, by: &str) {
    html.raw(did)
        .raw("<strong><bdi>")
        .text(by)
        .raw("</bdi></strong>.");
}

fn resumed(html: &mut Html, data: &Resumed) {
    html.raw("The run was taken up again");
    let changed = [
        (data.tools.is_some(), "tools"),
        (data.policy.is_some(), "policy"),
        (data.limits.is_some(), "limits"),
        (data.guardrails.is_some(), "guardrails"),
    ];
    let changed: Vec<&'static str> = changed.iter().filter(|c| c.0).map(|c| c.1).collect();
    if !changed.is_empty() {
        html.raw(", with other ").text(&changed.join(" and "));
    }
    html.raw(".");
}

fn ask_reason(reason: AskReason) -> &'static str {
    match reason {
        AskReason::Policy => "the policy asks before side effects of this kind.",
        AskReason::Tool => "the tool asks before every call.",
        AskReason::UnknownEffect => "an equal call before it has an unknown effect.",
    }
}

pub(super) fn time(html: &mut Html, ms: u64) {
    html.raw("<time datetime=\"")
        .plain(&words::machine_time(ms))
        .raw("\">");
    html.text(&words::time(ms)).raw("</time>");
}

const SHIELD: &str = "<svg class=\"sign\" aria-hidden=\"true\"><use href=\"#sign-shield\"/></svg>";
