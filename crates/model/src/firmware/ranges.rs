//! The ranges of memory alone, where a kernel's log or a person names them instead of a table.

use super::blocks::{Span, clean, join};
use super::srat::Block;
use crate::ram::{Architecture, Range};
use crate::release::{Change, Release};

/// The ranges of the nodes as the kernel uses them, holes included; `None` where it rejects them and
/// has one node.
///
/// # Source
/// `numa_cleanup_meminfo`. Until 6.11 the ranges of x86 begin at address 0, since then at the first
/// byte of RAM; seen on 6.1 and 6.12.
pub fn used(
    table: &[Range],
    ram: &[Span],
    architecture: Architecture,
    release: Release,
) -> Option<Vec<Range>> {
    let block =
        |range: &Range| Block { range: *range, offset: 0, is_hot_pluggable: false, is_persistent: false };
    let blocks: Vec<Block> = table.iter().map(block).collect();
    let mut ram = join(ram.to_vec());
    if architecture == Architecture::X86 && !release.has(Change::GenericEmulation) {
        if let Some(first) = ram.first_mut() {
            first.0 = 0;
        }
    }
    clean(&blocks, &ram, architecture, &mut Vec::new()).ok().map(|cleaned| cleaned.used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{KernelRelease, NodeId};

    #[test]
    fn where_ranges_begin_depends_on_the_release() {
        let range = |start, end, node| Range { start, end, node: NodeId::new(node) };
        let table =
            [range(0, 0xa0000, 0), range(0x10_0000, 0x3000_0000, 0), range(0x3000_0000, 0x6000_0000, 1)];
        let ram = [(0x1000, 0x9f000), (0x10_0000, 0x5ffd_f000)];
        for (release, start) in [("6.1.0", 0), ("6.12.107", 0x1000)] {
            let release = Release::from_kernel(KernelRelease::new(release).as_ref());
            assert_eq!(
                used(&table, &ram, Architecture::X86, release),
                Some(vec![range(start, 0x3000_0000, 0), range(0x3000_0000, 0x5ffd_f000, 1)])
            );
        }
        assert_eq!(used(&[], &ram, Architecture::X86, Release::REFERENCE), None);
    }
}
