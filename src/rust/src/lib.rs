//! Bindings of `warrant-core` for R: convert values, call the core, hand back
//! values or error records. Rust never calls R.

mod archive;
mod archive_check;
mod archive_files;
mod call;
#[cfg(unix)]
mod channel;
mod chat;
mod code;
mod config;
mod convert;
mod dataset;
mod evaluate;
mod fault;
mod files;
mod interrupts;
mod journal;
mod manifest;
mod owner;
mod page;
mod process;
mod rule;
mod run;
mod run_late;
mod run_log;
mod run_setup;
mod run_view;
mod store;
mod tool;
mod trail;
mod version;
mod watchdog;
#[cfg(unix)]
mod worker;
#[cfg(not(unix))]
#[path = "worker_none.rs"]
mod worker;
#[cfg(unix)]
mod worker_call;
#[cfg(unix)]
mod worker_template;
#[cfg(not(unix))]
#[path = "worker_template_none.rs"]
mod worker_template;

use extendr_api::prelude::*;

extendr_module! {
    mod warrant;
    use archive;
    use archive_check;
    use archive_files;
    use call;
    use chat;
    use code;
    use config;
    use convert;
    use dataset;
    use evaluate;
    use files;
    use journal;
    use manifest;
    use owner;
    use page;
    use process;
    use rule;
    use run;
    use run_late;
    use run_log;
    use store;
    use tool;
    use trail;
    use version;
    use watchdog;
    use worker;
    use worker_template;
}
