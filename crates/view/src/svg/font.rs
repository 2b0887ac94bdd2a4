//! How wide text is, without asking a font.
//!
//! A picture is laid out here and drawn elsewhere, in whichever face of [`STACK`] the viewer has.
//! So every character is counted as wide as in the wider of two common faces, DejaVu Sans (one of
//! the widest there is) and Liberation Sans (which has the widths of Arial and Helvetica): text
//! can come out narrower than measured, but does not leave its place.

use nodewise_machine::printable::printable;

/// The faces, narrow ones first.
pub const STACK: &str = "Arial,Helvetica,'Liberation Sans','DejaVu Sans',sans-serif";

/// How heavy text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Weight {
    #[default]
    Regular,
    Bold,
}

/// A size and a weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Font {
    pub size: f64,
    pub weight: Weight,
}

/// Widths of the printable ASCII characters from the blank on, in thousandths of the size:
/// `hmtx` of DejaVu Sans 2.37 and Liberation Sans 2.1, the larger of both.
const REGULAR: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, // blank to /
    636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 556, // 0 to ?
    1015, 684, 686, 722, 770, 667, 611, 778, 752, 295, 500, 667, 557, 863, 748, 787, // @ to O
    667, 787, 722, 667, 611, 732, 684, 989, 685, 667, 685, 390, 337, 390, 838, 556, // P to _
    500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, // ` to o
    635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838, // p to ~
];

/// The same in bold.
const BOLD: [u16; 95] = [
    348, 456, 521, 838, 696, 1002, 872, 306, 457, 457, 523, 838, 380, 415, 380, 365, // blank to /
    696, 696, 696, 696, 696, 696, 696, 696, 696, 696, 400, 400, 838, 838, 838, 611, // 0 to ?
    1015, 774, 762, 734, 830, 683, 683, 821, 837, 372, 556, 775, 637, 995, 837, 850, // @ to O
    733, 850, 770, 720, 682, 812, 774, 1103, 771, 724, 725, 457, 365, 457, 838, 556, // P to _
    500, 675, 716, 593, 716, 678, 435, 716, 712, 343, 343, 665, 343, 1042, 712, 687, // ` to o
    716, 716, 493, 595, 478, 712, 652, 924, 645, 652, 582, 712, 365, 712, 838, // p to ~
];

/// The width that any other character is taken to have; few are wider.
const OTHER: u16 = 1100;

impl Font {
    /// Regular text of a size in px.
    pub const fn regular(size: f64) -> Self {
        Self { size, weight: Weight::Regular }
    }

    /// Bold text of a size in px.
    pub const fn bold(size: f64) -> Self {
        Self { size, weight: Weight::Bold }
    }

    fn char_width(self, c: char) -> f64 {
        let table = match self.weight {
            Weight::Regular => &REGULAR,
            Weight::Bold => &BOLD,
        };
        let at = (c as usize).checked_sub(0x20).and_then(|at| table.get(at));
        f64::from(at.copied().unwrap_or(OTHER)) * self.size / 1000.0
    }

    /// The width of a text in px.
    pub fn width(self, text: &str) -> f64 {
        text.chars().map(|c| self.char_width(c)).sum()
    }

    /// The text, cut and marked with `...` where it is wider than `width` px. What could drive a
    /// terminal or reorder the line is made visible first.
    pub fn fit(self, text: &str, width: f64) -> String {
        let text = printable(text);
        if self.width(&text) <= width {
            return text.into_owned();
        }
        let mut left = width - self.width("...");
        let mut cut: String = text
            .chars()
            .take_while(|c| {
                left -= self.char_width(*c);
                left >= 0.0
            })
            .collect();
        // A number that is cut reads as another number.
        if text[cut.len()..].starts_with(|c: char| c.is_ascii_digit()) {
            cut.truncate(cut.trim_end_matches(|c: char| c.is_ascii_digit()).len());
        }
        cut.truncate(cut.trim_end_matches([' ', ',', '-']).len());
        if self.width("...") <= width { cut + "..." } else { String::new() }
    }

    /// The text in at most `most` lines of `width` px, broken at blanks and after commas; the
    /// last one is cut where that is not enough.
    pub fn wrap(self, text: &str, width: f64, most: usize) -> Vec<String> {
        let text = printable(text);
        let mut lines = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let end = if lines.len() + 1 >= most { None } else { self.line_end(rest, width) };
            let Some(end) = end else {
                lines.push(self.fit(rest, width));
                break;
            };
            lines.push(self.fit(rest[..end].trim_end(), width));
            rest = rest[end..].trim_start();
        }
        lines
    }

    /// Where the first line of a text ends; `None` when all of it fits.
    fn line_end(self, text: &str, width: f64) -> Option<usize> {
        let mut used = 0.0;
        let mut soft = None;
        for (at, c) in text.char_indices() {
            used += self.char_width(c);
            if used > width && c != ' ' {
                let first = text.chars().next().map_or(0, char::len_utf8);
                let whole = text[..at].trim_end_matches(|c: char| c.is_ascii_digit()).len();
                let end = soft.unwrap_or(if c.is_ascii_digit() { whole } else { at });
                return Some(if end == 0 { at.max(first) } else { end });
            }
            if c == ' ' || c == ',' {
                soft = Some(at + 1);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    const FONT: Font = Font::regular(10.0);

    #[test]
    fn text_is_cut_where_it_does_not_fit() {
        assert_eq!(FONT.fit("node 0", 100.0), "node 0");
        assert_eq!(FONT.fit("nodes 0-3,5,7,9,11", 60.0), "nodes 0-3...");
        assert_eq!(FONT.fit("nodes", 3.0), "");
        assert_eq!(
            FONT.fit("packages 0,1024-1035", 80.0),
            "packages 0...",
            "a number is kept whole or left out"
        );
        assert_eq!(FONT.fit("packages 0-11", 70.0), "packages 0...");
    }

    #[test]
    fn text_breaks_at_blanks_and_after_commas() {
        assert_eq!(FONT.wrap("CPUs 0-23,96-119", 70.0, 3), ["CPUs 0-23,", "96-119"]);
        assert_eq!(FONT.wrap("0-1,3-4,6-7,9-10,12-13", 45.0, 2), ["0-1,3-4,", "6-7,9..."]);
    }

    proptest! {
        #[test]
        fn no_number_is_cut(numbers in proptest::collection::vec(0u32..100_000, 1..12), width in 40.0..200.0f64, most in 1usize..4) {
            let words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            for line in FONT.wrap(&format!("packages {}", words.join(",")), width, most) {
                for part in line.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty()) {
                    prop_assert!(words.iter().any(|word| word == part), "{part} of {line:?}");
                }
            }
        }

        #[test]
        fn no_line_is_wider_than_its_place(text in any::<String>(), width in 1.0..200.0f64, most in 1usize..5) {
            let lines = FONT.wrap(&text, width, most);
            prop_assert!(lines.len() <= most);
            for line in &lines {
                prop_assert!(FONT.width(line) <= width + 1e-6, "{line:?}");
            }
        }

        #[test]
        fn wrapping_loses_nothing_while_there_are_lines(text in "[a-c,]{1,6}( [a-c,]{1,6}){0,6}") {
            let lines = FONT.wrap(&text, 60.0, 100);
            prop_assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
        }
    }
}
