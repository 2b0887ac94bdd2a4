//! `nodewise tune`.

use std::ffi::OsString;
use std::path::PathBuf;

use nodewise_lab::KernelChoice;
use nodewise_machine::Bytes;

use crate::output::Destination;

/// Runs a program under many placements and names the best
///
/// Every round runs the program once under each placement, in a new random order, and twice under the default:
/// the difference between those two is this machine's noise. A placement that is worse than another beyond
/// doubt drops out; the rest go on until one is known to be within 2 % of the best. A placement is called
/// faster only when the interval, the test and the noise agree. Without a program a built-in workload is tuned,
/// for half a minute at most. The program reads an empty input, has no terminal, and its output is not shown.
/// An arm is given up when it never works (two failures), when it fails three times in a row, or when a fifth
/// of ten or more runs fail. Ctrl-C ends the study with the results so far.
///
/// With --machine the program runs once under each placement in a guest of that machine (nodewise lab), where
/// the cache lines that it moves are counted. Placements are ranked by them as far as that can be known.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "\
Examples:
  nodewise tune -- ./solver input.dat
  nodewise tune --placement 'cpunodebind=0 membind=0' -- ./bench
  nodewise tune --metric 'Triad: +([0-9.]+)' --higher-is-better -- ./stream
  nodewise tune --metric wall --metric rss --metric 'latency ([0-9.]+)' -- ./bench
  nodewise tune --time 10m --json -- make -j8 > study.json
  nodewise tune --from study.json --svg study.svg
  nodewise tune --journal study.journal --time 2h -- ./solver
  nodewise tune --prepare 'cat sample.tar' -- zstd -q -f sample.tar -o /dev/null
  nodewise tune --prepare \"sh -c 'sync; echo 3 > /proc/sys/vm/drop_caches'\" -- ./load data
  nodewise tune --serve './server --port 8080' --ready 8080 --drive './client' --metric 'rate ([0-9.]+)'
  nodewise tune --emit systemd -- /usr/sbin/server --benchmark
  nodewise tune --machine \"2x(16c 128G); dist=21\" -- ./solver input.dat

