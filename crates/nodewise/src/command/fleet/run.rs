//! `nodewise fleet run`: the scripts of a plan, started and followed.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use nodewise_machine::printable::{io_words, printable, quote};
use nodewise_view::digest::study::duration;

use super::files::SurveyFolder;
use crate::cli::fleet::FleetRun;
use crate::failure::{Failure, Outcome};
use crate::{measuring, output};

/// The program of a plan that starts it.
const SUBMIT: &str = "submit.sh";
/// How often files are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Starts a plan and follows it.
pub fn run(args: &FleetRun) -> Outcome {
    let (folder, starts) = match (&args.follow, &args.plan) {
        (Some(follow), _) => (follow, false),
        (None, Some(plan)) => (plan, true),
        (None, None) => return Err(Failure::usage("DIR is missing: the directory of a plan")),
    };
    SurveyFolder::open(folder)?;
    let interrupt = measuring::interrupt()?;
    let began = Instant::now();
    let mut child = if starts { Some(Started::new(folder)?) } else { None };
    let line = Line::new();
    loop {
        let is_running = child.as_mut().map(Started::is_running).transpose()?.unwrap_or(false);
        // submit.sh may write the list of hosts itself.
        let found = SurveyFolder::open(folder)?;
        let followed = Followed::new(&found)?;
        line.show(&followed, began.elapsed());
        if !is_running && followed.is_complete() {
            line.end();
            return Ok(followed.end(folder));
        }
        if interrupt.load(Ordering::Relaxed) || began.elapsed() >= args.limit {
            line.end();
            if is_running {
                output::say(&format!("{SUBMIT} is still running"));
            }
            return Ok(followed.end(folder));
        }
        measuring::wait(Instant::now() + LOOK, &interrupt, || false);
    }
}

/// `submit.sh` of a plan.
struct Started {
    child: Child,
}

impl Started {
    fn new(folder: &Path) -> Result<Self, Failure> {
        let submit = folder.join(SUBMIT);
        if !submit.is_file() {
            return Err(Failure::usage(format_args!(
                "{} has no {SUBMIT}: nodewise fleet plan writes one; --follow takes results from elsewhere",
                quote(&folder.display().to_string())
            )));
        }
        // Its output is for people, and ours is empty.
        let child = Command::new("sh").arg(&submit).stdin(Stdio::null()).stdout(io::stderr()).spawn();
        let child = child
            .map_err(|error| Failure::cannot(format_args!("cannot start {SUBMIT}: {}", io_words(&error))))?;
        Ok(Self { child })
    }

    /// Whether the program still runs.
    ///
    /// # Errors
    /// One that has failed.
    fn is_running(&mut self) -> Result<bool, Failure> {
        let ended = self.child.try_wait().map_err(|error| {
            Failure::cannot(format_args!("cannot wait for {SUBMIT}: {}", io_words(&error)))
        })?;
        match ended {
            None => Ok(true),
            Some(status) if status.success() => Ok(false),
            Some(status) => Err(Failure::cannot(format_args!("{SUBMIT} failed: {status}"))),
        }
    }
}

/// How far the surveys are.
struct Followed {
    expected: Option<BTreeSet<String>>,
    answered: BTreeSet<String>,
}

impl Followed {
    fn new(folder: &SurveyFolder) -> Result<Self, Failure> {
        Ok(Self { expected: folder.expected.clone(), answered: folder.answered()? })
    }

    /// Whether every host has answered; without a list that is unknown.
    fn is_complete(&self) -> bool {
        self.expected.as_ref().is_some_and(|expected| expected.is_subset(&self.answered))
    }

    fn words(&self) -> String {
        match &self.expected {
            Some(expected) => {
                format!(
                    "{} of {} hosts have answered",
                    self.answered.intersection(expected).count(),
                    expected.len()
                )
            }
            None => format!("{} hosts have answered", self.answered.len()),
        }
    }

    /// Says how it ended: the exit code.
    fn end(&self, folder: &Path) -> u8 {
        let folder = printable(&folder.to_string_lossy()).into_owned();
        output::say(&format!("{}: nodewise fleet report {folder}", self.words()));
        u8::from(!self.is_complete())
    }
}

/// The line of progress, on a terminal only.
struct Line {
    bar: ProgressBar,
}

impl Line {
    fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_style(
            ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        Self { bar }
    }

    fn show(&self, followed: &Followed, elapsed: Duration) {
        self.bar.set_message(format!("{}, {}", followed.words(), duration(elapsed)));
        self.bar.tick();
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}
