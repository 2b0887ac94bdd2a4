//! Programs that use files and memory: how much of each node is page cache, and where pages of programs are.

mod foresight;

use std::collections::BTreeMap;

use nodewise_machine::{Bytes, CpuSet, Machine, MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_model::simulate::{Act, Backing, FilePart, Mapping, Part};
use nodewise_syscall::fork::Twin;
use nodewise_syscall::{CallError, Errno, NodeBuffer, PageKind, Task, affinity, mempolicy};

use super::Stage;
use super::group::{by_node, counted, reserved};
use crate::arena::Arena;
use crate::cache::{CacheProgram, CacheScript, CacheStep, FilePages};
use crate::difference::{Aspect, Difference, Trouble, alike};
use crate::disk::{Disk, DiskFile};
use crate::kernel;
use crate::nodes::{Nodes, PAGE};
use crate::setting::{Setting, write};
use crate::tally::{Tally, VOID};
use foresight::{Facts, Foresight, Known};

/// The memory of a program in the model.
const REGION: &str = "memory";
/// Pages of a node by which the kernel's own may change meanwhile: blocks of the file system, what is read ahead behind the end of a
/// part, page tables, free pages in lists of the CPUs.
pub const OWN: u64 = 1024;
/// Pages that a CPU takes and gives back: each takes a batch out of a list that is too long.
const TAKEN: u64 = 512;
/// Nothing is written back before it has to be, lists of the CPUs are as short as they can be, and no watermark is raised.
const SETTINGS: [(&str, &str); 3] = [
    ("/proc/sys/vm/watermark_boost_factor", "0"),
    ("/proc/sys/vm/dirty_writeback_centisecs", "0"),
    ("/proc/sys/vm/percpu_pagelist_high_fraction", "1000000"),
];

/// A program in the kernel.
struct Resident {
    name: String,
    twin: Twin,
    buffer: NodeBuffer,
    taken: u64,
    cpus: CpuSet,
    policy: MemPolicy,
}

/// Files and programs. Files go before the settings are put back.
struct Cast<'a> {
    programs: Vec<Resident>,
    files: Vec<DiskFile>,
    foresight: Foresight,
    /// Page cache of each node in the beginning.
    before: BTreeMap<NodeId, u64>,
    tally: &'a mut Tally,
    _settings: Vec<Setting>,
}

impl Stage<'_> {
    pub(super) fn cache(&mut self, script: &CacheScript) -> Result<(), Trouble> {
        self.arena.disk()?;
        let mut settings = Vec::new();
        for (path, value) in SETTINGS {
            settings.push(Setting::with(path, value)?);
        }
        kernel::lower_watermarks()?;
        let files = (0..script.files()).map(|file| Disk::file(file, script.pages_of_file(file)));
        let files = files.collect::<Result<Vec<_>, String>>()?;
        crate::swap::run("sync", &[])?;
        write("/proc/sys/vm/drop_caches", "3")?;
        shorten_lists(&self.arena.machine)?;
        let facts = Facts {
            memory: kernel::memory_now(&self.memory)?.with_boost(0),
            weights: self.around.weights.clone(),
            max_nodes: self.around.max_nodes,
            release: self.around.release,
            altered: self.arena.prediction.altered,
        };
        let mut cast = Cast {
            programs: Vec::new(),
            files,
            foresight: Foresight::new(facts),
            before: BTreeMap::new(),
            tally: &mut self.trace.tally,
            _settings: settings,
        };
        for (number, program) in script.programs.iter().enumerate() {
            cast.start(self.arena, script, number, program)?;
        }
        cast.before = kernel::page_cache()?;
        script.steps.iter().try_for_each(|step| cast.step(step))
    }
}

fn say(error: CallError) -> String {
    error.to_string()
}

/// Works in a thread of its own on some CPUs.
fn on_cpus(cpus: &CpuSet, work: impl FnOnce() -> Result<(), String> + Send) -> Result<(), String> {
    let work = || {
        affinity::set_cpus(Task::CURRENT, cpus).map_err(say)?;
        work()
    };
    std::thread::scope(|scope| scope.spawn(work).join())
        .unwrap_or_else(|_| Err("a thread of the script panicked".to_owned()))
}

/// Has each CPU free pages of each node: lists that became too long while the guest was booted, or by the setting, go back to their
/// zones only then. They are not counted as free, and programs on that CPU get them: 2,000 pages of a node in the first scripts.
fn shorten_lists(machine: &Machine) -> Result<(), String> {
    let with_memory = machine.nodes_with_memory();
    let take = |node: NodeId| {
        let policy = MemPolicy::new(PolicyMode::Bind, NodeSet::from_iter([node]));
        NodeBuffer::new(Bytes::new(TAKEN * PAGE), PageKind::Small, Some(&policy)).map(drop).map_err(say)
    };
    for node in &machine.nodes_with_cpus() {
        for cpu in &machine.cpus_of(node) {
            on_cpus(&CpuSet::from_iter([cpu]), || with_memory.iter().try_for_each(take))?;
        }
    }
    Ok(())
}

