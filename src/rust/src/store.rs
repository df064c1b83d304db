//! The files of one run in a `file_store()`: journal and content.

use crate::fault::{boxed, guard};
use crate::files::{each_line, open_to_read, Error as FileError, Lines};
use crate::owner::{held, run_of, with_ext};
use extendr_api::prelude::*;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use warrant_core::error::{Fault, Kind};
use warrant_core::journal::Line;

type Boxed = Box<dyn Fault>;

/// What a store refuses.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("content of run {run} must be one line each, under an address of letters and digits")]
    NotALine { run: String },
    #[error("the store holds no run {run}")]
    NoSuchRun { run: String },
    #[error(
        "the store already holds a run {run}: choose another id, or leave it out for a random one"
    )]
    RunExists { run: String },
    #[error("run {run} has another head than the append builds on (expected {}, found {}): somebody else has written; read the run again", short(expected), short(found))]
    StaleHead {
        run: String,
        expected: String,
        found: String,
    },
}

fn short(head: &str) -> &str {
    head.get(..8).unwrap_or("no record")
}

impl Fault for Error {
    fn code(&self) -> &'static str {
        match self {
            Error::NotALine { .. } => "store_content",
            Error::NoSuchRun { .. } => "no_such_run",
            Error::RunExists { .. } => "run_exists",
            Error::StaleHead { .. } => "stale_head",
        }
    }

    fn kind(&self) -> Kind {
        Kind::Store
    }

    fn facts(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        let (Error::NotALine { run }
        | Error::NoSuchRun { run }
        | Error::RunExists { run }
        | Error::StaleHead { run, .. }) = self;
        facts.insert("run_id".into(), run.as_str().into());
        if let Error::StaleHead {
            expected, found, ..
        } = self
        {
            facts.insert("expected".into(), expected.as_str().into());
            facts.insert("found".into(), found.as_str().into());
        }
        facts
    }
}

/// One append: content first, so that no line refers to what is not there.
struct Append<'a> {
    base: &'a Path,
    lines: &'a [String],
    expect_head: &'a str,
    content: Vec<(&'a str, &'a str)>,
    sync: bool,
}

impl Append<'_> {
    fn run(self) -> Result<(), Boxed> {
        let run = run_of(self.base);
        let journal = if self.lines.is_empty() {
            None
        } else {
            Some(self.journal(run.clone())?)
        };
        if !self.content.is_empty() {
            self.keep(run)?;
        }
        if let Some(mut journal) = journal {
            journal
                .append(joined(self.lines).as_bytes())
                .map_err(boxed)?;
            if self.sync {
                journal.sync().map_err(boxed)?;
            }
        }
        Ok(())
    }

    /// The journal, locked, at the head that the append builds on.
    fn journal(&self, run: String) -> Result<Lines, Boxed> {
        let path = with_ext(self.base, ".jsonl");
        if !self.expect_head.is_empty() && !path.exists() {
            return Err(Box::new(Error::NoSuchRun { run }));
        }
        let mut journal = Lines::open(&path, Kind::Store).map_err(boxed)?;
        journal.mend().map_err(boxed)?;
        let last = journal.last_line().map_err(boxed)?;
        let found = last.as_deref().map_or(String::new(), |last| {
            Line::read(last).map_or("an unreadable record".into(), |line| line.digest.to_owned())
        });
        if found == self.expect_head {
            return Ok(journal);
        }
        let expected = self.expect_head.to_owned();
        Err(Box::new(match expected.is_empty() {
            true => Error::RunExists { run },
            false => Error::StaleHead {
                run,
                expected,
                found,
            },
        }))
    }

    fn keep(&self, run: String) -> Result<(), Boxed> {
        let word = |a: &str| !a.is_empty() && a.bytes().all(|b| b.is_ascii_alphanumeric());
        let mut bytes = String::new();
        for (address, text) in &self.content {
            if !word(address) || text.contains('\n') {
                return Err(Box::new(Error::NotALine { run }));
            }
            bytes.push_str(address);
            bytes.push(' ');
            bytes.push_str(text);
            bytes.push('\n');
        }
        let path = with_ext(self.base, ".content");
        let mut content = Lines::open(&path, Kind::Store).map_err(boxed)?;
        content.mend().map_err(boxed)?;
        content.append(bytes.as_bytes()).map_err(boxed)?;
        if self.sync {
            content.sync().map_err(boxed)?;
        }
        Ok(())
    }
}

