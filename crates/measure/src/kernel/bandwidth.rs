//! Passes over memory from end to end, in every way that may turn out to be the fastest: bandwidth.
//!
//! *What* is done is a [`Kernel`]; *how* is a [`Variant`]: which instructions, how many streams at
//! once, how far ahead is prefetched. Which variant is fastest depends on the processor and the page
//! size, and often it is not the one with the widest registers, so all are here and a measurement
//! chooses. The portable variant defines what a kernel does; tests hold the others to it, bit by bit.
//!
//! | to find | look in |
//! |---|---|
//! | what the kernels are called, and the bytes they move | [`count`] |
//! | the ways to run one, and which work here | [`variant`] |
//! | one pass: heads, bodies, tails | [`pass`] |
//! | the loops themselves | `portable`, `x86`, `arm`, `zva` |

#[cfg(target_arch = "aarch64")]
#[expect(unsafe_code, reason = "loops in assembly")]
mod arm;
pub mod count;
#[expect(unsafe_code, reason = "slices are handed to loops in assembly")]
pub mod pass;
pub(crate) mod portable;
pub mod variant;
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "loops in assembly")]
mod x86;
#[cfg(target_arch = "aarch64")]
#[expect(unsafe_code, reason = "loops in assembly")]
mod zva;

pub use count::{Kernel, Traffic};
pub use pass::{Arrays, pass};
pub use variant::{Instructions, Shape, Variant};

/// Bytes of what a stream walks before its neighbour's part begins: the small page of x86 and most of
/// Arm, at whose end hardware prefetchers stop.
const STRIDE: usize = 4096;

/// Words of 8 bytes in a [`STRIDE`].
const STRIDE_WORDS: usize = STRIDE / 8;

/// The memory of a loop in assembly: pointers that are good for all of its groups.
struct Body {
    /// The array that is written, or read where nothing else is.
    a: *mut u64,
    /// The first source; anything where there is none.
    b: *const u64,
    /// The second source; anything where there is none.
    c: *const u64,
    /// Groups of one [`STRIDE`] per stream; at least 1.
    groups: usize,
    /// How many bytes ahead is prefetched, 0 for not at all.
    ahead: usize,
    /// The factor, or the value that is written or added.
    factor: f64,
}
