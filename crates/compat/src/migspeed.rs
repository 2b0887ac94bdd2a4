//! migspeed: how fast pages move from some nodes to others.

use std::ffi::OsString;
use std::io::Write;
use std::time::Instant;

use nodewise_machine::printable::printable;
use nodewise_machine::{Bytes, MemPolicy, NodeSet, PolicyMode};
use nodewise_notation::number::{self, Base};
use nodewise_source::{facts, paths};
use nodewise_syscall::arguments::BindOptions;
use nodewise_syscall::arguments::PageKind;
use nodewise_syscall::arguments::PageScope;
use nodewise_syscall::buffer::NodeBuffer;
use nodewise_syscall::call::Call as SystemCall;
use nodewise_syscall::mempolicy::bind_range;
use nodewise_syscall::pages::page_size;
use nodewise_syscall::{CallError, Errno};
use rustix::io::Errno as RawErrno;
use serde_json::json;

use crate::getopt::{Argument, Found, Getopt, Long, Operands, Short, Spec, Wrong};
use crate::kernel::Kernel;
use crate::warning::Warnings;
use crate::{Call, node_argument, report, strerror};

const SPEC: Spec<'static> = Spec {
    shorts: &[
        Short { letter: 'p', argument: Argument::Required },
        Short { letter: 'h', argument: Argument::None },
        Short { letter: 'v', argument: Argument::None },
    ],
    longs: &[Long { name: "json", argument: Argument::None, value: 'j' }],
    operands: Operands::AnyPlace,
};

/// The original's options alone.
const STRICT: Spec<'static> = Spec { longs: &[], ..SPEC };

/// Pages that are moved when nothing else is said.
const USUAL_PAGES: u64 = 1000;

/// The request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Options {
    pages: u64,
    /// Whether the number of pages is none of 64 bits.
    overflows: bool,
    /// How often `-v` was given.
    verbose: u32,
    /// `--json`: nothing else is written to standard output.
    json: bool,
}

/// Why a run ends early. The reason has been written.
struct Stop;

/// The name and version of what `--json` writes.
const SCHEMA: &str = "nodewise.migspeed/1";

/// The status when there is not enough memory.
const OUT_OF_MEMORY: u8 = 2;

/// Runs migspeed; returns its exit status.
pub fn run(call: &Call<'_>, kernel: &dyn Kernel, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let mut options = Options { pages: USUAL_PAGES, overflows: false, verbose: 0, json: false };
    let spec = if call.settings.strict { STRICT } else { SPEC };
    let mut words = Getopt::new(&call.args, spec.permuting(call.settings));
    for word in words.by_ref() {
        let taken = match word {
            Ok(found) => options.take(&found),
            Err(wrong) => {
                let _ = writeln!(err, "migspeed: {}", by_letters(wrong));
                Err(Stop)
            }
        };
        if taken.is_err() {
            return usage(call, options.pages, out);
        }
    }
    let operands = words.operands();
    if operands.is_empty() {
        return usage(call, options.pages, out);
    }
    measure(call, kernel, options, &operands, out, err)
}

/// The original reads letters only: a second hyphen is a letter that it does not know.
fn by_letters(wrong: Wrong) -> Wrong {
    if matches!(wrong, Wrong::Unrecognized(_) | Wrong::LongHasNone(_)) { Wrong::Invalid(b'-') } else { wrong }
}

impl Options {
    /// Takes an option; `Stop` is for the usage text.
    fn take(&mut self, found: &Found) -> Result<(), Stop> {
        match (found.value, &found.argument) {
            ('p', Some(argument)) => {
                let text = argument.to_string_lossy();
                let (pages, rest) = number::leading_str(&text, Base::Prefixed).unwrap_or((0, &text));
                self.pages = pages;
                self.overflows = number::overflows(text.as_bytes(), Base::Prefixed);
                if rest.is_empty() && !text.is_empty() { Ok(()) } else { Err(Stop) }
            }
            ('v', _) => {
                self.verbose += 1;
                Ok(())
            }
            ('j', _) => {
                self.json = true;
                Ok(())
            }
            _ => Err(Stop),
        }
    }
}

/// The default in the text is the value that `-p` has set, as in the original.
fn usage(call: &Call<'_>, pages: u64, out: &mut dyn Write) -> u8 {
    let _ = writeln!(
        out,
        "usage {} [-p pages] [-h] [-v] from-nodes to-nodes
      from and to nodes may specified in form N or N-N
      -p pages  number of pages to try (defaults to {})
      -v        verbose
      -h        usage",
        printable(&call.program.to_string_lossy()),
        pages as i64,
    );
    1
}

