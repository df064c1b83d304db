//! Heads: those that a trail must hold, and those that it has.

use super::{Chain, Finding, FindingKind, Head, Line, Verifier};
use crate::journal::RunId;

impl Verifier {
    pub(super) fn note_heads(&mut self, line: &Line<'_>, computed: &[u8; 64]) {
        let mut other = false;
        for (head, text, seen) in &mut self.heads {
            if text == computed {
                *seen = true;
            } else if let Some((run, seq)) = &head.place {
                if *seq == line.seq && run.as_str() == line.run {
                    *seen = true;
                    other = true;
                }
            }
        }
        if other {
            let what = "a known head has another digest for this record".to_owned();
            self.find(FindingKind::Head, Some(line.run), Some(line.seq), what);
        }
    }

    /// Known heads that the trail does not hold.
    pub(super) fn miss_heads(&mut self) {
        let unseen: Vec<Head> = self
            .heads
            .iter()
            .filter(|h| !h.2)
            .map(|h| h.0.clone())
            .collect();
        for head in unseen {
            let finding = match &head.place {
                Some((run, seq)) => {
                    let next = self.next_of(run.as_str());
                    Finding {
                        kind: FindingKind::Cut,
                        line: None,
                        run: Some(run.to_string()),
                        seq: Some(next),
                        what: format!(
                            "records {next} to {seq} are missing: a known head names {seq}"
                        ),
                    }
                }
                None => Finding {
                    kind: FindingKind::Cut,
                    line: None,
                    run: None,
                    seq: None,
                    what: format!("no record has the digest {} of a known head", head.digest),
                },
            };
            self.findings.push(finding);
        }
    }

    fn next_of(&self, run: &str) -> u64 {
        match (&self.own, self.index.get(run)) {
            (Some((own, chain)), _) if own == run => chain.next,
            (_, Some(at)) => self.slots[*at].chain.next,
            _ => 0,
        }
    }

    pub(super) fn current_heads(&self) -> Vec<Head> {
        let own = self
            .own
            .iter()
            .filter_map(|(run, chain)| head_of(run, chain));
        let mut open: Vec<&usize> = self.index.values().collect();
        open.sort_unstable();
        let open = open.into_iter().filter_map(|at| {
            let slot = &self.slots[*at];
            head_of(&slot.run, &slot.chain)
        });
        own.chain(self.ended_heads.iter().cloned())
            .chain(open)
            .collect()
    }
}

pub(super) fn head_of(run: &str, chain: &Chain) -> Option<Head> {
    let run = RunId::new(run).ok()?;
    let digest = std::str::from_utf8(&chain.stated).ok()?.parse().ok()?;
    Some(Head {
        place: Some((run, chain.next.checked_sub(1)?)),
        digest,
    })
}
