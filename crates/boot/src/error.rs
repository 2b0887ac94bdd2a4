//! Why a boot file is not changed.

use nodewise_machine::printable::{errno_words, printable, quote};
use rustix::io::Errno;

use crate::subject::Subject;

/// The contents of a file that is not understood, or would not do what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is not UTF-8 text, or holds a zero byte.
    #[error("it is not text")]
    NotText,
    #[error("it is empty: a command line names at least the root file system")]
    Empty,
    /// A command line in several lines.
    #[error("it has text on line {line}, but only its first line is read at boot")]
    ManyLines {
        /// The first line that is not read.
        line: usize,
    },
    /// The note that is where the file used to be.
    #[error("it says that the file has moved, to /boot/firmware/cmdline.txt, which does not exist")]
    Moved,
    /// A word has an opening quote only.
    #[error("the quote in column {column} of its command line is not closed")]
    Quote {
        /// Column of the quote, from 1.
        column: usize,
    },
    /// NUMA as a whole is switched off there.
    #[error("its command line has numa=off, with which no nodes are emulated")]
    NumaOff,
    /// The line would not fit.
    #[error("its command line would have {bytes} bytes, and a kernel reads {most}")]
    TooLong {
        /// How long it would be.
        bytes: usize,
        /// How long it may be.
        most: usize,
    },
    /// Something else than a plain assignment.
    #[error("its line {line} is not a plain assignment NAME=value or NAME=\"value\"")]
    Shell {
        /// The line, from 1.
        line: usize,
    },
    /// An assignment whose value is worked out by the shell.
    #[error("its line {line} gives {name} a value that the shell works out or joins")]
    Expansion {
        /// The line, from 1.
        line: usize,
        name: &'static str,
    },
    /// An assignment that is made twice.
    #[error("{name} is assigned twice, on lines {first} and {second}")]
    Twice {
        name: &'static str,
        /// The line of the first.
        first: usize,
        /// The line of the second.
        second: usize,
    },
    /// A program writes the file again.
    #[error("{by} generates it, from {from}: change that and run {by}")]
    Generated { by: &'static str, from: &'static str },
    #[error("its line {line} includes another file")]
    Includes {
        /// The line, from 1.
        line: usize,
    },
    /// An entry has no command line.
    #[error("the entry on its line {line} has no append line")]
    NoAppend {
        /// The line, from 1.
        line: usize,
    },
    /// A number of pages that belongs to the kernel's default size.
    #[error(
        "its command line has hugepages= without a size: put hugepagesz= with the kernel's default size before it"
    )]
    NoPageSize,
    /// The change would give a number of pages another size.
    #[error(
        "a size of huge pages and their number are in different parts of its command line: put hugepagesz= directly before hugepages="
    )]
    SizeInAnotherPart,
    /// There is no folder for such a file.
    #[error("its directory does not exist: this system does not use systemd")]
    NoSystemd,
    /// Another variable holds such words.
    #[error("its line {line} also sets {name}, and may take precedence")]
    Elsewhere {
        /// The line, from 1.
        line: usize,
        name: &'static str,
    },
    #[error("{} also sets {name}, and takes precedence", quote(path))]
    Overridden { path: String, name: &'static str },
}

/// Why nothing was changed, or not everything.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The folder that is to stand for `/` cannot be opened.
    #[error("cannot open {}: {}", quote(path), words(*errno))]
    Root { path: String, errno: Errno },
    /// A file could not be read.
    #[error("cannot read {}: {}", printable(path), words(*errno))]
    Read { path: String, errno: Errno },
    /// Something else in the place of a file, or a file that is far too large.
    #[error("{} is not a regular file of at most 1 MiB", printable(path))]
    NotAFile { path: String },
    /// There is nothing that could be changed.
    #[error(
        "no boot loader is known here: there is none of {looked}; {}by hand: {by_hand}",
        hint.map(|hint| format!("{hint}; ")).unwrap_or_default()
    )]
    NoLoader {
        /// The files that were looked for.
        looked: String,
        hint: Option<&'static str>,
        by_hand: String,
    },
    /// There is a boot loader whose file is not changed here.
    #[error("{path} is there, but nodewise does not change it; by hand: {by_hand}: {place}")]
    ByHand {
        path: &'static str,
        /// Where the words belong in it, and what to run then.
        place: &'static str,
        by_hand: String,
    },
    /// A name that no service of systemd has.
    #[error("{name} is not the name of a service: expected one such as mysqld.service")]
    NoUnit { name: String },
    /// A file is not understood.
    #[error("{} is left alone: {refusal}; by hand: {by_hand}", printable(path))]
    Refused { path: String, refusal: Refusal, by_hand: String },
    /// The newest backup is of another change than the one to be undone.
    #[error("the last change of {} was of {}: {} takes it back first", printable(path), of.words(), of.undo())]
    OtherChange { path: String, of: Subject },
    /// A file changed between reading and writing.
    #[error("{} was changed in the meantime: try again", printable(path))]
    Changed { path: String },
    /// Another process is at it.
    #[error("another nodewise is changing files in {}: try again when it is done", printable(folder))]
    Busy { folder: String },
    /// A file could not be written.
    #[error("cannot write {}: {}", printable(path), words(*errno))]
    Write { path: String, errno: Errno },
    /// A file could not be written, and nothing has changed.
    #[error("{source}; all files are as they were")]
    Unchanged { source: Box<Self> },
    /// A change came to its end half way, and not every file before that could be restored.
    #[error("{source}; {}", still_new(left))]
    HalfDone {
        source: Box<Self>,
        /// The files that stay changed, and why each could not be restored.
        left: Vec<(String, Errno)>,
    },
    /// Taking back came to its end half way.
    #[error("{source}; taken back before that: {}", listed(done))]
    HalfTakenBack {
        source: Box<Self>,
        /// The files that are as they were before their last change.
        done: Vec<String>,
    },
    /// A file is not what was written, so taking back would lose what somebody else did.
    #[error("{} was changed since: to restore it nevertheless, {}", printable(path), by_hand(backup.as_deref()))]
    Undone {
        path: String,
        /// `None`: the file did not exist.
        backup: Option<String>,
    },
}

fn words(errno: Errno) -> String {
    errno_words(errno.raw_os_error())
}

/// The step that restores a file.
fn by_hand(backup: Option<&str>) -> String {
    backup.map_or_else(|| "remove it".to_owned(), |backup| format!("copy {} over it", printable(backup)))
}

/// Files that could not be restored.
fn still_new(left: &[(String, Errno)]) -> String {
    let sentence = |(path, errno): &(String, Errno)| {
        let why = match *errno {
            Errno::WOULDBLOCK => "another nodewise is changing files beside it".to_owned(),
            errno => words(errno),
        };
        format!("{} could not be restored ({why}) and is the new one", printable(path))
    };
    left.iter().map(sentence).collect::<Vec<_>>().join("; ")
}

fn listed(paths: &[String]) -> String {
    paths.iter().map(|path| printable(path)).collect::<Vec<_>>().join(", ")
}
