//! Archives: what is written of each run, and the seal.

use crate::convert::{named, to_text};
use crate::fault::{boxed, guard};
use crate::files::write_new;
use crate::run_setup::{unusable, Boxed, KEY_NAME};
use extendr_api::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use warrant_core::archive::pack::{pack, Kept, Packed};
use warrant_core::archive::table::{self, Cells};
use warrant_core::archive::{trajectory, Account, Content, Judged, Redaction, Values};
use warrant_core::canon;
use warrant_core::digest::Digest;
use warrant_core::error::Kind;
use warrant_core::event::Event;
use warrant_core::journal::content::addresses;
use warrant_core::journal::Line;
use warrant_core::run::History;

/// The name under which a store keeps that an answer was judged.
pub(crate) const DONE_NAME: &str = "done";

fn texts(x: &Robj, what: &'static str) -> Result<Vec<String>, Boxed> {
    let strings = Strings::try_from(x).map_err(|e| unusable(what, e))?;
    Ok(strings.iter().map(|t| t.to_string()).collect())
}

fn kept(x: &Robj) -> Result<Kept, Boxed> {
    let names: Vec<String> = match x.names() {
        Some(names) => names.map(str::to_owned).collect(),
        None => Vec::new(),
    };
    let mut out = Kept {
        content: Content::new(),
        key: None,
        judged: Judged::ByNobody,
    };
    for (name, text) in names.iter().zip(texts(x, "content")?) {
        match name.as_str() {
            KEY_NAME => out.key = Some(text),
            DONE_NAME => out.judged = Judged::ByDone,
            name => {
                if let Ok(address) = name.parse() {
                    out.content.insert(address, text.into_bytes());
                }
            }
        }
    }
    Ok(out)
}

fn read(lines: &[String], upto: Option<Digest>) -> Result<History, Boxed> {
    History::read(lines.iter().map(String::as_str), upto).map_err(boxed)
}

// The trajectory of a run up to a head, as canonical JSON.
#[extendr]
fn rs_run_trajectory(lines: Robj, content: Robj, upto: Robj) -> Robj {
    guard(|| {
        let upto = match upto.as_str() {
            Some(text) if !text.is_empty() => Some(text.parse().map_err(boxed)?),
            _ => None,
        };
        let history = read(&texts(&lines, "a journal")?, upto)?;
        let kept = kept(&content)?;
        let record = trajectory(&history, &kept.content, kept.judged, Values::Shown);
        Ok(to_text(&canon::to_string(&record)))
    })
}

