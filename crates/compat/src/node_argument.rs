//! A set of nodes on the command line of migratepages, migspeed and memhog.

use std::ffi::OsStr;
use std::io::Write;

use nodewise_machine::printable::printable;
use nodewise_machine::{CpuSet, NodeSet};

use crate::Call;
use crate::kernel::Kernel;
use crate::members::{NodeCpus, Nodes, Purpose, Scope};
use crate::nodestring::{self, Invalid};
use crate::warning::Warnings;

/// Reads an argument that names nodes with memory that this process may use. What is wrong with it
/// is written as libnuma and the tools write it.
///
/// # Errors
/// An argument that names no such set.
pub fn read(
    call: &Call<'_>,
    kernel: &dyn Kernel,
    argument: &OsStr,
    out: &mut dyn Write,
    warnings: &mut Warnings<'_>,
) -> Result<NodeSet, Invalid> {
    let text = argument.to_string_lossy();
    let memory = Purpose::Memory;
    let nodes =
        Nodes::new(&NodeCpus::new(call.tree), kernel, call.settings, Scope::Allowed, memory, &CpuSet::new());
    nodestring::parse(&text, &nodes, warnings).inspect_err(|_| {
        let _ = writeln!(out, "<{}> is invalid", printable(&text));
    })
}
