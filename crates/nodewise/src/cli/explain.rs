//! `nodewise explain`, `zonelist` and `zones`.

use std::path::PathBuf;

use nodewise_machine::printable::{printable, quote};
use nodewise_machine::{Bytes, KernelRelease};

/// Predicts from which nodes the kernel takes memory under a policy, and when it falls back
///
/// Nothing is allocated: a model of the kernel's allocator, which was compared with real kernels,
/// plays the request. POLICY is written as in /proc/PID/numa_maps: a mode, flags behind "=", and
/// nodes behind ":". Modes: default, local, bind, preferred, preferred-many, interleave,
/// weighted-interleave; numactl's membind and localalloc are understood. Flags: static, relative, balancing; several
/// are joined with "|".
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise explain bind:1,3 --cpu-node 0
  nodewise explain bind:1 --size 80G --free 1=6G --cache 1=50G --machine \"2x(12c 128G)\"
  nodewise explain interleave:all --size 10G
  nodewise explain preferred:2 --machine \"4x(12c 128G)\" --trace
  nodewise explain \"bind=relative|balancing:1\" --allowed 2-3 --machine \"4x(12c 128G)\"
  nodewise explain interleave:all --kind cache --size 1G
  nodewise explain --pid postgres --mapping shared
  nodewise explain --size 10G --limit 8G --swap 0
  nodewise explain interleave:all --size 10G --cost --latency lat.json")]
pub struct Explain {
    /// The memory policy
    #[arg(value_name = "POLICY", default_value = "default", hide_default_value = true)]
    pub policy: String,
    /// Process: its number, or its name if no other has it; why its memory is where it is, and where its next 10 GiB (or
    /// --size) would come from
    #[arg(long, value_name = "PID|NAME", conflicts_with = "policy", help_heading = "A process")]
    pub pid: Option<String>,
    /// Mappings to explain: a kind (heap, stack, anonymous, shared, file, hugetlb) or a part of a name
    #[arg(
        long,
        value_name = "NAME",
        requires = "pid",
        conflicts_with = "address",
        help_heading = "A process"
    )]
    pub mapping: Option<String>,
    /// Address, in hexadecimal: the mapping to explain is the one around it
    #[arg(long, value_name = "A", requires = "pid", value_parser = address, help_heading = "A process")]
    pub address: Option<u64>,
    /// Node of the CPU that touches the memory first
    #[arg(long, value_name = "N")]
    pub cpu_node: Option<u32>,
    /// Kind of memory
    #[arg(long = "kind", alias = "memory", value_name = "KIND", default_value = "private")]
    pub memory: Memory,
    /// Number of the first page, which selects the first node under interleave: its address in pages, of memory that
    /// mremap has moved the old one, of a private file its index in the file, and of shared memory that plus the inode
    /// number
    ///
    /// Without it the first page is on the first node.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..1 << 52))]
    pub first_page: Option<u64>,
    /// Nodes whose memory the cpuset allows; without it, those that can be used now
    #[arg(long, value_name = "NODES")]
    pub allowed: Option<String>,
    /// The home node of the mapping (set_mempolicy_home_node), for bind and preferred-many
    #[arg(long, value_name = "N")]
    pub home: Option<u32>,
    /// Size of memory: the part that is touched; without it, all of it
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub size: Option<Bytes>,
    /// Free memory, in place of the machine's own: 60G for each node, or 1=60G for some (may be repeated)
    #[arg(long, value_name = "SIZE")]
    pub free: Vec<String>,
    /// Clean page cache, in place of the machine's own, in the same forms
    #[arg(long, value_name = "SIZE")]
    pub cache: Vec<String>,
    /// Free space for swapping, in place of the machine's own
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub swap: Option<Bytes>,
    /// Limit of memory of a control group (memory.max), such as a container, in which the program runs alone; without it,
    /// those of the groups of the process, or of this shell
    #[arg(long, value_name = "SIZE", value_parser = super::size, conflicts_with = "pid")]
    pub limit: Option<Bytes>,
    /// Use transparent huge pages where possible [default: always for private memory where the machine is set so]
    #[arg(long = "thp", alias = "huge", value_name = "WHEN", num_args = 0..=1, require_equals = true,
        default_missing_value = "advised")]
    pub huge: Option<Huge>,
    /// Kernel release to model, such as 6.18
    #[arg(long, value_name = "R", value_parser = release)]
    pub kernel: Option<KernelRelease>,
    /// Use the fallback orders after memory was added or removed at run time
    #[arg(long)]
    pub rebuilt: bool,
    /// Name the kernel functions on the path
    #[arg(long)]
    pub trace: bool,
    /// Estimate the least time to read the memory once, and its bottleneck
    ///
    /// Latencies and bandwidths are those of the firmware (or of a machine's "access="), unless measured ones
    /// are given.
    #[arg(long)]
    pub cost: bool,
    /// Latencies from the output of nodewise latency --json, with --cost
    #[arg(long, value_name = "FILE", requires = "cost")]
    pub latency: Option<PathBuf>,
    /// Bandwidths from the output of nodewise bandwidth --json, with --cost
    #[arg(long, value_name = "FILE", requires = "cost")]
    pub bandwidth: Option<PathBuf>,
    /// Number of threads, with --cost: the readers on the CPU's node [default: one per CPU]
    #[arg(long, value_name = "N", requires = "cost", value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: Option<u32>,
    /// With --cost: access pattern
    #[arg(long, value_name = "HOW", requires = "cost", default_value = "stream")]
    pub access: Access,
    /// Print JSON (schema nodewise.explain/1)
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV, one line per share of a step
    #[arg(long)]
    pub csv: bool,
    #[command(flatten)]
    pub supplied: super::Supplied,
}

