//! A run of one call and an answer, for tests of what archives say.

use super::pack::Kept;
use super::{Content, Judged};
use crate::digest::{hex, Digest};
use crate::event::{
    key_commitment, Asked, CallFinished, CallStarted, Counts, Decided, Decision, Event, Finished,
    PlanStarted, RunStarted, Status, Usage, SCHEMA,
};
use crate::journal::{Chain, RunId};
use crate::limits::Limits;
use crate::outcome::Outcome;
use crate::policy::{Policy, SideEffects, ToolFacts};

const KEY: [u8; 32] = [7; 32];

/// The lines of a journal, and its content.
pub(super) struct Sample {
    pub(super) lines: Vec<String>,
    pub(super) kept: Kept,
}

impl Sample {
    pub(super) fn new() -> Self {
        let mut content = Content::new();
        let mut keep = |json: &str| {
            let address = Digest::keyed(&KEY, json.as_bytes());
            content.insert(address, json.as_bytes().to_vec());
            address
        };
        let events = events(&mut keep);
        let mut chain = Chain::start(RunId::new("r1").expect("an id"));
        let seal = |(i, event): (usize, &Event)| {
            let record = chain.append(event, 1000 + i as u64, i as u64);
            record.expect("seals").into_line()
        };
        Sample {
            lines: events.iter().enumerate().map(seal).collect(),
            kept: Kept {
                content,
                key: Some(hex(&KEY)),
                judged: Judged::ByDone,
            },
        }
    }

    pub(super) fn lines(&self) -> Vec<&str> {
        self.lines.iter().map(String::as_str).collect()
    }
}

fn events(keep: &mut impl FnMut(&str) -> Digest) -> Vec<Event> {
    let (spec_hash, arguments) = (Digest::of_bytes(b"spec"), keep(r#"{"mail":"a@x.org"}"#));
    let answer = keep(r#""sent to a@x.org""#);
    let tool = ToolFacts {
        calls_before: 0,
        cost_nano: Some(2_500_000),
        idempotent: true,
        max_calls: None,
        name: "send".into(),
        requires_approval: false,
        schema: keep(r#"{"type":"object"}"#),
        scopes: vec![],
        side_effects: SideEffects::Read,
        spec_hash,
        timeout_ms: None,
        ttl_ms: None,
    };
    let plan = |actions: Vec<Asked>, step, note| {
        Event::from(Decided {
            answer: actions.is_empty().then_some(answer),
            decision: match actions.is_empty() {
                true => Decision::Finish,
                false => Decision::Act,
            },
            actions,
            note,
            step,
            usage: Usage::default(),
        })
    };
    vec![
        RunStarted {
            content_key: key_commitment(&KEY),
            goal: keep(r#"{"to":"a"}"#),
            guardrails: vec![],
            limits: Limits::default(),
            nonce: Digest::of_bytes(b"nonce"),
            policy: Policy {
                allow_effects: vec![SideEffects::None, SideEffects::Read],
                approve_effects: vec![],
                granted_scopes: vec![],
                grants: vec![],
            },
            schema: SCHEMA.into(),
            tools: vec![tool],
        }
        .into(),
        PlanStarted { step: 1 }.into(),
        plan(
            vec![Asked {
                arguments,
                tool: "send".into(),
            }],
            1,
            Some(keep(r#"{"model":"m-1"}"#)),
        ),
        CallStarted {
            action: 0,
            arguments,
            attempt: 1,
            cost_nano: 2_500_000,
            request: None,
            spec_hash,
            step: 1,
            timeout_ms: None,
            tool: "send".into(),
        }
        .into(),
        CallFinished {
            action: 0,
            attempt: 1,
            bytes: 3,
            duration_us: 1500,
            notes: None,
            outcome: Outcome::Executed,
            result: Some(keep(r#"["ok"]"#)),
            step: 1,
            text: None,
            truncated: false,
        }
        .into(),
        PlanStarted { step: 2 }.into(),
        plan(vec![], 2, None),
        Finished {
            answer: Some(answer),
            counts: Counts {
                actions: 1,
                calls_finished: 1,
                calls_started: 1,
                cost_nano: 2_500_000,
                steps: 2,
                ..Counts::default()
            },
            error: None,
            status: Status::Completed,
            stop_reason: None,
        }
        .into(),
    ]
}
