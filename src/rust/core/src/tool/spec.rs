//! From what an author declared to a tool that can be trusted to mean it.

use super::{Approval, Tool};
use crate::error::{Fault, Kind};
use crate::policy::SideEffects;
use crate::schema::{self, Schema};
use serde::Deserialize;
use serde_json::{json, Map, Value};

/// A tool as its author typed it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolSpec {
    /// The name.
    pub name: String,
    /// What it says of itself.
    pub description: String,
    /// `null`, properties by name, or a whole schema.
    pub parameters: Value,
    /// Which properties must be given; all of them where nothing is said and
    /// `parameters` is not a whole schema.
    pub required: Option<Vec<String>>,
    /// The formals of the function, in order, without `...`.
    pub formals: Vec<String>,
    /// Those of them that have a default.
    pub defaults: Vec<String>,
    /// Whether the function has `...`.
    pub dots: bool,
    /// A word of [`SideEffects`]; `read` is assumed where nothing is said.
    pub side_effects: Option<String>,
    /// Whether every call asks a person.
    pub requires_approval: bool,
    /// What the person is asked.
    pub prompt: Option<String>,
    /// How long the question stays open, in seconds.
    pub ttl_s: Value,
    /// The time limit of a call, in seconds.
    pub timeout_s: Value,
    /// How many calls may start.
    pub max_calls: Value,
    /// How many bytes may leave.
    pub max_bytes: Value,
    /// The scopes a call needs.
    pub scopes: Vec<String>,
    /// Whether a second equal call changes nothing more; by default true for
    /// tools that change nothing.
    pub idempotent: Option<bool>,
    /// The cost of a call.
    pub cost: Value,
    /// Parameters of whose values only keyed digests are recorded, besides those that
    /// the schema marks.
    pub redact: Vec<String>,
    /// `session` or `process`.
    pub isolation: String,
    /// `full` or `hashes`.
    pub record: String,
}

/// A limit that may be absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// At most so many.
    AtMost(u64),
    /// No limit.
    Unlimited,
}

impl Bound {
    /// The number, where there is one.
    pub fn limit(self) -> Option<u64> {
        match self {
            Bound::AtMost(n) => Some(n),
            Bound::Unlimited => None,
        }
    }

    /// Whether so much is within the limit.
    pub fn allows(self, amount: u64) -> bool {
        self.limit().is_none_or(|n| amount <= n)
    }

    /// The number, or `"Infinity"`.
    pub fn to_value(self) -> Value {
        self.limit().map_or(json!("Infinity"), |n| json!(n))
    }
}

/// Where a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// In a worker process, started from the captures as defined.
    Process,
    /// In the session.
    Session,
}

impl Isolation {
    /// The word in R and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Isolation::Process => "process",
            Isolation::Session => "session",
        }
    }
}

/// What the log keeps of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// Digests and texts.
    Full,
    /// Digests only.
    Hashes,
}

impl Tool {
    /// Checks a declaration.
    ///
    /// # Errors
    /// The first thing that is wrong with it, except that all names that do not
    /// match between function and schema are reported together.
    pub fn new(spec: ToolSpec) -> Result<Self, Error> {
        check_name(&spec.name)?;
        if spec.description.trim().is_empty() {
            return Err(invalid(
                "description",
                "must say what the tool does",
                "\"\"",
            ));
        }
        let declared = spec.side_effects.as_deref();
        let side_effects = match declared {
            None => SideEffects::Read,
            Some(word) => SideEffects::from_word(word).ok_or_else(|| {
                invalid(
                    "side_effects",
                    "must be none, read, write or external",
                    word,
                )
            })?,
        };
        let schema = Schema::new(whole_schema(&spec)?)?;
        check_formals(&spec, &schema)?;
        let mut scopes = spec.scopes;
        scopes.sort();
        scopes.dedup();
        if scopes.iter().any(String::is_empty) {
            return Err(invalid("scopes", "must be names", "\"\""));
        }
        let harmless = matches!(side_effects, SideEffects::None | SideEffects::Read);
        Ok(Self {
            name: spec.name,
            description: spec.description,
            schema,
            formals: spec.formals,
            side_effects,
            assumed: declared.is_none(),
            approval: Approval {
                required: spec.requires_approval,
                prompt: spec.prompt,
                ttl_s: seconds("ttl_s", &spec.ttl_s)?,
            },
            timeout_s: seconds("timeout_s", &spec.timeout_s)?,
            max_calls: bound("max_calls", &spec.max_calls)?,
            max_bytes: bound("max_bytes", &spec.max_bytes)?,
            scopes,
            idempotent: spec.idempotent.unwrap_or(harmless),
            cost_nano: cost(&spec.cost)?,
            isolation: match spec.isolation.as_str() {
                "" | "session" => Isolation::Session,
                "process" => Isolation::Process,
                other => return Err(invalid("isolation", "must be session or process", other)),
            },
            record: match spec.record.as_str() {
                "" | "full" => Record::Full,
                "hashes" => Record::Hashes,
                other => return Err(invalid("record", "must be full or hashes", other)),
            },
        })
    }
}

