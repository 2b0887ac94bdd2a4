//! Programs in a control group with limits: who is killed, how much is swapped out, and where pages are.

mod foresight;

use std::time::Duration;

use nodewise_machine::{Bytes, CpuSet, MemPolicy, NodeId};
use nodewise_model::simulate::{Act, Backing, GroupLimits, Mapping, Part};
use nodewise_syscall::advice::advise;
use nodewise_syscall::fork::Twin;
use nodewise_syscall::{Advice, BindOptions, Errno, NodeBuffer, PageKind, affinity, mempolicy};

use super::Stage;
use crate::arena::Arena;
use crate::difference::{Aspect, Difference, Trouble, alike};
use crate::group::{GroupProgram, GroupScript, GroupStep, Limit, Limits};
use crate::kernel;
use crate::limited::LimitedGroup;
use crate::nodes::{Nodes, PAGE};
use crate::tally::{Tally, VOID};
use foresight::{Facts, Foresight, GROUP};

/// The memory of a program in the model.
const REGION: &str = "memory";
/// Pages that a group is charged for beside those of a program's memory: its stack and what it shares with its parent until it writes
/// there, upper page tables, objects of the kernel.
const OWN: u64 = 24;
/// Pages of a program whose page table fills one: 512, and as many again for objects of the kernel.
const IN_TABLE: u64 = 256;
/// `MEMCG_CHARGE_BATCH` of `include/linux/memcontrol.h`: pages that a CPU may have charged in advance. Reclaim takes up to as many from
/// each node beyond what is wanted, and as many again are in swap that are not free yet (seen on 6.12).
const BATCH: u64 = 64;
/// The time that a killed program may take to end.
const END: Duration = Duration::from_secs(10);

/// A program of a group in the kernel.
struct Resident {
    name: String,
    twin: Twin,
    buffer: NodeBuffer,
    taken: u64,
    is_inside: bool,
}

/// A group with its programs. They end before it does.
struct Cast<'a> {
    programs: Vec<Resident>,
    group: LimitedGroup,
    limits: Limits,
    has_swap: bool,
    foresight: Foresight,
    overhead: u64,
    /// Pages that were swapped out when a limit was written.
    written_out: u64,
    /// Whether the kernel reclaims by generations of pages.
    has_generations: bool,
    /// Pages of the group after it was first reclaimed.
    first_reclaimed: Option<u64>,
    /// Set when nothing says any more how much of the group is in swap, or who runs.
    is_lost: bool,
    tally: &'a mut Tally,
}

impl Stage<'_> {
    pub(super) fn group(&mut self, script: &GroupScript) -> Result<(), Trouble> {
        let count = script.programs.len() as u64;
        let pages: u64 = (0..script.programs.len()).map(|program| script.pages_of(program)).sum();
        let overhead = OWN * count + pages / IN_TABLE;
        kernel::drop_page_cache()?;
        let facts = Facts {
            memory: kernel::memory_now(&self.memory)?,
            weights: self.around.weights.clone(),
            max_nodes: self.around.max_nodes,
            release: self.around.release,
            swap: if script.has_swap { self.arena.swap()? } else { 0 },
            overhead,
            altered: self.arena.prediction.altered,
        };
        let mut cast = Cast {
            programs: Vec::new(),
            group: LimitedGroup::new(&script.limits, &script.mems, script.has_swap)?,
            limits: script.limits,
            has_swap: script.has_swap,
            foresight: Foresight::new(facts),
            overhead,
            written_out: 0,
            has_generations: self.arena.machine.settings.lru_gen_enabled != Some(false),
            first_reclaimed: None,
            is_lost: false,
            tally: &mut self.trace.tally,
        };
        cast.foresee(vec![(String::new(), limit_act(script.limits))])?;
        for (number, program) in script.programs.iter().enumerate() {
            cast.start(self.arena, script, number, program)?;
        }
        script.steps.iter().try_for_each(|step| cast.step(step))
    }
}

