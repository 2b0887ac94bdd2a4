//! Cache lines that a program moved between caches and memory, counted in a guest: by node, by thread.

pub mod code;
mod demand;
mod phase;
pub mod sharing;

use std::collections::BTreeMap;

use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, NodeId};
use nodewise_stats::Direction;

use crate::digest::matrix::{Entry, Matrix};

pub use code::{CodeFile, CodeLine, CodeReads, LineCode};
pub use demand::{LocalDemand, LocalVerdict, UnknownMapping};
pub use phase::{PhaseShare, UnknownPhase};
pub use sharing::{LineWriter, SharedLine, Sharing};

/// Bytes of a line.
pub const LINE: u64 = 64;
/// The sizes of the cache for which lines were counted: half of the machine's, the machine's, twice the machine's.
pub const SIZES: usize = 3;
/// The place of the machine's size among them.
pub const OWN: usize = 1;
/// Lines for half of the cache, or twice the cache, that are more than this part of the others off.
const UNSURE: f64 = 0.1;

/// A share with one digit, or words for a share of no lines.
pub fn percent(share: LocalShare) -> String {
    // Down: what is shown as 95.0 % is not less.
    share
        .percent()
        .map_or_else(|| "no lines, 0 %".to_owned(), |value| format!("{:.1} %", (value * 10.0).floor() / 10.0))
}

/// Everything that was counted.
#[derive(Clone, Debug, PartialEq)]
pub struct LineCounts {
    /// The private caches of a CPU, as one: their ways and the sizes that were modelled.
    pub ways: u32,
    pub sizes: [Bytes; SIZES],
    /// Whether the machine does not say how large they are.
    pub is_assumed: bool,
    /// Whether lines that the kernel moved for the program are among them.
    pub with_kernel: bool,
    /// Nodes with CPUs, and with memory, of the guest.
    pub cpu_nodes: Vec<NodeId>,
    pub memory_nodes: Vec<NodeId>,
    /// The threads, in the order in which they began; the command first.
    pub threads: Vec<LineThread>,
    /// Threads that are counted with the last one, for want of room.
    pub lost: u64,
    /// Names of the phases that programs marked; the first, without a name, is the time outside of phases.
    pub phases: Vec<String>,
    /// Marks of phases that are counted outside of phases, for want of room.
    pub lost_phases: u64,
    /// The phase that is counted alone, if one was chosen.
    pub chosen: Option<String>,
    pub cells: Vec<LineCell>,
    /// Mappings of processes; memory whose mapping is not known is one of them.
    pub mappings: Vec<LineMapping>,
    pub parts: Vec<LinePart>,
    /// Lines that threads of several nodes write to, those with most writes from other nodes first. They are of all phases.
    pub shared: Vec<SharedLine>,
    /// Lines written to often that had to make room for others: sharing of them may be missing.
    pub lost_lines: u64,
    /// Where in programs lines are read, if that was counted.
    pub code: Option<LineCode>,
}

/// A mapping of a process of the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineMapping {
    pub process: Option<u32>,
    pub kind: LineMappingKind,
}

/// The kind of a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineMappingKind {
    /// The kernel does not say.
    Unknown,
    Heap,
    /// That of the first thread.
    Stack,
    /// Memory without a file, such as stacks of other threads.
    Anonymous,
    /// A file or shared memory, by its name without folders.
    File(String),
    /// All memory, the process's and its own, that the kernel accesses for the process.
    Kernel,
}

impl LineMappingKind {
    /// The word for it; that of a file is its name.
    pub fn word(&self) -> &str {
        match self {
            Self::Unknown => "unknown",
            Self::Heap => "[heap]",
            Self::Stack => "[stack]",
            Self::Anonymous => "anonymous",
            Self::File(name) => name,
            Self::Kernel => "kernel",
        }
    }
}

