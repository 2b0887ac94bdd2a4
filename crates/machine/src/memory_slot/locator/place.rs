//! Slots to sockets, packages, nodes and channels, by the names of all of them.

mod channels;
mod sockets;

use std::collections::{BTreeMap, BTreeSet};

use super::SlotName;
use crate::id::{NodeId, PackageId};
use crate::machine::Machine;
use crate::memory_slot::{MemorySlot, SlotPlace, SlotState};
use crate::order::CollectOrdered as _;
use sockets::Sockets;

/// Slots at one channel: three at most of DDR3 and later, so that a letter with more of them is a socket.
const MOST_AT_A_CHANNEL: usize = 3;

/// Facts of the firmware that names do not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Board {
    /// The maker of the machine (type 1, or the kernel's copy of it).
    pub vendor: Option<String>,
    /// Processor sockets, empty ones included (type 4).
    pub sockets: Option<usize>,
    /// For each socket, in their order, whether it has a processor; empty where the firmware lists none.
    pub processors: Vec<Option<bool>>,
    /// For each slot the handle of its memory array (type 16).
    pub arrays: Vec<Option<u16>>,
    /// For each slot the node in which all its addresses lie, where that is known (types 19 and 20).
    pub nodes: Vec<Option<NodeId>>,
}

/// The names of a slot: its own, and that of its bank.
#[derive(Default)]
struct Names {
    locator: SlotName,
    bank: SlotName,
}

/// Fills socket, package, node and channel of slots. The packages and nodes are those of the machine.
pub fn place(slots: &mut [MemorySlot], board: &Board, machine: &Machine) {
    // Some firmware names the slots that have a module, and no other: these are placed without the rest.
    let is_named = |slot: &MemorySlot| slot.locator.is_some() || slot.bank.is_some();
    let named: Vec<usize> = (0..slots.len()).filter(|at| is_named(&slots[*at])).collect();
    let is_fit = |slot: &MemorySlot| slot.state == SlotState::Empty || is_named(slot);
    if named.is_empty() || named.len() == slots.len() || !slots.iter().all(is_fit) {
        return place_all(slots, board, &board.arrays, machine);
    }
    let mut some: Vec<MemorySlot> = named.iter().map(|at| slots[*at].clone()).collect();
    let some_board = Board {
        arrays: named.iter().map(|at| board.arrays.get(*at).copied().flatten()).collect(),
        nodes: named.iter().map(|at| board.nodes.get(*at).copied().flatten()).collect(),
        ..board.clone()
    };
    place_all(&mut some, &some_board, &board.arrays, machine);
    for (at, slot) in named.into_iter().zip(some) {
        slots[at] = slot;
    }
}

/// Places these slots, by the arrays of all slots of the board.
fn place_all(slots: &mut [MemorySlot], board: &Board, arrays: &[Option<u16>], machine: &Machine) {
    let name = |text: &Option<String>| text.as_deref().map(SlotName::from_text).unwrap_or_default();
    let names: Vec<Names> =
        slots.iter().map(|slot| Names { locator: name(&slot.locator), bank: name(&slot.bank) }).collect();
    let packages: Vec<PackageId> =
        machine.cpus.values().filter_map(|cpu| cpu.package).collect_set().into_iter().collect();
    let count = board.sockets.unwrap_or(0).max(packages.len());
    let sockets = sockets::find(&names, slots, board, arrays, count);
    let processors = processors(slots, board, sockets.as_ref());
    for (slot, channel) in slots.iter_mut().zip(channels::find(&names, sockets.as_ref(), count)) {
        slot.channel = channel;
    }
    let of_socket = packages_of_sockets(&packages, &processors);
    for (at, slot) in slots.iter_mut().enumerate() {
        // Where all sockets have a processor, so has that of a slot, whichever it is.
        slot.processor = processors.iter().all(|has| *has == Some(true)).then_some(true);
        slot.processor = slot.processor.filter(|_| !processors.is_empty());
        if let Some((socket, index)) = sockets.as_ref().and_then(|sockets| sockets.of.get(at)?.clone()) {
            slot.package = of_socket.get(index).copied().flatten();
            slot.socket = Some(socket);
            slot.place = sockets.as_ref().map(|sockets| sockets.place);
            slot.processor = processors.get(index).copied().flatten();
        } else if count == 1 {
            slot.package = packages.first().copied();
        }
    }
    if is_other_way_round(slots, board, machine) {
        slots.iter_mut().for_each(|slot| slot.package = None);
    } else {
        find_nodes(slots, board, machine);
    }
}

