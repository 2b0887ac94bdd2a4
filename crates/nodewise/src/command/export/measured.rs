//! `nodewise export --measured`: latencies and bandwidths from results of elsewhere.

use std::path::PathBuf;

use nodewise_machine::Machine;
use nodewise_machine::printable::quote;
use nodewise_view::export::MeasuredMemory;
use nodewise_view::json::{self, Saved};

use crate::command::figures;
use crate::failure::Failure;
use crate::measuring;

/// Reads the files, and holds them against the machine.
///
/// # Errors
/// A file without a matrix of nodes, and one that names nodes which the machine lacks.
pub fn read(paths: &[PathBuf], machine: &Machine) -> Result<MeasuredMemory, Failure> {
    let mut measured = MeasuredMemory::default();
    for path in paths {
        let text = measuring::read_saved("--measured", path)?;
        let name = || quote(&path.display().to_string());
        let pairs = add(&mut measured, &text).map_err(|error| {
            Failure::usage(format_args!(
                "--measured: {} is not a result of latency or bandwidth: {error}",
                name()
            ))
        })?;
        if pairs == 0 {
            return Err(Failure::usage(format_args!(
                "--measured: {} has no matrix of nodes with figures",
                name()
            )));
        }
        if let Some((from, memory)) = measured.foreign_pair(machine) {
            return Err(Failure::usage(format_args!(
                "--measured: {} has CPUs of node {from} and memory of node {memory}: expected nodes of this machine, with \
                 CPUs on nodes {} and memory on nodes {}",
                name(),
                machine.nodes_with_cpus(),
                machine.memory_nodes()
            )));
        }
    }
    Ok(measured)
}

/// Adds the matrices of a text; the number of pairs of nodes.
fn add(measured: &mut MeasuredMemory, text: &str) -> Result<usize, String> {
    if let Some(of_tool) = figures::all(text)? {
        return Ok(measured.add_figures(&of_tool));
    }
    let saved = Saved::from_json(text)?;
    if json::bandwidth::READ.contains(&saved.schema()) {
        return json::bandwidth::read(&saved).map(|report| measured.add_bandwidth(&report));
    }
    json::latency::read(&saved).map(|report| measured.add_latency(&report))
}
