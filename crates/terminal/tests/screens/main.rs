//! The view without a terminal: keys and readings in, effects and cells out.
//!
//! `SNAPSHOTS=overwrite` writes the screens in `golden/` again; read them before you keep them.
#![expect(clippy::unwrap_used, reason = "what a test does not expect is its failure")]

mod example;
mod goldens;
mod keys;
mod properties;

use std::sync::Arc;
use std::time::Duration;

use nodewise_diagnose::Delta;
use nodewise_diagnose::sample::Sample;
use nodewise_terminal::screen::draw;
use nodewise_terminal::{App, Inks, Key, Origin, Reading};
use nodewise_view::digest::running::{Choice, Running};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use unicode_width::UnicodeWidthStr as _;

/// The reading of two samples, as the command makes it.
fn reading(before: &Sample, now: &Sample) -> Reading {
    let choice = Choice { services: true, ..Choice::every_process() };
    let delta = Delta::between(before, now).unwrap();
    Reading { running: Arc::new(Running::new(now, &delta, choice)), position: None }
}

/// A live view of this many nodes and processes.
fn app(nodes: u32, processes: u32) -> App {
    let mut app = App::new(Origin::Live, Duration::from_secs(1), Inks::Plain);
    app.take(reading(&example::sample(nodes, processes, 200), &example::sample(nodes, processes, 202)));
    app
}

/// Types keys: a letter each, and `<Enter>` and such.
fn type_keys(app: &mut App, text: &str) {
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let named =
            [("<Enter>", Key::Enter), ("<Esc>", Key::Escape), ("<End>", Key::End), ("<Tab>", Key::Tab)];
        let found = named.into_iter().find(|(name, _)| rest.starts_with(name));
        let (length, key) =
            found.map_or((letter.len_utf8(), Key::Char(letter)), |(name, key)| (name.len(), key));
        app.handle(key);
        rest = &rest[length..];
    }
}

/// The screen on a terminal of this size, as ratatui puts it there.
fn screen(app: &mut App, width: u16, height: u16) -> String {
    app.resize(width, height);
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(app, frame.area(), frame.buffer_mut())).unwrap();
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for y in 0..height {
        let mut line = String::new();
        let mut x = 0;
        while x < width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            // A wide character hides the cell behind it.
            x += symbol.width().max(1) as u16;
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