/// Lines of a mapping that were read on CPUs of one node, from the memory of one, by size of the cache. A line that is written
/// back has no mapping any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePart {
    pub phase: usize,
    pub mapping: usize,
    pub cpu_node: NodeId,
    /// `None` for memory that is no node's.
    pub node: Option<NodeId>,
    pub read: [u64; SIZES],
}

impl LinePart {
    /// Whether the memory is on the node of the CPUs.
    pub fn is_local(&self) -> bool {
        self.node == Some(self.cpu_node)
    }
}

/// A thread of the command or of its descendants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineThread {
    /// The place in the list of the thread that started it; its own for the first.
    pub parent: usize,
    /// Its number and that of its process, in the guest.
    pub ids: Option<(u32, u32)>,
    pub name: Option<String>,
}

/// Lines that a thread moved on CPUs of one node, from and to the memory of one, by size of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineCell {
    pub phase: usize,
    pub thread: usize,
    /// Whether the kernel moved them while the thread was current.
    pub in_kernel: bool,
    pub cpu_node: NodeId,
    /// `None` for memory that is no node's.
    pub node: Option<NodeId>,
    pub read: [u64; SIZES],
    pub written: [u64; SIZES],
    /// Lines of those read that were read in order, as a prefetcher of hardware would see them coming.
    pub in_order: [u64; SIZES],
}

impl LineCell {
    /// Lines read and written back.
    pub const fn moved(&self, size: usize) -> u64 {
        self.read[size] + self.written[size]
    }

    /// Whether the memory is on the node of the CPUs.
    pub fn is_local(&self) -> bool {
        self.node == Some(self.cpu_node)
    }
}

/// Lines, and how many of them were local.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LocalShare {
    pub local: u64,
    pub all: u64,
}

impl LocalShare {
    /// The share in percent; `None` without any line.
    pub fn percent(self) -> Option<f64> {
        (self.all > 0).then(|| self.local as f64 / self.all as f64 * 100.0)
    }

    /// Lines that were not local.
    pub const fn remote(self) -> u64 {
        self.all - self.local
    }

    /// The share in words.
    pub fn words(self) -> String {
        format!("{} of {} lines are local, {} are remote", percent(self), self.all, self.remote())
    }

    fn add(&mut self, lines: u64, is_local: bool) {
        self.all += lines;
        self.local += if is_local { lines } else { 0 };
    }
}

impl LineCounts {
    /// The lines of the cells that are chosen, for one size of the cache.
    pub fn share(&self, size: usize, chosen: impl Fn(&LineCell) -> bool) -> LocalShare {
        let mut share = LocalShare::default();
        for cell in self.cells.iter().filter(|cell| chosen(cell)) {
            share.add(cell.moved(size), cell.is_local());
        }
        share
    }

    /// All lines, for the machine's size of the cache.
    pub fn all(&self) -> LocalShare {
        self.share(OWN, |_| true)
    }

    /// Lines that were read, and lines that were written back, for the machine's size of the cache.
    pub fn read_and_written(&self) -> (u64, u64) {
        let sum = |of: fn(&LineCell) -> u64| self.cells.iter().map(of).sum();
        (sum(|cell| cell.read[OWN]), sum(|cell| cell.written[OWN]))
    }

    /// Lines that were read in order, for the machine's size of the cache.
    pub fn in_order(&self) -> u64 {
        self.cells.iter().map(|cell| cell.in_order[OWN]).sum()
    }

    /// All lines for half of the cache and for twice the cache, if they differ from those of the machine's by more than a
    /// tenth: then the size of the cache decides, and a model cannot.
    pub fn unsure(&self) -> Option<[u64; 2]> {
        let [half, own, twice] = [0, OWN, 2].map(|size| self.share(size, |_| true).all);
        let differs = |other: u64| other.abs_diff(own) as f64 > UNSURE * own as f64;
        (differs(half) || differs(twice)).then_some([half, twice])
    }

    /// Lines by node of the CPUs and node of the memory.
    pub fn matrix(&self) -> Matrix {
        self.matrix_of("lines", "64 bytes each, read and written back", |_| true)
    }

