//! The lines that a CPU accessed just now, by virtual address.
//!
//! Loops that go over two arrays are half of all programs, and what is found here needs no physical address. In the caches such
//! a line stays where it was in the order, which is one place away at most. Writes are gathered here, until another line comes.

use crate::writers::Writes;

/// A line.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Recent {
    /// One more than its number; 0 stands for none.
    tag: u64,
    is_written: bool,
    /// Writes of the thread to it since it came.
    writes: Writes,
}

/// No line. A CPU that has not begun is zero, so that the library has no image of it.
const NONE: Recent = Recent { tag: 0, is_written: false, writes: Writes::NONE };

/// The last two lines, the latest first.
pub struct RecentLines([Recent; 2]);

impl RecentLines {
    /// No line.
    pub const fn new() -> Self {
        Self([NONE; 2])
    }

    /// Whether a line is one of them, and a write to it changes nothing in the caches; makes it the latest if it is one.
    #[inline]
    pub fn knows(&mut self, line: u64, is_write: bool) -> bool {
        let tag = line + 1;
        if self.0[0].tag != tag {
            if self.0[1].tag != tag {
                return false;
            }
            self.0.swap(0, 1);
        }
        self.0[0].is_written || !is_write
    }

    /// A line is accessed that they do not know so: it is the latest now. What was written to the one that makes room, if
    /// anything.
    pub fn enter(&mut self, line: u64, is_write: bool) -> Option<Writes> {
        let tag = line + 1;
        if self.0[0].tag == tag {
            self.0[0].is_written |= is_write;
            return None;
        }
        let left = self.0[1].writes;
        self.0[1] = self.0[0];
        self.0[0] = Recent { tag, is_written: is_write, writes: Writes::NONE };
        (left.count > 0).then_some(left)
    }

    /// Whether nothing was written to the latest line since it came.
    #[inline]
    pub const fn is_unwritten(&self) -> bool {
        self.0[0].writes.count == 0
    }

    /// Who writes to the latest line, and to what.
    pub const fn begin(&mut self, whose: Writes) {
        self.0[0].writes = whose;
    }

    /// The thread writes to bytes of the latest line, by this instruction.
    #[inline]
    pub const fn write(&mut self, bytes: u64, at: u32) {
        let writes = &mut self.0[0].writes;
        writes.bytes |= bytes;
        writes.at = at;
        writes.count = writes.count.saturating_add(1);
    }

    /// Forgets the lines, and returns what was written to them.
    pub fn leave(&mut self) -> impl Iterator<Item = Writes> + use<> {
        let left = self.0.map(|recent| recent.writes);
        self.0 = [NONE; 2];
        left.into_iter().filter(|writes| writes.count > 0)
    }
}

/// The bytes of a line that an access reaches, which begins at this byte of it: a bit for each.
#[inline]
pub const fn bytes_of(start: u64, bytes: u64) -> u64 {
    let all = if bytes >= 64 { u64::MAX } else { (1 << bytes) - 1 };
    all << (start & 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_lines_are_known_and_a_first_write_is_not() {
        let mut recent = RecentLines::new();
        assert!(!recent.knows(0, false));
        assert_eq!(recent.enter(0, false), None);
        assert!(recent.knows(0, false) && !recent.knows(0, true));
        assert_eq!(recent.enter(0, true), None);
        assert!(recent.knows(0, true) && !recent.knows(1, false));
        recent.enter(1, false);
        assert!(recent.knows(0, true) && recent.knows(1, false) && !recent.knows(2, false));
        recent.enter(2, false);
        assert!(recent.knows(1, false) && !recent.knows(0, false));
    }

    #[test]
    fn writes_are_gathered_until_the_line_leaves() {
        let mut recent = RecentLines::new();
        let whose = |line| Writes { key: line, line, thread: 3, label: 4, ..Writes::NONE };
        recent.enter(7, true);
        assert!(recent.is_unwritten());
        recent.begin(whose(7));
        recent.write(bytes_of(0, 8), 5);
        assert!(!recent.is_unwritten());
        recent.write(bytes_of(60, 8), 6);
        recent.enter(8, false);
        let left = Writes { bytes: 0xf000_0000_0000_00ff, count: 2, at: 6, ..whose(7) };
        assert_eq!(recent.enter(9, true), Some(left));
        recent.begin(whose(9));
        recent.write(bytes_of(1, 1), 0);
        assert_eq!(recent.enter(10, false), None);
        let all: Vec<Writes> = recent.leave().collect();
        assert_eq!(all, [Writes { bytes: 2, count: 1, ..whose(9) }]);
        assert_eq!(recent.leave().count(), 0);
    }

    #[test]
    fn bytes_beyond_the_line_are_left_out() {
        assert_eq!(bytes_of(0, 64), u64::MAX);
        assert_eq!(bytes_of(63, 16), 1 << 63);
        assert_eq!(bytes_of(128 + 4, 4), 0xf0);
    }
}
