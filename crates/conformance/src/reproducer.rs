//! A script as a C program that repeats it alone: raw system calls, the nodes of its pages, and those that the model
//! predicts.

use std::fmt::{Display, Write as _};

use nodewise_machine::{CpuId, Machine, MemPolicy, NodeId, NodeSet};
use nodewise_model::{Change, Release};
use nodewise_syscall::{BindOptions, PageScope};

use crate::arena::SETTINGS;
use crate::difference::{Aspect, Difference};
use crate::nodes::Nodes;
use crate::script::{Call, MappingKind, Member, Part, PoolStep, Script, Step};
use crate::trace::{Answer, MadeMapping, Trace};

/// The functions that every program has.
pub(crate) const HEAD: &str = include_str!("reproducer.c");
/// The most nodes or weights whose turns come round in a period of the program.
const MOST_TURNS: u64 = 32;

/// Writes the program of a script, with what the model predicted when it was played.
pub fn program(script: &Script, trace: &Trace, machine: &Machine, difference: Option<&Difference>) -> String {
    let mut writer = Writer {
        machine,
        trace,
        answers: trace.answers.iter(),
        period: period(script, machine),
        counts: difference.is_some_and(|difference| difference.aspect == Aspect::Counters),
        mappings: 0,
        forks: 0,
        programs: 0,
        pools: 0,
        threads: vec![0],
        current: 0,
        stretches: Vec::new(),
        body: String::new(),
    };
    writer.settings(script);
    writer.calls(script);
    writer.end(script);
    let programs = programs(trace);
    let (functions, body) = writer.stretches();
    format!(
        "{}{HEAD}\n{programs}\n{functions}{MAIN}{body}    return finish();\n}}\n",
        comment(script, difference)
    )
}

const MAIN: &str = "\
int main(int count, char **words)
{
    arguments = words;
    if (count > 2 && !strcmp(words[1], \"--program\"))
        return program(atoi(words[2]));
";

/// The comment at its head.
fn comment(script: &Script, difference: Option<&Difference>) -> String {
    let mut text = "/* Repeats these calls and compares with the prediction of a model:\n".to_owned();
    script.lines().iter().for_each(|line| line_of(&mut text, " *   ", line));
    if let Some(difference) = difference {
        line_of(&mut text, " * ", &difference.what);
        line_of(&mut text, " *   kernel: ", &difference.kernel);
        line_of(&mut text, " *   model:  ", &difference.model);
    }
    text + " * cc -O2 FILE.c && ./a.out; as root where it changes settings. Exit code 1: the kernel differs. */\n"
}

fn line_of(text: &mut String, before: &str, line: &str) {
    // Writing to a String cannot fail; nothing in a line ends a comment.
    let _ = writeln!(text, "{before}{}", line.replace("*/", "* /"));
}

/// A number of turns after which every policy of a script begins again.
fn period(script: &Script, machine: &Machine) -> u64 {
    let total: u64 = script.weights.iter().map(|(_, weight)| u64::from(*weight)).sum();
    // Kernels before 6.7 count turns with 32 bits, and have no weights: there the period is to be short.
    let has_weights = Release::from_kernel(machine.kernel.as_ref()).has(Change::WeightedInterleave);
    let nodes = machine.nodes.len() as u64;
    let most = if has_weights { total.max(nodes) } else { nodes }.clamp(1, MOST_TURNS);
    (1..=most).fold(1, |period, turns| period / common(period, turns) * turns)
}

fn common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common(b, a % b) }
}

/// The programs that the script starts, each of which is this one with a number.
fn programs(trace: &Trace) -> String {
    let mut text = "static int program(int number)\n{\n".to_owned();
    for (number, (first, nodes)) in trace.programs.iter().enumerate() {
        let (count, length) = (nodes.0.len(), nodes.runs().len());
        let _ = writeln!(
            text,
            "    if (number == {number})\n        return program_pages({:#x}, {count}, {}, {length});",
            first * 4096,
            runs(nodes)
        );
    }
    text + "    (void)number;\n    return 2;\n}\n"
}

/// The body of `main` as it grows.
struct Writer<'a> {
    machine: &'a Machine,
    trace: &'a Trace,
    answers: std::slice::Iter<'a, Answer>,
    period: u64,
    /// Whether counters of the last touched pages are compared.
    counts: bool,
    mappings: usize,
    forks: usize,
    programs: usize,
    pools: usize,
    /// The numbers of the threads in the order in which they start, and the place of the one that makes the calls.
    threads: Vec<usize>,
    current: usize,
    /// The stretches of calls before it: the place of the thread of each, and its lines.
    stretches: Vec<(usize, String)>,
    body: String,
}

