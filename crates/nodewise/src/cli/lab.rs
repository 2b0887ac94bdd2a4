//! `nodewise lab`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use nodewise_conformance::ScriptKind;
use nodewise_lab::{EngineChoice, KernelChoice};
use nodewise_machine::{Bytes, KernelRelease, duration};
use nodewise_view::digest::line_counts::LocalDemand;

use crate::output::Destination;

/// Boots a machine as a real kernel in QEMU and runs a command there
///
/// The guest has the nodes, CPUs, distances, memory-only nodes and firmware attributes of the
/// machine, scaled to fit; changes are listed on standard error. The host's files are visible, read-only.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "\
Examples:
  nodewise lab --machine \"2x(2x(1c 512M)); dist=11,20\" -- numactl --hardware
  nodewise lab --machine capture.tar.gz -- nodewise show
  nodewise lab --disk 1G -- lsblk
  nodewise lab --machine \"(4c 4G)\" --append numa=fake=4 -- nodewise show
  nodewise lab --machine \"2x(2c 1G); dist=21\" --count --assert-local 95 -- ./solver input.dat
  nodewise lab --machine M --count --assert-local heap=95 --assert-local anonymous=80 -- ./solver
  nodewise lab --machine M --count --svg lines.svg -- ./solver
  nodewise lab --machine M --count --by line -- ./solver
  nodewise lab --machine M --count --with-kernel -- ./solver
  nodewise lab --check --kernel arch/x86/boot/bzImage --scripts 100 --output found

Exit codes: the command's own; 125 when the guest could not be started or did not end well.
With --phase: 125 when the command marked no phase of that name.
With --assert-local: 1 when the command ends with 0 and fewer lines are local, 125 when a mapping was not counted.
With --check: 0 when kernel and model agree, 1 when a script differs or was not played.",
    override_usage = "nodewise lab [OPTIONS] [--] COMMAND [ARGUMENT]...\n       nodewise lab --check [OPTIONS]",
    group = clap::ArgGroup::new("result").args(["check", "count"])
)]
pub struct Lab {
    /// Most CPUs of the guest; every node that has CPUs keeps at least one
    #[arg(long = "max-cpus", alias = "cpus", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub cpus: Option<u32>,
    /// Memory of the guest, shared among its nodes
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub memory: Option<Bytes>,
    /// Words to add to the kernel's command line; may be repeated
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    pub append: Vec<String>,
    /// Kernel image, or the release of one that cargo xtask lab-setup fetched, such as 6.12
    #[arg(long, value_name = "FILE|VERSION")]
    pub kernel: Option<KernelChoice>,
    /// Engine that executes the guest's instructions: kvm (the host's CPUs), tcg (emulation), or auto (kvm where it works, else tcg);
    /// counting takes tcg
    #[arg(long, value_name = "ENGINE", default_value = "auto", hide_possible_values = true)]
    pub engine: LabEngine,
    /// Directory that the guest may write to [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,
    /// Size of an empty disk for the guest, /dev/vda; nothing of it stays
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub disk: Option<Bytes>,
    /// Time limit, such as 90s, 10m or 2h; a bare number is seconds [default: 5m]
    #[arg(long, value_name = "TIME", default_value = "5m", hide_default_value = true, value_parser = duration::parse)]
    pub timeout: Duration,
    /// Count the cache lines that the command moves, by node, thread and mapping; its output goes to standard error
    #[arg(long, conflicts_with = "dry_run")]
    pub count: bool,
    /// Fail unless at least this percentage of the cache lines comes from, or goes to, memory of the CPU's own node: of all
    /// lines, or of those read from a mapping (heap, stack, anonymous, or the name of a file); may be repeated
    #[arg(long, value_name = "[MAPPING=]PERCENT", requires = "count", value_parser = local_demand)]
    pub assert_local: Vec<LocalDemand>,
    /// Count only the cache lines of this phase, which the command marks (docs/counting.md)
    #[arg(long, value_name = "NAME", requires = "count")]
    pub phase: Option<String>,
    // `--kernel` is the kernel that is booted, in all verbs.
    /// Count also the cache lines that the kernel moves for the command, in system calls and page faults, and show them apart
    #[arg(long, requires = "count")]
    pub with_kernel: bool,
    /// Rows of the table: lines read by source line, as far as the files of the programs say (compile with -g)
    #[arg(long, value_name = "GROUP", requires = "count")]
    pub by: Option<CountBy>,
    /// Print JSON (schema nodewise.lines/1; with --check nodewise.kernel-check/1)
    #[arg(long, requires = "result")]
    pub json: bool,
    /// Draw an SVG picture into FILE: the cache lines by node of the CPUs and node of the memory
    #[arg(long, value_name = "FILE", requires = "count")]
    pub svg: Option<Destination>,
    /// Draw a PNG picture into FILE: the cache lines by node of the CPUs and node of the memory
    #[arg(long, value_name = "FILE", requires = "count")]
    pub png: Option<Destination>,
    /// Show what would be done, without doing it: how the guest would be started
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub supplied: super::Supplied,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required_unless_present_any = ["dry_run", "check", "play", "pages"], value_name = "COMMAND")]
    pub command: Vec<OsString>,
    #[command(flatten)]
    pub check: Check,
}

