//! The word that was probably meant by a mistyped one.

use std::cmp::Reverse;

/// The candidate with the fewest slips of the finger from what was typed, where there are few enough for its
/// length: one, and one more for every four letters. Of several as near the one that has all that was typed, and
/// more, and then the one that begins alike.
pub fn nearest<'c>(typed: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let letters: Vec<char> = typed.chars().collect();
    let most = 1 + letters.len() / 4;
    let near = candidates.into_iter().filter_map(|candidate| {
        // Each letter of difference in length is a slip already.
        let may_be = candidate.chars().count().abs_diff(letters.len()) <= most;
        let slips = may_be.then(|| slips(&letters, &candidate.chars().collect::<Vec<_>>()))?;
        (slips <= most && slips < letters.len()).then_some((slips, candidate))
    });
    let alike =
        |candidate: &str| candidate.chars().zip(&letters).take_while(|(c, typed)| c == *typed).count();
    let holds = |candidate: &str| {
        let mut rest = candidate.chars();
        letters.iter().all(|typed| rest.any(|letter| letter == *typed))
    };
    let rank =
        |(slips, candidate): &(usize, &str)| (*slips, Reverse(holds(candidate)), Reverse(alike(candidate)));
    near.min_by_key(rank).map(|(_, candidate)| candidate)
}

/// Letters left out, put in, exchanged for another or with their neighbour: the optimal string alignment
/// distance, which `strsim` has too, but a jaro distance is what clap suggests by, and that calls `numactl`
/// nearer to `numastats` than `numastat`.
fn slips(from: &[char], to: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (i, letter) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, other) in to.iter().enumerate() {
            let exchanged = last[j] + usize::from(letter != other);
            let mut least = exchanged.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == to[j - 1] && from[i - 1] == *other {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERBS: [&str; 9] =
        ["show", "shm", "run", "tune", "zonelist", "zones", "numactl", "numastat", "memhog"];

    #[test]
    fn the_nearest_word_is_found_and_no_word_that_is_far() {
        for (typed, expected) in [
            ("shw", Some("show")),
            ("shwo", Some("show")),
            ("tun", Some("tune")),
            ("shn", Some("shm")),
            ("zone", Some("zones")),
            ("numastats", Some("numastat")),
            ("numacctl", Some("numactl")),
            ("xyzzy", None),
            ("a", None),
            ("", None),
            ("\u{1b}[2J", None),
        ] {
            assert_eq!(nearest(typed, VERBS), expected, "{typed}");
        }
    }

    #[test]
    fn slips_are_counted() {
        for (from, to, expected) in [
            ("", "", 0),
            ("a", "", 1),
            ("", "ab", 2),
            ("ab", "ba", 1),
            ("kitten", "sitting", 3),
            ("abc", "abc", 0),
        ] {
            let letters = |text: &str| text.chars().collect::<Vec<_>>();
            assert_eq!(slips(&letters(from), &letters(to)), expected, "{from} {to}");
        }
    }
}
