//! What process isolation needs on every system, and a fresh process for each
//! call where no template can be forked.

use crate::fault::guard;
use extendr_api::prelude::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use warrant_core::digest::Digest;

// Whether a template can be forked here.
#[extendr]
fn rs_can_fork() -> Robj {
    guard(|| Ok(cfg!(unix)))
}

// The name under which a worker keeps a bundle.
#[extendr]
fn rs_bundle_key(bytes: Robj) -> Robj {
    guard(|| Ok(Digest::of_bytes(bytes.as_raw_slice().unwrap_or_default()).to_hex()))
}

// A mark of the environment variables, to see at little cost whether they changed.
#[extendr]
fn rs_environment_mark() -> Robj {
    guard(|| {
        let mut hasher = DefaultHasher::new();
        std::env::vars_os().for_each(|variable| variable.hash(&mut hasher));
        Ok(format!("{:016x}", hasher.finish()))
    })
}

// Starts a program that prints to a file. A handle, or the text of what went wrong.
#[extendr]
fn rs_fresh_start(program: &str, args: Vec<String>, output: &str) -> Robj {
    guard(|| {
        Ok(match start(program, &args, output) {
            Ok(child) => Robj::from(PROCESSES.with_borrow_mut(|all| all.add(child))),
            Err(e) => Robj::from(e.to_string()),
        })
    })
}

// Waits a little for the end: NULL not yet, else the exit status (NA: killed).
#[extendr]
fn rs_fresh_wait(id: i32, millis: i32) -> Robj {
    guard(|| {
        let until = Instant::now() + Duration::from_millis(u64::try_from(millis).unwrap_or(0));
        Ok(
            PROCESSES.with_borrow_mut(|all| match all.table.get_mut(&id) {
                None => Robj::from(Rint::na()),
                Some(child) => ended_by(child, until).map_or_else(|| Robj::from(()), Robj::from),
            }),
        )
    })
}

// Kills a program with what it started, and waits for its end.
#[extendr]
fn rs_fresh_kill(id: i32) -> Robj {
    guard(|| {
        let child = PROCESSES.with_borrow_mut(|all| all.table.remove(&id));
        Ok(child.map(kill_all).is_some())
    })
}

fn start(program: &str, args: &[String], output: &str) -> std::io::Result<Child> {
    let printed = File::create(output)?;
    let mut command = Command::new(program);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(printed.try_clone()?)
        .stderr(printed)
        .spawn()
}

fn ended_by(child: &mut Child, until: Instant) -> Option<Rint> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.code().map_or_else(Rint::na, Rint::from)),
            Err(_) => return Some(Rint::na()),
            Ok(None) if Instant::now() >= until => return None,
            Ok(None) => thread::sleep(Duration::from_millis(2)),
        }
    }
}

#[cfg(unix)]
fn kill_all(mut child: Child) {
    if let Ok(pid) = i32::try_from(child.id()) {
        // SAFETY: the child is not yet reaped here, so the number is its own.
        unsafe { libc::kill(-pid, libc::SIGKILL) };
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(not(unix))]
fn kill_all(mut child: Child) {
    let pid = child.id().to_string();
    let _ = Command::new("taskkill")
        .args(["/F", "/T", "/PID", &pid])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let _ = child.kill();
    let _ = child.wait();
}

#[derive(Default)]
struct Processes {
    table: HashMap<i32, Child>,
    last: i32,
}

impl Processes {
    fn add(&mut self, child: Child) -> i32 {
        self.last += 1;
        self.table.insert(self.last, child);
        self.last
    }
}

thread_local! {
    static PROCESSES: RefCell<Processes> = RefCell::default();
}

extendr_module! {
    mod process;
    fn rs_can_fork;
    fn rs_bundle_key;
    fn rs_environment_mark;
    fn rs_fresh_start;
    fn rs_fresh_wait;
    fn rs_fresh_kill;
}
