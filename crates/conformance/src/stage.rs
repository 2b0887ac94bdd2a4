//! A script in the kernel and in the model, call by call.

mod cache;
mod family;
mod group;
mod mapping;
mod pool;

use std::ops::Range;
use std::process::Command;

use nodewise_machine::{CpuSet, MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_model::Memory;
use nodewise_model::migrate::Present;
use nodewise_model::oracle::Task as Modelled;
use nodewise_model::oracle::task::Surroundings;
use nodewise_model::thp::TransparentHuge;
use nodewise_syscall::advice::advise;
use nodewise_syscall::{Advice, BindOptions, CallError, PageScope, Task, affinity, mempolicy, pages};

use crate::arena::Arena;
use crate::counters::{Background, Gained, since};
use crate::difference::{Aspect, Difference, Trouble, alike};
use crate::kernel;
use crate::nodes::{Nodes, PAGE};
use crate::program;
use crate::script::{BLOCK, Call, MappingKind, Part};
use crate::trace::{Answer, Expected, Trace, answer_text};
use mapping::Mapping;

/// Free blocks of the size of a huge page on a node, with which the kernel has no reason for small pages.
const MANY_BLOCKS: u64 = 8;

/// The state of the kernel and of the model in a script so far.
pub struct Stage<'a> {
    arena: &'a Arena,
    /// The kernel's mappings.
    mappings: Vec<Mapping>,
    around: Surroundings,
    task: Modelled,
    memory: Memory,
    trace: Trace,
    /// The numbers of its threads, in the order in which they have started.
    threads: Vec<usize>,
    has_begun: bool,
    /// [`kernel::collapses`] when the script began; it ends where there are more.
    collapses: Option<u64>,
    is_over: bool,
}

/// Reads the kernel's answer to a call.
fn of_kernel<T>(result: Result<T, CallError>) -> Answer {
    result.map(drop).map_err(|error| error.errno.name().unwrap_or("?").to_owned())
}

/// Reads the model's answer to a call.
fn of_model(result: Result<(), nodewise_model::Errno>) -> Answer {
    result.map_err(|errno| errno.name().to_owned())
}

impl<'a> Stage<'a> {
    /// A program that has done nothing yet.
    pub fn new(arena: &'a Arena, around: Surroundings) -> Self {
        let memory = arena.memory.clone();
        let around = Surroundings { huge_order: memory.huge_order(), ..around };
        let start = arena.machine.nodes_with_cpus().first().unwrap_or(NodeId::new(0));
        // Beside the thread of the script there is that of the guest.
        let task = Modelled::new(around.clone(), start).with_threads(2);
        Self {
            arena,
            mappings: Vec::new(),
            around,
            task,
            memory,
            trace: Trace::default(),
            threads: vec![0],
            has_begun: false,
            collapses: arena.group.as_ref().and_then(|_| kernel::collapses().ok()),
            is_over: false,
        }
    }

    /// The expectations so far.
    pub fn into_trace(self) -> Trace {
        self.trace
    }

