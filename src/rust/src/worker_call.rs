//! One call in a worker, seen from the session: request, reply and output.

use crate::channel::{millis_until, wait, wanted, Inbox, Outbox};
use extendr_api::prelude::*;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// One call: what goes to its child and comes from it.
pub(crate) struct Call {
    pub(crate) pid: i32,
    data: OwnedFd,
    output: OwnedFd,
    request: Outbox,
    reply: Inbox,
    printed: Vec<u8>,
    room: usize,
    dropped: f64,
    closed: Option<Instant>,
    started: Instant,
    deadline: Option<Instant>,
}

/// How a call ended.
pub(crate) struct End {
    status: &'static str,
    reply: Vec<u8>,
    output: Vec<u8>,
    dropped: f64,
    code: Option<i32>,
    elapsed_s: f64,
}

impl Call {
    pub(crate) fn new(pid: i32, data: OwnedFd, output: OwnedFd, room: usize) -> Self {
        Self {
            pid,
            data,
            output,
            request: Outbox::default(),
            reply: Inbox::default(),
            printed: Vec::new(),
            room,
            dropped: 0.0,
            closed: None,
            started: Instant::now(),
            deadline: None,
        }
    }

    /// Sends the request; the time starts.
    pub(crate) fn start(&mut self, request: &[u8], timeout_s: f64) {
        self.started = Instant::now();
        let timeout = Duration::try_from_secs_f64(timeout_s).ok();
        self.deadline = timeout.and_then(|t| self.started.checked_add(t));
        self.request.push(request);
        self.request.flush(self.data.as_raw_fd());
    }

    pub(crate) fn is_over_time(&self) -> bool {
        self.deadline.is_some_and(|at| at <= Instant::now())
    }

    /// The template says how the child ended, a moment after the child did.
    pub(crate) fn is_long_closed(&self) -> bool {
        self.closed.is_some_and(|at| at.elapsed() > FAREWELL)
    }

    pub(crate) fn wait(&self, control: i32, millis: i32) {
        let millis = self.deadline.map_or(millis, |at| millis_until(at, millis));
        let out = if self.request.is_empty() {
            0
        } else {
            libc::POLLOUT
        };
        let data = if self.closed.is_some() {
            -1
        } else {
            self.data.as_raw_fd()
        };
        let output = if self.room == 0 {
            -1
        } else {
            self.output.as_raw_fd()
        };
        let mut all = [
            wanted(data, libc::POLLIN | out),
            wanted(control, libc::POLLIN),
            wanted(output, libc::POLLIN),
        ];
        wait(
            &mut all,
            if self.closed.is_some() {
                millis.min(5)
            } else {
                millis
            },
        );
    }

    /// Sends and reads what can be; the reply once it is whole.
    pub(crate) fn exchange(&mut self) -> Option<Vec<u8>> {
        let data = self.data.as_raw_fd();
        self.request.flush(data);
        let open = self.reply.fill(data);
        self.read_output();
        if !open && self.closed.is_none() {
            self.closed = Some(Instant::now());
        }
        self.reply.next()
    }

    fn read_output(&mut self) {
        let mut chunk = [0u8; 16 * 1024];
        // SAFETY: the buffer is as long as said.
        while let Ok(n @ 1..) = usize::try_from(unsafe {
            libc::read(
                self.output.as_raw_fd(),
                chunk.as_mut_ptr().cast(),
                chunk.len(),
            )
        }) {
            let keep = n.min(self.room.saturating_sub(self.printed.len()));
            self.printed.extend_from_slice(&chunk[..keep]);
            self.dropped += (n - keep) as f64;
        }
    }

    pub(crate) fn end(&mut self, status: &'static str, reply: Vec<u8>, code: Option<i32>) -> End {
        let elapsed_s = self.started.elapsed().as_secs_f64();
        self.read_output();
        End {
            status,
            reply,
            output: std::mem::take(&mut self.printed),
            dropped: self.dropped,
            code,
            elapsed_s,
        }
    }
}

impl End {
    pub(crate) fn into_robj(self) -> Robj {
        list!(
            status = self.status,
            reply = Raw::from_bytes(&self.reply),
            output = Raw::from_bytes(&self.output),
            dropped = self.dropped,
            code = self.code,
            elapsed_s = self.elapsed_s
        )
        .into()
    }
}

/// How long a child that closed its socket may take to end.
const FAREWELL: Duration = Duration::from_millis(300);
