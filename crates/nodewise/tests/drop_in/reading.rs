//! How ours understands a string that the originals misread, written as one that they read in the same way.
//!
//! A rule about such strings need not say what may differ: the original must do with the rewritten line what ours
//! does with the line itself.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use nodewise_machine::{CpuSet, NodeId, NodeSet};

use crate::draw::{Argument, Line};

/// Nodes and CPUs as the kernel lists them.
#[derive(Debug)]
pub struct Nodes {
    there: NodeSet,
    /// Nodes that memory may come from.
    memory: NodeSet,
}

/// A line that means for the originals what another means for ours, and the rule that says why they differ.
pub struct Reading {
    /// The name of the rule.
    pub rule: &'static str,
    /// The line; `None` where a set is empty, which every option refuses in its own words.
    pub line: Option<Line>,
}

/// Devices begin like this.
const DEVICES: [&str; 5] = ["netdev:", "block:", "file:", "ip:", "pci:"];

impl Nodes {
    /// Reads the kernel's lists.
    pub fn read() -> Option<Self> {
        let there: NodeSet =
            fs::read_to_string("/sys/devices/system/node/online").ok()?.trim().parse().ok()?;
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let memory = status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:"))?;
        Some(Self { there, memory: memory.trim().parse().ok()? })
    }

    /// The line in words that the originals read as ours does; `None` where they differ in no string.
    pub fn reading(&self, line: &Line) -> Option<Reading> {
        let mut rewritten = line.clone();
        let mut rule = None;
        let mut is_empty = false;
        if line.tool == "numactl" {
            for argument in line.arguments() {
                if let Some((name, letter, text)) = self.argument(argument.letter, line.text(&argument)) {
                    rule = Some(name);
                    is_empty |= text.is_empty();
                    let word = &mut rewritten.words[argument.word];
                    word.truncate(argument.at);
                    word.push_str(&text);
                    if letter != argument.letter {
                        chooses_cpus(&mut rewritten.words, &argument);
                    }
                }
            }
        } else {
            let mut empty = None;
            for word in rewritten.words.iter_mut().filter(|word| !word.starts_with('-')) {
                match self.argument('m', word) {
                    // Beside other words it stays, and the originals say what becomes of it.
                    Some((name, _, text)) if text.is_empty() => empty = Some(name),
                    Some((name, _, text)) => (rule, *word) = (Some(name), text),
                    None => (),
                }
            }
            is_empty = rule.is_none() && empty.is_some();
            rule = rule.or(empty);
        }
        Some(Reading { rule: rule?, line: (!is_empty).then_some(rewritten) })
    }

    /// An argument in other words: the rule, the option that it belongs to then, and the words.
    fn argument(&self, letter: char, text: &str) -> Option<(&'static str, char, String)> {
        match letter {
            'i' | 'w' | 'p' | 'P' | 'm' | 'N' | 'c' => (),
            _ => return None,
        }
        if let Some(text) = self.device(text) {
            return Some(("nodes of devices", letter, text));
        }
        let runs = matches!(letter, 'N' | 'c');
        let counted = if runs { self.with_cpus() } else { self.memory.clone() };
        let (inverse, named) = text.strip_prefix('!').map_or((false, text), |named| (true, named));
        let named = self.named(named, &counted)?;
        let nodes = if inverse { self.there.difference(&named) } else { named };
        if runs && self.memory != self.there {
            let cpus = nodes.iter().filter_map(cpus_of).fold(CpuSet::new(), |all, cpus| all.union(&cpus));
            return Some(("nodes for CPUs", 'C', cpus.to_string()));
        }
        // The kernel leaves out nodes without memory, which the originals may not name.
        inverse.then(|| ("inverse sets", letter, nodes.intersection(&self.memory).to_string()))
    }

    /// On a machine with one node each device is there; a device of another is on the node that the kernel says. A
    /// file on no disk has no device, and a device that does not exist stays for the originals to refuse.
    fn device(&self, text: &str) -> Option<String> {
        let at = DEVICES.iter().filter_map(|kind| text.find(kind)).min()?;
        let (kind, name) = text.get(at..)?.split_once(':')?;
        let class = |class: &str| {
            let path = Path::new("/sys/class").join(class).join(name.trim_start());
            fs::exists(path).unwrap_or(false)
        };
        let is_there = match kind {
            "file" => is_on_a_disk(name),
            "netdev" => class("net"),
            "block" => class("block"),
            _ => true,
        };
        if !is_there {
            return None;
        }
        let only = self.there.first().filter(|_| self.there.len() == 1)?;
        Some(format!("{}{only}", &text[..at]))
    }

    fn with_cpus(&self) -> NodeSet {
        self.there.iter().filter(|node| cpus_of(*node).is_some_and(|cpus| !cpus.is_empty())).collect()
    }

    /// Nodes by plain numbers, ranges and `all`, which may count among those that can be used.
    fn named(&self, text: &str, counted: &NodeSet) -> Option<NodeSet> {
        let (relative, list) = text.strip_prefix('+').map_or((false, text), |list| (true, list));
        let usable = counted.union(&self.memory);
        let number = |text: &str| {
            let number: u32 = text.parse().ok().filter(|_| text.len() == 1)?;
            let node = if relative { counted.nth(number as usize)? } else { NodeId::new(number) };
            usable.contains(node).then_some(node)
        };
        let mut set = NodeSet::new();
        for item in list.split(',') {
            if item == "all" {
                set = set.union(counted);
                continue;
            }
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let (first, last) = (number(first)?, number(last)?);
            set.extend(NodeSet::range(first, last).iter().filter(|node| usable.contains(*node)));
        }
        Some(set)
    }
}

/// Whether a file is a disk, or lies on one.
fn is_on_a_disk(path: &str) -> bool {
    let Ok(status) = fs::metadata(path) else { return false };
    let kind = status.file_type();
    let device = if kind.is_block_device() || kind.is_char_device() { status.rdev() } else { status.dev() };
    // The numbers as glibc's `gnu_dev_major` and `gnu_dev_minor` take them out.
    let major = (device >> 8 & 0xfff) | (device >> 32 & !0xfff);
    let minor = (device & 0xff) | (device >> 12 & !0xff);
    fs::exists(format!("/sys/dev/block/{major}:{minor}")).unwrap_or(false)
}

/// The CPUs of a node.
fn cpus_of(node: NodeId) -> Option<CpuSet> {
    let text = fs::read_to_string(format!("/sys/devices/system/node/node{node}/cpulist")).ok()?;
    text.trim().parse().ok()
}

/// Makes an argument's option `--physcpubind`.
fn chooses_cpus(words: &mut [String], argument: &Argument) {
    let (word, end) = if argument.at > 0 {
        (argument.word, argument.at)
    } else {
        (argument.word - 1, words[argument.word - 1].len())
    };
    let rest = words[word].split_off(end);
    let option = &mut words[word];
    match option.strip_prefix("--") {
        Some(name) => {
            *option = if name.ends_with('=') { "--physcpubind=" } else { "--physcpubind" }.to_owned()
        }
        None => {
            option.pop();
            option.push('C');
        }
    }
    option.push_str(&rest);
}
