//! An evaluation in progress: rows by case, filled as records are judged.

use super::data::Cases;
use super::engine::{Engine, Evidence, Found, Names, Part, Recorded, Scratch};
use super::file::Blocks;
use super::problem::{Problem, Refused};
use super::threads::{on_threads, threads};
use super::{boxed, Result};
use extendr_api::prelude::*;
use warrant_core::suite::Suite;
use warrant_core::tally::{NONE, NO_GROUP};

/// All of it.
pub(super) struct Evaluation {
    pub(super) engine: Engine,
    strictness: Strictness,
    /// The file as errors name it.
    pub(super) name: Option<String>,
    pub(super) blocks: Option<Blocks>,
    lines: u64,
    state: Vec<State>,
    /// The line that a case was first seen in, and the byte where it begins.
    pub(super) places: Vec<(u64, u64)>,
    pub(super) codes: Vec<u16>,
    pub(super) lengths: Vec<(u64, u64)>,
    /// By slice that reads trajectories.
    pub(super) groups: Vec<(Vec<u32>, Names)>,
    pub(super) evidence: Vec<Found>,
    pub(super) problems: Vec<Problem>,
}

/// What becomes of a record that cannot be used.
#[derive(Clone, Copy, PartialEq)]
enum Strictness {
    Refuse,
    SetAside,
}

/// What is known of a case so far.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Invalid,
    Judged,
    Several,
    Unseen,
}

impl Evaluation {
    pub(super) fn new(suite: Suite, columns: &List, evidence: bool, strict: bool) -> Result<Self> {
        let cases = Cases::new(columns, &suite)?;
        let n = cases.len();
        let slices = suite
            .slices
            .iter()
            .filter(|(_, slice)| slice.reads_trajectory());
        let slices = slices.count();
        let (criteria, reads_output) = (
            suite.criteria.len(),
            suite.criteria.iter().any(|e| e.criterion.reads_output()),
        );
        let evidence = if evidence {
            Evidence::Keep
        } else {
            Evidence::Drop
        };
        let kept = if evidence == Evidence::Keep {
            n * criteria
        } else {
            0
        };
        Ok(Self {
            engine: Engine {
                suite,
                cases,
                evidence,
                reads_output,
            },
            strictness: if strict {
                Strictness::Refuse
            } else {
                Strictness::SetAside
            },
            name: None,
            blocks: None,
            lines: 0,
            state: vec![State::Unseen; n],
            places: vec![(0, 0); n],
            codes: vec![0; n * criteria],
            lengths: vec![(NONE, NONE); n],
            groups: (0..slices)
                .map(|_| (vec![NO_GROUP; n], Names::default()))
                .collect(),
            evidence: vec![None; kept],
            problems: Vec::new(),
        })
    }

    /// Judges records that are in memory, of the cases from `from` up to `to`: texts,
    /// and the case of each.
    pub(super) fn texts(
        &mut self,
        (from, to): (usize, usize),
        owner: &[i32],
        texts: &[&str],
    ) -> Result<()> {
        let to = to.min(self.engine.cases.len());
        let mut records: Vec<Vec<&str>> = vec![Vec::new(); to.saturating_sub(from)];
        for (case, text) in owner.iter().zip(texts) {
            let place = (*case as usize).checked_sub(from);
            if let Some(list) = place.and_then(|p| records.get_mut(p)) {
                list.push(text);
            }
        }
        let threads = if records.len() < 2000 { 1 } else { threads() };
        let size = records.len().div_ceil(threads * 4).max(1);
        let parts: Vec<(usize, &[Vec<&str>])> = records
            .chunks(size)
            .enumerate()
            .map(|(i, part)| (from + i * size, part))
            .collect();
        let engine = &self.engine;
        let done = on_threads(
            &parts,
            threads,
            || (),
            |(first, part), scratch| {
                let mut rows = Part::default();
                for (position, texts) in part.iter().enumerate() {
                    in_memory(engine, first + position, texts, scratch, &mut rows);
                }
                rows
            },
        );
        for part in done.0 {
            self.merge(part, 0)?;
        }
        Ok(())
    }

