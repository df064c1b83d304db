//! What R says of a run, as the core takes it.

use crate::convert::{inherits, to_value, Members};
use crate::fault::boxed;
use crate::tool::handle;
use extendr_api::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use warrant_core::canon;
use warrant_core::digest::Digest;
use warrant_core::error::{Fault, Kind};
use warrant_core::event::{GuardrailFacts, GuardrailVerdict, Usage};
use warrant_core::limits::Limits;
use warrant_core::outcome::Outcome;
use warrant_core::policy::SideEffects;
use warrant_core::run::{
    By, Decided, Effects, Ended, Finding, Given, GrantRule, Presence, Proposal, RunTool, Setup,
    Verdict,
};
use warrant_core::schema::Schema;
use warrant_core::tool::{nano, Redactions};

pub(crate) type Boxed = Box<dyn Fault>;

/// Values of a run by address, as canonical JSON.
pub(crate) type Content = BTreeMap<Digest, Vec<u8>>;

/// What R handed over and cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("a planner must return decide_act() or decide_finish(), not a thing made by hand")]
    ByHand,
    #[error("the content of the run must hold its key, without which no value can be told from another: it is missing")]
    KeyMissing,
    #[error("the run cannot use {what}: {why}")]
    Unusable { what: &'static str, why: String },
}

impl Fault for Error {
    fn code(&self) -> &'static str {
        match self {
            Error::ByHand => "decision_by_hand",
            Error::KeyMissing => "key_missing",
            Error::Unusable { .. } => "run_input",
        }
    }
    fn kind(&self) -> Kind {
        match self {
            Error::KeyMissing => Kind::State,
            Error::ByHand | Error::Unusable { .. } => Kind::Input,
        }
    }
}

