//! Programs whose right placement is known: `advise` names it, and the commands that it prints bring them there.

use serde_json::Value;

use super::ways::Nodes;
use super::{doctor, same};
use crate::nodewise::{Context, complaint};
use crate::observer::Observed;
use crate::setting::Setting;

/// Memory of a program, in KiB.
const MEMORY: u64 = 64 << 10;
const BALANCING: &str = "/proc/sys/kernel/numa_balancing";

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

    /// The row and the options of the only placement.
    fn is(&self, row: &str, options: &[String]) -> Result<(), String> {
        same(&format!("row: {}", self.document), self.document["row"]["row"].as_str(), Some(row))?;
        let given = self.document["placements"][0]["options"].as_array().into_iter().flatten();
        let given: Vec<&str> = given.filter_map(Value::as_str).collect();
        same("options", given, options.iter().map(String::as_str).collect())
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
    let advised = Advised::new(context, &program)?;
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
    let before = Advised::new(context, &program)?;
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
    let growth = advised.document["evidence"].as_array().into_iter().flatten();
    let growth = growth.filter(|fact| fact["name"] == "growth").find_map(|fact| fact["not_known"].as_str());
    same(&format!("growth: {}", advised.document), growth, Some("it is younger than a minute"))?;
    let options = advised.document["placements"].to_string();
    same(&format!("never a binding: {options}"), options.contains("--membind"), false)
}
