//! The counts as text: one fact per line, the last line `end`.

use core::fmt::{self, Write};

use crate::SIZES;
use crate::code::{Code, InstructionPlace};
use crate::cpu::{COUNTS, Cpu, Geometry, Mode};
use crate::mappings::{Label, Mappings};
use crate::phases::Phases;
use crate::tasks::{Tasks, Thread};
use crate::writers::{Writes, shared};

/// The first line: the form of the text.
pub const FIRST: &str = "nodewise-counter 6";

/// Everything that is written.
pub struct CountReport<'a> {
    pub geometry: Geometry,
    pub tasks: &'a Tasks,
    pub mappings: &'a Mappings,
    pub phases: &'a Phases,
    pub code: &'a Code,
    /// One more than the highest node.
    pub nodes: usize,
}

impl CountReport<'_> {
    /// Writes what was counted on these CPUs.
    ///
    /// `cache WAYS SIZE...`, `lost THREADS PHASES LINES INSTRUCTIONS`, `phase NUMBER NAME` with the name in hexadecimal digits, `thread NUMBER PARENT
    /// PID TGID NAME`, `cell PHASE THREAD CPU NODE READ... WRITTEN... ORDERED...` with `-` for memory that is no node's, and the same
    /// with `kernel` for lines that the kernel moved; `mapping
    /// NUMBER PROCESS KIND SHARED NAME`, `part PHASE MAPPING CPU NODE READ...`, `image NUMBER PATH`,
    /// `instruction NUMBER IMAGE OFFSET`, `by PHASE INSTRUCTION CPU NODE READ`; `writer KEY MAPPING ADDRESS CPU THREAD COUNT BYTES IMAGE
    /// OFFSET` of lines that several threads write to, with `KEY`, `ADDRESS`, `BYTES` and `OFFSET` in hexadecimal digits.
    pub fn write<'c>(
        &self,
        out: &mut impl Write,
        cpus: impl Iterator<Item = &'c Cpu> + Clone,
    ) -> fmt::Result {
        writeln!(out, "{FIRST}")?;
        write!(out, "cache {}", self.geometry.ways)?;
        numbers(out, self.geometry.sizes().map(|size| size as u64))?;
        let lost_lines: u64 = cpus.clone().map(|cpu| cpu.writers().lost).sum();
        writeln!(out, "lost {} {} {lost_lines} {}", self.tasks.lost, self.phases.lost, self.code.lost)?;
        for (number, name) in self.phases.names().iter().enumerate() {
            write!(out, "phase {number} ")?;
            text(out, name)?;
        }
        let phases = 0..self.phases.names().len();
        for (number, thread) in self.tasks.threads().iter().enumerate() {
            named(out, number, thread)?;
            for phase in phases.clone() {
                for (word, mode) in [("cell", Mode::User), ("kernel", Mode::Kernel)] {
                    for (cpu, cells) in cpus.clone().map(|cpu| cpu.cells(mode, phase, number)).enumerate() {
                        self.cells(out, word, [phase, number, cpu], cells)?;
                    }
                }
            }
        }
        for (number, label) in self.mappings.labels().iter().enumerate() {
            mapping(out, number, label)?;
            for phase in phases.clone() {
                for (cpu, parts) in cpus.clone().map(|cpu| cpu.parts(phase, number)).enumerate() {
                    self.cells(out, "part", [phase, number, cpu], parts)?;
                }
            }
        }
        self.instructions(out, cpus.clone())?;
        let are_same = |one: &Writes, other: &Writes| self.are_same(one, other);
        shared(cpus.map(Cpu::writers), are_same, |cpu, writes| self.writer(out, cpu, writes))?;
        writeln!(out, "end")
    }

    /// Files, and the instructions that read lines.
    fn instructions<'c>(
        &self,
        out: &mut impl Write,
        cpus: impl Iterator<Item = &'c Cpu> + Clone,
    ) -> fmt::Result {
        for (number, image) in self.code.images().iter().enumerate() {
            write!(out, "image {number} ")?;
            text(out, &image.path)?;
        }
        let phases = 0..self.phases.names().len();
        for (number, place) in self.code.places().iter().enumerate().skip(1) {
            let reads = |cpu: &Cpu| {
                phases.clone().any(|phase| cpu.read_at(phase, number).flatten().any(|lines| *lines > 0))
            };
            if !cpus.clone().any(reads) {
                continue;
            }
            writeln!(out, "instruction {number} {} {:x}", place.image, place.offset)?;
            for phase in phases.clone() {
                for (cpu, lines) in cpus.clone().map(|cpu| cpu.read_at(phase, number)).enumerate() {
                    self.cells(out, "by", [phase, number, cpu], lines)?;
                }
            }
        }
        Ok(())
    }

    fn writer(&self, out: &mut impl Write, cpu: usize, writes: &Writes) -> fmt::Result {
        let Writes { key, line, bytes, count, thread, label, at } = writes;
        write!(out, "writer {key:x} {label} {:x} {cpu} {thread} {count} {bytes:x} ", line << 6)?;
        let place = self.code.places().get(*at as usize);
        let InstructionPlace { image, offset } =
            place.copied().unwrap_or(InstructionPlace { image: 0, offset: 0 });
        writeln!(out, "{image} {offset:x}")
    }

    /// Whether a line of this number is the same memory for two threads: in the same mapping of a process, or in one of the same
    /// file that processes share. Where a mapping is not known, nothing is.
    fn are_same(&self, one: &Writes, other: &Writes) -> bool {
        let label = |writes: &Writes| self.mappings.labels().get(usize::from(writes.label));
        let (Some(first), Some(second)) = (label(one), label(other)) else { return false };
        let both_shared = first.is_shared != 0 && second.is_shared != 0;
        one.label != 0 && (one.label == other.label || both_shared && first.name == second.name)
    }

    fn cells<'c>(
        &self,
        out: &mut impl Write,
        word: &str,
        [phase, number, cpu]: [usize; 3],
        cells: impl Iterator<Item = &'c [u64]>,
    ) -> fmt::Result {
        for (column, cell) in cells.enumerate().filter(|(_, cell)| cell.iter().any(|count| *count > 0)) {
            write!(out, "{word} {phase} {number} {cpu} ")?;
            if column == self.nodes { write!(out, "-") } else { write!(out, "{column}") }?;
            numbers(out, cell.iter().copied())?;
        }
        Ok(())
    }
}

