//! Free blocks by size.
//!
//! # Source
//! `/proc/buddyinfo`: `Node 0, zone   Normal   4169   3096 ...`; the n-th number counts free blocks
//! of 2^n pages.

use nodewise_machine::NodeId;
use nodewise_machine::id::Id as _;

use super::counters::is_name;
use super::{Parsed, digits, lines};

/// More orders than any kernel has (its largest is 11 by default, 14 on some).
const MOST_ORDERS: usize = 64;

/// Free blocks of one zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeBlocks {
    pub node: NodeId,
    pub zone: String,
    /// Free blocks by order: `blocks[n]` of 2^n pages each.
    pub blocks: Vec<u64>,
}

impl FreeBlocks {
    /// Free pages in blocks of at least this order; `None` when they do not fit 64 bits.
    pub fn pages_from(&self, order: usize) -> Option<u64> {
        let mut sizes = self.blocks.iter().enumerate().skip(order);
        sizes.try_fold(0u64, |sum, (order, count)| {
            let size = 1u64.checked_shl(u32::try_from(order).ok()?)?;
            sum.checked_add(count.checked_mul(size)?)
        })
    }
}

/// Reads every line.
pub fn parse(text: &str) -> Parsed<Vec<FreeBlocks>> {
    let mut parsed = Parsed::<Vec<FreeBlocks>>::default();
    for (number, line) in lines(text).filter(|(_, line)| !line.trim().is_empty()) {
        match read(line) {
            Some(blocks) => parsed.value.push(blocks),
            None => {
                parsed.problems.add(number, "\"Node\", a number, \", zone\", a name and counts", line.trim())
            }
        }
    }
    parsed
}

fn read(line: &str) -> Option<FreeBlocks> {
    let (node, rest) = line.strip_prefix("Node")?.split_once(", zone")?;
    let node = digits(node.trim()).filter(|node| *node < NodeId::LIMIT)?;
    let mut words = rest.split_ascii_whitespace();
    let zone = words.next().filter(|name| is_name(name))?.to_owned();
    let blocks = words.take(MOST_ORDERS).map(digits).collect::<Option<_>>()?;
    Some(FreeBlocks { node: NodeId::new(node), zone, blocks })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn blocks_are_counted_by_order() {
        let parsed = parse(
            "Node 0, zone      DMA      0      1      3 \nNode 250, zone  Movable      0      0      9\n",
        );
        assert!(parsed.problems.is_empty());
        assert_eq!(parsed.value[1].node, NodeId::new(250));
        assert_eq!(parsed.value[0].blocks, [0, 1, 3]);
        assert_eq!((parsed.value[0].pages_from(0), parsed.value[0].pages_from(2)), (Some(14), Some(12)));
    }

    #[test]
    fn a_bad_line_costs_one_line() {
        let parsed = parse("Node 0, zone DMA 1 x\nzone DMA 1\nNode 0, zone Normal 7\n");
        assert_eq!((parsed.value.len(), parsed.problems.count()), (1, 2));
        let overflow = FreeBlocks { node: NodeId::new(0), zone: "DMA".into(), blocks: vec![0, u64::MAX] };
        assert_eq!(overflow.pages_from(0), None);
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(node in 0u32..1024, blocks in prop::collection::vec(any::<u64>(), 0..14)) {
            let numbers: String = blocks.iter().map(|count| format!(" {count:6}")).collect();
            let parsed = parse(&format!("Node {node}, zone   Normal{numbers} \n"));
            prop_assert!(parsed.problems.is_empty());
            prop_assert_eq!(&parsed.value, &[FreeBlocks { node: NodeId::new(node), zone: "Normal".into(), blocks }]);
            let _ = parsed.value[0].pages_from(1);
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            let _ = parse(&text);
        }
    }
}
