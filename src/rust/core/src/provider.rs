//! A tool as each provider wants to see it.

use crate::policy::SideEffects;
use crate::schema::resolve;
use crate::tool::Tool;
use serde_json::{json, Map, Value};

/// Whose format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Anthropic's Messages API.
    Anthropic,
    /// Google's Gemini API.
    Gemini,
    /// The Model Context Protocol.
    Mcp,
    /// OpenAI's chat completions, and all that speak them.
    OpenAi,
}

impl Provider {
    /// The provider of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "anthropic" => Some(Provider::Anthropic),
            "gemini" => Some(Provider::Gemini),
            "mcp" => Some(Provider::Mcp),
            "openai" => Some(Provider::OpenAi),
            _ => None,
        }
    }
}

/// How OpenAI is to hold the model to the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strict {
    /// Not at all: the schema is a description.
    Off,
    /// Exactly, where the schema can be written that way.
    WherePossible,
}

/// The definition of a tool in a provider's format.
pub fn render(tool: &Tool, provider: Provider, strict: Strict) -> Value {
    let schema = tool.schema().as_value();
    match provider {
        Provider::Anthropic => json!({
            "name": tool.name(),
            "description": tool.description(),
            "input_schema": outgoing(schema, schema, &Keep::default(), 0),
        }),
        Provider::Gemini => gemini(tool, schema),
        Provider::Mcp => json!({
            "name": tool.name(),
            "description": tool.description(),
            // The protocol takes any JSON Schema: only what is ours is left out.
            "inputSchema": without_ours(schema),
            "annotations": annotations(tool),
        }),
        Provider::OpenAi => openai(tool, schema, strict),
    }
}

/// The schema of a tool's arguments as chat endpoints take it.
pub fn parameters(schema: &Value) -> Value {
    outgoing(schema, schema, &Keep::default(), 0)
}

fn openai(tool: &Tool, schema: &Value, strict: Strict) -> Value {
    let mut parameters = outgoing(schema, schema, &Keep::default(), 0);
    let mut function = json!({"name": tool.name(), "description": tool.description()});
    if strict == Strict::WherePossible {
        let closed = close(&parameters);
        function["strict"] = json!(closed.is_some());
        parameters = closed.unwrap_or(parameters);
    }
    function["parameters"] = parameters;
    json!({"type": "function", "function": function})
}

/// Gemini refuses an object without properties and knows no `additionalProperties`.
fn gemini(tool: &Tool, schema: &Value) -> Value {
    let mut out = json!({"name": tool.name(), "description": tool.description()});
    if tool.schema().properties().next().is_some() {
        let keep = Keep {
            closing: false,
            defaults: false,
        };
        out["parameters"] = outgoing(schema, schema, &keep, 0);
    }
    out
}

fn annotations(tool: &Tool) -> Value {
    let effects = tool.side_effects();
    json!({
        "readOnlyHint": matches!(effects, SideEffects::None | SideEffects::Read),
        "destructiveHint": matches!(effects, SideEffects::Write | SideEffects::External),
        "idempotentHint": tool.idempotent(),
        "openWorldHint": effects == SideEffects::External,
    })
}

/// What a provider's dialect keeps.
struct Keep {
    closing: bool,
    defaults: bool,
}

impl Default for Keep {
    fn default() -> Self {
        Keep {
            closing: true,
            defaults: true,
        }
    }
}

