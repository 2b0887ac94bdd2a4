//! `nodewise pretend`.

use std::ffi::OsString;

/// Runs a program that sees the CPUs and nodes of another machine, without root and at native speed
///
/// The program runs on this kernel, in a namespace where the files of CPUs, caches, nodes and memory are those of the
/// machine that --machine names. Its calls about memory policies, page placement and affinity are answered as that
/// machine's kernel would answer them: numactl, libnuma, lscpu, lstopo and runtimes see and bind to nodes that do not exist
/// here. Memory and speed stay real. For unit tests of NUMA-aware software; nodewise lab boots a real kernel that has the
/// nodes.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "\
Examples:
  nodewise pretend --machine \"2x(16c2t 64G)\" -- numactl --membind=1 ./test
  nodewise pretend --machine server.tar.gz -- lstopo-no-graphics
  nodewise pretend --explain

Exit codes: the program's own; 2 wrong usage, 3 when this machine has no user namespaces or no \
seccomp user notification, 126 when the program cannot be \
executed, 127 when it is not found.",
    override_usage = "nodewise pretend [OPTIONS] [--] PROGRAM [ARGUMENT]..."
)]
pub struct Pretend {
    /// Show which facts are the machine's and which stay real; with a program, on standard error before it starts
    #[arg(long)]
    pub explain: bool,
    /// Show the machine's files alone, and leave all system calls to the real kernel
    #[arg(long)]
    pub files_only: bool,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}
