//! What every error of the core can say of itself.

use serde_json::{Map, Value};

/// The family of an error: the class that follows `warrant_error_` in R.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An approval that does not hold.
    Approval,
    /// Arguments of a call.
    Arguments,
    /// A trail that cannot be read or continued.
    Audit,
    /// A value handed in by the caller.
    Input,
    /// A model that cannot be asked, or an answer that cannot be used.
    Model,
    /// A JSON Schema that cannot be used.
    Schema,
    /// A secret that is not where it should be.
    Secret,
    /// A run, tool or handle in the wrong state.
    State,
    /// A store that cannot be read or written.
    Store,
    /// A suite, criterion, metric, slice or rule.
    Suite,
    /// A trajectory record.
    Trajectory,
}

impl Kind {
    /// The word used in the class name.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Approval => "approval",
            Kind::Arguments => "arguments",
            Kind::Audit => "audit",
            Kind::Input => "input",
            Kind::Model => "model",
            Kind::Schema => "schema",
            Kind::Secret => "secret",
            Kind::State => "state",
            Kind::Store => "store",
            Kind::Suite => "suite",
            Kind::Trajectory => "trajectory",
        }
    }
}

/// An error that crosses the boundary as data: a stable code, its family, the
/// facts as fields, and one sentence (`Display`).
pub trait Fault: std::error::Error {
    /// A stable snake_case code, spelled once.
    fn code(&self) -> &'static str;
    /// The family.
    fn kind(&self) -> Kind;
    /// The facts, so that nobody has to parse the sentence.
    fn facts(&self) -> Map<String, Value> {
        Map::new()
    }
}

/// Something that was read and breaks a rule: which, where, and in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The rule, as a stable code.
    pub code: &'static str,
    /// JSON pointer of what is wrong; empty for the whole.
    pub pointer: String,
    /// The rule, in words: what must hold.
    pub rule: String,
    /// What it was read from.
    pub read_from: ReadFrom,
}

/// What is read by rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadFrom {
    /// A line of cases, counted from 1.
    Case(usize),
    /// A declaration: an evaluator, a metric, a suite.
    Declaration,
    /// A release policy, in the rule with this id where it lies in one.
    Policy(Option<String>),
    /// A record of a trajectory.
    Trajectory,
}

impl Broken {
    pub(crate) fn new(
        read_from: ReadFrom,
        code: &'static str,
        pointer: impl Into<String>,
        rule: impl Into<String>,
    ) -> Self {
        Broken {
            code,
            pointer: pointer.into(),
            rule: rule.into(),
            read_from,
        }
    }
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Broken { pointer, rule, .. } = self;
        match &self.read_from {
            ReadFrom::Case(_) if pointer.is_empty() => f.write_str(rule),
            ReadFrom::Case(_) => write!(f, "`{pointer}` {rule}"),
            ReadFrom::Declaration | ReadFrom::Trajectory => {
                write!(f, "{rule} (at \"{pointer}\")")
            }
            ReadFrom::Policy(id) => {
                f.write_str("policy")?;
                if let Some(id) = id {
                    write!(f, ", rule `{id}`")?;
                }
                match pointer.as_str() {
                    "" => write!(f, ": it {rule}"),
                    pointer => write!(f, ": `{pointer}` {rule}"),
                }
            }
        }
    }
}

impl std::error::Error for Broken {}

impl Fault for Broken {
    fn code(&self) -> &'static str {
        self.code
    }

    fn kind(&self) -> Kind {
        match self.read_from {
            ReadFrom::Case(_) | ReadFrom::Declaration | ReadFrom::Policy(_) => Kind::Suite,
            ReadFrom::Trajectory => Kind::Trajectory,
        }
    }

    fn facts(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        let mut add = |name: &str, value: Value| facts.insert(name.to_owned(), value);
        add("pointer", self.pointer.as_str().into());
        add("field", self.pointer.as_str().into());
        add("rule", self.rule.as_str().into());
        add("error_kind", self.code.into());
        match &self.read_from {
            ReadFrom::Case(line) => {
                add("line", (*line).into());
            }
            ReadFrom::Policy(Some(id)) => {
                add("rule_id", id.as_str().into());
            }
            ReadFrom::Declaration | ReadFrom::Policy(None) | ReadFrom::Trajectory => {}
        }
        facts
    }
}

impl<E: Fault + 'static> From<E> for Box<dyn Fault> {
    fn from(error: E) -> Self {
        Box::new(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_broken_is_said_with_its_place() {
        let said = |from, pointer| Broken::new(from, "c", pointer, "must hold").to_string();
        assert_eq!(said(ReadFrom::Case(2), ""), "must hold");
        assert_eq!(said(ReadFrom::Case(2), "/id"), "`/id` must hold");
        assert_eq!(said(ReadFrom::Declaration, "/a"), "must hold (at \"/a\")");
        assert_eq!(said(ReadFrom::Policy(None), ""), "policy: it must hold");
        let rule = ReadFrom::Policy(Some("r".to_owned()));
        assert_eq!(
            said(rule.clone(), "/rules/0"),
            "policy, rule `r`: `/rules/0` must hold"
        );
        let facts = Broken::new(rule, "c", "/x", "must hold").facts();
        assert_eq!(facts["rule_id"], "r");
    }
}