/// The schema without what is ours, references written out, `items` in every array.
/// A reference that comes back to itself becomes a free value: what it means is
/// still checked here when the call arrives.
fn outgoing(schema: &Value, root: &Value, keep: &Keep, depth: usize) -> Value {
    if depth > MAX_INLINED {
        return json!({});
    }
    let Some(map) = resolve(schema, root).and_then(Value::as_object) else {
        return schema.clone();
    };
    let mut out = Map::new();
    for (keyword, value) in map {
        let each = |v: &Value| outgoing(v, root, keep, depth + 1);
        let value = match keyword.as_str() {
            "$defs" | "definitions" | "$schema" | "$id" | "$comment" => continue,
            "secret" | "redact" => continue,
            k if k.starts_with("x-") => continue,
            "additionalProperties" if !keep.closing => continue,
            "default" if !keep.defaults => continue,
            "properties" | "patternProperties" | "dependentSchemas" => match value {
                Value::Object(inner) => inner.iter().map(|(n, v)| (n.clone(), each(v))).collect(),
                other => other.clone(),
            },
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => match value {
                Value::Array(items) => items.iter().map(each).collect(),
                other => other.clone(),
            },
            "items"
            | "not"
            | "if"
            | "then"
            | "else"
            | "contains"
            | "propertyNames"
            | "additionalProperties"
            | "unevaluatedItems"
            | "unevaluatedProperties" => each(value),
            _ => value.clone(),
        };
        out.insert(keyword.clone(), value);
    }
    if out.get("type") == Some(&json!("array"))
        && !out.contains_key("items")
        && !out.contains_key("prefixItems")
    {
        out.insert("items".into(), json!({}));
    }
    Value::Object(out)
}

fn without_ours(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => map
            .iter()
            .filter(|(k, v)| !(matches!(k.as_str(), "secret" | "redact") && v.is_boolean()))
            .map(|(k, v)| (k.clone(), without_ours(v)))
            .collect(),
        Value::Array(items) => items.iter().map(without_ours).collect(),
        other => other.clone(),
    }
}

/// The schema as OpenAI's strict mode wants it: every object closed, every
/// property required, those that may be left out nullable, no defaults. Nothing
/// where that cannot be said: an object with free names, a free value.
fn close(schema: &Value) -> Option<Value> {
    let map = schema.as_object()?;
    if map.is_empty() {
        return None;
    }
    let mut out = map.clone();
    out.remove("default");
    if let Some(items) = map.get("items") {
        out.insert("items".into(), close(items)?);
    }
    if let Some(Value::Array(branches)) = map.get("anyOf") {
        out.insert(
            "anyOf".into(),
            branches.iter().map(close).collect::<Option<_>>()?,
        );
    }
    if [
        "oneOf",
        "allOf",
        "not",
        "if",
        "patternProperties",
        "prefixItems",
    ]
    .iter()
    .any(|k| map.contains_key(*k))
    {
        return None;
    }
    let properties = map.get("properties").and_then(Value::as_object);
    let object = map.get("type") == Some(&json!("object")) || properties.is_some();
    if !object {
        return Some(Value::Object(out));
    }
    if map
        .get("additionalProperties")
        .is_some_and(|a| a != &json!(false))
    {
        return None;
    }
    let properties = properties?;
    let required: Vec<&str> = map
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut closed = Map::new();
    for (name, property) in properties {
        let property = close(property)?;
        let property = if required.contains(&name.as_str()) {
            property
        } else {
            nullable(property)
        };
        closed.insert(name.clone(), property);
    }
    out.insert("required".into(), closed.keys().map(|k| json!(k)).collect());
    out.insert("properties".into(), Value::Object(closed));
    out.insert("additionalProperties".into(), json!(false));
    Some(Value::Object(out))
}

fn nullable(mut schema: Value) -> Value {
    if schema.get("type").is_some_and(Value::is_string) && schema.get("enum").is_none() {
        let word = schema["type"].take();
        schema["type"] = json!([word, "null"]);
        return schema;
    }
    json!({"anyOf": [schema, {"type": "null"}]})
}

