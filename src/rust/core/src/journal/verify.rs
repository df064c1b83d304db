//! The reader: verifies a trail fed in blocks, in memory that does not grow with it.
//!
//! First the chain: every line is a record in canonical form, states its own
//! digest, and builds on the record before it in its run. Then the meaning: each
//! run's events are folded by the run machine's own state, so a record that no run
//! could have made is found although its digests are right. Content never ends
//! the check: whatever the bytes are, the answer is a list of findings.

mod heads;

use super::finding::{Finding, FindingKind, Head, Report, TrailState};
use super::format::{diagnose, Defect, Line, FINISHED, LINK, MAX_LINE, RECOVERED, RUN_STARTED};
use crate::digest::Digest;
use crate::error::Fault;
use crate::event::{other_schema, Event, SCHEMA};
use crate::run::{Meaning, State};
use std::collections::{HashMap, HashSet};

/// How far a trail is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Lines, digests, links.
    Chain,
    /// Also what the records say.
    Meaning,
}

/// A verifier of one trail.
///
/// ```
/// use warrant_core::journal::verify::{Depth, Verifier};
/// let mut verifier = Verifier::new(Depth::Meaning, vec![]);
/// verifier.feed(b"not a record\n");
/// let report = verifier.finish();
/// assert_eq!(report.findings[0].kind.word(), "unreadable");
/// ```
pub struct Verifier {
    depth: Depth,
    heads: Vec<(Head, [u8; 64], bool)>,
    /// The part of a line that the last block ended in.
    rest: Vec<u8>,
    /// Inside a line that is too long to be a record.
    skipping: bool,
    lines: u64,
    records: u64,
    runs: u64,
    recoveries: u64,
    findings: Vec<Finding>,
    /// The file's own chain.
    own: Option<(String, Chain)>,
    before: Before,
    index: HashMap<String, usize>,
    /// Invariant: `index` names every slot but the free ones.
    slots: Vec<Slot>,
    free: Vec<usize>,
    last: usize,
    /// Fingerprints of runs that have ended.
    ended: HashSet<[u8; 16]>,
    ended_heads: Vec<Head>,
}

