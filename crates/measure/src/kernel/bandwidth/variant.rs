//! The ways to run a kernel, and which of them this processor has.

use std::fmt;

use nodewise_machine::Bytes;

use super::count::Kernel;

/// Which instructions touch the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Instructions {
    /// The instructions that the compiler makes of plain Rust.
    Portable,
    /// 16 bytes at a time; every x86-64 has it.
    Sse2,
    /// 32 bytes at a time.
    Avx2,
    /// 64 bytes at a time: a line with one instruction.
    Avx512,
    /// `rep stosq` and `rep movsq`: the processor's own loop.
    String,
    /// 16 bytes at a time; every aarch64 has it.
    Neon,
    /// 16 bytes at a time, over lines that were zeroed as a whole, so that they are not read first.
    Zva,
}

impl Instructions {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Sse2 => "SSE2",
            Self::Avx2 => "AVX2",
            Self::Avx512 => "AVX-512",
            Self::String => "string",
            Self::Neon => "NEON",
            Self::Zva => "DC ZVA",
        }
    }

    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Portable, Self::Sse2, Self::Avx2, Self::Avx512, Self::String, Self::Neon, Self::Zva];

    /// Whether this processor has them, and the system has switched them on.
    pub fn are_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 | Self::String => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => std::arch::is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => std::arch::is_x86_feature_detected!("avx512f"),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => true,
            #[cfg(target_arch = "aarch64")]
            Self::Zva => super::zva::is_available(),
            _ => false,
        }
    }

    /// Whether there is a loop of them for this kernel.
    pub const fn can(self, kernel: Kernel) -> bool {
        match self {
            // The compiler writes past no cache of its own accord.
            Self::Portable => !kernel.is_non_temporal(),
            Self::String => matches!(kernel, Kernel::Write | Kernel::Copy),
            Self::Zva => matches!(kernel, Kernel::Write),
            _ => true,
        }
    }
}

/// How the memory is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shape {
    /// A line per turn of the loop. Slow loads leave a prefetcher room to run ahead.
    Line,
    /// Four lines per turn.
    Unrolled,
    /// Two pages side by side.
    Two,
    /// Four pages side by side.
    Four,
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Line, Self::Unrolled, Self::Two, Self::Four];

    /// Pages that are walked at the same time.
    pub const fn streams(self) -> usize {
        match self {
            Self::Line | Self::Unrolled => 1,
            Self::Two => 2,
            Self::Four => 4,
        }
    }
}

/// A way to run a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variant {
    pub instructions: Instructions,
    pub shape: Shape,
    /// How many bytes ahead what is read is prefetched; 0 leaves that to the processor.
    pub ahead: u32,
}

impl Variant {
    /// Plain Rust: it runs everywhere, but for the kernels that write past the caches.
    pub const PORTABLE: Self = Self { instructions: Instructions::Portable, shape: Shape::Line, ahead: 0 };

    /// The variants of a kernel that can be fastest on this processor.
    ///
    /// Empty only for a kernel that writes past the caches, on an architecture without such stores.
    pub fn all(kernel: Kernel) -> Vec<Self> {
        let mut variants = Vec::new();
        let here = |of: &Instructions| of.are_available() && of.can(kernel);
        for instructions in Instructions::ALL.into_iter().filter(here) {
            if matches!(instructions, Instructions::Portable | Instructions::String) {
                variants.push(Self { instructions, ..Self::PORTABLE });
                continue;
            }
            for shape in shapes(kernel) {
                for ahead in distances(kernel) {
                    variants.push(Self { instructions, shape: *shape, ahead: *ahead });
                }
            }
        }
        variants
    }
}

/// The shapes of a kernel: mixes walk their pages side by side already.
const fn shapes(kernel: Kernel) -> &'static [Shape] {
    match kernel.mix() {
        Some(2 | 3) => &[Shape::Line],
        _ => &Shape::ALL,
    }
}

/// How far ahead prefetching is worth a try. Nothing is read by a kernel that only writes.
const fn distances(kernel: Kernel) -> &'static [u32] {
    match kernel {
        Kernel::Write | Kernel::WriteNt => &[0],
        _ => &[0, 256, 512, 1024, 2048],
    }
}

impl fmt::Display for Variant {
    /// `AVX2, 4 streams, prefetch 2 KiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.instructions.name())?;
        match self.shape {
            Shape::Line => {}
            Shape::Unrolled => f.write_str(", unrolled")?,
            Shape::Two | Shape::Four => write!(f, ", {} streams", self.shape.streams())?,
        }
        match self.ahead {
            0 => Ok(()),
            ahead => write!(f, ", prefetch {}", Bytes::new(ahead.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_variant_is_named_by_what_is_special_about_it() {
        let check = |instructions, shape, ahead, expected: &str| {
            assert_eq!(Variant { instructions, shape, ahead }.to_string(), expected);
        };
        check(Instructions::Sse2, Shape::Line, 0, "SSE2");
        check(Instructions::Avx512, Shape::Four, 2048, "AVX-512, 4 streams, prefetch 2 KiB");
        check(Instructions::Neon, Shape::Unrolled, 512, "NEON, unrolled, prefetch 512 B");
    }

    #[test]
    fn every_kernel_has_variants_and_none_twice() {
        for kernel in Kernel::ALL {
            let variants = Variant::all(kernel);
            let different: BTreeSet<_> = variants.iter().collect();
            assert_eq!(different.len(), variants.len(), "{kernel}");
            assert_eq!(variants.contains(&Variant::PORTABLE), !kernel.is_non_temporal(), "{kernel}");
            if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
                assert!(variants.len() >= 4, "{kernel}: {variants:?}");
            }
        }
    }
}
