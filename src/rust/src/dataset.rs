//! Cases from JSON Lines, the random stream of each, and the log of their runs.

use crate::evaluate::Refused;
use crate::fault::{boxed, guard};
use extendr_api::prelude::*;
use std::io::{BufRead, BufReader};
use warrant_core::dataset::{Cases, Reader, Repeats, Texts};
use warrant_core::digest::Digest;
use warrant_core::runlog::{Log, Row};

// The columns of a JSON Lines text of cases.
#[extendr]
fn rs_cases(text: &str) -> Robj {
    guard(|| {
        let cases = Cases::read(text.as_bytes()).map_err(boxed)?;
        Ok(columns(cases))
    })
}

// The same from a file, of which one line at a time is in memory.
#[extendr]
fn rs_cases_file(path: &str, name: &str) -> Robj {
    guard(|| {
        let unreadable = |e: std::io::Error| boxed(Refused::file(name, &e));
        let mut file = BufReader::new(std::fs::File::open(path).map_err(unreadable)?);
        let mut reader = Reader::default();
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            if file.read_until(b'\n', &mut line).map_err(unreadable)? == 0 {
                break;
            }
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            let text = match line.strip_prefix(b"\xef\xbb\xbf") {
                Some(text) if number == 1 => text,
                _ => &line,
            };
            if !text.iter().all(u8::is_ascii_whitespace) {
                reader.line(number, text).map_err(boxed)?;
            }
        }
        Ok(columns(reader.end()))
    })
}

// Each column is let go as soon as R has it.
fn columns(cases: Cases) -> List {
    let Cases {
        id,
        input,
        expected,
        metadata,
        group_id,
    } = cases;
    let texts = |column: Texts| Strings::from_values(column.iter());
    let repeats = |column: Repeats| Strings::from_values(column.iter());
    list!(
        id = texts(id),
        input = texts(input),
        expected = repeats(expected),
        metadata = repeats(metadata),
        group_id = group_id.map_or_else(|| Robj::from(()), |group| repeats(group).into())
    )
}

// The state of a L'Ecuyer generator for each case: a function of seed and case
// id alone, so neither order nor workers matter. Six numbers a case.
#[extendr]
fn rs_case_streams(seed: f64, ids: Strings) -> Robj {
    guard(|| {
        let streams: Vec<Robj> = ids
            .iter()
            .map(|id| stream(&format!("case-stream/v1\0{seed:?}\0{}", &**id)).into())
            .collect();
        Ok(List::from_values(streams))
    })
}

fn stream(text: &str) -> Vec<i32> {
    let bytes = Digest::of_bytes(text.as_bytes());
    let bytes = bytes.as_bytes();
    (0..6)
        .map(|i| {
            let word = [0, 1, 2, 3].map(|j| bytes[4 * i + j]);
            let modulus = if i < 3 { 4_294_967_087 } else { 4_294_944_443 };
            // Never 0; a pattern that R reads as NA is moved by one.
            let state = u32::from_le_bytes(word) % (modulus - 1) + 1;
            let state = if state == 1 << 31 { state + 1 } else { state };
            i32::from_ne_bytes(state.to_ne_bytes())
        })
        .collect()
}

// One line of the log of a run, from JSON texts; `None` (NULL) where there is none.
#[extendr]
fn rs_suite_line(
    case_id: &str,
    case_digest: &str,
    status: &str,
    output: Option<String>,
    error: Option<String>,
    trajectories: Vec<String>,
    runs: Vec<String>,
) -> Robj {
    guard(|| {
        let row = Row {
            case_id: case_id.to_owned(),
            case_digest: case_digest.to_owned(),
            status: status.to_owned(),
            output,
            error,
            trajectories,
            runs,
        };
        Ok(row.line())
    })
}

// The header (JSON), the columns and the length of the whole lines of a log.
#[extendr]
fn rs_suite_log(bytes: &[u8]) -> Robj {
    guard(|| {
        let log = Log::read(bytes).map_err(boxed)?;
        let text = |f: fn(&Row) -> Option<&str>| -> Strings {
            log.rows
                .iter()
                .map(|row| f(row).map_or(Rstr::na(), Rstr::from))
                .collect()
        };
        let trajectories = log
            .rows
            .iter()
            .map(|row| Robj::from(row.trajectories.clone()));
        let runs = log.rows.iter().map(|row| Robj::from(row.runs.clone()));
        Ok(list!(
            header = warrant_core::canon::to_string(&log.header),
            case_id = text(|row| Some(&row.case_id)),
            case_digest = text(|row| Some(&row.case_digest)),
            status = text(|row| Some(&row.status)),
            output = text(|row| row.output.as_deref()),
            error = text(|row| row.error.as_deref()),
            trajectory = List::from_values(trajectories),
            runs = List::from_values(runs),
            whole = log.whole as f64
        ))
    })
}

// A seed from the operating system: a whole number below 2^31.
#[extendr]
fn rs_fresh_seed() -> Robj {
    guard(|| {
        let mut bytes = [0u8; 4];
        // Without a source of randomness a fixed seed is still a seed.
        let _ = getrandom::fill(&mut bytes);
        Ok(f64::from(u32::from_le_bytes(bytes) >> 1))
    })
}

extendr_module! {
    mod dataset;
    fn rs_cases;
    fn rs_cases_file;
    fn rs_case_streams;
    fn rs_fresh_seed;
    fn rs_suite_line;
    fn rs_suite_log;
}