fn measure(
    call: &Call<'_>,
    kernel: &dyn Kernel,
    options: Options,
    nodes: &[OsString],
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let options = Options { verbose: if options.json { 0 } else { options.verbose }, ..options };
    if options.verbose > 1 {
        let last = facts::nodes(call.tree).ok().and_then(|nodes| nodes.last());
        let _ = writeln!(out, "numa_max_node = {}", last.map_or(0, |node| node.number()));
    }
    let mut sets = [NodeSet::new(), NodeSet::new()];
    let mut warnings = Warnings::new(err);
    for ((at, set), name) in sets.iter_mut().enumerate().zip(["From", "To"]) {
        let Some(argument) = nodes.get(at) else { return usage(call, options.pages, out) };
        let Ok(nodes) = node_argument::read(call, kernel, argument, out, &mut warnings) else { return 1 };
        // The original looks at what the last failure left, which is that of the number of pages.
        if options.overflows {
            let _ =
                writeln!(warnings.err(), "from mask: {}", strerror::words(RawErrno::RANGE.raw_os_error()));
            return 1;
        }
        if options.verbose > 0 {
            let numbers: String = nodes.iter().map(|node| format!("{node} ")).collect();
            let _ = writeln!(out, "{name}: {numbers}");
        }
        *set = nodes;
    }
    let [from, to] = sets;
    let (what, errno) = match move_pages(call, options, &from, &to, out) {
        Ok(()) => return 0,
        Err(Failure::Memory) => {
            let _ = writeln!(out, "Out of Memory");
            return OUT_OF_MEMORY;
        }
        Err(Failure::Bind(errno)) => ("mbind", errno),
        Err(Failure::Move(errno)) => ("memory move", errno),
    };
    let _ = writeln!(err, "{what}: {}", strerror::words(errno.number()));
    1
}

/// A step that failed.
enum Failure {
    Memory,
    Bind(Errno),
    Move(Errno),
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error.call {
            SystemCall::Mbind { .. } => Self::Bind(error.errno),
            _ => Self::Memory,
        }
    }
}

fn move_pages(
    call: &Call<'_>,
    options: Options,
    from: &NodeSet,
    to: &NodeSet,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if !call.tree.is_live() {
        return Err(Failure::Bind(Errno::EOPNOTSUPP));
    }
    let tell = |out: &mut dyn Write, text: &str| {
        if options.verbose > 0 {
            let _ = writeln!(out, "{text}");
        }
    };
    tell(out, &format!("Allocating {} pages of {} bytes of memory", options.pages, page_size()));
    let bytes = options.pages.checked_mul(page_size() as u64).ok_or(Failure::Memory)?;
    let bind = |nodes: &NodeSet| MemPolicy::new(PolicyMode::Bind, nodes.clone());
    let mut buffer = match bytes {
        0 => None,
        bytes => Some(NodeBuffer::reserve(Bytes::new(bytes), PageKind::Small, Some(&bind(from)))?),
    };
    tell(out, "Dirtying memory....");
    buffer.as_mut().map_or(Ok(()), NodeBuffer::prefault)?;
    tell(out, "Starting test");
    if !options.json {
        show_bound(call, out);
    }
    let start = Instant::now();
    if let Some(buffer) = &buffer {
        let moving = BindOptions { moving: Some(PageScope::Own), strict: false };
        bind_range(buffer.address(), bytes as usize, &bind(to), moving)
            .map_err(|error| Failure::Move(error.errno))?;
    }
    let seconds = start.elapsed().as_secs_f64();
    if options.json {
        let placed = buffer.as_ref().map(|buffer| report::places(buffer.locations()));
        report::write(
            out,
            &json!({
                "schema": SCHEMA, "from": report::numbers(from), "to": report::numbers(to), "bytes": bytes,
                "seconds": seconds, "bytes_per_second": bytes as f64 / seconds, "pages_by_node": placed,
            }),
        );
        return Ok(());
    }
    show_bound(call, out);
    let mib = bytes as f64 / f64::from(1 << 20);
    let _ = writeln!(out, "{mib:.1} Mbyte migrated in {seconds:.2} secs. {:.1} Mbytes/second", mib / seconds);
    Ok(())
}

/// Writes the lines of this process's maps that are about bound memory.
fn show_bound(call: &Call<'_>, out: &mut dyn Write) {
    let _ = call.tree.read_lines(paths::OWN_NUMA_MAPS, &mut |line| {
        if line.contains("bind") {
            let _ = writeln!(out, "{}", printable(line));
        }
    });
}
