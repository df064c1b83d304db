//! A run as one self-contained page of HTML, for people.
//!
//! A pure function of a journal, its content and what the verifier found: the same
//! run gives the same bytes. The page fetches nothing and has no script; its content
//! policy refuses both. Everything that a model, a tool or a person wrote is escaped
//! by construction: what is not markup of our own goes through one writer.

mod html;
mod moments;
mod parts;
mod steps;
mod story;
mod value;
mod words;

use crate::digest::Digest;
use html::Html;
use std::collections::BTreeMap;
use story::Story;
use value::{Folds, Values};

/// The values of a run by address: canonical JSON.
pub type Content = BTreeMap<Digest, Vec<u8>>;

/// What a page tells beyond journal and content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// What the verifier found.
    pub audit: Audit,
    /// How a case of an evaluation was judged by this run.
    pub case: Option<Case>,
    /// How many bytes of a value are shown at most.
    pub max_bytes: usize,
    /// Version of the package that writes the page.
    pub version: String,
}

/// What the verifier found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    /// `sound`, `open`, `cut` or `broken`.
    pub state: String,
    /// Each fault.
    pub faults: Vec<Fault>,
    /// What was not checked; empty: nothing was left out.
    pub not_checked: String,
    /// Whether the trail was given with the values of the run.
    pub content: Kept,
}

/// Whether the values of the run are at hand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kept {
    /// The trail alone.
    #[default]
    Trail,
    /// Values as well.
    Values,
}

/// One fault of a trail.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fault {
    /// The kind.
    pub kind: String,
    /// The record's number, where there is one.
    pub seq: Option<u64>,
    /// In words.
    pub what: String,
}

/// How a case was judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Case {
    /// Its id.
    pub id: String,
    /// Each criterion.
    pub verdicts: Vec<Judged>,
}

/// One criterion of a case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judged {
    /// The criterion.
    pub criterion: String,
    /// `pass`, `fail`, `missing` or `excluded`.
    pub verdict: String,
    /// Why it is missing or excluded.
    pub reason: Option<String>,
    /// JSON of what was found.
    pub evidence: Option<String>,
    /// The steps of the trajectory it rests on, in words.
    pub steps: String,
}

/// Writes the page of the run whose journal these lines are (without newlines).
///
/// ```
/// use warrant_core::page::{write, About, Content};
/// let page = write(std::iter::empty(), &Content::new(), &About::default());
/// assert!(page.starts_with("<!DOCTYPE html>"));
/// ```
pub fn write<'a>(
    lines: impl IntoIterator<Item = &'a str>,
    content: &Content,
    about: &About,
) -> String {
    let story = Story::read(lines);
    let values = Values {
        content,
        max_bytes: about.max_bytes,
        folds: Folds::Short,
    };
    let mut html = Html::default();
    head(&mut html, &story);
    parts::banner(&mut html, &story);
    html.raw("<div class=\"page\">\n");
    parts::contents(&mut html, &story, about);
    html.raw("<main id=\"main\" tabindex=\"-1\">\n");
    parts::exchange(&mut html, &story, &values);
    parts::waiting(&mut html, &story, &values);
    parts::limits(&mut html, &story);
    steps::timeline(&mut html, &story, &values);
    parts::tools(&mut html, &story);
    parts::audit(&mut html, &story, &about.audit);
    if let Some(case) = &about.case {
        parts::evaluation(&mut html, case, &values);
    }
    html.raw("</main>\n</div>\n<footer><p>Written by warrant ")
        .text(&about.version)
        .raw(" from the run’s own journal. Times are UTC, as the clocks of the machines gave them.</p></footer>\n</body>\n</html>\n");
    html.finish()
}

