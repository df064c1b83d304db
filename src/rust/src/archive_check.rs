//! Checking an archive: the seal, and each run against all that is said of it.

use crate::archive::{threads, Disk, Tree};
use crate::fault::guard;
use extendr_api::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use warrant_core::archive::table::{self, Source};
use warrant_core::archive::{seal, trajectory, withhold, Account, Content, Judged, Values};
use warrant_core::canon;
use warrant_core::digest::{unhex, Digest};
use warrant_core::event::key_commitment;
use warrant_core::journal::content::{Claimings, Claims};
use warrant_core::journal::verify::{Depth, Verifier};
use warrant_core::run::History;
use warrant_core::schema::Schema;

/// One thing that is wrong.
struct Found {
    kind: String,
    file: String,
    line: Option<u64>,
    run: Option<String>,
    what: String,
}

fn columns(found: Vec<Found>) -> Robj {
    let line = |f: &Found| f.line.map(|n| n as f64);
    let run = |f: &Found| f.run.clone();
    let lines: Vec<Option<f64>> = found.iter().map(line).collect();
    let runs: Vec<Option<String>> = found.iter().map(run).collect();
    let text = |f: fn(&Found) -> &String| -> Vec<String> {
        let clean = |x: &Found| f(x).replace('\0', "\u{fffd}");
        found.iter().map(clean).collect()
    };
    list!(
        kind = text(|f| &f.kind),
        file = text(|f| &f.file),
        line = lines,
        run = runs,
        what = text(|f| &f.what)
    )
    .into()
}

// Holds the list of digests against the files: what is wrong, the files that are
// there, their digests, and the digest of the list.
#[extendr]
fn rs_archive_scan(dir: &str) -> Robj {
    guard(|| {
        let dir = Path::new(dir);
        let tree = Tree::read(dir)?;
        let mut found = Vec::new();
        let mut add = |kind: &str, file: &str, line, what: &str| {
            found.push(Found {
                kind: kind.to_owned(),
                file: file.to_owned(),
                line,
                run: None,
                what: what.to_owned(),
            });
        };
        for (name, what) in &tree.odd {
            add("extra", name, None, what);
        }
        let mut digests = BTreeMap::new();
        for (name, digest) in tree.digests(Disk::AsItIs) {
            match digest {
                Some(digest) => {
                    digests.insert(name, digest);
                }
                None => add("unreadable", &name, None, "the file cannot be read"),
            }
        }
        let own = digests.remove(seal::FILE);
        match std::fs::read(dir.join(seal::FILE)) {
            Ok(list) => {
                for flaw in seal::check(&list, &digests) {
                    add(flaw.kind, &flaw.file, flaw.line, &flaw.what);
                }
            }
            Err(_) => add(
                "unsealed",
                seal::FILE,
                None,
                "the list of digests is not there",
            ),
        }
        let names: Vec<String> = digests.keys().cloned().collect();
        Ok(list!(
            found = columns(found),
            files = names,
            seal = own.map(|d| d.to_hex()).unwrap_or_default()
        ))
    })
}

/// What an archive says of one run.
struct Said {
    id: String,
    head: String,
    status: String,
    word: String,
    judged: Judged,
    case: String,
    trajectory: String,
    tables: [String; 3],
}

/// What is found of one run.
struct Check<'a> {
    said: &'a Said,
    found: Vec<Found>,
}

