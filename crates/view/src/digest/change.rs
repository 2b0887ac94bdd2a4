//! Changes in words: how much faster, between which bounds, and what was in the way of knowing better.

use nodewise_stats::Direction;
use nodewise_stats::Interval;

/// The least share of the CPUs' time that is worth a word when a hypervisor took it from a run.
const STOLEN: f64 = 0.01;

/// A ratio as a change with this many digits behind the point: 1.0846 is `+8.46 %`.
pub fn change_words(ratio: f64, digits: usize) -> String {
    if ratio >= 1e4 {
        return format!("x {ratio:.1e}");
    }
    let change = (ratio - 1.0) * 100.0;
    let text = format!("{change:+.digits$}");
    // What rounds to nothing has no sign.
    let is_nothing = text.bytes().all(|byte| !(b'1'..=b'9').contains(&byte));
    if is_nothing { format!("{:.digits$} %", 0.0) } else { format!("{text} %") }
}

/// An interval of ratios as changes: `+7.0..+9.9 %`.
pub fn range_words(interval: Interval) -> String {
    let low = change_words(interval.low, 1);
    format!("{}..{}", low.trim_end_matches(" %"), change_words(interval.high, 1))
}

/// Which way is better, for programs.
pub const fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::LowerIsBetter => "lower",
        Direction::HigherIsBetter => "higher",
    }
}

/// The most that a hypervisor took from a run, as a sentence; `None` where it is not worth one. The shares
/// are of the CPUs' time.
pub fn stolen_words(shares: impl Iterator<Item = f64>) -> Option<String> {
    let worst = shares.fold(0.0, f64::max);
    (worst >= STOLEN).then(|| format!("steal time: up to {:.1} % per run", worst * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_a_sign_unless_they_are_nothing() {
        for (ratio, digits, words) in [
            (1.0846, 2, "+8.46 %"),
            (1.0196, 1, "+2.0 %"),
            (0.87, 1, "-13.0 %"),
            (1.0, 1, "0.0 %"),
            (1.0001, 1, "0.0 %"),
            (0.99996, 1, "0.0 %"),
            (2.64, 0, "+164 %"),
            (1e90, 1, "x 1.0e90"),
        ] {
            assert_eq!(change_words(ratio, digits), words);
        }
        assert_eq!(range_words(Interval { low: 0.97, high: 1.011 }), "-3.0..+1.1 %");
    }

    #[test]
    fn little_that_was_stolen_is_not_told() {
        assert_eq!(stolen_words([0.0, 0.009].into_iter()), None);
        let told = stolen_words([0.031, 0.5, 0.0].into_iter()).unwrap();
        assert_eq!(told, "steal time: up to 50.0 % per run");
    }
}
