//! What can be asked of a case: one criterion a file.
//!
//! Each criterion has the same shape: `parse` reads its fields, `judge` decides
//! (fast, no allocation that the answer does not need), `explain` gives the
//! evidence of a pass or a fail. Whether it applies to a case and which cases it
//! refuses is decided here, from what it refers to.

pub mod arguments;
pub mod trace;

mod constraints;
mod contains;
mod equals;
mod flow;
mod matching;
mod max_handoffs;
mod max_steps;
mod no_tool_loop;
mod no_undeclared_tool;
mod route;
mod tool_called;
mod tool_permissions;
mod tool_sequence;

use crate::case::Expected;
use crate::declare::{Error, Fields};
use crate::verdict::{Reason, Verdict};
use serde_json::{Map, Value};
use trace::Trace;

/// A criterion with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum Criterion {
    /// Recorded checks passed.
    Constraints(constraints::Constraints),
    /// The answer contains the expected text.
    Contains(contains::Contains),
    /// The answer equals the expected value.
    Equals(equals::Equals),
    /// After some tools, never some others.
    Flow(flow::Flow),
    /// Judged elsewhere: by a function of the caller.
    Function,
    /// At most so many transfers between agents.
    MaxHandoffs(max_handoffs::MaxHandoffs),
    /// At most so many steps.
    MaxSteps(max_steps::MaxSteps),
    /// No call repeated without end.
    NoToolLoop(no_tool_loop::NoToolLoop),
    /// No tool beyond the declared ones.
    NoUndeclaredTool,
    /// The declared route was taken.
    Route,
    /// A tool was called.
    ToolCalled(tool_called::ToolCalled),
    /// Each agent called only its own tools.
    ToolPermissions(tool_permissions::ToolPermissions),
    /// The declared tools were called.
    ToolSequence(tool_sequence::ToolSequence),
}

/// Why a verdict is what it is: fields, and the indexes of the steps it rests on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    /// What was found.
    pub fields: Map<String, Value>,
    /// Step indexes, from 1.
    pub steps: Vec<u64>,
}

impl Evidence {
    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(key.to_owned(), value.into());
        self
    }

    fn at(mut self, steps: impl IntoIterator<Item = u64>) -> Self {
        self.steps.extend(steps);
        self
    }
}

/// What the system gave as its answer.
#[derive(Debug, Clone, Copy)]
pub enum Output<'a> {
    /// No answer was kept.
    Absent,
    /// The answer.
    Is(&'a Value),
}

/// The type names, as configuration files write them.
pub const TYPES: [&str; 13] = [
    "agent_constraints_satisfied",
    "agent_flow",
    "agent_max_handoffs",
    "agent_max_steps",
    "agent_no_tool_loop",
    "agent_no_undeclared_tool",
    "agent_route",
    "agent_tool_called",
    "agent_tool_permissions",
    "agent_tool_sequence",
    "contains",
    "equals",
    "function",
];

impl Criterion {
    /// Reads the fields of a type.
    pub(crate) fn parse(kind: &str, fields: &mut Fields) -> Result<Self, Error> {
        Ok(match kind {
            "agent_constraints_satisfied" => {
                Self::Constraints(constraints::Constraints::parse(fields)?)
            }
            "agent_flow" => Self::Flow(flow::Flow::parse(fields)?),
            "agent_max_handoffs" => Self::MaxHandoffs(max_handoffs::MaxHandoffs::parse(fields)?),
            "agent_max_steps" => Self::MaxSteps(max_steps::MaxSteps::parse(fields)?),
            "agent_no_tool_loop" => Self::NoToolLoop(no_tool_loop::NoToolLoop::parse(fields)?),
            "agent_no_undeclared_tool" => Self::NoUndeclaredTool,
            "agent_route" => Self::Route,
            "agent_tool_called" => Self::ToolCalled(tool_called::ToolCalled::parse(fields)?),
            "agent_tool_permissions" => {
                Self::ToolPermissions(tool_permissions::ToolPermissions::parse(fields)?)
            }
            "agent_tool_sequence" => {
                Self::ToolSequence(tool_sequence::ToolSequence::parse(fields)?)
            }
            "contains" => Self::Contains(contains::Contains::parse(fields)?),
            "equals" => Self::Equals(equals::Equals::parse(fields)?),
            "function" => Self::Function,
            _ => {
                let rule = format!("unknown type; known are {}", TYPES.join(", "));
                return fields.refuse("type", rule);
            }
        })
    }

