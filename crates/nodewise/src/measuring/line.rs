//! The line that shows how far a measurement is, or the start of a guest: on a terminal only, and drawn only by calls that come
//! between samples, for nothing ticks by itself.

use std::cell::RefCell;
use std::fmt::Display;
use std::io::{self, Write};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use nodewise_measure::survey::Progress;

use crate::{output, progress};

/// The line. It is gone when this is dropped.
pub struct ProgressLine {
    bar: ProgressBar,
    shown: RefCell<Shown>,
}

/// The contents of the line.
#[derive(Default)]
struct Shown {
    phase: Option<Phase>,
    survey: Option<Progress>,
}

/// Work that is under way.
struct Phase {
    name: String,
    since: Instant,
    /// How many of its seconds the line shows.
    seconds: u64,
}

impl ProgressLine {
    /// An empty line on standard error.
    pub fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, progress::target());
        set_style(&bar, "{wide_msg}");
        Self { bar, shown: RefCell::default() }
    }

    /// Shows work that begins.
    pub fn enter(&self, phase: impl Display) {
        let mut shown = self.shown.borrow_mut();
        shown.phase = Some(Phase { name: phase.to_string(), since: Instant::now(), seconds: 0 });
        self.bar.set_message(words(&shown));
    }

    /// Shows how long the work takes, when another second has gone.
    pub fn pulse(&self) {
        let mut shown = self.shown.borrow_mut();
        let Some(phase) = &mut shown.phase else { return };
        let seconds = phase.since.elapsed().as_secs();
        if seconds > phase.seconds {
            phase.seconds = seconds;
            self.bar.set_message(words(&shown));
        }
    }

    /// Says something on standard error, above the line.
    pub fn say(&self, text: &str) {
        self.bar.suspend(|| output::say(text));
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Shows how far a survey is, before its next step.
    pub fn draw(&self, progress: Progress) {
        let mut shown = self.shown.borrow_mut();
        if shown.survey.is_none() {
            set_style(&self.bar, "{bar:12} {pos}/{len}  {wide_msg}");
        }
        *shown = Shown { phase: None, survey: Some(progress) };
        self.bar.set_length(progress.all);
        self.bar.set_position(progress.done);
        self.bar.set_message(words(&shown));
    }
}

/// A stream that takes the line away before anything is written to it.
pub struct BehindLine<W> {
    bar: ProgressBar,
    stream: W,
}

impl<W> BehindLine<W> {
    /// The stream behind this line.
    pub fn new(line: &ProgressLine, stream: W) -> Self {
        Self { bar: line.bar.clone(), stream }
    }
}

impl<W: Write> Write for BehindLine<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bar.finish_and_clear();
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn set_style(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

/// Composes the end of the line: the time that is left, what is done more than once, what is under way.
fn words(shown: &Shown) -> String {
    let left = shown.survey.and_then(|progress| progress.left);
    let left = left.map(|left| format!("{} left", seconds(left.as_secs())));
    let again = shown.survey.is_some_and(|progress| progress.again);
    let again = again.then(|| "disturbed cells once more".to_owned());
    let phase = shown.phase.as_ref().map(|phase| match phase.seconds {
        0 => phase.name.clone(),
        since => format!("{}, {}", phase.name, seconds(since)),
    });
    [left, again, phase].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// A time as the line shows it: seconds, and minutes where there are many.
fn seconds(time: u64) -> String {
    if time < 120 { format!("{time} s") } else { format!("{} min", time.div_ceil(60)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{Bytes, NodeId};
    use nodewise_measure::cell::Phase as Work;
    use std::time::Duration;

    #[test]
    fn the_line_says_what_is_under_way_since_when_and_how_long_it_takes() {
        let work = Work::Filling { size: Bytes::from_gib(8), node: NodeId::new(1) };
        let phase = |seconds| Phase { name: work.to_string(), since: Instant::now(), seconds };
        let survey = |again| Progress { done: 3, all: 9, left: Some(Duration::from_millis(12_700)), again };
        let check = |shown: &Shown, expected: &str| assert_eq!(words(shown), expected);
        check(&Shown::default(), "");
        check(&Shown { phase: Some(phase(0)), survey: None }, "filling 8 GiB on node 1");
        check(&Shown { phase: Some(phase(3)), survey: None }, "filling 8 GiB on node 1, 3 s");
        check(&Shown { phase: None, survey: Some(survey(true)) }, "12 s left; disturbed cells once more");
        let both = Shown { phase: Some(phase(1)), survey: Some(survey(false)) };
        check(&both, "12 s left; filling 8 GiB on node 1, 1 s");
        assert_eq!((seconds(119), seconds(121)), ("119 s".to_owned(), "3 min".to_owned()));
    }
}
