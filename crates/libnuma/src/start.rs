//! The constructor: what programs may read before they call anything. Five short system calls; all
//! else is read when it is asked for.

use crate::bitmask::{self, Bitmask, OwnedMask};
use crate::cpus::{self, CPUS};
use crate::data::{self, CPUMASK_BITS, MAX_NODE, NODEMASK_BITS, NODES, Nodemask, TASK_CPUS, TASK_NODES};
use crate::distance;
use crate::kernel::{self, mpol};
use crate::system::{self, FILE_BYTES};
use crate::text;
use crate::words::{self, WORD_BITS, Word, words_for};

/// The largest `MAX_NUMNODES` of Linux: `NODES_SHIFT` is at most 10.
const KERNEL_NODES: usize = 1024;
/// Runs `start` when the library is loaded.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Runs `end` when the library is unloaded, and when the program ends.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

/// Frees what `start` allocated: a program may load and unload the library again and again. As in the
/// originals the variables are NULL then.
#[cfg_attr(test, expect(dead_code, reason = "a test does not unload the library"))]
extern "C" fn end() {
    for mask in data::withdraw() {
        // SAFETY: it is NULL or the constructor's, and nothing but its variable, which is NULL now, had it.
        unsafe { bitmask::numa_bitmask_free(mask) };
    }
    cpus::free();
    distance::free();
}

/// Fills the variables. `errno` stays as it was: a library may be loaded at any time.
#[cfg_attr(test, expect(dead_code, reason = "a test does not load the library"))]
#[unsafe(link_section = ".text.startup")]
extern "C" fn start() {
    let errno = kernel::errno();
    let (bits, allowed) = task_nodes();
    NODEMASK_BITS.set(bits);
    let masks = (OwnedMask::for_nodes(), OwnedMask::for_nodes(), OwnedMask::for_nodes(), task_cpus());
    if let (Some(mut all), Some(mut nodes), Some(none), Some(cpus)) = masks {
        words::copy(&allowed, all.words_mut());
        TASK_NODES.set(words::weight(all.words_mut(), bits));
        find_nodes(&allowed, nodes.words_mut(), bits);
        let found = nodes.words_mut();
        NODES.set(words::weight(found, bits));
        MAX_NODE.set(words::ones(found, bits).last().unwrap_or(0));
        let mut version1 = Nodemask::EMPTY;
        words::copy(all.words_mut(), &mut version1.words);
        data::publish_version1(version1);
        distance::allocate(MAX_NODE.get() + 1);
        data::publish(all.into_raw(), nodes.into_raw(), none.into_raw(), cpus);
    }
    kernel::set_errno(errno);
}

/// The size of the kernel's masks of nodes, and the nodes that the task may take memory of.
fn task_nodes() -> (usize, [Word; words_for(system::NODE_LIMIT)]) {
    let mut words = [0; words_for(system::NODE_LIMIT)];
    if let Some(bits) = kernel_nodes() {
        if kernel::mems_allowed(&mut words, bits).is_ok() {
            return (bits, words);
        }
    }
    // The calls are forbidden, as in a container. The digits of the mask give its size.
    let mut buffer = [0; FILE_BYTES];
    let status = system::read(c"/proc/self/status", &mut buffer).ok();
    let mask = status.and_then(|status| text::line_with(status, b"Mems_allowed:"));
    match mask.and_then(|mask| text::mask(mask, &mut words)) {
        Some(bits) if bits > 0 => (bits, words),
        _ => (KERNEL_NODES, [0; words_for(system::NODE_LIMIT)]),
    }
}

/// The nodes that exist.
fn find_nodes(allowed: &[Word], found: &mut [Word], bits: usize) {
    let count = words::weight(allowed, bits);
    let without_holes = count > 0 && words::ones(allowed, bits).last() == Some(count - 1);
    // Where the task may take memory of every node that this kernel could have, these are the nodes.
    // The kernel refuses a mask that is too small for those it could have (Linux 4.20 and newer;
    // older ones refuse any that is smaller than their largest). One call instead of a file of
    // /sys, which takes a third of the time of loading the library.
    if without_holes && kernel::fits(count) {
        words::copy(allowed, found);
        return;
    }
    // Without files of nodes there are none, as in the original.
    let _ = system::online_nodes(bits, |node| words::set(found, node));
}

/// `MAX_NUMNODES`, a power of two: the kernel takes a mask with the bit before it and none with the
/// bit behind it. At least 4, the bits of the digit in which /proc/PID/status would show them.
/// `None` when the kernel forbids the question or answers nonsense.
fn kernel_nodes() -> Option<usize> {
    let mut bits = KERNEL_NODES;
    let takes = |bit: usize| {
        let mut words = [0; words_for(KERNEL_NODES + WORD_BITS)];
        words::set(&mut words, bit);
        kernel::takes(mpol::BIND, &words, bit + 1)
    };
    if takes(bits) {
        return None;
    }
    while bits > 0 && !takes(bits - 1) {
        bits /= 2;
    }
    (bits > 0).then_some(bits.max(4))
}

/// The CPUs that the task may run on, in a mask of the kernel's size.
fn task_cpus() -> Option<*mut Bitmask> {
    let mut words = [0; words_for(CPUS)];
    let (bits, known) = match kernel::affinity(0, &mut words) {
        Ok(bytes) if bytes > 0 => (bytes * 8, bytes * 8),
        // It is forbidden.
        _ => (CPUMASK_BITS.get(), CPUS),
    };
    CPUMASK_BITS.set(bits);
    cpus::allocate(known);
    let mut cpus = OwnedMask::new(bits)?;
    words::copy(&words, cpus.words_mut());
    TASK_CPUS.set(words::weight(cpus.words_mut(), bits));
    Some(cpus.into_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_and_proc_agree_on_the_nodes_of_a_task() {
        let (bits, words) = task_nodes();
        let mut buffer = [0; FILE_BYTES];
        let status = system::read(c"/proc/self/status", &mut buffer).unwrap();
        let line = text::line_with(status, b"Mems_allowed:").unwrap();
        let mut expected = [0; words_for(system::NODE_LIMIT)];
        assert_eq!(text::mask(line, &mut expected), Some(bits));
        assert_eq!(words, expected);
    }
}
