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
    static WORDS: RefCell<HashMap<(usize, usize), SEXP>> = RefCell::new(HashMap::new());
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

    /// The next field is a word of a fixed set: made once, and shared.
    pub(crate) fn word(mut self, word: &'static str) -> Self {
        // SAFETY: what is kept is protected for good.
        unsafe { self.set(kept_word(word)) };
        self
    }

    /// The next field is a word of a fixed set, or NA.
    pub(crate) fn word_or_na(self, word: Option<&'static str>) -> Self {
        match word {
            Some(word) => self.word(word),
            None => self.robj(&Rstr::na().into()),
        }
    }

    /// The next field is some texts.
    pub(crate) fn texts<T: AsRef<str>>(mut self, texts: &[T]) -> Self {
        // SAFETY: as in `text`.
        unsafe {
            let cells =
                ffi::Rf_protect(ffi::Rf_allocVector(SEXPTYPE::STRSXP, texts.len() as isize));
            for (i, text) in texts.iter().enumerate() {
                ffi::SET_STRING_ELT(cells, i as isize, chars(text.as_ref()));
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

    /// The next field is a count: an integer, or a double past 2^31.
    pub(crate) fn count(mut self, n: u64) -> Self {
        let Ok(n) = i32::try_from(n) else {
            return self.number(n as f64);
        };
        // SAFETY: as in `text`.
        unsafe {
            let cell = ffi::Rf_allocVector(SEXPTYPE::INTSXP, 1);
            *ffi::INTEGER(cell) = n;
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

    /// The next field is a text, or NULL.
    pub(crate) fn text_or_null(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(text),
            None => self.null(),
        }
    }

    /// The next field is texts with names.
    pub(crate) fn named_texts(mut self, texts: &[(String, &str)]) -> Self {
        // SAFETY: both vectors are protected while their elements are made.
        unsafe {
            let n = texts.len() as isize;
            let cells = ffi::Rf_protect(ffi::Rf_allocVector(SEXPTYPE::STRSXP, n));
            let names = ffi::Rf_protect(ffi::Rf_allocVector(SEXPTYPE::STRSXP, n));
            for (i, (name, text)) in texts.iter().enumerate() {
                ffi::SET_STRING_ELT(names, i as isize, chars(name));
                ffi::SET_STRING_ELT(cells, i as isize, chars(text));
            }
            ffi::Rf_setAttrib(cells, ffi::R_NamesSymbol, names);
            self.set(cells);
            ffi::Rf_unprotect(2);
        }
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

unsafe fn kept_word(word: &'static str) -> SEXP {
    let place = (word.as_ptr() as usize, word.len());
    if let Some(made) = WORDS.with_borrow(|k| k.get(&place).copied()) {
        return made;
    }
    let made = keep(&[word]);
    WORDS.with_borrow_mut(|k| k.insert(place, made));
    made
}

unsafe fn kept(words: &'static [&'static str]) -> SEXP {
    let place = words.as_ptr() as usize;
    if let Some(made) = KEPT.with_borrow(|k| k.get(&place).copied()) {
        return made;
    }
    let made = keep(words);
    KEPT.with_borrow_mut(|k| k.insert(place, made));
    made
}

/// Texts that R keeps for good.
unsafe fn keep(words: &[&str]) -> SEXP {
    let made = ffi::Rf_protect(ffi::Rf_allocVector(SEXPTYPE::STRSXP, words.len() as isize));
    for (i, word) in words.iter().enumerate() {
        ffi::SET_STRING_ELT(made, i as isize, chars(word));
    }
    ffi::R_PreserveObject(made);
    // Many lists share it, so none may change it in place.
    ffi::MARK_NOT_MUTABLE(made);
    ffi::Rf_unprotect(1);
    made
}
