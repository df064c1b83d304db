//! Runs driven by scripted agents under a made-up clock, with crashes.
//!
//! Whatever the planner asks, whoever decides, wherever the driver vanishes:
//! no meter passes its limit, a call is performed only when the start of that very
//! attempt is on disk, a call of a tool that is not idempotent is performed at most
//! once, every call settles at most once, and every history folds.

// a test may end by a panic, and the driver wears out as it runs
#![allow(clippy::panic, clippy::wrong_self_convention)]

use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use warrant_core::digest::Digest;
use warrant_core::event::{
    address, CallFinished, Event, GuardrailFacts, GuardrailVerdict, LateResult, Stage, Status,
    Usage,
};
use warrant_core::journal::{Chain, Line, RunId};
use warrant_core::limits::Limits;
use warrant_core::outcome::Outcome;
use warrant_core::policy::SideEffects;
use warrant_core::run::{
    Acceptance, By, Call, Check, Clock, Decided, Effect, Effects, Ended, Failure, Finding, Given,
    GrantRule, History, Log, Machine, Presence, Proposal, RunTool, Settled, Setup, State, Verdict,
};
use warrant_core::schema::Schema;
use warrant_core::tool::{Redactions, Tool, ToolSpec};

const KEY: [u8; 32] = [9; 32];

/// A small generator (xorshift64*), so that a seed is a history.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn maybe(&mut self, most: u64) -> Option<u64> {
        if self.one_in(3) {
            None
        } else {
            Some(self.below(most + 1))
        }
    }
}

/// A guardrail that looks everywhere.
fn rails() -> Vec<GuardrailFacts> {
    vec![GuardrailFacts {
        digest: Digest::of_bytes(b"check"),
        name: "rail".to_owned(),
        on_fail: GuardrailVerdict::Warn,
        stages: vec![Stage::Input, Stage::Output, Stage::Tool],
    }]
}

/// What survives a crash.
#[derive(Default)]
struct Disk {
    lines: Vec<String>,
    content: BTreeMap<Digest, Vec<u8>>,
}

impl Disk {
    fn events(&self) -> Vec<(Event, Digest, u64)> {
        self.lines.iter().map(|line| read(line)).collect()
    }

    fn history(&self) -> History {
        History::read(self.lines.iter().map(String::as_str), None).expect("a history")
    }

    fn log(&self) -> Log {
        let history = self.history();
        Log::open(history.state, history.chain, KEY).expect("the key")
    }
}

fn read(line: &str) -> (Event, Digest, u64) {
    let line = Line::read(line.as_bytes()).expect("a record");
    let event = Event::read(line.event, line.data.as_bytes()).expect("an event");
    let digest = line.digest.parse().expect("a digest");
    assert_eq!(line.hash(), digest);
    (event, digest, line.active_ms)
}

/// What a run is set up with, remembered so that it can be set up again.
#[derive(Clone)]
struct World {
    limits: Limits,
    allow: Vec<SideEffects>,
    approve: Vec<SideEffects>,
    scopes: Vec<String>,
    grant: Option<u64>,
    max_calls: Option<u64>,
    approver: Presence,
    guarded: bool,
    judge: Presence,
}

impl World {
    fn random(dice: &mut Dice) -> Self {
        let all = [
            SideEffects::External,
            SideEffects::None,
            SideEffects::Read,
            SideEffects::Write,
        ];
        let some = |dice: &mut Dice| all.into_iter().filter(|_| !dice.one_in(3)).collect();
        let mut per_tool = BTreeMap::new();
        if let Some(n) = dice.maybe(3) {
            per_tool.insert("look".to_owned(), n);
        }
        let presence = |yes| {
            if yes {
                Presence::Present
            } else {
                Presence::Absent
            }
        };
        World {
            limits: Limits {
                active_ms: dice.maybe(400),
                call_timeout_ms: dice.maybe(50),
                cost_nano: dice.maybe(60),
                per_tool,
                steps: Some(dice.below(9)),
                tokens: dice.maybe(100),
                tool_calls: dice.maybe(9),
            },
            allow: some(dice),
            approve: some(dice),
            scopes: if dice.one_in(3) {
                Vec::new()
            } else {
                vec!["docs".to_owned()]
            },
            grant: dice.maybe(2),
            max_calls: dice.maybe(4),
            approver: presence(dice.one_in(2)),
            guarded: dice.one_in(3),
            judge: presence(dice.one_in(2)),
        }
    }

