//! Twelve programs that start and end while a manager places them: nodewise, numad, the kernel, or none.
//! `cargo xtask balance-soak` runs them. The remote share is what the programs count themselves, with `move_pages(2)` of one page in 61,
//! and the CPU on which they spent their time; no program may ever be outside of its cpuset or against its policy.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nodewise_machine::{CpuId, NodeId};
use nodewise_syscall::{Task, affinity};

use super::moving::{expect, file};
use super::same;
use super::ways::Nodes;
use crate::cpuset::Cpuset;
use crate::guest::FIGURE;
use crate::kernel;
use crate::nodewise::{Context, complaint};
use crate::observer::{Observed, threads};
use crate::setting::Setting;

const BALANCING: &str = "/proc/sys/kernel/numa_balancing";
/// Memory of each program in KiB: more than the 300 MB below which numad leaves a process alone.
const MEMORY: u64 = 320 << 10;
/// The part of a CPU that each wants, in percent: more than the half below which numad leaves a process alone. Of a guest whose
/// CPUs are always at work, nothing is left for a manager: the host emulates them one instruction after the other.
const DUTY: u32 = 60;
/// Programs that start, and how many of them run at one time.
const PROGRAMS: u64 = 12;
const AT_ONCE: usize = 4;
/// The time in which numad goes into the background.
const START: Duration = Duration::from_secs(2);
/// Time between two looks at all programs.
const LOOK: Duration = Duration::from_secs(5);
/// Limits of balance for a guest with small nodes.
const LIMITS: [&str; 9] = [
    "--window=5s",
    "--windows=2",
    "--min-size=64M",
    "--min-age=5s",
    "--min-cpu=20",
    "--settle=5s",
    "--rest=30s",
    "--keep-available=2",
    "--pause-psi=100",
];

/// Who places the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manager {
    Nodewise,
    Numad,
    Kernel,
    Nobody,
}

impl Manager {
    /// Starts it; the kernel's balancing is a setting.
    fn start(self, context: &Context, journal: &str, words_to: &Path) -> Result<Option<Child>, String> {
        let mut command = match self {
            Self::Kernel | Self::Nobody => return Ok(None),
            Self::Nodewise => {
                let mut command = Command::new(context.path());
                command.args(["balance", "--apply", journal]).args(LIMITS);
                command
            }
            Self::Numad => {
                // It looks every two to five seconds.
                let mut command = Command::new("numad");
                command.args(["-i", "2:5"]);
                command
            }
        };
        let words = |path: &Path| fs::File::options().create(true).append(true).open(path).map(Stdio::from);
        let (output, errors) = (words(words_to), words(words_to));
        let [output, errors] = [output, errors].map(|file| file.unwrap_or_else(|_| Stdio::null()));
        let child = command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn();
        let child = child.map_err(|error| format!("{self:?}: {error}"))?;
        // numad goes on in the background, if it does.
        if self == Self::Numad {
            std::thread::sleep(START);
            expect(!named("numad").is_empty(), || "numad ended at once: see /var/log/numad.log".to_owned())?;
        }
        Ok(Some(child))
    }
}

/// Processes of a name.
fn named(name: &str) -> Vec<u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let pids = all.filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok());
    pids.filter(|pid| kernel::line(&format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == name)).collect()
}

/// Ends a manager with `kill -9`.
fn kill(manager: &mut Option<Child>) {
    if let Some(mut child) = manager.take() {
        let _ = child.kill();
        let _ = child.wait();
    }
    for pid in named("numad") {
        let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
    }
}

/// How others placed a program.
#[derive(Clone, Debug)]
enum Placed {
    Free,
    /// Its memory by a policy.
    Bound(NodeId),
    /// Its CPU.
    Pinned(CpuId),
    /// Its memory and CPUs by a cpuset.
    Inside(NodeId),
}

/// A program that runs.
struct Running {
    program: Observed,
    placed: Placed,
    _group: Option<Cpuset>,
    until: Instant,
}

