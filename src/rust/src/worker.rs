//! The session's side of process isolation: starts a template process, hands it
//! orders, and talks to the child that it forked for the next call. Every wait
//! is short, so that R can look for a Ctrl-C in between.

use crate::channel::{wait, wanted, Inbox, Outbox};
use crate::fault::guard;
use crate::worker_call::{Call, End};
use crate::worker_template::{EXITED, READY};
use extendr_api::prelude::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{self, Child, Command, Stdio};
use std::time::{Duration, Instant};

// Starts a template: a program, its arguments and what to set in its environment.
// The answer is a handle, or the text of what went wrong.
#[extendr]
fn rs_worker_start(
    program: &str,
    args: Vec<String>,
    names: Vec<String>,
    values: Vec<String>,
) -> Robj {
    guard(|| {
        Ok(
            match Worker::start(program, &args, names.into_iter().zip(values)) {
                Ok(worker) => Robj::from(WORKERS.with_borrow_mut(|all| all.add(worker))),
                Err(e) => Robj::from(e.to_string()),
            },
        )
    })
}

// Gives an order to a template. What was running is killed by it.
#[extendr]
fn rs_worker_order(id: i32, order: Robj) -> Robj {
    guard(|| {
        let order = order.as_raw_slice().unwrap_or_default();
        Ok(with_worker(id, |worker| worker.order(order)).is_some())
    })
}

// Waits a little for the child of the next call: NULL not yet, a raw vector the
// template's note, a text why there is none.
#[extendr]
fn rs_worker_ready(id: i32, millis: i32) -> Robj {
    guard(|| {
        let ready = with_worker(id, |worker| worker.ready(millis));
        Ok(match ready.unwrap_or(Ready::Gone(String::new())) {
            Ready::NotYet => ().into(),
            Ready::Note(note) => Raw::from_bytes(&note).into(),
            Ready::Gone(text) => Robj::from(text),
        })
    })
}

// Hands the request to the waiting child; its time starts.
#[extendr]
fn rs_worker_request(id: i32, request: Robj, timeout_s: f64, max_output: i32) -> Robj {
    guard(|| {
        let request = request.as_raw_slice().unwrap_or_default();
        let room = usize::try_from(max_output).unwrap_or_default();
        Ok(with_worker(id, |w| w.request(request, timeout_s, room)).unwrap_or(false))
    })
}

// Waits a little for the reply: NULL not yet, else a list of `status`, `reply`,
// `output`, `dropped` (bytes of output), `code` (of a dead child), `elapsed_s`.
#[extendr]
fn rs_worker_wait(id: i32, millis: i32) -> Robj {
    guard(|| {
        let end = with_worker(id, |worker| worker.advance(millis)).flatten();
        Ok(end.map_or_else(|| ().into(), End::into_robj))
    })
}

// Kills the call at once; the next order sweeps up what has left its group.
#[extendr]
fn rs_worker_kill(id: i32) -> Robj {
    guard(|| Ok(with_worker(id, Worker::kill).is_some()))
}

// Ends a template and all below it.
#[extendr]
fn rs_worker_close(id: i32) -> Robj {
    guard(|| {
        Ok(WORKERS
            .with_borrow_mut(|all| all.table.remove(&id))
            .is_some())
    })
}

struct Worker {
    owner: u32,
    process: Child,
    control: UnixStream,
    orders: Outbox,
    answers: Inbox,
    pending: usize,
    exited: Option<i32>,
    next: Option<Next>,
    call: Option<Call>,
}

/// The child that waits for a request, and what it said of itself.
struct Next {
    pid: i32,
    note: Option<Vec<u8>>,
    data: OwnedFd,
    output: OwnedFd,
}

enum Ready {
    NotYet,
    Note(Vec<u8>),
    Gone(String),
}

impl Worker {
    fn start(
        program: &str,
        args: &[String],
        env: impl Iterator<Item = (String, String)>,
    ) -> std::io::Result<Self> {
        let (control, theirs) = UnixStream::pair()?;
        control.set_nonblocking(true)?;
        // A group of its own, so that the terminal's Ctrl-C passes it by.
        let process = Command::new(program)
            .args(args)
            .envs(env)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        Ok(Self {
            owner: process::id(),
            process,
            control,
            orders: Outbox::default(),
            answers: Inbox::default(),
            pending: 0,
            exited: None,
            next: None,
            call: None,
        })
    }

    fn order(&mut self, order: &[u8]) {
        self.kill();
        self.call = None;
        self.next = None;
        self.exited = None;
        self.pending += 1;
        self.orders.push(order);
        self.orders.flush(self.control.as_raw_fd());
    }

