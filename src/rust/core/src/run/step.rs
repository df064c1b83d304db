//! One step of a run: what was decided, and how far each action is.

use crate::digest::Digest;
use crate::event::{ApprovalRequested, Decision, Usage};
use crate::limits::Limit;
use crate::outcome::Outcome;
use std::collections::BTreeSet;

/// A step whose actions have not all ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its number, from 1.
    pub number: u64,
    /// Its actions, in order.
    pub actions: Vec<Action>,
    /// The limit that the plan passed by what it used: none of the actions runs.
    pub over: Option<Limit>,
    /// Address of what the planner noted.
    pub note: Option<Digest>,
    /// What the plan used.
    pub usage: Usage,
}

/// One action of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The tool it asks for.
    pub tool: String,
    /// Address of the arguments the planner gave.
    pub asked: Digest,
    /// Address of the arguments that run: a person may have changed them.
    pub arguments: Digest,
    /// Who changed them.
    pub edited_by: Option<String>,
    /// Attempts that started.
    pub attempts: u64,
    /// Whether a guardrail blocked it.
    pub blocked: bool,
    /// Guardrails that looked at it.
    pub looked: BTreeSet<String>,
    /// Addresses of the texts of guardrails that let it go on with a warning.
    pub warnings: Vec<Digest>,
    /// Digest of the record of its first call: what names the call.
    pub call: Option<Digest>,
    /// How far it is.
    pub progress: Progress,
}

/// How far an action is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Approved, and not started.
    Answered(Request),
    /// A person has been asked.
    Asking(Request),
    /// It runs.
    Calling,
    /// It ended.
    Ended(Ending),
    /// A standing grant covers it, and it has not started.
    Granted,
    /// Nothing is recorded yet.
    Open,
}

/// A request for approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Digest of its record: its name.
    pub digest: Digest,
    /// What was asked.
    pub data: ApprovalRequested,
}

/// How an action ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// The outcome.
    pub outcome: Outcome,
    /// Which limit, for `limit_reached`.
    pub limit: Option<Limit>,
    /// Address of the result.
    pub result: Option<Digest>,
    /// Address of the text shown instead of a result.
    pub text: Option<Digest>,
    /// Address of warnings, messages and hashes.
    pub notes: Option<Digest>,
    /// Whether the result was cut.
    pub truncated: bool,
    /// Bytes shown.
    pub bytes: u64,
    /// Microseconds it ran.
    pub duration_us: u64,
    /// Digest of the record that ended it.
    pub record: Digest,
}

impl Ending {
    /// An ending without a call.
    pub(super) fn refused(outcome: Outcome, text: Option<Digest>, record: Digest) -> Self {
        Ending {
            outcome,
            limit: None,
            result: None,
            text,
            notes: None,
            truncated: false,
            bytes: 0,
            duration_us: 0,
            record,
        }
    }
}

/// A step that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// Its number.
    pub number: u64,
    /// What was decided.
    pub decision: Decision,
    /// The actions; each has ended.
    pub actions: Vec<Action>,
    /// Address of an answer that was not accepted.
    pub answer: Option<Digest>,
    /// Address of what the planner noted.
    pub note: Option<Digest>,
    /// What the plan used.
    pub usage: Usage,
}

impl Action {
    /// An action that has just been decided.
    pub(super) fn new(tool: String, arguments: Digest) -> Self {
        Action {
            tool,
            asked: arguments,
            arguments,
            edited_by: None,
            attempts: 0,
            blocked: false,
            looked: BTreeSet::new(),
            warnings: Vec::new(),
            call: None,
            progress: Progress::Open,
        }
    }

    /// How it ended, when it did.
    pub fn ending(&self) -> Option<&Ending> {
        match &self.progress {
            Progress::Ended(ending) => Some(ending),
            Progress::Answered(_)
            | Progress::Asking(_)
            | Progress::Calling
            | Progress::Granted
            | Progress::Open => None,
        }
    }

    /// The outcome so far; nothing while it is under way.
    pub fn outcome(&self) -> Option<Outcome> {
        match &self.progress {
            Progress::Ended(ending) => Some(ending.outcome),
            Progress::Asking(_) => Some(Outcome::ApprovalRequired),
            Progress::Answered(_) | Progress::Calling | Progress::Granted | Progress::Open => None,
        }
    }

    /// Whether room has been promised to it that it has not been charged for.
    pub(super) fn reserves(&self) -> bool {
        match self.progress {
            Progress::Answered(_) | Progress::Asking(_) | Progress::Granted | Progress::Open => {
                true
            }
            Progress::Calling | Progress::Ended(_) => false,
        }
    }
}

impl Step {
    /// The open request of that name.
    pub fn request(&self, digest: &Digest) -> Option<(usize, &Request)> {
        self.actions
            .iter()
            .enumerate()
            .find_map(|(i, a)| match &a.progress {
                Progress::Asking(r) if r.digest == *digest => Some((i, r)),
                _ => None,
            })
    }

    /// Open requests, in the order of their actions.
    pub fn pending(&self) -> Vec<&Request> {
        self.actions
            .iter()
            .filter_map(|a| match &a.progress {
                Progress::Asking(r) => Some(r),
                _ => None,
            })
            .collect()
    }
}
