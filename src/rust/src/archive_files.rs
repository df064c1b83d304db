//! The files of an archive: walked, hashed on all cores, and sealed.

use crate::fault::guard;
use crate::files::{write_new, BLOCK};
use crate::run_setup::{unusable, Boxed};
use extendr_api::prelude::*;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use warrant_core::archive::seal;
use warrant_core::digest::{Digest, Hasher};
use warrant_core::error::Kind;

/// What stands in a folder: files by name, and what is no plain file.
#[derive(Default)]
pub(crate) struct Tree {
    pub(crate) files: BTreeMap<String, PathBuf>,
    pub(crate) odd: BTreeMap<String, &'static str>,
}

impl Tree {
    pub(crate) fn read(dir: &Path) -> Result<Self, Boxed> {
        let mut tree = Tree::default();
        tree.add(dir, "", 0)
            .map_err(|e| unusable("the archive", e))?;
        Ok(tree)
    }

    fn add(&mut self, dir: &Path, prefix: &str, depth: usize) -> std::io::Result<()> {
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type()?;
            if kind.is_symlink() {
                self.odd.insert(name, "is a link");
            } else if kind.is_dir() && depth < 8 {
                let before = self.files.len() + self.odd.len();
                self.add(&entry.path(), &format!("{name}/"), depth + 1)?;
                if before == self.files.len() + self.odd.len() {
                    self.odd.insert(name, "is an empty folder");
                }
            } else if kind.is_file() {
                self.files.insert(name, entry.path());
            } else {
                self.odd.insert(name, "is no plain file");
            }
        }
        Ok(())
    }

    /// The digest of each file, on all cores; none of one that cannot be read.
    pub(crate) fn digests(&self, disk: Disk) -> Vec<(String, Option<Digest>)> {
        let files: Vec<(&String, &PathBuf)> = self.files.iter().collect();
        let next = AtomicUsize::new(0);
        let found = Mutex::new(Vec::with_capacity(files.len()));
        let work = || {
            let mut own = Vec::new();
            while let Some((name, path)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                own.push(((*name).clone(), digest_of(path, disk).ok()));
            }
            let mut all = found.lock().unwrap_or_else(PoisonError::into_inner);
            all.append(&mut own);
        };
        std::thread::scope(|scope| {
            for _ in 1..threads() {
                scope.spawn(work);
            }
            work();
        });
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_unstable();
        found
    }
}

pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get().min(8))
}

/// Whether files must be on the disk before their digests count.
#[derive(Clone, Copy)]
pub(crate) enum Disk {
    AsItIs,
    Synced,
}

fn digest_of(path: &Path, disk: Disk) -> std::io::Result<Digest> {
    let mut file = std::fs::File::open(path)?;
    if matches!(disk, Disk::Synced) {
        // Not every system can sync a file that is open for reading.
        let _ = file.sync_all();
    }
    let mut hasher = Hasher::new();
    let mut block = vec![0; BLOCK.min(1 << 17)];
    loop {
        match file.read(&mut block)? {
            0 => return Ok(hasher.finish()),
            n => hasher.update(&block[..n]),
        }
    }
}

// Writes the list of digests of all files of a folder; gives the digest of the list.
#[extendr]
fn rs_archive_seal(dir: &str) -> Robj {
    guard(|| {
        let dir = Path::new(dir);
        let mut files = BTreeMap::new();
        for (name, digest) in Tree::read(dir)?.digests(Disk::Synced) {
            let digest = digest.ok_or_else(|| unusable("a file", &name))?;
            files.insert(name, digest);
        }
        let list = seal::write(&files);
        write_new(&dir.join(seal::FILE), list.as_bytes(), Kind::Input)?;
        Ok(Digest::of_bytes(list.as_bytes()).to_hex())
    })
}

extendr_module! {
    mod archive_files;
    fn rs_archive_seal;
}