/// Names that every provider takes: a letter or `_` first, then letters, digits,
/// `_` or `-`, at most 64 in all.
fn check_name(name: &str) -> Result<(), Error> {
    let mut chars = name.chars();
    let first = chars.next();
    let good = first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        && name.len() <= 64;
    if good {
        return Ok(());
    }
    Err(Error::Name {
        name: name.to_owned(),
        suggestion: suggest_name(name),
    })
}

fn suggest_name(name: &str) -> Option<String> {
    let mut text: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        })
        .take(64)
        .collect();
    if !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        text.insert(0, '_');
        text.truncate(64);
    }
    text.chars()
        .any(|c| c.is_ascii_alphanumeric())
        .then_some(text)
}

/// The whole schema of an object of arguments, closed unless it says otherwise.
fn whole_schema(spec: &ToolSpec) -> Result<Value, Error> {
    let mut map = match &spec.parameters {
        Value::Null => Map::new(),
        Value::Array(items) if items.is_empty() => Map::new(),
        Value::Object(map) if is_whole(map) => map.clone(),
        Value::Object(properties) => {
            let names: Vec<&String> = properties.keys().collect();
            let mut map = Map::new();
            map.insert("properties".into(), Value::Object(properties.clone()));
            map.insert("required".into(), json!(names));
            map
        }
        other => {
            return Err(invalid(
                "parameters",
                "must be a named list of properties, or a schema of an object",
                &other.to_string(),
            ))
        }
    };
    match map.get("type") {
        None => map.insert("type".into(), json!("object")),
        Some(t) if t == "object" => None,
        Some(t) => {
            return Err(invalid(
                "parameters",
                "must have type \"object\"",
                &t.to_string(),
            ))
        }
    };
    if map
        .get("properties")
        .is_none_or(|p| p.as_array().is_some_and(Vec::is_empty))
    {
        map.insert("properties".into(), json!({}));
    }
    if let Some(required) = &spec.required {
        map.insert("required".into(), json!(required));
    }
    if map
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(Vec::is_empty)
    {
        map.remove("required");
    }
    map.entry("additionalProperties").or_insert(json!(false));
    for name in &spec.redact {
        let property = map.get_mut("properties").and_then(|p| p.get_mut(name));
        match property {
            Some(Value::Object(property)) => {
                property.insert("redact".into(), json!(true));
            }
            // R has one empty list for `{}` and `[]`.
            Some(any) if *any == json!([]) || *any == json!(true) => {
                *any = json!({ "redact": true });
            }
            _ => return Err(invalid("redact", "must name parameters", name)),
        }
    }
    Ok(Value::Object(map))
}

/// A whole schema says its type in a word; a property named `type` is an object.
fn is_whole(map: &Map<String, Value>) -> bool {
    map.get("type").is_some_and(Value::is_string)
        || map.contains_key("$ref")
        || map.contains_key("$schema")
}

