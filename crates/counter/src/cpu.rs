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

/// Whose code accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The program's.
    User = 0,
    /// The kernel's, while a thread of the program is current.
    Kernel = 1,
}

impl Mode {
    const COUNT: usize = 2;
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
    /// For each mode and phase, [`COUNTS`] numbers for each thread and column of memory; none before a line was counted in it.
    cells: [[Option<&'static mut [u64]>; MOST_PHASES]; Mode::COUNT],
    /// For each phase, lines that the program read for each size of the cache, for each label of a mapping and column of memory.
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
            cells: [const { [const { None }; MOST_PHASES] }; Mode::COUNT],
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
            self.line(place >> 6, access, Mode::User, nodes, guest);
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

    /// An access of the guest's kernel. Who writes to which bytes is compared for programs alone.
    #[inline]
    pub fn kernel_access(&mut self, access: Access, nodes: &Nodes, guest: &impl Guest) {
        if self.thread.is_none() {
            return;
        }
        let Access { address, bytes, is_write, .. } = access;
        let (line, last) = (address >> 6, address.wrapping_add(bytes - 1));
        if line == last >> 6 && self.recent.knows(line, is_write) {
            return;
        }
        let Some(place) = guest.physical(address) else { return };
        self.line(place >> 6, access, Mode::Kernel, nodes, guest);
        let left = self.recent.enter(line, is_write);
        left.into_iter().for_each(|writes| self.writers.add(&writes));
        // As for the program, what goes over the end of a page is elsewhere.
        if line != last >> 6 && address >> 12 == last >> 12 {
            let access = Access { address: last, ..access };
            self.line((place + (bytes - 1)) >> 6, access, Mode::Kernel, nodes, guest);
        }
    }

    /// An access that reaches two lines.
    fn access_two(&mut self, access: Access, nodes: &Nodes, guest: &impl Guest) {
        let Access { address, bytes, is_write, at } = access;
        let last = address + (bytes - 1);
        let Some(place) = guest.physical(address) else { return };
        self.line(place >> 6, access, Mode::User, nodes, guest);
        if is_write {
            self.written(address, bytes_of(address, bytes), at, guest);
        }
        // What goes over the end of a page is elsewhere in memory, at an address that QEMU does not give.
        if address >> 12 == last >> 12 {
            let access = Access { address: last, ..access };
            self.line((place + (bytes - 1)) >> 6, access, Mode::User, nodes, guest);
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
    fn line(&mut self, line: u64, access: Access, mode: Mode, nodes: &Nodes, guest: &impl Guest) {
        let (Some(thread), Some(caches)) = (self.thread, &mut self.caches) else { return };
        let outcomes = caches.each_mut().map(|cache| cache.access(line, access.is_write));
        let missed = outcomes.map(|outcome| outcome != Outcome::Hit);
        if missed == [false; SIZES] {
            return;
        }
        let phase = guest.phase(thread);
        let Some(cells) = self.cells[mode as usize].get_mut(phase) else { return };
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
        if mode == Mode::User {
            self.read((phase, column), missed, access.address, guest);
        }
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

    /// The counts of a thread in a mode and a phase by column; nothing where no line was counted in that phase.
    pub fn cells(&self, mode: Mode, phase: usize, thread: usize) -> impl Iterator<Item = &[u64]> {
        self.row(&self.cells[mode as usize], phase, thread, COUNTS)
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
mod tests;
