//! The core of `warrant`: everything that must be exactly right.
//!
//! The crate promises that it knows no R, no clock, no randomness, no file, no
//! thread and no network. Time, identifiers and nonces are arguments; what it
//! wants done it returns as a value. The same inputs give the same bytes on
//! every machine.
#![forbid(unsafe_code)]

pub mod archive;
pub mod canon;
pub mod case;
pub mod chat;
pub mod criteria;
pub mod dataset;
pub mod declare;
pub mod digest;
pub mod error;
pub mod event;
pub mod journal;
pub mod judge;
pub mod limits;
mod near;
pub mod outcome;
pub mod page;
pub mod plain;
pub mod policy;
pub mod provider;
pub mod render;
pub mod rule;
pub mod run;
pub mod runlog;
pub(crate) mod scan;
pub mod schema;
pub mod slice;
pub mod suite;
pub mod tally;
pub mod tool;
pub mod trajectory;
pub mod verdict;
