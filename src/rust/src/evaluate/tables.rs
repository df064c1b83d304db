//! An evaluation as R data: columns, counts and the list of what was set aside.

use super::counts::{counts, no_nul};
use super::problem::Problem;
use super::{boxed, Evaluation, Result};
use extendr_api::prelude::*;
use warrant_core::error::Fault;
use warrant_core::suite::{Source, Suite};
use warrant_core::tally::{self, Columns, Tally, NONE};
use warrant_core::verdict;

/// Everything that R keeps.
pub(super) fn columns(evaluation: &Evaluation, further: Vec<(String, String)>) -> Result<List> {
    let engine = &evaluation.engine;
    let mut table: Vec<(String, String)> = verdict::table()
        .into_iter()
        .map(|(word, reason)| (word.to_owned(), reason.to_owned()))
        .collect();
    table.extend(further);
    let tally = count(evaluation, &table);
    let text = serde_json::to_string(&tally).map_err(|error| broken(&error))?;
    let (words, reasons): (Vec<String>, Vec<String>) = table.into_iter().unzip();
    let places = evaluation.places.iter();
    let offsets: Vec<f64> = match evaluation.name {
        Some(_) => places
            .map(|(line, at)| if *line == 0 { f64::NAN } else { *at as f64 })
            .collect(),
        None => Vec::new(),
    };
    Ok(list!(
        codes = by_column(evaluation),
        words = words,
        reasons = reasons,
        counts = counts(&engine.suite, &tally),
        tally = text,
        problems = problems(&evaluation.problems),
        offsets = offsets,
        evidence = evidence(evaluation)
    ))
}

/// The counts of several evaluations of one suite.
pub(super) fn merged(suite: &Suite, texts: &[&str]) -> Result<List> {
    let mut all = Tally::default();
    for text in texts {
        let tally: Tally = serde_json::from_str(text).map_err(|error| broken(&error))?;
        all.merge(tally).map_err(boxed)?;
    }
    let text = serde_json::to_string(&all).map_err(|error| broken(&error))?;
    Ok(list!(counts = counts(suite, &all), tally = text))
}

fn broken(error: &serde_json::Error) -> Box<dyn Fault> {
    boxed(tally::Error::Broken {
        what: error.to_string(),
    })
}

fn by_column(evaluation: &Evaluation) -> Vec<i32> {
    let criteria = evaluation.engine.suite.criteria.len();
    let rows = evaluation.codes.len() / criteria.max(1);
    let mut codes = Vec::with_capacity(evaluation.codes.len());
    for criterion in 0..criteria {
        let column = (0..rows).map(|row| i32::from(evaluation.codes[row * criteria + criterion]));
        codes.extend(column);
    }
    codes
}

fn count(evaluation: &Evaluation, table: &[(String, String)]) -> Tally {
    let suite = &evaluation.engine.suite;
    let cases = &evaluation.engine.cases;
    let values: Vec<Vec<u64>> = suite
        .metrics
        .iter()
        .map(|m| values(evaluation, m.source))
        .collect();
    let mut by_metadata = cases.metadata.iter();
    let mut by_trace = evaluation.groups.iter();
    let slices = suite.slices.iter().filter_map(|(_, slice)| {
        if slice.reads_trajectory() {
            let (groups, names) = by_trace.next()?;
            Some((groups.as_slice(), names.names.as_slice()))
        } else {
            let (groups, names) = by_metadata.next()?;
            Some((groups.as_slice(), names.as_slice()))
        }
    });
    Tally::of(&Columns {
        codes: &evaluation.codes,
        criteria: suite.criteria.len(),
        table,
        values: values.iter().map(Vec::as_slice).collect(),
        slices: slices.collect(),
        items: cases.items.as_deref(),
    })
}

/// The values of a quantile; the bits of a double stand for latencies.
fn values(evaluation: &Evaluation, source: Source) -> Vec<u64> {
    let lengths = evaluation.lengths.iter();
    match source {
        Source::AgentSteps => lengths.map(|(steps, _)| *steps).collect(),
        Source::AgentToolCalls => lengths.map(|(_, calls)| *calls).collect(),
        Source::LatencyMs => match &evaluation.engine.cases.latency {
            Some(latency) => latency
                .iter()
                .map(|ms| {
                    if *ms >= 0.0 {
                        (ms + 0.0).to_bits()
                    } else {
                        NONE
                    }
                })
                .collect(),
            None => vec![NONE; evaluation.lengths.len()],
        },
    }
}

pub(super) fn problems(problems: &[Problem]) -> List {
    let texts = |of: fn(&Problem) -> &str| -> Vec<String> {
        problems.iter().map(|problem| no_nul(of(problem))).collect()
    };
    let lines: Vec<f64> = problems
        .iter()
        .map(|p| p.line.map_or(f64::NAN, |line| line as f64))
        .collect();
    let ids: Strings = problems
        .iter()
        .map(|p| {
            p.case_id
                .as_deref()
                .map_or(Rstr::na(), |id| no_nul(id).into())
        })
        .collect();
    list!(
        line = lines,
        case_id = ids,
        pointer = texts(|p| &p.pointer),
        rule = texts(|p| &p.rule),
        error_kind = texts(|p| p.code)
    )
}

/// For each criterion the JSON text of each case and its steps; NULL where none
/// was kept.
fn evidence(evaluation: &Evaluation) -> Robj {
    let criteria = evaluation.engine.suite.criteria.len();
    if evaluation.evidence.is_empty() {
        return ().into();
    }
    let by_criterion = (0..criteria).map(|criterion| {
        let found = evaluation.evidence.iter().skip(criterion).step_by(criteria);
        let texts: Strings = found
            .clone()
            .map(|f| {
                f.as_ref()
                    .map_or(Rstr::na(), |(text, _)| Rstr::from(text.as_str()))
            })
            .collect();
        let steps = found.map(|f| {
            let steps = f.iter().flat_map(|(_, steps)| steps);
            Robj::from(steps.map(|s| *s as i32).collect::<Vec<i32>>())
        });
        let steps = List::from_values(steps.collect::<Vec<_>>());
        Robj::from(list!(text = texts, steps = steps))
    });
    List::from_values(by_criterion.collect::<Vec<_>>()).into()
}
