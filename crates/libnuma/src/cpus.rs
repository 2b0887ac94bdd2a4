//! Which CPUs belong to which node: a table that is filled from the `cpumap` files when it is first
//! asked for, and again after `numa_node_to_cpu_update`.

use core::ffi::{c_int, c_uint};
use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::bitmask::Bitmask;
use crate::data::{CPUMASK_BITS, MAX_NODE, NODEMASK_BITS};
use crate::error::{self, Arguments, warning};
use crate::kernel;
use crate::system::{self, FILE_BYTES};
use crate::table::Table;
use crate::text;
use crate::words::{self, WORD_BITS, Word, words_for};

/// As many CPUs as any Linux can have (`NR_CPUS`).
pub const CPUS: usize = 8192;

/// The node of each CPU plus 1; 0 for none.
static NODE_OF: Table = Table::new();
/// One more than the highest CPU with a node.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// A bit for each node whose `cpumap` was read.
static KNOWN: [AtomicU64; system::NODE_LIMIT / 64] = [const { AtomicU64::new(0) }; system::NODE_LIMIT / 64];
/// How often the table was called stale, from 1.
static WANTED: AtomicU32 = AtomicU32::new(1);
/// The value of [`WANTED`] when the table was read; 0 when it never was.
static HELD: AtomicU32 = AtomicU32::new(0);

/// For the constructor: makes room for this many CPUs.
pub fn allocate(cpus: usize) {
    NODE_OF.allocate(cpus.min(CPUS));
}

/// For the destructor: gives up the room.
pub fn free() {
    NODE_OF.free();
}

/// The table, read again when it is stale.
#[inline]
fn table() -> &'static [AtomicU16] {
    if HELD.load(Ordering::Acquire) != WANTED.load(Ordering::Relaxed) {
        read();
    }
    NODE_OF.numbers()
}

/// Its part up to the highest CPU that has a node.
fn places() -> &'static [AtomicU16] {
    let table = table();
    table.get(..COUNT.load(Ordering::Relaxed)).unwrap_or(table)
}

/// Fills the table. Several threads may do so at once: they write the same.
#[cold]
fn read() {
    let table = NODE_OF.numbers();
    let errno = kernel::errno();
    let wanted = WANTED.load(Ordering::Relaxed);
    let mut seen: [Word; words_for(CPUS)] = [0; words_for(CPUS)];
    let mut nodes: [u64; system::NODE_LIMIT / 64] = [0; system::NODE_LIMIT / 64];
    let _ = system::online_nodes(NODEMASK_BITS.get(), |node| read_node(node, table, &mut seen, &mut nodes));
    for (cpu, place) in table.iter().enumerate() {
        if !words::is_set(&seen, cpu) && place.load(Ordering::Relaxed) != 0 {
            place.swap(0, Ordering::Relaxed);
        }
    }
    for (place, nodes) in KNOWN.iter().zip(nodes) {
        place.swap(nodes, Ordering::Relaxed);
    }
    COUNT.swap(words::ones(&seen, CPUS).last().map_or(0, |last| last + 1), Ordering::Relaxed);
    HELD.swap(wanted, Ordering::Release);
    kernel::set_errno(errno);
}

fn read_node(node: usize, table: &[AtomicU16], seen: &mut [Word], nodes: &mut [u64]) {
    let mut buffer = [0; FILE_BYTES];
    let mut cpus: [Word; words_for(CPUS)] = [0; words_for(CPUS)];
    let map = system::read(system::node_file(node, b"cpumap").c_str(), &mut buffer).ok();
    if map.and_then(|map| text::mask(map, &mut cpus)).is_none() {
        return;
    }
    if let Some(word) = nodes.get_mut(node / 64) {
        *word |= 1 << (node % 64);
    }
    for cpu in words::ones(&cpus, CPUS) {
        words::set(seen, cpu);
        if let Some(place) = table.get(cpu) {
            place.swap(node as u16 + 1, Ordering::Relaxed);
        }
    }
}

/// The node of a CPU.
#[inline]
pub fn node_of(cpu: usize) -> Option<usize> {
    let place = table().get(cpu)?.load(Ordering::Relaxed);
    (place as usize).checked_sub(1)
}

/// Whether the kernel reported the CPUs of a node, even if there are none.
pub fn is_known(node: usize) -> bool {
    table();
    KNOWN.get(node / 64).is_some_and(|word| word.load(Ordering::Relaxed) >> (node % 64) & 1 == 1)
}

