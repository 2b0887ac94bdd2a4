//! The command line, as clap types: one file per verb, no logic.
//!
//! The doc comments here are the help texts. Options that place a program are shared by `run` and
//! by `tune --placement`; they are in [`place`].

pub mod acpi;
pub mod advise;
pub mod balance;
pub mod bandwidth;
pub mod c2c;
pub mod capture;
pub mod compare;
pub mod diff;
pub mod doctor;
pub mod emulation;
pub mod explain;
pub mod export;
pub mod fleet;
pub mod help;
pub mod hugepages;
pub mod io;
pub mod lab;
pub mod latency;
#[cfg(test)]
mod manual;
pub mod maps;
pub mod measure_options;
pub mod migrate;
#[cfg(test)]
mod options;
pub mod personality;
pub mod place;
pub mod pretend;
pub mod record;
pub mod recording;
pub mod report;
pub mod run;
pub mod shm;
pub mod show;
pub mod simulate;
pub mod stat;
pub mod survey;
pub mod top;
pub mod topics;
pub mod tune;
mod verbs;
pub mod workload;

use clap::{Parser, ValueEnum};
use nodewise_machine::Bytes;
use nodewise_machine::printable::quote;
use nodewise_machine::units::SizeError;

use verbs::verbs;

/// Gives the table of verbs to the macro with this name. A row is `"name" Variant(Options) => function, "about"`.
///
/// The options are a type of the command line, the function is one of `command`; each reader uses what it needs. A
/// verb that can only work on the running system has `here` before its line, with a hint for whoever names another
/// machine.
macro_rules! table {
    ($reader:ident) => {
        $reader! {
            "show" Show(show::Show) => show::run,
                "Shows where memory is: nodes, CPUs, memory slots, distances, caches, devices, settings";
            "stat" Stat(stat::Stat) => stat::run,
                "Shows the running system by node: memory, allocations, CPU load, and the processes that matter";
            "top" Top(top::Top) => top::run, here "--from=FILE replays a recording",
                "Shows the running system by node, live: nodes, processes, threads, mappings, devices";
            "doctor" Doctor(doctor::Doctor) => doctor::run,
                "Finds what is wrong with the memory placement of the running system, and shows proof, cause and remedy";
            "advise" Advise(advise::Advise) => advise::run, here "",
                "Names the placement that a program should have, from evidence: the reason, the commands, and what would change it";
            "acpi" Acpi(acpi::Acpi) => acpi::run,
                "Shows the firmware's tables of nodes (SRAT, SLIT, HMAT, CEDT, MSCT) and how Linux reads them";
            "maps" Maps(maps::Maps) => maps::run,
                "Shows which nodes the memory of a process is on: by kind, policy and mapping";
            "capture" Capture(capture::Capture) => capture::run,
                "Saves this machine's description for inspection elsewhere";
            "export" Export(export::Export) => export::run,
                "Writes a machine in the formats that other programs read";
            "diff" Diff(diff::Diff) => diff::run,
                "Compares two machines, or two moments of one, fact by fact";
            "record" Record(record::Record) => record::run, here "",
                "Records the running system to a file";
            "report" Report(report::ReportOptions) => report::run,
                "Writes one HTML file about this machine: findings first, then pictures, measurements, and all figures";
            "survey" Survey(survey::Survey) => survey::run,
                "Surveys this machine for a fleet: topology, findings, quick latencies and bandwidths, in one file";
            "fleet" Fleet(fleet::Fleet) => fleet::run,
                "Surveys many machines on the site's own scheduler, and compares those that are identical";
            "run" Run(run::Run) => run::run, "Starts a program under a placement";
            "tune" Tune(tune::Tune) => tune::run,
                "Runs a program under many placements and names the best";
            "compare" Compare(compare::Compare) => compare::run, here "",
                "Runs a suite of benchmarks before and after a change and compares the results";
            "latency" Latency(latency::Latency) => latency::run, here "--from=FILE shows a result from elsewhere",
                "Measures memory latency from the CPUs of each node to the memory of each node";
            "bandwidth" Bandwidth(bandwidth::Bandwidth) => bandwidth::run, here "--from=FILE shows a result from elsewhere",
                "Measures memory bandwidth from the CPUs of each node to the memory of each node";
            "c2c" C2c(c2c::C2c) => c2c::run, here "--from=FILE shows a result from elsewhere",
                "Measures the time to transfer a cache line between two CPUs";
            "io" Io(io::Io) => io::run,
                "Shows the node of each device, and measures reads from disks into the memory of each node";
            "workload" Workload(workload::Workload) => workload::run, here "",
                "Runs a built-in program whose speed depends on memory";
            "explain" Explain(explain::Explain) => explain::run,
                "Predicts from which nodes the kernel takes memory under a policy, and when it falls back";
            "zonelist" Zonelist(explain::Zonelist) => zones::zonelist,
                "Shows the fallback order of each node: nodes and zones";
            "zones" Zones(explain::Zones) => zones::zones,
                "Shows the zones of every node: sizes, free pages, watermarks and reserves";
            "migrate" Migrate(migrate::Migrate) => migrate::run, here "",
                "Moves pages of a running process to other nodes, in chunks, and says why some stayed";
            "balance" Balance(balance::Balance) => balance::run, here "",
                "Keeps processes and their memory on the same nodes, within limits, and shows what it would do unless --apply is given";
            "shm" Shm(shm::Shm) => shm::run, here "",
                "Shows shared memory and its policies: System V segments, files and mounts of tmpfs; sets and verifies policies";
            "hugepages" HugePages(hugepages::HugePages) => hugepages::run,
                "Shows huge page pools per node; sets them and reports what the kernel allocated";
            "emulation" Emulation(emulation::Emulation) => emulation::run,
                "Emulates NUMA nodes: status, plan, enable, disable, undo, verify";
            "simulate" Simulate(simulate::Simulate) => simulate::run,
                "Simulates programs that allocate memory over time, and shows the node of each allocation";
            "lab" Lab(lab::Lab) => lab::run,
                "Boots a machine as a real kernel in QEMU and runs a command there";
            "pretend" Pretend(pretend::Pretend) => pretend::run,
                "Runs a program that sees the CPUs and nodes of another machine, without root and at native speed";
            "numactl" Numactl(personality::Words) => tools::numactl,
                "Behaves exactly like numactl";
            "numastat" Numastat(personality::Words) => tools::numastat,
                "Behaves exactly like numastat";
            "migratepages" Migratepages(personality::Words) => tools::migratepages,
                "Behaves exactly like migratepages";
            "migspeed" Migspeed(personality::Words) => tools::migspeed,
                "Behaves exactly like migspeed";
            "memhog" Memhog(personality::Words) => tools::memhog,
                "Behaves exactly like memhog";
            "links" Links(personality::Links) => links::run, here "",
                "Creates links named numactl, numastat, migratepages, migspeed and memhog in a directory";
            "help" Help(help::Help) => help::run, here "", "Explains a verb or a topic";
            "version" Version(help::Version) => help::version, here "", "Prints release, target, and what is built in";
        }
    };
}
pub(crate) use table;

