//! Models of processor.
//!
//! # Source
//! `/proc/cpuinfo`, which every architecture writes in words of its own: blocks that begin with
//! `processor : 0` and name the model as `model name` (x86, ia64), `cpu` (ppc, sparc), `cpu model` (mips),
//! `Model Name` (loongarch), `uarch` (riscv), or by the numbers `CPU implementer` and `CPU part` (arm);
//! on s390 a line per CPU with the type of the machine.

use std::collections::BTreeMap;

use nodewise_machine::order::Order as _;
use nodewise_machine::printable::printable;
use nodewise_machine::{CpuId, CpuModel, CpuSet};

use super::digits;
use super::number::hex_digits;
use crate::limits::MOST_CPUS;

/// Most models of one machine; a hostile file can name one per CPU.
const MOST_MODELS: usize = 64;

/// Lines that name the model of a processor.
const NAMES: [&str; 5] = ["model name", "Model Name", "cpu model", "cpu", "uarch"];

/// Reads the lines one by one, since the file of a large machine is large.
#[derive(Default)]
pub struct CpuInfo {
    models: BTreeMap<String, CpuSet>,
    block: Block,
    /// The part that a kernel for 32-bit arm names once, behind all processors.
    seen: CpuSet,
    microcode: BTreeMap<CpuId, u32>,
}

/// The lines of one processor so far.
#[derive(Default)]
struct Block {
    cpu: Option<CpuId>,
    name: Option<String>,
    implementer: Option<u32>,
    part: Option<u32>,
}

impl CpuInfo {
    /// Takes the next line.
    pub fn line(&mut self, line: &str) {
        let Some((name, value)) = line.split_once(':') else { return };
        let (name, value) = (name.trim(), value.trim());
        if name == "processor" {
            self.end_block();
            self.block.cpu = digits(value).and_then(known_cpu);
            self.seen.extend(self.block.cpu);
        } else if let Some(number) = name.strip_prefix("processor ") {
            if let Some(cpu) = digits(number).and_then(known_cpu) {
                self.s390(cpu, value);
            }
        } else if NAMES.contains(&name) && !value.is_empty() {
            // The first name counts: s390 and mips have several.
            self.block.name.get_or_insert_with(|| printable(&one_blank(value)).into_owned());
        } else if name == "microcode" {
            if let Some((cpu, revision)) = self.block.cpu.zip(number(value)) {
                self.microcode.insert(cpu, revision);
            }
        } else if name == "CPU implementer" {
            self.block.implementer = number(value);
        } else if name == "CPU part" {
            self.block.part = number(value);
        }
    }

    /// `processor 0: version = FF,  identification = 2233E8,  machine = 2964`.
    fn s390(&mut self, cpu: CpuId, value: &str) {
        let mut fields = value.split(',').filter_map(|field| field.split_once('='));
        let machine = fields.find(|(name, _)| name.trim() == "machine").map(|(_, number)| number.trim());
        // A type is a word of digits; what was damaged is not one.
        let is_type = |number: &&str| !number.is_empty() && number.bytes().all(|b| b.is_ascii_alphanumeric());
        if let Some(number) = machine.filter(is_type) {
            let name = S390.iter().find(|(numbers, _)| numbers.contains(&number)).map(|(_, name)| *name);
            let name = name.map_or_else(|| format!("IBM {number}"), |name| format!("IBM {name} ({number})"));
            self.add(printable(&name).into_owned(), CpuSet::from_iter([cpu]));
        }
    }

    fn end_block(&mut self) {
        let Block { cpu, name, implementer, part } = std::mem::take(&mut self.block);
        // The numbers of arm name the core; "model name" there is the architecture.
        let name = implementer.zip(part).map(|(implementer, part)| arm(implementer, part)).or(name);
        if let (Some(cpu), Some(name)) = (cpu, name) {
            self.add(name, CpuSet::from_iter([cpu]));
        }
    }

    fn add(&mut self, name: String, cpus: CpuSet) {
        if self.models.contains_key(&name) || self.models.len() < MOST_MODELS {
            let known = self.models.entry(name).or_default();
            *known = known.union(&cpus);
        }
    }

    /// The revision of each CPU's microcode, as far as it was read.
    pub const fn microcode(&self) -> &BTreeMap<CpuId, u32> {
        &self.microcode
    }

    /// The models, by first CPU.
    pub fn finish(mut self) -> Vec<CpuModel> {
        let shared = self.block.implementer.zip(self.block.part).filter(|_| self.models.is_empty());
        self.end_block();
        if let Some((implementer, part)) = shared {
            // Before Linux 3.8 arm named the part once for all.
            self.models.clear();
            let seen = self.seen.clone();
            self.add(arm(implementer, part), seen);
        }
        let models = self.models.into_iter().filter(|(_, cpus)| !cpus.is_empty());
        let mut models: Vec<CpuModel> = models.map(|(name, cpus)| CpuModel { name, cpus }).collect();
        models.order_by_key(|model| model.cpus.first());
        models
    }
}