    fn setup(&self) -> Setup {
        let tool = |name: &str, effects: &str, idempotent: bool, cost: u64| RunTool {
            tool: Tool::new(ToolSpec {
                name: name.to_owned(),
                description: "A tool.".to_owned(),
                parameters: json!({"n": {"type": "integer", "maximum": 3}}),
                formals: vec!["n".to_owned()],
                side_effects: Some(effects.to_owned()),
                requires_approval: name == "pay",
                ttl_s: if name == "send" {
                    json!(1)
                } else {
                    Value::Null
                },
                timeout_s: if name == "pay" { json!(1) } else { Value::Null },
                max_calls: self.max_calls.map_or(json!("Infinity"), |n| json!(n)),
                max_bytes: json!("Infinity"),
                scopes: vec!["docs".to_owned()],
                idempotent: Some(idempotent),
                cost: json!(cost as f64 / 1e9),
                isolation: "session".to_owned(),
                record: "full".to_owned(),
                ..ToolSpec::default()
            })
            .expect("a tool"),
            spec_hash: Digest::of_bytes(name.as_bytes()),
            calls_before: 1,
        };
        let tools = vec![
            tool("look", "read", true, 5),
            tool("pay", "external", false, 9),
            tool("send", "write", false, 0),
            tool("store", "write", true, 3),
        ];
        let grants = self.grant.map(|count| GrantRule {
            count: Some(count),
            run: None,
            rule: Schema::new(json!({"properties": {"n": {"enum": [1, 2]}}})).expect("a rule"),
            tool: "send".to_owned(),
            until_ms: None,
        });
        let effects = Effects {
            allow: self.allow.clone(),
            approve: self.approve.clone(),
            scopes: self.scopes.clone(),
        };
        Setup::new(
            tools,
            effects,
            grants.into_iter().collect(),
            self.limits.clone(),
            &KEY,
        )
        .expect("a setup")
        .with_approver(self.approver)
        .with_guards(if self.guarded { rails() } else { Vec::new() })
        .with_judge(self.judge)
    }
}

/// What really happened, as the world outside saw it.
#[derive(Default)]
struct Outside {
    performed: Vec<(String, String, u64)>,
    /// Calls that ended when their driver had vanished.
    ended: Vec<CallFinished>,
    /// How many of them the journal took as late.
    late: u32,
}

struct Sim {
    dice: Dice,
    world: World,
    disk: Disk,
    outside: Outside,
    clock: Clock,
    crash_one_in: u64,
}

/// The driver vanished.
struct Crash;

fn ended_later(call: &Call, outcome: Outcome) -> CallFinished {
    CallFinished {
        action: call.action,
        attempt: call.attempt,
        bytes: 1,
        duration_us: 3,
        notes: None,
        outcome,
        result: (outcome == Outcome::Executed).then(|| address(&KEY, &json!("ok"))),
        step: call.step,
        text: None,
        truncated: false,
    }
}

impl Sim {
    fn new(seed: u64, crash_one_in: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let world = World::random(&mut dice);
        Sim {
            dice,
            world,
            disk: Disk::default(),
            outside: Outside::default(),
            clock: Clock {
                at_ms: 1_000_000,
                active_ms: 0,
            },
            crash_one_in,
        }
    }

    fn tick(&mut self) -> Clock {
        self.clock.at_ms += self.dice.below(30);
        self.clock.active_ms += self.dice.below(12);
        self.clock
    }

