//! The facts that distinguish CPUs of different speed, and their names.

use nodewise_machine::{CoreType, CpuModel, Machine};

use super::{Reader, cpus};
use crate::parse::cpuinfo::CpuInfo;
use crate::parse::{ParseError, number};

const CPUINFO: &str = "/proc/cpuinfo";

/// The folder of the counters of a type of core.
const fn counters(core_type: CoreType) -> &'static str {
    match core_type {
        CoreType::Performance => "cpu_core",
        CoreType::Efficiency => "cpu_atom",
        CoreType::LowPower => "cpu_lowpower",
    }
}

/// Fills models, types of core, highest frequencies and governors.
pub(super) fn read(reader: &mut Reader<'_>, machine: &mut Machine) {
    for core_type in CoreType::ALL {
        let path = format!("/sys/devices/{}/cpus", counters(core_type));
        for id in &reader.cpu_list(&path).unwrap_or_default() {
            if let Some(cpu) = machine.cpus.get_mut(&id) {
                cpu.core_type.get_or_insert(core_type);
            }
        }
    }
    for id in &machine.online_cpus() {
        let path = format!("{}/cpufreq/cpuinfo_max_freq", cpus::folder(id));
        // Some drivers of virtual machines print 0.
        let frequency = reader.value(&path, number::number).filter(|khz| *khz > 0);
        if let Some(cpu) = machine.cpus.get_mut(&id) {
            cpu.max_frequency_khz = frequency;
        }
        let path = format!("{}/cpufreq/scaling_governor", cpus::folder(id));
        if let Some(governor) = reader.value(&path, governor) {
            machine.settings.governors.entry(governor).or_default().insert(id);
        }
    }
    machine.cpu_models = models(reader, machine);
}

/// The models of the CPUs that exist; fills the revisions of their microcode.
fn models(reader: &mut Reader<'_>, machine: &mut Machine) -> Vec<CpuModel> {
    let mut info = CpuInfo::default();
    if let Err(error) = reader.tree.read_lines(CPUINFO, &mut |line| info.line(line)) {
        reader.unreadable(error);
    }
    for (cpu, revision) in info.microcode() {
        if let Some(cpu) = machine.cpus.get_mut(cpu) {
            cpu.microcode = Some(*revision);
        }
    }
    let known = machine.cpu_ids();
    let models =
        info.finish().into_iter().map(|model| CpuModel { cpus: model.cpus.intersection(&known), ..model });
    models.filter(|model| !model.cpus.is_empty()).collect()
}

/// The name of a governor, which is one word.
fn governor(text: &str) -> Result<String, ParseError> {
    let word = text.trim();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !word.is_empty() && word.chars().all(is_name) {
        return Ok(word.to_owned());
    }
    Err(ParseError::new(1, "a word such as performance", word))
}