/// Whether each socket has a processor; nothing where that contradicts the modules.
fn processors(slots: &[MemorySlot], board: &Board, sockets: Option<&Sockets>) -> Vec<Option<bool>> {
    let has_module_without_processor = slots.iter().enumerate().any(|(at, slot)| {
        let index = sockets.and_then(|sockets| Some(sockets.of.get(at)?.as_ref()?.1));
        let has = index.and_then(|index| board.processors.get(index).copied().flatten());
        slot.module().is_some() && has == Some(false)
    });
    if has_module_without_processor { Vec::new() } else { board.processors.clone() }
}

/// The package in each socket: packages are numbered over the sockets that have a processor.
fn packages_of_sockets(packages: &[PackageId], processors: &[Option<bool>]) -> Vec<Option<PackageId>> {
    let with_processor = processors.iter().filter(|has| **has != Some(false)).count();
    if with_processor != packages.len() {
        return packages.iter().copied().map(Some).collect();
    }
    let mut rest = packages.iter().copied();
    processors.iter().map(|has| if *has == Some(false) { None } else { rest.next() }).collect()
}

/// Fills nodes: those of the package, or of the addresses.
fn find_nodes(slots: &mut [MemorySlot], board: &Board, machine: &Machine) {
    let only_node = if machine.nodes.len() == 1 { machine.nodes.keys().next().copied() } else { None };
    for (at, slot) in slots.iter_mut().enumerate() {
        let of_package =
            slot.package.filter(|_| slot.socket.is_some()).map(|package| nodes_of(machine, package));
        // A package of several nodes does not say which.
        if let Some([node]) = of_package.as_deref() {
            slot.node = Some(*node);
        }
        // Some firmware makes its addresses up: those that contradict a name are not believed.
        let fits = |node: &NodeId| of_package.as_ref().is_none_or(|nodes| nodes.contains(node));
        if let Some(node) = board.nodes.get(at).copied().flatten().filter(fits) {
            (slot.node, slot.place) = (Some(node), Some(SlotPlace::Addresses));
        } else if slot.node.is_none() && only_node.is_some() {
            (slot.node, slot.place) = (only_node, Some(SlotPlace::OnlyNode));
        }
    }
}

/// Whether the addresses of each socket lie in one node, and each time in that of another: the names of this board
/// number its sockets in another order, or its addresses are made up, and nothing says which.
///
/// X8DTU of Supermicro calls the slots of its first processor `P1`, and those of its second `P0`.
fn is_other_way_round(slots: &[MemorySlot], board: &Board, machine: &Machine) -> bool {
    let mut nodes: BTreeMap<&str, (Option<PackageId>, BTreeSet<NodeId>)> = BTreeMap::new();
    for (slot, node) in slots.iter().zip(&board.nodes) {
        if let (Some(socket), Some(node)) = (slot.socket.as_deref(), node) {
            nodes.entry(socket).or_insert((slot.package, BTreeSet::new())).1.insert(*node);
        }
    }
    let all: BTreeSet<NodeId> = nodes.values().flat_map(|(_, nodes)| nodes.iter().copied()).collect_set();
    let is_other = |(package, nodes): &(Option<PackageId>, BTreeSet<NodeId>)| {
        let own = package.map(|package| nodes_of(machine, package)).unwrap_or_default();
        nodes.len() == 1 && !own.is_empty() && own.iter().all(|node| !nodes.contains(node))
    };
    nodes.len() > 1 && all.len() == nodes.len() && nodes.values().all(is_other)
}

/// The nodes with CPUs of a package.
fn nodes_of(machine: &Machine, package: PackageId) -> Vec<NodeId> {
    let cpus = machine.cpus.values().filter(|cpu| cpu.package == Some(package)).map(|cpu| cpu.id);
    let cpus: crate::set::CpuSet = cpus.collect();
    machine.nodes.values().filter(|node| !node.cpus.is_disjoint(&cpus)).map(|node| node.id).collect()
}

fn distinct<T: Ord>(values: impl IntoIterator<Item = T>) -> usize {
    values.into_iter().collect_set().len()
}

#[cfg(test)]
mod tests;