/// Rows of lines, besides nodes, threads and mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CountBy {
    /// Source lines and functions of programs
    Line,
}

/// Engines of guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LabEngine {
    Auto,
    Kvm,
    Tcg,
}

impl From<LabEngine> for EngineChoice {
    fn from(engine: LabEngine) -> Self {
        match engine {
            LabEngine::Auto => Self::Auto,
            LabEngine::Kvm => Self::Kvm,
            LabEngine::Tcg => Self::Tcg,
        }
    }
}

/// A check of a kernel.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Kernel check")]
pub struct Check {
    /// Check and set the exit code: play drawn scripts of memory policy calls in the kernel and in a model of it, on drawn
    /// machines or on the one that --machine names, and report in TAP what differs
    #[arg(long, conflicts_with_all = ["command", "dry_run", "scratch", "disk", "append"])]
    pub check: bool,
    /// Scripts for each machine, 1 to 1000
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u64).range(1..=1000), requires = "check")]
    pub scripts: u64,
    /// Kinds of scripts, N of each: calls (memory policy calls of one thread), thp (huge pages of memory without advice),
    /// threads (policies of several), pools (resized pools of huge pages), groups (programs in a control group with limits), swap
    /// (the same with swap on zram)
    #[arg(long, value_name = "KIND,...", default_value = "calls", value_delimiter = ',', value_parser = kind)]
    pub kind: Vec<ScriptKind>,
    /// Machines to draw
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u64).range(1..=10_000), requires = "check")]
    pub machines: u64,
    /// Random seed: the number of the first machine; the next ones follow it
    #[arg(long, value_name = "N", default_value = "0", value_parser = clap::value_parser!(u64).range(..1 << 32), requires = "check")]
    pub seed: u64,
    /// Release whose rules the model follows [default: that of the kernel]
    #[arg(long, value_name = "R", value_parser = super::explain::release)]
    pub model: Option<KernelRelease>,
    /// Directory for the result as JSON and a C program for each script that differs; it is made where it is missing
    #[arg(long, value_name = "DIR", requires = "check")]
    pub output: Option<PathBuf>,
    /// In a guest: the scripts to play, FIRST-LAST
    #[arg(long, value_name = "FIRST-LAST", hide = true)]
    pub play: Option<String>,
    /// In a guest: the pages that the program of a script takes
    #[arg(long, value_name = "N", hide = true)]
    pub pages: Option<u64>,
}

/// Reads a kind of scripts.
fn kind(text: &str) -> Result<ScriptKind, String> {
    let words: Vec<&str> = ScriptKind::ALL.iter().map(|kind| kind.word()).collect();
    ScriptKind::from_word(text).ok_or_else(|| format!("expected one of {}", words.join(", ")))
}

/// Reads a percentage, or the name of a mapping and a percentage. Names may have an equals sign.
fn local_demand(text: &str) -> Result<LocalDemand, String> {
    match text.rsplit_once('=') {
        None => Ok(LocalDemand { mapping: None, percent: percentage(text)? }),
        Some(("", _)) => Err("expected the name of a mapping before \"=\"".to_owned()),
        Some((name, percent)) => {
            Ok(LocalDemand { mapping: Some(name.to_owned()), percent: percentage(percent)? })
        }
    }
}

/// Reads a percentage from 0 to 100.
fn percentage(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end().parse::<f64>().ok();
    number
        .filter(|number| (0.0..=100.0).contains(number))
        .ok_or_else(|| "expected a number from 0 to 100".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demand_is_for_all_lines_or_for_a_mapping() {
        let read = |text: &str| local_demand(text).map(|demand| (demand.mapping, demand.percent));
        assert_eq!(read("95"), Ok((None, 95.0)));
        assert_eq!(read("heap=99.5 %"), Ok((Some("heap".to_owned()), 99.5)));
        assert_eq!(read("a=b=0"), Ok((Some("a=b".to_owned()), 0.0)));
        for wrong in ["", "=95", "heap=", "heap", "heap=101", "-1", "NaN", "heap=inf"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
