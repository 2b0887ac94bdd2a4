//! Threads and processes: who they are, and what they inherited.

use nodewise_machine::{CpuId, Pid};
use nodewise_model::policy::set::Policy;
use nodewise_source::parse::pid_stat;
use nodewise_source::parse::proc_status::ProcessStatus;
use nodewise_source::paths;
use nodewise_source::process::{self, claims};

use super::call::{ESRCH, Stop};
use super::space::{ALL, Space};
use super::world::{Inherited, Process, Thread, World};

/// Threads that are known before the ended ones are looked for.
const FEW: usize = 64;

/// A thread by its files in `/proc`.
#[derive(Clone, Copy, Debug)]
struct Found {
    process: u32,
    parent: u32,
    session: u32,
}

fn read(task: u32, file: &str) -> Option<String> {
    let bytes = std::fs::read(format!("{}/{file}", paths::process(task))).ok()?;
    // Names of programs are any bytes.
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// When a thread began, and the CPU that it ran on last.
fn began(task: u32) -> Option<(u64, Option<CpuId>)> {
    let stat = read(task, "stat")?;
    let stat = pid_stat::parse(&stat).ok()?;
    Some((stat.started_ticks, stat.processor))
}

/// The CPU of this computer that a thread ran on last.
pub fn real_cpu(thread: u32) -> Option<CpuId> {
    began(thread).and_then(|(_, processor)| processor)
}

/// Numbers in a folder of `/proc`.
fn numbers(path: &str) -> Vec<u32> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

impl World {
    /// The process of a thread, which is known from now on.
    ///
    /// # Errors
    /// `ESRCH`: the thread does not exist.
    pub fn process_of(&mut self, thread: u32) -> Result<u32, Stop> {
        let (started, _) = began(thread).ok_or(Stop::Errno(ESRCH))?;
        if let Some(known) = self.threads.get(&thread).filter(|known| known.started == started) {
            return Ok(known.process);
        }
        let Found { process, parent, session } = self.found(thread).ok_or(Stop::Errno(ESRCH))?;
        let own = if process == thread {
            self.start_process(process, parent, session)
        } else {
            // The first thread may have ended or never called; it inherited what this one can know of.
            self.process_of(process).ok();
            let starter = self.processes.get(&process).and_then(|process| process.starter.clone());
            starter.or_else(|| Some(self.threads.get(&process)?.own.clone())).unwrap_or_else(|| self.fresh())
        };
        self.threads.insert(thread, Thread { started, process, own });
        self.forget_ended();
        Ok(process)
    }

    /// Policy and CPUs of a thread; of one that has ended meanwhile those of a program that inherited nothing.
    pub fn own(&self, thread: u32) -> Inherited {
        self.threads.get(&thread).map_or_else(|| self.fresh(), |known| known.own.clone())
    }

    /// Policy and CPUs of a program that inherited nothing.
    fn fresh(&self) -> Inherited {
        Inherited { policy: Policy::DEFAULT, cpus: self.facts.cpus.clone() }
    }

    /// A process that has not called before: what its first thread has inherited.
    fn start_process(&mut self, process: u32, parent: u32, session: u32) -> Inherited {
        let image = self.image(process);
        let known = self.threads.contains_key(&parent).then(|| self.processes.get(&parent)).flatten();
        let inherited = known.and_then(|known| known.starter.clone());
        let inherited = inherited.or_else(|| Some(self.threads.get(&parent)?.own.clone()));
        // A child that has become another program has its parent's policy and none of its memory.
        let own = known.filter(|known| known.space.image == image).map(|known| known.space.own.inherited());
        let space =
            Space { image, is_shared: own.is_some(), own: own.unwrap_or_default(), remaps: Vec::new() };
        let is_inside = known.is_some_and(|known| known.is_inside);
        if let Some(mut before) = self.processes.insert(process, Process { starter: None, is_inside, space })
        {
            before.space.own.release(ALL, &mut self.memory);
        }
        inherited.or_else(|| self.orphans.get(&session).cloned()).unwrap_or_else(|| self.fresh())
    }

    /// A thread is about to start another, or a process.
    pub fn note_start(&mut self, thread: u32) -> Result<(), Stop> {
        let process = self.process_of(thread)?;
        self.follow_remaps(process, thread);
        let own = self.own(thread);
        let starter = self.processes.get(&process).and_then(|process| process.starter.as_ref());
        if starter != Some(&own) {
            // Those that were started before inherited something else.
            self.know_all_of(process);
            if let Some(session) = self.found(thread).map(|found| found.session) {
                self.orphans.insert(session, own.clone());
            }
            self.processes.entry(process).or_default().starter = Some(own);
        }
        Ok(())
    }

    /// A process ends by itself: its pages count, and are free again. Which pages a child without a program of its own has
    /// written to cannot be seen.
    pub fn end(&mut self, thread: u32) -> Result<i64, Stop> {
        let process = self.process_of(thread)?;
        if self.processes.get(&process).is_some_and(|known| !known.space.is_shared) {
            // Whatever cannot be read of it any more does not keep it from ending.
            let _ = self.settle(process, thread, &ALL);
        }
        if let Some(known) = self.processes.get_mut(&process) {
            known.space.own.release(ALL, &mut self.memory);
        }
        Err(Stop::Kernel)
    }

    /// Gives nodes to all pages of all programs, as touched by the thread that calls, and in other processes by the first one.
    pub fn settle_all(&mut self, caller: u32) {
        let inside = |world: &Self| -> Vec<u32> {
            let all = world.processes.iter().filter(|(_, known)| known.is_inside);
            all.map(|(process, _)| *process).collect()
        };
        for process in inside(self) {
            self.know_all_of(process);
        }
        self.forget_all_ended();
        let own = self.threads.get(&caller).map(|thread| thread.process);
        for process in inside(self) {
            if self.processes.get(&process).is_some_and(|known| !known.space.is_shared) {
                // Those that end meanwhile have counted.
                let _ = self.settle(process, if Some(process) == own { caller } else { process }, &ALL);
            }
        }
    }

    /// Gives the threads and children of a process that have not called yet what they have inherited.
    fn know_all_of(&mut self, process: u32) {
        let tasks = format!("{}/task", paths::process(process));
        for thread in numbers(&tasks) {
            // Those that end meanwhile need nothing.
            let _ = self.process_of(thread);
            let children = std::fs::read_to_string(format!("{tasks}/{thread}/children")).unwrap_or_default();
            for child in children.split_ascii_whitespace().filter_map(|child| child.parse().ok()) {
                let _ = self.process_of(child);
            }
        }
    }

    /// Forgets threads and processes that have ended, when there are twice as many as the last time.
    fn forget_ended(&mut self) {
        if self.threads.len() >= 2 * self.kept_threads.max(FEW) {
            self.forget_all_ended();
        }
    }

    fn forget_all_ended(&mut self) {
        self.threads
            .retain(|thread, known| began(*thread).is_some_and(|(started, _)| started == known.started));
        let threads = &self.threads;
        let memory = &mut self.memory;
        self.processes.retain(|process, known| {
            let lives = threads.values().any(|thread| thread.process == *process);
            if !lives {
                known.space.own.release(ALL, memory);
            }
            lives
        });
        self.kept_threads = self.threads.len();
    }

    fn status_of(&self, task: u32) -> Option<ProcessStatus> {
        process::status(&self.here, Pid::new(task)).ok().flatten().map(|parsed| parsed.value)
    }

    fn found(&self, task: u32) -> Option<Found> {
        let status = self.status_of(task)?;
        Some(Found { process: status.process?, parent: status.parent?, session: status.session.unwrap_or(0) })
    }

    /// The program that a process runs, by its addresses.
    pub fn image(&self, process: u32) -> Option<String> {
        claims::image(&self.here, Pid::new(process))
    }

    /// The CPU that a thread is on: the real one where the machine has it and the thread may use it, else the first that it
    /// may use.
    pub fn cpu_of(&self, thread: u32) -> CpuId {
        let cpus = self.threads.get(&thread).map_or(&self.facts.cpus, |thread| &thread.own.cpus);
        real_cpu(thread).filter(|cpu| cpus.contains(*cpu)).or_else(|| cpus.first()).unwrap_or(CpuId::new(0))
    }

    /// Whether a thread has `CAP_SYS_NICE`.
    pub fn may_move_others(&self, thread: u32) -> bool {
        const CAP_SYS_NICE: u32 = 23;
        self.status_of(thread).and_then(|status| status.has_capability(CAP_SYS_NICE)).unwrap_or(false)
    }
}
