//! Which threads write to which lines, and to which bytes of them: threads that share a line.
//!
//! Each CPU has a table of its own, so that no CPU waits for another; at the end they are laid side by side. Who wrote to a line
//! does not depend on when: two threads that write to it are found also if they never run at the same time. A table has room
//! for a limited number of lines. Where it is full the line with the fewest writes makes room, so lines that are written to over
//! and over stay.

use crate::pages::{Zeroed, zeroed};

/// Places for lines that fall together, and sets of them; few in tests, which fill them.
const WAYS: usize = 8;
const SETS: usize = if cfg!(test) { 4 } else { 1 << 14 };
/// Writes of each of two threads from which on a line counts as theirs. Filling memory once is less, by words of 8 bytes.
pub const MOST_BY_CHANCE: u32 = 50;

/// A line as threads share it: by its address in one process, or by its place in memory that processes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKey {
    /// The number of the line in the address space of the process.
    Private(u64),
    /// The number of the line in the machine's memory.
    Shared(u64),
}

impl LineKey {
    const SHARED: u64 = 1 << 63;

    /// As one word; numbers of lines have 58 bits.
    pub const fn word(self) -> u64 {
        match self {
            Self::Private(line) => line,
            Self::Shared(line) => line | Self::SHARED,
        }
    }
}

/// Writes of a thread to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writes {
    /// [`LineKey::word`].
    pub key: u64,
    /// The number of the line in the address space of the thread.
    pub line: u64,
    /// The bytes of the line that were written to, a bit for each.
    pub bytes: u64,
    /// How often; 0 is an empty place.
    pub count: u32,
    pub thread: u16,
    /// The label of the mapping.
    pub label: u16,
    /// The number of the instruction that wrote last; 0 where it is not known.
    pub at: u32,
}

// SAFETY: all members are integers.
unsafe impl Zeroed for Writes {}

impl Writes {
    /// Nothing.
    pub const NONE: Self = Self { key: 0, line: 0, bytes: 0, count: 0, thread: 0, label: 0, at: 0 };

    /// Whether a place has the writes of the same thread to the same line.
    fn is_of(&self, other: &Self) -> bool {
        (self.key, self.thread, self.label) == (other.key, other.thread, other.label) && self.count > 0
    }

    /// Adds writes of the same thread to the same line.
    fn add(&mut self, other: &Self) {
        self.bytes |= other.bytes;
        self.count = self.count.saturating_add(other.count);
        self.at = other.at;
    }

    /// Whether these are more than a thread makes that fills memory.
    const fn is_often(&self) -> bool {
        self.count > MOST_BY_CHANCE
    }
}

/// The lines that were written to on a CPU.
pub struct Writers {
    places: Option<&'static mut [Writes]>,
    /// Lines written to often that had to make room.
    pub lost: u64,
}

impl Writers {
    /// None yet.
    pub const fn new() -> Self {
        Self { places: None, lost: 0 }
    }

    /// Writes of a thread to a line.
    pub fn add(&mut self, writes: &Writes) {
        let places = self.places.get_or_insert_with(|| zeroed(SETS * WAYS));
        let Some(set) = places.get_mut(set(writes.key)) else { return };
        if let Some(known) = set.iter_mut().find(|place| place.is_of(writes)) {
            known.add(writes);
            return;
        }
        if let Some(place) = set.iter_mut().min_by_key(|place| place.count) {
            self.lost += u64::from(place.is_often());
            *place = *writes;
        }
    }

    /// All lines that were written to often.
    fn often(&self) -> impl Iterator<Item = &Writes> {
        self.places.iter().flat_map(|places| places.iter()).filter(|writes| writes.is_often())
    }

    /// Those of a line that were written to often.
    fn often_of(&self, key: u64) -> impl Iterator<Item = &Writes> {
        let set = self.places.as_deref().and_then(|places| places.get(set(key)));
        set.unwrap_or_default().iter().filter(move |writes| writes.key == key && writes.is_often())
    }
}

/// The places for a line.
fn set(key: u64) -> core::ops::Range<usize> {
    // Multiplicative hashing: the upper bits depend on all of the key.
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let start = hash as usize % SETS * WAYS;
    start..start + WAYS
}

