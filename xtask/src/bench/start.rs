//! Starting: what a short command costs, beside numactl.

use super::Pair;

/// The same work by nodewise and by numactl.
pub fn pairs(nodewise: &str) -> Vec<Pair> {
    let pair = |what, ours: &[&str], peer: &[&str]| Pair {
        what,
        ours: std::iter::once(nodewise).chain(ours.iter().copied()).map(str::to_owned).collect(),
        peer: std::iter::once("numactl").chain(peer.iter().copied()).map(str::to_owned).collect(),
    };
    vec![
        pair("run a program", &["run", "--localalloc", "--", "true"], &["--localalloc", "true"]),
        pair(
            "run it bound to a node",
            &["run", "--membind=0", "--cpunodebind=0", "--", "true"],
            &["--membind=0", "--cpunodebind=0", "true"],
        ),
        pair("show the machine", &["show"], &["--hardware"]),
    ]
}
