//! Text into cells. Whatever could drive a terminal becomes visible first, and widths are counted in cells.

use nodewise_machine::printable::printable;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthChar as _;

use crate::ink::{Ink, Inks};

/// The mark of a text that was cut.
const CUT: char = '\u{2026}';
/// Asks for the wide picture of the character before it, which terminals do not agree about.
const WIDE_PICTURE: char = '\u{fe0f}';

/// The cells that a text takes.
pub(crate) fn cells(text: &str) -> usize {
    printable(text).chars().map(char_cells).sum()
}

fn char_cells(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// A text that takes at most this many cells; one that was cut ends in a mark.
pub(crate) fn fitted(text: &str, most: usize) -> String {
    let text = printable(text);
    let mut fitted = String::with_capacity(text.len());
    let (mut used, mut last_fit) = (0, 0);
    for c in text.chars().filter(|c| *c != WIDE_PICTURE) {
        let wide = char_cells(c);
        if used + wide > most {
            fitted.truncate(last_fit);
            if most > 0 {
                fitted.push(CUT);
            }
            return fitted;
        }
        fitted.push(c);
        used += wide;
        if used < most {
            last_fit = fitted.len();
        }
    }
    fitted
}

/// Writes a text into at most `room` cells of a line, and returns how many it took.
pub(crate) fn put(
    buffer: &mut Buffer,
    (x, y): (u16, u16),
    room: usize,
    text: &str,
    ink: Ink,
    inks: Inks,
) -> u16 {
    let area = buffer.area;
    if y < area.top() || y >= area.bottom() || x < area.left() || x >= area.right() {
        return 0;
    }
    let room = room.min(usize::from(area.right() - x));
    let style = inks.style(ink);
    let mut at = x;
    let mut mark = [0; 4];
    for c in fitted(text, room).chars() {
        let wide = char_cells(c) as u16;
        let symbol = c.encode_utf8(&mut mark);
        if wide == 0 {
            // It belongs to the character before; one at the beginning has none, and is left out.
            if let Some(before) = last_symbol(buffer, x, at, y) {
                let joined = format!("{}{symbol}", buffer[(before, y)].symbol());
                buffer[(before, y)].set_symbol(&joined);
            }
            continue;
        }
        buffer[(at, y)].set_symbol(symbol).set_style(style);
        for covered in at + 1..at + wide {
            buffer[(covered, y)].reset();
        }
        at += wide;
    }
    at - x
}

/// The cell of the last character between two places: a wide one is before the cell that it covers.
fn last_symbol(buffer: &Buffer, from: u16, to: u16, y: u16) -> Option<u16> {
    let last = to.checked_sub(1).filter(|last| *last >= from)?;
    let is_covered = last > from && cells(buffer[(last - 1, y)].symbol()) == 2;
    Some(if is_covered { last - 1 } else { last })
}

/// A part of an area: this line, and all below it where `height` is `None`.
pub(crate) fn lines(area: Rect, from: u16, height: Option<u16>) -> Rect {
    let from = from.min(area.height);
    let left = area.height - from;
    Rect { y: area.y + from, height: height.unwrap_or(left).min(left), ..area }
}

/// A sentence in lines of at most `width` cells, `indent` blanks before the first and two more before the others.
pub(crate) fn wrapped(sentence: &str, width: usize, indent: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = " ".repeat(indent);
    let mut is_begun = false;
    for word in printable(sentence).split(' ') {
        if is_begun && cells(&line) + 1 + cells(word) > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent + 2)));
            is_begun = false;
        }
        if is_begun {
            line.push(' ');
        }
        line.push_str(word);
        is_begun = true;
    }
    lines.push(line);
    lines
}

/// The cells as text, lines without blanks at their ends.
pub(crate) fn text(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in buffer.area.top()..buffer.area.bottom() {
        let mut line = String::new();
        let mut covered = 0;
        for x in buffer.area.left()..buffer.area.right() {
            if covered > 0 {
                covered -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            covered = cells(symbol).saturating_sub(1);
            line.push_str(symbol);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    #[test]
    fn a_text_is_cut_at_cells() {
        let check = |text: &str, most: usize, expected: &str| assert_eq!(fitted(text, most), expected);
        check("postgres", 8, "postgres");
        check("postgres", 5, "post\u{2026}");
        check("postgres", 1, "\u{2026}");
        check("postgres", 0, "");
        check("日本語", 6, "日本語");
        check("日本語", 5, "日本\u{2026}");
        check("日本語", 4, "日\u{2026}");
        check("e\u{301}a", 2, "e\u{301}a");
        check("a\x1b[2J", 9, "a\\x1b[2J");
    }

    #[test]
    fn a_sentence_is_wrapped_between_words() {
        assert_eq!(wrapped("node 1 is nearly full", 12, 1), [" node 1 is", "   nearly", "   full"]);
        assert_eq!(wrapped("short", 12, 1), [" short"]);
        assert_eq!(wrapped("", 12, 0), [""]);
    }

    #[test]
    fn marks_join_the_character_before_them() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 1));
        assert_eq!(put(&mut buffer, (0, 0), 6, "e\u{301}日\u{301}x", Ink::Plain, Inks::Plain), 4);
        assert_eq!(text(&buffer), "e\u{301}日\u{301}x\n");
        assert_eq!(put(&mut buffer, (5, 0), 6, "日", Ink::Plain, Inks::Plain), 1, "no half of it");
        assert_eq!(put(&mut buffer, (6, 0), 6, "x", Ink::Plain, Inks::Plain), 0);
    }

    proptest! {
        #[test]
        fn any_text_stays_within_its_cells(foreign in any::<String>(), most in 0usize..20, x in 0u16..20) {
            let cut = fitted(&foreign, most);
            prop_assert!(cells(&cut) <= most, "{cut:?}");
            let mut buffer = Buffer::empty(Rect::new(0, 0, 16, 1));
            prop_assert!(usize::from(put(&mut buffer, (x, 0), most, &foreign, Ink::Plain, Inks::Plain)) <= most);
            prop_assert!(!text(&buffer).trim_end_matches('\n').chars().any(char::is_control));
        }
    }
}