/// What the line before was.
enum Before {
    /// There was none.
    Nothing,
    /// Not a record.
    Unknown,
    Record {
        stated: [u8; 64],
        computed: [u8; 64],
        event: BeforeEvent,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BeforeEvent {
    Finished,
    Link,
    Other,
}

/// The head of one run, or of the file's own lines.
struct Chain {
    next: u64,
    /// As stated by the last record, and as computed: they differ only where it
    /// was changed, and what follows may build on either.
    stated: [u8; 64],
    computed: [u8; 64],
    active_ms: u64,
}

struct Slot {
    run: String,
    chain: Chain,
    /// None once the run's history is not intact.
    fold: Option<Box<State>>,
}

/// What a chain says to a record.
enum Step {
    Next,
    Behind,
}

impl Verifier {
    /// A verifier that has seen nothing. `heads` are records that the trail must
    /// hold.
    pub fn new(depth: Depth, heads: Vec<Head>) -> Self {
        let heads = heads
            .into_iter()
            .map(|head| {
                let text = head.digest.to_hex_bytes();
                (head, text, false)
            })
            .collect();
        Self {
            depth,
            heads,
            rest: Vec::new(),
            skipping: false,
            lines: 0,
            records: 0,
            runs: 0,
            recoveries: 0,
            findings: Vec::new(),
            own: None,
            before: Before::Nothing,
            index: HashMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            last: usize::MAX,
            ended: HashSet::new(),
            ended_heads: Vec::new(),
        }
    }

    /// Takes the next bytes of the trail.
    pub fn feed(&mut self, block: &[u8]) {
        let mut from = 0;
        for end in memchr::memchr_iter(b'\n', block) {
            let part = &block[from..end];
            from = end + 1;
            if self.skipping {
                self.skipping = false;
            } else if self.rest.is_empty() {
                self.line(part);
            } else {
                let mut whole = std::mem::take(&mut self.rest);
                whole.extend_from_slice(part);
                self.line(&whole);
                whole.clear();
                self.rest = whole;
            }
        }
        if self.skipping {
            return;
        }
        self.rest.extend_from_slice(&block[from..]);
        if self.rest.len() > MAX_LINE {
            self.rest = Vec::new();
            self.skipping = true;
            self.lines += 1;
            let what = format!("the line is longer than a record may be ({MAX_LINE} bytes)");
            self.find(FindingKind::Unreadable, None, None, what);
            self.before = Before::Unknown;
        }
    }

    /// What was found.
    pub fn finish(mut self) -> Report {
        if !self.rest.is_empty() || self.skipping {
            if !self.skipping {
                self.lines += 1;
            }
            let what = match self.rest.len() {
                0 => "the last line is not terminated".to_owned(),
                n => format!("the last line is not terminated ({n} bytes)"),
            };
            self.find(FindingKind::Torn, None, None, what);
        }
        self.miss_heads();
        let unlinked = matches!(
            self.before,
            Before::Record {
                event: BeforeEvent::Finished,
                ..
            }
        );
        let open = self.index.len() as u64;
        let finds = |kind: &dyn Fn(FindingKind) -> bool| self.findings.iter().any(|f| kind(f.kind));
        let state = if finds(&|k| !matches!(k, FindingKind::Torn | FindingKind::Cut)) {
            TrailState::Broken
        } else if !self.findings.is_empty() {
            TrailState::Cut
        } else if open > 0 || self.records == 0 || (unlinked && self.own.is_some()) {
            TrailState::Open
        } else {
            TrailState::Sound
        };
        Report {
            state,
            lines: self.lines,
            records: self.records,
            runs: self.runs,
            open,
            recoveries: self.recoveries,
            heads: self.current_heads(),
            findings: self.findings,
        }
    }

    fn line(&mut self, bytes: &[u8]) {
        self.lines += 1;
        let Some(line) = Line::read(bytes) else {
            return self.defective(bytes);
        };
        let digest = line.hash();
        let computed = digest.to_hex_bytes();
        let stated = hex_of(line.digest);
        if computed == stated {
            self.records += 1;
            self.record(&line, digest, computed);
            self.note_heads(&line, &computed);
        } else {
            let chain = self.changed(line.run, line.seq, line.prev, line.event, stated, computed);
            let what = "the digest that the record states is not that of its line".to_owned();
            self.find(FindingKind::Digest, Some(line.run), Some(chain), what);
        }
        let event = match line.event {
            FINISHED => BeforeEvent::Finished,
            LINK => BeforeEvent::Link,
            _ => BeforeEvent::Other,
        };
        self.before = Before::Record {
            stated,
            computed,
            event,
        };
    }

    fn record(&mut self, line: &Line<'_>, digest: Digest, computed: [u8; 64]) {
        let own = match &self.own {
            Some((run, _)) => run == line.run,
            None => line.event == LINK,
        };
        if own {
            return self.own_record(line, computed);
        }
        if line.event == LINK {
            let what = "a link of another file".to_owned();
            return self.find(FindingKind::Link, Some(line.run), Some(line.seq), what);
        }
        if self.own.is_some() {
            self.want_link(line);
        }
        let Some(at) = self.slot(line) else {
            let what = "a record after the end of its run".to_owned();
            return self.find(FindingKind::AfterEnd, Some(line.run), Some(line.seq), what);
        };
        let found = self.findings.len();
        let step = self.step(Some(at), line, computed);
        let slot = &mut self.slots[at];
        if self.findings.len() > found {
            // A history with a gap has no meaning to check.
            slot.fold = None;
        }
        if matches!(step, Step::Behind) {
            return;
        }
        if let Some(fold) = &mut slot.fold {
            if let Err((kind, what)) = fold_in(fold, line, digest) {
                slot.fold = None;
                self.find(kind, Some(line.run), Some(line.seq), what);
            }
        }
        if line.event == FINISHED {
            self.close(at);
        }
    }

    /// One of the file's own lines.
    fn own_record(&mut self, line: &Line<'_>, computed: [u8; 64]) {
        if self.own.is_none() {
            self.own = Some((line.run.to_owned(), Chain::new()));
        }
        if matches!(self.step(None, line, computed), Step::Behind) {
            return;
        }
        if line.event == RECOVERED {
            self.recoveries += 1;
            return;
        }
        let what = match after(line) {
            _ if line.event != LINK => Some("not an event of the file's own"),
            None => Some("the data are not those of a link"),
            Some(after) => {
                let fits = match (&self.before, after) {
                    (Before::Unknown, _) | (Before::Nothing, None) => true,
                    (Before::Nothing, Some(_)) | (Before::Record { .. }, None) => false,
                    (
                        Before::Record {
                            stated, computed, ..
                        },
                        Some(after),
                    ) => after.as_bytes() == stated || after.as_bytes() == computed,
                };
                (!fits).then_some("the link does not name the line before it")
            }
        };
        if let Some(what) = what {
            self.find(
                FindingKind::Link,
                Some(line.run),
                Some(line.seq),
                what.to_owned(),
            );
        }
    }

    /// In a file with links, one stands before each run and after its end.
    fn want_link(&mut self, line: &Line<'_>) {
        let before = match &self.before {
            Before::Record { event, .. } => *event,
            // The line that was to be a link may be the one that is not readable.
            Before::Nothing | Before::Unknown => return,
        };
        let what = if before == BeforeEvent::Finished {
            "no link follows the end of the run before"
        } else if line.event == RUN_STARTED && before != BeforeEvent::Link {
            "no link stands before the run"
        } else {
            return;
        };
        self.find(
            FindingKind::LinkMissing,
            Some(line.run),
            Some(line.seq),
            what.to_owned(),
        );
    }

    /// Holds a record against its chain and moves the chain on. `at` is the run's
    /// slot, or nothing for the file's own chain.
    fn step(&mut self, at: Option<usize>, line: &Line<'_>, computed: [u8; 64]) -> Step {
        let chain = match (at, &mut self.own) {
            (Some(at), _) => &mut self.slots[at].chain,
            (None, Some((_, chain))) => chain,
            (None, None) => return Step::Behind,
        };
        let expected = chain.next;
        let active_ms = chain.active_ms;
        if line.seq < expected {
            let what = format!(
                "record {} comes again, or after record {}",
                line.seq,
                expected - 1
            );
            self.find(FindingKind::Order, Some(line.run), Some(line.seq), what);
            return Step::Behind;
        }
        let builds = chain.builds(line.prev);
        chain.next = line.seq + 1;
        chain.stated = computed;
        chain.computed = computed;
        chain.active_ms = active_ms.max(line.active_ms);
        if line.seq > expected {
            let what = match line.seq - expected {
                1 => format!("record {expected} is missing"),
                _ => format!("records {expected} to {} are missing", line.seq - 1),
            };
            self.find(FindingKind::Missing, Some(line.run), Some(expected), what);
        } else if !builds {
            let what = "the record does not build on the one before it".to_owned();
            self.find(FindingKind::Prev, Some(line.run), Some(line.seq), what);
        }
        if line.active_ms < active_ms {
            let what = format!(
                "working time falls from {active_ms} to {} ms",
                line.active_ms
            );
            self.find(FindingKind::Time, Some(line.run), Some(line.seq), what);
        }
        Step::Next
    }

    /// A record whose bytes were changed: takes it for the one it stands for, so
    /// that what follows is not blamed. Gives the number that it stands for.
    fn changed(
        &mut self,
        run: &str,
        seq: u64,
        prev: Option<&str>,
        event: &str,
        stated: [u8; 64],
        computed: [u8; 64],
    ) -> u64 {
        let opens = seq == 0 && prev.is_none();
        if opens && event == LINK && self.own.is_none() {
            self.own = Some((run.to_owned(), Chain::new()));
        }
        let chain = match &mut self.own {
            Some((own, chain)) if own == run => chain,
            _ => {
                let known = self.index.get(run).copied();
                let begins = opens && event == RUN_STARTED && !self.ended.contains(&print(run));
                let at = match known {
                    Some(at) => at,
                    None if begins => self.open(run),
                    None => return seq,
                };
                self.slots[at].fold = None;
                &mut self.slots[at].chain
            }
        };
        let follows = chain.next > 0 && chain.builds(prev);
        if !follows && seq != chain.next {
            return seq;
        }
        let seq = chain.next;
        chain.next += 1;
        chain.stated = stated;
        chain.computed = computed;
        if event == FINISHED {
            if let Some(at) = self.index.get(run).copied() {
                self.close(at);
            }
        }
        seq
    }

    fn defective(&mut self, bytes: &[u8]) {
        match diagnose(bytes) {
            Defect::Unreadable { what } => {
                self.find(FindingKind::Unreadable, None, None, what);
                self.before = Before::Unknown;
            }
            Defect::NotCanonical {
                run,
                seq,
                digest,
                prev,
                event,
            } => {
                let stated = digest.to_hex_bytes();
                let prev = prev.map(|p| p.to_hex());
                let seq = self.changed(&run, seq, prev.as_deref(), &event, stated, stated);
                let what = "the record is not in canonical form".to_owned();
                self.find(FindingKind::NotCanonical, Some(&run), Some(seq), what);
                let event = match event.as_str() {
                    FINISHED => BeforeEvent::Finished,
                    LINK => BeforeEvent::Link,
                    _ => BeforeEvent::Other,
                };
                self.before = Before::Record {
                    stated,
                    computed: stated,
                    event,
                };
            }
        }
    }

    /// The slot of a record's run, made where the run is new; nothing where it has
    /// ended.
    fn slot(&mut self, line: &Line<'_>) -> Option<usize> {
        if self.slots.get(self.last).is_some_and(|s| s.run == line.run) {
            return Some(self.last);
        }
        let at = match self.index.get(line.run) {
            Some(at) => *at,
            None if self.ended.contains(&print(line.run)) => return None,
            None => self.open(line.run),
        };
        self.last = at;
        Some(at)
    }

    fn open(&mut self, run: &str) -> usize {
        self.runs += 1;
        let slot = Slot {
            run: run.to_owned(),
            chain: Chain::new(),
            fold: (self.depth == Depth::Meaning).then(Box::default),
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                self.slots.len() - 1
            }
        };
        self.index.insert(run.to_owned(), at);
        at
    }

    fn close(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        slot.fold = None;
        let run = std::mem::take(&mut slot.run);
        self.index.remove(&run);
        self.ended.insert(print(&run));
        if self.own.is_none() {
            let head = heads::head_of(&run, &self.slots[at].chain);
            self.ended_heads.extend(head);
        }
        self.free.push(at);
        self.last = usize::MAX;
    }

    fn find(&mut self, kind: FindingKind, run: Option<&str>, seq: Option<u64>, what: String) {
        self.findings.push(Finding {
            kind,
            line: Some(self.lines),
            run: run.map(str::to_owned),
            seq,
            what,
        });
    }
}

impl Chain {
    fn new() -> Self {
        Self {
            next: 0,
            stated: [0; 64],
            computed: [0; 64],
            active_ms: 0,
        }
    }