/// Reads a whole file.
pub fn parse(text: &str) -> Vec<CpuModel> {
    let mut info = CpuInfo::default();
    text.lines().for_each(|line| info.line(line));
    info.finish()
}

fn known_cpu(number: u32) -> Option<CpuId> {
    (number < MOST_CPUS).then(|| CpuId::new(number))
}

/// A number as arm prints it: `0xd08`.
fn number(text: &str) -> Option<u32> {
    hex_digits(text.strip_prefix("0x")?).and_then(|number| u32::try_from(number).ok())
}

/// Blanks in a row as one: some models are padded to a column.
fn one_blank(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// The name of a core by its implementer and part number, else the numbers.
fn arm(implementer: u32, part: u32) -> String {
    let known = ARM.iter().find(|(by, number, _)| (*by, *number) == (implementer, part));
    known.map_or_else(
        || format!("implementer 0x{implementer:02x}, part 0x{part:03x}"),
        |(_, _, name)| (*name).to_owned(),
    )
}

/// Implementer and part number of the Main ID Register: the cores' technical reference manuals, and
/// `arch/arm64/include/asm/cputype.h`.
const ARM: [(u32, u32, &str); 53] = [
    (0x41, 0xb76, "ARM1176"),
    (0x41, 0xc05, "Cortex-A5"),
    (0x41, 0xc07, "Cortex-A7"),
    (0x41, 0xc08, "Cortex-A8"),
    (0x41, 0xc09, "Cortex-A9"),
    (0x41, 0xc0e, "Cortex-A17"),
    (0x41, 0xc0f, "Cortex-A15"),
    (0x41, 0xd01, "Cortex-A32"),
    (0x41, 0xd02, "Cortex-A34"),
    (0x41, 0xd03, "Cortex-A53"),
    (0x41, 0xd04, "Cortex-A35"),
    (0x41, 0xd05, "Cortex-A55"),
    (0x41, 0xd07, "Cortex-A57"),
    (0x41, 0xd08, "Cortex-A72"),
    (0x41, 0xd09, "Cortex-A73"),
    (0x41, 0xd0a, "Cortex-A75"),
    (0x41, 0xd0b, "Cortex-A76"),
    (0x41, 0xd0c, "Neoverse-N1"),
    (0x41, 0xd0d, "Cortex-A77"),
    (0x41, 0xd0e, "Cortex-A76AE"),
    (0x41, 0xd40, "Neoverse-V1"),
    (0x41, 0xd41, "Cortex-A78"),
    (0x41, 0xd42, "Cortex-A78AE"),
    (0x41, 0xd44, "Cortex-X1"),
    (0x41, 0xd46, "Cortex-A510"),
    (0x41, 0xd47, "Cortex-A710"),
    (0x41, 0xd48, "Cortex-X2"),
    (0x41, 0xd49, "Neoverse-N2"),
    (0x41, 0xd4a, "Neoverse-E1"),
    (0x41, 0xd4b, "Cortex-A78C"),
    (0x41, 0xd4c, "Cortex-X1C"),
    (0x41, 0xd4d, "Cortex-A715"),
    (0x41, 0xd4e, "Cortex-X3"),
    (0x41, 0xd4f, "Neoverse-V2"),
    (0x41, 0xd80, "Cortex-A520"),
    (0x41, 0xd81, "Cortex-A720"),
    (0x41, 0xd82, "Cortex-X4"),
    (0x41, 0xd83, "Neoverse-V3AE"),
    (0x41, 0xd84, "Neoverse-V3"),
    (0x41, 0xd85, "Cortex-X925"),
    (0x41, 0xd87, "Cortex-A725"),
    (0x41, 0xd8e, "Neoverse-N3"),
    (0x43, 0x0a1, "ThunderX"),
    (0x43, 0x0af, "ThunderX2"),
    (0x46, 0x001, "A64FX"),
    (0x48, 0xd01, "TaiShan-v110"),
    (0x48, 0xd02, "TaiShan-v120"),
    (0x50, 0x000, "X-Gene"),
    (0x51, 0xc00, "Falkor"),
    (0x61, 0x022, "Apple Icestorm (M1)"),
    (0x61, 0x023, "Apple Firestorm (M1)"),
    (0xc0, 0xac3, "Ampere-1"),
    (0xc0, 0xac4, "Ampere-1a"),
];

/// Types of machine that s390 names its processors by (IBM's machine types).
const S390: [(&[&str], &str); 8] = [
    (&["2097", "2098"], "z10"),
    (&["2817", "2818"], "z196 or z114"),
    (&["2827", "2828"], "zEC12 or zBC12"),
    (&["2964", "2965"], "z13"),
    (&["3906", "3907"], "z14"),
    (&["8561", "8562"], "z15"),
    (&["3931", "3932"], "z16"),
    (&["9175", "9176"], "z17"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    fn check(text: &str, expected: &[(&str, &str)]) {
        let models = parse(text);
        let found: Vec<(String, String)> =
            models.into_iter().map(|model| (model.name, model.cpus.to_string())).collect();
        let found: Vec<(&str, &str)> =
            found.iter().map(|(name, cpus)| (name.as_str(), cpus.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn every_architecture_names_its_processors() {
        check(
            "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) CPU           E5472  @ 3.00GHz\n\nprocessor\t: 1\nmodel name\t: Intel(R) Xeon(R) CPU           E5472  @ 3.00GHz\n",
            &[("Intel(R) Xeon(R) CPU E5472 @ 3.00GHz", "0-1")],
        );
        check(
            "processor\t: 8\ncpu\t\t: POWER9, altivec supported\nrevision\t: 2.1\n\nmodel\t\t: 8335-GTW\n",
            &[("POWER9, altivec supported", "8")],
        );
        check(
            "vendor_id       : IBM/S390\n# processors    : 2\nprocessor 0: version = FF,  identification = 2233E8,  machine = 2964\nprocessor 1: version = FF,  identification = …,  machine = 1234\n\ncpu number      : 0\ncpu MHz dynamic : 5000\n",
            &[("IBM z13 (2964)", "0"), ("IBM 1234", "1")],
        );
        check("processor\t: 0\nhart\t\t: 2\nuarch\t\t: sifive,u74-mc\n", &[("sifive,u74-mc", "0")]);
        check("processor\t: 0\nModel Name\t\t: Loongson-3A5000\n", &[("Loongson-3A5000", "0")]);
        check("nothing\n", &[]);
        // Types of machine that lost or gained bytes.
        check("processor 0: version = FF, machine = 29\0\0 4\nprocessor 1: machine = x  y\n", &[]);
    }

    #[test]
    fn microcode_is_known_where_a_processor_names_its_revision() {
        let mut info = CpuInfo::default();
        let text =
            "microcode\t: 0x1\nprocessor\t: 0\nmicrocode\t: 0x2b000661\n\nprocessor\t: 1\nmicrocode\t: new\n";
        text.lines().for_each(|line| info.line(line));
        assert_eq!(info.microcode().iter().collect::<Vec<_>>(), [(&CpuId::new(0), &0x2b00_0661)]);
    }

    #[test]
    fn cores_of_arm_are_named_by_their_part() {
        let block = |cpu: u32, part: &str| {
            format!("processor\t: {cpu}\nBogoMIPS\t: 48.00\nCPU implementer\t: 0x41\nCPU part\t: {part}\n\n")
        };
        let text: String = [(0, "0xd05"), (1, "0xd05"), (4, "0xd0b"), (5, "0xfff")]
            .map(|(cpu, part)| block(cpu, part))
            .concat();
        check(&text, &[("Cortex-A55", "0-1"), ("Cortex-A76", "4"), ("implementer 0x41, part 0xfff", "5")]);
        // Before Linux 3.8 the part came once, after all processors.
        check(
            "Processor\t: ARMv7 Processor rev 1 (v7l)\nprocessor\t: 0\nBogoMIPS\t: 1\n\nprocessor\t: 1\nBogoMIPS\t: 1\n\nCPU implementer\t: 0x41\nCPU part\t: 0xc09\n",
            &[("Cortex-A9", "0-1")],
        );
    }

    #[test]
    fn a_hostile_file_stays_small_and_fit_for_a_terminal() {
        check("processor\t: 0\nmodel name\t: \u{1b}[2J\n", &[("\\x1b[2J", "0")]);
        check("processor\t: 4294967295\nmodel name\t: x\n", &[]);
        let text: String = (0..1000).map(|cpu| format!("processor : {cpu}\nmodel name : {cpu}\n")).collect();
        assert_eq!(parse(&text).len(), MOST_MODELS);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in any::<String>(), near in "(processor( [0-9]{1,3})?|cpu|CPU part)[ \t]*: [ -~]{0,12}\n") {
            parse(&text);
            for model in parse(&near.repeat(3)) {
                prop_assert!(!model.cpus.is_empty() && !model.name.is_empty());
            }
        }
    }
}
