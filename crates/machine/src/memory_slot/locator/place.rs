//! Slots to sockets, packages, nodes and channels, by the names of all of them.

use std::collections::{BTreeMap, BTreeSet};

use super::SlotName;
use crate::id::{NodeId, PackageId};
use crate::machine::Machine;
use crate::memory_slot::{MemorySlot, SlotPlace};

/// Slots at one channel: three at most on any processor so far, so that a letter with more of them is a socket.
const MOST_AT_A_CHANNEL: u32 = 3;

/// Facts of the firmware that names do not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Board {
    /// The maker of the machine (type 1, or the kernel's copy of it).
    pub vendor: Option<String>,
    /// Processor sockets, empty ones included (type 4).
    pub sockets: Option<usize>,
    /// For each slot the handle of its memory array (type 16).
    pub arrays: Vec<Option<u16>>,
    /// For each slot the node in which all its addresses lie, where that is known (types 19 and 20).
    pub nodes: Vec<Option<NodeId>>,
}

/// The socket of each slot: its name, and its place among the sockets.
struct Sockets {
    of: Vec<Option<(String, usize)>>,
    place: SlotPlace,
}

/// Fills socket, package, node and channel of slots. The packages and nodes are those of the machine.
pub fn place(slots: &mut [MemorySlot], board: &Board, machine: &Machine) {
    let name = |text: &Option<String>| text.as_deref().map(SlotName::from_text).unwrap_or_default();
    let names: Vec<(SlotName, SlotName)> =
        slots.iter().map(|slot| (name(&slot.locator), name(&slot.bank))).collect();
    let packages: Vec<PackageId> =
        machine.cpus.values().filter_map(|cpu| cpu.package).collect::<BTreeSet<_>>().into_iter().collect();
    let count = board.sockets.unwrap_or(0).max(packages.len());
    let sockets = find_sockets(&names, board, count);
    let only_node = if machine.nodes.len() == 1 { machine.nodes.keys().next().copied() } else { None };
    let nodes_of_package =
        |package: Option<PackageId>| package.map(|package| nodes_of(machine, package)).unwrap_or_default();
    for (at, slot) in slots.iter_mut().enumerate() {
        if let Some((socket, index)) =
            sockets.as_ref().and_then(|sockets| sockets.of.get(at).cloned().flatten())
        {
            slot.package = packages.get(index).copied();
            slot.socket = Some(socket);
            slot.place = sockets.as_ref().map(|sockets| sockets.place);
            // A package of several nodes does not say which.
            slot.node = match nodes_of_package(slot.package)[..] {
                [node] => Some(node),
                _ => None,
            };
        } else if count == 1 {
            slot.package = packages.first().copied();
        }
        // Some firmware makes its addresses up: those that contradict a name are not believed.
        let fits = |node: &NodeId| {
            let named = slot.package.filter(|_| slot.socket.is_some());
            named.is_none_or(|package| nodes_of(machine, package).contains(node))
        };
        if let Some(node) = board.nodes.get(at).copied().flatten().filter(fits) {
            (slot.node, slot.place) = (Some(node), Some(SlotPlace::Addresses));
        } else if slot.node.is_none() && only_node.is_some() {
            (slot.node, slot.place) = (only_node, Some(SlotPlace::OnlyNode));
        }
    }
    let by_letter = sockets.as_ref().is_some_and(|sockets| sockets.place == SlotPlace::SocketLetter);
    for (slot, channel) in slots.iter_mut().zip(find_channels(&names, by_letter)) {
        slot.channel = channel;
    }
}

/// The nodes with CPUs of a package.
fn nodes_of(machine: &Machine, package: PackageId) -> Vec<NodeId> {
    let cpus = machine.cpus.values().filter(|cpu| cpu.package == Some(package)).map(|cpu| cpu.id);
    let cpus: crate::set::CpuSet = cpus.collect();
    machine.nodes.values().filter(|node| !node.cpus.is_disjoint(&cpus)).map(|node| node.id).collect()
}

