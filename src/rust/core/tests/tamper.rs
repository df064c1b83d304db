//! A trail that is changed anywhere is found out, at the right place.

use std::collections::BTreeMap;
use warrant_core::digest::Digest;
use warrant_core::event::{
    key_commitment, Asked, CallFinished, CallStarted, Counts, Decided, Decision, Event, Finished,
    PlanStarted, RunStarted, Status, Usage, SCHEMA,
};
use warrant_core::journal::verify::{Depth, Verifier};
use warrant_core::journal::{Chain, Finding, FindingKind, Head, Line, Report, RunId, TrailState};
use warrant_core::limits::Limits;
use warrant_core::outcome::Outcome;
use warrant_core::policy::{Policy, SideEffects, ToolFacts};

fn digest(text: &str) -> Digest {
    Digest::of_bytes(text.as_bytes())
}

/// A run of one call, up to its end.
fn history(calls: u64) -> Vec<Event> {
    let tool = ToolFacts {
        calls_before: 0,
        cost_nano: Some(5),
        idempotent: true,
        max_calls: None,
        name: "lookup".into(),
        requires_approval: false,
        schema: digest("schema"),
        scopes: vec![],
        side_effects: SideEffects::Read,
        spec_hash: digest("spec"),
        timeout_ms: None,
        ttl_ms: None,
    };
    let mut events: Vec<Event> = vec![RunStarted {
        content_key: key_commitment(&[7; 32]),
        goal: digest("goal"),
        guardrails: Vec::new(),
        limits: Limits {
            tool_calls: Some(calls),
            per_tool: BTreeMap::new(),
            ..Limits::default()
        },
        nonce: digest("nonce"),
        policy: Policy {
            allow_effects: vec![SideEffects::None, SideEffects::Read],
            approve_effects: vec![SideEffects::External, SideEffects::Write],
            granted_scopes: vec![],
            grants: vec![],
        },
        schema: SCHEMA.into(),
        tools: vec![tool],
    }
    .into()];
    for step in 1..=calls {
        events.extend(call(step));
    }
    let step = calls + 1;
    events.push(PlanStarted { step }.into());
    events.push(decided(step, None));
    events.push(
        Finished {
            answer: Some(digest("answer")),
            counts: Counts {
                actions: calls,
                calls_finished: calls,
                calls_started: calls,
                cost_nano: 5 * calls,
                steps: step,
                ..Counts::default()
            },
            error: None,
            status: Status::Completed,
            stop_reason: None,
        }
        .into(),
    );
    events
}

fn decided(step: u64, action: Option<Asked>) -> Event {
    Decided {
        decision: match action {
            Some(_) => Decision::Act,
            None => Decision::Finish,
        },
        answer: action.is_none().then(|| digest("answer")),
        actions: action.into_iter().collect(),
        note: None,
        step,
        usage: Usage::default(),
    }
    .into()
}

fn call(step: u64) -> Vec<Event> {
    let asked = Asked {
        arguments: digest("arguments"),
        tool: "lookup".into(),
    };
    vec![
        PlanStarted { step }.into(),
        decided(step, Some(asked)),
        CallStarted {
            action: 0,
            arguments: digest("arguments"),
            attempt: 1,
            cost_nano: 5,
            request: None,
            spec_hash: digest("spec"),
            step,
            timeout_ms: None,
            tool: "lookup".into(),
        }
        .into(),
        CallFinished {
            action: 0,
            attempt: 1,
            bytes: 3,
            duration_us: 9,
            notes: None,
            outcome: Outcome::Executed,
            result: Some(digest("result")),
            step,
            text: None,
            truncated: false,
        }
        .into(),
    ]
}

fn records(run: &str, events: &[Event]) -> Vec<String> {
    let mut chain = Chain::start(RunId::new(run).expect("an id"));
    let seal = |(i, event): (usize, &Event)| {
        let record = chain.append(event, 1000 + i as u64, i as u64);
        record.expect("seals").into_line()
    };
    events.iter().enumerate().map(seal).collect()
}

/// The lines of an audit file: runs with links between them.
struct Trail {
    own: Chain,
    lines: Vec<String>,
}

impl Trail {
    fn new() -> Self {
        let own = Chain::start(RunId::new("trail").expect("an id"));
        let mut trail = Self { own, lines: vec![] };
        trail.link();
        trail
    }

    fn link(&mut self) {
        let last = self.lines.last().and_then(|l| Line::read(l.as_bytes()));
        let after = last.map_or("null".to_owned(), |l| format!("\"{}\"", l.digest));
        let data = match self.own.head() {
            Some(_) => format!("{{\"after\":{after}}}"),
            None => format!("{{\"after\":{after},\"schema\":\"{SCHEMA}\"}}"),
        };
        let record = self.own.append_data("link", data.as_bytes(), 1, 0);
        self.lines.push(record.expect("seals").into_line());
    }

