//! `nodewise run`.

use std::ffi::OsString;

use super::place::TypedPlace;

/// Starts a program under a placement
///
/// NODES and CPUS are lists (0-2,5), "all", "!1" (all but), "+0-1" (counted within what this
/// process may use) or "same" (the nodes of the option before). Nodes can be named by a device too: netdev:eth0,
/// block:sda, file:/data, ip:10.0.0.1, pci:21:00.0. Everything is checked before the program starts,
/// and nothing of nodewise remains once it runs.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "\
Examples:
  nodewise run --interleave=all -- mongod
  nodewise run --cpunodebind=0 --membind=same -- ./solver
  nodewise run --near net:eth0 -- ./server
  nodewise run --membind=2 --dry-run -- ./program
  nodewise run --preferred-many=0,1 --explain
  nodewise run --interleave=all --emit systemd

Exit codes: the program's own; 125 when nodewise itself fails, 126 when the program cannot be \
executed, 127 when it is not found.",
    override_usage = "nodewise run [OPTIONS] [--] PROGRAM [ARGUMENT]..."
)]
pub struct Run {
    #[command(flatten)]
    pub placement: TypedPlace,
    /// Show the order in which the kernel tries nodes; with a program, on standard error before it starts
    #[arg(long)]
    pub explain: bool,
    /// Show what would be done, without doing it: the system calls
    #[arg(long)]
    pub dry_run: bool,
    /// Print the placement for another tool, and start nothing: numactl, systemd, docker, podman, slurm, mpi, k8s,
    /// libvirt, openmp, torchrun, jvm, mongod, mysqld or postgres
    #[arg(long, value_name = "TOOL")]
    pub emit: Option<String>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}
