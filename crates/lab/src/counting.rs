//! Counting the cache lines that a command moves: the plugin that QEMU gets for it, and the counts that come back.
//!
//! QEMU loads a plugin, which writes a text when the guest ends. Inside the guest, a program makes [marks](crate::mark)
//! before the command starts: where functions of the kernel are, which memory is which node's, and that counting begins.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

pub use nodewise_counter::KERNEL;
use nodewise_counter::{PLUGIN, SIZES};
use nodewise_machine::{Bytes, NodeId};

use crate::script;

/// File in the folder of a run: the plugin.
const FILE: &str = "counter.so";
/// File in the folder of a run: the counts.
const COUNTS: &str = "counts";
/// File in the folder of a run that the guest sees: the symbols of its kernel.
const SYMBOLS: &str = "symbols";
/// Bytes of symbols that are read: those of Debian's kernels are 12 MB.
const MOST_SYMBOLS: u64 = 64 << 20;
/// Bytes of counts that are read: 16 thousand threads on 255 CPUs have less.
const MOST_BYTES: u64 = 1 << 30;
/// The first line of the counts.
const FIRST: &str = "nodewise-counter 6";

/// How to count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counting {
    /// The private caches of a CPU.
    pub cache: PrivateCache,
    /// The program that makes the marks. It gets the number of times that what it then becomes calls `execve` before the
    /// command is there, and the words of that.
    pub marker: Vec<OsString>,
    /// Whether instructions are counted apart.
    pub by_line: bool,
    /// Whether accesses of the kernel for the command are counted.
    pub with_kernel: bool,
    /// Programs that the command becomes before the one that is counted, such as one that places it.
    pub launchers: u32,
}

impl Counting {
    /// The words before those that start the command.
    pub(crate) fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        if self.by_line && self.with_kernel {
            // Addresses are those of this boot. Without symbols the functions have no names.
            let copy =
                format!("cat /proc/kallsyms > {}/{SYMBOLS} 2> /dev/null; exec \"$@\"", script::RUN_FOLDER);
            words.extend(["sh", "-c", &copy, "sh"].map(OsString::from));
        }
        words.extend(self.marker.iter().cloned());
        words.push((script::EXECS + self.launchers).to_string().into());
        words
    }

    /// Writes the plugin into the folder of a run.
    pub(crate) fn prepare(folder: &Path) -> io::Result<()> {
        fs::write(folder.join(FILE), PLUGIN)
    }

    /// QEMU's option for it, in the folder of a run.
    pub(crate) fn option(&self) -> (&'static str, String) {
        let PrivateCache { size, ways } = self.cache;
        // Without a slash it would be looked for where libraries are.
        (
            "-plugin",
            format!(
                "./{FILE},size={},ways={ways},lines={},kernel={},to={COUNTS}",
                size.get(),
                u8::from(self.by_line),
                u8::from(self.with_kernel)
            ),
        )
    }

    /// Reads the counts from the folder of a run; empty where there are none.
    pub(crate) fn read(folder: &Path) -> String {
        let mut text = String::new();
        let file = fs::File::open(folder.join(COUNTS));
        let read = file.and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text));
        if read.is_ok() { text } else { String::new() }
    }
}

/// Reads what the guest wrote of its kernel's symbols, `/proc/kallsyms`, from the folder that it sees; empty where there is nothing.
pub(crate) fn symbols(share: &Path) -> String {
    let mut bytes = Vec::new();
    let file = fs::File::open(share.join(SYMBOLS));
    let read = file.and_then(|file| file.take(MOST_SYMBOLS).read_to_end(&mut bytes));
    if read.is_ok() { String::from_utf8_lossy(&bytes).into_owned() } else { String::new() }
}

/// The private caches of a CPU, as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrivateCache {
    pub size: Bytes,
    pub ways: u32,
}

