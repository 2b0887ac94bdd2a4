//! numactl: shows the nodes of the machine and the policy of a process, and runs programs under a
//! policy.
//!
//! Every option acts when it is read, on numactl itself; at the end the process becomes the command,
//! which inherits what was set. That is why the order of options matters, and why this module reads
//! as a sequence and not as a plan.

mod hardware;
mod options;
mod policy;
mod shared;
mod show;

use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::io::Write;

use nodewise_machine::printable::printable;
use nodewise_machine::{CpuSet, NodeSet};
use nodewise_notation::warning::CPU_MASK;
use nodewise_syscall::{Call as SystemCall, CallError, Errno};

use crate::Call;
use crate::explain;
use crate::getopt::{Found, Getopt};
use crate::kernel::{self, Kernel};
use crate::members::{NodeCpus, Scope};
use crate::release::Release;
use crate::warning::Warnings;

use hardware::{CpuStyle, Hardware};
pub use options::USAGE;

/// The end of numactl with this exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stop(u8);

type Step = Result<(), Stop>;

/// numactl while it reads its options.
struct Session<'c> {
    call: &'c Call<'c>,
    kernel: &'c dyn Kernel,
    out: &'c mut dyn Write,
    warnings: Warnings<'c>,
    /// The members that node and CPU strings may name: `--all`.
    scope: Scope,
    /// The nodes that were named last, for `same`.
    nodes: Option<NodeSet>,
    /// Whether a node or CPU string was read.
    named: bool,
    /// Whether a memory policy was set.
    policy_is_set: bool,
    /// Whether `-N` or `-C` chose CPUs.
    cpus_are_set: bool,
    /// `--balancing`.
    balancing: bool,
    /// `--strict`.
    strict: bool,
    /// `--json`.
    json: bool,
    /// `--hardware` of 2.0.19, which waits for the other options.
    hardware: bool,
    style: CpuStyle,
    shared: shared::Request,
    /// The CPUs that the process was started with: later strings are about these.
    cpus_at_start: OnceCell<CpuSet>,
    node_cpus: NodeCpus<'c>,
}

/// Runs numactl; returns its exit status. Comes back from a command only when it cannot be started.
pub fn run(call: &Call<'_>, kernel: &dyn Kernel, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let mut session = Session {
        call,
        kernel,
        out,
        warnings: Warnings::new(err),
        scope: Scope::Allowed,
        nodes: None,
        named: false,
        policy_is_set: false,
        cpus_are_set: false,
        balancing: false,
        strict: false,
        json: false,
        hardware: false,
        style: CpuStyle::Numbers,
        shared: shared::Request::new(),
        cpus_at_start: OnceCell::new(),
        node_cpus: NodeCpus::new(call.tree),
    };
    let Err(Stop(status)) = session.everything();
    status
}

