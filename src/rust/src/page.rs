//! The page of a run: R lists in, HTML out.

use crate::fault::guard;
use crate::run_setup::{self, unusable};
use extendr_api::prelude::*;
use warrant_core::page::{self, About, Audit, Case, Content, Fault, Judged, Kept};

// Lines of a journal, its content (NULL where only the trail is at hand), what the
// verifier found, and a judged case or NULL.
#[extendr]
fn rs_run_page(lines: Robj, content: Robj, audit: Robj, case: Robj, about: Robj) -> Robj {
    guard(|| {
        let lines = Strings::try_from(&lines).map_err(|e| unusable("a journal", e))?;
        let (content, kept) = match content.is_null() {
            true => (Content::new(), Kept::Trail),
            false => (run_setup::values(&content).0, Kept::Values),
        };
        let about = About {
            audit: audit_of(&audit, kept),
            case: (!case.is_null()).then(|| case_of(&case)),
            max_bytes: number(&about, "max_bytes")
                .first()
                .map_or(0, |n| *n as usize),
            version: texts(&about, "version").concat(),
        };
        Ok(page::write(
            lines.iter().map(|l| l.as_ref()),
            &content,
            &about,
        ))
    })
}

fn audit_of(x: &Robj, content: Kept) -> Audit {
    let (kinds, whats, seqs) = (texts(x, "kind"), texts(x, "what"), number(x, "seq"));
    let faults = kinds.into_iter().zip(whats).enumerate();
    Audit {
        state: texts(x, "state").concat(),
        faults: faults
            .map(|(i, (kind, what))| Fault {
                kind,
                seq: seqs.get(i).filter(|n| !n.is_nan()).map(|n| *n as u64),
                what,
            })
            .collect(),
        not_checked: texts(x, "not_checked").concat(),
        content,
    }
}

fn case_of(x: &Robj) -> Case {
    let (verdicts, reasons) = (texts(x, "verdict"), maybe_texts(x, "reason"));
    let (evidence, steps) = (maybe_texts(x, "evidence"), texts(x, "steps"));
    let criteria = texts(x, "criterion").into_iter().enumerate();
    let one = |i: usize, from: &[Option<String>]| from.get(i).cloned().flatten();
    Case {
        id: texts(x, "id").concat(),
        verdicts: criteria
            .map(|(i, criterion)| Judged {
                criterion,
                verdict: verdicts.get(i).cloned().unwrap_or_default(),
                reason: one(i, &reasons),
                evidence: one(i, &evidence),
                steps: steps.get(i).cloned().unwrap_or_default(),
            })
            .collect(),
    }
}

fn maybe_texts(x: &Robj, name: &str) -> Vec<Option<String>> {
    let found = x.dollar(name).ok().and_then(|f| Strings::try_from(f).ok());
    let cells = found
        .into_iter()
        .flat_map(|s| s.iter().cloned().collect::<Vec<_>>());
    cells.map(|t| (!t.is_na()).then(|| t.to_string())).collect()
}

fn texts(x: &Robj, name: &str) -> Vec<String> {
    maybe_texts(x, name)
        .into_iter()
        .map(Option::unwrap_or_default)
        .collect()
}

fn number(x: &Robj, name: &str) -> Vec<f64> {
    x.dollar(name)
        .ok()
        .and_then(|n| n.as_real_vector())
        .unwrap_or_default()
}

extendr_module! {
    mod page;
    fn rs_run_page;
}
