//! Lines by their place in the code of programs.

use nodewise_machine::NodeId;
use nodewise_machine::order::Order as _;

use super::{LineCounts, LocalShare};

/// Where lines are read, by source line.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LineCode {
    /// Places in programs.
    pub places: Vec<CodeLine>,
    pub reads: Vec<CodeReads>,
    /// Instructions beyond the most that are distinguished.
    pub lost: u64,
}

/// A place in the code of a program: a source line, a function or an instruction, as far as the program's file says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct CodeLine {
    pub program: CodeFile,
    pub function: Option<String>,
    /// The function into which that one was inlined.
    pub inlined_into: Option<String>,
    /// The path of the source, and the line.
    pub source: Option<(String, u32)>,
    /// Bytes from the start of the file, where neither source nor function are known.
    pub offset: Option<u64>,
}

/// The file that code is in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum CodeFile {
    /// The kernel does not say.
    #[default]
    Unknown,
    /// None: the code was made at run time.
    None,
    /// The kernel, whose code is in functions without source lines.
    Kernel,
    /// By its path.
    File(String),
}

impl CodeFile {
    /// The name of the file without folders, or words for it.
    pub fn name(&self) -> &str {
        match self {
            Self::Unknown => "unknown",
            Self::None => "without a file",
            Self::Kernel => "kernel",
            Self::File(path) => file_name(path),
        }
    }
}

/// The last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path)
}

impl CodeLine {
    /// The source line in short: `walk.c:14`; `None` where it is not known.
    pub fn source_words(&self) -> Option<String> {
        self.source.as_ref().map(|(path, line)| format!("{}:{line}", file_name(path)))
    }

    /// The function in words, or the offset where neither function nor source is known.
    pub fn function_words(&self) -> Option<String> {
        let name = self.function.as_ref().map(|function| match &self.inlined_into {
            Some(outer) => format!("{function}, inlined into {outer}"),
            None => function.clone(),
        });
        name.or_else(|| self.offset.map(|offset| format!("{offset:#x}")))
    }

    /// Source line and function in words, as far as they are known.
    pub fn code_words(&self) -> Option<String> {
        match (self.source_words(), self.function_words()) {
            (Some(source), Some(function)) => Some(format!("{source} {function}")),
            (source, function) => source.or(function),
        }
    }

    /// The place in short.
    pub fn words(&self) -> String {
        let name = || self.function.clone().or_else(|| self.function_words());
        let inside = || name().map(|name| format!("{name} of {}", self.program.name()));
        self.source_words().or_else(inside).unwrap_or_else(|| self.program.name().to_owned())
    }
}

/// Lines that code read on CPUs of one node from the memory of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeReads {
    pub phase: usize,
    /// The place in [`LineCode::places`].
    pub place: usize,
    pub cpu_node: NodeId,
    /// `None` for memory that is no node's.
    pub node: Option<NodeId>,
    pub lines: u64,
}

impl LineCounts {
    /// Places in programs that read lines, those with most remote lines first, then those with most; nothing unless lines are
    /// counted by place.
    pub fn worst_code(&self) -> Vec<(&CodeLine, LocalShare)> {
        let Some(code) = &self.code else { return Vec::new() };
        let mut shares = vec![LocalShare::default(); code.places.len()];
        for reads in &code.reads {
            if let Some(share) = shares.get_mut(reads.place) {
                share.add(reads.lines, reads.node == Some(reads.cpu_node));
            }
        }
        let mut places: Vec<(&CodeLine, LocalShare)> =
            code.places.iter().zip(shares).filter(|(_, share)| share.all > 0).collect();
        places.order_by_key(|(_, share)| std::cmp::Reverse((share.remote(), share.all)));
        places
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::digest::line_counts::tests::sample;

    /// A source line, a function without source lines, an instruction without either, and code that is not known.
    pub(crate) fn code() -> LineCode {
        let file = |path: &str| CodeFile::File(path.to_owned());
        let text = |text: &str| Some(text.to_owned());
        let places = vec![
            CodeLine {
                program: file("/bin/stream"),
                function: text("triad"),
                inlined_into: text("main\u{1b}"),
                source: Some(("/src/triad.c".to_owned(), 14)),
                offset: None,
            },
            CodeLine { program: file("/lib/libc.so.6"), function: text("memcpy"), ..CodeLine::default() },
            CodeLine { program: file("/bin/stream"), offset: Some(0x1a40), ..CodeLine::default() },
            CodeLine { program: CodeFile::None, ..CodeLine::default() },
        ];
        let node = NodeId::new;
        let reads = [
            (0, 0, Some(0), 900),
            (0, 1, Some(0), 300),
            (1, 1, Some(1), 600),
            (2, 0, Some(1), 50),
            (3, 0, None, 4),
        ]
        .map(|(place, cpu, memory, lines): (usize, u32, Option<u32>, u64)| CodeReads {
            phase: 0,
            place,
            cpu_node: node(cpu),
            node: memory.map(node),
            lines,
        });
        LineCode { places, reads: reads.to_vec(), lost: 0 }
    }

    #[test]
    fn the_place_with_most_remote_lines_comes_first() {
        assert_eq!(sample().worst_code(), []);
        let mut counts = sample();
        counts.code = Some(code());
        let worst: Vec<(String, u64, u64)> = counts
            .worst_code()
            .iter()
            .map(|(line, share)| (line.words(), share.remote(), share.all))
            .collect();
        let words = ["triad.c:14", "0x1a40 of stream", "without a file", "memcpy of libc.so.6"];
        let numbers = [(300, 1200), (50, 50), (4, 4), (0, 600)];
        let expected: Vec<_> = words
            .into_iter()
            .zip(numbers)
            .map(|(words, (remote, all))| (words.to_owned(), remote, all))
            .collect();
        assert_eq!(worst, expected);
    }

    #[test]
    fn places_have_words() {
        let code = code();
        let functions: Vec<_> = code.places.iter().map(|place| place.function_words()).collect();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(functions, [text("triad, inlined into main\u{1b}"), text("memcpy"), text("0x1a40"), None]);
        assert_eq!(CodeLine::default().words(), "unknown");
        assert_eq!(CodeFile::File("/".to_owned()).name(), "/");
        let kernel = CodeLine { program: CodeFile::Kernel, ..CodeLine::default() };
        assert_eq!(kernel.words(), "kernel");
        assert_eq!(CodeLine { function: text("clear_page"), ..kernel }.words(), "clear_page of kernel");
    }
}