/// CPUs of a node, ascending.
pub fn of_node(node: usize) -> impl Iterator<Item = usize> {
    let here = move |place: &AtomicU16| place.load(Ordering::Relaxed) as usize == node + 1;
    places().iter().enumerate().filter_map(move |(cpu, place)| here(place).then_some(cpu))
}

/// The node of a CPU; -1 and `EINVAL` when it has none.
#[unsafe(no_mangle)]
pub extern "C" fn numa_node_of_cpu(cpu: c_int) -> c_int {
    // A negative number is beyond the table.
    match node_of(cpu as c_uint as usize) {
        Some(node) => node as c_int,
        None => {
            kernel::set_errno(libc::EINVAL);
            -1
        }
    }
}

/// Writes the CPUs of a node to a mask of at least `numa_num_possible_cpus` bits.
///
/// For a node that does not exist: -1 with `ERANGE` when it is above the highest; else -1 with
/// `ENOENT` and all bits set, so that a caller who does not look is not bound to nothing.
pub fn node_to_cpus(node: c_int, words: &mut [Word], bits: usize) -> c_int {
    let highest = MAX_NODE.get();
    let Some(node) = usize::try_from(node).ok().filter(|node| *node <= highest) else {
        kernel::set_errno(libc::ERANGE);
        return -1;
    };
    if !is_known(node) {
        words::fill(words, bits.min(CPUMASK_BITS.get()));
        kernel::set_errno(libc::ENOENT);
        error::warn(warning::CPU_MASK, Arguments::None);
        return -1;
    }
    words.fill(0);
    // Word by word: one write for the CPUs of a word.
    for (word, places) in words.iter_mut().zip(places().chunks(WORD_BITS)) {
        let bit = |(at, place): (usize, &AtomicU16)| {
            Word::from(place.load(Ordering::Relaxed) as usize == node + 1) << (at % WORD_BITS)
        };
        *word = places.iter().enumerate().map(bit).fold(0, |word, bit| word | bit);
    }
    0
}

/// Writes the CPUs of a node to a mask; see [`node_to_cpus`]. A mask that is too small is reported
/// by `numa_error`.
///
/// # Safety
/// `mask` is NULL or a mask that no other code uses during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_node_to_cpus(node: c_int, mask: *mut Bitmask) -> c_int {
    // SAFETY: passed on to the caller.
    let (words, bits) = unsafe { Bitmask::words_mut(mask) };
    let exists = usize::try_from(node).is_ok_and(|node| node <= MAX_NODE.get());
    if exists && words.len() < words_for(CPUMASK_BITS.get()) {
        kernel::set_errno(libc::EINVAL);
        error::report(c"map size mismatch");
        return -1;
    }
    node_to_cpus(node, words, bits)
}

/// Makes the next question about CPUs and nodes read the kernel's files again.
#[unsafe(no_mangle)]
pub extern "C" fn numa_node_to_cpu_update() {
    WANTED.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn every_cpu_is_in_the_mask_of_its_node_and_in_no_other() {
        NODEMASK_BITS.set(1024);
        allocate(CPUS);
        let mut nodes = Vec::new();
        system::online_nodes(1024, |node| nodes.push(node)).expect("the kernel has files of nodes");
        MAX_NODE.set(nodes.iter().copied().max().unwrap_or(0));
        for again in [false, true] {
            if again {
                numa_node_to_cpu_update();
            }
            for node in &nodes {
                let mut words = [0; words_for(CPUS)];
                assert_eq!(node_to_cpus(*node as c_int, &mut words, CPUS), 0);
                assert!(words::ones(&words, CPUS).eq(of_node(*node)));
                for cpu in 0..CPUS {
                    assert_eq!(words::is_set(&words, cpu), node_of(cpu) == Some(*node), "CPU {cpu}");
                }
            }
        }
        assert!(node_of(0).is_some(), "CPU 0 has a node");
    }

    #[test]
    fn cpus_that_do_not_exist_have_no_node() {
        for cpu in [-1, c_int::MIN, c_int::MAX, CPUS as c_int] {
            assert_eq!(numa_node_of_cpu(cpu), -1);
            assert_eq!(kernel::errno(), libc::EINVAL);
        }
    }
}
