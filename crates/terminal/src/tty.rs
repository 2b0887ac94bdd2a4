//! The terminal: taken at the beginning, given back as it was on every end.

use std::io::{self, Stdout};
use std::mem::ManuallyDrop;
use std::panic;
use std::thread;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::{Position, Rect};

use crate::app::App;
use crate::key::Key;
use crate::screen;

/// Opens the standard output, for which the command answers.
pub type Out = fn() -> Stdout;

/// An event of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    Key(Key),
    /// Its new size, in cells.
    Resize(u16, u16),
}

/// The terminal of standard output, in the mode of a live view.
#[derive(Debug)]
pub struct Tty {
    out: Out,
    /// Never dropped: its drop reports on standard error that it cannot show the cursor, and where that is the same
    /// closed terminal, the report panics (ratatui-core 0.1.2). [`restore`] shows the cursor.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl Tty {
    /// Takes the terminal. A panic gives it back, too, before it says why.
    ///
    /// # Errors
    /// A terminal that cannot be switched.
    pub fn open(out: Out) -> io::Result<Self> {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |why| {
            restore(out);
            before(why);
        }));
        enter(out)?;
        let terminal = Terminal::new(CrosstermBackend::new(out())).inspect_err(|_| restore(out))?;
        Ok(Self { out, terminal: ManuallyDrop::new(terminal) })
    }

    /// Its size in cells.
    ///
    /// # Errors
    /// A terminal that does not say.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok((size.width, size.height))
    }

    /// Draws the view; only cells that changed are sent.
    ///
    /// # Errors
    /// A terminal that is gone.
    pub fn draw(&mut self, app: &App) -> io::Result<()> {
        self.terminal.draw(|frame| {
            let area = frame.area();
            screen::draw(app, area, frame.buffer_mut());
        })?;
        Ok(())
    }

    /// Passes keys and new sizes on until `take` returns false, and `None` when there are no more. The thread may last
    /// as long as the program: at the end of a terminal that was closed it never comes back (crossterm 0.29).
    pub fn read_inputs(&self, mut take: impl FnMut(Option<Input>) -> bool + Send + 'static) {
        thread::spawn(move || {
            while let Ok(event) = event::read() {
                let input = match event {
                    Event::Key(event) => Key::from_event(event).map(Input::Key),
                    Event::Resize(width, height) => Some(Input::Resize(width, height)),
                    _ => None,
                };
                if input.is_some() && !take(input) {
                    return;
                }
            }
            take(None);
        });
    }

    /// Draws every cell the next time: another program wrote to the terminal.
    ///
    /// # Errors
    /// A terminal that is gone.
    pub fn forget(&mut self) -> io::Result<()> {
        // Not `Terminal::clear`: it asks the terminal where the cursor is, and the answer goes to the thread that
        // reads keys. A new size, even the same one, clears the screen, too.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::from((Position::ORIGIN, size)))
    }

    /// Gives the terminal back while `stop` runs, and takes it again.
    ///
    /// # Errors
    /// A terminal that is gone, and the errors of `stop`.
    pub fn pause(&mut self, stop: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        restore(self.out);
        let stopped = stop();
        enter(self.out)?;
        self.forget()?;
        stopped
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        restore(self.out);
    }
}

fn enter(out: Out) -> io::Result<()> {
    enable_raw_mode()?;
    execute!(out(), EnterAlternateScreen).inspect_err(|_| restore(out))
}

/// Gives the terminal back as it was. At this point no error can be reported.
fn restore(out: Out) {
    let _ = execute!(out(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}
