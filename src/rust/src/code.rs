//! R objects and code as a stream of bytes that only depends on what they mean:
//! no source references, comments, spacing, bytecode or compact representation.
//! And the names that code takes from outside.
#![allow(unsafe_code)]

use crate::fault::guard;
use extendr_api::prelude::*;
use extendr_ffi as ffi;
use ffi::{SEXP, SEXPTYPE};
use std::collections::BTreeSet;
use warrant_core::digest::Hasher;

#[allow(improper_ctypes)]
extern "C" {
    fn ATTRIB(x: SEXP) -> SEXP;
    fn R_BytecodeExpr(x: SEXP) -> SEXP;
    fn R_ClosureExpr(x: SEXP) -> SEXP;
}

// The digest of an R object, and whether all of it is in the digest: what stands
// behind environments and pointers is not.
#[extendr]
fn rs_hash_object(x: Robj) -> Robj {
    guard(|| {
        let mut walk = Walk {
            hasher: Hasher::new(),
            whole: true,
            depth: 0,
        };
        // SAFETY: `x` is protected, and the walk only reads.
        unsafe { walk.object(x.get()) };
        Ok(list!(
            digest = walk.hasher.finish().to_hex(),
            whole = walk.whole
        ))
    })
}

// The names that a function takes from outside: `used` as variables, `called` as
// functions, and `assigned`, those it changes outside.
#[extendr]
fn rs_free_names(x: Robj) -> Robj {
    guard(|| {
        let mut names = Names::default();
        // SAFETY: as above. What is no closure takes nothing.
        unsafe {
            if ffi::TYPEOF(x.get()) == SEXPTYPE::CLOSXP {
                names.function(
                    ffi::get_closure_formals(x.get()),
                    R_ClosureExpr(x.get()),
                    &Scope::default(),
                )
            }
        };
        let texts = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>();
        Ok(list!(
            used = texts(names.used),
            called = texts(names.called),
            assigned = texts(names.assigned)
        ))
    })
}

struct Walk {
    hasher: Hasher,
    whole: bool,
    depth: usize,
}

/// What is nested deeper is not looked at: the stack has an end.
const DEEPEST: usize = 2000;

impl Walk {
    unsafe fn object(&mut self, x: SEXP) {
        if self.depth == DEEPEST {
            self.whole = false;
            self.tag(b'd');
            return;
        }
        self.depth += 1;
        self.part(x);
        self.depth -= 1;
    }

    unsafe fn part(&mut self, x: SEXP) {
        match ffi::TYPEOF(x) {
            SEXPTYPE::NILSXP => self.tag(b'N'),
            SEXPTYPE::SYMSXP => {
                self.tag(b'y');
                self.text(symbol(x).as_bytes());
            }
            SEXPTYPE::LANGSXP => self.pairs(b'l', x, code_length(x)),
            SEXPTYPE::LISTSXP | SEXPTYPE::DOTSXP => self.pairs(b'p', x, pairs_length(x)),
            SEXPTYPE::CLOSXP => {
                self.tag(b'c');
                self.object(ffi::get_closure_formals(x));
                self.object(R_ClosureExpr(x));
            }
            SEXPTYPE::BCODESXP => self.object(R_BytecodeExpr(x)),
            SEXPTYPE::LGLSXP => self.vector(b'L', x, |w, x, i| {
                w.bytes(&ffi::LOGICAL_ELT(x, i).to_le_bytes())
            }),
            SEXPTYPE::INTSXP => self.vector(b'I', x, |w, x, i| {
                w.bytes(&ffi::INTEGER_ELT(x, i).to_le_bytes())
            }),
            SEXPTYPE::REALSXP => self.vector(b'R', x, |w, x, i| w.real(ffi::REAL_ELT(x, i))),
            SEXPTYPE::CPLXSXP => self.vector(b'C', x, |w, x, i| {
                let z = ffi::COMPLEX_ELT(x, i);
                w.real(z.r);
                w.real(z.i);
            }),
            SEXPTYPE::STRSXP => self.vector(b'S', x, |w, x, i| w.string(ffi::STRING_ELT(x, i))),
            SEXPTYPE::RAWSXP => self.vector(b'W', x, |w, x, i| w.bytes(&[*ffi::RAW(x).offset(i)])),
            SEXPTYPE::VECSXP => self.vector(b'V', x, |w, x, i| w.object(ffi::VECTOR_ELT(x, i))),
            SEXPTYPE::EXPRSXP => self.vector(b'E', x, |w, x, i| w.object(ffi::VECTOR_ELT(x, i))),
            SEXPTYPE::BUILTINSXP | SEXPTYPE::SPECIALSXP => self.tag(b'b'),
            SEXPTYPE::ENVSXP | SEXPTYPE::EXTPTRSXP | SEXPTYPE::WEAKREFSXP | SEXPTYPE::PROMSXP => {
                self.whole = false;
                self.tag(b'e');
            }
            _ => {
                self.tag(b'4');
                self.attributes(x);
            }
        }
    }

