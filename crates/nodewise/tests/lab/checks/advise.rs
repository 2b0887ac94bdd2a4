//! Programs whose right placement is known: `advise` names it, and the commands that it prints bring them there.

use std::fs;

use nodewise_machine::{CpuSet, NodeId};
use nodewise_syscall::{Task, affinity};
use serde_json::Value;

use super::moving::{expect, file};
use super::ways::Nodes;
use super::{balance, doctor, same};
use crate::guest::FIGURE;
use crate::nodewise::{Context, complaint};
use crate::observer::{Observed, threads};
use crate::setting::Setting;

/// Memory of a program, in KiB.
const MEMORY: u64 = 64 << 10;
/// Windows to try until one shows what an advice is applied for.
const WINDOWS: u32 = 5;
const BALANCING: &str = "/proc/sys/kernel/numa_balancing";

/// Windows in which a program may still be at its start.
const SETTLES: usize = 5;

/// An advice about a process, and the exit code of `--check`.
struct Advised {
    code: Option<i32>,
    document: Value,
}

impl Advised {
    fn new(context: &Context, program: &Observed) -> Result<Self, String> {
        let pid = program.pid.to_string();
        let output = context.output(&["advise", "--json", "--check", "--window=2s", "--horizon=2s", &pid])?;
        let text = String::from_utf8_lossy(&output.stdout);
        let document =
            serde_json::from_str(&text).map_err(|error| format!("{error}: {text}{}", complaint(&output)))?;
        Ok(Self { code: output.status.code(), document })
    }

    /// The same when the program has stopped growing: on a busy host the first pages of its work come late.
    fn settled(context: &Context, program: &Observed) -> Result<Self, String> {
        let mut advised = Self::new(context, program)?;
        for _ in 0..SETTLES {
            if advised.not_known("growth").is_none() {
                break;
            }
            advised = Self::new(context, program)?;
        }
        Ok(advised)
    }

    /// The row and the options of the only placement.
    fn is(&self, row: &str, options: &[String]) -> Result<(), String> {
        same(&format!("row: {}", self.document), self.document["row"]["row"].as_str(), Some(row))?;
        let given = self.document["placements"][0]["options"].as_array().into_iter().flatten();
        let given: Vec<&str> = given.filter_map(Value::as_str).collect();
        same("options", given, options.iter().map(String::as_str).collect())
    }

    /// Why a part of the evidence is not known.
    fn not_known(&self, name: &str) -> Option<&str> {
        let mut evidence = self.document["evidence"].as_array().into_iter().flatten();
        evidence.find(|fact| fact["name"] == name)?["not_known"].as_str()
    }

    /// A share of the evidence.
    fn share(&self, name: &str) -> Result<f64, String> {
        let mut evidence = self.document["evidence"].as_array().into_iter().flatten();
        let found = evidence.find(|fact| fact["name"] == name);
        let share = found.and_then(|fact| fact["value"]["share"].as_f64());
        share.ok_or_else(|| format!("{name} is not known: {}", self.document))
    }
}

/// Runs the commands of the moment, or those that undo them.
fn run(context: &Context, document: &Value, key: &str) -> Result<(), String> {
    let ways = document["at_once"].as_array().filter(|ways| !ways.is_empty());
    let ways = ways.ok_or_else(|| format!("no command of the moment: {document}"))?;
    ways.iter().try_for_each(|way| doctor::run(context, &way[key]))
}

/// A program of fixed size is bound to one node, its threads and its memory.
pub fn small(context: &Context) -> Result<(), String> {
    let Nodes { cpus: [_, on_b, ..], ids } = Nodes::find(context)?;
    let _balancing = Setting::with(BALANCING, "0")?;
    let mut program = Observed::start("small", &[], &format!("kib={MEMORY} touched-on={on_b} reads"))?;
    program.ask("work")?;
    let advised = Advised::settled(context, &program)?;
    // Its memory is on the second node; the load of all nodes decides with it.
    let on = |node: &_| advised.is("6", &[format!("--cpunodebind={node}"), format!("--membind={node}")]);
    let found: Vec<Result<(), String>> = ids.iter().map(on).collect();
    if found.iter().all(Result::is_err) {
        return found.into_iter().next().expect("there are nodes");
    }
    // Nothing binds it, which is what the advice asks for.
    same("exit code", advised.code, Some(1))
}

