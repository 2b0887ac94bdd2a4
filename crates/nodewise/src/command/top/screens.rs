//! The loop: keys and readings to the view, its effects to whoever has them done.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::Duration;

use nodewise_machine::printable::{io_words, visible};
use nodewise_terminal::{App, Effect, Inks, Input, Origin, Tty};
use nodewise_view::style::Colour;
use signal_hook::consts::{SIGCONT, SIGTSTP};

use super::message::{News, Request};
use super::{live, replay};
use crate::cli::Global;
use crate::cli::top::Top;
use crate::failure::{Failure, INTERNAL, Outcome};
use crate::{measuring, output};

/// The time between readings, unless one is given.
const EVERY: Duration = Duration::from_secs(1);
/// How long a reading or a signal waits at most to be seen.
const LOOK: Duration = Duration::from_millis(50);

/// Shows the screens until `q` or a signal.
pub(super) fn run(args: &Top, global: &Global) -> Outcome {
    let inks = match output::style(global.color).colour() {
        Colour::Always => Inks::Coloured,
        Colour::Never => Inks::Plain,
    };
    let every = args.interval.unwrap_or(EVERY);
    let (origin, requests, news) = match &args.from {
        Some(file) => {
            let (requests, news) = replay::start(file, args.at, every)?;
            (Origin::Recording(file.to_string_lossy().into_owned()), requests, news)
        }
        None => {
            let (requests, news) = live::start(every);
            (Origin::Live, requests, news)
        }
    };
    let is_root = origin == Origin::Live && rustix::process::geteuid().is_root();
    let app = App::new(origin, every, inks);
    let mut view = View {
        app: if is_root { app.of_root() } else { app },
        requests,
        news,
        interrupt: measuring::interrupt()?,
        suspend: flag(SIGTSTP)?,
        resumed: flag(SIGCONT)?,
        is_over: false,
    };
    // What cannot be read at all is said on an ordinary terminal.
    if let Ok(first) = view.news.recv() {
        view.take(first)?;
    }
    let mut tty = Tty::open(io::stdout).map_err(lost)?;
    let ended = view.run(&mut tty);
    drop(tty);
    ended.map(|()| 0)
}

fn flag(signal: i32) -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal, Arc::clone(&flag))
        .map_err(|error| Failure::new(INTERNAL, format_args!("cannot listen for signals: {error}")))?;
    Ok(flag)
}

fn lost(error: io::Error) -> Failure {
    Failure::cannot(format_args!("cannot use this terminal: {}", io_words(&error)))
}

struct View {
    app: App,
    requests: Sender<Request>,
    news: Receiver<News>,
    /// Ctrl-C from elsewhere, SIGTERM, SIGHUP.
    interrupt: Arc<AtomicBool>,
    suspend: Arc<AtomicBool>,
    resumed: Arc<AtomicBool>,
    is_over: bool,
}

impl View {
    fn run(&mut self, tty: &mut Tty) -> Result<(), Failure> {
        let (width, height) = tty.size().map_err(lost)?;
        self.app.resize(width, height);
        tty.draw(&self.app).map_err(lost)?;
        let inputs = tty.inputs();
        while !self.is_over && !self.interrupt.load(Ordering::Relaxed) {
            let mut has_changed = self.signals(tty).map_err(lost)?;
            let mut within = LOOK;
            while let Some(input) = next(&inputs, within)? {
                has_changed = true;
                within = Duration::ZERO;
                match input {
                    Input::Resize(width, height) => self.app.resize(width, height),
                    Input::Key(key) => {
                        for effect in self.app.handle(key) {
                            self.follow(effect, tty).map_err(lost)?;
                        }
                    }
                }
            }
            loop {
                match self.news.try_recv() {
                    Ok(news) => self.take(news)?,
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => {
                        return Err(Failure::new(INTERNAL, "the readings have ended"));
                    }
                }
                has_changed = true;
            }
            if has_changed && !self.is_over {
                tty.draw(&self.app).map_err(lost)?;
            }
        }
        Ok(())
    }

    /// Stops and goes on as a shell wants it; says whether everything is to be drawn.
    fn signals(&mut self, tty: &mut Tty) -> io::Result<bool> {
        // A terminal that was closed sends no key, and no signal to a program that ignores SIGHUP.
        rustix::termios::tcgetwinsize(io::stdout())?;
        if self.suspend.swap(false, Ordering::Relaxed) {
            tty.pause(|| signal_hook::low_level::emulate_default_handler(SIGTSTP))?;
            self.resumed.store(false, Ordering::Relaxed);
        } else if self.resumed.swap(false, Ordering::Relaxed) {
            // Stopped by a signal that no program sees.
            tty.pause(|| Ok(()))?;
        } else {
            return Ok(false);
        }
        let (width, height) = tty.size()?;
        self.app.resize(width, height);
        Ok(true)
    }

    fn take(&mut self, news: News) -> Result<(), Failure> {
        match news {
            News::Reading(reading) => self.app.take(reading),
            News::Mappings(mappings) => self.app.take_mappings(mappings),
            News::End => {
                self.app.pause();
                self.app.say("the recording ends here");
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
            Effect::Suspend => {
                self.suspend.store(true, Ordering::Relaxed);
                return Ok(());
            }
            Effect::Redraw => return tty.forget(),
            Effect::Save { name, text } => {
                let sentence = save(&name, &text);
                self.app.say(sentence);
                return Ok(());
            }
            Effect::Pause(paused) => Request::Pause(paused),
            Effect::Every(every) => Request::Every(every),
            Effect::Interest(interest) => Request::Interest(interest),
            Effect::Mappings(pid) => Request::Mappings(pid),
            Effect::Seek(seek) => Request::Seek(seek),
        };
        // A reader that has ended has sent the reason.
        let _ = self.requests.send(request);
        Ok(())
    }
}

/// The next key or size, if one comes in time.
fn next(inputs: &Receiver<Input>, within: Duration) -> Result<Option<Input>, Failure> {
    match inputs.recv_timeout(within) {
        Ok(input) => Ok(Some(input)),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(Failure::cannot("cannot read keys from this terminal")),
    }
}

/// Writes the screen to a file that does not exist yet; returns what became of it.
fn save(name: &str, text: &str) -> String {
    let shown = visible(name);
    let file = OpenOptions::new().write(true).create_new(true).open(name);
    match file.and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => format!("wrote {shown}"),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            format!("{shown} exists: name another file")
        }
        Err(error) => format!("cannot write {shown}: {}", io_words(&error)),
    }
}
