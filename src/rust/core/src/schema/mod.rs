//! JSON Schema: checked at definition, compiled once, never touching a network
//! or a file.

mod guide;
mod lint;
mod violation;

pub use guide::{guide, item_schema, member_schema, resolve, Item, Shape};
pub use violation::{Violation, Violations, MAX_SHOWN};

use crate::error::{Fault, Kind};
use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value};

/// A schema that was checked and compiled.
#[derive(Debug)]
pub struct Schema {
    value: Value,
    validator: Validator,
}

impl Schema {
    /// Checks a schema and compiles it.
    ///
    /// The schema comes as R hands it over: where JSON Schema wants an array and
    /// a scalar stands, or an object and an empty array stands, it is put right.
    ///
    /// # Errors
    /// A keyword that does not exist (with the nearest one that does), a
    /// reference that leaves the document, a pattern that linear-time matching
    /// does not know, or anything else the standard does not allow.
    pub fn new(schema: Value) -> Result<Self, Error> {
        let mut value = schema;
        lint::normalise(&mut value);
        lint::check(&value)?;
        let validator = jsonschema::options()
            .with_pattern_options(PatternOptions::regex())
            .should_validate_formats(false)
            .build(&value)
            .map_err(|e| Error::Invalid {
                pointer: e.instance_path().to_string(),
                what: violation::clip(&e.to_string(), 200),
            })?;
        Ok(Self { value, validator })
    }

    /// The schema as it was checked.
    pub fn as_value(&self) -> &Value {
        &self.value
    }

    /// Whether a value is valid.
    pub fn is_valid(&self, instance: &Value) -> bool {
        self.validator.is_valid(instance)
    }

    /// All the rules a value breaks; nothing when it is valid.
    pub fn violations(&self, instance: &Value) -> Option<Violations> {
        if self.validator.is_valid(instance) {
            return None;
        }
        let secret = self.secret_pointers();
        Some(Violations::collect(
            self.validator.iter_errors(instance),
            &secret,
        ))
    }

    /// The top-level properties, in the order of their names.
    pub fn properties(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.value
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    }

    /// The top-level properties that must be given.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        self.value
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    }

    /// Names of the top-level properties marked `secret` or `redact`: their values
    /// are never recorded, only keyed digests of them.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let marked = |p: &Value, word| p.get(word) == Some(&Value::Bool(true));
        self.properties()
            .filter(move |(_, p)| marked(p, "secret") || marked(p, "redact"))
            .map(|(name, _)| name.as_str())
    }

    fn secret_pointers(&self) -> Vec<String> {
        self.secrets()
            .map(|name| crate::canon::pointer([name]))
            .collect()
    }
}

impl Clone for Schema {
    fn clone(&self) -> Self {
        Self {
            value: self.value.clone(),
            validator: self.validator.clone(),
        }
    }
}

/// What can be wrong with a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The schema breaks its own standard.
    #[error("the schema is not valid at \"{pointer}\": {what}")]
    Invalid {
        /// JSON pointer into the schema.
        pointer: String,
        /// What is wrong.
        what: String,
    },
    /// A reference leaves the document.
    #[error(
        "\"$ref\" at \"{pointer}\" must point into the schema itself (\"#/...\"), not to {target}"
    )]
    RemoteReference {
        /// JSON pointer of the object that holds the reference.
        pointer: String,
        /// Where it points.
        target: String,
    },
    /// A keyword that JSON Schema does not have.
    #[error("unknown JSON Schema keyword \"{keyword}\" at \"{pointer}\"{}", suggest(.nearest))]
    UnknownKeyword {
        /// JSON pointer of the object that holds the keyword.
        pointer: String,
        /// The keyword.
        keyword: String,
        /// The nearest keyword there is.
        nearest: Option<&'static str>,
    },
}

fn suggest(nearest: &Option<&'static str>) -> String {
    nearest.map_or(String::new(), |k| format!(": did you mean \"{k}\"?"))
}