impl Check<'_> {
    fn add(&mut self, kind: &str, file: &str, line: Option<u64>, what: impl Into<String>) {
        self.found.push(Found {
            kind: kind.to_owned(),
            file: file.to_owned(),
            line,
            run: Some(self.said.id.clone()),
            what: what.into(),
        });
    }

    fn run(&mut self, dir: &Path, schemas: &mut Schemas) {
        let file = format!("journals/{}.jsonl", self.said.id);
        let Ok(bytes) = std::fs::read(dir.join(&file)) else {
            return self.add(
                "missing",
                &file,
                None,
                "the journal of the run is not there",
            );
        };
        self.journal(&file, &bytes);
        let mut claims = Claims::new();
        claims.feed(&bytes);
        let claims = claims.finish();
        let content = self.content(dir, &claims, schemas);
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        let Ok(history) = History::read(lines.iter().copied(), None) else {
            return;
        };
        let Ok(account) = Account::gather(&history, &lines) else {
            return;
        };
        self.told(&history, &account, &content);
    }

    fn journal(&mut self, file: &str, bytes: &[u8]) {
        let head = self.said.head.parse();
        let mut verifier = Verifier::new(Depth::Meaning, head.ok().into_iter().collect());
        verifier.feed(bytes);
        for finding in verifier.finish().findings {
            self.add(finding.kind.word(), file, finding.line, finding.what);
        }
    }

    /// The content of the run, each value held against its address.
    fn content(&mut self, dir: &Path, claims: &Claimings, schemas: &mut Schemas) -> Content {
        let file = format!("content/{}.content", self.said.id);
        let bytes = match (std::fs::read(dir.join(&file)), self.said.word.as_str()) {
            (Ok(_), "none") => {
                self.add(
                    "content_extra",
                    &file,
                    None,
                    "the archive says that it has no content of the run",
                );
                return Content::new();
            }
            (Ok(bytes), _) => bytes,
            (Err(_), "none") => return Content::new(),
            (Err(_), _) => {
                self.add(
                    "missing",
                    &file,
                    None,
                    "the content of the run is not there",
                );
                return Content::new();
            }
        };
        let claimed: BTreeSet<Digest> = claims.addresses.iter().map(|c| c.address).collect();
        let mut content = Content::new();
        let mut key = None;
        for (i, row) in String::from_utf8_lossy(&bytes)
            .split_terminator('\n')
            .enumerate()
        {
            let line = Some(i as u64 + 1);
            let Some((name, text)) = row.split_once(' ') else {
                self.add("content", &file, line, "is not an address and a value");
                continue;
            };
            if name == "key" && i == 0 {
                key = unhex(text).and_then(|k| <[u8; 32]>::try_from(k).ok());
                self.key(&file, key.as_ref(), claims);
                continue;
            }
            let address = name.parse::<Digest>().ok();
            let Some(address) = address.filter(|a| claimed.contains(a)) else {
                self.add(
                    "content_extra",
                    &file,
                    line,
                    "no record of the run names this value",
                );
                continue;
            };
            let right = key.map(|key| Digest::keyed(&key, text.as_bytes()) == address);
            if right == Some(false) || canon::parse(text.as_bytes()).is_err() {
                self.add(
                    "content_mismatch",
                    &file,
                    line,
                    "the value is not what its address was made from",
                );
                continue;
            }
            content.insert(address, text.as_bytes().to_vec());
        }
        self.complete(&file, key.is_some(), claims, &content);
        if self.said.word == "whole" {
            self.rules(&file, claims, &content, schemas);
        }
        content
    }

    fn key(&mut self, file: &str, key: Option<&[u8; 32]>, claims: &Claimings) {
        let committed = claims.addresses.iter().find(|c| c.member == "content_key");
        let right = key.map(key_commitment) == committed.map(|c| c.address);
        if !right || key.is_none() {
            self.add(
                "key_mismatch",
                file,
                Some(1),
                "the key is not the one that the run committed to",
            );
        }
    }

    fn complete(&mut self, file: &str, key: bool, claims: &Claimings, content: &Content) {
        let word = self.said.word.as_str();
        if key != (word == "whole") {
            let what = if key {
                "there is a key, and the archive says that there is none"
            } else {
                "the key is not there"
            };
            self.add("key_missing", file, Some(1), what);
        }
        if word == "partial" {
            return;
        }
        let mut told = BTreeSet::new();
        for claim in &claims.addresses {
            let there = claim.member == "content_key" || content.contains_key(&claim.address);
            if !there && told.insert(claim.address) {
                let what = format!(
                    "there is nothing for the {} at address {}",
                    claim.member, claim.address
                );
                self.add("content_missing", file, None, what);
            }
        }
    }

    fn rules(&mut self, file: &str, claims: &Claimings, content: &Content, schemas: &mut Schemas) {
        for rule in &claims.rules {
            let (Some(value), Some(schema)) = (content.get(&rule.value), content.get(&rule.schema))
            else {
                continue;
            };
            if !schemas.keeps(schema, value) {
                let what = format!(
                    "the arguments of record {} do not match the schema of the {}",
                    rule.seq,
                    if rule.member == "grant" {
                        "grant that let the call pass"
                    } else {
                        "tool"
                    }
                );
                self.add("rule", file, None, what);
            }
        }
    }

    /// Status, trajectory and rows, as the journal tells them.
    fn told(&mut self, history: &History, account: &Account, content: &Content) {
        let said = self.said;
        if account.status != said.status {
            let what = format!("the run is {}, not {}", account.status, said.status);
            self.add("head", "heads.csv", None, what);
        }
        let shown = matches!(said.word.as_str(), "whole" | "keyless");
        let values = if shown {
            Values::Shown
        } else {
            Values::Withheld
        };
        let record = trajectory(history, content, said.judged, values);
        let expected = table::trajectory_line(&said.case, &record);
        let partial = said.word == "partial";
        let same = if partial {
            let line = canon::parse(said.trajectory.as_bytes()).ok();
            let line = line.filter(|l| l["case_id"].as_str() == Some(&said.case));
            line.is_some_and(|l| withhold(&l["trajectory"]) == withhold(&record))
        } else {
            said.trajectory == expected
        };
        if !same {
            self.add(
                "trajectory",
                "trajectories.jsonl",
                None,
                "the trajectory is not the one that the journal tells",
            );
        }
        let source = Source { content, values };
        // What a planner noted is not among the content of every archive.
        let models = match shown {
            true => account.models(content),
            false => models_of(&said.tables[0]),
        };
        let expected = [
            table::run_row(account, &said.case, &models, source),
            table::call_rows(account, source),
            table::approval_rows(account, source),
        ];
        let files = ["runs", "tool_calls", "approvals"];
        for (i, file) in files.iter().enumerate() {
            let actual = &said.tables[i];
            let same = match partial {
                true => {
                    table::without_values(actual, table::VALUE_COLUMNS[i])
                        == table::without_values(&expected[i], table::VALUE_COLUMNS[i])
                }
                false => *actual == expected[i],
            };
            if !same {
                let file = format!("tables/{file}.csv");
                self.add(
                    "table",
                    &file,
                    None,
                    "the rows of the run are not what its journal tells",
                );
            }
        }
    }
}

