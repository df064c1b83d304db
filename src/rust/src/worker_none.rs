//! Where a process cannot fork there are no templates; R starts a fresh process
//! for each call instead and never gets here.

use extendr_api::prelude::*;

#[extendr]
fn rs_worker_start(
    _program: &str,
    _args: Vec<String>,
    _names: Vec<String>,
    _values: Vec<String>,
) -> Robj {
    Robj::from("a process cannot be forked on this system")
}

#[extendr]
fn rs_worker_order(_id: i32, _order: Robj) -> Robj {
    Robj::from(false)
}

#[extendr]
fn rs_worker_ready(_id: i32, _millis: i32) -> Robj {
    Robj::from("a process cannot be forked on this system")
}

#[extendr]
fn rs_worker_request(_id: i32, _request: Robj, _timeout_s: f64, _max_output: i32) -> Robj {
    Robj::from(false)
}

#[extendr]
fn rs_worker_wait(_id: i32, _millis: i32) -> Robj {
    Robj::from(())
}

#[extendr]
fn rs_worker_kill(_id: i32) -> Robj {
    Robj::from(false)
}

#[extendr]
fn rs_worker_close(_id: i32) -> Robj {
    Robj::from(false)
}

extendr_module! {
    mod worker;
    fn rs_worker_start;
    fn rs_worker_order;
    fn rs_worker_ready;
    fn rs_worker_request;
    fn rs_worker_wait;
    fn rs_worker_kill;
    fn rs_worker_close;
}
