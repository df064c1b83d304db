//! The arguments of one call: read strictly, or refused.

use super::Tool;
use crate::canon;
use crate::digest::{hex, Digest};
use crate::outcome::Outcome;
use crate::schema::{guide, Violations};
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// Arguments that passed.
#[derive(Debug, Clone)]
pub struct Arguments {
    value: Value,
    recorded: Vec<u8>,
    digest: Digest,
}

/// Arguments that did not pass; the function is not run.
#[derive(Debug, Clone)]
pub struct Refused {
    /// The text for the model.
    pub text: String,
    /// The canonical form, secrets hidden, where the text could be read at all.
    pub recorded: Option<Vec<u8>>,
}

impl Arguments {
    /// The arguments: an object.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The canonical form as it may be kept: a secret is only an HMAC of it.
    pub fn recorded(&self) -> &[u8] {
        &self.recorded
    }

    /// The digest of the recorded form without what is shown of redacted arguments:
    /// equal calls have the same.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Records what is shown in place of redacted arguments; gives the digest of the
    /// recorded form.
    pub fn show(&mut self, texts: &Redactions) -> Digest {
        if let Ok(mut kept) = canon::parse(&self.recorded) {
            show(&mut kept, texts);
            self.recorded = canon::to_vec(&kept);
        }
        Digest::of_bytes(&self.recorded)
    }
}

impl Tool {
    /// Reads the arguments of a call from JSON text.
    ///
    /// # Errors
    /// [`Refused`] when the text is not JSON, not an object, or breaks the schema.
    pub fn read_arguments(&self, text: &[u8], key: &[u8; 32]) -> Result<Arguments, Refused> {
        // A call without arguments is a call with none (as in MCP).
        let text = if text.iter().all(u8::is_ascii_whitespace) {
            b"{}"
        } else {
            text
        };
        match canon::parse(text) {
            Ok(value) => self.check_arguments(value, key, &BTreeMap::new()),
            Err(e) => Err(Refused {
                text: self.refusal(&e.to_string()),
                // A secret may stand anywhere in a text that cannot be read.
                recorded: self.schema.secrets().next().map(|_| {
                    let text = String::from_utf8_lossy(text);
                    canon::to_vec(&mask(&Value::from(text), key))
                }),
            }),
        }
    }

    /// Takes the arguments of a call as R handed them over, put right by the
    /// schema where R cannot say what JSON can.
    ///
    /// # Errors
    /// As [`Tool::read_arguments`].
    pub fn take_arguments(&self, value: Value, key: &[u8; 32]) -> Result<Arguments, Refused> {
        self.take_with_references(value, key, &BTreeMap::new())
    }

    /// As [`Tool::take_arguments`]; `references` names the arguments whose value
    /// came from an environment variable, with its name: they are recorded by it.
    ///
    /// # Errors
    /// As [`Tool::read_arguments`]; also where such an argument is not marked
    /// `secret` in the schema.
    pub fn take_with_references(
        &self,
        mut value: Value,
        key: &[u8; 32],
        references: &BTreeMap<String, String>,
    ) -> Result<Arguments, Refused> {
        if value.as_array().is_some_and(Vec::is_empty) {
            value = json!({});
        }
        let schema = self.schema.as_value();
        guide(&mut value, Some(schema), schema);
        self.check_arguments(value, key, references)
    }

    fn check_arguments(
        &self,
        value: Value,
        key: &[u8; 32],
        references: &BTreeMap<String, String>,
    ) -> Result<Arguments, Refused> {
        let exposed = references
            .keys()
            .find(|r| !self.schema.secrets().any(|s| s == *r));
        if let Some(name) = exposed {
            let what =
                format!("\"{name}\" is given a secret but is not marked `secret` in the schema");
            return Err(Refused {
                text: self.refusal(&what),
                recorded: Some(canon::to_vec(&by_reference(value, references))),
            });
        }
        let problem = if value.is_object() {
            self.problem(&value)
        } else {
            Some(format!("must be a JSON object, not {}", kind_of(&value)))
        };
        if let Some(what) = problem {
            return Err(Refused {
                text: self.refusal(&what),
                recorded: Some(self.refused_form(&value, key, references)),
            });
        }
        let recorded = self.recorded_form(&value, key, references);
        Ok(Arguments {
            digest: Digest::of_bytes(&recorded),
            value,
            recorded,
        })
    }

