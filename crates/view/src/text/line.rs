//! Lines of text in several inks, their width in terminal columns, and how they wrap.

use nodewise_machine::printable::printable;
use unicode_width::UnicodeWidthChar;

use crate::style::{Ink, Style};

/// The columns a character takes on a terminal.
///
/// U+FE0F asks for the wide picture of the character before it, so it counts as one more column;
/// otherwise widths add up, and a line is never wider than it is counted here.
fn char_columns(c: char) -> usize {
    if c == '\u{fe0f}' { 1 } else { c.width().unwrap_or(0) }
}

/// The columns a text takes on a terminal.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

/// A line of text in several inks.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Line {
    spans: Vec<(Ink, String)>,
}

impl Line {
    /// The empty line.
    pub(crate) const fn new() -> Self {
        Self { spans: Vec::new() }
    }

    /// The contents of a table cell that is empty on purpose, not for want of a value.
    pub(crate) fn blank() -> Self {
        Self::from(" ")
    }

    /// The same line with more text at its end.
    #[must_use]
    pub(crate) fn with(mut self, ink: Ink, text: impl AsRef<str>) -> Self {
        self.push(ink, text);
        self
    }

    /// Adds text at the end; whatever could drive a terminal becomes visible.
    pub(crate) fn push(&mut self, ink: Ink, text: impl AsRef<str>) {
        let text = printable(text.as_ref());
        match self.spans.last_mut() {
            Some((last, so_far)) if *last == ink => so_far.push_str(&text),
            _ if text.is_empty() => {}
            _ => self.spans.push((ink, text.into_owned())),
        }
    }

    /// Adds another line at the end.
    pub(crate) fn append(&mut self, other: &Self) {
        for (ink, text) in &other.spans {
            self.push(*ink, text);
        }
    }

    /// The same line with another at its end.
    #[must_use]
    pub(crate) fn joined(mut self, other: &Self) -> Self {
        self.append(other);
        self
    }

    /// Its width in columns.
    pub(crate) fn columns(&self) -> usize {
        self.spans.iter().map(|(_, text)| columns(text)).sum()
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Whether nothing can be seen in it.
    pub(crate) fn is_blank(&self) -> bool {
        self.spans.iter().all(|(_, text)| text.trim_matches(' ').is_empty())
    }

    /// Cuts it into lines of at most `width` columns: at spaces, after commas, and inside a word
    /// only when the word is long (then after a slash if there is one).
    pub(crate) fn wrap(&self, width: usize) -> Vec<Self> {
        let chars: Vec<(Ink, char)> =
            self.spans.iter().flat_map(|(ink, text)| text.chars().map(move |c| (*ink, c))).collect();
        let mut lines = Vec::new();
        let mut rest = &chars[..];
        while !rest.is_empty() {
            let (line, after) = rest.split_at(cut(rest, width.max(1)));
            lines.push(Self::of_chars(line));
            let blanks = after.iter().take_while(|(_, c)| *c == ' ').count();
            rest = &after[blanks..];
        }
        lines
    }

    fn of_chars(chars: &[(Ink, char)]) -> Self {
        let end = chars.iter().rposition(|(_, c)| *c != ' ').map_or(0, |last| last + 1);
        let mut line = Self::new();
        for (ink, c) in &chars[..end] {
            line.push(*ink, c.encode_utf8(&mut [0; 4]));
        }
        line
    }

    /// Writes it without blanks at its end.
    pub(crate) fn write(&self, style: &Style, out: &mut String) {
        let mut end = self.spans.len();
        while end > 0 && self.spans[end - 1].1.trim_end_matches(' ').is_empty() {
            end -= 1;
        }
        for (at, (ink, text)) in self.spans[..end].iter().enumerate() {
            let text = if at + 1 == end { text.trim_end_matches(' ') } else { text };
            style.paint(*ink, text, out);
        }
    }
}

impl From<&str> for Line {
    fn from(text: &str) -> Self {
        Self::new().with(Ink::Plain, text)
    }
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

/// How many characters go on a line of `width` columns; at least one.
fn cut(chars: &[(Ink, char)], width: usize) -> usize {
    let mut used = 0;
    let mut end = 0;
    let mut soft = None;
    let mut slash = None;
    let mut blank = true;
    while let Some((_, c)) = chars.get(end) {
        used += char_columns(*c);
        if used > width {
            break;
        }
        end += 1;
        let next = chars.get(end).map(|(_, c)| *c);
        blank &= *c == ' ';
        match c {
            // A number keeps its percent sign.
            ' ' if !blank && next != Some('%') => soft = Some(end),
            ',' if next != Some(' ') => soft = Some(end),
            '/' => slash = Some(end),
            _ => {}
        }
    }
    let at = |place: usize| chars.get(place).map(|(_, c)| *c);
    if end == chars.len() || at(end) == Some(' ') && at(end + 1) != Some('%') {
        return end.max(1);
    }
    // A break that leaves more than half of the line empty is worse than one inside a path.
    match soft {
        Some(at) if at * 2 > end => at,
        soft => slash.filter(|at| *at * 2 > end).or(soft).unwrap_or(end).max(1),
    }
}

/// The lines of a text view, as they are written.
pub(crate) struct Page {
    style: Style,
    out: String,
}

impl Page {
    /// An empty page.
    pub(crate) const fn new(style: Style) -> Self {
        Self { style, out: String::new() }
    }