    /// Writes what the machine wants kept; a crash can leave a prefix of it.
    fn keep(&mut self, machine: &mut Machine) -> Result<(), Crash> {
        let output = machine.take_output();
        self.disk.content.extend(output.content);
        let mut refused = false;
        for record in output.records {
            refused = refused || self.dice.one_in(self.crash_one_in);
            if !refused {
                self.disk.lines.push(record.into_line());
            } else if let (Event::CallFinished(end), _, _) = read(record.line()) {
                // Who lost the run still knows how its call ended.
                self.outside.ended.push(end);
            }
        }
        if refused {
            return Err(Crash);
        }
        if self.dice.one_in(self.crash_one_in) {
            return Err(Crash);
        }
        Ok(())
    }

    fn start(&mut self) -> Option<Machine> {
        let chain = Chain::start(RunId::new("r1").expect("an id"));
        let mut machine = Machine::start(
            self.world.setup(),
            chain,
            KEY,
            [1; 32],
            &json!("goal"),
            self.clock,
        )
        .expect("starts");
        let kept = self.keep(&mut machine).is_ok();
        (kept && !self.disk.lines.is_empty()).then_some(machine)
    }

    fn resume(&mut self) -> Machine {
        let clock = self.tick();
        let mut log = self.disk.log();
        // People decide while nobody drives.
        let pending: Vec<Digest> = log
            .state()
            .step()
            .map(|s| s.pending().iter().map(|r| r.digest).collect())
            .unwrap_or_default();
        for request in pending {
            if let Some(verdict) = self.verdict() {
                let by = By {
                    approver: "p".to_owned(),
                    decided_ms: clock.at_ms,
                };
                // An expired request refuses the decision and is recorded.
                let _ = log.decide(request, verdict, by, None, clock);
            }
        }
        if self.dice.one_in(3) {
            if let Some(end) = self.outside.ended.pop() {
                self.settle(&mut log, end, clock);
            }
        }
        let output = log.take_output();
        self.disk.content.extend(output.content);
        self.disk
            .lines
            .extend(output.records.into_iter().map(|r| r.into_line()));
        let log = self.disk.log();
        let setup = self.world.setup();
        Machine::resume(log, setup, &self.disk.content, Vec::new(), clock).expect("resumes")
    }

    /// Who lost the run hands in how its call ended.
    fn settle(&mut self, log: &mut Log, end: CallFinished, clock: Clock) {
        let was_lost = |log: &Log| log.state().lost().count();
        let before = was_lost(log);
        let late = match log.settle(end.clone(), clock).expect("settles") {
            Settled::Late => 1,
            Settled::Finished | Settled::Nowhere => 0,
        };
        assert_eq!(was_lost(log) + late, before);
        self.outside.late += late as u32;
        let again = log.settle(end, clock).expect("settles");
        assert_eq!(again, Settled::Nowhere, "an end is recorded once");
    }

    /// The driver finds what a late one left.
    fn late(&mut self, machine: &mut Machine) {
        let Some(end) = self.outside.ended.pop() else {
            return;
        };
        let attempt = (end.step, end.action, end.attempt);
        let lost = machine.state().lost().any(|a| *a == attempt);
        let used = (machine.state().used().clone(), machine.state().counts());
        let clock = self.clock;
        let taken = machine.late(LateResult::from(&end), clock);
        assert_eq!(taken.is_ok(), lost);
        assert!(machine.late(LateResult::from(&end), clock).is_err());
        let after = (machine.state().used().clone(), machine.state().counts());
        assert_eq!(used, after, "what is late counts for nothing");
        self.outside.late += u32::from(lost);
    }

    fn verdict(&mut self) -> Option<Verdict> {
        match self.dice.below(5) {
            0 => None,
            1 => Some(Verdict::Reject(None)),
            2 => Some(Verdict::Edit(json!({"n": self.dice.below(3)}))),
            _ => Some(Verdict::Approve),
        }
    }

