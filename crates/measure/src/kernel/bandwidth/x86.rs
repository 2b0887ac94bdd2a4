//! The loops for x86-64, written out so that what is timed is what is here, whatever the compiler.
//!
//! A loop is a table: for each turn the operations and their place in the turn. `line!` turns an
//! operation into the instructions for one line of 64 bytes: four of SSE2, two of AVX2 or one of
//! AVX-512, at which a register of 16, 32 or 64 bytes is moved.
//!
//! Registers: 0 to 3 hold sums or what is on its way, 8 what is loaded for a sum, 15 the factor.

use std::arch::asm;

use super::Body;
use super::count::Kernel;
use super::variant::Shape;

/// An operation on the 16 bytes at an offset of each array.
macro_rules! sse2 {
    (read $at:literal $w:literal $r:literal) => {
        concat! {
            "movdqu xmm8, [{a}+", $at, $w, "]\n",
            "paddq xmm", $r, ", xmm8\n",
        }
    };
    (update $at:literal $w:literal $r:literal) => {
        concat! {
            "movdqu xmm8, [{a}+", $at, $w, "]\n",
            "paddq xmm8, xmm15\n",
            "movdqu [{a}+", $at, $w, "], xmm8\n",
        }
    };
    (write $at:literal $w:literal $r:literal) => {
        concat! {
            "movups [{a}+", $at, $w, "], xmm15\n",
        }
    };
    (write_nt $at:literal $w:literal $r:literal) => {
        concat! {
            "movntps [{a}+", $at, $w, "], xmm15\n",
        }
    };
    (copy $at:literal $w:literal $r:literal) => {
        concat! {
            "movups xmm", $r, ", [{b}+", $at, $w, "]\n",
            "movups [{a}+", $at, $w, "], xmm", $r, "\n",
        }
    };
    (copy_nt $at:literal $w:literal $r:literal) => {
        concat! {
            "movups xmm", $r, ", [{b}+", $at, $w, "]\n",
            "movntps [{a}+", $at, $w, "], xmm", $r, "\n",
        }
    };
    (scale $at:literal $w:literal $r:literal) => {
        concat! {
            "movupd xmm", $r, ", [{b}+", $at, $w, "]\n",
            "mulpd xmm", $r, ", xmm15\n",
            "movupd [{a}+", $at, $w, "], xmm", $r, "\n",
        }
    };
    (add $at:literal $w:literal $r:literal) => {
        concat! {
            "movupd xmm", $r, ", [{b}+", $at, $w, "]\n",
            "movupd xmm8, [{c}+", $at, $w, "]\n",
            "addpd xmm", $r, ", xmm8\n",
            "movupd [{a}+", $at, $w, "], xmm", $r, "\n",
        }
    };
    (triad $at:literal $w:literal $r:literal) => {
        concat! {
            "movupd xmm", $r, ", [{c}+", $at, $w, "]\n",
            "mulpd xmm", $r, ", xmm15\n",
            "movupd xmm8, [{b}+", $at, $w, "]\n",
            "addpd xmm", $r, ", xmm8\n",
            "movupd [{a}+", $at, $w, "], xmm", $r, "\n",
        }
    };
    (triad_nt $at:literal $w:literal $r:literal) => {
        concat! {
            "movupd xmm", $r, ", [{c}+", $at, $w, "]\n",
            "mulpd xmm", $r, ", xmm15\n",
            "movupd xmm8, [{b}+", $at, $w, "]\n",
            "addpd xmm", $r, ", xmm8\n",
            "movntpd [{a}+", $at, $w, "], xmm", $r, "\n",
        }
    };
}

