//! Which processes there are, and what they are called.
//!
//! A machine has thousands of processes, and a search looks at each: each question about one costs one short
//! read.

use super::{Pid, numbers};
use crate::tree::{ReadError, Tree};

/// Most bytes of a name: a program's own has 15, a worker of the kernel is described in up to 64.
const MOST_NAME_BYTES: usize = 256;
/// Bytes that the kernel keeps of a name that a program chooses.
const KEPT_NAME_BYTES: usize = 15;

/// Whether a name that the kernel may have cut is the wanted one.
pub fn is_called(name: &[u8], wanted: &str) -> bool {
    let wanted = wanted.as_bytes();
    name == wanted || wanted.len() > KEPT_NAME_BYTES && name == &wanted[..KEPT_NAME_BYTES]
}

/// Every process, by number.
///
/// # Source
/// The names in `/proc` that are numbers.
///
/// # Errors
/// A directory that cannot be read. Without one there are no processes.
pub fn all(tree: &Tree) -> Result<Vec<Pid>, ReadError> {
    let names = tree.list("/proc")?.unwrap_or_default();
    let mut pids: Vec<Pid> = numbers(names).collect();
    pids.sort_unstable();
    Ok(pids)
}

/// The name of a process, in the bytes that it chose itself; `None` when there is no such process.
///
/// # Source
/// `/proc/PID/comm`, Linux 2.6.33.
///
/// # Errors
/// A file that cannot be read.
pub fn name(tree: &Tree, pid: Pid) -> Result<Option<Vec<u8>>, ReadError> {
    let mut name = Vec::new();
    let there = tree.read_start(&format!("/proc/{pid}/comm"), MOST_NAME_BYTES, &mut name)?;
    if name.last() == Some(&b'\n') {
        name.pop();
    }
    Ok(there.then_some(name))
}

/// The processes of a name: that which they chose themselves (the kernel keeps 15 bytes of it), or the last part
/// of the path in their command line. What ends meanwhile is left out.
///
/// # Source
/// `/proc/PID/comm`, `/proc/PID/cmdline`.
///
/// # Errors
/// A list of processes that cannot be read.
pub fn named(tree: &Tree, wanted: &str) -> Result<Vec<Pid>, ReadError> {
    let mut line = Vec::new();
    let mut found = Vec::new();
    for pid in all(tree)? {
        let is_called = name(tree, pid).ok().flatten().is_some_and(|name| is_called(&name, wanted));
        let mut is_run_as = || {
            let there = command_line(tree, pid, MOST_NAME_BYTES * 16, &mut line).unwrap_or(false);
            let program = line.split(|byte| *byte == 0).next().unwrap_or_default();
            let last = program.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            there && !last.is_empty() && last == wanted.as_bytes()
        };
        // A name that was cut says less than the command line.
        if (is_called && wanted.len() <= KEPT_NAME_BYTES) || is_run_as() {
            found.push(pid);
        }
    }
    Ok(found)
}

/// Reads the beginning of a process's command line into a buffer, words ended by NUL bytes; says
/// whether there is such a process. Threads of the kernel have none.
///
/// # Source
/// `/proc/PID/cmdline`. A process can write anything there.
///
/// # Errors
/// A file that cannot be read.
pub fn command_line(tree: &Tree, pid: Pid, most: usize, line: &mut Vec<u8>) -> Result<bool, ReadError> {
    tree.read_start(&format!("/proc/{pid}/cmdline"), most, line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Memory, ReadCause};

    #[test]
    fn processes_come_by_number_with_the_names_they_chose() {
        let tree = Tree::memory(
            Memory::new()
                .file("/proc/10/comm", b"a\x1b\xff\n\n")
                .file("/proc/9/comm", "sleep\n")
                .file("/proc/9/cmdline", b"sleep\x00100\x00")
                .file("/proc/meminfo", "")
                .unreadable("/proc/9/numa_maps", ReadCause::System(13)),
        );
        assert_eq!(all(&tree).unwrap(), [Pid::new(9), Pid::new(10)]);
        assert_eq!(name(&tree, Pid::new(10)).unwrap().unwrap(), b"a\x1b\xff\n");
        assert_eq!(name(&tree, Pid::new(11)).unwrap(), None);
        let mut line = Vec::new();
        assert!(command_line(&tree, Pid::new(9), 7, &mut line).unwrap());
        assert_eq!(line, b"sleep\x001");
        assert!(!command_line(&tree, Pid::new(11), 7, &mut line).unwrap());
        assert_eq!(all(&Tree::memory(Memory::new())).unwrap(), []);
    }

    #[test]
    fn processes_are_found_by_either_name() {
        let tree = Tree::memory(
            Memory::new()
                .file("/proc/5/comm", "postgres\n")
                .file("/proc/5/cmdline", b"postgres: writer\0")
                .file("/proc/6/comm", "worker\n")
                .file("/proc/6/cmdline", b"/usr/lib/postgres\0-D\0")
                .file("/proc/7/comm", "a-very-long-nam\n")
                .file("/proc/7/cmdline", b"./a-very-long-name-of-one\0")
                .file("/proc/8/comm", "a-very-long-nam\n")
                .file("/proc/8/cmdline", b"./a-very-long-name-of-two\0"),
        );
        let found = |wanted: &str| -> Vec<u32> {
            named(&tree, wanted).unwrap().iter().map(|pid| pid.number()).collect()
        };
        assert_eq!(found("postgres"), [5, 6]);
        assert_eq!(found("a-very-long-name-of-one"), [7]);
        assert_eq!(found("post"), [0; 0]);
        assert_eq!(found(""), [0; 0]);
    }

    #[test]
    fn a_name_that_was_cut_is_the_beginning_of_a_longer_one() {
        let check = |name: &str, wanted: &str, expected| {
            assert_eq!(is_called(name.as_bytes(), wanted), expected, "{name} {wanted}");
        };
        check("postgres", "postgres", true);
        check("postgres", "post", false);
        check("post", "postgres", false);
        check("a-very-long-nam", "a-very-long-name", true);
        check("a-very-long-nam", "a-very-long-nam", true);
        check("a-very-long", "a-very-long-name", false);
        check("", "", true);
    }

    #[test]
    fn this_process_is_one_of_all() {
        let tree = Tree::live();
        let me = Pid::new(std::process::id());
        assert!(all(&tree).unwrap().contains(&me));
        assert!(name(&tree, me).unwrap().is_some_and(|name| !name.is_empty()));
    }
}
