//! `hashes.sha256`: the digest of every other file, as `sha256sum` writes it.

use crate::digest::Digest;
use std::collections::BTreeMap;

/// The name of the list.
pub const FILE: &str = "hashes.sha256";

/// One thing that is wrong, and with which file; the line is that of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// A word: `list`, `changed`, `missing` or `extra`.
    pub kind: &'static str,
    /// The file, relative to the archive.
    pub file: String,
    /// The line of the list, from 1.
    pub line: Option<u64>,
    /// In words.
    pub what: String,
}

/// The list of some files: a line each, in the order of their names' bytes.
pub fn write(files: &BTreeMap<String, Digest>) -> String {
    let line = |(name, digest): (&String, &Digest)| format!("{}  {name}\n", digest.to_hex());
    files.iter().map(line).collect()
}

/// Holds a list against the files that are there. The list itself is not among them.
pub fn check(list: &[u8], files: &BTreeMap<String, Digest>) -> Vec<Flaw> {
    let mut flaws = Vec::new();
    let mut listed: BTreeMap<&str, (u64, Digest)> = BTreeMap::new();
    let mut last: Option<&str> = None;
    let mut list_flaw = |line: Option<u64>, what: &str| {
        flaws.push(Flaw {
            kind: "list",
            file: FILE.to_owned(),
            line,
            what: what.to_owned(),
        });
    };
    if list.last().is_some_and(|b| *b != b'\n') {
        list_flaw(None, "the last line has no end");
    }
    let text = String::from_utf8_lossy(list);
    for (i, row) in text.split_terminator('\n').enumerate() {
        let line = i as u64 + 1;
        let parts = row.split_at_checked(64).and_then(|(digest, rest)| {
            Some((digest.parse::<Digest>().ok()?, rest.strip_prefix("  ")?))
        });
        let Some((digest, name)) = parts.filter(|(_, name)| !name.is_empty()) else {
            list_flaw(Some(line), "is not a digest, two spaces and a name");
            continue;
        };
        if last.is_some_and(|before| before >= name) {
            list_flaw(Some(line), "is not in the order of the names");
        }
        last = Some(name);
        listed.insert(name, (line, digest));
    }
    for (name, (line, digest)) in &listed {
        let (kind, what) = match files.get(*name) {
            None => ("missing", "the file is not there"),
            Some(found) if found != digest => ("changed", "the file does not have its digest"),
            Some(_) => continue,
        };
        flaws.push(Flaw {
            kind,
            file: (*name).to_owned(),
            line: Some(*line),
            what: what.to_owned(),
        });
    }
    for name in files.keys().filter(|n| !listed.contains_key(n.as_str())) {
        flaws.push(Flaw {
            kind: "extra",
            file: name.clone(),
            line: None,
            what: "the list does not name this file".to_owned(),
        });
    }
    flaws
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn files() -> BTreeMap<String, Digest> {
        let of = |name: &str| (name.to_owned(), Digest::of_bytes(name.as_bytes()));
        ["a/b.csv", "a.csv", "\u{e9}.json"].map(of).into()
    }

    #[test]
    fn a_list_agrees_with_its_files() {
        assert_eq!(check(write(&files()).as_bytes(), &files()), []);
    }

    #[test]
    fn each_difference_is_named() {
        let mut other = files();
        other.insert("new".into(), Digest::of_bytes(b""));
        other.insert("a.csv".into(), Digest::of_bytes(b""));
        other.remove("a/b.csv");
        let found: Vec<(&str, String)> = check(write(&files()).as_bytes(), &other)
            .into_iter()
            .map(|f| (f.kind, f.file))
            .collect();
        let expected = [
            ("changed", "a.csv"),
            ("missing", "a/b.csv"),
            ("extra", "new"),
        ];
        assert_eq!(found, expected.map(|(k, f)| (k, f.to_owned())));
    }

    proptest! {
        #[test]
        fn no_byte_of_a_list_can_change(at in 0usize..500, bit in 0u8..8) {
            let mut list = write(&files()).into_bytes();
            let at = at % list.len();
            list[at] ^= 1 << bit;
            prop_assert!(!check(&list, &files()).is_empty());
        }
    }
}