    unsafe fn vector(&mut self, tag: u8, x: SEXP, each: impl Fn(&mut Self, SEXP, isize)) {
        self.tag(tag);
        let n = ffi::Rf_xlength(x);
        self.count(n as u64);
        for i in 0..n {
            each(self, x, i);
        }
        self.attributes(x);
    }

    unsafe fn pairs(&mut self, tag: u8, mut x: SEXP, n: usize) {
        self.tag(tag);
        self.count(n as u64);
        for _ in 0..n {
            let name = ffi::TAG(x);
            let name = match ffi::TYPEOF(name) {
                SEXPTYPE::SYMSXP => symbol(name),
                _ => String::new(),
            };
            self.text(name.as_bytes());
            self.object(ffi::CAR(x));
            x = ffi::CDR(x);
        }
    }

    /// By name, so that the order in which they were set does not matter.
    unsafe fn attributes(&mut self, x: SEXP) {
        let mut found = Vec::new();
        let mut at = ATTRIB(x);
        while ffi::TYPEOF(at) == SEXPTYPE::LISTSXP {
            let name = symbol(ffi::TAG(at));
            let value = ffi::CAR(at);
            let own = matches!(name.as_str(), "srcref" | "srcfile" | "wholeSrcref");
            // A data.table carries a pointer to itself.
            if !own && ffi::TYPEOF(value) != SEXPTYPE::EXTPTRSXP {
                found.push((name, value));
            }
            at = ffi::CDR(at);
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        self.count(found.len() as u64);
        for (name, value) in found {
            self.text(name.as_bytes());
            match automatic_rows(&name, value) {
                Some(n) => self.count(n),
                None => self.object(value),
            }
        }
    }

    unsafe fn string(&mut self, s: SEXP) {
        if s == ffi::R_NaString {
            self.tag(0);
        } else {
            self.tag(1);
            match crate::convert::utf8(s) {
                Ok(text) => self.text(text.as_bytes()),
                Err(_) => self.text(chars(s)),
            }
        }
    }

    fn real(&mut self, x: f64) {
        let bits = match x {
            // NA is marked by the low word; all other NaN are one.
            x if x.is_nan() && x.to_bits() & 0xffff_ffff == 1954 => 0x7ff0_0000_0000_07a2,
            x if x.is_nan() => 0x7ff8_0000_0000_0000,
            // Adding zero turns -0 into 0.
            x => (x + 0.0).to_bits(),
        };
        self.bytes(&bits.to_le_bytes());
    }

    fn text(&mut self, bytes: &[u8]) {
        self.count(bytes.len() as u64);
        self.bytes(bytes);
    }

    fn count(&mut self, n: u64) {
        self.bytes(&n.to_le_bytes());
    }

    fn tag(&mut self, tag: u8) {
        self.bytes(&[tag]);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }
}

/// Row names that R made itself, in either of their two forms.
unsafe fn automatic_rows(name: &str, value: SEXP) -> Option<u64> {
    if name != "row.names" || ffi::TYPEOF(value) != SEXPTYPE::INTSXP {
        return None;
    }
    let n = ffi::Rf_xlength(value);
    if n == 2 && ffi::INTEGER_ELT(value, 0) == i32::MIN {
        return Some(u64::from(ffi::INTEGER_ELT(value, 1).unsigned_abs()));
    }
    (0..n)
        .all(|i| ffi::INTEGER_ELT(value, i) as isize == i + 1)
        .then_some(n as u64)
}

/// `function(x) y` in code carries its source as a fourth element.
unsafe fn code_length(x: SEXP) -> usize {
    let head = ffi::CAR(x);
    let n = pairs_length(x);
    let is_function =
        ffi::TYPEOF(head) == SEXPTYPE::SYMSXP && chars(ffi::PRINTNAME(head)) == b"function";
    if is_function {
        n.min(3)
    } else {
        n
    }
}

unsafe fn pairs_length(mut x: SEXP) -> usize {
    let mut n = 0;
    while matches!(
        ffi::TYPEOF(x),
        SEXPTYPE::LISTSXP | SEXPTYPE::LANGSXP | SEXPTYPE::DOTSXP
    ) {
        n += 1;
        x = ffi::CDR(x);
    }
    n
}

/// The name of a symbol; code that was put together by hand has other things
/// where a symbol belongs, and those have no name.
unsafe fn symbol(x: SEXP) -> String {
    if ffi::TYPEOF(x) != SEXPTYPE::SYMSXP {
        return String::new();
    }
    match crate::convert::utf8(ffi::PRINTNAME(x)) {
        Ok(text) => text.into_owned(),
        Err(_) => String::from_utf8_lossy(chars(ffi::PRINTNAME(x))).into_owned(),
    }
}

unsafe fn chars<'a>(s: SEXP) -> &'a [u8] {
    std::slice::from_raw_parts(ffi::R_CHAR(s).cast::<u8>(), ffi::Rf_xlength(s) as usize)
}

/// The first argument of a call, R's NULL when it has none.
unsafe fn first_argument(call: SEXP) -> SEXP {
    ffi::CAR(ffi::CDR(call))
}

/// The first element of a character vector, empty when there is none.
unsafe fn first_text(x: SEXP) -> String {
    if ffi::Rf_xlength(x) < 1 {
        return String::new();
    }
    String::from_utf8_lossy(chars(ffi::STRING_ELT(x, 0))).into_owned()
}

/// Names that are local at a place in the code.
#[derive(Clone, Default)]
struct Scope(BTreeSet<String>);

/// What code takes from outside. A name is local from where it is assigned on, so
/// `n <- n + 1` takes `n` from outside.
#[derive(Default)]
struct Names {
    used: BTreeSet<String>,
    called: BTreeSet<String>,
    assigned: BTreeSet<String>,
    depth: usize,
}

impl Names {
    unsafe fn function(&mut self, mut formals: SEXP, body: SEXP, around: &Scope) {
        let mut scope = around.clone();
        let mut defaults = Vec::new();
        while ffi::TYPEOF(formals) == SEXPTYPE::LISTSXP {
            scope.0.insert(symbol(ffi::TAG(formals)));
            defaults.push(ffi::CAR(formals));
            formals = ffi::CDR(formals);
        }
        for default in defaults {
            self.code(default, &mut scope);
        }
        self.code(body, &mut scope);
    }

