//! An audit file: the journals of many runs, chained with each other by `link`
//! lines of the file's own.

use crate::fault::{boxed, guard};
use crate::files::{each_line, open_to_read, Error as FileError, Lines, Torn};
use extendr_api::prelude::*;
use serde_json::{json, Map, Value};
use std::path::Path;
use warrant_core::digest::Digest;
use warrant_core::error::{Fault, Kind};
use warrant_core::event::SCHEMA;
use warrant_core::journal::format::{FINISHED, LINK, RECOVERED, RUN_STARTED};
use warrant_core::journal::{Chain, Line, RunId};

type Boxed = Box<dyn Fault>;

/// Why a run cannot go on in a trail.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(
        "the trail goes on after the last record of this copy of run {run}: resume the newer state"
    )]
    Ahead { run: String, seq: u64 },
    #[error("record {seq} of run {run} in the trail is not the one of the store")]
    Differs { run: String, seq: u64 },
    #[error("the trail lacks the head that the state of run {run} names")]
    LacksHead { run: String, seq: u64 },
    #[error("the operating system gives no random bytes")]
    NoRandom,
    #[error("this line is no record: {0}")]
    NotARecord(String),
}

impl Fault for Error {
    fn code(&self) -> &'static str {
        match self {
            Error::Ahead { .. } => "trail_ahead",
            Error::Differs { .. } => "trail_differs",
            Error::LacksHead { .. } => "trail_lacks_head",
            Error::NoRandom => "no_random",
            Error::NotARecord(_) => "audit_line",
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Error::NotARecord(_) | Error::NoRandom => Kind::Audit,
            _ => Kind::State,
        }
    }

    fn facts(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        if let Error::Ahead { run, seq }
        | Error::Differs { run, seq }
        | Error::LacksHead { run, seq } = self
        {
            facts.insert("run_id".into(), run.as_str().into());
            facts.insert("seq".into(), (*seq).into());
        }
        facts
    }
}

/// A locked audit file, and the chain of its own lines.
struct Trail {
    file: Lines,
    /// Looked for when a line of the file's own is to be written.
    chain: Option<Chain>,
    /// The digest and event of the last line, where it is a record.
    last: Option<(Digest, String)>,
    out: String,
    at: u64,
}

impl Trail {
    fn open(path: &Path, at: u64) -> Result<Self, Boxed> {
        let mut file = Lines::open(path, Kind::Audit).map_err(boxed)?;
        let torn = file.mend().map_err(boxed)?;
        let last = file.last_line().map_err(boxed)?;
        let last = last.as_deref().and_then(Line::read);
        let last = last.and_then(|l| Some((l.digest.parse().ok()?, l.event.to_owned())));
        let mut trail = Self {
            file,
            chain: None,
            last,
            out: String::new(),
            at,
        };
        if let Some(torn) = torn {
            trail.recovered(&torn)?;
        }
        Ok(trail)
    }

    /// Adds the lines of runs, with links where runs begin and end.
    fn add(&mut self, lines: &[String]) -> Result<(), Boxed> {
        for text in lines {
            let line = Line::read(text.as_bytes());
            let line = line.ok_or_else(|| {
                let text = text.chars().take(60).collect();
                boxed(Error::NotARecord(text))
            })?;
            let after_end = self.last.as_ref().is_some_and(|(_, e)| e == FINISHED);
            let after_link = self.last.as_ref().is_some_and(|(_, e)| e == LINK);
            let begins = line.event == RUN_STARTED && !after_link;
            if after_end || begins || (self.file.len() == 0 && self.out.is_empty()) {
                self.link()?;
            }
            self.out.push_str(text);
            self.out.push('\n');
            let digest = line.digest.parse().map_err(boxed)?;
            self.last = Some((digest, line.event.to_owned()));
            if line.event == FINISHED {
                self.link()?;
            }
        }
        Ok(())
    }

    /// Writes what was added, whole.
    fn write(mut self, sync: Sync) -> Result<(), Boxed> {
        self.file.append(self.out.as_bytes()).map_err(boxed)?;
        if sync == Sync::Wait {
            self.file.sync().map_err(boxed)?;
        }
        Ok(())
    }

    fn link(&mut self) -> Result<(), Boxed> {
        let after = self.last.as_ref().map(|(digest, _)| digest.to_hex());
        let mut data = json!({ "after": after });
        if self.chain()?.head().is_none() {
            data["schema"] = SCHEMA.into();
        }
        self.own(LINK, &data)
    }

    fn recovered(&mut self, torn: &Torn) -> Result<(), Boxed> {
        if self.chain()?.head().is_none() {
            self.link()?;
        }
        let data = json!({
            "aside": torn.aside, "bytes": torn.bytes, "sha256": torn.digest.to_hex(),
        });
        self.own(RECOVERED, &data)
    }

    fn chain(&mut self) -> Result<&mut Chain, Boxed> {
        let chain = match self.chain.take() {
            Some(chain) => chain,
            None => match own_chain(&self.file).map_err(boxed)? {
                Some(chain) => chain,
                None => Chain::start(random_id()?),
            },
        };
        Ok(self.chain.insert(chain))
    }

    fn own(&mut self, event: &str, data: &Value) -> Result<(), Boxed> {
        let data = warrant_core::canon::to_vec(data);
        let at = self.at;
        let record = self
            .chain()?
            .append_data(event, &data, at, 0)
            .map_err(boxed)?;
        self.last = Some((record.digest(), event.to_owned()));
        self.out.push_str(record.line());
        self.out.push('\n');
        Ok(())
    }
}

/// Whether an append waits for the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sync {
    Wait,
    No,
}

