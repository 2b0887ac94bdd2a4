//! Command lines: numactl, Slurm, Open MPI.

use nodewise_machine::{CpuSet, NodeSet, PolicyMode};

use super::{Emitted, Unsaid, Wish, joined};

pub(super) fn numactl(wish: &Wish<'_>) -> Result<Emitted, Unsaid> {
    let program = wish.program_or("PROGRAM");
    if wish.placement.huge.is_some() {
        let note = "numactl has no word for huge pages: nodewise run has";
        return Ok(Emitted::new(wish.with_variables(wish.through_run(&program)?)).note(note));
    }
    Ok(Emitted::new(wish.with_variables(wish.wrapped(&program)?)))
}

/// `srun` binds CPUs and memory; there is no interleaving in it.
///
/// # Source
/// srun(1), `--cpu-bind` and `--mem-bind`: `mask_cpu` and `mask_mem` take a hexadecimal mask,
/// `map_mem` node numbers; `--export=ALL,NAME=4` adds variables to those of the shell.
pub(super) fn slurm(wish: &Wish<'_>) -> Result<Emitted, Unsaid> {
    let program = wish.program_or("PROGRAM");
    let memory = match wish.policy() {
        None => Some(None),
        Some(policy) => match (policy.mode, policy.nodes.first()) {
            (PolicyMode::Local, _) | (PolicyMode::Preferred, None) => Some(Some("local".to_owned())),
            (PolicyMode::Bind, Some(_)) => Some(Some(format!("mask_mem:{}", mask_of_nodes(&policy.nodes)))),
            (PolicyMode::Preferred, Some(node)) => Some(Some(format!("prefer,map_mem:{node}"))),
            _ => None,
        },
    };
    let export = wish.threads.assignments();
    let export = (!export.is_empty()).then(|| format!("--export=ALL,{}", export.join(",")));
    let srun = ["srun".to_owned()].into_iter().chain(export);
    let cpus = wish.cpus().map(|cpus| format!("--cpu-bind=mask_cpu:{}", mask_of_cpus(cpus)));
    let Some(memory) = memory.filter(|_| wish.placement.huge.is_none()) else {
        // srun's own binding to CPUs would be in force first, and the program's within it.
        let text = joined(srun.chain(["--cpu-bind=none".to_owned(), wish.through_run(&program)?]));
        return Ok(
            Emitted::new(text).note("srun can bind and prefer memory and no more, so nodewise run does it")
        );
    };
    let memory = memory.map(|memory| format!("--mem-bind={memory}"));
    let text = joined(srun.chain(cpus).chain(memory).chain([program]));
    Ok(Emitted::new(text).note(
        "each task gets this binding: for several tasks on a machine give a mask for each, separated by commas",
    ))
}

/// `mpirun` of Open MPI binds ranks to cores or NUMA nodes by itself, which also decides where a rank's
/// memory comes from. Ranks on other machines get only the variables that `-x` names.
///
/// # Source
/// mpirun(1) of Open MPI, `--bind-to` and `-x`.
pub(super) fn mpi(wish: &Wish<'_>) -> Result<Emitted, Unsaid> {
    let program = wish.program_or("PROGRAM");
    let wrapped = wish.wrapped(&program)?;
    let exported = wish.threads.assignments().into_iter().map(|variable| format!("-x {variable}"));
    let mpirun = ["mpirun".to_owned(), "--bind-to none".to_owned()].into_iter();
    Ok(Emitted::new(joined(mpirun.chain(exported).chain([wrapped]))).note(
        "--bind-to none is needed: mpirun binds each rank to a core or a NUMA node of its own by default, which takes effect before the placement and cancels it",
    ))
}

fn mask_of_cpus(cpus: &CpuSet) -> String {
    mask(cpus.iter().map(|cpu| cpu.number()))
}

fn mask_of_nodes(nodes: &NodeSet) -> String {
    mask(nodes.iter().map(|node| node.number()))
}

/// Hexadecimal, the highest bit first, as long as it needs to be.
fn mask(bits: impl Iterator<Item = u32>) -> String {
    let mut digits: Vec<u8> = vec![0];
    for bit in bits {
        let digit = (bit / 4) as usize;
        if digits.len() <= digit {
            digits.resize(digit + 1, 0);
        }
        digits[digit] |= 1 << (bit % 4);
    }
    let digits: String = digits.iter().rev().map(|digit| format!("{digit:x}")).collect();
    format!("0x{digits}")
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn masks_are_hexadecimal_with_the_highest_bit_first() {
        let check = |bits: &[u32], expected: &str| assert_eq!(mask(bits.iter().copied()), expected);
        check(&[0, 1, 2, 3], "0xf");
        check(&[4], "0x10");
        check(&[0, 64], "0x10000000000000001");
    }
}