fn joined(lines: &[String]) -> String {
    let mut out = String::with_capacity(lines.iter().map(|l| l.len() + 1).sum());
    for line in lines {
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// Where each value of a content file begins and ends, as far as it was read.
struct Index {
    path: PathBuf,
    identity: (u64, u64),
    read: u64,
    at: HashMap<String, (u64, usize)>,
    /// Where the last line that was read begins, and how.
    tail: (u64, Vec<u8>),
}

impl Index {
    fn new(path: &Path, identity: (u64, u64)) -> Self {
        Index {
            path: path.to_owned(),
            identity,
            read: 0,
            at: HashMap::new(),
            tail: (0, Vec::new()),
        }
    }

    /// Reads on to the end of the file.
    fn complete(&mut self, file: &std::fs::File) -> std::io::Result<()> {
        each_line(file, self.read, |at, line| {
            self.read = at + line.len() as u64 + 1;
            self.tail = (at, line[..line.len().min(TAIL)].to_vec());
            if let Some(space) = memchr::memchr(b' ', line) {
                let address = String::from_utf8_lossy(&line[..space]).into_owned();
                let place = (at + space as u64 + 1, line.len() - space - 1);
                self.at.entry(address).or_insert(place);
            }
            true
        })
    }

    /// Whether the file still has, where it was read last, what was there.
    fn fits(&self, file: &std::fs::File) -> bool {
        let (at, start) = &self.tail;
        bytes_at(file, *at, start.len()).is_ok_and(|found| found == *start)
    }

    /// The value at an address; an error where the file has another line there now.
    fn value(&self, file: &std::fs::File, address: &str) -> std::io::Result<Option<String>> {
        let Some((at, len)) = self.at.get(address) else {
            return Ok(None);
        };
        let before = address.len() + 1;
        let line = bytes_at(file, at - before as u64, before + len + 1)?;
        let whole = line.starts_with(address.as_bytes())
            && line[before - 1] == b' '
            && line.ends_with(b"\n")
            && memchr::memchr(b'\n', &line) == Some(line.len() - 1);
        if !whole {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        let text = String::from_utf8_lossy(&line[before..before + len]);
        Ok(Some(text.into_owned()))
    }
}

/// How much of the last line is remembered: its address, and more.
const TAIL: usize = 200;

/// The indexes of the files used last; a file only grows, so each is read once.
static INDEXES: Mutex<Vec<Index>> = Mutex::new(Vec::new());
const INDEXES_KEPT: usize = 8;

fn with_index<T>(
    path: &Path,
    found: impl Fn(&std::fs::File, &Index) -> std::io::Result<T>,
) -> Result<Option<T>, FileError> {
    if !path.exists() {
        return Ok(None);
    }
    let file = open_to_read(path, Kind::Store)?;
    let fail = |cause| FileError::Io {
        family: Kind::Store,
        verb: "read",
        path: path.to_owned(),
        cause,
    };
    let about = file.metadata().map_err(fail)?;
    let identity = identity(&about);
    let mut indexes = INDEXES.lock().unwrap_or_else(PoisonError::into_inner);
    indexes.retain(|i| i.path != path || (i.identity == identity && i.read <= about.len()));
    let known = indexes.iter().position(|i| i.path == path);
    let known = known.map(|at| indexes.remove(at)).filter(|i| i.fits(&file));
    let mut index = known.unwrap_or_else(|| Index::new(path, identity));
    index.complete(&file).map_err(fail)?;
    let mut value = found(&file, &index);
    if value.is_err() {
        // Somebody has changed what was there: it is read anew.
        index = Index::new(path, identity);
        index.complete(&file).map_err(fail)?;
        value = found(&file, &index);
    }
    let value = value.map_err(fail)?;
    indexes.insert(0, index);
    indexes.truncate(INDEXES_KEPT);
    Ok(Some(value))
}

#[cfg(unix)]
fn identity(about: &std::fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (about.dev(), about.ino())
}

#[cfg(not(unix))]
fn identity(_: &std::fs::Metadata) -> (u64, u64) {
    (0, 0)
}

fn bytes_at(mut file: &std::fs::File, at: u64, len: usize) -> std::io::Result<Vec<u8>> {
    use std::io::{Read, Seek, SeekFrom};
    let mut bytes = vec![0; len];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[extendr]
fn rs_store_append(
    base: &str,
    token: i32,
    lines: Vec<String>,
    expect_head: &str,
    addresses: Vec<String>,
    texts: Vec<String>,
    sync: bool,
) -> Robj {
    guard(|| {
        let base = Path::new(base);
        held(base, token as u32).map_err(boxed)?;
        let pairs = addresses.iter().zip(&texts);
        Append {
            base,
            lines: &lines,
            expect_head,
            content: pairs.map(|(a, t)| (a.as_str(), t.as_str())).collect(),
            sync,
        }
        .run()
    })
}

#[extendr]
fn rs_store_read(base: &str) -> Robj {
    guard(|| {
        let base = Path::new(base);
        let path = with_ext(base, ".jsonl");
        let missing = || boxed(Error::NoSuchRun { run: run_of(base) });
        if !path.exists() {
            return Err(missing());
        }
        let file = open_to_read(&path, Kind::Store).map_err(boxed)?;
        let mut lines: Vec<String> = Vec::new();
        let read = each_line(&file, 0, |_, line| {
            lines.push(String::from_utf8_lossy(line).into_owned());
            true
        });
        read.map_err(|cause| {
            boxed(FileError::Io {
                family: Kind::Store,
                verb: "read",
                path,
                cause,
            })
        })?;
        if lines.is_empty() {
            return Err(missing());
        }
        Ok(lines)
    })
}

#[extendr]
fn rs_content_get(base: &str, addresses: Vec<String>) -> Robj {
    guard(|| {
        let path = with_ext(Path::new(base), ".content");
        let found = with_index(&path, |file, index| {
            let get = |a: &String| index.value(file, a);
            addresses
                .iter()
                .map(get)
                .collect::<std::io::Result<Vec<_>>>()
        });
        let found = found.map_err(boxed)?;
        Ok(found.unwrap_or_else(|| vec![None; addresses.len()]))
    })
}

#[extendr]
fn rs_content_all(base: &str) -> Robj {
    guard(|| {
        let path = with_ext(Path::new(base), ".content");
        let all = with_index(&path, |file, index| {
            let mut keys: Vec<&String> = index.at.keys().collect();
            keys.sort_unstable();
            let text = |k: &&String| index.value(file, k).map(Option::unwrap_or_default);
            let texts = keys.iter().map(text).collect::<std::io::Result<Vec<_>>>()?;
            Ok((keys.into_iter().cloned().collect::<Vec<_>>(), texts))
        });
        let (address, text) = all.map_err(boxed)?.unwrap_or_default();
        Ok(list!(address = address, text = text))
    })
}

extendr_module! {
    mod store;
    fn rs_store_append;
    fn rs_store_read;
    fn rs_content_get;
    fn rs_content_all;
}