/// The first of the rules that fits all slots, those that are plainest first.
fn find_sockets(names: &[(SlotName, SlotName)], board: &Board, count: usize) -> Option<Sockets> {
    let all = |socket: fn(&(SlotName, SlotName)) -> Option<u32>| {
        names.iter().map(socket).collect::<Option<Vec<u32>>>().filter(|all| !all.is_empty())
    };
    // A board has no more sockets than it says; where it says nothing, any number will do.
    let fits = |numbers: &Vec<u32>| count == 0 || distinct(numbers) <= count;
    let is_each = |numbers: &Vec<u32>| count > 1 && distinct(numbers) == count;
    let named = all(|(locator, _)| locator.socket)
        .filter(fits)
        .or_else(|| all(|(_, bank)| bank.socket).filter(fits))
        .or_else(|| all(|(locator, bank)| locator.node.or(bank.node)).filter(is_each));
    if let Some(numbers) = named {
        // Counted from 0 or from 1: no machine has a slot at each socket and none at the first.
        let base = u32::from(!numbers.contains(&0));
        let of = |number: u32| Some((number.to_string(), usize::try_from(number - base).ok()?));
        return Some(Sockets { of: numbers.into_iter().map(of).collect(), place: SlotPlace::SocketName });
    }
    let letters = names.iter().map(|(locator, _)| locator.letter.zip(locator.number));
    if let Some(letters) = letters.collect::<Option<Vec<(char, u32)>>>().filter(|all| !all.is_empty()) {
        let is_dell = board.vendor.as_deref().is_some_and(|vendor| vendor.starts_with("Dell"));
        let is_many = letters.iter().any(|(_, number)| *number > MOST_AT_A_CHANNEL);
        let order: BTreeSet<char> = letters.iter().map(|(letter, _)| *letter).collect();
        // Boards whose processors share a memory hub have two channels with four modules each.
        let is_channel = |(locator, bank): &(SlotName, SlotName)| {
            locator.letter.is_some_and(|letter| bank.channel.as_deref() == Some(&letter.to_string()))
        };
        let are_channels = names.iter().all(is_channel);
        if (is_dell || is_many) && !are_channels && (count == 0 || order.len() == count) {
            let of = |(letter, _): (char, u32)| {
                Some((letter.to_string(), order.iter().position(|other| *other == letter)?))
            };
            return Some(Sockets {
                of: letters.into_iter().map(of).collect(),
                place: SlotPlace::SocketLetter,
            });
        }
    }
    by_array(board, count)
}

/// Arrays are numbered socket by socket: where there are as many of them as sockets, or as many for each.
fn by_array(board: &Board, count: usize) -> Option<Sockets> {
    let arrays = board.arrays.iter().copied().collect::<Option<Vec<u16>>>()?;
    let mut slots: BTreeMap<u16, usize> = BTreeMap::new();
    for array in &arrays {
        *slots.entry(*array).or_default() += 1;
    }
    let alike = slots.values().collect::<BTreeSet<_>>().len() == 1;
    if count < 2 || !alike || slots.len() % count != 0 {
        return None;
    }
    let each = slots.len() / count;
    let of = |array: u16| {
        let index = slots.keys().position(|other| *other == array)? / each;
        Some((index.to_string(), index))
    };
    Some(Sockets { of: arrays.into_iter().map(of).collect(), place: SlotPlace::Array })
}

/// Channels: as the slot's name says, else by its letter, else as the bank's name says.
fn find_channels(names: &[(SlotName, SlotName)], letter_is_socket: bool) -> Vec<Option<String>> {
    let all = |channel: fn(&SlotName) -> Option<String>, of_bank: bool| {
        let name = |names: &(SlotName, SlotName)| channel(if of_bank { &names.1 } else { &names.0 });
        names.iter().map(name).map(|channel| channel.map(Some)).collect::<Option<Vec<_>>>()
    };
    let letter = |name: &SlotName| name.letter.map(|letter| letter.to_string());
    all(named_channel, false)
        .or_else(|| all(letter, false).filter(|_| !letter_is_socket))
        .or_else(|| all(named_channel, true))
        .unwrap_or_else(|| vec![None; names.len()])
}

/// Where a name has both socket and node, the node is a memory controller with channels of its own.
fn named_channel(name: &SlotName) -> Option<String> {
    let channel = name.channel.clone()?;
    Some(match (name.socket, name.node) {
        (Some(_), Some(controller)) => format!("{controller}.{channel}"),
        _ => channel,
    })
}

fn distinct(numbers: &[u32]) -> usize {
    numbers.iter().collect::<BTreeSet<_>>().len()
}
