//! Lines for Slurm: a node of `slurm.conf`, as `slurmd -C` prints it, and its accelerators for `gres.conf`.
//!
//! # Source
//! slurm.conf(5): `RealMemory` is in MiB. gres.conf(5): `Cores` are numbered by socket, then by core in it, whatever the
//! kernel's numbers are.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::{CpuId, CpuSet, Machine, PackageId};

use super::NotExpressible;
use super::guest::shape;

/// Writes the line of a node, and a line for the accelerators at each set of cores. Files of devices are not known to a
/// machine; Slurm finds them with `AutoDetect`.
///
/// # Errors
/// A machine without CPUs.
pub fn slurm(machine: &Machine, host: &str) -> Result<String, NotExpressible> {
    let cpus = machine.online_cpus().len();
    if cpus == 0 {
        return Err(NotExpressible { format: "a line of slurm.conf", needs: "online CPUs" });
    }
    // Writing to a String cannot fail.
    let mut text = format!("# slurm.conf\nNodeName={host} CPUs={cpus}");
    if let Some([sockets, cores, threads]) = shape(machine, cpus) {
        let _ = write!(
            text,
            " Boards=1 SocketsPerBoard={sockets} CoresPerSocket={cores} ThreadsPerCore={threads}"
        );
    }
    if let Some(memory) = machine.memory_total() {
        let _ = write!(text, " RealMemory={}", memory.mib());
    }
    let gpus = accelerators(machine);
    let count: usize = gpus.values().sum();
    if count > 0 {
        let _ = write!(text, " Gres=gpu:{count}");
    }
    text.push('\n');
    for (at, (cores, count)) in gpus.iter().enumerate() {
        if at == 0 {
            text.push_str("# gres.conf\n");
        }
        let cores = if cores.is_empty() { String::new() } else { format!(" Cores={cores}") };
        let _ = writeln!(text, "NodeName={host} Name=gpu Count={count}{cores}");
    }
    Ok(text)
}

/// The number of accelerators by the cores at their side; no cores where those are not known, or are all.
fn accelerators(machine: &Machine) -> BTreeMap<CpuSet, usize> {
    let numbers = core_numbers(machine);
    let all: CpuSet = numbers.values().copied().collect();
    let mut counts = BTreeMap::new();
    for device in machine.devices.iter().filter(|device| device.is_compute()) {
        let home = || machine.home_of(device).map(|node| machine.cpus_of(node));
        let local = Some(device.local_cpus.clone()).filter(|cpus| !cpus.is_empty()).or_else(home);
        let cores: CpuSet =
            local.unwrap_or_default().iter().filter_map(|cpu| numbers.get(&cpu).copied()).collect();
        let cores = if cores == all { CpuSet::new() } else { cores };
        *counts.entry(cores).or_insert(0) += 1;
    }
    counts
}

/// The number of each CPU's core, by package, then by first CPU.
fn core_numbers(machine: &Machine) -> BTreeMap<CpuId, CpuId> {
    let package = |first: &CpuId| machine.cpus.get(first).and_then(|cpu| cpu.package);
    let mut cores: Vec<(Option<PackageId>, CpuId, CpuSet)> =
        machine.cores().into_iter().map(|(first, cpus)| (package(&first), first, cpus)).collect();
    cores.order();
    let numbered = (0..).map(CpuId::new).zip(cores);
    numbered
        .flat_map(|(number, (.., cpus))| cpus.iter().map(|cpu| (cpu, number)).collect::<Vec<_>>())
        .collect_map()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    #[test]
    fn a_node_has_the_shape_of_its_machine() {
        let machine = spec::machine("2x(4c2t 64G); dist=21").unwrap();
        assert_eq!(
            slurm(&machine, "web7").unwrap(),
            "# slurm.conf\nNodeName=web7 CPUs=16 Boards=1 SocketsPerBoard=2 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=131072\n"
        );
        let irregular = spec::machine("(4c 1G) (2c 1G); dist=21").unwrap();
        assert_eq!(slurm(&irregular, "a").unwrap(), "# slurm.conf\nNodeName=a CPUs=6 RealMemory=2048\n");
    }
}
