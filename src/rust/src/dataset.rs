//! Cases from JSON Lines, the random stream of each, and the log of their runs.

use crate::fault::guard;
use extendr_api::prelude::*;
use warrant_core::dataset::Cases;
use warrant_core::digest::Digest;
use warrant_core::error::Fault;
use warrant_core::runlog::{Log, Row};

// The columns of a JSON Lines text of cases.
#[extendr]
fn rs_cases(text: &str) -> Robj {
    guard(|| {
        let cases =
            Cases::read(text.as_bytes()).map_err(|error| -> Box<dyn Fault> { Box::new(error) })?;
        let group = match cases.group_id {
            Some(group) => group.into(),
            None => Robj::from(()),
        };
        Ok(list!(
            id = cases.id,
            input = cases.input,
            expected = cases.expected,
            metadata = cases.metadata,
            group_id = group
        ))
    })
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
) -> Robj {
    guard(|| {
        let row = Row {
            case_id: case_id.to_owned(),
            case_digest: case_digest.to_owned(),
            status: status.to_owned(),
            output,
            error,
            trajectories,
        };
        Ok(row.line())
    })
}

// The header (JSON), the columns and the length of the whole lines of a log.
#[extendr]
fn rs_suite_log(bytes: &[u8]) -> Robj {
    guard(|| {
        let log = Log::read(bytes).map_err(|error| -> Box<dyn Fault> { Box::new(error) })?;
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
        Ok(list!(
            header = warrant_core::canon::to_string(&log.header),
            case_id = text(|row| Some(&row.case_id)),
            case_digest = text(|row| Some(&row.case_digest)),
            status = text(|row| Some(&row.status)),
            output = text(|row| row.output.as_deref()),
            error = text(|row| row.error.as_deref()),
            trajectory = List::from_values(trajectories),
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
    fn rs_case_streams;
    fn rs_fresh_seed;
    fn rs_suite_line;
    fn rs_suite_log;
}