/// The same with registers of 32 bytes (`"y"`) or 64 (`"z"`), whose instructions have three operands.
macro_rules! avx {
    ($x:literal read $at:literal $w:literal $r:literal) => {
        concat! {
            "vpaddq ", $x, "mm", $r, ", ", $x, "mm", $r, ", [{a}+", $at, $w, "]\n",
        }
    };
    ($x:literal update $at:literal $w:literal $r:literal) => {
        concat! {
            "vpaddq ", $x, "mm8, ", $x, "mm15, [{a}+", $at, $w, "]\n",
            "vmovups [{a}+", $at, $w, "], ", $x, "mm8\n",
        }
    };
    ($x:literal write $at:literal $w:literal $r:literal) => {
        concat! {
            "vmovups [{a}+", $at, $w, "], ", $x, "mm15\n",
        }
    };
    ($x:literal write_nt $at:literal $w:literal $r:literal) => {
        concat! {
            "vmovntps [{a}+", $at, $w, "], ", $x, "mm15\n",
        }
    };
    ($x:literal copy $at:literal $w:literal $r:literal) => {
        concat! {
            "vmovups ", $x, "mm", $r, ", [{b}+", $at, $w, "]\n",
            "vmovups [{a}+", $at, $w, "], ", $x, "mm", $r, "\n",
        }
    };
    ($x:literal copy_nt $at:literal $w:literal $r:literal) => {
        concat! {
            "vmovups ", $x, "mm", $r, ", [{b}+", $at, $w, "]\n",
            "vmovntps [{a}+", $at, $w, "], ", $x, "mm", $r, "\n",
        }
    };
    ($x:literal scale $at:literal $w:literal $r:literal) => {
        concat! {
            "vmulpd ", $x, "mm", $r, ", ", $x, "mm15, [{b}+", $at, $w, "]\n",
            "vmovups [{a}+", $at, $w, "], ", $x, "mm", $r, "\n",
        }
    };
    ($x:literal add $at:literal $w:literal $r:literal) => {
        concat! {
            "vmovups ", $x, "mm", $r, ", [{b}+", $at, $w, "]\n",
            "vaddpd ", $x, "mm", $r, ", ", $x, "mm", $r, ", [{c}+", $at, $w, "]\n",
            "vmovups [{a}+", $at, $w, "], ", $x, "mm", $r, "\n",
        }
    };
    ($x:literal triad $at:literal $w:literal $r:literal) => {
        concat! {
            "vmulpd ", $x, "mm", $r, ", ", $x, "mm15, [{c}+", $at, $w, "]\n",
            "vaddpd ", $x, "mm", $r, ", ", $x, "mm", $r, ", [{b}+", $at, $w, "]\n",
            "vmovups [{a}+", $at, $w, "], ", $x, "mm", $r, "\n",
        }
    };
    ($x:literal triad_nt $at:literal $w:literal $r:literal) => {
        concat! {
            "vmulpd ", $x, "mm", $r, ", ", $x, "mm15, [{c}+", $at, $w, "]\n",
            "vaddpd ", $x, "mm", $r, ", ", $x, "mm", $r, ", [{b}+", $at, $w, "]\n",
            "vmovntps [{a}+", $at, $w, "], ", $x, "mm", $r, "\n",
        }
    };
}

/// An operation on the line at an offset.
macro_rules! line {
    (sse2 $op:ident $at:literal) => {
        concat!(
            sse2!($op $at "+0" "0"),
            sse2!($op $at "+16" "1"),
            sse2!($op $at "+32" "2"),
            sse2!($op $at "+48" "3")
        )
    };
    (avx2 $op:ident $at:literal) => { concat!(avx!("y" $op $at "+0" "0"), avx!("y" $op $at "+32" "1")) };
    (avx512 $op:ident $at:literal) => { avx!("z" $op $at "+0" "0") };
}

/// Prefetches what an operation reads at an offset, or does not.
macro_rules! prefetch {
    (far read $at:literal) => { concat!("prefetcht0 [{a}+{ahead}+", $at, "]\n") };
    (far update $at:literal) => { prefetch!(far read $at) };
    (far copy $at:literal) => { concat!("prefetcht0 [{b}+{ahead}+", $at, "]\n") };
    (far copy_nt $at:literal) => { prefetch!(far copy $at) };
    (far scale $at:literal) => { prefetch!(far copy $at) };
    (far add $at:literal) => {
        concat!("prefetcht0 [{b}+{ahead}+", $at, "]\nprefetcht0 [{c}+{ahead}+", $at, "]\n")
    };
    (far triad $at:literal) => { prefetch!(far add $at) };
    (far triad_nt $at:literal) => { prefetch!(far add $at) };
    ($distance:ident $op:ident $at:literal) => { "" };
}