/// All that does not match between the function and its schema.
fn check_formals(spec: &ToolSpec, schema: &Schema) -> Result<(), Error> {
    let given: Vec<&str> = schema.properties().map(|(name, _)| name.as_str()).collect();
    if given.iter().any(|name| name.is_empty() || *name == "...") {
        return Err(invalid(
            "parameters",
            "must have names that a function can take",
            "\"\" or \"...\"",
        ));
    }
    let unknown: Vec<String> = given
        .iter()
        .filter(|name| !spec.dots && !spec.formals.iter().any(|f| f == *name))
        .map(|name| (*name).to_owned())
        .collect();
    let never_given: Vec<String> = spec
        .formals
        .iter()
        .filter(|f| !spec.defaults.contains(f) && !given.contains(&f.as_str()))
        .cloned()
        .collect();
    let not_described: Vec<String> = schema
        .required()
        .filter(|name| !given.contains(name))
        .map(str::to_owned)
        .collect();
    if !(unknown.is_empty() && never_given.is_empty() && not_described.is_empty()) {
        return Err(Error::Mismatch {
            unknown,
            never_given,
            not_described,
        });
    }
    let open = schema.as_value().get("additionalProperties") != Some(&Value::Bool(false));
    if open && !spec.dots {
        return Err(invalid(
            "parameters",
            "must be closed (additionalProperties = FALSE), since the function has no `...`",
            "an open schema",
        ));
    }
    Ok(())
}

fn bound(field: &'static str, value: &Value) -> Result<Bound, Error> {
    match value {
        Value::Null => Ok(Bound::Unlimited),
        Value::String(s) if s == "Infinity" => Ok(Bound::Unlimited),
        Value::Number(n) => whole(n.as_f64())
            .map(Bound::AtMost)
            .ok_or_else(|| invalid(field, WHOLE, n.as_str())),
        other => Err(invalid(field, WHOLE, &other.to_string())),
    }
}

const WHOLE: &str = "must be a whole number of at least 0, or Inf";

fn whole(x: Option<f64>) -> Option<u64> {
    // In this range the cast is exact.
    x.filter(|x| *x >= 0.0 && x.fract() == 0.0 && *x <= 9_007_199_254_740_992.0)
        .map(|x| x as u64)
}

fn seconds(field: &'static str, value: &Value) -> Result<Option<f64>, Error> {
    let wrong = |found: &str| invalid(field, "must be a number of seconds above 0, or NULL", found);
    match value {
        Value::Null => Ok(None),
        Value::String(s) if s == "Infinity" => Ok(None),
        Value::Number(n) => match n.as_f64() {
            Some(x) if x > 0.0 => Ok(Some(x)),
            _ => Err(wrong(n.as_str())),
        },
        other => Err(wrong(&other.to_string())),
    }
}

/// A decimal of at most nine places, in units of 1e-9, without going through a
/// product of doubles: 0.1 is 100000000.
fn cost(value: &Value) -> Result<Option<u64>, Error> {
    const RULE: &str = "must be a number of at least 0 with at most nine decimal places";
    match value {
        Value::Null => Ok(None),
        Value::Number(n) => {
            let x = n.as_f64().unwrap_or(-1.0);
            nano(x)
                .map(Some)
                .ok_or_else(|| invalid("cost", RULE, n.as_str()))
        }
        other => Err(invalid("cost", RULE, &other.to_string())),
    }
}

/// A decimal amount of at most nine places, in units of 1e-9: 0.1 is 100000000.
/// Nothing where it is negative, finer, or more than fits.
pub fn nano(amount: f64) -> Option<u64> {
    if !(0.0..1e9).contains(&amount) {
        return None;
    }
    // The shortest decimal that reads back as the double is what was typed.
    let mut text = Vec::new();
    crate::canon::write_double(amount, &mut text);
    let text = String::from_utf8(text).ok()?;
    let (digits, exponent) = text.split_once("e-").unwrap_or((&text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let places = fraction.len() + exponent.parse::<usize>().ok()?;
    let value: u64 = format!("{whole}{fraction}").parse().ok()?;
    value.checked_mul(10u64.checked_pow(9u32.checked_sub(places.try_into().ok()?)?)?)
}

/// The order of `required`, `enum` and of types is none in JSON Schema.
pub(super) fn as_set(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| {
                    let value = as_set(value);
                    match (key.as_str(), value) {
                        ("required" | "enum" | "type", Value::Array(mut items)) => {
                            items.sort_by_cached_key(crate::canon::to_vec);
                            (key.clone(), Value::Array(items))
                        }
                        (_, value) => (key.clone(), value),
                    }
                })
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(as_set).collect()),
        other => other.clone(),
    }
}

