//! A run: a fold over its events ([`State`]) and the machine that decides which
//! event comes next ([`Machine`]). Neither performs anything: the machine answers
//! with the next [`Effect`], and is fed what came of it.

mod effect;
mod fold_action;
mod fold_call;
mod fold_run;
mod gate;
mod history;
mod late;
mod log;
mod machine;
mod meaning;
mod propose;
mod rails;
mod resume;
mod setup;
mod state;
mod step;
mod text;

pub use effect::{
    Call, Check, Clock, Decided, Effect, Ended, Failure, Finding, Given, Output, Proposal, Verdict,
};
pub use history::History;
pub use late::{Attempt, Settled};
pub use log::{secret_reference, By, Log};
pub use machine::{Acceptance, Machine};
pub use meaning::Meaning;
pub use setup::{Effects, Error, GrantRule, Presence, RunTool, Setup};
pub use state::{Charter, State};
pub use step::{Action, Closed, Ending, Progress, Request, Step};
