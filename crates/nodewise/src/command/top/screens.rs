//! The loop: keys and readings to the view, its effects to whoever has them done.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use nodewise_machine::printable::{io_words, visible};
use nodewise_terminal::{App, Effect, Inks, Input, Origin, Tty};
use nodewise_view::style::Colour;
use signal_hook::consts::{SIGCONT, SIGTSTP};
use signal_hook::iterator::Signals;

use super::message::{Event, News, Request};
use super::{live, replay};
use crate::cli::Global;
use crate::cli::top::Top;
use crate::failure::{Failure, INTERNAL, Outcome};
use crate::{measuring, output};

/// The time between readings, unless one is given.
const EVERY: Duration = Duration::from_secs(1);
/// How often the terminal is checked while nothing happens: one that was closed sends no key, and no signal to a
/// program that ignores SIGHUP.
const CHECK: Duration = Duration::from_secs(1);

/// Shows the screens until `q` or a signal.
pub(super) fn run(args: &Top, global: &Global) -> Outcome {
    let inks = match output::style(global.color).colour() {
        Colour::Always => Inks::Coloured,
        Colour::Never => Inks::Plain,
    };
    let every = args.interval.unwrap_or(EVERY);
    let (sender, events) = mpsc::channel();
    let (origin, requests) = match &args.from {
        Some(file) => {
            let requests = replay::start(file, args.at, every, sender.clone())?;
            (Origin::Recording(file.to_string_lossy().into_owned()), requests)
        }
        None => (Origin::Live, live::start(every, sender.clone())),
    };
    let is_root = origin == Origin::Live && rustix::process::geteuid().is_root();
    let app = App::new(origin, every, inks);
    let mut view = View {
        app: if is_root { app.of_root() } else { app },
        requests,
        awaits_resume: false,
        is_over: false,
    };
    // A machine without nodes is reported on an ordinary terminal: only readings send events yet.
    match events.recv() {
        Ok(Event::News(first)) => view.take(first)?,
        _ => return Err(readings_ended()),
    }
    listen(sender.clone())?;
    let mut tty = Tty::open(io::stdout).map_err(lost)?;
    tty.read_inputs(move |input| sender.send(input.map_or(Event::InputEnded, Event::Input)).is_ok());
    let ended = view.run(&mut tty, &events);
    drop(tty);
    ended.map(|()| 0)
}

/// Sends the signals that end the view, stop it and resume it.
fn listen(sender: Sender<Event>) -> Result<(), Failure> {
    let signals = measuring::ending_signals().chain([SIGTSTP, SIGCONT]);
    let mut signals = Signals::new(signals)
        .map_err(|error| Failure::new(INTERNAL, format_args!("cannot listen for signals: {error}")))?;
    thread::spawn(move || signals.forever().all(|signal| sender.send(Event::Signal(signal)).is_ok()));
    Ok(())
}

fn readings_ended() -> Failure {
    Failure::new(INTERNAL, "the readings have ended")
}

fn lost(error: io::Error) -> Failure {
    Failure::cannot(format_args!("cannot use this terminal: {}", io_words(&error)))
}

struct View {
    app: App,
    requests: Sender<Request>,
    /// The signal that ends a stop of its own is still to come.
    awaits_resume: bool,
    is_over: bool,
}

impl View {
    fn run(&mut self, tty: &mut Tty, events: &Receiver<Event>) -> Result<(), Failure> {
        self.measure(tty).map_err(lost)?;
        while !self.is_over {
            tty.draw(&self.app).map_err(lost)?;
            let mut next = None;
            while next.is_none() {
                next = events.recv_timeout(CHECK).ok();
                rustix::termios::tcgetwinsize(io::stdout()).map_err(|error| lost(error.into()))?;
            }
            // Whatever has come is drawn at once.
            for event in next.into_iter().chain(events.try_iter()) {
                self.meet(event, tty)?;
            }
        }
        Ok(())
    }

    fn meet(&mut self, event: Event, tty: &mut Tty) -> Result<(), Failure> {
        match event {
            Event::News(news) => self.take(news)?,
            Event::NewsEnded => return Err(readings_ended()),
            Event::Input(Input::Resize(width, height)) => self.app.resize(width, height),
            Event::Input(Input::Key(key)) => {
                for effect in self.app.handle(key) {
                    self.follow(effect, tty).map_err(lost)?;
                }
            }
            Event::InputEnded => return Err(Failure::cannot("cannot read keys from this terminal")),
            Event::Signal(SIGTSTP) => self.suspend(tty).map_err(lost)?,
            Event::Signal(SIGCONT) => self.resume(tty).map_err(lost)?,
            // Ctrl-C from elsewhere, SIGTERM, SIGHUP.
            Event::Signal(_) => self.is_over = true,
        }
        Ok(())
    }

    /// Takes the size of the terminal.
    fn measure(&mut self, tty: &Tty) -> io::Result<()> {
        let (width, height) = tty.size()?;
        self.app.resize(width, height);
        Ok(())
    }

    /// Stops as a shell wants it, and returns when it is resumed.
    fn suspend(&mut self, tty: &mut Tty) -> io::Result<()> {
        self.awaits_resume = true;
        tty.pause(|| signal_hook::low_level::emulate_default_handler(SIGTSTP))?;
        self.measure(tty)
    }

    /// Takes the terminal again after a stop by SIGSTOP, which no program sees.
    fn resume(&mut self, tty: &mut Tty) -> io::Result<()> {
        if std::mem::take(&mut self.awaits_resume) {
            return Ok(());
        }
        tty.pause(|| Ok(()))?;
        self.measure(tty)
    }

    fn take(&mut self, news: News) -> Result<(), Failure> {
        match news {
            News::Reading(reading) => self.app.take(reading),
            News::Mappings(mappings) => self.app.take_mappings(mappings),
            News::End => {
                self.app.pause();
                self.app.say("end of the recording");
            }
            News::Failed(failure) => return Err(failure),
        }
        Ok(())
    }

    fn follow(&mut self, effect: Effect, tty: &mut Tty) -> io::Result<()> {
        let request = match effect {
            Effect::Quit => {
                self.is_over = true;
                return Ok(());
            }
            Effect::Suspend => return self.suspend(tty),
            Effect::Redraw => return tty.forget(),
            Effect::Save { name, text } => {
                let sentence = save(&name, &text);
                self.app.say(sentence);
                return Ok(());
            }
            Effect::Pause(paused) => Request::Pause(paused),
            Effect::Every(every) => Request::Every(every),
            Effect::Interest(interest) => Request::Interest(interest),
            Effect::Mappings(identity) => Request::Mappings(identity),
            Effect::Seek(seek) => Request::Seek(seek),
        };
        // A reader that has ended has sent the reason.
        let _ = self.requests.send(request);
        Ok(())
    }
}

/// Writes the screen to a file that does not exist yet; returns what became of it.
fn save(name: &str, text: &str) -> String {
    let shown = visible(name);
    let file = OpenOptions::new().write(true).create_new(true).open(name);
    match file.and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => format!("wrote {shown}"),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            format!("{shown} already exists: choose another name")
        }
        Err(error) => format!("cannot write {shown}: {}", io_words(&error)),
    }
}