    unsafe fn code(&mut self, x: SEXP, scope: &mut Scope) {
        if self.depth == DEEPEST {
            return;
        }
        self.depth += 1;
        self.part(x, scope);
        self.depth -= 1;
    }

    unsafe fn part(&mut self, x: SEXP, scope: &mut Scope) {
        match ffi::TYPEOF(x) {
            SEXPTYPE::SYMSXP => {
                let name = symbol(x);
                if !name.is_empty() && !scope.0.contains(&name) {
                    self.used.insert(name);
                }
            }
            SEXPTYPE::BCODESXP => self.code(R_BytecodeExpr(x), scope),
            SEXPTYPE::LANGSXP => self.call(x, scope),
            SEXPTYPE::EXPRSXP => {
                for i in 0..ffi::Rf_xlength(x) {
                    self.code(ffi::VECTOR_ELT(x, i), scope);
                }
            }
            _ => {}
        }
    }

    unsafe fn call(&mut self, x: SEXP, scope: &mut Scope) {
        let head = ffi::CAR(x);
        let args = ffi::CDR(x);
        let name = match ffi::TYPEOF(head) {
            SEXPTYPE::SYMSXP => symbol(head),
            SEXPTYPE::STRSXP => first_text(head),
            _ => {
                self.code(head, scope);
                String::new()
            }
        };
        if !name.is_empty() && !scope.0.contains(&name) {
            self.called.insert(name.clone());
        }
        match name.as_str() {
            "quote" | "::" | ":::" => {}
            "$" | "@" => self.code(ffi::CAR(args), scope),
            "function" => self.function(ffi::CAR(args), ffi::CAR(ffi::CDR(args)), scope),
            "<-" | "=" => {
                self.code(ffi::CAR(ffi::CDR(args)), scope);
                self.target(ffi::CAR(args), scope, false);
            }
            "<<-" => {
                self.code(ffi::CAR(ffi::CDR(args)), scope);
                self.target(ffi::CAR(args), scope, true);
            }
            "for" => {
                let rest = ffi::CDR(args);
                self.code(ffi::CAR(rest), scope);
                scope.0.insert(symbol(ffi::CAR(args)));
                self.code(ffi::CAR(ffi::CDR(rest)), scope);
            }
            "assign" => {
                let first = ffi::CAR(args);
                if ffi::TYPEOF(first) == SEXPTYPE::STRSXP && ffi::Rf_xlength(first) == 1 {
                    self.assigned.insert(first_text(first));
                }
                self.each(args, scope);
            }
            _ => self.each(args, scope),
        }
    }

    unsafe fn each(&mut self, mut args: SEXP, scope: &mut Scope) {
        while ffi::TYPEOF(args) == SEXPTYPE::LISTSXP || ffi::TYPEOF(args) == SEXPTYPE::LANGSXP {
            self.code(ffi::CAR(args), scope);
            args = ffi::CDR(args);
        }
    }

    /// The variable that `x[i]$y <- value` changes; all but a plain name is read.
    unsafe fn target(&mut self, x: SEXP, scope: &mut Scope, outside: bool) {
        let plain = ffi::TYPEOF(x) != SEXPTYPE::LANGSXP;
        if !plain {
            self.code(x, scope);
        }
        let mut at = x;
        while ffi::TYPEOF(at) == SEXPTYPE::LANGSXP {
            at = first_argument(at);
        }
        let name = match ffi::TYPEOF(at) {
            SEXPTYPE::SYMSXP => symbol(at),
            SEXPTYPE::STRSXP => first_text(at),
            _ => return,
        };
        if outside {
            if !scope.0.contains(&name) {
                self.used.insert(name.clone());
                self.assigned.insert(name);
            }
        } else {
            scope.0.insert(name);
        }
    }
}

extendr_module! {
    mod code;
    fn rs_hash_object;
    fn rs_free_names;
}
