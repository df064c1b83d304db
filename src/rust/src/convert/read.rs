//! Named lists, looked into where R keeps them: an owned wrapper for each element
//! costs more than what is read from it.
#![allow(unsafe_code)]

use super::{from_r, Error};
use extendr_api::prelude::*;
use extendr_ffi as ffi;
use ffi::{SEXP, SEXPTYPE};
use serde_json::Value;
use std::marker::PhantomData;

/// The elements of a list by name. What is no list has none.
#[derive(Clone, Copy)]
pub(crate) struct Members<'a> {
    list: SEXP,
    names: SEXP,
    owner: PhantomData<&'a Robj>,
}

impl<'a> Members<'a> {
    /// Looks into a list, which lives as long as what is read from it.
    pub(crate) fn of(x: &'a Robj) -> Self {
        // SAFETY: `x` is protected by its owner for 'a.
        unsafe { Self::at(x.get()) }
    }

    unsafe fn at(list: SEXP) -> Self {
        let named = ffi::TYPEOF(list) == SEXPTYPE::VECSXP;
        let names = if named {
            ffi::Rf_getAttrib(list, ffi::R_NamesSymbol)
        } else {
            ffi::R_NilValue
        };
        Self {
            list,
            names,
            owner: PhantomData,
        }
    }

    /// Where the first element of this name is; NULL is none.
    fn find(&self, name: &str) -> Option<SEXP> {
        // SAFETY: names and elements are reachable from the list, which is protected.
        unsafe {
            if ffi::TYPEOF(self.names) != SEXPTYPE::STRSXP {
                return None;
            }
            let n = ffi::Rf_xlength(self.names);
            let i = (0..n).find(|i| bytes(ffi::STRING_ELT(self.names, *i)) == name.as_bytes())?;
            let found = ffi::VECTOR_ELT(self.list, i);
            (ffi::TYPEOF(found) != SEXPTYPE::NILSXP).then_some(found)
        }
    }

    /// One string of that name.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        // SAFETY: as in `find`.
        unsafe {
            let x = self.find(name)?;
            if ffi::TYPEOF(x) != SEXPTYPE::STRSXP || ffi::Rf_xlength(x) != 1 {
                return None;
            }
            let s = ffi::STRING_ELT(x, 0);
            if s == ffi::R_NaString {
                return None;
            }
            from_r::text(s).ok().map(|text| text.into_owned())
        }
    }

    /// One number of that name.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        // SAFETY: as in `find`.
        unsafe {
            let x = self.find(name)?;
            match ffi::TYPEOF(x) {
                _ if ffi::Rf_xlength(x) != 1 => None,
                SEXPTYPE::REALSXP => Some(ffi::REAL_ELT(x, 0)).filter(|x| !x.is_nan()),
                SEXPTYPE::INTSXP => Some(ffi::INTEGER_ELT(x, 0))
                    .filter(|i| *i != i32::MIN)
                    .map(f64::from),
                _ => None,
            }
        }
    }

    /// TRUE of that name.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        // SAFETY: as in `find`.
        unsafe {
            self.find(name).is_some_and(|x| {
                ffi::TYPEOF(x) == SEXPTYPE::LGLSXP
                    && ffi::Rf_xlength(x) == 1
                    && ffi::LOGICAL_ELT(x, 0) == 1
            })
        }
    }

    /// The JSON value of what has that name; nothing for NULL.
    pub(crate) fn value(&self, name: &str) -> Result<Option<Value>, Error> {
        // SAFETY: as in `find`; the walk only reads.
        self.find(name)
            .map(|x| unsafe { from_r::value(x, 0) })
            .transpose()
    }

    /// What has that name, owned; nothing for NULL.
    pub(crate) fn get(&self, name: &str) -> Option<Robj> {
        // SAFETY: the wrapper protects it.
        self.find(name).map(|x| unsafe { Robj::from_sexp(x) })
    }

    /// Whether there is an element of that name, and be it NULL.
    pub(crate) fn has(&self, name: &str) -> bool {
        // SAFETY: as in `find`.
        unsafe {
            ffi::TYPEOF(self.names) == SEXPTYPE::STRSXP
                && (0..ffi::Rf_xlength(self.names))
                    .any(|i| bytes(ffi::STRING_ELT(self.names, i)) == name.as_bytes())
        }
    }

    /// The list of that name; one without elements where it is no list.
    pub(crate) fn list(&self, name: &str) -> Members<'a> {
        // SAFETY: it is reachable from the list, which is protected for 'a.
        unsafe { Self::at(self.find(name).unwrap_or(ffi::R_NilValue)) }
    }

    /// The lists in a list.
    pub(crate) fn items(&self) -> Vec<Members<'a>> {
        // SAFETY: as in `list`.
        unsafe {
            if ffi::TYPEOF(self.list) != SEXPTYPE::VECSXP {
                return Vec::new();
            }
            (0..ffi::Rf_xlength(self.list))
                .map(|i| Self::at(ffi::VECTOR_ELT(self.list, i)))
                .collect()
        }
    }
}

unsafe fn bytes<'a>(s: SEXP) -> &'a [u8] {
    std::slice::from_raw_parts(ffi::R_CHAR(s).cast::<u8>(), ffi::Rf_xlength(s) as usize)
}