table!(verbs);

/// nodewise shows where the memory of a Linux machine is, measures the cost of each path to it, and finds
/// the best placement of a program.
///
/// Without a verb it prints a short overview of this machine.
#[derive(Debug, Parser)]
#[command(
    name = "nodewise",
    version,
    disable_help_subcommand = true,
    max_term_width = 100,
    subcommand_value_name = "VERB",
    subcommand_help_heading = "Verbs",
    after_help = "\
Examples:
  nodewise show                            where this machine's memory is
  nodewise tune -- ./solver input.dat      which placement makes it fastest
  nodewise run --near gpu:0 -- ./train     a program beside a device
  nodewise show --machine \"2x(8c 64G)\"     a hypothetical machine

nodewise help VERB and nodewise help TOPIC explain more: machines, policies, nodes, units, exit-codes, \
environment, formats.

Exit codes: 0 done, 1 findings, 2 wrong usage, 3 this machine cannot do it, 4 internal error; run \
and lab end with the code of their program."
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub verb: Option<Verb>,
}

impl Cli {
    /// The command line with a single verb.
    pub fn with_verb(verb: clap::Command) -> clap::Command {
        let root = clap::Command::new(env!("CARGO_PKG_NAME")).disable_help_subcommand(true);
        <Global as clap::Args>::augment_args(root).subcommand(verb)
    }
}