impl Running {
    /// The number says how it is placed, and where; every fourth is placed by others.
    fn start(context: &Context, number: u64, length: Duration) -> Result<Self, String> {
        let Nodes { ids, cpus } = Nodes::find(context)?;
        let at = number as usize % 4;
        let (home, away) = (at, (at + 2) % 4);
        let mut group = None;
        // Huge pages, as Debian gives them to every program: in an emulated guest they move four times as fast.
        let works = format!("kib={MEMORY} duty={DUTY} pages=transparent reads");
        let way = format!("{works} cpu={} touched-on={}", cpus[home], cpus[away]);
        let (placed, way) = match number % 6 {
            3 => (Placed::Bound(ids[away]), format!("{works} cpu={} policy=bind:{}", cpus[home], ids[away])),
            4 => (Placed::Pinned(cpus[home]), way),
            5 => (Placed::Inside(ids[home]), works),
            _ => (Placed::Free, way),
        };
        let mut before = Vec::new();
        if let Placed::Inside(node) = placed {
            let all = context.seen.cpus_of(node).to_string();
            let made = Cpuset::new(&all, &node.to_string())?;
            before = vec![
                "sh".to_owned(),
                "-c".to_owned(),
                format!("echo $$ > {} && exec \"$@\"", made.tasks()),
                "sh".to_owned(),
            ];
            group = Some(made);
        }
        let words: Vec<&str> = before.iter().map(String::as_str).collect();
        let mut program = Observed::start(&format!("program {number}"), &words, &way)?;
        if matches!(placed, Placed::Free | Placed::Bound(_)) {
            super::balance::free(context, &program)?;
        }
        program.ask("work")?;
        Ok(Self { program, placed, _group: group, until: Instant::now() + length })
    }

    /// Its remote bytes and all, by where it ran since the last look; and whether it is where others placed it.
    fn look(&mut self, context: &Context) -> Result<(f64, f64), String> {
        let time = self.program.spent()?;
        // One page in 61 is in every huge page.
        let nodes = self.program.sampled()?;
        self.is_where_others_placed_it(context, &nodes)?;
        let (all, used): (u64, f64) = (nodes.values().sum(), time.values().sum());
        if used <= 0.0 {
            return Ok((0.0, 0.0));
        }
        let near: f64 =
            time.iter().map(|(node, time)| nodes.get(node).copied().unwrap_or(0) as f64 * time / used).sum();
        // Programs are of one size, however many of their pages were counted.
        let size = (MEMORY << 10) as f64 / f64::max(all as f64, 1.0);
        Ok(((all as f64 - near) * size, all as f64 * size))
    }

    fn has_ended(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.program.pid));
        stat.map_or(true, |stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X'])))
    }

    /// Whether all of its pages are where others placed them, at its end.
    fn end(&mut self, context: &Context) -> Result<(), String> {
        let start = self.program.address;
        let pages = self.program.pages()?;
        // Its memory begins within the mapping where huge pages had to be aligned.
        let nodes = pages.range(..=start).next_back().map(|(_, pages)| pages.nodes.clone());
        let nodes = nodes.ok_or("its memory is in no mapping")?;
        self.is_where_others_placed_it(context, &nodes)
    }

    fn is_where_others_placed_it(&self, context: &Context, nodes: &BTreeMap<u32, u64>) -> Result<(), String> {
        let pid = self.program.pid;
        let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(|error| error.to_string())?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            kernel::list(line.unwrap_or_default().trim())
        };
        let only_on = |node: &NodeId| nodes.keys().all(|on| *on == node.number());
        let broken = |what: &str| Err(format!("{} {what}: {nodes:?}, {status}", self.program.name));
        match &self.placed {
            Placed::Free => Ok(()),
            Placed::Bound(node) if only_on(node) => Ok(()),
            Placed::Bound(_) => broken("has memory against its policy"),
            Placed::Pinned(cpu) if field("Cpus_allowed_list") == [cpu.number()] => Ok(()),
            Placed::Pinned(_) => broken("has other CPUs than it was given"),
            Placed::Inside(node) => {
                let all: Vec<u32> = context.seen.cpus_of(*node).iter().map(|cpu| cpu.number()).collect();
                if field("Cpus_allowed_list") == all
                    && field("Mems_allowed_list") == [node.number()]
                    && only_on(node)
                {
                    Ok(())
                } else {
                    broken("is outside of its cpuset")
                }
            }
        }
    }
}

/// Pages that the kernel moved since boot.
fn migrated() -> Result<u64, String> {
    let text = fs::read_to_string("/proc/vmstat").map_err(|error| error.to_string())?;
    let found = text.lines().find_map(|line| line.strip_prefix("pgmigrate_success "));
    found.and_then(|count| count.parse().ok()).ok_or_else(|| "no pgmigrate_success".to_owned())
}

/// Remote bytes of looks, and all.
#[derive(Clone, Copy, Debug, Default)]
struct Remote {
    away: f64,
    all: f64,
}

impl Remote {
    fn add(&mut self, (away, all): (f64, f64)) {
        self.away += away;
        self.all += all;
    }

    /// In percent.
    fn share(self) -> f64 {
        self.away / f64::max(self.all, 1.0) * 100.0
    }
}

