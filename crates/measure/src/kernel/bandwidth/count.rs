//! The measured kernels, and their bytes: for the program, and on the bus.

use std::fmt;

/// Operation on the memory.
///
/// The arithmetic ones are those of McCalpin's STREAM. The mixes read and update one array in place,
/// so that reads and writes are in the same proportion for the program and on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kernel {
    /// The sum of `a`.
    Read,
    /// `a = s`.
    Write,
    /// As [`Kernel::Write`], past the caches.
    WriteNt,
    /// `a = b`.
    Copy,
    /// As [`Kernel::Copy`], past the caches.
    CopyNt,
    /// `a = s * b`.
    Scale,
    /// `a = b + c`.
    Add,
    /// `a = b + s * c`.
    Triad,
    /// As [`Kernel::Triad`], past the caches.
    TriadNt,
    /// Three parts are read for each part that is written: of three pages one is updated.
    Mix3To1,
    /// Of two pages one is updated.
    Mix2To1,
    /// All of `a` is updated.
    Mix1To1,
}

impl Kernel {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 12] = [
        Self::Read,
        Self::Write,
        Self::WriteNt,
        Self::Copy,
        Self::CopyNt,
        Self::Scale,
        Self::Add,
        Self::Triad,
        Self::TriadNt,
        Self::Mix3To1,
        Self::Mix2To1,
        Self::Mix1To1,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::WriteNt => "write-NT",
            Self::Copy => "copy",
            Self::CopyNt => "copy-NT",
            Self::Scale => "scale",
            Self::Add => "add",
            Self::Triad => "triad",
            Self::TriadNt => "triad-NT",
            Self::Mix3To1 => "3:1",
            Self::Mix2To1 => "2:1",
            Self::Mix1To1 => "1:1",
        }
    }

    /// The kernel with this name, in letters of any case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kernel| kernel.name().eq_ignore_ascii_case(name))
    }

    /// How many arrays it needs: `a`, then `b`, then `c`.
    pub const fn arrays(self) -> usize {
        match self {
            Self::Copy | Self::CopyNt | Self::Scale => 2,
            Self::Add | Self::Triad | Self::TriadNt => 3,
            _ => 1,
        }
    }

    /// Whether its stores go past the caches.
    pub const fn is_non_temporal(self) -> bool {
        matches!(self, Self::WriteNt | Self::CopyNt | Self::TriadNt)
    }

    /// The parts that are read for each part that is written, where it is a mix.
    pub const fn mix(self) -> Option<usize> {
        match self {
            Self::Mix3To1 => Some(3),
            Self::Mix2To1 => Some(2),
            Self::Mix1To1 => Some(1),
            _ => None,
        }
    }

    /// The bytes of a pass over arrays of this many words of 8 bytes.
    ///
    /// # Source
    /// Program bytes: McCalpin's STREAM counts what the program names. Bus bytes: an ordinary store
    /// to a line that is in no cache reads the line first (write-allocate, "read for ownership") and
    /// writes it back later; a non-temporal store of a whole line does neither (Intel, "Optimization
    /// Reference Manual", on streaming stores; Arm, "Architecture Reference Manual", on STNP, where it
    /// is a hint). What is updated in place has been read anyway. Some processors leave the read out
    /// under load (SpecI2M of Intel's Ice Lake and later, write streaming of Arm's cores), so what is
    /// counted for ordinary stores is the most that can have crossed the bus.
    pub fn traffic(self, words: usize) -> Traffic {
        let words = words as u64;
        let of = |read: u64, written: u64| Traffic {
            read: 8 * read,
            written: 8 * written,
            allocated: if self.allocates() { 8 * written } else { 0 },
        };
        match self {
            Self::Read => of(words, 0),
            Self::Write | Self::WriteNt => of(0, words),
            Self::Copy | Self::CopyNt | Self::Scale => of(words, words),
            Self::Add | Self::Triad | Self::TriadNt => of(2 * words, words),
            Self::Mix3To1 | Self::Mix2To1 | Self::Mix1To1 => {
                let parts = self.mix().expect("a mix has parts");
                of(words, super::portable::updated(words as usize, parts) as u64)
            }
        }
    }

    /// How many times the bytes that the program names may cross the bus, at most: what is read because
    /// it is written makes it more than 1.
    pub fn bus_factor(self) -> f64 {
        // Whole groups of every mix.
        let traffic = self.traffic(6 * super::STRIDE_WORDS);
        traffic.bus() as f64 / traffic.program() as f64
    }

    /// Whether a line is read because it is written.
    const fn allocates(self) -> bool {
        !self.is_non_temporal() && self.mix().is_none()
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Bytes of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Bytes that the program reads.
    pub read: u64,
    /// Bytes that the program writes.
    pub written: u64,
    /// Bytes that the processor reads because they are going to be written.
    pub allocated: u64,
}

impl Traffic {
    /// Bytes that the program names: STREAM's way of counting.
    pub const fn program(self) -> u64 {
        self.read + self.written
    }

    /// Bytes that cross the bus at most.
    pub const fn bus(self) -> u64 {
        self.program() + self.allocated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kernel: Kernel, program: u64, bus: u64) {
        // Six pages: whole groups of each mix.
        let traffic = kernel.traffic(6 * 512);
        assert_eq!((traffic.program(), traffic.bus()), (program * 1024, bus * 1024), "{kernel}");
        assert_eq!(kernel.bus_factor(), bus as f64 / program as f64, "{kernel}");
    }

    #[test]
    fn program_and_bus_bytes_are_counted_apart() {
        check(Kernel::Read, 24, 24);
        check(Kernel::Write, 24, 48);
        check(Kernel::WriteNt, 24, 24);
        check(Kernel::Copy, 48, 72);
        check(Kernel::CopyNt, 48, 48);
        check(Kernel::Scale, 48, 72);
        check(Kernel::Add, 72, 96);
        check(Kernel::Triad, 72, 96);
        check(Kernel::TriadNt, 72, 72);
        check(Kernel::Mix3To1, 32, 32);
        check(Kernel::Mix2To1, 36, 36);
        check(Kernel::Mix1To1, 48, 48);
    }

    #[test]
    fn a_mix_reads_and_writes_in_its_proportion() {
        for (kernel, parts) in [(Kernel::Mix3To1, 3), (Kernel::Mix2To1, 2), (Kernel::Mix1To1, 1)] {
            for groups in [1, 7, 1000] {
                let traffic = kernel.traffic(groups * parts as usize * 512);
                assert_eq!(traffic.read, parts * traffic.written, "{kernel}");
            }
        }
    }

    #[test]
    fn names_are_read_back() {
        for kernel in Kernel::ALL {
            assert_eq!(Kernel::from_name(kernel.name()), Some(kernel));
            assert_eq!(Kernel::from_name(&kernel.name().to_uppercase()), Some(kernel));
        }
        assert_eq!(Kernel::from_name("4:1"), None);
    }
}
