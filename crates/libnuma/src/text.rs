//! The texts of the kernel that the library reads.
//!
//! Written for a library without an allocator: parsers walk over bytes and fill what the caller has.
//! They take any bytes without a panic, and answer `None` where a text is not of the kind. Lists, masks and
//! numbers are those of the crate `notation`.
#![forbid(unsafe_code)]

pub use nodewise_notation::number::decimal;
use nodewise_notation::{list as lists, mask as masks};

use crate::words::{self, Word};

/// Calls `each` for every number of a list such as `0-3,8`, as in `/sys/devices/system/node/online`.
/// Numbers from `limit` on are left out, so that a hostile range costs nothing.
pub fn list(text: &[u8], limit: usize, mut each: impl FnMut(usize)) -> Option<()> {
    for span in lists::spans(text.trim_ascii(), u64::MAX) {
        for number in span.ok()?.numbers(limit as u64) {
            each(number as usize);
        }
    }
    Some(())
}

/// Reads a mask such as `ff,0000000f`: groups of hexadecimal digits with 32 bits each, the highest
/// first, as in `/sys/devices/system/node/nodeN/cpumap` and `Mems_allowed` of `/proc/PID/status`.
/// Returns the bits that the digits stand for. Set bits that do not fit are an error.
pub fn mask(text: &[u8], words: &mut [Word]) -> Option<usize> {
    words.fill(0);
    let mut bits = 0;
    for group in masks::groups(text.trim_ascii(), masks::Width::Unlimited) {
        let group = group.ok()?;
        let first = group.first as usize;
        bits = first + 4 * group.digits;
        words::put(words, first, group.bits)?;
    }
    Some(bits)
}

/// The rest of the first line that holds a name, behind it: `line_with(status, b"Mems_allowed:")`.
pub fn line_with<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let at = line.windows(name.len()).position(|window| window == name)?;
        line.get(at + name.len()..)
    })
}

/// A size in bytes from the line `Node 0 MemTotal:   5334448 kB` of a node's meminfo.
pub fn meminfo(text: &[u8], name: &[u8]) -> Option<u64> {
    let (kib, rest) = decimal(line_with(text, name)?.trim_ascii())?;
    (rest.trim_ascii() == b"kB").then_some(kib.checked_mul(1024)?)
}

#[cfg(test)]
mod tests;
