//! What a schema says about the shape of a value: how a JSON value becomes an R
//! value, and how R's looser lists become JSON.

use serde_json::{Map, Number, Value};

/// The kinds of value a schema allows, as far as it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    /// `true` where the schema says nothing about kinds.
    pub open: bool,
    /// Allows `null`.
    pub null: bool,
    /// Allows booleans.
    pub boolean: bool,
    /// Allows integers, but not all numbers.
    pub integer: bool,
    /// Allows all numbers.
    pub number: bool,
    /// Allows strings.
    pub string: bool,
    /// Allows arrays.
    pub array: bool,
    /// Allows objects.
    pub object: bool,
}

/// The one scalar kind that the items of an array have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// `true` and `false`.
    Boolean,
    /// Whole numbers.
    Integer,
    /// Any numbers.
    Number,
    /// Text.
    String,
}

impl Shape {
    /// The shape under a schema; `root` resolves references.
    pub fn of(schema: Option<&Value>, root: &Value) -> Self {
        schema.map_or(Self::OPEN, |s| shape(s, root, 0))
    }

    /// The scalar kind, where the schema allows just one beside `null`.
    pub fn item(self) -> Option<Item> {
        let kinds = [
            (self.boolean, Item::Boolean),
            (self.integer && !self.number, Item::Integer),
            (self.number, Item::Number),
            (self.string, Item::String),
        ];
        let mut allowed = kinds.into_iter().filter(|(yes, _)| *yes);
        let first = allowed.next()?.1;
        let alone = allowed.next().is_none() && !self.array && !self.object && !self.open;
        alone.then_some(first)
    }

    const OPEN: Shape = Shape {
        open: true,
        null: false,
        boolean: false,
        integer: false,
        number: false,
        string: false,
        array: false,
        object: false,
    };

    fn union(self, other: Self) -> Self {
        Self {
            open: self.open || other.open,
            null: self.null || other.null,
            boolean: self.boolean || other.boolean,
            integer: self.integer || other.integer,
            number: self.number || other.number,
            string: self.string || other.string,
            array: self.array || other.array,
            object: self.object || other.object,
        }
    }

    fn allow(&mut self, word: &str) {
        match word {
            "null" => self.null = true,
            "boolean" => self.boolean = true,
            "integer" => self.integer = true,
            "number" => self.number = true,
            "string" => self.string = true,
            "array" => self.array = true,
            "object" => self.object = true,
            _ => {}
        }
    }

    fn allow_value(&mut self, value: &Value) {
        self.allow(match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(n) if crate::canon::is_integer_token(n.as_str()) => "integer",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        });
    }
}

/// Puts right, by the schema, what an R list cannot say: where only an array is
/// allowed a scalar is an array of one; where only an object is allowed an empty
/// array is an empty object; under an integer schema a decimal string beyond
/// 2^53 is that integer.
pub fn guide(value: &mut Value, schema: Option<&Value>, root: &Value) {
    let Some(schema) = schema.and_then(|s| resolve(s, root)) else {
        return;
    };
    let shape = Shape::of(Some(schema), root);
    if let Some(integer) = long_integer(value, shape) {
        *value = Value::Number(integer);
    }
    let only_array = shape.array && !(shape.open || shape.object || shape.item_any());
    let whole =
        matches!(value, Value::Array(_) | Value::Object(_)) || value.is_null() && shape.null;
    if only_array && !whole {
        *value = Value::Array(vec![value.take()]);
    }
    let only_object = shape.object && !shape.array && !shape.open;
    if only_object && value.as_array().is_some_and(Vec::is_empty) {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Array(items) => {
            for (i, item) in items.iter_mut().enumerate() {
                guide(item, item_schema(schema, i), root);
            }
        }
        Value::Object(map) => {
            for (name, member) in map.iter_mut() {
                guide(member, member_schema(schema, name), root);
            }
        }
        _ => {}
    }
}

impl Shape {
    fn item_any(self) -> bool {
        self.boolean || self.integer || self.number || self.string
    }
}

/// The schema of the i-th item of an array.
pub fn item_schema(schema: &Value, i: usize) -> Option<&Value> {
    schema
        .get("prefixItems")
        .and_then(|p| p.get(i))
        .or_else(|| schema.get("items").filter(|s| s.is_object()))
        .or_else(|| schema.get("items").and_then(|s| s.get(i)))
}

/// The schema of a member of an object.
pub fn member_schema<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema
        .get("properties")
        .and_then(|p| p.get(name))
        .or_else(|| schema.get("additionalProperties").filter(|s| s.is_object()))
}