    fn builds(&self, prev: Option<&str>) -> bool {
        match prev {
            None => self.next == 0,
            Some(prev) => {
                let prev = prev.as_bytes();
                self.next > 0 && (prev == self.stated || prev == self.computed)
            }
        }
    }
}

/// Folds a record into the state of its run.
fn fold_in(fold: &mut State, line: &Line<'_>, digest: Digest) -> Result<(), (FindingKind, String)> {
    let data = line.data.as_bytes();
    let event = Event::read(line.event, data).map_err(|e| {
        let what = match other_schema(line.event, data) {
            Some(found) => Meaning::Schema { found }.to_string(),
            None => e.to_string(),
        };
        (FindingKind::Event, what)
    })?;
    fold.apply(&event, digest, line.active_ms)
        .map_err(|e| (FindingKind::Meaning, format!("{e} ({})", e.code())))?;
    // What a step left behind is for a driver, not for a verifier.
    drop(fold.take_closed());
    Ok(())
}

/// What a link says of the line before it: its digest or null.
fn after<'a>(line: &Line<'a>) -> Option<Option<&'a str>> {
    let rest = line.data.strip_prefix("{\"after\":")?;
    let (after, rest) = match rest.strip_prefix("null") {
        Some(rest) => (None, rest),
        None => {
            let hex = rest.strip_prefix('"')?.get(..64)?;
            hex.parse::<Digest>().ok()?;
            (Some(hex), rest.get(65..)?.strip_prefix('"')?)
        }
    };
    let schema = match line.seq {
        0 => rest
            .strip_prefix(",\"schema\":\"")?
            .strip_prefix(SCHEMA)?
            .strip_prefix('"')?,
        _ => rest,
    };
    (schema == "}").then_some(after)
}

/// Enough of a run's name to know it again.
fn print(run: &str) -> [u8; 16] {
    let mut print = [0; 16];
    print.copy_from_slice(&Digest::of_bytes(run.as_bytes()).as_bytes()[..16]);
    print
}

fn hex_of(text: &str) -> [u8; 64] {
    // `Line::read` gives 64 hex digits; anything else equals no digest.
    text.as_bytes().try_into().unwrap_or([0; 64])
}
