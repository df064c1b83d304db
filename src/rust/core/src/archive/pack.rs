//! What is archived of one run: from its journal and content to the texts of files.

use super::redact::{holds_secret, secret_variables};
use super::table::{self, Source};
use super::{trajectory, Account, Content, Judged, Redaction, Values};
use crate::digest::Digest;
use crate::journal::content::Claims;
use crate::run::{Error, History};
use std::collections::BTreeSet;

/// The content of a run as a store gives it.
#[derive(Debug, Clone)]
pub struct Kept {
    /// Values by address.
    pub content: Content,
    /// The key in hex, where there is one.
    pub key: Option<String>,
    /// Whether answers were judged.
    pub judged: Judged,
}

/// A run, ready to be written.
#[derive(Debug)]
pub struct Packed {
    /// What its journal tells.
    pub account: Account,
    /// The models that answered.
    pub models: Vec<String>,
    /// The text of its content file, where it has one.
    pub content: Option<String>,
    /// How much of the content is there: `whole`, `keyless`, `partial` or `none`.
    pub word: &'static str,
    /// Whether answers were judged.
    pub judged: Judged,
    /// Its line of `trajectories.jsonl`.
    pub trajectory: String,
    /// Its rows of `runs.csv`, `tool_calls.csv` and `approvals.csv`.
    pub tables: [String; 3],
}

/// Packs a run as the case `case`. `secret` gives what a variable holds that values
/// refer to: no value may repeat it.
///
/// The key is left out where a value is left out, or where only a keyed digest of one
/// was recorded: under the key, guesses of it could be tried.
///
/// # Errors
/// As [`History::read`].
pub fn pack(
    lines: &[&str],
    kept: Kept,
    case: &str,
    values: Values,
    mut redaction: Redaction,
    secret: impl Fn(&str) -> Option<String>,
) -> Result<Packed, Error> {
    let history = History::read(lines.iter().copied(), None)?;
    let account = Account::gather(&history, lines)?;
    let models = account.models(&kept.content);
    let (whole, mut changed) = claimed(lines, &kept.content);
    for name in secret_variables(&whole) {
        redaction.texts.extend(secret(&name));
    }
    let (shown, mut covered) = redaction.apply(&whole);
    changed.append(&mut covered);
    let key = kept
        .key
        .filter(|_| changed.is_empty() && !holds_secret(&whole));
    let word = match (values, &key) {
        (Values::Withheld, _) => "none",
        (Values::Shown, Some(_)) => "whole",
        (Values::Shown, None) if changed.is_empty() => "keyless",
        (Values::Shown, None) => "partial",
    };
    let content = (values == Values::Shown).then(|| {
        let left = shown
            .iter()
            .filter(|(address, _)| !changed.contains(address));
        content_text(key.as_deref(), left)
    });
    let source = Source {
        content: &shown,
        values,
    };
    let record = trajectory(&history, &shown, kept.judged, values);
    Ok(Packed {
        trajectory: table::trajectory_line(case, &record),
        tables: [
            table::run_row(&account, case, &models, source),
            table::call_rows(&account, source),
            table::approval_rows(&account, source),
        ],
        account,
        models,
        content,
        word,
        judged: kept.judged,
    })
}

/// The values that a journal names, and the addresses of those that are not there.
fn claimed(lines: &[&str], content: &Content) -> (Content, BTreeSet<Digest>) {
    let mut claims = Claims::new();
    for line in lines {
        claims.feed(line.as_bytes());
        claims.feed(b"\n");
    }
    let mut whole = Content::new();
    let mut missing = BTreeSet::new();
    for claim in claims.finish().addresses {
        if claim.member == "content_key" {
            continue;
        }
        let value = content.get(&claim.address).cloned();
        if value.is_none() {
            missing.insert(claim.address);
        }
        whole.insert(claim.address, value.unwrap_or_else(|| MISSING.to_vec()));
    }
    (whole, missing)
}

/// Stands where a value is that the store does not have.
const MISSING: &[u8] = b"\"<missing>\"";

fn content_text<'a>(
    key: Option<&str>,
    values: impl Iterator<Item = (&'a Digest, &'a Vec<u8>)>,
) -> String {
    let mut out = key.map(|k| format!("key {k}\n")).unwrap_or_default();
    for (address, bytes) in values {
        out.push_str(&address.to_hex());
        out.push(' ');
        out.push_str(&String::from_utf8_lossy(bytes));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::*;

    fn packed(values: Values, redaction: Redaction) -> Packed {
        let sample = Sample::new();
        let none = |_: &str| None;
        pack(
            &sample.lines(),
            sample.kept.clone(),
            "case",
            values,
            redaction,
            none,
        )
        .unwrap()
    }

    #[test]
    fn a_whole_run_has_its_key_and_every_value_that_it_names() {
        let run = packed(Values::Shown, Redaction::default());
        let content = run.content.unwrap();
        assert_eq!(run.word, "whole");
        assert!(content.starts_with("key 0707"));
        assert_eq!(
            content.lines().count(),
            1 + Sample::new().kept.content.len()
        );
        assert!(run.tables[0].starts_with("r1,case,completed,,2,1,0,0.0025,"));
    }

    #[test]
    fn without_values_there_are_none_anywhere() {
        let run = packed(Values::Withheld, Redaction::default());
        let all = format!("{}{}", run.trajectory, run.tables.concat());
        assert_eq!((run.word, run.content), ("none", None));
        assert!(!all.contains("x.org") && !all.contains("ok"));
    }

    #[test]
    fn a_value_that_is_left_out_takes_the_key_with_it() {
        let names = ["mail".to_owned()].into();
        let run = packed(
            Values::Shown,
            Redaction {
                names,
                ..Redaction::default()
            },
        );
        let content = run.content.unwrap();
        assert_eq!(run.word, "partial");
        assert!(!content.contains("key ") && !content.contains("a@x.org"));
        // The answer repeats it.
        assert!(!run.tables[0].contains("a@x.org"));
        assert!(content.contains(r#"["ok"]"#));
    }

    #[test]
    fn values_that_a_store_lost_are_told() {
        let mut sample = Sample::new();
        sample.kept.content.retain(|_, bytes| bytes != b"[\"ok\"]");
        let redaction = Redaction::default();
        let none = |_: &str| None;
        let run = pack(
            &sample.lines(),
            sample.kept.clone(),
            "c",
            Values::Shown,
            redaction,
            none,
        );
        let run = run.unwrap();
        assert_eq!(run.word, "partial");
        assert!(run.tables[1].contains("<missing>"));
    }

    #[test]
    fn what_a_secret_variable_holds_is_left_out() {
        let mut sample = Sample::new();
        let goal = sample
            .kept
            .content
            .values_mut()
            .find(|v| v.as_slice() == br#"{"to":"a"}"#);
        *goal.unwrap() = br#"{"to":{"secret_env":"KEY"}}"#.to_vec();
        let secret = |name: &str| (name == "KEY").then(|| "a@x.org".to_owned());
        let redaction = Redaction::default();
        let run = pack(
            &sample.lines(),
            sample.kept.clone(),
            "c",
            Values::Shown,
            redaction,
            secret,
        );
        assert!(!run.unwrap().tables.concat().contains("a@x.org"));
    }
}
