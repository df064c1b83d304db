//! Checking one run of an archive against all that the archive says of it.

use super::table::{self, Source};
use super::{trajectory, withhold, Account, Content, Judged, Values};
use crate::canon;
use crate::digest::{unhex, Digest};
use crate::event::key_commitment;
use crate::journal::content::{Claimings, Claims};
use crate::journal::verify::{Depth, Verifier};
use crate::run::History;
use crate::schema::Schema;
use std::collections::{BTreeSet, HashMap};

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// A word: what kind of fault.
    pub kind: String,
    /// The file, relative to the archive.
    pub file: String,
    /// The line, from 1.
    pub line: Option<u64>,
    /// The run.
    pub run: Option<String>,
    /// In words.
    pub what: String,
}

/// What an archive says of one run.
#[derive(Debug, Clone)]
pub struct Said {
    /// The run.
    pub id: String,
    /// Its last record, `run:seq:digest`.
    pub head: String,
    /// The word of its status.
    pub status: String,
    /// How much of its content is there.
    pub word: String,
    /// Whether answers were judged.
    pub judged: Judged,
    /// Its line of `trajectories.jsonl`.
    pub trajectory: String,
    /// Its rows of the three tables.
    pub tables: [String; 3],
}

/// Holds a run against its journal: what is wrong. `journal` and `content` are the
/// bytes of its files, where they are there.
pub fn check(
    said: &Said,
    journal: Option<&[u8]>,
    content: Option<&[u8]>,
    schemas: &mut Schemas,
) -> Vec<Found> {
    let mut check = Check {
        said,
        case: case_of(&said.trajectory),
        found: Vec::new(),
    };
    check.run(journal, content, schemas);
    check.found
}

