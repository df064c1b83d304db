//! What a run is set up with, checked before anything is recorded.

use super::meaning::Meaning;
use crate::digest::Digest;
use crate::error::{Fault, Kind};
use crate::event::{self, address, GuardrailFacts, Stage};
use crate::journal;
use crate::limits::Limits;
use crate::policy::{Grant, Policy, SideEffects, ToolFacts};
use crate::schema::Schema;
use crate::tool::Tool;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A tool as a run needs it.
#[derive(Debug, Clone)]
pub struct RunTool {
    /// The tool.
    pub tool: Tool,
    /// `hash_tool_spec()` of it.
    pub spec_hash: Digest,
    /// Calls the object has made before.
    pub calls_before: u64,
}

impl RunTool {
    fn facts(&self, key: &[u8; 32]) -> ToolFacts {
        let tool = &self.tool;
        ToolFacts {
            calls_before: self.calls_before,
            cost_nano: tool.cost_nano(),
            idempotent: tool.idempotent(),
            max_calls: tool.max_calls().limit(),
            name: tool.name().to_owned(),
            requires_approval: tool.requires_approval(),
            schema: address(key, tool.schema().as_value()),
            scopes: sorted(tool.scopes().to_vec()),
            side_effects: tool.side_effects(),
            spec_hash: self.spec_hash,
            timeout_ms: tool.timeout_ms(),
            ttl_ms: tool.ttl_ms(),
        }
    }
}

/// A tool and what the journal says of it.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) facts: ToolFacts,
    pub(super) tool: Tool,
}

/// A standing grant as a run needs it.
#[derive(Debug, Clone)]
pub struct GrantRule {
    /// How many calls it covers.
    pub count: Option<u64>,
    /// The one run it holds for.
    pub run: Option<String>,
    /// What the arguments must match.
    pub rule: Schema,
    /// The exact name of the tool.
    pub tool: String,
    /// Until when, in milliseconds since 1970.
    pub until_ms: Option<u64>,
}

/// Whether somebody is there to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Nobody.
    Absent,
    /// Somebody.
    Present,
}

/// Everything a run is driven with.
#[derive(Debug)]
pub struct Setup {
    pub(super) approver: Presence,
    pub(super) guards: Vec<GuardrailFacts>,
    pub(super) judge: Presence,
    pub(super) limits: Limits,
    pub(super) policy: Policy,
    pub(super) rules: Vec<Schema>,
    pub(super) tools: BTreeMap<String, Known>,
}

/// What of a policy is not grants.
#[derive(Debug, Clone, Default)]
pub struct Effects {
    /// Side effects that a tool may have at all.
    pub allow: Vec<SideEffects>,
    /// Side effects whose calls ask a person first.
    pub approve: Vec<SideEffects>,
    /// Scopes granted.
    pub scopes: Vec<String>,
}

impl Setup {
    /// Checks what a run is set up with, under its content key.
    ///
    /// # Errors
    /// Two tools of one name; a limit or a grant for a tool that is not there; a
    /// cost limit where a tool's cost is not known.
    pub fn new(
        tools: Vec<RunTool>,
        effects: Effects,
        grants: Vec<GrantRule>,
        limits: Limits,
        key: &[u8; 32],
    ) -> Result<Self, Error> {
        let tools = by_name(tools, key)?;
        let unknown = |what, tool: &String| Error::UnknownTool {
            what,
            tool: tool.clone(),
        };
        if let Some(tool) = limits.per_tool.keys().find(|t| !tools.contains_key(*t)) {
            return Err(unknown("a limit", tool));
        }
        if let Some(grant) = grants.iter().find(|g| !tools.contains_key(&g.tool)) {
            return Err(unknown("a grant", &grant.tool));
        }
        if limits.cost_nano.is_some() {
            if let Some(tool) = tools.values().find(|t| t.facts.cost_nano.is_none()) {
                return Err(Error::UnknownCost {
                    tool: tool.facts.name.clone(),
                });
            }
        }
        let policy = Policy {
            allow_effects: sorted(effects.allow),
            approve_effects: sorted(effects.approve),
            granted_scopes: sorted(effects.scopes),
            grants: grants.iter().map(|g| g.recorded(key)).collect(),
        };
        Ok(Setup {
            approver: Presence::Absent,
            guards: Vec::new(),
            judge: Presence::Absent,
            limits,
            policy,
            rules: grants.into_iter().map(|g| g.rule).collect(),
            tools,
        })
    }

    /// With an approver to ask at once.
    pub fn with_approver(mut self, approver: Presence) -> Self {
        self.approver = approver;
        self
    }

    /// With these guardrails, in the order in which they are asked.
    pub fn with_guards(mut self, guards: Vec<GuardrailFacts>) -> Self {
        self.guards = guards;
        for guard in &mut self.guards {
            guard.stages.sort();
            guard.stages.dedup();
        }
        self
    }

    /// Whether some guardrail looks at this place.
    pub(super) fn looks_at(&self, stage: Stage) -> bool {
        self.guards.iter().any(|g| g.stages.contains(&stage))
    }

    /// With a criterion that answers must meet.
    pub fn with_judge(mut self, judge: Presence) -> Self {
        self.judge = judge;
        self
    }

    /// What the journal says of the tools.
    pub(super) fn facts(&self) -> Vec<ToolFacts> {
        self.tools.values().map(|t| t.facts.clone()).collect()
    }