impl Cast<'_> {
    /// Has the model play acts; `false` where it does not know who is killed, and nothing is to be done.
    fn foresee(&mut self, acts: Vec<(String, Act)>) -> Result<bool, String> {
        match self.foresight.after(acts)? {
            Some(next) => {
                self.foresight = next;
                Ok(true)
            }
            None => {
                self.tally.left_out += 1;
                Ok(false)
            }
        }
    }

    /// Starts a program: it maps its memory outside, and then joins the group.
    fn start(
        &mut self,
        arena: &Arena,
        script: &GroupScript,
        number: usize,
        program: &GroupProgram,
    ) -> Result<(), Trouble> {
        let pages = script.pages_of(number);
        let buffer = reserved(pages, program.policy.as_ref())?;
        let twin = Twin::fork().map_err(|error| format!("fork: {error}"))?;
        let first_page = Some(buffer.address() as u64 / PAGE);
        let name = format!("p{number}");
        let mapping = Mapping {
            region: REGION.to_owned(),
            pages,
            backing: Backing::NeverHuge,
            policy: program.policy.clone(),
            first_page,
        };
        let start = Act::Start {
            cpu_node: program.cpu_node,
            policy: MemPolicy::DEFAULT,
            allowed: arena.machine.nodes_with_memory(),
        };
        let mut acts = vec![start, Act::Map(mapping)];
        if program.is_inside {
            self.group.set("cgroup.procs", &twin.pid().to_string())?;
            acts.extend([Act::Join { group: GROUP.to_owned() }, Act::Restrict(script.mems.clone())]);
        }
        let cpu = arena.machine.cpus_of(program.cpu_node).first().ok_or("the node has a CPU")?;
        affinity::set_cpus(twin.task(), &CpuSet::from_iter([cpu])).map_err(|error| error.to_string())?;
        self.foresee(acts.into_iter().map(|act| (name.clone(), act)).collect())?;
        self.programs.push(Resident { name, twin, buffer, taken: 0, is_inside: program.is_inside });
        Ok(())
    }

    /// A step that the model knows the end of, in the kernel, too.
    fn step(&mut self, step: &GroupStep) -> Result<(), Trouble> {
        if self.is_lost {
            self.tally.left_out += 1;
            return Ok(());
        }
        if step.program().is_some_and(|program| !self.foresight.runs(&self.programs[program].name)) {
            return Ok(());
        }
        let before = self.foresight.group().0.swap;
        let ran: Vec<bool> = self.programs.iter().map(|own| self.foresight.runs(&own.name)).collect();
        if !self.foresee(self.acts(step))? {
            return Ok(());
        }
        match step {
            GroupStep::Take(program, pages) => {
                let program = &mut self.programs[*program];
                let address = program.buffer.address() + (program.taken * PAGE) as usize;
                program.taken += pages;
                // A program that is killed does not answer.
                match program.twin.write(address, (pages * PAGE) as usize) {
                    Err(error) if error.errno == Errno::ECHILD => wait_until(|| has_ended(&program.twin)),
                    Err(error) => return Err(format!("{}: {error}", step.text()).into()),
                    Ok(()) => {}
                }
            }
            GroupStep::Limit(limit, pages) => {
                self.limits = limits_with(self.limits, *limit, *pages);
                self.written_out += self.foresight.group().0.swap.saturating_sub(before);
                self.group.limit(limit.file(), *pages)?;
            }
            GroupStep::Allow(nodes) => self.group.set("cpuset.mems", &nodes.to_string())?,
            GroupStep::Adjust(program, value) => {
                let path = format!("/proc/{}/oom_score_adj", self.programs[*program].twin.pid());
                crate::setting::write(&path, &value.to_string())?;
            }
        }
        self.wait_for_ends();
        if self.has_killed_for_nothing(&ran)? {
            self.is_lost = true;
            self.tally.left_out += 1;
            return Ok(());
        }
        self.compare(&step.text())
    }

    /// Whether the kernel has killed those that the model names, and then others although there was room for all of these: it looks for
    /// the next one as soon as the memory of the first is unmapped, and gives that back a little later.
    fn has_killed_for_nothing(&self, ran: &[bool]) -> Result<bool, String> {
        let runs = |own: &Resident| self.foresight.runs(&own.name);
        let has_others = self.programs.iter().any(|own| runs(own) && has_ended(&own.twin));
        let has_first = self.programs.iter().zip(ran).any(|(own, ran)| *ran && !runs(own));
        let Some(max) = self.limits.max.filter(|_| has_first && has_others) else { return Ok(false) };
        let killed = kernel::killed()?;
        let pages = |own: &Resident| {
            if has_ended(&own.twin) { killed.get(&own.twin.pid()).copied() } else { Some(own.taken) }
        };
        let inside = self.programs.iter().filter(|own| own.is_inside && runs(own));
        // Nothing is known of one that was killed without a word.
        let all: Option<u64> = inside.map(pages).sum();
        Ok(all.is_some_and(|all| all + self.overhead + self.ahead() <= max))
    }

    /// A step as the model plays it.
    fn acts(&self, step: &GroupStep) -> Vec<(String, Act)> {
        let name = |program: usize| self.programs[program].name.clone();
        match step {
            GroupStep::Take(program, pages) => {
                let taken = self.programs[*program].taken;
                let part = Part { region: REGION.to_owned(), pages: Some(taken..taken + pages) };
                vec![(name(*program), Act::Touch(part))]
            }
            GroupStep::Limit(limit, pages) => {
                vec![(String::new(), limit_act(limits_with(self.limits, *limit, *pages)))]
            }
            GroupStep::Allow(nodes) => {
                let inside = self.programs.iter().filter(|program| program.is_inside);
                let runs = inside.filter(|program| self.foresight.runs(&program.name));
                runs.map(|program| (program.name.clone(), Act::Restrict(nodes.clone()))).collect()
            }
            GroupStep::Adjust(program, value) => vec![(name(*program), Act::AdjustOom(*value))],
        }
    }

    /// Compares who runs, what happened to the group, and where pages are.
    fn compare(&mut self, step: &str) -> Result<(), Trouble> {
        let dead = |is_dead: &dyn Fn(&Resident) -> bool| {
            let names: Vec<&str> =
                self.programs.iter().filter(|own| is_dead(own)).map(|own| own.name.as_str()).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        let (kernels, ours) =
            (dead(&|own| has_ended(&own.twin)), dead(&|own| !self.foresight.runs(&own.name)));
        alike(Aspect::Kills, &format!("programs that were killed, after {step}"), &kernels, &ours)?;
        self.compare_events()?;
        // Of a program that is killed nothing says how much was in swap, and with it how much of the others is.
        let inside = || self.programs.iter().filter(|own| own.is_inside);
        let runs = |own: &Resident| self.foresight.runs(&own.name);
        self.is_lost = self.has_swap && !inside().all(runs) && inside().any(runs);
        if self.is_lost { Ok(()) } else { self.compare_pages() }
    }

    /// Gives programs that the kernel has killed the time to end.
    fn wait_for_ends(&self) {
        let ends = |own: &Resident| self.foresight.runs(&own.name) || has_ended(&own.twin);
        wait_until(|| self.programs.iter().all(ends));
    }

    fn compare_events(&mut self) -> Result<(), Trouble> {
        let (few, _) = self.foresight.group();
        let kills = self.group.events("oom_kill")?;
        // Where all of a group are killed the kernel counts the first one twice, unless its memory is gone by then.
        let again = if self.limits.kills_all { self.group.events("oom_group_kill")? } else { 0 };
        if !(few.killed..=few.killed + again).contains(&kills) {
            alike(Aspect::Limits, "oom_kill of memory.events", &kills, &few.killed)?;
        }
        let happened = |is: bool| if is { "at least 1" } else { "0" };
        let ooms = self.group.events("oom")?;
        alike(Aspect::Limits, "oom of memory.events", &happened(ooms > 0), &happened(few.ooms > 0))?;
        for (name, limit) in [("max", self.limits.max), ("high", self.limits.high)] {
            let count = self.group.events(name)?;
            let (is_certain, is_possible) = self.foresight.met(name);
            // What CPUs have charged in advance can meet a limit, too.
            let ahead = few.peak + self.overhead + self.ahead();
            let is_possible = is_possible || limit.is_some_and(|limit| ahead > limit);
            if count == 0 && is_certain || count > 0 && !is_possible {
                let what = format!("{name} of memory.events");
                alike(Aspect::Limits, &what, &happened(count > 0), &happened(is_certain))?;
            }
        }
        Ok(())
    }

    /// Pages that the CPUs of the programs may have charged in advance.
    fn ahead(&self) -> u64 {
        BATCH * self.programs.len() as u64
    }

    fn compare_pages(&mut self) -> Result<(), Trouble> {
        let (mut present, mut absent) = (0, 0);
        for own in self.programs.iter().filter(|own| self.foresight.runs(&own.name)) {
            let first = own.buffer.address() as u64 / PAGE;
            let nodes = Nodes::located(own.twin.task(), first..first + own.taken)?;
            let there = nodes.0.iter().filter(|node| node.is_some()).count() as u64;
            if !own.is_inside || !self.has_swap {
                let ours = self.foresight.placement(&own.name);
                let what = format!("pages of {} by node", own.name);
                alike(
                    Aspect::Pages,
                    &what,
                    &by_node(counted(&nodes)),
                    &by_node(ours.nodes.into_iter().collect()),
                )?;
            }
            if own.is_inside {
                present += there;
                absent += own.taken - there;
            }
        }
        if self.has_swap { self.compare_swap(absent) } else { self.compare_charge(present) }
    }

    /// Compares what is charged with the pages of the programs.
    fn compare_charge(&mut self, present: u64) -> Result<(), Trouble> {
        let (few, _) = self.foresight.group();
        debug_assert!(few.memory == present, "the nodes of the pages were compared");
        let most = few.memory + self.overhead + self.ahead();
        self.within("memory.current in pages", self.group.pages("memory.current")?, (few.memory, most))
    }

    /// Compares pages that are swapped out.
    fn compare_swap(&mut self, absent: u64) -> Result<(), Trouble> {
        let (few, many) = self.foresight.group();
        if many.swap == 0 && !self.foresight.met("max").1 && !self.foresight.met("high").1 {
            let ahead = few.memory + self.overhead + self.ahead();
            let is_far =
                [self.limits.max, self.limits.high].into_iter().flatten().all(|limit| ahead <= limit);
            if is_far {
                return alike(Aspect::Swap, "pages of the group in swap", &absent, &0);
            }
        }
        // A limit that is written has all pages beyond it reclaimed at once, in larger steps: up to 47 % more was seen on 6.12.
        let beyond =
            2 * BATCH * self.foresight.nodes().len() as u64 + self.ahead() + self.written_out.div_ceil(2);
        // When the pages of the first reclaim are all in swap, the others are one generation and young. Reclaim passes over them with
        // ever less patience, and takes up to half of the group at once.
        if many.swap > 0 {
            let first = *self.first_reclaimed.get_or_insert(few.memory);
            if self.has_generations && many.swap + beyond >= first {
                self.is_lost = true;
                self.tally.left_out += 1;
                return Ok(());
            }
        }
        // Above `memory.high` room is made when a program returns from the kernel, not before it has a page.
        let least = few.swap.saturating_sub(if self.limits.high.is_some() { BATCH } else { 0 });
        let most = (many.swap + beyond).min(few.memory + few.swap);
        let most = self.limits.swap_max.map_or(most, |limit| most.min(limit.max(few.swap)));
        self.within("pages of the group in swap", absent, (least, most))
    }

    /// Compares a figure with an interval, which must not be so wide that it says nothing.
    fn within(&mut self, what: &str, kernel: u64, (least, most): (u64, u64)) -> Result<(), Trouble> {
        let limit = self.limits.max.or(self.limits.high);
        let width = limit.map_or(0, |limit| self.tally.interval(most - least, limit));
        let difference = |aspect, kernel: String| {
            let model = format!("{least} to {most}");
            Trouble::Differs(Difference { aspect, what: what.to_owned(), kernel, model })
        };
        if width >= VOID {
            return Err(difference(Aspect::Width, kernel.to_string()));
        }
        let aspect = if self.has_swap { Aspect::Swap } else { Aspect::Limits };
        if (least..=most).contains(&kernel) { Ok(()) } else { Err(difference(aspect, kernel.to_string())) }
    }
}

