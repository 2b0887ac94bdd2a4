//! The only place that writes to standard output and standard error.

pub mod destination;
mod picture;
// Tests draw without the feature, too, so that what few builds have is compiled and tried in all.
#[cfg(any(feature = "png", test))]
mod png;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use nodewise_machine::printable::json;
use nodewise_syscall::inherited;
use nodewise_view::style::{Colour, Style};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::cli::ColorWhen;
pub use destination::Destination;
pub use picture::Pictures;

/// Why nothing can be written when the standard output was closed by whoever started us.
const CLOSED: &str = "standard output is closed";
/// Columns when no one says how wide the output is.
const WIDTH_OF_A_PIPE: usize = 80;
/// Wider than this lines are hard to follow.
const WIDEST: usize = 160;

/// How a text view on standard output is to be written: the terminal's width and wishes.
pub fn style(when: ColorWhen) -> Style {
    style_on(&io::stdout(), when)
}

/// How a text view on standard error is to be written.
pub fn narration_style(when: ColorWhen) -> Style {
    style_on(&io::stderr(), when)
}

fn style_on(stream: &(impl IsTerminal + AsFd), when: ColorWhen) -> Style {
    let terminal = stream.is_terminal();
    let own_width = || rustix::termios::tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col));
    let width = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let width = width.or_else(|| terminal.then(own_width).flatten());
    let width = width.filter(|width| *width > 0).unwrap_or(WIDTH_OF_A_PIPE).min(WIDEST);
    let colour = match when {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => wants_colour(terminal, |name| std::env::var_os(name)),
    };
    Style::new(width, if colour { Colour::Always } else { Colour::Never })
}

/// Whether there is to be colour when nothing was typed about it: on a terminal that knows it. By
/// <https://no-color.org> and <https://bixense.com/clicolors>; the refusal is the stronger.
fn wants_colour(terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    let forced = is_set("CLICOLOR_FORCE") && variable("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    let dumb = variable("TERM").is_some_and(|name| name == "dumb");
    !is_set("NO_COLOR") && (forced || terminal && !dumb)
}

/// Prints the help or the version that clap has made.
///
/// # Errors
/// As [`print`].
pub fn help(text: &clap::Error) -> io::Result<()> {
    if inherited::stdout_is_closed() {
        return Err(io::Error::other(CLOSED));
    }
    forgive_a_reader_that_left(text.print())
}

/// Writes a text to standard output.
///
/// # Errors
/// What the system says, but for a reader that has gone: `nodewise show | head` is not a failure.
pub fn print(text: &str) -> io::Result<()> {
    print_bytes(text.as_bytes())
}

/// Writes bytes to standard output.
///
/// # Errors
/// As [`print`].
pub fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    if inherited::stdout_is_closed() {
        return Err(io::Error::other(CLOSED));
    }
    let mut stdout = io::stdout().lock();
    forgive_a_reader_that_left(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

/// Whether standard output has lost its reader: the other end of a pipe is closed, or the terminal is gone. Who
/// prints again and again ends then; `poll(2)` says it before the next line is lost.
pub fn has_lost_its_reader() -> bool {
    let stdout = io::stdout();
    let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut watched, Some(&now)).is_ok() && watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

fn forgive_a_reader_that_left(written: io::Result<()>) -> io::Result<()> {
    written.or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
}

/// Writes a JSON text to standard output, fit for a terminal too.
///
/// # Errors
/// As [`print`].
pub fn print_json(text: &str) -> io::Result<()> {
    print(&json(text))
}

/// Writes a result to standard output in the form that is wanted: JSON, or text for people.
///
/// # Errors
/// As [`print`].
pub fn show(
    as_json: bool,
    color: ColorWhen,
    json: impl FnOnce() -> String,
    text: impl FnOnce(&Style) -> String,
) -> io::Result<()> {
    if as_json { print_json(&json()) } else { print(&text(&style(color))) }
}

/// The form of a result that is a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    Json,
    Csv,
}

impl Form {
    /// The form that `--json` and `--csv` ask for; clap refuses both together.
    pub const fn new(json: bool, csv: bool) -> Self {
        match (json, csv) {
            (true, _) => Self::Json,
            (false, true) => Self::Csv,
            (false, false) => Self::Text,
        }
    }
}

/// Writes a table to standard output in the form that is wanted.
///
/// # Errors
/// As [`print`].
pub fn show_table(
    form: Form,
    color: ColorWhen,
    json: impl FnOnce() -> String,
    csv: impl FnOnce() -> String,
    text: impl FnOnce(&Style) -> String,
) -> io::Result<()> {
    match form {
        Form::Json => print_json(&json()),
        Form::Csv => print(&csv()),
        Form::Text => print(&text(&style(color))),
    }
}

/// Writes a line to standard error, with our name before it. A failure of that cannot be reported.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "nodewise: {text}");
}

/// Writes a text of several lines to standard error as it is.
pub fn narrate(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_follows_the_terminal_and_the_variables_of_its_user() {
        let check = |terminal: bool, set: &[(&str, &str)], expected: bool| {
            let variable =
                |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
            assert_eq!(wants_colour(terminal, variable), expected, "{terminal} {set:?}");
        };
        check(true, &[], true);
        check(false, &[], false);
        check(true, &[("NO_COLOR", "1")], false);
        check(true, &[("NO_COLOR", "")], true);
        check(true, &[("TERM", "dumb")], false);
        check(false, &[("CLICOLOR_FORCE", "1")], true);
        check(false, &[("CLICOLOR_FORCE", "0")], false);
        check(false, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false);
    }
}
