//! R to JSON, by the rules of the published table.
#![allow(unsafe_code)]

use super::{time, Error, Problem, NATIVE_LATIN1};
use extendr_api::prelude::*;
use extendr_ffi as ffi;
use ffi::{SEXP, SEXPTYPE};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::atomic::Ordering;
use warrant_core::canon;

#[allow(improper_ctypes)]
extern "C" {
    fn Rf_getCharCE(x: SEXP) -> ffi::cetype_t;
}

/// The JSON value of an R value.
pub(crate) fn to_value(x: &Robj) -> Result<Value, Error> {
    // SAFETY: `x` is protected for the whole walk, and the walk only reads it.
    unsafe { value(x.get(), 0) }
}

/// The text of one plain string that is not NA, without copying it.
pub(super) fn plain_text(x: &Robj) -> Result<Option<&str>, Error> {
    // SAFETY: the string lives as long as the vector that holds it.
    unsafe {
        let x = x.get();
        if kind(x) != SEXPTYPE::STRSXP
            || ffi::Rf_xlength(x) != 1
            || has_class(x, "json")
            || has_class(x, "AsIs")
        {
            return Ok(None);
        }
        let s = ffi::STRING_ELT(x, 0);
        if s == ffi::R_NaString {
            return Ok(None);
        }
        match text(s)? {
            Cow::Borrowed(text) => Ok(Some(text)),
            Cow::Owned(_) => Ok(None),
        }
    }
}

unsafe fn kind(x: SEXP) -> SEXPTYPE {
    ffi::TYPEOF(x)
}

pub(super) unsafe fn value(x: SEXP, depth: usize) -> Result<Value, Error> {
    if depth > canon::MAX_DEPTH {
        return Err(Error::new(Problem::Depth));
    }
    match kind(x) {
        SEXPTYPE::NILSXP => Ok(Value::Null),
        SEXPTYPE::VECSXP => list(x, depth),
        SEXPTYPE::LGLSXP | SEXPTYPE::INTSXP | SEXPTYPE::REALSXP | SEXPTYPE::STRSXP => atomic(x),
        SEXPTYPE::RAWSXP => Ok(Value::String(base64(raw(x)))),
        other => Err(Error::new(Problem::NoForm(type_words(other)))),
    }
}

fn type_words(kind: SEXPTYPE) -> &'static str {
    match kind {
        SEXPTYPE::CLOSXP | SEXPTYPE::BUILTINSXP | SEXPTYPE::SPECIALSXP => "a function",
        SEXPTYPE::ENVSXP => "an environment",
        SEXPTYPE::EXTPTRSXP | SEXPTYPE::WEAKREFSXP => "a pointer",
        SEXPTYPE::LANGSXP | SEXPTYPE::SYMSXP | SEXPTYPE::EXPRSXP => "unevaluated code",
        SEXPTYPE::CPLXSXP => "a complex vector",
        SEXPTYPE::LISTSXP | SEXPTYPE::DOTSXP => "a pairlist",
        _ => "an S4 object",
    }
}

unsafe fn atomic(x: SEXP) -> Result<Value, Error> {
    if ffi::Rf_isS4(x) != ffi::Rboolean::FALSE {
        return Err(Error::new(Problem::NoForm("an S4 object")));
    }
    if has_class(x, "json") {
        return json(x);
    }
    if is_connection(x) {
        return Err(Error::new(Problem::NoForm("a connection")));
    }
    let column = Column::new(x);
    let n = ffi::Rf_xlength(x);
    let dim = attribute(x, ffi::R_DimSymbol);
    if kind(dim) == SEXPTYPE::INTSXP && ffi::Rf_xlength(dim) > 1 {
        let dims: Vec<isize> = (0..ffi::Rf_xlength(dim))
            .map(|i| ffi::INTEGER_ELT(dim, i) as isize)
            .collect();
        return nested(&column, &dims, 0, 1);
    }
    if n == 1 && kind(dim) == SEXPTYPE::NILSXP && !has_class(x, "AsIs") {
        return column.cell(0);
    }
    (0..n)
        .map(|i| column.cell(i).map_err(|e| e.inside(format!("[{}]", i + 1))))
        .collect::<Result<Vec<_>, _>>()
        .map(Value::Array)
}

