//! The only file I/O of the package: lines appended whole under a lock, torn tails
//! set aside, lines read in pieces.
//!
//! A file is opened, locked, changed and closed within one call, so that nothing is
//! inherited over a fork and a lock ends with its holder.

use extendr_api::prelude::*;
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use warrant_core::digest::{Digest, Hasher};
use warrant_core::error::{Fault, Kind};
use warrant_core::journal::format::MAX_LINE;

use crate::fault::guard;

/// How long an append waits for another writer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much is read at once.
pub(crate) const BLOCK: usize = 1 << 20;

/// What can go wrong with a file; `family` is who uses it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{} is locked by another writer for longer than {} seconds", path.display(), PATIENCE.as_secs())]
    Busy { family: Kind, path: PathBuf },
    #[error("cannot {verb} {}: {cause}", path.display())]
    Io {
        family: Kind,
        verb: &'static str,
        path: PathBuf,
        cause: io::Error,
    },
    #[error("{} is not a regular file", path.display())]
    NotAFile { family: Kind, path: PathBuf },
}

impl Fault for Error {
    fn code(&self) -> &'static str {
        match (self.kind(), self) {
            (Kind::Input, Error::Io { verb: "write", .. }) => "file_write",
            (Kind::Input, _) => "file_read",
            (Kind::Store, Error::Busy { .. }) => "store_busy",
            (_, Error::Busy { .. }) => "audit_busy",
            (Kind::Store, Error::Io { verb: "read", .. }) => "store_read",
            (_, Error::Io { verb: "read", .. }) => "audit_read",
            (Kind::Store, _) => "store_write",
            _ => "audit_write",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Error::Busy { family, .. }
            | Error::Io { family, .. }
            | Error::NotAFile { family, .. } => *family,
        }
    }

    fn facts(&self) -> Map<String, Value> {
        let (Error::Busy { path, .. } | Error::Io { path, .. } | Error::NotAFile { path, .. }) =
            self;
        let mut facts = Map::new();
        facts.insert("path".into(), path.to_string_lossy().into());
        facts
    }
}

/// A torn tail that was set aside.
pub(crate) struct Torn {
    pub(crate) aside: String,
    pub(crate) bytes: u64,
    pub(crate) digest: Digest,
}

/// A file of lines, locked until it is dropped.
pub(crate) struct Lines {
    family: Kind,
    path: PathBuf,
    file: File,
    len: u64,
    made: bool,
}

impl Lines {
    /// Opens and locks a file for appending, making it where there is none.
    pub(crate) fn open(path: &Path, family: Kind) -> Result<Self, Error> {
        let fail = |verb, cause| Error::Io {
            family,
            verb,
            path: path.to_owned(),
            cause,
        };
        let made = !path.exists();
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(|e| fail("write", e))?;
        lock(&file, path, family)?;
        let about = file.metadata().map_err(|e| fail("read", e))?;
        if about.is_dir() || is_pipe(&about) {
            let path = path.to_owned();
            return Err(Error::NotAFile { family, path });
        }
        Ok(Self {
            family,
            path: path.to_owned(),
            len: about.len(),
            file,
            made,
        })
    }

    /// The length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The open file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Sets an unterminated last line aside, in `<path>.torn-N`, so that the next
    /// line is not glued to it.
    pub(crate) fn mend(&mut self) -> Result<Option<Torn>, Error> {
        if self.len == 0 || self.bytes(self.len - 1, 1)? == b"\n" {
            return Ok(None);
        }
        let start = self.line_start(self.len)?;
        let torn = self.bytes(start, (self.len - start) as usize)?;
        let aside = self.set_aside(&torn)?;
        self.file
            .set_len(start)
            .and_then(|()| self.file.sync_data())
            .map_err(|e| self.fail("write", e))?;
        self.len = start;
        Ok(Some(Torn {
            aside,
            bytes: torn.len() as u64,
            digest: Digest::of_bytes(&torn),
        }))
    }