    /// Drives until the run ends, pauses or the driver vanishes.
    fn drive(&mut self, machine: &mut Machine) -> Result<Status, Crash> {
        loop {
            let clock = self.tick();
            let effect = machine.next(clock).expect("an effect");
            self.keep(machine)?;
            // Asking again changes nothing.
            if !matches!(effect, Effect::Call(_)) {
                assert_eq!(machine.next(clock).expect("an effect"), effect);
                assert!(machine.take_output().records.is_empty());
            }
            match effect {
                Effect::Ended => return Ok(machine.state().status()),
                Effect::Paused => return Ok(Status::AwaitingApproval),
                Effect::Plan { step } => self.plan(machine, step),
                Effect::Ask { request } => {
                    let verdict = self.verdict();
                    let clock = self.tick();
                    let by = By {
                        approver: "p".to_owned(),
                        decided_ms: clock.at_ms,
                    };
                    let _ = machine.answered(request, verdict, by, clock);
                }
                Effect::Judge { .. } => {
                    let clock = self.tick();
                    let accepted = if self.dice.one_in(2) {
                        Acceptance::Accepted
                    } else {
                        Acceptance::Rejected
                    };
                    machine.judged(accepted, clock).expect("an answer waits");
                }
                Effect::Call(call) => self.call(machine, &call)?,
                Effect::Check(check) => self.check(machine, &check),
            }
            self.keep(machine)?;
        }
    }

    fn findings(&mut self, block_one_in: u64) -> Vec<Finding> {
        let verdict = if self.dice.one_in(block_one_in) {
            GuardrailVerdict::Block
        } else {
            [GuardrailVerdict::Pass, GuardrailVerdict::Warn][self.dice.below(2) as usize]
        };
        vec![Finding {
            name: "rail".to_owned(),
            text: self.dice.one_in(2).then(|| "why".to_owned()),
            verdict,
        }]
    }

    fn check(&mut self, machine: &mut Machine, check: &Check) {
        let clock = self.tick();
        let found = self.findings(match check {
            Check::Action { .. } => 5,
            Check::Answer(_) | Check::Goal => 30,
        });
        match check {
            Check::Action { action, .. } => machine.action_checked(*action, found, clock),
            Check::Answer(_) => machine.answer_checked(found, clock),
            Check::Goal => machine.goal_checked(found, clock),
        }
        .expect("was asked");
    }

    fn plan(&mut self, machine: &mut Machine, step: u64) {
        if self.dice.one_in(2) {
            self.late(machine);
        }
        let usage = Usage {
            cost_nano: self.dice.below(4),
            tokens: self.dice.below(20),
        };
        let clock = self.tick();
        if self.dice.one_in(40) {
            let failure = Failure {
                reason: warrant_core::event::StopReason::PlannerFailed,
                text: "no".to_owned(),
            };
            return machine.failed(&failure, clock).expect("was asked");
        }
        let decided = if self.dice.one_in(6) {
            Decided::Finish(json!(step))
        } else {
            let count = 1 + self.dice.below(4);
            Decided::Act((0..count).map(|_| self.proposal()).collect())
        };
        machine.decided(decided, usage, clock).expect("was asked");
    }

    fn proposal(&mut self) -> Proposal {
        let tool = ["look", "pay", "send", "store", "stor"][self.dice.below(5) as usize];
        let arguments = match self.dice.below(8) {
            0 => Given::Text("{\"n\":".to_owned()),
            1 => Given::Value(json!({"n": 4})),
            2 => Given::Text("{\"n\": 1}".to_owned()),
            _ => Given::Value(json!({"n": self.dice.below(3)})),
        };
        Proposal {
            tool: tool.to_owned(),
            arguments,
            shown: Redactions::new(),
        }
    }