/// Before a loop: no sums yet, and the factor in every part of its register.
macro_rules! begin {
    (sse2) => {
        "pxor xmm0, xmm0\npxor xmm1, xmm1\npxor xmm2, xmm2\npxor xmm3, xmm3
         movsd xmm15, [{factor}]\nunpcklpd xmm15, xmm15"
    };
    (avx2) => {
        "vpxor xmm0, xmm0, xmm0\nvpxor xmm1, xmm1, xmm1\nvbroadcastsd ymm15, qword ptr [{factor}]"
    };
    (avx512) => {
        "vpxor xmm0, xmm0, xmm0\nvbroadcastsd zmm15, qword ptr [{factor}]"
    };
}

/// After it: the sums to memory.
macro_rules! end {
    (sse2) => {
        "movdqu [{sums}], xmm0\nmovdqu [{sums}+16], xmm1\nmovdqu [{sums}+32], xmm2\nmovdqu [{sums}+48], xmm3"
    };
    (avx2) => {
        "vmovdqu [{sums}], ymm0\nvmovdqu [{sums}+32], ymm1\nvzeroupper"
    };
    (avx512) => {
        "vmovups [{sums}], zmm0\nvzeroupper"
    };
}

/// A loop over all groups. Each turn does these operations and moves on by `step` bytes; after a page
/// of turns the pages of the other streams, of `skip` bytes, are stepped over.
macro_rules! walk {
    ($body:ident, $isa:ident, $distance:ident, [$($op:ident $at:literal),+], $step:literal, $skip:literal) => {{
        let mut sums = [0_u64; 8];
        // SAFETY: the caller vouches for the pointers and the instructions. What is touched lies within
        // `groups` groups of pages behind them: a turn moves by `step`, 4096 / `step` turns make a page,
        // and the offsets of a turn reach at most `step` bytes beyond a page's start and `skip` beyond
        // that. A prefetch may name any address. `sums` has the 64 bytes that are stored, or more.
        unsafe {
            asm!(
                // A loop without prefetching does not need this register.
                "/* {ahead} */",
                begin!($isa),
                "2:",
                concat!("mov {turns:e}, 4096/", $step),
                "3:",
                $(prefetch!($distance $op $at), line!($isa $op $at),)+
                concat!("add {a}, ", $step, "\nadd {b}, ", $step, "\nadd {c}, ", $step),
                "dec {turns:e}",
                "jnz 3b",
                concat!("add {a}, ", $skip, "\nadd {b}, ", $skip, "\nadd {c}, ", $skip),
                "dec {groups}",
                "jnz 2b",
                end!($isa),
                "sfence",
                a = inout(reg) $body.a => _,
                b = inout(reg) $body.b => _,
                c = inout(reg) $body.c => _,
                groups = inout(reg) $body.groups => _,
                ahead = in(reg) $body.ahead,
                factor = in(reg) &raw const $body.factor,
                sums = in(reg) &raw mut sums,
                turns = out(reg) _,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm8") _, out("xmm15") _,
                options(nostack),
            );
        }
        sums
    }};
}

