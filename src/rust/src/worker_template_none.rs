//! As `worker_none.rs`: no process becomes a template here.

use extendr_api::prelude::*;

#[extendr]
fn rs_template_begin() -> Robj {
    Robj::from(())
}

#[extendr]
fn rs_template_next() -> Robj {
    Robj::from(())
}

#[extendr]
fn rs_template_fork(_note: Robj) -> Robj {
    Robj::from(-1)
}

#[extendr]
fn rs_child_request() -> Robj {
    Robj::from(())
}

#[extendr]
fn rs_child_reply(_reply: Robj) -> Robj {
    Robj::from(())
}

extendr_module! {
    mod worker_template;
    fn rs_template_begin;
    fn rs_template_next;
    fn rs_template_fork;
    fn rs_child_request;
    fn rs_child_reply;
}