fn invalid(field: &'static str, rule: &'static str, found: &str) -> Error {
    Error::Field {
        field,
        rule,
        found: found.chars().take(80).collect(),
    }
}

/// What can be wrong with a declaration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A field breaks its rule.
    #[error("`{field}` {rule}, not {found}")]
    Field {
        /// The argument of `agent_tool()`.
        field: &'static str,
        /// What must hold.
        rule: &'static str,
        /// What was found.
        found: String,
    },
    /// Function and schema do not match.
    #[error("the function and `parameters` must match{}", mismatch(.unknown, .never_given, .not_described))]
    Mismatch {
        /// Properties that are not formals.
        unknown: Vec<String>,
        /// Formals without default that the schema does not have.
        never_given: Vec<String>,
        /// Required names that are no properties.
        not_described: Vec<String>,
    },
    /// A name that a provider would refuse.
    #[error(
        "`name` must be 1 to 64 letters, digits, \"_\" or \"-\", a letter or \"_\" first, not {name:?}{}",
        .suggestion.as_ref().map_or(String::new(), |s| format!(": \"{s}\" would do"))
    )]
    Name {
        /// The name.
        name: String,
        /// One that would be taken.
        suggestion: Option<String>,
    },
    /// The schema.
    #[error(transparent)]
    Schema(#[from] schema::Error),
}

fn mismatch(unknown: &[String], never_given: &[String], not_described: &[String]) -> String {
    let part = |words: &str, names: &[String]| match names {
        [] => String::new(),
        names => format!("; {words}: {}", names.join(", ")),
    };
    [
        part("not an argument of the function", unknown),
        part(
            "an argument without default that is never given",
            never_given,
        ),
        part("required but not described", not_described),
    ]
    .concat()
}

