//! The channel of each slot.

use std::collections::BTreeMap;

use super::sockets::Sockets;
use super::{MOST_AT_A_CHANNEL, Names, distinct};
use crate::memory_slot::SlotPlace;
use crate::memory_slot::locator::SlotName;

/// Channels: as the slot's name says, else by its letter, else as the bank's name says. `count` is that of sockets.
pub(super) fn find(names: &[Names], sockets: Option<&Sockets>, count: usize) -> Vec<Option<String>> {
    let all = |of: fn(&Names) -> &SlotName| {
        let channel = |names: &Names| named_channel(of(names)).map(Some);
        names.iter().map(channel).collect::<Option<Vec<_>>>()
    };
    all(|names| &names.locator)
        .or_else(|| by_letter(names, sockets))
        .or_else(|| by_number_and_letter(names, sockets, count))
        .or_else(|| all(|names| &names.bank))
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

impl Names {
    /// Whether the bank calls the letter of the slot a channel.
    pub(super) fn is_letter_of_channel(&self) -> bool {
        self.locator.letter.is_some_and(|letter| self.bank.channel.as_deref() == Some(&letter.to_string()))
    }
}

/// The place of a slot's socket among the sockets, as far as it is known.
fn index(sockets: Option<&Sockets>, at: usize) -> Option<usize> {
    Some(sockets?.of.get(at)?.as_ref()?.1)
}

/// The letter in front of the last number. It is not a channel where more slots share it than a channel has, or all
/// slots of the machine.
fn by_letter(names: &[Names], sockets: Option<&Sockets>) -> Option<Vec<Option<String>>> {
    if sockets.is_some_and(|sockets| sockets.place == SlotPlace::SocketLetter) {
        return None;
    }
    let letters = names.iter().map(|names| names.locator.letter).collect::<Option<Vec<char>>>()?;
    // "P1" alone is a socket, unless other slots have other letters.
    let is_socket = |names: &Names| names.locator.is_socket_or_letter;
    if names.iter().all(is_socket) {
        return None;
    }
    let mut counts: BTreeMap<(Option<usize>, char), usize> = BTreeMap::new();
    for (at, letter) in letters.iter().enumerate() {
        *counts.entry((index(sockets, at), *letter)).or_default() += 1;
    }
    let most = counts.values().copied().max()?;
    let is_said = names.iter().all(Names::is_letter_of_channel);
    if !is_said && (most > MOST_AT_A_CHANNEL || most > 1 && distinct(&letters) == 1) {
        return None;
    }
    Some(letters.into_iter().map(|letter| Some(letter.to_string())).collect())
}

/// A number with a letter behind it. Of `P1-DIMM2A`, `P1-DIMM2B`, `P1-DIMM3A` the number is the channel, of
/// `DIMM-1B`, `DIMM-2B`, `DIMM-1C` it is the letter: the slots of a channel are listed one behind the other, and
/// counted from the first. Names such as `PROC 1 DIMM 3A` count all slots of a socket, which says nothing; neither
/// does a number that is the bank's, which goes across channels (`DIMM3A` of `BANK3`, SE7501WV2S of Intel), nor that
/// of `DIMM1_A`, `DIMM1_B` where several sockets share the slots: PowerEdge 2850 has the channels A and B, and a pair
/// of modules for each number.
fn by_number_and_letter(
    names: &[Names],
    sockets: Option<&Sockets>,
    count: usize,
) -> Option<Vec<Option<String>>> {
    let pairs = names.iter().map(|names| names.locator.numbered).collect::<Option<Vec<(u32, char)>>>()?;
    let letter = |(_, letter): &(u32, char)| u32::from(*letter);
    let number = |(number, _): &(u32, char)| *number;
    let is_channel =
        |channel: &dyn Fn(&(u32, char)) -> u32, slot: &dyn Fn(&(u32, char)) -> u32, first: &[u32]| {
            let slots: Vec<_> = pairs
                .iter()
                .enumerate()
                .map(|(at, pair)| ((index(sockets, at), channel(pair)), slot(pair)))
                .collect();
            let runs: Vec<Vec<u32>> = slots
                .chunk_by(|one, next| one.0 == next.0)
                .map(|run| run.iter().map(|(_, slot)| *slot).collect())
                .collect();
            distinct(pairs.iter().map(channel)) > 1
                && runs.len() == distinct(slots.iter().map(|(channel, _)| channel))
                && runs.iter().all(|run| run.len() <= MOST_AT_A_CHANNEL && is_counted(run, first))
        };
    let is_bank = names.iter().zip(&pairs).all(|(names, pair)| names.bank.bank == Some(pair.0));
    let by_number = !is_bank && is_channel(&number, &letter, &[u32::from('A')]);
    let by_letter = is_channel(&letter, &number, &[0, 1]);
    if by_number && sockets.is_none() && count > 1 {
        return None;
    }
    let channel =
        |(number, letter): (u32, char)| Some(if by_number { number.to_string() } else { letter.to_string() });
    (by_number != by_letter).then(|| pairs.into_iter().map(channel).collect())
}

/// Whether slots are counted up or down, from one of these firsts.
fn is_counted(run: &[u32], first: &[u32]) -> bool {
    let mut sorted = run.to_vec();
    sorted.sort_unstable();
    let is_step = sorted.windows(2).all(|pair| pair[1].checked_sub(pair[0]) == Some(1));
    is_step && sorted.first().is_some_and(|least| first.contains(least))
}