impl Fault for Error {
    fn code(&self) -> &'static str {
        match self {
            Error::Invalid { .. } => "schema_invalid",
            Error::RemoteReference { .. } => "schema_remote_reference",
            Error::UnknownKeyword { .. } => "schema_unknown_keyword",
        }
    }

    fn kind(&self) -> Kind {
        Kind::Schema
    }

    fn facts(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        match self {
            Error::Invalid { pointer, .. } => {
                facts.insert("pointer".into(), pointer.as_str().into());
            }
            Error::RemoteReference { pointer, target } => {
                facts.insert("pointer".into(), pointer.as_str().into());
                facts.insert("target".into(), target.as_str().into());
            }
            Error::UnknownKeyword {
                pointer,
                keyword,
                nearest,
            } => {
                facts.insert("pointer".into(), pointer.as_str().into());
                facts.insert("keyword".into(), keyword.as_str().into());
                facts.insert("nearest".into(), (*nearest).into());
            }
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon;

    fn schema(text: &str) -> Result<Schema, Error> {
        Schema::new(canon::parse(text.as_bytes()).expect("JSON"))
    }

    fn valid(text: &str, instance: &str) -> bool {
        let instance = canon::parse(instance.as_bytes()).expect("JSON");
        schema(text).expect(text).is_valid(&instance)
    }

    #[test]
    fn misspelt_keywords_are_named_with_the_nearest() {
        for (text, keyword, nearest) in [
            (r#"{"type":"integer","min":1}"#, "min", Some("minimum")),
            (
                r#"{"properties":{"a":{"requiredProperties":[]}}}"#,
                "requiredProperties",
                None,
            ),
            (r#"{"items":{"enums":[1]}}"#, "enums", Some("enum")),
            (r#"{"Type":"string"}"#, "Type", Some("type")),
            (r#"{"maxlength":3}"#, "maxlength", Some("maxLength")),
        ] {
            match schema(text) {
                Err(Error::UnknownKeyword {
                    keyword: k,
                    nearest: n,
                    ..
                }) => {
                    assert_eq!((k.as_str(), n), (keyword, nearest));
                }
                other => panic!("{text}: {other:?}"),
            }
        }
        assert!(schema(r#"{"x-ours":1,"secret":true}"#).is_ok());
        // Data is not schema, and a property may have any name.
        assert!(
            schema(r#"{"default":{"min":1},"enum":[{"min":1}],"properties":{"min":{}}}"#).is_ok()
        );
    }

    #[test]
    fn references_stay_in_the_document() {
        assert!(matches!(
            schema(r#"{"properties":{"a":{"$ref":"https://example.org/s.json"}}}"#),
            Err(Error::RemoteReference { pointer, .. }) if pointer == "/properties/a"
        ));
        assert!(schema(r#"{"$ref":"other.json"}"#).is_err());
        let local =
            r##"{"$defs":{"P":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/P"}}}"##;
        assert!(valid(local, r#"{"a":1}"#) && !valid(local, r#"{"a":"x"}"#));
        assert!(schema(r##"{"$ref":"#/$defs/none"}"##).is_err());
        assert!(schema(r#"{"$schema":"https://example.org/own"}"#).is_err());
    }

    #[test]
    fn numbers_are_compared_exactly() {
        for (text, instance, want) in [
            (r#"{"multipleOf":0.01}"#, "1070468.14", true),
            (r#"{"multipleOf":0.01}"#, "19.99", true),
            (r#"{"multipleOf":0.01}"#, "0.30000001", false),
            (r#"{"multipleOf":0.1}"#, "17.2", true),
            (r#"{"maximum":9007199254740992}"#, "9007199254740993", false),
            (
                r#"{"maximum":18446744073709551616}"#,
                "18446744073709551617",
                false,
            ),
            (
                r#"{"type":"integer"}"#,
                "1267650600228229401496703205376",
                true,
            ),
            (r#"{"type":"integer"}"#, "1.0", true),
            (r#"{"enum":[1]}"#, "1.0", true),
        ] {
            assert_eq!(valid(text, instance), want, "{text} {instance}");
        }
    }

    #[test]
    fn patterns_take_linear_time_or_are_refused() {
        let long = format!("\"{}!\"", "a".repeat(50_000));
        assert!(!valid(r#"{"pattern":"^(a+)+$"}"#, &long));
        assert!(schema(r#"{"pattern":"(a)\\1"}"#).is_err());
    }

    #[test]
    fn what_r_cannot_say_is_put_right() {
        let s = schema(
            r#"{"type":"object","properties":{"a":{"enum":"x","items":[]}},"required":"a"}"#,
        )
        .expect("is put right");
        assert_eq!(
            canon::to_string(s.as_value()),
            r#"{"properties":{"a":{"enum":["x"],"items":{}}},"required":["a"],"type":"object"}"#
        );
        assert!(schema(r#"{"properties":[]}"#).is_ok());
    }

    #[test]
    fn violations_name_pointer_and_rule_and_are_bounded() {
        let s = schema(
            r#"{"type":"object","properties":{"n":{"type":"integer","minimum":1},"k":{"type":"string","minLength":9,"secret":true}},
                "required":["n","z"],"additionalProperties":false}"#,
        )
        .expect("valid");
        let found = s
            .violations(&canon::parse(br#"{"n":0,"k":"hush","other":1}"#).expect("JSON"))
            .expect("breaks rules");
        let text = found.to_string();
        let rules: Vec<_> = found
            .shown
            .iter()
            .map(|v| (v.pointer.as_str(), v.rule.as_str()))
            .collect();
        assert_eq!(
            rules,
            [
                ("", "additionalProperties"),
                ("", "required"),
                ("/k", "minLength"),
                ("/n", "minimum")
            ]
        );
        assert!(!text.contains("hush"), "{text}");
        assert!(
            text.contains("\"other\"") && text.contains("\"z\""),
            "{text}"
        );

        let many = format!("[{}]", vec!["\"bad\""; 10_000].join(","));
        let s = schema(r#"{"items":{"type":"integer"}}"#).expect("valid");
        let found = s
            .violations(&canon::parse(many.as_bytes()).expect("JSON"))
            .expect("many");
        assert_eq!(found.total, 10_000);
        assert!(
            found.to_string().len() <= 1500,
            "{}",
            found.to_string().len()
        );
        assert!(found.to_string().contains("9992 more"));
    }
}