    /// Takes over the rows of a part.
    pub(super) fn merge(&mut self, part: Part, offset: u64) -> Result<()> {
        let criteria = self.engine.suite.criteria.len();
        let numbers: Vec<Vec<u32>> = part
            .names
            .into_iter()
            .zip(&mut self.groups)
            .map(|(theirs, (_, ours))| {
                theirs
                    .names
                    .into_iter()
                    .map(|name| ours.number(name.into()))
                    .collect()
            })
            .collect();
        let mut problems = part.problems.into_iter().peekable();
        for (row, &case) in part.cases.iter().enumerate() {
            let (line, at) = part.places.get(row).copied().unwrap_or((0, 0));
            let before = |problem: &Problem| problem.line.is_some_and(|other| other < line);
            while let Some(problem) = problems.next_if(before) {
                self.set_aside(problem)?;
            }
            let case = case as usize;
            if self.state[case] != State::Unseen {
                self.repeated(case, line)?;
                continue;
            }
            self.state[case] = State::Judged;
            self.places[case] = (self.lines + line, offset + at);
            let codes = &part.codes[row * criteria..(row + 1) * criteria];
            self.codes[case * criteria..(case + 1) * criteria].copy_from_slice(codes);
            self.lengths[case] = part.lengths[row];
            for (slice, (groups, _)) in self.groups.iter_mut().enumerate() {
                let local = part.groups[row * numbers.len() + slice];
                groups[case] = numbers[slice]
                    .get(local as usize)
                    .copied()
                    .unwrap_or(NO_GROUP);
            }
            if self.engine.evidence == Evidence::Keep {
                let found = &part.evidence[row * criteria..(row + 1) * criteria];
                self.evidence[case * criteria..(case + 1) * criteria].clone_from_slice(found);
            }
        }
        for problem in problems {
            self.set_aside(problem)?;
        }
        self.lines += part.lines;
        Ok(())
    }

    fn set_aside(&mut self, mut problem: Problem) -> Result<()> {
        problem.line = problem.line.map(|line| self.lines + line);
        if self.strictness == Strictness::Refuse {
            return Err(boxed(Refused::record(self.name.as_deref(), problem)));
        }
        let case = problem
            .case_id
            .as_deref()
            .and_then(|id| self.engine.cases.position(id));
        if let Some(state) = case.and_then(|case| self.state.get_mut(case as usize)) {
            *state = match state {
                State::Unseen => State::Invalid,
                State::Invalid | State::Judged | State::Several => State::Several,
            };
        }
        self.problems.push(problem);
        Ok(())
    }

    fn repeated(&mut self, case: usize, line: u64) -> Result<()> {
        let id = self.engine.cases.id(case);
        let rule = match self.places[case].0 {
            0 => "a case must have one record in the file".to_owned(),
            first => format!("a case must have one record in the file: line {first} has one too"),
        };
        let mut problem = Problem::plain("duplicate_record", rule, Some(id));
        problem.line = Some(line);
        problem.pointer = "/case_id".to_owned();
        self.set_aside(problem)
    }

    /// Judges the cases without a record, which must be allowed to have none.
    pub(super) fn settle(&mut self) -> Result<()> {
        if let (Strictness::Refuse, Some(name)) = (self.strictness, &self.name) {
            let open = |case: &usize| {
                self.state[*case] == State::Unseen && self.engine.cases.status[*case] == 0
            };
            let open: Vec<usize> = (0..self.state.len()).filter(open).collect();
            if let Some(&first) = open.first() {
                let rule = format!(
                    "every case must have a line in the file; {} of {} have none",
                    open.len(),
                    self.state.len()
                );
                let id = Some(self.engine.cases.id(first));
                let problem = Problem::plain("no_record", rule, id);
                return Err(boxed(Refused::record(Some(name), problem)));
            }
        }
        let mut scratch = Scratch::default();
        let mut rows = Part::default();
        for case in 0..self.state.len() {
            let recorded = match self.state[case] {
                State::Judged => continue,
                State::Invalid => Recorded::Invalid,
                State::Several => Recorded::Several,
                State::Unseen => Recorded::Nothing,
            };
            self.engine
                .case(case as u32, recorded, &mut scratch, &mut rows);
            self.state[case] = State::Unseen;
        }
        self.merge(rows, 0)
    }
}

fn in_memory(engine: &Engine, case: usize, texts: &[&str], scratch: &mut Scratch, rows: &mut Part) {
    let mut records = Vec::with_capacity(texts.len());
    for text in texts {
        match Engine::record(text) {
            Ok(record) => records.push(record),
            Err(error) => {
                let id = Some(engine.cases.id(case));
                return rows.problems.push(Problem::of(error, None, id));
            }
        }
    }
    let recorded = match records.as_slice() {
        [] => Recorded::Nothing,
        [one] => Recorded::One(one),
        _ => Recorded::Several,
    };
    engine.case(case as u32, recorded, scratch, rows);
}