    fn run(mut self, run: &str, calls: u64) -> Self {
        self.lines.extend(records(run, &history(calls)));
        self.link();
        self
    }
}

fn golden() -> Vec<String> {
    Trail::new()
        .run("first", 1)
        .run("second", 2)
        .run("third", 1)
        .lines
}

fn text(lines: &[String]) -> Vec<u8> {
    lines
        .iter()
        .flat_map(|l| [l.as_bytes(), b"\n"].concat())
        .collect()
}

fn verify_with(bytes: &[u8], heads: Vec<Head>, block: usize) -> Report {
    let mut verifier = Verifier::new(Depth::Meaning, heads);
    bytes.chunks(block).for_each(|b| verifier.feed(b));
    verifier.finish()
}

fn verify(bytes: &[u8]) -> Report {
    verify_with(bytes, vec![], 4096)
}

fn kinds(report: &Report) -> Vec<&'static str> {
    report.findings.iter().map(|f| f.kind.word()).collect()
}

fn only(report: &Report) -> &Finding {
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    &report.findings[0]
}

#[test]
fn an_honest_trail_is_sound_however_it_is_cut_into_blocks() {
    let bytes = text(&golden());
    for block in [1, 7, 64, 1 << 20] {
        let report = verify_with(&bytes, vec![], block);
        assert_eq!(report.findings, []);
        assert_eq!(report.state, TrailState::Sound);
        assert_eq!((report.runs, report.open), (3, 0));
        assert_eq!(report.lines, golden().len() as u64);
        assert_eq!(report.records, report.lines);
    }
}

#[test]
fn a_journal_without_links_and_runs_that_interleave_are_sound() {
    let (a, b) = (records("a", &history(2)), records("b", &history(2)));
    assert_eq!(verify(&text(&a)).state, TrailState::Sound);
    let both: Vec<String> = a
        .iter()
        .zip(&b)
        .flat_map(|(a, b)| [a.clone(), b.clone()])
        .collect();
    let report = verify(&text(&both));
    assert_eq!((report.state, report.runs), (TrailState::Sound, 2));
    assert_eq!(report.heads.len(), 2);
}

#[test]
fn every_changed_byte_is_found_at_its_line() {
    let lines = Trail::new().run("first", 1).lines;
    let bytes = text(&lines);
    let mut line = 1u64;
    for at in 0..bytes.len() {
        for other in [bytes[at] ^ 1, bytes[at] ^ 0x80, b'\n'] {
            if other == bytes[at] {
                continue;
            }
            let mut changed = bytes.clone();
            changed[at] = other;
            let report = verify(&changed);
            assert_ne!(report.state, TrailState::Sound, "byte {at} to {other}");
            assert_ne!(report.state, TrailState::Open, "byte {at} to {other}");
            let first = report.findings[0].line.expect("a line");
            assert_eq!(first, line, "byte {at} to {other}: {:?}", report.findings);
        }
        line += u64::from(bytes[at] == b'\n');
    }
}

#[test]
fn a_changed_value_is_blamed_on_its_record_alone() {
    let lines = golden();
    for (i, line) in lines.iter().enumerate() {
        let read = Line::read(line.as_bytes()).expect("a record");
        let other = format!("\"at\":{}", read.at + 1);
        let mut changed = lines.clone();
        changed[i] = line.replacen(&format!("\"at\":{}", read.at), &other, 1);
        let report = verify(&text(&changed));
        let finding = only(&report);
        assert_eq!(finding.kind, FindingKind::Digest);
        assert_eq!(finding.line, Some(i as u64 + 1));
        assert_eq!(finding.run.as_deref(), Some(read.run));
        assert_eq!(finding.seq, Some(read.seq));
    }
}

#[test]
fn a_dropped_record_is_named() {
    let lines = golden();
    // The last line has nothing after it: only a known head can tell.
    for i in 0..lines.len() - 1 {
        let read = Line::read(lines[i].as_bytes()).expect("a record");
        let mut rest = lines.clone();
        rest.remove(i);
        let report = verify(&text(&rest));
        assert_eq!(report.state, TrailState::Broken, "line {i}");
        let of_run = |f: &&Finding| f.run.as_deref() == Some(read.run) && f.seq == Some(read.seq);
        let named = report.findings.iter().find(of_run);
        // A run whose end is gone has no later record: its link tells.
        let found = named.map_or(report.findings[0].kind, |f| f.kind);
        match read.event {
            "finished" => assert_eq!(found, FindingKind::Link),
            _ => assert_eq!(found, FindingKind::Missing, "{:?}", report.findings),
        }
    }
}