    /// Lines that the kernel moved for the program, for the machine's size of the cache; `None` unless they are counted.
    pub fn of_kernel(&self) -> Option<LocalShare> {
        self.with_kernel.then(|| self.share(OWN, |cell| cell.in_kernel))
    }

    /// Those lines by node of the CPUs and node of the memory; the matrix has `remark`.
    pub fn kernel_matrix(&self, remark: &str) -> Matrix {
        self.matrix_of("kernel", remark, |cell| cell.in_kernel)
    }

    /// Lines that the kernel moved for a thread.
    pub fn thread_kernel_lines(&self, thread: usize) -> u64 {
        self.share(OWN, |cell| cell.in_kernel && cell.thread == thread).all
    }

    /// Lines of some cells by node of the CPUs and node of the memory.
    fn matrix_of(&self, title: &str, remark: &str, chosen: impl Fn(&LineCell) -> bool) -> Matrix {
        let mut matrix = Matrix::new(title, "lines", remark, Direction::LowerIsBetter).counted();
        let mut sums: BTreeMap<(NodeId, NodeId), u64> = BTreeMap::new();
        for cell in self.cells.iter().filter(|cell| chosen(cell)) {
            if let Some(to) = cell.node {
                *sums.entry((cell.cpu_node, to)).or_default() += cell.moved(OWN);
            }
        }
        for from in &self.cpu_nodes {
            for to in &self.memory_nodes {
                let lines = sums.get(&(*from, *to)).copied().unwrap_or_default();
                matrix.set(*from, *to, Entry { value: Some(lines as f64), disturbed: false });
            }
        }
        matrix
    }

    /// Lines of memory that is no node's.
    pub fn nowhere(&self) -> u64 {
        self.share(OWN, |cell| cell.node.is_none()).all
    }

    /// Threads that moved any line, those with most remote lines first, then those with most.
    pub fn worst_threads(&self) -> Vec<(usize, LocalShare)> {
        let mut shares = vec![LocalShare::default(); self.threads.len()];
        for cell in &self.cells {
            if let Some(share) = shares.get_mut(cell.thread) {
                share.add(cell.moved(OWN), cell.is_local());
            }
        }
        let mut threads: Vec<(usize, LocalShare)> =
            shares.into_iter().enumerate().filter(|(_, share)| share.all > 0).collect();
        threads.order_by_key(|(_, share)| std::cmp::Reverse((share.remote(), share.all)));
        threads
    }

    /// Mappings with lines that were read, those with most remote lines first, then those with most.
    pub fn worst_mappings(&self) -> Vec<(&LineMapping, LocalShare)> {
        let mut shares = vec![LocalShare::default(); self.mappings.len()];
        for part in &self.parts {
            if let Some(share) = shares.get_mut(part.mapping) {
                share.add(part.read[OWN], part.is_local());
            }
        }
        let mut mappings: Vec<(&LineMapping, LocalShare)> =
            self.mappings.iter().zip(shares).filter(|(_, share)| share.all > 0).collect();
        mappings.order_by_key(|(_, share)| std::cmp::Reverse((share.remote(), share.all)));
        mappings
    }

    /// Pairs of nodes between which lines moved that were not local, the busiest first.
    pub fn worst_pairs(&self) -> Vec<(NodeId, NodeId, u64)> {
        remote_pairs(self.cells.iter().map(|cell| (cell.cpu_node, cell.node, cell.moved(OWN))))
    }

    /// The modelled cache in words.
    pub fn cache_words(&self) -> String {
        let source = if self.is_assumed { ", assumed: the machine does not give the size" } else { "" };
        format!("modelled cache of each CPU: {} in {} ways{source}", self.sizes[OWN], self.ways)
    }

