//! Starting: what a short command costs, beside numactl.

use std::path::Path;

use anyhow::Result;

use super::{Pair, Suite};

/// The same work by nodewise and by numactl.
pub fn suite(nodewise: &Path) -> Result<Suite> {
    let pair = |what, ours: &str, peer: &str| Pair::new(what, nodewise, ours, Path::new("numactl"), peer);
    let pairs = vec![
        pair("run a program", "run --localalloc -- true", "--localalloc true"),
        pair(
            "run it bound to a node",
            "run --membind=0 --cpunodebind=0 -- true",
            "--membind=0 --cpunodebind=0 true",
        ),
        pair("show the machine", "show", "--hardware"),
    ];
    Ok(Suite { pairs, holders: Vec::new() })
}