    /// The longest line, in columns.
    pub(crate) const fn width(&self) -> usize {
        self.style.width()
    }

    /// How many lines were written.
    pub(crate) fn lines(&self) -> usize {
        self.out.lines().count()
    }

    /// Writes a line; what does not fit goes on below, `hang` columns in.
    pub(crate) fn line(&mut self, hang: usize, line: &Line) {
        let width = self.width();
        let first = line.wrap(width).into_iter().next().unwrap_or_default();
        let rest = line.after(first.spans.iter().map(|(_, text)| text.chars().count()).sum());
        self.write(0, &first);
        let hang = hang.min(width / 2);
        for below in rest.wrap(width - hang) {
            self.write(hang, &below);
        }
    }

    fn write(&mut self, indent: usize, line: &Line) {
        if !line.is_empty() {
            self.out.extend(std::iter::repeat_n(' ', indent));
        }
        line.write(&self.style, &mut self.out);
        self.out.push('\n');
    }

    /// Writes a text on one line, however long, so that it can be copied: a command.
    pub(crate) fn verbatim(&mut self, indent: usize, text: &str) {
        self.write(indent, &Line::from(text));
    }

    /// Writes a blank line.
    pub(crate) fn blank(&mut self) {
        self.out.push('\n');
    }

    /// Starts a section: a blank line, a heading, and a remark beside it.
    pub(crate) fn heading(&mut self, heading: &str, remark: &str) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        let mut line = Line::new().with(Ink::Strong, heading);
        if !remark.is_empty() {
            line.push(Ink::Plain, "  ");
            line.push(Ink::Faint, remark);
        }
        self.line(2, &line);
    }

    /// The text.
    pub(crate) fn finish(self) -> String {
        self.out
    }
}

impl Line {
    /// Returns the rest after the first `skip` characters and the blanks that follow them.
    fn after(&self, skip: usize) -> Self {
        let mut rest = Self::new();
        let mut left = skip;
        for (ink, text) in &self.spans {
            let tail: String = text.chars().skip(left).collect();
            left = left.saturating_sub(text.chars().count());
            let tail = if rest.is_empty() { tail.trim_start_matches(' ') } else { &tail };
            rest.push(*ink, tail);
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use unicode_width::UnicodeWidthStr;

    fn check(text: &str, width: usize, expected: &[&str]) {
        let wrapped: Vec<String> = Line::from(text)
            .wrap(width)
            .iter()
            .map(|line| line.spans.iter().map(|(_, text)| text.as_str()).collect())
            .collect();
        assert_eq!(wrapped, expected, "{text:?} in {width} columns");
    }

    #[test]
    fn lines_break_at_spaces_and_after_commas() {
        check("10 to itself, 20 to every other", 15, &["10 to itself,", "20 to every", "other"]);
        check("0-23,96-119,200", 12, &["0-23,96-119,", "200"]);
        check("0-23,96-119,200", 11, &["0-23,", "96-119,200"]);
        check("", 10, &[]);
        check("   ", 10, &[""]);
    }

    #[test]
    fn a_number_keeps_its_percent_sign() {
        check("noise (+11..+46 %)", 16, &["noise", "(+11..+46 %)"]);
        check("noise (+11..+46 %)", 15, &["noise", "(+11..+46 %)"]);
        check("5 %", 2, &["5", "%"]);
    }

    #[test]
    fn a_long_path_breaks_after_a_slash() {
        check("- /sys/devices/system/node", 16, &["- /sys/devices/", "system/node"]);
    }

    #[test]
    fn a_word_longer_than_the_line_is_cut() {
        check("abcdefgh", 3, &["abc", "def", "gh"]);
        check("日本語", 4, &["日本", "語"]);
        check("日", 1, &["日"]);
    }

    #[test]
    fn what_does_not_fit_hangs_below() {
        let mut page = Page::new(Style::plain(40));
        page.line(7, &Line::from("CPUs   0-3,8-11,16-19,24-27,32-35,40-43,48-51,56-59"));
        page.line(2, &Line::from("short"));
        assert_eq!(page.finish(), "CPUs   0-3,8-11,16-19,24-27,32-35,40-43,\n       48-51,56-59\nshort\n");
    }

    #[test]
    fn what_drives_a_terminal_is_made_visible() {
        let mut out = String::new();
        Line::from("eth\x1b[2J0").write(&Style::plain(80), &mut out);
        assert_eq!(out, "eth\\x1b[2J0");
    }

    proptest! {
        #[test]
        fn no_text_is_wider_than_it_is_counted(text in any::<String>()) {
            let text = printable(&text);
            prop_assert!(text.width() <= columns(&text));
        }

        #[test]
        fn wrapping_keeps_every_character_but_blanks(text in "[a-c ,/日]{0,60}", width in 2usize..20) {
            let lines = Line::from(text.as_str()).wrap(width);
            let kept: String = lines.iter().flat_map(|line| line.spans.iter().map(|(_, text)| text.as_str())).collect();
            let solid = |text: &str| text.replace(' ', "");
            prop_assert_eq!(solid(&kept), solid(&text));
            for line in &lines {
                prop_assert!(line.columns() <= width);
            }
        }
    }
}