    fn ready(&mut self, millis: i32) -> Ready {
        if self.pending > 0 {
            let out = if self.orders.is_empty() {
                0
            } else {
                libc::POLLOUT
            };
            let control = self.control.as_raw_fd();
            wait(&mut [wanted(control, libc::POLLIN | out)], millis);
            if !self.talk() {
                return Ready::Gone(self.last_words());
            }
        }
        match &mut self.next {
            Some(next) if self.pending == 0 => Ready::Note(next.note.take().unwrap_or_default()),
            _ => Ready::NotYet,
        }
    }

    /// Sends orders and reads answers, as far as they go. False when the
    /// template is gone.
    fn talk(&mut self) -> bool {
        let control = self.control.as_raw_fd();
        let open = self.orders.flush(control) & self.answers.fill(control);
        while let Some(answer) = self.answers.next() {
            let Some((kind, body)) = answer.split_first() else {
                continue;
            };
            let number = body.first_chunk().map(|b| i32::from_le_bytes(*b));
            match (*kind, number) {
                // What a child of before the last order says no longer matters.
                (EXITED, status) if self.pending == 0 => self.exited = status,
                (READY, Some(pid)) => self.take_child(pid, body[4..].to_vec()),
                _ => {}
            }
        }
        open
    }

    fn take_child(&mut self, pid: i32, note: Vec<u8>) {
        self.pending = self.pending.saturating_sub(1);
        // Files and frames come in the same order, two files a frame.
        if self.answers.files.len() < 2 {
            return;
        }
        let mut files = self.answers.files.drain(..2);
        if let (Some(data), Some(output)) = (files.next(), files.next()) {
            for fd in [&data, &output] {
                // SAFETY: sets a flag of a descriptor we own.
                unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
            }
            let note = Some(note);
            self.next = Some(Next {
                pid,
                note,
                data,
                output,
            });
        }
    }

    fn request(&mut self, request: &[u8], timeout_s: f64, room: usize) -> bool {
        let Some(next) = self.next.take() else {
            return false;
        };
        let mut call = Call::new(next.pid, next.data, next.output, room);
        call.start(request, timeout_s);
        self.call = Some(call);
        true
    }

    fn advance(&mut self, millis: i32) -> Option<End> {
        let control = self.control.as_raw_fd();
        let call = self.call.as_mut()?;
        call.wait(control, millis);
        let reply = call.exchange();
        let open = self.talk();
        let call = self.call.as_mut()?;
        if let Some(reply) = reply {
            return Some(call.end("replied", reply, None));
        }
        if call.is_over_time() {
            self.kill();
            return self
                .call
                .as_mut()
                .map(|c| c.end("timed_out", Vec::new(), None));
        }
        // The template says how the child ended, a moment after the child did.
        let waited = call.is_long_closed();
        if !open || self.exited.is_some() || waited {
            let code = self.exited;
            // The reply may have come with the news of the end.
            let reply = call.exchange();
            let status = if reply.is_some() { "replied" } else { "died" };
            return Some(call.end(status, reply.unwrap_or_default(), code));
        }
        None
    }

    fn kill(&mut self) {
        if let Some(call) = &self.call {
            // SAFETY: the template reaps its child only on the next order, so the
            // number is still the child's.
            unsafe {
                libc::kill(-call.pid, libc::SIGKILL);
                libc::kill(call.pid, libc::SIGKILL);
            }
        }
    }

    fn last_words(&mut self) -> String {
        let mut said = String::new();
        if let Some(stderr) = self.process.stderr.take() {
            // SAFETY: sets a flag of a descriptor we own.
            unsafe { libc::fcntl(stderr.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
            let mut bytes = Vec::new();
            let _ = stderr.take(10_000).read_to_end(&mut bytes);
            said = String::from_utf8_lossy(&bytes).trim().replace('\0', "");
        }
        said
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // A forked child of the session only forgets its copy.
        if self.owner != process::id() {
            return;
        }
        self.kill();
        // At the end of its stream the template kills what it has and leaves.
        let _ = self.control.shutdown(std::net::Shutdown::Both);
        let give_up = Instant::now() + Duration::from_secs(2);
        while matches!(self.process.try_wait(), Ok(None)) {
            if Instant::now() > give_up {
                let _ = self.process.kill();
                let _ = self.process.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

#[derive(Default)]
struct Workers {
    table: HashMap<i32, Worker>,
    last: i32,
}

impl Workers {
    fn add(&mut self, worker: Worker) -> i32 {
        self.last += 1;
        self.table.insert(self.last, worker);
        self.last
    }
}

fn with_worker<T>(id: i32, body: impl FnOnce(&mut Worker) -> T) -> Option<T> {
    WORKERS.with_borrow_mut(|all| all.table.get_mut(&id).map(body))
}

thread_local! {
    static WORKERS: RefCell<Workers> = RefCell::default();
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
