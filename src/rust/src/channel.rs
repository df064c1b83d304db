//! Frames over local sockets: a length and bytes, with open files beside them.
//! Nothing here raises SIGPIPE, which R would turn into an error and a jump.

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Instant;

/// Bytes that arrive, cut into frames.
#[derive(Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    pub(crate) files: Vec<OwnedFd>,
}

impl Inbox {
    /// Takes what is there. False at the end of the stream.
    pub(crate) fn fill(&mut self, fd: RawFd) -> bool {
        let mut chunk = vec![0u8; CHUNK];
        loop {
            match receive(fd, &mut chunk, &mut self.files) {
                Ok(0) => return false,
                Ok(n) => self.bytes.extend_from_slice(&chunk[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return e.kind() == io::ErrorKind::WouldBlock,
            }
        }
    }

    /// The next whole frame.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        let head: [u8; 8] = self.bytes.get(..8)?.try_into().ok()?;
        let end = usize::try_from(u64::from_le_bytes(head)).ok()?;
        let end = end.checked_add(8)?;
        if self.bytes.len() < end {
            return None;
        }
        let rest = self.bytes.split_off(end);
        let mut frame = mem::replace(&mut self.bytes, rest);
        frame.drain(..8);
        Some(frame)
    }
}

/// Bytes on their way out.
#[derive(Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    at: usize,
}

impl Outbox {
    pub(crate) fn push(&mut self, body: &[u8]) {
        self.bytes
            .extend_from_slice(&(body.len() as u64).to_le_bytes());
        self.bytes.extend_from_slice(body);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Sends what the socket takes now. False when nobody reads any more.
    pub(crate) fn flush(&mut self, fd: RawFd) -> bool {
        while !self.is_empty() {
            match send(fd, &self.bytes[self.at..], &[]) {
                Ok(n) => self.at += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return e.kind() == io::ErrorKind::WouldBlock,
            }
        }
        self.bytes.clear();
        self.at = 0;
        true
    }
}

/// Sends a whole frame on a blocking socket, with files.
pub(crate) fn send_frame(fd: RawFd, body: &[u8], files: &[RawFd]) -> io::Result<()> {
    let mut bytes = (body.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(body);
    let mut at = 0;
    let mut files = files;
    while at < bytes.len() {
        match send(fd, &bytes[at..], files) {
            Ok(n) => {
                at += n;
                files = &[];
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                wait(&mut [wanted(fd, libc::POLLOUT)], 1000);
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Waits until one of the descriptors is ready, a signal comes, or the time is up.
pub(crate) fn wait(wanted: &mut [libc::pollfd], millis: i32) {
    // SAFETY: the pointer and length are of one slice.
    unsafe { libc::poll(wanted.as_mut_ptr(), wanted.len() as libc::nfds_t, millis) };
}

pub(crate) fn wanted(fd: RawFd, events: libc::c_short) -> libc::pollfd {
    libc::pollfd {
        fd,
        events,
        revents: 0,
    }
}

/// Whole milliseconds until a time, at most `most`.
pub(crate) fn millis_until(time: Instant, most: i32) -> i32 {
    let left = time.saturating_duration_since(Instant::now());
    i32::try_from(left.as_micros().div_ceil(1000)).map_or(most, |m| m.min(most))
}

fn send(fd: RawFd, bytes: &[u8], files: &[RawFd]) -> io::Result<usize> {
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len().min(CHUNK),
    };
    let mut room = Room::new();
    // SAFETY: the message borrows `part` and `room`, which outlive the call; the
    // control part is laid out by the macros of libc within its size.
    let n = unsafe {
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        if !files.is_empty() {
            let size = mem::size_of_val(files);
            message.msg_control = room.0.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(size as u32) as _;
            let control = libc::CMSG_FIRSTHDR(&message);
            (*control).cmsg_level = libc::SOL_SOCKET;
            (*control).cmsg_type = libc::SCM_RIGHTS;
            (*control).cmsg_len = libc::CMSG_LEN(size as u32) as _;
            let data = libc::CMSG_DATA(control);
            std::ptr::copy_nonoverlapping(files.as_ptr().cast::<u8>(), data, size);
        }
        libc::sendmsg(fd, &message, NO_SIGNAL)
    };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

fn receive(fd: RawFd, into: &mut [u8], files: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut part = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let mut room = Room::new();
    // SAFETY: as in `send`; every descriptor received is ours to own.
    unsafe {
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = room.0.as_mut_ptr().cast();
        message.msg_controllen = mem::size_of_val(&room.0) as _;
        let n = libc::recvmsg(fd, &mut message, CLOSE_ON_EXEC);
        let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
        let control = libc::CMSG_FIRSTHDR(&message);
        if !control.is_null() && (*control).cmsg_type == libc::SCM_RIGHTS {
            let size = (*control).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
            let data = libc::CMSG_DATA(control).cast::<RawFd>();
            for i in 0..size / mem::size_of::<RawFd>() {
                let file = OwnedFd::from_raw_fd(data.add(i).read_unaligned());
                libc::fcntl(file.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC);
                files.push(file);
            }
        }
        Ok(n)
    }
}

/// Room for a few descriptors, aligned as control messages must be.
#[repr(align(8))]
struct Room([MaybeUninit<u8>; 128]);

impl Room {
    fn new() -> Self {
        Self([MaybeUninit::zeroed(); 128])
    }
}

const CHUNK: usize = 64 * 1024;

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOSE_ON_EXEC: libc::c_int = libc::MSG_CMSG_CLOEXEC;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOSE_ON_EXEC: libc::c_int = 0;

#[cfg(target_vendor = "apple")]
const NO_SIGNAL: libc::c_int = 0;
#[cfg(not(target_vendor = "apple"))]
const NO_SIGNAL: libc::c_int = libc::MSG_NOSIGNAL;