/// Memory of this many pages that a child has too, with a policy.
pub(super) fn reserved(pages: u64, policy: Option<&MemPolicy>) -> Result<NodeBuffer, String> {
    let say = |error: nodewise_syscall::CallError| error.to_string();
    let buffer = NodeBuffer::reserve(Bytes::new(pages * PAGE), PageKind::Small, None).map_err(say)?;
    let length = (pages * PAGE) as usize;
    advise(buffer.address(), length, Advice::ForChildren).map_err(say)?;
    if let Some(policy) = policy {
        mempolicy::bind_range(buffer.address(), length, policy, BindOptions::default()).map_err(say)?;
    }
    Ok(buffer)
}

/// The act that gives the group limits. Without swap no page of it is swapped.
fn limit_act(Limits { max, high, swap_max, kills_all }: Limits) -> Act {
    let limits = GroupLimits { max, high, swap_max, kills_all, ..GroupLimits::default() };
    Act::Limit { group: GROUP.to_owned(), parent: None, limits }
}

const fn limits_with(limits: Limits, limit: Limit, pages: Option<u64>) -> Limits {
    match limit {
        Limit::Max => Limits { max: pages, ..limits },
        Limit::High => Limits { high: pages, ..limits },
    }
}

/// Waits for something that takes a moment, and no longer than [`END`].
fn wait_until(is_so: impl Fn() -> bool) {
    let pause = Duration::from_millis(20);
    for _ in 0..END.as_millis() / pause.as_millis() {
        if is_so() {
            return;
        }
        std::thread::sleep(pause);
    }
}

/// Whether a program has ended: it waits for its parent to see it.
fn has_ended(twin: &Twin) -> bool {
    let Ok(text) = kernel::line(&format!("/proc/{}/stat", twin.pid())) else { return true };
    // The name, in parentheses, may hold anything.
    text.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

pub(super) fn counted(nodes: &Nodes) -> Vec<(NodeId, u64)> {
    let mut counts = std::collections::BTreeMap::new();
    nodes.0.iter().flatten().for_each(|node| *counts.entry(*node).or_default() += 1);
    counts.into_iter().collect()
}

pub(super) fn by_node(counts: Vec<(NodeId, u64)>) -> String {
    let words: Vec<String> = counts
        .iter()
        .filter(|(_, pages)| *pages > 0)
        .map(|(node, pages)| format!("{pages} on node {node}"))
        .collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}
