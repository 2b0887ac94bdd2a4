//! Outputs of other tools as machines: hwloc's XML, lscpu, likwid-topology.
//!
//! What such a text does not say stays unknown. A bad line costs one line and becomes an oddity of the machine; only a
//! text without its main part is refused. (`numactl --hardware` and dmidecode, which repeat files of the kernel and of
//! the firmware, are read by [`numactl`](crate::numactl) and [`smbios`](crate::smbios).)

mod hwloc_devices;
pub mod hwloc_xml;
pub mod likwid;
pub mod lscpu;

use nodewise_machine::id::Id;
use nodewise_machine::printable::printable;
use nodewise_machine::set::IdSet;
use nodewise_machine::{Machine, Oddity, OddityKind, Origin};

use crate::parse::number::hex_digits;
use crate::parse::{ParseError, Parsed, text_of};

/// Why an output of another tool cannot be read as a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{tool}, line {}: {}", .source.line, .source.sentence())]
pub struct ImportError {
    /// The kind of text: `an output of lscpu`.
    pub tool: &'static str,
    pub source: ParseError,
}

/// A tool whose output is read.
struct Tool {
    /// Its output, as the end of `x is`.
    name: &'static str,
    is: fn(&str) -> bool,
    parse: fn(&str) -> Result<Parsed<Machine>, ParseError>,
}

const TOOLS: [Tool; 3] = [
    Tool { name: "hwloc XML", is: hwloc_xml::is_hwloc_xml, parse: hwloc_xml::parse },
    Tool { name: "an output of lscpu", is: lscpu::is_lscpu, parse: lscpu::parse },
    Tool { name: "an output of likwid-topology", is: likwid::is_likwid, parse: likwid::parse },
];

/// Reads the machine in an output of a tool; `None` for other files.
///
/// # Errors
/// A text whose main part is missing or damaged.
pub fn machine(path: &str, bytes: &[u8]) -> Option<Result<Machine, ImportError>> {
    let (text, _) = text_of(bytes);
    let tool = TOOLS.iter().find(|tool| (tool.is)(&text))?;
    let read = (tool.parse)(&text).map_err(|source| ImportError { tool: tool.name, source });
    Some(read.map(|Parsed { value: mut machine, problems }| {
        machine.origin = Origin::Capture(path.to_owned());
        let shown = printable(path).into_owned();
        for error in &problems.first {
            let mut oddity = Oddity::in_file(OddityKind::Unparseable, shown.clone(), error.sentence());
            oddity.line = Some(error.line);
            machine.oddities.push(oddity);
        }
        if problems.others > 0 {
            let text = format!("{} more lines do not parse", problems.others);
            machine.oddities.push(Oddity::in_file(OddityKind::Unparseable, shown, text));
        }
        machine.check();
        machine
    }))
}

/// Files that have figures and no machine: how a line of them begins, and their kind in words.
const FIGURES: [(&str, &str); 2] = [
    (
        "Intel(R) Memory Latency Checker",
        "an output of Intel Memory Latency Checker, which has measured figures and no machine (nodewise latency --from \
         and bandwidth --from show them)",
    ),
    (
        "STREAM version",
        "an output of STREAM, which has measured figures and no machine (nodewise bandwidth --from shows them)",
    ),
];

/// A kind of file that has figures and no machine, in words; `None` for other files.
pub fn figures(bytes: &[u8]) -> Option<&'static str> {
    let (text, _) = text_of(bytes);
    let is_line = |line: &&str| !line.is_empty() && !is_prompt(line) && line.bytes().any(|byte| byte != b'-');
    let first = text.lines().map(str::trim).find(is_line)?;
    FIGURES.iter().find(|(beginning, _)| first.starts_with(beginning)).map(|(_, what)| *what)
}

/// Whether a line is the prompt of whoever saved the text, with a command.
fn is_prompt(line: &str) -> bool {
    line.starts_with(['$', '#', '[']) || line.contains("$ ")
}

/// Reads a set as hwloc prints it: groups of 32 bits in hexadecimal, empty ones left blank (`0x0000000f,,0x0`). Ids
/// are below `most`.
fn bitmap<I: Id>(text: &str, most: u32) -> Option<IdSet<I>> {
    let groups: Vec<&str> = text.split(',').collect();
    if text.is_empty() || groups.len() > most.div_ceil(32) as usize {
        return None;
    }
    let mut set = IdSet::new();
    for (at, group) in (0u32..).zip(groups.iter().rev()) {
        let digits = group.strip_prefix("0x").unwrap_or(group);
        let bits = if digits.is_empty() { 0 } else { hex_digits(digits)? };
        for bit in (0..32).filter(|bit| (bits >> bit) & 1 != 0) {
            set.insert(I::new(at * 32 + bit));
        }
        if bits > u64::from(u32::MAX) {
            return None;
        }
    }
    Some(set).filter(|set| set.last().is_none_or(|last| last.number() < most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::CpuSet;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn a_set_is_read_as_hwloc_prints_it() {
        let check = |text: &str, expected: Option<&str>| {
            let set: Option<CpuSet> = bitmap(text, 128);
            assert_eq!(set.map(|set| set.to_string()).as_deref(), expected, "{text}");
        };
        check("0x00000003", Some("0-1"));
        check("0x0000000f,,0x0", Some("64-67"));
        check("0xf0000000,0x0", Some("60-63"));
        check("0x0", Some(""));
        check("0xf...f", None);
        check("", None);
        check("0x1,0x0,0x0,0x0,0x0", None);
        check("0x100000000", None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in any::<Vec<u8>>(), text in "[0-9a-fx,]{0,40}") {
            let _ = machine("x", &bytes);
            let _ = figures(&bytes);
            let _ = bitmap::<nodewise_machine::NodeId>(&text, 100);
        }

        #[test]
        fn a_printed_set_is_read_back(words in proptest::collection::vec(any::<u32>(), 1..8)) {
            let text: Vec<String> = words.iter().map(|word| format!("0x{word:08x}")).collect();
            let set: CpuSet = bitmap(&text.join(","), 256).unwrap();
            let mut expected = CpuSet::new();
            for (at, word) in words.iter().rev().enumerate() {
                for bit in (0..32).filter(|bit| (word >> bit) & 1 != 0) {
                    expected.insert(nodewise_machine::CpuId::new(at as u32 * 32 + bit));
                }
            }
            prop_assert_eq!(set, expected);
        }
    }
}