    /// The last whole line, without its newline; the tail must have been mended.
    pub(crate) fn last_line(&self) -> Result<Option<Vec<u8>>, Error> {
        if self.len == 0 {
            return Ok(None);
        }
        let start = self.line_start(self.len - 1)?;
        self.bytes(start, (self.len - 1 - start) as usize).map(Some)
    }

    /// Appends bytes whole: when that fails, the file is as before.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if let Err(cause) = self.file.write_all(bytes) {
            // Where even this fails, the next append sets the fragment aside.
            let _ = self.file.set_len(self.len);
            return Err(self.fail("write", cause));
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Waits until the file, and its name where it is new, are on the disk.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.file.sync_data().map_err(|e| self.fail("write", e))?;
        if self.made {
            let folder = self.path.parent().unwrap_or(Path::new("."));
            let folder = if folder.as_os_str().is_empty() {
                Path::new(".")
            } else {
                folder
            };
            // Not every system can sync a folder.
            if let Ok(folder) = File::open(folder) {
                let _ = folder.sync_all();
            }
        }
        Ok(())
    }

    /// Where the line begins that ends before `end`.
    fn line_start(&self, end: u64) -> Result<u64, Error> {
        let mut end = end;
        while end > 0 {
            let start = end.saturating_sub(4096);
            let block = self.bytes(start, (end - start) as usize)?;
            if let Some(at) = memchr::memrchr(b'\n', &block) {
                return Ok(start + at as u64 + 1);
            }
            end = start;
        }
        Ok(0)
    }

    pub(crate) fn bytes(&self, start: u64, len: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; len];
        let mut file = &self.file;
        file.seek(SeekFrom::Start(start))
            .and_then(|_| file.read_exact(&mut bytes))
            .map_err(|e| self.fail("read", e))?;
        Ok(bytes)
    }

    fn set_aside(&self, torn: &[u8]) -> Result<String, Error> {
        for n in 1u32.. {
            let mut aside = self.path.clone().into_os_string();
            aside.push(format!(".torn-{n}"));
            let made = OpenOptions::new().write(true).create_new(true).open(&aside);
            match made {
                Ok(mut file) => {
                    file.write_all(torn)
                        .and_then(|()| file.sync_data())
                        .map_err(|e| self.fail("write", e))?;
                    let name = Path::new(&aside).file_name().unwrap_or_default();
                    return Ok(name.to_string_lossy().into_owned());
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(self.fail("write", e)),
            }
        }
        Err(self.fail("write", io::ErrorKind::AlreadyExists.into()))
    }

    fn fail(&self, verb: &'static str, cause: io::Error) -> Error {
        Error::Io {
            family: self.family,
            verb,
            path: self.path.clone(),
            cause,
        }
    }
}

/// Takes the lock of an open file, waiting for other writers within reason.
fn lock(file: &File, path: &Path, family: Kind) -> Result<(), Error> {
    let begun = Instant::now();
    let mut pause = Duration::from_micros(20);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(cause)) if cause.kind() != io::ErrorKind::Interrupted => {
                return Err(Error::Io {
                    family,
                    verb: "lock",
                    path: path.to_owned(),
                    cause,
                })
            }
            Err(_) if begun.elapsed() > PATIENCE => {
                let path = path.to_owned();
                return Err(Error::Busy { family, path });
            }
            Err(_) => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(2));
            }
        }
    }
}

#[cfg(unix)]
fn is_pipe(about: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    about.file_type().is_fifo() || about.file_type().is_socket()
}

#[cfg(unix)]
fn is_device(about: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    about.file_type().is_char_device() || about.file_type().is_block_device()
}

#[cfg(not(unix))]
fn is_device(_: &std::fs::Metadata) -> bool {
    false
}

#[cfg(not(unix))]
fn is_pipe(_: &std::fs::Metadata) -> bool {
    false
}