impl Session<'_> {
    fn everything(&mut self) -> Result<std::convert::Infallible, Stop> {
        let call = self.call;
        let longs = options::longs(call.settings);
        let mut line = Getopt::new(&call.args, options::spec(call.settings.release, &longs));
        for found in line.by_ref() {
            match found {
                Ok(found) => self.option(found)?,
                Err(wrong) => {
                    let program = printable(&call.program.to_string_lossy()).into_owned();
                    let _ = writeln!(self.warnings.err(), "{program}: {wrong}");
                    return Err(self.usage());
                }
            }
        }
        Err(self.end(&line.operands()))
    }

    fn option(&mut self, Found { value, argument }: Found) -> Step {
        let argument = argument.unwrap_or_default();
        match value {
            'a' => self.everything_may_be_named(),
            's' => Err(Stop(show::run(self))),
            'H' => self.hardware(),
            options::CPU_COMPRESS => {
                self.style = CpuStyle::Ranges;
                Ok(())
            }
            options::JSON => {
                self.json = true;
                Ok(())
            }
            options::VERSION => self.version(),
            't' => {
                self.strict = true;
                Ok(())
            }
            'b' => {
                self.no_policy_yet()?;
                self.balancing = true;
                Ok(())
            }
            'N' | 'c' => self.run_on_nodes(&argument),
            'C' => self.run_on_cpus(&argument),
            'S' => self.segment(&argument),
            'f' => self.file(&argument),
            'L' | 'o' | 'M' | 'I' | 'u' => self.shape(value, &argument),
            'T' | 'd' | 'D' | 'V' => self.use_region(value),
            _ => self.memory(value, &argument),
        }
    }

    fn everything_may_be_named(&mut self) -> Step {
        if self.named {
            return Err(self.mistake("--all/-a option must be before all cpu/node specifications"));
        }
        self.scope = Scope::Everything;
        Ok(())
    }

    /// Until 2.0.16 this is the end; later `--cpu-compress` may follow.
    fn hardware(&mut self) -> Step {
        self.no_policy_yet()?;
        match self.call.settings.release {
            Release::V2_0_16 => Err(self.show_hardware()),
            Release::V2_0_19 => {
                self.hardware = true;
                Ok(())
            }
        }
    }

    fn show_hardware(&mut self) -> Stop {
        // Everything shown comes from files; the originals refuse where the calls are blocked.
        if self.call.settings.strict && !self.numa_is_available() {
            let _ = writeln!(self.out, "No NUMA available on this system");
            return Stop(1);
        }
        let hardware = Hardware::read(self.call.tree, self.call.settings);
        if self.json {
            hardware.write_json(self.out);
        } else {
            hardware.write(self.call.settings.release, self.style, self.out);
        }
        if hardware.is_too_wide {
            self.warnings.warn(CPU_MASK, &[]);
        }
        for problem in &hardware.problems {
            let _ = writeln!(self.warnings.err(), "numactl: {problem}");
        }
        Stop(0)
    }

    fn version(&mut self) -> Step {
        self.no_policy_yet()?;
        let _ = writeln!(self.out, "{}", self.call.settings.release.number());
        Err(Stop(0))
    }

    /// The effect when all options are read.
    fn end(&mut self, operands: &[OsString]) -> Stop {
        if self.hardware {
            return self.show_hardware();
        }
        if let Some(status) = self.shared.status() {
            return if operands.is_empty() { Stop(status) } else { self.usage() };
        }
        if self.strict {
            let _ = writeln!(self.warnings.err(), "numactl: warning. Strict flag for process ignored.");
        }
        if let Some(option) = self.shared.named() {
            return self.mistake(&format!("shm related option {option} for process"));
        }
        let Some((program, args)) = operands.split_first() else { return self.usage() };
        self.execute(program, args)
    }

    fn execute(&mut self, program: &OsStr, args: &[OsString]) -> Stop {
        let _ = self.out.flush();
        let _ = self.warnings.err().flush();
        let error = self.kernel.execute(program, args);
        let name = printable(&program.to_string_lossy()).into_owned();
        let error = error.raw_os_error().map_or_else(|| error.to_string(), |n| strerror(Errno::new(n)));
        self.refuse(&format!("execution of `{name}': {error}\n"))
    }

    fn no_policy_yet(&mut self) -> Step {
        if self.policy_is_set {
            return Err(self.mistake("specify policy after --shm/--file"));
        }
        Ok(())
    }

    /// Whether the policy calls work, as the release understands it.
    fn numa_is_available(&self) -> bool {
        kernel::numa_is_available(self.kernel, self.call.settings.release)
    }

    /// A wrong command line: the message, and the usage text right behind it.
    fn mistake(&mut self, message: &str) -> Stop {
        let _ = write!(self.warnings.err(), "numactl: {message}");
        self.line_feed_on_stdout();
        self.usage()
    }

    fn usage(&mut self) -> Stop {
        let _ = self.warnings.err().write_all(USAGE.as_bytes());
        Stop(1)
    }

    /// Something that cannot be done. 2.0.16 writes the line feed to stdout.
    fn refuse(&mut self, message: &str) -> Stop {
        let _ = write!(self.warnings.err(), "numactl: {message}");
        match self.call.settings.release {
            Release::V2_0_16 => self.line_feed_on_stdout(),
            Release::V2_0_19 => {
                let _ = writeln!(self.warnings.err());
            }
        }
        Stop(1)
    }

    /// Says to a person why the kernel refuses a call.
    fn explain(&mut self, call: SystemCall, errno: Errno) {
        if self.explains() {
            let line = explain::line(&CallError::new(call, errno), self.call.tree);
            let _ = writeln!(self.warnings.err(), "numactl: {line}");
        }
    }

    /// Whether a line of our own may follow the original's.
    fn explains(&self) -> bool {
        !self.call.settings.strict && self.call.tree.is_live() && (self.call.explains)()
    }

    /// Ends a line that is on stderr: on a terminal the two streams meet.
    fn line_feed_on_stdout(&mut self) {
        let _ = self.warnings.err().flush();
        let _ = writeln!(self.out);
        let _ = self.out.flush();
    }
}

/// An error in the C library's words: `Invalid argument`.
fn strerror(errno: Errno) -> String {
    crate::strerror::words(errno.number())
}

#[cfg(test)]
mod tests;