/// Kind of memory that a request touches: it decides which policy applies and how turns are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Memory {
    /// Private memory of a program, by the policy of its mapping or of its task
    Private,
    /// Pages of a file that a program writes to without the file changing (MAP_PRIVATE), by the policy of its mapping or of
    /// its task
    PrivateFile,
    /// A file in memory that several may have (tmpfs, System V, MAP_SHARED), by the file's policy
    Shared,
    /// The page cache of files that are read or written, by the policy of the task
    Cache,
}

/// Which memory is in transparent huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Huge {
    /// Memory that the program advises (madvise): the kernel looks for them on other nodes too
    Advised,
    /// All memory: from the first node as long as it has any, without reclaiming for them
    Always,
    /// None
    Never,
}

/// How a program reads its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Access {
    /// In order: each thread has ten cache lines under way
    Stream,
    /// Each load waits for the one before
    Chase,
}

/// Shows the fallback order of each node: nodes and zones
///
/// The orders of the model are shown beside those that the kernel of this machine, or of a capture, logged.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise zonelist
  nodewise zonelist --machine \"2x(2x(24c 126G)); dist=11,20\" --kernel 6.18")]
pub struct Zonelist {
    /// Kernel release to model, such as 6.18
    #[arg(long, value_name = "R", value_parser = release)]
    pub kernel: Option<KernelRelease>,
    /// Use the fallback orders after memory was added or removed at run time
    #[arg(long)]
    pub rebuilt: bool,
    /// Print JSON (schema nodewise.zonelist/1)
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV, one line per place in an order
    #[arg(long)]
    pub csv: bool,
    #[command(flatten)]
    pub supplied: super::Supplied,
}

/// Shows the zones of every node: sizes, free pages, watermarks and reserves
///
/// The kernel's own figures are shown, and those of the model where they differ.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise zones
  nodewise zones --machine capture.tar.gz --json")]
pub struct Zones {
    /// Kernel release to model, such as 6.18
    #[arg(long, value_name = "R", value_parser = release)]
    pub kernel: Option<KernelRelease>,
    /// Print JSON (schema nodewise.zones/1)
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV, one line per zone
    #[arg(long)]
    pub csv: bool,
    #[command(flatten)]
    pub supplied: super::Supplied,
}

/// Reads an address in hexadecimal.
fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16)
        .map_err(|_| format!("{} is not an address: expected one such as 7f2c00000000", quote(text)))
}

/// Reads a kernel release.
///
/// # Errors
/// A text that does not begin with two numbers, and a release before those that the model knows.
pub fn release(text: &str) -> Result<KernelRelease, String> {
    let release = KernelRelease::new(text)
        .ok_or_else(|| format!("{} is not a release: expected two numbers as in 6.12", quote(text)))?;
    let (major, minor) = OLDEST;
    if release.version() < OLDEST {
        return Err(format!(
            "the model knows Linux {major}.{minor} and later, not {}: it was compared with 6.1, 6.12 and 6.18",
            printable(text)
        ));
    }
    Ok(release)
}

/// The oldest release that can be modelled: fallback orders by zone (`numa_zonelist_order`) ended with it.
const OLDEST: (u16, u16) = (4, 14);
