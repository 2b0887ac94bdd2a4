//! `churn`: samples of this machine, or of a guest, while processes come and go, and CPUs, too.
//!
//! A driver for each CPU makes processes at a steady rate, most of them for a moment: copies of a shell, and children that
//! share their parent's memory. Others run a program of their own, for longer than a sampler may overlook. After each sample what must hold is checked against the one before and
//! against what the drivers did.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nodewise_lab::tools::find_program;
use nodewise_lab::{KernelChoice, Lab, Layout, Limits, script};
use nodewise_machine::{Bytes, spec};
use nodewise_source::process::{self, Pid};
use nodewise_source::sample::{
    BandwidthScope, InterruptScope, Moment, PageOptions, ProcessScope, Sample, SampleOptions, Sampler,
    ThreadScope,
};
use nodewise_source::tree::Tree;
use rustix::time::{ClockId, clock_gettime};

use crate::program;

/// Time between two samples.
const PAUSE: Duration = Duration::from_secs(1);
/// Births of a turn: copies of a shell, and children that share the memory of their parent.
const COPIES_A_TURN: usize = 2;
const SHARING_A_TURN: usize = 8;
const SHORT_A_TURN: usize = COPIES_A_TURN + SHARING_A_TURN;
/// One turn in this number has a birth besides that lives for this time: longer than 5 s between two lists of
/// processes, and 8 s between two readings of an idle one.
const LONG_EVERY: u32 = 20;
const LONG: Duration = Duration::from_secs(20);
/// A process that lived longer than this must have been seen, and one that ended longer ago must be gone. A machine
/// under load takes its time to start one.
const SURE: Duration = Duration::from_secs(11);
/// Memory that the sampler may gain after its first minute.
const MOST_GROWTH: Bytes = Bytes::from_mib(16);
/// Sums of counters that are equal at rest differ by up to this part of what was counted, or this number: each
/// reading can lose or double a batch of them.
const DRIFT: (f64, u64) = (1e-4, 64);
/// How long a CPU stays in one state.
const SWITCH_EVERY: Duration = Duration::from_secs(3);

/// The account of all drivers.
#[derive(Default)]
struct Account {
    stop: AtomicBool,
    births: AtomicU64,
    /// Processes that live for long: when each began and, where it is over, when it ended.
    long: Mutex<BTreeMap<u32, (Instant, Option<Instant>)>>,
    switches: AtomicU64,
}

/// The programs of a driver: one makes processes, the other lives until it is ended.
const SHELL: &str = "sh";
const SLEEPING: &str = "sleep";
/// A name that no program has. A child that is to become it has a number and is counted by the kernel as every other,
/// shares the memory of its parent, and ends at once (`posix_spawn`, which is `vfork`): on an emulated CPU that takes
/// a small part of the time of a copy.
const NO_PROGRAM: &str = "/no/such/program";
/// The program of a shell: a process for each line that it reads, and a line when that has ended. No program is started: a
/// guest on an emulated CPU starts some ten a second.
const FORKS: &str = "while read -r _; do (:); echo; done";
/// The machine of a guest: a CPU goes while its node keeps another.
const GUEST: &str = "(2c 1G) (1G); dist=21";
/// Time that a guest has beside the samples: to boot, and for a host that is busy.
const GUEST_TIME: Duration = Duration::from_secs(900);
/// The name of this program in a guest.
const IN_GUEST: &str = "xtask";

/// The task.
pub struct Churn {
    pub seconds: u64,
    /// Births in a minute.
    pub births: u64,
    /// A CPU that is switched off and on all the while.
    pub hotplug: Option<u32>,
    /// In a guest of the lab.
    pub guest: bool,
}

/// Does it here, or in a guest.
pub fn start(churn: &Churn) -> Result<()> {
    if churn.guest { run_in_guest(&crate::root()?, churn) } else { run(churn) }
}

/// Runs the driver and the sampler, and prints what was checked.
fn run(churn: &Churn) -> Result<()> {
    ensure!(churn.births > 0 && churn.seconds > 0, "nothing to do: expected births and seconds above 0");
    let account = &Account::default();
    let drivers = std::thread::available_parallelism()?.get();
    let turns = churn.births as f64 / (SHORT_A_TURN as f64 + 1.0 / f64::from(LONG_EVERY));
    let pause = Duration::from_secs(60).mul_f64(drivers as f64 / turns);
    std::thread::scope(|scope| {
        let driving: Vec<_> = (0..drivers).map(|_| scope.spawn(|| drive(account, pause))).collect();
        let switcher = churn.hotplug.map(|cpu| scope.spawn(move || switch(account, cpu)));
        let checked = check(account, churn, drivers as u64);
        account.stop.store(true, Ordering::Relaxed);
        let mut drove = Ok(());
        for driver in driving {
            drove = drove.and(driver.join().map_err(|_| anyhow::anyhow!("a driver panicked"))?);
        }
        let switched = switcher.map_or(Ok(Ok(())), std::thread::ScopedJoinHandle::join);
        switched.map_err(|_| anyhow::anyhow!("the switch of a CPU panicked"))??;
        drove.and(checked)
    })
}

