//! The program in a guest that is counted: `nodewise __count N PROGRAM [ARGUMENT]...`, which `lab --count` starts there.
//!
//! It makes the marks that the plugin needs, which only the guest's kernel and firmware can supply, then becomes the program.
//! Counting begins when that has called `execve` for the N-th time.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use nodewise_lab::mark::{Field, Hook, MarkKind};
use nodewise_machine::firmware::Tables;
use nodewise_machine::firmware::srat::{self, SratEntry};
use nodewise_machine::printable::{io_words, quote};
use nodewise_source::acpi::files;
use nodewise_source::kernel;
use nodewise_source::tree::Tree;
use nodewise_syscall::mark::mark;

use crate::failure::{NOT_EXECUTABLE, NOT_STARTED};
use crate::output;

/// The word that asks for it. It is outside of the table of verbs: it is not for users.
pub const WORD: &str = "__count";
/// How often the mark is made that counting begins. The plugin takes the first that it understands, for which this program must
/// have been off its CPU once; more than one only matter where a signal ended a pause.
const STARTS: usize = 3;
/// Long enough that the kernel runs something else meanwhile.
const PAUSE: Duration = Duration::from_millis(5);

/// Does it if it is asked for.
pub fn by_word() -> Option<u8> {
    let mut words = std::env::args_os().skip(1);
    (words.next()? == WORD).then(|| become_counted(words.collect()))
}

fn become_counted(words: Vec<OsString>) -> u8 {
    let fail = |code: u8, message: &str| {
        output::say(&format!("cannot count cache lines: {message}"));
        code
    };
    let execs = words.first().and_then(|word| word.to_str()?.parse::<u64>().ok());
    let (Some(execs), [_, program, arguments @ ..]) = (execs, &words[..]) else {
        return fail(NOT_STARTED, "expected a number and a program");
    };
    if let Err(message) = describe(&Tree::live()) {
        return fail(NOT_STARTED, &message);
    }
    mark(MarkKind::Ready.word(), [0; 3]);
    for _ in 0..STARTS {
        std::thread::sleep(PAUSE);
        mark(MarkKind::Start.word(), [execs, 0, 0]);
    }
    let error = Command::new(program).args(arguments).exec();
    fail(NOT_EXECUTABLE, &format!("{}: {}", quote(&program.to_string_lossy()), io_words(&error)))
}

/// Makes the marks that describe this system.
///
/// # Errors
/// What the system lacks or hides.
fn describe(tree: &Tree) -> Result<(), String> {
    let functions =
        kernel::functions(tree, Hook::ALL.map(|(_, name)| name)).map_err(|error| error.to_string())?;
    for ((hook, name), address) in Hook::ALL.into_iter().zip(functions) {
        let address = address.ok_or_else(|| format!("{} gives no address for {name}", kernel::SYMBOLS))?;
        mark(MarkKind::Hook.word(), [hook as u64, address, 0]);
    }
    // Without them, threads have no names, and mappings are unknown.
    let offsets = kernel::offsets(tree, Field::ALL.map(|(_, member)| member));
    let offsets = offsets.unwrap_or([None; Field::ALL.len()]);
    for ((field, _), offset) in Field::ALL.into_iter().zip(offsets) {
        offset.into_iter().for_each(|offset| mark(MarkKind::Field.word(), [field as u64, offset, 0]));
    }
    let tables = files::from_tree(tree).map_err(|error| error.to_string())?;
    let memory = memory(&tables);
    if memory.is_empty() {
        return Err("the firmware's SRAT names no memory".to_owned());
    }
    memory.into_iter().for_each(|range| mark(MarkKind::Memory.word(), range));
    Ok(())
}

/// Memory by the firmware: start, end, node. The lab numbers nodes as the firmware does.
fn memory(tables: &Tables) -> Vec<[u64; 3]> {
    let range = |entry: &SratEntry| match entry {
        // Memory that can be plugged in later is missing now.
        SratEntry::Memory(memory)
            if memory.flags & (srat::ENABLED | srat::HOT_PLUGGABLE) == srat::ENABLED =>
        {
            let end = memory.base_address.checked_add(memory.length)?;
            Some([memory.base_address, end, u64::from(memory.proximity_domain)])
        }
        _ => None,
    };
    tables.srat().into_iter().flat_map(|srat| srat.bodies()).filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::firmware::srat::{Memory, Srat, SratFixed};
    use nodewise_machine::firmware::{Table, TableHeader};

    #[test]
    fn memory_is_what_the_firmware_has_switched_on() {
        let entry = |base_address, length, proximity_domain, flags| {
            SratEntry::Memory(Memory {
                proximity_domain,
                reserved1: 0,
                base_address,
                length,
                reserved2: 0,
                flags,
                reserved3: 0,
            })
        };
        let entries = [
            entry(0, 0xa_0000, 0, srat::ENABLED),
            entry(0, 0, 9, 0),
            entry(1 << 32, 1 << 30, 1, srat::ENABLED),
            entry(2 << 32, 1 << 30, 1, srat::ENABLED | srat::HOT_PLUGGABLE),
            entry(u64::MAX, 2, 1, srat::ENABLED),
        ];
        let fixed = SratFixed { table_revision: 1, reserved: 0 };
        let table = Srat::new(TableHeader::new(srat::SIGNATURE, 3), fixed, entries);
        let tables = Tables { tables: vec![Table::Srat(table)], findings: Vec::new() };
        assert_eq!(memory(&tables), [[0, 0xa_0000, 0], [1 << 32, (1 << 32) + (1 << 30), 1]]);
        assert!(memory(&Tables::default()).is_empty());
    }
}