impl Cast<'_> {
    fn start(
        &mut self,
        arena: &Arena,
        script: &CacheScript,
        number: usize,
        program: &CacheProgram,
    ) -> Result<(), Trouble> {
        let pages = script.pages_of(number);
        let buffer = reserved(pages, program.policy.as_ref())?;
        let twin = Twin::fork().map_err(|error| format!("fork: {error}"))?;
        // Where the model is wrong about what fits, the program is killed and not its parent.
        write(&format!("/proc/{}/oom_score_adj", twin.pid()), "1000")?;
        let cpu = arena.machine.cpus_of(program.cpu_node).first().ok_or("the node has a CPU")?;
        let cpus = CpuSet::from_iter([cpu]);
        affinity::set_cpus(twin.task(), &cpus).map_err(|error| error.to_string())?;
        let (name, policy) = (format!("p{number}"), program.policy.clone().unwrap_or(MemPolicy::DEFAULT));
        let start = Act::Start {
            cpu_node: program.cpu_node,
            policy: policy.clone(),
            allowed: arena.machine.nodes_with_memory(),
        };
        let mapping = Mapping {
            region: REGION.to_owned(),
            pages,
            backing: Backing::NeverHuge,
            policy: None,
            first_page: Some(buffer.address() as u64 / PAGE),
        };
        self.foresight.begin(&name, &start)?;
        self.foresight.begin(&name, &Act::Map(mapping))?;
        self.programs.push(Resident { name, twin, buffer, taken: 0, cpus, policy });
        Ok(())
    }

    /// A step that the model knows the end of, in the kernel, too.
    fn step(&mut self, step: &CacheStep) -> Result<(), Trouble> {
        let name = step.program().map_or("", |program| self.programs[program].name.as_str());
        match self.foresight.after(name, self.act(step))? {
            Some(next) => self.foresight = next,
            None => {
                self.tally.left_out += 1;
                return Ok(());
            }
        }
        // The last step is compared as it ended; this one must not meet a kswapd that naps.
        kernel::wait_for_kswapd()?;
        match step {
            CacheStep::Read(program, pages) => self.pass(*program, *pages, false)?,
            CacheStep::Write(program, pages) => self.pass(*program, *pages, true)?,
            CacheStep::Take(program, pages) => {
                let program = &mut self.programs[*program];
                let address = program.buffer.address() + (program.taken * PAGE) as usize;
                program.taken += pages;
                match program.twin.write(address, (pages * PAGE) as usize) {
                    Err(error) if error.errno == Errno::ECHILD => {
                        let what = format!("programs that were killed, after {}", step.text());
                        return alike(Aspect::Kills, &what, &program.name.as_str(), &"none");
                    }
                    done => done.map_err(|error| format!("{}: {error}", step.text()))?,
                }
            }
            CacheStep::Sync => crate::swap::run("sync", &[])?,
            CacheStep::Drop => kernel::drop_page_cache()?,
        }
        self.compare(&step.text())
    }

    /// A step as the model plays it.
    fn act(&self, step: &CacheStep) -> Act {
        let part = |pages: &FilePages| FilePart {
            file: format!("f{}", pages.file),
            pages: pages.first..pages.first + pages.count,
        };
        match step {
            CacheStep::Read(_, pages) => Act::Read(part(pages)),
            CacheStep::Write(_, pages) => Act::Write(part(pages)),
            CacheStep::Take(program, pages) => {
                let taken = self.programs[*program].taken;
                Act::Touch(Part { region: REGION.to_owned(), pages: Some(taken..taken + pages) })
            }
            CacheStep::Sync => Act::Sync,
            CacheStep::Drop => Act::DropCaches,
        }
    }

    /// Reads or writes pages of a file in a thread with the policy and the CPU of a program.
    fn pass(&self, program: usize, pages: FilePages, writes: bool) -> Result<(), String> {
        let (program, file) = (&self.programs[program], &self.files[pages.file]);
        on_cpus(&program.cpus, || {
            mempolicy::set_thread_policy(&program.policy).map_err(say)?;
            file.pass(pages.first, pages.count, writes)
        })
    }

    fn compare(&mut self, step: &str) -> Result<(), Trouble> {
        let mut of_programs: BTreeMap<NodeId, u64> = BTreeMap::new();
        let known = self.foresight.known();
        for own in &self.programs {
            let first = own.buffer.address() as u64 / PAGE;
            let nodes = counted(&Nodes::located(own.twin.task(), first..first + own.taken)?);
            nodes.iter().for_each(|(node, pages)| *of_programs.entry(*node).or_default() += pages);
            let ours: Vec<(NodeId, u64)> = self.foresight.placement(&own.name).nodes.into_iter().collect();
            let what = format!("pages of {} by node, after {step}", own.name);
            let sum = |pages: &[(NodeId, u64)]| pages.iter().map(|(_, count)| count).sum::<u64>();
            alike(Aspect::Pages, &what, &sum(&nodes), &sum(&ours))?;
            if !foresight::is_near(&nodes, &ours, self.foresight.blur_of(&own.name)) {
                alike(Aspect::Pages, &what, &by_node(nodes), &by_node(ours))?;
            }
        }
        let now = kernel::page_cache()?;
        for (node, least, most) in self.foresight.cache() {
            let grown = now.get(&node).copied().unwrap_or(0) as i64
                - self.before.get(&node).copied().unwrap_or(0) as i64;
            let (what, kernel) = match known {
                Known::Apart => ("page cache", grown),
                Known::Together => {
                    let own = of_programs.get(&node).copied().unwrap_or(0) as i64;
                    ("page cache and pages of programs together", grown + own)
                }
            };
            self.within(&format!("{what} of node {node}, after {step}"), node, kernel, (least, most))?;
        }
        Ok(())
    }

    /// Compares a figure with an interval, which must not be so wide that it says nothing.
    fn within(
        &mut self,
        what: &str,
        node: NodeId,
        kernel: i64,
        (least, most): (i64, i64),
    ) -> Result<(), Trouble> {
        let width = self.tally.interval(most.abs_diff(least), self.foresight.managed(node));
        let differs = |aspect| {
            let model = format!("{least} to {most}");
            Trouble::Differs(Difference { aspect, what: what.to_owned(), kernel: kernel.to_string(), model })
        };
        if width >= VOID {
            return Err(differs(Aspect::Width));
        }
        if (least..=most).contains(&kernel) { Ok(()) } else { Err(differs(Aspect::Cache)) }
    }
}
