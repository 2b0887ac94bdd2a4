//! A CPU of the guest: its caches, the task that it runs, and what was counted on it.

use crate::cache::{Cache, Outcome};
use crate::code::MOST_INSTRUCTIONS;
use crate::mappings::{Found, MOST_LABELS};
use crate::nodes::Nodes;
use crate::pages::zeroed;
use crate::phases::MOST_PHASES;
use crate::recent::{RecentLines, bytes_of};
use crate::streams::Streams;
use crate::tasks::MOST_THREADS;
use crate::writers::{LineKey, Writers, Writes};
use crate::{OWN, SIZES};

/// Numbers of a cell: lines read for each size of the cache, then lines written back, then those of the lines read that
/// were read in order.
pub const COUNTS: usize = 3 * SIZES;

/// The private caches of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of the machine's cache.
    pub size: usize,
    pub ways: usize,
}

impl Geometry {
    /// The sizes that are modelled, each a whole number of sets.
    pub fn sizes(self) -> [usize; SIZES] {
        let set = self.ways * 64;
        [self.size / 2, self.size, self.size * 2].map(|size| (size / set).max(1) * set)
    }
}

/// An access as QEMU reports it.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub address: u64,
    /// Of a read that does not reach the next line, any number that does not either.
    pub bytes: u64,
    pub is_write: bool,
    /// The number of the instruction; 0 where it is not known.
    pub at: u32,
}

/// Facts about an address that a CPU accesses.
pub trait Guest {
    /// The physical address; `None` in memory of devices.
    fn physical(&self, address: u64) -> Option<u64>;
    /// The mapping, in an address space; `None` where it is not known.
    fn mapping(&self, space: u64, address: u64) -> Option<Found>;
    /// A number that changes when mappings do.
    fn version(&self) -> u64;
    /// The phase that a thread is in.
    fn phase(&self, thread: usize) -> usize;
}

/// No mapping.
const NOWHERE: Found = Found { start: 0, end: 0, label: 0, is_shared: false };

