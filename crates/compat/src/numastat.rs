//! numastat: where the memory of nodes and of processes is.
//!
//! | to find | look in |
//! |---|---|
//! | the command line | [`options`] |
//! | counters and memory of nodes | [`system`], pools of huge pages in [`pools`] |
//! | finding processes, and their memory | [`process`] |
//! | how tables look | [`table`], and how wide they may be [`line`] |
//! | what rows are sorted by | [`order`] |
//! | `--json` | [`json`] |

mod decimal;
pub mod json;
pub mod line;
pub mod options;
pub mod order;
pub mod pools;
pub mod process;
pub mod session;
pub mod system;
pub mod table;

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt as _;

use nodewise_machine::NodeId;
use nodewise_source::paths::NODES;
use nodewise_source::tree::ReadCause;
use rustix::io::Errno;

use crate::{Call, Release};
use line::Line;
use options::{Options, Request};
use process::Process;
use session::{Session, Stop, words};
use table::{Style, Table};

/// Runs numastat; returns its exit status.
pub fn run(call: &Call<'_>, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let (tree, settings) = (call.tree, call.settings);
    let mut session = Session { tree, settings, out, err, incomplete: false };
    match options::read(&call.args, settings) {
        Request::Version(processes) => {
            process::search_only(&mut session, &processes);
            version(&mut session, &call.program);
            0
        }
        Request::Usage(processes, wrong) => {
            process::search_only(&mut session, &processes);
            let program = session.shown(call.program.as_bytes());
            if let Some(wrong) = wrong {
                let _ = session.err.write_all(&program);
                let _ = writeln!(session.err, ": {wrong}");
            }
            usage(&mut session, &program);
            1
        }
        Request::Show(options) => {
            let shown = show(&mut session, &options, Line::from_call(call));
            u8::from(shown.is_err() || session.incomplete && !settings.strict)
        }
    }
}

fn version(session: &mut Session<'_>, program: &OsStr) {
    let program = session.shown(program.as_bytes());
    // numastat had a number of its own until it got the package's.
    let version = match session.settings.release {
        Release::V2_0_16 => "20130723: Dec 26 2022",
        Release::V2_0_19 => "2.0.19: Apr 22 2025",
    };
    let _ = session.out.write_all(&program);
    let _ = writeln!(session.out, " version: {version}");
}

fn usage(session: &mut Session<'_>, program: &[u8]) {
    let _ = session.err.write_all(b"Usage: ");
    let _ = session.err.write_all(program);
    let _ = writeln!(session.err, " {SYNOPSIS}\n{OPTIONS}");
}

const SYNOPSIS: &str =
    "[-c] [-m] [-n] [-p <PID>|<pattern>] [-s[<node>]] [-v] [-V] [-z] [--json] [ <PID>|<pattern>... ]";

const OPTIONS: &str = "\
-c             columns no wider than needed, whole numbers
-m             memory of each node, field by field
-n             allocation counters of each node
-p PID|TEXT    memory of a process, or of all whose name or command line holds the text
-s[NODE]       largest rows first, by the total or by one node
-v             a table for each process
-V             version
-z             without rows and columns of zeros
--json         all of it as JSON";

/// Reads and writes what was asked for.
fn show(session: &mut Session<'_>, options: &Options, line: Line) -> Result<(), Stop> {
    let nodes = nodes(session, options, line)?;
    if options.json {
        return json::write(session, options, &nodes);
    }
    if options.plain {
        let counters = system::counters(session, &nodes)?;
        let table = system::plain_table(session, &nodes, &counters);
        let style = style(session, options);
        table.write(Style { decimals: 0, dashes: false, ..style }, line.width, session.out);
        return Ok(());
    }
    let chosen = process::choose(session, &options.processes);
    let processes = chosen.pids.len();
    if processes == 1 || options.verbose {
        for pid in &chosen.pids {
            let process = process::look(session, *pid);
            one_process(session, options, &nodes, &process, line);
        }
    } else if processes > 1 {
        let processes: Vec<Process> = chosen.pids.iter().map(|pid| process::look(session, *pid)).collect();
        all_processes(session, options, &nodes, &processes, line);
    }
    if options.meminfo {
        title(session, "system memory usage (in MBs):");
        let meminfo = system::meminfo(session, &nodes)?;
        let table = system::meminfo_table(session, &nodes, &meminfo);
        finish(session, options, table, line);
    }
    if options.counters || chosen.is_empty() && !options.meminfo {
        title(session, "numastat info (in MBs):");
        let counters = system::counters(session, &nodes)?;
        let table = system::counter_table(session, &nodes, &counters);
        finish(session, options, table, line);
    }
    Ok(())
}

/// The machine's nodes.
fn nodes(session: &mut Session<'_>, options: &Options, line: Line) -> Result<Vec<NodeId>, Stop> {
    let cause = match session.tree.list(NODES) {
        Ok(Some(names)) => {
            let nodes = system::node_ids(&names);
            if !nodes.is_empty() {
                return Ok(nodes);
            }
            // The originals report the last error, whatever its cause: asking whether standard
            // output is a terminal leaves one where it is none.
            ReadCause::System(if line.no_terminal { Errno::NOTTY.raw_os_error() } else { 0 })
        }
        Ok(None) => Errno::NOENT.into(),
        Err(error) => error.cause,
    };
    let what = if options.plain {
        "sysfs not mounted or system not NUMA aware".to_owned()
    } else {
        format!("Couldn't open {NODES}")
    };
    let _ = writeln!(session.err, "{what}: {}", words(Some(cause)));
    Err(Stop)
}

fn title(session: &mut Session<'_>, what: &str) {
    let _ = writeln!(session.out, "\nPer-node {what}");
}

fn one_process(
    session: &mut Session<'_>,
    options: &Options,
    nodes: &[NodeId],
    process: &Process,
    line: Line,
) {
    let label = process::label(session, process);
    let _ = session.out.write_all(b"\nPer-node process memory usage (in MBs) for PID ");
    let _ = session.out.write_all(&label);
    let _ = session.out.write_all(b"\n");
    if let Some(sums) = &process.sums {
        let nodes = process::columns(session, nodes, std::slice::from_ref(process));
        finish(session, options, process::table_of_one(&nodes, sums), line);
    }
}

fn all_processes(
    session: &mut Session<'_>,
    options: &Options,
    nodes: &[NodeId],
    processes: &[Process],
    line: Line,
) {
    title(session, "process memory usage (in MBs)");
    // The originals give up when the last process that they read cannot be read.
    let last = processes.last().is_some_and(|process| process.sums.is_some());
    let any = processes.iter().any(|process| process.sums.is_some());
    if if session.settings.strict { last } else { any } {
        let nodes = process::columns(session, nodes, processes);
        let table = process::table_of_all(session, &nodes, processes);
        finish(session, options, table, line);
    }
}

/// Sorts and writes a table.
fn finish(session: &mut Session<'_>, options: &Options, mut table: Table, line: Line) {
    if let Some(by) = options.sort {
        table.sort_by_keys(order::keys(&table, by, session.settings.strict));
    }
    table.write(style(session, options), line.width, session.out);
}

fn style(session: &Session<'_>, options: &Options) -> Style {
    Style {
        decimals: if options.compact { 0 } else { 2 },
        compact: options.compact,
        dashes: true,
        hide_zeros: options.hide_zeros,
        cut: session.settings.strict,
    }
}

#[cfg(test)]
mod tests;