/// Global options.
#[derive(Debug, clap::Args)]
pub struct Global {
    /// Machine to inspect: live (the default), a machine file (.json), a capture (directory or archive), ACPI
    /// tables (acpi:DIR), a device tree (dtb:FILE), an output of dmidecode, numactl -H or another tool (nodewise help machines), or a spec such as "4x(12c2t 128G)"
    #[arg(
        long,
        global = true,
        value_name = "M",
        default_value = "live",
        hide_default_value = true,
        help_heading = "Global options"
    )]
    pub machine: String,
    /// When to use colour: auto (on a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE
    /// is), always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true,
        help_heading = "Global options"
    )]
    pub color: ColorWhen,
}

/// Facts that a machine may not give, for the verbs that need them.
#[derive(Debug, Default, clap::Args)]
pub struct Supplied {
    /// Memory of nodes whose size the machine does not give: 64G for each of them, or 0-1=64G for some (may be
    /// repeated)
    #[arg(long, value_name = "SIZE", help_heading = "Where the machine does not say")]
    pub node_memory: Vec<String>,
    /// Architecture, in the words of uname -m: x86_64 (assumed), aarch64, ppc64le, s390x, riscv64
    #[arg(long, value_name = "ARCH", help_heading = "Where the machine does not say")]
    pub architecture: Option<String>,
    /// Page size, such as 64K [default: that of distributions' kernels]
    #[arg(long, value_name = "SIZE", help_heading = "Where the machine does not say", value_parser = size)]
    pub page_size: Option<Bytes>,
    /// Size of a huge page, such as 2M [default: that of the architecture, where it has one]
    #[arg(long, value_name = "SIZE", help_heading = "Where the machine does not say", value_parser = size)]
    pub huge_page_size: Option<Bytes>,
}

/// Reads two addresses or offsets in hexadecimal, the lower one first.
///
/// # Errors
/// Any other text, with the form that is expected.
pub(crate) fn range(text: &str) -> Result<(u64, u64), String> {
    let expected = || {
        format!(
            "{} is not a range: expected two numbers in hexadecimal, the lower first, as in 7f2c00000000-7f2c00200000",
            quote(text)
        )
    };
    let (from, to) = text.split_once('-').ok_or_else(expected)?;
    let address = |text: &str| {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u64::from_str_radix(digits, 16).ok().filter(|_| is_plain)
    };
    let (from, to) = address(from).zip(address(to)).ok_or_else(expected)?;
    if from < to { Ok((from, to)) } else { Err(expected()) }
}

/// Reads a size that was typed. A small number without a unit is asked about: it was hardly meant in bytes.
///
/// # Errors
/// Any text that is not a size, with the forms that are.
pub(crate) fn size(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error: SizeError| error.to_string())?;
    let is_bare = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_bare && size > Bytes::new(0) && size < SMALLEST_BARE {
        return Err(format!("{text} has no unit: expected {text}M or {text}G, or {text}B for bytes"));
    }
    Ok(size)
}

/// The smallest size that can be typed without a unit: a page.
const SMALLEST_BARE: Bytes = Bytes::from_kib(4);

/// When output is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[cfg(test)]
mod tests {
    use super::{Cli, range};
    use clap::CommandFactory;

    #[test]
    fn a_range_is_two_addresses_in_order() {
        assert_eq!(range("1000-2000"), Ok((0x1000, 0x2000)));
        assert_eq!(range("0x1000-0x2000"), Ok((0x1000, 0x2000)));
        for text in ["", "1000", "2000-1000", "1000-1000", "-1000", "x-y", "+1-2", "1-10000000000000000"] {
            assert!(range(text).unwrap_err().contains("is not a range"), "{text}");
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
