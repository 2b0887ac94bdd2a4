//! The files of a machine that has none: of a spec, or of a machine file.
//!
//! For programs that read the kernel's files and are to see a hypothetical machine.

mod cpus;
mod nodes;
pub mod picture;

use nodewise_machine::{Bytes, Machine, MeminfoValue};

use crate::paths;
use crate::tree::{Memory, Tree};

/// Writes the files of the machine as the kernel would, into memory. What the machine does not say has no file.
pub fn tree_of(machine: &Machine) -> Tree {
    let empty = Memory::new().directory(paths::NODES);
    Tree::memory(files(machine).iter().fold(empty, |files, file| files.file(&file.path, &file.text)))
}

/// A file and its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its absolute path.
    pub path: String,
    pub text: String,
}

/// Lists the files of nodes, CPUs, caches, memory tiers and the machine's memory as the kernel would write them. What
/// the machine does not say has no file.
pub fn files(machine: &Machine) -> Vec<File> {
    let mut files = Files::default();
    nodes::write(machine, &mut files);
    cpus::write(machine, &mut files);
    system(machine, &mut files);
    files.0
}

/// Files that are written one after the other.
#[derive(Default)]
struct Files(Vec<File>);

impl Files {
    /// A file of one line.
    fn line(&mut self, path: String, value: impl std::fmt::Display) {
        self.text(path, format!("{value}\n"));
    }

    /// A file of one line, where its value is known.
    fn known(&mut self, path: String, value: Option<impl std::fmt::Display>) {
        if let Some(value) = value {
            self.line(path, value);
        }
    }

    /// A file of several lines, if there are any.
    fn text(&mut self, path: String, text: String) {
        if !text.is_empty() {
            self.0.push(File { path, text });
        }
    }
}

/// `/proc/meminfo`: what nodes give, added up, and the system's own lines.
fn system(machine: &Machine, files: &mut Files) {
    let mut text = String::new();
    let mut line = |name: &str, size: Bytes| text += &meminfo(name, MeminfoValue::Size(size));
    if let Some(total) = machine.system_memory.or_else(|| machine.memory_total()) {
        line("MemTotal", total);
    }
    for name in ["MemFree", "FilePages", "SReclaimable"] {
        let sizes: Option<Vec<Bytes>> = machine.nodes.values().map(|node| node.size_of(name)).collect();
        let sum: Option<u64> =
            sizes.map(|sizes| sizes.iter().fold(0_u64, |sum, size| sum.saturating_add(size.get())));
        let shown = if name == "FilePages" { "Cached" } else { name };
        if let Some(sum) = sum.filter(|_| !machine.nodes.is_empty()) {
            line(shown, Bytes::new(sum));
        }
    }
    if let Some(free) = machine.swap_free {
        line("SwapTotal", free);
        line("SwapFree", free);
    }
    if let Some(size) = machine.settings.default_huge_page_size {
        line("Hugepagesize", size);
    }
    files.text(paths::MEMINFO.to_owned(), text);
}

/// A line of `meminfo`.
fn meminfo(name: &str, value: MeminfoValue) -> String {
    match value {
        MeminfoValue::Size(size) => format!("{name}: {} kB\n", size.get() >> 10),
        MeminfoValue::Count(count) => format!("{name}: {count}\n"),
    }
}

#[cfg(test)]
mod tests;
