//! The looks of text. Colour only repeats what words, marks and places already say.

use ratatui::style::{Color, Modifier, Style};

/// The kind of a piece of text, and so its look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Ink {
    #[default]
    Plain,
    Strong,
    Faint,
    Accent,
    Notable,
    /// The line of the table that keys act on, which has a mark, too.
    Selected,
}

/// Whether there is colour. Bold, dim and reverse are used either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Inks {
    #[default]
    Plain,
    /// Two colours that hold on dark and on light backgrounds, as in the text views.
    Coloured,
}

impl Inks {
    pub(crate) fn style(self, ink: Ink) -> Style {
        let colour = |colour| if self == Self::Coloured { Style::new().fg(colour) } else { Style::new() };
        match ink {
            Ink::Plain => Style::new(),
            Ink::Strong => Style::new().add_modifier(Modifier::BOLD),
            Ink::Faint => Style::new().add_modifier(Modifier::DIM),
            Ink::Accent => colour(Color::Cyan),
            Ink::Notable => colour(Color::Magenta).add_modifier(Modifier::BOLD),
            Ink::Selected => Style::new().add_modifier(Modifier::REVERSED),
        }
    }
}
