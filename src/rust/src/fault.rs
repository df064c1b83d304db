//! Core errors as R data. Nothing here raises an R error: R does, in
//! `unwrap_core()`, from the record.

use extendr_api::prelude::*;
use std::panic::{catch_unwind, AssertUnwindSafe};
use warrant_core::error::Fault;

/// Runs the body of an entry point. An error of the core, or a panic, becomes an
/// error record: a list of class `warrant_fault`.
pub(crate) fn guard<T: Into<Robj>>(body: impl FnOnce() -> Result<T, Box<dyn Fault>>) -> Robj {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value.into(),
        Ok(Err(fault)) => of_fault(fault.as_ref()),
        Err(_) => record("internal", "state", PANICKED, "{}"),
    }
}

/// An error of any family.
pub(crate) fn boxed(error: impl Fault + 'static) -> Box<dyn Fault> {
    Box::new(error)
}

const PANICKED: &str = "internal error: the Rust core panicked; please report it";

fn of_fault(fault: &dyn Fault) -> Robj {
    let facts = serde_json::Value::Object(fault.facts()).to_string();
    record(
        fault.code(),
        fault.kind().word(),
        &fault.to_string(),
        &facts,
    )
}

fn record(code: &str, kind: &str, message: &str, facts: &str) -> Robj {
    let mut record = list!(
        code = code,
        kind = kind,
        message = no_nul(message),
        facts = no_nul(facts)
    );
    let _ = record.set_class(&["warrant_fault"]);
    record.into()
}

/// A C string ends at NUL, so a text for R has none.
fn no_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