    /// Lines with other sizes of the cache, where they differ.
    pub fn unsure_words(&self) -> Option<String> {
        let [half, _, twice] = self.sizes;
        let words = |[less, more]: [u64; 2]| {
            format!("unsure: {less} lines with a cache of {half}, {more} with {twice}")
        };
        self.unsure().map(words)
    }

    /// Lines that the matrix lacks, in words.
    pub fn nowhere_words(&self) -> String {
        format!("{} lines of memory outside of all nodes are in no column", self.nowhere())
    }

    /// A thread in words: its name, or its place.
    pub fn thread_name(&self, thread: usize) -> String {
        let name = self.threads.get(thread).and_then(|thread| thread.name.clone());
        name.unwrap_or_else(|| format!("thread {thread}"))
    }
}

/// Sums of lines that moved from memory to CPUs of another node, the busiest pair first.
fn remote_pairs(lines: impl Iterator<Item = (NodeId, Option<NodeId>, u64)>) -> Vec<(NodeId, NodeId, u64)> {
    let mut sums: BTreeMap<(NodeId, NodeId), u64> = BTreeMap::new();
    for (from, to, lines) in lines {
        let Some(to) = to.filter(|to| *to != from && lines > 0) else { continue };
        *sums.entry((from, to)).or_default() += lines;
    }
    let mut pairs: Vec<(NodeId, NodeId, u64)> =
        sums.into_iter().map(|((from, to), lines)| (from, to, lines)).collect();
    pairs.order_by_key(|(.., lines)| std::cmp::Reverse(*lines));
    pairs
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two nodes, a command of two threads; memory on node 2 as well, which has no CPUs.
    pub(crate) fn sample() -> LineCounts {
        let node = NodeId::new;
        let cell = |thread, cpu_node, memory: Option<u32>, read: [u64; 3], written| LineCell {
            phase: 0,
            thread,
            in_kernel: false,
            cpu_node: node(cpu_node),
            node: memory.map(node),
            read,
            written,
            in_order: read.map(|lines| lines / 2),
        };
        let thread = |parent, number, name: Option<&str>| LineThread {
            parent,
            ids: Some((number, 300)),
            name: name.map(str::to_owned),
        };
        LineCounts {
            ways: 16,
            sizes: [Bytes::from_kib(512), Bytes::from_mib(1), Bytes::from_mib(2)],
            is_assumed: true,
            with_kernel: false,
            cpu_nodes: vec![node(0), node(1)],
            memory_nodes: vec![node(0), node(1), node(2)],
            threads: vec![
                thread(0, 300, Some("stream")),
                thread(0, 301, Some("worker\u{1b}")),
                thread(1, 302, None),
            ],
            lost: 0,
            phases: vec![String::new()],
            lost_phases: 0,
            chosen: None,
            cells: vec![
                cell(0, 0, Some(0), [1000, 900, 850], [100, 100, 90]),
                cell(0, 0, Some(1), [50, 50, 50], [0; 3]),
                cell(1, 1, Some(1), [800, 700, 100], [0; 3]),
                cell(1, 1, Some(2), [240, 240, 240], [10; 3]),
                cell(1, 0, None, [4; 3], [0; 3]),
            ],
            mappings: [
                (None, LineMappingKind::Unknown),
                (Some(300), LineMappingKind::Heap),
                (Some(300), LineMappingKind::File("lib\u{1b}.so".to_owned())),
                (Some(300), LineMappingKind::Stack),
            ]
            .map(|(process, kind)| LineMapping { process, kind })
            .to_vec(),
            parts: [
                (0, 0, None, 4),
                (1, 0, Some(0), 900),
                (1, 1, Some(2), 240),
                (2, 0, Some(1), 50),
                (2, 1, Some(1), 700),
            ]
            .map(|(mapping, cpu_node, memory, lines)| LinePart {
                phase: 0,
                mapping,
                cpu_node: node(cpu_node),
                node: memory.map(node),
                read: [lines + 1, lines, lines],
            })
            .to_vec(),
            shared: sharing::tests::sample(),
            lost_lines: 0,
            code: None,
        }
    }

    /// The same, with 250 lines of the second thread moved by the kernel.
    pub(crate) fn with_kernel() -> LineCounts {
        let mut counts = sample();
        counts.with_kernel = true;
        counts.cells[3].in_kernel = true;
        counts.mappings.push(LineMapping { process: Some(300), kind: LineMappingKind::Kernel });
        counts.parts[2].mapping = 4;
        counts
    }

    /// The same, with the second thread in a phase, and as a third phase one without lines.
    pub(crate) fn phased() -> LineCounts {
        let mut counts = sample();
        counts.phases.extend(["solve\u{1b}".to_owned(), "idle".to_owned()]);
        counts.cells.iter_mut().for_each(|cell| cell.phase = cell.thread);
        counts.parts.iter_mut().for_each(|part| part.phase = usize::from(part.cpu_node == NodeId::new(1)));
        counts
    }

    #[test]
    fn shares_are_of_lines_read_and_written_back() {
        let counts = sample();
        assert_eq!(counts.all(), LocalShare { local: 1700, all: 2004 });
        assert_eq!(counts.read_and_written(), (1894, 110));
        assert_eq!(counts.nowhere(), 4);
        let node = NodeId::new;
        let cell = |from, to| counts.matrix().get(node(from), node(to)).and_then(|entry| entry.value);
        assert_eq!([cell(0, 0), cell(0, 1), cell(1, 2), cell(1, 0)], [1000.0, 50.0, 250.0, 0.0].map(Some));
    }

    #[test]
    fn the_worst_come_first() {
        let counts = sample();
        let shares: Vec<(usize, u64)> =
            counts.worst_threads().iter().map(|(at, share)| (*at, share.remote())).collect();
        assert_eq!(shares, [(1, 254), (0, 50)]);
        let mappings = counts.worst_mappings();
        let shares: Vec<(&str, u64, u64)> = mappings
            .iter()
            .map(|(mapping, share)| (mapping.kind.word(), share.remote(), share.all))
            .collect();
        assert_eq!(shares, [("[heap]", 240, 1140), ("lib\u{1b}.so", 50, 750), ("unknown", 4, 4)]);
        let node = NodeId::new;
        assert_eq!(counts.worst_pairs(), [(node(1), node(2), 250), (node(0), node(1), 50)]);
    }

    #[test]
    fn lines_of_the_kernel_are_among_all_and_apart() {
        assert_eq!(sample().of_kernel(), None);
        let counts = with_kernel();
        assert_eq!(counts.of_kernel(), Some(LocalShare { local: 0, all: 250 }));
        assert_eq!(counts.all(), sample().all());
        assert_eq!([0, 1].map(|thread| counts.thread_kernel_lines(thread)), [0, 250]);
        let node = NodeId::new;
        let cell =
            |from, to| counts.kernel_matrix("").get(node(from), node(to)).and_then(|entry| entry.value);
        assert_eq!([cell(1, 2), cell(1, 1)], [250.0, 0.0].map(Some));
        let kernel = LocalDemand { mapping: Some("kernel".to_owned()), percent: 1.0 };
        assert_eq!(counts.verdict(&kernel).unwrap().share(), LocalShare { local: 0, all: 240 });
        let all = LocalDemand { mapping: None, percent: 85.0 };
        assert!(!counts.verdict(&all).unwrap().holds());
        let mut users = counts;
        users.cells.retain(|cell| !cell.in_kernel);
        assert!(users.verdict(&all).unwrap().holds());
    }

    #[test]
    fn a_count_that_hangs_on_the_size_of_the_cache_is_unsure() {
        let mut counts = sample();
        assert_eq!(counts.unsure(), Some([2204, 1344]));
        counts.cells.retain(|cell| cell.thread == 0);
        assert_eq!(counts.unsure(), None);
        counts.cells.clear();
        assert_eq!(counts.unsure(), None);
    }
}
