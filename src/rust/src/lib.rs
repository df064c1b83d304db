//! Bindings of `warrant-core` for R: convert values, call the core, hand back
//! values or error records. Rust never calls R.

#[cfg(unix)]
mod channel;
mod evaluate;
mod fault;
mod files;
mod interrupts;
mod journal;
mod owner;
mod store;
mod trail;
mod version;
mod watchdog;
#[cfg(unix)]
mod worker;
#[cfg(unix)]
mod worker_template;

use extendr_api::prelude::*;

extendr_module! {
    mod warrant;
    use files;
    use journal;
    use owner;
    use store;
    use trail;
    use evaluate;
    use version;
    use watchdog;
    use worker;
    use worker_template;
}