/// A CPU.
pub struct Cpu {
    /// The smallest first; none before the CPU begins.
    caches: Option<[Cache<'static>; SIZES]>,
    /// For each phase, [`COUNTS`] numbers for each thread and column of memory; none before a line was counted in it.
    cells: [Option<&'static mut [u64]>; MOST_PHASES],
    /// For each phase, lines read for each size of the cache, for each label of a mapping and column of memory.
    parts: [Option<&'static mut [u64]>; MOST_PHASES],
    /// For each phase, lines read for the machine's size of the cache, for each instruction and column of memory.
    instructions: [Option<&'static mut [u64]>; MOST_PHASES],
    columns: usize,
    recent: RecentLines,
    writers: Writers,
    /// Arrays that the thread goes over.
    streams: Streams,
    /// The thread that runs here, if it is counted.
    thread: Option<usize>,
    /// The kernel's address of the task that runs here; 0 before that is known.
    pub task: u64,
    /// That of its address space; 0 where that is not known.
    space: u64,
    /// Mappings of the address space that were found last, the latest first, and the version of all when they were.
    found: [Found; 4],
    version: u64,
}

impl Cpu {
    /// A CPU that has not begun.
    pub const fn new() -> Self {
        Self {
            caches: None,
            cells: [const { None }; MOST_PHASES],
            parts: [const { None }; MOST_PHASES],
            instructions: [const { None }; MOST_PHASES],
            columns: 0,
            recent: RecentLines::new(),
            writers: Writers::new(),
            streams: Streams::new(),
            thread: None,
            task: 0,
            space: 0,
            found: [NOWHERE; 4],
            version: 0,
        }
    }

    /// Gives it caches; `false` without memory for them.
    pub fn begin(&mut self, geometry: Geometry) -> bool {
        let memory = geometry.sizes().map(|size| zeroed::<u64>(size / 64));
        let has_all = memory.iter().all(|slots| !slots.is_empty());
        self.caches = has_all.then(|| memory.map(|slots| Cache::new(slots, geometry.ways)));
        has_all
    }

    /// A task runs here from now on; `thread` if it is counted.
    pub fn run(&mut self, task: u64, thread: Option<usize>, nodes: &Nodes) {
        if thread.is_some() {
            self.columns = nodes.count() + 1;
        }
        // Other address spaces have other lines at the same addresses.
        self.leave_lines();
        self.task = task;
        self.thread = thread;
        self.streams = Streams::new();
        self.enter(0);
    }

    /// Nothing runs here any more.
    pub fn end(&mut self) {
        self.leave_lines();
    }

    /// The lines that were accessed last are none any more.
    fn leave_lines(&mut self) {
        let left = self.recent.leave();
        left.for_each(|writes| self.writers.add(&writes));
    }

    /// The task that runs here has this address space.
    pub fn enter(&mut self, space: u64) {
        self.space = space;
        self.found = [NOWHERE; 4];
    }

    /// An access of the guest's user code.
    #[inline]
    pub fn access(&mut self, access: Access, nodes: &Nodes, guest: &impl Guest) {
        if self.thread.is_none() {
            return;
        }
        let Access { address, bytes, is_write, at } = access;
        let (line, last) = (address >> 6, address + (bytes - 1));
        if line != last >> 6 {
            return self.access_two(access, nodes, guest);
        }
        if !self.recent.knows(line, is_write) {
            let Some(place) = guest.physical(address) else { return };
            self.line(place >> 6, access, nodes, guest);
            let left = self.recent.enter(line, is_write);
            left.into_iter().for_each(|writes| self.writers.add(&writes));
        }
        if is_write {
            if self.recent.is_unwritten() {
                let whose = self.whose(address, guest);
                self.recent.begin(whose);
            }
            self.recent.write(bytes_of(address, bytes), at);
        }
    }

    /// An access that reaches two lines.
    fn access_two(&mut self, access: Access, nodes: &Nodes, guest: &impl Guest) {
        let Access { address, bytes, is_write, at } = access;
        let last = address + (bytes - 1);
        let Some(place) = guest.physical(address) else { return };
        self.line(place >> 6, access, nodes, guest);
        if is_write {
            self.written(address, bytes_of(address, bytes), at, guest);
        }
        // What goes over the end of a page is elsewhere in memory, at an address that QEMU does not give.
        if address >> 12 == last >> 12 {
            self.line((place + (bytes - 1)) >> 6, Access { address: last, ..access }, nodes, guest);
            if is_write {
                self.written(last, bytes_of(0, (last & 63) + 1), at, guest);
            }
        }
    }

    /// A write to bytes of a line that is not kept among the latest.
    fn written(&mut self, address: u64, bytes: u64, at: u32, guest: &impl Guest) {
        let writes = Writes { bytes, count: 1, at, ..self.whose(address, guest) };
        self.writers.add(&writes);
    }

    /// Who writes to what, at an address.
    fn whose(&mut self, address: u64, guest: &impl Guest) -> Writes {
        let (line, found) = (address >> 6, self.found(address, guest));
        let place = if found.is_shared { guest.physical(address) } else { None };
        let key = match place {
            Some(place) => LineKey::Shared(place >> 6),
            None => LineKey::Private(line),
        };
        let number = |value: usize| u16::try_from(value).unwrap_or(u16::MAX);
        let (thread, label) = (number(self.thread.unwrap_or(0)), number(found.label));
        Writes { key: key.word(), line, thread, label, ..Writes::NONE }
    }

    /// An access to a line of physical memory.
    fn line(&mut self, line: u64, access: Access, nodes: &Nodes, guest: &impl Guest) {
        let (Some(thread), Some(caches)) = (self.thread, &mut self.caches) else { return };
        let outcomes = caches.each_mut().map(|cache| cache.access(line, access.is_write));
        let missed = outcomes.map(|outcome| outcome != Outcome::Hit);
        if missed == [false; SIZES] {
            return;
        }
        let phase = guest.phase(thread);
        let Some(cells) = self.cells.get_mut(phase) else { return };
        let cells = cells.get_or_insert_with(|| zeroed(MOST_THREADS * self.columns * COUNTS));
        let row = thread * self.columns;
        for (number, outcome) in outcomes.into_iter().enumerate() {
            let Outcome::Miss { written_back } = outcome else { continue };
            let mut add = |line: u64, count: usize| {
                if let Some(cell) = cells.get_mut((row + nodes.column(line)) * COUNTS + count) {
                    *cell += 1;
                }
            };
            add(line, number);
            if let Some(line) = written_back {
                add(line, SIZES + number);
            }
        }
        if self.streams.expects(access.address >> 6) {
            let start = (row + nodes.column(line)) * COUNTS + 2 * SIZES;
            let in_order = cells.get_mut(start..start + SIZES).into_iter().flatten();
            in_order.zip(missed).for_each(|(lines, missed)| *lines += u64::from(missed));
        }
        let column = nodes.column(line);
        if access.at > 0 && missed[OWN] {
            self.read_by(phase, access.at, column);
        }
        self.read((phase, column), missed, access.address, guest);
    }

    /// Counts a line that was read in a phase by an instruction, in a column of memory.
    fn read_by(&mut self, phase: usize, instruction: u32, column: usize) {
        let Some(table) = self.instructions.get_mut(phase) else { return };
        let table = table.get_or_insert_with(|| zeroed(MOST_INSTRUCTIONS * self.columns));
        let lines = table.get_mut(instruction as usize * self.columns + column);
        lines.into_iter().for_each(|lines| *lines += 1);
    }

    /// Counts a line that was read in a phase, in a column of memory, for the mapping of its address.
    fn read(
        &mut self,
        (phase, column): (usize, usize),
        missed: [bool; SIZES],
        address: u64,
        guest: &impl Guest,
    ) {
        let place = (self.label(address, guest) * self.columns + column) * SIZES;
        let Some(parts) = self.parts.get_mut(phase) else { return };
        let parts = parts.get_or_insert_with(|| zeroed(MOST_LABELS * self.columns * SIZES));
        let part = parts.get_mut(place..place + SIZES);
        for (lines, missed) in part.into_iter().flatten().zip(missed) {
            *lines += u64::from(missed);
        }
    }

    fn label(&mut self, address: u64, guest: &impl Guest) -> usize {
        self.found(address, guest).label
    }

    /// The mapping of an address.
    fn found(&mut self, address: u64, guest: &impl Guest) -> Found {
        let version = guest.version();
        if version != self.version {
            self.version = version;
            self.found = [NOWHERE; 4];
        }
        let known = self.found.iter().find(|found| found.start <= address && address < found.end);
        if let Some(found) = known {
            return *found;
        }
        let Some(found) = guest.mapping(self.space, address) else { return NOWHERE };
        self.found.copy_within(..3, 1);
        self.found[0] = found;
        found
    }

    /// Lines that were written to here; complete after [`Cpu::end`].
    pub const fn writers(&self) -> &Writers {
        &self.writers
    }

    /// Lines read in a phase of the mappings with a label, for each column of memory, by size of the cache; nothing where no
    /// line was counted in that phase.
    pub fn parts(&self, phase: usize, label: usize) -> impl Iterator<Item = &[u64]> {
        self.row(&self.parts, phase, label, SIZES)
    }

    /// Lines read in a phase by an instruction, for each column of memory; nothing where no line was counted in that phase.
    pub fn read_at(&self, phase: usize, instruction: usize) -> impl Iterator<Item = &[u64]> {
        self.row(&self.instructions, phase, instruction, 1)
    }

    /// The counts of a thread in a phase by column; nothing where no line was counted in that phase.
    pub fn cells(&self, phase: usize, thread: usize) -> impl Iterator<Item = &[u64]> {
        self.row(&self.cells, phase, thread, COUNTS)
    }

    /// The numbers of a row by column, `each` of them in a column.
    fn row<'t>(
        &self,
        tables: &'t [Option<&'static mut [u64]>],
        phase: usize,
        row: usize,
        each: usize,
    ) -> impl Iterator<Item = &'t [u64]> {
        let length = self.columns * each;
        let table = tables.get(phase).and_then(|table| table.as_deref()).unwrap_or_default();
        table.get(row * length..(row + 1) * length).unwrap_or_default().chunks_exact(each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes() -> Nodes {
        let mut nodes = Nodes::new();
        assert!(nodes.add(0, 1 << 30, 0) && nodes.add(1 << 30, 2 << 30, 1));
        nodes
    }

    fn cpu() -> Cpu {
        let mut cpu = Cpu::new();
        assert!(cpu.begin(Geometry { size: 1 << 20, ways: 16 }));
        cpu
    }

    /// Virtual addresses of these tests are physical ones. Below 1 MiB is the mapping with the label 1 of the address
    /// space 5, above it that with the label 2.
    struct Plain;

    impl Guest for Plain {
        fn physical(&self, address: u64) -> Option<u64> {
            Some(address)
        }

        fn mapping(&self, space: u64, address: u64) -> Option<Found> {
            let (start, end, label) =
                if address < 1 << 20 { (0, 1 << 20, 1) } else { (1 << 20, u64::MAX, 2) };
            (space == 5).then_some(Found { start, end, label, is_shared: false })
        }

        fn version(&self) -> u64 {
            1
        }

        fn phase(&self, thread: usize) -> usize {
            thread / 10
        }
    }

    fn touch(cpu: &mut Cpu, nodes: &Nodes, address: u64, is_write: bool) {
        cpu.access(Access { address, bytes: 8, is_write, at: 0 }, nodes, &Plain);
    }

    fn counts(cpu: &Cpu, thread: usize) -> Vec<Vec<u64>> {
        cpu.cells(0, thread).map(<[u64]>::to_vec).collect()
    }

    #[test]
    fn a_stream_is_counted_on_its_node_for_each_size() {
        let (nodes, mut cpu) = (nodes(), cpu());
        cpu.run(1, Some(3), &nodes);
        let (start, bytes) = (1 << 30, 3 << 19);
        for _ in 0..2 {
            (start..start + bytes).step_by(8).for_each(|address| touch(&mut cpu, &nodes, address, false));
        }
        // 1.5 MiB fit into the largest of 512 KiB, 1 MiB and 2 MiB.
        let lines = bytes / 64;
        let none = vec![0; COUNTS];
        // Each pass begins a stream, whose first three lines are not expected; twice the cache misses in the first.
        let moved = vec![2 * lines, 2 * lines, lines, 0, 0, 0, 2 * lines - 6, 2 * lines - 6, lines - 3];
        assert_eq!(counts(&cpu, 3), [none.clone(), moved, none.clone()]);
        assert_eq!(counts(&cpu, 2), [none.clone(), none.clone(), none]);
    }

    #[test]
    fn a_line_written_back_counts_where_it_goes_and_not_where_its_successor_came_from() {
        let (nodes, mut cpu) = (nodes(), cpu());
        cpu.run(1, Some(0), &nodes);
        (0..1 << 20).step_by(64).for_each(|address| touch(&mut cpu, &nodes, address, true));
        let far = 1 << 30;
        (far..far + (1 << 20)).step_by(64).for_each(|address| touch(&mut cpu, &nodes, address, false));
        let lines = (1 << 20) / 64;
        assert_eq!(counts(&cpu, 0)[0][..6], [lines, lines, lines, lines, lines, 0]);
        assert_eq!(counts(&cpu, 0)[1][..6], [lines, lines, lines, 0, 0, 0]);
    }

    #[test]
    fn what_is_not_counted_leaves_no_trace() {
        let (nodes, mut cpu) = (nodes(), cpu());
        cpu.run(1, None, &nodes);
        touch(&mut cpu, &nodes, 0, true);
        assert_eq!(counts(&cpu, 0), Vec::<Vec<u64>>::new());
        cpu.run(2, Some(1), &nodes);
        touch(&mut cpu, &nodes, 0, true);
        assert_eq!(counts(&cpu, 1)[0][..3], [1; 3]);
        cpu.run(1, None, &nodes);
        touch(&mut cpu, &nodes, 1 << 12, true);
        assert_eq!(counts(&cpu, 1)[0][..3], [1; 3]);
    }

    #[test]
    fn a_write_to_a_recent_line_makes_it_one_that_is_written_back() {
        let (nodes, mut cpu) = (nodes(), cpu());
        cpu.run(1, Some(0), &nodes);
        touch(&mut cpu, &nodes, 0, false);
        touch(&mut cpu, &nodes, 64, false);
        touch(&mut cpu, &nodes, 0, true);
        (1 << 12..5 << 20).step_by(64).for_each(|address| touch(&mut cpu, &nodes, address, false));
        assert_eq!(counts(&cpu, 0)[0][3..6], [1; 3]);
    }

    #[test]
    fn an_access_to_two_lines_counts_both_and_over_the_end_of_a_page_the_first() {
        let (nodes, mut cpu) = (nodes(), cpu());
        cpu.run(1, Some(0), &nodes);
        touch(&mut cpu, &nodes, 60, false);
        assert_eq!(counts(&cpu, 0)[0][0], 2);
        touch(&mut cpu, &nodes, 0x1ffc, false);
        assert_eq!(counts(&cpu, 0)[0][0], 3);
    }

    #[test]
    fn lines_read_are_counted_for_the_mapping_of_their_address() {
        let (nodes, mut cpu) = (nodes(), cpu());
        cpu.run(1, Some(0), &nodes);
        touch(&mut cpu, &nodes, 0, true);
        cpu.enter(5);
        [64, 1 << 20, 128, 1 << 30, 64]
            .into_iter()
            .for_each(|address| touch(&mut cpu, &nodes, address, true));
        let parts = |label| cpu.parts(0, label).map(<[u64]>::to_vec).collect::<Vec<_>>();
        assert_eq!(parts(0), [vec![1; 3], vec![0; 3], vec![0; 3]]);
        assert_eq!(parts(1), [vec![2; 3], vec![0; 3], vec![0; 3]]);
        assert_eq!(parts(2), [vec![1; 3], vec![1; 3], vec![0; 3]]);
        assert_eq!(parts(3), [vec![0; 3], vec![0; 3], vec![0; 3]]);
    }

    #[test]
    fn lines_are_counted_in_the_phase_in_which_they_move() {
        let (nodes, mut cpu) = (nodes(), cpu());
        cpu.run(1, Some(2), &nodes);
        touch(&mut cpu, &nodes, 0, true);
        // A thread of another phase, whose accesses drive the line out.
        cpu.run(2, Some(12), &nodes);
        (1 << 12..5 << 20).step_by(64).for_each(|address| touch(&mut cpu, &nodes, address, false));
        let cells = |phase, thread| cpu.cells(phase, thread).next().map(|cell| [cell[0], cell[3]]);
        assert_eq!(cells(0, 2), Some([1, 0]));
        assert_eq!(cells(1, 12), Some([((5 << 20) - (1 << 12)) / 64, 1]));
        assert_eq!((cells(0, 12), cells(2, 12)), (Some([0, 0]), None));
        let parts = |phase| cpu.parts(phase, 0).map(|part| part[0]).sum::<u64>();
        assert_eq!([parts(0), parts(1)], [1, ((5 << 20) - (1 << 12)) / 64]);
    }

    #[test]
    fn lines_read_are_counted_for_their_instruction() {
        let (nodes, mut cpu) = (nodes(), cpu());
        cpu.run(1, Some(0), &nodes);
        let mut read =
            |address, at| cpu.access(Access { address, bytes: 8, is_write: false, at }, &nodes, &Plain);
        [(0, 7), (64, 7), (8, 8), (1 << 30, 8), (128, 0)]
            .into_iter()
            .for_each(|(address, at)| read(address, at));
        let lines = |at| cpu.read_at(0, at).map(|lines| lines[0]).collect::<Vec<_>>();
        assert_eq!([lines(7), lines(8), lines(9)], [[2, 0, 0], [0, 1, 0], [0, 0, 0]]);
        assert_eq!((lines(0), cpu.read_at(1, 7).count()), (vec![0, 0, 0], 0));
    }

    #[test]
    fn bytes_that_threads_write_to_are_gathered_by_line() {
        let (nodes, mut cpu) = (nodes(), cpu());
        cpu.run(1, Some(7), &nodes);
        cpu.enter(5);
        let mut write =
            |address, bytes| cpu.access(Access { address, bytes, is_write: true, at: 0 }, &nodes, &Plain);
        for _ in 0..60 {
            write(4096, 4);
            write(8192 + 60, 8);
            write(12288 - 4, 8);
        }
        cpu.end();
        let mut other = Cpu::new();
        other.run(2, Some(8), &nodes);
        other.enter(5);
        let mut found = Vec::new();
        for address in [4096, 8192, 8256, 12224, 12288] {
            for _ in 0..60 {
                other.access(Access { address, bytes: 1, is_write: true, at: 0 }, &nodes, &Plain);
            }
        }
        other.end();
        let each = |cpu: usize, writes: &Writes| {
            if cpu == 0 {
                found.push((writes.line << 6, writes.bytes, writes.count, writes.thread, writes.label));
            }
            Ok::<(), ()>(())
        };
        crate::writers::shared([&cpu, &other].into_iter().map(Cpu::writers), |_, _| true, each).unwrap();
        found.sort_unstable();
        let upper = 0xf << 60;
        assert_eq!(
            found,
            [(4096, 0xf, 60, 7, 1), (8192, upper, 60, 7, 1), (8256, 0xf, 60, 7, 1), (12224, upper, 60, 7, 1)]
        );
    }

    #[test]
    fn sizes_are_whole_numbers_of_sets() {
        assert_eq!(Geometry { size: 1 << 20, ways: 16 }.sizes(), [1 << 19, 1 << 20, 2 << 20]);
        assert_eq!(Geometry { size: 1280 << 10, ways: 20 }.sizes(), [640 << 10, 1280 << 10, 2560 << 10]);
        assert_eq!(Geometry { size: 100_000, ways: 12 }.sizes(), [49_920, 99_840, 199_680]);
        assert_eq!(Geometry { size: 0, ways: 4 }.sizes(), [256; 3]);
    }
}
