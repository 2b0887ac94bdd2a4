//! `tune` in the guest. Times mean nothing in an emulator; where pages were does.

use nodewise_machine::NodeId;
use serde_json::Value;

use super::same;
use crate::nodewise::Context;

pub fn residency(context: &Context) -> Result<(), String> {
    let nodes: Vec<u32> = context.seen.nodes_with_memory().iter().map(NodeId::number).collect();
    let (first, last) = (nodes[0], nodes[nodes.len() - 1]);
    let bound = format!("membind={last}");
    let json = context.json(&[
        "tune",
        "--json",
        "--runs=1",
        "--seed=7",
        "--placement=membind=0",
        &format!("--placement={bound}"),
        "--placement=interleave=all",
        "--",
        context.path(),
        "workload",
        "chase",
        "--size=96M",
        "--samples=1",
    ])?;
    same("end", json["end"].as_str(), Some("completed"))?;
    let arms = json["arms"].as_array().ok_or("no arms")?;
    same("arms", arms.len(), 4)?;
    for arm in arms.iter().skip(1) {
        let policy = arm["placement"]["policy"].as_str().ok_or("an arm without policy")?;
        same(&format!("{policy} held"), arm["fidelity"]["held"].as_bool(), Some(true))?;
        for share in ["policy_share", "pages_share"] {
            let seen = arm["fidelity"][share].as_f64().ok_or_else(|| format!("no {share}: {arm}"))?;
            if seen < 0.99 {
                return Err(format!("{policy}: {share} is {seen:.3}, expected all of it: {arm}"));
            }
        }
        let expected = match policy {
            one if one == format!("bind:{first}") => vec![(first, 1.0)],
            one if one == format!("bind:{last}") => vec![(last, 1.0)],
            _ => nodes.iter().map(|node| (*node, 1.0 / nodes.len() as f64)).collect(),
        };
        for (node, share) in expected {
            let seen = share_on(arm, node);
            // The program's own file is in the page cache wherever it was first read.
            if (seen - share).abs() > 0.12 {
                return Err(format!(
                    "{policy}: {seen:.3} of the pages are on node {node}, expected {share:.3}: {arm}"
                ));
            }
        }
    }
    Ok(())
}

fn share_on(arm: &Value, node: u32) -> f64 {
    let pages = arm["pages"].as_array().into_iter().flatten();
    pages.filter(|page| page["node"] == node).filter_map(|page| page["share"].as_f64()).sum()
}