/// Opens a file for reading.
pub(crate) fn open_to_read(path: &Path, family: Kind) -> Result<File, Error> {
    let fail = |cause| Error::Io {
        family,
        verb: "read",
        path: path.to_owned(),
        cause,
    };
    let file = File::open(path).map_err(fail)?;
    let about = file.metadata().map_err(fail)?;
    // A device may have no end.
    if about.is_dir() || is_device(&about) {
        let path = path.to_owned();
        return Err(Error::NotAFile { family, path });
    }
    Ok(file)
}

/// Hands each whole line from `start` on to `each`, with its offset and without its
/// newline, until it answers no. An unterminated rest is not a line, and a line
/// longer than a record may be is passed over.
pub(crate) fn each_line(
    file: &File,
    start: u64,
    mut each: impl FnMut(u64, &[u8]) -> bool,
) -> io::Result<()> {
    let mut file = file;
    file.seek(SeekFrom::Start(start))?;
    let mut block = vec![0; BLOCK];
    let mut rest: Vec<u8> = Vec::new();
    let mut at = start;
    let mut skipping = false;
    loop {
        let n = file.read(&mut block)?;
        if n == 0 {
            return Ok(());
        }
        let mut from = 0;
        for end in memchr::memchr_iter(b'\n', &block[..n]) {
            let part = &block[from..end];
            let len = (rest.len() + part.len()) as u64 + 1;
            let go_on = if skipping {
                skipping = false;
                true
            } else if rest.is_empty() {
                each(at, part)
            } else {
                rest.extend_from_slice(part);
                each(at, &rest)
            };
            if !go_on {
                return Ok(());
            }
            at += len;
            rest.clear();
            from = end + 1;
        }
        if skipping {
            at += (n - from) as u64;
        } else {
            rest.extend_from_slice(&block[from..n]);
        }
        if rest.len() > MAX_LINE {
            at += rest.len() as u64;
            rest.clear();
            skipping = true;
        }
    }
}

/// Writes a file that is not there yet.
pub(crate) fn write_new(path: &Path, bytes: &[u8], family: Kind) -> Result<(), Error> {
    let made = OpenOptions::new().write(true).create_new(true).open(path);
    made.and_then(|mut file| file.write_all(bytes))
        .map_err(|cause| Error::Io {
            family,
            verb: "write",
            path: path.to_owned(),
            cause,
        })
}

// Writes texts, joined, to a file that is not there yet.
#[extendr]
fn rs_write_new(path: &str, texts: Vec<String>) -> Robj {
    guard(|| {
        Ok(write_new(
            Path::new(path),
            texts.concat().as_bytes(),
            Kind::Input,
        )?)
    })
}

// SHA-256 of a file, read in pieces.
#[extendr]
fn rs_sha256_file(path: &str) -> Robj {
    guard(|| {
        let path = Path::new(path);
        let mut file = open_to_read(path, Kind::Input)?;
        let mut hasher = Hasher::new();
        let mut block = vec![0; BLOCK];
        loop {
            match file.read(&mut block).map_err(|cause| Error::Io {
                family: Kind::Input,
                verb: "read",
                path: path.to_owned(),
                cause,
            })? {
                0 => return Ok(hasher.finish().to_hex()),
                n => hasher.update(&block[..n]),
            }
        }
    })
}

// Whether each file has one whole line at least.
#[extendr]
fn rs_has_line(paths: Vec<String>) -> Robj {
    guard(|| {
        let has = |path: &String| {
            let mut found = false;
            if let Ok(file) = open_to_read(Path::new(path), Kind::Store) {
                let _ = each_line(&file, 0, |_, _| {
                    found = true;
                    false
                });
            }
            found
        };
        Ok(paths.iter().map(has).collect::<Vec<bool>>())
    })
}

extendr_module! {
    mod files;
    fn rs_has_line;
    fn rs_sha256_file;
    fn rs_write_new;
}