    fn problem(&self, value: &Value) -> Option<String> {
        if let Some(pointer) = nul_at(value, &mut Vec::new()) {
            return Some(
                Violations::one(
                    &pointer,
                    "type",
                    "holds a NUL character, which R cannot".into(),
                )
                .to_string(),
            );
        }
        if let Some(found) = self.schema.violations(value) {
            return Some(found.to_string());
        }
        let (name, formal) = self.partial_match(value)?;
        let what = format!("not a parameter; R would take it for \"{formal}\"");
        Some(Violations::one(&canon::pointer([name]), "additionalProperties", what).to_string())
    }

    /// A name that R would match partially with a formal.
    fn partial_match<'a>(&'a self, value: &'a Value) -> Option<(&'a str, &'a str)> {
        let given = value.as_object()?.keys().map(String::as_str);
        let unknown = given.filter(|name| !self.formals.iter().any(|f| f == name));
        unknown.into_iter().find_map(|name| {
            let formal = self.formals.iter().find(|f| f.starts_with(name))?;
            Some((name, formal.as_str()))
        })
    }

    /// The canonical form with each secret replaced by an HMAC under `key`, so
    /// that nothing can be guessed from it.
    fn recorded_form(
        &self,
        value: &Value,
        key: &[u8; 32],
        references: &BTreeMap<String, String>,
    ) -> Vec<u8> {
        if self.schema.secrets().next().is_none() {
            return canon::to_vec(value);
        }
        let mut masked = value.clone();
        if let Some(map) = masked.as_object_mut() {
            for name in self.schema.secrets() {
                if let Some(secret) = map.get_mut(name) {
                    *secret = match references.get(name) {
                        Some(variable) => json!({ "secret_env": variable }),
                        None => mask(secret, key),
                    };
                }
            }
        }
        canon::to_vec(&masked)
    }

    /// What is recorded of arguments that do not pass: where the tool has secrets, a
    /// value under a name that is not declared, or of another form, may be one.
    fn refused_form(
        &self,
        value: &Value,
        key: &[u8; 32],
        references: &BTreeMap<String, String>,
    ) -> Vec<u8> {
        if self.schema.secrets().next().is_none() {
            return canon::to_vec(value);
        }
        let Some(map) = value.as_object() else {
            return canon::to_vec(&mask(value, key));
        };
        let declared = |name: &String| self.schema.properties().any(|(known, _)| known == name);
        let hidden = map.iter().map(|(name, value)| {
            let value = if declared(name) {
                value.clone()
            } else {
                mask(value, key)
            };
            (name.clone(), value)
        });
        self.recorded_form(&Value::Object(hidden.collect()), key, references)
    }

    fn refusal(&self, what: &str) -> String {
        let word = Outcome::InvalidArguments.first_word();
        format!("{word} {what}. The tool \"{}\" was not run.", self.name)
    }
}

/// What is shown in place of redacted arguments, by name; nothing where no such text
/// could be made.
pub type Redactions = BTreeMap<String, Option<String>>;

/// Puts what is shown of each redacted argument beside its keyed digest.
pub fn show(kept: &mut Value, texts: &Redactions) {
    let Some(map) = kept.as_object_mut() else {
        return;
    };
    for (name, text) in texts {
        let hidden = map.get_mut(name).and_then(Value::as_object_mut);
        if let Some(hidden) = hidden.filter(|h| h.len() == 1 && h.contains_key(HMAC)) {
            hidden.insert(REDACTED.to_owned(), json!(text));
        }
    }
}