    /// The type name.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Constraints(_) => "agent_constraints_satisfied",
            Self::Contains(_) => "contains",
            Self::Equals(_) => "equals",
            Self::Flow(_) => "agent_flow",
            Self::Function => "function",
            Self::MaxHandoffs(_) => "agent_max_handoffs",
            Self::MaxSteps(_) => "agent_max_steps",
            Self::NoToolLoop(_) => "agent_no_tool_loop",
            Self::NoUndeclaredTool => "agent_no_undeclared_tool",
            Self::Route => "agent_route",
            Self::ToolCalled(_) => "agent_tool_called",
            Self::ToolPermissions(_) => "agent_tool_permissions",
            Self::ToolSequence(_) => "agent_tool_sequence",
        }
    }

    /// The name of a criterion that was given none.
    pub(crate) fn default_name(&self) -> Option<String> {
        match self {
            Self::Contains(_) | Self::Equals(_) | Self::Function => None,
            Self::MaxHandoffs(c) => Some(c.default_name()),
            Self::MaxSteps(c) => Some(c.default_name()),
            Self::ToolCalled(c) => Some(c.default_name()),
            Self::Constraints(_)
            | Self::Flow(_)
            | Self::NoToolLoop(_)
            | Self::NoUndeclaredTool
            | Self::Route
            | Self::ToolPermissions(_)
            | Self::ToolSequence(_) => Some(self.kind().to_owned()),
        }
    }

    /// Whether a null name means the default: where the default is derived from
    /// the parameters.
    pub(crate) fn null_name_is_default(&self) -> bool {
        matches!(
            self,
            Self::MaxHandoffs(_) | Self::MaxSteps(_) | Self::ToolCalled(_)
        )
    }

    /// The parameters, with their defaults.
    pub fn config(&self) -> Map<String, Value> {
        match self {
            Self::Constraints(c) => c.config(),
            Self::Contains(c) => c.config(),
            Self::Equals(c) => c.config(),
            Self::Flow(c) => c.config(),
            Self::MaxHandoffs(c) => c.config(),
            Self::MaxSteps(c) => c.config(),
            Self::NoToolLoop(c) => c.config(),
            Self::ToolCalled(c) => c.config(),
            Self::ToolPermissions(c) => c.config(),
            Self::ToolSequence(c) => c.config(),
            Self::Function | Self::NoUndeclaredTool | Self::Route => Map::new(),
        }
    }

    /// Whether it reads the trajectory.
    pub fn reads_trajectory(&self) -> bool {
        !matches!(self, Self::Contains(_) | Self::Equals(_) | Self::Function)
    }

    /// Whether it reads the answer.
    pub fn reads_output(&self) -> bool {
        matches!(self, Self::Contains(_) | Self::Equals(_))
    }

    /// Refuses a case whose declaration it cannot use.
    ///
    /// # Errors
    /// The rule that the declaration breaks.
    pub fn check_case(&self, expected: &Expected) -> Result<(), Error> {
        match self {
            Self::NoUndeclaredTool | Self::ToolSequence(_) => {
                expected.tools.check("/expected/tools")
            }
            Self::Route => expected.route.check("/expected/route"),
            Self::Contains(c) => c.check_case(&expected.value),
            _ => Ok(()),
        }
    }

    /// Why the criterion does not apply to a case, if it does not.
    pub fn excludes(&self, expected: &Expected) -> Option<Reason> {
        let (applies, reason) = match self {
            Self::NoUndeclaredTool | Self::ToolSequence(_) => {
                (expected.tools.get().is_some(), Reason::NoDeclaredTools)
            }
            Self::Route => (expected.route.get().is_some(), Reason::NoDeclaredRoute),
            Self::Contains(c) => (
                c.fields.expected(&expected.value).is_some(),
                Reason::NoExpected,
            ),
            Self::Equals(c) => (
                c.fields.expected(&expected.value).is_some(),
                Reason::NoExpected,
            ),
            Self::Constraints(_)
            | Self::Flow(_)
            | Self::Function
            | Self::MaxHandoffs(_)
            | Self::MaxSteps(_)
            | Self::NoToolLoop(_)
            | Self::ToolCalled(_)
            | Self::ToolPermissions(_) => return None,
        };
        (!applies).then_some(reason)
    }

    /// Judges the answer of a case to which it applies.
    pub fn judge_output(&self, expected: &Expected, output: Output<'_>) -> Verdict {
        match self {
            Self::Contains(c) => c.judge(&expected.value, output),
            Self::Equals(c) => c.judge(&expected.value, output),
            _ => Verdict::Missing(Reason::EvaluatorError),
        }
    }

    /// Judges the one trajectory of a case to which it applies.
    pub fn judge(&self, expected: &Expected, trace: &Trace<'_>) -> Verdict {
        let tools = || expected.tools.get().map_or(&[][..], Vec::as_slice);
        match self {
            Self::Constraints(c) => c.judge(trace),
            Self::Flow(c) => c.judge(trace),
            Self::MaxHandoffs(c) => c.judge(trace),
            Self::MaxSteps(c) => c.judge(trace),
            Self::NoToolLoop(c) => c.judge(trace),
            Self::NoUndeclaredTool => no_undeclared_tool::judge(tools(), trace),
            Self::Route => route::judge(expected.route.get().map_or(&[], Vec::as_slice), trace),
            Self::ToolCalled(c) => c.judge(trace),
            Self::ToolPermissions(c) => c.judge(trace),
            Self::ToolSequence(c) => c.judge(tools(), trace),
            Self::Contains(_) | Self::Equals(_) | Self::Function => {
                Verdict::Missing(Reason::EvaluatorError)
            }
        }
    }

    /// The evidence of a pass or a fail on a trajectory.
    pub fn explain(&self, expected: &Expected, trace: &Trace<'_>) -> Evidence {
        let tools = || expected.tools.get().map_or(&[][..], Vec::as_slice);
        match self {
            Self::Constraints(c) => c.explain(trace),
            Self::Flow(c) => c.explain(trace),
            Self::MaxHandoffs(c) => c.explain(trace),
            Self::MaxSteps(c) => c.explain(trace),
            Self::NoToolLoop(c) => c.explain(trace),
            Self::NoUndeclaredTool => no_undeclared_tool::explain(tools(), trace),
            Self::Route => route::explain(expected.route.get().map_or(&[], Vec::as_slice), trace),
            Self::ToolCalled(c) => c.explain(trace),
            Self::ToolPermissions(c) => c.explain(trace),
            Self::ToolSequence(c) => c.explain(tools(), trace),
            Self::Contains(_) | Self::Equals(_) | Self::Function => Evidence::default(),
        }
    }
}

