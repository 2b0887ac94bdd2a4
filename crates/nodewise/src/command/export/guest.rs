//! A guest of QEMU like a machine.

use nodewise_experiment::shell;
use nodewise_lab::{Arch, Layout, Limits, layout, qemu};
use nodewise_machine::Machine;

use crate::failure::Failure;

/// The command for a guest as large as the machine, as far as QEMU can build it; what differs in comments.
///
/// # Errors
/// A machine that no guest can be like.
pub(super) fn command(machine: &Machine) -> Result<String, Failure> {
    let arch = if machine.architecture.as_deref() == Some("aarch64") { Arch::Arm } else { Arch::X86 };
    let cpus = u32::try_from(machine.online_cpus().len()).unwrap_or(u32::MAX).clamp(1, layout::MOST_CPUS);
    let limits = Limits { cpus, memory: machine.memory_total().unwrap_or(Limits::default().memory) };
    let layout = Layout::new(machine, &limits).map_err(Failure::cannot)?;
    let notes = layout.notes.iter().map(|note| format!("# {note}\n"));
    let arguments = qemu::arguments(&layout, arch);
    let options = arguments.chunks(2).map(|option| format!(" \\\n  {}", shell::shown(option)));
    Ok(notes.collect::<String>() + "qemu-system-" + arch.compiler() + &options.collect::<String>() + "\n")
}