    fn call(&mut self, machine: &mut Machine, call: &Call) -> Result<(), Crash> {
        self.was_recorded(call);
        self.outside
            .performed
            .push((call.tool.clone(), call.key.clone(), call.attempt));
        if self.dice.one_in(2) {
            self.late(machine);
        }
        let outcome = match self.dice.below(8) {
            0 => Outcome::Error,
            1 => Outcome::TimedOut,
            _ => Outcome::Executed,
        };
        if self.dice.one_in(self.crash_one_in) {
            self.outside.ended.push(ended_later(call, outcome));
            return Err(Crash);
        }
        let clock = self.tick();
        let outcome = if self.world.guarded && outcome == Outcome::Executed {
            let found = self.findings(8);
            let blocked = found[0].verdict == GuardrailVerdict::Block;
            machine
                .action_checked(call.action, found, clock)
                .expect("is under way");
            if blocked {
                Outcome::GuardrailBlocked
            } else {
                outcome
            }
        } else {
            outcome
        };
        let executed = outcome == Outcome::Executed;
        let ended = Ended {
            bytes: 1,
            duration_us: 3,
            hidden: None,
            notes: None,
            outcome,
            result: executed.then(|| json!("ok")),
            text: (!executed).then(|| "ERROR: no".to_owned()),
            truncated: false,
        };
        machine
            .called(call.action, call.attempt, ended.clone(), clock)
            .expect("is under way");
        let again = machine.called(call.action, call.attempt, ended, clock);
        assert!(again.is_err(), "a call settles once");
        Ok(())
    }

    /// The start of this very attempt is the last thing on disk.
    fn was_recorded(&self, call: &Call) {
        let last = self.disk.lines.last().expect("a record");
        let (event, _, _) = read(last);
        let Event::CallStarted(started) = event else {
            panic!("{event:?} where the start of the call must be");
        };
        assert_eq!(
            (started.action, started.attempt, started.step),
            (call.action, call.attempt, call.step)
        );
    }

    fn to_the_end(&mut self) -> Option<Status> {
        let mut machine = self.start();
        if self.disk.lines.is_empty() {
            return None;
        }
        for _ in 0..200 {
            let mut driven = match machine.take() {
                Some(machine) => machine,
                None => {
                    let mut resumed = self.resume();
                    if self.keep(&mut resumed).is_err() {
                        continue;
                    }
                    resumed
                }
            };
            match self.drive(&mut driven) {
                Ok(Status::AwaitingApproval) | Err(Crash) => continue,
                Ok(status) => {
                    driven.take_closed();
                    assert_eq!(driven.state(), &self.folded(), "the fold is the run");
                    return Some(status);
                }
            }
        }
        panic!("the run does not end: {:?}", self.disk.events().last());
    }

    fn folded(&self) -> State {
        let mut state = self.disk.history().state;
        state.advance_to(self.clock.active_ms);
        state
    }

    /// Counts again from the records alone, with none of the machine's own sums.
    fn recount(&self) {
        let limits = &self.world.limits;
        let mut calls: BTreeMap<String, u64> = BTreeMap::new();
        let (mut cost, mut tokens, mut steps, mut last_usage) = (0, 0, 0, 0);
        let mut settled = BTreeSet::new();
        let mut granted = 0;
        for (event, _, _) in self.disk.events() {
            match event {
                Event::CallStarted(e) => {
                    *calls.entry(e.tool).or_default() += 1;
                    cost += e.cost_nano;
                    assert!(limits.cost_nano.is_none_or(|l| cost <= l));
                }
                Event::CallFinished(e) => {
                    assert!(settled.insert((e.step, e.action)), "settled twice");
                }
                Event::Decided(e) => {
                    tokens += e.usage.tokens;
                    cost += e.usage.cost_nano;
                    last_usage = e.usage.tokens;
                }
                Event::PlanStarted(_) => steps += 1,
                Event::GrantUsed(_) => granted += 1,
                _ => {}
            }
        }
        let all: u64 = calls.values().sum();
        assert!(limits.tool_calls.is_none_or(|l| all <= l));
        assert!(limits.steps.is_none_or(|l| steps <= l));
        assert!(limits.tokens.is_none_or(|l| tokens - last_usage <= l));
        for (tool, limit) in &limits.per_tool {
            assert!(calls.get(tool).copied().unwrap_or(0) <= *limit);
        }
        for n in calls.values() {
            assert!(self.world.max_calls.is_none_or(|max| *n < max));
        }
        assert!(self.world.grant.map_or(granted == 0, |n| granted <= n));
    }

