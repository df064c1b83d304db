//! What was built.

use crate::fault::guard;
use extendr_api::prelude::*;

// A plain comment, so that roxygen makes no help page of it.
#[extendr]
fn rs_version() -> Robj {
    guard(|| Ok(env!("CARGO_PKG_VERSION")))
}

extendr_module! {
    mod version;
    fn rs_version;
}
