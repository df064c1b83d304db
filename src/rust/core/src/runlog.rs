//! The log of a suite being run: a header, then one line a case as it ends, so
//! that an interrupted run goes on where it stopped.

use crate::canon;
use crate::error::{Fault, Kind};
use serde_json::{Map, Value};
use thiserror::Error as ThisError;

/// The name and version of the format, in the header line.
pub const SCHEMA: &str = "agent_runs/v1";

/// One case that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The case.
    pub case_id: String,
    /// Digest of what the system was given.
    pub case_digest: String,
    /// `OK`, `ERROR` or `TIMEOUT`.
    pub status: String,
    /// JSON of the answer; none where there was no answer.
    pub output: Option<String>,
    /// JSON of the error; none where there was none.
    pub error: Option<String>,
    /// JSON of each recorded trajectory.
    pub trajectories: Vec<String>,
    /// Ids of the runs that it was; none of a system without runs.
    pub runs: Vec<String>,
}

/// A log as read.
#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    /// JSON of the header.
    pub header: Value,
    /// In the order they ended.
    pub rows: Vec<Row>,
    /// Bytes up to the end of the last whole line; what follows is a torn line.
    pub whole: usize,
}

impl Row {
    /// The line of the log, with its newline.
    pub fn line(&self) -> String {
        let text = |text: &str| Value::String(text.to_owned()).to_string();
        let json = |json: &Option<String>| json.clone().unwrap_or_else(|| "null".to_owned());
        format!(
            "{{\"case_id\":{},\"case_digest\":{},\"status\":{},\"output\":{},\"answered\":{},\
             \"error\":{},\"trajectories\":[{}],\"runs\":[{}]}}\n",
            text(&self.case_id),
            text(&self.case_digest),
            text(&self.status),
            json(&self.output),
            self.output.is_some(),
            json(&self.error),
            self.trajectories.join(","),
            self.runs
                .iter()
                .map(|r| text(r))
                .collect::<Vec<_>>()
                .join(",")
        )
    }
}

impl Log {
    /// Reads a log. A last line without a newline is a torn write and left out.
    ///
    /// # Errors
    /// A missing header, another format, a line that is not a row, or a case twice.
    pub fn read(bytes: &[u8]) -> Result<Log, Error> {
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
        let mut lines = bytes[..whole]
            .split(|byte| *byte == b'\n')
            .enumerate()
            .filter(|(_, line)| !line.is_empty());
        let (_, first) = lines.next().ok_or(Error::NotALog)?;
        let header = canon::parse(first).map_err(|_| Error::NotALog)?;
        if header.get("schema").and_then(Value::as_str) != Some(SCHEMA) {
            return Err(Error::NotALog);
        }
        let mut seen = std::collections::BTreeSet::new();
        let mut rows = Vec::new();
        for (i, line) in lines {
            let row = row(line).ok_or(Error::NotARow { line: i + 1 })?;
            if !seen.insert(row.case_id.clone()) {
                return Err(Error::Twice {
                    line: i + 1,
                    case: row.case_id,
                });
            }
            rows.push(row);
        }
        Ok(Log {
            header,
            rows,
            whole,
        })
    }
}

fn row(line: &[u8]) -> Option<Row> {
    let value = canon::parse(line).ok()?;
    let text = |key: &str| value.get(key)?.as_str().map(str::to_owned);
    let output = canon::to_string(value.get("output")?);
    let error = value.get("error")?;
    let trajectories = value.get("trajectories")?.as_array()?;
    Some(Row {
        case_id: text("case_id")?,
        case_digest: text("case_digest")?,
        status: text("status")?,
        output: value.get("answered")?.as_bool()?.then_some(output),
        error: (!error.is_null()).then(|| canon::to_string(error)),
        trajectories: trajectories.iter().map(canon::to_string).collect(),
        runs: value.get("runs").map(texts).unwrap_or_default(),
    })
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items
        .filter_map(|t| t.as_str().map(str::to_owned))
        .collect()
}

/// Why a file is not the log of a run.
#[derive(Debug, Clone, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// No header of this format.
    #[error("the file is not a log of runs: its first line does not say {SCHEMA}")]
    NotALog,
    /// A line that is not a row.
    #[error("line {line} of the log is not a record of a case")]
    NotARow {
        /// Counted from 1.
        line: usize,
    },
    /// A case that ended twice.
    #[error("line {line} of the log records case `{case}` a second time")]
    Twice {
        /// Counted from 1.
        line: usize,
        /// The case.
        case: String,
    },
}

impl Fault for Error {
    fn code(&self) -> &'static str {
        match self {
            Error::NotALog => "not_a_run_log",
            Error::NotARow { .. } => "not_a_run_record",
            Error::Twice { .. } => "duplicate_case",
        }
    }

    fn kind(&self) -> Kind {
        Kind::Suite
    }

    fn facts(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        match self {
            Error::NotALog => {}
            Error::NotARow { line } => {
                facts.insert("line".to_owned(), (*line).into());
            }
            Error::Twice { line, case } => {
                facts.insert("line".to_owned(), (*line).into());
                facts.insert("case_id".to_owned(), case.clone().into());
            }
        }
        facts
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn sample() -> Row {
        Row {
            case_id: "a\"\n".to_owned(),
            case_digest: "00".to_owned(),
            status: "OK".to_owned(),
            output: Some("null".to_owned()),
            error: None,
            trajectories: vec!["{\"steps\":[]}".to_owned()],
            runs: vec!["r-1".to_owned()],
        }
    }

    const HEADER: &str = "{\"schema\":\"agent_runs/v1\"}\n";

    #[test]
    fn a_row_reads_back_as_it_was_written() {
        let silent = Row {
            case_id: "b".to_owned(),
            output: None,
            error: Some("{\"type\":\"e\"}".to_owned()),
            trajectories: vec![],
            runs: vec![],
            ..sample()
        };
        let text = format!("{HEADER}{}{}", sample().line(), silent.line());
        let log = Log::read(text.as_bytes()).unwrap();
        assert_eq!(log.rows, [sample(), silent]);
        assert_eq!(log.whole, text.len());
    }

    #[test]
    fn a_log_cut_at_any_byte_reads_up_to_the_last_whole_line() {
        let text = format!("{HEADER}{}", sample().line());
        for cut in HEADER.len()..text.len() {
            let log = Log::read(&text.as_bytes()[..cut]).unwrap();
            assert_eq!((log.rows.len(), log.whole), (0, HEADER.len()));
        }
        for cut in 0..HEADER.len() {
            assert_eq!(Log::read(&text.as_bytes()[..cut]), Err(Error::NotALog));
        }
    }

    #[test]
    fn what_is_not_a_log_is_refused() {
        let twice = format!("{HEADER}{0}{0}", sample().line());
        assert_eq!(
            Log::read(twice.as_bytes()).unwrap_err().code(),
            "duplicate_case"
        );
        let odd = format!("{HEADER}{{\"case_id\":1}}\n");
        assert_eq!(Log::read(odd.as_bytes()), Err(Error::NotARow { line: 2 }));
        assert_eq!(Log::read(b"{\"schema\":\"x\"}\n"), Err(Error::NotALog));
    }
}
