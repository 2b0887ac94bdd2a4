//! `nodewise lab --count`: the cache lines that a command moves.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use nodewise_experiment::shell;
use nodewise_lab::counting::{
    CodePlace, CountedCell, CountedMapping, CountedPart, CountedThread, CountedWrites, MappingKind,
};
use nodewise_lab::layout::GuestNode;
use nodewise_lab::{BootEvent, Counted, Counting, Counts, Guest, GuestError, Layout, PrivateCache, Threads};
use nodewise_machine::cache::CacheKind;
use nodewise_machine::printable::{io_words, quote};
use nodewise_machine::{Bytes, CpuId, Machine, NodeId};
use nodewise_view::digest::line_counts::{
    LineCell, LineCounts, LineMapping, LineMappingKind, LinePart, LineThread, LineWriter, LocalVerdict,
    SIZES, SharedLine, sharing,
};
use nodewise_view::svg::line_counts_svg;
use nodewise_view::{json, text};

use super::{code, marks, watch};
use crate::cli::Global;
use crate::cli::lab::{CountBy, Lab};
use crate::failure::{Failure, NOT_STARTED, Outcome};
use crate::measuring::line::{BehindLine, ProgressLine};
use crate::output::{self, Pictures};

/// Exit code of a demand that is not met.
const NOT_LOCAL: u8 = 1;
/// The cache where the machine does not say: that of a core of recent servers (AMD Zen 4 and 5: 1 MiB of 8 and 16 ways;
/// Intel Sapphire Rapids: 2 MiB of 16).
const ASSUMED: PrivateCache = PrivateCache { size: Bytes::from_mib(1), ways: 16 };
/// Most bytes and ways that are modelled: each CPU of the guest takes almost half of the size in memory of the host.
const LARGEST: Bytes = Bytes::from_mib(64);
const MOST_WAYS: u32 = 64;
/// Folders that a guest has of its own, where it does not see the host's files.
const OWN_FOLDERS: [&str; 4] = ["dev", "proc", "run", "sys"];

/// Runs the command in the guest and shows what it moved.
pub fn run(args: &Lab, global: &Global, machine: &Machine, mut guest: Guest) -> Outcome {
    refuse_twice(args)?;
    let pictures = Pictures::new(&args.svg, &args.png);
    pictures.check().map_err(|failure| fail(failure.message))?;
    let mut count = Count::new(machine, &mut guest).map_err(fail)?;
    count.counting.by_line = args.by == Some(CountBy::Line);
    count.counting.with_kernel = args.with_kernel;
    let counted = stream(&guest, &count.counting, &args.command).map_err(|error| fail(error.to_string()))?;
    let status = u8::try_from(counted.status).unwrap_or(u8::MAX);
    let mut counts = line_counts(counted, &guest, &count);
    if let Some(name) = &args.phase {
        counts = counts.only_phase(name).map_err(|unknown| fail(format!("--phase: {unknown}")))?;
    }
    // The counts are shown also where a demand cannot be judged.
    let judged: Result<Vec<_>, _> = args.assert_local.iter().map(|demand| counts.verdict(demand)).collect();
    let verdicts = judged.as_deref().unwrap_or_default();
    let drawn = pictures.draw(|theme| line_counts_svg(&counts, &provenance(args, global), theme));
    output::show(
        args.json,
        global.color,
        || json::line_counts(&counts, verdicts),
        |style| text::line_counts(&counts, style),
    )?;
    // A picture that cannot be written is a failure, but no reason to keep the counts back.
    drawn.map_err(|failure| fail(failure.message))?;
    let verdicts = judged.map_err(|unknown| fail(format!("--assert-local: {unknown}")))?;
    verdicts.iter().for_each(|verdict| output::say(&text::local_verdict(&counts, verdict)));
    let is_met = verdicts.iter().all(LocalVerdict::holds);
    Ok(if status == 0 && !is_met { NOT_LOCAL } else { status })
}

/// The command and the machine, as the caption of a picture.
fn provenance(args: &Lab, global: &Global) -> String {
    let command = shell::shown(args.command.iter().map(|word| word.to_string_lossy()));
    format!("{command}, in a guest of {}", global.machine)
}

/// Refuses two demands for the same lines: one of them would be void.
fn refuse_twice(args: &Lab) -> Result<(), Failure> {
    for (at, demand) in args.assert_local.iter().enumerate() {
        if args.assert_local[..at].iter().any(|before| before.mapping == demand.mapping) {
            let lines = demand.mapping.as_deref().map_or("all lines".into(), quote);
            return Err(fail(format!("--assert-local: two demands for {lines}: expected one")));
        }
    }
    Ok(())
}