/// Does the same in a guest of the lab, where CPUs can be switched off.
fn run_in_guest(root: &Path, churn: &Churn) -> Result<()> {
    let own = root.join("target").join("churn.program");
    let mut strip = Command::new("strip");
    // A guest reads programs slowly, so what is for debuggers stays here.
    program::quiet(strip.arg("-o").arg(&own).arg(std::env::current_exe()?))?;
    let lab = Lab::find(&KernelChoice::default())?;
    let mut guest = lab.guest(Layout::new(&spec::machine(GUEST)?, &Limits::default())?);
    guest.programs = vec![(IN_GUEST.to_owned(), own)];
    // The host's files reach a guest slowly, and the drivers start programs from there several times a second.
    // The smaller a shell is, the faster it forks.
    let shell = find_program("busybox").map(|dash| (SHELL.to_owned(), dash));
    let sleeping = find_program("busybox").map(|busybox| (SLEEPING.to_owned(), busybox));
    if let Some((shell, sleeping)) = shell.zip(sleeping) {
        guest.programs.extend([shell, sleeping]);
        guest.variables.push(("PATH".into(), format!("{}:/usr/bin:/bin", script::PROGRAMS_FOLDER).into()));
    }
    guest.timeout = Duration::from_secs(churn.seconds.saturating_mul(2)) + GUEST_TIME;
    let program = Path::new(script::PROGRAMS_FOLDER).join(IN_GUEST);
    let mut words = vec![program.into_os_string(), "churn".into()];
    words.extend(
        [format!("--seconds={}", churn.seconds), format!("--births={}", churn.births)].map(OsString::from),
    );
    words.extend(churn.hotplug.map(|cpu| format!("--hotplug={cpu}").into()));
    let output = guest.run(&words)?;
    print!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status == 0, "churn ended in the guest with exit code {}", output.status);
    println!("in a guest with the machine {GUEST}");
    Ok(())
}

/// A shell that makes processes.
struct Shell {
    child: Child,
    asked: ChildStdin,
    done: BufReader<ChildStdout>,
}

impl Shell {
    fn start() -> Result<Self> {
        let mut command = Command::new(SHELL);
        command.args(["-c", FORKS]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start a shell")?;
        let ends = child.stdin.take().zip(child.stdout.take());
        let (asked, done) = ends.context("a shell has no pipes")?;
        Ok(Self { child, asked, done: BufReader::new(done) })
    }

    /// Makes processes one after the other, and waits for their end.
    fn fork(&mut self, births: usize) -> Result<()> {
        self.asked.write_all(&vec![b'\n'; births])?;
        for _ in 0..births {
            ensure!(self.done.read_line(&mut String::new())? > 0, "a shell has ended");
        }
        Ok(())
    }

    fn end(self) -> Result<()> {
        let Self { mut child, asked, done: _ } = self;
        drop(asked);
        child.wait()?;
        Ok(())
    }
}

/// Makes processes with this time between them until it is stopped.
fn drive(account: &Account, pause: Duration) -> Result<()> {
    let mut shell = Shell::start()?;
    let mut long: Vec<(Instant, Child)> = Vec::new();
    let begun = Instant::now();
    for turn in 1u32.. {
        if account.stop.load(Ordering::Relaxed) {
            break;
        }
        // A turn that is late is made up for by the next ones.
        if let Some(early) = (begun + pause * turn).checked_duration_since(Instant::now()) {
            std::thread::sleep(early);
        }
        shell.fork(COPIES_A_TURN)?;
        for _ in 0..SHARING_A_TURN {
            share()?;
        }
        if turn % LONG_EVERY == 0 {
            let mut command = Command::new(SLEEPING);
            command.arg("3600").stdin(Stdio::null()).stdout(Stdio::null());
            let child = command.spawn().context("cannot start a process")?;
            account.births.fetch_add(1, Ordering::SeqCst);
            note(account, child.id(), |_| (Instant::now(), None));
            long.push((Instant::now(), child));
        }
        account.births.fetch_add(SHORT_A_TURN as u64, Ordering::SeqCst);
        long.retain_mut(|(born, child)| born.elapsed() < LONG || end(account, child).is_err());
    }
    for (_, mut child) in long {
        end(account, &mut child)?;
    }
    shell.end()
}

/// Makes a process that shares the memory of this one and ends at once.
fn share() -> Result<()> {
    match Command::new(NO_PROGRAM).spawn() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).context("cannot make a process"),
        Ok(_) => anyhow::bail!("{NO_PROGRAM} is a program"),
    }
}

