//! Reads files of a tree and keeps what was strange about them.

use nodewise_machine::id::Id as _;
use nodewise_machine::printable::printable;
use nodewise_machine::{CpuId, CpuSet, NodeId, NodeSet, Oddity, OddityKind};

use super::Detail;
use super::findings::Findings;
use super::neighbours::Neighbours;
use super::nodes::cpu_names;
use crate::file;
use crate::limits::{MOST_CPUS, bound_cpus};
use crate::parse::{ParseError, Parsed, Problems, set, text_of};
use crate::tree::{ReadError, Tree};

/// Empty on kernels without cpusets, and in captures of ours where no control groups are mounted.
const MAY_BE_EMPTY: [&str; 2] = ["/proc/self/cpuset", "/proc/mounts"];

/// A tree, one buffer for all its files, and the findings.
pub(crate) struct Reader<'t> {
    pub(super) tree: &'t Tree,
    detail: Detail,
    buffer: Vec<u8>,
    findings: Findings,
    neighbours: Neighbours,
}

impl<'t> Reader<'t> {
    pub(crate) fn new(tree: &'t Tree, detail: Detail) -> Self {
        Self {
            tree,
            detail,
            buffer: Vec::new(),
            findings: Findings::default(),
            neighbours: Neighbours::default(),
        }
    }

    /// Whether less than everything is wanted of the running system, so that reads are to be saved.
    pub(super) fn is_quick(&self) -> bool {
        self.detail != Detail::Full && self.tree.is_live()
    }

    /// Whether only what places a program is wanted of the running system.
    pub(super) fn wants_only_nodes(&self) -> bool {
        self.detail == Detail::Nodes && self.tree.is_live()
    }

    /// Whether the files come from a running kernel, so that two of them cannot disagree about one
    /// bitmap.
    pub(super) fn trusts_files(&self) -> bool {
        self.tree.is_live()
    }

    /// Keeps an oddity.
    pub(super) fn note(&mut self, oddity: Oddity) {
        self.findings.add(oddity);
    }

    /// Keeps an oddity of a file.
    pub(super) fn note_in(&mut self, kind: OddityKind, path: &str, text: impl Into<String>) {
        self.note(Oddity::in_file(kind, printable(path), text));
    }

    pub(super) fn unreadable(&mut self, error: ReadError) {
        let text = format!("cannot be read: {}", error.cause);
        self.note(Oddity::in_file(OddityKind::Unreadable, error.path, text));
    }

    /// Whether anything of a file was noted.
    pub(super) fn has_noted(&self, path: &str) -> bool {
        self.findings.has(path)
    }

    fn unparseable(&mut self, path: &str, error: &ParseError) {
        let mut oddity = Oddity::in_file(OddityKind::Unparseable, printable(path), error.sentence());
        oddity.line = Some(error.line);
        self.note(oddity);
    }

    /// Whether there is anything of this name.
    pub(super) fn exists(&self, path: &str) -> bool {
        self.tree.exists(path)
    }

    /// Gives the text of a file to a function; `None` when there is no such file.
    pub(crate) fn text<T>(&mut self, path: &str, read: impl FnOnce(&str) -> T) -> Option<T> {
        let (value, end) = self.text_and_end(path, read)?;
        self.note_end(path, end);
        Some(value)
    }

    /// The same; how the text ends is not noted yet.
    fn text_and_end<T>(&mut self, path: &str, read: impl FnOnce(&str) -> T) -> Option<(T, End)> {
        match self.tree.read_into(path, &mut self.buffer) {
            Ok(true) => self.neighbours.found(path),
            Ok(false) => {
                self.neighbours.missing(path);
                return None;
            }
            Err(error) => {
                self.neighbours.found(path);
                self.unreadable(error);
                return None;
            }
        }
        let (text, stray) = text_of(&self.buffer);
        let end = End::from_text(&text);
        let foreign =
            |c: char| c.is_control() && !matches!(c, '\n' | '\t') || c == char::REPLACEMENT_CHARACTER;
        let is_foreign = text.contains(foreign);
        if stray {
            self.findings.stray(&printable(path));
        }
        let value = read(&text);
        if is_foreign {
            self.note_in(OddityKind::StrayBytes, path, "it has bytes that are not text");
        }
        Some((value, end))
    }

