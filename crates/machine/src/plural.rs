//! Words that agree with a number.

use std::fmt::Display;

/// A count with its word: `1 core`, `2 cores`, `4 CPUs`.
pub fn plural<N: Display + PartialEq + From<u8>>(count: N, word: &str) -> String {
    let ending = by_count(&count, "", "s");
    format!("{count} {word}{ending}")
}

/// The one word for one thing, the other for any other number: `differs`, `differ`.
pub fn by_count<'w, N: PartialEq + From<u8>>(count: &N, one: &'w str, several: &'w str) -> &'w str {
    if *count == N::from(1) { one } else { several }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_agree_with_their_number() {
        let check = |count: u32, expected: &str| {
            assert_eq!(
                format!("{} {}", plural(count, "pair"), by_count(&count, "differs", "differ")),
                expected
            );
        };
        check(0, "0 pairs differ");
        check(1, "1 pair differs");
        check(2, "2 pairs differ");
        assert_eq!(plural(1_usize, "node"), "1 node");
    }
}