/// What is found of one run.
struct Check<'a> {
    said: &'a Said,
    case: String,
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

    fn run(&mut self, journal: Option<&[u8]>, content: Option<&[u8]>, schemas: &mut Schemas) {
        let file = format!("journals/{}.jsonl", self.said.id);
        let Some(bytes) = journal else {
            return self.add(
                "missing",
                &file,
                None,
                "the journal of the run is not there",
            );
        };
        self.journal(&file, bytes);
        let mut claims = Claims::new();
        claims.feed(bytes);
        let claims = claims.finish();
        let content = self.content(content, &claims, schemas);
        let text = String::from_utf8_lossy(bytes);
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
    fn content(
        &mut self,
        bytes: Option<&[u8]>,
        claims: &Claimings,
        schemas: &mut Schemas,
    ) -> Content {
        let file = format!("content/{}.content", self.said.id);
        let bytes = match (bytes, self.said.word.as_str()) {
            (Some(_), "none") => {
                self.add(
                    "content_extra",
                    &file,
                    None,
                    "the archive says that it has no content of the run",
                );
                return Content::new();
            }
            (Some(bytes), _) => bytes,
            (None, "none") => return Content::new(),
            (None, _) => {
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
        for (i, row) in String::from_utf8_lossy(bytes)
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
        let case = self.case.clone();
        if account.status != said.status {
            let what = format!("the run is {}, not {}", account.status, said.status);
            self.add("head", "heads.csv", None, what);
        }
        let last = format!("{}:{}:{}", account.run, account.records - 1, account.head);
        if said.head != last {
            let what = "the head is not the last record of the journal";
            self.add("head", "heads.csv", None, what);
        }
        let shown = matches!(said.word.as_str(), "whole" | "keyless");
        let values = if shown {
            Values::Shown
        } else {
            Values::Withheld
        };
        let record = trajectory(history, content, said.judged, values);
        let expected = table::trajectory_line(&case, &record);
        let partial = said.word == "partial";
        let same = if partial {
            let line = canon::parse(said.trajectory.as_bytes()).ok();
            let line = line.filter(|l| l["case_id"].as_str() == Some(&case));
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
            table::run_row(account, &case, &models, source),
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
#[derive(Debug, Default)]
pub struct Schemas(HashMap<Vec<u8>, Option<Schema>>);

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

/// The case that a line of `trajectories.jsonl` is about.
fn case_of(line: &str) -> String {
    let value = canon::parse(line.as_bytes()).ok();
    let case = value.as_ref().and_then(|l| l.get("case_id")?.as_str());
    case.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::pack::{pack, Packed};
    use super::super::sample::Sample;
    use super::super::Redaction;
    use super::*;

    fn packed(values: Values, names: &[&str]) -> (Packed, String) {
        let sample = Sample::new();
        let redaction = Redaction {
            names: names.iter().map(|n| (*n).to_owned()).collect(),
            ..Redaction::default()
        };
        let lines = sample.lines();
        let run = pack(
            &lines,
            sample.kept.clone(),
            "case",
            values,
            redaction,
            |_| None,
        )
        .unwrap();
        (run, lines.join("\n") + "\n")
    }

    fn said(run: &Packed) -> Said {
        Said {
            id: run.account.run.clone(),
            head: format!("r1:{}:{}", run.account.records - 1, run.account.head),
            status: run.account.status.to_owned(),
            word: run.word.to_owned(),
            judged: run.judged,
            trajectory: run.trajectory.clone(),
            tables: run.tables.clone(),
        }
    }

    fn kinds(said: &Said, journal: &str, content: Option<&str>) -> Vec<String> {
        let content = content.map(str::as_bytes);
        let found = check(
            said,
            Some(journal.as_bytes()),
            content,
            &mut Schemas::default(),
        );
        found.into_iter().map(|f| f.kind).collect()
    }

    #[test]
    fn what_was_packed_agrees_with_its_journal() {
        for values in [Values::Shown, Values::Withheld] {
            for names in [&[][..], &["mail"][..]] {
                let (run, journal) = packed(values, names);
                let content = run.content.as_deref();
                assert_eq!(kinds(&said(&run), &journal, content), [""; 0]);
            }
        }
    }

    #[test]
    fn each_part_that_does_not_agree_is_named() {
        let (run, journal) = packed(Values::Shown, &[]);
        let content = run.content.as_deref().unwrap();
        let good = said(&run);
        let with = |change: &dyn Fn(&mut Said)| {
            let mut said = said(&run);
            change(&mut said);
            kinds(&said, &journal, Some(content))
        };
        assert_eq!(with(&|s| s.status = "failed".into()), ["head"]);
        let earlier = Sample::new().lines[3].clone();
        let earlier = crate::journal::Line::read(earlier.as_bytes()).unwrap();
        let head = format!("r1:3:{}", earlier.digest);
        assert_eq!(with(&|s| s.head = head.clone()), ["head"]);
        assert_eq!(
            with(&|s| s.trajectory = s.trajectory.replace("ok", "no")),
            ["trajectory"]
        );
        assert_eq!(
            with(&|s| s.tables[1] = s.tables[1].replace("ok", "no")),
            ["table"]
        );
        let changed = content.replace("[\"ok\"]", "[\"no\"]");
        let found = kinds(&good, &journal, Some(&changed));
        assert_eq!(found[..2], ["content_mismatch", "content_missing"]);
        let other = content.replacen("key 07", "key 08", 1);
        assert!(kinds(&good, &journal, Some(&other)).contains(&"key_mismatch".to_owned()));
        assert_eq!(kinds(&good, &journal, None)[0], "missing");
        let short: Vec<&str> = journal.lines().collect();
        let short = short[..short.len() - 1].join("\n") + "\n";
        assert!(kinds(&good, &short, Some(content)).contains(&"cut".to_owned()));
        assert_eq!(
            check(&good, None, None, &mut Schemas::default())[0].kind,
            "missing"
        );
    }

    #[test]
    fn a_run_without_content_has_none() {
        let (run, journal) = packed(Values::Withheld, &[]);
        assert_eq!(
            kinds(&said(&run), &journal, Some("key 00\n")),
            ["content_extra"]
        );
    }
}