impl Fault for Error {
    fn code(&self) -> &'static str {
        match self {
            Error::Field { .. } => "tool_field",
            Error::Mismatch { .. } => "tool_mismatch",
            Error::Name { .. } => "tool_name",
            Error::Schema(e) => e.code(),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Error::Field { .. } | Error::Name { .. } => Kind::Input,
            Error::Mismatch { .. } => Kind::Schema,
            Error::Schema(e) => e.kind(),
        }
    }

    fn facts(&self) -> Map<String, Value> {
        let facts = match self {
            Error::Field { field, found, .. } => json!({"field": field, "found": found}),
            Error::Mismatch {
                unknown,
                never_given,
                not_described,
            } => json!({
                "unknown": unknown, "never_given": never_given, "not_described": not_described,
            }),
            Error::Name { name, suggestion } => json!({"name": name, "suggestion": suggestion}),
            Error::Schema(e) => return e.facts(),
        };
        facts.as_object().cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon;

    fn spec(edit: impl FnOnce(&mut ToolSpec)) -> ToolSpec {
        let mut spec = ToolSpec {
            name: "get_weather".into(),
            description: "The weather.".into(),
            parameters: json!({"city": {"type": "string"}}),
            formals: vec!["city".into()],
            ..ToolSpec::default()
        };
        edit(&mut spec);
        spec
    }

    fn refused(edit: impl FnOnce(&mut ToolSpec)) -> String {
        Tool::new(spec(edit))
            .expect_err("must be refused")
            .to_string()
    }

    #[test]
    fn properties_become_a_closed_schema_with_all_required() {
        let tool = Tool::new(spec(|_| {})).expect("good");
        assert_eq!(
            canon::to_string(tool.schema().as_value()),
            r#"{"additionalProperties":false,"properties":{"city":{"type":"string"}},"required":["city"],"type":"object"}"#
        );
        assert!(tool.assumed && tool.idempotent && tool.side_effects == SideEffects::Read);
        let none = Tool::new(spec(|s| {
            s.parameters = Value::Null;
            s.formals.clear();
        }))
        .expect("good");
        assert_eq!(
            canon::to_string(none.schema().as_value()),
            r#"{"additionalProperties":false,"properties":{},"type":"object"}"#
        );
        let optional = Tool::new(spec(|s| s.required = Some(vec![]))).expect("good");
        assert_eq!(optional.schema().required().count(), 0);
    }

    #[test]
    fn a_property_may_be_named_type() {
        let tool = Tool::new(spec(|s| {
            s.parameters = json!({"type": {"type": "string"}});
            s.formals = vec!["type".into()];
        }));
        assert!(tool
            .expect("good")
            .schema()
            .properties()
            .any(|(n, _)| n == "type"));
    }

    #[test]
    fn names_a_provider_would_refuse_are_refused_with_one_it_would_take() {
        for (name, suggestion) in [
            ("read.table", Some("read_table")),
            ("a/b", Some("a_b")),
            ("1st", Some("_1st")),
            ("", None),
            ("né", Some("n_")),
        ] {
            let error = Tool::new(spec(|s| s.name = name.into())).expect_err(name);
            assert_eq!(
                error,
                Error::Name {
                    name: name.into(),
                    suggestion: suggestion.map(str::to_owned)
                }
            );
        }
        assert!(Tool::new(spec(|s| s.name = "a".repeat(65))).is_err());
        assert!(Tool::new(spec(|s| s.name = "a".repeat(64))).is_ok());
    }

    #[test]
    fn limits_are_whole_and_times_positive() {
        for bad in [json!(-1), json!(1.5), json!("x"), json!(true), json!("NaN")] {
            assert!(refused(|s| s.max_calls = bad.clone()).contains("max_calls"));
        }
        for good in [json!(0), json!(5.0), json!("Infinity"), Value::Null] {
            assert!(Tool::new(spec(|s| s.max_bytes = good)).is_ok());
        }
        assert!(refused(|s| s.timeout_s = json!(0)).contains("timeout_s"));
        assert!(refused(|s| s.cost = json!(-0.1)).contains("cost"));
        let tool = Tool::new(spec(|s| s.cost = json!(0.1))).expect("good");
        assert_eq!(tool.cost_nano(), Some(100_000_000));
    }

    #[test]
    fn amounts_are_exact_decimals() {
        for (x, want) in [
            (0.0, Some(0)),
            (0.1, Some(100_000_000)),
            (0.3, Some(300_000_000)),
            (1e-9, Some(1)),
            (1.5e-7, Some(150)),
            (12.25, Some(12_250_000_000)),
            (0.1 + 0.2, None),
            (1e-10, None),
            (-1.0, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
        ] {
            assert_eq!(nano(x), want, "{x}");
        }
    }

    #[test]
    fn all_names_that_do_not_match_are_reported_together() {
        let text = refused(|s| {
            s.parameters = json!({"town": {"type": "string"}});
            s.required = Some(vec!["when".into()]);
        });
        for name in ["town", "city", "when"] {
            assert!(text.contains(name), "{text}");
        }
        assert!(refused(
            |s| s.parameters = json!({"type": "object", "additionalProperties": true,
            "properties": {"city": {}}})
        )
        .contains("closed"));
    }

    #[test]
    fn the_spec_changes_with_the_policy_and_not_with_the_order_of_keys() {
        let hash = |edit: fn(&mut ToolSpec)| {
            let tool = Tool::new(spec(edit)).expect("good");
            let function = crate::digest::Digest::of_bytes(b"f");
            crate::digest::Digest::of_value(&tool.spec(
                function,
                Map::new(),
                Map::new(),
                Map::new(),
            ))
        };
        let base = hash(|_| {});
        assert_eq!(base, hash(|s| s.record = "hashes".into()));
        let edits: [fn(&mut ToolSpec); 6] = [
            |s| s.max_calls = json!(5),
            |s| s.timeout_s = json!(1.5),
            |s| s.max_bytes = json!(10),
            |s| s.requires_approval = true,
            |s| s.side_effects = Some("read".into()),
            |s| s.scopes = vec!["x".into()],
        ];
        for edit in edits {
            assert_ne!(base, hash(edit));
        }
        assert_eq!(
            as_set(&json!({"required": ["b", "a"], "prefixItems": [2, 1]})),
            json!({"required": ["a", "b"], "prefixItems": [2, 1]})
        );
    }
}
