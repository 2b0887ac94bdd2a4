//! Facts of one process beside samples: its program and its mappings.

use std::ffi::OsString;

use nodewise_diagnose::advice::ProgramReading;
use nodewise_diagnose::knowledge::ProgramFacts;
use nodewise_source::mappings::Thoroughness;
use nodewise_source::program::{self, ProgramFiles};
use nodewise_source::sample::{Identity, Sample};
use nodewise_source::tree::Tree;

use crate::command::doctor::mappings;

/// Reads the program of a process.
pub(super) fn read(process: Identity) -> ProgramReading {
    let tree = Tree::live();
    let files = program::read(&tree, process.pid);
    // The number can be that of another process by now.
    if Identity::read(&tree, process.pid) != Some(process) {
        return ProgramReading::default();
    }
    let ProgramFiles { name, exe, words, libraries, peak, locked, real_time, limit, devices } = files;
    let facts = ProgramFacts { name, exe, words, libraries };
    let isolated = program::isolated_cpus(&tree);
    ProgramReading { facts, peak, locked, real_time, limit, devices, isolated }
}

/// Facts of a program that does not run, from its path and its command line.
pub(super) fn of_file(path: &str, command: &[OsString]) -> ProgramReading {
    let words = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    // A link such as /usr/bin/java names no program: the file behind it does.
    let real = std::fs::canonicalize(path).ok().and_then(|path| path.into_os_string().into_string().ok());
    let exe = Some(real.unwrap_or_else(|| path.to_owned()));
    ProgramReading {
        facts: ProgramFacts { exe, words: Some(words), ..ProgramFacts::default() },
        ..ProgramReading::default()
    }
}

/// Adds the mappings of the process, every page counted: it is one process, and someone asked.
pub(super) fn add_mappings(now: &mut Sample, process: Identity) {
    // Where they cannot be read, the evidence says so.
    let Ok(Some(mappings)) = mappings::sample(process, Thoroughness::Exact) else { return };
    now.mappings.retain(|known| known.identity != process);
    now.mappings.push(mappings);
}
