//! Bandwidth, kernel by kernel: the programs that Debian packages, and plain loops in C.

use anyhow::{Context, Result};
use nodewise_machine::{Bytes, CpuId, NodeId};
use nodewise_measure::cell::facts::NoFacts;
use nodewise_measure::cell::{PageKind, PlacedMemory};
use nodewise_measure::kernel::bandwidth::{Kernel, Variant};
use nodewise_measure::timer::Timer;
use nodewise_stats::median;

use super::programs::{self, Program};
use super::reference::{Question, Reference};
use super::{Goal, SAMPLE, fastest, members, rate, turns, verdict};

/// Bytes that everything runs over: many times what caches hold, see the table of chases.
const SIZE: Bytes = Bytes::from_mib(256);
/// Before the rounds each peer runs once, and those that are this part of the best once more; those go on
/// whose better figure is that part of the best of all, and no more than this many.
const HOPEFUL: f64 = 0.85;
const NEAR: f64 = 0.95;
const FINALISTS: usize = 3;

const THP: PageKind = PageKind::TransparentHuge;

/// The compared kernel, and the ratio to the best peer that is to be reached.
struct Row {
    name: &'static str,
    kernel: Kernel,
    pages: PageKind,
    ratio: f64,
    /// Kernels of likwid-bench that do the same, without what their instructions add to the name.
    likwid: &'static [&'static str],
    /// Operations of the plain code.
    plain: &'static [&'static str],
}

/// A row in huge pages.
const fn row(
    (name, kernel, ratio): (&'static str, Kernel, f64),
    likwid: &'static [&'static str],
    plain: &'static [&'static str],
) -> Row {
    Row { name, kernel, pages: THP, ratio, likwid, plain }
}

/// A row of reading in small pages.
const fn small(
    name: &'static str,
    ratio: f64,
    likwid: &'static [&'static str],
    plain: &'static [&'static str],
) -> Row {
    Row { name, kernel: Kernel::Read, pages: PageKind::Small, ratio, likwid, plain }
}

const ROWS: [Row; 12] = [
    row(("read", Kernel::Read, 1.0), &["load"], &["read"]),
    // As the packages read, and as a compiler makes it of a plain loop.
    small("read, 4 KiB pages", 1.05, &["load"], &[]),
    small("read, 4 KiB pages", 1.0, &[], &["read"]),
    row(("write", Kernel::Write, 0.99), &["store"], &["write", "memset"]),
    row(("write-NT", Kernel::WriteNt, 0.99), &["store_mem"], &[]),
    row(("copy", Kernel::Copy, 0.98), &["copy"], &["copy"]),
    // Above its threshold libc's memcpy writes past the caches, too.
    row(("copy-NT", Kernel::CopyNt, 1.0), &["copy_mem"], &["memcpy"]),
    row(("scale", Kernel::Scale, 0.98), &[], &["scale"]),
    row(("add", Kernel::Add, 0.98), &[], &["add"]),
    row(("triad", Kernel::Triad, 0.98), &["stream"], &["triad"]),
    row(("triad-NT", Kernel::TriadNt, 1.08), &["stream_mem"], &[]),
    row(("update (1:1)", Kernel::Mix1To1, 1.0), &["update"], &["update"]),
];

/// Prints a row for each kernel, with one thread and with all.
pub fn table(rounds: usize, cpus: &[CpuId], references: &[Reference], timer: &Timer) -> Result<()> {
    let mut teams = vec![1, cpus.len()];
    teams.dedup();
    println!("over {SIZE}, GB/s (10^9 bytes) as STREAM counts them\n");
    println!("| what | threads | nodewise | best peer | ratio | goal | met | won with |");
    println!("|---|---:|---:|---|---|---:|---|---|");
    for threads in teams {
        for row in &ROWS {
            // The last CPUs: the first has most of the interrupts.
            let cpus = &cpus[cpus.len() - threads..];
            let mut rivals = Rivals::new(row, cpus, references, timer)?;
            rivals.qualify();
            for round in 0..rounds {
                rivals.round(round)?;
            }
            println!("{}", rivals.line()?);
        }
    }
    Ok(())
}

/// All that compete for a goal with this many threads.
struct Rivals<'a> {
    row: &'a Row,
    cpus: &'a [CpuId],
    timer: &'a Timer,
    memory: PlacedMemory,
    variant: Variant,
    own: Vec<f64>,
    /// Each peer with its figure of every round; `None` where it had none.
    peers: Vec<(Peer, Vec<Option<f64>>)>,
}

/// Who competes with us.
enum Peer {
    Program(Program),
    Plain(Reference, &'static str),
}

impl Peer {
    fn name(&self) -> String {
        match self {
            Self::Program(program) => program.name.clone(),
            Self::Plain(reference, operation) => format!("{operation} in {}", reference.name),
        }
    }