#[test]
fn a_repeated_record_is_named() {
    let lines = golden();
    for i in 0..lines.len() {
        let read = Line::read(lines[i].as_bytes()).expect("a record");
        let mut twice = lines.clone();
        twice.insert(i, lines[i].clone());
        let report = verify(&text(&twice));
        let wanted = match read.event {
            "finished" => FindingKind::AfterEnd,
            _ => FindingKind::Order,
        };
        let hit = report.findings.iter().find(|f| f.kind == wanted);
        let hit = hit.unwrap_or_else(|| panic!("{i}: {:?}", report.findings));
        assert_eq!((hit.line, hit.seq), (Some(i as u64 + 2), Some(read.seq)));
    }
}

#[test]
fn swapped_records_are_named() {
    let lines = golden();
    for i in 0..lines.len() - 1 {
        let mut swapped = lines.clone();
        swapped.swap(i, i + 1);
        let report = verify(&text(&swapped));
        assert_eq!(report.state, TrailState::Broken, "line {i}");
        let first = report.findings[0].line.expect("a line") as usize;
        assert!(first > i && first <= i + 3, "{i}: {:?}", report.findings);
    }
}

#[test]
fn a_cut_shows_against_a_known_head_and_not_without() {
    let lines = golden();
    let heads = verify(&text(&lines)).heads;
    assert_eq!(heads.len(), 1);
    for keep in 0..lines.len() {
        let bytes = text(&lines[..keep]);
        let report = verify(&bytes);
        assert_eq!(report.findings, [], "{keep}");
        let report = verify_with(&bytes, heads.clone(), 512);
        assert_eq!(report.state, TrailState::Cut);
        let finding = only(&report);
        assert_eq!(finding.kind, FindingKind::Cut);
        let links = lines[..keep]
            .iter()
            .filter(|l| l.contains("\"event\":\"link\""));
        assert_eq!(finding.seq, Some(links.count() as u64));
    }
    // The head goes on being there when the trail grows.
    let grown = Trail {
        own: Chain::resume(RunId::new("trail").expect("an id"), 3, heads[0].digest, 0),
        lines,
    }
    .run("fourth", 1);
    let report = verify_with(&text(&grown.lines), heads.clone(), 512);
    assert_eq!(report.state, TrailState::Sound);
    let mut bare = heads;
    bare[0].place = None;
    assert_eq!(
        verify_with(&text(&golden()), bare.clone(), 64).state,
        TrailState::Sound
    );
    assert_eq!(verify_with(b"", bare, 64).state, TrailState::Cut);
}

#[test]
fn a_trail_cut_within_a_line_is_cut() {
    let lines = golden();
    let bytes = text(&lines);
    let mut starts: Vec<usize> = vec![0];
    starts.extend(
        (0..bytes.len())
            .filter(|i| bytes[*i] == b'\n')
            .map(|i| i + 1),
    );
    for at in 0..bytes.len() {
        let report = verify(&bytes[..at]);
        if starts.contains(&at) {
            assert_eq!(report.findings, []);
        } else {
            assert_eq!(report.state, TrailState::Cut);
            assert_eq!(only(&report).kind, FindingKind::Torn);
        }
    }
}

#[test]
fn a_removed_run_shows_by_the_next_link() {
    let lines = golden();
    let of = |line: &String, run: &str| Line::read(line.as_bytes()).is_some_and(|l| l.run == run);
    // With its records alone, and with the link that follows it too.
    let first = lines
        .iter()
        .position(|l| of(l, "second"))
        .expect("is there");
    let last = lines
        .iter()
        .rposition(|l| of(l, "second"))
        .expect("is there");
    for upto in [last, last + 1] {
        let mut rest = lines.clone();
        rest.drain(first..=upto);
        let report = verify(&text(&rest));
        assert_eq!(report.state, TrailState::Broken);
        assert_eq!(report.findings[0].run.as_deref(), Some("trail"));
    }
}

#[test]
fn a_run_that_comes_again_is_found() {
    let lines = golden();
    let of = |l: &&String| Line::read(l.as_bytes()).is_some_and(|l| l.run == "third");
    let mut again = lines.clone();
    again.extend(lines.iter().filter(of).cloned());
    let report = verify(&text(&again));
    assert!(
        kinds(&report).contains(&"after_end"),
        "{:?}",
        report.findings
    );
    // In a journal without links too.
    let run = records("a", &history(1));
    let report = verify(&text(&[run.clone(), run].concat()));
    assert_eq!(report.findings[0].kind, FindingKind::AfterEnd);
}

