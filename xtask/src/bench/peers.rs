//! Bandwidth beside the programs that Debian packages for it, and beside plain loops.
//!
//! All in one run: in each round everything is measured once, in an order that turns, and what counts
//! is the median over rounds of the ratio of two figures of the same round. Everything runs where this
//! process may: on a machine with several nodes it is to be bound to one of them.

mod programs;

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nodewise_machine::{Bytes, CpuId, NodeId};
use nodewise_measure::bandwidth::contest;
use nodewise_measure::cell::facts::NoFacts;
use nodewise_measure::cell::{PageKind, PlacedMemory, Seat};
use nodewise_measure::kernel::bandwidth::{Kernel, Variant};
use nodewise_measure::stats::{median, median_interval};
use nodewise_measure::team::{self, Member, Task};
use nodewise_measure::timer::Timer;

use programs::{PACKAGES, PROGRAMS, Program};

use crate::program;

/// Bytes that everything runs over: many times the caches of a node.
const SIZE: Bytes = Bytes::from_mib(768);
/// How long each of ours runs, in a round and in the contest before the first.
const SAMPLE: Duration = Duration::from_millis(500);
const CONTEST: Duration = Duration::from_millis(4);
/// How far below the goal the lower end of the interval may be.
const TOLERANCE: f64 = 0.02;

/// What is compared, and the ratio to the best peer that is to be reached.
struct Goal {
    name: &'static str,
    kernel: Kernel,
    pages: PageKind,
    ratio: f64,
    /// Kernels of likwid-bench that do the same, without what their instructions add to the name.
    likwid: &'static [&'static str],
}

const THP: PageKind = PageKind::TransparentHuge;

/// The goals.
const GOALS: [Goal; 10] = [
    Goal { name: "read", kernel: Kernel::Read, pages: THP, ratio: 1.0, likwid: &["load"] },
    Goal {
        name: "read, 4 KiB pages",
        kernel: Kernel::Read,
        pages: PageKind::Small,
        ratio: 1.05,
        likwid: &["load"],
    },
    Goal { name: "write", kernel: Kernel::Write, pages: THP, ratio: 0.99, likwid: &["store"] },
    Goal { name: "write-NT", kernel: Kernel::WriteNt, pages: THP, ratio: 0.99, likwid: &["store_mem"] },
    Goal { name: "copy", kernel: Kernel::Copy, pages: THP, ratio: 0.98, likwid: &["copy"] },
    Goal { name: "copy-NT", kernel: Kernel::CopyNt, pages: THP, ratio: 1.0, likwid: &["copy_mem"] },
    Goal { name: "triad", kernel: Kernel::Triad, pages: THP, ratio: 0.98, likwid: &["stream"] },
    Goal { name: "triad-NT", kernel: Kernel::TriadNt, pages: THP, ratio: 1.08, likwid: &["stream_mem"] },
    Goal { name: "update (1:1)", kernel: Kernel::Mix1To1, pages: THP, ratio: 1.0, likwid: &["update"] },
    // Nothing that is packaged does this; the plain loop does.
    Goal { name: "scale", kernel: Kernel::Scale, pages: THP, ratio: 1.0, likwid: &[] },
];

/// Runs all and prints a table.
pub fn run(rounds: usize) -> Result<()> {
    install()?;
    let timer = Timer::choose();
    let cpus = cpus(&timer);
    let mut teams = vec![1, cpus.len()];
    teams.dedup();
    println!(
        "{rounds} rounds over {SIZE}; GB/s are 10^9 bytes as STREAM counts them; ratio: median over \
         rounds, with a 95 % interval\n"
    );
    println!("| what | threads | nodewise | best peer | ratio | goal | | won with |");
    println!("|---|---:|---:|---|---|---:|---|---|");
    for threads in teams {
        for goal in &GOALS {
            let cpus = &cpus[..threads];
            let mut rivals = Rivals::new(goal, cpus, &timer)?;
            for round in 0..rounds {
                rivals.round(round)?;
            }
            println!("{}", rivals.row()?);
        }
    }
    println!("\npeers: {}", versions().join(", "));
    Ok(())
}

/// Installs what is missing, where that is allowed.
fn install() -> Result<()> {
    let missing = || PROGRAMS.iter().any(|name| Command::new(name).arg("--version").output().is_err());
    if !missing() {
        return Ok(());
    }
    let mut words = vec!["install", "-y", "--no-install-recommends"];
    words.extend(PACKAGES);
    if rustix::process::geteuid().is_root() {
        program::quiet(Command::new("apt-get").args(&words))?;
    }
    if missing() { bail!("the peers are not installed: apt-get {} as root", words.join(" ")) } else { Ok(()) }
}

/// The CPUs that this process may use.
fn cpus(timer: &Timer) -> Vec<CpuId> {
    let numbers = 0..4096;
    numbers.map(CpuId::new).filter(|cpu| Seat::take(*cpu, Duration::ZERO, timer).is_ok()).collect()
}

/// What the packages call themselves.
fn versions() -> Vec<String> {
    let version = |package: &&str| {
        let output = Command::new("dpkg-query").args(["-W", "-f=${Version}", package]).output().ok()?;
        Some(format!("{package} {}", String::from_utf8_lossy(&output.stdout).trim()))
    };
    PACKAGES.iter().filter_map(version).collect()
}

