//! Programs that place others, by their files: the kubelet, Slurm, tuned.

use std::fs;
use std::path::Path;

use nodewise_machine::CpuSet;

use super::super::same;
use super::super::ways::Nodes;
use super::impostor::{Impostor, concerns_memory_on, evidence, found, mends, names, names_node, silent};
use super::{BALANCING, MEMORY, at_work, fires, is_silent};
use crate::nodewise::Context;
use crate::observer::allow;
use crate::setting::{self, Setting};

const CONFIG: &str = "/var/lib/kubelet/config.yaml";
const SLURM: &str = "/etc/slurm/slurm.conf";
const TUNED: &str = "/etc/tuned";
const GROUPS: &str = "/sys/fs/cgroup";
const POD: &str = "kubepods-pod1b2a3c4d_1234_1234_1234_123456789abc.slice";
const CONTAINER: &str =
    "cri-containerd-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope";

/// A file of the site, with its folder; gone when dropped.
struct SiteFile(&'static str);

impl SiteFile {
    fn new(path: &'static str, text: &str) -> Result<Self, String> {
        let folder = Path::new(path).parent().ok_or("a file without a folder")?;
        fs::create_dir_all(folder).map_err(|error| format!("{path}: {error}"))?;
        let file = Self(path);
        file.set(text)?;
        Ok(file)
    }

    fn set(&self, text: &str) -> Result<(), String> {
        setting::write(self.0, text)
    }
}

impl Drop for SiteFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.0);
    }
}

/// The control groups of a container in a pod; gone when dropped.
struct Pod;

impl Pod {
    fn new() -> Result<Self, String> {
        let pod = Self;
        let mut above = GROUPS.to_owned();
        for part in ["kubepods.slice", POD, CONTAINER] {
            setting::write(&format!("{above}/cgroup.subtree_control"), "+cpuset")?;
            above = format!("{above}/{part}");
            fs::create_dir(&above).map_err(|error| format!("{above}: {error}"))?;
        }
        Ok(pod)
    }

    fn path(name: &str) -> String {
        format!("{GROUPS}/kubepods.slice/{POD}/{CONTAINER}/{name}")
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        for parts in [format!("{POD}/{CONTAINER}"), POD.to_owned(), String::new()] {
            let _ = fs::remove_dir(format!("{GROUPS}/kubepods.slice/{parts}"));
        }
    }
}

/// A pod that the CPU manager moves to the CPUs of another node than its memory is on.
pub fn kubelet(context: &Context) -> Result<(), String> {
    let Nodes { ids: [a, _, c, _], cpus: [on_a, _, on_c, _] } = Nodes::find(context)?;
    let _balancing = Setting::with(BALANCING, "0")?;
    let rule = "kubelet-cpu-only";
    let config = SiteFile::new(CONFIG, "kind: KubeletConfiguration\ncpuManagerPolicy: static\n")?;
    let _pod = Pod::new()?;
    let enter = format!("echo $$ > {} && exec \"$@\"", Pod::path("cgroup.procs"));
    setting::write(&Pod::path("cpuset.cpus"), &on_c.to_string())?;
    let mut program = at_work("in a pod", &["sh", "-c", &enter, "sh"], &format!("kib={MEMORY} reads"))?;
    setting::write(&Pod::path("cpuset.cpus"), &on_a.to_string())?;
    let finding = found(context, rule, &program)?;
    names_node(&finding, c)?;
    concerns_memory_on(&finding, &mut program, &[c])?;
    let policy = names(&finding, "memoryManagerPolicy: Static")?;
    config.set(&format!("kind: KubeletConfiguration\ncpuManagerPolicy: static\n{policy}\n"))?;
    silent(context, rule, &program)?;
    // Under this policy the kubelet gives a pod the memory of its node, which brings its pages there.
    found(context, "memory-stranded", &program)?;
    setting::write(&Pod::path("cpuset.mems"), &a.to_string())?;
    silent(context, "memory-stranded", &program)
}

/// More nodes than the topology manager takes by default.
pub fn many_nodes(context: &Context) -> Result<(), String> {
    let rule = "kubelet-too-many-nodes";
    let count = context.seen.nodes.len();
    let begin = "kind: KubeletConfiguration\ntopologyManagerPolicy: restricted\n";
    let config = SiteFile::new(CONFIG, "kind: KubeletConfiguration\ntopologyManagerPolicy: none\n")?;
    is_silent(context, rule)?;
    config.set(begin)?;
    let finding = fires(context, rule)?;
    same("nodes", evidence(&finding, "nodes")?["count"].as_u64(), Some(count as u64))?;
    let said = mends(&finding);
    let words = |from: &str, to: &str| {
        let rest = said.split_once(from)?.1;
        Some(rest.split_once(to).map_or(rest, |(first, _)| first).to_owned())
    };
    let block = words("below ", ":").ok_or("no block")?;
    let option = words(&format!("{block}: "), ";").ok_or("no option")?;
    config.set(&format!("{begin}{block}:\n  {option}\n"))?;
    is_silent(context, rule)
}

/// Slurm's daemon without a plugin that binds.
pub fn slurm(context: &Context) -> Result<(), String> {
    let rule = "slurm-no-binding";
    let begin = "ClusterName=lab\nProctrackType=proctrack/cgroup\n";
    let config = SiteFile::new(SLURM, &format!("{begin}TaskPlugin=task/cgroup\n"))?;
    is_silent(context, rule)?;
    let daemon = Impostor::new("sbin/slurmd")?;
    let _program = daemon.at_work::<&str>(&[], "kib=1024")?;
    let finding = fires(context, rule)?;
    same("plugins", evidence(&finding, "TaskPlugin")?["text"].as_str(), Some("task/cgroup"))?;
    let line = names(&finding, "TaskPlugin=task/affinity,task/cgroup")?;
    config.set(&format!("{begin}{line}\n"))?;
    is_silent(context, rule)
}

/// A profile that switched balancing off, beside memory that nobody places.
pub fn profile(context: &Context) -> Result<(), String> {
    let Nodes { cpus, .. } = Nodes::find(context)?;
    let rule = "profile-against-workload";
    let balancing = Setting::with(BALANCING, "0")?;
    let active = SiteFile::new("/etc/tuned/active_profile", "network-latency\n")?;
    let program =
        at_work("away", &[], &format!("kib={MEMORY} cpu={} touched-on={} reads", cpus[0], cpus[2]))?;
    // Bound to a CPU it is placed: then the profile does no harm.
    is_silent(context, rule)?;
    allow(program.pid, &cpus.into_iter().collect::<CpuSet>())?;
    let finding = fires(context, rule)?;
    let said = evidence(&finding, "active profile")?["text"].as_str().unwrap_or_default().to_owned();
    same(&format!("whether {said} names the profile"), said.contains("network-latency"), true)?;
    // What tuned would read: a value is all that is behind the sign.
    let include = names(&finding, "include=network-latency)")?.trim_end_matches(')');
    let set = names(&finding, "kernel.numa_balancing=1")?;
    let own = SiteFile::new("/etc/tuned/own/tuned.conf", &format!("[main]\n{include}\n[sysctl]\n{set}\n"))?;
    active.set("own\n")?;
    let (_, value) = set.split_once('=').ok_or("no value")?;
    balancing.set(value)?;
    let silent = is_silent(context, rule);
    drop((own, active));
    let _ = fs::remove_dir(format!("{TUNED}/own"));
    silent
}
