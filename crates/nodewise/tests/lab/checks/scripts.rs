//! Drawn scripts, played by the kernel and by the model side by side: the answer to every call, the
//! node of every page after it, and the policies.

use std::fs;
use std::ops::Range;
use std::process::Command;

use nodewise_machine::{Bytes, CpuSet, NodeId, NodeSet};
use nodewise_model::migrate::Present;
use nodewise_model::release::Change;
use nodewise_model::task::Surroundings;
use nodewise_model::{Memory, Task as Modelled, Weights};
use nodewise_syscall::{CallError, NodeBuffer, PageKind, PageLocation, Task, affinity, mempolicy, pages};

use super::model::{memory, release};
use super::same;
use crate::cpuset::Cpuset;
use crate::kernel;
use crate::nodewise::{Context, probed};
use crate::script::{Call, Drawer, Part, Script};

const PAGE: u64 = 4096;
/// Scripts that are told in full when many differ.
const MOST_TOLD: usize = 3;

/// Plays the scripts of the guest.
pub fn play(context: &Context) -> Result<(), String> {
    let (all, cpus) = (context.seen.nodes_with_memory(), context.seen.online_cpus());
    let now = memory(context)?;
    // A page that follows its CPU would move while it is looked at.
    let balancing = Restored::keep("/proc/sys/kernel/numa_balancing".to_owned())?;
    balancing.set("0")?;
    let has_weights = release(context).has(Change::WeightedInterleave);
    let with_weights = all.iter().filter(|_| has_weights);
    let kept: Vec<Restored> =
        with_weights.map(|node| Restored::keep(weight_path(node))).collect::<Result<_, _>>()?;
    let group = Cpuset::new(&cpus.to_string(), &all.to_string())?;
    group.enter()?;
    let mut wrong = Vec::new();
    for number in context.scripts.clone() {
        let script = Drawer::script(&context.seen, number);
        let weights = weights(context, &script)?;
        let result = std::thread::scope(|scope| {
            // A thread takes its policy and its CPU with it when it ends.
            let play = || Stage::new(context, &group, now.clone(), weights).play(&script);
            scope.spawn(play).join().map_err(|_| "the thread of a script panicked".to_owned())?
        });
        group.allow(&all.to_string())?;
        wrong.extend(result.err().map(|why| format!("script {number}: {why}")));
    }
    drop((balancing, kept));
    let count = wrong.len();
    wrong.truncate(MOST_TOLD);
    if wrong.is_empty() { Ok(()) } else { Err(format!("{count} scripts differ:\n{}", wrong.join("\n"))) }
}

/// A setting that is put back.
struct Restored {
    path: String,
    before: String,
}

impl Restored {
    fn keep(path: String) -> Result<Self, String> {
        Ok(Self { before: kernel::line(&path)?, path })
    }

    fn set(&self, value: &str) -> Result<(), String> {
        fs::write(&self.path, value).map_err(|error| format!("{}: {error}", self.path))
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        let _ = self.set(&self.before);
    }
}

fn weight_path(node: NodeId) -> String {
    format!("/sys/kernel/mm/mempolicy/weighted_interleave/node{node}")
}

/// Gives the nodes the weights of a script, where this kernel has weights.
fn weights(context: &Context, script: &Script) -> Result<Weights, String> {
    if !release(context).has(Change::WeightedInterleave) {
        return Ok(Weights::new());
    }
    for (node, weight) in &script.weights {
        let path = weight_path(*node);
        fs::write(&path, weight.to_string()).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(script.weights.iter().copied().collect())
}

/// What the kernel and the model have of a script so far.
struct Stage<'a> {
    context: &'a Context,
    group: &'a Cpuset,
    /// The kernel's mappings.
    mappings: Vec<NodeBuffer>,
    task: Modelled,
    memory: Memory,
    /// Calls so far, for the message.
    played: Vec<String>,
}

/// The answer to a call: nothing, or the name of an error.
type Answer = Result<(), String>;

fn of_kernel<T>(result: Result<T, CallError>) -> Answer {
    result.map(drop).map_err(|error| error.errno.name().unwrap_or("?").to_owned())
}

fn of_model(result: Result<(), nodewise_model::Errno>) -> Answer {
    result.map_err(|errno| errno.name().to_owned())
}

