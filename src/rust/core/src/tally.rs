//! Counts of verdicts and values, for the whole run and for each group of each
//! slice. Merging is exact, associative and commutative, so any split of the
//! cases gives the same counts.

use crate::error::{Fault, Kind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All counts of an evaluation: by position of the slice (0 is the whole run)
/// and group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Tally {
    cells: BTreeMap<usize, BTreeMap<String, Cell>>,
}

/// The counts of one group: a rate for each criterion, values for each quantile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// By criterion.
    pub rates: Vec<Rate>,
    /// By quantile metric.
    pub values: Vec<Values>,
}

/// The verdicts of a criterion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Rate {
    /// Each case is a unit.
    Cases(Trials),
    /// Repeated trials of an item are one unit, its group.
    Groups(BTreeMap<String, Trials>),
}

/// Counts of verdicts, by reason where there is one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[allow(missing_docs)]
pub struct Trials {
    pub passed: u64,
    pub failed: u64,
    pub missing: BTreeMap<String, u64>,
    pub excluded: BTreeMap<String, u64>,
}

/// Observed values and how often each occurs; values are counts, or the bits of
/// a double that is not negative (whose order is the order of its bits).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[allow(missing_docs)]
pub struct Values {
    pub missing: u64,
    pub observed: BTreeMap<u64, u64>,
}

/// The counts of units: cases, or groups of trials.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Units {
    /// By verdict and reason.
    pub counts: Trials,
    /// The share of passing trials of each observed group, ascending; nothing
    /// when each case is a unit.
    pub shares: Option<Vec<f64>>,
}

/// The columns that are counted: one entry a case.
pub struct Columns<'a> {
    /// Verdict codes, all criteria of a case together.
    pub codes: &'a [u16],
    /// How many criteria.
    pub criteria: usize,
    /// What each code stands for: word and reason.
    pub table: &'a [(String, String)],
    /// For each quantile metric the value of each case, [`NONE`] where missing.
    pub values: Vec<&'a [u64]>,
    /// For each slice the group of each case, [`NO_GROUP`] where it is in none,
    /// and the groups.
    pub slices: Vec<(&'a [u32], &'a [String])>,
    /// The item of each case, where cases are trials.
    pub items: Option<&'a [String]>,
}

/// No value.
pub const NONE: u64 = u64::MAX;
/// No group.
pub const NO_GROUP: u32 = u32::MAX;

impl Tally {
    /// Counts the cases.
    pub fn of(columns: &Columns<'_>) -> Self {
        let mut tally = Tally::default();
        let cases = columns.codes.len() / columns.criteria.max(1);
        let whole = Counter::count(columns, 1, |_| 0, cases);
        tally.insert(0, &[String::new()], whole);
        for (position, (groups, names)) in columns.slices.iter().enumerate() {
            let counters = Counter::count(columns, names.len(), |case| groups[case], cases);
            tally.insert(position + 1, names, counters);
        }
        tally
    }

    /// Adds the counts of other cases of the same suite.
    ///
    /// # Errors
    /// [`Error`] when the other counts are of another suite.
    pub fn merge(&mut self, other: Tally) -> Result<(), Error> {
        for (slice, groups) in other.cells {
            let ours = self.cells.entry(slice).or_default();
            for (group, cell) in groups {
                match ours.get_mut(&group) {
                    Some(mine) => mine.merge(cell)?,
                    None => {
                        ours.insert(group, cell);
                    }
                }
            }
        }
        Ok(())
    }

    /// The groups of a slice that occur, in code-point order; the whole run is
    /// slice 0.
    pub fn groups(&self, slice: usize) -> impl Iterator<Item = (&str, &Cell)> {
        let groups = self.cells.get(&slice).into_iter().flatten();
        groups.map(|(group, cell)| (group.as_str(), cell))
    }

    fn insert(&mut self, slice: usize, names: &[String], counters: Vec<Option<Cell>>) {
        let cells = names.iter().cloned().zip(counters);
        let cells = cells.filter_map(|(name, cell)| Some((name, cell?)));
        self.cells.insert(slice, cells.collect());
    }
}

impl Cell {
    fn merge(&mut self, other: Cell) -> Result<(), Error> {
        if self.rates.len() != other.rates.len() || self.values.len() != other.values.len() {
            return Err(Error::OtherSuite);
        }
        for (mine, theirs) in self.rates.iter_mut().zip(other.rates) {
            mine.merge(theirs)?;
        }
        for (mine, theirs) in self.values.iter_mut().zip(other.values) {
            mine.missing += theirs.missing;
            add(&mut mine.observed, theirs.observed);
        }
        Ok(())
    }
}

impl Rate {
    fn merge(&mut self, other: Rate) -> Result<(), Error> {
        match (self, other) {
            (Rate::Cases(mine), Rate::Cases(theirs)) => mine.add(theirs),
            (Rate::Groups(mine), Rate::Groups(theirs)) => {
                for (group, trials) in theirs {
                    mine.entry(group).or_default().add(trials);
                }
            }
            _ => return Err(Error::OtherSuite),
        }
        Ok(())
    }

