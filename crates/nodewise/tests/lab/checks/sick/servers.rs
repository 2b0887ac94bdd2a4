//! Servers: databases whose memory is on one node, a proxy that confined itself, weights of a model, ranks of MPI.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::super::doctor::run;
use super::super::moving::file;
use super::super::same;
use super::super::short::shell;
use super::super::ways::Nodes;
use super::impostor::{
    Impostor, before_command, concerns_memory_on, evidence, found, found_on_full, found_with, names, silent,
    silent_with, smallest_node,
};
use super::{BALANCING, MEMORY, about_nodes, parent};
use crate::nodewise::Context;
use crate::observer::{ByNode, Observed};
use crate::setting::{self, Setting};

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// mongod without a policy on a node that others fill.
pub fn mongod(context: &Context) -> Result<(), String> {
    let Nodes { ids: [_, b, ..], cpus: [_, on_b, ..] } = Nodes::find(context)?;
    let _balancing = Setting::with(BALANCING, "0")?;
    setting::write(DROP_CACHES, "3")?;
    let (rule, server) = ("mongod-start", Impostor::new("bin/mongod")?);
    let way = format!("kib={MEMORY} cpu={on_b} reads");
    let mut program = server.at_work::<&str>(&[], &way)?;
    silent(context, rule, &program)?;
    let (_full, finding) = found_on_full(context, rule, &program, b)?;
    about_nodes(&finding, &[b])?;
    concerns_memory_on(&finding, &mut program, &[b])?;
    drop(program);
    let program = server.at_work(&before_command(context, &finding)?, &way)?;
    silent(context, rule, &program)
}

/// A pool of more than half a node on one node, and threads on two.
pub fn mysqld(context: &Context) -> Result<(), String> {
    let Nodes { ids: [_, b, ..], cpus: [_, on_b, on_c, _] } = Nodes::find(context)?;
    let _balancing = Setting::with(BALANCING, "0")?;
    setting::write(DROP_CACHES, "3")?;
    let (rule, server) = ("mysqld-interleave", Impostor::new("bin/mysqld")?);
    let half = smallest_node(context)? / 2;
    let way = |kib| format!("kib={kib} cpu={on_b} workers={on_b}+{on_c}");
    // Below half a node it is silent.
    silent(context, rule, &server.at_work::<&str>(&[], &way(half - (16 << 10)))?)?;
    let mut program = server.at_work::<&str>(&[], &way(half + (8 << 10)))?;
    let finding = found(context, rule, &program)?;
    about_nodes(&finding, &[b])?;
    concerns_memory_on(&finding, &mut program, &[b])?;
    names(&finding, "innodb_numa_interleave=ON")?;
    drop(program);
    let program = server.at_work(&before_command(context, &finding)?, &way(half + (8 << 10)))?;
    silent(context, rule, &program)
}

/// A proxy on the CPUs of one node, all busy.
pub fn half_used(context: &Context) -> Result<(), String> {
    let Nodes { ids: [_, b, ..], cpus: [_, on_b, ..] } = Nodes::find(context)?;
    let (rule, proxy) = ("server-on-half", Impostor::new("bin/haproxy")?);
    let program = proxy.at_work::<&str>(&[], &format!("kib=1024 cpu={on_b}"))?;
    let finding = found(context, rule, &program)?;
    about_nodes(&finding, &[b])?;
    let used = evidence(&finding, &format!("its use of the CPUs of node {b}"))?["share"].as_f64();
    same(&format!("whether {used:?} is most of a CPU"), used.is_some_and(|used| used > 0.8), true)?;
    // One for each node is what the manual advises.
    let other = Nodes::find(context)?.cpus[2];
    let second = proxy.at_work::<&str>(&[], &format!("kib=1024 cpu={other}"))?;
    let both = super::left_about(context, rule, &[program.pid, second.pid])?;
    same("finding about one for each node", both, None)?;
    drop((program, second));
    // With this line it leaves its affinity as it was started.
    names(&finding, "no numa-cpu-mapping")?;
    let program = proxy.at_work::<&str>(&[], "kib=1024")?;
    silent(context, rule, &program)
}

/// A file of the host's under another name, whose pages can be dropped; gone when dropped.
struct Weights;

const WEIGHTS: &str = "/tmp/model.gguf";

impl Weights {
    fn new() -> Result<Self, String> {
        let file = super::super::ways::file()?;
        let weights = Self;
        shell(&format!("touch {WEIGHTS} && mount --bind {} {WEIGHTS}", file.display()))?;
        Ok(weights)
    }
}

impl Drop for Weights {
    fn drop(&mut self) {
        let _ = shell(&format!("umount {WEIGHTS}; rm {WEIGHTS}"));
    }
}

