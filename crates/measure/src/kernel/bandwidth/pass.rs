//! One pass over arrays: the body in assembly, what is left at both ends in plain Rust.

use super::count::Kernel;
use super::variant::{Instructions, Shape, Variant};
use super::{Body, STRIDE_WORDS, portable};
use crate::kernel::chase::LINE;

/// The arrays of a pass, as words of 8 bytes; arithmetic takes them for numbers (`f64`).
#[derive(Debug)]
pub struct Arrays<'a> {
    /// The array that is written, or read by the kernels of one array.
    pub a: &'a mut [u64],
    /// The first source, as long as `a`; empty where the kernel has none.
    pub b: &'a [u64],
    /// The second source, as long as `a`; empty where the kernel has none.
    pub c: &'a [u64],
}

/// Passes over the arrays once, and returns the sum of what was only read. This is what is timed.
///
/// The factor is also the value that is written, and the mixes add its bits. It
/// should differ from pass to pass, so that a pass that was left out shows, and not be 0: zeros
/// written over zeros are special to some processors.
///
/// # Panics
/// When a source is not as long as `a`, when this processor does not have the instructions
/// ([`Instructions::are_available`]), or they cannot run the kernel ([`Instructions::can`]).
pub fn pass(kernel: Kernel, variant: Variant, arrays: &mut Arrays<'_>, factor: f64) -> u64 {
    let Variant { instructions, .. } = variant;
    let words = arrays.a.len();
    assert!(kernel.arrays() < 2 || arrays.b.len() == words, "the first source is not as long as the target");
    assert!(kernel.arrays() < 3 || arrays.c.len() == words, "the second source is not as long as the target");
    assert!(instructions.are_available(), "{} is not available", instructions.name());
    assert!(instructions.can(kernel), "{} cannot run {kernel}", instructions.name());
    match instructions {
        Instructions::Portable => in_plain_rust(kernel, arrays, 0..words, factor),
        Instructions::String => string(kernel, arrays, factor),
        _ => in_assembly(kernel, variant, arrays, factor),
    }
}

/// The part of a pass over these words.
fn in_plain_rust(kernel: Kernel, arrays: &mut Arrays<'_>, range: std::ops::Range<usize>, factor: f64) -> u64 {
    let of = |source: &'_ [u64]| source.get(range.clone()).map_or((0, 0), |_| (range.start, range.end));
    let ((b_start, b_end), (c_start, c_end)) = (of(arrays.b), of(arrays.c));
    let (b, c) = (&arrays.b[b_start..b_end], &arrays.c[c_start..c_end]);
    let a = &mut arrays.a[range];
    match kernel {
        Kernel::Read => return portable::read(a),
        Kernel::Write | Kernel::WriteNt => portable::write(a, factor),
        Kernel::Copy | Kernel::CopyNt => portable::copy(a, b),
        Kernel::Scale => portable::scale(a, b, factor),
        Kernel::Add => portable::add(a, b, c),
        Kernel::Triad | Kernel::TriadNt => portable::triad(a, b, c, factor),
        Kernel::Mix3To1 | Kernel::Mix2To1 | Kernel::Mix1To1 => {
            return portable::mix(a, kernel.mix().expect("a mix has parts"), factor);
        }
    }
    0
}

#[cfg(target_arch = "x86_64")]
fn string(kernel: Kernel, arrays: &mut Arrays<'_>, factor: f64) -> u64 {
    let words = arrays.a.len();
    let a = arrays.a.as_mut_ptr();
    if kernel == Kernel::Write {
        // SAFETY: `a` is the start of a slice of this many words that is borrowed exclusively.
        unsafe { super::x86::string_fill(a, words, factor.to_bits()) };
    } else {
        // SAFETY: `a` and `b` are the starts of slices of this many words (`pass` compared their
        // lengths); `a` is borrowed exclusively, so they do not overlap.
        unsafe { super::x86::string_copy(a, arrays.b.as_ptr(), words) };
    }
    0
}

#[cfg(not(target_arch = "x86_64"))]
fn string(kernel: Kernel, arrays: &mut Arrays<'_>, factor: f64) -> u64 {
    in_plain_rust(kernel, arrays, 0..arrays.a.len(), factor)
}

/// The body in groups of whole pages, the ends in plain Rust.
fn in_assembly(kernel: Kernel, variant: Variant, arrays: &mut Arrays<'_>, factor: f64) -> u64 {
    let words = arrays.a.len();
    let group = STRIDE_WORDS * kernel.mix().filter(|parts| *parts > 1).unwrap_or(variant.shape.streams());
    let head = head(kernel, arrays.a).min(words);
    let groups = (words - head) / group;
    let tail = head + groups * group;
    // The sources at the same place, and the target where there is none: a pointer that is not used.
    let at = |source: &[u64]| source.get(head..).map_or(arrays.a.as_ptr(), <[u64]>::as_ptr);
    let (b, c) = (at(arrays.b), at(arrays.c));
    let mut sum = in_plain_rust(kernel, arrays, 0..head, factor);
    if groups > 0 {
        let a = arrays.a[head..].as_mut_ptr();
        let body = Body { a, b, c, groups, ahead: variant.ahead as usize, factor };
        sum = sum.wrapping_add(run(kernel, variant.instructions, variant.shape, &body));
    }
    sum.wrapping_add(in_plain_rust(kernel, arrays, tail..words, factor))
}

/// Words before the first whole line of what is written. The mixes have none: their pages begin at the
/// start.
fn head(kernel: Kernel, a: &[u64]) -> usize {
    if kernel == Kernel::Read || kernel.mix().is_some() {
        return 0;
    }
    (a.as_ptr().addr().wrapping_neg() % LINE) / 8
}

#[cfg(target_arch = "x86_64")]
fn run(kernel: Kernel, instructions: Instructions, shape: Shape, body: &Body) -> u64 {
    let run = match instructions {
        Instructions::Avx512 => super::x86::avx512,
        Instructions::Avx2 => super::x86::avx2,
        _ => super::x86::sse2,
    };
    // SAFETY: `pass` asked whether the processor has the instructions; `in_assembly` took pointers
    // from slices that hold all groups behind them, `a` from one that is borrowed exclusively, which
    // is aligned to a line where the kernel writes past the caches.
    unsafe { run(kernel, shape, body) }
}

#[cfg(target_arch = "aarch64")]
fn run(kernel: Kernel, instructions: Instructions, shape: Shape, body: &Body) -> u64 {
    if instructions == Instructions::Zva {
        // SAFETY: `pass` asked whether `dc zva` is available; `in_assembly` took `a` from a slice that holds
        // all groups behind it and is borrowed exclusively, at its first whole line.
        unsafe { super::zva::write(shape, body) };
        return 0;
    }
    // SAFETY: every aarch64 that Linux runs on has NEON; `in_assembly` took pointers from slices that
    // hold all groups behind them, `a` from one that is borrowed exclusively.
    unsafe { super::arm::neon(kernel, shape, body) }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn run(_: Kernel, _: Instructions, _: Shape, _: &Body) -> u64 {
    unreachable!("no instructions but the portable ones are available")
}

#[cfg(test)]
mod tests;
