//! Lists of nodes and CPUs as people write them: `1-5,7`, `!0`, `+0-1`, `all`, `netdev:eth0`.
//!
//! The grammar is that of numactl's arguments, in the crate `notation`: numbers are C's (`0x10`, `010`), the ends
//! of a range must be allowed and what lies between is taken where it is, `+` counts within the allowed ones,
//! `!` takes the others that exist, and `all` or a device ends a list.

mod device;
mod route;

use core::ffi::{CStr, c_char, c_int, c_long};
use core::ptr::null_mut;

use nodewise_notation::device::Device;
use nodewise_notation::number::Base;
use nodewise_notation::string::{self, Fault, Grammar, Members};
use nodewise_notation::warning::{self, Argument, Subject};

use crate::bitmask::{Bitmask, OwnedMask, into_raw};
use crate::data::{self, CPUMASK_BITS, NODEMASK_BITS};
use crate::error::{self, Arguments};
use crate::kernel;
use crate::nodes;
use crate::system::Text;
use crate::text;
use crate::words::{self, Word};

/// A warning: long enough for any name of a file or device that a person writes.
type Message = Text<1024>;

/// The grammar of 2.0.19 as Debian 13 has it: built with a C library that knows binary numbers.
const GRAMMAR: Grammar = Grammar::original(Base::PrefixedOrBinary);

/// The subject of a list, and the members that it can name.
#[derive(Clone, Copy)]
struct Scope<'a> {
    subject: Subject,
    allowed: Allowed<'a>,
    /// Makes of members the others that exist: [`Others::Existing`](string::Others).
    invert: fn(&mut [Word]),
}

/// Bits of a mask.
fn bits(subject: Subject) -> usize {
    match subject {
        Subject::Nodes => NODEMASK_BITS.get(),
        Subject::Cpus => CPUMASK_BITS.get(),
    }
}

/// Warns of a list, if it earns a warning.
fn warn<F>(subject: Subject, fault: &Fault<'_, F>) {
    match warning::of_string(subject, fault) {
        Some((warning, Argument::Number(number))) => error::warn(warning, Arguments::Long(number as c_long)),
        Some((warning, Argument::Typed(typed))) => {
            let typed = Message::new().push(typed);
            error::warn(warning, Arguments::Text(typed.c_str()));
        }
        None => {}
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
}

/// A list that is being read.
struct List<'a> {
    scope: Scope<'a>,
    mask: &'a mut [Word],
}

/// A device whose node is not known, which was warned of.
struct NoNode;

impl Members for List<'_> {
    type Member = u64;
    type Failure = NoNode;

    fn named(&self, number: u64) -> Result<u64, u64> {
        if self.scope.allowed.has(number) { Ok(number) } else { Err(number) }
    }

    fn counted(&self, position: u64) -> Result<u64, u64> {
        let Allowed { words, bits } = self.scope.allowed;
        // What is negative in C is counted as -1.
        let position = usize::try_from(position as i64).map_err(|_| u64::MAX)?;
        words::ones(words, bits).nth(position).map(|number| number as u64).ok_or(bits as u64)
    }

    fn put(&mut self, first: u64, last: u64) {
        words::set(self.mask, first as usize);
        for number in (first..=last).filter(|number| self.scope.allowed.has(*number)) {
            words::set(self.mask, number as usize);
        }
    }

    fn put_all(&mut self) {
        let Allowed { words, bits } = self.scope.allowed;
        for (word, allowed) in self.mask.iter_mut().zip(words::trimmed(words, bits)) {
            *word |= allowed;
        }
    }

    fn put_device(&mut self, device: Device<'_>) -> Option<Result<(), NoNode>> {
        if self.scope.subject == Subject::Cpus || !device.original {
            return None;
        }
        let node = device::node(device);
        Some(node.map(|node| words::set(self.mask, node)).ok_or(NoNode))
    }
}

