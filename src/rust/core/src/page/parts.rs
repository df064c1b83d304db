//! The parts of the page around the timeline.

use super::html::Html;
use super::steps::{class, sign};
use super::story::Story;
use super::value::{Folds, Secrets, Values};
use super::words::{self, Sort};
use super::{About, Audit, Case, Kept};
use crate::canon;
use crate::policy::{Policy, SideEffects, ToolFacts};

pub(super) fn banner(html: &mut Html, story: &Story) {
    html.raw("<header class=\"banner\"><div class=\"inner\"><p class=\"kind\">Run of an agent</p><h1><span class=\"id\">");
    html.text(&story.run).raw("</span> <span class=\"badge ");
    let kind = status_sort(story.status());
    html.raw(class(kind)).raw("\">").raw(sign(kind)).raw(" ");
    html.raw(status_words(story.status()))
        .raw("</span></h1>\n<dl class=\"meta\">");
    if let Some(reason) = story.end.as_ref().and_then(|e| e.stop_reason) {
        entry(html, "Why", |html| {
            html.raw(stop_words(reason.word()))
                .raw(" <code>")
                .raw(reason.word())
                .raw("</code>");
        });
    }
    if let Some(ms) = story.started_ms {
        entry(html, "Started", |html| {
            html.text(&words::time(ms));
        });
        let last = if story.end.is_some() {
            "Ended"
        } else {
            "Last record"
        };
        entry(html, last, |html| {
            html.text(&words::time(story.last_ms));
        });
    }
    entry(html, "Working time", |html| {
        html.text(&words::duration_ms(story.active_ms));
    });
    entry(html, "Records", |html| {
        html.text(&words::grouped(story.records));
    });
    if let Some(head) = story.head {
        entry(html, "Audit head", |html| {
            html.raw("<code class=\"hash\">")
                .text(&head.to_hex())
                .raw("</code>");
        });
    }
    html.raw("</dl></div></header>\n");
}

fn entry(html: &mut Html, name: &'static str, body: impl FnOnce(&mut Html)) {
    html.raw("<div><dt>").raw(name).raw("</dt><dd>");
    body(html);
    html.raw("</dd></div>");
}

/// How many steps the contents name one by one.
const LOOKS: usize = 30;

pub(super) fn contents(html: &mut Html, story: &Story, about: &About) {
    html.raw("<nav aria-label=\"On this page\"><ul>");
    html.raw("<li><a href=\"#goal\">Goal and answer</a></li>");
    if story.actions().any(|(_, a)| a.pending.is_some()) {
        html.raw("<li><a href=\"#waiting\">Waiting for a person</a></li>");
    }
    html.raw("<li><a href=\"#limits\">Limits</a></li><li><a href=\"#steps\">Steps</a> <span class=\"quiet\">");
    html.text(&words::grouped(story.steps.len() as u64))
        .raw("</span>");
    looks(html, story);
    html.raw("</li><li><a href=\"#tools\">Tools and policy</a></li>");
    html.raw("<li><a href=\"#audit\">Verification</a> <span class=\"quiet\">");
    html.text(&about.audit.state).raw("</span></li>");
    if about.case.is_some() {
        html.raw("<li><a href=\"#evaluation\">Evaluation</a></li>");
    }
    html.raw("</ul></nav>\n");
}

/// Links to what did not simply run.
fn looks(html: &mut Html, story: &Story) {
    let odd = || {
        story
            .actions()
            .filter(|(_, a)| words::sort(a.outcome) != Sort::Done)
    };
    let all = odd().count();
    if all == 0 {
        return;
    }
    html.raw("<ul class=\"looks\">");
    for (step, action) in odd().take(LOOKS) {
        let kind = words::sort(action.outcome);
        html.raw("<li class=\"")
            .raw(class(kind))
            .raw("\"><a href=\"#step-")
            .number(step.number);
        html.raw("\">")
            .raw(sign(kind))
            .raw(" ")
            .text(&words::grouped(step.number))
            .raw(": ");
        html.raw(words::outcome(action.outcome)).raw("</a></li>");
    }
    if all > LOOKS {
        html.raw("<li class=\"quiet\">and ")
            .text(&words::grouped((all - LOOKS) as u64));
        html.raw(" more</li>");
    }
    html.raw("</ul>");
}

