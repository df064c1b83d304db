//! JSON to R, guided by a schema where there is one.

use super::to_text;
use extendr_api::prelude::*;
use serde_json::{Map, Number, Value};
use warrant_core::canon;
use warrant_core::schema::{item_schema, member_schema, resolve, Item, Shape};

/// The R value of a JSON value.
pub(crate) fn to_robj(value: &Value, schema: Option<&Value>, root: &Value) -> Robj {
    let schema = schema.and_then(|s| resolve(s, root));
    match value {
        Value::Null => ().into(),
        Value::Bool(x) => (*x).into(),
        Value::Number(n) => number(n, Shape::of(schema, root)),
        Value::String(s) => to_text(s),
        Value::Array(items) => array(items, schema, root),
        Value::Object(map) => object(map, schema, root),
    }
}

/// The R value of a document that is to be written as JSON again: arrays are
/// always lists, so that one of one element stays one.
pub(crate) fn to_lists(value: &Value) -> Robj {
    match value {
        Value::Array(items) => List::from_values(items.iter().map(to_lists)).into(),
        Value::Object(map) => named(map.keys().map(String::as_str), map.values().map(to_lists)),
        other => to_robj(other, None, &Value::Null),
    }
}

fn object(map: &Map<String, Value>, schema: Option<&Value>, root: &Value) -> Robj {
    let values = map
        .iter()
        .map(|(name, value)| to_robj(value, schema.and_then(|s| member_schema(s, name)), root));
    named(map.keys().map(String::as_str), values)
}

/// A named list, named also when it is empty.
pub(crate) fn named<'a>(
    names: impl Iterator<Item = &'a str>,
    values: impl Iterator<Item = Robj>,
) -> Robj {
    let mut list = List::from_values(values.collect::<Vec<Robj>>());
    let names: Vec<String> = names.map(|n| n.replace('\0', "\u{fffd}")).collect();
    let _ = list.set_attrib(names_symbol(), names);
    list.into()
}

fn array(items: &[Value], schema: Option<&Value>, root: &Value) -> Robj {
    let declared = schema
        .and_then(|s| item_schema(s, 0))
        .and_then(|s| Shape::of(Some(s), root).item());
    let tuple = schema.is_some_and(|s| s.get("prefixItems").is_some());
    let kind = if tuple {
        None
    } else {
        declared.or_else(|| read_off(items))
    };
    match kind.and_then(|kind| vector(items, kind)) {
        Some(vector) => vector,
        None => List::from_values(
            items
                .iter()
                .enumerate()
                .map(|(i, item)| to_robj(item, schema.and_then(|s| item_schema(s, i)), root)),
        )
        .into(),
    }
}

/// The scalar kind that all items share, null apart.
fn read_off(items: &[Value]) -> Option<Item> {
    let mut found = None;
    for item in items {
        let kind = match item {
            Value::Null => continue,
            Value::Bool(_) => Item::Boolean,
            Value::Number(n) if canon::is_integer_token(n.as_str()) => Item::Integer,
            Value::Number(_) => Item::Number,
            Value::String(_) => Item::String,
            Value::Array(_) | Value::Object(_) => return None,
        };
        found = match (found, kind) {
            (None, kind) => Some(kind),
            (Some(a), b) if a == b => Some(a),
            (Some(Item::Integer), Item::Number) | (Some(Item::Number), Item::Integer) => {
                Some(Item::Number)
            }
            _ => return None,
        };
    }
    found
}

/// An atomic vector of that kind, null as NA; nothing where an item is of another.
fn vector(items: &[Value], kind: Item) -> Option<Robj> {
    match kind {
        Item::Boolean => items
            .iter()
            .map(|v| match v {
                Value::Null => Some(Rbool::na_value()),
                Value::Bool(x) => Some(Rbool::from(*x)),
                _ => None,
            })
            .collect::<Option<Vec<Rbool>>>()
            .map(|v| Logicals::from_values(v).into()),
        Item::Integer => integers(items),
        Item::Number => items
            .iter()
            .map(|v| match v {
                Value::Null => Some(Rfloat::na()),
                Value::Number(n) => n.as_f64().map(Rfloat::from),
                _ => None,
            })
            .collect::<Option<Vec<Rfloat>>>()
            .map(|v| Doubles::from_values(v).into()),
        Item::String => items
            .iter()
            .map(|v| match v {
                Value::Null => Some(Rstr::na()),
                Value::String(s) => Some(Rstr::from(s.as_str())),
                _ => None,
            })
            .collect::<Option<Vec<Rstr>>>()
            .map(|v| Strings::from_values(v).into()),
    }
}

/// How wide an integer is in R.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Width {
    Integer,
    Double,
    Digits,
}

/// Integers, or doubles past 2^31, or exact decimal strings past 2^53.
fn integers(items: &[Value]) -> Option<Robj> {
    let texts = items
        .iter()
        .map(|v| match v {
            Value::Null => Some(None),
            Value::Number(n) => digits(n).map(Some),
            _ => None,
        })
        .collect::<Option<Vec<Option<String>>>>()?;
    let width = texts
        .iter()
        .flatten()
        .map(|t| width(t))
        .max()
        .unwrap_or(Width::Integer);
    Some(match width {
        Width::Integer => Integers::from_values(texts.iter().map(|t| {
            t.as_ref()
                .and_then(|t| t.parse::<i32>().ok())
                .map_or(Rint::na(), Rint::from)
        }))
        .into(),
        Width::Double => Doubles::from_values(texts.iter().map(|t| {
            t.as_ref()
                .and_then(|t| t.parse::<f64>().ok())
                .map_or(Rfloat::na(), Rfloat::from)
        }))
        .into(),
        Width::Digits => Strings::from_values(
            texts
                .iter()
                .map(|t| t.as_ref().map_or(Rstr::na(), |t| Rstr::from(t.as_str()))),
        )
        .into(),
    })
}

fn number(n: &Number, shape: Shape) -> Robj {
    let whole = shape.integer && !shape.number || shape.open && canon::is_integer_token(n.as_str());
    match digits(n).filter(|_| whole || !shape.number && canon::is_integer_token(n.as_str())) {
        Some(text) => integers(&[Value::Number(n.clone())]).unwrap_or_else(|| text.into()),
        None => n.as_f64().unwrap_or(f64::NAN).into(),
    }
}

/// The digits of a number that is whole: `1.0` is `1`.
fn digits(n: &Number) -> Option<String> {
    let mut out = Vec::new();
    canon::write(&Value::Number(n.clone()), &mut out);
    let text = String::from_utf8(out).ok()?;
    if canon::is_integer_token(&text) {
        return Some(text);
    }
    let x = n.as_f64()?;
    // Past 1e21 the canonical form has an exponent; the digits are exact here.
    (x.is_finite() && x.fract() == 0.0).then(|| format!("{x:.0}"))
}

fn width(text: &str) -> Width {
    match text.parse::<i64>() {
        Ok(x) if x > i64::from(i32::MIN) && x <= i64::from(i32::MAX) => Width::Integer,
        Ok(x) if x.unsigned_abs() <= 1 << 53 => Width::Double,
        _ => Width::Digits,
    }
}
