//! The machine of a guest's firmware tables beside what its kernel shows: both as `show --json` prints them.

use serde_json::Value;

/// Fails where the tables through the model give something else than the kernel's files.
pub fn compare(tables: &Value, live: &Value) -> Result<(), String> {
    for part in ["architecture", "possible_nodes", "distances", "accesses", "tiers"] {
        same(part, &tables[part], &live[part])?;
    }
    let (ours, kernels) = (nodes(tables), nodes(live));
    same("number of nodes", &ours.len().into(), &kernels.len().into())?;
    for (own, kernel) in ours.iter().zip(kernels) {
        for part in ["id", "cpus", "memory_side_caches"] {
            same(&format!("{part} of node {}", kernel["id"]), &own[part], &kernel[part])?;
        }
        // The kernel shows the file where there is such an initiator and, since 6.12, on all nodes.
        if !kernel["generic_initiator"].is_null() {
            same("generic_initiator", &own["generic_initiator"], &kernel["generic_initiator"])?;
        }
    }
    Ok(())
}

fn nodes(machine: &Value) -> &[Value] {
    machine["nodes"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn same(what: &str, tables: &Value, live: &Value) -> Result<(), String> {
    if tables == live { Ok(()) } else { Err(format!("{what}: the tables give {tables}, the kernel {live}")) }
}