/// The counts.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Ways of the modelled caches.
    pub ways: u32,
    /// Their sizes: half, the machine's, twice.
    pub sizes: [Bytes; SIZES],
    /// Threads, in the order in which they began; the command first.
    pub threads: Vec<CountedThread>,
    /// Threads beyond the most that are distinguished: their counts are those of the last one.
    pub lost: u64,
    /// Names of the phases that programs marked; the first, without a name, is the time outside of phases.
    pub phases: Vec<Vec<u8>>,
    /// Marks of phases beyond the most that are distinguished.
    pub lost_phases: u64,
    pub cells: Vec<CountedCell>,
    /// Mappings of processes; the first stands for memory whose mapping is not known.
    pub mappings: Vec<CountedMapping>,
    pub parts: Vec<CountedPart>,
    /// Writes of threads to lines that several threads write to.
    pub writes: Vec<CountedWrites>,
    /// Lines written to often that had to make room for others: sharing of them may be missing.
    pub lost_lines: u64,
    /// Paths of files with code. The first stands for code whose file is not known; code
    /// without a file has an empty path.
    pub images: Vec<Vec<u8>>,
    /// Instructions that read lines, and lines that they read; none unless they are counted apart.
    pub instructions: Vec<CountedInstruction>,
    /// Instructions beyond the most that are distinguished.
    pub lost_instructions: u64,
}

/// A mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedMapping {
    /// The number of the process in the guest.
    pub process: u32,
    pub kind: MappingKind,
    /// Whether other processes see what is written there.
    pub is_shared: bool,
    /// The name of the file, without its folders.
    pub name: Vec<u8>,
}

/// A place in a file with code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CodePlace {
    /// The place of the file in the list of all.
    pub image: usize,
    /// Bytes from the start of the file; 0 for code without a file; of [`KERNEL`] the address.
    pub offset: u64,
}

/// An instruction that read lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedInstruction {
    pub place: CodePlace,
    pub reads: Vec<CountedReads>,
}

/// Lines that an instruction read on one CPU from the memory of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedReads {
    pub phase: usize,
    pub cpu: u32,
    /// `None` for memory that is no node's.
    pub node: Option<NodeId>,
    pub lines: u64,
}

/// Writes of a thread to a line, on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedWrites {
    /// The same for lines of the same memory; in private memory, only within a process.
    pub key: u64,
    pub mapping: usize,
    /// The address of the line in the thread's process.
    pub address: u64,
    pub cpu: u32,
    pub thread: usize,
    pub count: u64,
    /// The bytes of the line that were written to, a bit for each.
    pub bytes: u64,
    /// The instruction that wrote last.
    pub by: CodePlace,
}

/// The kind of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingKind {
    /// The kernel does not say.
    Unknown,
    Heap,
    /// That of the first thread.
    Stack,
    /// Memory without a file, such as stacks of other threads.
    Anonymous,
    /// A file, or shared memory.
    File,
}

/// Lines of a mapping that were read on one CPU from the memory of one node, for each size of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedPart {
    pub phase: usize,
    pub mapping: usize,
    pub cpu: u32,
    /// `None` for memory that is no node's.
    pub node: Option<NodeId>,
    pub read: [u64; SIZES],
}

/// A thread of the command or of its descendants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedThread {
    /// The place in the list of the thread that made it; its own for the first.
    pub parent: usize,
    /// Its number in the guest, and that of its process; `None` where the kernel does not say.
    pub ids: Option<(u32, u32)>,
    /// The name that it had last, as the kernel keeps it; empty where that is not known.
    pub name: Vec<u8>,
}

/// The lines that a thread moved on one CPU from and to the memory of one node, for each size of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedCell {
    pub phase: usize,
    pub thread: usize,
    /// Whether the kernel moved them while the thread was current.
    pub in_kernel: bool,
    pub cpu: u32,
    /// `None` for memory that is no node's.
    pub node: Option<NodeId>,
    pub read: [u64; SIZES],
    /// Lines that had been written to and left the cache.
    pub written: [u64; SIZES],
    /// Lines of those that were read in order, as a prefetcher would see them coming.
    pub in_order: [u64; SIZES],
}

