//! Which test runs a recorded command, for every record that there is.

use crate::record::Record;
use crate::words;

/// A test of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Home {
    /// The test `golden`.
    Golden,
    /// The test `numastat`, to the byte; and `friends` those of guests.
    Numastat,
    /// The test `friends`.
    Friends,
}

/// The files that the test `golden` reads: those that need no guest first.
pub const GOLDEN: [&str; 6] = [
    "host-one-node",
    "fakesys-hardware-and-numastat",
    "numactl-4n",
    "numactl-cpuset-4n",
    "numactl-mixed",
    "numactl-io-affinity-pci",
];

/// The files that the test `numastat` reads.
pub const NUMASTAT: [&str; 4] = [
    "numastat-and-friends-4n",
    "numastat-and-friends-mixed",
    "fakesys-hardware-and-numastat",
    "host-one-node",
];

/// The files that the test `friends` reads, those of each of its guests.
pub const FRIENDS: [&[&str]; 3] = [
    &["numastat-and-friends-4n", "numactl-4n"],
    &["numastat-and-friends-mixed", "numactl-mixed"],
    &["host-one-node"],
];

/// The tools of that test, numastat apart.
const TOOLS: [&str; 3] = ["migratepages", "migspeed", "memhog"];

/// The test that runs a record of a file, or why none does.
///
/// # Panics
/// When no test reads the file of a record that should be run.
pub fn responsible_test(file: &str, record: &Record) -> Result<Home, &'static str> {
    if file.starts_with("clients-original") || file.starts_with("numad-lstopo") {
        return Err("real programs on the original library: cargo xtask libnuma-clients runs such on ours");
    }
    if file == "numactl-git-head-4n" {
        return Err("a state of the original between releases, observed only");
    }
    if record.release().is_none() {
        return Err("of no release that is imitated");
    }
    let words: Vec<&str> = record.cmd.split(' ').collect();
    let (home, is_read) = if is_numactl(record) || file == "numactl-io-affinity-pci" {
        (Home::Golden, GOLDEN.contains(&file))
    } else if words.contains(&"numastat") {
        (Home::Numastat, NUMASTAT.contains(&file))
    } else if TOOLS.iter().any(|tool| words.contains(tool)) {
        (Home::Friends, FRIENDS.iter().any(|files| files.contains(&file)))
    } else {
        return Err("another program, which showed the recorder's machine");
    };
    assert!(is_read, "{file}: no test runs {}", record.cmd);
    Ok(home)
}

/// Whether the program of a command, behind those that prepare for it, is numactl.
fn is_numactl(record: &Record) -> bool {
    let words = words::command_words(&record.cmd);
    let program = match words[0].as_str() {
        "seccomp-run" => words.get(4),
        "incg" => words.get(2),
        _ => words.first(),
    };
    program.is_some_and(|program| program == "numactl")
}