/// Calls `each` with the CPU and the writes of every thread to a line that another thread writes to on another CPU, both often.
/// `are_same` says whether two labels are mappings of the same memory, given that keys are alike.
pub fn shared<'w, E>(
    cpus: impl Iterator<Item = &'w Writers> + Clone,
    are_same: impl Fn(&Writes, &Writes) -> bool,
    mut each: impl FnMut(usize, &Writes) -> Result<(), E>,
) -> Result<(), E> {
    for (cpu, writers) in cpus.clone().enumerate() {
        for writes in writers.often() {
            let mut others = cpus.clone().enumerate().filter(|(other, _)| *other != cpu);
            let is_shared = others.any(|(_, other)| {
                other
                    .often_of(writes.key)
                    .any(|other| other.thread != writes.thread && are_same(writes, other))
            });
            if is_shared {
                each(cpu, writes)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn writes(line: u64, thread: u16, bytes: u64, count: u32) -> Writes {
        Writes { key: LineKey::Private(line).word(), line, bytes, count, thread, label: 1, at: 0 }
    }

    fn found(cpus: &[Writers]) -> Vec<(usize, u64, u16, u32)> {
        let mut found = Vec::new();
        let same = |one: &Writes, other: &Writes| one.label == other.label;
        shared(cpus.iter(), same, |cpu, writes| {
            found.push((cpu, writes.line, writes.thread, writes.count));
            Ok::<(), ()>(())
        })
        .unwrap();
        found
    }

    #[test]
    fn a_line_is_shared_if_two_threads_write_to_it_often_on_two_cpus() {
        let mut cpus = [Writers::new(), Writers::new(), Writers::new()];
        for _ in 0..MOST_BY_CHANCE {
            cpus[0].add(&writes(5, 1, 0xff, 1));
            cpus[1].add(&writes(5, 2, 0xff00, 1));
        }
        assert_eq!(found(&cpus), []);
        cpus[0].add(&writes(5, 1, 0xff, 1));
        assert_eq!(found(&cpus), []);
        cpus[1].add(&writes(5, 2, 0xf_0000, 1));
        assert_eq!(found(&cpus), [(0, 5, 1, 51), (1, 5, 2, 51)]);
        let bytes = cpus[1].often().map(|writes| writes.bytes).next();
        assert_eq!(bytes, Some(0xf_ff00));
        // A thread that moves to another CPU shares nothing with itself, and threads of one CPU are not apart.
        cpus[2].add(&writes(6, 3, 1, 1000));
        cpus[1].add(&writes(6, 3, 1, 1000));
        cpus[1].add(&writes(7, 4, 1, 1000));
        cpus[1].add(&writes(7, 5, 1, 1000));
        assert_eq!(found(&cpus).len(), 2);
    }

    #[test]
    fn the_same_address_in_two_processes_is_not_the_same_memory() {
        let mut cpus = [Writers::new(), Writers::new()];
        let one = writes(5, 1, 1, 1000);
        cpus[0].add(&one);
        cpus[1].add(&Writes { thread: 2, label: 2, ..one });
        assert_eq!(found(&cpus), []);
        let shared = Writes { key: LineKey::Shared(5).word(), ..one };
        cpus[1].add(&Writes { thread: 2, ..shared });
        assert_eq!(found(&cpus), []);
        cpus[0].add(&shared);
        assert_eq!(found(&cpus).len(), 2);
    }

    #[test]
    fn a_line_with_few_writes_makes_room() {
        let mut writers = Writers::new();
        writers.add(&writes(1, 1, 1, 1000));
        for line in 2..10_000 {
            writers.add(&writes(line, 1, 1, 8));
        }
        assert_eq!((writers.often().count(), writers.lost), (1, 0));
        for line in 20_000..30_000 {
            writers.add(&writes(line, 1, 1, 1000));
        }
        assert_eq!(writers.often().count(), SETS * WAYS);
        assert_eq!(writers.lost, 10_001 - (SETS * WAYS) as u64);
    }

    proptest! {
        #[test]
        fn a_table_with_room_has_all_writes(
            added in proptest::collection::vec((0u64..2, 0u16..3, any::<u64>(), 1u32..200), 0..60),
        ) {
            let mut writers = Writers::new();
            let mut sums = std::collections::BTreeMap::new();
            for (line, thread, bytes, count) in added {
                writers.add(&writes(line, thread, bytes, count));
                let sum: &mut (u64, u32) = sums.entry((line, thread)).or_default();
                *sum = (sum.0 | bytes, sum.1 + count);
            }
            // Six places are enough, wherever the two lines fall.
            let places = writers.places.iter().flat_map(|places| places.iter());
            let known: std::collections::BTreeMap<_, _> = places
                .filter(|place| place.count > 0)
                .map(|place| ((place.line, place.thread), (place.bytes, place.count)))
                .collect();
            prop_assert_eq!(known, sums);
        }
    }
}
