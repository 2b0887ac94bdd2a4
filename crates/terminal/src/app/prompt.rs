//! A line in which a text is typed.

use crate::key::Key;

/// The longest text.
const MOST: usize = 200;

/// The use of the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Purpose {
    /// The filter of processes; the text before, to return to.
    Filter(String),
    /// The name of a file for the screen as text.
    Export,
    /// A time of a recording.
    Time,
}

/// The line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Prompt {
    pub(crate) purpose: Purpose,
    pub(crate) text: String,
}

/// The state after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Typing {
    /// The text has changed.
    Changed,
    /// It is as it was.
    Same,
    Done,
    GivenUp,
}

impl Prompt {
    pub(crate) fn new(purpose: Purpose, text: impl Into<String>) -> Self {
        Self { purpose, text: text.into() }
    }

    pub(crate) const fn label(&self) -> &'static str {
        match self.purpose {
            Purpose::Filter(_) => "filter",
            Purpose::Export => "save the screen as text in file",
            Purpose::Time => "go to time (such as 90m)",
        }
    }

    pub(crate) fn take(&mut self, key: Key) -> Typing {
        match key {
            Key::Enter => return Typing::Done,
            Key::Escape | Key::Control('c' | 'g') => return Typing::GivenUp,
            Key::Backspace => {
                if self.text.pop().is_none() {
                    return Typing::GivenUp;
                }
            }
            Key::Control('u') => self.text.clear(),
            Key::Char(letter) if self.text.len() < MOST => self.text.push(letter),
            _ => return Typing::Same,
        }
        Typing::Changed
    }
}