// The values that a journal refers to: addresses, what each is, and of which tool.
#[extendr]
fn rs_run_values(lines: Robj) -> Robj {
    guard(|| {
        let mut found: BTreeMap<Digest, (&'static str, String)> = BTreeMap::new();
        let mut tools: BTreeMap<(u64, u64), String> = BTreeMap::new();
        for text in texts(&lines, "a journal")? {
            let line = Line::read(text.as_bytes());
            let line = line.ok_or_else(|| unusable("a journal", "a line is no record"))?;
            let event = Event::read(line.event, line.data.as_bytes()).map_err(boxed)?;
            if let Event::Decided(e) = &event {
                for (i, asked) in e.actions.iter().enumerate() {
                    tools.insert((e.step, i as u64), asked.tool.clone());
                    let value = ("arguments", asked.tool.clone());
                    found.entry(asked.arguments).or_insert(value);
                }
            }
            let place = place_of(&event);
            let tool = place
                .and_then(|p| tools.get(&p))
                .cloned()
                .unwrap_or_default();
            for (member, address) in addresses(&event) {
                if !matches!(member, "content_key" | "schema" | "grant") {
                    found.entry(address).or_insert((member, tool.clone()));
                }
            }
        }
        let address: Vec<String> = found.keys().map(Digest::to_hex).collect();
        let (kind, tool): (Vec<&str>, Vec<String>) = found.into_values().unzip();
        Ok(list!(address = address, kind = kind, tool = tool))
    })
}

// What runs say of themselves for a manifest: the models that answered, and the tools
// with the hashes of their specifications.
#[extendr]
fn rs_run_parts(lines: Robj, content: Robj) -> Robj {
    guard(|| {
        let lines = texts(&lines, "a journal")?;
        let history = read(&lines, None)?;
        let refs: Vec<&str> = lines.iter().map(String::as_str).collect();
        let account = Account::gather(&history, &refs).map_err(boxed)?;
        let models = account.models(&kept(&content)?.content);
        let tools = account.tools.into_iter().map(|(n, d)| (n, d.to_hex()));
        let (tools, hashes): (Vec<String>, Vec<String>) = tools.unzip();
        Ok(list!(models = models, tools = tools, spec_hashes = hashes))
    })
}

fn place_of(event: &Event) -> Option<(u64, u64)> {
    match event {
        Event::ApprovalRequested(e) => Some((e.step, e.action)),
        Event::CallFinished(e) => Some((e.step, e.action)),
        Event::CallStarted(e) => Some((e.step, e.action)),
        Event::Denied(e) => Some((e.step, e.action)),
        Event::LateResult(e) => Some((e.step, e.action)),
        _ => None,
    }
}

// Writes the journal and the content of a run into an archive; gives what its tables
// and descriptions say.
#[extendr]
fn rs_archive_run(
    dir: &str,
    lines: Robj,
    content: Robj,
    case: &str,
    with_content: bool,
    names: Robj,
    replaced: Robj,
) -> Robj {
    guard(|| {
        let lines = texts(&lines, "a journal")?;
        let values = match with_content {
            true => Values::Shown,
            false => Values::Withheld,
        };
        let mut redaction = Redaction {
            names: texts(&names, "names")?.into_iter().collect(),
            ..Redaction::default()
        };
        let addresses = replaced.names().into_iter().flatten();
        for (address, text) in addresses.zip(texts(&replaced, "values")?) {
            let value = canon::parse(text.as_bytes())?;
            redaction
                .replaced
                .insert(address.parse().map_err(boxed)?, value);
        }
        let refs: Vec<&str> = lines.iter().map(String::as_str).collect();
        let secret = |name: &str| std::env::var(name).ok();
        let run = pack(&refs, kept(&content)?, case, values, redaction, secret).map_err(boxed)?;
        let dir = Path::new(dir);
        let id = &run.account.run;
        let mut journal = lines.join("\n");
        journal.push('\n');
        let path = dir.join("journals").join(format!("{id}.jsonl"));
        write_new(&path, journal.as_bytes(), Kind::Input)?;
        if let Some(text) = &run.content {
            let path = dir.join("content").join(format!("{id}.content"));
            write_new(&path, text.as_bytes(), Kind::Input)?;
        }
        Ok(described(run))
    })
}

fn described(run: Packed) -> Robj {
    let account = &run.account;
    let [runs, calls, approvals] = run.tables;
    let asked = &account.approvals;
    let words = |f: &dyn Fn(&warrant_core::archive::account::Approval) -> String| -> Robj {
        asked.iter().map(f).collect::<Vec<String>>().into()
    };
    let or_empty = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let people = list!(
        tool = words(&|a| a.tool.clone()),
        decision = words(&|a| or_empty(a.decision)),
        approver = words(&|a| or_empty(a.approver.as_deref())),
        step = words(&|a| a.step.to_string()),
        action = words(&|a| a.action.to_string()),
        requested = words(&|a| table::time(a.requested_ms)),
        decided = words(&|a| a.decided_ms.map(table::time).unwrap_or_default())
    );
    let outcomes = account
        .calls
        .iter()
        .map(|c| c.outcome.map_or("", |o| o.word()).to_owned());
    let used: Vec<String> = account.calls.iter().map(|c| c.tool.clone()).collect();
    let tools: (Vec<String>, Vec<String>) = account
        .tools
        .iter()
        .map(|(n, d)| (n.clone(), d.to_hex()))
        .unzip();
    list!(
        run_id = account.run.as_str(),
        head = account.head.to_hex(),
        records = account.records as f64,
        status = account.status,
        stop_reason = account.stop_reason.map_or("", |r| r.word()),
        content = run.word,
        judged = run.judged == Judged::ByDone,
        started = table::time(account.started_ms),
        last = table::time(account.last_ms),
        steps = account.used.steps as f64,
        models = run.models,
        called = used,
        outcomes = outcomes.collect::<Vec<String>>(),
        tools = tools.0,
        spec_hashes = tools.1,
        approvals = people,
        trajectory = run.trajectory,
        run_row = runs,
        call_rows = calls,
        approval_rows = approvals
    )
    .into()
}

// The header lines of the tables of runs.
#[extendr]
fn rs_archive_headers() -> Robj {
    let names = ["runs", "tool_calls", "approvals"];
    let lines = [table::RUNS, table::TOOL_CALLS, table::APPROVALS];
    named(names.into_iter(), lines.into_iter().map(Robj::from))
}

// A record without its values, and values under some names covered.
#[extendr]
fn rs_record_line(case: &str, record: Robj, with_content: bool, names: Robj) -> Robj {
    guard(|| {
        let text = record.as_str().unwrap_or("null");
        let mut value = canon::parse(text.as_bytes())?;
        let redaction = Redaction {
            names: texts(&names, "names")?.into_iter().collect(),
            ..Redaction::default()
        };
        if !with_content && !value.is_null() {
            value = warrant_core::archive::withhold(&value);
        }
        let address = Digest::of_bytes(b"");
        let one = [(address, canon::to_vec(&value))].into();
        let (shown, _) = redaction.apply(&one);
        let bytes = shown.get(&address).cloned().unwrap_or_default();
        let value = canon::parse(&bytes)?;
        Ok(to_text(&table::trajectory_line(case, &value)))
    })
}

// Columns of texts as CSV; NA is an empty cell. `plain` says which are no texts from
// anywhere, but numbers.
#[extendr]
fn rs_csv(names: Vec<String>, columns: List, plain: Vec<i32>) -> Robj {
    guard(|| {
        let mut read: Vec<Strings> = Vec::new();
        for column in columns.values() {
            read.push(Strings::try_from(&column).map_err(|e| unusable("a table", e))?);
        }
        let mut head = Cells::default();
        for name in &names {
            head.text(name);
        }
        let mut out = head.end();
        let rows = read.first().map_or(0, |c| c.len());
        for i in 0..rows {
            let mut cells = Cells::default();
            for (column, plain) in read.iter().zip(&plain) {
                let cell = column.elt(i);
                match (cell.is_na(), plain) {
                    (true, _) => cells.plain(""),
                    (false, 1) => cells.plain(cell.as_ref()),
                    (false, _) => cells.text(cell.as_ref()),
                };
            }
            out.push_str(&cells.end());
        }
        Ok(to_text(&out))
    })
}

extendr_module! {
    mod archive;
    fn rs_run_trajectory;
    fn rs_run_values;
    fn rs_run_parts;
    fn rs_archive_run;
    fn rs_archive_headers;
    fn rs_record_line;
    fn rs_csv;
}
