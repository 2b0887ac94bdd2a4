//! From the firmware's tables to nodes, as the kernel does it while it boots.
//!
//! Nodes are numbered as their domains are met, ranges of memory are cleaned up and fitted to the
//! RAM that is there, tables that break a rule are rejected as a whole. Each rejection, and
//! each table that is accepted and does not boot, becomes a [`Note`].
//!
//! # Source
//! `acpi_numa_init` in `drivers/acpi/numa/srat.c`, `numa_cleanup_meminfo` in `mm/numa_memblks.c` (until
//! 6.11 `arch/x86/mm/numa.c`), `drivers/acpi/numa/hmat.c`, `drivers/of/of_numa.c`. Stated for 6.12;
//! numbering, distances and windows were seen on 6.12 to 6.18.

mod blocks;
mod boot;
pub mod compose;
mod cpus;
mod devicetree;
mod distances;
mod domains;
mod hmat;
mod machine;
mod note;
mod ranges;
mod spare;
mod srat;
mod windows;

pub use boot::{Booted, Setting, boot};
pub use cpus::BootedCpu;
pub use devicetree::boot as boot_tree;
pub use note::{Note, NoteKind};
pub use ranges::used;

#[cfg(test)]
mod tests;
