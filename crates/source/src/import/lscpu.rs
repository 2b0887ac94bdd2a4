//! The output of lscpu, as text and as JSON (`lscpu -J`).
//!
//! # Source
//! util-linux 2.20 to 2.41. It names the CPUs of each node, and counts of all else: which CPUs share a core, a package
//! or a cache stays unknown, and so do memory and distances. Releases 2.35 and 2.36 print the sum of all caches of a
//! level without their number, which says nothing about one.

use nodewise_machine::id::Id as _;
use nodewise_machine::printable::printable;
use nodewise_machine::{Bytes, Cache, CacheKind, Cpu, CpuModel, CpuSet, Machine, Node, NodeId, Origin};
use serde_json::Value;

use super::{bitmap, is_prompt};
use crate::limits::{MOST_CPUS, MOST_NODES};
use crate::parse::{ParseError, Parsed, Problems, digits, lines};

/// The line whose CPUs everything else is about.
const ONLINE: &str = "a line \"On-line CPU(s) list\"";
/// Lines and fields that are read.
const MOST_FIELDS: usize = 64 * 1024;

/// A field: its line, its name, its value.
struct Field {
    line: u32,
    name: String,
    value: String,
}

/// Whether a text is one.
pub fn is_lscpu(text: &str) -> bool {
    if text.trim_start().starts_with('{') {
        return text.chars().filter(|c| !c.is_whitespace()).take(8).eq("{\"lscpu\"".chars());
    }
    let mut said =
        lines(text).map(|(_, line)| line.trim()).filter(|line| !line.is_empty() && !is_prompt(line));
    said.next().is_some_and(|line| line.starts_with("Architecture:"))
        && said.take(64).any(|line| line.starts_with("CPU(s):"))
}

/// Reads it.
///
/// # Errors
/// JSON that is damaged; a text without the list of online CPUs.
pub fn parse(text: &str) -> Result<Parsed<Machine>, ParseError> {
    let fields = if text.trim_start().starts_with('{') { json_fields(text)? } else { text_fields(text) };
    let mut problems = Problems::default();
    let machine = machine(&fields, &mut problems)?;
    Ok(Parsed { value: machine, problems })
}

fn text_fields(text: &str) -> Vec<Field> {
    let fields = lines(text).filter_map(|(line, text)| {
        let (name, value) = text.split_once(':')?;
        Some(Field { line, name: name.trim().to_owned(), value: value.trim().to_owned() })
    });
    fields.take(MOST_FIELDS).collect()
}

/// The fields of `{"lscpu": [{"field": "CPU(s):", "data": "8", "children": []}]}`, in their order.
fn json_fields(text: &str) -> Result<Vec<Field>, ParseError> {
    let document: Value = serde_json::from_str(text).map_err(|error| {
        let line = u32::try_from(error.line()).unwrap_or(1);
        ParseError::new(line, "JSON as lscpu -J prints it", &error.to_string())
    })?;
    let Some(Value::Array(top)) = document.get("lscpu") else {
        return Err(ParseError::new(1, "an array \"lscpu\"", ""));
    };
    let mut fields = Vec::new();
    let mut open: Vec<std::slice::Iter<'_, Value>> = vec![top.iter()];
    while let Some(level) = open.last_mut() {
        let Some(item) = level.next() else {
            open.pop();
            continue;
        };
        let word = |name| item.get(name).and_then(Value::as_str);
        if let Some(name) = word("field").filter(|_| fields.len() < MOST_FIELDS) {
            let name = name.trim().trim_end_matches(':').to_owned();
            fields.push(Field { line: 0, name, value: word("data").unwrap_or("").trim().to_owned() });
        }
        if let Some(Value::Array(children)) = item.get("children") {
            open.push(children.iter());
        }
    }
    // JSON keeps no places: a field is on the line where its name comes next.
    let (mut line, mut rest) = (1, text);
    for field in &mut fields {
        if let Some(at) = rest.find(field.name.as_str()) {
            line += rest[..at].matches('\n').count() as u32;
            rest = &rest[at..];
        }
        field.line = line;
    }
    Ok(fields)
}

fn machine(fields: &[Field], problems: &mut Problems) -> Result<Machine, ParseError> {
    let mut machine = Machine::new(Origin::Capture(String::new()));
    let online = cpus_of(fields, "On-line", problems);
    let Some(online) = online.filter(|online| !online.is_empty()) else {
        return Err(ParseError::new(fields.last().map_or(1, |field| field.line), ONLINE, ""));
    };
    for id in &online {
        machine.cpus.insert(id, Cpu::new(id));
    }
    for id in &cpus_of(fields, "Off-line", problems).unwrap_or_default().difference(&online) {
        machine.cpus.insert(id, Cpu { online: false, ..Cpu::new(id) });
    }
    let mut models = Vec::new();
    let mut nodes = None;
    for field in fields {
        let Field { line, name, value } = field;
        match name.as_str() {
            "Architecture" if !value.is_empty() => machine.architecture = Some(printable(value).into_owned()),
            "Model name" if !value.is_empty() && value != "-" => models.push(value),
            "CPU(s)" => {
                if digits(value) != Some(machine.cpus.len()) {
                    problems.add(*line, format!("{} CPUs, as the lists name", machine.cpus.len()), value);
                }
            }
            "NUMA node(s)" => nodes = Some((*line, value)),
            _ => {
                node(field, &mut machine, problems);
                cache(field, &online, &mut machine, problems);
            }
        }
    }
    // Several models: lscpu counts the CPUs of each, and does not name them.
    if let [name] = models[..] {
        machine.cpu_models = vec![CpuModel { name: printable(name).into_owned(), cpus: online }];
    }
    if let Some((line, count)) = nodes.filter(|(_, count)| digits(count) != Some(machine.nodes.len())) {
        problems.add(line, format!("{} nodes, as the lines below name", machine.nodes.len()), count);
    }
    for cpu in machine.cpus.values_mut() {
        cpu.node = machine.nodes.values().find(|node| node.cpus.contains(cpu.id)).map(|node| node.id);
    }
    Ok(machine)
}

