//! `/proc/cpuinfo` of a hypothetical machine on the CPUs of this one: its numbers, and this one's instructions.

use std::collections::BTreeSet;

use nodewise_machine::{Cpu, Machine};

use super::CPUINFO;
use crate::tree::Tree;

/// Fields of x86 that differ between CPUs of one model, and those that the machine gives or leaves out.
const REPLACED: [&str; 9] = [
    "processor",
    "physical id",
    "siblings",
    "core id",
    "cpu cores",
    "apicid",
    "initial apicid",
    "model name",
    "microcode",
];

/// The text for the machine; `plain` where this system's fields are not those of x86, or unknown.
pub(super) fn write(machine: &Machine, here: &Tree, plain: &str) -> String {
    let Ok(Some(text)) = here.read_text(CPUINFO) else { return plain.to_owned() };
    let first = text.split("\n\n").next().unwrap_or_default();
    let field = |line: &str| line.split(':').next().unwrap_or_default().trim().to_owned();
    let names: Vec<String> = first.lines().map(field).collect();
    if !names.iter().any(|name| name == "vendor_id") || names.first().is_none_or(|name| name != "processor") {
        return plain.to_owned();
    }
    let same: String = first
        .lines()
        .filter(|line| !REPLACED.contains(&field(line).as_str()))
        .map(|line| format!("{line}\n"))
        .collect();
    machine.cpus.values().filter(|cpu| cpu.online).map(|cpu| of_one(machine, cpu, &same)).collect()
}

fn of_one(machine: &Machine, cpu: &Cpu, same: &str) -> String {
    let mut text = format!("processor\t: {}\n{same}", cpu.id);
    if let Some(model) = machine.cpu_models.iter().find(|model| model.cpus.contains(cpu.id)) {
        text += &format!("model name\t: {}\n", model.name);
    }
    if let Some(revision) = cpu.microcode {
        text += &format!("microcode\t: {revision:#x}\n");
    }
    if let Some((package, core)) = cpu.package.zip(cpu.core) {
        let package_cpus =
            || machine.cpus.values().filter(|other| other.online && other.package == cpu.package);
        // A core's number repeats in other dies of the package.
        let cores: BTreeSet<_> = package_cpus().map(|other| (other.die, other.core)).collect();
        text += &format!("physical id\t: {package}\nsiblings\t: {}\n", package_cpus().count());
        text += &format!("core id\t\t: {core}\ncpu cores\t: {}\n", cores.len());
    }
    text + "\n"
}