/// Parses a list into an empty mask of `allowed.bits` bits; `None` when it is wrong, which was warned
/// of.
fn list(scope: Scope<'_>, text: &[u8], mask: &mut [Word]) -> Option<()> {
    if text.is_empty() {
        return Some(());
    }
    match string::read(text, GRAMMAR, &mut List { scope, mask }) {
        Ok(marks) if marks.inverse => (scope.invert)(mask),
        Ok(_) => {}
        Err(fault) => {
            warn(scope.subject, &fault);
            return None;
        }
    }
    Some(())
}

/// Parses a C string into a new mask for C; NULL when it is wrong.
///
/// # Safety
/// `string` is NULL or a text.
unsafe fn parse(scope: Scope<'_>, string: *const c_char) -> *mut Bitmask {
    if string.is_null() {
        kernel::set_errno(libc::EINVAL);
        return null_mut();
    }
    // SAFETY: it is not NULL, so the caller says that it ends with NUL.
    let string = unsafe { CStr::from_ptr(string) };
    let Some(mut mask) = OwnedMask::new(bits(scope.subject)) else { return null_mut() };
    match list(scope, string.to_bytes(), mask.words_mut()) {
        Some(()) => into_raw(Some(mask)),
        None => null_mut(),
    }
}

/// Nodes that a list can name.
fn node_scope(allowed: Allowed<'_>) -> Scope<'_> {
    let invert = |mask: &mut [Word]| {
        for (word, existing) in mask.iter_mut().zip(started_with(data::nodes()).words) {
            *word = existing & !*word;
        }
    };
    Scope { subject: Subject::Nodes, allowed, invert }
}

/// CPUs that a list can name.
fn cpu_scope(allowed: Allowed<'_>) -> Scope<'_> {
    let invert = |mask: &mut [Word]| {
        let existing = configured_cpus();
        for (at, word) in mask.iter_mut().enumerate() {
            let mut all = [0];
            words::fill(&mut all, existing.saturating_sub(at * words::WORD_BITS).min(words::WORD_BITS));
            *word = all[0] & !*word;
        }
    };
    Scope { subject: Subject::Cpus, allowed, invert }
}

/// How many CPUs exist.
fn configured_cpus() -> usize {
    usize::try_from(nodes::numa_num_configured_cpus()).unwrap_or(0)
}

/// A mask of the constructor.
fn started_with(mask: *mut Bitmask) -> Allowed<'static> {
    // SAFETY: the constructor made the mask, which is never changed or freed.
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
    unsafe { parse(node_scope(started_with(data::all_nodes())), string) }
}

/// Parses a list of nodes, among all that exist.
///
/// # Safety
/// `string` is NULL or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_parse_nodestring_all(string: *const c_char) -> *mut Bitmask {
    // SAFETY: passed on to the caller.
    unsafe { parse(node_scope(started_with(data::nodes())), string) }
}

/// Parses a list of CPUs, among those that the task could use when it started.
///
/// # Safety
/// `string` is NULL or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_parse_cpustring(string: *const c_char) -> *mut Bitmask {
    // SAFETY: passed on to the caller.
    unsafe { parse(cpu_scope(started_with(data::all_cpus())), string) }
}

/// Parses a list of CPUs, among all that exist.
///
/// # Safety
/// `string` is NULL or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_parse_cpustring_all(string: *const c_char) -> *mut Bitmask {
    let bits = CPUMASK_BITS.get();
    let Some(mut all) = OwnedMask::new(bits) else { return null_mut() };
    words::fill(all.words_mut(), configured_cpus().min(bits));
    // SAFETY: passed on to the caller.
    unsafe { parse(cpu_scope(Allowed { words: all.words_mut(), bits }), string) }
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
/// `line` is NULL or a text; `mask` is NULL or a mask that no other code uses during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_parse_bitmap(line: *mut c_char, mask: *mut Bitmask) -> c_int {
    // SAFETY: passed on to the caller.
    let (words, _) = unsafe { Bitmask::words_mut(mask) };
    // SAFETY: as above.
    unsafe { bitmap(line, words) }
}

#[cfg(test)]
mod tests;
