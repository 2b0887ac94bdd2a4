//! The tables about processes: finding them, and where their memory is.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use nodewise_machine::{Bytes, NodeId};
use nodewise_source::parse::numa_maps::sums::{OnNode, Sums, Use};
use nodewise_source::paths;
use nodewise_source::process::{self, Pid, search};

use super::options;
use super::session::Session;
use super::table::{Row, Table, mib};

/// A pattern is looked for in this much of a command line.
const MOST_COMMAND_BYTES: usize = 2048;

/// The processes that were asked for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Chosen {
    pub pids: Vec<Pid>,
    /// Whether numbers were asked for that no process can have.
    pub impossible: bool,
}

impl Chosen {
    /// Whether no process at all was asked for or found.
    pub fn is_empty(&self) -> bool {
        self.pids.is_empty() && !self.impossible
    }
}

/// A process, as far as it could be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    pub pid: Pid,
    /// Its name; `None` when it is gone.
    pub name: Option<Vec<u8>>,
    /// Where its memory is; `None` when it is gone or belongs to somebody else.
    pub sums: Option<Sums>,
}

/// Says which patterns no process contains: the originals look as soon as they read `-p`, also where the command
/// line is wrong behind it.
pub fn search_only(session: &mut Session<'_>, words: &[OsString]) {
    let strict = session.settings.strict;
    let is_pattern = |word: &&OsString| options::pid(word, strict).is_none();
    let patterns: Vec<OsString> = words.iter().filter(is_pattern).cloned().collect();
    choose(session, &patterns);
}

/// Finds the processes that words of the command line name: by number, or by a piece of their name
/// and command line.
pub fn choose(session: &mut Session<'_>, words: &[OsString]) -> Chosen {
    let mut chosen = Chosen::default();
    let mut patterns = Vec::new();
    for word in words {
        match options::pid(word, session.settings.strict) {
            Some(Some(number)) => chosen.pids.push(Pid::new(number)),
            Some(None) => {
                session.cannot_read(&paths::numa_maps(word.to_string_lossy()), None);
                chosen.impossible = true;
            }
            None => patterns.push(Pattern { bytes: word.as_bytes(), found: false }),
        }
    }
    if !patterns.is_empty() {
        chosen.pids.extend(find(session, &mut patterns));
    }
    for pattern in patterns.iter().filter(|pattern| !pattern.found) {
        let shown = session.shown(pattern.bytes);
        let _ = session.out.write_all(b"Found no processes containing pattern: \"");
        let _ = session.out.write_all(&shown);
        let _ = session.out.write_all(b"\"\n");
    }
    chosen.pids.sort_unstable();
    chosen.pids.dedup();
    chosen
}

struct Pattern<'w> {
    bytes: &'w [u8],
    found: bool,
}

/// Every process, but for this one, that one of the patterns is found in.
fn find(session: &mut Session<'_>, patterns: &mut [Pattern<'_>]) -> Vec<Pid> {
    let all = search::all(session.tree).unwrap_or_else(|error| {
        session.cannot_read(paths::PROCESSES, Some(error.cause));
        Vec::new()
    });
    let own = session.tree.is_live().then(|| Pid::new(std::process::id()));
    let mut text = Vec::new();
    let mut line = Vec::new();
    all.into_iter()
        .filter(|pid| Some(*pid) != own && fits(session, *pid, patterns, &mut text, &mut line))
        .collect()
}

