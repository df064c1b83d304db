//! Deadlines of calls that run in the session. R arms a deadline, runs the
//! function and disarms it; in between one thread interrupts the session as a
//! Ctrl-C would, again and again, until the function is back.

use crate::fault::guard;
use crate::interrupts::{self, Person};
use extendr_api::prelude::*;
use std::cell::RefCell;
use std::time::{Duration, Instant};

// Arms a deadline inside those that are armed; the answer is its handle.
#[extendr]
fn rs_watch_arm(timeout_s: f64) -> Robj {
    guard(|| Ok(WATCH.with_borrow_mut(|watch| watch.arm(timeout_s)) as f64))
}

// For a handler: does this interrupt or error belong to a deadline that has
// passed? 0 no, 1 the call's own, 2 an outer one. The function is then being
// unwound, so the thread waits longer before it interrupts again.
#[extendr]
fn rs_watch_stop(id: f64, interrupt: bool) -> Robj {
    guard(|| Ok(WATCH.with_borrow(|watch| watch.stop(id as u64, interrupt))))
}

// Ends a watch. The four numbers: whose deadline has passed (as above), whether
// the thread has interrupted, whether the person has, and the seconds taken.
#[extendr]
fn rs_watch_disarm(id: f64) -> Robj {
    guard(|| {
        Ok(WATCH
            .with_borrow_mut(|watch| watch.disarm(id as u64))
            .to_vec())
    })
}

// Whether deadlines interrupt on this system, or are only noticed afterwards.
#[extendr]
fn rs_watch_enforced() -> Robj {
    guard(|| Ok(interrupts::ENFORCED))
}

// Seconds on a clock that nobody can set.
#[extendr]
fn rs_monotonic() -> Robj {
    guard(|| Ok(EPOCH.with(Instant::elapsed).as_secs_f64()))
}

/// A running call with a deadline.
struct Frame {
    id: u64,
    started: Instant,
    deadline: Option<Instant>,
    sent: u32,
    person: Person,
}

/// The calls that run, outermost first. Only the thread of R touches it, so it
/// is whole in a forked child too.
#[derive(Default)]
struct Watch {
    frames: Vec<Frame>,
    last: u64,
}

impl Watch {
    fn arm(&mut self, timeout_s: f64) -> u64 {
        let started = Instant::now();
        let timeout = Duration::try_from_secs_f64(timeout_s).ok();
        if self.frames.is_empty() {
            interrupts::listen();
        }
        self.last += 1;
        self.frames.push(Frame {
            id: self.last,
            started,
            // A deadline beyond the clock's range is none.
            deadline: timeout.and_then(|t| started.checked_add(t)),
            sent: interrupts::sent(),
            person: Person::now(),
        });
        self.plan(started, AGAIN);
        self.last
    }

    fn stop(&self, id: u64, interrupt: bool) -> i32 {
        let Some(at) = self.position(id) else {
            return NOBODY;
        };
        let frame = &self.frames[at];
        let whose = self.whose(at, Instant::now());
        // A Ctrl-C of the person stays one, even when it comes late.
        let ours = frame.sent != interrupts::sent() && !frame.person.has_interrupted();
        if interrupt && !ours {
            return NOBODY;
        }
        if whose != NOBODY {
            interrupts::plan(Some(Instant::now() + UNWIND), UNWIND);
        }
        whose
    }

    fn disarm(&mut self, id: u64) -> [f64; 4] {
        let Some(at) = self.position(id) else {
            return [0.0; 4];
        };
        let now = Instant::now();
        let whose = self.whose(at, now);
        let started = self.frames[at].started;
        self.frames.truncate(at + 1);
        let frame = self.frames.pop();
        // An outer deadline that has passed gives this call time to settle.
        self.plan(now, SETTLE);
        let sent = interrupts::sent();
        let (sent, person) = frame.map_or((false, false), |f| {
            (f.sent != sent, f.person.has_interrupted())
        });
        if self.frames.is_empty() {
            interrupts::unlisten();
        }
        [
            f64::from(whose),
            f64::from(u8::from(sent)),
            f64::from(u8::from(person)),
            (now - started).as_secs_f64(),
        ]
    }

    /// The earlier of own and outer deadline is the one that counts.
    fn whose(&self, at: usize, now: Instant) -> i32 {
        let outer = self.frames[..at].iter().filter_map(|f| f.deadline).min();
        match (self.frames[at].deadline, outer) {
            (Some(own), None) if own <= now => OWN,
            (Some(own), Some(outer)) if own <= outer && own <= now => OWN,
            (_, Some(outer)) if outer <= now => OUTER,
            _ => NOBODY,
        }
    }

    /// Tells the thread when to interrupt next.
    fn plan(&self, now: Instant, again: Duration) {
        let next = self.frames.iter().filter_map(|f| f.deadline).min();
        let next = next.map(|at| if at <= now { now + again } else { at });
        interrupts::plan(next, AGAIN);
    }

    fn position(&self, id: u64) -> Option<usize> {
        self.frames.iter().rposition(|f| f.id == id)
    }
}

thread_local! {
    static WATCH: RefCell<Watch> = RefCell::default();
    static EPOCH: Instant = Instant::now();
}

const NOBODY: i32 = 0;
const OWN: i32 = 1;
const OUTER: i32 = 2;

/// A function that swallows an interrupt gets the next one after this.
const AGAIN: Duration = Duration::from_millis(200);
/// How long the code that tidies up after an interrupted function may take.
const UNWIND: Duration = Duration::from_secs(5);
/// How long after an inner call the outer one is interrupted.
const SETTLE: Duration = Duration::from_millis(50);

extendr_module! {
    mod watchdog;
    fn rs_watch_arm;
    fn rs_watch_stop;
    fn rs_watch_disarm;
    fn rs_watch_enforced;
    fn rs_monotonic;
}
