//! Records and cases that cannot be used: as errors, or as rows of a list.

use serde_json::{Map, Value};
use std::fmt;
use warrant_core::declare;
use warrant_core::error::{Fault, Kind};
use warrant_core::trajectory;

/// One record that cannot be used.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) line: Option<u64>,
    pub(crate) case_id: Option<String>,
    pub(crate) pointer: String,
    pub(crate) rule: String,
    pub(crate) code: &'static str,
}

impl Problem {
    pub(crate) fn of(error: trajectory::Error, line: Option<u64>, case_id: Option<String>) -> Self {
        Self {
            line,
            case_id,
            pointer: error.pointer,
            rule: error.rule,
            code: error.code,
        }
    }

    pub(crate) fn plain(code: &'static str, rule: String, case_id: Option<String>) -> Self {
        Self {
            line: None,
            case_id,
            pointer: String::new(),
            rule,
            code,
        }
    }
}

/// A refusal: a problem, and the file it is in.
#[derive(Debug)]
pub(crate) struct Refused {
    file: Option<String>,
    problem: Problem,
    kind: Kind,
}

impl Refused {
    pub(crate) fn record(file: Option<&str>, problem: Problem) -> Self {
        Self {
            file: file.map(str::to_owned),
            problem,
            kind: Kind::Trajectory,
        }
    }

    pub(crate) fn case(id: &str, error: declare::Error) -> Self {
        let problem = Problem {
            line: None,
            case_id: Some(id.to_owned()),
            pointer: error.pointer,
            rule: error.rule,
            code: error.code,
        };
        Self {
            file: None,
            problem,
            kind: Kind::Suite,
        }
    }

    pub(crate) fn file(file: &str, what: &std::io::Error) -> Self {
        let rule = format!("the file cannot be read: {what}");
        let problem = Problem::plain("unreadable_file", rule, None);
        Self {
            file: Some(file.to_owned()),
            problem,
            kind: Kind::Input,
        }
    }
}

impl std::error::Error for Refused {}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = &self.problem;
        let mut places = Vec::new();
        places.extend(self.file.clone());
        places.extend(problem.line.map(|line| format!("line {line}")));
        places.extend(problem.case_id.as_ref().map(|id| format!("case \"{id}\"")));
        if !places.is_empty() {
            write!(f, "{}: ", places.join(", "))?;
        }
        f.write_str(&problem.rule)?;
        if !problem.pointer.is_empty() {
            write!(f, " (at \"{}\")", problem.pointer)?;
        }
        Ok(())
    }
}

impl Fault for Refused {
    fn code(&self) -> &'static str {
        self.problem.code
    }

    fn kind(&self) -> Kind {
        self.kind
    }

    fn facts(&self) -> Map<String, Value> {
        let problem = &self.problem;
        let mut facts = Map::new();
        let mut fact = |key: &str, value: Value| facts.insert(key.to_owned(), value);
        fact("pointer", problem.pointer.as_str().into());
        fact("field", problem.pointer.as_str().into());
        fact("rule", problem.rule.as_str().into());
        fact("error_kind", problem.code.into());
        if let Some(file) = &self.file {
            fact("file", file.as_str().into());
        }
        if let Some(line) = problem.line {
            fact("line", line.into());
        }
        if let Some(id) = &problem.case_id {
            fact("case_id", id.as_str().into());
        }
        facts
    }
}
