//! The screens: a frame of a few lines, and one of them inside.

pub(crate) mod cell;
mod devices;
pub(crate) mod help;
mod mappings;
mod nodes;
mod process;
mod processes;
mod services;
mod strip;

use std::time::Duration;

use nodewise_view::digest::counts::plural;
use nodewise_view::digest::running::{Remedy, Running, Unread, words};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::{App, Origin, Screen};
use crate::ink::Ink;
use crate::paint::{cells, lines, put, text};

/// The smallest terminal that has room for a screen.
const LEAST: (u16, u16) = (60, 15);
/// Lines of the frame: two above a screen, two below.
const FRAME: u16 = 4;

/// Draws the view into cells.
pub fn draw(app: &App, area: Rect, buffer: &mut Buffer) {
    let area = area.intersection(buffer.area);
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let sentence =
            format!("terminal too small: {}x{}, needs {}x{}", area.width, area.height, LEAST.0, LEAST.1);
        put(buffer, (area.x, area.y), usize::from(area.width), &sentence, Ink::Plain, app.inks);
        return;
    }
    let mut page = Page { app, buffer };
    page.head(lines(area, 0, Some(1)));
    page.tabs(lines(area, 1, Some(1)));
    let foot = area.height - 2;
    page.notice(lines(area, foot, Some(1)));
    page.keys(lines(area, foot + 1, Some(1)));
    let body = lines(area, 2, Some(area.height - FRAME));
    if let Some(first) = app.help {
        return help::draw(&mut page, first, body);
    }
    let Some(running) = app.running() else {
        page.line(body, 1, Ink::Plain, "reading ...");
        return;
    };
    match app.screen {
        Screen::Nodes => nodes::draw(&mut page, running, body),
        Screen::Processes => processes::draw(&mut page, running, body),
        Screen::Process => process::draw(&mut page, running, body),
        Screen::Mappings => mappings::draw(&mut page, body),
        Screen::Devices => devices::draw(&mut page, running, body),
        Screen::Services => services::draw(&mut page, running, body),
    }
}

/// The view as text, in the size of its terminal.
pub fn as_text(app: &App) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, app.size.0, app.size.1));
    draw(app, buffer.area, &mut buffer);
    text(&buffer)
}

/// The cells that a screen is drawn into, and what it shows.
struct Page<'a> {
    app: &'a App,
    buffer: &'a mut Buffer,
}

