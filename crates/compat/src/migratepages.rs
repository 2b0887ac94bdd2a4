//! migratepages: moves the pages of a process from some nodes to others.

use std::ffi::OsStr;
use std::io::Write;

use nodewise_machine::NodeSet;
use nodewise_notation::number::{self, Base};
use nodewise_syscall::{Errno, Task, pages};
use serde_json::json;

use crate::getopt::{Argument, Getopt, Long, Operands, Short, Spec};
use crate::kernel::{self, Kernel};
use crate::warning::Warnings;
use crate::{Call, node_argument, report, strerror};

const SPEC: Spec<'static> = Spec {
    shorts: &[Short { letter: 'h', argument: Argument::None }],
    longs: &[
        Long { name: "help", argument: Argument::None, value: 'h' },
        Long { name: "json", argument: Argument::None, value: 'j' },
    ],
    operands: Operands::AnyPlace,
};

/// The original's options alone.
const STRICT: Spec<'static> = Spec { longs: SPEC.longs.split_at(1).0, ..SPEC };

const USAGE: &str = "\
usage: migratepages pid from-nodes to-nodes

nodes is a comma delimited list of node numbers or A-B ranges or all.";

/// The name and version of what `--json` writes.
const SCHEMA: &str = "nodewise.migratepages/1";

/// Runs migratepages; returns its exit status. How many pages stayed where they were is reported with
/// `--json` only, as the original does not.
pub fn run(call: &Call<'_>, kernel: &dyn Kernel, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let spec = if call.settings.strict { STRICT } else { SPEC };
    let mut words = Getopt::new(&call.args, spec.permuting(call.settings));
    let mut as_json = false;
    for word in words.by_ref() {
        match word {
            Ok(found) if found.value == 'j' => as_json = true,
            Ok(_) => return usage(err),
            Err(wrong) => {
                let _ = writeln!(err, "migratepages: {wrong}");
                return usage(err);
            }
        }
    }
    let operands = words.operands();
    let [pid, from, to] = &operands[..] else { return usage(err) };
    if call.settings.strict && !kernel::numa_is_available(kernel, call.settings.release) {
        let _ = writeln!(err, "numactl: This system does not support NUMA functionality");
        return 1;
    }
    let Some(pid) = process(pid, call.settings.release.base()) else { return usage(err) };
    let mut warnings = Warnings::new(err);
    let mut nodes = |argument: &OsStr| node_argument::read(call, kernel, argument, out, &mut warnings);
    let Ok(from) = nodes(from) else { return 1 };
    let Ok(to) = nodes(to) else { return 1 };
    match migrate(call, pid, &from, &to) {
        Ok(left) => {
            if as_json {
                let (from, to) = (report::numbers(&from), report::numbers(&to));
                let document = json!({
                    "schema": SCHEMA, "pid": pid, "from": from, "to": to, "pages_not_moved": left,
                });
                report::write(out, &document);
            }
            0
        }
        Err(errno) => {
            let _ = writeln!(err, "migrate_pages: {}", strerror::words(errno.number()));
            1
        }
    }
}

fn usage(err: &mut dyn Write) -> u8 {
    let _ = writeln!(err, "{USAGE}");
    1
}

/// The number of a process as C reads it; `None` when the word is not a number.
fn process(word: &OsStr, base: Base) -> Option<u64> {
    number::leading_str(word.to_str()?, base).filter(|(_, rest)| rest.is_empty()).map(|(number, _)| number)
}

/// Moves pages of the running system. Process 0 is this one.
fn migrate(call: &Call<'_>, pid: u64, from: &NodeSet, to: &NodeSet) -> Result<u64, Errno> {
    if !call.tree.is_live() {
        return Err(Errno::EOPNOTSUPP);
    }
    // Strictly it is an `int`, and other numbers stand for processes with smaller ones.
    let pid = if call.settings.strict { u64::from(pid as u32) } else { pid };
    let task = match u32::try_from(pid) {
        Ok(0) => Some(Task::CURRENT),
        Ok(number) => Task::new(number),
        Err(_) => None,
    };
    let task = task.ok_or(Errno::ESRCH)?;
    pages::migrate(task, from, to).map_err(|error| error.errno)
}
