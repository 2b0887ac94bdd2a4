//! Interrupts since boot by line and CPU.
//!
//! # Source
//! `/proc/interrupts`:
//!
//! ```text
//!            CPU0       CPU4
//!  36:          0     164471 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
//! NMI:          0          0   Non-maskable interrupts
//! ERR:          0
//! ```
//!
//! The first line names the CPUs that are online; `ERR` and `MIS` count for the whole machine.

use nodewise_machine::CpuId;
use nodewise_machine::id::Id as _;

use super::{Parsed, digits, lines};
use crate::limits::MOST_CPUS;

/// The file, or the lines of it that were asked for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Interrupts {
    /// The CPUs of the columns.
    pub cpus: Vec<CpuId>,
    pub lines: Vec<InterruptLine>,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptLine {
    /// Its number, or a name such as `NMI`.
    pub name: String,
    /// Interrupts by column; one for the whole machine, or none, for those that are not counted by CPU.
    pub counts: Vec<u64>,
    /// The controller and the drivers, as they were read.
    pub text: String,
}

/// Reads the lines whose name is wanted. The file is large where CPUs are many, and few lines belong to devices.
pub fn parse(text: &str, wanted: impl Fn(&str) -> bool) -> Parsed<Interrupts> {
    let mut parsed = Parsed::<Interrupts>::default();
    let mut lines = lines(text);
    let header = lines.next().map(|(_, line)| line).unwrap_or_default();
    match header.split_ascii_whitespace().map(cpu).collect::<Option<Vec<_>>>() {
        Some(cpus) if !cpus.is_empty() => parsed.value.cpus = cpus,
        _ => {
            parsed.problems.add(1, "the CPUs of the columns, CPU0 and so on", header);
            return parsed;
        }
    }
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let Some((name, rest)) = line.split_once(':').map(|(name, rest)| (name.trim(), rest)) else {
            parsed.problems.add(number, "a number or a name, and a colon", line);
            continue;
        };
        if wanted(name) {
            let (counts, text) = counts(rest, parsed.value.cpus.len());
            parsed.value.lines.push(InterruptLine { name: name.to_owned(), counts, text: text.to_owned() });
        }
    }
    parsed
}

fn cpu(word: &str) -> Option<CpuId> {
    let cpu = digits(word.strip_prefix("CPU")?).filter(|cpu| *cpu < MOST_CPUS.min(CpuId::LIMIT))?;
    Some(CpuId::new(cpu))
}

/// At most this number of counts, and the text behind them.
fn counts(text: &str, most: usize) -> (Vec<u64>, &str) {
    let mut rest = text.trim_start();
    let mut counts = Vec::new();
    while counts.len() < most {
        let (word, behind) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        let Some(count) = digits(word) else { break };
        counts.push(count);
        rest = behind.trim_start();
    }
    (counts, rest.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    /// Linux 6.18, shortened; CPU 1 is offline.
    const SAMPLE: &str = "           CPU0       CPU2       \n 24:          1          0  IO-APIC   5-edge      ACPI:Ged\n 36:          0     164471 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\nNMI:          0          3   Non-maskable interrupts\nERR:          7\nMIS:          0\n";

    #[test]
    fn lines_are_read_by_cpu() {
        let parsed = parse(SAMPLE, |_| true);
        assert!(parsed.problems.is_empty());
        let Interrupts { cpus, lines } = parsed.value;
        assert_eq!(cpus, [CpuId::new(0), CpuId::new(2)]);
        let line =
            |at: usize| (lines[at].name.as_str(), lines[at].counts.as_slice(), lines[at].text.as_str());
        assert_eq!(line(1), ("36", &[0, 164_471][..], "PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0"));
        assert_eq!(line(2), ("NMI", &[0, 3][..], "Non-maskable interrupts"));
        assert_eq!(line(3), ("ERR", &[7][..], ""), "counted for the whole machine");
        assert_eq!(parse(SAMPLE, |name| name == "24").value.lines.len(), 1);
    }

    #[test]
    fn a_file_without_columns_is_refused_and_a_bad_line_costs_one_line() {
        assert_eq!(parse("", |_| true).problems.count(), 1);
        assert_eq!(parse("CPU0 X1\n 24: 1 1\n", |_| true).problems.count(), 1);
        assert_eq!(parse("CPU99999999\n 24: 1\n", |_| true).problems.count(), 1);
        let parsed = parse("CPU0\n 24: 1\nx\n 25: 18446744073709551616\n", |_| true);
        assert_eq!((parsed.value.lines.len(), parsed.problems.count()), (2, 1));
        assert_eq!(parsed.value.lines[1].counts, [] as [u64; 0]);
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(cpus in prop::collection::btree_set(0u32..8192, 1..6), rows in prop::collection::vec((0u32..1000, any::<[u64; 6]>(), "[A-Z][A-Za-z.-]{0,9}"), 0..5)) {
            let header: String = cpus.iter().map(|cpu| format!("CPU{cpu:<8}")).collect();
            let row = |(name, counts, text): &(u32, [u64; 6], String)| {
                let counts: String = counts[..cpus.len()].iter().map(|count| format!("{count:10} ")).collect();
                format!("{name:3}: {counts}{text}\n")
            };
            let text = format!("{header}\n{}", rows.iter().map(row).collect::<String>());
            let parsed = parse(&text, |_| true);
            prop_assert!(parsed.problems.is_empty());
            let lines = rows.into_iter().map(|(name, counts, text)| InterruptLine { name: name.to_string(), counts: counts[..cpus.len()].to_vec(), text }).collect();
            prop_assert_eq!(parsed.value, Interrupts { cpus: cpus.into_iter().map(CpuId::new).collect(), lines });
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>(), near in "(CPU[0-9]{0,6} ?){0,4}\n([A-Z0-9]{0,3}:? ?[0-9 a-z]{0,30}\n){0,4}") {
            let _ = parse(&text, |_| true);
            let _ = parse(&near, |_| true);
        }
    }
}