impl Page<'_> {
    /// Writes a line of an area, cut where it is too long.
    fn line(&mut self, area: Rect, at: u16, ink: Ink, text: &str) {
        if at < area.height {
            put(self.buffer, (area.x, area.y + at), usize::from(area.width), text, ink, self.app.inks);
        }
    }

    /// Writes pieces of a line, one behind the other.
    fn pieces(&mut self, area: Rect, at: u16, pieces: &[(Ink, &str)]) {
        let mut x = area.x;
        for (ink, text) in pieces.iter().filter(|_| at < area.height) {
            let room = usize::from(area.right().saturating_sub(x));
            x += put(self.buffer, (x, area.y + at), room, text, *ink, self.app.inks);
        }
    }

    /// The first line: what is shown, and when it was.
    fn head(&mut self, area: Rect) {
        let app = self.app;
        let mut facts = Vec::new();
        if let Origin::Recording(name) = &app.origin {
            facts.push(name.clone());
        }
        if let Some(running) = app.running() {
            facts.push(plural(running.nodes.len(), "node"));
            let cpus: usize = running.nodes.iter().map(|row| row.cpus.len()).sum();
            facts.push(plural(cpus, "CPU"));
        }
        match app.reading.as_ref().and_then(|reading| reading.position.as_ref()) {
            Some(position) => {
                facts.push(format!("{} of {}", stopwatch(position.at), stopwatch(position.length)));
            }
            None => facts.push(format!("every {} s", app.every.as_secs_f64())),
        }
        if let Some(running) = app.running() {
            facts.push(format!("{} UTC", clock(running.moment.wall)));
            facts.push(words::window(running));
        }
        let state = match (&app.origin, app.paused) {
            (_, true) => "  PAUSED",
            (Origin::Live, false) => "",
            (Origin::Recording(_), false) => "  playing",
        };
        let facts = format!("  {}", facts.join("  "));
        self.pieces(area, 0, &[(Ink::Strong, "nodewise top"), (Ink::Notable, state), (Ink::Plain, &facts)]);
    }

    /// The second line: the screens.
    fn tabs(&mut self, area: Rect) {
        let app = self.app;
        let screens = Screen::ALL.into_iter().zip('1'..);
        let tabs = screens
            .map(|(screen, digit)| (digit, screen.word(), screen == app.screen && app.help.is_none()))
            .chain([('?', "help", app.help.is_some())]);
        let mut tabs: Vec<(Ink, String)> = tabs
            .map(|(key, word, is_shown)| {
                if is_shown {
                    (Ink::Strong, format!(" [{key} {word}]"))
                } else {
                    (Ink::Faint, format!(" {key} {word}"))
                }
            })
            .collect();
        // Where they do not fit, the keys stay, and the words go from the right.
        for at in (0..tabs.len()).rev() {
            if tabs.iter().map(|(_, tab)| cells(tab)).sum::<usize>() > usize::from(area.width)
                && tabs[at].0 == Ink::Faint
            {
                tabs[at].1.truncate(2);
            }
        }
        let tabs: Vec<(Ink, &str)> = tabs.iter().map(|(ink, text)| (*ink, text.as_str())).collect();
        self.pieces(area, 0, &tabs);
    }

    /// The line above the last: a text that is typed, a message, a gap, or what was not read.
    fn notice(&mut self, area: Rect) {
        let app = self.app;
        if let Some(prompt) = &app.prompt {
            let refused = app.message.as_ref().map(|message| format!("  {message}")).unwrap_or_default();
            let label = format!("{}: ", prompt.label());
            let typed = tail(&prompt.text, usize::from(area.width).saturating_sub(cells(&label) + 1));
            let pieces = [
                (Ink::Strong, label.as_str()),
                (Ink::Plain, &typed),
                (Ink::Strong, "_"),
                (Ink::Notable, &refused),
            ];
            return self.pieces(area, 0, &pieces);
        }
        if let Some(message) = &app.message {
            return self.line(area, 0, Ink::Accent, message);
        }
        let gap = app.reading.as_ref().and_then(|reading| reading.position.as_ref()?.gap.as_ref());
        if let Some(gap) = gap {
            return self.line(area, 0, Ink::Notable, gap);
        }
        if let Some(sentence) = app.running().and_then(|running| missing(&running.unread, app.is_root)) {
            self.line(area, 0, Ink::Faint, &sentence);
        }
    }

    /// The last line: the keys of this screen.
    fn keys(&mut self, area: Rect) {
        let app = self.app;
        let keys = match (&app.prompt, app.help, app.screen) {
            (Some(_), ..) => "Enter confirm  Esc cancel",
            (_, Some(_), _) => "q quit  Esc back  arrows scroll",
            (_, _, Screen::Nodes) => "q quit  Enter processes of the node  p pause  + - interval  e export",
            (_, _, Screen::Processes) => {
                "q quit  / filter  s sort  r reverse  Enter open  m migrate  p pause  e export"
            }
            (_, _, Screen::Process) => "q quit  Enter mappings  Esc back  m migrate  p pause  e export",
            (_, _, Screen::Mappings) => "q quit  Enter refresh  Esc back  e export",
            (_, _, Screen::Services) => "q quit  Enter processes of the service  Esc back  p pause  e export",
            (_, _, Screen::Devices) => "q quit  Esc back  p pause  e export",
        };
        let is_recording = matches!(app.origin, Origin::Recording(_));
        let keys = if is_recording && app.prompt.is_none() && app.help.is_none() {
            "q quit  [ ] step  { } minute  g time  p play  / filter  Enter open  e export"
        } else {
            keys
        };
        self.line(area, 0, Ink::Faint, keys);
    }
}

/// Facts that were not read, in one line: those that root would add, or the reason.
fn missing(unread: &[Unread], is_root: bool) -> Option<String> {
    let closed: Vec<String> = unread
        .iter()
        .filter(|unread| unread.remedy == Some(Remedy::Root))
        .map(|unread| format!("{} ({})", unread.fact, unread.objects))
        .collect();
    if !closed.is_empty() {
        // In a container even root may lack CAP_SYS_PTRACE.
        let words = if is_root { "not readable even as root" } else { "root would add" };
        return Some(format!("{words}: {}", closed.join(", ")));
    }
    let first = unread.first()?;
    let others = unread.len() - 1;
    let others = if others > 0 { format!(", and {}", plural(others, "other fact")) } else { String::new() };
    Some(format!("not read: {}{others}", words::unread(first)))
}

/// The end of a text that is being typed.
fn tail(text: &str, most: usize) -> String {
    let mut tail = text;
    while cells(tail) > most {
        let mut letters = tail.chars();
        letters.next();
        tail = letters.as_str();
    }
    tail.to_owned()
}

/// The time of day of a wall clock, in UTC.
fn clock(wall: Duration) -> String {
    let seconds = wall.as_secs() % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// A time as `1:02:03`.
fn stopwatch(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Events per second of a reading, short.
fn rate(running: &Running, count: Option<u64>) -> Option<String> {
    running.rate(count).map(cell::short)
}
