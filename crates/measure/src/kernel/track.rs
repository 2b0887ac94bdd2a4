//! A [`Cycle`] laid into memory as pointers, and the chase along it.

use std::hint::black_box;
use std::sync::Arc;

use nodewise_syscall::NodeBuffer;

use super::chase::TURN;
use super::cycle::Cycle;

/// How far apart places are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// A cache line of 64 bytes: each load is of another line.
    Line,
    /// A pointer of 8 bytes: neighbours share a line.
    Word,
}

impl Spacing {
    /// Bytes from one place to the next.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Line => 64,
            Self::Word => 8,
        }
    }
}

/// Places between two questions whether to go on.
const PART: usize = 1 << 18;

/// Memory through which a cycle leads: each place holds the address of the one after it.
#[derive(Debug)]
pub struct Track {
    buffer: NodeBuffer,
    cycle: Arc<Cycle>,
    spacing: Spacing,
    /// Steps from place 0 to where the chase is.
    steps: u64,
    at: usize,
}

impl Track {
    /// Lays a cycle into memory, from end to end. `None` when the memory is too small for it.
    pub fn lay(buffer: NodeBuffer, cycle: Arc<Cycle>, spacing: Spacing) -> Option<Self> {
        Self::lay_while(buffer, cycle, spacing, &mut || true)
    }

    /// As [`Track::lay`], for as long as `go_on` says so; `None` also where it ended that.
    pub fn lay_while(
        mut buffer: NodeBuffer,
        cycle: Arc<Cycle>,
        spacing: Spacing,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Option<Self> {
        let words = buffer.as_words().len();
        let stride = spacing.bytes() / 8;
        if cycle.places().checked_mul(stride)? > words {
            return None;
        }
        let base = buffer.address();
        let address = |place: usize| base + place * spacing.bytes();
        for (place, link) in buffer.as_mut_words().chunks_mut(stride).enumerate() {
            if place == cycle.places() {
                break;
            }
            if place % PART == 0 && !go_on() {
                return None;
            }
            link[0] = address(cycle.after(place)) as u64;
        }
        // Exposed after the last write, for the loads of the chase.
        let at = buffer.as_words().as_ptr().expose_provenance();
        let track = Self { buffer, cycle, spacing, steps: 0, at };
        track.holds_its_cycle_while(go_on).then_some(track)
    }

    /// Whether each place holds the address of the one after it, by reading all of them.
    pub fn holds_its_cycle(&self) -> bool {
        self.holds_its_cycle_while(&mut || true)
    }

    /// As [`Track::holds_its_cycle`]; `false` also where `go_on` ended it.
    fn holds_its_cycle_while(&self, go_on: &mut dyn FnMut() -> bool) -> bool {
        let stride = self.spacing.bytes() / 8;
        let links = self.buffer.as_words().chunks(stride);
        links.take(self.cycle.places()).enumerate().all(|(place, link)| {
            (place % PART != 0 || go_on()) && link[0] == self.address(self.cycle.after(place)) as u64
        })
    }

    fn address(&self, place: usize) -> usize {
        self.buffer.address() + place * self.spacing.bytes()
    }

    /// The memory.
    pub fn buffer(&self) -> &NodeBuffer {
        &self.buffer
    }

    /// How many places it has.
    pub fn places(&self) -> usize {
        self.cycle.places()
    }

    /// Follows the cycle for this many turns of [`TURN`] loads, from where the last call ended. This is
    /// what is timed.
    pub fn follow(&mut self, turns: u64) {
        let mut at = black_box(self.at);
        for _ in 0..turns {
            // The compiler writes this out: the bound is a constant.
            for _ in 0..TURN {
                // SAFETY: `at` is the address of a place: the first one's from `lay`, or one that was
                // read from a place. Every place was filled by `lay` with the address of a place of the
                // same buffer, aligned for u64 and inside it; the buffer is ours, borrowed here, and
                // never handed out to be written since.
                at = unsafe { load(at) };
            }
        }
        self.at = black_box(at);
        self.steps = (self.steps + (turns % self.places() as u64) * TURN) % self.places() as u64;
    }

    /// Whether the chase is where this many steps lead: one that skipped loads is elsewhere.
    pub fn is_where_it_should_be(&self) -> bool {
        self.at == self.address(self.cycle.place_after(self.steps))
    }
}

/// Reads the address that is at an address.
///
/// # Safety
/// `at` is the address of an initialised u64, aligned, that is not written to meanwhile.
#[inline(always)]
unsafe fn load(at: usize) -> usize {
    let place: *const u64 = std::ptr::with_exposed_provenance(at);
    // SAFETY: the caller's obligation; `lay` has exposed the provenance of the buffer. A volatile read is neither left out nor merged with another.
    let next = unsafe { std::ptr::read_volatile(place) };
    next as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::Bytes;
    use nodewise_stats::random::Random;
    use nodewise_syscall::PageKind;
    use proptest::prelude::{any, prop_assert, proptest};

    fn buffer(bytes: u64) -> NodeBuffer {
        NodeBuffer::new(Bytes::new(bytes), PageKind::Small, None).unwrap()
    }

    fn track(cycle: Cycle, spacing: Spacing) -> Track {
        let bytes = cycle.places() * spacing.bytes();
        Track::lay(buffer(bytes as u64), Arc::new(cycle), spacing).unwrap()
    }

    #[test]
    fn memory_that_is_too_small_is_refused() {
        let cycle = Arc::new(Cycle::strided(100, 1).unwrap());
        assert!(Track::lay(buffer(6399), Arc::clone(&cycle), Spacing::Line).is_none());
        assert!(Track::lay(buffer(6400), Arc::clone(&cycle), Spacing::Line).is_some());
        assert!(Track::lay(buffer(800), cycle, Spacing::Word).is_some());
    }

    #[test]
    fn a_place_that_was_overwritten_is_noticed() {
        let mut track = track(Cycle::random(1000, &mut Random::new(1)).unwrap(), Spacing::Line);
        assert!(track.holds_its_cycle());
        track.buffer.as_mut_words()[8 * 999] ^= 64;
        assert!(!track.holds_its_cycle());
    }

    #[test]
    fn a_load_too_few_is_noticed() {
        let mut track = track(Cycle::random(1000, &mut Random::new(1)).unwrap(), Spacing::Line);
        track.follow(5);
        assert!(track.is_where_it_should_be());
        track.steps += 1;
        assert!(!track.is_where_it_should_be());
    }

    proptest! {
        #[test]
        fn a_chase_ends_where_its_cycle_leads(
            places in 1usize..4000, seed in any::<u64>(), parts in proptest::collection::vec(0u64..300, 1..4),
        ) {
            for spacing in [Spacing::Line, Spacing::Word] {
                let mut track = track(Cycle::random(places, &mut Random::new(seed)).unwrap(), spacing);
                for turns in &parts {
                    track.follow(*turns);
                    prop_assert!(track.is_where_it_should_be());
                }
            }
        }
    }
}