fn fail(message: String) -> Failure {
    Failure::new(NOT_STARTED, message)
}

/// How lines are counted in a guest.
pub struct Count {
    counting: Counting,
    /// Whether the machine does not say how large its caches are.
    is_assumed: bool,
    /// Where the guest finds this program.
    pub program: PathBuf,
}

impl Count {
    /// Prepares a guest of a machine to be counted.
    ///
    /// # Errors
    /// This program cannot be shown to it.
    pub fn new(machine: &Machine, guest: &mut Guest) -> Result<Self, String> {
        let cache = private_cache(machine);
        guest.threads = Threads::PerCpu;
        let program = own_program(guest)?;
        let marker = vec![program.clone().into_os_string(), OsString::from(marks::WORD)];
        let counting = Counting {
            cache: cache.unwrap_or(ASSUMED),
            marker,
            by_line: false,
            with_kernel: false,
            launchers: 0,
        };
        Ok(Self { counting, is_assumed: cache.is_none(), program })
    }

    /// Runs a command and returns its exit status and what it moved; the end of what it prints as errors is kept. Of a
    /// command that becomes another program after some launchers, that program is counted.
    ///
    /// # Errors
    /// As [`Guest::count`].
    pub fn counts(
        &self,
        guest: &Guest,
        launchers: u32,
        command: &[OsString],
        printed: &mut Vec<u8>,
        watch: &mut dyn FnMut(BootEvent<'_>),
    ) -> Result<(i32, LineCounts), GuestError> {
        let (mut stdout, mut stderr) = (io::sink(), Tail(printed));
        let counting = Counting { launchers, ..self.counting.clone() };
        let counted = guest.count(&counting, command, (&mut stdout, &mut stderr), watch)?;
        Ok((counted.status, line_counts(counted, guest, self)))
    }
}

/// The end of what was written.
struct Tail<'a>(&'a mut Vec<u8>);

/// The bytes that it keeps, at least.
const TAIL: usize = 4096;

