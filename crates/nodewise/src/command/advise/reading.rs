//! Facts of one process beside samples: its program and its mappings.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use nodewise_diagnose::Pid;
use nodewise_diagnose::advice::ProgramReading;
use nodewise_diagnose::knowledge::ProgramFacts;
use nodewise_machine::mapping::FileId;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_source::mappings::Thoroughness;
use nodewise_source::mappings::sharers::sharers;
use nodewise_source::parse::elf;
use nodewise_source::program::{self, ProgramFiles};
use nodewise_source::sample::{Identity, MappingsSample, Sample};
use nodewise_source::tree::Tree;

use crate::command::doctor::mappings;

/// Processes with the same segments whose mappings are read: of a server with more, the segment is not judged.
const MOST_SHARERS: usize = 64;

/// Reads the program of a process.
pub(super) fn read(process: Identity) -> ProgramReading {
    let tree = Tree::live();
    let files = program::read(&tree, process.pid);
    // The number can be that of another process by now.
    if Identity::read(&tree, process.pid) != Some(process) {
        return ProgramReading::default();
    }
    let ProgramFiles { name, exe, words, libraries, peak, locked, real_time, limit, devices } = files;
    let facts = ProgramFacts { name, exe, words, libraries, named_libraries: Vec::new() };
    let isolated = program::isolated_cpus(&tree);
    ProgramReading { facts, peak, locked, real_time, limit, devices, isolated }
}

/// Facts of a program that does not run, from its path and its command line.
pub(super) fn of_file(path: &str, command: &[OsString]) -> ProgramReading {
    let words = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    // A link such as /usr/bin/java names no program: the file behind it does.
    let real = std::fs::canonicalize(path).ok().and_then(|path| path.into_os_string().into_string().ok());
    let named_libraries = named_libraries(path).unwrap_or_default();
    let exe = Some(real.unwrap_or_else(|| path.to_owned()));
    ProgramReading {
        facts: ProgramFacts { exe, words: Some(words), named_libraries, ..ProgramFacts::default() },
        ..ProgramReading::default()
    }
}

/// The libraries that a program's file names; `None` of a script.
fn named_libraries(path: &str) -> Option<Vec<String>> {
    let file = File::open(path).ok()?;
    let mut read = |at: u64, length: usize| {
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    };
    elf::needed(&mut read)
}

/// Adds the mappings of the process, every page counted: it is one process, and someone asked. Also those of processes
/// that map the same segments, as far as they may be read: it is their memory, too.
pub(super) fn add_mappings(now: &mut Sample, process: Identity) {
    // Where they cannot be read, the evidence says so.
    let Ok(Some(mappings)) = mappings::sample(process, Thoroughness::Exact) else { return };
    let all = mappings.mappings.mappings.iter();
    let common = all.filter(|mapping| mapping.kind.follows_policy() && mapping.is_in_several_processes());
    let files: BTreeSet<FileId> = common.filter_map(|mapping| mapping.file).collect_set();
    add(now, mappings);
    if files.is_empty() {
        return;
    }
    let Ok(sharers) = sharers(&Tree::live(), &files, process.pid) else { return };
    let pids: BTreeSet<Pid> = sharers.by_file.into_values().flatten().collect_set();
    let known = now.processes.iter().map(|process| process.identity);
    let others: Vec<Identity> =
        known.filter(|identity| pids.contains(&identity.pid)).take(MOST_SHARERS).collect();
    for other in others {
        if let Ok(Some(mappings)) = mappings::sample(other, Thoroughness::Exact) {
            add(now, mappings);
        }
    }
}

fn add(now: &mut Sample, mappings: MappingsSample) {
    now.mappings.retain(|known| known.identity != mappings.identity);
    now.mappings.push(mappings);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_its_libraries_and_a_script_none() {
        let own = std::env::current_exe().unwrap().to_string_lossy().into_owned();
        let of_own = of_file(&own, &[]).facts;
        assert!(of_own.named_libraries.iter().any(|name| name.starts_with("libc.so")), "{of_own:?}");
        assert_eq!(of_own.libraries, None, "it has loaded none yet");
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        assert_eq!(of_file(script.to_str().unwrap(), &[]).facts.named_libraries, [""; 0]);
    }
}
