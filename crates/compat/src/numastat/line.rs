//! How much of a table is on one line.

use std::ffi::OsStr;

use nodewise_notation::number::{self, Base};
use rustix::termios::tcgetwinsize;

use crate::Call;

/// Where the width of the terminal is not known.
const USUAL: usize = 80;
/// A line is never shorter.
const LEAST: usize = 32;
/// A line that never ends: what `NUMASTAT_WIDTH` may be at most.
const ENDLESS: usize = 10_000_000;

/// The most bytes on a line, and whether standard output was asked whether it is a terminal, and is
/// none: an error message of the originals depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The most bytes.
    pub width: usize,
    /// Whether standard output is not a terminal.
    pub no_terminal: bool,
}

impl Line {
    /// By `NUMASTAT_WIDTH` where it is set, else by the terminal; what goes elsewhere is not folded.
    pub fn from_call(call: &Call<'_>) -> Self {
        if let Some(width) = call.settings.numastat_width {
            return Self { width: width.max(LEAST), no_terminal: false };
        }
        match (call.terminal)() {
            None => Self { width: ENDLESS, no_terminal: true },
            // The originals never find out how wide a terminal is.
            Some(columns) if columns > 0 && !call.settings.strict => {
                Self { width: usize::from(columns).max(LEAST), no_terminal: false }
            }
            Some(_) => Self { width: USUAL, no_terminal: false },
        }
    }
}

/// Reads the width in `NUMASTAT_WIDTH`: the number at its beginning from 1 to 10,000,000, or else the usual
/// width.
pub fn from_variable(value: &OsStr) -> usize {
    let text = value.to_string_lossy();
    let number =
        number::leading_str(&text, Base::Decimal).and_then(|(number, _)| usize::try_from(number).ok());
    number.filter(|number| (1..=ENDLESS).contains(number)).unwrap_or(USUAL)
}

/// The columns of the terminal that standard output is; `None` where it is none.
pub fn of_terminal() -> Option<u16> {
    tcgetwinsize(rustix::stdio::stdout()).ok().map(|size| size.ws_col)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, Tool};
    use nodewise_source::tree::Tree;

    fn check(variable: Option<&str>, terminal: fn() -> Option<u16>, strict: bool, expected: usize) {
        let settings = Settings {
            strict,
            numastat_width: variable.map(|v| from_variable(OsStr::new(v))),
            ..Settings::default()
        };
        let tree = Tree::live();
        let call = Call { settings, terminal, ..Call::new(Tool::Numastat, Vec::new(), &tree) };
        assert_eq!(Line::from_call(&call).width, expected, "{variable:?}");
    }

    #[test]
    fn the_variable_comes_before_the_terminal() {
        check(Some("60"), || Some(200), false, 60);
        check(Some("10"), || None, false, 32);
        check(Some("0"), || Some(200), false, 80);
        check(Some("abc"), || None, false, 80);
        check(Some("60abc"), || None, false, 60);
        check(Some("-5"), || None, false, 80);
        check(Some("10000001"), || None, false, 80);
    }

    #[test]
    fn a_terminal_is_as_wide_as_it_is() {
        check(None, || None, false, ENDLESS);
        check(None, || Some(200), false, 200);
        check(None, || Some(20), false, 32);
        check(None, || Some(0), false, 80);
        check(None, || Some(200), true, 80);
    }
}
