//! Policies, bindings and limits of CPU time that do something else than was meant, in control groups.

use std::fs;

use nodewise_machine::{CpuId, NodeId};
use serde_json::Value;

use super::group::Group;
use super::{BALANCING, MEMORY, about, is_about, is_silent_about, left_about, restart, started_by, within};
use crate::checks::same;
use crate::filter::{self, EPERM, POLICY_CALLS};
use crate::nodewise::Context;
use crate::observer::{self, Observed};
use crate::setting::Setting;

/// Two nodes, and the CPUs of each.
struct Two {
    ids: [NodeId; 2],
    cpus: [Vec<CpuId>; 2],
}

impl Two {
    fn find(context: &Context) -> Result<Self, String> {
        let ids: Vec<NodeId> = context.seen.nodes_with_cpus().iter().collect();
        let cpus: Vec<Vec<CpuId>> =
            ids.iter().map(|node| context.seen.cpus_of(*node).iter().collect()).collect();
        let few = || "expected two nodes with CPUs".to_owned();
        Ok(Self { ids: ids.try_into().map_err(|_| few())?, cpus: cpus.try_into().map_err(|_| few())? })
    }
}

fn says(finding: &Value, at: usize, part: &str) -> Result<(), String> {
    let what = finding["mend"][at]["what"].as_str().unwrap_or_default();
    same(&format!("whether {what:?} has {part:?}"), what.contains(part), true)
}

/// Interleaving over all nodes in a cpuset of one.
pub fn interleaved_in_cpuset(context: &Context) -> Result<(), String> {
    let rule = "cpuset-eats-policy";
    let Two { ids: [a, b], .. } = Two::find(context)?;
    let group = Group::new("nodewise-narrow", &[("cpuset.mems", &b.to_string())])?;
    let all = group.inside([context.path(), "run", "--interleave=all", "--"]);
    let way = format!("kib={MEMORY} reads");
    let program = started_by(&all, &way)?;
    let finding = about(context, rule, &program)?;
    super::about_nodes(&finding, &[b])?;
    let least = (MEMORY << 10) as f64;
    within(&finding, "memory under it", "size_bytes", least..=least * 1.25)?;
    says(&finding, 0, &format!("let its cpuset allow nodes {a}-{b}"))?;
    says(&finding, 1, "start it without the policy")?;
    drop(program);
    let program = started_by(&group.inside([]), &way)?;
    is_silent_about(context, rule, &program)?;
    drop(program);
    group.set("cpuset.mems", &format!("{a}-{b}"))?;
    is_silent_about(context, rule, &started_by(&all, &way)?)
}

/// A program that is asked to interleave, in a container whose filter refuses that.
pub fn refused(context: &Context) -> Result<(), String> {
    let rule = "policy-refused";
    let id = "0123456789abcdef".repeat(4);
    let group = Group::new(&format!("docker-{id}.scope"), &[])?;
    // A container of the name, with a filter that refuses these calls, and with these rights.
    let started = |calls: &[u32], rights: &[&str], policy: &str| -> Result<Observed, String> {
        let path = std::env::temp_dir().join(format!("nodewise-refuses-{}", calls.len()));
        fs::write(&path, filter::program(calls, EPERM)).map_err(|error| error.to_string())?;
        let script = "exec 9<\"$0\"; exec bwrap --dev-bind / / --seccomp 9 \"$@\"";
        let path = path.display().to_string();
        let words = ["sh", "-c", script, &path].into_iter().chain(rights.iter().copied());
        let way = format!("kib={MEMORY} name=mysqld{policy} reads --innodb-numa-interleave=ON");
        started_by(&group.inside(words), &way)
    };
    let program = started(&POLICY_CALLS, &["--cap-drop", "CAP_SYS_NICE"], "")?;
    let finding = about(context, rule, &program)?;
    let asked = finding["summary"].as_str().is_some_and(|text| text.contains("innodb-numa-interleave"));
    same(&format!("whether {finding} names the option"), asked, true)?;
    says(&finding, 0, "--cap-add SYS_NICE")?;
    let concerns = finding["concerns_bytes"].as_u64();
    same(&format!("whether {concerns:?} is its memory"), concerns >= Some(MEMORY << 10), true)?;
    drop(program);
    // With that right the container's filter lets policies pass.
    let nodes = context.seen.nodes_with_memory();
    let other = &POLICY_CALLS[POLICY_CALLS.len() - 1..];
    let program = started(other, &[], &format!(" policy=interleave:{nodes}"))?;
    is_silent_about(context, rule, &program)
}

/// Threads that bound themselves to one CPU of their cpuset.
pub fn self_bound(context: &Context) -> Result<(), String> {
    let rule = "affinity-intersects-to-one";
    let Two { ids: [a, _], cpus: [of_a, of_b] } = Two::find(context)?;
    let all: Vec<CpuId> = of_a.iter().chain(&of_b).copied().collect();
    let cpuset = format!("{}-{}", all[0], all[all.len() - 2]);
    let group = Group::new("nodewise-bound", &[("cpuset.cpus", &cpuset)])?;
    let on = of_a[0];
    let way = format!("kib=1024 workers={on}+{on}+{on}");
    let program = started_by(&group.inside([]), &format!("{way} cpu={on}"))?;
    let finding = about(context, rule, &program)?;
    super::about_nodes(&finding, &[a])?;
    same(
        "summary",
        finding["summary"].as_str(),
        Some(&*format!("3 busy threads share 1 of the {} CPUs of its cpuset", all.len() - 1)),
    )?;
    within(&finding, "its use of these", "share", 0.8..=1.05)?;
    says(&finding, 0, "switch its own binding off")?;
    drop(program);
    let program = started_by(&group.inside([]), &format!("{way} unbound"))?;
    is_silent_about(context, rule, &program)
}

/// A quota of one CPU, and threads on two nodes.
pub fn quota(context: &Context) -> Result<(), String> {
    let rule = "quota-spans-nodes";
    let Two { ids: [a, b], cpus: [of_a, of_b] } = Two::find(context)?;
    let _balancing = Setting::with(BALANCING, "0")?;
    let group = Group::new("nodewise-quota", &[("cpu.max", "100000 100000")])?;
    let way = format!("kib=64 workers={}+{} each={} reads", of_a[0], of_b[0], MEMORY / 2);
    let program = started_by(&group.inside([]), &way)?;
    let finding = about(context, rule, &program)?;
    super::about_nodes(&finding, &[a, b])?;
    within(&finding, "nodes with its memory", "count", 2.0..=2.0)?;
    let quota = finding["evidence"][0]["value"]["text"].as_str();
    same("quota", quota, Some("1 CPUs"))?;
    drop(program);
    let words = restart(context, &finding)?;
    let program = started_by(&group.inside(words.iter().map(String::as_str)), &way)?;
    same("threads", observer::threads(program.pid)?.len(), 3)?;
    let left = left_about(context, rule, &[program.pid])?;
    left.map_or(Ok(()), |finding| {
        is_about(&finding, &program).and(Err(format!("{rule} still fires: {finding}")))
    })
}
