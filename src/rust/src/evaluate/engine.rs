//! Judging records on several threads: each part of a block gives rows, which
//! are merged in the order of the file.

use super::data::{value, Cases};
use super::problem::Problem;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;
use warrant_core::canon;
use warrant_core::case::Expected;
use warrant_core::criteria::trace::Trace;
use warrant_core::criteria::Output;
use warrant_core::judge::{Answer, Record, Row};
use warrant_core::suite::Suite;
use warrant_core::tally::{NONE, NO_GROUP};
use warrant_core::trajectory::{Error, Line, Trajectory};

/// What all threads read.
pub(crate) struct Engine {
    pub(crate) suite: Suite,
    pub(crate) cases: Cases,
    pub(crate) evidence: Evidence,
    pub(crate) reads_output: bool,
}

/// Whether evidence is kept.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Evidence {
    Drop,
    Keep,
}

/// What one criterion rests on: JSON text and step indexes.
pub(crate) type Found = Option<(String, Vec<u64>)>;

/// Rows of some cases, and the records that were set aside.
#[derive(Default)]
pub(crate) struct Part {
    pub(crate) cases: Vec<u32>,
    /// Line in the part and byte position in it, for each case.
    pub(crate) places: Vec<(u64, u64)>,
    pub(crate) codes: Vec<u16>,
    pub(crate) lengths: Vec<(u64, u64)>,
    pub(crate) groups: Vec<u32>,
    pub(crate) names: Vec<Names>,
    pub(crate) evidence: Vec<Found>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) lines: u64,
    slice: usize,
}

/// Groups by number.
#[derive(Default)]
pub(crate) struct Names {
    numbers: HashMap<String, u32>,
    pub(crate) names: Vec<String>,
}

impl Names {
    pub(crate) fn number(&mut self, name: Cow<'_, str>) -> u32 {
        if let Some(number) = self.numbers.get(&*name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.clone().into_owned());
        self.numbers.insert(name.into_owned(), number);
        number
    }
}

impl Row for Part {
    fn verdict(&mut self, code: u16) {
        self.codes.push(code);
    }

    fn lengths(&mut self, lengths: Option<(u64, u64)>) {
        self.lengths.push(lengths.unwrap_or((NONE, NONE)));
        self.slice = 0;
    }

    fn group(&mut self, group: Option<Cow<'_, str>>) {
        if self.names.len() <= self.slice {
            self.names.resize_with(self.slice + 1, Names::default);
        }
        let names = &mut self.names[self.slice];
        self.groups
            .push(group.map_or(NO_GROUP, |group| names.number(group)));
        self.slice += 1;
    }
}

/// What was recorded of a case, before it is looked at.
pub(crate) enum Recorded<'a> {
    Invalid,
    Nothing,
    One(&'a Trajectory<'a>),
    Several,
}

/// What a thread keeps between cases.
#[derive(Default)]
pub(crate) struct Scratch {
    expected: HashMap<u32, Rc<Expected>>,
}

impl Engine {
    /// Judges the lines of a part of a file.
    pub(crate) fn lines(&self, bytes: &[u8], scratch: &mut Scratch) -> Part {
        let mut part = Part::default();
        let mut offset = 0;
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            part.lines += 1;
            self.line(line, offset, scratch, &mut part);
            offset += line.len() as u64;
        }
        part
    }

    fn line(&self, line: &[u8], offset: u64, scratch: &mut Scratch, part: &mut Part) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let number = Some(part.lines);
        let Ok(text) = std::str::from_utf8(line) else {
            let rule = "text must be encoded as UTF-8".to_owned();
            let mut problem = Problem::plain("not_utf8", rule, None);
            problem.line = number;
            part.problems.push(problem);
            return;
        };
        let line = match Line::parse(text) {
            Ok(line) => line,
            Err((error, id)) => return part.problems.push(Problem::of(error, number, id)),
        };
        let Some(case) = self.cases.position(&line.case_id) else {
            let rule = "the case must be one of the suite".to_owned();
            let id = Some(line.case_id.clone().into_owned());
            let mut problem = Problem::plain("unknown_case", rule, id);
            problem.line = number;
            problem.pointer = "/case_id".to_owned();
            return part.problems.push(problem);
        };
        part.places.push((part.lines, offset));
        let record = line.trajectory.as_ref();
        self.case(
            case,
            record.map_or(Recorded::Nothing, Recorded::One),
            scratch,
            part,
        );
    }

    /// Reads one record that stands alone.
    pub(crate) fn record(text: &str) -> Result<Trajectory<'_>, Error> {
        Trajectory::parse(text)
    }

    /// Judges one case.
    pub(crate) fn case(
        &self,
        case: u32,
        recorded: Recorded<'_>,
        scratch: &mut Scratch,
        part: &mut Part,
    ) {
        let at = case as usize;
        part.cases.push(case);
        let expected = scratch.expected(&self.cases, at);
        let output = if self.reads_output {
            self.cases.outputs.get(at).map(value)
        } else {
            None
        };
        let trace = match recorded {
            Recorded::One(record) => Some(Trace::new(record)),
            Recorded::Invalid | Recorded::Nothing | Recorded::Several => None,
        };
        let answer = self.answer(at, output.as_ref(), &recorded, trace.as_ref());
        self.suite.judge(&expected, &answer, part);
        if self.evidence == Evidence::Keep {
            let answered = matches!(answer, Answer::Answered { .. });
            self.explain(&expected, trace.as_ref().filter(|_| answered), part);
        }
    }

    fn answer<'a>(
        &'a self,
        case: usize,
        output: Option<&'a Value>,
        recorded: &Recorded<'_>,
        trace: Option<&'a Trace<'a>>,
    ) -> Answer<'a> {
        let functions = self.cases.given.len() / self.cases.len().max(1);
        match self.cases.status.get(case) {
            Some(0) => Answer::Answered {
                output: output.map_or(Output::Absent, Output::Is),
                record: match (trace, recorded) {
                    (Some(trace), _) => Record::One(trace),
                    (None, Recorded::Invalid) => Record::Invalid,
                    (None, Recorded::Several) => Record::Several,
                    (None, Recorded::Nothing | Recorded::One(_)) => Record::Nothing,
                },
                given: &self.cases.given[case * functions..(case + 1) * functions],
            },
            Some(1) => Answer::Errored,
            Some(2) => Answer::TimedOut,
            _ => Answer::NotRun,
        }
    }

    fn explain(&self, expected: &Expected, trace: Option<&Trace<'_>>, part: &mut Part) {
        let Some(trace) = trace else {
            part.evidence
                .extend(self.suite.criteria.iter().map(|_| None));
            return;
        };
        let found = self.suite.explain(expected, trace).into_iter();
        part.evidence.extend(found.map(|evidence| {
            let evidence = evidence?;
            let text = canon::to_string(&Value::Object(evidence.fields));
            Some((text, evidence.steps))
        }));
    }
}

impl Scratch {
    /// What a case expects, read once for equal texts that come close together.
    fn expected(&mut self, cases: &Cases, case: usize) -> Rc<Expected> {
        let number = cases.expected_number(case);
        if let Some(known) = self.expected.get(&number) {
            return Rc::clone(known);
        }
        if self.expected.len() >= 1024 {
            self.expected.clear();
        }
        let (number, expected) = cases.expected(case);
        let expected = Rc::new(expected);
        self.expected.insert(number, Rc::clone(&expected));
        expected
    }
}
