//! Checking an archive: the seal, and each run against all that is said of it.

use crate::archive_files::{threads, Disk, Tree};
use crate::fault::guard;
use extendr_api::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use warrant_core::archive::check::{check, Found, Said, Schemas};
use warrant_core::archive::{seal, Judged};

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
                trajectory: at(&trajectories, i),
                tables: [at(&runs, i), at(&calls, i), at(&approvals, i)],
            })
            .collect();
        Ok(columns(check_all(Path::new(dir), &said)))
    })
}

fn check_all(dir: &Path, said: &[Said]) -> Vec<Found> {
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Vec::new());
    let work = || {
        let mut schemas = Schemas::default();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(said) = said.get(place) else { return };
            let read = |folder: &str, ext: &str| {
                std::fs::read(dir.join(folder).join(format!("{}.{ext}", said.id))).ok()
            };
            let (journal, content) = (read("journals", "jsonl"), read("content", "content"));
            let found = check(said, journal.as_deref(), content.as_deref(), &mut schemas);
            if !found.is_empty() {
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                all.push((place, found));
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