const _: () = assert!(COUNTS == 3 * SIZES);

fn named(out: &mut impl Write, number: usize, thread: &Thread) -> fmt::Result {
    write!(out, "thread {number} {} {} {} ", thread.parent, thread.pid, thread.tgid)?;
    text(out, &thread.name)
}

fn mapping(out: &mut impl Write, number: usize, label: &Label) -> fmt::Result {
    write!(out, "mapping {number} {} {} {} ", label.tgid, label.kind, label.is_shared)?;
    text(out, &label.name)
}

/// A text up to its NUL, in hexadecimal digits; `-` for an empty one.
fn text(out: &mut impl Write, bytes: &[u8]) -> fmt::Result {
    let name = bytes.iter().take_while(|byte| **byte != 0);
    name.clone().try_for_each(|byte| write!(out, "{byte:02x}"))?;
    writeln!(out, "{}", if name.count() == 0 { "-" } else { "" })
}

fn numbers(out: &mut impl Write, numbers: impl IntoIterator<Item = u64>) -> fmt::Result {
    numbers.into_iter().try_for_each(|number| write!(out, " {number}"))?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{ImageKey, PATH};
    use crate::cpu::{Access, Guest};
    use crate::mappings::{Found, NAME};
    use crate::nodes::Nodes;

    struct Plain;

    impl Guest for Plain {
        fn physical(&self, address: u64) -> Option<u64> {
            Some(address)
        }

        fn mapping(&self, _: u64, address: u64) -> Option<Found> {
            Some(Found {
                start: address,
                end: address + 1,
                label: usize::from(address > 0),
                is_shared: false,
            })
        }

        fn version(&self) -> u64 {
            0
        }

        fn phase(&self, thread: usize) -> usize {
            thread
        }
    }

    #[test]
    fn each_thread_has_its_cells_by_cpu_and_node() {
        let mut nodes = Nodes::new();
        nodes.add(0, 1 << 20, 0);
        nodes.add(1 << 20, 2 << 20, 1);
        let geometry = Geometry { size: 1 << 16, ways: 8 };
        let mut tasks = Tasks::new();
        tasks.begin(7, 0);
        tasks.start(7, 8);
        tasks.thread_mut(0).unwrap().name[..2].copy_from_slice(b"a\n");
        let mut mappings = Mappings::new();
        let mut name = [0; NAME];
        name[0] = b'x';
        mappings.add(1, 0, 1, 0, || Label { tgid: 3, kind: 4, is_shared: 0, name });
        let mut cpus = [Cpu::new(), Cpu::new()];
        for (cpu, thread, address) in [(0, 0, 0), (1, 0, 1 << 20), (1, 1, 5 << 20)] {
            cpus[cpu].begin(geometry);
            cpus[cpu].run(7, Some(thread), &nodes);
            cpus[cpu].access(Access { address, bytes: 1, is_write: true, at: 0 }, &nodes, &Plain);
        }
        let access = Access { address: 1 << 12, bytes: 1, is_write: true, at: 0 };
        cpus[0].kernel_access(access, &nodes, &Plain);
        for (cpu, bytes) in [(0, 4), (1, 8)] {
            cpus[cpu].run(7, Some(cpu), &nodes);
            let access = Access { address: 1 << 20, bytes, is_write: true, at: 1 };
            (0..60).for_each(|_| cpus[cpu].access(access, &nodes, &Plain));
            cpus[cpu].end();
        }
        let mut text = String::new();
        let mut phases = Phases::new();
        let mut name = [0; crate::phases::NAME];
        name[0] = b'p';
        phases.number(name);
        let mut code = Code::new();
        let mut path = [0; PATH];
        path[..2].copy_from_slice(b"/a");
        let image = code.image(ImageKey { entry: 1, ..ImageKey::NO_FILE }, || path);
        code.number(InstructionPlace { image: image.unwrap(), offset: 0x1a });
        let report = CountReport {
            geometry,
            tasks: &tasks,
            mappings: &mappings,
            phases: &phases,
            code: &code,
            nodes: 2,
        };
        report.write(&mut text, cpus.iter()).unwrap();
        assert_eq!(
            text,
            "nodewise-counter 6\ncache 8 32768 65536 131072\nlost 0 0 0 0\nphase 0 -\nphase 1 70\n\
             thread 0 0 0 0 610a\ncell 0 0 0 0 1 1 1 0 0 0 0 0 0\ncell 0 0 0 1 1 1 1 0 0 0 0 0 0\n\
             cell 0 0 1 1 1 1 1 0 0 0 0 0 0\nkernel 0 0 0 0 1 1 1 0 0 0 0 0 0\nthread 1 0 0 0 -\ncell 1 1 1 1 1 1 1 0 0 0 0 0 0\n\
             cell 1 1 1 - 1 1 1 0 0 0 0 0 0\nmapping 0 0 0 0 -\npart 0 0 0 0 1 1 1\nmapping 1 3 4 0 78\n\
             part 0 1 0 1 1 1 1\npart 0 1 1 1 1 1 1\npart 1 1 1 1 1 1 1\npart 1 1 1 - 1 1 1\n\
             image 0 -\nimage 1 2f61\ninstruction 1 1 1a\nby 0 1 0 1 1\nby 1 1 1 1 1\n\
             writer 4000 1 100000 0 0 60 f 1 1a\nwriter 4000 1 100000 1 1 60 ff 1 1a\nend\n"
        );
    }
}
