//! The answer contains the expected text.

use super::{config, Output};
use crate::case::{lookup, text};
use crate::declare::{broken, Error, Fields};
use crate::verdict::{Reason, Verdict};
use serde_json::{Map, Value};

/// `contains`: case-sensitive, no trimming, no normalisation.
#[derive(Debug, Clone, PartialEq)]
pub struct Contains {
    pub(crate) fields: AnswerFields,
}

/// Where the answer and what is expected of it are.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AnswerFields {
    field: Option<String>,
    expected_field: Option<String>,
}

impl Contains {
    pub(crate) fn parse(fields: &mut Fields) -> Result<Self, Error> {
        let fields = AnswerFields::parse(fields)?;
        Ok(Self { fields })
    }

    pub(crate) fn config(&self) -> Map<String, Value> {
        self.fields.config()
    }

    /// An object or array is no text to look for.
    pub(crate) fn check_case(&self, expected: &Value) -> Result<(), Error> {
        let path = self.fields.path();
        let found = lookup(expected, path);
        if !found.is_some_and(|value| value.is_object() || value.is_array()) {
            return Ok(());
        }
        let pointer = path.into_iter().flat_map(|path| path.split('.'));
        let pointer = format!("/expected{}", crate::canon::pointer(pointer));
        let rule = "the expected text must not be an object or array";
        Err(broken("malformed_expected", &pointer, rule))
    }

    pub(crate) fn judge(&self, expected: &Value, output: Output<'_>) -> Verdict {
        self.fields.judge(expected, output, |wanted, answer| {
            text(answer).contains(&*text(wanted))
        })
    }
}

impl AnswerFields {
    pub(crate) fn parse(fields: &mut Fields) -> Result<Self, Error> {
        Ok(Self {
            field: fields.path("field")?,
            expected_field: fields.path("expected_field")?,
        })
    }

    pub(crate) fn config(&self) -> Map<String, Value> {
        config([
            ("field", self.field.clone().into()),
            ("expected_field", self.expected_field.clone().into()),
        ])
    }

    fn path(&self) -> Option<&str> {
        self.expected_field.as_deref().or(self.field.as_deref())
    }

    /// What is expected: at `expected_field`, else at `field` where `expected` is
    /// an object, else the whole of it.
    pub(crate) fn expected<'a>(&self, expected: &'a Value) -> Option<&'a Value> {
        if expected.is_null() {
            return None;
        }
        let path = match &self.expected_field {
            Some(path) => Some(path),
            None => self.field.as_ref().filter(|_| expected.is_object()),
        };
        lookup(expected, path.map(String::as_str))
    }

    pub(crate) fn judge(
        &self,
        expected: &Value,
        output: Output<'_>,
        holds: impl FnOnce(&Value, &Value) -> bool,
    ) -> Verdict {
        let Some(wanted) = self.expected(expected) else {
            return Verdict::Excluded(Reason::NoExpected);
        };
        let Output::Is(output) = output else {
            return Verdict::Missing(Reason::NoOutput);
        };
        match lookup(output, self.field.as_deref()) {
            Some(answer) => Verdict::of(holds(wanted, answer)),
            None => Verdict::Missing(Reason::MissingOutputField),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Expected;
    use crate::criteria::testing::criterion;
    use serde_json::json;

    fn verdict(declaration: Value, expected: Value, output: Value) -> Result<Verdict, String> {
        let contains = criterion(declaration);
        let expected = Expected::new(expected);
        contains.check_case(&expected).map_err(|e| e.pointer)?;
        Ok(match contains.excludes(&expected) {
            Some(reason) => Verdict::Excluded(reason),
            None => contains.judge_output(&expected, Output::Is(&output)),
        })
    }

    #[test]
    fn the_expected_text_is_looked_for_in_the_answer() {
        let whole = json!({"type": "contains"});
        let field = json!({"type": "contains", "field": "answer"});
        let both = json!({"type": "contains", "field": "a.0", "expected_field": "b"});
        let excluded = Ok(Verdict::Excluded(Reason::NoExpected));
        for (declaration, expected, output, want) in [
            (&whole, json!("fund"), json!("refunded"), Ok(Verdict::Pass)),
            (&whole, json!("Fund"), json!("refunded"), Ok(Verdict::Fail)),
            (&whole, json!(""), json!(null), Ok(Verdict::Pass)),
            (&whole, json!(0), json!({"n": 10}), Ok(Verdict::Pass)),
            (&whole, json!(true), json!(true), Ok(Verdict::Pass)),
            (&whole, json!(null), json!("x"), excluded.clone()),
            (
                &whole,
                json!({"answer": "x"}),
                json!("x"),
                Err("/expected".into()),
            ),
            (
                &field,
                json!("x"),
                json!({"answer": "xyz"}),
                Ok(Verdict::Pass),
            ),
            (
                &field,
                json!({"answer": null}),
                json!({"answer": 1}),
                Ok(Verdict::Pass),
            ),
            (
                &field,
                json!({"other": "x"}),
                json!({"answer": "x"}),
                excluded.clone(),
            ),
            (
                &field,
                json!({"answer": ["x"]}),
                json!({}),
                Err("/expected/answer".into()),
            ),
            (
                &field,
                json!(["x"]),
                json!({"answer": "[\"x\"]"}),
                Ok(Verdict::Pass),
            ),
            (
                &field,
                json!("x"),
                json!("x"),
                Ok(Verdict::Missing(Reason::MissingOutputField)),
            ),
            (
                &both,
                json!({"b": "x"}),
                json!({"a": ["xx"]}),
                Ok(Verdict::Pass),
            ),
            (&both, json!("x"), json!({"a": ["xx"]}), excluded),
        ] {
            let found = verdict(declaration.clone(), expected.clone(), output.clone());
            assert_eq!(found, want, "{declaration} {expected} {output}");
        }
    }
}
