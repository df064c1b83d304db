//! Verifying and reading trails from files and from lines, in pieces, so that R can
//! be interrupted between them.

use crate::fault::{boxed, guard};
use crate::files::{each_line, open_to_read, Error as FileError, BLOCK};
use extendr_api::prelude::*;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use warrant_core::canon;
use warrant_core::digest::{unhex, Digest};
use warrant_core::error::{Fault, Kind};
use warrant_core::journal::content::{Claimed, Claimings, Claims, Rule};
use warrant_core::journal::verify::{Depth, Verifier};
use warrant_core::journal::{Chain, Finding, Line, Report, RunId};
use warrant_core::schema::Schema;

/// A handle that does not outlive its session.
#[derive(Debug, thiserror::Error)]
#[error("a trail's verification cannot go on in another session")]
struct Gone;

impl Fault for Gone {
    fn code(&self) -> &'static str {
        "verification_gone"
    }
    fn kind(&self) -> Kind {
        Kind::State
    }
    fn facts(&self) -> Map<String, Value> {
        Map::new()
    }
}

/// A verification under way.
struct Verification {
    verifier: Option<Verifier>,
    claims: Option<Claims>,
    file: Option<(File, PathBuf)>,
    block: Vec<u8>,
}

static UNDER_WAY: Mutex<Vec<(i32, Verification)>> = Mutex::new(Vec::new());

fn with<T>(
    id: i32,
    each: impl FnOnce(&mut Verification) -> Result<T, Box<dyn Fault>>,
) -> Result<T, Box<dyn Fault>> {
    let mut all = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
    let found = all.iter_mut().find(|(i, _)| *i == id);
    each(&mut found.ok_or_else(|| boxed(Gone))?.1)
}

impl Verification {
    fn feed(&mut self, bytes: &[u8]) {
        if let Some(verifier) = &mut self.verifier {
            verifier.feed(bytes);
        }
        if let Some(claims) = &mut self.claims {
            claims.feed(bytes);
        }
    }

    /// Reads on, up to `budget` bytes; answers whether the file has ended.
    fn read(&mut self, budget: usize) -> Result<bool, FileError> {
        let mut left = budget;
        while left > 0 {
            let Some((file, path)) = &mut self.file else {
                return Ok(true);
            };
            let mut block = std::mem::take(&mut self.block);
            block.resize(BLOCK, 0);
            let read = file.read(&mut block);
            let n = read.map_err(|cause| FileError::Io {
                family: Kind::Audit,
                verb: "read",
                path: path.clone(),
                cause,
            })?;
            self.feed(&block[..n]);
            self.block = block;
            if n == 0 {
                self.file = None;
                return Ok(true);
            }
            left = left.saturating_sub(n);
        }
        Ok(false)
    }
}

#[extendr]
fn rs_verify_start(heads: Vec<String>, meaning: bool, claims: bool) -> Robj {
    guard(|| {
        let heads: Result<Vec<_>, _> = heads.iter().map(|h| h.parse()).collect();
        let depth = if meaning {
            Depth::Meaning
        } else {
            Depth::Chain
        };
        let verification = Verification {
            verifier: Some(Verifier::new(depth, heads.map_err(boxed)?)),
            claims: claims.then(Claims::new),
            file: None,
            block: Vec::new(),
        };
        let mut all = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        let id = all.iter().map(|(i, _)| *i).max().unwrap_or(0) + 1;
        all.push((id, verification));
        Ok(id)
    })
}

#[extendr]
fn rs_verify_open(id: i32, path: &str) -> Robj {
    guard(|| {
        let path = PathBuf::from(path);
        let file = open_to_read(&path, Kind::Audit).map_err(boxed)?;
        with(id, |v| {
            v.file = Some((file, path));
            Ok(())
        })
    })
}

#[extendr]
fn rs_verify_read(id: i32, budget: f64) -> Robj {
    guard(|| with(id, |v| v.read(budget as usize).map_err(boxed)))
}

#[extendr]
fn rs_verify_lines(id: i32, lines: Vec<String>) -> Robj {
    guard(|| {
        with(id, |v| {
            for line in &lines {
                v.feed(line.as_bytes());
                v.feed(b"\n");
            }
            Ok(())
        })
    })
}

