//! A machine written in one line.
//!
//! ```text
//! spec     = groups { ";" option }
//! groups   = group { " " group }
//! group    = [ COUNT "x" ] "(" body ")"
//! body     = groups                    a package that holds several nodes
//!          | part { " " part }         one node
//! part     = [ P "p" ] C "c" [ T "t" ] CPUs: P packages of C cores with T threads each
//!          | SIZE                      memory: 128G
//!          | CACHE "=" SIZE [ "/" N "c" ]   l1d, l1i, l2, l3 or l4; one per N cores, else per core
//!          | "free=" SIZE             free memory; without it, all but the page cache
//!          | "cache=" SIZE            clean page cache; without it, none
//!          | "huge=" SIZE ":" COUNT    a pool of huge pages
//!          | "tier=" N                 the memory tier
//! option   = "dist=" R                 every remote distance
//!          | "dist=" S "," R           inside a package, and between packages
//!          | "dist=" row "/" row ...   the whole matrix, numbers separated by commas
//!          | "ids=" LIST               node numbers, for machines with holes in them
//!          | "smt=" "split"|"adjacent" how CPU numbers run over threads; split is Linux on x86
//!          | "access=" LIST ">" N ":" NS [ "/" RATE ]   firmware latency (and bandwidth) from
//!                                      nodes to node N: 0>2:300ns/20G; read and write apart as 300ns,350ns
//!          | "dev=" DEVICE "@" N       a device on node N: net:eth0@1, gpu:0@3, pci:21:00.0@1
//!          | "weights=" N ":" W "," ...  weights of weighted interleave
//!          | "swap=" SIZE             free space for swapping
//!          | "thp=" "always"|"madvise"|"never"   transparent huge pages
//!          | "kernel=" RELEASE | "arch=" WORD
//! ```
//!
//! | spec | machine |
//! |---|---|
//! | `4x(12c2t 128G)` | four sockets of 12 cores with two threads, one node each, distances 10/20 |
//! | `2x(10c2t 64G); dist=21` | two sockets as most servers are |
//! | `2x(2x(24c 126G)); dist=11,20` | two packages with two nodes each: 10/11/20 |
//! | `(4c 1G) 7x(1G)` | a Raspberry Pi 5 with emulated nodes: seven without CPUs |
//! | `2x(16c 256G) (512G tier=22); access=0-1>2:250ns/30G` | two sockets and CXL memory |
//!
//! A node without a CPU part is memory-only, one without a size has CPUs only. A node at the top
//! level that has CPUs is a package of its own. [`parse`] gives the [`Spec`], [`Spec::machine`] the
//! machine; errors carry the column and print a caret under it.

mod build;
mod parse;

use std::fmt;

use crate::cache::CacheKind;
use crate::device::DeviceRef;
use crate::id::{NodeId, TierId};
use crate::machine::Machine;
use crate::set::NodeSet;
use crate::settings::KernelRelease;
use crate::units::Bytes;

pub use parse::parse;

/// Most nodes a spec may have: the kernel's own limit.
pub const MOST_NODES: u32 = 1024;
/// Most CPUs a spec may have: the largest `NR_CPUS` of any distribution.
pub const MOST_CPUS: u32 = 8192;

/// CPUs of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuPart {
    pub packages: u32,
    /// Cores per package.
    pub cores: u32,
    /// Threads per core.
    pub threads: u32,
}

/// A kind of cache in a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachePart {
    /// 1 to 4.
    pub level: u8,
    pub kind: CacheKind,
    pub size: Bytes,
    /// How many cores share one.
    pub cores: u32,
}

/// The text between the parentheses of a node.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct NodePart {
    /// Its CPUs; `None` for a memory-only node.
    pub cpus: Option<CpuPart>,
    /// Its memory; `None` for a node without.
    pub memory: Option<Bytes>,
    /// Free memory; `None` for all that is not page cache.
    pub free: Option<Bytes>,
    /// Clean page cache; `None` for none.
    pub cache: Option<Bytes>,
    pub caches: Vec<CachePart>,
    /// Its huge page pools: page size and number of pages.
    pub huge: Vec<(Bytes, u64)>,
    pub tier: Option<TierId>,
}

/// A group: something repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub count: u32,
    pub body: Body,
}

/// The contents that a group repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    Node(NodePart),
    /// A package with these nodes.
    Package(Vec<Group>),
}

/// Distances between nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distances {
    /// 10 to itself, this to every other.
    Remote(u32),
    /// 10 to itself, the first inside a package, the second between packages.
    Packages(u32, u32),
    Matrix(Vec<Vec<u32>>),
}

/// Order of CPU numbers over threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ThreadOrder {
    /// First threads of all cores, then second threads: Linux on x86.
    #[default]
    Split,
    /// The threads of a core have neighbouring numbers: POWER, some Arm servers.
    Adjacent,
}

/// Firmware latency and bandwidth from initiators to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessPart {
    /// The nodes it holds for.
    pub initiators: NodeSet,
    /// The node whose memory is reached.
    pub target: NodeId,
    /// Read and write latency, ns.
    pub latency_ns: (u32, u32),
    /// Read and write bandwidth, MB/s (10^6).
    pub bandwidth_mb_per_s: Option<(u32, u32)>,
}