    /// Schemas and questions, which the journal refers to by address.
    pub(super) fn content(&self) -> Vec<Value> {
        let schemas = self
            .tools
            .values()
            .map(|t| t.tool.schema().as_value().clone());
        let prompts = self
            .tools
            .values()
            .filter_map(|t| t.tool.prompt().map(Value::from));
        let rules = self.rules.iter().map(|r| r.as_value().clone());
        schemas.chain(prompts).chain(rules).collect()
    }
}

impl GrantRule {
    fn recorded(&self, key: &[u8; 32]) -> Grant {
        Grant {
            arguments: address(key, self.rule.as_value()),
            count: self.count,
            run: self.run.clone(),
            tool: self.tool.clone(),
            until_ms: self.until_ms,
        }
    }
}

fn by_name(tools: Vec<RunTool>, key: &[u8; 32]) -> Result<BTreeMap<String, Known>, Error> {
    let mut map = BTreeMap::new();
    for tool in tools {
        let facts = tool.facts(key);
        let name = facts.name.clone();
        let known = Known {
            facts,
            tool: tool.tool,
        };
        if map.insert(name.clone(), known).is_some() {
            return Err(Error::SameName { tool: name });
        }
    }
    Ok(map)
}

fn sorted<T: Ord>(mut items: Vec<T>) -> Vec<T> {
    items.sort();
    items.dedup();
    items
}

/// What can be wrong with a run, its resume, or a decision about a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A record of the journal is not what it must be.
    #[error("record {seq} of the journal {what}")]
    Broken {
        /// Its place, from 0.
        seq: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// A value is not what its address says.
    #[error(
        "a value in the content of the run is not there or is not what its address {address} says"
    )]
    Content {
        /// The address.
        address: Digest,
    },
    /// The request has expired.
    #[error("the request {request} has expired, and an expired request is never answered")]
    Expired {
        /// The request.
        request: Digest,
    },
    /// An event that this version does not know.
    #[error(transparent)]
    Event(#[from] event::Error),
    /// A person's arguments break the schema.
    #[error("the edited arguments are not valid: {what}")]
    InvalidEdit {
        /// What is wrong.
        what: String,
    },
    /// The journal cannot be written or read.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// The journal does not hold the head it should.
    #[error("the journal has no record {head}, which the state of the run was built on")]
    LacksHead {
        /// The head.
        head: Digest,
    },
    /// The events are no history of a run.
    #[error("the journal is not that of a run: {0}")]
    Meaning(#[from] Meaning),
    /// Something was handed in that nothing asked for.
    #[error("the run did not ask for {what}")]
    Misuse {
        /// What.
        what: &'static str,
    },
    /// No open request has this digest.
    #[error("the run has no open request {request}")]
    NoSuchRequest {
        /// The digest.
        request: Digest,
    },
    /// Two tools of one name.
    #[error("two tools are named `{tool}`")]
    SameName {
        /// The name.
        tool: String,
    },
    /// A cost limit cannot hold.
    #[error("the run has a cost limit, and the cost of a call of `{tool}` is not known")]
    UnknownCost {
        /// The tool.
        tool: String,
    },
    /// A rule for a tool that is not there.
    #[error("{what} names `{tool}`, which is not one of the agent's tools")]
    UnknownTool {
        /// What kind of rule.
        what: &'static str,
        /// The name.
        tool: String,
    },
    /// The content key is another run's.
    #[error("the content key is not the one this run committed to")]
    WrongKey,
}

impl Fault for Error {
    fn code(&self) -> &'static str {
        match self {
            Error::Broken { .. } => "journal_broken",
            Error::Content { .. } => "content_differs",
            Error::Event(e) => e.code(),
            Error::LacksHead { .. } => "lacks_head",
            Error::Expired { .. } => "approval_expired",
            Error::InvalidEdit { .. } => "invalid_edit",
            Error::Journal(e) => e.code(),
            Error::Meaning(e) => e.code(),
            Error::Misuse { .. } => "misuse",
            Error::NoSuchRequest { .. } => "no_such_request",
            Error::SameName { .. } => "same_name",
            Error::UnknownCost { .. } => "unknown_cost",
            Error::UnknownTool { .. } => "unknown_tool",
            Error::WrongKey => "wrong_key",
        }
    }
    fn kind(&self) -> Kind {
        match self {
            Error::Broken { .. }
            | Error::Content { .. }
            | Error::Event(_)
            | Error::LacksHead { .. }
            | Error::Misuse { .. }
            | Error::WrongKey => Kind::State,
            Error::Expired { .. } | Error::InvalidEdit { .. } | Error::NoSuchRequest { .. } => {
                Kind::Approval
            }
            Error::Journal(e) => e.kind(),
            Error::Meaning(e) => e.kind(),
            Error::SameName { .. } | Error::UnknownCost { .. } | Error::UnknownTool { .. } => {
                Kind::Input
            }
        }
    }
    fn facts(&self) -> Map<String, Value> {
        let one = |key: &str, value: String| Map::from_iter([(key.to_owned(), Value::from(value))]);
        match self {
            Error::Content { address } => one("address", address.to_hex()),
            Error::Expired { request } | Error::NoSuchRequest { request } => {
                one("request", request.to_hex())
            }
            Error::Broken { seq, .. } => Map::from_iter([("seq".to_owned(), Value::from(*seq))]),
            Error::Event(e) => e.facts(),
            Error::LacksHead { head } => one("head", head.to_hex()),
            Error::Journal(e) => e.facts(),
            Error::Meaning(e) => e.facts(),
            Error::SameName { tool }
            | Error::UnknownCost { tool }
            | Error::UnknownTool { tool, .. } => one("tool", tool.clone()),
            Error::InvalidEdit { .. } | Error::Misuse { .. } | Error::WrongKey => Map::new(),
        }
    }
}
