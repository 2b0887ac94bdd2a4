//! Options that say where a program runs and where its memory comes from.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches, ValueEnum};

/// Parts of a placement. The names are numactl's where it has them.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PlacementOptions {
    /// Memory only from these nodes
    #[arg(short = 'm', long, value_name = "NODES", help_heading = "Memory")]
    pub membind: Option<String>,
    /// Memory page by page over these nodes
    #[arg(short = 'i', long, value_name = "NODES", help_heading = "Memory")]
    pub interleave: Option<String>,
    /// Memory page by page, in proportion to the nodes' weights (Linux 6.9)
    #[arg(short = 'w', long, value_name = "NODES", help_heading = "Memory")]
    pub weighted_interleave: Option<String>,
    /// Memory from this node first, from any other when it is full
    #[arg(short = 'p', long, value_name = "NODE", help_heading = "Memory")]
    pub preferred: Option<String>,
    /// Memory from these nodes first, from any other when all are full (Linux 5.15)
    #[arg(short = 'P', long, value_name = "NODES", help_heading = "Memory")]
    pub preferred_many: Option<String>,
    /// Memory from the node of the CPU that touches it first
    #[arg(short = 'l', long, help_heading = "Memory")]
    pub localalloc: bool,
    /// Let automatic balancing move pages inside the nodes of --membind (Linux 5.12),
    /// --near --strict or --preferred-many
    #[arg(short = 'b', long, help_heading = "Memory")]
    pub balancing: bool,
    /// Huge pages: always (transparent ones where possible; malloc requests them if the kernel gives them on
    /// request only), never (no transparent ones), or pool (malloc takes them from the pools while they last;
    /// glibc 2.35)
    #[arg(long, value_name = "WHEN", hide_possible_values = true, help_heading = "Memory")]
    pub huge: Option<Huge>,
    /// Run on the CPUs of these nodes
    #[arg(short = 'N', long, value_name = "NODES", help_heading = "CPUs")]
    pub cpunodebind: Option<String>,
    /// Run on these CPUs
    #[arg(short = 'C', long, value_name = "CPUS", conflicts_with = "cpunodebind", help_heading = "CPUs")]
    pub physcpubind: Option<String>,
    /// CPUs of a device's node, and memory from there first, from other nodes when it is full: gpu:N, net:IF,
    /// block:DEV, ib:DEV or pci:ADDR
    #[arg(long, value_name = "DEVICE", help_heading = "CPUs and memory")]
    pub near: Option<String>,
    /// With --near: memory of that node only; when it is full, the kernel kills the program
    #[arg(long, requires = "near", help_heading = "CPUs and memory")]
    pub strict: bool,
}

/// Huge pages for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Huge {
    /// Wherever the kernel can; malloc requests them if the kernel gives them on request only
    Always,
    /// Not at all
    Never,
    /// From the pools
    Pool,
}

/// The options that take nodes, so that `same` can mean the one before.
pub const NODE_OPTIONS: [&str; 6] =
    ["membind", "interleave", "weighted_interleave", "preferred", "preferred_many", CPU_OPTION];
/// The one of them that asks for the nodes' CPUs, and not for their memory.
pub const CPU_OPTION: &str = "cpunodebind";

impl PlacementOptions {
    /// The value of a node option by its id.
    pub fn nodes_of(&self, option: &str) -> Option<&str> {
        let value = match option {
            "membind" => &self.membind,
            "interleave" => &self.interleave,
            "weighted_interleave" => &self.weighted_interleave,
            "preferred" => &self.preferred,
            "preferred_many" => &self.preferred_many,
            "cpunodebind" => &self.cpunodebind,
            _ => &None,
        };
        value.as_deref()
    }

    /// Whether one of the options gives the program a memory policy.
    pub fn has_policy(&self) -> bool {
        let mut given = NODE_OPTIONS.into_iter().filter(|option| self.nodes_of(option).is_some());
        self.localalloc || self.near.is_some() || given.any(|option| option != CPU_OPTION)
    }

    /// The node options that were given, in the order in which they were typed.
    pub fn typed_order(matches: &ArgMatches) -> Vec<&'static str> {
        let mut given: Vec<(usize, &'static str)> =
            NODE_OPTIONS.into_iter().filter_map(|option| Some((matches.index_of(option)?, option))).collect();
        given.sort_unstable();
        given.into_iter().map(|(_, option)| option).collect()
    }
}

/// A placement with the order in which its node options were typed: `same` means the one before.
#[derive(Clone, Debug)]
pub struct TypedPlace {
    /// The options.
    pub place: PlacementOptions,
    /// The node options, in their order.
    pub order: Vec<&'static str>,
}

impl Args for TypedPlace {
    fn augment_args(command: Command) -> Command {
        PlacementOptions::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        PlacementOptions::augment_args_for_update(command)
    }
}

impl FromArgMatches for TypedPlace {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self {
            place: PlacementOptions::from_arg_matches(matches)?,
            order: PlacementOptions::typed_order(matches),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        Self::from_arg_matches(matches).map(|typed| *self = typed)
    }
}