    /// What the outside saw fits the declarations.
    fn nothing_twice(&self) {
        let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
        for (tool, key, _) in &self.outside.performed {
            let times = seen.entry(key).or_default();
            *times += 1;
            let idempotent = matches!(tool.as_str(), "look" | "store");
            assert!(*times <= if idempotent { 3 } else { 1 }, "{tool} {key}");
        }
        let attempts: BTreeSet<_> = self.outside.performed.iter().collect();
        assert_eq!(attempts.len(), self.outside.performed.len());
    }
}

/// How the runs ended, and how many ends of calls came `late`.
fn simulate(seeds: std::ops::Range<u64>, crash_one_in: u64) -> BTreeMap<&'static str, u32> {
    let mut ends = BTreeMap::new();
    for seed in seeds {
        let mut sim = Sim::new(seed, crash_one_in);
        let status = sim.to_the_end();
        sim.recount();
        sim.nothing_twice();
        *ends.entry("late").or_default() += sim.outside.late;
        *ends
            .entry(status.map_or("never_started", Status::word))
            .or_default() += 1;
    }
    ends
}

#[test]
fn runs_without_crashes_keep_every_rule() {
    let ends = simulate(1..600, u64::MAX);
    for status in ["completed", "failed", "stopped"] {
        assert!(ends.get(status).is_some_and(|n| *n > 10), "{ends:?}");
    }
}

#[test]
fn runs_that_crash_anywhere_keep_every_rule() {
    let ends = simulate(1..600, 12);
    for status in ["completed", "failed", "stopped"] {
        assert!(ends.get(status).is_some_and(|n| *n > 10), "{ends:?}");
    }
}

#[test]
fn what_ends_after_its_driver_lost_the_run_is_kept_once_and_counts_for_nothing() {
    let ends = simulate(600..1600, 6);
    assert!(ends.get("late").is_some_and(|n| *n > 10), "{ends:?}");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for seed in [3, 14, 159] {
        let lines = |seed| {
            let mut sim = Sim::new(seed, 12);
            sim.to_the_end();
            sim.disk.lines
        };
        assert_eq!(lines(seed), lines(seed));
    }
}

/// Records left out, doubled or exchanged are no history, except where the event
/// says nothing that later ones build on.
#[test]
fn a_history_with_a_record_left_out_or_doubled_is_refused() {
    let inert = |e: &Event| {
        matches!(
            e,
            Event::Guardrail(_) | Event::LateResult(_) | Event::Resumed(_) | Event::Recovered(_)
        )
    };
    let mut tried = 0;
    for seed in 1..120 {
        let mut sim = Sim::new(seed, 25);
        if sim.to_the_end().is_none() {
            continue;
        }
        let events = sim.disk.events();
        let folds = |events: &[(Event, Digest, u64)]| {
            let mut state = State::new();
            events
                .iter()
                .all(|(e, d, a)| state.apply(e, *d, *a).is_ok())
        };
        assert!(folds(&events));
        for place in 0..events.len() - 1 {
            if inert(&events[place].0) {
                continue;
            }
            let mut less = events.clone();
            less.remove(place);
            let mut more = events.clone();
            more.insert(place, events[place].clone());
            // A pause can be left out where a resume declares it over anyway.
            if !matches!(events[place].0, Event::Paused(_)) {
                assert!(!folds(&less), "without {:?} (seed {seed})", events[place].0);
            }
            assert!(!folds(&more), "twice {:?} (seed {seed})", events[place].0);
            tried += 1;
        }
    }
    assert!(tried > 500, "{tried}");
}
