//! Bindings of `warrant-core` for R: convert values, call the core, hand back
//! values or error records. Rust never calls R.

mod fault;
mod interrupts;
mod version;
mod watchdog;

use extendr_api::prelude::*;

extendr_module! {
    mod warrant;
    use version;
    use watchdog;
}
