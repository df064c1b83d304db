//! Which words are near a word that somebody may have misspelt.

/// The words that are near, the nearest first: those that the word begins, and those
/// within a third of its letters by edit distance, letter case apart.
pub(crate) fn near<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    // Longer than any name: what is near such a word is not worth the time.
    let low: String = word.to_lowercase().chars().take(MOST).collect();
    let letters = low.chars().count();
    let mut found: Vec<(usize, &str)> = candidates
        .filter_map(|c| {
            let cl: String = c.to_lowercase().chars().take(MOST).collect();
            let prefix = letters >= 3 && cl.starts_with(&low);
            let d = distance(&low, &cl);
            (prefix || d * 3 <= letters.max(3)).then_some((d, c))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, c)| c).collect()
}

/// The nearest of them.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    near(word, candidates).first().copied()
}

const MOST: usize = 128;

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, d) in [
            ("", "", 0),
            ("a", "", 1),
            ("kitten", "sitting", 3),
            ("\u{e9}", "e", 1),
        ] {
            assert_eq!(distance(a, b), d);
        }
    }

    #[test]
    fn names_far_from_all_have_no_nearest() {
        let names = ["lookup_stock", "place_order"];
        assert_eq!(
            nearest("lookup_stok", names.into_iter()),
            Some("lookup_stock")
        );
        assert_eq!(nearest("weather", names.into_iter()), None);
        assert_eq!(nearest(&"x".repeat(100_000), names.into_iter()), None);
    }

    #[test]
    fn all_that_are_near_come_in_order() {
        let names = ["reads", "write", "raed", "Read", "read_all"];
        let found = near("read", names.into_iter());
        assert_eq!(found, ["Read", "reads", "read_all"]);
    }
}