/// A loop in each shape, with and without prefetching.
macro_rules! shapes {
    ($body:ident, $isa:ident, $shape:ident, $op:ident) => {
        match ($shape, $body.ahead) {
            (Shape::Line, 0) => walk!($body, $isa, near, [$op "0"], "64", "0"),
            (Shape::Line, _) => walk!($body, $isa, far, [$op "0"], "64", "0"),
            (Shape::Unrolled, 0) => {
                walk!($body, $isa, near, [$op "0", $op "64", $op "128", $op "192"], "256", "0")
            }
            (Shape::Unrolled, _) => {
                walk!($body, $isa, far, [$op "0", $op "64", $op "128", $op "192"], "256", "0")
            }
            (Shape::Two, 0) => walk!($body, $isa, near, [$op "0", $op "4096"], "64", "4096"),
            (Shape::Two, _) => walk!($body, $isa, far, [$op "0", $op "4096"], "64", "4096"),
            (Shape::Four, 0) => {
                walk!($body, $isa, near, [$op "0", $op "4096", $op "8192", $op "12288"], "64", "12288")
            }
            (Shape::Four, _) => {
                walk!($body, $isa, far, [$op "0", $op "4096", $op "8192", $op "12288"], "64", "12288")
            }
        }
    };
}

/// All loops of one set of instructions.
macro_rules! loops {
    ($(#[$doc:meta])* $isa:ident) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// The processor has the instructions. `a` can be written, and the sources of the kernel read,
        /// for all groups; nothing else uses `a`, which is aligned to 64 bytes where the kernel writes
        /// past the caches.
        pub unsafe fn $isa(kernel: Kernel, shape: Shape, body: &Body) -> u64 {
            let sums = match kernel {
                Kernel::Read => shapes!(body, $isa, shape, read),
                Kernel::Write => shapes!(body, $isa, shape, write),
                Kernel::WriteNt => shapes!(body, $isa, shape, write_nt),
                Kernel::Copy => shapes!(body, $isa, shape, copy),
                Kernel::CopyNt => shapes!(body, $isa, shape, copy_nt),
                Kernel::Scale => shapes!(body, $isa, shape, scale),
                Kernel::Add => shapes!(body, $isa, shape, add),
                Kernel::Triad => shapes!(body, $isa, shape, triad),
                Kernel::TriadNt => shapes!(body, $isa, shape, triad_nt),
                Kernel::Mix1To1 => shapes!(body, $isa, shape, update),
                Kernel::Mix2To1 if body.ahead == 0 => {
                    walk!(body, $isa, near, [read "0", update "4096"], "64", "4096")
                }
                Kernel::Mix2To1 => walk!(body, $isa, far, [read "0", update "4096"], "64", "4096"),
                Kernel::Mix3To1 if body.ahead == 0 => {
                    walk!(body, $isa, near, [read "0", read "4096", update "8192"], "64", "8192")
                }
                Kernel::Mix3To1 => {
                    walk!(body, $isa, far, [read "0", read "4096", update "8192"], "64", "8192")
                }
            };
            match kernel {
                Kernel::Read | Kernel::Mix2To1 | Kernel::Mix3To1 => {
                    sums.into_iter().fold(0, u64::wrapping_add)
                }
                // The registers of sums held something else.
                _ => 0,
            }
        }
    };
}

loops! {
    /// Runs the body of a pass with registers of 16 bytes, and returns the sum of what was only read.
    sse2
}
loops! {
    /// As [`sse2`], with registers of 32 bytes.
    avx2
}
loops! {
    /// As [`sse2`], with registers of 64 bytes.
    avx512
}

/// Fills words with `rep stosq`.
///
/// # Safety
/// This many words can be written at `a`, and nothing else uses them.
pub unsafe fn string_fill(a: *mut u64, words: usize, value: u64) {
    // SAFETY: the caller vouches for the memory; the direction flag is clear on entry to any block.
    unsafe {
        asm!(
            "rep stosq",
            inout("rdi") a => _, inout("rcx") words => _, in("rax") value,
            options(nostack, preserves_flags),
        );
    }
}

/// Copies words with `rep movsq`.
///
/// # Safety
/// This many words can be written at `a` and read at `b`, which do not overlap, and nothing else uses
/// those at `a`.
pub unsafe fn string_copy(a: *mut u64, b: *const u64, words: usize) {
    // SAFETY: the caller vouches for the memory; the direction flag is clear on entry to any block.
    unsafe {
        asm!(
            "rep movsq",
            inout("rdi") a => _, inout("rsi") b => _, inout("rcx") words => _,
            options(nostack, preserves_flags),
        );
    }
}
