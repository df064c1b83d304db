//! What a journal tells of a run, gathered for tables.

use crate::digest::Digest;
use crate::event::{Event, StopReason};
use crate::journal::Line;
use crate::limits::Used;
use crate::outcome::Outcome;
use crate::run::{Action, Error, History};
use std::collections::{BTreeMap, HashMap};

/// A run as its tables tell it. Values are addresses.
#[derive(Debug, Clone)]
pub struct Account {
    /// The run.
    pub run: String,
    /// Digest of its last record.
    pub head: Digest,
    /// How many records it has.
    pub records: u64,
    /// The word of its status.
    pub status: &'static str,
    /// Why it stopped or failed.
    pub stop_reason: Option<StopReason>,
    /// Wall clock of the first record, milliseconds since 1970.
    pub started_ms: u64,
    /// Wall clock of the last record.
    pub last_ms: u64,
    /// What it used.
    pub used: Used,
    /// The goal.
    pub goal: Option<Digest>,
    /// The answer that was accepted.
    pub answer: Option<Digest>,
    /// The text of what failed.
    pub error: Option<Digest>,
    /// Each action, in order.
    pub calls: Vec<Call>,
    /// Each request for approval, in order.
    pub approvals: Vec<Approval>,
    /// What the planner noted, in order.
    pub notes: Vec<Digest>,
    /// Digests of the tools' specifications, by name; those of the last resume.
    pub tools: BTreeMap<String, Digest>,
}

/// One action.
#[derive(Debug, Clone)]
pub struct Call {
    /// The step, from 1.
    pub step: u64,
    /// Its place in the step, from 1.
    pub action: u64,
    /// The tool.
    pub tool: String,
    /// The outcome; none while it is under way.
    pub outcome: Option<Outcome>,
    /// Attempts that started.
    pub attempts: u64,
    /// When it was first asked for or last started, milliseconds since 1970.
    pub at_ms: u64,
    /// Microseconds it ran.
    pub duration_us: u64,
    /// Bytes shown.
    pub bytes: u64,
    /// Whether the result was cut.
    pub truncated: bool,
    /// Who changed the arguments.
    pub edited_by: Option<String>,
    /// What guardrails said: `name: verdict`.
    pub guardrails: Vec<String>,
    /// The arguments that ran.
    pub arguments: Digest,
    /// The result.
    pub result: Option<Digest>,
    /// The text shown instead of a result.
    pub text: Option<Digest>,
}

/// One request for approval.
#[derive(Debug, Clone)]
pub struct Approval {
    /// Digest of its record.
    pub request: Digest,
    /// The step.
    pub step: u64,
    /// Its place in the step, from 1.
    pub action: u64,
    /// The tool.
    pub tool: String,
    /// Why a person was asked.
    pub reason: &'static str,
    /// The arguments that were shown.
    pub arguments: Digest,
    /// Wall clock of the request.
    pub requested_ms: u64,
    /// When it expires.
    pub expires_ms: Option<u64>,
    /// `approve`, `reject`, `edit` or `expired`; none while it waits.
    pub decision: Option<&'static str>,
    /// Who decided.
    pub approver: Option<String>,
    /// When.
    pub decided_ms: Option<u64>,
    /// The arguments that a person put in place of those shown.
    pub edited: Option<Digest>,
}

/// What only the single records tell.
#[derive(Default)]
struct Seen {
    started_ms: u64,
    at: HashMap<(u64, u64), u64>,
    guardrails: HashMap<(u64, u64), Vec<String>>,
    approvals: Vec<Approval>,
    notes: Vec<Digest>,
}

impl Account {
    /// Gathers what `history`, the same lines as read, and the single records tell.
    ///
    /// # Errors
    /// A line that is no record.
    pub fn gather(history: &History, lines: &[&str]) -> Result<Self, Error> {
        let mut seen = Seen::default();
        for (place, text) in lines.iter().enumerate() {
            let broken = Error::Broken {
                seq: place as u64,
                what: "is not a record",
            };
            let line = Line::read(text.as_bytes()).ok_or(broken)?;
            if place == 0 {
                seen.started_ms = line.at;
            }
            let digest = line.digest.parse().map_err(|_| Error::Broken {
                seq: place as u64,
                what: "is not a record",
            })?;
            seen.take(
                Event::read(line.event, line.data.as_bytes())?,
                digest,
                line.at,
            );
        }
        Ok(Self::new(history, seen))
    }

    fn new(history: &History, mut seen: Seen) -> Self {
        let state = &history.state;
        let end = state.end();
        let charter = state.charter();
        let mut calls = Vec::new();
        for step in &history.steps {
            seen.calls(step.number, &step.actions, &mut calls);
        }
        if let Some(step) = state.step() {
            seen.calls(step.number, &step.actions, &mut calls);
        }
        let completed = state.status() == crate::event::Status::Completed;
        let tools = charter.map(|c| c.tools.iter().map(|(n, t)| (n.clone(), t.spec_hash)));
        Account {
            run: history.chain.run().as_str().to_owned(),
            head: history
                .chain
                .head()
                .unwrap_or_else(|| Digest::of_bytes(b"")),
            records: history.chain.next_seq(),
            status: state.status().word(),
            stop_reason: end.and_then(|e| e.stop_reason),
            started_ms: seen.started_ms,
            last_ms: history.at_ms,
            used: state.used().clone(),
            goal: charter.map(|c| c.goal),
            answer: end.filter(|_| completed).and_then(|e| e.answer),
            error: end.and_then(|e| e.error),
            calls,
            approvals: seen.approvals,
            notes: seen.notes,
            tools: tools.map(Iterator::collect).unwrap_or_default(),
        }
    }

