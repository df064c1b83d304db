//! An evaluation as R data: columns, counts and the list of what was set aside.

use super::problem::Problem;
use super::{boxed, Evaluation, Result};
use extendr_api::prelude::*;
use warrant_core::error::Fault;
use warrant_core::suite::{Source, Suite};
use warrant_core::tally::{self, Cell, Columns, Tally, NONE};
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

/// Two lists of columns, which R makes data frames of.
fn counts(suite: &Suite, tally: &Tally) -> List {
    let mut cells: Vec<(&str, &str, &Cell)> = Vec::new();
    cells.extend(tally.groups(0).map(|(_, cell)| ("", "", cell)));
    for (position, (name, slice)) in suite.slices.iter().enumerate() {
        let mut groups: Vec<_> = tally.groups(position + 1).collect();
        groups.sort_by_key(|(group, _)| slice.rank(group));
        cells.extend(
            groups
                .into_iter()
                .map(|(group, cell)| (name.as_str(), group, cell)),
        );
    }
    list!(
        rates = rates(suite, &cells),
        quantiles = quantiles(suite, &cells)
    )
}

fn rates(suite: &Suite, cells: &[(&str, &str, &Cell)]) -> List {
    let mut texts: [Vec<&str>; 3] = Default::default();
    let mut numbers: [Vec<f64>; 5] = Default::default();
    let mut maps: [Vec<Robj>; 2] = Default::default();
    let mut shares: Vec<Robj> = Vec::new();
    for (slice, value, cell) in cells {
        for (evaluator, rate) in suite.criteria.iter().zip(&cell.rates) {
            let units = rate.units();
            let counts = &units.counts;
            let missing: u64 = counts.missing.values().sum();
            let excluded: u64 = counts.excluded.values().sum();
            let total = counts.passed + counts.failed + missing + excluded;
            push(&mut texts, [slice, value, &evaluator.name]);
            let row = [total, counts.passed, counts.failed, missing, excluded];
            push(&mut numbers, row.map(|n| n as f64));
            push(&mut maps, [named(&counts.missing), named(&counts.excluded)]);
            shares.extend(units.shares.map(Robj::from));
        }
    }
    let [slice, value, criterion] = texts;
    let [n_total, n_passed, n_failed, n_missing, n_excluded] = numbers;
    let [missing_reasons, exclusions] = maps;
    list!(
        slice = slice,
        value = value,
        criterion = criterion,
        n_total = n_total,
        n_passed = n_passed,
        n_failed = n_failed,
        n_missing = n_missing,
        n_excluded = n_excluded,
        missing_reasons = List::from_values(missing_reasons),
        exclusions = List::from_values(exclusions),
        shares = List::from_values(shares)
    )
}

fn quantiles(suite: &Suite, cells: &[(&str, &str, &Cell)]) -> List {
    let mut texts: [Vec<&str>; 4] = Default::default();
    let mut numbers: [Vec<f64>; 3] = Default::default();
    let mut lists: [Vec<Robj>; 2] = Default::default();
    for (slice, value, cell) in cells {
        for (metric, values) in suite.metrics.iter().zip(&cell.values) {
            let observed: u64 = values.observed.values().sum();
            // Checked to be a number when the suite was read.
            let quantile = metric.quantile.parse::<f64>().unwrap_or(f64::NAN);
            let value_of = |bits: &u64| match metric.source {
                Source::AgentSteps | Source::AgentToolCalls => *bits as f64,
                Source::LatencyMs => f64::from_bits(*bits),
            };
            push(&mut texts, [slice, value, &metric.id, metric.source.word()]);
            let total = (observed + values.missing) as f64;
            push(&mut numbers, [quantile, total, values.missing as f64]);
            let distinct: Vec<f64> = values.observed.keys().map(value_of).collect();
            let times: Vec<f64> = values.observed.values().map(|n| *n as f64).collect();
            push(&mut lists, [distinct.into(), times.into()]);
        }
    }
    let [slice, value, metric, source] = texts;
    let [quantile, n_total, n_missing] = numbers;
    let [values, counts] = lists;
    list!(
        slice = slice,
        value = value,
        metric = metric,
        source = source,
        quantile = quantile,
        n_total = n_total,
        n_missing = n_missing,
        values = List::from_values(values),
        counts = List::from_values(counts)
    )
}

fn push<T, const N: usize>(columns: &mut [Vec<T>; N], row: [T; N]) {
    for (column, value) in columns.iter_mut().zip(row) {
        column.push(value);
    }
}

/// Counts by reason as a named vector.
fn named(counts: &std::collections::BTreeMap<String, u64>) -> Robj {
    let values: Vec<i32> = counts
        .values()
        .map(|n| i32::try_from(*n).unwrap_or(i32::MAX))
        .collect();
    let mut vector = Robj::from(values);
    let _ = vector.set_names(counts.keys());
    vector
}

pub(super) fn problems(problems: &[Problem]) -> List {
    let lines: Vec<f64> = problems
        .iter()
        .map(|p| p.line.map_or(f64::NAN, |line| line as f64))
        .collect();
    let ids: Strings = problems
        .iter()
        .map(|p| p.case_id.as_deref().map_or(Rstr::na(), Rstr::from))
        .collect();
    list!(
        line = lines,
        case_id = ids,
        pointer = problems
            .iter()
            .map(|p| p.pointer.as_str())
            .collect::<Vec<_>>(),
        rule = problems.iter().map(|p| p.rule.as_str()).collect::<Vec<_>>(),
        error_kind = problems.iter().map(|p| p.code).collect::<Vec<_>>()
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