    /// The counts of units. A group with a missing trial is missing; one whose
    /// trials are all excluded is excluded.
    pub fn units(&self) -> Units {
        let groups = match self {
            Rate::Cases(trials) => {
                return Units {
                    counts: trials.clone(),
                    shares: None,
                }
            }
            Rate::Groups(groups) => groups,
        };
        let mut counts = Trials::default();
        let mut shares = Vec::new();
        for trials in groups.values() {
            let observed = trials.passed + trials.failed;
            if let Some(reason) = main_reason(&trials.missing) {
                *counts.missing.entry(reason).or_default() += 1;
            } else if observed > 0 {
                shares.push(trials.passed as f64 / observed as f64);
                counts.passed += u64::from(trials.failed == 0);
                counts.failed += u64::from(trials.failed > 0);
            } else if let Some(reason) = main_reason(&trials.excluded) {
                *counts.excluded.entry(reason).or_default() += 1;
            }
        }
        shares.sort_by(f64::total_cmp);
        Units {
            counts,
            shares: Some(shares),
        }
    }
}

impl Trials {
    fn add(&mut self, other: Trials) {
        self.passed += other.passed;
        self.failed += other.failed;
        add(&mut self.missing, other.missing);
        add(&mut self.excluded, other.excluded);
    }

    fn count(&mut self, (word, reason): &(String, String), times: u64) {
        match word.as_str() {
            "pass" => self.passed += times,
            "fail" => self.failed += times,
            "excluded" => *self.excluded.entry(reason.clone()).or_default() += times,
            _ => *self.missing.entry(reason.clone()).or_default() += times,
        }
    }
}

/// The most frequent reason, the first of equals.
fn main_reason(reasons: &BTreeMap<String, u64>) -> Option<String> {
    let most = reasons.values().max()?;
    let first = reasons.iter().find(|(_, count)| *count == most);
    first.map(|(reason, _)| reason.clone())
}

fn add<K: Ord>(mine: &mut BTreeMap<K, u64>, theirs: BTreeMap<K, u64>) {
    for (key, count) in theirs {
        *mine.entry(key).or_default() += count;
    }
}

/// What is counted of one group before it is given names.
#[derive(Clone)]
struct Counter {
    /// By criterion and code, for the codes that are frequent; the others stand
    /// in `rare`.
    frequent: Vec<[u64; 2]>,
    rare: BTreeMap<(usize, u16), u64>,
    groups: Vec<BTreeMap<String, Trials>>,
    values: Vec<Values>,
}

impl Counter {
    fn new(columns: &Columns<'_>) -> Self {
        Self {
            frequent: vec![[0; 2]; columns.criteria],
            rare: BTreeMap::new(),
            groups: vec![
                BTreeMap::new();
                if columns.items.is_some() {
                    columns.criteria
                } else {
                    0
                }
            ],
            values: vec![Values::default(); columns.values.len()],
        }
    }

    fn count(
        columns: &Columns<'_>,
        groups: usize,
        group: impl Fn(usize) -> u32,
        cases: usize,
    ) -> Vec<Option<Cell>> {
        let mut counters: Vec<Option<Counter>> = vec![None; groups];
        for case in 0..cases {
            if let Some(counter) = counters.get_mut(group(case) as usize) {
                let counter = counter.get_or_insert_with(|| Counter::new(columns));
                counter.add(case, columns);
            }
        }
        let cell = |counter: Option<Counter>| counter.map(|counter| counter.into_cell(columns));
        let mut cells: Vec<Option<Cell>> = counters.into_iter().map(cell).collect();
        // The whole run exists without a case too.
        if columns.codes.is_empty() && groups == 1 {
            cells = vec![Some(Counter::new(columns).into_cell(columns))];
        }
        cells
    }

    fn add(&mut self, case: usize, columns: &Columns<'_>) {
        let codes = &columns.codes[case * columns.criteria..(case + 1) * columns.criteria];
        for (criterion, &code) in codes.iter().enumerate() {
            if let Some(items) = columns.items {
                let meaning = &columns.table[usize::from(code)];
                let trials = self.groups[criterion]
                    .entry(items[case].clone())
                    .or_default();
                trials.count(meaning, 1);
            } else if code < 2 {
                self.frequent[criterion][usize::from(code)] += 1;
            } else {
                *self.rare.entry((criterion, code)).or_default() += 1;
            }
        }
        for (values, column) in self.values.iter_mut().zip(&columns.values) {
            match column[case] {
                NONE => values.missing += 1,
                value => *values.observed.entry(value).or_default() += 1,
            }
        }
    }

    fn into_cell(self, columns: &Columns<'_>) -> Cell {
        if columns.items.is_some() {
            return Cell {
                rates: self.groups.into_iter().map(Rate::Groups).collect(),
                values: self.values,
            };
        }
        let mut trials: Vec<Trials> = self
            .frequent
            .iter()
            .map(|[passed, failed]| Trials {
                passed: *passed,
                failed: *failed,
                ..Trials::default()
            })
            .collect();
        for ((criterion, code), times) in self.rare {
            trials[criterion].count(&columns.table[usize::from(code)], times);
        }
        Cell {
            rates: trials.into_iter().map(Rate::Cases).collect(),
            values: self.values,
        }
    }
}

