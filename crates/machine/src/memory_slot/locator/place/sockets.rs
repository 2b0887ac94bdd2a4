//! The socket of each slot.

use std::collections::{BTreeMap, BTreeSet};

use super::{Board, MOST_AT_A_CHANNEL, Names, distinct};
use crate::memory_slot::{MemorySlot, SlotPlace};
use crate::order::CollectOrdered as _;

/// Kinds of memory with more than three modules at a channel, or with a hub between channels and processors.
const OLD: [&str; 5] = ["DDR", "DDR2", "DDR2 FB-DIMM", "FBD2", "SDRAM"];

/// The socket of each slot: its name, and its place among the sockets.
pub(super) struct Sockets {
    pub(super) of: Vec<Option<(String, usize)>>,
    pub(super) place: SlotPlace,
}

/// The first of the rules that fits all slots, those that are plainest first.
///
/// `arrays` are those of all slots of the board, nameless ones included.
pub(super) fn find(
    names: &[Names],
    slots: &[MemorySlot],
    board: &Board,
    arrays: &[Option<u16>],
    count: usize,
) -> Option<Sockets> {
    let all = |socket: fn(&Names) -> Option<u32>| {
        names.iter().map(socket).collect::<Option<Vec<u32>>>().filter(|all| !all.is_empty())
    };
    // A board has no more sockets than it says; where it says nothing, any number will do.
    let fits = |numbers: &Vec<u32>| count == 0 || distinct(numbers) <= count;
    let is_each = |numbers: &Vec<u32>| count > 1 && distinct(numbers) == count;
    let named = all(|names| names.locator.socket)
        .filter(fits)
        .or_else(|| all(|names| names.bank.socket).filter(fits));
    if let Some(numbers) = named {
        // Counted from 0 or from 1: no machine has a slot at each socket and none at the first.
        let base = u32::from(!numbers.contains(&0));
        let of = |number: u32| Some((number.to_string(), usize::try_from(number - base).ok()?));
        return Some(Sockets { of: numbers.into_iter().map(of).collect(), place: SlotPlace::SocketName });
    }
    // Memory controllers are numbered through: where each socket has two and uses one, they are nodes 1 and 3.
    if let Some(numbers) = all(|names| names.locator.node.or(names.bank.node)).filter(is_each) {
        let order: BTreeSet<u32> = numbers.iter().copied().collect_set();
        let of = |number: u32| Some((number.to_string(), order.iter().position(|other| *other == number)?));
        return Some(Sockets { of: numbers.into_iter().map(of).collect(), place: SlotPlace::SocketName });
    }
    by_letter(names, slots, board, count).or_else(|| by_array(board, arrays, count))
}

/// A letter is a socket on servers of Dell, and where it has more slots than a channel can.
fn by_letter(names: &[Names], slots: &[MemorySlot], board: &Board, count: usize) -> Option<Sockets> {
    let letters = names.iter().map(|names| names.locator.letter.zip(names.locator.number));
    let letters = letters.collect::<Option<Vec<(char, u32)>>>().filter(|all| !all.is_empty())?;
    let order: BTreeSet<char> = letters.iter().map(|(letter, _)| *letter).collect_set();
    let is_dell = board.vendor.as_deref().is_some_and(|vendor| vendor.starts_with("Dell"));
    let is_old = |slot: &MemorySlot| {
        let kind = slot.module().and_then(|module| module.memory_type.as_deref());
        kind.is_some_and(|kind| OLD.contains(&kind))
    };
    let most = letters.iter().map(|(_, number)| *number).max().unwrap_or(0);
    let is_many =
        usize::try_from(most).is_ok_and(|most| most > MOST_AT_A_CHANNEL) && !slots.iter().any(is_old);
    // Boards whose processors share a memory hub have two channels with four modules each.
    let are_channels = names.iter().all(Names::is_letter_of_channel);
    // The slots of a socket without a processor may not be listed.
    let is_start = order.iter().copied().eq(('A'..='Z').take(order.len()));
    let fits = count == 0 || order.len() == count || is_dell && order.len() < count && is_start;
    if !(is_dell || is_many) || are_channels || !fits || is_dell && order.len() == 1 && count == 0 {
        return None;
    }
    let of = |(letter, _): (char, u32)| {
        Some((letter.to_string(), order.iter().position(|other| *other == letter)?))
    };
    Some(Sockets { of: letters.into_iter().map(of).collect(), place: SlotPlace::SocketLetter })
}

/// Arrays are numbered socket by socket: where there are as many of them as sockets, or as many for each.
fn by_array(board: &Board, all: &[Option<u16>], count: usize) -> Option<Sockets> {
    let arrays = board.arrays.iter().copied().collect::<Option<Vec<u16>>>()?;
    let mut slots: BTreeMap<u16, usize> = BTreeMap::new();
    for array in all {
        *slots.entry((*array)?).or_default() += 1;
    }
    let alike = distinct(slots.values()) == 1;
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
