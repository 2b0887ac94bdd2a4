//! Sizes, shares and bars in few cells.

use nodewise_machine::Bytes;
use nodewise_view::digest::running::words;

/// A size as views write it, without the blank and the `iB` of its unit: `48.2G`.
pub(crate) fn size(size: Bytes) -> String {
    if size == Bytes::new(0) {
        return "0".to_owned();
    }
    size.to_string().replace(" B", "B").replace(' ', "").replace("iB", "")
}

/// A share in whole percent: `74`. More than nothing and less than half a percent is `<1`.
pub(crate) fn whole_percent(share: f64) -> String {
    if share > 0.0 && share < 0.005 { "<1".to_owned() } else { format!("{:.0}", share * 100.0) }
}

/// A rate in at most five cells: `812`, `9.1k`, `12M`.
pub(crate) fn short(rate: f64) -> String {
    for (least, unit) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if rate >= least * 0.9995 {
            let value = rate / least;
            return if value < 9.95 { format!("{value:.1}{unit}") } else { format!("{value:.0}{unit}") };
        }
    }
    words::short(rate)
}

/// A bar for a share from 0 to 1: `[####----]`. Only all of it fills it, and only none leaves it empty.
pub(crate) fn bar(share: f64, inside: usize) -> String {
    let share = share.clamp(0.0, 1.0);
    let mut filled = (share * inside as f64).round() as usize;
    if share > 0.0 {
        filled = filled.max(1);
    }
    if share < 1.0 {
        filled = filled.min(inside.saturating_sub(1));
    }
    let filled = filled.min(inside);
    format!("[{}{}]", "#".repeat(filled), "-".repeat(inside - filled))
}

/// A share in one digit: tenths, `*` from 95 % on.
pub(crate) fn digit(share: Option<f64>) -> char {
    match share {
        None => '.',
        Some(share) if share >= 0.95 => '*',
        Some(share) => char::from_digit((share * 10.0).clamp(0.0, 9.0) as u32, 10).unwrap_or('9'),
    }
}

/// A share as the height of a bar in one cell: less than an eighth is the lowest. A blank where it is not known.
pub(crate) fn height(share: Option<f64>) -> char {
    const HEIGHTS: [char; 8] =
        ['\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];
    share.map_or(' ', |share| HEIGHTS[((share * 8.0).clamp(0.0, 7.0)) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_few_cells() {
        assert_eq!(size(Bytes::from_mib(49_357)), "48.2G");
        assert_eq!(size(Bytes::new(37)), "37B");
        let rates = [0.0, 0.44, 9.96, 812.4, 999.6, 9_114.0, 81_203.0, 12e6, 3e9].map(short);
        assert_eq!(rates, ["0", "0.4", "10", "812", "1.0k", "9.1k", "81k", "12M", "3.0G"]);
        assert_eq!([0.0, 0.003, 0.2, 1.0].map(whole_percent), ["0", "<1", "20", "100"]);
    }

    #[test]
    fn a_bar_is_empty_or_full_only_at_the_ends() {
        assert_eq!(bar(0.0, 4), "[----]");
        assert_eq!(bar(0.01, 4), "[#---]");
        assert_eq!(bar(0.99, 4), "[###-]");
        assert_eq!(bar(1.0, 4), "[####]");
        assert_eq!(bar(7.0, 4), "[####]");
        assert_eq!(bar(f64::NAN, 4), "[----]");
        assert_eq!(bar(0.5, 0), "[]");
        let heights = [Some(0.0), Some(0.5), Some(0.99), Some(7.0), Some(f64::NAN), None].map(height);
        assert_eq!(heights, ['\u{2581}', '\u{2585}', '\u{2588}', '\u{2588}', '\u{2581}', ' ']);
        assert_eq!(
            [Some(0.0), Some(0.19), Some(0.94), Some(1.0), None].map(digit),
            ['0', '1', '9', '*', '.']
        );
    }
}