/// A program that runs on another node than that of its memory.
pub fn away(context: &Context) -> Result<(), String> {
    let Nodes { cpus: [on_a, _, on_c, _], ids: [a, ..] } = Nodes::find(context)?;
    let _balancing = Setting::with(BALANCING, "0")?;
    let way = format!("kib={MEMORY} cpu={on_a} touched-on={on_c} reads");
    let mut program = Observed::start("away", &[], &way)?;
    program.ask("work")?;
    let before = Advised::settled(context, &program)?;
    // Other CPUs than its own may be outside of its cpuset.
    before.is("6", &[format!("--cpunodebind={a}"), format!("--membind={a}")])?;
    same("exit code before", before.code, Some(1))?;
    run(context, &before.document, "commands")?;
    let after = Advised::new(context, &program)?;
    let name = "remote if shared evenly";
    let shares = (before.share(name)?, after.share(name)?);
    println!("remote share of a program away from its memory: {:.3} before, {:.3} after", shares.0, shares.1);
    if shares.0 < 0.8 || shares.1 > 0.2 {
        return Err(format!("remote share {shares:?}: {}", after.document));
    }
    same(&format!("exit code after: {}", after.document), after.code, Some(0))?;
    run(context, &before.document, "undo")?;
    let undone = Advised::new(context, &program)?;
    same("exit code after undo", undone.code, Some(1))?;
    if undone.share(name)? < 0.8 {
        return Err(format!("not undone: {}", undone.document));
    }
    Ok(())
}

/// The growth of a program in its first minute says nothing of what it will need: it is not bound.
pub fn growing(context: &Context) -> Result<(), String> {
    let Nodes { cpus: [_, _, on_c, _], .. } = Nodes::find(context)?;
    let _balancing = Setting::with(BALANCING, "0")?;
    let mut program = Observed::start("growing", &[], &format!("kib={MEMORY} touched-on={on_c}"))?;
    program.ask("grow")?;
    let advised = Advised::new(context, &program)?;
    let growth = advised.not_known("growth");
    same(&format!("growth: {}", advised.document), growth, Some("it is younger than a minute"))?;
    let options = advised.document["placements"].to_string();
    same(&format!("never a binding: {options}"), options.contains("--membind"), false)
}

/// The CPUs of all threads of a program.
fn cpus(program: &Observed) -> Result<Vec<CpuSet>, String> {
    let cpus = |thread: &u32| affinity::cpus(Task::new(*thread)?).ok();
    let of_all = threads(program.pid)?.iter().map(cpus).collect::<Option<_>>();
    of_all.ok_or_else(|| "a thread has ended".to_owned())
}

/// `advise --apply` with these words; the exit code and the part of the document that is about it.
fn apply(context: &Context, words: &[&str]) -> Result<(Option<i32>, Value), String> {
    let words = [&["advise", "--json", "--window=2s", "--horizon=2s", "--apply"], words].concat();
    let output = context.output(&words)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let document: Value =
        serde_json::from_str(&text).map_err(|error| format!("{error}: {text}{}", complaint(&output)))?;
    Ok((output.status.code(), document["apply"].clone()))
}

/// As [`apply`], until something was done to the process, or is planned: where a busy host gives a guest no time, a program is
/// idle in a window, and nothing is advised for it.
fn apply_at_last(context: &Context, words: &[&str]) -> Result<(Option<i32>, Value), String> {
    for _ in 1..WINDOWS {
        let (code, mut done) = apply(context, words)?;
        let plans = done["pages"].as_array().is_some_and(|pages| !pages.is_empty());
        if plans || !done["end"].is_null() || code != Some(0) {
            return Ok((code, done));
        }
        println!("{FIGURE}a window without an advice that is applied: {done}");
        undo_all(context, &mut done)?;
    }
    apply(context, words)
}

/// The command that `apply` prints to take it back.
fn undo(context: &Context, apply: &Value) -> Result<(), String> {
    let [command] = &apply["undo"].as_array().map(Vec::as_slice).unwrap_or_default() else {
        return Err(format!("no single command: {apply}"));
    };
    let words: Vec<&str> = command.as_str().unwrap_or_default().split(' ').skip(1).collect();
    let undone = context.output(&words)?;
    same(&format!("exit code of {command}: {}", complaint(&undone)), undone.status.code(), Some(0))
}

/// All of them, in their order.
fn undo_all(context: &Context, apply: &mut Value) -> Result<(), String> {
    for command in apply["undo"].as_array().cloned().unwrap_or_default() {
        apply["undo"] = vec![command].into();
        undo(context, apply)?;
    }
    Ok(())
}

