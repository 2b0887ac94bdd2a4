//! Messages between the view and the thread that reads for it.

use std::sync::mpsc::Sender;
use std::time::Duration;

use nodewise_terminal::{Input, Interest, Mappings, Reading, Seek};
use nodewise_view::digest::running::Identity;

use crate::failure::Failure;

/// A request to the thread that reads.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Interest(Interest),
    Every(Duration),
    Pause(bool),
    Mappings(Identity),
    Seek(Seek),
}

/// The answer of that thread.
#[derive(Debug)]
pub(super) enum News {
    Reading(Reading),
    Mappings(Mappings),
    /// The recording is at its end.
    End,
    Failed(Failure),
}

/// Something that the view waits for.
#[derive(Debug)]
pub(super) enum Event {
    News(News),
    /// The thread that reads has ended.
    NewsEnded,
    Input(Input),
    /// The terminal sends no keys any more.
    InputEnded,
    Signal(i32),
}

/// The view has gone.
pub(super) struct Gone;

/// Sends news to the view, and says when the thread that owns it has ended, by a panic, too.
pub(super) struct Reporter(pub(super) Sender<Event>);

impl Reporter {
    pub(super) fn send(&self, news: News) -> Result<(), Gone> {
        self.0.send(Event::News(news)).map_err(|_| Gone)
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        let _ = self.0.send(Event::NewsEnded);
    }
}
