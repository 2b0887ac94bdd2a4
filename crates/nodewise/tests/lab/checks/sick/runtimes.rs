//! Runtimes: OpenMP, Java, Go.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nodewise_machine::{CpuId, NodeId};
use serde_json::Value;

use super::super::doctor::Diagnosed;
use super::super::same;
use super::super::short::shell;
use super::super::ways::Nodes;
use super::impostor::{Impostor, before_command, evidence, found, names, silent, smallest_node};
use super::{BALANCING, MEMORY, about_nodes};
use crate::cpuset::Cpuset;
use crate::nodewise::Context;
use crate::setting::Setting;

/// How long a program may take until it is at work.
const STARTS: Duration = Duration::from_secs(180);

/// A program of the system's that runs; it ends when dropped.
struct Real(Child);

impl Real {
    fn start(words: &[String], folder: &Path) -> Result<Self, String> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
        command.spawn().map(Self).map_err(|error| format!("{words:?}: {error}"))
    }

    /// Waits until its file has this word.
    fn says(&mut self, file: &Path, word: &str) -> Result<String, String> {
        let begun = Instant::now();
        loop {
            let text = fs::read_to_string(file).unwrap_or_default();
            if text.contains(word) {
                return Ok(text);
            }
            if begun.elapsed() > STARTS || self.0.try_wait().map_err(|error| error.to_string())?.is_some() {
                return Err(format!("no {word:?} in {}: {text}", file.display()));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The finding of a rule that fires about it.
    fn fires(&self, context: &Context, rule: &str) -> Result<Value, String> {
        Diagnosed::fires(context, &["--window=2s", &format!("--pid={}", self.0.id())], rule)
    }

    /// The finding of a rule about it in one window.
    fn finding(&self, context: &Context, rule: &str) -> Result<Option<Value>, String> {
        let pid = format!("--pid={}", self.0.id());
        let found = Diagnosed::with(context, &["--window=2s", &pid])?;
        let lacks = [&found.document["not_examined"], &found.document["not_examined_processes"]];
        let lacks = lacks.map(ToString::to_string).join("");
        same(
            &format!("whether {rule} lacked facts: {lacks}"),
            lacks.contains(&format!("\"{rule}\"")),
            false,
        )?;
        Ok(found.finding(rule).cloned())
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An empty folder below that of temporary files.
fn folder(name: &str) -> Result<PathBuf, String> {
    let folder = std::env::temp_dir().join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// A program that fills memory in a parallel loop and works on it in others. Its threads meet on two CPUs; where nothing
/// binds them, the first one fills all memory, as a program does that reads its input.
const PARALLEL: &str = r##"
#define _GNU_SOURCE
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    enum { WORDS = 8 << 20 };
    double *data = malloc(WORDS * sizeof *data);
    if (omp_get_proc_bind() == omp_proc_bind_false)
        for (long at = 0; at < WORDS; at++) data[at] = at;
    #pragma omp parallel for schedule(static)
    for (long at = 0; at < WORDS; at++) data[at] = 1;
    fclose(fopen("ready", "w"));
    for (double sum = 0;; sum = 0) {
        #pragma omp parallel for schedule(static) reduction(+ : sum)
        for (long at = 0; at < WORDS; at++) sum += data[at];
        if (sum < 0) return 1;
    }
}
"##;

/// Threads of OpenMP on all nodes, and their memory on one.
pub fn openmp(context: &Context) -> Result<(), String> {
    let _balancing = Setting::with(BALANCING, "0")?;
    let (rule, folder) = ("openmp-unbound", folder("openmp")?);
    fs::write(folder.join("parallel.c"), PARALLEL).map_err(|error| error.to_string())?;
    let program = folder.join("parallel").display().to_string();
    shell(&format!("gcc -O1 -fopenmp -o {program} {program}.c"))?;
    let started = |words: &[String]| -> Result<Real, String> {
        let _ = fs::remove_file(folder.join("ready"));
        let mut real = Real::start(words, &folder)?;
        let begun = Instant::now();
        while !folder.join("ready").exists() {
            if begun.elapsed() > STARTS || real.0.try_wait().is_ok_and(|ended| ended.is_some()) {
                return Err(format!("{words:?} did not start"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(real)
    };
    let real = started(std::slice::from_ref(&program))?;
    let finding = real.fires(context, rule)?;
    same("process", finding["subject"]["pid"].as_u64(), Some(u64::from(real.0.id())))?;
    let library = evidence(&finding, "library")?["text"].as_str().unwrap_or_default();
    same(&format!("whether {library} is that of GCC"), library.starts_with("libgomp.so"), true)?;
    let threads = fs::read_dir(format!("/proc/{}/task", real.0.id())).map_err(|error| error.to_string())?;
    same("threads", evidence(&finding, "threads")?["count"].as_u64(), Some(threads.count() as u64))?;
    drop(real);
    let words: Vec<String> = before_command(context, &finding)?;
    let env = ["env".to_owned()].into_iter().chain(words).chain([program]).collect::<Vec<_>>();
    let left = started(&env)?.finding(context, rule)?;
    let _ = fs::remove_dir_all(&folder);
    left.map_or(Ok(()), |finding| Err(format!("{rule} still fires: {finding}")))
}

/// A heap on one node, and threads on two.
pub fn java_unused(context: &Context) -> Result<(), String> {
    let Nodes { ids: [_, b, c, _], cpus: [_, on_b, on_c, _] } = Nodes::find(context)?;
    let _balancing = Setting::with(BALANCING, "0")?;
    let (rule, java) = ("jvm-numa-unused", Impostor::new("jvm/bin/java")?);
    java.write("jvm/release", "JAVA_VERSION=\"17.0.15\"\n")?;
    let kib = smallest_node(context)? / 4 + (8 << 10);
    let way = format!("kib={kib} cpu={on_b} workers={on_b}+{on_c}");
    let program = java.at_work::<&str>(&[], &way)?;
    let finding = found(context, rule, &program)?;
    about_nodes(&finding, &[b, c])?;
    same("collector", evidence(&finding, "collector")?["text"].as_str(), Some("G1"))?;
    let size = evidence(&finding, "its memory")?["size_bytes"].as_u64().unwrap_or_default();
    let holds = (kib << 10..(kib << 10) + (16 << 20)).contains(&size);
    same(&format!("whether {size} bytes are {kib} KiB and a little"), holds, true)?;
    drop(program);
    let option = names(&finding, "-XX:+UseNUMA")?;
    let program = java.at_work::<&str>(&[], &format!("{way} {option}"))?;
    silent(context, rule, &program)?;
    drop(program);
    // Before version 14 the option does nothing for G1.
    java.write("jvm/release", "JAVA_VERSION=\"11.0.27\"\n")?;
    silent(context, rule, &java.at_work::<&str>(&[], &way)?)
}

/// Java itself, in a control group with memory of one node: it says that it does not know nodes.
pub fn java_void(context: &Context) -> Result<(), String> {
    let Nodes { ids: [a, _, c, _], cpus: [on_a, _, on_c, _] } = Nodes::find(context)?;
    let (rule, folder) = ("jvm-numa-void", folder("java")?);
    let log = folder.join("log");
    let options =
        "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC -Xms96m -Xmx96m -XX:+AlwaysPreTouch -XX:+UseNUMA";
    let registry = format!("{options} -Xlog:gc+init:file=log -m java.rmi/sun.rmi.registry.RegistryImpl 0");
    let java: Vec<String> = ["java"].into_iter().chain(registry.split(' ')).map(str::to_owned).collect();
    let started = |before: &[String], enabled: &str| -> Result<Real, String> {
        let _ = fs::remove_file(&log);
        let mut real = Real::start(&[before, &java].concat(), &folder)?;
        let said = real.says(&log, "NUMA Support:")?;
        same(&format!("support in {said}"), said.contains(&format!("NUMA Support: {enabled}")), true)?;
        real.says(&log, "Heap")?;
        Ok(real)
    };
    let group = Cpuset::new(&format!("{on_a},{on_c}"), &a.to_string())?;
    let enter = format!("echo $$ > {} && exec \"$@\"", group.tasks());
    let enter = ["sh", "-c", &enter, "sh"].map(str::to_owned);
    let real = started(&enter, "Disabled")?;
    let finding = real.fires(context, rule)?;
    about_nodes(&finding, &[a, c])?;
    same(
        "nodes of its memory",
        evidence(&finding, "nodes of its memory")?["text"].as_str(),
        Some(&*a.to_string()),
    )?;
    // In place it cannot be enabled; with memory of both nodes it is from the start.
    names(&finding, &format!("cpuset.mems={a},{c}"))?;
    drop(real);
    group.allow(&format!("{a},{c}"))?;
    let real = started(&enter, "Enabled")?;
    let left = real.finding(context, rule)?;
    drop((real, group));
    left.map_or(Ok(()), |finding| Err(format!("{rule} still fires: {finding}")))?;
    let checked = misaligned(context, rule, [a, c], &started);
    let _ = fs::remove_dir_all(&folder);
    checked
}

/// Starts Java behind words, and expects this support of nodes.
type Start<'a> = dyn Fn(&[String], &str) -> Result<Real, String> + 'a;

/// CPUs of two nodes and memory of all: this version goes on, with a heap on nodes where no thread runs.
fn misaligned(context: &Context, rule: &str, [a, c]: [NodeId; 2], started: &Start<'_>) -> Result<(), String> {
    let words = [context.path(), "run", &format!("--cpunodebind={a},{c}"), "--"].map(str::to_owned);
    let real = started(&words, "Enabled")?;
    let finding = real.fires(context, rule)?;
    drop(real);
    // Its CPUs are as before.
    let real = started(&[&words[..], &before_command(context, &finding)?].concat(), "Enabled")?;
    let left = real.finding(context, rule)?;
    left.map_or(Ok(()), |finding| Err(format!("{rule} still fires: {finding}")))
}

/// The note that the linker of Go writes: owner `Go`, type 4. That of other linkers has the owner `GNU` and type 3.
fn as_of_go(file: &mut [u8]) -> Result<(), String> {
    let id = *b"\x03\0\0\0GNU\0";
    // Notes are near the beginning.
    let at = file.windows(id.len()).take(1 << 12).position(|bytes| bytes == id).ok_or("no build id")?;
    file[at..at + id.len()].copy_from_slice(b"\x04\0\0\0Go\0\0");
    Ok(())
}

/// A program of Go on two nodes.
pub fn go(context: &Context) -> Result<(), String> {
    let Nodes { ids: [_, b, c, _], cpus: [_, on_b, on_c, _] } = Nodes::find(context)?;
    let rule = "go-across-nodes";
    let way = workers(on_b, on_c);
    let other = Impostor::new("bin/tidb-server")?;
    silent(context, rule, &other.at_work::<&str>(&[], &way)?)?;
    drop(other);
    let server = Impostor::changed("bin/tidb-server", as_of_go)?;
    let program = server.at_work::<&str>(&[], &way)?;
    let finding = found(context, rule, &program)?;
    about_nodes(&finding, &[b, c])?;
    same("GOMAXPROCS", evidence(&finding, "GOMAXPROCS")?["text"].as_str(), Some("not set"))?;
    drop(program);
    let program = server.at_work(&before_command(context, &finding)?, &way)?;
    silent(context, rule, &program)?;
    drop(program);
    let limited = ["env", "GOMAXPROCS=1"];
    silent(context, rule, &server.at_work(&limited, &way)?)
}

fn workers(on_b: CpuId, on_c: CpuId) -> String {
    format!("kib={MEMORY} cpu={on_b} workers={on_b}+{on_c}")
}
