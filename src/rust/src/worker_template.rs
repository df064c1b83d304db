//! The worker's side of process isolation. A template process of R holds what
//! the tools need and forks a child for each call, before the call comes: the
//! child waits for its request, answers it and is gone. What a call changes
//! dies with its child; what it started is killed with it.

use crate::channel::{send_frame, wait, wanted, Inbox};
use crate::fault::guard;
use extendr_api::prelude::*;
use std::cell::RefCell;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};
use std::{io, process, thread};

// Makes this process a template: standard input, the way to the session, is
// moved aside, and standard output and error lead nowhere.
#[extendr]
fn rs_template_begin() -> Robj {
    guard(|| {
        // SAFETY: plain system calls on descriptors of this process.
        unsafe {
            let control = libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 10);
            libc::fcntl(control, libc::F_SETFL, libc::O_NONBLOCK);
            let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
            for standard in 0..3 {
                libc::dup2(nowhere, standard);
            }
            CONTROL.store(control, Ordering::SeqCst);
            SESSION.store(libc::getppid(), Ordering::SeqCst);
        }
        adopt_orphans();
        Ok(())
    })
}

// Waits for the next order of the session. The child of the last one is dead
// when it returns, with all it started. NULL when the session is gone.
#[extendr]
fn rs_template_next() -> Robj {
    guard(|| {
        let order = next_order();
        end_child();
        Ok(order.map_or_else(|| Robj::from(()), |bytes| Raw::from_bytes(&bytes).into()))
    })
}

// Forks the child of the next call and tells the session: 0 in the child.
#[extendr]
fn rs_template_fork(note: Robj) -> Robj {
    guard(|| {
        let note = note.as_raw_slice().unwrap_or_default();
        Ok(fork_child(note).unwrap_or(-1))
    })
}

// In the child: waits for the request.
#[extendr]
fn rs_child_request() -> Robj {
    guard(|| {
        let fd = DATA.load(Ordering::SeqCst);
        let mut inbox = Inbox::default();
        loop {
            wait(&mut [wanted(fd, libc::POLLIN)], -1);
            let open = inbox.fill(fd);
            if let Some(request) = inbox.next() {
                return Ok(Raw::from_bytes(&request));
            }
            if !open {
                leave(0);
            }
        }
    })
}

// In the child: sends the reply and ends, without R's own farewell.
#[extendr]
fn rs_child_reply(reply: Robj) -> Robj {
    guard(|| {
        // SAFETY: flushes the streams of C, through which R prints.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        let reply = reply.as_raw_slice().unwrap_or_default();
        let _ = send_frame(DATA.load(Ordering::SeqCst), reply, &[]);
        leave(0);
        Ok(())
    })
}

fn next_order() -> Option<Vec<u8>> {
    let control = CONTROL.load(Ordering::SeqCst);
    let session = SESSION.load(Ordering::SeqCst);
    let mut told = false;
    loop {
        if let Some(order) = ORDERS.with_borrow_mut(Inbox::next) {
            return Some(order);
        }
        let child = CHILD.load(Ordering::SeqCst);
        let millis = if child > 0 && !told { 20 } else { 2000 };
        let mut ready = [wanted(control, libc::POLLIN)];
        wait(&mut ready, millis);
        if ready[0].revents != 0 {
            let (open, order) = ORDERS.with_borrow_mut(|inbox| (inbox.fill(control), inbox.next()));
            if order.is_some() || !open {
                return order;
            }
        }
        // SAFETY: no preconditions.
        if unsafe { libc::getppid() } != session {
            return None;
        }
        if let Some(status) = exit_status(child).filter(|_| !told) {
            told = true;
            let mut body = vec![EXITED];
            body.extend_from_slice(&status.to_le_bytes());
            let _ = send_frame(control, &body, &[]);
        }
    }
}

