//! The output of likwid-topology.
//!
//! # Source
//! LIKWID 4.0 to 5.4, with and without `-c`. Instruction caches are not in it, and sizes of memory are printed with six
//! digits, so that they are near to those of the kernel.

use std::collections::BTreeMap;

use nodewise_machine::id::Id as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::printable::printable;
use nodewise_machine::{
    Bytes, Cache, CacheKind, CoreId, Cpu, CpuId, CpuModel, CpuSet, DieId, Machine, MeminfoField,
    MeminfoValue, Node, NodeId, NodeMatrix, Origin, PackageId,
};

use super::is_prompt;
use crate::limits::{MOST_CPUS, MOST_NODES};
use crate::parse::{ParseError, Parsed, Problems, digits, lines};

/// The head of the table of threads, up to its third column.
const HEAD: [&str; 2] = ["HWThread", "Thread"];
const TITLE: &str = "Hardware Thread Topology";

/// Whether a text is one.
pub fn is_likwid(text: &str) -> bool {
    let mut said =
        lines(text).map(|(_, line)| line.trim()).filter(|line| !line.is_empty() && !is_prompt(line));
    said.next().is_some_and(|line| line.starts_with("---") || line.starts_with("CPU name:"))
        && said.take(20).any(|line| line == TITLE)
}

/// Reads it.
///
/// # Errors
/// A text without the table of threads.
pub fn parse(text: &str) -> Result<Parsed<Machine>, ParseError> {
    let mut reader = Reader::default();
    let mut last = 1;
    for (number, line) in lines(text) {
        last = number;
        reader.line(number, line.trim());
    }
    if reader.machine.cpus.is_empty() {
        return Err(ParseError::new(
            last,
            "a table of threads, headed \"HWThread Thread Core Die Socket\"",
            "",
        ));
    }
    reader.finish();
    Ok(Parsed { value: reader.machine, problems: reader.problems })
}

/// The machine as far as it is read.
struct Reader {
    machine: Machine,
    problems: Problems,
    /// The columns of the table of threads, while it lasts.
    columns: Vec<String>,
    /// CPUs that likwid may use.
    available: CpuSet,
    names_available: bool,
    cores: BTreeMap<[Option<u32>; 3], CpuSet>,
    model: Option<String>,
    cache: Option<Cache>,
    domain: Option<NodeId>,
    /// Rows of distances by line, in the order of the domains.
    distances: Vec<(u32, NodeId, Vec<u32>)>,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            machine: Machine::new(Origin::Capture(String::new())),
            problems: Problems::default(),
            columns: Vec::new(),
            available: CpuSet::new(),
            names_available: false,
            cores: BTreeMap::new(),
            model: None,
            cache: None,
            domain: None,
            distances: Vec::new(),
        }
    }
}

