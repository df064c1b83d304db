//! From a case and what its system did to verdicts, counts and groups.

use crate::case::Expected;
use crate::criteria::trace::Trace;
use crate::criteria::{Criterion, Evidence, Output};
use crate::suite::{OnExecutionError, Suite};
use crate::verdict::{Reason, Verdict};
use std::borrow::Cow;

/// What became of the system on a case.
pub enum Answer<'a> {
    /// It answered.
    Answered {
        /// Its answer.
        output: Output<'a>,
        /// What it recorded.
        record: Record<'a>,
        /// Codes of [`Verdict::code`] or beyond, one for each criterion that is a
        /// function of the caller, in order.
        given: &'a [u16],
    },
    /// It raised an error.
    Errored,
    /// It was never asked.
    NotRun,
    /// It ran past its time limit.
    TimedOut,
}

/// What was recorded of a case.
pub enum Record<'a> {
    /// A record that breaks a rule and was set aside.
    Invalid,
    /// Nothing.
    Nothing,
    /// One trajectory.
    One(&'a Trace<'a>),
    /// More than one.
    Several,
}

/// What is known of one case: where its columns go.
pub trait Row {
    /// The code of the verdict of the next criterion.
    fn verdict(&mut self, code: u16);
    /// Steps and tool calls of a complete trajectory.
    fn lengths(&mut self, lengths: Option<(u64, u64)>);
    /// The group of the next slice that reads trajectories.
    fn group(&mut self, group: Option<Cow<'_, str>>);
}

impl Suite {
    /// Judges one case.
    pub fn judge(&self, expected: &Expected, answer: &Answer<'_>, row: &mut impl Row) {
        let mut function = 0;
        for evaluator in &self.criteria {
            let code = match (&evaluator.criterion, answer) {
                (Criterion::Function, Answer::Answered { given, .. }) => {
                    function += 1;
                    given.get(function - 1).copied()
                }
                _ => None,
            };
            row.verdict(code.unwrap_or_else(|| {
                verdict(
                    &evaluator.criterion,
                    evaluator.on_execution_error,
                    expected,
                    answer,
                )
                .code()
            }));
        }
        let trace = match answer {
            Answer::Answered {
                record: Record::One(trace),
                ..
            } => Some(*trace),
            _ => None,
        };
        let complete = trace.filter(|trace| !trace.truncated());
        row.lengths(complete.map(|trace| (trace.steps(), trace.calls().len() as u64)));
        for (_, slice) in self.slices.iter().filter(|(_, s)| s.reads_trajectory()) {
            row.group(trace.and_then(|trace| slice.of_trace(trace)));
        }
    }