/// Why counts cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CountsError {
    /// There is no text: the marks did not begin the count.
    #[error("the guest ended without counts: its kernel did not say which task it runs")]
    Missing,
    #[error("the counts end before their last line")]
    Incomplete,
    #[error("line {line} of the counts is {}", nodewise_machine::printable::quote(text))]
    Line { line: usize, text: String },
}

impl Counts {
    /// Reads the text that the plugin wrote.
    ///
    /// # Errors
    /// There is none, it is cut, or a line is not one of the plugin's.
    pub fn parse(text: &str) -> Result<Self, CountsError> {
        let mut lines = text.lines().zip(1..);
        let wrong = |(text, line): (&str, usize)| CountsError::Line { line, text: text.to_owned() };
        let first = lines.next().ok_or(CountsError::Missing)?;
        if first.0 != FIRST {
            return Err(wrong(first));
        }
        let mut counts = Self::default();
        for line in lines {
            if line.0 == "end" {
                return Ok(counts);
            }
            counts.line(line.0).ok_or_else(|| wrong(line))?;
        }
        Err(CountsError::Incomplete)
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let mut words = line.split(' ');
        match words.next()? {
            "cache" => {
                self.ways = words.next()?.parse().ok()?;
                self.sizes = numbers(&mut words)?.map(Bytes::new);
            }
            "lost" => {
                [self.lost, self.lost_phases, self.lost_lines, self.lost_instructions] = numbers(&mut words)?;
            }
            "phase" => {
                let number: usize = words.next()?.parse().ok()?;
                (number == self.phases.len()).then_some(())?;
                self.phases.push(name(words.next()?)?);
            }
            "thread" => {
                let number: usize = words.next()?.parse().ok()?;
                let parent: usize = words.next()?.parse().ok()?;
                (number == self.threads.len() && parent <= number).then_some(())?;
                let [pid, process] = numbers(&mut words)?.map(|number| u32::try_from(number).ok());
                let ids = Some((pid?, process?)).filter(|(pid, _)| *pid > 0);
                self.threads.push(CountedThread { parent, ids, name: name(words.next()?)? });
            }
            word @ ("cell" | "kernel") => {
                let Place { phase, owner: thread, cpu, node } =
                    Place::read(&mut words, self.phases.len(), self.threads.len())?;
                let (read, written) = (numbers(&mut words)?, numbers(&mut words)?);
                let (in_order, in_kernel) = (numbers(&mut words)?, word == "kernel");
                self.cells.push(CountedCell { phase, thread, in_kernel, cpu, node, read, written, in_order });
            }
            "mapping" => {
                let number: usize = words.next()?.parse().ok()?;
                (number == self.mappings.len()).then_some(())?;
                let process = words.next()?.parse().ok()?;
                let kind = *KINDS.get(words.next()?.parse::<usize>().ok()?)?;
                let is_shared = words.next()?.parse::<u8>().ok()? != 0;
                self.mappings.push(CountedMapping { process, kind, is_shared, name: name(words.next()?)? });
            }
            "part" => {
                let Place { phase, owner: mapping, cpu, node } =
                    Place::read(&mut words, self.phases.len(), self.mappings.len())?;
                self.parts.push(CountedPart { phase, mapping, cpu, node, read: numbers(&mut words)? });
            }
            "writer" => {
                let key = hexadecimal(words.next()?)?;
                let mapping: usize = words.next()?.parse().ok()?;
                let address = hexadecimal(words.next()?)?;
                let cpu = words.next()?.parse().ok()?;
                let thread: usize = words.next()?.parse().ok()?;
                (mapping < self.mappings.len() && thread < self.threads.len()).then_some(())?;
                let [count] = numbers(&mut words)?;
                let bytes = hexadecimal(words.next()?)?;
                let by = self.code_place(&mut words)?;
                self.writes.push(CountedWrites { key, mapping, address, cpu, thread, count, bytes, by });
            }
            "image" => {
                let number: usize = words.next()?.parse().ok()?;
                (number == self.images.len()).then_some(())?;
                self.images.push(name(words.next()?)?);
            }
            "instruction" => {
                let _number: usize = words.next()?.parse().ok()?;
                let place = self.code_place(&mut words)?;
                self.instructions.push(CountedInstruction { place, reads: Vec::new() });
            }
            "by" => {
                // Its number is the plugin's; the lines follow the instruction's.
                let Place { phase, cpu, node, .. } = Place::read(&mut words, self.phases.len(), usize::MAX)?;
                let [lines] = numbers(&mut words)?;
                self.instructions.last_mut()?.reads.push(CountedReads { phase, cpu, node, lines });
            }
            _ => return None,
        }
        words.next().is_none().then_some(())
    }
}

