//! A script in the kernel and in the model, call by call.

use std::ops::Range;
use std::process::Command;

use nodewise_machine::{CpuSet, MemPolicy, NodeId, NodeSet};
use nodewise_model::migrate::Present;
use nodewise_model::oracle::Task as Modelled;
use nodewise_model::oracle::task::Surroundings;
use nodewise_model::{Memory, Weights};
use nodewise_syscall::advice::advise;
use nodewise_syscall::{
    Advice, BindOptions, CallError, PageLocation, PageScope, Task, affinity, mempolicy, pages,
};

use super::super::counters::{Background, Gained, since};
use super::super::model::release;
use super::super::same;
use super::mapping::{Mapping, PAGE};
use crate::cpuset::Cpuset;
use crate::nodewise::{Context, probed};
use crate::script::{BLOCK, Call, MappingKind, Part, Script};

/// The state of the kernel and of the model in a script so far.
pub struct Stage<'a> {
    pub context: &'a Context,
    group: &'a Cpuset,
    /// The kernel's mappings.
    pub mappings: Vec<Mapping>,
    pub task: Modelled,
    pub memory: Memory,
    /// Calls so far, for the message.
    played: Vec<String>,
}

/// The answer to a call: nothing, or the name of an error.
pub type Answer = Result<(), String>;

pub fn of_kernel<T>(result: Result<T, CallError>) -> Answer {
    result.map(drop).map_err(|error| error.errno.name().unwrap_or("?").to_owned())
}

pub fn of_model(result: Result<(), nodewise_model::Errno>) -> Answer {
    result.map_err(|errno| errno.name().to_owned())
}

impl<'a> Stage<'a> {
    pub fn new(context: &'a Context, group: &'a Cpuset, memory: Memory, weights: Weights) -> Self {
        let around = Surroundings {
            weights,
            huge_order: memory.huge_order(),
            ..Surroundings::new(&context.seen, release(context))
        };
        let start = context.seen.nodes_with_cpus().first().unwrap_or(NodeId::new(0));
        // Beside the thread of the script there is that of the guest.
        let task = Modelled::new(around, start).with_threads(2);
        Self { context, group, mappings: Vec::new(), task, memory, played: Vec::new() }
    }

    pub fn play(mut self, script: &Script) -> Result<(), String> {
        self.step(&Call::RunOn(self.context.seen.nodes_with_cpus().first().ok_or("no node has CPUs")?))?;
        for call in &script.calls {
            self.played.push(format!("{call:?}"));
            self.step(call)
                .and_then(|()| self.compare())
                .map_err(|why| format!("{why}\n  after {}", self.played.join("\n        ")))?;
        }
        Ok(())
    }

    /// One call, by the kernel and by the model.
    fn step(&mut self, call: &Call) -> Result<(), String> {
        let answers = match call {
            Call::RunOn(node) => {
                let cpu = self.context.seen.cpus_of(*node).first().ok_or("the node has a CPU")?;
                self.task.run_on(*node);
                (of_kernel(affinity::set_cpus(Task::CURRENT, &CpuSet::from_iter([cpu]))), Ok(()))
            }
            Call::SetPolicy(policy) => {
                (of_kernel(mempolicy::set_thread_policy(policy)), of_model(self.task.set_policy(policy)))
            }
            Call::Map(kind, count) => return self.map(*kind, *count),
            Call::Touch(mapping, numbers) => return self.touch_counted(*mapping, numbers),
            Call::Bind(part, policy, options) => {
                let (address, length) = self.bytes(*part);
                let ours = self.task.bind(self.pages(*part), policy, present(*options), &mut self.memory);
                (of_kernel(mempolicy::bind_range(address, length, policy, *options)), of_model(ours))
            }
            Call::SetHome(part, node) => {
                let (address, length) = self.bytes(*part);
                let ours = self.task.set_home(self.pages(*part), *node);
                (of_kernel(mempolicy::set_home_node(address, length, *node)), of_model(ours))
            }
            Call::Restrict(nodes) => {
                self.group.allow(&nodes.to_string())?;
                self.task.restrict(nodes, &mut self.memory);
                (Ok(()), Ok(()))
            }
            Call::Migrate(old, new) => {
                let ours = self.task.migrate_pages(old, new, &mut self.memory);
                (of_kernel(pages::migrate(Task::CURRENT, old, new)), of_model(ours))
            }
            Call::Move(mapping, moves) => self.move_pages(*mapping, moves),
            Call::Program(count) => return self.program(*count),
            Call::Fork(steps) => return self.fork(steps),
            Call::Pool { pools, pages, steps } => return self.pool(pools, *pages, steps),
            Call::Keep(mapping) => {
                let (address, length) = self.bytes(self.whole(*mapping));
                let whole = self.pages(self.whole(*mapping));
                self.task.keep_from_children(whole);
                (of_kernel(advise(address, length, Advice::NotForChildren)), Ok(()))
            }
        };
        same("the answers of kernel and model", answers.0, answers.1)
    }

    fn map(&mut self, kind: MappingKind, count: u64) -> Result<(), String> {
        let mapping = Mapping::new(kind, count)?;
        let first = mapping.page(0);
        let pages = first..first + count;
        match (kind, mapping.inode()) {
            (MappingKind::Huge, _) => self.task.map_huge(pages),
            (MappingKind::File(from), Some(inode)) => self.task.map_file(pages, inode, from),
            _ => self.task.map(pages),
        }
        self.mappings.push(mapping);
        Ok(())
    }

    /// Pages are touched, and all nodes count what the model counts.
    fn touch_counted(&mut self, mapping: usize, numbers: &[u64]) -> Result<(), String> {
        let before = self.memory.counters().clone();
        let touch = || numbers.iter().try_for_each(|number| self.touch(mapping, *number));
        let (done, gained) = Gained::while_doing(touch);
        done?;
        let ours = since(self.memory.counters(), &before);
        gained.compare(&ours, Background::with_room(numbers.len() as u64))
    }

