//! Counts as the columns of two data frames: rates and quantiles.

use extendr_api::prelude::*;
use warrant_core::suite::{Source, Suite};
use warrant_core::tally::{Cell, Tally};

/// Two lists of columns, which R makes data frames of.
pub(super) fn counts(suite: &Suite, tally: &Tally) -> List {
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
    let mut texts: [Vec<String>; 3] = Default::default();
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
            let row: [&str; 3] = [slice, value, &evaluator.name];
            push(&mut texts, row.map(no_nul));
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
    let mut texts: [Vec<String>; 4] = Default::default();
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
            let row: [&str; 4] = [slice, value, &metric.id, metric.source.word()];
            push(&mut texts, row.map(no_nul));
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

/// An R string ends at NUL, so a text for R has none.
pub(super) fn no_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
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
    let _ = vector.set_names(counts.keys().map(|reason| no_nul(reason)));
    vector
}