impl Counts {
    fn code_place<'a>(&self, words: &mut impl Iterator<Item = &'a str>) -> Option<CodePlace> {
        let image: usize = words.next()?.parse().ok()?;
        let offset = hexadecimal(words.next()?)?;
        (image < self.images.len().max(1)).then_some(CodePlace { image, offset })
    }
}

/// Kinds of mappings by their numbers.
const KINDS: [MappingKind; 5] =
    [MappingKind::Unknown, MappingKind::Heap, MappingKind::Stack, MappingKind::Anonymous, MappingKind::File];

/// Where lines were counted: in a phase, for a thread or a mapping, on a CPU, in memory of a node.
struct Place {
    phase: usize,
    owner: usize,
    cpu: u32,
    node: Option<NodeId>,
}

impl Place {
    fn read<'a>(words: &mut impl Iterator<Item = &'a str>, phases: usize, owners: usize) -> Option<Self> {
        let phase: usize = words.next()?.parse().ok()?;
        let owner: usize = words.next()?.parse().ok()?;
        (phase < phases && owner < owners).then_some(())?;
        let cpu = words.next()?.parse().ok()?;
        let node = words.next()?;
        let node = if node == "-" { None } else { Some(NodeId::new(node.parse().ok()?)) };
        Some(Self { phase, owner, cpu, node })
    }
}

/// A name; `-` is an empty one.
fn name(word: &str) -> Option<Vec<u8>> {
    if word == "-" { Some(Vec::new()) } else { bytes(word) }
}

fn numbers<'a, const N: usize>(words: &mut impl Iterator<Item = &'a str>) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = words.next()?.parse().ok()?;
    }
    Some(numbers)
}

/// A number in hexadecimal digits.
fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word, 16).ok()
}