fn config<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields
        .map(|(key, value)| (key.to_owned(), value))
        .into_iter()
        .collect()
}

/// The first position where two lists differ; the shorter length counts.
fn first_divergence<A, B>(a: &[A], b: &[B], same: impl Fn(&A, &B) -> bool) -> Option<usize> {
    let common = a.iter().zip(b).position(|(a, b)| !same(a, b));
    common.or((a.len() != b.len()).then_some(a.len().min(b.len())))
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::trajectory::Trajectory;

    /// A criterion from its declaration.
    pub(crate) fn criterion(declaration: Value) -> Criterion {
        let mut fields = Fields::new(&declaration, "").expect("an object");
        let kind = fields.required_name("type").expect("a type");
        let criterion = Criterion::parse(&kind, &mut fields).expect("a good declaration");
        fields.end().expect("no other field");
        criterion
    }

    /// A record in short: `a` a call of tool a, `-` a message, `x>y` a hand-over,
    /// `x:a` a call of a by agent x, `x:-` a message of x; `...` at the end marks a prefix.
    pub(crate) fn record(short: &str) -> String {
        let (steps, truncated) = match short.strip_suffix("...") {
            Some(steps) => (steps, true),
            None => (short, false),
        };
        let steps: Vec<String> = steps
            .split_whitespace()
            .enumerate()
            .map(|(i, word)| format!(r#"{{"index":{},{}}}"#, i + 1, step(word)))
            .collect();
        format!(
            r#"{{"steps":[{}],"truncated":{truncated}}}"#,
            steps.join(",")
        )
    }

    fn step(word: &str) -> String {
        if let Some((from, to)) = word.split_once('>') {
            return format!(r#""kind":"handoff","agent":"{from}","to_agent":"{to}""#);
        }
        let (agent, what) = match word.split_once(':') {
            Some((agent, what)) => (format!(r#""agent":"{agent}","#), what),
            None => (String::new(), word),
        };
        match what {
            "-" => format!(r#"{agent}"kind":"message""#),
            tool => format!(r#"{agent}"kind":"tool_call","tool_name":"{tool}""#),
        }
    }

    /// The verdict on a record, in a word or its reason.
    pub(crate) fn verdict(criterion: &Criterion, expected: Value, record: &str) -> &'static str {
        let expected = Expected::new(expected);
        criterion.check_case(&expected).expect("a usable case");
        let word = |verdict: Verdict| match verdict {
            Verdict::Missing(reason) | Verdict::Excluded(reason) => reason.code(),
            Verdict::Fail | Verdict::Pass => verdict.word(),
        };
        if let Some(reason) = criterion.excludes(&expected) {
            return reason.code();
        }
        let record = Trajectory::parse(record).expect("a valid record");
        word(criterion.judge(&expected, &Trace::new(&record)))
    }

    /// The evidence on a record.
    pub(crate) fn evidence(
        criterion: &Criterion,
        expected: Value,
        record: &str,
    ) -> (Value, Vec<u64>) {
        let record = Trajectory::parse(record).expect("a valid record");
        let found = criterion.explain(&Expected::new(expected), &Trace::new(&record));
        (Value::Object(found.fields), found.steps)
    }

    pub(crate) const TRUNCATED: &str = "truncated_trajectory";
}