impl Writer<'_> {
    fn line(&mut self, line: impl Display) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.body, "    {line}");
    }

    /// Lets a thread go on, which the one so far starts where there is none yet.
    fn go_on_in(&mut self, number: usize) {
        let known = self.threads.iter().position(|other| *other == number);
        let next = known.unwrap_or(self.threads.len());
        if known.is_none() {
            self.threads.push(number);
            self.line(format_args!("start_thread({next});"));
        }
        self.stretches.push((self.current, std::mem::take(&mut self.body)));
        self.current = next;
    }

    /// The functions of what each thread does, and the lines that call them; of one thread the lines alone.
    fn stretches(mut self) -> (String, String) {
        if self.stretches.is_empty() {
            let maps = (0..self.mappings)
                .fold(String::new(), |text, number| text + &format!("    word m{number};\n"));
            return (String::new(), maps + &self.body);
        }
        self.stretches.push((self.current, std::mem::take(&mut self.body)));
        let mut functions: String =
            (0..self.mappings).map(|number| format!("static word m{number};\n")).collect();
        let mut body = String::new();
        for (at, (thread, lines)) in self.stretches.iter().enumerate() {
            // Writing to a String cannot fail.
            let _ = writeln!(functions, "static void stretch{at}(void)\n{{\n{lines}}}\n");
            let _ = writeln!(body, "    go_on_in({thread}, stretch{at});");
        }
        (functions, body)
    }

    /// A call with its answer; nothing where the play ended before it.
    fn answered(&mut self, text: &str, call: impl Display) -> Option<()> {
        let expected = match self.answers.next()? {
            Ok(()) => "0",
            Err(name) => name,
        };
        let text = text.replace(['"', '\\'], "");
        self.line(format_args!("answered(\"{text}\", {call}, {expected});"));
        Some(())
    }

    fn settings(&mut self, script: &Script) {
        for (path, value) in SETTINGS {
            self.line(format_args!("put(\"{path}\", \"{value}\");"));
        }
        if script.weights.iter().any(|(_, weight)| *weight != 1) {
            for (node, weight) in &script.weights {
                let path = format!("/sys/kernel/mm/mempolicy/weighted_interleave/node{node}");
                self.line(format_args!("put(\"{path}\", \"{weight}\");"));
            }
        }
        if script.calls.iter().any(|call| matches!(call, Call::Restrict(_))) {
            let (cpus, nodes) = (self.machine.online_cpus(), self.machine.nodes_with_memory());
            self.line(format_args!("enter_cpuset(\"{cpus}\", \"{nodes}\");"));
        }
    }

    fn huge_pages(&mut self, enabled: &str, defrag: &str) {
        for (file, value) in [("enabled", enabled), ("defrag", defrag)] {
            self.line(format_args!("put(\"/sys/kernel/mm/transparent_hugepage/{file}\", \"{value}\");"));
        }
    }

    /// All calls that were begun.
    fn calls(&mut self, script: &Script) {
        let Some(start) = self.machine.nodes_with_cpus().first() else { return };
        let played = script.calls.iter().take(self.trace.played);
        let calls = std::iter::once(Call::RunOn(start)).chain(played.cloned());
        let last = self.trace.played;
        for (at, call) in calls.enumerate() {
            if self.call(&call, at == last).is_none() {
                return;
            }
        }
    }

    fn call(&mut self, call: &Call, is_last: bool) -> Option<()> {
        let text = call.text(self.mappings);
        match call {
            Call::RunOn(node) => {
                let cpu = self.cpu(*node)?;
                self.answered(&text, format_args!("run_on(0, {cpu})"))
            }
            Call::SetPolicy(policy) => {
                self.answered(&text, format_args!("set_policy({})", arguments(policy)))
            }
            Call::Map(..) => self.map(),
            Call::HugePages(enabled, defrag) => {
                self.huge_pages(enabled, defrag);
                self.answers.next().map(drop)
            }
            Call::Thread(number) => {
                self.go_on_in(*number);
                Some(())
            }
            Call::Touch(mapping, pages) => self.touch(*mapping, pages, is_last && self.counts),
            Call::Bind(part, policy, options) => self.answered(&text, bound(*part, policy, *options)),
            Call::SetHome(Part { mapping, first, count }, node) => {
                self.answered(&text, format_args!("set_home(m{mapping}, {first}, {count}, {node})"))
            }
            Call::Restrict(nodes) => {
                self.line(format_args!("restrict_to(\"{nodes}\");"));
                self.answers.next().map(drop)
            }
            Call::Migrate(old, new) => self.answered(&text, migrated(old, new)),
            Call::Move(mapping, moves) => {
                let pages: Vec<u64> = moves.iter().map(|(page, _)| *page).collect();
                let targets: Vec<NodeId> = moves.iter().map(|(_, node)| *node).collect();
                let (pages, targets, count) = (ints(&pages), ints(&targets), moves.len());
                self.answered(&text, format_args!("move(m{mapping}, PAGE, {pages}, {targets}, {count})"))
            }
            Call::Program(_) => {
                let number = self.programs;
                self.programs += 1;
                self.trace.programs.get(number)?;
                self.line(format_args!("start_program(\"{number}\");"));
                Some(())
            }
            Call::Keep(mapping) => {
                let pages = self.trace.mappings.get(*mapping)?.pages;
                self.answered(
                    &text,
                    format_args!("madvise((void *)m{mapping}, {pages} * PAGE, MADV_DONTFORK)"),
                )
            }
            Call::Fork(steps) => self.fork(steps),
            Call::Pool { pools, pages, steps } => self.pool(pools, *pages, steps),
            // Such a script has no program.
            Call::Group(_) | Call::Cache(_) => None,
        }
    }

    fn cpu(&self, node: NodeId) -> Option<CpuId> {
        self.machine.cpus_of(node).first()
    }

    fn map(&mut self) -> Option<()> {
        let number = self.mappings;
        let MadeMapping { kind, address, pages, inode } = self.trace.mappings.get(number)?.clone();
        self.mappings += 1;
        let call = match kind {
            MappingKind::Small => format!("map_small({address:#x}, {pages})"),
            MappingKind::Plain(_) => format!("map_plain({address:#x}, {pages})"),
            MappingKind::Huge => format!("map_huge({address:#x}, {pages})"),
            MappingKind::File(first) => {
                let (inode, period) = (inode.unwrap_or_default(), self.period);
                format!("map_file({address:#x}, {pages}, {inode}, {first}, {period}UL)")
            }
        };
        self.line(format_args!("m{number} = {call};"));
        Some(())
    }

    fn touch(&mut self, mapping: usize, pages: &[u64], counts: bool) -> Option<()> {
        self.trace.mappings.get(mapping)?;
        let gains = self.trace.gains.clone().filter(|_| counts);
        let nodes: Vec<NodeId> = self.machine.node_ids().iter().collect();
        if gains.is_some() {
            self.line(format_args!("static word before[{0}][6], after[{0}][6];", nodes.len()));
            // Once to have all that it takes, once to count.
            for moment in ["after", "before"] {
                for (at, node) in nodes.iter().enumerate() {
                    self.line(format_args!("counters({node}, {moment}[{at}]);"));
                }
            }
        }
        self.line(format_args!("write_pages(m{mapping}, {}, {});", ints(pages), pages.len()));
        let Some(gains) = gains else { return Some(()) };
        for (at, node) in nodes.iter().enumerate() {
            self.line(format_args!("counters({node}, after[{at}]);"));
        }
        let rooms =
            crate::counters::FIELDS.map(|(name, _)| self.trace.background.room(name).to_string()).join(", ");
        for (at, node) in nodes.iter().enumerate() {
            let counters = gains.get(node).copied().unwrap_or_default();
            let values = crate::counters::FIELDS.map(|(_, field)| field(&counters).to_string()).join(", ");
            self.line(format_args!(
                "counted({node}, before[{at}], after[{at}], (word[]){{{values}}}, (word[]){{{rooms}}});"
            ));
        }
        Some(())
    }

    fn fork(&mut self, steps: &[Step]) -> Option<()> {
        let number = self.forks;
        self.forks += 1;
        self.line(format_args!("struct child child{number} = fork_child();"));
        let done = steps.iter().try_for_each(|step| self.step(step, number));
        for (mapping, member, nodes) in self.trace.forks.get(number).cloned().unwrap_or_default() {
            let process = match member {
                Member::Parent => "0".to_owned(),
                Member::Child => format!("child{number}.pid"),
            };
            let who = if member == Member::Parent { "parent" } else { "child" };
            self.located(
                &format!("m{mapping} of the {who}"),
                &process,
                &format!("m{mapping}"),
                "PAGE",
                &nodes,
            );
        }
        self.line(format_args!("end_child(&child{number});"));
        done
    }

    fn step(&mut self, step: &Step, child: usize) -> Option<()> {
        let text = step.text();
        match step {
            Step::RunOn(member, node) => {
                let cpu = self.cpu(*node)?;
                let thread =
                    if *member == Member::Child { format!("child{child}.pid") } else { "0".to_owned() };
                self.answered(&text, format_args!("run_on({thread}, {cpu})"))
            }
            Step::Write(Member::Parent, mapping, pages) => {
                self.line(format_args!("write_pages(m{mapping}, {}, {});", ints(pages), pages.len()));
                Some(())
            }
            Step::Write(Member::Child, mapping, pages) => pages.iter().try_for_each(|page| {
                let text = format!("child writes to m{mapping}: {page}");
                self.answered(&text, format_args!("child_writes(&child{child}, m{mapping} + {page} * PAGE)"))
            }),
            Step::SetPolicy(policy) => {
                self.answered(&text, format_args!("set_policy({})", arguments(policy)))
            }
            Step::Bind(part, policy) => self.answered(&text, bound(*part, policy, BindOptions::default())),
        }
    }

    fn pool(&mut self, pools: &[(NodeId, u64)], pages: u64, steps: &[PoolStep]) -> Option<()> {
        let number = self.pools;
        self.pools += 1;
        // The next page of the whole pool comes from the node that was written last, and the next to leave it is one of the first
        // node that has one to give.
        for (node, _) in pools.iter().rev() {
            for count in [1, 0] {
                self.line(format_args!("pool({node}, \"nr_hugepages\", {count}, 0);"));
            }
        }
        for (node, count) in pools {
            self.line(format_args!("pool({node}, \"nr_hugepages\", {count}, 0);"));
        }
        let expected = self.trace.pools.get(number)?;
        let address = expected.address.unwrap_or_default();
        let flags = "MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT";
        self.line(format_args!("word p{number} = map({address:#x}, {pages} * HUGE, {flags}, -1, 0);"));
        let text = format!("mmap of {pages} pages from the pools");
        let is_mapped = self.answers.as_slice().first().is_some_and(Result::is_ok);
        let done = self.answered(&text, format_args!("p{number} ? 0 : -1"));
        // Pools that are too small have no steps.
        let steps = if is_mapped { steps } else { &[] };
        let done = done.and_then(|()| steps.iter().try_for_each(|step| self.pool_step(step, number, pages)));
        if expected.address.is_some() {
            let name = format!("p{number}");
            self.located("huge pages from the pools", "0", &name, "HUGE", &expected.nodes);
            for (node, free) in &expected.free {
                self.line(format_args!("pool({node}, \"free_hugepages\", {free}, 1);"));
            }
        }
        self.line(format_args!("if (p{number})\n        munmap((void *)p{number}, {pages} * HUGE);"));
        for (node, _) in pools {
            self.line(format_args!("pool({node}, \"nr_hugepages\", 0, 0);"));
        }
        done
    }

    fn pool_step(&mut self, step: &PoolStep, number: usize, pages: u64) -> Option<()> {
        let text = step.text();
        match step {
            PoolStep::Resize(node, pages) => {
                match node {
                    Some(node) => self.line(format_args!("pool({node}, \"nr_hugepages\", {pages}, 0);")),
                    None => self.line(format_args!("whole_pool({pages});")),
                }
                Some(())
            }
            PoolStep::Touch(page) => {
                let start = format!("(void *)(p{number} + {page} * HUGE)");
                self.answered(&text, format_args!("madvise({start}, PAGE, MADV_POPULATE_WRITE)"))
            }
            PoolStep::Bind(policy, options) => {
                let (policy, flags) = (arguments(policy), flags(*options));
                self.answered(
                    &text,
                    format_args!("bind_pages(p{number}, HUGE, 0, {pages}, {policy}, {flags})"),
                )
            }
            PoolStep::Move(page, node) => {
                let (page, node) = (ints(&[page]), ints(&[node]));
                self.answered(&text, format_args!("move(p{number}, HUGE, {page}, {node}, 1)"))
            }
            PoolStep::Migrate(old, new) => self.answered(&text, migrated(old, new)),
        }
    }

    fn located(&mut self, what: &str, process: &str, start: &str, step: &str, nodes: &Nodes) {
        let (count, runs) = (nodes.runs().len(), runs(nodes));
        self.line(format_args!("located(\"{what}\", {process}, {start}, {step}, {runs}, {count});"));
    }

    /// The state after the last call.
    fn end(&mut self, script: &Script) {
        let (trace, mappings) = (self.trace, self.mappings);
        if let Some(expected) = &trace.expected {
            self.line(format_args!(
                "policy(\"the thread's policy\", 0, 0, {});",
                arguments(&expected.policy)
            ));
            for (number, nodes) in expected.nodes.iter().enumerate().take(mappings) {
                self.located(&format!("m{number}"), "0", &format!("m{number}"), "PAGE", nodes);
            }
            for (mapping, page, policy) in expected.policies.iter().filter(|(at, ..)| *at < mappings) {
                let what = format!("the policy of page {page} of m{mapping}");
                let policy = arguments(policy);
                self.line(format_args!("policy(\"{what}\", m{mapping} + {page} * PAGE, 2, {policy});"));
            }
            let allowed = &expected.allowed;
            self.line(format_args!("policy(\"nodes that the program may use\", 0, 4, 0, \"{allowed}\");"));
        }
        if script.calls.iter().any(|call| matches!(call, Call::Restrict(_))) {
            self.line("leave_cpuset();");
        }
    }
}

