//! Largest pairings between two lists: optimal, not greedy.

use std::collections::VecDeque;

/// For each entry on the right its partner on the left, in a pairing with the
/// most pairs (augmenting paths; Berge 1957). No pair of `left` is dropped for a
/// later one, so earlier entries keep a partner where they can.
pub(crate) fn pairing(
    left: usize,
    right: usize,
    pair: impl Fn(usize, usize) -> bool,
) -> Vec<Option<usize>> {
    let mut partner = vec![None; right];
    for start in 0..left {
        if let Some(path) = augmenting(start, &partner, &pair) {
            for (l, r) in path {
                partner[r] = Some(l);
            }
        }
    }
    partner
}

/// The pairs to set so that `start` gets a partner too.
fn augmenting(
    start: usize,
    partner: &[Option<usize>],
    pair: &impl Fn(usize, usize) -> bool,
) -> Option<Vec<(usize, usize)>> {
    // For each right entry the left one from which the search reached it.
    let mut from: Vec<Option<usize>> = vec![None; partner.len()];
    let mut queue = VecDeque::from([start]);
    while let Some(l) = queue.pop_front() {
        for r in 0..partner.len() {
            if from[r].is_some() || !pair(l, r) {
                continue;
            }
            from[r] = Some(l);
            match partner[r] {
                Some(taken) => queue.push_back(taken),
                None => return Some(path_back(start, r, partner, &from)),
            }
        }
    }
    None
}

fn path_back(
    start: usize,
    end: usize,
    partner: &[Option<usize>],
    from: &[Option<usize>],
) -> Vec<(usize, usize)> {
    let mut path = Vec::new();
    let mut r = end;
    while let Some(l) = from[r] {
        path.push((l, r));
        if l == start {
            break;
        }
        match partner.iter().position(|&p| p == Some(l)) {
            Some(before) => r = before,
            None => break,
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_greedy_choice_is_revised() {
        // 0 fits both, 1 fits only the first.
        let partner = pairing(2, 2, |l, r| l == 0 || r == 0);
        assert_eq!(partner, [Some(1), Some(0)]);
    }

    fn best(left: usize, used: u32, pair: &[Vec<bool>]) -> usize {
        if left == pair.len() {
            return 0;
        }
        let without = best(left + 1, used, pair);
        let with = (0..pair[left].len())
            .filter(|&r| pair[left][r] && used & (1 << r) == 0)
            .map(|r| 1 + best(left + 1, used | 1 << r, pair));
        with.max().unwrap_or(0).max(without)
    }

    proptest! {
        #[test]
        fn no_pairing_has_more_pairs(
            pair in (1usize..6, 1usize..6).prop_flat_map(|(l, r)| {
                prop::collection::vec(prop::collection::vec(any::<bool>(), r), l)
            })
        ) {
            let partner = pairing(pair.len(), pair[0].len(), |l, r| pair[l][r]);
            let mut lefts: Vec<usize> = partner.iter().flatten().copied().collect();
            prop_assert!(partner.iter().enumerate().all(|(r, l)| l.is_none_or(|l| pair[l][r])));
            prop_assert_eq!(lefts.len(), best(0, 0, &pair));
            lefts.sort_unstable();
            lefts.dedup();
            prop_assert_eq!(lefts.len(), partner.iter().flatten().count());
        }
    }
}
