//! Places in the code of programs: what the guest's instructions are called.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nodewise_lab::counting::{CodePlace, CountedInstruction, CountedReads, KERNEL};
use nodewise_lab::script::PROGRAMS_FOLDER;
use nodewise_machine::NodeId;
use nodewise_source::parse::kallsyms::KernelFunctions;
use nodewise_view::digest::line_counts::{CodeFile, CodeLine, CodeReads, LineCode};

use crate::symbols::{Symbol, Symbols};

/// Places of instructions by source line, function or file, numbered as they come.
pub struct Places {
    /// Files of the guest, and where they are here.
    files: Vec<(CodeFile, PathBuf)>,
    symbols: Symbols,
    kernel: KernelFunctions,
    numbers: BTreeMap<CodeLine, usize>,
    known: BTreeMap<CodePlace, usize>,
}

impl Places {
    /// Of files of the guest, whose own programs are copies of files here, and of its kernel with these symbols.
    pub fn new(images: &[Vec<u8>], programs: &[(String, PathBuf)], symbols: &str) -> Self {
        let file = |(at, path): (usize, &Vec<u8>)| {
            let file = match (at, path.is_empty()) {
                (0, _) => CodeFile::Unknown,
                (_, true) => CodeFile::None,
                _ if path == KERNEL.as_bytes() => CodeFile::Kernel,
                _ => CodeFile::File(String::from_utf8_lossy(path).into_owned()),
            };
            (file, here(path, programs))
        };
        let files = images.iter().enumerate().map(file).collect();
        Self {
            files,
            symbols: Symbols::default(),
            kernel: KernelFunctions::parse(symbols),
            numbers: BTreeMap::new(),
            known: BTreeMap::new(),
        }
    }

    /// The number of the place of an instruction.
    pub fn number(&mut self, place: CodePlace) -> usize {
        if let Some(number) = self.known.get(&place) {
            return *number;
        }
        let line = self.line(place);
        let next = self.numbers.len();
        let number = *self.numbers.entry(line).or_insert(next);
        self.known.insert(place, number);
        number
    }

    fn line(&mut self, place: CodePlace) -> CodeLine {
        let Some((program, path)) = self.files.get(place.image) else { return CodeLine::default() };
        if *program == CodeFile::Kernel {
            // The address without a name says nothing: it is another in each boot.
            let function = self.kernel.at(place.offset).map(str::to_owned);
            return CodeLine { program: CodeFile::Kernel, function, ..CodeLine::default() };
        }
        if !matches!(program, CodeFile::File(_)) {
            return CodeLine { program: program.clone(), ..CodeLine::default() };
        }
        let Symbol { function, inlined_into, source } = self.symbols.find(path, place.offset);
        let offset = (function.is_none() && source.is_none()).then_some(place.offset);
        CodeLine { program: program.clone(), function, inlined_into, source, offset }
    }

    /// The places with the lines that were read there.
    pub fn code(
        mut self,
        instructions: &[CountedInstruction],
        lost: u64,
        node_of: impl Fn(u32) -> Option<NodeId>,
    ) -> LineCode {
        let mut sums: BTreeMap<_, u64> = BTreeMap::new();
        for instruction in instructions {
            let place = self.number(instruction.place);
            for CountedReads { phase, cpu, node, lines } in &instruction.reads {
                let Some(cpu_node) = node_of(*cpu) else { continue };
                *sums.entry((place, *phase, cpu_node, *node)).or_default() += lines;
            }
        }
        let read =
            |((place, phase, cpu_node, node), lines)| CodeReads { phase, place, cpu_node, node, lines };
        let mut numbered: Vec<(usize, CodeLine)> =
            self.numbers.into_iter().map(|(line, number)| (number, line)).collect();
        numbered.sort_unstable_by_key(|(number, _)| *number);
        let places = numbered.into_iter().map(|(_, line)| line).collect();
        LineCode { places, reads: sums.into_iter().map(read).collect(), lost }
    }
}

/// Where a file of the guest is here: at the same path, or where the guest's copy was taken from.
fn here(path: &[u8], programs: &[(String, PathBuf)]) -> PathBuf {
    let path = Path::new(OsStr::from_bytes(path));
    let name = path.strip_prefix(PROGRAMS_FOLDER).ok().and_then(Path::to_str);
    let copied = programs.iter().find(|(own, _)| name == Some(own.as_str()));
    copied.map_or_else(|| path.to_owned(), |(_, own)| own.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_of_the_same_place_are_added_up() {
        let images = [Vec::new(), Vec::new(), b"/no/such\x1b".to_vec()];
        let place = |image, offset| CodePlace { image, offset };
        let reads = |cpu, lines| CountedReads { phase: 0, cpu, node: Some(NodeId::new(1)), lines };
        let instruction = |place, reads: &[CountedReads]| CountedInstruction { place, reads: reads.to_vec() };
        let instructions = [
            instruction(place(2, 8), &[reads(0, 5), reads(1, 6)]),
            instruction(place(2, 16), &[reads(0, 7)]),
            instruction(place(1, 0), &[reads(0, 1), reads(9, 100)]),
            instruction(place(0, 4), &[reads(0, 2)]),
            instruction(place(0, 8), &[reads(1, 3)]),
        ];
        let node_of = |cpu| (cpu < 9).then_some(NodeId::new(0));
        let mut places = Places::new(&images, &[], "");
        assert_eq!([place(2, 16), place(7, 1)].map(|place| places.number(place)), [0, 1]);
        let code = places.code(&instructions, 4, node_of);
        let found: Vec<(String, u64)> =
            code.reads.iter().map(|reads| (code.places[reads.place].words(), reads.lines)).collect();
        let text = |(text, lines): (&str, u64)| (text.to_owned(), lines);
        let expected =
            [("0x10 of such\x1b", 7), ("unknown", 5), ("0x8 of such\x1b", 11), ("without a file", 1)];
        assert_eq!(found, expected.map(text));
        assert_eq!(code.lost, 4);
    }

    #[test]
    fn functions_of_the_kernel_have_the_names_that_it_gives_them() {
        let images = [Vec::new(), KERNEL.into()];
        let words = |symbols: &str, offsets: [u64; 2]| {
            let mut places = Places::new(&images, &[], symbols);
            let numbers = offsets.map(|offset| places.number(CodePlace { image: 1, offset }));
            let code = places.code(&[], 0, |_| None);
            numbers.map(|number| code.places[number].words())
        };
        let symbols = "ffffffff81000010 T clear_page\nffffffff81000000 T startup\nffffffff81000030 t a\n";
        let found = words(symbols, [0xffff_ffff_8100_0020, 0xffff_ffff_8100_0030]);
        assert_eq!(found, ["clear_page of kernel", "a of kernel"]);
        assert_eq!(words("", [1, 2]), ["kernel", "kernel"]);
    }

    #[test]
    fn a_copy_in_the_guest_is_the_file_that_it_was_taken_from() {
        let programs = [("tool".to_owned(), PathBuf::from("/opt/own"))];
        let copy = Path::new(PROGRAMS_FOLDER).join("tool");
        assert_eq!(here(copy.as_os_str().as_bytes(), &programs), Path::new("/opt/own"));
        assert_eq!(here(b"/bin/tool", &programs), Path::new("/bin/tool"));
    }
}