/// A matrix as an array of rows, an array of more dimensions likewise.
unsafe fn nested(
    column: &Column,
    dims: &[isize],
    at: isize,
    stride: isize,
) -> Result<Value, Error> {
    let Some((n, rest)) = dims.split_first() else {
        return column.cell(at);
    };
    (0..*n)
        .map(|i| nested(column, rest, at + i * stride, stride * n))
        .collect::<Result<Vec<_>, _>>()
        .map(Value::Array)
}

unsafe fn list(x: SEXP, depth: usize) -> Result<Value, Error> {
    if ffi::Rf_isS4(x) != ffi::Rboolean::FALSE {
        return Err(Error::new(Problem::NoForm("an S4 object")));
    }
    if has_class(x, "data.frame") {
        return rows(x, depth);
    }
    if has_class(x, "POSIXlt") {
        return Err(Error::new(Problem::NoForm(
            "a POSIXlt date-time (use as.POSIXct())",
        )));
    }
    let n = ffi::Rf_xlength(x);
    let names = attribute(x, ffi::R_NamesSymbol);
    if kind(names) != SEXPTYPE::STRSXP {
        let items = (0..n).map(|i| {
            value(ffi::VECTOR_ELT(x, i), depth + 1).map_err(|e| e.inside(format!("[[{}]]", i + 1)))
        });
        return items.collect::<Result<Vec<_>, _>>().map(Value::Array);
    }
    let mut map = Map::new();
    for i in 0..n {
        let name = text(ffi::STRING_ELT(names, i))?.into_owned();
        let member =
            value(ffi::VECTOR_ELT(x, i), depth + 1).map_err(|e| e.inside(format!("${name}")))?;
        if map.contains_key(&name) {
            return Err(Error::new(Problem::NameTwice(name)));
        }
        map.insert(name, member);
    }
    Ok(Value::Object(map))
}

/// A data frame: an array of row objects, every column in every row.
unsafe fn rows(x: SEXP, depth: usize) -> Result<Value, Error> {
    let (names, columns) = frame(x, depth)?;
    let n = frame_rows(x);
    (0..n)
        .map(|i| row(&names, &columns, i, depth))
        .collect::<Result<Vec<_>, _>>()
        .map(Value::Array)
}

unsafe fn frame(x: SEXP, depth: usize) -> Result<(Vec<String>, Vec<Cells>), Error> {
    let names = attribute(x, ffi::R_NamesSymbol);
    let mut texts: Vec<String> = Vec::new();
    let mut columns = Vec::new();
    for i in 0..ffi::Rf_xlength(x) {
        let name = text(ffi::STRING_ELT(names, i))?.into_owned();
        if texts.contains(&name) {
            return Err(Error::new(Problem::NameTwice(name)));
        }
        columns.push(
            Cells::new(ffi::VECTOR_ELT(x, i), depth).map_err(|e| e.inside(format!("${name}")))?,
        );
        texts.push(name);
    }
    Ok((texts, columns))
}

unsafe fn row(names: &[String], columns: &[Cells], i: isize, depth: usize) -> Result<Value, Error> {
    let mut map = Map::new();
    for (name, column) in names.iter().zip(columns) {
        let cell = column
            .cell(i, depth)
            .map_err(|e| e.inside(format!("[{}]", i + 1)).inside(format!("${name}")))?;
        map.insert(name.clone(), cell);
    }
    Ok(Value::Object(map))
}

unsafe fn frame_rows(x: SEXP) -> isize {
    let names = attribute(x, ffi::R_RowNamesSymbol);
    // R keeps automatic row names as c(NA, -n); getAttrib expands them.
    ffi::Rf_xlength(names)
}

/// The cells of one column of a data frame.
enum Cells {
    Atomic(Column),
    Frame(Vec<String>, Vec<Cells>),
    List(SEXP),
    Matrix(Column, Vec<isize>),
}