/// The exit status of a child that has ended and is not reaped: so its number
/// is not given to another process before the session is done with it.
fn exit_status(child: i32) -> Option<i32> {
    if child <= 0 {
        return None;
    }
    // SAFETY: a zeroed siginfo is valid, and waitid fills it.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let done = libc::waitid(libc::P_PID, child as libc::id_t, &mut info, options);
        if done != 0 || info.si_pid() != child {
            return None;
        }
        let status = info.si_status();
        Some(if info.si_code == libc::CLD_EXITED {
            status
        } else {
            -status
        })
    }
}

/// Ends the last child and everything below it.
fn end_child() {
    let child = CHILD.swap(0, Ordering::SeqCst);
    if child <= 0 {
        return;
    }
    // SAFETY: the child is ours and not yet reaped, so the number is its own.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::kill(-child, libc::SIGKILL);
        while libc::waitpid(child, std::ptr::null_mut(), 0) < 0
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
    }
    // Orphans of the call are now children of this process.
    let give_up = Instant::now() + Duration::from_secs(2);
    while any_child() && Instant::now() < give_up {
        for pid in descendants(process::id() as i32) {
            // SAFETY: no preconditions; a process that is gone is no matter.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Reaps what has ended; whether any child is left.
fn any_child() -> bool {
    loop {
        // SAFETY: a null status is allowed.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } {
            0 => return true,
            pid if pid > 0 => {}
            _ => return false,
        }
    }
}

fn fork_child(note: &[u8]) -> io::Result<i32> {
    let (data, data_of_session) = UnixStream::pair()?;
    let (output_of_session, output) = io::pipe()?;
    data.set_nonblocking(true)?;
    let control = CONTROL.load(Ordering::SeqCst);
    // SAFETY: this process has one thread; both sides go on in R, as they were.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    if pid == 0 {
        drop((data_of_session, output_of_session));
        become_child(control, data.into_raw_fd(), output.as_raw_fd());
        return Ok(0);
    }
    CHILD.store(pid, Ordering::SeqCst);
    let mut body = vec![READY];
    body.extend_from_slice(&pid.to_le_bytes());
    body.extend_from_slice(note);
    let files = [data_of_session.as_raw_fd(), output_of_session.as_raw_fd()];
    let _ = send_frame(control, &body, &files);
    Ok(pid)
}

fn become_child(control: RawFd, data: RawFd, output: RawFd) {
    // SAFETY: plain system calls of the forked process.
    unsafe {
        libc::close(control);
        libc::setsid();
        libc::dup2(output, 1);
        libc::dup2(output, 2);
        #[cfg(any(target_os = "linux", target_os = "android"))]
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
    adopt_orphans();
    CHILD.store(0, Ordering::SeqCst);
    DATA.store(data, Ordering::SeqCst);
}

fn leave(status: i32) {
    // SAFETY: ends the process without handlers, finalizers or R's clean-up.
    unsafe { libc::_exit(status) }
}

/// On Linux orphans come to this process, not to init, so that they are found.
fn adopt_orphans() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // SAFETY: sets a flag of this process.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    }
}

/// Every process below this one, by the parents that /proc shows.
fn descendants(root: i32) -> Vec<i32> {
    let parents: Vec<(i32, i32)> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(|pid| Some((pid, parent_of(pid)?)))
        .collect();
    let mut found = vec![root];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        found.extend(parents.iter().filter(|p| p.1 == parent).map(|p| p.0));
        at += 1;
    }
    found.split_off(1)
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command may hold anything, so count from the last parenthesis.
    let rest = stat.rsplit_once(')')?.1;
    rest.split_whitespace().nth(1)?.parse().ok()
}

pub(crate) const READY: u8 = b'r';
pub(crate) const EXITED: u8 = b'x';

thread_local! {
    // Orders may come faster than they are obeyed.
    static ORDERS: RefCell<Inbox> = RefCell::default();
}

static CONTROL: AtomicI32 = AtomicI32::new(-1);
static SESSION: AtomicI32 = AtomicI32::new(0);
static CHILD: AtomicI32 = AtomicI32::new(0);
static DATA: AtomicI32 = AtomicI32::new(-1);

extendr_module! {
    mod worker_template;
    fn rs_template_begin;
    fn rs_template_next;
    fn rs_template_fork;
    fn rs_child_request;
    fn rs_child_reply;
}