    /// Makes calls, up to the first difference.
    ///
    /// # Errors
    /// The difference, or the reason why a call could not be made.
    pub fn steps(&mut self, calls: &[Call]) -> Result<(), Trouble> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.step(&Call::RunOn(self.arena.machine.nodes_with_cpus().first().ok_or("no node has CPUs")?))?;
        }
        for call in calls {
            if self.is_over {
                self.trace.tally.left_out += 1;
                continue;
            }
            self.trace.played += 1;
            let done = self.step_compared(call);
            self.is_over = self.has_collapsed()?;
            match done {
                Err(Trouble::Differs(_)) if self.is_over => self.trace.tally.left_out += 1,
                done => done?,
            }
        }
        Ok(())
    }

    fn step_compared(&mut self, call: &Call) -> Result<(), Trouble> {
        self.step(call)?;
        (self.arena.prediction.spoiled)(call, &mut self.task);
        self.compare()
    }

    /// Whether khugepaged has made a huge page of small ones since the script began. It takes a place that is full, in its own time,
    /// when huge pages are switched on after they were off: nothing that the model could follow.
    fn has_collapsed(&self) -> Result<bool, String> {
        let Some(before) = self.collapses else { return Ok(false) };
        Ok(kernel::collapses()? > before)
    }

    /// Compares the answers to a call.
    fn answered(&mut self, call: &str, kernels: Answer, ours: Answer) -> Result<(), Trouble> {
        let what = format!("the answer to {call}");
        let same = alike(Aspect::Answer, &what, &answer_text(&kernels), &answer_text(&ours));
        self.trace.answers.push(ours);
        same
    }

    /// One call, by the kernel and by the model.
    fn step(&mut self, call: &Call) -> Result<(), Trouble> {
        let answers = match call {
            Call::RunOn(node) => {
                let cpu = self.arena.machine.cpus_of(*node).first().ok_or("the node has a CPU")?;
                self.task.run_on(*node);
                (of_kernel(affinity::set_cpus(Task::CURRENT, &CpuSet::from_iter([cpu]))), Ok(()))
            }
            Call::SetPolicy(policy) => {
                (of_kernel(mempolicy::set_thread_policy(policy)), of_model(self.task.set_policy(policy)))
            }
            Call::Map(kind, count) => return self.map(*kind, *count),
            Call::HugePages(enabled, defrag) => {
                self.arena.set_huge_pages(enabled, defrag)?;
                self.task.set_huge_pages(TransparentHuge::from_settings(Some(enabled), Some(defrag)));
                (Ok(()), Ok(()))
            }
            Call::Thread(number) => {
                let known = self.threads.iter().position(|other| other == number);
                let thread = known.unwrap_or_else(|| self.task.start_thread());
                if known.is_none() {
                    self.threads.push(*number);
                }
                self.task.continue_as(thread);
                return Ok(());
            }
            Call::Touch(mapping, numbers) => return self.touch_counted(*mapping, numbers),
            Call::Bind(part, policy, options) => {
                let (address, length) = self.whole_places(*part)?;
                let ours = self.task.bind(self.pages(*part), policy, present(*options), &mut self.memory);
                (of_kernel(mempolicy::bind_range(address, length, policy, *options)), of_model(ours))
            }
            Call::SetHome(part, node) => {
                let (address, length) = self.whole_places(*part)?;
                let ours = self.task.set_home(self.pages(*part), *node);
                (of_kernel(mempolicy::set_home_node(address, length, *node)), of_model(ours))
            }
            Call::Restrict(nodes) => {
                self.arena.allow(nodes)?;
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
            Call::Group(script) => return self.group(script),
            Call::Cache(script) => return self.cache(script),
            Call::Keep(mapping) => {
                let (address, length) = self.bytes(self.whole(*mapping));
                let whole = self.pages(self.whole(*mapping));
                self.task.keep_from_children(whole);
                (of_kernel(advise(address, length, Advice::NotForChildren)), Ok(()))
            }
        };
        self.answered(&call.text(0), answers.0, answers.1)
    }

    fn map(&mut self, kind: MappingKind, count: u64) -> Result<(), Trouble> {
        let mapping = Mapping::new(kind, count, self.arena.files)?;
        let first = mapping.page(0);
        let pages = first..first + count;
        match (kind, mapping.inode()) {
            (MappingKind::Huge, _) => self.task.map_huge(pages),
            (MappingKind::Plain(_), _) => self.task.map_plain(pages),
            (MappingKind::File(from), Some(inode)) => self.task.map_file(pages, inode, from),
            _ => self.task.map(pages),
        }
        self.trace.mappings.push(mapping.made());
        self.mappings.push(mapping);
        Ok(())
    }

    /// Pages are touched, and all nodes count what the model counts.
    fn touch_counted(&mut self, mapping: usize, numbers: &[u64]) -> Result<(), Trouble> {
        let before = self.memory.counters().clone();
        let touch = || numbers.iter().try_for_each(|number| self.touch(mapping, *number));
        let (done, gained) = Gained::while_doing(touch);
        done?;
        let ours = since(self.memory.counters(), &before);
        let ours = self.trace.gains.insert(ours);
        let background = Background::with_room(numbers.len() as u64);
        let interleaves =
            matches!(self.task.in_force().mode, PolicyMode::Interleave | PolicyMode::WeightedInterleave);
        let background = if interleaves { background } else { background.without_turns() };
        self.trace.background = background;
        if self.arena.group.is_some() { gained.compare(ours, background) } else { Ok(()) }
    }

    fn touch(&mut self, mapping: usize, number: u64) -> Result<(), Trouble> {
        let (page, mapping) = (self.page(mapping, number), &mut self.mappings[mapping]);
        mapping.write(number)?;
        if has_huge_pages(mapping.kind) && is_alone(Task::CURRENT, page)? {
            self.compare_block(page)?;
            self.task.touch_small(page, &mut self.memory);
        } else {
            self.task.touch(page, &mut self.memory);
        }
        Ok(())
    }

    /// Whether the kernel has a reason for a small page instead of a huge one: few blocks of that size are free on its node.
    fn compare_block(&self, page: u64) -> Result<(), Trouble> {
        let Some(node) = self.task.huge_node_of(page, &self.memory) else { return Ok(()) };
        let free = kernel::free_blocks(node, self.memory.huge_order())?;
        if free < MANY_BLOCKS {
            return Ok(());
        }
        Err(Trouble::Differs(Difference {
            aspect: Aspect::Pages,
            what: "the size of a page".to_owned(),
            kernel: format!("small, with {free} blocks free on node {node}"),
            model: format!("huge, on node {node}"),
        }))
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
    fn program(&mut self, count: u64) -> Result<(), Trouble> {
        let (name, words) = self.arena.program.split_first().ok_or("no program to start")?;
        let mut command = Command::new(name);
        command.args(words).arg(count.to_string());
        let (first, seen) = program::started(command)?;
        let mut child = self.task.start_program();
        let range = first..first + count;
        child.map(range.clone());
        let ours = Nodes(range.map(|page| child.touch(page, &mut self.memory)).collect());
        self.trace.programs.push((first, ours.clone()));
        alike(Aspect::Pages, "pages of a program that was started", &seen, &ours)
    }

    fn page(&self, mapping: usize, number: u64) -> u64 {
        self.mappings[mapping].page(number)
    }

    fn pages(&self, part: Part) -> Range<u64> {
        let first = self.page(part.mapping, part.first);
        first..first + part.count
    }

    fn whole(&self, mapping: usize) -> Part {
        Part { mapping, first: 0, count: self.mappings[mapping].pages() }
    }

    /// The same of a part that ends where huge pages do: one of another policy within a place would leave it small pages.
    fn whole_places(&self, part: Part) -> Result<(usize, usize), Trouble> {
        let mapping = &self.mappings[part.mapping];
        let plain = matches!(mapping.kind, MappingKind::Plain(_));
        let is_edge = |page| mapping.kind.has_edge(page, mapping.pages());
        if plain && !(is_edge(part.first) && is_edge(part.first + part.count)) {
            return Err("a policy of part of a huge page's place is not compared".into());
        }
        Ok(self.bytes(part))
    }

    /// Address and length in bytes.
    fn bytes(&self, part: Part) -> (usize, usize) {
        (self.mappings[part.mapping].address() + (part.first * PAGE) as usize, (part.count * PAGE) as usize)
    }

    /// All that the model predicts to be seen.
    fn expected(&self) -> Expected {
        let nr_node_ids = self.arena.nr_node_ids();
        let reported =
            |page: u64| self.task.policy_at(page).map(|policy| policy.reported_in_mask(nr_node_ids));
        let mut policies = Vec::new();
        let mut nodes = Vec::new();
        for (number, mapping) in self.mappings.iter().enumerate() {
            let (first, count) = (mapping.page(0), mapping.pages());
            nodes.push(Nodes((first..first + count).map(|page| self.task.node_of(page)).collect()));
            // The first page of it, and one that changes from call to call.
            for page in [0, self.trace.played as u64 * 7 % count] {
                policies.push((number, page, reported(first + page).unwrap_or(MemPolicy::DEFAULT)));
            }
        }
        let policy = self.task.policy().reported_in_mask(nr_node_ids);
        Expected { policy, allowed: self.task.allowed().clone(), nodes, policies }
    }

    /// Compares all that can be seen of kernel and model.
    fn compare(&mut self) -> Result<(), Trouble> {
        let ours = self.expected();
        let ours = self.trace.expected.insert(ours);
        let say = |error: &dyn std::fmt::Display| error.to_string();
        let kernels = mempolicy::thread_policy().map_err(|error| say(&error))?;
        alike(Aspect::Policy, "the thread's policy", &kernels, &ours.policy)?;
        for (number, (mapping, ours)) in self.mappings.iter().zip(&ours.nodes).enumerate() {
            let kernels = Nodes::located(Task::CURRENT, mapping.page(0)..mapping.page(mapping.pages()))?;
            alike(Aspect::Pages, &format!("pages of m{number}"), &kernels, ours)?;
        }
        for (number, page, ours) in &ours.policies {
            let address = self.mappings[*number].address() + (page * PAGE) as usize;
            let kernels = mempolicy::policy_at(address).map_err(|error| say(&error))?;
            let what = format!("the policy of page {page} of m{number}");
            alike(Aspect::Policy, &what, &kernels, ours)?;
        }
        let allowed: NodeSet = mempolicy::allowed_nodes().map_err(|error| say(&error))?;
        alike(Aspect::Allowed, "nodes that the program may use", &allowed, &ours.allowed)
    }
}

/// Converts the options of a call of `mbind(2)` for pages that are there.
const fn present(options: BindOptions) -> Present {
    match (options.moving, options.strict) {
        (Some(_), _) => Present::Move,
        (None, true) => Present::Refuse,
        (None, false) => Present::Stay,
    }
}

/// Whether memory of a mapping can be in huge pages.
const fn has_huge_pages(kind: MappingKind) -> bool {
    matches!(kind, MappingKind::Huge | MappingKind::Plain(_))
}

/// Whether a page has nothing beside it in the place of a huge one: where nowhere was a free block of 2 MiB
/// the kernel has given a small page.
fn is_alone(task: Task, page: u64) -> Result<bool, String> {
    let beside = page - page % BLOCK + (page + 1) % BLOCK;
    Ok(Nodes::located(task, beside..beside + 1)?.0 == [None])
}