impl Cells {
    unsafe fn new(x: SEXP, depth: usize) -> Result<Self, Error> {
        match kind(x) {
            SEXPTYPE::VECSXP if has_class(x, "data.frame") => {
                let (names, columns) = frame(x, depth + 1)?;
                Ok(Cells::Frame(names, columns))
            }
            SEXPTYPE::VECSXP if has_class(x, "POSIXlt") => list(x, depth).map(|_| Cells::List(x)),
            SEXPTYPE::VECSXP => Ok(Cells::List(x)),
            SEXPTYPE::LGLSXP
            | SEXPTYPE::INTSXP
            | SEXPTYPE::REALSXP
            | SEXPTYPE::STRSXP
            | SEXPTYPE::RAWSXP => {
                let dim = attribute(x, ffi::R_DimSymbol);
                if kind(dim) == SEXPTYPE::INTSXP && ffi::Rf_xlength(dim) > 1 {
                    let dims = (0..ffi::Rf_xlength(dim)).map(|i| ffi::INTEGER_ELT(dim, i) as isize);
                    return Ok(Cells::Matrix(Column::new(x), dims.collect()));
                }
                Ok(Cells::Atomic(Column::new(x)))
            }
            other => Err(Error::new(Problem::NoForm(type_words(other)))),
        }
    }

    unsafe fn cell(&self, i: isize, depth: usize) -> Result<Value, Error> {
        match self {
            Cells::Atomic(column) => column.cell(i),
            Cells::Frame(names, columns) => row(names, columns, i, depth + 1),
            Cells::List(x) => value(ffi::VECTOR_ELT(*x, i), depth + 2),
            Cells::Matrix(column, dims) => nested(column, &dims[1..], i, dims[0]),
        }
    }
}

/// An atomic vector and how its cells are read.
struct Column {
    x: SEXP,
    form: Form,
}

enum Form {
    Date,
    Difftime(f64),
    Factor(SEXP),
    Instant,
    Integer,
    Integer64,
    Logical,
    Raw,
    Real,
    Text,
}

impl Column {
    unsafe fn new(x: SEXP) -> Self {
        let number = matches!(kind(x), SEXPTYPE::INTSXP | SEXPTYPE::REALSXP);
        let form = match kind(x) {
            SEXPTYPE::INTSXP if has_class(x, "factor") => {
                Form::Factor(attribute(x, ffi::R_LevelsSymbol))
            }
            _ if number && has_class(x, "Date") => Form::Date,
            _ if number && has_class(x, "POSIXct") => Form::Instant,
            _ if number && has_class(x, "difftime") => Form::Difftime(unit_seconds(x)),
            SEXPTYPE::REALSXP if has_class(x, "integer64") => Form::Integer64,
            SEXPTYPE::INTSXP => Form::Integer,
            SEXPTYPE::LGLSXP => Form::Logical,
            SEXPTYPE::RAWSXP => Form::Raw,
            SEXPTYPE::REALSXP => Form::Real,
            _ => Form::Text,
        };
        Self { x, form }
    }

    unsafe fn cell(&self, i: isize) -> Result<Value, Error> {
        Ok(match &self.form {
            Form::Date => self
                .number(i)
                .and_then(time::date)
                .map_or(Value::Null, Value::String),
            Form::Difftime(unit) => self.number(i).map_or(Value::Null, |x| double(x * unit)),
            Form::Factor(levels) => match ffi::INTEGER_ELT(self.x, i) {
                code if code < 1 || code as isize > ffi::Rf_xlength(*levels) => Value::Null,
                code => string(ffi::STRING_ELT(*levels, code as isize - 1))?,
            },
            Form::Instant => self
                .number(i)
                .and_then(time::instant)
                .map_or(Value::Null, Value::String),
            Form::Integer => match ffi::INTEGER_ELT(self.x, i) {
                i32::MIN => Value::Null,
                x => Value::Number(x.into()),
            },
            Form::Integer64 => match ffi::REAL_ELT(self.x, i).to_bits() as i64 {
                i64::MIN => Value::Null,
                x => Value::Number(x.into()),
            },
            Form::Logical => match ffi::LOGICAL_ELT(self.x, i) {
                i32::MIN => Value::Null,
                x => Value::Bool(x != 0),
            },
            Form::Raw => Value::Number(raw(self.x)[i as usize].into()),
            Form::Real => double(ffi::REAL_ELT(self.x, i)),
            Form::Text => string(ffi::STRING_ELT(self.x, i))?,
        })
    }

    /// The cell as a finite number.
    unsafe fn number(&self, i: isize) -> Option<f64> {
        let x = match kind(self.x) {
            SEXPTYPE::INTSXP => match ffi::INTEGER_ELT(self.x, i) {
                i32::MIN => return None,
                x => f64::from(x),
            },
            _ => ffi::REAL_ELT(self.x, i),
        };
        x.is_finite().then_some(x)
    }
}

