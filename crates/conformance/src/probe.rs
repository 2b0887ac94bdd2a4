//! Scripts as lines for a program in C that plays them anywhere, and prints the answer to each call, the policies and the node of
//! each page: what it prints in two places can be compared line by line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use nodewise_machine::{Machine, MemPolicy, NodeId, NodeSet};

use crate::kind::ScriptId;
use crate::random::Random;
use crate::reproducer::{self, flags};
use crate::script::{BLOCK, Call, MappingKind, Member, Part, Script, Step};

/// Returns the source of the program: C for Linux, for `cc -static -pthread`.
///
/// `PROGRAM FILE` plays the scripts of a file ([`lines`]), each in a process of its own; `PROGRAM FILE WORD` changes settings of a
/// guest before, `transparent_hugepage/enabled` to this word.
pub fn source() -> String {
    format!("{}{}", reproducer::HEAD, include_str!("probe.c"))
}

/// A script about memory that is replaced, given back and moved, pages that are named twice, a page among others that is
/// elsewhere, and one of a file that is not mapped any more; for machines whose nodes 0 and 1 have memory.
pub const REPLACED: &str = "\
script replaced
cpu 0
map small 8
bind 0 0 8 0x2 1 0
write 0 0 1 2 3 4 5 6 7
replace 0 2 3
write 0 2 3
remap 0 12 there
map small 4
policy 0x2 1
write 1 0 1
drop 1 0 1
policy 0x2 0
write 1 0
map small 4
bind 2 0 4 0x2 1 0
write 2 0
remap 2 8 there
write 2 6
remap 2 12 here
write 2 11
remap 2 14 behind
write 2 13
map small 6
bind 3 0 6 0x3 0-1 0
write 3 1 2
remap 3 9 there
write 3 0 3 4 7 8
move 1 0=1 0=1 1=0 1=0
bind 0 6 1 0x2 0 1
map file 4 0
write 4 0 1
drop 4 0 1
bind 4 0 4 0x2 1 2
write 4 0
";

/// Calls that replace, move and give back memory, which scripts for the model do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryChanges {
    None,
    /// Drawn by the number of the script, between its calls.
    Drawn,
}

/// Writes scripts for the program. Calls that change the whole system are left out ([`Script::of_one_program`]).
pub fn lines(machine: &Machine, scripts: &[(ScriptId, Script)], changes: MemoryChanges) -> String {
    let mut text = String::new();
    for (id, script) in scripts {
        line(&mut text, format_args!("script {id}"));
        // As in a guest beside the model, a script begins on the first node that has CPUs.
        let start = machine.nodes_with_cpus().first().map(Call::RunOn);
        let mut changing = Changing { random: Random::new(id.number), mappings: Vec::new() };
        for call in start.iter().chain(&script.calls) {
            write_call(&mut text, machine, call);
            if let Call::Map(kind, pages) = call {
                let (kind, pages) = (*kind, *pages);
                changing.mappings.push(Changed { kind, pages, gained: 0, is_anywhere: false });
            } else if changes == MemoryChanges::Drawn {
                changing.write(&mut text);
            }
        }
    }
    text
}

/// Draws changes of memory.
struct Changing {
    random: Random,
    mappings: Vec<Changed>,
}

/// A mapping as it was made, and what it has gained.
struct Changed {
    kind: MappingKind,
    pages: u64,
    gained: u64,
    /// Whether the kernel has chosen its address: what is behind it is not known.
    is_anywhere: bool,
}

impl Changing {
    /// Pages that a mapping gains at most.
    const MOST_GAINED: u64 = 24;

    /// Writes a change behind some of the calls.
    fn write(&mut self, text: &mut String) {
        let random = &mut self.random;
        if self.mappings.is_empty() || !random.percent(40) {
            return;
        }
        let number = random.below(self.mappings.len() as u64) as usize;
        let mapping = &mut self.mappings[number];
        let (kind, pages) = (mapping.kind, mapping.pages);
        let unit = if kind == MappingKind::Huge { BLOCK } else { 1 };
        let first = random.below(pages / unit);
        let count = (1 + random.below(pages / unit - first)) * unit;
        let first = first * unit;
        match (kind, random.below(4)) {
            (_, 0) => line(text, format_args!("drop {number} {first} {count}")),
            (MappingKind::Small | MappingKind::Huge, 1) => {
                line(text, format_args!("replace {number} {first} {count}"));
            }
            (MappingKind::Small, 2..) => {
                mapping.gained += random.below(Self::MOST_GAINED);
                let places = ["there", "behind", "here"];
                let place = random.one(&places[..if mapping.is_anywhere { 2 } else { 3 }]);
                mapping.is_anywhere = mapping.is_anywhere && place != "there" || place == "behind";
                // Memory without a page has its turns by an address that the kernel chooses.
                line(text, format_args!("write {number} 0"));
                line(text, format_args!("remap {number} {} {place}", pages + mapping.gained));
            }
            _ => {}
        }
    }
}