fn head(html: &mut Html, story: &Story) {
    html.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
        .raw("<meta http-equiv=\"Content-Security-Policy\" content=\"")
        .plain(&html::content_policy(STYLE))
        .raw("\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
        .raw("<meta name=\"referrer\" content=\"no-referrer\">\n")
        .raw("<meta name=\"color-scheme\" content=\"light dark\">\n<title>Run ")
        .plain(&story.run)
        .raw(", ")
        .raw(parts::status_words(story.status()))
        .raw("</title>\n<style>")
        .raw(STYLE)
        .raw("</style>\n</head>\n<body>\n")
        .raw("<a class=\"skip\" href=\"#main\">Skip to the run</a>\n")
        .raw(SIGNS);
}

const STYLE: &str = include_str!("style.css");

/// Signs of outcomes, referred to by name.
const SIGNS: &str = include_str!("signs.svg");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{
        address, key_commitment, ApprovalRequested, AskReason, Asked, CallFinished, CallStarted,
        Decided, Decision, Denied, Edited, Event, Finished, Guardrail, GuardrailFacts,
        GuardrailVerdict, Paused, PlanStarted, Resumed, RunStarted, Stage, Status, Usage, SCHEMA,
    };
    use crate::journal::{Chain, RunId};
    use crate::limits::Limits;
    use crate::outcome::Outcome;
    use crate::policy::{Policy, SideEffects, ToolFacts};
    use serde_json::{json, Value};

    /// A journal being made up: any events, whatever their meaning.
    struct Made {
        chain: Chain,
        lines: Vec<String>,
        content: Content,
    }

    impl Made {
        fn new() -> Made {
            let run = RunId::new("run-1").expect("an id");
            let mut made = Made {
                chain: Chain::start(run),
                lines: Vec::new(),
                content: Content::new(),
            };
            let goal = made.keep(json!("the goal"));
            let start = RunStarted {
                content_key: key_commitment(&[7; 32]),
                goal,
                guardrails: vec![GuardrailFacts {
                    digest: Digest::of_bytes(b"check"),
                    name: "no <mail>".to_owned(),
                    on_fail: GuardrailVerdict::Block,
                    stages: vec![Stage::Tool],
                }],
                limits: Limits {
                    steps: Some(4),
                    ..Limits::default()
                },
                nonce: Digest::of_bytes(b"nonce"),
                policy: Policy {
                    allow_effects: vec![SideEffects::Read, SideEffects::Write],
                    approve_effects: vec![SideEffects::Write],
                    granted_scopes: vec!["docs".to_owned()],
                    grants: Vec::new(),
                },
                schema: SCHEMA.to_owned(),
                tools: vec![facts("look"), facts("send")],
            };
            made.add(start);
            made
        }

        fn keep(&mut self, value: Value) -> Digest {
            let address = address(&[7; 32], &value);
            self.content.insert(address, crate::canon::to_vec(&value));
            address
        }

        fn add(&mut self, event: impl Into<Event>) -> Digest {
            let at = 1_800_000_000_000 + self.lines.len() as u64 * 1000;
            let record = self
                .chain
                .append(&event.into(), at, self.lines.len() as u64);
            let record = record.expect("seals");
            self.lines.push(record.line().to_owned());
            record.digest()
        }

        fn step(&mut self, step: u64, actions: &[(&str, Value)]) {
            self.add(PlanStarted { step });
            let actions = actions
                .iter()
                .map(|(tool, value)| Asked {
                    arguments: self.keep(value.clone()),
                    tool: (*tool).to_owned(),
                })
                .collect();
            let usage = Usage {
                cost_nano: 0,
                tokens: 12,
            };
            self.add(Decided {
                actions,
                answer: None,
                decision: Decision::Act,
                note: None,
                step,
                usage,
            });
        }

        fn call(&mut self, step: u64, tool: &str, result: Value) {
            let result = Some(self.keep(result));
            self.add(CallStarted {
                action: 0,
                arguments: Digest::of_bytes(b"a"),
                attempt: 1,
                cost_nano: 0,
                request: None,
                spec_hash: Digest::of_bytes(b"s"),
                step,
                timeout_ms: None,
                tool: tool.to_owned(),
            });
            self.add(CallFinished {
                action: 0,
                attempt: 1,
                bytes: 1,
                duration_us: 1500,
                notes: None,
                outcome: Outcome::Executed,
                result,
                step,
                text: None,
                truncated: false,
            });
        }

        fn ask(&mut self, step: u64) -> Digest {
            let prompt = Some(self.keep(json!("Send this?")));
            let arguments = self.keep(json!({"to": "<all>"}));
            self.add(ApprovalRequested {
                action: 0,
                arguments,
                expires_ms: None,
                policy: Digest::of_bytes(b"p"),
                prompt,
                reason: AskReason::Policy,
                scopes: Vec::new(),
                side_effects: SideEffects::Write,
                spec_hash: Digest::of_bytes(b"s"),
                step,
                tool: "send".to_owned(),
            })
        }

        fn page(&self) -> String {
            let about = About {
                audit: Audit {
                    state: "sound".to_owned(),
                    ..Audit::default()
                },
                max_bytes: 20_000,
                ..About::default()
            };
            write(self.lines.iter().map(String::as_str), &self.content, &about)
        }
    }

    fn facts(name: &str) -> ToolFacts {
        ToolFacts {
            calls_before: 0,
            cost_nano: None,
            idempotent: true,
            max_calls: None,
            name: name.to_owned(),
            requires_approval: false,
            schema: Digest::of_bytes(b"schema"),
            scopes: Vec::new(),
            side_effects: SideEffects::Read,
            spec_hash: Digest::of_bytes(name.as_bytes()),
            timeout_ms: None,
            ttl_ms: None,
        }
    }

    #[test]
    fn a_call_is_told_with_arguments_result_and_outcome() {
        let mut made = Made::new();
        made.step(1, &[("look", json!({"n": 3}))]);
        made.call(1, "look", json!([1, 2]));
        let page = made.page();
        assert!(page.contains("the goal"));
        assert!(page.contains("&quot;n&quot;</span>: 3"));
        assert!(page.contains("[1, 2]"));
        assert!(page.contains("1.5 ms"));
        assert!(page.contains("12 tokens"));
        assert!(page.contains("<dt>Guardrails</dt><dd><code>no &lt;mail&gt;</code>"));
        assert_eq!(page, made.page());
    }

    #[test]
    fn an_edited_approval_names_who_when_and_both_arguments() {
        let mut made = Made::new();
        made.step(1, &[("send", json!({"to": "<all>"}))]);
        let request = made.ask(1);
        made.add(Paused {
            pending: vec![request],
        });
        let waiting = made.page();
        assert!(waiting.contains("Waiting for a person") && waiting.contains("Send this?"));
        let arguments = made.keep(json!({"to": "one"}));
        let by = "Ann <b>".to_owned();
        made.add(Edited {
            approver: by,
            arguments,
            decided_ms: 1_800_000_000_000,
            request,
        });
        made.add(Resumed {
            guardrails: None,
            limits: None,
            policy: None,
            tools: None,
        });
        made.call(1, "send", json!("sent"));
        let page = made.page();
        assert!(!page.contains("id=\"waiting\""));
        assert!(page.contains("Approved with other arguments by <strong><bdi>Ann &lt;b&gt;"));
        assert!(page.contains("2027-01-15 08:00:00 UTC"));
        assert!(page.contains("&quot;&lt;all&gt;&quot;") && page.contains("&quot;one&quot;"));
        assert!(page.contains("The run paused, with 1 request open."));
    }

    #[test]
    fn a_refusal_names_what_refused_and_what_was_said() {
        let mut made = Made::new();
        made.step(1, &[("look", json!({}))]);
        let why = made.keep(json!("no mail"));
        made.add(Guardrail {
            action: Some(0),
            name: "no_mail".to_owned(),
            stage: Stage::Tool,
            step: 1,
            text: Some(why),
            verdict: GuardrailVerdict::Block,
        });
        let text = made.keep(json!("BLOCKED: no mail"));
        let outcome = Outcome::GuardrailBlocked;
        made.add(Denied {
            action: 0,
            limit: None,
            outcome,
            step: 1,
            text,
        });
        let page = made.page();
        assert!(page.contains("Refused by the guardrail <code>no_mail</code>. It did not run."));
        assert!(page.contains("BLOCKED: no mail"));
        assert!(page.contains("href=\"#step-1\""));
    }

    #[test]
    fn what_a_model_said_is_told_as_text() {
        let cases = [
            (json!({"text": "A <plan>."}), "A &lt;plan&gt;."),
            (json!({"content": "Said.", "role": "assistant"}), "Said."),
            (
                json!({"content": [{"type": "text", "text": "In"}, {"type": "x"}, {"text": "blocks"}]}),
                "In\nblocks",
            ),
        ];
        for (note, shown) in cases {
            let mut made = Made::new();
            made.add(PlanStarted { step: 1 });
            let folds = note.as_object().is_some_and(|m| m.len() > 1);
            let note = Some(made.keep(note));
            let actions = vec![Asked {
                arguments: made.keep(json!({})),
                tool: "look".to_owned(),
            }];
            made.add(Decided {
                actions,
                answer: None,
                decision: Decision::Act,
                note,
                step: 1,
                usage: Usage::default(),
            });
            let page = made.page();
            assert!(
                page.contains(&format!("dir=\"auto\">{shown}</pre>")),
                "{shown}"
            );
            assert_eq!(page.contains("The message as it came"), folds);
        }
    }

    #[test]
    fn the_end_gives_answer_status_and_reason() {
        let mut made = Made::new();
        let answer = made.keep(json!("42</p>"));
        let counts = crate::event::Counts::default();
        made.add(Finished {
            answer: Some(answer),
            counts,
            error: None,
            status: Status::Completed,
            stop_reason: None,
        });
        assert!(made.page().contains("42&lt;/p&gt;"));
        assert!(made.page().contains("<title>Run run-1, completed</title>"));
    }

    #[test]
    fn a_trail_without_values_and_with_faults_is_shown_too() {
        let mut made = Made::new();
        made.step(1, &[("look", json!({"n": 3}))]);
        made.lines.push("not a <record>".to_owned());
        let fault = Fault {
            kind: "torn".to_owned(),
            seq: Some(3),
            what: "<i>".to_owned(),
        };
        let audit = Audit {
            state: "broken".to_owned(),
            faults: vec![fault],
            ..Audit::default()
        };
        let about = About {
            audit,
            max_bytes: 100,
            ..About::default()
        };
        let page = write(
            made.lines.iter().map(String::as_str),
            &Content::new(),
            &about,
        );
        assert!(page.contains("not kept with this record"));
        assert!(page.contains("&lt;i&gt;") && page.contains("1 line could not be read"));
        assert!(!page.contains("<record>"));
    }

    #[test]
    fn a_case_is_told_with_reasons_and_evidence() {
        let judged = Judged {
            criterion: "answer".to_owned(),
            verdict: "missing".to_owned(),
            reason: Some("no_trace".to_owned()),
            evidence: Some("{\"found\":\"<u>\"}".to_owned()),
            steps: "1, 3".to_owned(),
        };
        let case = Some(Case {
            id: "c<1".to_owned(),
            verdicts: vec![judged],
        });
        let about = About {
            case,
            max_bytes: 100,
            ..About::default()
        };
        let page = write(std::iter::empty(), &Content::new(), &about);
        for part in ["c&lt;1", "no_trace", "&lt;u&gt;", "1, 3"] {
            assert!(page.contains(part), "{part}");
        }
    }

    #[test]
    fn the_page_allows_only_its_own_style() {
        let page = write(std::iter::empty(), &Content::new(), &About::default());
        let start = page.find("<style>").expect("a style") + 7;
        let end = page.find("</style>").expect("its end");
        let mut policy = Html::default();
        policy.plain(&html::content_policy(&page[start..end]));
        assert!(page.contains(&policy.finish()));
        assert!(!page.contains("<script") && !page.contains("style=\"") && !page.contains("://"));
    }
}