/// Bytes from hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    const SAMPLE: &str = "nodewise-counter 6\ncache 16 524288 1048576 2097152\nlost 0 2 3 4\nphase 0 -\nphase 1 70\n\
        thread 0 0 301 301 7368\ncell 0 0 1 0 5 4 3 2 1 0 3 2 1\nthread 1 0 0 0 -\nkernel 1 1 0 - 1 1 1 0 0 0 0 0 0\n\
        mapping 0 0 0 0 -\nmapping 1 301 4 1 6c6962\npart 1 1 1 0 5 4 3\nimage 0 -\nimage 1 2f78\n\
        instruction 7 1 1a\nby 1 7 1 0 5\nwriter 8000 1 7f0040 1 0 99 ff 1 1b\nend\n";

    #[test]
    fn counts_are_read_line_by_line() {
        let counts = Counts::parse(SAMPLE).unwrap();
        assert_eq!(counts.sizes.map(Bytes::get), [1 << 19, 1 << 20, 2 << 20]);
        assert_eq!(counts.ways, 16);
        let lost = (counts.lost, counts.lost_phases, counts.lost_lines, counts.lost_instructions);
        assert_eq!(lost, (0, 2, 3, 4));
        assert_eq!(counts.phases, [b"".to_vec(), b"p".to_vec()]);
        assert_eq!(
            counts.threads,
            [
                CountedThread { parent: 0, ids: Some((301, 301)), name: b"sh".to_vec() },
                CountedThread { parent: 0, ids: None, name: Vec::new() },
            ]
        );
        let node = Some(NodeId::new(0));
        assert_eq!(
            counts.cells,
            [
                CountedCell {
                    phase: 0,
                    thread: 0,
                    in_kernel: false,
                    cpu: 1,
                    node,
                    read: [5, 4, 3],
                    written: [2, 1, 0],
                    in_order: [3, 2, 1]
                },
                CountedCell {
                    phase: 1,
                    thread: 1,
                    in_kernel: true,
                    cpu: 0,
                    node: None,
                    read: [1; 3],
                    written: [0; 3],
                    in_order: [0; 3]
                },
            ]
        );
        let file =
            CountedMapping { process: 301, kind: MappingKind::File, is_shared: true, name: b"lib".to_vec() };
        assert_eq!(counts.mappings[1..], [file]);
        assert_eq!(counts.parts, [CountedPart { phase: 1, mapping: 1, cpu: 1, node, read: [5, 4, 3] }]);
        let place = |offset| CodePlace { image: 1, offset };
        let reads = vec![CountedReads { phase: 1, cpu: 1, node, lines: 5 }];
        assert_eq!(counts.instructions, [CountedInstruction { place: place(0x1a), reads }]);
        assert_eq!(counts.images, [b"".to_vec(), b"/x".to_vec()]);
        let (key, address) = (0x8000, 0x7f_0040);
        let writes = CountedWrites {
            key,
            mapping: 1,
            address,
            cpu: 1,
            thread: 0,
            count: 99,
            bytes: 0xff,
            by: place(0x1b),
        };
        assert_eq!(counts.writes, [writes]);
    }

    #[test]
    fn the_kernels_symbols_are_fetched_where_its_functions_are_named() {
        let cache = PrivateCache { size: Bytes::from_mib(1), ways: 16 };
        let counting = |by_line, with_kernel| {
            let marker = vec!["nodewise".into(), "__count".into()];
            Counting { cache, marker, by_line, with_kernel, launchers: 1 }
        };
        for (by_line, with_kernel) in [(false, false), (true, false), (false, true)] {
            assert_eq!(counting(by_line, with_kernel).words(), ["nodewise", "__count", "4"]);
        }
        let words = counting(true, true).words();
        assert_eq!(words[4..], ["nodewise", "__count", "4"]);
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(symbols(folder.path()), "");
        fs::write(folder.path().join(SYMBOLS), b"ffffffff81000000 T a\xff\n").unwrap();
        assert_eq!(symbols(folder.path()), "ffffffff81000000 T a\u{fffd}\n");
    }

    #[test]
    fn counts_that_are_missing_or_cut_are_errors() {
        assert_eq!(Counts::parse(""), Err(CountsError::Missing));
        assert_eq!(Counts::parse(SAMPLE.strip_suffix("end\n").unwrap()), Err(CountsError::Incomplete));
        let wrong = |line: &str| Counts::parse(&format!("{FIRST}\n{line}\nend\n")).unwrap_err().to_string();
        for line in [
            "cell 0 0 0 0 1 1 1 1 1 1 1 1 1",
            "kernel 0 0 0 0 1 1 1 1 1 1 1 1 1",
            "kernel 0 0 0 0 1 1 1",
            "kernel",
            "phase 1 -",
            "lost 1",
            "thread 1 0 0 0 -",
            "cache 16 1",
            "lost",
            "x",
            "lost 1 2",
            "lost 1 2 3",
            "writer 1 0 1 0 0 1 1 0 0",
            "image 1 -",
            "instruction 1 1 1a",
            "by 0 1 0 0 5",
            "thread 0 0 1 1 zz",
            "mapping 0 0 9 0 -",
            "part 0 0 0 0 1 1 1",
        ] {
            assert_eq!(wrong(line), format!("line 2 of the counts is \"{line}\""));
        }
        assert_eq!(
            Counts::parse("other 1\n"),
            Err(CountsError::Line { line: 1, text: "other 1".to_owned() })
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in any::<String>(), line in "(cell|kernel|thread|cache|lost|mapping|part|phase|writer|image|instruction|by)( [0-9a-f-]{0,22}){0,12}") {
            let _ = Counts::parse(&text);
            let _ = Counts::parse(&format!("{FIRST}\n{line}\nphase 0 -\nthread 0 0 0 0 -\nmapping 0 0 0 0 -\n{line}\nend\n"));
        }
    }
}
