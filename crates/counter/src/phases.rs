//! Phases of the program, which names them itself by [marks](crate::mark), and the phase of each process.

use core::sync::atomic::{AtomicU8, AtomicU16, Ordering};

use crate::tasks::MOST_THREADS;

/// Most phases that are distinguished. The first is the time outside of phases.
pub const MOST_PHASES: usize = 32;
/// Bytes of a name: what three registers hold.
pub const NAME: usize = 24;

/// The phases by their names.
pub struct Phases {
    /// The rest of each name is zero.
    names: [[u8; NAME]; MOST_PHASES],
    known: usize,
    /// Marks of phases for which there was no room.
    pub lost: u64,
}

impl Phases {
    /// The time outside of phases alone.
    pub const fn new() -> Self {
        Self { names: [[0; NAME]; MOST_PHASES], known: 1, lost: 0 }
    }

    /// The names; that of the first is empty.
    pub fn names(&self) -> &[[u8; NAME]] {
        &self.names[..self.known]
    }

    /// The number of a phase, which is new or was there. An empty name ends a phase; a name for which there is no room is
    /// outside of phases, too.
    pub fn number(&mut self, mut name: [u8; NAME]) -> usize {
        let length = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
        name[length..].fill(0);
        if let Some(number) = self.names().iter().position(|known| *known == name) {
            return number;
        }
        let Some(place) = self.names.get_mut(self.known) else {
            self.lost += 1;
            return 0;
        };
        *place = name;
        self.known += 1;
        self.known - 1
    }
}

/// The phase that each process is in. The callbacks of accesses read it, so there is no lock.
pub struct ProcessPhases {
    /// The first thread of each thread's process, which stands for the process.
    leaders: [AtomicU16; MOST_THREADS],
    /// The phase of a process, in the place of its first thread.
    phases: [AtomicU8; MOST_THREADS],
}

const _: () = assert!(MOST_THREADS <= 1 << 16 && MOST_PHASES <= 1 << 8);

impl ProcessPhases {
    /// No process is in a phase.
    pub const fn new() -> Self {
        Self {
            leaders: [const { AtomicU16::new(0) }; MOST_THREADS],
            phases: [const { AtomicU8::new(0) }; MOST_THREADS],
        }
    }

    fn leader(&self, thread: usize) -> usize {
        self.leaders.get(thread).map_or(0, |leader| usize::from(leader.load(Ordering::Relaxed)))
    }

    /// The phase that a thread is in.
    #[inline]
    pub fn current(&self, thread: usize) -> usize {
        usize::from(self.phases[self.leader(thread)].load(Ordering::Relaxed))
    }

    /// The process of a thread enters a phase.
    pub fn enter(&self, thread: usize, phase: usize) {
        let phase = u8::try_from(phase).unwrap_or(0);
        self.phases[self.leader(thread)].store(phase, Ordering::Relaxed);
    }

    /// A thread has started another one: of its own process, or of a new one, which is in the same phase.
    pub fn start(&self, parent: usize, child: usize, is_same_process: bool) {
        let phase = self.current(parent);
        let leader = if is_same_process { self.leader(parent) } else { child };
        if let (Some(place), Ok(leader)) = (self.leaders.get(child), u16::try_from(leader)) {
            place.store(leader, Ordering::Relaxed);
        }
        if !is_same_process {
            self.enter(child, phase);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> [u8; NAME] {
        let mut name = [0; NAME];
        name[..text.len()].copy_from_slice(text.as_bytes());
        name
    }

    #[test]
    fn a_name_is_a_phase_whenever_it_comes_and_the_empty_one_ends_it() {
        let mut phases = Phases::new();
        let mut dirty = name("load");
        dirty[6] = b'x';
        let numbers = [name("load"), name("work"), dirty, name(""), name("work")].map(|it| phases.number(it));
        assert_eq!(numbers, [1, 2, 1, 0, 2]);
        assert_eq!(phases.names(), [name(""), name("load"), name("work")]);
    }

    #[test]
    fn phases_without_room_are_lost() {
        let mut phases = Phases::new();
        for number in 1..MOST_PHASES {
            assert_eq!(phases.number(name(&format!("phase-{number}"))), number);
        }
        assert_eq!(
            (phases.number(name("one more")), phases.number(name("phase-31")), phases.lost),
            (0, 31, 1)
        );
    }

    #[test]
    fn threads_of_a_process_are_in_its_phase_and_children_begin_there() {
        static PHASES: ProcessPhases = ProcessPhases::new();
        let of = || [0, 1, 2, 3].map(|thread| PHASES.current(thread));
        PHASES.start(0, 1, true);
        PHASES.enter(1, 5);
        assert_eq!([PHASES.current(0), PHASES.current(1)], [5, 5]);
        PHASES.start(1, 2, false);
        PHASES.start(2, 3, true);
        assert_eq!(of(), [5; 4]);
        PHASES.enter(3, 6);
        PHASES.enter(0, 0);
        assert_eq!(of(), [0, 0, 6, 6]);
        // A number that is given again, for want of room, belongs to its new process.
        PHASES.start(0, 3, true);
        assert_eq!(of(), [0, 0, 6, 0]);
        assert_eq!(PHASES.current(MOST_THREADS), 0);
    }
}