fn line(text: &mut String, words: impl std::fmt::Display) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{words}");
}

fn write_call(text: &mut String, machine: &Machine, call: &Call) {
    match call {
        Call::RunOn(node) => run_on(text, machine, "cpu", *node),
        Call::SetPolicy(policy) => line(text, format_args!("policy {}", policy_words(policy))),
        Call::Map(kind, pages) => match kind {
            MappingKind::Small | MappingKind::Plain(_) => line(text, format_args!("map small {pages}")),
            MappingKind::Huge => line(text, format_args!("map huge {pages}")),
            MappingKind::File(first) => line(text, format_args!("map file {pages} {first}")),
        },
        Call::Touch(mapping, pages) => {
            line(text, format_args!("write {mapping} {}", joined(pages.iter().map(u64::to_string))));
        }
        Call::Bind(Part { mapping, first, count }, policy, options) => {
            let (policy, flags) = (policy_words(policy), flags(*options));
            line(text, format_args!("bind {mapping} {first} {count} {policy} {flags}"));
        }
        Call::SetHome(Part { mapping, first, count }, node) => {
            line(text, format_args!("home {mapping} {first} {count} {node}"));
        }
        Call::Migrate(old, new) => line(text, format_args!("migrate {} {}", list(old), list(new))),
        Call::Move(mapping, moves) => {
            let moves = moves.iter().map(|(page, node)| format!("{page}={node}"));
            line(text, format_args!("move {mapping} {}", joined(moves)));
        }
        Call::Program(pages) => line(text, format_args!("program {pages}")),
        Call::Thread(number) => line(text, format_args!("thread {number}")),
        Call::Keep(mapping) => line(text, format_args!("keep {mapping}")),
        Call::Fork(steps) => {
            line(text, "fork");
            steps.iter().for_each(|step| write_step(text, machine, step));
            line(text, "join");
        }
        Call::Restrict(_) | Call::HugePages(..) | Call::Pool { .. } | Call::Group(_) | Call::Cache(_) => {}
    }
}

fn write_step(text: &mut String, machine: &Machine, step: &Step) {
    match step {
        Step::RunOn(Member::Parent, node) => run_on(text, machine, "cpu", *node),
        Step::RunOn(Member::Child, node) => run_on(text, machine, "child-cpu", *node),
        Step::Write(member, mapping, pages) => {
            let call = if *member == Member::Child { "child-write" } else { "write" };
            line(text, format_args!("{call} {mapping} {}", joined(pages.iter().map(u64::to_string))));
        }
        Step::SetPolicy(policy) => line(text, format_args!("policy {}", policy_words(policy))),
        Step::Bind(Part { mapping, first, count }, policy) => {
            line(text, format_args!("bind {mapping} {first} {count} {} 0", policy_words(policy)));
        }
    }
}

fn run_on(text: &mut String, machine: &Machine, call: &str, node: NodeId) {
    if let Some(cpu) = machine.cpus_of(node).first() {
        line(text, format_args!("{call} {cpu}"));
    }
}

/// Mode with flags, and nodes.
fn policy_words(policy: &MemPolicy) -> String {
    format!("{:#x} {}", policy.mode.number() | policy.flags.bits(), list(&policy.nodes))
}

fn list(nodes: &NodeSet) -> String {
    if nodes.is_empty() { "none".to_owned() } else { nodes.to_string() }
}

fn joined(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(" ")
}

/// A line of a script that two places printed differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlike {
    /// The script's name.
    pub script: String,
    /// `answer`, `policy` or `pages`; `end` where one of them ended before.
    pub kind: String,
    /// The line of the kernel; empty where it printed none.
    pub kernel: String,
    /// The line of the other place.
    pub other: String,
}

/// Scripts that printed the same, and the first difference of each other one.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Comparison {
    /// Scripts without a difference.
    pub same: usize,
    /// The first different line of each other script. Those behind it may follow from it.
    pub different: Vec<Unlike>,
    /// Lines that were compared.
    pub lines: usize,
}