    fn run(&self, pages: PageKind, cpus: &[CpuId]) -> Option<f64> {
        match self {
            Self::Program(program) => program.run(),
            Self::Plain(reference, operation) => {
                reference.ask(&Question { operation, size: SIZE, pages, time: SAMPLE, cpus, seed: 1 })
            }
        }
    }
}

impl<'a> Rivals<'a> {
    fn new(row: &'a Row, cpus: &'a [CpuId], references: &[Reference], timer: &'a Timer) -> Result<Self> {
        let mut memory = PlacedMemory::new(SIZE, NodeId::new(0), row.pages, &mut NoFacts)
            .with_context(|| format!("no memory for {}", row.name))?;
        let peers = peers(row, cpus.len(), references).into_iter().map(|peer| (peer, Vec::new())).collect();
        let variant = fastest(row.kernel, &mut memory, cpus, timer)?;
        Ok(Self { row, cpus, timer, memory, variant, own: Vec::new(), peers })
    }

    fn measure(&mut self) -> Result<f64> {
        let members = members(&mut self.memory, self.cpus);
        rate(self.row.kernel, self.variant, members, self.timer)
    }

    /// Lets those go that are far from the best: some of them take seconds a round.
    fn qualify(&mut self) {
        let (pages, cpus) = (self.row.pages, self.cpus);
        let mut rated: Vec<(f64, Peer)> =
            self.peers.drain(..).filter_map(|(peer, _)| Some((peer.run(pages, cpus)?, peer))).collect();
        near(&mut rated, HOPEFUL);
        for (rate, peer) in &mut rated {
            *rate = peer.run(pages, cpus).map_or(*rate, |again| again.max(*rate));
        }
        near(&mut rated, NEAR);
        self.peers = rated.into_iter().take(FINALISTS).map(|(_, peer)| (peer, Vec::new())).collect();
    }

    /// Measures all once; who begins changes from round to round.
    fn round(&mut self, round: usize) -> Result<()> {
        for turn in turns(round, self.peers.len() + 1) {
            match turn.checked_sub(1) {
                None => {
                    let rate = self.measure()?;
                    self.own.push(rate);
                }
                Some(at) => {
                    let rate = self.peers[at].0.run(self.row.pages, self.cpus);
                    self.peers[at].1.push(rate);
                }
            }
        }
        Ok(())
    }

    /// The line of the table: beside the peer with the highest median.
    fn line(&self) -> Result<String> {
        let own = median(&self.own).context("there is a round")?;
        let (name, threads) = (self.row.name, self.cpus.len());
        let whole = |rates: &[Option<f64>]| rates.iter().copied().collect::<Option<Vec<f64>>>();
        let rated = self.peers.iter().filter_map(|(peer, rates)| {
            let rates = whole(rates)?;
            Some((median(&rates)?, peer, rates))
        });
        let Some((best, peer, rates)) = rated.max_by(|one, other| one.0.total_cmp(&other.0)) else {
            return Ok(format!("| {name} | {threads} | {own:.1} | none ran | | | | {} |", self.variant));
        };
        let verdict =
            verdict(Goal::AtLeast(self.row.ratio), &self.own, &rates).context("there is a round")?;
        Ok(format!(
            "| {name} | {threads} | {own:.1} | {best:.1} {} | {verdict} | {} |",
            peer.name(),
            self.variant
        ))
    }
}

/// Leaves those whose rate is this part of the best or more, best first.
fn near<T>(rated: &mut Vec<(f64, T)>, part: f64) {
    rated.sort_by(|one, other| other.0.total_cmp(&one.0));
    let least = rated.first().map_or(0.0, |(rate, _)| rate * part);
    rated.retain(|(rate, _)| *rate >= least);
}

/// Who competes for a goal.
fn peers(row: &Row, threads: usize, references: &[Reference]) -> Vec<Peer> {
    let bytes = SIZE.get();
    let mut programs: Vec<Program> = Vec::new();
    for kernel in row.likwid {
        for instructions in ["sse", "avx", "avx512"] {
            programs.push(programs::likwid(&format!("{kernel}_{instructions}"), bytes, threads));
        }
    }
    match row.kernel {
        Kernel::Read if !row.likwid.is_empty() => {
            programs.push(programs::sysbench("read", bytes, threads));
            programs.push(programs::stress_ng("stress-ng memrate", bytes, threads, |name| {
                name.starts_with("read")
            }));
        }
        Kernel::Write => {
            programs.push(programs::sysbench("write", bytes, threads));
            let ordinary = |name: &str| name.starts_with("write") && !name.ends_with("nt");
            programs.push(programs::stress_ng("stress-ng memrate", bytes, threads, ordinary));
        }
        Kernel::WriteNt => {
            let past = |name: &str| name.starts_with("write") && name.ends_with("nt");
            programs.push(programs::stress_ng("stress-ng memrate", bytes, threads, past));
        }
        Kernel::CopyNt if threads == 1 => programs.push(programs::mbw(bytes / 2)),
        _ => {}
    }
    let plain = references
        .iter()
        .flat_map(|reference| row.plain.iter().map(|operation| Peer::Plain(reference.clone(), operation)));
    programs.into_iter().map(Peer::Program).chain(plain).collect()
}
