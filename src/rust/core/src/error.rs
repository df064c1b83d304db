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

impl<E: Fault + 'static> From<E> for Box<dyn Fault> {
    fn from(error: E) -> Self {
        Box::new(error)
    }
}