/// The column of models in a row of `runs.csv`.
fn models_of(row: &str) -> Vec<String> {
    let place = table::RUNS
        .split(',')
        .position(|n| n.trim() == "models_served");
    let cells = table::split(row.trim_end_matches('\n')).unwrap_or_default();
    let cell = place.and_then(|p| cells.get(p)).filter(|c| !c.is_empty());
    let text = cell.map(|c| c.strip_prefix('\'').unwrap_or(c).to_owned());
    text.into_iter().collect()
}

/// Schemas that were compiled, by their bytes.
#[derive(Default)]
struct Schemas(HashMap<Vec<u8>, Option<Schema>>);

impl Schemas {
    /// Whether a value is valid; so it is where that cannot be judged.
    fn keeps(&mut self, schema: &[u8], value: &[u8]) -> bool {
        if !self.0.contains_key(schema) {
            let read = canon::parse(schema).ok().and_then(|s| Schema::new(s).ok());
            let read = read.filter(|s| s.secrets().next().is_none());
            self.0.insert(schema.to_vec(), read);
        }
        match (self.0.get(schema), canon::parse(value)) {
            (Some(Some(schema)), Ok(value)) => schema.is_valid(&value),
            _ => true,
        }
    }
}

// Holds runs of an archive against their journals. All arguments but the first have an
// element a run; the last four are
// lines of files.
#[extendr]
#[allow(clippy::too_many_arguments)]
fn rs_archive_check(
    dir: &str,
    ids: Vec<String>,
    heads: Vec<String>,
    status: Vec<String>,
    words: Vec<String>,
    judged: Vec<i32>,
    trajectories: Vec<String>,
    runs: Vec<String>,
    calls: Vec<String>,
    approvals: Vec<String>,
) -> Robj {
    guard(|| {
        let at = |x: &[String], i: usize| x.get(i).cloned().unwrap_or_default();
        let said: Vec<Said> = (0..ids.len())
            .map(|i| Said {
                id: at(&ids, i),
                head: at(&heads, i),
                status: at(&status, i),
                word: at(&words, i),
                judged: match judged.get(i) {
                    Some(1) => Judged::ByDone,
                    Some(_) | None => Judged::ByNobody,
                },
                case: case_of(&at(&trajectories, i)),
                trajectory: at(&trajectories, i),
                tables: [at(&runs, i), at(&calls, i), at(&approvals, i)],
            })
            .collect();
        Ok(columns(check_all(Path::new(dir), &said)))
    })
}

/// The case that a line of `trajectories.jsonl` is about.
fn case_of(line: &str) -> String {
    let value = canon::parse(line.as_bytes()).ok();
    let case = value.as_ref().and_then(|l| l.get("case_id")?.as_str());
    case.unwrap_or_default().to_owned()
}

fn check_all(dir: &Path, said: &[Said]) -> Vec<Found> {
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Vec::new());
    let work = || {
        let mut schemas = Schemas::default();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(said) = said.get(place) else { return };
            let mut check = Check {
                said,
                found: Vec::new(),
            };
            check.run(dir, &mut schemas);
            if !check.found.is_empty() {
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                all.push((place, check.found));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads() {
            scope.spawn(work);
        }
        work();
    });
    let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().flat_map(|(_, found)| found).collect()
}

extendr_module! {
    mod archive_check;
    fn rs_archive_scan;
    fn rs_archive_check;
}
