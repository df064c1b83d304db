//! The entry points of judging. R begins an evaluation, advances it by slices of
//! work (so that it can stop and show progress between them) and finishes it.

mod counts;
mod data;
mod engine;
mod file;
mod floor;
mod outputs;
mod problem;
mod state;
mod stream;
mod tables;
mod threads;

use crate::fault::guard;
use engine::Engine;
use extendr_api::prelude::*;
use file::Blocks;
use problem::Problem;
pub(crate) use problem::Refused;
use state::Evaluation;
use warrant_core::canon;
use warrant_core::error::Fault;
use warrant_core::suite::{self, Suite};
use warrant_core::verdict;

type Result<T> = std::result::Result<T, Box<dyn Fault>>;

/// The evaluation behind a handle.
fn held(handle: Robj) -> Result<ExternalPtr<Evaluation>> {
    handle.try_into().map_err(|_| -> Box<dyn Fault> {
        let rule = "the handle must be that of an evaluation in progress".to_owned();
        Box::new(Refused::record(
            None,
            Problem::plain("not_an_evaluation", rule, None),
        ))
    })
}

fn parse_suite(spec: &str) -> Result<Suite> {
    let value = canon::parse(spec.as_bytes()).map_err(boxed)?;
    Suite::parse(&value).map_err(boxed)
}

fn boxed(error: impl Fault + 'static) -> Box<dyn Fault> {
    Box::new(error)
}

// A suite (JSON), columns of cases and answers, what to keep, whether to refuse.
#[extendr]
fn rs_eval_begin(spec: &str, columns: List, evidence: bool, strict: bool) -> Robj {
    guard(|| {
        let evaluation = Evaluation::new(parse_suite(spec)?, &columns, evidence, strict)?;
        Ok(ExternalPtr::new(evaluation))
    })
}

// Records in memory, of the cases from `from` (from 0) up to `to`: the position of the
// case of each, and the texts.
#[extendr]
fn rs_eval_texts(handle: Robj, from: f64, to: f64, owner: Robj, texts: Strings) -> Robj {
    guard(|| {
        let owner = owner.as_integer_vector().unwrap_or_default();
        let texts: Vec<&str> = texts.as_slice().iter().map(|s| &**s).collect();
        let mut evaluation = held(handle)?;
        evaluation.texts((from as usize, to as usize), &owner, &texts)
    })
}

// A file of records.
#[extendr]
fn rs_eval_open(handle: Robj, path: &str, name: &str) -> Robj {
    guard(|| {
        let blocks = Blocks::open(path).map_err(|e| boxed(Refused::file(name, &e)))?;
        let mut evaluation = held(handle)?;
        evaluation.name = Some(name.to_owned());
        evaluation.blocks = Some(blocks);
        Ok(())
    })
}

// Works for about so long: whether there is more, bytes done and in all.
#[extendr]
fn rs_eval_advance(handle: Robj, seconds: f64) -> Robj {
    guard(|| {
        let mut evaluation = held(handle)?;
        let more = evaluation.advance(seconds)?;
        let bytes = evaluation
            .blocks
            .as_ref()
            .map(|blocks| (blocks.taken, blocks.total));
        let (done, total) = bytes.unwrap_or((0, 0));
        Ok(list!(more = more, done = done as f64, total = total as f64))
    })
}

// Judges what is left and gives all columns and counts. `reasons` is a list of
// `word` and `reason` for codes beyond the core's.
#[extendr]
fn rs_eval_finish(handle: Robj, words: Strings, reasons: Strings) -> Robj {
    guard(|| {
        let mut evaluation = held(handle)?;
        evaluation.settle()?;
        let pair = |(word, reason): (&Rstr, &Rstr)| (word.to_string(), reason.to_string());
        let further = words.iter().zip(reasons.iter()).map(pair).collect();
        tables::columns(&evaluation, further)
    })
}

// The counts of tallies (JSON) of one suite, merged: data frames and the tally.
#[extendr]
fn rs_eval_merge(spec: &str, tallies: Strings) -> Robj {
    guard(|| {
        let texts: Vec<&str> = tallies.as_slice().iter().map(|s| &**s).collect();
        tables::merged(&parse_suite(spec)?, &texts)
    })
}

// A suite or a part of one (JSON), checked: the resolved form (JSON).
#[extendr]
fn rs_suite_check(spec: &str) -> Robj {
    guard(|| Ok(canon::to_string(&parse_suite(spec)?.resolved())))
}

#[extendr]
fn rs_check_declaration(kind: &str, spec: &str) -> Robj {
    guard(|| {
        let value = canon::parse(spec.as_bytes()).map_err(boxed)?;
        let resolved = suite::check_declaration(kind, &value).map_err(boxed)?;
        Ok(canon::to_string(&resolved))
    })
}

// A file of answers (JSON Lines), as columns.
#[extendr]
fn rs_read_outputs(path: &str, name: &str, strict: bool) -> Robj {
    guard(|| outputs::read(path, name, strict))
}

// Steps in a file, by a plain typed parser: what the benchmark compares with.
#[extendr]
fn rs_eval_floor(path: &str) -> Robj {
    guard(|| floor::steps(path))
}

// The record of a line of a file of records, as its own text; NA where it is null.
#[extendr]
fn rs_line_record(line: &str) -> Robj {
    guard(|| {
        let line = canon::parse(line.as_bytes()).map_err(boxed)?;
        let record = line.get("trajectory").filter(|record| !record.is_null());
        Ok(match record {
            Some(record) => Rstr::from(canon::to_string(record)),
            None => Rstr::na(),
        })
    })
}

// The words and reasons of the core's verdict codes, from 0.
#[extendr]
fn rs_verdict_codes() -> Robj {
    guard(|| {
        let table = verdict::table();
        let (words, reasons): (Vec<&str>, Vec<&str>) = table.into_iter().unzip();
        Ok(list!(words = words, reasons = reasons))
    })
}

// Checks one record (JSON): its canonical text.
#[extendr]
fn rs_trajectory_check(text: &str) -> Robj {
    guard(|| {
        let refuse = |e| boxed(Refused::record(None, Problem::of(e, None, None)));
        Engine::record(text).map_err(refuse)?;
        Ok(canon::to_string(&data::value(text)))
    })
}

extendr_module! {
    mod evaluate;
    fn rs_eval_begin;
    fn rs_eval_texts;
    fn rs_eval_open;
    fn rs_eval_advance;
    fn rs_eval_finish;
    fn rs_eval_merge;
    fn rs_suite_check;
    fn rs_check_declaration;
    fn rs_trajectory_check;
    fn rs_read_outputs;
    fn rs_verdict_codes;
    fn rs_line_record;
    fn rs_eval_floor;
}
