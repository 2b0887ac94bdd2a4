//! Readings of a recording, forwards and back.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use nodewise_diagnose::Delta;
use nodewise_machine::printable::printable;
use nodewise_source::record::{Gap, RecordError, Recording};
use nodewise_source::sample::Sample;
use nodewise_terminal::{Position, Reading, Seek};

use super::live::digest;
use super::message::{Event, Gone, News, Reporter, Request};
use super::pace::Pace;
use crate::command::recording::gap_sentence;
use crate::failure::Failure;

/// Samples before and behind the one that is shown which stay unpacked.
const AROUND: usize = 16;
const MINUTE: Duration = Duration::from_secs(60);

/// Opens a recording and starts the thread that reads it.
///
/// # Errors
/// A file that is not a recording, and one without a whole sample.
pub(super) fn start(
    file: &Path,
    at: Option<Duration>,
    every: Duration,
    events: Sender<Event>,
) -> Result<Sender<Request>, Failure> {
    let name = file.to_string_lossy();
    let fail = |error: RecordError| Failure::cannot(format_args!("{}: {error}", printable(&name)));
    let recording = Recording::open(file).map_err(fail)?;
    let mut replay = Replay::new(recording).map_err(fail)?;
    replay.begin(at.unwrap_or_default());
    let (asker, requests) = mpsc::channel();
    thread::spawn(move || {
        // It ends with the view.
        let _ = play(&mut replay, &requests, &Reporter(events), every);
    });
    Ok(asker)
}

/// Sends readings until the view has gone.
fn play(
    replay: &mut Replay,
    requests: &Receiver<Request>,
    reporter: &Reporter,
    every: Duration,
) -> Result<(), Gone> {
    let mut paused = true;
    let mut pace = Pace::new(every, Instant::now());
    reporter.send(News::Reading(replay.reading()))?;
    loop {
        let request = if paused {
            requests.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            requests.recv_timeout(pace.left(Instant::now()))
        };
        let mut has_moved = false;
        let mut is_over = false;
        match request {
            Ok(Request::Seek(seek)) => has_moved = replay.go(seek),
            Ok(Request::Pause(now)) => {
                paused = now;
                pace.restart(Instant::now());
            }
            Ok(Request::Every(every)) => pace.change(every, Instant::now()),
            Ok(Request::Interest(_) | Request::Mappings(_)) => {}
            Err(RecvTimeoutError::Timeout) => {
                pace.advance(Instant::now());
                has_moved = replay.go(Seek::On);
                is_over = !has_moved;
            }
            Err(RecvTimeoutError::Disconnected) => return Err(Gone),
        }
        paused |= is_over;
        if has_moved {
            reporter.send(News::Reading(replay.reading()))?;
        } else if is_over {
            reporter.send(News::End)?;
        }
    }
}

/// A place in a recording, and the samples around it.
struct Replay {
    recording: Recording,
    first: Duration,
    last: Duration,
    samples: VecDeque<Sample>,
    gaps: Vec<Gap>,
    /// The sample that is shown, among them.
    at: usize,
}

impl Replay {
    fn new(recording: Recording) -> Result<Self, RecordError> {
        let (first, last) = recording.span().unwrap_or_default();
        let mut replay = Self { recording, first, last, samples: VecDeque::new(), gaps: Vec::new(), at: 0 };
        replay.go_to(first);
        if replay.samples.is_empty() {
            return Err(RecordError::NoSamples(replay.recording.damaged_bytes()));
        }
        Ok(replay)
    }

    /// Goes to the moment to begin with, this long after the beginning. The first sample has none before it to
    /// compare with, so that is the second one.
    fn begin(&mut self, at: Duration) {
        self.go(Seek::To(at));
        if self.at == 0 {
            self.go(Seek::On);
        }
    }

    /// Goes to the last sample at or before a time; the first one where all are later.
    fn go_to(&mut self, wall: Duration) {
        let mut samples: VecDeque<Sample> = VecDeque::new();
        // Samples that are later; those before lose the oldest.
        let mut later = 0;
        self.gaps = self.recording.read_around(wall, |sample| {
            let is_later = sample.moment.wall > wall;
            later += usize::from(is_later);
            samples.push_back(sample);
            if !is_later && samples.len() > AROUND {
                samples.pop_front();
            }
            later < AROUND
        });
        if let Some(at) = samples.iter().rposition(|sample| sample.moment.wall <= wall) {
            self.at = at;
            self.samples = samples;
        } else if !samples.is_empty() {
            self.at = 0;
            self.samples = samples;
        }
    }

    fn wall(&self) -> Duration {
        self.samples[self.at].moment.wall
    }

    /// Moves; says whether another sample is shown now.
    fn go(&mut self, seek: Seek) -> bool {
        let before = self.wall();
        match seek {
            Seek::On => {
                if self.at + 1 >= self.samples.len() {
                    self.go_to(before);
                }
                if self.at + 1 < self.samples.len() {
                    self.at += 1;
                }
            }
            Seek::Back => {
                // The sample before is wanted for rates, too.
                if self.at < 2 {
                    self.go_to(before);
                }
                self.at = self.at.saturating_sub(1);
            }
            Seek::MinuteOn => self.go_to(before.saturating_add(MINUTE)),
            Seek::MinuteBack => self.go_to(before.saturating_sub(MINUTE).max(self.first)),
            Seek::To(at) => self.go_to(self.first.saturating_add(at)),
            Seek::End => self.go_to(Duration::MAX),
        }
        self.wall() != before
    }

    /// The reading at this place.
    fn reading(&self) -> Reading {
        let now = &self.samples[self.at];
        let before = self.at.checked_sub(1).map(|before| &self.samples[before]);
        // Samples of two starts of the machine have no change between them.
        let delta = before.and_then(|before| Delta::between(before, now).ok());
        let delta = delta.unwrap_or_else(|| Delta::since_boot(now));
        let wall = now.moment.wall;
        let gap =
            self.gaps.iter().find(|gap| gap.to == Some(wall) || gap.to.is_none() && gap.from == Some(wall));
        let position = Position {
            at: wall.saturating_sub(self.first),
            length: self.last.saturating_sub(self.first),
            gap: gap.map(gap_sentence),
        };
        Reading { running: digest(now, &delta), position: Some(position) }
    }
}

#[cfg(test)]
mod tests {
    use nodewise_source::record::{Header, Writer};
    use nodewise_source::sample::Moment;

    use super::*;

    /// Samples a second apart, from a moment between two milliseconds.
    fn replay(samples: u64) -> Replay {
        let header = Header::new("1", Duration::from_secs(1), None);
        let mut writer = Writer::begin(Vec::new(), &header, None).unwrap();
        for second in 0..samples {
            let since_boot = Duration::from_secs(second);
            let wall = Duration::from_micros(1_700_000_000_000_700) + since_boot;
            writer.push(&Sample { moment: Moment { since_boot, wall }, ..Sample::default() }).unwrap();
        }
        Replay::new(Recording::from_bytes(writer.finish().unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn a_replay_begins_with_a_sample_that_has_rates() {
        let check = |samples, at, expected| {
            let mut replay = replay(samples);
            replay.begin(at);
            let position = replay.reading().position.unwrap();
            assert_eq!(position.at, Duration::from_secs(expected), "{at:?}");
        };
        check(3, Duration::ZERO, 1);
        check(3, Duration::from_micros(1_999_999), 1);
        check(3, Duration::from_secs(2), 2);
        check(3, Duration::MAX, 2);
        check(1, Duration::ZERO, 0);
    }
}
