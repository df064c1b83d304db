//! Who drives a run: a lock on a file beside the journal, which ends with the
//! process that holds it.
//!
//! A record lock of POSIX (`fcntl`) belongs to the process, so that a forked child
//! does not own what its parent drives, and the parent's death frees it even
//! while the child lives. It does not tell two takers within one process apart; the
//! table of held locks does.

use crate::fault::{boxed, guard};
use extendr_api::prelude::*;
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use warrant_core::error::{Fault, Kind};

/// What can go wrong with a lock.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("run {run} is driven by another owner{}", holder.map(|h| format!(" (process {h})")).unwrap_or_default())]
    AlreadyRunning { run: String, holder: Option<u32> },
    #[error("cannot lock {}: {cause}", path.display())]
    Io { path: PathBuf, cause: io::Error },
    #[error("run {run} is no longer held under this token: take it again with lock(), and read it again")]
    NotOwner { run: String },
}

impl Fault for Error {
    fn code(&self) -> &'static str {
        match self {
            Error::AlreadyRunning { .. } => "already_running",
            Error::Io { .. } => "store_write",
            Error::NotOwner { .. } => "not_owner",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Error::AlreadyRunning { .. } => Kind::State,
            Error::Io { .. } | Error::NotOwner { .. } => Kind::Store,
        }
    }

    fn facts(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        match self {
            Error::AlreadyRunning { run, holder } => {
                facts.insert("run_id".into(), run.as_str().into());
                facts.insert("holder".into(), (*holder).into());
            }
            Error::NotOwner { run } => {
                facts.insert("run_id".into(), run.as_str().into());
            }
            Error::Io { path, .. } => {
                facts.insert("path".into(), path.to_string_lossy().into());
            }
        }
        facts
    }
}

struct Held {
    id: u32,
    pid: u32,
    path: PathBuf,
    // Closing it ends the lock.
    _file: File,
}

struct Table {
    last: u32,
    held: Vec<Held>,
}

static TABLE: Mutex<Table> = Mutex::new(Table {
    last: 0,
    held: Vec::new(),
});

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The name of the run whose files begin with `base`.
pub(crate) fn run_of(base: &Path) -> String {
    base.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Takes the run whose files begin with `base`.
fn take(base: &Path) -> Result<u32, Error> {
    let path = with_ext(base, ".lock");
    let run = run_of(base);
    let pid = std::process::id();
    let mut table = table();
    if table.held.iter().any(|h| h.pid == pid && h.path == path) {
        let holder = Some(pid);
        return Err(Error::AlreadyRunning { run, holder });
    }
    let fail = |cause| Error::Io {
        path: path.clone(),
        cause,
    };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.open(&path).map_err(fail)?;
    if let Some(holder) = try_lock(&file).map_err(fail)? {
        return Err(Error::AlreadyRunning { run, holder });
    }
    table.last += 1;
    let id = table.last;
    // What a parent held before a fork is not ours; our copies of its files are.
    table.held.retain(|h| h.pid == pid);
    table.held.push(Held {
        id,
        pid,
        path,
        _file: file,
    });
    Ok(id)
}

/// Whether this process holds the run under this token.
pub(crate) fn held(base: &Path, id: u32) -> Result<(), Error> {
    let path = with_ext(base, ".lock");
    let pid = std::process::id();
    let holds = |h: &Held| h.id == id && h.pid == pid && h.path == path;
    if table().held.iter().any(holds) {
        return Ok(());
    }
    let run = run_of(base);
    Err(Error::NotOwner { run })
}

/// The file of a run with this extension.
pub(crate) fn with_ext(base: &Path, ext: &str) -> PathBuf {
    let mut path = base.as_os_str().to_owned();
    path.push(ext);
    path.into()
}

/// Takes the lock or says who has it (`Some(None)`: somebody).
#[cfg(unix)]
fn try_lock(file: &File) -> io::Result<Option<Option<u32>>> {
    use std::os::fd::AsRawFd;
    let mut whole: libc::flock = unsafe { std::mem::zeroed() };
    whole.l_type = libc::F_WRLCK as _;
    whole.l_whence = libc::SEEK_SET as _;
    // SAFETY: an open descriptor and a lock description that outlives the call.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &whole) } == 0 {
        return Ok(None);
    }
    let cause = io::Error::last_os_error();
    if !matches!(cause.raw_os_error(), Some(libc::EACCES | libc::EAGAIN)) {
        return Err(cause);
    }
    // SAFETY: as above; the call fills the description.
    let asked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &mut whole) };
    let known = asked == 0 && i32::from(whole.l_type) != libc::F_UNLCK && whole.l_pid > 0;
    Ok(Some(known.then_some(whole.l_pid as u32)))
}

#[cfg(not(unix))]
fn try_lock(file: &File) -> io::Result<Option<Option<u32>>> {
    match file.try_lock() {
        Ok(()) => Ok(None),
        Err(std::fs::TryLockError::WouldBlock) => Ok(Some(None)),
        Err(std::fs::TryLockError::Error(cause)) => Err(cause),
    }
}

#[extendr]
fn rs_run_lock(base: &str) -> Robj {
    guard(|| Ok(take(Path::new(base)).map_err(boxed)? as i32))
}

#[extendr]
fn rs_run_held(base: &str, id: i32) -> Robj {
    guard(|| Ok(held(Path::new(base), id as u32).is_ok()))
}

#[extendr]
fn rs_run_unlock(id: i32) -> Robj {
    guard(|| {
        let pid = std::process::id();
        table()
            .held
            .retain(|h| !(h.id == id as u32 && h.pid == pid));
        Ok(())
    })
}

extendr_module! {
    mod owner;
    fn rs_run_lock;
    fn rs_run_held;
    fn rs_run_unlock;
}