impl Comparison {
    /// Numbers of scripts by kind of their first difference.
    pub fn by_kind(&self) -> BTreeMap<&str, usize> {
        let mut kinds = BTreeMap::new();
        for unlike in &self.different {
            *kinds.entry(unlike.kind.as_str()).or_default() += 1;
        }
        kinds
    }
}

/// Compares what the program printed in a kernel with what it printed elsewhere, script by script.
pub fn compare(kernel: &str, other: &str) -> Comparison {
    let (kernels, others) = (by_script(kernel), by_script(other));
    let mut comparison = Comparison::default();
    let names: BTreeSet<&str> = kernels.keys().chain(others.keys()).copied().collect();
    for name in names {
        let kernels = kernels.get(name).map_or(&[][..], Vec::as_slice);
        let others = others.get(name).map_or(&[][..], Vec::as_slice);
        let length = kernels.len().max(others.len());
        comparison.lines += length;
        let at = |lines: &[&str], number: usize| lines.get(number).copied().unwrap_or_default().to_owned();
        let first = (0..length).find(|number| kernels.get(*number) != others.get(*number));
        match first {
            // A script that did not come to its end has printed nothing that counts.
            None if kernels.last().is_some_and(|line| line.ends_with(" end")) => comparison.same += 1,
            None => comparison.different.push(Unlike {
                script: name.to_owned(),
                kind: "end".to_owned(),
                kernel: kernels.last().copied().unwrap_or_default().to_owned(),
                other: others.last().copied().unwrap_or_default().to_owned(),
            }),
            Some(number) => {
                let (kernel, other) = (at(kernels, number), at(others, number));
                let kind = |line: &str| line.split(' ').nth(2).unwrap_or("end").to_owned();
                let kinds = (kind(&kernel), kind(&other));
                let kind = if kinds.0 == kinds.1 { kinds.0 } else { "end".to_owned() };
                comparison.different.push(Unlike { script: name.to_owned(), kind, kernel, other });
            }
        }
    }
    comparison
}

/// Lines by the script that they begin with.
fn by_script(text: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut scripts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in text.lines() {
        if let Some((script, _)) = line.split_once(' ') {
            scripts.entry(script).or_default().push(line);
        }
    }
    scripts
}

#[cfg(test)]
mod tests {
    use nodewise_machine::{PolicyMode, spec};

    use super::*;
    use crate::kind::ScriptKind;

    #[test]
    fn a_script_is_written_line_by_line() {
        let machine = spec::machine("(1c 1G)").unwrap();
        let policy = MemPolicy::new(PolicyMode::Bind, NodeSet::from([0, 1]));
        let script = Script {
            weights: Vec::new(),
            calls: vec![
                Call::Map(MappingKind::File(2), 4),
                Call::SetPolicy(policy.clone()),
                Call::Move(0, vec![(3, NodeId::new(1)), (0, NodeId::new(0))]),
                Call::Migrate(NodeSet::new(), NodeSet::from([1])),
                Call::Fork(vec![Step::Write(Member::Child, 0, vec![1, 1])]),
            ],
        };
        let id = ScriptId { kind: ScriptKind::Calls, number: 7 };
        let expected = "script calls-7\ncpu 0\nmap file 4 2\npolicy 0x2 0-1\nmove 0 3=1 0=0\nmigrate none 1\nfork\n\
                        child-write 0 1 1\njoin\n";
        assert_eq!(lines(&machine, &[(id, script)], MemoryChanges::None), expected);
    }

    #[test]
    fn the_first_difference_of_a_script_counts() {
        let kernel = "a-1 1 answer cpu 0: success\na-1 2 pages m0: 0 on node 1\na-1 end\nb-1 end\n";
        let check = |other: &str, same: usize, kinds: &[(&str, usize)]| {
            let comparison = compare(kernel, other);
            assert_eq!(comparison.same, same, "{other}");
            assert_eq!(comparison.by_kind(), kinds.iter().copied().collect(), "{other}");
        };
        check(kernel, 2, &[]);
        check(&kernel.replace("node 1", "node 0"), 1, &[("pages", 1)]);
        check(&kernel.replace("success", "EIO").replace("node 1", "node 0"), 1, &[("answer", 1)]);
        check("a-1 1 answer cpu 0: success\nb-1 end\n", 1, &[("end", 1)]);
        // Nothing at all is not the same.
        assert_eq!(compare("a-1 1 answer cpu 0: success\n", "a-1 1 answer cpu 0: success\n").same, 0);
    }
}