pub(crate) fn unusable(what: &'static str, why: impl ToString) -> Boxed {
    let why = why.to_string();
    Box::new(Error::Unusable { what, why })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetupSpec {
    allow: Vec<SideEffects>,
    approve: Vec<SideEffects>,
    approver: bool,
    grants: Vec<GrantSpec>,
    guards: Vec<GuardrailFacts>,
    judge: bool,
    limits: LimitsSpec,
    scopes: Vec<String>,
    spec_hashes: Vec<Digest>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantSpec {
    count: Option<f64>,
    rule: Value,
    run: Option<String>,
    tool: String,
    until_ms: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsSpec {
    active_ms: Option<f64>,
    call_timeout_ms: Option<f64>,
    cost: Option<f64>,
    per_tool: Map<String, Value>,
    steps: Option<f64>,
    tokens: Option<f64>,
    tool_calls: Option<f64>,
}

/// R checked that a count is whole and not negative; the cast saturates.
fn count(x: f64) -> u64 {
    x as u64
}

impl LimitsSpec {
    fn limits(self) -> Result<Limits, Boxed> {
        let cost = match self.cost {
            None => None,
            Some(x) => Some(nano(x).ok_or_else(|| {
                unusable(
                    "`cost`",
                    "it has more than nine decimal places or is too large",
                )
            })?),
        };
        let per_tool = self.per_tool.into_iter().filter_map(|(tool, n)| {
            let n = n.as_f64()?;
            Some((tool, count(n)))
        });
        Ok(Limits {
            active_ms: self.active_ms.map(count),
            call_timeout_ms: self.call_timeout_ms.map(count),
            cost_nano: cost,
            per_tool: per_tool.collect(),
            steps: self.steps.map(count),
            tokens: self.tokens.map(count),
            tool_calls: self.tool_calls.map(count),
        })
    }
}

fn presence(yes: bool) -> Presence {
    if yes {
        Presence::Present
    } else {
        Presence::Absent
    }
}

/// The setup of a run under its key: `tools` are pointers, in the order of the
/// setup's spec hashes.
pub(crate) fn setup(x: &Robj, tools: &Robj, key: &[u8; 32]) -> Result<Setup, Boxed> {
    let spec: SetupSpec =
        serde_json::from_value(to_value(x)?).map_err(|e| unusable("its setup", e))?;
    let pointers = tools.as_list().map(|l| l.values().collect::<Vec<Robj>>());
    let mut tools = Vec::new();
    for (ptr, spec_hash) in pointers.unwrap_or_default().iter().zip(spec.spec_hashes) {
        let live = handle(ptr)?;
        tools.push(RunTool {
            tool: live.tool.clone(),
            spec_hash,
            calls_before: live.meter.used(),
        });
    }
    let mut grants = Vec::new();
    for grant in spec.grants {
        grants.push(GrantRule {
            count: grant.count.map(count),
            run: grant.run,
            rule: Schema::new(grant.rule).map_err(boxed)?,
            tool: grant.tool,
            until_ms: grant.until_ms.map(count),
        });
    }
    let effects = Effects {
        allow: spec.allow,
        approve: spec.approve,
        scopes: spec.scopes,
    };
    let limits = spec.limits.limits()?;
    let setup = Setup::new(tools, effects, grants, limits, key).map_err(boxed)?;
    Ok(setup
        .with_approver(presence(spec.approver))
        .with_guards(spec.guards)
        .with_judge(presence(spec.judge)))
}

/// A named character vector of content, and the key that is in it.
pub(crate) fn content(x: &Robj) -> Result<(Content, [u8; 32]), Boxed> {
    let (map, key) = values(x);
    let key = key.ok_or_else(|| boxed(Error::KeyMissing))?;
    Ok((map, key))
}

/// The same where the key may be missing: enough to look at.
pub(crate) fn values(x: &Robj) -> (Content, Option<[u8; 32]>) {
    let names: Vec<String> = x
        .names()
        .map(|n| n.map(str::to_owned).collect())
        .unwrap_or_default();
    let texts: Vec<Option<String>> = match Strings::try_from(x) {
        Ok(texts) => texts
            .iter()
            .map(|t| (!t.is_na()).then(|| t.to_string()))
            .collect(),
        Err(_) => Vec::new(),
    };
    let mut map = Content::new();
    let mut key = None;
    for (name, text) in names.iter().zip(texts) {
        let Some(text) = text else { continue };
        if name == KEY_NAME {
            key = text.parse::<Digest>().ok().map(|d| *d.as_bytes());
        } else if let Ok(address) = name.parse() {
            map.insert(address, text.into_bytes());
        }
    }
    (map, key)
}

/// The name under which a store keeps the content key.
pub(crate) const KEY_NAME: &str = "key";

/// Arguments: a string is JSON text, anything else a value. A secret that is given
/// by reference is looked up, so that it is checked; only its name is kept.
pub(crate) fn given(x: &Robj) -> Result<Given, Boxed> {
    if x.is_null() {
        return Ok(Given::Value(Value::Object(Map::new())));
    }
    if let Some(text) = x.as_str() {
        return Ok(Given::Text(text.to_owned()));
    }
    let refers = |v: &Robj| inherits(v, "warrant_secret");
    let Some(list) = x.as_list().filter(|l| l.values().any(|v| refers(&v))) else {
        return Ok(Given::Value(to_value(x)?));
    };
    let mut map = Map::new();
    let mut references = BTreeMap::new();
    for (name, value) in list.iter() {
        let member = if refers(&value) {
            let variable = Members::of(&value).text("env").unwrap_or_default();
            let secret = std::env::var(&variable).unwrap_or_default();
            references.insert(name.to_owned(), variable);
            Value::String(secret)
        } else {
            to_value(&value)?
        };
        map.insert(name.to_owned(), member);
    }
    Ok(Given::Referring(Value::Object(map), references))
}

/// A decision made by `decide_act()` or `decide_finish()`, and not by hand under
/// their class.
pub(crate) fn decision(x: &Robj) -> Result<(Decided, Usage), Boxed> {
    let map = Members::of(x);
    let usage = usage(map.list("usage"));
    match map.text("decision").as_deref() {
        Some("act") => {
            let actions = map.list("actions").items();
            let proposals = actions
                .iter()
                .map(proposal)
                .collect::<Result<Vec<_>, _>>()?;
            if proposals.is_empty() {
                return Err(by_hand());
            }
            Ok((Decided::Act(proposals), usage))
        }
        Some("finish") if map.has("answer") => {
            let answer = map.value("answer")?.unwrap_or(Value::Null);
            Ok((Decided::Finish(answer), usage))
        }
        _ => Err(by_hand()),
    }
}

/// A named character vector: what is shown in place of redacted arguments.
pub(crate) fn redactions(x: &Robj) -> Redactions {
    let texts = Strings::try_from(x).unwrap_or_default();
    let texts = texts.iter().map(|t| (!t.is_na()).then(|| t.to_string()));
    let names = x.names().into_iter().flatten().map(str::to_owned);
    names.zip(texts).collect()
}

fn by_hand() -> Boxed {
    Box::new(Error::ByHand)
}

fn proposal(action: &Members<'_>) -> Result<Proposal, Boxed> {
    let tool = action.text("tool").ok_or_else(by_hand)?;
    let arguments = match action.get("arguments") {
        Some(arguments) => given(&arguments)?,
        None => Given::Value(Value::Object(Map::new())),
    };
    let shown = redactions(&action.get("redacted").unwrap_or_default());
    Ok(Proposal {
        tool,
        arguments,
        shown,
    })
}

fn usage(map: Members<'_>) -> Usage {
    let cost = map.number("cost").unwrap_or(0.0);
    Usage {
        // A price with more digits than are counted is counted up.
        cost_nano: nano(cost).unwrap_or_else(|| (cost * 1e9).ceil() as u64),
        tokens: count(map.number("tokens").unwrap_or(0.0)),
    }
}

/// How a call ended, from the list that the driver makes of a tool result.
pub(crate) fn ended(x: &Robj) -> Result<Ended, Boxed> {
    let map = Members::of(x);
    let word = map.text("status").unwrap_or_default();
    let outcome =
        Outcome::from_word(&word).ok_or_else(|| unusable("a tool result", "no such status"))?;
    let result = match outcome {
        Outcome::Executed => Some(map.value("value")?.unwrap_or(Value::Null)),
        _ => None,
    };
    Ok(Ended {
        bytes: count(map.number("bytes").unwrap_or(0.0)),
        duration_us: count((map.number("duration_s").unwrap_or(0.0) * 1e6).round()),
        hidden: map
            .text("hidden")
            .and_then(|t| canon::parse(t.as_bytes()).ok()),
        notes: map.value("notes")?,
        outcome,
        result,
        text: map.text("text"),
        truncated: map.is_true("truncated"),
    })
}

/// What guardrails said: lists of `name`, `verdict` and `text`.
pub(crate) fn findings(x: &Robj) -> Result<Vec<Finding>, Boxed> {
    let one = |found: &Members<'_>| {
        let word = found.text("verdict").unwrap_or_default();
        let verdict: GuardrailVerdict = serde_json::from_value(Value::from(word))
            .map_err(|e| unusable("what a guardrail said", e))?;
        Ok(Finding {
            name: found.text("name").unwrap_or_default(),
            text: found.text("text"),
            verdict,
        })
    };
    Members::of(x).items().iter().map(one).collect()
}

/// A person's decision: `list(decision, arguments, reason, approver, decided_ms)`.
pub(crate) fn verdict(x: &Robj) -> Result<(Option<Verdict>, By), Boxed> {
    let map = Members::of(x);
    let verdict = match map.text("decision").as_deref() {
        None => None,
        Some("approve") => Some(Verdict::Approve),
        Some("reject") => Some(Verdict::Reject(map.text("reason"))),
        Some("edit") => {
            let arguments = match given(&map.get("arguments").unwrap_or_default())? {
                Given::Value(value) | Given::Referring(value, _) => value,
                Given::Text(text) => warrant_core::canon::parse(text.as_bytes()).map_err(boxed)?,
            };
            Some(Verdict::Edit(arguments))
        }
        Some(_) => return Err(unusable("a decision", "it is not approve, reject or edit")),
    };
    let by = By {
        approver: map.text("approver").unwrap_or_default(),
        decided_ms: count(map.number("decided_ms").unwrap_or(0.0)),
    };
    Ok((verdict, by))
}
