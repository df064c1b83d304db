//! A governed tool: what its author declared, checked once, and what it decides
//! about a call.

mod arguments;
mod ledger;
mod spec;

pub(crate) use arguments::by_reference;
pub use arguments::{mask, masked_digest, show, Arguments, Redactions, Refused};
pub use ledger::{Entry, Ledger, Meter, Texts};
pub use spec::{nano, Bound, Error, Isolation, Record, ToolSpec};

use crate::digest::Digest;
use crate::policy::SideEffects;
use crate::schema::Schema;
use serde_json::{json, Map, Value};

/// A tool whose declaration was checked.
#[derive(Debug, Clone)]
pub struct Tool {
    name: String,
    description: String,
    schema: Schema,
    formals: Vec<String>,
    side_effects: SideEffects,
    assumed: bool,
    approval: Approval,
    timeout_s: Option<f64>,
    max_calls: Bound,
    max_bytes: Bound,
    scopes: Vec<String>,
    idempotent: bool,
    cost_nano: Option<u64>,
    isolation: Isolation,
    record: Record,
}

/// Whether and how a call of the tool asks a person.
#[derive(Debug, Clone, PartialEq)]
struct Approval {
    required: bool,
    prompt: Option<String>,
    ttl_s: Option<f64>,
}

impl Tool {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it says of itself to a model.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The schema of its arguments.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// What it does to the world.
    pub fn side_effects(&self) -> SideEffects {
        self.side_effects
    }

    /// Whether every call asks a person.
    pub fn requires_approval(&self) -> bool {
        self.approval.required
    }

    /// Its own question to the person who decides.
    pub fn prompt(&self) -> Option<&str> {
        self.approval.prompt.as_deref()
    }

    /// How long a request for approval stays open, in milliseconds.
    pub fn ttl_ms(&self) -> Option<u64> {
        self.approval.ttl_s.map(millis)
    }

    /// The time limit of a call in seconds.
    pub fn timeout_s(&self) -> Option<f64> {
        self.timeout_s
    }

    /// The time limit of a call in milliseconds, at least one.
    pub fn timeout_ms(&self) -> Option<u64> {
        self.timeout_s.map(millis)
    }

    /// How many calls may start over the life of the object.
    pub fn max_calls(&self) -> Bound {
        self.max_calls
    }

    /// How many bytes of a result leave.
    pub fn max_bytes(&self) -> Bound {
        self.max_bytes
    }

    /// The scopes a call needs; sorted, unique.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Whether a second equal call changes nothing more.
    pub fn idempotent(&self) -> bool {
        self.idempotent
    }

    /// The cost of a call in units of 1e-9; nothing where it is not known.
    pub fn cost_nano(&self) -> Option<u64> {
        self.cost_nano
    }

    /// Where a call runs.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// What the log keeps of a call.
    pub fn record(&self) -> Record {
        self.record
    }

    /// The policy as it enters the spec hash and the manifest.
    pub fn policy(&self) -> Value {
        json!({
            "side_effects": self.side_effects.word(),
            "side_effects_assumed": self.assumed,
            "requires_approval": self.approval.required,
            "prompt": self.approval.prompt,
            "ttl_s": number(self.approval.ttl_s),
            "timeout_s": number(self.timeout_s),
            "max_calls": self.max_calls.to_value(),
            "max_bytes": self.max_bytes.to_value(),
            "scopes": self.scopes,
            "idempotent": self.idempotent,
            "cost_nano": self.cost_nano,
            "isolation": self.isolation.word(),
        })
    }

    /// The specification: what a reader of a study must be able to tell apart.
    ///
    /// `function` is the digest of the function's normalised parse tree,
    /// `captures` maps each captured variable to the digest of its value,
    /// `not_covered` lists those that have no stable value, with their type, and
    /// `redact` maps what is redacted by a function to the function's digest.
    pub fn spec(
        &self,
        function: Digest,
        captures: Map<String, Value>,
        not_covered: Map<String, Value>,
        redact: Map<String, Value>,
    ) -> Value {
        let mut spec = json!({
            "schema": "tool_spec/v1",
            "name": self.name,
            "description": self.description,
            "parameters": spec::as_set(self.schema.as_value()),
            "policy": self.policy(),
            "function": function.to_hex(),
            "captures": captures,
            "not_covered": not_covered,
        });
        if !redact.is_empty() {
            spec["redact"] = Value::Object(redact);
        }
        spec
    }
}

fn millis(seconds: f64) -> u64 {
    // Checked at definition to be finite and positive; the cast saturates.
    (seconds * 1000.0).ceil().max(1.0) as u64
}

fn number(x: Option<f64>) -> Value {
    x.and_then(crate::canon::number)
        .map_or(Value::Null, Value::Number)
}