pub(super) fn exchange(html: &mut Html, story: &Story, values: &Values<'_>) {
    let values = Values {
        folds: Folds::Long,
        ..*values
    };
    html.raw("<section aria-labelledby=\"goal\"><h2 id=\"goal\">Goal and answer</h2>\n<div class=\"exchange\">");
    html.raw("<div class=\"card\"><h3>Goal</h3>");
    match &story.goal {
        Some(goal) => values.block(html, goal, Secrets::Show),
        None => {
            html.raw("<p class=\"gone\">The record of the start is not there.</p>");
        }
    }
    html.raw("</div><div class=\"card answer\"><h3>Answer</h3>");
    let end = story.end.as_ref();
    match (end.and_then(|e| e.answer), end.and_then(|e| e.error)) {
        (Some(answer), _) => values.block(html, &answer, Secrets::Show),
        (None, Some(error)) => {
            html.raw("<p>There is none. The run failed:</p>");
            values.block(html, &error, Secrets::Show);
        }
        (None, None) => {
            html.raw(if end.is_some() {
                "<p>There is none.</p>"
            } else {
                "<p>There is none yet.</p>"
            });
        }
    }
    html.raw("</div></div></section>\n");
}

pub(super) fn waiting(html: &mut Html, story: &Story, values: &Values<'_>) {
    let open: Vec<_> = story
        .actions()
        .filter_map(|(step, action)| Some((step, action, action.pending.as_ref()?)))
        .collect();
    if open.is_empty() {
        return;
    }
    html.raw("<section aria-labelledby=\"waiting\"><h2 id=\"waiting\">Waiting for a person</h2>\n");
    for (step, action, request) in open {
        html.raw("<div class=\"act waiting\"><h3><code>")
            .text(&action.tool)
            .raw("</code></h3><p>");
        if let Some(prompt) = &request.prompt {
            values.line(html, prompt);
            html.raw(" ");
        }
        html.raw("Side effects: ")
            .raw(request.side_effects.word())
            .raw(". ");
        match request.expires_ms {
            Some(ms) => html.raw("Open until ").text(&words::time(ms)).raw(". "),
            None => html.raw("The request has no end. "),
        };
        html.raw("<a href=\"#step-")
            .number(step.number)
            .raw("\">Step ");
        html.text(&words::grouped(step.number)).raw("</a></p>");
        values.block(html, &request.arguments, Secrets::Redact);
        html.raw("</div>");
    }
    html.raw("</section>\n");
}

pub(super) fn limits(html: &mut Html, story: &Story) {
    let (limits, used) = (&story.limits, &story.used);
    html.raw("<section aria-labelledby=\"limits\"><h2 id=\"limits\">Limits</h2>\n");
    html.raw("<table class=\"limits\"><caption>What the run used of what it was allowed</caption>");
    html.raw("<thead><tr><th scope=\"col\">Limit</th><th scope=\"col\">Used</th><th scope=\"col\">Allowed</th><td></td></tr></thead><tbody>");
    let count = |n: u64| words::grouped(n);
    meter(html, "steps", used.steps, limits.steps, count);
    meter(
        html,
        "tool_calls",
        used.tool_calls,
        limits.tool_calls,
        count,
    );
    meter(html, "tokens", used.tokens, limits.tokens, count);
    meter(html, "cost", used.cost_nano, limits.cost_nano, words::cost);
    meter(
        html,
        "seconds",
        used.active_ms,
        limits.active_ms,
        words::duration_ms,
    );
    for (tool, most) in &limits.per_tool {
        meter(html, tool, used.calls_of(tool), Some(*most), count);
    }
    html.raw("</tbody></table></section>\n");
}