impl Sync {
    fn of(wait: bool) -> Self {
        if wait {
            Sync::Wait
        } else {
            Sync::No
        }
    }
}

pub(crate) fn random_id() -> Result<RunId, Boxed> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| boxed(Error::NoRandom))?;
    Ok(RunId::of_random(bytes))
}

/// The chain of the file's own lines: found backward from the end, so that it costs
/// what was written since the last link and not the file.
fn own_chain(file: &Lines) -> Result<Option<Chain>, FileError> {
    let link = memchr::memmem::FinderRev::new(b",\"event\":\"link\",\"prev\":");
    let mut end = file.len();
    // Blocks overlap, so that no link is cut; the first try is small.
    let mut size = 16 << 10;
    while end > 0 {
        let start = end.saturating_sub(size);
        let block = file.bytes(start, (end - start) as usize)?;
        let mut upto = block.len();
        while let Some(hit) = link.rfind(&block[..upto]) {
            let from = memchr::memrchr(b'\n', &block[..hit]).map_or(0, |n| n + 1);
            let to = memchr::memchr(b'\n', &block[hit..]).map_or(block.len(), |n| hit + n);
            if let Some(chain) = Line::read(&block[from..to]).and_then(|l| resumed(&l)) {
                return last_own(file, chain, start + to as u64 + 1).map(Some);
            }
            upto = hit;
        }
        end = if start == 0 { 0 } else { start + OVERLAP };
        size = 1 << 20;
    }
    Ok(None)
}

/// More than the length of any link line.
const OVERLAP: u64 = 2048;

fn resumed(line: &Line<'_>) -> Option<Chain> {
    if line.event != LINK && line.event != RECOVERED {
        return None;
    }
    let run = RunId::new(line.run).ok()?;
    Some(Chain::resume(run, line.seq, line.digest.parse().ok()?, 0))
}

/// The chain after any `recovered` line of its own from `start` on.
fn last_own(file: &Lines, chain: Chain, start: u64) -> Result<Chain, FileError> {
    let mut chain = chain;
    let own = format!(",\"run\":\"{}\",\"seq\":", chain.run());
    let finder = memchr::memmem::Finder::new(own.as_bytes());
    let read = each_line(file.file(), start.min(file.len()), |_, line| {
        if finder.find(line).is_some() {
            let read = Line::read(line).filter(|l| l.run == chain.run().as_str());
            if let Some(next) = read.and_then(|l| resumed(&l)) {
                chain = next;
            }
        }
        true
    });
    read.map_err(|cause| FileError::Io {
        family: Kind::Audit,
        verb: "read",
        path: "the audit file".into(),
        cause,
    })?;
    Ok(chain)
}

/// Hands over each line of a run in a file, in order.
fn lines_of_run(
    file: &std::fs::File,
    run: &str,
    mut each: impl FnMut(&[u8]) -> bool,
) -> std::io::Result<()> {
    let own = format!(",\"run\":\"{run}\",\"seq\":");
    let finder = memchr::memmem::Finder::new(own.as_bytes());
    each_line(file, 0, |_, line| {
        let hit = finder.find(line).is_some();
        !(hit && Line::read(line).is_some_and(|l| l.run == run)) || each(line)
    })
}

/// Completes a run in a trail whose lines of that run begin the same as `lines`.
fn complete(trail: &mut Trail, run: &str, lines: &[String], head: &str) -> Result<i32, Boxed> {
    let mut have = 0usize;
    let mut error = None;
    let mut head_seen = head.is_empty();
    let read = lines_of_run(trail.file.file(), run, |line| {
        let seq = have as u64;
        let run = run.to_owned();
        match lines.get(have) {
            None => error = Some(Error::Ahead { run, seq }),
            Some(own) if own.as_bytes() != line => error = Some(Error::Differs { run, seq }),
            Some(_) => {
                head_seen |= Line::read(line).is_some_and(|l| l.digest == head);
                have += 1;
            }
        }
        error.is_none()
    });
    read.map_err(|cause| {
        boxed(FileError::Io {
            family: Kind::Audit,
            verb: "read",
            path: "the audit file".into(),
            cause,
        })
    })?;
    if let Some(error) = error {
        return Err(boxed(error));
    }
    if !head_seen {
        let run = run.to_owned();
        let seq = have as u64;
        return Err(boxed(Error::LacksHead { run, seq }));
    }
    trail.add(&lines[have..])?;
    Ok((lines.len() - have) as i32)
}

#[extendr]
fn rs_audit_append(path: &str, lines: Vec<String>, at: f64, sync: bool) -> Robj {
    guard(|| {
        let mut trail = Trail::open(Path::new(path), at as u64)?;
        trail.add(&lines)?;
        trail.write(Sync::of(sync))
    })
}

#[extendr]
fn rs_audit_complete(
    path: &str,
    run: &str,
    lines: Vec<String>,
    head: &str,
    at: f64,
    sync: bool,
) -> Robj {
    guard(|| {
        let mut trail = Trail::open(Path::new(path), at as u64)?;
        let added = complete(&mut trail, run, &lines, head)?;
        trail.write(Sync::of(sync))?;
        Ok(added)
    })
}

#[extendr]
fn rs_audit_has_run(path: &str, run: &str) -> Robj {
    guard(|| {
        let path = Path::new(path);
        let mut found = false;
        if path.exists() {
            let file = open_to_read(path, Kind::Audit).map_err(boxed)?;
            let _ = lines_of_run(&file, run, |_| {
                found = true;
                false
            });
        }
        Ok(found)
    })
}

extendr_module! {
    mod trail;
    fn rs_audit_append;
    fn rs_audit_complete;
    fn rs_audit_has_run;
}