impl Reader {
    fn line(&mut self, number: u32, line: &str) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if words.starts_with(&HEAD) {
            self.columns = words.iter().map(|word| (*word).to_owned()).collect();
            self.names_available = words.contains(&"Available");
        } else if line.starts_with("---") || line.starts_with("***") {
            self.columns.clear();
        } else if !self.columns.is_empty() {
            self.thread(number, line, &words);
        } else if let Some((name, value)) = line.split_once(':') {
            self.fact(number, line, name.trim(), value.trim());
        }
    }

    /// Takes a row of the table of threads.
    fn thread(&mut self, number: u32, line: &str, words: &[&str]) {
        let value = |name: &str| {
            let at = self.columns.iter().position(|column| column == name)?;
            words.get(at).and_then(|word| digits::<u32>(word))
        };
        let Some(id) = value("HWThread").filter(|id| *id < MOST_CPUS).map(CpuId::new) else {
            return self.problems.add(number, "a row of numbers below \"HWThread\"", line);
        };
        let place = [value("Socket"), value("Die"), value("Core")];
        let [package, die, core] = place;
        let cpu = Cpu {
            package: package.map(PackageId::new),
            die: die.map(DieId::new),
            core: core.map(CoreId::new),
            ..Cpu::new(id)
        };
        if words.last() == Some(&"*") {
            self.available.insert(id);
        }
        if core.is_some() {
            self.cores.entry(place).or_default().insert(id);
        }
        if self.machine.cpus.insert(id, cpu).is_some() {
            self.problems.add(number, "each thread once", line);
        }
    }

    /// Takes `Size: 32 kB`.
    fn fact(&mut self, number: u32, line: &str, name: &str, value: &str) {
        let is_known = match name {
            "CPU name" => {
                self.model
                    .get_or_insert_with(|| value.split_ascii_whitespace().collect::<Vec<_>>().join(" "));
                true
            }
            "Level" => self.level(value),
            "Domain" => self.domain(value),
            _ => self.fact_of_cache(name, value) && self.fact_of_domain(number, name, value),
        };
        if !is_known {
            self.problems.add(number, format!("a value of {name} as likwid-topology prints it"), line);
        }
    }

    fn level(&mut self, value: &str) -> bool {
        // likwid lists data caches and unified ones; which of both, only with -c.
        let kind = if value == "1" { CacheKind::Data } else { CacheKind::Unified };
        let cache = |level| Cache {
            level,
            kind,
            size: None,
            line_size: None,
            ways: None,
            sets: None,
            cpus: CpuSet::new(),
        };
        self.cache = digits(value).filter(|level| *level > 0).map(cache);
        self.cache.is_some()
    }

    /// Takes a fact of the cache that is open; says whether it is well-formed or another fact.
    fn fact_of_cache(&mut self, name: &str, value: &str) -> bool {
        let Some(cache) = &mut self.cache else { return true };
        let number = digits::<u32>(value);
        match name {
            "Size" => {
                cache.size = bytes(value).map(Bytes::new);
                cache.size.is_some()
            }
            "Type" => {
                cache.kind = match value {
                    "Data cache" => CacheKind::Data,
                    "Unified cache" => CacheKind::Unified,
                    "Instruction cache" => CacheKind::Instruction,
                    _ => return false,
                };
                true
            }
            "Associativity" => {
                cache.ways = number.filter(|ways| *ways > 0);
                number.is_some()
            }
            "Number of sets" => {
                cache.sets = number.filter(|sets| *sets > 0);
                number.is_some()
            }
            "Cache line size" => {
                cache.line_size = number.filter(|size| *size > 0);
                number.is_some()
            }
            "Cache groups" => {
                let groups = groups(value);
                let most = 8 * MOST_CPUS as usize;
                if let Some(groups) =
                    groups.as_ref().filter(|groups| self.machine.caches.len() + groups.len() <= most)
                {
                    let caches = groups.iter().map(|cpus| Cache { cpus: cpus.clone(), ..cache.clone() });
                    self.machine.caches.extend(caches);
                }
                self.cache = None;
                groups.is_some()
            }
            _ => true,
        }
    }

    fn domain(&mut self, value: &str) -> bool {
        let id = digits::<u32>(value).filter(|id| *id < NodeId::LIMIT).map(NodeId::new);
        let is_new =
            |id: &NodeId| !self.machine.nodes.contains_key(id) && self.machine.nodes.len() < MOST_NODES;
        self.domain = id.filter(is_new);
        if let Some(id) = self.domain {
            self.machine.nodes.insert(id, Node::new(id));
        }
        self.domain.is_some()
    }

    /// Takes a fact of the node that is open; says whether it is well-formed or another fact.
    fn fact_of_domain(&mut self, number: u32, name: &str, value: &str) -> bool {
        let Some(id) = self.domain else { return true };
        let Some(node) = self.machine.nodes.get_mut(&id) else { return true };
        match name {
            "Processors" => {
                let groups = groups(value);
                let is_one = groups.as_ref().is_some_and(|groups| groups.len() <= 1);
                node.cpus = groups.unwrap_or_default().pop().unwrap_or_default();
                is_one
            }
            "Distances" => {
                let row: Option<Vec<u32>> = value.split_ascii_whitespace().map(digits).collect();
                let row = row.filter(|row| row.len() <= MOST_NODES);
                let is_row = row.is_some();
                self.distances.extend(row.map(|row| (number, id, row)));
                is_row
            }
            "Free memory" | "Total memory" => {
                let name = if name == "Free memory" { "MemFree" } else { "MemTotal" };
                // The kernel counts in KiB.
                let size = bytes(value).map(|bytes| Bytes::from_kib(bytes / 1024));
                let field = |size| MeminfoField { name: name.to_owned(), value: MeminfoValue::Size(size) };
                node.meminfo.extend(size.map(field));
                size.is_some()
            }
            _ => true,
        }
    }

    /// Joins what came in several places.
    fn finish(&mut self) {
        let machine = &mut self.machine;
        let known = machine.cpu_ids();
        for siblings in self.cores.values() {
            for id in siblings {
                if let Some(cpu) = machine.cpus.get_mut(&id) {
                    cpu.siblings = siblings.clone();
                }
            }
        }
        for cache in &mut machine.caches {
            cache.cpus = cache.cpus.intersection(&known);
        }
        // Without its CPUs a cache would be for all whose sharing is unknown.
        machine.caches.retain(|cache| !cache.cpus.is_empty());
        machine.caches.order_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
        for node in machine.nodes.values_mut() {
            node.cpus = node.cpus.intersection(&known);
            for cpu in &node.cpus {
                if let Some(cpu) = machine.cpus.get_mut(&cpu) {
                    cpu.node.get_or_insert(node.id);
                }
            }
            // MemTotal comes first in the kernel's file.
            node.meminfo.order_by(|one, other| other.name.cmp(&one.name));
        }
        if let Some(name) = self.model.take().filter(|name| !name.is_empty()) {
            machine.cpu_models = vec![CpuModel { name: printable(&name).into_owned(), cpus: known }];
        }
        if self.names_available {
            machine.allowed_cpus = Some(self.available.clone());
        }
        machine.distances = NodeMatrix::new(machine.nodes.keys().copied());
        let columns: Vec<NodeId> = machine.nodes.keys().copied().collect();
        for (line, from, row) in &self.distances {
            if row.len() != columns.len() {
                self.problems.add(
                    *line,
                    format!("{} distances, one per domain", columns.len()),
                    &format!("{}", row.len()),
                );
                continue;
            }
            for (to, value) in columns.iter().zip(row) {
                machine.distances.set(*from, *to, *value);
            }
        }
    }
}

/// Reads `( 0 20 ) ( 1 21 )`: the CPUs of each group.
fn groups(text: &str) -> Option<Vec<CpuSet>> {
    let mut groups = Vec::new();
    let mut open: Option<CpuSet> = None;
    for word in text.split_ascii_whitespace() {
        match (word, &mut open) {
            ("(", None) => open = Some(CpuSet::new()),
            (")", Some(_)) => groups.extend(open.take().filter(|cpus| !cpus.is_empty())),
            ("()", None) => {}
            (number, Some(cpus)) => {
                cpus.insert(digits::<u32>(number).filter(|id| *id < MOST_CPUS).map(CpuId::new)?);
            }
            _ => return None,
        }
    }
    Some(groups).filter(|_| open.is_none())
}

/// The bytes of `32 kB`, `1.25 MB`, whose units are powers of 1024.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ')?;
    let shift = match unit {
        "B" => 0,
        "kB" => 10,
        "MB" => 20,
        "GB" => 30,
        "TB" => 40,
        _ => return None,
    };
    let number: f64 = number.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)?;
    let bytes = number * (1_u64 << shift) as f64;
    (bytes < (1_u64 << 62) as f64).then_some(bytes.round() as u64)
}

#[cfg(test)]
mod tests;
