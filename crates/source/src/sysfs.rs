//! The kernel's files to a [`Machine`].
//!
//! Nothing here fails: what cannot be read or does not parse becomes an oddity, and the rest of the
//! machine still comes. One file per noun; each function fills its part of the machine.

mod access;
pub(crate) mod allowed;
mod caches;
mod cpus;
pub(crate) mod devices;
mod distances;
mod findings;
mod kernel;
mod kinds;
mod memory;
mod memory_slots;
mod neighbours;
mod nodes;
mod packages;
mod reader;
mod settings;
mod siblings;
mod sizes;

use nodewise_machine::{Machine, Oddity, OddityKind, Origin};

use crate::tree::Tree;
pub(crate) use reader::{Reader, number_behind};
pub(crate) use sizes::page_of;

/// How much of the machine is read. Less than everything saves time on the running system only; a
/// capture is always read in full, so that all its oddities are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The facts that placing a program needs: nodes with CPUs, memory and distances, which CPUs are online,
    /// what this process may use, and whether huge pages are given.
    Nodes,
    /// The facts that a text shows: in addition siblings and package of each CPU, last-level caches, devices
    /// that have kernel names, huge page pools where there are any, and settings; firmware attributes,
    /// tiers and what decides between nodes where there are several.
    Overview,
    /// Everything that [`Machine`] holds.
    Full,
}

/// Reads a machine. Its oddities are those of the files, then those of [`Machine::check`].
pub fn load(tree: &Tree, origin: Origin, detail: Detail) -> Machine {
    let mut machine = Machine::new(origin);
    let mut reader = Reader::new(tree, detail);
    for note in tree.notes() {
        reader.note(Oddity::new(OddityKind::Unreadable, note.clone()));
    }
    kernel::read(&mut reader, &mut machine);
    nodes::read(&mut reader, &mut machine);
    cpus::read(&mut reader, &mut machine);
    if !reader.wants_only_nodes() {
        packages::read(&mut reader, &mut machine);
        // Where packages have no number of their own they have one by now.
        if !reader.trusts_files() {
            siblings::compare(&mut reader, &machine);
        }
    }
    if !reader.is_quick() {
        kinds::read(&mut reader, &mut machine);
    }
    if !reader.wants_only_nodes() {
        caches::read(&mut reader, &mut machine);
        devices::read(&mut reader, &mut machine);
        memory_slots::read(&mut reader, &mut machine);
    }
    allowed::read(&mut reader, &mut machine);
    settings::read(&mut reader, &mut machine);
    machine.oddities = reader.finish();
    machine.check();
    machine
}
