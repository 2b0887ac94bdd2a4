//! The loops for aarch64, in the manner of those for x86-64.
//!
//! A line is two pairs of registers of 16 bytes. Loads and stores reach 64 KiB from a pointer; pairs
//! that go past the caches (`stnp`) reach 1,008 bytes, so the page of another stream is added first.
//!
//! Registers: `v0` to `v3` hold what is on its way, `v4` to `v7` sums, `v16` to `v19` second sources,
//! `v31` the factor.

use std::arch::asm;

use super::Body;
use super::count::Kernel;
use super::variant::Shape;

/// The four registers of a line, loaded from or stored to an array at a page and an offset in it.
macro_rules! four {
    ($what:literal $array:literal $page:literal $at:literal $r0:literal $r1:literal $r2:literal
     $r3:literal) => {
        concat!(
            $what, " q", $r0, ", [{", $array, "}, #", $page, "+", $at, "]\n", $what, " q", $r1, ", [{",
            $array, "}, #", $page, "+", $at, "+16]\n", $what, " q", $r2, ", [{", $array, "}, #", $page, "+",
            $at, "+32]\n", $what, " q", $r3, ", [{", $array, "}, #", $page, "+", $at, "+48]\n"
        )
    };
}

/// Loads the first registers of a line.
macro_rules! load {
    ($array:literal $page:literal $at:literal) => { four!("ldr" $array $page $at "0" "1" "2" "3") };
    (second $array:literal $page:literal $at:literal) => { four!("ldr" $array $page $at "16" "17" "18" "19") };
}

/// Stores them.
macro_rules! store {
    (cached $page:literal $at:literal) => { four!("str" "a" $page $at "0" "1" "2" "3") };
    (past $page:literal $at:literal) => {
        concat!("add {page}, {a}, #", $page, "\nstnp q0, q1, [{page}, #", $at, "]\n",
                "stnp q2, q3, [{page}, #", $at, "+32]\n")
    };
}

/// Multiplies the first registers by the factor; adds the second ones, or the factor's bits.
macro_rules! arithmetic {
    (scale) => {
        "fmul v0.2d, v0.2d, v31.2d\nfmul v1.2d, v1.2d, v31.2d
         fmul v2.2d, v2.2d, v31.2d\nfmul v3.2d, v3.2d, v31.2d\n"
    };
    (add) => {
        "fadd v0.2d, v0.2d, v16.2d\nfadd v1.2d, v1.2d, v17.2d
         fadd v2.2d, v2.2d, v18.2d\nfadd v3.2d, v3.2d, v19.2d\n"
    };
    (bits) => {
        "add v0.2d, v0.2d, v31.2d\nadd v1.2d, v1.2d, v31.2d
         add v2.2d, v2.2d, v31.2d\nadd v3.2d, v3.2d, v31.2d\n"
    };
    (sum) => {
        "add v4.2d, v4.2d, v0.2d\nadd v5.2d, v5.2d, v1.2d
         add v6.2d, v6.2d, v2.2d\nadd v7.2d, v7.2d, v3.2d\n"
    };
    (value) => {
        "mov v0.16b, v31.16b\nmov v1.16b, v31.16b\nmov v2.16b, v31.16b\nmov v3.16b, v31.16b\n"
    };
}

/// An operation on the line at an offset of a page.
macro_rules! line {
    (read $p:literal $at:literal) => { concat!(load!("a" $p $at), arithmetic!(sum)) };
    (update $p:literal $at:literal) => { concat!(load!("a" $p $at), arithmetic!(bits), store!(cached $p $at)) };
    (write $p:literal $at:literal) => { concat!(arithmetic!(value), store!(cached $p $at)) };
    (write_nt $p:literal $at:literal) => { concat!(arithmetic!(value), store!(past $p $at)) };
    (copy $p:literal $at:literal) => { concat!(load!("b" $p $at), store!(cached $p $at)) };
    (copy_nt $p:literal $at:literal) => { concat!(load!("b" $p $at), store!(past $p $at)) };
    (scale $p:literal $at:literal) => { concat!(load!("b" $p $at), arithmetic!(scale), store!(cached $p $at)) };
    (sources $p:literal $at:literal) => {
        concat!(load!("c" $p $at), arithmetic!(scale), load!(second "b" $p $at), arithmetic!(add))
    };
    (add $p:literal $at:literal) => {
        concat!(load!("b" $p $at), load!(second "c" $p $at), arithmetic!(add), store!(cached $p $at))
    };
    (triad $p:literal $at:literal) => { concat!(line!(sources $p $at), store!(cached $p $at)) };
    (triad_nt $p:literal $at:literal) => { concat!(line!(sources $p $at), store!(past $p $at)) };
}

/// Prefetches what an operation reads, or does not.
macro_rules! prefetch {
    (@ $array:literal $p:literal $at:literal) => {
        concat!("add {page}, {", $array, "}, {ahead}\nprfm pldl1keep, [{page}, #", $p, "+", $at, "]\n")
    };
    (far read $p:literal $at:literal) => { prefetch!(@ "a" $p $at) };
    (far update $p:literal $at:literal) => { prefetch!(@ "a" $p $at) };
    (far copy $p:literal $at:literal) => { prefetch!(@ "b" $p $at) };
    (far copy_nt $p:literal $at:literal) => { prefetch!(@ "b" $p $at) };
    (far scale $p:literal $at:literal) => { prefetch!(@ "b" $p $at) };
    (far add $p:literal $at:literal) => { concat!(prefetch!(@ "b" $p $at), prefetch!(@ "c" $p $at)) };
    (far triad $p:literal $at:literal) => { prefetch!(far add $p $at) };
    (far triad_nt $p:literal $at:literal) => { prefetch!(far add $p $at) };
    ($distance:ident $op:ident $p:literal $at:literal) => { "" };
}