/// A parsed spec. Printing it gives a text that parses to an equal spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    pub groups: Vec<Group>,
    /// Distances; `None` for the kernel's default of 10 and 20.
    pub distances: Option<Distances>,
    /// Node numbers; `None` for 0, 1, 2 ...
    pub ids: Option<NodeSet>,
    /// Order of CPU numbers over threads.
    pub smt: ThreadOrder,
    pub accesses: Vec<AccessPart>,
    pub devices: Vec<(DeviceRef, NodeId)>,
    pub weights: Vec<(NodeId, u32)>,
    /// Free space for swapping; `None` where nothing is said.
    pub swap: Option<Bytes>,
    /// Which memory is in transparent huge pages: a word of [`HUGE_PAGE_WORDS`].
    pub huge_pages: Option<&'static str>,
    pub kernel: Option<KernelRelease>,
    pub architecture: Option<String>,
}

/// The kernel's words in `/sys/kernel/mm/transparent_hugepage/enabled`.
pub const HUGE_PAGE_WORDS: [&str; 3] = ["always", "madvise", "never"];

/// Why a text is not a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The text that was read.
    pub text: String,
    /// Where it goes wrong, counted in characters from 1.
    pub column: usize,
    /// The fault, or what would have been right there.
    pub message: String,
}

impl fmt::Display for SpecError {
    /// The message, then the spec with a caret under the column; long specs are cut around it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const BEFORE: usize = 50;
        const WIDTH: usize = 76;
        let skipped = self.column.saturating_sub(BEFORE + 1);
        let shown: String = self
            .text
            .chars()
            .skip(skipped)
            .take(WIDTH)
            .map(|c| if c.is_control() { '?' } else { c })
            .collect();
        let lead = if skipped > 0 { "…" } else { "" };
        let indent = self.column - 1 - skipped + lead.chars().count();
        write!(
            f,
            "{} (column {})\n  {lead}{}\n  {:indent$}^",
            self.message,
            self.column,
            crate::printable::printable(&shown),
            ""
        )
    }
}

impl std::error::Error for SpecError {}

/// Reads a spec and makes its machine.
///
/// # Errors
/// What [`parse`] and [`Spec::machine`] refuse.
pub fn machine(text: &str) -> Result<Machine, SpecError> {
    parse(text)?.machine()
}

fn cache_word(kind: CacheKind) -> &'static str {
    match kind {
        CacheKind::Data => "d",
        CacheKind::Instruction => "i",
        CacheKind::Unified => "",
    }
}

impl fmt::Display for NodePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(cpus) = self.cpus {
            let packages = if cpus.packages == 1 { String::new() } else { format!("{}p", cpus.packages) };
            let threads = if cpus.threads == 1 { String::new() } else { format!("{}t", cpus.threads) };
            parts.push(format!("{packages}{}c{threads}", cpus.cores));
        }
        parts.extend(self.memory.map(|size| {
            format!("{}{}", size.exact(), if size.exact().ends_with(char::is_numeric) { "B" } else { "" })
        }));
        parts.extend(self.free.map(|size| format!("free={}", size.exact())));
        parts.extend(self.cache.map(|size| format!("cache={}", size.exact())));
        for cache in &self.caches {
            let share = if cache.cores == 1 { String::new() } else { format!("/{}c", cache.cores) };
            parts.push(format!("l{}{}={}{share}", cache.level, cache_word(cache.kind), cache.size.exact()));
        }
        parts.extend(self.huge.iter().map(|(size, count)| format!("huge={}:{count}", size.exact())));
        parts.extend(self.tier.map(|tier| format!("tier={tier}")));
        f.write_str(&parts.join(" "))
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.count != 1 {
            write!(f, "{}x", self.count)?;
        }
        match &self.body {
            Body::Node(node) => write!(f, "({node})"),
            Body::Package(groups) => write!(f, "({})", join(groups, " ")),
        }
    }
}

impl fmt::Display for Distances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Remote(remote) => write!(f, "{remote}"),
            Self::Packages(same, other) => write!(f, "{same},{other}"),
            Self::Matrix(rows) => {
                f.write_str(&rows.iter().map(|row| join(row, ",")).collect::<Vec<_>>().join("/"))
            }
        }
    }
}

fn join<T: fmt::Display>(items: &[T], separator: &str) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(separator)
}

fn pair((read, write): (u32, u32), unit: &str) -> String {
    if read == write { format!("{read}{unit}") } else { format!("{read}{unit},{write}{unit}") }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&join(&self.groups, " "))?;
        if let Some(distances) = &self.distances {
            write!(f, "; dist={distances}")?;
        }
        if let Some(ids) = &self.ids {
            write!(f, "; ids={ids}")?;
        }
        if self.smt == ThreadOrder::Adjacent {
            f.write_str("; smt=adjacent")?;
        }
        for access in &self.accesses {
            write!(f, "; access={}>{}:{}", access.initiators, access.target, pair(access.latency_ns, "ns"))?;
            if let Some(bandwidth) = access.bandwidth_mb_per_s {
                write!(f, "/{}", pair(bandwidth, "M"))?;
            }
        }
        for (device, node) in &self.devices {
            write!(f, "; dev={device}@{node}")?;
        }
        if !self.weights.is_empty() {
            let weights: Vec<String> =
                self.weights.iter().map(|(node, weight)| format!("{node}:{weight}")).collect();
            write!(f, "; weights={}", weights.join(","))?;
        }
        if let Some(swap) = self.swap {
            write!(f, "; swap={}", swap.exact())?;
        }
        if let Some(word) = self.huge_pages {
            write!(f, "; thp={word}")?;
        }
        if let Some(kernel) = &self.kernel {
            write!(f, "; kernel={kernel}")?;
        }
        if let Some(architecture) = &self.architecture {
            write!(f, "; arch={architecture}")?;
        }
        Ok(())
    }
}