/// The digest that stands for a value in a record, of what [`mask`] made.
pub fn masked_digest(value: &Value) -> Option<Digest> {
    let map = value.as_object()?;
    let alone = map.len() == 1;
    let with_text = map.len() == 2
        && map
            .get(REDACTED)
            .is_some_and(|t| t.is_string() || t.is_null());
    let digest = map.get(HMAC).filter(|_| alone || with_text)?;
    digest.as_str()?.parse().ok()
}

const HMAC: &str = "secret_hmac";
const REDACTED: &str = "redacted";

/// What stands for a secret in a record.
pub fn mask(secret: &Value, key: &[u8; 32]) -> Value {
    let mac = Digest::keyed(key, &canon::to_vec(secret));
    json!({ HMAC: hex(mac.as_bytes()) })
}

/// Arguments with the names of environment variables where their values stood.
pub(crate) fn by_reference(mut value: Value, references: &BTreeMap<String, String>) -> Value {
    if let Some(map) = value.as_object_mut() {
        for (name, variable) in references {
            if let Some(value) = map.get_mut(name) {
                *value = json!({ "secret_env": variable });
            }
        }
    }
    value
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The pointer of the first text or key that holds a NUL.
fn nul_at<'a>(value: &'a Value, path: &mut Vec<std::borrow::Cow<'a, str>>) -> Option<String> {
    let here = |path: &[std::borrow::Cow<'a, str>]| {
        canon::pointer(path.iter().map(|part| part.as_ref())).replace('\0', "\u{fffd}")
    };
    match value {
        Value::String(s) => s.contains('\0').then(|| here(path)),
        Value::Array(items) => items.iter().enumerate().find_map(|(i, item)| {
            path.push(i.to_string().into());
            let found = nul_at(item, path);
            path.pop();
            found
        }),
        Value::Object(map) => map.iter().find_map(|(key, item)| {
            path.push(key.into());
            let found = if key.contains('\0') {
                Some(here(path))
            } else {
                nul_at(item, path)
            };
            path.pop();
            found
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::ToolSpec;
    use super::*;

    const KEY: [u8; 32] = [7; 32];

    fn tool(parameters: Value, formals: &[&str], dots: bool) -> Tool {
        Tool::new(ToolSpec {
            name: "t".into(),
            description: "d".into(),
            parameters,
            formals: formals.iter().map(|s| (*s).to_owned()).collect(),
            dots,
            ..ToolSpec::default()
        })
        .expect("good")
    }

    fn refusal(tool: &Tool, text: &str) -> String {
        let text = tool
            .read_arguments(text.as_bytes(), &KEY)
            .expect_err(text)
            .text;
        assert!(text.starts_with("INVALID ARGUMENTS: "), "{text}");
        text
    }

    #[test]
    fn broken_text_is_refused_and_never_repaired() {
        let t = tool(json!({"x": {"type": "number"}}), &["x"], false);
        for text in [
            r#"{"x":1"#,
            r#"{"x":01}"#,
            r#"{"x":NaN}"#,
            r#"{"x":1e400}"#,
            r#"{"x":1,"x":2}"#,
            "null",
            "[1]",
            "\"s\"",
            "3",
            "true",
            r#"{"":5}"#,
            r#"{"...":1}"#,
            r#"{"if":1}"#,
            "{}",
            r#"{"x":"5"}"#,
        ] {
            refusal(&t, text);
        }
        assert!(t.read_arguments(br#"{"x":1}"#, &KEY).is_ok());
        assert!(tool(Value::Null, &[], false)
            .read_arguments(b"", &KEY)
            .is_ok());
    }

    #[test]
    fn nul_is_refused_with_its_place() {
        let t = tool(json!({"x": {}}), &["x"], false);
        let text = refusal(&t, "{\"x\":[\"a\",{\"k\":\"\\u0000b\"}]}");
        assert!(text.contains("/x/1/k"), "{text}");
    }

    #[test]
    fn names_are_exact() {
        let t = tool(
            json!({"type": "object", "properties": {"colour": {}}, "additionalProperties": {}}),
            &["colour"],
            true,
        );
        assert!(refusal(&t, r#"{"col":"red"}"#).contains("colour"));
        assert!(t.read_arguments(br#"{"size":1}"#, &KEY).is_ok());
    }

    #[test]
    fn equal_arguments_have_equal_digests() {
        let t = tool(json!({"a": {}, "b": {}}), &["a", "b"], false);
        let digest = |text: &str| {
            t.read_arguments(text.as_bytes(), &KEY)
                .expect(text)
                .digest()
        };
        assert_eq!(
            digest(r#"{"a":1,"b":2}"#),
            digest(r#"{ "b":2.0, "a":1e0 }"#)
        );
        assert_ne!(digest(r#"{"a":1,"b":2}"#), digest(r#"{"a":1,"b":"2"}"#));
    }

    #[test]
    fn a_secret_is_kept_as_a_keyed_digest_only() {
        let t = tool(
            json!({"k": {"type": "string", "secret": true, "minLength": 3}}),
            &["k"],
            false,
        );
        let kept = |text: &str, key: &[u8; 32]| {
            let a = t.read_arguments(text.as_bytes(), key).expect(text);
            String::from_utf8(a.recorded().to_vec()).expect("text")
        };
        let one = kept(r#"{"k":"hush"}"#, &KEY);
        assert!(!one.contains("hush") && one.contains("secret_hmac"));
        assert_eq!(one, kept(r#"{"k":"hush"}"#, &KEY));
        assert_ne!(one, kept(r#"{"k":"hush"}"#, &[8; 32]));
        let refused = t.read_arguments(br#"{"k":"zq"}"#, &KEY).expect_err("short");
        assert!(!refused.text.contains("zq"));
        let by_name = BTreeMap::from([("k".to_owned(), "TOKEN".to_owned())]);
        let named = t
            .take_with_references(json!({"k": "hush"}), &KEY, &by_name)
            .expect("good");
        assert_eq!(named.recorded(), br#"{"k":{"secret_env":"TOKEN"}}"#);
        let redacted = tool(json!({"k": {"redact": true}}), &["k"], false);
        let kept = redacted.read_arguments(br#"{"k":["0007"]}"#, &KEY);
        let kept = kept.expect("any value").recorded().to_vec();
        assert!(kept.starts_with(br#"{"k":{"secret_hmac":"#));
        let shown = tool(json!({"k": {"redact": false}}), &["k"], false);
        let kept = shown.read_arguments(br#"{"k":1}"#, &KEY).expect("good");
        assert_eq!(kept.recorded(), br#"{"k":1}"#);
        let open = tool(json!({"k": {}}), &["k"], false);
        assert!(open
            .take_with_references(json!({"k": "hush"}), &KEY, &by_name)
            .is_err());
        let mut shown = redacted
            .read_arguments(br#"{"k":"ann@x.org"}"#, &KEY)
            .expect("good");
        let (before, hidden) = (shown.digest(), mask(&json!("ann@x.org"), &KEY));
        let after = shown.show(&Redactions::from([
            ("k".to_owned(), Some("a*@x.org".to_owned())),
            ("j".to_owned(), None),
        ]));
        let kept = canon::parse(shown.recorded()).expect("JSON");
        assert_eq!(kept["k"]["redacted"], "a*@x.org");
        assert_eq!(masked_digest(&kept["k"]), masked_digest(&hidden));
        assert_eq!(
            (shown.digest(), Digest::of_bytes(shown.recorded())),
            (before, after)
        );
        for other in [
            json!({"secret_hmac": "x"}),
            json!({"redacted": "a"}),
            json!({"secret_hmac": "a", "redacted": 1}),
        ] {
            assert_eq!(masked_digest(&other), None);
        }
        assert!(!String::from_utf8_lossy(&refused.recorded.expect("was read")).contains("zq"));
    }
}
