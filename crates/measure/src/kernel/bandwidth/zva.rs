//! Writing on aarch64 behind `dc zva`, which zeroes a line without reading it first.
//!
//! An ordinary store to a line that is in no cache has the line read, unless the core sees that whole lines
//! are being written. `dc zva` says so: the line belongs to this core, as zeros, and the stores that follow
//! find it. It is a store like any other (not past the caches), so it runs the ordinary `write`.

use std::arch::asm;

use super::Body;
use super::variant::Shape;

/// The bytes that `dc zva` has to zero at once for these loops: a line of 64. Nearly all cores do.
const BLOCK: u64 = 64;

/// Whether a program may use `dc zva` here, and it zeroes lines of 64 bytes.
///
/// # Source
/// Arm Architecture Reference Manual for A-profile, DCZID_EL0: bit 4 (DZP) says that it is prohibited, bits
/// 3 to 0 (BS) are the logarithm of the block size in words of 4 bytes.
pub fn is_available() -> bool {
    let id: u64;
    // SAFETY: the register can be read by every program, and reading it changes nothing.
    unsafe { asm!("mrs {}, dczid_el0", out(reg) id, options(nomem, nostack, preserves_flags)) };
    id & 0x10 == 0 && 4 << (id & 0xf) == BLOCK
}

/// Zeroes the line at a page and an offset in it, and stores the value over it.
macro_rules! line {
    ($page:literal $at:literal) => {
        concat!(
            "add {line}, {a}, #",
            $page,
            "\nadd {line}, {line}, #",
            $at,
            "\ndc zva, {line}\n",
            "stp q31, q31, [{line}]\nstp q31, q31, [{line}, #32]\n"
        )
    };
}

/// A loop over all groups, as in [`super::arm`]: each turn writes these lines and moves on by `step` bytes;
/// after a page of turns the pages of the other streams, of `skip` bytes, are stepped over.
macro_rules! walk {
    ($body:ident, [$($page:literal $at:literal),+], $step:literal, $skip:literal) => {
        // SAFETY: the caller vouches for the pointer and for `dc zva`. What is touched lies within `groups`
        // groups of pages behind the pointer: a turn moves by `step`, 4096 / `step` turns make a page, and the
        // offsets of a turn reach at most `step` bytes beyond a page's start and `skip` beyond that. The
        // pointer is aligned to a line, so that no more than a line is zeroed that is then written.
        unsafe {
            asm!(
                "ld1r {{v31.2d}}, [{factor}]",
                "2:",
                concat!("mov {turns:w}, #4096/", $step),
                "3:",
                $(line!($page $at),)+
                concat!("add {a}, {a}, #", $step),
                "subs {turns:w}, {turns:w}, #1",
                "b.ne 3b",
                concat!("add {a}, {a}, #", $skip),
                "subs {groups}, {groups}, #1",
                "b.ne 2b",
                "dmb ishst",
                a = inout(reg) $body.a => _,
                groups = inout(reg) $body.groups => _,
                factor = in(reg) &raw const $body.factor,
                turns = out(reg) _,
                line = out(reg) _,
                out("v31") _,
                options(nostack),
            );
        }
    };
}

/// Writes the factor to all words of the body of a pass.
///
/// # Safety
/// `a` is aligned to 64 bytes and can be written for all groups; nothing else uses it; and `dc zva`
/// [is available](is_available).
pub unsafe fn write(shape: Shape, body: &Body) {
    match shape {
        Shape::Line => walk!(body, ["0" "0"], "64", "0"),
        Shape::Unrolled => walk!(body, ["0" "0", "0" "64", "0" "128", "0" "192"], "256", "0"),
        Shape::Two => walk!(body, ["0" "0", "4096" "0"], "64", "4096"),
        Shape::Four => walk!(body, ["0" "0", "4096" "0", "8192" "0", "12288" "0"], "64", "12288"),
    }
}