impl io::Write for Tail<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        if self.0.len() > 2 * TAIL {
            self.0.drain(..self.0.len() - TAIL);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs the command; both of its streams go to standard error, since the counts are the result.
fn stream(guest: &Guest, counting: &Counting, command: &[OsString]) -> Result<Counted, GuestError> {
    let line = ProgressLine::new();
    let (mut stdout, mut stderr) =
        (BehindLine::new(&line, io::stderr()), BehindLine::new(&line, io::stderr()));
    guest.count(counting, command, (&mut stdout, &mut stderr), &mut watch(&line))
}

/// Where the guest finds this program, which makes its marks. Copied into its memory if the guest cannot see it.
fn own_program(guest: &mut Guest) -> Result<PathBuf, String> {
    const NAME: &str = "nodewise-marks";
    let own =
        std::env::current_exe().map_err(|error| format!("where is this program? {}", io_words(&error)))?;
    if own.to_str().is_none() {
        return Err(format!("{} is not a path that a guest can be given", quote(&own.to_string_lossy())));
    }
    if !OWN_FOLDERS.iter().any(|folder| own.starts_with(Path::new("/").join(folder))) {
        return Ok(own);
    }
    guest.programs.push((NAME.to_owned(), own));
    Ok(Path::new(nodewise_lab::script::PROGRAMS_FOLDER).join(NAME))
}

/// The largest cache that a core of the machine has to itself; that of its first CPU.
fn private_cache(machine: &Machine) -> Option<PrivateCache> {
    let first = *machine.cpus.keys().next()?;
    let core = machine.cores().remove(&first)?;
    let is_private =
        |cpus: &nodewise_machine::CpuSet| cpus.contains(first) && cpus.iter().all(|cpu| core.contains(cpu));
    let private =
        machine.caches.iter().filter(|cache| cache.kind != CacheKind::Instruction && is_private(&cache.cpus));
    let largest =
        private.filter_map(|cache| Some((cache.size?, cache.ways))).max_by_key(|(size, _)| *size)?;
    let (size, ways) = largest;
    let ways = ways.filter(|ways| (1..=MOST_WAYS).contains(ways)).unwrap_or(ASSUMED.ways);
    (size >= Bytes::from_kib(4) && size <= LARGEST).then_some(PrivateCache { size, ways })
}

/// The counts by node, with the places of instructions if these were counted.
fn line_counts(Counted { counts, symbols, .. }: Counted, guest: &Guest, count: &Count) -> LineCounts {
    let places = || code::Places::new(&counts.images, &guest.programs, &symbols);
    let places = count.counting.by_line.then(places);
    let mut counts = by_node(counts, &guest.layout, count.is_assumed, places);
    if count.counting.with_kernel {
        add_kernel(&mut counts);
    }
    counts
}

/// Notes that the kernel's lines were counted, and adds those that it read as a mapping of each process, of one at least.
fn add_kernel(counts: &mut LineCounts) {
    counts.with_kernel = true;
    let process = |thread: usize| {
        let ids = counts.threads.get(thread).and_then(|thread| thread.ids);
        ids.map(|(_, process)| process)
    };
    let mut sums: BTreeMap<_, [u64; SIZES]> = BTreeMap::new();
    for cell in counts.cells.iter().filter(|cell| cell.in_kernel) {
        let place = (process(cell.thread), cell.phase, cell.cpu_node, cell.node);
        add(sums.entry(place).or_default(), cell.read);
    }
    let mut processes: Vec<Option<u32>> = sums.keys().map(|(process, ..)| *process).collect();
    processes.dedup();
    if processes.is_empty() {
        processes.push(process(0));
    }
    let first = counts.mappings.len();
    for ((process, phase, cpu_node, node), read) in sums {
        let place = processes.iter().position(|known| *known == process).unwrap_or_default();
        counts.parts.push(LinePart { phase, mapping: first + place, cpu_node, node, read });
    }
    let kernel = |process| LineMapping { process, kind: LineMappingKind::Kernel };
    counts.mappings.extend(processes.into_iter().map(kernel));
}

/// The counts by node, for a guest of this layout.
fn by_node(
    counts: Counts,
    layout: &Layout,
    is_assumed: bool,
    mut places: Option<code::Places>,
) -> LineCounts {
    let node_of = |cpu: u32| {
        let holds = |node: &&GuestNode| node.cpus.contains(CpuId::new(cpu));
        layout.nodes.iter().find(holds).map(|node| node.id)
    };
    let mut cells: Vec<LineCell> = Vec::new();
    for CountedCell { phase, thread, in_kernel, cpu, node, read, written, in_order } in counts.cells {
        let Some(cpu_node) = node_of(cpu) else { continue };
        let same = |cell: &&mut LineCell| {
            (cell.phase, cell.in_kernel, cell.cpu_node, cell.node) == (phase, in_kernel, cpu_node, node)
        };
        match cells.iter_mut().rev().take_while(|cell| cell.thread == thread).find(same) {
            Some(cell) => {
                add(&mut cell.read, read);
                add(&mut cell.written, written);
                add(&mut cell.in_order, in_order);
            }
            None => {
                cells.push(LineCell { phase, thread, in_kernel, cpu_node, node, read, written, in_order });
            }
        }
    }
    let mut parts: Vec<LinePart> = Vec::new();
    for CountedPart { phase, mapping, cpu, node, read } in counts.parts {
        let Some(cpu_node) = node_of(cpu) else { continue };
        let same = |part: &&mut LinePart| (part.phase, part.cpu_node, part.node) == (phase, cpu_node, node);
        match parts.iter_mut().rev().take_while(|part| part.mapping == mapping).find(same) {
            Some(part) => add(&mut part.read, read),
            None => parts.push(LinePart { phase, mapping, cpu_node, node, read }),
        }
    }
    let by = |place| places.as_mut().map(|places| places.number(place));
    let shared = shared_lines(&counts.writes, &counts.mappings, node_of, by);
    let code = places.map(|places| places.code(&counts.instructions, counts.lost_instructions, node_of));
    let with = |keep: fn(&GuestNode) -> bool| {
        layout.nodes.iter().filter(|node| keep(node)).map(|node| node.id).collect()
    };
    LineCounts {
        ways: counts.ways,
        sizes: counts.sizes,
        is_assumed,
        with_kernel: false,
        cpu_nodes: with(|node| !node.cpus.is_empty()),
        memory_nodes: with(|node| node.memory.is_some()),
        threads: counts.threads.into_iter().map(thread).collect(),
        lost: counts.lost,
        phases: counts.phases.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect(),
        lost_phases: counts.lost_phases,
        chosen: None,
        cells,
        mappings: counts.mappings.into_iter().map(mapping).collect(),
        parts,
        shared,
        lost_lines: counts.lost_lines,
        code,
    }
}

/// Lines that threads of several nodes write to, the worst first.
fn shared_lines(
    writes: &[CountedWrites],
    mappings: &[CountedMapping],
    node_of: impl Fn(u32) -> Option<NodeId>,
    mut by: impl FnMut(CodePlace) -> Option<usize>,
) -> Vec<SharedLine> {
    // Memory that processes share is the same in mappings of the same file; other memory is a mapping's own.
    let same = |writes: &CountedWrites| match mappings.get(writes.mapping) {
        Some(mapping) if mapping.is_shared => (writes.key, None, Some(&mapping.name)),
        _ => (writes.key, Some(writes.mapping), None),
    };
    let mut lines: BTreeMap<_, Vec<&CountedWrites>> = BTreeMap::new();
    writes.iter().for_each(|writes| lines.entry(same(writes)).or_default().push(writes));
    let mut line = |writes: Vec<&CountedWrites>| {
        let first = writes.first()?;
        let writers = writes.iter().filter_map(|writes| {
            let CountedWrites { thread, cpu, count, bytes, .. } = **writes;
            Some(LineWriter { thread, cpu_node: node_of(cpu)?, writes: count, bytes, by: by(writes.by) })
        });
        SharedLine::new(first.address, first.mapping, writers)
    };
    let mut shared: Vec<SharedLine> = lines.into_values().filter_map(&mut line).collect();
    sharing::order(&mut shared);
    shared
}

fn add(sums: &mut [u64], lines: impl IntoIterator<Item = u64>) {
    sums.iter_mut().zip(lines).for_each(|(sum, lines)| *sum += lines);
}

fn thread(thread: CountedThread) -> LineThread {
    let name = Some(thread.name).filter(|name| !name.is_empty());
    LineThread {
        parent: thread.parent,
        ids: thread.ids,
        name: name.map(|name| String::from_utf8_lossy(&name).into_owned()),
    }
}

fn mapping(mapping: CountedMapping) -> LineMapping {
    let kind = match mapping.kind {
        MappingKind::Unknown => LineMappingKind::Unknown,
        MappingKind::Heap => LineMappingKind::Heap,
        MappingKind::Stack => LineMappingKind::Stack,
        MappingKind::Anonymous => LineMappingKind::Anonymous,
        MappingKind::File => LineMappingKind::File(String::from_utf8_lossy(&mapping.name).into_owned()),
    };
    LineMapping { process: Some(mapping.process).filter(|process| *process > 0), kind }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_lab::Limits;
    use nodewise_machine::spec;

    #[test]
    fn cpus_of_a_node_are_counted_together() {
        let layout = Layout::new(&spec::machine("(2c 512M) (2c 512M)").unwrap(), &Limits::default()).unwrap();
        let cell = |phase, thread, cpu, node| CountedCell {
            phase,
            thread,
            in_kernel: false,
            cpu,
            node: Some(NodeId::new(node)),
            read: [3, 2, 1],
            written: [1, 1, 0],
            in_order: [2, 1, 0],
        };
        let own = |is_shared, name: &str| CountedMapping {
            process: 7,
            kind: MappingKind::Heap,
            is_shared,
            name: name.into(),
        };
        let thread = CountedThread { parent: 0, ids: Some((7, 7)), name: b"sh\xff".to_vec() };
        let counts = Counts {
            threads: vec![thread.clone(), CountedThread { name: Vec::new(), ..thread }],
            cells: vec![
                cell(0, 0, 0, 0),
                cell(0, 0, 2, 0),
                cell(0, 0, 1, 0),
                cell(1, 0, 1, 0),
                cell(0, 1, 1, 0),
            ],
            phases: vec![Vec::new(), b"p\xff".to_vec()],
            mappings: vec![own(false, "")],
            parts: [0, 1, 2]
                .map(|cpu| CountedPart { phase: 0, mapping: 0, cpu, node: None, read: [3, 2, 1] })
                .to_vec(),
            ..Counts::default()
        };
        let counts = by_node(counts, &layout, true, None);
        let found: Vec<_> = counts
            .cells
            .iter()
            .map(|cell| (cell.phase, cell.thread, cell.cpu_node.number(), cell.read))
            .collect();
        let once = [3, 2, 1];
        assert_eq!(found, [(0, 0, 0, [6, 4, 2]), (0, 0, 1, once), (1, 0, 0, once), (0, 1, 0, once)]);
        assert_eq!(counts.phases, ["", "p\u{fffd}"]);
        let parts: Vec<_> = counts.parts.iter().map(|part| (part.cpu_node.number(), part.read)).collect();
        assert_eq!(parts, [(0, [6, 4, 2]), (1, [3, 2, 1])]);
        assert_eq!(counts.threads[0].name.as_deref(), Some("sh\u{fffd}"));
        assert_eq!(counts.threads[1].name, None);
    }

    #[test]
    fn lines_that_the_kernel_read_are_a_mapping_of_each_process() {
        let layout = Layout::new(&spec::machine("2x(1c 512M)").unwrap(), &Limits::default()).unwrap();
        let cell = |thread, in_kernel, cpu, node| CountedCell {
            phase: 0,
            thread,
            in_kernel,
            cpu,
            node: Some(NodeId::new(node)),
            read: [3, 2, 1],
            written: [1, 1, 0],
            in_order: [2, 1, 0],
        };
        let thread =
            |number, process| CountedThread { parent: 0, ids: Some((number, process)), name: Vec::new() };
        let counted = |cells| Counts {
            threads: vec![thread(7, 7), thread(8, 7), thread(9, 9)],
            phases: vec![Vec::new()],
            cells,
            ..Counts::default()
        };
        let cells = vec![
            cell(0, false, 0, 0),
            cell(0, true, 0, 0),
            cell(0, true, 0, 1),
            cell(1, true, 0, 1),
            cell(2, true, 1, 1),
        ];
        let mut counts = by_node(counted(cells), &layout, true, None);
        assert_eq!(counts.of_kernel(), None);
        add_kernel(&mut counts);
        let kernel = |process| LineMapping { process: Some(process), kind: LineMappingKind::Kernel };
        assert_eq!(counts.mappings, [kernel(7), kernel(9)]);
        let parts: Vec<_> = counts
            .parts
            .iter()
            .map(|part| (part.mapping, part.cpu_node.number(), part.node.map(NodeId::number), part.read))
            .collect();
        let read = [3, 2, 1];
        assert_eq!(parts, [(0, 0, Some(0), read), (0, 0, Some(1), [6, 4, 2]), (1, 1, Some(1), read)]);
        assert_eq!(counts.of_kernel().map(|share| share.all), Some(12));
        assert_eq!(counts.all().all, 15);
        // A demand for the kernel's lines is one for a mapping that is there.
        let mut none = by_node(counted(vec![cell(0, false, 0, 0)]), &layout, true, None);
        add_kernel(&mut none);
        assert_eq!((none.mappings, none.parts), (vec![kernel(7)], Vec::new()));
    }

    #[test]
    fn lines_are_shared_in_a_mapping_or_in_memory_that_processes_share() {
        let mapping = |process, is_shared, name: &str| CountedMapping {
            process,
            kind: MappingKind::File,
            is_shared,
            name: name.into(),
        };
        let mappings =
            [mapping(7, false, "a"), mapping(8, false, "a"), mapping(7, true, "s"), mapping(8, true, "s")];
        let writes = |mapping, cpu, thread| CountedWrites {
            key: 5,
            mapping,
            address: 64 * mapping as u64,
            cpu,
            thread,
            count: 100,
            bytes: 1 << cpu,
            by: CodePlace::default(),
        };
        let node_of = |cpu| Some(NodeId::new(cpu));
        let shared = |writes: &[CountedWrites]| shared_lines(writes, &mappings, node_of, |_| None);
        assert_eq!(shared(&[writes(0, 0, 0), writes(1, 1, 1)]), []);
        assert_eq!(shared(&[writes(0, 0, 0), writes(0, 1, 1)]).len(), 1);
        let between = shared(&[writes(3, 1, 1), writes(2, 0, 0)]);
        assert_eq!(
            between.iter().map(|line| (line.mapping, line.writers.len())).collect::<Vec<_>>(),
            [(3, 2)]
        );
        assert_eq!(shared(&[writes(0, 0, 0), writes(2, 1, 1)]), []);
    }

    #[test]
    fn the_private_cache_is_the_largest_of_a_core() {
        let mut machine = spec::machine("2x(2c2t 1G)").unwrap();
        assert_eq!(private_cache(&machine), None);
        let cache = |level, kind, size, cpus: &str| nodewise_machine::cache::Cache {
            level,
            kind,
            size: Some(size),
            line_size: Some(64),
            ways: Some(20),
            sets: None,
            cpus: cpus.parse().unwrap(),
        };
        let core: String = machine.cores()[&CpuId::new(0)].to_string();
        machine.caches = vec![
            cache(1, CacheKind::Data, Bytes::from_kib(48), &core),
            cache(2, CacheKind::Unified, Bytes::from_kib(1280), &core),
            cache(3, CacheKind::Unified, Bytes::from_mib(30), "0-3"),
        ];
        assert_eq!(private_cache(&machine), Some(PrivateCache { size: Bytes::from_kib(1280), ways: 20 }));
        machine.caches.truncate(0);
        assert_eq!(private_cache(&machine), None);
    }
}