/// The pages of a program that keeps to one CPU come to it, by the count of the program itself, and go back.
pub fn applied(context: &Context) -> Result<(), String> {
    let _balancing = Setting::with(BALANCING, "0")?;
    let Nodes { cpus: [on_a, _, on_c, _], ids: [a, _, c, _] } = Nodes::find(context)?;
    let way = format!("kib={MEMORY} cpu={on_a} touched-on={on_c} reads");
    let mut program = Observed::start("away", &[], &way)?;
    program.ask("work")?;
    let (all, pid, before) = (MEMORY << 10, program.pid.to_string(), cpus(&program)?);
    let (code, planned) = apply_at_last(context, &["--dry-run", &pid])?;
    same(&format!("exit code of a dry run: {planned}"), code, Some(0))?;
    expect(planned["most_bytes"].as_u64() >= Some(all), || planned.to_string())?;
    same("pages after a dry run", balance::on(&mut program, c)?, all)?;
    let journal = format!("--journal={}", file("advise").display());
    let (code, done) = apply_at_last(context, &[&journal, &pid])?;
    same(&format!("exit code: {done}"), code, Some(0))?;
    same(&format!("pages at its CPU after {done}"), balance::on(&mut program, a)?, all)?;
    same("CPUs, which are those of the advice already", cpus(&program)?, before)?;
    println!("advise --apply: {}", done["result"]);
    undo(context, &done)?;
    same("pages that are back", balance::on(&mut program, c)?, all)
}

/// A program that may run everywhere is kept with its memory on one node, whichever has the time for it, and set free.
pub fn applied_to_threads(context: &Context) -> Result<(), String> {
    let _balancing = Setting::with(BALANCING, "0")?;
    let (mut program, away) = balance::start(context, "")?;
    let (all, pid, before) = (MEMORY << 10, program.pid.to_string(), cpus(&program)?);
    let journal = format!("--journal={}", file("advise-threads").display());
    let (code, done) = apply_at_last(context, &[&journal, &pid])?;
    same(&format!("exit code: {done}"), code, Some(0))?;
    let narrowed = cpus(&program)?;
    let is_home = |node: &NodeId| narrowed.iter().all(|cpus| *cpus == context.seen.cpus_of(*node));
    let home = context.seen.node_ids().iter().find(is_home);
    let home = home.ok_or_else(|| format!("CPUs {narrowed:?}: {done}"))?;
    same("pages at home", balance::on(&mut program, home)?, all)?;
    println!("advise --apply: {}", done["result"]);
    undo(context, &done)?;
    same("pages that are back", balance::on(&mut program, away)?, all)?;
    same("CPUs that are back", cpus(&program)?, before)
}

/// A unit's process with a policy of its own: pages move, the policy stays, and a drop-in is written and taken back.
pub fn applied_to_unit(context: &Context) -> Result<(), String> {
    const UNIT: &str = "nodewise-lab.service";
    const DROP_IN: &str = "/etc/systemd/system/nodewise-lab.service.d/50-nodewise.conf";
    let _balancing = Setting::with(BALANCING, "0")?;
    let Nodes { cpus: [on_a, ..], ids: [_, _, away, _] } = Nodes::find(context)?;
    // On one CPU: the node for a program that may run everywhere depends on the load of the moment.
    let way = format!("kib={MEMORY} cpu={on_a} policy=bind:{away} reads");
    let mut program = Observed::start("unit", &[], &way)?;
    program.ask("work")?;
    let all = MEMORY << 10;
    let words = |error: std::io::Error| error.to_string();
    fs::create_dir_all("/etc/systemd/system").map_err(words)?;
    let group = "/sys/fs/cgroup/system.slice";
    let unit = format!("{group}/{UNIT}");
    fs::create_dir_all(&unit).map_err(words)?;
    fs::write(format!("{unit}/cgroup.procs"), program.pid.to_string()).map_err(words)?;
    let journal = format!("--journal={}", file("advise-unit").display());
    let (code, mut done) = apply_at_last(context, &[&journal, "--unit", UNIT])?;
    same(&format!("exit code: {done}"), code, Some(0))?;
    same("pages left behind", balance::on(&mut program, away)?, 0)?;
    let left = done["not_applied"].to_string();
    expect(left.contains("memory policy"), || left.clone())?;
    let text = fs::read_to_string(DROP_IN).map_err(|error| format!("{DROP_IN}: {error}"))?;
    expect(text.contains("NUMAPolicy=bind\n") && text.contains("CPUAffinity="), || text.clone())?;
    let next = done["drop_in"]["next"].to_string();
    expect(next.contains("systemctl daemon-reload"), || next.clone())?;
    // The process first, then the file.
    same("commands that take it back", done["undo"].as_array().map(Vec::len), Some(2))?;
    undo_all(context, &mut done)?;
    same("pages that are back", balance::on(&mut program, away)?, all)?;
    same("the drop-in", std::path::Path::new(DROP_IN).exists(), false)?;
    drop(program);
    let removed = fs::remove_dir(&unit).and_then(|()| fs::remove_dir(group));
    removed.map_err(|error| format!("{unit}: {error}"))
}