    /// The models that answered, by the notes of the planner: each once, in order of
    /// their names.
    pub fn models(&self, content: &super::Content) -> Vec<String> {
        let name = |address: &Digest| {
            let note = super::value_at(content, Some(address))?;
            Some(note.get("model")?.as_str()?.to_owned())
        };
        let names: std::collections::BTreeSet<String> =
            self.notes.iter().filter_map(name).collect();
        names.into_iter().collect()
    }
}

impl Seen {
    fn take(&mut self, event: Event, digest: Digest, at: u64) {
        match event {
            Event::Decided(e) => {
                for i in 0..e.actions.len() {
                    self.at.insert((e.step, i as u64), at);
                }
                self.notes.extend(e.note);
            }
            Event::CallStarted(e) => {
                self.at.insert((e.step, e.action), at);
            }
            Event::Guardrail(e) => {
                if let Some(action) = e.action {
                    let verdict = serde_json::to_value(e.verdict).unwrap_or_default();
                    let text = format!("{}: {}", e.name, verdict.as_str().unwrap_or_default());
                    self.guardrails
                        .entry((e.step, action))
                        .or_default()
                        .push(text);
                }
            }
            Event::ApprovalRequested(e) => self.approvals.push(Approval {
                request: digest,
                step: e.step,
                action: e.action + 1,
                tool: e.tool,
                reason: e.reason.word(),
                arguments: e.arguments,
                requested_ms: at,
                expires_ms: e.expires_ms,
                decision: None,
                approver: None,
                decided_ms: None,
                edited: None,
            }),
            Event::Approved(e) => {
                self.decide(&e.request, "approve", Some(e.approver), e.decided_ms)
            }
            Event::Rejected(e) => self.decide(&e.request, "reject", Some(e.approver), e.decided_ms),
            Event::Edited(e) => {
                self.decide(&e.request, "edit", Some(e.approver), e.decided_ms);
                if let Some(asked) = self.asked(&e.request) {
                    asked.edited = Some(e.arguments);
                }
            }
            Event::Expired(e) => self.decide(&e.request, "expired", None, at),
            Event::AnswerRejected(_)
            | Event::CallFinished(_)
            | Event::Denied(_)
            | Event::Finished(_)
            | Event::GrantUsed(_)
            | Event::LateResult(_)
            | Event::Paused(_)
            | Event::PlanStarted(_)
            | Event::Recovered(_)
            | Event::Resumed(_)
            | Event::RunStarted(_) => {}
        }
    }

    fn asked(&mut self, request: &Digest) -> Option<&mut Approval> {
        self.approvals.iter_mut().find(|a| a.request == *request)
    }

    fn decide(&mut self, request: &Digest, word: &'static str, by: Option<String>, at: u64) {
        if let Some(asked) = self.asked(request) {
            asked.decision = Some(word);
            asked.approver = by;
            asked.decided_ms = Some(at);
        }
    }

    fn calls(&mut self, step: u64, actions: &[Action], out: &mut Vec<Call>) {
        for (i, action) in actions.iter().enumerate() {
            let place = (step, i as u64);
            let end = action.ending();
            out.push(Call {
                step,
                action: i as u64 + 1,
                tool: action.tool.clone(),
                outcome: action.outcome(),
                attempts: action.attempts,
                at_ms: self.at.get(&place).copied().unwrap_or_default(),
                duration_us: end.map_or(0, |e| e.duration_us),
                bytes: end.map_or(0, |e| e.bytes),
                truncated: end.is_some_and(|e| e.truncated),
                edited_by: action.edited_by.clone(),
                guardrails: self.guardrails.remove(&place).unwrap_or_default(),
                arguments: action.arguments,
                result: end.and_then(|e| e.result),
                text: end.and_then(|e| e.text),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::*;

    #[test]
    fn an_account_has_what_the_single_records_tell() {
        let sample = Sample::new();
        let history = History::read(sample.lines(), None).unwrap();
        let account = Account::gather(&history, &sample.lines()).unwrap();
        assert_eq!((account.run.as_str(), account.status), ("r1", "completed"));
        assert_eq!(
            (account.records, account.started_ms, account.last_ms),
            (8, 1000, 1007)
        );
        let call = &account.calls[0];
        assert_eq!((call.step, call.action, call.at_ms), (1, 1, 1003));
        assert_eq!((call.outcome, call.attempts), (Some(Outcome::Executed), 1));
        assert_eq!(account.models(&sample.kept.content), ["m-1"]);
        assert_eq!(account.models(&Default::default()), [""; 0]);
        assert_eq!(account.tools["send"], Digest::of_bytes(b"spec"));
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let sample = Sample::new();
        let history = History::read(sample.lines(), None).unwrap();
        assert!(Account::gather(&history, &["{}"]).is_err());
    }
}
