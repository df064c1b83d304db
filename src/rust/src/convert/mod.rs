//! R values to JSON values and back: the one place that knows both.

mod build;
mod from_r;
mod read;
mod time;
mod to_r;

pub(crate) use build::Fields;
pub(crate) use from_r::{inherits, text as utf8, to_value};
pub(crate) use read::Members;
pub(crate) use to_r::{named, to_lists, to_robj};

use crate::fault::guard;
use extendr_api::prelude::*;
use serde_json::{json, Map, Value};
use warrant_core::canon;
use warrant_core::digest::Digest;
use warrant_core::error::{Fault, Kind};

/// The session's native encoding is Latin-1; R says so once, when it loads us.
static NATIVE_LATIN1: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

// What R says of the session's encoding.
#[extendr]
fn rs_native_latin1(yes: bool) {
    NATIVE_LATIN1.store(yes, std::sync::atomic::Ordering::Relaxed);
}

// The canonical JSON of an R value.
#[extendr]
fn rs_to_json(x: Robj) -> Robj {
    guard(|| Ok(to_text(&canon::to_string(&to_value(&x)?))))
}

// An R value read off JSON text.
#[extendr]
fn rs_from_json(text: Robj) -> Robj {
    guard(|| {
        let text = text_of(&text, "text")?;
        let value = canon::parse(text.as_bytes())?;
        Ok(to_robj(&value, None, &Value::Null))
    })
}

// The canonical form of JSON text.
#[extendr]
fn rs_canonical(text: Robj) -> Robj {
    guard(|| {
        let text = text_of(&text, "text")?;
        let value = canon::parse(text.as_bytes())?;
        Ok(to_text(&canon::to_string(&value)))
    })
}

// The digest of the canonical JSON of an R value.
#[extendr]
fn rs_hash_content(x: Robj) -> Robj {
    guard(|| {
        let digest = match from_r::plain_text(&x)? {
            Some(text) => Digest::of_string(text),
            None => Digest::of_value(&to_value(&x)?),
        };
        Ok(digest.to_hex())
    })
}

// SHA-256 of the bytes of a text.
#[extendr]
fn rs_sha256(text: Robj) -> Robj {
    guard(|| Ok(Digest::of_bytes(text_of(&text, "text")?.as_bytes()).to_hex()))
}

/// A text as an R string; R strings end at NUL, so it has none.
pub(crate) fn to_text(text: &str) -> Robj {
    if text.contains('\0') {
        text.replace('\0', "\u{fffd}").into()
    } else {
        text.into()
    }
}

/// The text of an R string.
pub(crate) fn text_of(x: &Robj, what: &'static str) -> Result<String, Box<dyn Fault>> {
    match from_r::plain_text(x)? {
        Some(text) => Ok(text.to_owned()),
        None => Err(Error::new(Problem::NotText(what)).into()),
    }
}

/// What can be wrong with an R value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Error {
    /// From the inside out, as R spells it: `$name`, `[[2]]`, `[2]`.
    path: Vec<String>,
    problem: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Problem {
    /// Text that is in no known encoding.
    Encoding,
    /// Lists nest too deep.
    Depth,
    /// Text of class `json` that is not JSON.
    Json(canon::Error),
    /// A name that occurs twice in a list.
    NameTwice(String),
    /// A type of value that JSON has no form for.
    NoForm(&'static str),
    /// Something else where one string must stand.
    NotText(&'static str),
}

impl Error {
    fn new(problem: Problem) -> Self {
        Self {
            path: Vec::new(),
            problem,
        }
    }

    fn inside(mut self, part: impl Into<String>) -> Self {
        self.path.push(part.into());
        self
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path: String = self.path.iter().rev().map(String::as_str).collect();
        let at = if path.is_empty() {
            "the value".to_owned()
        } else {
            format!("element `{path}`")
        };
        match &self.problem {
            Problem::Encoding => write!(f, "{at} holds text that is not valid UTF-8"),
            Problem::Depth => write!(f, "lists nest deeper than {} levels", canon::MAX_DEPTH),
            Problem::Json(e) => write!(f, "{at} has class \"json\" but is not JSON: {e}"),
            Problem::NameTwice(name) => write!(f, "{at} has the name \"{name}\" twice"),
            Problem::NoForm(what) => write!(
                f,
                "{at} is {what}, which has no JSON form; return a list, a data frame or text instead"
            ),
            Problem::NotText(what) => write!(f, "`{what}` must be one string"),
        }
    }
}

impl std::error::Error for Error {}

impl Fault for Error {
    fn code(&self) -> &'static str {
        match self.problem {
            Problem::Encoding => "value_encoding",
            Problem::Depth => "value_depth",
            Problem::Json(_) => "value_json",
            Problem::NameTwice(_) => "value_name_twice",
            Problem::NoForm(_) => "value_no_json_form",
            Problem::NotText(_) => "value_not_text",
        }
    }

    fn kind(&self) -> Kind {
        Kind::Input
    }

    fn facts(&self) -> Map<String, Value> {
        let path: String = self.path.iter().rev().map(String::as_str).collect();
        json!({ "element": path })
            .as_object()
            .cloned()
            .unwrap_or_default()
    }
}

extendr_module! {
    mod convert;
    fn rs_native_latin1;
    fn rs_to_json;
    fn rs_from_json;
    fn rs_canonical;
    fn rs_hash_content;
    fn rs_sha256;
}