Exit codes: 0 when there is a result, also after Ctrl-C; 2 wrong usage, also a --time that is too short \
for one round; 3 when the program fails without any placement too, or its preparation fails; 125 when it \
marked no phase of the name that --phase has.",
    override_usage = "nodewise tune [OPTIONS] [--] [PROGRAM [ARGUMENT]...]"
)]
pub struct Tune {
    /// Placement to try: options of nodewise run separated by blanks, dashes optional (may be repeated)
    /// [default: every one that makes sense here]
    #[arg(long, value_name = "P", allow_hyphen_values = true)]
    pub placement: Vec<String>,
    /// Try the placements that this TOML file describes by its axes: memory, cpus, huge, balancing,
    /// threads
    #[arg(long, value_name = "FILE", conflicts_with = "placement")]
    pub space: Option<PathBuf>,
    /// Number of threads, several to try, such as 1,4,cores,cpus: they replace {threads} in the command, or without
    /// it are set in OMP_NUM_THREADS and similar variables [default: {threads} is the number of CPUs of the
    /// placement]
    #[arg(long, value_name = "LIST")]
    pub threads: Option<String>,
    /// Rounds to run, at most [default: 40, or as many as --time allows; 10 with --no-race]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: Option<u32>,
    /// Run every placement in every round, also those that are worse beyond doubt
    #[arg(long)]
    pub no_race: bool,
    /// Time limit, warm-up and preparations included, such as 90s, 10m or 2h; kept to within one run. If it is
    /// too short for the warm-up and one round, the study ends at once
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,
    /// Metric to compare: wall (time from start to end), cpu (time on CPUs), rss (most memory at once),
    /// node-loads, node-load-misses or dTLB-misses (counted by the CPU), or a regular expression with one
    /// group, which is a number that the program prints (the last match counts); of several the first
    /// decides, and the others are shown [default: wall]
    #[arg(long, value_name = "wall|cpu|rss|EVENT|REGEX")]
    pub metric: Vec<String>,
    /// More of the metric is better; of the first where there are several
    #[arg(long)]
    pub higher_is_better: bool,
    /// End a run that takes longer than this, such as 500ms, 90s or 10m, and count it as failed; the same limit
    /// holds for --prepare [default: 20 times the longest run of the warm-up so far, and at least 10s; the
    /// first run has no limit]
    #[arg(long, value_name = "TIME")]
    pub run_limit: Option<String>,
    /// Random seed: the order of runs [default: from the clock, and printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Most repetitions of a run that other programs or the hypervisor disturbed; 0: none [default: 2]
    #[arg(
        long,
        value_name = "N",
        default_value_t = 2,
        hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(..=100)
    )]
    pub repeats: u32,
    /// Journal in FILE: append each run as it finishes, and resume after the runs already in it
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    /// Run this command before every run, also those of the warm-up: not timed, not counted, and under no
    /// placement; its words are split at blanks, and what it prints is thrown away
    #[arg(long, value_name = "CMD")]
    pub prepare: Option<String>,
    /// Wait before every run until the CPUs are at most 5 degrees Celsius hotter than at the start, but no
    /// longer than this, such as 30s or 2m [default: no wait]
    #[arg(long, value_name = "TIME")]
    pub cool_down: Option<String>,
    /// Place this server instead of a program; its words are split at blanks
    #[arg(long, value_name = "CMD", requires_all = ["ready", "drive"])]
    pub serve: Option<String>,
    /// The server is ready when this port of the machine accepts, or when it has written what matches
    #[arg(long, value_name = "PORT|REGEX", requires = "serve")]
    pub ready: Option<String>,
    /// The client to run when the server is ready, on the CPUs that the placement leaves if it leaves
    /// any; its time or its number is what is compared
    #[arg(long, value_name = "CMD", requires = "serve")]
    pub drive: Option<String>,
    /// How long the server may take to be ready [default: 60s]
    #[arg(long, value_name = "TIME", requires = "serve")]
    pub ready_limit: Option<String>,
    /// How long it may take to stop after SIGTERM, before SIGKILL [default: 10s]
    #[arg(long, value_name = "TIME", requires = "serve")]
    pub stop_limit: Option<String>,
    /// Count only the cache lines of this phase, which the program marks (docs/counting.md)
    #[arg(long, value_name = "NAME", help_heading = "On another machine (--machine)")]
    pub phase: Option<String>,
    /// Latencies from the output of nodewise latency --json
    #[arg(long, value_name = "FILE", help_heading = "On another machine (--machine)")]
    pub latency: Option<PathBuf>,
    /// Bandwidths from the output of nodewise bandwidth --json
    #[arg(long, value_name = "FILE", help_heading = "On another machine (--machine)")]
    pub bandwidth: Option<PathBuf>,
    /// Kernel image, or the release of one that cargo xtask lab-setup fetched, such as 6.12
    #[arg(long, value_name = "FILE|VERSION", help_heading = "On another machine (--machine)")]
    pub kernel: Option<KernelChoice>,
    /// Most CPUs of the guest; every node that has CPUs keeps at least one
    #[arg(long = "max-cpus", value_name = "N", help_heading = "On another machine (--machine)", value_parser = clap::value_parser!(u32).range(1..))]
    pub cpus: Option<u32>,
    /// Memory of the guest, shared among its nodes
    #[arg(long, value_name = "SIZE", help_heading = "On another machine (--machine)", value_parser = super::size)]
    pub memory: Option<Bytes>,
    /// Print the placement for another tool, the best one and its number of threads, below the result: numactl,
    /// systemd, docker, podman, slurm, mpi, k8s, libvirt, openmp, torchrun, jvm, mongod, mysqld or postgres
    #[arg(long, value_name = "TOOL", help_heading = "Output")]
    pub emit: Option<String>,
    /// Show everything: all placements, why others were not tried, pages and counters
    #[arg(long, conflicts_with_all = ["json", "csv"], help_heading = "Output")]
    pub all: bool,
    /// Print JSON: every sample and the conditions
    #[arg(long, conflicts_with = "csv", help_heading = "Output")]
    pub json: bool,
    /// Print CSV, one line per placement
    #[arg(long, conflicts_with = "emit", help_heading = "Output")]
    pub csv: bool,
    /// Draw an SVG picture into FILE: the placements
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub svg: Option<Destination>,
    /// Draw a PNG picture into FILE: the placements
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub png: Option<Destination>,
    /// Read FILE instead of this machine: a result of --json; runs nothing. Shows its placements as a table, CSV or
    /// SVG; with --json the whole document
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["placement", "space", "threads", "runs", "no_race", "time", "metric",
                              "higher_is_better", "run_limit", "seed", "repeats", "journal", "prepare",
                              "cool_down", "serve", "emit", "all", "command"],
        help_heading = "Output"
    )]
    pub from: Option<PathBuf>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}