/// Looks for every pattern in the name and the command line of a process, which are one text with
/// blanks between its words. A process that ends while it is looked at fits nothing.
fn fits(
    session: &Session<'_>,
    pid: Pid,
    patterns: &mut [Pattern<'_>],
    text: &mut Vec<u8>,
    line: &mut Vec<u8>,
) -> bool {
    let Ok(Some(name)) = search::name(session.tree, pid) else { return false };
    text.clear();
    text.extend_from_slice(&name);
    // A command line is dearer than a name, and mostly a name says enough.
    if !patterns.iter().all(|pattern| contains(text, pattern.bytes))
        && search::command_line(session.tree, pid, MOST_COMMAND_BYTES, line).unwrap_or(false)
    {
        text.push(b' ');
        text.extend(line.iter().map(|byte| if *byte == 0 { b' ' } else { *byte }));
    }
    let mut any = false;
    for pattern in patterns {
        let here = contains(text, pattern.bytes);
        pattern.found |= here;
        any |= here;
    }
    any
}

fn contains(text: &[u8], piece: &[u8]) -> bool {
    piece.is_empty() || text.windows(piece.len()).any(|window| window == piece)
}

/// Reads where the memory of a process is.
pub fn look(session: &mut Session<'_>, pid: Pid) -> Process {
    let name = search::name(session.tree, pid).ok().flatten();
    let path = paths::numa_maps(pid);
    let sums = match process::sums(session.tree, pid) {
        Ok(Some(sums)) => {
            session.report_problems(&path, &sums.problems);
            report_unknown_sizes(session, &path, sums.value.pages_of_unknown_size);
            Some(sums.value)
        }
        missing => {
            session.cannot_read(&path, missing.err().map(|error| error.cause));
            None
        }
    };
    Process { pid, name, sums }
}

fn report_unknown_sizes(session: &mut Session<'_>, path: &str, pages: u64) {
    if pages > 0 {
        let _ = writeln!(
            session.err,
            "numastat: {path}: {pages} pages without kernelpagesize_kB are not counted"
        );
        session.incomplete = true;
    }
}

/// A process as titles and tables name it: `180 (holder)`.
pub fn label(session: &Session<'_>, process: &Process) -> Vec<u8> {
    let mut label = process.pid.to_string().into_bytes();
    let name = process.name.as_ref().map(|name| session.shown(name));
    let unknown = || session.settings.strict.then(|| b"(null)".to_vec());
    if let Some(name) = name.or_else(unknown) {
        label.extend_from_slice(b" (");
        label.extend_from_slice(&name);
        label.push(b')');
    }
    label
}

/// The nodes of a table: the machine's, and those that came up since it was looked at.
pub fn columns(session: &Session<'_>, nodes: &[NodeId], processes: &[Process]) -> Vec<NodeId> {
    let mut columns = nodes.to_vec();
    if !session.settings.strict {
        let sums = processes.iter().filter_map(|process| process.sums.as_ref());
        columns.extend(sums.flat_map(|sums| &sums.nodes).map(|on| on.node));
        columns.sort_unstable();
        columns.dedup();
    }
    columns
}

/// The table of one process: a row for each use of memory.
pub fn table_of_one(nodes: &[NodeId], sums: &Sums) -> Table {
    let mut table = Table::with_total(nodes);
    for of in Use::ALL {
        let on = |node: &NodeId| sums.on(*node).map_or(Bytes::new(0), |on| on.memory(of));
        table.rows.push(row(name(of), nodes, on));
    }
    table.add_totals();
    table.add_sum();
    table
}

/// Names a row of the table.
pub const fn name(of: Use) -> &'static str {
    match of {
        Use::Huge => "Huge",
        Use::Heap => "Heap",
        Use::Stack => "Stack",
        Use::Private => "Private",
    }
}

/// The table of several processes, with a row for each that could be read. The originals have rows
/// of zeros for others.
pub fn table_of_all(session: &Session<'_>, nodes: &[NodeId], processes: &[Process]) -> Table {
    let mut table = Table { corner: "PID", ..Table::with_total(nodes) };
    let shown = processes.iter().filter(|process| process.sums.is_some() || session.settings.strict);
    for process in shown {
        let sums = process.sums.as_ref();
        let on = |node: &NodeId| sums.and_then(|sums| sums.on(*node)).map_or(Bytes::new(0), OnNode::total);
        table.rows.push(row(label(session, process), nodes, on));
    }
    table.add_totals();
    table.add_sum();
    table
}

fn row(name: impl Into<Vec<u8>>, nodes: &[NodeId], on: impl Fn(&NodeId) -> Bytes) -> Row {
    let mut row = Row::new(name, nodes.len() + 1);
    for (cell, node) in row.cells.iter_mut().zip(nodes) {
        *cell = Some(mib(on(node)));
    }
    row
}
