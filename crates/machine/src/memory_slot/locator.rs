//! Names of memory slots: the socket and the channel that they say.
//!
//! Every maker has a grammar of its own: `P1-DIMMA1`, `CPU1_DIMM_A0`, `PROC 1 DIMM 3`, `NODE 1 CHANNEL 2 DIMM 1`,
//! `P0_Node0_Channel2_Dimm1`, `ChannelA-DIMM0`, `DIMM_A1`, `A1`. A name is read as words and numbers; [`place`]
//! then compares all names of a machine, since one alone does not say whether sockets are counted from 0 or 1.
//!
//! # Source
//! Outputs of dmidecode on machines of Dell, HPE, Supermicro, Intel, Gigabyte, ASUS, Cisco, Huawei and Inspur.

pub mod place;

/// Words in front of a socket's number.
const SOCKETS: [&str; 6] = ["CPU", "P", "PROC", "PROCESSOR", "SOCKET", "SKT"];
/// Words in front of a channel.
const CHANNELS: [&str; 3] = ["CHANNEL", "CHAN", "CH"];
/// Words in front of the slot's letter.
const SLOTS: [&str; 3] = ["DIMM", "CHANNEL", "CH"];
/// The longest name that is read, and the largest number in one.
const MOST_BYTES: usize = 128;
const MOST_NUMBER: u32 = 255;

/// The facts in the name of one slot. Each is `None` where the name does not have it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SlotName {
    /// The number of the socket.
    pub socket: Option<u32>,
    /// The number behind `NODE`: a socket or a memory controller.
    pub node: Option<u32>,
    /// The number behind `BANK`.
    pub bank: Option<u32>,
    /// The channel behind `CHANNEL`: a letter or a number.
    pub channel: Option<String>,
    /// The letter in front of the last number: a channel, on some machines a socket.
    pub letter: Option<char>,
    /// The number behind the letter.
    pub number: Option<u32>,
    /// A number and the letter behind it at the end, as in `P1-DIMM2A`: a channel and a slot, either way round.
    pub numbered: Option<(u32, char)>,
    /// Whether the socket and the letter are the same part, as in `DIMM_P1`.
    pub is_socket_or_letter: bool,
}

/// A part of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Word(String),
    Number(u32),
}

impl SlotName {
    /// Reads a name. Nothing is an error: what is not understood is `None`.
    pub fn from_text(text: &str) -> Self {
        let parts = parts(text);
        let mut name = Self::default();
        let mut socket_at = None;
        for (at, part) in parts.iter().enumerate() {
            let Part::Word(word) = part else { continue };
            match parts.get(at + 1) {
                Some(Part::Number(number)) if SOCKETS.contains(&word.as_str()) => {
                    socket_at = socket_at.or(Some(at));
                    name.socket = name.socket.or(Some(*number));
                }
                Some(Part::Number(number)) if word == "NODE" => name.node = name.node.or(Some(*number)),
                Some(Part::Number(number)) if word == "BANK" => name.bank = name.bank.or(Some(*number)),
                Some(Part::Number(number)) if CHANNELS.contains(&word.as_str()) => {
                    name.channel = name.channel.or_else(|| Some(number.to_string()));
                }
                Some(Part::Word(next)) if CHANNELS.contains(&word.as_str()) && next.len() == 1 => {
                    name.channel = name.channel.or_else(|| Some(next.clone()));
                }
                _ => {}
            }
        }
        // Inspur: CPU0_C3D1 is channel 3, slot 1.
        let inspur = match &parts[..] {
            [.., Part::Word(c), Part::Number(channel), Part::Word(d), Part::Number(_)] => {
                (c == "C" && d == "D").then_some(*channel)
            }
            _ => None,
        };
        if let Some(channel) = inspur {
            name.channel = Some(channel.to_string());
            return name;
        }
        // Of "DIMM030 J13" the letter is that of a connector on the board.
        let numbers = parts.iter().filter(|part| matches!(part, Part::Number(_))).count();
        let others = usize::from(name.socket.is_some()) + usize::from(name.node.is_some());
        match &parts[..] {
            [.., Part::Word(word), Part::Number(number)] => {
                let is_socket = socket_at == Some(parts.len() - 2);
                if let Some(letter) = single(word).filter(|_| numbers + usize::from(is_socket) == 1 + others)
                {
                    (name.letter, name.number) = (Some(letter), Some(*number));
                    name.is_socket_or_letter = is_socket;
                }
            }
            [.., Part::Number(number), Part::Word(word)] if numbers == 1 + others => {
                name.numbered = single(word).map(|letter| (*number, letter));
            }
            _ => {}
        }
        name
    }
}

/// The letter of a word that has no other.
fn single(word: &str) -> Option<char> {
    let mut letters = word.chars();
    letters.next().filter(|_| letters.next().is_none())
}

/// The words and numbers of a name. A letter that is glued to a word which is known is a word of its own.
fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let text: String = text.chars().take(MOST_BYTES).collect::<String>().to_ascii_uppercase();
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        let same = |c: char| c.is_ascii_digit() == first.is_ascii_digit() && c.is_ascii_alphanumeric();
        if !first.is_ascii_alphanumeric() {
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let end = rest.find(|c| !same(c)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after;
        if first.is_ascii_digit() {
            match run.parse() {
                Ok(number) if number <= MOST_NUMBER => parts.push(Part::Number(number)),
                _ => return Vec::new(),
            }
            continue;
        }
        let glued = SLOTS.iter().find(|word| run.len() == word.len() + 1 && run.starts_with(**word));
        match glued {
            Some(word) => parts.extend([*word, &run[word.len()..]].map(|part| Part::Word(part.to_owned()))),
            None => parts.push(Part::Word(run.to_owned())),
        }
    }
    parts
}

#[cfg(test)]
mod tests;
