//! Lists of nodes and CPUs as people write them: `1-5,7`, `!0`, `+0-1`, `all`, `netdev:eth0`.
//!
//! The grammar is that of numactl's arguments: numbers are C's (`0x10`, `010`), the ends of a range
//! must be allowed and what lies between is taken where it is, `+` counts within the allowed ones,
//! `!` takes all others, and `all` or a device ends a list.

mod device;
mod route;

use core::ffi::{CStr, c_char, c_int, c_long};
use core::ptr::null_mut;

use crate::bitmask::{Bitmask, OwnedMask, into_raw};
use crate::data::{self, CPUMASK_BITS, NODEMASK_BITS};
use crate::error::{self, Arguments, warning};
use crate::kernel;
use crate::nodes;
use crate::system::Text;
use crate::text;
use crate::words::{self, Word};

/// A warning: long enough for any name of a file or device that a person writes.
type Message = Text<1024>;

/// What a list is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nodes,
    Cpus,
}

/// What can be wrong with a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    /// A member that is not allowed.
    OutOfRange,
    /// The same, at the end of a range.
    EndOutOfRange,
    /// A range without an end.
    Missing,
    /// What is no number and no device.
    Unparseable,
}

impl Kind {
    fn bits(self) -> usize {
        match self {
            Self::Nodes => NODEMASK_BITS.get(),
            Self::Cpus => CPUMASK_BITS.get(),
        }
    }

    /// Warns of a list. The words of these warnings end with an empty line, as people know them. A node that is out
    /// of range is named by its number, all else as it was typed.
    fn warn(self, wrong: Wrong, number: u64, typed: &[u8]) {
        let typed = Message::new().push(typed);
        let typed = Arguments::Text(typed.c_str());
        let number = Arguments::Long(number as c_long);
        let (kind, format, arguments) = match (self, wrong) {
            (Self::Nodes, Wrong::OutOfRange) => {
                (warning::NODE_LIST, c"node argument %ld is out of range\n", number)
            }
            (Self::Nodes, Wrong::EndOutOfRange) => {
                (warning::NODE_LIST, c"node argument %ld out of range\n", number)
            }
            (Self::Nodes, Wrong::Missing) => (warning::NODE_LIST, c"missing node argument %s\n", typed),
            (Self::Nodes, Wrong::Unparseable) => {
                (warning::NODE_LIST, c"unparseable node description `%s'\n", typed)
            }
            (Self::Cpus, Wrong::OutOfRange) => {
                (warning::CPU_LIST, c"cpu argument %s is out of range\n", typed)
            }
            (Self::Cpus, Wrong::EndOutOfRange) => {
                (warning::CPU_LIST, c"cpu argument %s out of range\n", typed)
            }
            (Self::Cpus, Wrong::Missing) => (warning::CPU_LIST, c"missing cpu argument %s\n", typed),
            (Self::Cpus, Wrong::Unparseable) => {
                (warning::CPU_LIST, c"unparseable cpu description `%s'\n", typed)
            }
        };
        error::warn(kind, format, arguments);
    }
}

/// Members that a list may name.
#[derive(Clone, Copy)]
struct Allowed<'a> {
    words: &'a [Word],
    bits: usize,
}

impl Allowed<'_> {
    fn has(&self, number: u64) -> bool {
        usize::try_from(number).is_ok_and(|number| number < self.bits && words::is_set(self.words, number))
    }

    /// The member at a place, counted from 0; beyond the last, a number that none has.
    fn at(&self, place: u64) -> u64 {
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        words::ones(self.words, self.bits).nth(place).unwrap_or(self.bits) as u64
    }
}

/// Parses a list into an empty mask of `allowed.bits` bits; `None` when it is wrong, which was warned
/// of.
fn list(kind: Kind, list: &[u8], allowed: Allowed<'_>, mask: &mut [Word]) -> Option<()> {
    if list.is_empty() {
        return Some(());
    }
    let (inverse, rest) = strip(list, b'!');
    // More than one "+" is one.
    let relative = rest.first() == Some(&b'+');
    let mut rest = rest.get(rest.iter().take_while(|byte| **byte == b'+').count()..)?;
    loop {
        rest = item(kind, rest, allowed, relative, mask)?;
        match rest.split_first() {
            None => break,
            Some((b',', after)) => rest = after,
            Some(_) => return None,
        }
    }
    if inverse {
        for (word, allowed) in mask.iter_mut().zip(allowed.words) {
            *word = allowed & !*word;
        }
    }
    Some(())
}

fn strip(text: &[u8], mark: u8) -> (bool, &[u8]) {
    match text.split_first() {
        Some((first, rest)) if *first == mark => (true, rest),
        _ => (false, text),
    }
}