    /// Notes a text that cannot be all of what the kernel wrote: its files end with a line feed. Many files of
    /// the running system are not checked so, whose drivers forget it.
    fn note_end(&mut self, path: &str, end: End) {
        let text = match end {
            End::LineFeed => return,
            _ if self.trusts_files() => return,
            End::Nothing if MAY_BE_EMPTY.contains(&path) => return,
            End::Nothing => "it is empty",
            End::Cut => "its last line has no end: the file may be cut",
        };
        self.note_in(OddityKind::Unparseable, path, text);
    }

    /// Reads a file of one value.
    pub(super) fn value<T>(
        &mut self,
        path: &str,
        parse: impl FnOnce(&str) -> Result<T, ParseError>,
    ) -> Option<T> {
        match self.text_and_end(path, parse)? {
            (Ok(value), end) => {
                self.note_end(path, end);
                Some(value)
            }
            (Err(error), _) => {
                self.unparseable(path, &error);
                None
            }
        }
    }

    /// The same for a file that a running kernel may refuse to read, such as one of a device that sleeps.
    pub(super) fn value_or_silence<T>(
        &mut self,
        path: &str,
        parse: impl FnOnce(&str) -> Result<T, ParseError>,
    ) -> Option<T> {
        if self.trusts_files() {
            return file::value(self.tree, path, parse).ok().flatten();
        }
        self.value(path, parse)
    }

    /// Reads a file of many lines; what is wrong with some of them becomes oddities.
    pub(crate) fn parsed<T>(&mut self, path: &str, parse: impl FnOnce(&str) -> Parsed<T>) -> Option<T> {
        let (Parsed { value, problems }, end) = self.text_and_end(path, parse)?;
        if problems.is_empty() {
            self.note_end(path, end);
        }
        self.problems(path, &problems);
        Some(value)
    }

    pub(super) fn problems(&mut self, path: &str, problems: &Problems) {
        for error in &problems.first {
            self.unparseable(path, error);
        }
        if problems.others > 0 {
            self.note_in(
                OddityKind::Unparseable,
                path,
                format!("{} more lines do not parse", problems.others),
            );
        }
    }

    /// A list of nodes.
    pub(super) fn node_list(&mut self, path: &str) -> Option<NodeSet> {
        self.value(path, set::list::<NodeId>)
    }

    /// A list of CPUs.
    pub(super) fn cpu_list(&mut self, path: &str) -> Option<CpuSet> {
        let cpus = self.value(path, set::list::<CpuId>);
        self.within_bounds(path, cpus)
    }

    /// A mask of CPUs.
    pub(super) fn cpu_mask(&mut self, path: &str) -> Option<CpuSet> {
        let cpus = self.value(path, set::mask::<CpuId>);
        self.within_bounds(path, cpus)
    }

    /// CPUs from the first of these files that is there. A name that ends with `list` holds a list,
    /// any other a mask.
    pub(super) fn cpus(&mut self, folder: &str, names: &[&str]) -> Option<CpuSet> {
        names.iter().find_map(|name| {
            let path = format!("{folder}/{name}");
            if name.ends_with("list") { self.cpu_list(&path) } else { self.cpu_mask(&path) }
        })
    }

