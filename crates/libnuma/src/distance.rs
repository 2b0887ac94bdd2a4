//! `numa_distance`: rows of the kernel's table, each read when it is first asked for.

use core::ffi::{c_int, c_uint};
use core::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};

use crate::data::NODEMASK_BITS;
use crate::kernel;
use crate::system::{self, FILE_BYTES};
use crate::table::Table;
use crate::text;

/// Most nodes whose distances are kept; those of higher nodes are read each time.
const NODES: usize = 256;

/// Distances from each node to each, in rows; 0 when the kernel does not say.
static DISTANCES: Table = Table::new();
/// Numbers in a row.
static WIDTH: AtomicUsize = AtomicUsize::new(0);
/// Whether the row of a node was read.
static READ: [AtomicBool; NODES] = [const { AtomicBool::new(false) }; NODES];

/// For the constructor: makes room for the distances of this many nodes.
pub fn allocate(nodes: usize) {
    let width = nodes.min(NODES);
    WIDTH.store(width, Ordering::Relaxed);
    DISTANCES.allocate(width * width);
}

/// For the destructor: gives up the room.
pub fn free() {
    WIDTH.store(0, Ordering::Relaxed);
    DISTANCES.free();
}

/// The place of the distance between two nodes, if it can be kept.
#[inline]
fn place(from: usize, to: usize) -> Option<&'static AtomicU16> {
    let width = WIDTH.load(Ordering::Relaxed);
    if from >= width || to >= width {
        return None;
    }
    DISTANCES.numbers().get(from * width + to)
}

/// The distance between two nodes, 10 for a node and itself; 0 when the kernel does not say.
#[unsafe(no_mangle)]
pub extern "C" fn numa_distance(from: c_int, to: c_int) -> c_int {
    // A negative number is beyond every table.
    let (from, to) = (from as c_uint as usize, to as c_uint as usize);
    kept(from, to).unwrap_or_else(|| look_up(from, to))
}

/// A distance of a row that was read.
#[inline]
fn kept(from: usize, to: usize) -> Option<c_int> {
    let is_read = READ.get(from)?.load(Ordering::Acquire);
    let place = place(from, to).filter(|_| is_read)?;
    Some(c_int::from(place.load(Ordering::Relaxed)))
}

/// Reads the row of a node, and keeps it where there is room.
#[cold]
#[inline(never)]
fn look_up(from: usize, to: usize) -> c_int {
    let mut found = 0;
    read_row(from, |node, distance| {
        if node == to {
            found = distance;
        }
        if let Some(place) = place(from, node) {
            place.swap(distance, Ordering::Relaxed);
        }
    });
    if let Some(read) = READ.get(from) {
        read.swap(true, Ordering::Release);
    }
    c_int::from(found)
}

/// Calls `each` for every node with its distance. The kernel writes a number for each node that is
/// online, and no place for those that are not.
#[cold]
fn read_row(from: usize, mut each: impl FnMut(usize, u16)) {
    if from >= NODEMASK_BITS.get() {
        return;
    }
    let errno = kernel::errno();
    let mut buffer = [0; FILE_BYTES];
    if let Ok(row) = system::read(system::node_file(from, b"distance").c_str(), &mut buffer) {
        let mut numbers = row.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let _ = system::online_nodes(system::NODE_LIMIT, |node| {
            if let Some((distance, [])) = numbers.next().and_then(text::decimal) {
                each(node, u16::try_from(distance).unwrap_or(0));
            }
        });
    }
    kernel::set_errno(errno);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_ten_from_itself_and_unknown_nodes_have_no_distance() {
        NODEMASK_BITS.set(1024);
        allocate(4);
        let check = |node| assert_eq!(numa_distance(node as c_int, node as c_int), 10);
        system::online_nodes(1024, check).expect("the kernel has files of nodes");
        for node in [-1, c_int::MIN, c_int::MAX, 300, 1023, 5000] {
            assert_eq!(numa_distance(node, 0), 0, "from {node}");
            assert_eq!(numa_distance(0, node), 0, "to {node}");
        }
    }
}
