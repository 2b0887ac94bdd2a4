//! Outputs of dmidecode as a machine: its memory slots, and nothing else.

use nodewise_machine::memory_slot::locator::place::place;
use nodewise_machine::printable::printable;
use nodewise_machine::{Machine, Oddity, OddityKind, Origin};

use super::files::from_dump;
use crate::parse::{Parsed, dmidecode, text_of};

/// Reads the text that dmidecode prints, and the bytes that it writes with `--dump-bin`. `None` for other files.
///
/// # Errors
/// Why there are no slots in it.
pub fn machine(path: &str, bytes: &[u8]) -> Option<Result<Machine, String>> {
    let mut machine = Machine::new(Origin::Firmware(path.to_owned()));
    let shown = printable(path).into_owned();
    let mut slots = if let Some((slots, problems)) = from_dump(bytes) {
        let oddity = |problem: &super::SmbiosProblem| {
            let text = printable(&problem.to_string()).into_owned();
            Oddity::in_file(OddityKind::Unparseable, shown.clone(), text)
        };
        machine.oddities.extend(problems.iter().map(oddity));
        slots
    } else {
        let (text, _) = text_of(bytes);
        if !dmidecode::is_dmidecode(&text) {
            return None;
        }
        let Parsed { value: slots, problems } = dmidecode::parse(&text);
        if slots.slots.is_empty() {
            let why = dmidecode::reason(&text).map(|reason| format!("{reason} (run dmidecode as root)"));
            let expected = "expected structures of type 17 (dmidecode -t 1,4,16,17,19,20)";
            return Some(Err(why.unwrap_or_else(|| expected.to_owned())));
        }
        for error in &problems.first {
            let mut oddity = Oddity::in_file(OddityKind::Unparseable, shown.clone(), error.sentence());
            oddity.line = Some(error.line);
            machine.oddities.push(oddity);
        }
        if problems.others > 0 {
            let text = format!("{} more lines do not parse", problems.others);
            machine.oddities.push(Oddity::in_file(OddityKind::Unparseable, shown.clone(), text));
        }
        slots
    };
    if slots.slots.is_empty() {
        return Some(Err("expected structures of type 17".to_owned()));
    }
    place(&mut slots.slots, &slots.board, &machine);
    machine.memory_slots.slots = slots.slots;
    machine.check();
    Some(Ok(machine))
}

#[cfg(test)]
mod boards;
#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::memory_slot::SlotSide;

    #[test]
    fn faults_are_named_with_their_lines_and_the_rest_is_shown() {
        let text = b"Memory Device\n\tSize: much\n\tLocator: P1-DIMMA1\n\nMemory Device\n\tSize: 4 GB\n\tLocator: P2-DIMMA1\n";
        let machine = machine("a\x1b.txt", text).unwrap().unwrap();
        assert_eq!(machine.memory_slots.groups().len(), 2);
        assert_eq!(
            machine.oddities[0].to_string(),
            "a\\x1b.txt:2: expected a size such as 16 GB, found \"much\""
        );
    }

    #[test]
    fn a_server_of_two_sockets_is_read() {
        let path = "../../data/dmidecode/Huawei-TaiShan_2280_V2.txt";
        let machine = machine(path, &std::fs::read(path).unwrap()).unwrap().unwrap();
        let groups = machine.memory_slots.groups();
        let size = nodewise_machine::Bytes::from_gib(256);
        for (group, socket) in groups.iter().zip(["0", "1"]) {
            assert_eq!(group.side, SlotSide::Socket(socket.into()));
            assert_eq!((group.slots.len(), group.modules().count(), group.size()), (16, 8, Some(size)));
            let channels = group.channels().unwrap();
            assert_eq!(channels.len(), 8);
            assert!(channels.iter().all(|known| known.size == nodewise_machine::Bytes::from_gib(32)));
        }
        let kinds: Vec<OddityKind> = machine.oddities.iter().map(|oddity| oddity.kind).collect();
        assert_eq!(kinds, [OddityKind::NoNodes]);
        let peak = machine.memory_peaks(false).machine.unwrap();
        assert_eq!(peak.to_string(), "16 channels x 2933 MT/s x 8 bytes");
        assert_eq!(peak.gb_per_s(), 375.424);
    }

    #[test]
    fn other_files_are_none() {
        assert!(machine("x", b"hello").is_none());
        assert!(machine("x", b"\x00\x01").is_none());
        let why = machine("x", b"# dmidecode 3.4\n").unwrap().unwrap_err();
        assert_eq!(why, "expected structures of type 17 (dmidecode -t 1,4,16,17,19,20)");
    }
}