#[extendr]
fn rs_verify_finish(id: i32) -> Robj {
    guard(|| {
        let ended = with(id, |v| Ok((v.verifier.take(), v.claims.take())))?;
        rs_verify_drop(id);
        let verifier = ended.0.ok_or_else(|| boxed(Gone))?;
        let claims = ended.1.map(Claims::finish);
        Ok(report(verifier.finish(), claims))
    })
}

#[extendr]
fn rs_verify_drop(id: i32) {
    let mut all = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|(i, _)| *i != id);
}

fn report(report: Report, claims: Option<Claimings>) -> Robj {
    let column = |f: fn(&Finding) -> Option<u64>| -> Vec<Option<f64>> {
        let to_double = |x: &Finding| f(x).map(|n| n as f64);
        report.findings.iter().map(to_double).collect()
    };
    let text = |f: fn(&Finding) -> Option<String>| -> Vec<Option<String>> {
        report.findings.iter().map(f).collect()
    };
    let heads: Vec<String> = report.heads.iter().map(|h| h.to_string()).collect();
    let Claimings {
        addresses: claims,
        rules,
    } = claims.unwrap_or_default();
    let of = |f: fn(&Claimed) -> String| -> Vec<String> { claims.iter().map(f).collect() };
    let by = |f: fn(&Rule) -> String| -> Vec<String> { rules.iter().map(f).collect() };
    list!(
        kind = text(|f| Some(f.kind.word().to_owned())),
        line = column(|f| f.line),
        run = text(|f| f.run.clone()),
        seq = column(|f| f.seq),
        what = text(|f| Some(f.what.clone())),
        state = report.state.word(),
        lines = report.lines as f64,
        records = report.records as f64,
        runs = report.runs as f64,
        open = report.open as f64,
        recoveries = report.recoveries as f64,
        heads = heads,
        claims = list!(
            run = of(|c| c.run.clone()),
            seq = claims.iter().map(|c| c.seq as f64).collect::<Vec<_>>(),
            line = claims.iter().map(|c| c.line as f64).collect::<Vec<_>>(),
            member = of(|c| c.member.to_owned()),
            address = of(|c| c.address.to_hex())
        ),
        rules = list!(
            run = by(|r| r.run.clone()),
            seq = rules.iter().map(|r| r.seq as f64).collect::<Vec<_>>(),
            line = rules.iter().map(|r| r.line as f64).collect::<Vec<_>>(),
            member = by(|r| r.member.to_owned()),
            value = by(|r| r.value.to_hex()),
            schema = by(|r| r.schema.to_hex())
        )
    )
    .into()
}

// The records of files and lines as columns; what is not a record is passed over.
#[extendr]
fn rs_audit_records(paths: Vec<String>, lines: Vec<String>) -> Robj {
    guard(|| {
        let mut columns = Columns::default();
        for path in &paths {
            let path = Path::new(path);
            let file = open_to_read(path, Kind::Audit).map_err(boxed)?;
            let read = each_line(&file, 0, |_, line| {
                columns.add(line);
                true
            });
            read.map_err(|cause| {
                boxed(FileError::Io {
                    family: Kind::Audit,
                    verb: "read",
                    path: path.to_owned(),
                    cause,
                })
            })?;
        }
        lines.iter().for_each(|line| columns.add(line.as_bytes()));
        Ok(columns.into_list())
    })
}

#[derive(Default)]
struct Columns {
    lines: f64,
    line: Vec<f64>,
    run: Vec<String>,
    seq: Vec<f64>,
    event: Vec<String>,
    at: Vec<f64>,
    active_ms: Vec<f64>,
    data: Vec<String>,
    prev: Vec<Option<String>>,
    digest: Vec<String>,
}

impl Columns {
    fn add(&mut self, bytes: &[u8]) {
        self.lines += 1.0;
        if let Some(line) = Line::read(bytes) {
            self.line.push(self.lines);
            self.run.push(line.run.to_owned());
            self.seq.push(line.seq as f64);
            self.event.push(line.event.to_owned());
            self.at.push(line.at as f64 / 1000.0);
            self.active_ms.push(line.active_ms as f64);
            self.data.push(line.data.to_owned());
            self.prev.push(line.prev.map(str::to_owned));
            self.digest.push(line.digest.to_owned());
        }
    }

