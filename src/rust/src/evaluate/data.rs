//! What an evaluation holds of its cases: texts once, by position.

use super::problem::Refused;
use extendr_api::prelude::*;
use serde_json::Value;
use std::collections::HashMap;
use warrant_core::canon;
use warrant_core::case::Expected;
use warrant_core::error::Fault;
use warrant_core::suite::Suite;
use warrant_core::tally::NO_GROUP;

/// The cases and what their systems answered, by position.
pub(crate) struct Cases {
    index: HashMap<Box<str>, u32>,
    expected: Interned,
    pub(crate) outputs: Interned,
    /// 0 answered, 1 raised an error, 2 ran past its time, 3 never asked.
    pub(crate) status: Vec<i32>,
    /// Codes of the criteria that are R functions: all of a case together.
    pub(crate) given: Vec<u16>,
    /// For each slice by metadata: the group of each case, and the groups.
    pub(crate) metadata: Vec<(Vec<u32>, Vec<String>)>,
    pub(crate) items: Option<Vec<String>>,
    pub(crate) latency: Option<Vec<f64>>,
}

/// Texts, each kept once.
pub(crate) struct Interned {
    text: String,
    ends: Vec<usize>,
    index: Vec<u32>,
}

impl Cases {
    /// Takes the columns that R hands over, and refuses cases that the suite
    /// cannot use.
    pub(crate) fn new(columns: &List, suite: &Suite) -> Result<Self, Box<dyn Fault>> {
        let column = |name: &str| columns.iter().find(|(key, _)| *key == name).map(|(_, x)| x);
        let strings = |name| column(name).and_then(|x| Strings::try_from(x).ok());
        let ids = strings("id").unwrap_or_else(|| Strings::new(0));
        let mut index = HashMap::with_capacity(ids.len());
        for (position, id) in ids.iter().enumerate() {
            index.insert(Box::from(&**id), position as u32);
        }
        let integers = |name| column(name).and_then(|x| x.as_integer_vector());
        let cases = Self {
            index,
            expected: Interned::of(strings("expected")),
            outputs: Interned::of(strings("output")),
            status: integers("status").unwrap_or_else(|| vec![0; ids.len()]),
            given: integers("given")
                .unwrap_or_default()
                .iter()
                .map(|&c| c as u16)
                .collect(),
            metadata: groups(&Interned::of(strings("metadata")), suite, &ids)?,
            items: strings("group_id").map(|x| x.iter().map(|s| s.to_string()).collect()),
            latency: column("latency").and_then(|x| x.as_real_vector()),
        };
        cases.check(suite, &ids)?;
        Ok(cases)
    }

    pub(crate) fn len(&self) -> usize {
        self.status.len()
    }

    pub(crate) fn position(&self, id: &str) -> Option<u32> {
        self.index.get(id).copied()
    }

    /// The id of a case; slow, for messages.
    pub(crate) fn id(&self, case: usize) -> String {
        let found = self.index.iter().find(|(_, at)| **at as usize == case);
        found.map(|(id, _)| id.to_string()).unwrap_or_default()
    }

    /// What a case expects, and a number that equal texts share.
    pub(crate) fn expected(&self, case: usize) -> (u32, Expected) {
        let text = self.expected.get(case).unwrap_or("null");
        (self.expected.number(case), Expected::new(value(text)))
    }

    pub(crate) fn expected_number(&self, case: usize) -> u32 {
        self.expected.number(case)
    }

    fn check(&self, suite: &Suite, ids: &Strings) -> Result<(), Box<dyn Fault>> {
        for (number, text) in self.expected.unique() {
            let expected = Expected::new(value(text));
            for evaluator in &suite.criteria {
                if let Err(error) = evaluator.criterion.check_case(&expected) {
                    let case = self.expected.first(number);
                    return Err(Box::new(Refused::case(&ids.elt(case), error)));
                }
            }
        }
        Ok(())
    }
}

impl Interned {
    fn of(strings: Option<Strings>) -> Self {
        let strings = strings.unwrap_or_else(|| Strings::new(0));
        let mut known: HashMap<&str, u32> = HashMap::new();
        let mut interned = Self {
            text: String::new(),
            ends: Vec::new(),
            index: Vec::with_capacity(strings.len()),
        };
        for string in strings.as_slice() {
            if string.is_na() {
                interned.index.push(ABSENT);
                continue;
            }
            let number = *known.entry(string).or_insert_with(|| {
                interned.text.push_str(string);
                interned.ends.push(interned.text.len());
                interned.ends.len() as u32 - 1
            });
            interned.index.push(number);
        }
        interned
    }

    pub(crate) fn get(&self, case: usize) -> Option<&str> {
        match self.number(case) {
            ABSENT => None,
            number => self.entry(number as usize),
        }
    }

    fn number(&self, case: usize) -> u32 {
        self.index.get(case).copied().unwrap_or(ABSENT)
    }

    fn entry(&self, number: usize) -> Option<&str> {
        let start = if number == 0 {
            0
        } else {
            self.ends[number - 1]
        };
        self.text.get(start..*self.ends.get(number)?)
    }

    fn unique(&self) -> impl Iterator<Item = (u32, &str)> {
        (0..self.ends.len()).filter_map(|i| Some((i as u32, self.entry(i)?)))
    }

    fn first(&self, number: u32) -> usize {
        self.index.iter().position(|i| *i == number).unwrap_or(0)
    }
}

const ABSENT: u32 = u32::MAX;

/// The value of a JSON text that was checked when it was read.
pub(crate) fn value(text: &str) -> Value {
    canon::parse(text.as_bytes()).unwrap_or_default()
}

type Groups = Vec<(Vec<u32>, Vec<String>)>;

fn groups(metadata: &Interned, suite: &Suite, ids: &Strings) -> Result<Groups, Box<dyn Fault>> {
    let slices = suite
        .slices
        .iter()
        .filter(|(_, slice)| !slice.reads_trajectory());
    let slices: Vec<_> = slices.collect();
    if slices.is_empty() {
        return Ok(Vec::new());
    }
    let values: Vec<Value> = metadata.unique().map(|(_, text)| value(text)).collect();
    let mut all = Vec::new();
    for (_, slice) in slices {
        let mut names: Vec<String> = Vec::new();
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut of_value = Vec::with_capacity(values.len());
        for (number, value) in values.iter().enumerate() {
            let group = slice.of_case(value).map_err(|error| -> Box<dyn Fault> {
                let case = metadata.first(number as u32);
                Box::new(Refused::case(&ids.elt(case), error))
            })?;
            of_value.push(group.map_or(NO_GROUP, |group| {
                *numbers.entry(group).or_insert_with_key(|group| {
                    names.push(group.clone());
                    names.len() as u32 - 1
                })
            }));
        }
        let of_case = (0..ids.len()).map(|case| match metadata.number(case) {
            ABSENT => NO_GROUP,
            number => of_value[number as usize],
        });
        all.push((of_case.collect(), names));
    }
    Ok(all)
}