fn end(account: &Account, child: &mut Child) -> Result<()> {
    child.kill()?;
    child.wait()?;
    note(account, child.id(), |known| {
        (known.map_or_else(Instant::now, |known| known.0), Some(Instant::now()))
    });
    Ok(())
}

fn note(
    account: &Account,
    pid: u32,
    state: impl FnOnce(Option<(Instant, Option<Instant>)>) -> (Instant, Option<Instant>),
) {
    let mut long = account.long.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let state = state(long.get(&pid).copied());
    long.insert(pid, state);
}

/// Switches a CPU off and on until it is stopped; leaves it on.
fn switch(account: &Account, cpu: u32) -> Result<()> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    let set = |state: &str| std::fs::write(&path, state).with_context(|| format!("cannot write {path}"));
    while !account.stop.load(Ordering::Relaxed) {
        for state in ["0", "1"] {
            set(state)?;
            account.switches.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(SWITCH_EVERY);
        }
    }
    set("1")
}

/// Takes samples and checks each.
fn check(account: &Account, churn: &Churn, drivers: u64) -> Result<()> {
    let options = SampleOptions {
        processes: ProcessScope::All,
        threads: ThreadScope::Busy([].into()),
        groups: true,
        interrupts: InterruptScope::Counts,
        bandwidth: BandwidthScope::None,
        controllers: BandwidthScope::None,
        pages: Some(PageOptions::default()),
    };
    let mut sampler = Sampler::new(Tree::live(), options);
    let begun = Instant::now();
    let cpu_begun = cpu_time(ClockId::ProcessCPUTime);
    let mut sampling = Duration::ZERO;
    let (mut samples, mut most, mut found) = (0u64, 0, 0usize);
    let mut memory_then = None;
    let mut cpus = (usize::MAX, 0);
    let mut last: Option<(Sample, u64)> = None;
    while begun.elapsed() < Duration::from_secs(churn.seconds) {
        let births = account.births.load(Ordering::SeqCst);
        let taken = Instant::now();
        let spent = cpu_time(ClockId::ThreadCPUTime);
        let sample = sampler.sample(Moment::now());
        sampling += cpu_time(ClockId::ThreadCPUTime) - spent;
        samples += 1;
        most = most.max(sample.processes.len());
        cpus = (cpus.0.min(sample.cpus.len()), cpus.1.max(sample.cpus.len()));
        single(&sample)?;
        found += driven(account, &sample, taken)?;
        if let Some((before, births_before)) = &last {
            // Those between the end of the sample before and the beginning of this one.
            pair(before, &sample, births.saturating_sub(*births_before))?;
        }
        // Each driver may have made some that it has not counted yet.
        last = Some((sample, account.births.load(Ordering::SeqCst) + drivers * (SHORT_A_TURN as u64 + 1)));
        if begun.elapsed() > Duration::from_secs(60).min(Duration::from_secs(churn.seconds) / 2) {
            let now = resident()?;
            let then = *memory_then.get_or_insert(now);
            ensure!(now < then + MOST_GROWTH, "memory grew from {then} to {now}");
        }
        std::thread::sleep(PAUSE.saturating_sub(taken.elapsed()));
    }
    ensure!(found > 0, "no process lived long enough to be looked for");
    let births = account.births.load(Ordering::Relaxed);
    println!(
        "{samples} samples of up to {most} processes in {:.0} s, {births} births: {:.0} in a minute",
        begun.elapsed().as_secs_f64(),
        births as f64 * 60.0 / begun.elapsed().as_secs_f64()
    );
    println!(
        "of {SHORT_A_TURN} births {COPIES_A_TURN} are copies of a shell, {SHARING_A_TURN} share the memory of their parent"
    );
    println!(
        "CPU time: {:.1} ms for a sample, {:.0} % of a CPU for all of this program",
        sampling.as_secs_f64() * 1e3 / samples as f64,
        (cpu_time(ClockId::ProcessCPUTime) - cpu_begun).as_secs_f64() * 100.0 / begun.elapsed().as_secs_f64()
    );
    println!(
        "long-lived processes looked for {found} times: each was there with its beginning, and gone after its end"
    );
    println!("CPUs online: {} to {}, {} switches", cpus.0, cpus.1, account.switches.load(Ordering::Relaxed));
    println!(
        "memory: {} after the first minute, {} at the end",
        memory_then.unwrap_or_default(),
        resident()?
    );
    Ok(())
}