/// Mode and nodes as arguments of the program's functions.
fn arguments(policy: &MemPolicy) -> String {
    format!("{:#x}, \"{}\"", policy.mode.number() | policy.flags.bits(), policy.nodes)
}

fn bound(Part { mapping, first, count }: Part, policy: &MemPolicy, options: BindOptions) -> String {
    let (policy, flags) = (arguments(policy), flags(options));
    format!("bind_pages(m{mapping}, PAGE, {first}, {count}, {policy}, {flags})")
}

fn migrated(old: &NodeSet, new: &NodeSet) -> String {
    format!("migrate(\"{old}\", \"{new}\")")
}

/// `MPOL_MF_STRICT`, `MPOL_MF_MOVE` and `MPOL_MF_MOVE_ALL` of `linux/mempolicy.h`.
pub(crate) fn flags(options: BindOptions) -> u32 {
    let moving = match options.moving {
        Some(PageScope::Own) => 1 << 1,
        Some(PageScope::All) => 1 << 2,
        None => 0,
    };
    moving | u32::from(options.strict)
}

fn ints<T: Display>(numbers: &[T]) -> String {
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    format!("(int[]){{{}}}", numbers.join(", "))
}

fn runs(nodes: &Nodes) -> String {
    let run = |(_, count, node): &(usize, usize, Option<NodeId>)| {
        format!("{{{count}, {}}}", node.map_or("-1".to_owned(), |node| node.to_string()))
    };
    format!("(struct run[]){{{}}}", nodes.runs().iter().map(run).collect::<Vec<_>>().join(", "))
}