#[test]
fn what_no_run_could_have_recorded_is_found_although_the_chain_is_right() {
    let find = |change: &dyn Fn(&mut Vec<Event>)| {
        let mut events = history(2);
        change(&mut events);
        let report = verify(&text(&records("r", &events)));
        assert_eq!(report.state, TrailState::Broken);
        let chain = {
            let mut verifier = Verifier::new(Depth::Chain, vec![]);
            verifier.feed(&text(&records("r", &events)));
            verifier.finish()
        };
        assert_eq!(chain.findings, []);
        let finding = only(&report);
        assert_eq!(finding.kind, FindingKind::Meaning);
        (finding.seq.expect("a record"), finding.what.clone())
    };
    let (seq, what) = find(&|e| {
        if let Event::RunStarted(data) = &mut e[0] {
            data.limits.tool_calls = Some(1);
        }
    });
    assert_eq!(seq, 7, "{what}");
    assert!(what.contains("tool_calls"), "{what}");
    let (seq, what) = find(&|e| {
        if let Event::RunStarted(data) = &mut e[0] {
            data.tools[0].scopes = vec!["docs:read".into()];
        }
    });
    assert_eq!(seq, 3, "{what}");
    let (seq, what) = find(&|e| {
        if let Event::RunStarted(data) = &mut e[0] {
            data.tools[0].requires_approval = true;
        }
    });
    assert_eq!(seq, 3, "{what}");
    assert!(what.contains("not_approved"), "{what}");
    // A record that was never written.
    let (seq, what) = find(&|e| {
        e.remove(4);
    });
    assert_eq!(seq, 4, "{what}");
    let (seq, what) = find(&|e| {
        if let Some(Event::Finished(data)) = e.last_mut() {
            data.counts.calls_started = 1;
        }
    });
    assert_eq!(seq, 11, "{what}");
}

#[test]
fn an_event_with_other_data_is_found() {
    let mut chain = Chain::start(RunId::new("r").expect("an id"));
    let line = chain.append_data("plan_started", b"{\"step\":1,\"x\":2}", 0, 0);
    let bytes = text(&[line.expect("seals").into_line()]);
    assert_eq!(kinds(&verify(&bytes)), ["event"]);
}

#[test]
fn a_link_of_another_file_is_found() {
    let mut lines = golden();
    let mut other = Trail::new();
    other.own = Chain::start(RunId::new("elsewhere").expect("an id"));
    other.lines.clear();
    other.link();
    lines.extend(other.lines);
    assert_eq!(kinds(&verify(&text(&lines))), ["link"]);
}

#[test]
fn no_bytes_end_the_check() {
    let good = text(&golden());
    let cases: [(&[u8], &[&str]); 9] = [
        (b"", &[]),
        (b"\n", &["unreadable"]),
        (b"\r\n", &["unreadable"]),
        (b"\xef\xbb\xbf\n", &["unreadable"]),
        (b"\xc3", &["torn"]),
        (b"\xff\xfe\n", &["unreadable"]),
        (b"null\n{}\n[]", &["unreadable", "unreadable", "torn"]),
        (b"{\"half\":", &["torn"]),
        (b"\0\0\0\n", &["unreadable"]),
    ];
    for (bytes, want) in cases {
        assert_eq!(kinds(&verify(bytes)), want, "{bytes:?}");
        // In the middle of a good trail as well.
        let cut = good.iter().position(|b| *b == b'\n').expect("a line") + 1;
        let mut mixed = good[..cut].to_vec();
        mixed.extend_from_slice(bytes);
        mixed.push(b'\n');
        mixed.extend_from_slice(&good[cut..]);
        let report = verify(&mixed);
        assert!(report
            .findings
            .iter()
            .all(|f| f.kind == FindingKind::Unreadable));
        assert!(report.findings.iter().all(|f| f.line >= Some(2)));
    }
    let crlf: Vec<u8> = String::from_utf8(good)
        .expect("text")
        .replace('\n', "\r\n")
        .into();
    let report = verify(&crlf);
    assert_eq!(report.findings.len() as u64, report.lines);
    assert!(kinds(&report).iter().all(|k| *k == "not_canonical"));
}

#[test]
fn a_line_without_end_is_bounded() {
    let mut verifier = Verifier::new(Depth::Chain, vec![]);
    let block = vec![b'x'; 1 << 20];
    for _ in 0..40 {
        verifier.feed(&block);
    }
    verifier.feed(b"\n");
    verifier.feed(&text(&golden()));
    let report = verifier.finish();
    assert_eq!(kinds(&report), ["unreadable"]);
    assert_eq!(report.lines, golden().len() as u64 + 1);
}