/// The schema behind a reference into the document, followed at most 16 times.
pub fn resolve<'a>(schema: &'a Value, root: &'a Value) -> Option<&'a Value> {
    let mut at = schema;
    for _ in 0..16 {
        match at.get("$ref").and_then(Value::as_str) {
            None => return Some(at),
            Some(target) => at = root.pointer(target.strip_prefix('#')?)?,
        }
    }
    None
}

fn shape(schema: &Value, root: &Value, depth: usize) -> Shape {
    let Some(schema) = resolve(schema, root).filter(|_| depth < 16) else {
        return Shape::OPEN;
    };
    let mut found = Shape::default();
    match schema.get("type") {
        Some(Value::String(word)) => found.allow(word),
        Some(Value::Array(words)) => {
            words
                .iter()
                .filter_map(Value::as_str)
                .for_each(|w| found.allow(w));
        }
        _ => {}
    }
    if found == Shape::default() {
        let given = schema
            .get("enum")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        given
            .chain(schema.get("const"))
            .for_each(|v| found.allow_value(v));
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        if found == Shape::default() {
            let branches = schema.get(keyword).and_then(Value::as_array);
            found = branches
                .into_iter()
                .flatten()
                .map(|branch| shape(branch, root, depth + 1))
                .fold(Shape::default(), Shape::union);
        }
    }
    if found == Shape::default() {
        found = Shape::OPEN;
        found.array = schema.get("items").is_some();
        found.object = schema.get("properties").is_some();
        found.open = !(found.array || found.object);
    }
    found
}

fn long_integer(value: &Value, shape: Shape) -> Option<Number> {
    let text = value.as_str()?;
    let wanted = (shape.integer || shape.number) && !shape.string && !shape.open;
    let long = crate::canon::is_integer_token(text) && text.len() >= 16;
    (wanted && long).then(|| Number::from_string_unchecked(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon;

    fn json(text: &str) -> Value {
        canon::parse(text.as_bytes()).expect("JSON")
    }

    fn item(text: &str) -> Option<Item> {
        Shape::of(Some(&json(text)), &json("{}")).item()
    }

    #[test]
    fn one_scalar_kind_is_seen_through_unions_and_references() {
        for (text, want) in [
            (r#"{"type":"integer"}"#, Some(Item::Integer)),
            (r#"{"type":["number","null"]}"#, Some(Item::Number)),
            (r#"{"type":["integer","number"]}"#, Some(Item::Number)),
            (
                r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#,
                Some(Item::String),
            ),
            (r#"{"enum":["a","b"]}"#, Some(Item::String)),
            (r#"{"type":["integer","string"]}"#, None),
            (r#"{"type":"object"}"#, None),
            ("{}", None),
        ] {
            assert_eq!(item(text), want, "{text}");
        }
        let root = json(r##"{"$defs":{"A":{"type":"boolean"},"L":{"$ref":"#/$defs/L"}}}"##);
        assert_eq!(
            Shape::of(Some(&json(r##"{"$ref":"#/$defs/A"}"##)), &root).item(),
            Some(Item::Boolean)
        );
        assert!(Shape::of(Some(&json(r##"{"$ref":"#/$defs/L"}"##)), &root).open);
    }

    #[test]
    fn lists_of_r_become_what_the_schema_says() {
        let schema = json(
            r#"{"type":"object","properties":{"id":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}},
                "o":{"type":"object"},"free":{},"maybe":{"type":["array","string"]},"zip":{"type":"string"},
                "rows":{"type":"array","items":{"type":"object","properties":{"x":{"type":"array"}}}}}}"#,
        );
        for (given, want) in [
            (r#"{"id":1,"tags":"fruit"}"#, r#"{"id":1,"tags":["fruit"]}"#),
            (r#"{"tags":[]}"#, r#"{"tags":[]}"#),
            (r#"{"o":[]}"#, r#"{"o":{}}"#),
            (r#"{"free":"x"}"#, r#"{"free":"x"}"#),
            (r#"{"maybe":"x"}"#, r#"{"maybe":"x"}"#),
            (
                r#"{"id":"76561198003753554"}"#,
                r#"{"id":76561198003753554}"#,
            ),
            (
                r#"{"zip":"76561198003753554"}"#,
                r#"{"zip":"76561198003753554"}"#,
            ),
            (r#"{"id":"5"}"#, r#"{"id":"5"}"#),
            (r#"{"rows":[{"x":1}]}"#, r#"{"rows":[{"x":[1]}]}"#),
        ] {
            let mut value = json(given);
            guide(&mut value, Some(&schema), &schema);
            assert_eq!(canon::to_string(&value), canon::to_string(&json(want)));
        }
    }
}
