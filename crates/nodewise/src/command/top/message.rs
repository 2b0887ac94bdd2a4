//! Messages between the view and the thread that reads for it.

use std::time::Duration;

use nodewise_terminal::{Interest, Mappings, Reading, Seek};

use crate::failure::Failure;

/// A request to the thread that reads.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Interest(Interest),
    Every(Duration),
    Pause(bool),
    Mappings(u32),
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
