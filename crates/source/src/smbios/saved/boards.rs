//! Memory slots of real servers: `data/dmidecode/boards.txt`, whose first lines explain it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use nodewise_machine::{Machine, OddityKind};

use super::machine;

/// A slot: its names, its size, its array, and where it belongs.
struct Slot {
    locator: String,
    bank: String,
    size: String,
    array: String,
    place: [Option<String>; 2],
}

#[derive(Default)]
struct Board {
    name: String,
    maker: String,
    sockets: Vec<String>,
    kind: Option<String>,
    slots: Vec<Slot>,
}

fn boards() -> Vec<Board> {
    let text = std::fs::read_to_string("../../data/dmidecode/boards.txt").unwrap();
    let mut boards: Vec<Board> = Vec::new();
    let mut array = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(head) = line.strip_prefix("= ") {
            boards.push(machine_of(head));
        } else if let Some(handle) = line.strip_prefix("@ ") {
            array = format!("{:0>4}", handle);
        } else {
            boards.last_mut().unwrap().slots.extend(slots(line, &array));
        }
    }
    boards
}

/// A machine that has no slots yet.
fn machine_of(head: &str) -> Board {
    let [name, maker, sockets, ref kind @ ..] = fields(head)[..] else { panic!("{head}") };
    let sockets = sockets.split(' ').map(str::to_owned).collect();
    let kind = kind.first().map(|kind| (*kind).to_owned());
    Board { name: name.into(), maker: maker.into(), sockets, kind, slots: Vec::new() }
}

fn fields(line: &str) -> Vec<&str> {
    line.split(" | ").map(str::trim).collect()
}

/// The slots of a line.
fn slots(line: &str, array: &str) -> Vec<Slot> {
    let [locator, bank, sizes, socket, channel] = fields(line)[..] else { panic!("{line}") };
    let sizes: Vec<&str> = sizes.split(',').collect();
    let size = |at: usize| sizes[at % sizes.len()];
    let slot = |(at, (locator, words)): (usize, (String, Vec<[String; 2]>))| {
        let word = |braces: usize, which: usize| words.get(braces).map_or("", |words| &words[which]);
        let filled =
            |text: &str| text.replace("$1", word(0, 0)).replace("#1", word(0, 1)).replace("#2", word(1, 1));
        let place = [socket, channel].map(|text| Some(filled(text)).filter(|text| text != "?"));
        Slot { bank: filled(bank), size: size(at).to_owned(), array: array.to_owned(), locator, place }
    };
    expanded(locator).into_iter().enumerate().map(slot).collect()
}

/// The names that a pattern stands for, each with what its braces stand for, in the name and in that of the bank.
fn expanded(pattern: &str) -> Vec<(String, Vec<[String; 2]>)> {
    let Some((before, rest)) = pattern.split_once('{') else {
        return vec![(pattern.to_owned(), Vec::new())];
    };
    let (parts, after) = rest.split_once('}').unwrap();
    let (names, banks) = parts.split_once('=').unwrap_or((parts, parts));
    let list = |parts: &str| parts.split(',').flat_map(range).collect::<Vec<String>>();
    let (names, banks) = (list(names), list(banks));
    assert_eq!(names.len(), banks.len(), "{pattern}");
    let mut all = Vec::new();
    for (name, bank) in names.into_iter().zip(banks) {
        for (end, words) in expanded(after) {
            let words = [vec![[name.clone(), bank.clone()]], words].concat();
            all.push((format!("{before}{name}{end}"), words));
        }
    }
    all
}

/// `A-C` or `1-3`, or something that stands for itself.
fn range(part: &str) -> Vec<String> {
    let numbers = part.split_once('-').map(|(first, last)| (first.parse::<u32>(), last.parse::<u32>()));
    match (numbers, part.as_bytes()) {
        (Some((Ok(first), Ok(last))), _) => (first..=last).map(|number| number.to_string()).collect(),
        (_, [first, b'-', last]) => (*first..=*last).map(|letter| char::from(letter).to_string()).collect(),
        _ => vec![part.to_owned()],
    }
}

/// The text of dmidecode on such a server.
fn text(board: &Board) -> String {
    let mut text = format!("# dmidecode 3.3\nSystem Information\n\tManufacturer: {}\n\n", board.maker);
    for (at, socket) in board.sockets.iter().enumerate() {
        let status = match socket.as_str() {
            "P" => "Populated, Enabled",
            "U" => "Unpopulated",
            _ => "Unknown",
        };
        write!(text, "Processor Information\n\tSocket Designation: CPU{at}\n\tStatus: {status}\n\n").unwrap();
    }
    for slot in &board.slots {
        let Slot { locator, bank, size, array, .. } = slot;
        writeln!(text, "Memory Device\n\tArray Handle: 0x{array}").unwrap();
        match size.as_str() {
            "." => {}
            "-" => writeln!(text, "\tSize: No Module Installed").unwrap(),
            size => {
                let (number, unit) = size.split_at(size.len() - 1);
                writeln!(text, "\tSize: {number} {unit}B").unwrap();
                board.kind.iter().for_each(|kind| writeln!(text, "\tType: {kind}").unwrap());
            }
        }
        write!(text, "\tLocator: {locator}\n\tBank Locator: {bank}\n\n").unwrap();
    }
    text
}

fn read(board: &Board) -> Machine {
    machine(&board.name, text(board).as_bytes()).unwrap().unwrap()
}

#[test]
fn slots_of_real_servers_are_where_they_belong() {
    let boards = boards();
    assert!(boards.len() >= 149, "{}", boards.len());
    let makers: std::collections::BTreeSet<&str> = boards
        .iter()
        .filter_map(|board| board.name.trim_start_matches("Desktop/").split('/').next())
        .collect();
    assert!(makers.len() >= 23, "{makers:?}");
    let mut wrong = Vec::new();
    for board in &boards {
        let found = read(board).memory_slots.slots;
        assert_eq!(found.len(), board.slots.len(), "{}", board.name);
        // The same slots have the same socket and channel; their names are the firmware's, or a number.
        let mut words: BTreeMap<[Option<String>; 2], [Option<String>; 2]> = BTreeMap::new();
        for (slot, found) in board.slots.iter().zip(&found) {
            let place = [found.socket.clone(), found.channel.clone()];
            let name = format!("{}: {} | {}", board.name, slot.locator, slot.bank);
            let known = |place: &[Option<String>; 2]| place.clone().map(|word| word.is_some());
            let same = words.entry(slot.place.clone()).or_insert_with(|| place.clone());
            if known(&place) != known(&slot.place) || *same != place {
                wrong.push(format!("{name}: {place:?}, {:?}", slot.place));
            }
        }
        let distinct: std::collections::BTreeSet<_> = words.values().collect();
        if distinct.len() != words.len() {
            wrong.push(format!("{}: {words:?}", board.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_is_called_uneven_for_want_of_a_processor() {
    for board in boards().iter().filter(|board| board.sockets.iter().any(|socket| socket == "U")) {
        let machine = read(board);
        let oddities = machine.memory_slots.oddities();
        assert!(oddities.iter().all(|one| one.kind == OddityKind::MemoryModulesMixed), "{oddities:?}");
        let slots = &machine.memory_slots.slots;
        let is_known = slots.iter().any(|slot| slot.socket.is_some());
        assert_eq!(slots.iter().any(|slot| slot.processor == Some(false)), is_known, "{}", board.name);
    }
}