    fn into_list(self) -> List {
        list!(
            line = self.line,
            run = self.run,
            seq = self.seq,
            event = self.event,
            at = self.at,
            active_ms = self.active_ms,
            data = self.data,
            prev = self.prev,
            digest = self.digest
        )
    }
}

// Records of a run sealed over a head: the lines, and the new head.
#[extendr]
fn rs_seal_lines(
    run: &str,
    seq: f64,
    head: &str,
    events: Vec<String>,
    data: Vec<String>,
    at: Vec<f64>,
    active_ms: Vec<f64>,
) -> Robj {
    guard(|| {
        let run = RunId::new(run).map_err(boxed)?;
        let mut chain = match head {
            "" => Chain::start(run),
            head => Chain::resume(
                run,
                (seq as u64).saturating_sub(1),
                head.parse().map_err(boxed)?,
                0,
            ),
        };
        let mut lines = Vec::with_capacity(events.len());
        for (i, (event, data)) in events.iter().zip(&data).enumerate() {
            let [at, active] =
                [&at, &active_ms].map(|x| x.get(i).or(x.first()).map_or(0, |v| *v as u64));
            let record = chain.append_data(event, data.as_bytes(), at, active);
            lines.push(record.map_err(boxed)?.into_line());
        }
        let head = chain.head().map(|d| d.to_hex()).unwrap_or_default();
        Ok(list!(lines = lines, head = head))
    })
}

// The addresses of some content under a key: HMAC-SHA-256 of the texts' bytes.
#[extendr]
fn rs_content_addresses(key: &str, texts: Vec<String>) -> Robj {
    guard(|| {
        let key: Option<[u8; 32]> = unhex(key).and_then(|k| k.try_into().ok());
        let key = key.ok_or_else(|| boxed(warrant_core::digest::Error::NotADigest))?;
        let address = |text: &String| Digest::keyed(&key, text.as_bytes()).to_hex();
        Ok(texts.iter().map(address).collect::<Vec<_>>())
    })
}

// 16 bytes of the operating system's randomness, never R's.
#[extendr]
fn rs_random_hex() -> Robj {
    guard(|| Ok(crate::trail::random_id()?.to_string()))
}

// Whether each value matches its schema; nothing where the schema has secrets, whose
// values are not kept, or where either is not what it should be.
#[extendr]
fn rs_content_judge(values: Vec<String>, schemas: Vec<String>) -> Robj {
    guard(|| {
        let mut known: HashMap<&String, Option<Schema>> = HashMap::new();
        let judge = |(value, schema): (&String, _)| -> Option<bool> {
            let read = |text: &String| canon::parse(text.as_bytes()).ok();
            let compile = || Schema::new(read(schema)?).ok();
            let schema = known.entry(schema).or_insert_with(compile).as_ref()?;
            let secret = schema.secrets().next().is_some();
            (!secret).then_some(schema.is_valid(&read(value)?))
        };
        Ok(values
            .iter()
            .zip(&schemas)
            .map(judge)
            .collect::<Vec<Option<bool>>>())
    })
}

// What `run_started` says of a key.
#[extendr]
fn rs_key_commitment(key: &str) -> Robj {
    guard(|| {
        let key: Option<[u8; 32]> = unhex(key).and_then(|k| k.try_into().ok());
        let key = key.ok_or_else(|| boxed(warrant_core::digest::Error::NotADigest))?;
        Ok(warrant_core::event::key_commitment(&key).to_hex())
    })
}

extendr_module! {
    mod journal;
    fn rs_verify_start;
    fn rs_verify_open;
    fn rs_verify_read;
    fn rs_verify_lines;
    fn rs_verify_finish;
    fn rs_verify_drop;
    fn rs_audit_records;
    fn rs_random_hex;
    fn rs_seal_lines;
    fn rs_content_addresses;
    fn rs_content_judge;
    fn rs_key_commitment;
}
