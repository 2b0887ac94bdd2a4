//! Lines that threads of several nodes write to.

use std::collections::BTreeMap;

use nodewise_machine::NodeId;
use nodewise_machine::order::Order as _;

use super::LINE;

/// How threads share a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sharing {
    /// They write to different bytes: the line moves between the nodes, though no thread needs what another writes.
    False,
    /// They write to the same bytes, such as those of a lock.
    True,
}

impl Sharing {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::False => "false",
            Self::True => "true",
        }
    }
}

/// Writes of a thread to a line, on CPUs of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineWriter {
    /// The place of the thread in the list of all.
    pub thread: usize,
    pub cpu_node: NodeId,
    pub writes: u64,
    /// The bytes of the line that were written to, a bit for each.
    pub bytes: u64,
    /// The place of the instruction that wrote last in [`LineCode::places`](super::LineCode::places), where code is counted.
    pub by: Option<usize>,
}

impl LineWriter {
    /// The bytes in words: `0-7,16`.
    pub fn bytes_words(&self) -> String {
        let is_written = |byte: u64| byte < LINE && self.bytes >> byte & 1 == 1;
        let starts = (0..LINE).filter(|byte| is_written(*byte) && (*byte == 0 || !is_written(byte - 1)));
        let ranges = starts.map(|start| {
            let last = (start..LINE).take_while(|byte| is_written(*byte)).last().unwrap_or(start);
            if start == last { start.to_string() } else { format!("{start}-{last}") }
        });
        ranges.collect::<Vec<_>>().join(",")
    }
}

/// A line that threads of several nodes write to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLine {
    /// The address in the process of the first writer.
    pub address: u64,
    /// The place of its mapping in the list of all.
    pub mapping: usize,
    /// By node and thread.
    pub writers: Vec<LineWriter>,
}

impl SharedLine {
    /// The line of these writers, if threads of several nodes are among them. Writers are added up by node and thread.
    pub fn new(address: u64, mapping: usize, writers: impl IntoIterator<Item = LineWriter>) -> Option<Self> {
        let mut sums: BTreeMap<(NodeId, usize), LineWriter> = BTreeMap::new();
        for writer in writers {
            let sum = sums.entry((writer.cpu_node, writer.thread)).or_insert(LineWriter {
                writes: 0,
                bytes: 0,
                ..writer
            });
            sum.writes = sum.writes.saturating_add(writer.writes);
            sum.bytes |= writer.bytes;
        }
        let line = Self { address, mapping, writers: sums.into_values().collect() };
        let is_shared = line.pairs().next().is_some();
        is_shared.then_some(line)
    }

    /// Pairs of different threads on different nodes.
    fn pairs(&self) -> impl Iterator<Item = (&LineWriter, &LineWriter)> {
        self.writers.iter().enumerate().flat_map(move |(at, one)| {
            let others = self.writers[at + 1..].iter();
            let apart = others.filter(|other| other.cpu_node != one.cpu_node && other.thread != one.thread);
            apart.map(move |other| (one, other))
        })
    }

    /// How the line is shared between nodes: truly, if any two threads of different nodes write to the same byte.
    pub fn sharing(&self) -> Sharing {
        if self.pairs().any(|(one, other)| one.bytes & other.bytes != 0) {
            Sharing::True
        } else {
            Sharing::False
        }
    }

    /// All writes.
    pub fn writes(&self) -> u64 {
        self.writers.iter().map(|writer| writer.writes).sum()
    }

    /// Writes from nodes other than the one from which most come: as often the line moves at most, twice.
    pub fn writes_from_elsewhere(&self) -> u64 {
        let mut nodes: BTreeMap<NodeId, u64> = BTreeMap::new();
        for writer in &self.writers {
            *nodes.entry(writer.cpu_node).or_default() += writer.writes;
        }
        self.writes() - nodes.into_values().max().unwrap_or(0)
    }
}

/// Puts the lines with most writes from other nodes first, those of false sharing before the others.
pub fn order(lines: &mut [SharedLine]) {
    lines.order_by_key(|line| {
        (line.sharing(), std::cmp::Reverse(line.writes_from_elsewhere()), line.mapping, line.address)
    });
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn writer(thread: usize, node: u32, writes: u64, bytes: u64) -> LineWriter {
        LineWriter { thread, cpu_node: NodeId::new(node), writes, bytes, by: Some(thread) }
    }

    /// A counter of each of two threads in one line, and a lock.
    pub(in super::super) fn sample() -> Vec<SharedLine> {
        let line = |address, mapping, writers: [LineWriter; 2]| SharedLine::new(address, mapping, writers);
        let counters = [writer(0, 0, 4000, 0xff), writer(1, 1, 3000, 0xff00)];
        let lock = [writer(0, 0, 70, 0x10f), writer(1, 1, 60, 0xf)];
        [line(0x55aa_0040, 1, counters), line(0x7f00_1000, 2, lock)].into_iter().flatten().collect()
    }

    #[test]
    fn sharing_is_true_where_bytes_meet() {
        let [counters, lock] = sample().try_into().unwrap();
        assert_eq!((counters.sharing(), lock.sharing()), (Sharing::False, Sharing::True));
        assert_eq!((counters.writes(), counters.writes_from_elsewhere()), (7000, 3000));
        // Three threads, two of them on one node: what these have in common does not move between nodes.
        let writers = [writer(0, 0, 9, 1), writer(1, 1, 5, 2), writer(2, 1, 5, 2)];
        let line = SharedLine::new(0, 0, writers).unwrap();
        assert_eq!((line.sharing(), line.writes_from_elsewhere()), (Sharing::False, 9));
    }

    #[test]
    fn a_line_of_one_node_or_of_one_thread_is_not_shared() {
        assert_eq!(SharedLine::new(0, 0, [writer(0, 0, 9, 1), writer(1, 0, 9, 1)]), None);
        assert_eq!(SharedLine::new(0, 0, [writer(0, 0, 9, 1), writer(0, 1, 9, 1)]), None);
        let added = [writer(0, 0, 9, 1), writer(1, 1, 9, 2), writer(0, 0, u64::MAX, 4)];
        let line = SharedLine::new(0, 0, added).unwrap();
        assert_eq!(line.writers, [writer(0, 0, u64::MAX, 5), writer(1, 1, 9, 2)]);
    }

    #[test]
    fn bytes_are_ranges() {
        let words = |bytes| writer(0, 0, 1, bytes).bytes_words();
        assert_eq!([0, 1, 0xff, u64::MAX].map(words), ["", "0", "0-7", "0-63"]);
        assert_eq!(words(1 << 63 | 0xf0 | 1), "0,4-7,63");
    }

    #[test]
    fn false_sharing_comes_first_and_then_the_busiest() {
        let mut lines = sample();
        lines.push(SharedLine::new(64, 0, [writer(0, 0, 9000, 1), writer(1, 1, 9000, 1)]).unwrap());
        order(&mut lines);
        assert_eq!(lines.iter().map(|line| line.address).collect::<Vec<_>>(), [0x55aa_0040, 64, 0x7f00_1000]);
    }
}