/// The CPUs of `On-line CPU(s) list: 0-3` or `On-line CPU(s) mask: 0xf`.
fn cpus_of(fields: &[Field], which: &str, problems: &mut Problems) -> Option<CpuSet> {
    let is_it = |name: &str| name.strip_prefix(which).is_some_and(|rest| rest.starts_with(" CPU(s) "));
    let field = fields.iter().find(|field| is_it(&field.name))?;
    let cpus = set(&field.value);
    if cpus.is_none() {
        problems.add(field.line, format!("a list of CPUs below {MOST_CPUS}"), &field.value);
    }
    cpus
}

fn set(text: &str) -> Option<CpuSet> {
    if text.starts_with("0x") {
        return bitmap(text, MOST_CPUS);
    }
    let cpus: CpuSet = if text.is_empty() { CpuSet::new() } else { text.parse().ok()? };
    Some(cpus).filter(|cpus| cpus.last().is_none_or(|last| last.number() < MOST_CPUS))
}

/// Takes `NUMA node0 CPU(s): 0-3`.
fn node(field: &Field, machine: &mut Machine, problems: &mut Problems) {
    let number = field.name.strip_prefix("NUMA node").and_then(|rest| rest.strip_suffix(" CPU(s)"));
    let Some(number) = number.filter(|number| !number.is_empty()) else { return };
    let id = digits::<u32>(number).filter(|id| *id < NodeId::LIMIT).map(NodeId::new);
    let cpus = set(&field.value);
    let (Some(id), Some(cpus)) = (id, cpus) else {
        return problems.add(field.line, "the number of a node and a list of its CPUs", &field.value);
    };
    if machine.nodes.len() >= MOST_NODES || machine.nodes.contains_key(&id) {
        return problems.add(field.line, "each node once, and no more than a kernel can have", &field.name);
    }
    machine.nodes.insert(id, Node { cpus, ..Node::new(id) });
}

/// Takes `L1d cache: 32K`, `L1d: 64 KiB (2 instances)`.
fn cache(field: &Field, online: &CpuSet, machine: &mut Machine, problems: &mut Problems) {
    let name = field.name.strip_suffix(" cache").unwrap_or(&field.name);
    let mut letters = name.strip_prefix('L').unwrap_or("").chars();
    let Some(level) = letters.next().and_then(|level| level.to_digit(10)) else { return };
    let kind = match letters.as_str() {
        "d" => CacheKind::Data,
        "i" => CacheKind::Instruction,
        "" => CacheKind::Unified,
        _ => return,
    };
    let (sum, count) = match field.value.split_once(" (") {
        Some((sum, count)) => (sum, count.split(' ').next().and_then(digits::<u64>)),
        // The size of each, not of all.
        None if !field.value.contains(' ') => (field.value.as_str(), Some(1)),
        None => return,
    };
    let (Some(sum), Some(count)) = (Sum::from_text(sum), count.filter(|count| *count > 0)) else {
        return problems.add(field.line, "a size such as 32K or 64 KiB (2 instances)", &field.value);
    };
    machine.caches.push(Cache {
        level: level as u8,
        kind,
        size: sum.of_each(count, level),
        line_size: None,
        ways: None,
        sets: None,
        cpus: if count == 1 && field.value.contains(' ') { online.clone() } else { CpuSet::new() },
    });
}

/// The size of several caches together, as it is printed: rounded to a tenth of its unit.
struct Sum {
    bytes: u64,
    unit: u64,
}

impl Sum {
    /// Reads `32K`, `64 KiB`, `1.5 MiB`.
    fn from_text(text: &str) -> Option<Self> {
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, unit) = text.split_at(split);
        let unit: u64 = match unit.trim() {
            "B" => 1,
            "K" | "KiB" => 1 << 10,
            "M" | "MiB" => 1 << 20,
            "G" | "GiB" => 1 << 30,
            _ => return None,
        };
        let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
        let (whole, tenths): (u64, u64) = (digits(whole)?, digits(tenths).filter(|tenths| *tenths < 10)?);
        let bytes = whole.checked_mul(unit)?.checked_add(tenths * unit / 10)?;
        Some(Self { bytes, unit }).filter(|sum| sum.bytes > 0 && sum.bytes < 1 << 50)
    }

    /// The size of each of this number of caches, where only one is possible: whole KiB are printed exactly, and a
    /// larger cache has a multiple of 4 KiB at level 1 and of 64 KiB above it (sets of 64 B in a power of two).
    /// Caches of two sizes have none in common.
    fn of_each(&self, count: u64, level: u32) -> Option<Bytes> {
        if self.unit <= 1 << 10 {
            let each = self.bytes / count;
            return (self.bytes % count == 0 && each % 1024 == 0).then_some(Bytes::new(each));
        }
        let step: u64 = if level == 1 { 4 << 10 } else { 64 << 10 };
        let (low, high) = (self.bytes - self.unit / 20, self.bytes + self.unit / 20);
        let all = count.checked_mul(step)?;
        let first = low.div_ceil(all);
        let is_only = first > 0 && first * all < high && (first + 1).checked_mul(all)? >= high;
        is_only.then_some(Bytes::new(first * step))
    }
}

#[cfg(test)]
mod tests;
