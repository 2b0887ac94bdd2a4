//! The counts as text: one fact per line, the last line `end`.

use core::fmt::{self, Write};

use crate::SIZES;
use crate::cpu::{COUNTS, Cpu, Geometry};
use crate::mappings::{Label, Mappings};
use crate::phases::Phases;
use crate::tasks::{Tasks, Thread};

/// The first line: the form of the text.
pub const FIRST: &str = "nodewise-counter 3";

/// Everything that is written.
pub struct CountReport<'a> {
    pub geometry: Geometry,
    pub tasks: &'a Tasks,
    pub mappings: &'a Mappings,
    pub phases: &'a Phases,
    /// One more than the highest node.
    pub nodes: usize,
}

impl CountReport<'_> {
    /// Writes what was counted on these CPUs.
    ///
    /// `cache WAYS SIZE...`, `lost THREADS PHASES`, `phase NUMBER NAME` with the name in hexadecimal digits, `thread NUMBER PARENT
    /// PID TGID NAME`, `cell PHASE THREAD CPU NODE READ... WRITTEN... ORDERED...` with `-` for memory that is no node's; `mapping
    /// NUMBER PROCESS KIND NAME`, `part PHASE MAPPING CPU NODE READ...`.
    pub fn write<'c>(
        &self,
        out: &mut impl Write,
        cpus: impl Iterator<Item = &'c Cpu> + Clone,
    ) -> fmt::Result {
        writeln!(out, "{FIRST}")?;
        write!(out, "cache {}", self.geometry.ways)?;
        numbers(out, self.geometry.sizes().map(|size| size as u64))?;
        writeln!(out, "lost {} {}", self.tasks.lost, self.phases.lost)?;
        for (number, name) in self.phases.names().iter().enumerate() {
            write!(out, "phase {number} ")?;
            text(out, name)?;
        }
        let phases = 0..self.phases.names().len();
        for (number, thread) in self.tasks.threads().iter().enumerate() {
            named(out, number, thread)?;
            for phase in phases.clone() {
                for (cpu, cells) in cpus.clone().map(|cpu| cpu.cells(phase, number)).enumerate() {
                    self.cells(out, "cell", [phase, number, cpu], cells)?;
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
        writeln!(out, "end")
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
    write!(out, "mapping {number} {} {} ", label.tgid, label.kind)?;
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
    use crate::cpu::{Access, Guest};
    use crate::mappings::{Found, NAME};
    use crate::nodes::Nodes;

    struct Plain;

    impl Guest for Plain {
        fn physical(&self, address: u64) -> Option<u64> {
            Some(address)
        }

        fn mapping(&self, _: u64, address: u64) -> Option<Found> {
            Some(Found { start: address, end: address + 1, label: usize::from(address > 0) })
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
        mappings.add(1, 0, 1, 0, || Label { tgid: 3, kind: 4, name });
        let mut cpus = [Cpu::new(), Cpu::new()];
        for (cpu, thread, address) in [(0, 0, 0), (1, 0, 1 << 20), (1, 1, 5 << 20)] {
            cpus[cpu].begin(geometry);
            cpus[cpu].run(7, Some(thread), &nodes);
            cpus[cpu].access(Access { address, bytes: 1, is_write: true }, &nodes, &Plain);
        }
        let mut text = String::new();
        let mut phases = Phases::new();
        let mut name = [0; crate::phases::NAME];
        name[0] = b'p';
        phases.number(name);
        let report = CountReport { geometry, tasks: &tasks, mappings: &mappings, phases: &phases, nodes: 2 };
        report.write(&mut text, cpus.iter()).unwrap();
        assert_eq!(
            text,
            "nodewise-counter 3\ncache 8 32768 65536 131072\nlost 0 0\nphase 0 -\nphase 1 70\n\
             thread 0 0 0 0 610a\ncell 0 0 0 0 1 1 1 0 0 0 0 0 0\ncell 0 0 1 1 1 1 1 0 0 0 0 0 0\n\
             thread 1 0 0 0 -\ncell 1 1 1 - 1 1 1 0 0 0 0 0 0\n\
             mapping 0 0 0 -\npart 0 0 0 0 1 1 1\nmapping 1 3 4 78\npart 0 1 1 1 1 1 1\npart 1 1 1 - 1 1 1\nend\n"
        );
    }
}