    fn touch(&mut self, mapping: usize, number: u64) -> Result<(), String> {
        let (page, mapping) = (self.page(mapping, number), &mut self.mappings[mapping]);
        mapping.write(number)?;
        if mapping.kind == MappingKind::Huge && is_alone(Task::CURRENT, page)? {
            self.task.touch_small(page, &mut self.memory);
        } else {
            self.task.touch(page, &mut self.memory);
        }
        Ok(())
    }

    fn move_pages(&mut self, mapping: usize, moves: &[(u64, NodeId)]) -> (Answer, Answer) {
        let start = self.mappings[mapping].address();
        let of_addresses = moves.iter().map(|(page, node)| (start + (page * PAGE) as usize, *node));
        let scope = PageScope::Own;
        let kernels = of_kernel(pages::move_each(Task::CURRENT, of_addresses, scope));
        let mut ours = Ok(());
        for (number, node) in moves {
            let page = self.page(mapping, *number);
            ours = ours.and_then(|()| self.task.move_page(page, *node, &mut self.memory));
        }
        (kernels, of_model(ours))
    }

    /// A program that is started has the policy, the CPU and the cpuset of the thread.
    fn program(&mut self, count: u64) -> Result<(), String> {
        let words = self.context.probe_words(count * PAGE / 1024, "small");
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        let seen = probed("a program that a script starts", command)?;
        let mut child = self.task.start_program();
        let range = seen.first_page..seen.first_page + count;
        child.map(range.clone());
        let ours: Vec<i64> = range
            .map(|page| child.touch(page, &mut self.memory).map_or(-1, |node| i64::from(node.number())))
            .collect();
        same("nodes of the pages of a program that was started", ours, seen.nodes)
    }

    pub fn page(&self, mapping: usize, number: u64) -> u64 {
        self.mappings[mapping].page(number)
    }

    pub fn pages(&self, part: Part) -> Range<u64> {
        let first = self.page(part.mapping, part.first);
        first..first + part.count
    }

    fn whole(&self, mapping: usize) -> Part {
        Part { mapping, first: 0, count: self.mappings[mapping].pages() }
    }

    /// Address and length in bytes.
    pub fn bytes(&self, part: Part) -> (usize, usize) {
        (self.mappings[part.mapping].address() + (part.first * PAGE) as usize, (part.count * PAGE) as usize)
    }

    /// Holds all that can be seen of kernel and model together.
    fn compare(&self) -> Result<(), String> {
        let nr_node_ids = self.context.nr_node_ids();
        let kernels = mempolicy::thread_policy().map_err(|error| error.to_string())?;
        same("the program's policy", self.task.policy().reported_in_mask(nr_node_ids), kernels)?;
        for (number, mapping) in self.mappings.iter().enumerate() {
            let count = mapping.pages();
            let first = mapping.page(0);
            let ours: Vec<Option<NodeId>> =
                (first..first + count).map(|page| self.task.node_of(page)).collect();
            let kernels = located(Task::CURRENT, first..first + count)?;
            same_nodes(&format!("mapping {number}"), &ours, &kernels)?;
            // The first page of it, and one that changes from call to call.
            for page in [0, self.played.len() as u64 * 7 % count] {
                let ours =
                    self.task.policy_at(first + page).map(|policy| policy.reported_in_mask(nr_node_ids));
                let address = mapping.address() + (page * PAGE) as usize;
                let kernels = mempolicy::policy_at(address).map_err(|error| error.to_string())?;
                let what = format!("the policy of page {page} of mapping {number} (the model's first)");
                same(&what, ours.unwrap_or(MemPolicy::DEFAULT), kernels)?;
            }
        }
        let allowed: NodeSet = mempolicy::allowed_nodes().map_err(|error| error.to_string())?;
        same("nodes that the program may use", self.task.allowed().clone(), allowed)
    }
}

/// Converts the options of a call of `mbind(2)` for pages that are there.
pub const fn present(options: BindOptions) -> Present {
    match (options.moving, options.strict) {
        (Some(_), _) => Present::Move,
        (None, true) => Present::Refuse,
        (None, false) => Present::Stay,
    }
}

/// Whether a page has nothing beside it in the place of a huge one: where nowhere was a free block of 2 MiB
/// the kernel has given a small page.
pub fn is_alone(task: Task, page: u64) -> Result<bool, String> {
    let beside = page - page % BLOCK + (page + 1) % BLOCK;
    Ok(located(task, beside..beside + 1)? == [None])
}

/// Fails with the first pages that differ.
pub fn same_nodes(what: &str, ours: &[Option<NodeId>], kernels: &[Option<NodeId>]) -> Result<(), String> {
    let pairs = (0..).zip(ours.iter().zip(kernels));
    let differ: Vec<(u64, _)> = pairs.filter(|(_, (ours, kernels))| ours != kernels).collect();
    let Some((first, (model, kernel))) = differ.first() else { return Ok(()) };
    let count = differ.len();
    Err(format!(
        "{what}: the kernel has page {first} on {kernel:?}, the model on {model:?}; {count} pages differ"
    ))
}

/// The nodes of some pages of a task; `None` for one that is missing.
pub fn located(task: Task, pages: Range<u64>) -> Result<Vec<Option<NodeId>>, String> {
    let mut nodes = Vec::new();
    let addresses = pages.map(|page| (page * PAGE) as usize);
    pages::locate(task, addresses, |_, location| {
        nodes.push(if let PageLocation::Node(node) = location { Some(node) } else { None });
    })
    .map_err(|error| error.to_string())?;
    Ok(nodes)
}