/// A loop over all groups. Each turn does these operations, each at a page and an offset in it, and
/// moves on by `step` bytes; after a page of turns the pages of the other streams, of `skip` bytes,
/// are stepped over.
macro_rules! walk {
    ($body:ident, $distance:ident, [$($op:ident $p:literal $at:literal),+], $step:literal, $skip:literal) => {{
        let mut sums = [0_u64; 8];
        // SAFETY: the caller vouches for the pointers; every aarch64 that runs Linux has NEON. What is
        // touched lies within `groups` groups of pages behind the pointers: a turn moves by `step`,
        // 4096 / `step` turns make a page, and the offsets of a turn reach at most `step` bytes beyond a
        // page's start and `skip` beyond that. A prefetch may name any address. `sums` has the 64 bytes
        // that are stored.
        unsafe {
            asm!(
                // Some loops do not need these registers.
                "/* {ahead} {page} */",
                "movi v4.2d, #0\nmovi v5.2d, #0\nmovi v6.2d, #0\nmovi v7.2d, #0",
                "ld1r {{v31.2d}}, [{factor}]",
                "2:",
                concat!("mov {turns:w}, #4096/", $step),
                "3:",
                $(prefetch!($distance $op $p $at), line!($op $p $at),)+
                concat!("add {a}, {a}, #", $step, "\nadd {b}, {b}, #", $step, "\nadd {c}, {c}, #", $step),
                "subs {turns:w}, {turns:w}, #1",
                "b.ne 3b",
                concat!("add {a}, {a}, #", $skip, "\nadd {b}, {b}, #", $skip, "\nadd {c}, {c}, #", $skip),
                "subs {groups}, {groups}, #1",
                "b.ne 2b",
                "stp q4, q5, [{sums}]\nstp q6, q7, [{sums}, #32]",
                "dmb ishst",
                a = inout(reg) $body.a => _,
                b = inout(reg) $body.b => _,
                c = inout(reg) $body.c => _,
                groups = inout(reg) $body.groups => _,
                ahead = in(reg) $body.ahead,
                factor = in(reg) &raw const $body.factor,
                sums = in(reg) &raw mut sums,
                turns = out(reg) _,
                page = out(reg) _,
                out("v0") _, out("v1") _, out("v2") _, out("v3") _,
                out("v4") _, out("v5") _, out("v6") _, out("v7") _,
                out("v16") _, out("v17") _, out("v18") _, out("v19") _, out("v31") _,
                options(nostack),
            );
        }
        sums
    }};
}

/// A loop in each shape, with and without prefetching.
macro_rules! shapes {
    ($body:ident, $shape:ident, $op:ident) => {
        match ($shape, $body.ahead) {
            (Shape::Line, 0) => walk!($body, near, [$op "0" "0"], "64", "0"),
            (Shape::Line, _) => walk!($body, far, [$op "0" "0"], "64", "0"),
            (Shape::Unrolled, 0) => {
                walk!($body, near, [$op "0" "0", $op "0" "64", $op "0" "128", $op "0" "192"], "256", "0")
            }
            (Shape::Unrolled, _) => {
                walk!($body, far, [$op "0" "0", $op "0" "64", $op "0" "128", $op "0" "192"], "256", "0")
            }
            (Shape::Two, 0) => walk!($body, near, [$op "0" "0", $op "4096" "0"], "64", "4096"),
            (Shape::Two, _) => walk!($body, far, [$op "0" "0", $op "4096" "0"], "64", "4096"),
            (Shape::Four, 0) => walk!(
                $body, near, [$op "0" "0", $op "4096" "0", $op "8192" "0", $op "12288" "0"], "64", "12288"
            ),
            (Shape::Four, _) => walk!(
                $body, far, [$op "0" "0", $op "4096" "0", $op "8192" "0", $op "12288" "0"], "64", "12288"
            ),
        }
    };
}

/// Runs the body of a pass with registers of 16 bytes, and returns the sum of what was only read.
///
/// # Safety
/// `a` can be written, and the sources of the kernel read, for all groups; nothing else uses `a`.
pub unsafe fn neon(kernel: Kernel, shape: Shape, body: &Body) -> u64 {
    let sums = match kernel {
        Kernel::Read => shapes!(body, shape, read),
        Kernel::Write => shapes!(body, shape, write),
        Kernel::WriteNt => shapes!(body, shape, write_nt),
        Kernel::Copy => shapes!(body, shape, copy),
        Kernel::CopyNt => shapes!(body, shape, copy_nt),
        Kernel::Scale => shapes!(body, shape, scale),
        Kernel::Add => shapes!(body, shape, add),
        Kernel::Triad => shapes!(body, shape, triad),
        Kernel::TriadNt => shapes!(body, shape, triad_nt),
        Kernel::Mix1To1 => shapes!(body, shape, update),
        Kernel::Mix2To1 if body.ahead == 0 => {
            walk!(body, near, [read "0" "0", update "4096" "0"], "64", "4096")
        }
        Kernel::Mix2To1 => walk!(body, far, [read "0" "0", update "4096" "0"], "64", "4096"),
        Kernel::Mix3To1 if body.ahead == 0 => {
            walk!(body, near, [read "0" "0", read "4096" "0", update "8192" "0"], "64", "8192")
        }
        Kernel::Mix3To1 => {
            walk!(body, far, [read "0" "0", read "4096" "0", update "8192" "0"], "64", "8192")
        }
    };
    // Only what was read was added to the sums; the other kernels leave them at zero.
    sums.into_iter().fold(0, u64::wrapping_add)
}
