//! Files of `/proc` that show nodes and CPUs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::ops::Range;

use nodewise_machine::{CpuId, NodeId, PolicyMode};
use nodewise_source::parse::maps::Mapping;
use nodewise_source::paths;
use nodewise_source::written::picture::padded_mask;
use rustix::fs::{MemfdFlags, OFlags, memfd_create};

use super::call::{Call, Stop};
use super::node_files::node_file;
use super::space::{ALL, Vma};
use super::tasks::real_cpu;
use super::world::World;

/// A file that is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// `/proc/PID/status` or `/proc/PID/task/TID/status`.
    Status,
    /// `/proc/PID/numa_maps`.
    NumaMaps,
    /// `/proc/PID/stat` or `/proc/PID/task/TID/stat`.
    Stat,
}

/// The thread and the file that a path names; 0 for the caller.
pub fn shown(path: &str) -> Option<(u32, Shown)> {
    let mut words =
        path.strip_prefix(paths::PROCESSES)?.strip_prefix('/')?.split('/').filter(|word| !word.is_empty());
    let number = |word: &str| match word {
        "self" | "thread-self" => Some(0),
        digits => digits.parse().ok().filter(|number| *number != 0),
    };
    let mut thread = number(words.next()?)?;
    let mut file = words.next()?;
    if file == "task" {
        thread = number(words.next()?)?;
        file = words.next()?;
    }
    let shown = match file {
        "status" => Shown::Status,
        "numa_maps" => Shown::NumaMaps,
        "stat" => Shown::Stat,
        _ => return None,
    };
    words.next().is_none().then_some((thread, shown))
}

impl World {
    /// `openat(2)` and `open(2)`.
    pub fn open(&mut self, call: &Call<'_>, path_at: u64, flags: u64) -> Result<i64, Stop> {
        let path = call.short_text(path_at)?.ok_or(Stop::Kernel)?;
        let path = std::str::from_utf8(&path).map_err(|_| Stop::Kernel)?;
        let writes = OFlags::WRONLY.union(OFlags::RDWR).union(OFlags::PATH).bits();
        if flags as u32 & writes != 0 {
            return Err(Stop::Kernel);
        }
        if let Some((node, file)) = node_file(path) {
            self.process_of(call.thread()).map_err(|_| Stop::Kernel)?;
            let text = self.node_text(call.thread(), node, file)?;
            return Err(Stop::File(in_memory(text.as_bytes()).map_err(|_| Stop::Kernel)?));
        }
        let (thread, file) = shown(path).ok_or(Stop::Kernel)?;
        let thread = if thread == 0 { call.thread() } else { thread };
        // Whatever is wrong with the thread, the kernel's own answer says it.
        let process = self.process_of(thread).map_err(|_| Stop::Kernel)?;
        let bytes = match file {
            Shown::Status => self.status_text(thread)?.into_bytes(),
            Shown::NumaMaps => self.numa_maps(process, thread)?.into_bytes(),
            Shown::Stat => self.stat_bytes(thread)?,
        };
        let file = in_memory(&bytes).map_err(|_| Stop::Kernel)?;
        Err(Stop::File(file))
    }

    /// The real file with the CPUs and nodes of the machine.
    fn status_text(&self, thread: u32) -> Result<String, Stop> {
        let bytes = std::fs::read(format!("{}/status", paths::process(thread))).map_err(|_| Stop::Kernel)?;
        let own = self.own(thread);
        let mems = &self.facts.with_memory;
        let (cpu_bits, node_bits) = (self.facts.cpu_mask_bits, self.facts.architecture.max_nodes());
        let mut text = String::new();
        for line in String::from_utf8_lossy(&bytes).lines() {
            let name = line.split_once(':').map_or(line, |(name, _)| name);
            let value = match name {
                "Cpus_allowed" => padded_mask(&own.cpus.to_mask(), cpu_bits),
                "Cpus_allowed_list" => own.cpus.to_string(),
                "Mems_allowed" => padded_mask(&mems.to_mask(), node_bits),
                "Mems_allowed_list" => mems.to_string(),
                _ => {
                    text.push_str(line);
                    text.push('\n');
                    continue;
                }
            };
            let _ = writeln!(text, "{name}:\t{value}");
        }
        Ok(text)
    }