/// Checks what must hold in each sample.
fn single(sample: &Sample) -> Result<()> {
    let ordered = sample.processes.windows(2).all(|pair| pair[0].identity.pid < pair[1].identity.pid);
    ensure!(ordered, "processes are not in the order of their numbers, or one is there twice");
    for process in &sample.processes {
        ensure!(
            process.polled <= sample.moment,
            "process {} was read after the sample",
            process.identity.pid
        );
        if let Some(pages) = &process.pages {
            let sum: u64 = pages.nodes.values().map(|share| share.size.get()).sum();
            ensure!(sum > 0, "process {} has pages on nodes, and none", process.identity.pid);
        }
    }
    for (cpu, _) in &sample.cpus {
        let nodes = sample.nodes.iter().filter(|node| node.cpus.contains(*cpu)).count();
        ensure!(nodes <= 1, "CPU {cpu} is on {nodes} nodes");
    }
    if let (Some(memory), false) = (sample.memory, sample.nodes.is_empty()) {
        let total: u64 = sample.nodes.iter().filter_map(|node| node.size("MemTotal")).map(Bytes::get).sum();
        // Nodes lag behind where the kernel initialises page structures late.
        ensure!(total as f64 <= 1.01 * memory.get() as f64, "nodes have {total} bytes of {}", memory.get());
    }
    Ok(())
}

/// Checks that processes of the drivers are there while they live, and not after; returns how many were looked for.
fn driven(account: &Account, sample: &Sample, taken: Instant) -> Result<usize> {
    let long = account.long.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    let mut looked = 0;
    for (pid, (born, ended)) in long {
        let there = sample.processes.iter().find(|process| process.identity.pid == Pid::new(pid));
        let is_it = there.is_some_and(|process| &*process.name == SLEEPING);
        match ended {
            None if taken.saturating_duration_since(born) > SURE => {
                ensure!(is_it, "process {pid} has lived {:.0?} and was not found", taken - born);
                looked += 1;
            }
            Some(ended) if taken.saturating_duration_since(ended) > SURE => {
                ensure!(!is_it, "process {pid} ended {:.0?} ago and is there", taken - ended);
                looked += 1;
            }
            _ => (),
        }
    }
    Ok(looked)
}

/// Checks what must hold between two samples; the drivers made this number of processes between them.
fn pair(before: &Sample, after: &Sample, births: u64) -> Result<()> {
    ensure!(after.moment > before.moment, "the clock went back");
    let forks = after.forks.zip(before.forks).map(|(after, before)| after.saturating_sub(before));
    ensure!(
        forks.is_none_or(|forks| forks >= births),
        "{births} births, and the kernel counted {forks:?} forks"
    );
    for process in &after.processes {
        if let Some(earlier) = before.process(process.identity) {
            let pid = process.identity.pid;
            ensure!(process.cpu_ticks >= earlier.cpu_ticks, "CPU time of process {pid} ran backwards");
            ensure!(process.polled >= earlier.polled, "process {pid} was read before it was read");
        }
    }
    let (mut missed, mut foreign, mut all) = (0i128, 0i128, 0u64);
    for node in &after.nodes {
        let Some(earlier) = before.nodes.iter().find(|earlier| earlier.node == node.node) else { continue };
        let change = |field: fn(&nodewise_machine::NodeCounters<Option<u64>>) -> Option<u64>| {
            let counts = field(&node.allocations).zip(field(&earlier.allocations));
            counts.map_or(0, |(after, before)| i128::from(after) - i128::from(before))
        };
        let (hit, miss) = (change(|c| c.hit), change(|c| c.miss));
        let (local, other) = (change(|c| c.local), change(|c| c.other));
        let allocated = u64::try_from(hit + miss).unwrap_or(0);
        let drift = (hit + miss - local - other).unsigned_abs();
        ensure!(
            drift <= u128::from(tolerance(allocated)),
            "{}: {hit} hits and {miss} misses, and {local} local and {other} others",
            node.node
        );
        missed += miss;
        foreign += change(|c| c.foreign);
        all = all.saturating_add(allocated);
    }
    ensure!(
        (missed - foreign).unsigned_abs() <= u128::from(tolerance(all)),
        "{missed} misses, and {foreign} foreign"
    );
    Ok(())
}

fn tolerance(allocated: u64) -> u64 {
    DRIFT.1.max((allocated as f64 * DRIFT.0) as u64)
}

/// CPU time by one of the clocks that count it.
fn cpu_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Resident memory of this process.
fn resident() -> Result<Bytes> {
    let own =
        process::status(&Tree::live(), Pid::new(std::process::id()))?.context("there is no own status")?;
    own.value.resident.context("the own status has no memory")
}