fn meter(html: &mut Html, name: &str, used: u64, most: Option<u64>, show: fn(u64) -> String) {
    html.raw("<tr><th scope=\"row\"><code>")
        .text(name)
        .raw("</code></th><td>");
    html.text(&show(used)).raw("</td><td>");
    let Some(most) = most else {
        html.raw("no limit</td><td></td></tr>");
        return;
    };
    html.text(&show(most)).raw("</td><td><svg class=\"bar");
    html.raw(if used >= most { " full" } else { "" });
    html.raw("\" viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
    html.raw("<rect class=\"room\" width=\"100\" height=\"6\"/><rect height=\"6\" width=\"");
    let share = match most {
        0 => u64::from(used > 0) * 100,
        most => (u128::from(used) * 100 / u128::from(most)).min(100) as u64,
    };
    html.number(share).raw("\"/></svg></td></tr>");
}

pub(super) fn tools(html: &mut Html, story: &Story) {
    html.raw("<section aria-labelledby=\"tools\"><h2 id=\"tools\">Tools and policy</h2>\n");
    if let Some(policy) = &story.policy {
        html.raw("<dl class=\"policy\">");
        entry(html, "Side effects allowed", |html| {
            effects(html, &policy.allow_effects)
        });
        entry(html, "A person is asked before", |html| {
            effects(html, &policy.approve_effects)
        });
        entry(html, "Scopes granted", |html| {
            codes(html, &policy.granted_scopes)
        });
        entry(html, "Standing grants", |html| grants(html, policy));
        entry(html, "Guardrails", |html| {
            let names: Vec<String> = story.guardrails.iter().map(|g| g.name.clone()).collect();
            codes(html, &names);
        });
        html.raw("</dl>");
    }
    if story.tools.is_empty() {
        html.raw("<p>The run had no tools.</p></section>\n");
        return;
    }
    html.raw("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Tools of the run\">");
    html.raw("<table><caption>What the run declared of its tools</caption><thead><tr>");
    html.raw("<th scope=\"col\">Tool</th><th scope=\"col\">Side effects</th><th scope=\"col\">Scopes</th>");
    html.raw(
        "<th scope=\"col\">Asks</th><th scope=\"col\">Calls</th><th scope=\"col\">Time limit</th>",
    );
    html.raw("<th scope=\"col\">Specification</th></tr></thead><tbody>");
    for facts in &story.tools {
        tool(html, facts, story);
    }
    html.raw("</tbody></table></div></section>\n");
}

fn tool(html: &mut Html, facts: &ToolFacts, story: &Story) {
    html.raw("<tr><th scope=\"row\"><code>")
        .text(&facts.name)
        .raw("</code></th><td>");
    html.raw(facts.side_effects.word()).raw("</td><td>");
    codes(html, &facts.scopes);
    html.raw("</td><td>");
    html.raw(if facts.requires_approval {
        "always"
    } else {
        "by policy"
    });
    html.raw("</td><td>")
        .text(&words::grouped(story.used.calls_of(&facts.name)));
    if let Some(most) = facts.max_calls {
        html.raw(" of ")
            .text(&words::grouped(most.saturating_sub(facts.calls_before)));
    }
    html.raw("</td><td>");
    match facts.timeout_ms.or(story.limits.call_timeout_ms) {
        Some(ms) => html.text(&words::duration_ms(ms)),
        None => html.raw("none"),
    };
    html.raw("</td><td><code>")
        .text(&facts.spec_hash.to_hex()[..8])
        .raw("</code></td></tr>");
}

fn effects(html: &mut Html, effects: &[SideEffects]) {
    let words: Vec<String> = effects.iter().map(|e| e.word().to_owned()).collect();
    codes(html, &words);
}

fn codes(html: &mut Html, names: &[String]) {
    if names.is_empty() {
        html.raw("none");
    }
    for (i, name) in names.iter().enumerate() {
        html.raw(if i > 0 { ", " } else { "" })
            .raw("<code>")
            .text(name)
            .raw("</code>");
    }
}

fn grants(html: &mut Html, policy: &Policy) {
    if policy.grants.is_empty() {
        html.raw("none");
        return;
    }
    html.raw("<ol>");
    for grant in &policy.grants {
        html.raw("<li><code>").text(&grant.tool).raw("</code>, ");
        match grant.count {
            Some(n) => html.text(&words::counted(n, "call", "calls")),
            None => html.raw("any number of calls"),
        };
        if let Some(ms) = grant.until_ms {
            html.raw(", until ").text(&words::time(ms));
        }
        html.raw("</li>");
    }
    html.raw("</ol>");
}

pub(super) fn audit(html: &mut Html, story: &Story, audit: &Audit) {
    html.raw("<section aria-labelledby=\"audit\"><h2 id=\"audit\">Verification</h2>\n");
    let (kind, found) = match audit.state.as_str() {
        "sound" => (Sort::Done, "Nothing is wrong: every record follows the one before it, and together they are a history that a run could have under the policy and limits it declares."),
        "open" => (Sort::Waiting, "Nothing is wrong so far: every record follows the one before it. The run has no end yet."),
        "cut" => (Sort::Failed, "The trail ends before it should."),
        _ => (Sort::Failed, "The trail is not what was recorded."),
    };
    html.raw("<p class=\"verdict ")
        .raw(class(kind))
        .raw("\"><span class=\"badge ")
        .raw(class(kind));
    html.raw("\">")
        .raw(sign(kind))
        .raw(" ")
        .text(&audit.state)
        .raw("</span> ")
        .raw(found)
        .raw("</p>");
    if audit.faults.is_empty() {
        html.raw("<p>No faults were found in ");
        html.text(&words::counted(story.records, "record", "records"))
            .raw(".</p>");
    } else {
        let caption = match kind {
            Sort::Failed => "Faults of the trail",
            _ => "What was noticed besides: none of it is a change of the trail",
        };
        faults(html, audit, caption);
    }
    if story.unreadable > 0 {
        html.raw("<p>")
            .text(&words::counted(story.unreadable, "line", "lines"));
        html.raw(" could not be read as a record and is not told here.</p>");
    }
    if !audit.not_checked.is_empty() {
        html.raw("<p>Not checked: ")
            .text(&audit.not_checked)
            .raw(".</p>");
    }
    html.raw(match audit.content {
        Kept::Trail => "<p>Goal, arguments, results and answers stand in a trail by address only; the values were not given.</p>",
        Kept::Values => "",
    });
    html.raw("<p class=\"quiet\">Any later change shows against an audit head that is kept elsewhere. Who holds the records and knows that no head was kept can rewrite them.</p></section>\n");
}

fn faults(html: &mut Html, audit: &Audit, caption: &'static str) {
    html.raw("<table><caption>").raw(caption);
    html.raw("</caption><thead><tr><th scope=\"col\">Record</th>");
    html.raw("<th scope=\"col\">Kind</th><th scope=\"col\">What</th></tr></thead><tbody>");
    for fault in &audit.faults {
        html.raw("<tr><td>");
        match fault.seq {
            Some(seq) => html.text(&words::grouped(seq)),
            None => html.raw("none"),
        };
        html.raw("</td><td><code>")
            .text(&fault.kind)
            .raw("</code></td><td>");
        html.text(&fault.what).raw("</td></tr>");
    }
    html.raw("</tbody></table>");
}

pub(super) fn evaluation(html: &mut Html, case: &Case, values: &Values<'_>) {
    html.raw("<section aria-labelledby=\"evaluation\"><h2 id=\"evaluation\">Evaluation</h2>\n");
    html.raw("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Verdicts\"><table>");
    html.raw("<caption>How case <code>")
        .text(&case.id)
        .raw("</code> was judged</caption><thead><tr>");
    html.raw("<th scope=\"col\">Criterion</th><th scope=\"col\">Verdict</th><th scope=\"col\">Reason</th>");
    html.raw("<th scope=\"col\">Steps</th><th scope=\"col\">Evidence</th></tr></thead><tbody>");
    for judged in &case.verdicts {
        let kind = match judged.verdict.as_str() {
            "pass" => Sort::Done,
            "fail" => Sort::Failed,
            "missing" => Sort::Waiting,
            _ => Sort::Open,
        };
        html.raw("<tr><th scope=\"row\"><code>")
            .text(&judged.criterion)
            .raw("</code></th><td>");
        html.raw("<span class=\"badge ")
            .raw(class(kind))
            .raw("\">")
            .raw(sign(kind))
            .raw(" ");
        html.text(&judged.verdict).raw("</span></td><td>");
        html.text(judged.reason.as_deref().unwrap_or(""))
            .raw("</td><td>");
        html.text(&judged.steps).raw("</td><td>");
        match judged
            .evidence
            .as_ref()
            .and_then(|e| canon::parse(e.as_bytes()).ok())
        {
            Some(evidence) => values.show(html, &evidence, Secrets::Show),
            None => {
                html.raw("");
            }
        }
        html.raw("</td></tr>");
    }
    html.raw("</tbody></table></div><p class=\"quiet\">Steps are those of the case’s trajectory. ");
    html.raw("A verdict says what was found, not what caused it.</p></section>\n");
}

fn status_sort(status: &str) -> Sort {
    match status {
        "completed" => Sort::Done,
        "failed" => Sort::Failed,
        "stopped" => Sort::Refused,
        "awaiting_approval" => Sort::Waiting,
        _ => Sort::Open,
    }
}

pub(super) fn status_words(status: &str) -> &'static str {
    match status {
        "completed" => "completed",
        "failed" => "failed",
        "stopped" => "stopped at a limit",
        "awaiting_approval" => "awaiting approval",
        _ => "running",
    }
}

fn stop_words(reason: &str) -> &'static str {
    match reason {
        "cost" => "The limit of cost was reached.",
        "done_failed" => "The check of the answer failed.",
        "guardrail_blocked" => "A guardrail refused the goal or the answer.",
        "invalid_decision" => "The planner returned something that is no decision.",
        "per_tool" => "The limit of one tool was reached.",
        "planner_failed" => "The planner raised an error.",
        "seconds" => "The limit of working time was reached.",
        "steps" => "The limit of steps was reached.",
        "tokens" => "The limit of tokens was reached.",
        _ => "The limit of calls was reached.",
    }
}
