//! How a text view is to be written: its width, and whether it has colour.
//!
//! All ANSI sequences of nodewise's text views are in this file. Colour only repeats what words and
//! places already say: a text without it loses nothing. Four inks are used, and only colours that
//! hold on dark and on light backgrounds (cyan, magenta); yellow, blue and white do not.

/// Whether a text has ANSI colour. The command decides (terminal, `NO_COLOR`, `--color`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Colour {
    #[default]
    Never,
    /// ANSI sequences for bold, dim and two colours.
    Always,
}

/// How a text view is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    width: usize,
    colour: Colour,
}

/// Widths below this many columns are taken as this: a table needs some room.
pub const NARROWEST: usize = 40;

impl Style {
    /// A style for lines of at most `width` columns ([`NARROWEST`] at least).
    pub const fn new(width: usize, colour: Colour) -> Self {
        let width = if width < NARROWEST { NARROWEST } else { width };
        Self { width, colour }
    }

    /// Plain text of at most `width` columns.
    pub const fn plain(width: usize) -> Self {
        Self::new(width, Colour::Never)
    }

    /// The longest line, in terminal columns.
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Whether the text has colour.
    pub const fn colour(&self) -> Colour {
        self.colour
    }

    /// Adds `text` to `out` in an ink.
    pub(crate) fn paint(&self, ink: Ink, text: &str, out: &mut String) {
        match (self.colour, ink.sequence()) {
            (Colour::Always, Some(sequence)) => {
                out.push_str("\x1b[");
                out.push_str(sequence);
                out.push('m');
                out.push_str(text);
                out.push_str("\x1b[0m");
            }
            _ => out.push_str(text),
        }
    }
}

/// The kind of a piece of text, and so its look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Ink {
    #[default]
    Plain,
    /// Headings and the few numbers a reader looks for first.
    Strong,
    /// Text that is needed, but rarely read: column heads, units, the distance of a node to itself.
    Faint,
    Accent,
    /// Text that differs from the ordinary: memory-only nodes, full nodes, oddities.
    Notable,
}

impl Ink {
    /// The parameters of the ANSI sequence; `None` for ordinary text.
    const fn sequence(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Strong => Some("1"),
            Self::Faint => Some("2"),
            Self::Accent => Some("36"),
            Self::Notable => Some("35"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_written_only_when_asked_for() {
        let written = |colour, ink| {
            let mut out = String::new();
            Style::new(80, colour).paint(ink, "node 2", &mut out);
            out
        };
        assert_eq!(written(Colour::Always, Ink::Notable), "\x1b[35mnode 2\x1b[0m");
        assert_eq!(written(Colour::Always, Ink::Plain), "node 2");
        assert_eq!(written(Colour::Never, Ink::Notable), "node 2");
    }

    #[test]
    fn a_style_is_never_narrower_than_a_table_needs() {
        assert_eq!(Style::plain(0).width(), NARROWEST);
        assert_eq!(Style::plain(132).width(), 132);
    }
}