    /// The evidence of each criterion that passed or failed on a trajectory.
    pub fn explain(&self, expected: &Expected, trace: &Trace<'_>) -> Vec<Option<Evidence>> {
        let explain = |criterion: &Criterion| {
            let decided = criterion.reads_trajectory()
                && criterion.excludes(expected).is_none()
                && matches!(
                    criterion.judge(expected, trace),
                    Verdict::Fail | Verdict::Pass
                );
            decided.then(|| criterion.explain(expected, trace))
        };
        self.criteria
            .iter()
            .map(|e| explain(&e.criterion))
            .collect()
    }
}

/// The order of reasons: not run, does not apply, no answer, no record, the
/// criterion itself.
fn verdict(
    criterion: &Criterion,
    on_error: OnExecutionError,
    expected: &Expected,
    answer: &Answer<'_>,
) -> Verdict {
    if matches!(answer, Answer::NotRun) {
        return Verdict::Missing(Reason::NotRun);
    }
    if let Some(reason) = criterion.excludes(expected) {
        return Verdict::Excluded(reason);
    }
    let no_answer = |reason| match on_error {
        OnExecutionError::Fail => Verdict::Fail,
        OnExecutionError::Missing => Verdict::Missing(reason),
    };
    match answer {
        Answer::NotRun => Verdict::Missing(Reason::NotRun),
        Answer::Errored => no_answer(Reason::SystemError),
        Answer::TimedOut => no_answer(Reason::SystemTimeout),
        Answer::Answered { output, .. } if !criterion.reads_trajectory() => {
            criterion.judge_output(expected, *output)
        }
        Answer::Answered { record, .. } => match record {
            Record::Invalid => Verdict::Missing(Reason::InvalidTrajectory),
            Record::Nothing => Verdict::Missing(Reason::NoTrajectory),
            Record::Several => Verdict::Missing(Reason::SeveralTrajectories),
            Record::One(trace) => criterion.judge(expected, trace),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criteria::testing::record;
    use crate::trajectory::Trajectory;
    use crate::verdict::table;
    use serde_json::{json, Value};

    #[derive(Default)]
    struct Words {
        verdicts: Vec<String>,
        lengths: Option<(u64, u64)>,
        groups: Vec<Option<String>>,
    }

    impl Row for Words {
        fn verdict(&mut self, code: u16) {
            let (word, reason) = table()[usize::from(code)];
            self.verdicts
                .push(if reason.is_empty() { word } else { reason }.to_owned());
        }
        fn lengths(&mut self, lengths: Option<(u64, u64)>) {
            self.lengths = lengths;
        }
        fn group(&mut self, group: Option<Cow<'_, str>>) {
            self.groups.push(group.map(Cow::into_owned));
        }
    }

    fn suite() -> Suite {
        Suite::parse(&json!({
            "evaluators": [
                {"type": "contains", "criterion": "answer"},
                {"type": "agent_route"},
                {"type": "agent_max_steps", "max_steps": 2, "on_execution_error": "fail"},
                {"type": "function", "criterion": "own"}
            ],
            "slices": ["first_tool", "metadata.k", "tool_calls:1"]
        }))
        .expect("a good suite")
    }

    fn judged(expected: Value, answer: &Answer<'_>) -> Words {
        let mut words = Words::default();
        suite().judge(&Expected::new(expected), answer, &mut words);
        words
    }

    #[test]
    fn the_first_reason_that_applies_decides() {
        let output = json!("yes");
        let answered = |record| Answer::Answered {
            output: Output::Is(&output),
            record,
            given: &[0],
        };
        for (expected, answer, want) in [
            (json!("y"), Answer::NotRun, ["not_run"; 4]),
            (json!(null), Answer::NotRun, ["not_run"; 4]),
            (
                json!(null),
                Answer::Errored,
                ["no_expected", "no_declared_route", "fail", "system_error"],
            ),
            (
                json!("y"),
                Answer::TimedOut,
                [
                    "system_timeout",
                    "no_declared_route",
                    "fail",
                    "system_timeout",
                ],
            ),
            (
                json!("y"),
                answered(Record::Nothing),
                ["pass", "no_declared_route", "no_trajectory", "pass"],
            ),
            (
                json!("n"),
                answered(Record::Several),
                ["fail", "no_declared_route", "several_trajectories", "pass"],
            ),
            (
                json!("n"),
                answered(Record::Invalid),
                ["fail", "no_declared_route", "invalid_trajectory", "pass"],
            ),
        ] {
            let words = judged(expected.clone(), &answer);
            assert_eq!(words.verdicts, want, "{expected}");
            assert_eq!((words.lengths, words.groups), (None, vec![None, None]));
        }
    }

    #[test]
    fn a_trajectory_gives_lengths_and_groups() {
        let output = json!("yes");
        for (steps, lengths, groups) in [
            ("- a b", Some((3, 2)), [Some("a"), Some("gt_1")]),
            ("- a ...", None, [Some("a"), None]),
        ] {
            let text = record(steps);
            let record = Trajectory::parse(&text).expect("valid");
            let trace = Trace::new(&record);
            let answer = Answer::Answered {
                output: Output::Is(&output),
                record: Record::One(&trace),
                given: &[1],
            };
            let words = judged(json!("y"), &answer);
            assert_eq!(words.lengths, lengths);
            assert_eq!(words.groups, groups.map(|g| g.map(str::to_owned)));
            assert_eq!(words.verdicts[3], "fail");
        }
    }
}