/// NA is null; what JSON has no number for is a word.
fn double(x: f64) -> Value {
    // R marks NA by the low word of the NaN.
    if x.is_nan() && x.to_bits() & 0xffff_ffff == 1954 {
        return Value::Null;
    }
    match canon::number(x) {
        Some(n) => Value::Number(n),
        None if x.is_nan() => Value::String("NaN".into()),
        None if x > 0.0 => Value::String("Infinity".into()),
        None => Value::String("-Infinity".into()),
    }
}

unsafe fn string(s: SEXP) -> Result<Value, Error> {
    if s == ffi::R_NaString {
        return Ok(Value::Null);
    }
    Ok(Value::String(text(s)?.into_owned()))
}

/// The text of a CHARSXP in UTF-8.
///
/// # Safety
/// `s` is a CHARSXP that outlives the text.
pub(crate) unsafe fn text<'a>(s: SEXP) -> Result<Cow<'a, str>, Error> {
    let bytes =
        std::slice::from_raw_parts(ffi::R_CHAR(s).cast::<u8>(), ffi::Rf_xlength(s) as usize);
    let encoding = Rf_getCharCE(s);
    let latin1 = encoding == ffi::cetype_t::CE_LATIN1
        || encoding == ffi::cetype_t::CE_NATIVE && NATIVE_LATIN1.load(Ordering::Relaxed);
    if latin1 && !bytes.is_ascii() {
        return Ok(Cow::Owned(bytes.iter().map(|b| char::from(*b)).collect()));
    }
    std::str::from_utf8(bytes)
        .map(Cow::Borrowed)
        .map_err(|_| Error::new(Problem::Encoding))
}

unsafe fn json(x: SEXP) -> Result<Value, Error> {
    if kind(x) != SEXPTYPE::STRSXP || ffi::Rf_xlength(x) != 1 {
        return Err(Error::new(Problem::NotText("json")));
    }
    let text = text(ffi::STRING_ELT(x, 0))?;
    canon::parse(text.as_bytes()).map_err(|e| Error::new(Problem::Json(e)))
}

/// A connection is an integer with a pointer on it.
unsafe fn is_connection(x: SEXP) -> bool {
    kind(x) == SEXPTYPE::INTSXP && has_class(x, "connection")
}

unsafe fn attribute(x: SEXP, symbol: SEXP) -> SEXP {
    ffi::Rf_getAttrib(x, symbol)
}

/// Whether an R value has a class.
pub(crate) fn inherits(x: &Robj, class: &str) -> bool {
    // SAFETY: `x` is protected, and its class is only read.
    unsafe { has_class(x.get(), class) }
}

/// Whether a class is among those of an object.
unsafe fn has_class(x: SEXP, class: &str) -> bool {
    let classes = attribute(x, ffi::R_ClassSymbol);
    kind(classes) == SEXPTYPE::STRSXP
        && (0..ffi::Rf_xlength(classes)).any(|i| {
            let s = ffi::STRING_ELT(classes, i);
            let bytes = std::slice::from_raw_parts(
                ffi::R_CHAR(s).cast::<u8>(),
                ffi::Rf_xlength(s) as usize,
            );
            bytes == class.as_bytes()
        })
}

unsafe fn unit_seconds(x: SEXP) -> f64 {
    let units = attribute(x, ffi::Rf_install(c"units".as_ptr()));
    if kind(units) != SEXPTYPE::STRSXP || ffi::Rf_xlength(units) != 1 {
        return 1.0;
    }
    match text(ffi::STRING_ELT(units, 0)).as_deref() {
        Ok("mins") => 60.0,
        Ok("hours") => 3_600.0,
        Ok("days") => 86_400.0,
        Ok("weeks") => 604_800.0,
        _ => 1.0,
    }
}

unsafe fn raw<'a>(x: SEXP) -> &'a [u8] {
    match ffi::Rf_xlength(x) {
        0 => &[],
        n => std::slice::from_raw_parts(ffi::RAW(x), n as usize),
    }
}

/// Base64 with padding (RFC 4648 section 4).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0u32, |w, b| w << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * i)) as usize & 63];
            out.push(if i <= chunk.len() {
                char::from(letter)
            } else {
                '='
            });
        }
    }
    out
}
