//! The texts of the kernel that the library reads, and numbers as C's `strtoul` reads them.
//!
//! Written for a library without an allocator: parsers walk over bytes and fill what the caller has.
//! They take any bytes without a panic, and answer `None` where a text is not of the kind.
#![forbid(unsafe_code)]

use crate::words::{self, Word};

/// A decimal number at the start, and the bytes behind it.
pub fn decimal(text: &[u8]) -> Option<(u64, &[u8])> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at_checked(length)?;
    if digits.is_empty() {
        return None;
    }
    let value = digits.iter().try_fold(0u64, |value, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit.wrapping_sub(b'0')))
    })?;
    Some((value, rest))
}

/// Calls `each` for every number of a list such as `0-3,8`, as in `/sys/devices/system/node/online`.
/// Numbers from `limit` on are left out, so that a hostile range costs nothing.
pub fn list(text: &[u8], limit: usize, mut each: impl FnMut(usize)) -> Option<()> {
    let mut rest = text.trim_ascii();
    while !rest.is_empty() {
        let (first, after) = decimal(rest)?;
        let (last, after) = match after.split_first() {
            Some((b'-', after)) => decimal(after)?,
            _ => (first, after),
        };
        let end = last.saturating_add(1).min(limit as u64);
        for number in first..end {
            each(number as usize);
        }
        rest = match after.split_first() {
            None => after,
            Some((b',', after)) if !after.is_empty() => after,
            Some(_) => return None,
        };
    }
    Some(())
}

/// Reads a mask such as `ff,0000000f`: groups of hexadecimal digits with 32 bits each, the highest
/// first, as in `/sys/devices/system/node/nodeN/cpumap` and `Mems_allowed` of `/proc/PID/status`.
/// Returns the bits that the digits stand for. Set bits that do not fit are an error.
pub fn mask(text: &[u8], words: &mut [Word]) -> Option<usize> {
    words.fill(0);
    let mut start = 0;
    let mut bits = 0;
    for group in text.trim_ascii().rsplit(|byte| *byte == b',') {
        if group.len() > 8 && text.contains(&b',') {
            return None;
        }
        for (at, digit) in group.iter().rev().enumerate() {
            let digit = char::from(*digit).to_digit(16)?;
            bits = start + 4 * (at + 1);
            for bit in (0..4).filter(|bit| digit >> bit & 1 == 1) {
                let number = start + 4 * at + bit;
                words::set(words, number);
                if !words::is_set(words, number) {
                    return None;
                }
            }
        }
        start += 32;
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

/// A number as `strtoul` with base 0 reads it: blanks, a sign, `0x` and `0` are known. Returns the
/// value and the bytes behind it; `None` when there is no number.
///
/// A negative number is its two's complement, and a number too large is `u64::MAX`, as in C.
pub fn c_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let hexadecimal = match digits {
        [b'0', b'x' | b'X', rest @ ..] if rest.first().is_some_and(u8::is_ascii_hexdigit) => Some(rest),
        _ => None,
    };
    let (base, digits) = match (hexadecimal, digits.first()) {
        (Some(rest), _) => (16, rest),
        (None, Some(b'0')) => (8, digits),
        _ => (10, digits),
    };
    let length = digits.iter().take_while(|digit| char::from(**digit).is_digit(base)).count();
    let (digits, rest) = digits.split_at_checked(length)?;
    if digits.is_empty() {
        return None;
    }
    let value = digits.iter().try_fold(0u64, |value, digit| {
        value.checked_mul(base.into())?.checked_add(char::from(*digit).to_digit(base)?.into())
    });
    Some(match value {
        None => (u64::MAX, rest),
        Some(value) => (if negative { value.wrapping_neg() } else { value }, rest),
    })
}

#[cfg(test)]
mod tests;