impl<'a> Stage<'a> {
    fn new(context: &'a Context, group: &'a Cpuset, memory: Memory, weights: Weights) -> Self {
        let around = Surroundings {
            with_memory: context.seen.nodes_with_memory(),
            online: context.seen.node_ids(),
            max_nodes: 1024,
            release: release(context),
            weights,
        };
        let start = context.seen.nodes_with_cpus().first().unwrap_or(NodeId::new(0));
        // Beside the thread of the script there is that of the guest.
        let task = Modelled::new(around, start).with_threads(2);
        Self { context, group, mappings: Vec::new(), task, memory, played: Vec::new() }
    }

    fn play(mut self, script: &Script) -> Result<(), String> {
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
            Call::Map(count) => {
                let size = Bytes::new(count * PAGE);
                let mapping = NodeBuffer::reserve(size, PageKind::Small, None);
                self.mappings.push(mapping.map_err(|error| error.to_string())?);
                let first = self.page(self.mappings.len() - 1, 0);
                self.task.map(first..first + count);
                (Ok(()), Ok(()))
            }
            Call::Touch(mapping, numbers) => {
                for number in numbers {
                    self.mappings[*mapping].as_mut_slice()[(number * PAGE) as usize] = 1;
                    let page = self.page(*mapping, *number);
                    self.task.touch(page, &mut self.memory);
                }
                (Ok(()), Ok(()))
            }
            Call::Bind(part, policy, options) => {
                let (address, length) = self.bytes(*part);
                let present = match (options.moving, options.strict) {
                    (Some(_), _) => Present::Move,
                    (None, true) => Present::Refuse,
                    (None, false) => Present::Stay,
                };
                let ours = self.task.bind(self.pages(*part), policy, present, &mut self.memory);
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
        };
        same("the answers of kernel and model", answers.0, answers.1)
    }

    fn move_pages(&mut self, mapping: usize, moves: &[(u64, NodeId)]) -> (Answer, Answer) {
        let start = self.mappings[mapping].address();
        let of_addresses = moves.iter().map(|(page, node)| (start + (page * PAGE) as usize, *node));
        let scope = nodewise_syscall::PageScope::Own;
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

    fn page(&self, mapping: usize, number: u64) -> u64 {
        self.mappings[mapping].address() as u64 / PAGE + number
    }

    fn pages(&self, part: Part) -> Range<u64> {
        let first = self.page(part.mapping, part.first);
        first..first + part.count
    }

    /// Address and length in bytes.
    fn bytes(&self, part: Part) -> (usize, usize) {
        (self.mappings[part.mapping].address() + (part.first * PAGE) as usize, (part.count * PAGE) as usize)
    }

    /// Holds all that can be seen of kernel and model together.
    fn compare(&self) -> Result<(), String> {
        let nr_node_ids = self.context.seen.possible_nodes.last().map_or(1, |node| node.number() + 1);
        let kernels = mempolicy::thread_policy().map_err(|error| error.to_string())?;
        same("the program's policy", self.task.policy().told(nr_node_ids), kernels)?;
        for (number, mapping) in self.mappings.iter().enumerate() {
            let length = mapping.length().get();
            let first = self.page(number, 0);
            let ours: Vec<Option<NodeId>> =
                (0..length / PAGE).map(|page| self.task.node_of(first + page)).collect();
            let mut kernels = Vec::new();
            let addresses = pages::addresses(mapping.address(), length as usize, PAGE as usize);
            pages::locate(Task::CURRENT, addresses, |_, location| {
                kernels.push(if let PageLocation::Node(node) = location { Some(node) } else { None });
            })
            .map_err(|error| error.to_string())?;
            same(&format!("nodes of mapping {number} (the model's first)"), ours, kernels)?;
            // The first page of it, and one that changes from call to call.
            for page in [0, self.played.len() as u64 * 7 % (length / PAGE)] {
                let ours = self.task.policy_at(first + page).map(|policy| policy.told(nr_node_ids));
                let address = mapping.address() + (page * PAGE) as usize;
                let kernels = mempolicy::policy_at(address).map_err(|error| error.to_string())?;
                let what = format!("the policy of page {page} of mapping {number} (the model's first)");
                same(&what, ours.unwrap_or(nodewise_machine::MemPolicy::DEFAULT), kernels)?;
            }
        }
        let allowed: NodeSet = mempolicy::allowed_nodes().map_err(|error| error.to_string())?;
        same("nodes that the program may use", self.task.allowed().clone(), allowed)
    }
}
