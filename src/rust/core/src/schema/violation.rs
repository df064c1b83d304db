//! What a value breaks, in words a model can repair from, bounded in number and
//! bytes.

use jsonschema::error::{TypeKind, ValidationError, ValidationErrorKind as Broken};
use serde_json::Value;
use std::fmt;

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// JSON pointer of the value.
    pub pointer: String,
    /// The keyword of the schema.
    pub rule: String,
    /// What would be right, and what was found.
    pub what: String,
}

/// The broken rules of one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violations {
    /// Invariant: at most [`MAX_SHOWN`], ordered by pointer and rule.
    pub shown: Vec<Violation>,
    /// How many there are in all.
    pub total: usize,
}

impl Violations {
    pub(crate) fn collect<'a>(
        errors: impl Iterator<Item = ValidationError<'a>>,
        secret: &[String],
    ) -> Self {
        let mut shown = Vec::new();
        let mut total = 0;
        for error in errors {
            total += 1;
            // The validator's own order is that of its tables, so some more than
            // are shown are kept, and ordered.
            if shown.len() < MAX_KEPT {
                shown.push(describe(&error, secret));
            }
        }
        shown.sort();
        shown.truncate(MAX_SHOWN);
        Self { shown, total }
    }

    /// A single violation, found outside the schema.
    pub fn one(pointer: &str, rule: &str, what: String) -> Self {
        Self {
            shown: vec![Violation {
                pointer: pointer.to_owned(),
                rule: rule.to_owned(),
                what,
            }],
            total: 1,
        }
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, v) in self.shown.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            let at = if v.pointer.is_empty() {
                "arguments"
            } else {
                v.pointer.as_str()
            };
            write!(f, "{}: {} ({})", clip(at, 80), v.what, v.rule)?;
        }
        match self.total - self.shown.len() {
            0 => Ok(()),
            left => write!(f, "; and {left} more"),
        }
    }
}

/// At most so many bytes of a text, cut at a character, the cut marked.
pub(crate) fn clip(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let mut end = bytes.saturating_sub(3);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", &text[..end])
}

fn describe(error: &ValidationError<'_>, secret: &[String]) -> Violation {
    let pointer = error.instance_path().to_string();
    let hidden = secret
        .iter()
        .any(|s| pointer == *s || pointer.starts_with(&format!("{s}/")));
    let got = if hidden {
        "<redacted>".to_owned()
    } else {
        clip(&error.instance().to_string(), 40)
    };
    Violation {
        rule: error.kind().keyword().to_owned(),
        what: clip(&wanted(error, &got), 150),
        pointer,
    }
}

fn wanted(error: &ValidationError<'_>, got: &str) -> String {
    match error.kind() {
        Broken::AdditionalProperties { unexpected }
        | Broken::UnevaluatedProperties { unexpected } => {
            format!("not a parameter: {}", quoted(unexpected))
        }
        Broken::AnyOf { .. } => format!("must fit one of the alternatives, got {got}"),
        Broken::Constant { expected_value } => format!("must be {expected_value}, got {got}"),
        Broken::Enum { options } => {
            format!(
                "must be one of {}, got {got}",
                clip(&options.to_string(), 90)
            )
        }
        Broken::ExclusiveMaximum { limit } => format!("must be less than {limit}, got {got}"),
        Broken::ExclusiveMinimum { limit } => format!("must be more than {limit}, got {got}"),
        Broken::Maximum { limit } => format!("must be at most {limit}, got {got}"),
        Broken::Minimum { limit } => format!("must be at least {limit}, got {got}"),
        Broken::MaxItems { limit } => format!("must have at most {limit} items"),
        Broken::MinItems { limit } => format!("must have at least {limit} items"),
        Broken::MaxLength { limit } => format!("must have at most {limit} characters, got {got}"),
        Broken::MinLength { limit } => format!("must have at least {limit} characters, got {got}"),
        Broken::MultipleOf { multiple_of } => {
            format!("must be a multiple of {multiple_of}, got {got}")
        }
        Broken::OneOfMultipleValid { .. } => {
            format!("must fit exactly one of the alternatives but fits several, got {got}")
        }
        Broken::OneOfNotValid { .. } => {
            format!("must fit exactly one of the alternatives, got {got}")
        }
        Broken::Pattern { pattern } => format!("must match {pattern}, got {got}"),
        Broken::Required { property } => format!("{property} is missing"),
        Broken::Type { kind } => format!("must be {}, got {got}", type_words(kind)),
        Broken::UniqueItems => "must not repeat an item".to_owned(),
        // The rest is rare; the library's sentence with the value hidden serves.
        _ => error.masked_with("the value").to_string(),
    }
}

fn type_words(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(set) => {
            let words: Vec<String> = set.iter().map(|t| t.to_string()).collect();
            words.join(" or ")
        }
    }
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names
        .iter()
        .map(|n| Value::String(n.clone()).to_string())
        .collect();
    names.join(", ")
}

/// How many violations a message lists.
pub const MAX_SHOWN: usize = 8;
const MAX_KEPT: usize = 1_000;
