//! Cases from JSON Lines, and the random stream of each.

use crate::fault::guard;
use extendr_api::prelude::*;
use warrant_core::dataset::Cases;
use warrant_core::digest::Digest;
use warrant_core::error::Fault;

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

extendr_module! {
    mod dataset;
    fn rs_cases;
    fn rs_case_streams;
}
