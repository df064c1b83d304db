//! Lists of fixed fields, built straight in R's memory: a call makes two of them,
//! and going through owned wrappers for each element costs more than the rest.
#![allow(unsafe_code)]

use extendr_api::prelude::*;
use extendr_ffi as ffi;
use ffi::{SEXP, SEXPTYPE};
use std::cell::RefCell;
use std::collections::HashMap;

/// A list under construction. Invariant: `list` is protected until it is finished.
pub(crate) struct Fields {
    list: SEXP,
    at: isize,
}

thread_local! {
    /// Names and classes that were made once and are kept by R for good.
    static KEPT: RefCell<HashMap<usize, SEXP>> = RefCell::new(HashMap::new());
}

impl Fields {
    /// A list with these names, and a class where there is one.
    pub(crate) fn new(names: &'static [&'static str], class: &'static [&'static str]) -> Self {
        // SAFETY: what is allocated is protected before anything else is; a
        // thread other than R's never gets here.
        unsafe {
            let list = ffi::Rf_protect(ffi::Rf_allocVector(SEXPTYPE::VECSXP, names.len() as isize));
            ffi::Rf_setAttrib(list, ffi::R_NamesSymbol, kept(names));
            if !class.is_empty() {
                ffi::Rf_setAttrib(list, ffi::R_ClassSymbol, kept(class));
            }
            Self { list, at: 0 }
        }
    }

    /// The next field is a text.
    pub(crate) fn text(mut self, text: &str) -> Self {
        // SAFETY: the new vector is reachable from the protected list at once, or
        // protected while its element is made.
        unsafe {
            let cell = ffi::Rf_protect(ffi::Rf_allocVector(SEXPTYPE::STRSXP, 1));
            ffi::SET_STRING_ELT(cell, 0, chars(text));
            self.set(cell);
            ffi::Rf_unprotect(1);
        }
        self
    }

    /// The next field is a text, or NA.
    pub(crate) fn text_or_na(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(text),
            None => self.robj(&Rstr::na().into()),
        }
    }

    /// The next field is some texts.
    pub(crate) fn texts(mut self, texts: &[String]) -> Self {
        // SAFETY: as in `text`.
        unsafe {
            let cells =
                ffi::Rf_protect(ffi::Rf_allocVector(SEXPTYPE::STRSXP, texts.len() as isize));
            for (i, text) in texts.iter().enumerate() {
                ffi::SET_STRING_ELT(cells, i as isize, chars(text));
            }
            self.set(cells);
            ffi::Rf_unprotect(1);
        }
        self
    }

    /// The next field is a number.
    pub(crate) fn number(mut self, x: f64) -> Self {
        // SAFETY: as in `text`.
        unsafe {
            let cell = ffi::Rf_allocVector(SEXPTYPE::REALSXP, 1);
            *ffi::REAL(cell) = x;
            self.set(cell);
        }
        self
    }

    /// The next field is true or false.
    pub(crate) fn flag(mut self, x: bool) -> Self {
        // SAFETY: as in `text`.
        unsafe {
            let cell = ffi::Rf_allocVector(SEXPTYPE::LGLSXP, 1);
            *ffi::LOGICAL(cell) = i32::from(x);
            self.set(cell);
        }
        self
    }

    /// The next field is any R value.
    pub(crate) fn robj(mut self, x: &Robj) -> Self {
        // SAFETY: `x` is protected by its owner.
        unsafe { self.set(x.get()) };
        self
    }

    /// The next field stays NULL.
    pub(crate) fn null(mut self) -> Self {
        self.at += 1;
        self
    }

    /// The list.
    pub(crate) fn finish(self) -> Robj {
        // SAFETY: the wrapper protects the list before it is let go here.
        unsafe {
            let robj = Robj::from_sexp(self.list);
            ffi::Rf_unprotect(1);
            robj
        }
    }

    unsafe fn set(&mut self, cell: SEXP) {
        debug_assert!(self.at < ffi::Rf_xlength(self.list));
        ffi::SET_VECTOR_ELT(self.list, self.at, cell);
        self.at += 1;
    }
}

/// A CHARSXP; R's strings end at NUL.
unsafe fn chars(text: &str) -> SEXP {
    let clean;
    let text = if text.contains('\0') {
        clean = text.replace('\0', "\u{fffd}");
        &clean
    } else {
        text
    };
    ffi::Rf_mkCharLenCE(
        text.as_ptr().cast(),
        text.len() as i32,
        ffi::cetype_t::CE_UTF8,
    )
}

unsafe fn kept(words: &'static [&'static str]) -> SEXP {
    let place = words.as_ptr() as usize;
    if let Some(made) = KEPT.with_borrow(|k| k.get(&place).copied()) {
        return made;
    }
    let made = ffi::Rf_protect(ffi::Rf_allocVector(SEXPTYPE::STRSXP, words.len() as isize));
    for (i, word) in words.iter().enumerate() {
        ffi::SET_STRING_ELT(made, i as isize, chars(word));
    }
    ffi::R_PreserveObject(made);
    // Many lists share it, so none may change it in place.
    ffi::MARK_NOT_MUTABLE(made);
    ffi::Rf_unprotect(1);
    KEPT.with_borrow_mut(|k| k.insert(place, made));
    made
}