/// Why counts cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a tally.
    #[error("the counts of this evaluation cannot be read: {what}")]
    Broken {
        /// What the reader found.
        what: String,
    },
    /// The counts are of different suites.
    #[error("evaluations can be combined only when they are of one suite")]
    OtherSuite,
}

impl Fault for Error {
    fn code(&self) -> &'static str {
        match self {
            Error::Broken { .. } => "broken_counts",
            Error::OtherSuite => "other_suite",
        }
    }

    fn kind(&self) -> Kind {
        Kind::Suite
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table() -> Vec<(String, String)> {
        [
            ("pass", ""),
            ("fail", ""),
            ("missing", "m"),
            ("excluded", "x"),
            ("missing", "n"),
        ]
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .into()
    }

    /// Cases: codes of two criteria, a value, a group.
    type Case = ((u16, u16), u64, u32, u8);

    fn tally(cases: &[Case], grouped: bool) -> Tally {
        let codes: Vec<u16> = cases.iter().flat_map(|c| [c.0 .0, c.0 .1]).collect();
        let values: Vec<u64> = cases
            .iter()
            .map(|c| if c.1 == 9 { NONE } else { c.1 })
            .collect();
        let groups: Vec<u32> = cases
            .iter()
            .map(|c| if c.2 == 3 { NO_GROUP } else { c.2 })
            .collect();
        let items: Vec<String> = cases.iter().map(|c| c.3.to_string()).collect();
        let names = ["b", "a", "c"].map(str::to_owned);
        Tally::of(&Columns {
            codes: &codes,
            criteria: 2,
            table: &table(),
            values: vec![&values],
            slices: vec![(&groups, &names)],
            items: grouped.then_some(&items),
        })
    }

    #[test]
    fn every_case_is_counted_once_in_each_place() {
        let tally = tally(
            &[((0, 1), 4, 0, 0), ((2, 3), 9, 3, 0), ((0, 2), 4, 1, 0)],
            false,
        );
        let (name, whole) = tally.groups(0).next().expect("the whole run");
        assert_eq!(name, "");
        let counts = whole.rates[0].units().counts;
        assert_eq!(
            (counts.passed, counts.failed, counts.missing["m"]),
            (2, 0, 1)
        );
        let counts = whole.rates[1].units().counts;
        assert_eq!(
            (counts.failed, counts.missing["m"], counts.excluded["x"]),
            (1, 1, 1)
        );
        assert_eq!(
            (whole.values[0].missing, whole.values[0].observed[&4]),
            (1, 2)
        );
        let groups: Vec<&str> = tally.groups(1).map(|(name, _)| name).collect();
        assert_eq!(groups, ["a", "b"]);
    }

    #[test]
    fn no_cases_are_counted_as_none() {
        let tally = tally(&[], false);
        let (_, whole) = tally.groups(0).next().expect("the whole run");
        assert_eq!(whole.rates[0].units().counts, Trials::default());
        assert_eq!(tally.groups(1).count(), 0);
    }

    #[test]
    fn trials_of_one_item_are_one_unit() {
        // Item 0: pass, fail. Item 1: pass, missing. Item 2: excluded. Item 3: pass.
        let cases = [
            ((0, 0), 1, 3, 0),
            ((1, 0), 1, 3, 0),
            ((0, 0), 1, 3, 1),
            ((2, 0), 1, 3, 1),
            ((3, 0), 1, 3, 2),
            ((0, 0), 1, 3, 3),
        ];
        let tally = tally(&cases, true);
        let units = tally.groups(0).next().expect("the whole run").1.rates[0].units();
        assert_eq!(units.shares, Some(vec![0.5, 1.0]));
        assert_eq!((units.counts.passed, units.counts.failed), (1, 1));
        assert_eq!(
            (units.counts.missing["m"], units.counts.excluded["x"]),
            (1, 1)
        );
    }

    fn cases() -> impl Strategy<Value = Vec<Case>> {
        prop::collection::vec(((0u16..5, 0u16..5), 0u64..10, 0u32..4, 0u8..4), 0..30)
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_counts(
            cases in cases(), marks in prop::collection::vec(0usize..3, 30), grouped in any::<bool>()
        ) {
            let mut parts = [Vec::new(), Vec::new(), Vec::new()];
            for (case, mark) in cases.iter().zip(marks) {
                parts[mark].push(*case);
            }
            let [a, b, c] = parts.map(|part| tally(&part, grouped));
            let whole = tally(&cases, grouped);
            let mut left = a.clone();
            left.merge(b.clone())?;
            left.merge(c.clone())?;
            let mut right = c;
            right.merge(b)?;
            right.merge(a)?;
            prop_assert_eq!(&left, &whole);
            prop_assert_eq!(&right, &whole);
            let text = serde_json::to_string(&whole).expect("plain data");
            prop_assert_eq!(serde_json::from_str::<Tally>(&text).expect("its own text"), whole);
        }
    }
}