    /// CPUs as [`Reader::cpus`] gives them, without those outside of `known`. In a capture all of these files
    /// are read, and one that differs from the first is noted.
    pub(super) fn agreeing_cpus(
        &mut self,
        folder: &str,
        names: &[&str],
        known: Option<&CpuSet>,
    ) -> Option<CpuSet> {
        let bound = |cpus: CpuSet| match known {
            Some(known) => cpus.intersection(known),
            None => cpus,
        };
        if self.trusts_files() {
            return self.cpus(folder, names).map(bound);
        }
        let mut first: Option<(&str, CpuSet)> = None;
        for name in names {
            let Some(cpus) = self.cpus(folder, &[name]).map(bound) else { continue };
            match &first {
                None => first = Some((name, cpus)),
                Some((_, believed)) if *believed == cpus => (),
                Some((other, believed)) => {
                    let text = format!(
                        "it names {}, but {other} names {}: {other} is believed",
                        cpu_names(&cpus),
                        cpu_names(believed)
                    );
                    self.note_in(OddityKind::Disagreement, &format!("{folder}/{name}"), text);
                }
            }
        }
        first.map(|(_, cpus)| cpus)
    }

    fn within_bounds(&mut self, path: &str, cpus: Option<CpuSet>) -> Option<CpuSet> {
        let mut cpus = cpus?;
        if bound_cpus(&mut cpus) {
            let text = format!("it names CPUs beyond {}, which were left out", MOST_CPUS - 1);
            self.note_in(OddityKind::Unparseable, path, text);
        }
        Some(cpus)
    }

    /// The names in a folder; empty when it is missing.
    pub(super) fn list(&mut self, path: &str) -> Vec<String> {
        match self.tree.list(path) {
            Ok(names) => names.unwrap_or_default(),
            Err(error) => {
                self.unreadable(error);
                Vec::new()
            }
        }
    }

    /// The numbers N of the names `<prefix>N` in a folder, ascending.
    pub(super) fn numbered(&mut self, path: &str, prefix: &str) -> Vec<u32> {
        let names = self.list(path);
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| number_behind(name, prefix)).collect();
        numbers.sort_unstable();
        numbers
    }

    /// The nodes that a folder has entries `nodeN` for.
    pub(super) fn node_entries(&mut self, path: &str) -> NodeSet {
        let numbers = self.numbered(path, "node");
        numbers.into_iter().filter(|number| *number < NodeId::LIMIT).map(NodeId::new).collect()
    }

    /// The CPUs that a folder has entries `cpuN` for.
    pub(super) fn cpu_entries(&mut self, path: &str) -> CpuSet {
        let numbers = self.numbered(path, "cpu");
        numbers.into_iter().filter(|number| *number < MOST_CPUS).map(CpuId::new).collect()
    }

    /// Where a link leads; `None` when there is no such link.
    pub(super) fn target(&mut self, path: &str) -> Option<String> {
        match self.tree.target(path) {
            Ok(target) => target,
            Err(error) => {
                self.unreadable(error);
                None
            }
        }
    }

    /// Counts the files of a folder as files that are there, without reading them.
    pub(super) fn count_files(&mut self, folder: &str) {
        for name in self.list(folder) {
            self.neighbours.found(&format!("{folder}/{name}"));
        }
    }

    /// Returns the findings.
    pub(crate) fn finish(mut self) -> Vec<Oddity> {
        if !self.trusts_files() {
            self.neighbours.note(&mut self.findings);
        }
        self.findings.finish()
    }
}

/// How a text ends.
#[derive(Clone, Copy)]
enum End {
    LineFeed,
    Cut,
    Nothing,
}

impl End {
    fn from_text(text: &str) -> Self {
        match text.as_bytes().last() {
            None => Self::Nothing,
            Some(b'\n') => Self::LineFeed,
            Some(_) => Self::Cut,
        }
    }
}

/// The number behind a prefix, when nothing else follows: 12 of `cpu12`, nothing of `cpufreq`.
pub(crate) fn number_behind(name: &str, prefix: &str) -> Option<u32> {
    let digits = name.strip_prefix(prefix)?;
    let canonical =
        digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits.len() == 1 || !digits.starts_with('0'));
    if canonical { digits.parse().ok() } else { None }
}
