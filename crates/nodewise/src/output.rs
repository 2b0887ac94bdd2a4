//! The only place that writes to standard output and standard error.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use nodewise_source::capture::{Overwrite, write_file as write_whole};
use nodewise_view::style::{Colour, Style};

use crate::cli::ColorWhen;
use crate::failure::{Failure, INTERNAL};

/// Columns when nobody says how wide the output is.
const WIDTH_OF_A_PIPE: usize = 80;
/// Wider than this lines are hard to follow.
const WIDEST: usize = 160;

/// How a text view is to be written here: the terminal's width and wishes.
pub fn style(when: ColorWhen) -> Style {
    let stdout = io::stdout();
    let terminal = stdout.is_terminal();
    let width = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).or_else(|| {
        terminal
            .then(|| rustix::termios::tcgetwinsize(&stdout).ok().map(|size| usize::from(size.ws_col)))
            .flatten()
    });
    let colour = match when {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    };
    let width = width.filter(|width| *width > 0).unwrap_or(WIDTH_OF_A_PIPE).min(WIDEST);
    Style::new(width, if colour { Colour::Always } else { Colour::Never })
}

/// Writes a text to standard output.
///
/// # Errors
/// What the system says, but for a reader that has gone: `nodewise show | head` is no failure.
pub fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes a line to standard error, with our name before it. There is nobody to tell when that
/// fails.
pub fn tell(text: &str) {
    let _ = writeln!(io::stderr().lock(), "nodewise: {text}");
}

/// Writes a text of several lines to standard error as it is.
pub fn narrate(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Writes a file that the user named, so that it is there as a whole or not at all.
///
/// # Errors
/// What the system says, with the path.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_whole(path, bytes, Overwrite::Replace).map_err(|error| Failure::new(INTERNAL, error))
}