    /// The real file with the CPU of the machine, where that is another one.
    fn stat_bytes(&self, thread: u32) -> Result<Vec<u8>, Stop> {
        let cpu = self.cpu_of(thread);
        if real_cpu(thread) == Some(cpu) {
            return Err(Stop::Kernel);
        }
        let bytes = std::fs::read(format!("{}/stat", paths::process(thread))).map_err(|_| Stop::Kernel)?;
        with_processor(&bytes, cpu).ok_or(Stop::Kernel)
    }

    fn numa_maps(&mut self, process: u32, thread: u32) -> Result<String, Stop> {
        let vmas = self.settle(process, thread, &ALL).map_err(|_| Stop::Kernel)?;
        let own = self.own(thread).policy;
        let mut text = String::new();
        for vma in &vmas {
            for (bytes, policy) in self.pieces(process, vma) {
                // As the kernel does: the thread's where the mapping has none.
                let policy = policy.as_ref().unwrap_or(&own).reported();
                let policy = if policy.mode == PolicyMode::Default {
                    "default".to_owned()
                } else {
                    policy.to_string()
                };
                let nodes = self.nodes_of(process, vma, &bytes);
                line(&mut text, &bytes, &policy, &vma.mapping, &nodes);
            }
        }
        Ok(text)
    }

    /// Resident pages per node.
    fn nodes_of(&self, process: u32, vma: &Vma, bytes: &Range<u64>) -> BTreeMap<NodeId, u64> {
        let mut nodes = BTreeMap::new();
        let Some(pages) = self.pages_of(process, vma) else { return nodes };
        for run in vma.resident.pages.overlapping(bytes) {
            let run = run.start.max(bytes.start)..run.end.min(bytes.end);
            let keys = vma.keys(&run);
            for (range, home) in pages.homes.overlapping(&keys) {
                let length = range.end.min(keys.end) - range.start.max(keys.start);
                *nodes.entry(home.node).or_default() += length / 4096;
            }
        }
        nodes
    }
}

/// A line of `numa_maps`, numa(7).
fn line(
    text: &mut String,
    bytes: &Range<u64>,
    policy: &str,
    mapping: &Mapping,
    nodes: &BTreeMap<NodeId, u64>,
) {
    let _ = write!(text, "{:08x} {policy}", bytes.start);
    match (mapping.file, mapping.word(), &mapping.name) {
        (Some(_), _, Some(name)) => {
            let _ = write!(
                text,
                " file={}",
                name.replace('\\', "\\134")
                    .replace(' ', "\\040")
                    .replace('\t', "\\011")
                    .replace('\n', "\\012")
            );
        }
        (_, Some(word @ ("heap" | "stack")), _) => {
            let _ = write!(text, " {word}");
        }
        _ => {}
    }
    let pages: u64 = nodes.values().sum();
    if pages > 0 {
        let is_own = mapping.file.is_none() || mapping.permissions.write && !mapping.permissions.shared;
        let _ = if is_own {
            write!(text, " anon={pages} dirty={pages}")
        } else {
            write!(text, " mapped={pages}")
        };
        for (node, pages) in nodes {
            let _ = write!(text, " N{node}={pages}");
        }
        text.push_str(" kernelpagesize_kB=4");
    }
    text.push('\n');
}

/// The line of `stat` with another CPU: field 39, the 37th behind the name, which may hold any bytes.
fn with_processor(line: &[u8], cpu: CpuId) -> Option<Vec<u8>> {
    const FIELD: usize = 36;
    let fields = line.iter().rposition(|byte| *byte == b')')? + 2;
    let mut words: Vec<&[u8]> = line.get(fields..)?.split(|byte| *byte == b' ').collect();
    let number = cpu.number().to_string();
    *words.get_mut(FIELD)? = number.as_bytes();
    Some([&line[..fields], &words.join(&b' ')].concat())
}

fn in_memory(bytes: &[u8]) -> std::io::Result<File> {
    let mut file = File::from(memfd_create("nodewise", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_is_replaced_behind_any_name() {
        let line = b"7 (a ) R 1) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 CPU 37 38\n";
        let changed = String::from_utf8(with_processor(line, CpuId::new(40)).unwrap()).unwrap();
        assert_eq!(changed, String::from_utf8_lossy(line).replace("CPU", "40"));
        assert_eq!(with_processor(b"7 (short) S 1 2", CpuId::new(40)), None);
        assert_eq!(with_processor(b"7 (", CpuId::new(40)), None);
    }
}