/// The pages of its weights, by a program's own count.
fn of_weights(program: &mut Observed) -> Result<ByNode, String> {
    let pages = program.pages()?;
    let weights = pages.values().find(|pages| pages.name == WEIGHTS);
    weights.map(|pages| pages.nodes.clone()).ok_or_else(|| "the program has no weights".to_owned())
}

/// Weights that the first reader left on its node, and threads on two nodes.
pub fn weights(context: &Context) -> Result<(), String> {
    let Nodes { ids: [_, b, ..], cpus: [_, on_b, on_c, _] } = Nodes::find(context)?;
    let rule = "cpu-inference-one-node";
    let thresholds = file("weights.toml");
    fs::write(&thresholds, format!("[{rule}]\nweights_mib = 1\n")).map_err(|error| error.to_string())?;
    let options = ["--thresholds", &thresholds.display().to_string()].map(str::to_owned);
    let options = [options[0].as_str(), options[1].as_str()];
    let _weights = Weights::new()?;
    setting::write(DROP_CACHES, "1")?;
    let server = Impostor::new("bin/llama-server")?;
    let way = format!("file={WEIGHTS} cpu={on_b} workers={on_b}+{on_c}");
    let mut program = server.at_work::<&str>(&[], &way)?;
    let finding = found_with(context, rule, &program, &options)?;
    about_nodes(&finding, &[b])?;
    let nodes = of_weights(&mut program)?;
    let all: u64 = nodes.values().sum();
    let share = nodes.get(&b.number()).map_or(0.0, |there| *there as f64 / all as f64);
    let found = evidence(&finding, &format!("weights on node {b}"))?["share"].as_f64();
    let holds = found.is_some_and(|found| (found - share).abs() < 0.001);
    same(&format!("whether {found:?} is the share {share}"), holds, true)?;
    let size = evidence(&finding, "weights")?["size_bytes"].as_u64();
    same(&format!("size of the weights in {finding}"), size, Some(all))?;
    drop(program);
    let again = server.at_work::<&str>(&[], &format!("file={WEIGHTS} cpu={on_c} workers={on_b}+{on_c}"))?;
    // Started again by another CPU alone it finds the pages where they were.
    about_nodes(&found_with(context, rule, &again, &options)?, &[b])?;
    drop(again);
    run(context, &finding["mend"][0]["commands"])?;
    let mut program = server.at_work(&before_command(context, &finding)?, &way)?;
    let on = of_weights(&mut program)?.len();
    same(&format!("whether weights on {on} nodes are spread"), on > 1, true)?;
    silent_with(context, rule, &program, &options)
}

/// As Open MPI does with two ranks or less: binds to a core, unless it is asked not to.
const LAUNCHER: &str = "#!/bin/sh\n\
    bind='taskset -c CPU'\n\
    if [ \"$1 $2\" = '--bind-to none' ]; then bind=; shift 2; fi\n\
    $bind \"$@\"\n\
    exit $?\n";

/// Four threads of a rank that its launcher bound to one CPU.
pub fn ranks(context: &Context) -> Result<(), String> {
    let Nodes { cpus, .. } = Nodes::find(context)?;
    let (rule, program) = ("ranks-on-one-core", Impostor::new("bin/xhpl")?);
    let launcher = program.write("bin/mpirun", &LAUNCHER.replace("CPU", &cpus[1].to_string()))?;
    fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).map_err(|error| error.to_string())?;
    let launcher = launcher.display().to_string();
    let way = format!("kib=1024 workers={}", cpus.map(|cpu| cpu.to_string()).join("+"));
    let both = |rank: u32| Ok::<_, String>([rank, parent(rank)?]);
    let rank = program.at_work(&[&launcher], &way)?;
    let finding = super::fires_about(context, rule, &both(rank.pid)?)?;
    same("launcher", finding["subject"]["pid"].as_u64(), Some(u64::from(parent(rank.pid)?)))?;
    same("busy threads", evidence(&finding, "its busy threads")?["count"].as_u64(), Some(4))?;
    let own = evidence(&finding, &format!("CPUs of \"xhpl\" ({})", rank.pid))?.to_string();
    same(&format!("whether {own} is one CPU"), own.contains(&format!("1 of 4 CPUs ({})", cpus[1])), true)?;
    drop(rank);
    let words: Vec<String> = before_command(context, &finding)?;
    let words: Vec<&str> =
        words.iter().map(|word| if word == "mpirun" { launcher.as_str() } else { word }).collect();
    let rank = program.at_work(&words, &way)?;
    let left = super::left_about(context, rule, &both(rank.pid)?)?;
    left.map_or(Ok(()), |finding| Err(format!("{rule} still fires: {finding}")))
}