/// All programs under one manager, which is killed in the middle.
fn managed(context: &Context, manager: Manager) -> Result<(), String> {
    let length = context.length.ok_or("expected a length")?;
    let _balancing = Setting::with(BALANCING, if manager == Manager::Kernel { "1" } else { "0" })?;
    let journal_file = file(&format!("managed-{manager:?}"));
    let _ = fs::remove_file(&journal_file);
    let journal = format!("--journal={}", journal_file.display());
    let words_file = file(&format!("managed-{manager:?}-words"));
    let _ = fs::remove_file(&words_file);
    let mut child = manager.start(context, &journal, &words_file)?;
    let (begun, moved) = (Instant::now(), migrated()?);
    let each = length * AT_ONCE as u32 / PROGRAMS as u32;
    let (mut running, mut next): (Vec<Running>, u64) = (Vec::new(), 0);
    // Of all programs, and of those that others did not place.
    let (mut remote, mut of_free) = (Remote::default(), Remote::default());
    let (mut broken, mut killed) = (Vec::new(), 0u32);
    let mut shares: Vec<String> = Vec::new();
    while begun.elapsed() < length {
        running.retain_mut(|program| {
            let stays = Instant::now() < program.until;
            if !stays {
                let ended = program.end(context);
                broken.extend(ended.err().filter(|_| !program.has_ended()));
                killed += u32::from(program.has_ended());
            }
            stays
        });
        while running.len() < AT_ONCE && next < PROGRAMS {
            running.push(Running::start(context, next, each)?);
            next += 1;
        }
        std::thread::sleep(LOOK);
        let mut of_look = Remote::default();
        for program in &mut running {
            match program.look(context) {
                Ok(seen) => {
                    of_look.add(seen);
                    if matches!(program.placed, Placed::Free) {
                        of_free.add(seen);
                    }
                }
                // The kernel kills programs where a node that others bound them to is full: no manager did that.
                Err(_) if program.has_ended() => program.until = Instant::now(),
                Err(why) => broken.push(why),
            }
        }
        remote.add((of_look.away, of_look.all));
        shares.push(format!("{:.0}", of_look.share()));
        // The middle: it is killed, maybe while pages move, and another one begins where that has left things.
        if child.is_some()
            && begun.elapsed() > length / 2
            && shares.len() > 1
            && !shares.contains(&"|".to_owned())
        {
            kill(&mut child);
            shares.push("|".to_owned());
            child = manager.start(context, &journal, &words_file)?;
        }
    }
    kill(&mut child);
    let moved = (migrated()? - moved) * 4096;
    println!(
        "{FIGURE}{manager:?}: remote share {:.1} % of {next} programs, {:.1} % of those that others did not place, in {:.0} s, {} MiB moved, {} times against what others set, {killed} programs ended too early; by look: {}",
        remote.share(),
        of_free.share(),
        begun.elapsed().as_secs_f64(),
        moved >> 20,
        broken.len(),
        shares.join(" ")
    );
    if manager == Manager::Nodewise {
        // What both have done is in one journal, and goes back.
        for line in fs::read_to_string(&words_file).unwrap_or_default().lines() {
            println!("{FIGURE}  {line}");
        }
        taken_back(context, &journal, &running)?;
    }
    drop(running);
    // numad does what it does: its block is measured, and not judged.
    if manager == Manager::Numad {
        return Ok(());
    }
    broken.first().map_or(Ok(()), |first| Err(format!("{} times: {first}", broken.len())))
}

/// Undo after a kill: nothing is left to take back, and free programs have all CPUs.
fn taken_back(context: &Context, journal: &str, running: &[Running]) -> Result<(), String> {
    let undone = context.output(&["balance", "undo", "--all", journal])?;
    let code = undone.status.code();
    // 1: pages that had no room; 3: it had done nothing.
    expect(matches!(code, Some(0 | 1 | 3)), || format!("undo: {code:?}: {}", complaint(&undone)))?;
    for program in running.iter().filter(|program| matches!(program.placed, Placed::Free)) {
        for thread in threads(program.program.pid)? {
            let task = Task::new(thread).ok_or("thread 0")?;
            let cpus = affinity::cpus(task).map_err(|error| error.to_string())?;
            same(&format!("CPUs of {}", program.program.name), &cpus, &context.seen.online_cpus())?;
        }
    }
    Ok(())
}

pub fn by_nodewise(context: &Context) -> Result<(), String> {
    managed(context, Manager::Nodewise)
}

pub fn by_numad(context: &Context) -> Result<(), String> {
    managed(context, Manager::Numad)
}

pub fn by_the_kernel(context: &Context) -> Result<(), String> {
    managed(context, Manager::Kernel)
}

pub fn by_nobody(context: &Context) -> Result<(), String> {
    managed(context, Manager::Nobody)
}