/// How deep references are written out.
const MAX_INLINED: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::ToolSpec;

    fn tool(parameters: Value, formals: &[&str]) -> Tool {
        Tool::new(ToolSpec {
            name: "t".into(),
            description: "d".into(),
            parameters,
            formals: formals.iter().map(|s| (*s).to_owned()).collect(),
            side_effects: Some("external".into()),
            ..ToolSpec::default()
        })
        .expect("good")
    }

    #[test]
    fn a_tool_without_parameters_has_the_form_each_provider_takes() {
        let t = tool(Value::Null, &[]);
        let empty = json!({"type": "object", "properties": {}, "additionalProperties": false});
        assert_eq!(
            render(&t, Provider::OpenAi, Strict::Off)["function"]["parameters"],
            empty
        );
        assert_eq!(
            render(&t, Provider::Anthropic, Strict::Off)["input_schema"],
            empty
        );
        assert_eq!(render(&t, Provider::Mcp, Strict::Off)["inputSchema"], empty);
        assert!(render(&t, Provider::Gemini, Strict::Off)
            .get("parameters")
            .is_none());
    }

    #[test]
    fn what_is_ours_stays_here() {
        let t = tool(
            json!({"k": {"type": "string", "secret": true, "x-unit": "m"}}),
            &["k"],
        );
        for provider in [
            Provider::OpenAi,
            Provider::Anthropic,
            Provider::Mcp,
            Provider::Gemini,
        ] {
            assert!(!render(&t, provider, Strict::Off)
                .to_string()
                .contains("secret"));
        }
        // A property may be called that, all the same.
        let t = tool(json!({"secret": {"type": "string"}}), &["secret"]);
        for provider in [Provider::OpenAi, Provider::Mcp] {
            assert!(render(&t, provider, Strict::Off)
                .to_string()
                .contains("secret"));
        }
    }

    #[test]
    fn references_are_written_out_and_rings_end() {
        let schema = json!({"type": "object", "$defs": {"P": {"type": "integer"},
            "T": {"type": "object", "properties": {"child": {"$ref": "#/$defs/T"}}}},
            "properties": {"a": {"$ref": "#/$defs/P"}, "t": {"$ref": "#/$defs/T"}}});
        let t = tool(schema, &["a", "t"]);
        let out = render(&t, Provider::OpenAi, Strict::Off).to_string();
        assert!(!out.contains("$ref") && !out.contains("$defs"), "{out}");
        assert!(render(&t, Provider::Mcp, Strict::Off)
            .to_string()
            .contains("$ref"));
    }

    #[test]
    fn arrays_have_items() {
        let t = tool(json!({"a": {"type": "array"}}), &["a"]);
        let out = render(&t, Provider::OpenAi, Strict::Off);
        assert_eq!(
            out["function"]["parameters"]["properties"]["a"],
            json!({"type": "array", "items": {}})
        );
    }

    #[test]
    fn strict_closes_every_object_or_is_off() {
        let schema = json!({"type": "object", "required": ["o"], "properties": {
            "o": {"type": "object", "properties": {"x": {"type": "integer", "default": 1}}},
            "e": {"enum": ["a"], "type": "string"}}});
        let out = render(
            &tool(schema, &["o", "e"]),
            Provider::OpenAi,
            Strict::WherePossible,
        );
        let p = &out["function"]["parameters"];
        assert_eq!(out["function"]["strict"], json!(true));
        assert_eq!(p["required"], json!(["e", "o"]));
        assert_eq!(
            p["properties"]["o"],
            json!({"type": "object", "additionalProperties": false,
            "required": ["x"], "properties": {"x": {"type": ["integer", "null"]}}})
        );
        assert_eq!(p["properties"]["e"]["anyOf"][1], json!({"type": "null"}));
        let free = json!({"m": {"type": "object", "additionalProperties": {"type": "number"}}});
        let out = render(&tool(free, &["m"]), Provider::OpenAi, Strict::WherePossible);
        assert_eq!(out["function"]["strict"], json!(false));
    }

    #[test]
    fn side_effects_are_hints_in_mcp() {
        let out = render(&tool(Value::Null, &[]), Provider::Mcp, Strict::Off);
        assert_eq!(
            out["annotations"],
            json!({"readOnlyHint": false, "destructiveHint": true,
            "idempotentHint": false, "openWorldHint": true})
        );
    }
}
