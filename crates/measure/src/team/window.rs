//! The time in which all threads were running, and what each did in it.

use std::time::Duration;

/// When a thread had done how much.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Track {
    /// Moments since a common one, ascending, with the words done by then.
    notes: Vec<(Duration, u64)>,
}

impl Track {
    /// An empty track with room for this many notes, so that noting does not have to make room.
    pub fn with_capacity(notes: usize) -> Self {
        Self { notes: Vec::with_capacity(notes) }
    }

    /// Notes that this many more words are done at a moment.
    pub fn note(&mut self, at: Duration, words: u64) {
        let done = self.notes.last().map_or(0, |(_, done)| *done);
        self.notes.push((at, done + words));
    }

    /// From its first note to its last.
    pub fn length(&self) -> Option<Duration> {
        Some(self.notes.last()?.0.saturating_sub(self.notes.first()?.0))
    }

    /// Words done at a moment, between two notes in proportion to the time.
    fn words_at(&self, at: Duration) -> f64 {
        let after = self.notes.partition_point(|(moment, _)| *moment <= at);
        let Some(&(from, done)) = after.checked_sub(1).and_then(|before| self.notes.get(before)) else {
            return 0.0;
        };
        let Some(&(to, then)) = self.notes.get(after) else { return done as f64 };
        let share = (at - from).as_secs_f64() / (to - from).as_secs_f64();
        done as f64 + share * (then - done) as f64
    }
}

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    from: Duration,
    to: Duration,
}

impl Window {
    /// From the last thread's beginning to the first one's end; `None` where these do not overlap.
    pub fn from_tracks(tracks: &[Track]) -> Option<Self> {
        let starts = tracks.iter().map(|track| track.notes.first().map(|(at, _)| *at));
        let ends = tracks.iter().map(|track| track.notes.last().map(|(at, _)| *at));
        let from = starts.collect::<Option<Vec<_>>>()?.into_iter().max()?;
        let to = ends.collect::<Option<Vec<_>>>()?.into_iter().min()?;
        (from < to).then_some(Self { from, to })
    }

    /// How long it is.
    pub fn length(&self) -> Duration {
        self.to - self.from
    }

    /// Words of a thread that were done in it.
    pub fn words(&self, track: &Track) -> f64 {
        track.words_at(self.to) - track.words_at(self.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, proptest};

    fn track(notes: &[(u64, u64)]) -> Track {
        let mut track = Track::default();
        for (at, words) in notes {
            track.note(Duration::from_millis(*at), *words);
        }
        track
    }

    #[test]
    fn what_a_thread_did_alone_does_not_count() {
        // One runs from 0 to 100 at 10 words per ms, the other from 50 to 150 at 20.
        let one = track(&[(0, 0), (100, 1000)]);
        let other = track(&[(50, 0), (100, 1000), (150, 1000)]);
        let tracks = [one, other];
        let window = Window::from_tracks(&tracks).unwrap();
        assert_eq!(window.length(), Duration::from_millis(50));
        assert_eq!(tracks.each_ref().map(|track| window.words(track)), [500.0, 1000.0]);
        // Each for its own time would have given the same sum here, but not where one is alone:
        let late = [track(&[(0, 0), (50, 1000), (100, 500)]), track(&[(50, 0), (100, 500)])];
        let window = Window::from_tracks(&late).unwrap();
        assert_eq!(late.each_ref().map(|track| window.words(track)), [500.0, 500.0]);
    }

    #[test]
    fn threads_that_never_ran_together_have_no_window() {
        assert_eq!(Window::from_tracks(&[track(&[(0, 0), (10, 5)]), track(&[(10, 0), (20, 5)])]), None);
        assert_eq!(Window::from_tracks(&[track(&[(0, 0), (10, 5)]), Track::default()]), None);
        assert_eq!(Window::from_tracks(&[]), None);
    }

    proptest! {
        #[test]
        fn a_window_holds_no_more_than_was_done(
            steps in prop::collection::vec(prop::collection::vec((1u64..50, 0u64..1000), 1..20), 1..6),
        ) {
            let tracks: Vec<Track> = steps
                .iter()
                .map(|steps| {
                    let mut now = 0;
                    let mut notes = vec![(steps.len() as u64, 0)];
                    now += steps.len() as u64;
                    for (time, words) in steps {
                        now += time;
                        notes.push((now, *words));
                    }
                    track(&notes)
                })
                .collect();
            let Some(window) = Window::from_tracks(&tracks) else { return Ok(()) };
            for (track, steps) in tracks.iter().zip(&steps) {
                let all: u64 = steps.iter().map(|(_, words)| words).sum();
                let counted = window.words(track);
                prop_assert!(counted >= -1e-6 && counted <= all as f64 + 1e-6);
                prop_assert!(window.length() <= track.length().unwrap());
            }
        }
    }
}
