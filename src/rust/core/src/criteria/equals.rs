//! The answer is the expected value.

use super::contains::AnswerFields;
use super::Output;
use crate::canon;
use crate::declare::{Error, Fields};
use crate::verdict::Verdict;
use serde_json::{Map, Value};

/// `equals`: equal canonical JSON, so `1` is `1.0` and the order of keys is
/// nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Equals {
    pub(crate) fields: AnswerFields,
}

impl Equals {
    pub(crate) fn parse(fields: &mut Fields) -> Result<Self, Error> {
        let fields = AnswerFields::parse(fields)?;
        Ok(Self { fields })
    }

    pub(crate) fn config(&self) -> Map<String, Value> {
        self.fields.config()
    }

    pub(crate) fn judge(&self, expected: &Value, output: Output<'_>) -> Verdict {
        self.fields.judge(expected, output, canon::same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Expected;
    use crate::criteria::testing::criterion;
    use crate::verdict::Reason;
    use serde_json::json;

    #[test]
    fn values_are_compared_not_texts() {
        let equals = criterion(json!({"type": "equals", "field": "n"}));
        for (expected, output, want) in [
            (json!({"n": 1}), json!({"n": 1.0}), Verdict::Pass),
            (json!({"n": 1}), json!({"n": "1"}), Verdict::Fail),
            (
                json!({"n": {"a": 1, "b": 2}}),
                json!({"n": {"b": 2, "a": 1}}),
                Verdict::Pass,
            ),
            (json!({"n": null}), json!({"n": null}), Verdict::Pass),
            (
                json!({"n": 1}),
                json!({}),
                Verdict::Missing(Reason::MissingOutputField),
            ),
        ] {
            let found = equals.judge_output(&Expected::new(expected), Output::Is(&output));
            assert_eq!(found, want, "{output}");
        }
        let absent = equals.judge_output(&Expected::new(json!({"n": 1})), Output::Absent);
        assert_eq!(absent, Verdict::Missing(Reason::NoOutput));
    }
}
