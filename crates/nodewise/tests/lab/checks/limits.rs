//! Impossible requests: the message names the cause, the limit and what would be right.

use std::process::Command;

use nodewise_machine::NodeId;

use super::same;
use crate::cpuset::Cpuset;
use crate::nodewise::{Context, complaint, probed};

pub fn no_cpus(context: &Context) -> Result<(), String> {
    let with_cpus = context.seen.nodes_with_cpus();
    let Some(node) = context.seen.node_ids().difference(&with_cpus).first() else {
        // Every node of this layout has CPUs; the message for the others is about memory alone.
        return Ok(());
    };
    let output = context.output(&["run", &format!("--cpunodebind={node}"), "--", "true"])?;
    same("exit code", output.status.code(), Some(125))?;
    let nearest = context.seen.nearest_with_cpus(node).expect("there are CPUs");
    same(
        "message",
        complaint(&output),
        format!(
            "nodewise: --cpunodebind: node {node} has no CPUs: a program cannot run there (its memory can be used with \
             --membind={node}); the nearest node with CPUs is {nearest}: --cpunodebind={nearest}"
        ),
    )
}

pub fn cpuset(context: &Context) -> Result<(), String> {
    let group = Cpuset::new("0", "1")?;
    let run = |words: &[&str]| group.command(words).output().map_err(|error| error.to_string());
    let nodewise = context.path();
    let output = run(&[nodewise, "run", "--membind=0", "--", "true"])?;
    same("exit code", output.status.code(), Some(125))?;
    same(
        "memory outside the cpuset",
        complaint(&output),
        "nodewise: --membind: node 0 is outside this cpuset's memory node 1".to_owned(),
    )?;
    let output = run(&[nodewise, "run", "--physcpubind=0-1", "--", "true"])?;
    same("exit code", output.status.code(), Some(125))?;
    same(
        "a CPU outside the cpuset",
        complaint(&output),
        "nodewise: CPU 1 is outside this cpuset: of CPUs 0-1 it allows 0".to_owned(),
    )?;
    let probe = context.probe_words(1024, "small");
    let mut words = vec![nodewise, "run", "--interleave=all", "--"];
    words.extend(probe.iter().map(String::as_str));
    let inside = probed("interleave=all in a cpuset", group.command(&words))?;
    same("pages outside the cpuset", inside.nodes.iter().filter(|node| **node != 1).count(), 0)
}

pub fn ordinary_user(context: &Context) -> Result<(), String> {
    let node = context.seen.nodes_with_memory().last().unwrap_or(NodeId::new(0));
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--inh-caps=-all",
        context.path(),
        "run",
    ]);
    command.args([&format!("--membind={node}"), "--"]).args(context.probe_words(1024, "small"));
    let probed = probed("as an ordinary user", command)?;
    same("pages elsewhere", probed.nodes.iter().filter(|page| **page != i64::from(node.number())).count(), 0)
}