/// Sets what one item says, and returns what stands behind it.
fn item<'a>(
    kind: Kind,
    text: &'a [u8],
    allowed: Allowed<'_>,
    relative: bool,
    mask: &mut [Word],
) -> Option<&'a [u8]> {
    if text == b"all" {
        for (word, allowed) in mask.iter_mut().zip(words::trimmed(allowed.words, allowed.bits)) {
            *word |= allowed;
        }
        return Some(&[]);
    }
    let Some((number, after)) = text::c_number(text) else {
        return word(kind, text, mask);
    };
    let absolute = |number| if relative { allowed.at(number) } else { number };
    let first = absolute(number);
    if !allowed.has(first) {
        kind.warn(Wrong::OutOfRange, first, text);
        return None;
    }
    words::set(mask, first as usize);
    let (true, range) = strip(after, b'-') else { return Some(after) };
    let Some((number, after)) = text::c_number(range) else {
        kind.warn(Wrong::Missing, 0, range);
        return None;
    };
    let last = absolute(number);
    if !allowed.has(last) {
        kind.warn(Wrong::EndOutOfRange, last, range);
        return None;
    }
    // A range whose end is before its start is its start.
    for number in (first..=last).filter(|number| allowed.has(*number)) {
        words::set(mask, number as usize);
    }
    Some(after)
}

/// An item that is no number: a device, for nodes.
fn word<'a>(kind: Kind, text: &'a [u8], mask: &mut [Word]) -> Option<&'a [u8]> {
    if kind == Kind::Nodes {
        if let Some(device) = device::Device::parse(text) {
            words::set(mask, device.node()?);
            return Some(&[]);
        }
    }
    kind.warn(Wrong::Unparseable, 0, text);
    None
}

/// Parses a C string into a new mask for C; NULL when it is wrong.
///
/// # Safety
/// `string` is NULL or a text.
unsafe fn parse(kind: Kind, string: *const c_char, allowed: Allowed<'_>) -> *mut Bitmask {
    if string.is_null() {
        kernel::set_errno(libc::EINVAL);
        return null_mut();
    }
    // SAFETY: it is not NULL, so the caller says that it ends with NUL.
    let string = unsafe { CStr::from_ptr(string) };
    let Some(mut mask) = OwnedMask::new(kind.bits()) else { return null_mut() };
    match list(kind, string.to_bytes(), allowed, mask.words_mut()) {
        Some(()) => into_raw(Some(mask)),
        None => null_mut(),
    }
}

/// A mask of the constructor.
fn started_with(mask: *mut Bitmask) -> Allowed<'static> {
    // SAFETY: the constructor made the mask, and nobody changes or frees it.
    let (words, bits) = unsafe { Bitmask::words(mask) };
    Allowed { words, bits }
}

/// Parses a list of nodes, among those that the task may take memory of.
///
/// # Safety
/// `string` is NULL or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_parse_nodestring(string: *const c_char) -> *mut Bitmask {
    // SAFETY: passed on to the caller.
    unsafe { parse(Kind::Nodes, string, started_with(data::all_nodes())) }
}

/// Parses a list of nodes, among all that exist.
///
/// # Safety
/// `string` is NULL or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_parse_nodestring_all(string: *const c_char) -> *mut Bitmask {
    // SAFETY: passed on to the caller.
    unsafe { parse(Kind::Nodes, string, started_with(data::nodes())) }
}

/// Parses a list of CPUs, among those that the task could use when it started.
///
/// # Safety
/// `string` is NULL or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_parse_cpustring(string: *const c_char) -> *mut Bitmask {
    // SAFETY: passed on to the caller.
    unsafe { parse(Kind::Cpus, string, started_with(data::all_cpus())) }
}

/// Parses a list of CPUs, among all that exist.
///
/// # Safety
/// `string` is NULL or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_parse_cpustring_all(string: *const c_char) -> *mut Bitmask {
    let bits = CPUMASK_BITS.get();
    let Some(mut all) = OwnedMask::new(bits) else { return null_mut() };
    let count = usize::try_from(nodes::numa_num_configured_cpus()).unwrap_or(0);
    words::fill(all.words_mut(), count.min(bits));
    // SAFETY: passed on to the caller.
    unsafe { parse(Kind::Cpus, string, Allowed { words: all.words_mut(), bits }) }
}

/// Parses the first line of a text such as `ff,0000000f`; see [`text::mask`].
///
/// # Safety
/// `line` is NULL or a text.
pub unsafe fn bitmap(line: *const c_char, words: &mut [Word]) -> c_int {
    if line.is_null() {
        kernel::set_errno(libc::EINVAL);
        return -1;
    }
    // SAFETY: it is not NULL, so the caller says that it ends with NUL.
    let text = unsafe { CStr::from_ptr(line) }.to_bytes();
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    text::mask(line, words).map_or(-1, |_| 0)
}

/// Parses a mask as the kernel writes it, `ff,0000000f`. The text stays as it is.
///
/// # Safety
/// `line` is NULL or a text; `mask` is NULL or a mask that nobody else uses now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_parse_bitmap(line: *mut c_char, mask: *mut Bitmask) -> c_int {
    // SAFETY: passed on to the caller.
    let (words, _) = unsafe { Bitmask::words_mut(mask) };
    // SAFETY: as above.
    unsafe { bitmap(line, words) }
}

#[cfg(test)]
mod tests;
