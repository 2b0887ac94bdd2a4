//! numactl, numastat, migratepages, migspeed and memhog, as scripts know them.
//!
//! Each tool is a function from a [`Call`] to an exit status. Everything it prints goes to the two
//! writers of the caller, everything it reads comes from the call's [`Tree`]: so a tool runs in a
//! test from a capture as it runs on the machine itself. Texts, options and exit statuses are those
//! of the originals, to the byte; where the originals are plainly wrong `docs/compat.md` says what
//! holds instead, and [`Settings::strict`] brings their answer back.
//!
//! # Modules
//!
//! - `numactl.rs` numactl, option by option; in `numactl/` its options, `--hardware`, `--show`, policies, and
//!   shared memory with its dumps (`numactl/shared.rs`, `numactl/shared/dump.rs`)
//! - `getopt.rs` command lines as the GNU C library reads them
//! - `nodestring.rs` strings of nodes and CPUs; `members.rs` what they can name here; `device.rs` nodes by a
//!   device
//! - `kernel.rs` what the tools ask of the kernel about their own process, also for tests and captures
//! - `numastat.rs` numastat; in `numastat/` its command line (`numastat/options.rs`), the tables of nodes
//!   (`numastat/system.rs`, `numastat/pools.rs`) and of processes (`numastat/process.rs`), how tables look,
//!   are sorted and folded (`numastat/table.rs`, `numastat/order.rs`, `numastat/line.rs`), how numbers are
//!   rounded (`numastat/decimal.rs`), `numastat/json.rs`, and where it reads and writes
//!   (`numastat/session.rs`)
//! - `migratepages.rs`, `migspeed.rs`, `memhog.rs` the small tools; `node_argument.rs` the nodes on their
//!   command lines; `strerror.rs` errors in the C library's words
//! - `warning.rs` warnings in libnuma's words; `explain.rs` why a call is refused, in ours
//! - `release.rs` which release of the originals is imitated, and how faithfully
//! - `report.rs` what migratepages, migspeed and memhog did, as JSON
#![forbid(unsafe_code)]

pub mod device;
pub mod explain;
pub mod getopt;
pub mod kernel;
pub mod members;
pub mod memhog;
pub mod migratepages;
pub mod migspeed;
pub mod node_argument;
pub mod nodestring;
pub mod numactl;
pub mod numastat;
pub mod release;
mod report;
pub mod strerror;
pub mod warning;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt as _;

use nodewise_source::tree::Tree;

pub use release::{Release, Settings};

/// The tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tool {
    /// Shows the machine, or runs a program under a policy.
    Numactl,
    Numastat,
    /// Moves the pages of a process.
    Migratepages,
    /// Measures how fast pages move.
    Migspeed,
    /// Fills memory under a policy.
    Memhog,
}

impl Tool {
    /// Every tool, in the order in which people meet them.
    pub const ALL: [Self; 5] =
        [Self::Numactl, Self::Numastat, Self::Migratepages, Self::Migspeed, Self::Memhog];

    /// The name that it is called by.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Numactl => "numactl",
            Self::Numastat => "numastat",
            Self::Migratepages => "migratepages",
            Self::Migspeed => "migspeed",
            Self::Memhog => "memhog",
        }
    }

    /// The tool that a program's name stands for, with or without folders before it.
    pub fn named(program: &OsStr) -> Option<Self> {
        let name = program.as_bytes().rsplit(|byte| *byte == b'/').next()?;
        Self::ALL.into_iter().find(|tool| tool.name().as_bytes() == name)
    }
}

/// A tool with all that decides what it does.
#[derive(Debug)]
pub struct Call<'t> {
    pub tool: Tool,
    /// The name it was called by (`argv[0]`), which precedes some messages.
    pub program: OsString,
    pub args: Vec<OsString>,
    /// The environment's settings for the imitation.
    pub settings: Settings,
    /// The machine's files. Only with the running system's may a tool do more than show.
    pub tree: &'t Tree,
    /// Asks how many columns the terminal has that standard output is; `None` where it is none.
    pub terminal: fn() -> Option<u16>,
    /// Asks whether a person reads standard error, so that a refused call may be explained there.
    pub explains: fn() -> bool,
}

impl<'t> Call<'t> {
    /// A call of a tool by its plain name, with the settings of the environment.
    pub fn new(tool: Tool, args: Vec<OsString>, tree: &'t Tree) -> Self {
        let settings = Settings::from_variables(|name| std::env::var_os(name));
        Self {
            tool,
            program: tool.name().into(),
            args,
            settings,
            tree,
            terminal: numastat::line::of_terminal,
            explains: explain::on_terminal,
        }
    }

    /// The running system's call of the name and words that a process was started with; `None` when
    /// the name is none of the tools'.
    pub fn from_words(mut words: impl Iterator<Item = OsString>, tree: &'t Tree) -> Option<Self> {
        let program = words.next()?;
        let tool = Tool::named(&program)?;
        let settings = Settings::from_variables(|name| std::env::var_os(name));
        Some(Self {
            tool,
            program,
            args: words.collect(),
            settings,
            tree,
            terminal: numastat::line::of_terminal,
            explains: explain::on_terminal,
        })
    }
}

/// Runs a tool; returns its exit status. numactl with a command ends in that command and returns
/// only when it cannot be started.
///
/// What cannot be written is lost without a word, as the originals lose it: a pipe that has no reader
/// is not an error of the tool.
pub fn run(call: &Call<'_>, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let status = match call.tool {
        Tool::Numactl if call.tree.is_live() => numactl::run(call, &kernel::Running, out, err),
        Tool::Numactl => numactl::run(call, &kernel::Captured(call.tree), out, err),
        Tool::Numastat => numastat::run(call, out, err),
        Tool::Migratepages => migratepages::run(call, &kernel::Running, out, err),
        Tool::Migspeed => migspeed::run(call, &kernel::Running, out, err),
        Tool::Memhog => memhog::run(call, &kernel::Running, out, err),
    };
    let _ = out.flush();
    let _ = err.flush();
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_known_by_the_last_part_of_its_name() {
        assert_eq!(Tool::named(OsStr::new("numactl")), Some(Tool::Numactl));
        assert_eq!(Tool::named(OsStr::new("/usr/bin/numastat")), Some(Tool::Numastat));
        assert_eq!(Tool::named(OsStr::new("nodewise")), None);
        assert_eq!(Tool::named(OsStr::new("numactl/")), None);
        assert_eq!(
            Tool::named(OsStr::new("numactl.nodewise")),
            None,
            "alternatives call it by the link's name"
        );
        assert_eq!(Tool::named(OsStr::new("")), None);
    }
}