/// All that compete for a goal with so many threads.
struct Rivals<'a> {
    goal: &'a Goal,
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
    /// What the compiler makes of a plain loop; of a copy, a call of libc's memcpy.
    Loop,
}

impl Peer {
    fn name(&self) -> &str {
        match self {
            Self::Program(program) => &program.name,
            Self::Loop => "plain loop",
        }
    }
}

impl<'a> Rivals<'a> {
    fn new(goal: &'a Goal, cpus: &'a [CpuId], timer: &'a Timer) -> Result<Self> {
        let memory = PlacedMemory::new(SIZE, NodeId::new(0), goal.pages, &mut NoFacts)
            .with_context(|| format!("no memory for {}", goal.name))?;
        let mut rivals = Self {
            goal,
            cpus,
            timer,
            memory,
            variant: Variant::PORTABLE,
            own: Vec::new(),
            peers: peers(goal, cpus.len()).into_iter().map(|peer| (peer, Vec::new())).collect(),
        };
        rivals.variant = contest::hold(goal.kernel, |variants| {
            let task = Task { kernel: goal.kernel, variants, time: CONTEST };
            let results = team::run(rivals.members(), task, timer)?;
            Ok(results.into_iter().map(|result| result.ok().map(|result| result.program)).collect())
        })?;
        Ok(rivals)
    }

    fn members(&mut self) -> Vec<Member<'_>> {
        let words = self.memory.buffer_mut().as_mut_words();
        let part = words.len() / self.cpus.len();
        self.cpus.iter().zip(words.chunks_mut(part)).map(|(cpu, part)| Member { cpu: *cpu, part }).collect()
    }

    fn measure(&mut self, kernel: Kernel, variant: Variant) -> Result<f64> {
        let (task, timer) = (Task { kernel, variants: &[variant], time: SAMPLE }, self.timer);
        let results = team::run(self.members(), task, timer)?;
        let throughput = results.into_iter().next().context("one variant has one result")??;
        Ok(throughput.program / 1e9)
    }

    /// Measures all once; who begins changes from round to round.
    fn round(&mut self, round: usize) -> Result<()> {
        let all = self.peers.len() + 1;
        for turn in 0..all {
            match (turn + round) % all {
                0 => {
                    let rate = self.measure(self.goal.kernel, self.variant)?;
                    self.own.push(rate);
                }
                at => {
                    let rate = match &self.peers[at - 1].0 {
                        Peer::Program(program) => program.run(),
                        Peer::Loop => self.measure(self.goal.kernel, Variant::PORTABLE).ok(),
                    };
                    self.peers[at - 1].1.push(rate);
                }
            }
        }
        Ok(())
    }

    /// The line of the table: beside the peer with the highest median.
    fn row(&self) -> Result<String> {
        let own = median(&self.own).context("there is a round")?;
        let threads = self.cpus.len();
        let whole = |rates: &[Option<f64>]| rates.iter().copied().collect::<Option<Vec<f64>>>();
        let rated = self.peers.iter().filter_map(|(peer, rates)| {
            let rates = whole(rates)?;
            Some((median(&rates)?, peer, rates))
        });
        let Some((best, peer, rates)) = rated.max_by(|one, other| one.0.total_cmp(&other.0)) else {
            return Ok(format!(
                "| {} | {threads} | {own:.1} | none ran | | | | {} |",
                self.goal.name, self.variant
            ));
        };
        let ratios: Vec<f64> = self.own.iter().zip(&rates).map(|(own, peer)| own / peer).collect();
        let ratio = median(&ratios).context("there is a round")?;
        let interval = median_interval(&ratios);
        let words = interval.map_or_else(String::new, |of| format!(" ({:.3}-{:.3})", of.low, of.high));
        // Without an interval nothing is proven.
        let met =
            interval.is_some_and(|of| ratio >= self.goal.ratio && of.low >= self.goal.ratio - TOLERANCE);
        Ok(format!(
            "| {} | {threads} | {own:.1} | {best:.1} {} | {ratio:.3}{words} | {:.2} | {} | {} |",
            self.goal.name,
            peer.name(),
            self.goal.ratio,
            if met { "met" } else { "not met" },
            self.variant
        ))
    }
}

/// Who competes for a goal.
fn peers(goal: &Goal, threads: usize) -> Vec<Peer> {
    let bytes = SIZE.get();
    let mut programs: Vec<Program> = Vec::new();
    for kernel in goal.likwid {
        for instructions in ["sse", "avx", "avx512"] {
            programs.push(programs::likwid(&format!("{kernel}_{instructions}"), bytes, threads));
        }
    }
    match goal.kernel {
        Kernel::Read => {
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
        // Above its threshold libc's memcpy writes past the caches, too.
        Kernel::CopyNt if threads == 1 => programs.push(programs::mbw(bytes / 2)),
        _ => {}
    }
    let mut peers: Vec<Peer> = programs.into_iter().map(Peer::Program).collect();
    if !goal.kernel.is_non_temporal() {
        peers.push(Peer::Loop);
    }
    peers
}
