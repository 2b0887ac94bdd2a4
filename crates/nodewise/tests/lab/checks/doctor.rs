//! Sick systems: `doctor` names the disease and its subject, the mend that it prints is run as it is, and it is
//! silent; what undoes the mend brings the disease back.

use std::process::{Command, Output};

use nodewise_machine::{Bytes, NodeId, NodeSet};
use serde_json::Value;

use super::same;
use super::ways::Nodes;
use crate::nodewise::{Context, complaint};
use crate::observer::Observed;
use crate::setting::{self, Setting};

/// Memory of a program, in KiB: more than a twentieth of a node.
const MEMORY: u64 = 64 << 10;
/// The most other memory of a program, in KiB.
const OWN: u64 = 16 << 10;
/// The most programs that fill a node.
const MOST_PROGRAMS: usize = 6;
const BALANCING: &str = "/proc/sys/kernel/numa_balancing";
/// Windows to try until one shows what goes on: a busy host can take a guest's time for the whole of one.
const WINDOWS: usize = 3;

/// One diagnosis.
pub(super) struct Diagnosed {
    code: Option<i32>,
    pub(super) document: Value,
}

impl Diagnosed {
    pub(super) fn new(context: &Context) -> Result<Self, String> {
        Self::with(context, &["--window=2s"])
    }

    /// One with these options.
    pub(super) fn with(context: &Context, options: &[&str]) -> Result<Self, String> {
        let output = context.output(&[&["doctor", "--json"], options].concat())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let document =
            serde_json::from_str(&text).map_err(|error| format!("{error}: {text}{}", complaint(&output)))?;
        Ok(Self { code: output.status.code(), document })
    }

    /// The finding of a rule that fires in one of some windows with these options.
    pub(super) fn fires(context: &Context, options: &[&str], rule: &str) -> Result<Value, String> {
        let mut last = Value::Null;
        for _ in 0..WINDOWS {
            let found = Self::with(context, options)?;
            if let Some(finding) = found.finding(rule) {
                return Ok(finding.clone());
            }
            last = found.document;
        }
        Err(format!("{rule} does not fire: {last}"))
    }

    /// The finding of a rule, by itself or among those that another one explains.
    pub(super) fn finding(&self, rule: &str) -> Option<&Value> {
        let findings = self.document["findings"].as_array().into_iter().flatten();
        let mut all = findings.flat_map(|finding| {
            [finding].into_iter().chain(finding["explains"].as_array().into_iter().flatten())
        });
        all.find(|finding| finding["id"].as_str() == Some(rule))
    }

    /// Findings of warning or worse.
    fn heads(&self) -> Vec<&Value> {
        let findings = self.document["findings"].as_array().into_iter().flatten();
        findings
            .filter(|finding| matches!(finding["severity"].as_str(), Some("warning" | "critical")))
            .collect()
    }

    /// The one finding of warning or worse, and what it explains.
    fn head(&self, rule: &str, explains: &[&str]) -> Result<&Value, String> {
        let heads = self.heads();
        let [head] = heads[..] else { return Err(format!("expected {rule} alone: {}", self.document)) };
        same("rule", head["id"].as_str(), Some(rule))?;
        let explained = head["explains"].as_array().into_iter().flatten();
        let explained: Vec<&str> = explained.filter_map(|finding| finding["id"].as_str()).collect();
        for wanted in explains {
            if !explained.contains(wanted) {
                return Err(format!("{rule} does not explain {wanted}: {}", self.document));
            }
        }
        same("exit code", self.code, Some(1))?;
        Ok(head)
    }

    /// The rules of all findings, of explained ones as well.
    fn ids(&self) -> Vec<&str> {
        let findings = self.document["findings"].as_array().into_iter().flatten();
        let with_explained = findings.flat_map(|finding| {
            [finding].into_iter().chain(finding["explains"].as_array().into_iter().flatten())
        });
        with_explained.filter_map(|finding| finding["id"].as_str()).collect()
    }

    fn silent(&self) -> Result<(), String> {
        if self.heads().is_empty() && self.code == Some(0) {
            return Ok(());
        }
        Err(format!("expected silence, exit code {:?}: {}", self.code, self.document))
    }
}

/// Runs commands as they are printed, but for the folder of nodewise.
pub(super) fn run(context: &Context, commands: &Value) -> Result<(), String> {
    let commands = commands.as_array().filter(|commands| !commands.is_empty()).ok_or("no command")?;
    for command in commands {
        let command = command.as_str().ok_or("a command is text")?;
        let path = std::path::Path::new(context.path());
        let command = match command.strip_prefix("nodewise ") {
            Some(rest) => format!("{} {rest}", path.display()),
            None => command.to_owned(),
        };
        let ran = Command::new("sh").args(["-c", &command]).current_dir(std::env::temp_dir()).output();
        let output: Output = ran.map_err(|error| format!("{command}: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stdout);
            return Err(format!("{command}: {}: {said}{}", output.status, complaint(&output)));
        }
    }
    Ok(())
}

/// The disease is found, its mend makes it go away, and undoing that brings it back.
fn mended_and_back(context: &Context, rule: &str, explains: &[&str]) -> Result<Value, String> {
    let found = Diagnosed::new(context)?;
    let head = found.head(rule, explains)?;
    let mend = &head["mend"][0];
    run(context, &mend["commands"]).map_err(|error| format!("mend of {rule}: {error}"))?;
    Diagnosed::new(context)?.silent().map_err(|error| format!("{rule}, mended: {error}"))?;
    run(context, &mend["undo"]).map_err(|error| format!("undo of {rule}: {error}"))?;
    Diagnosed::new(context)?.head(rule, &[]).map_err(|error| format!("{rule}, undone: {error}"))?;
    Ok(head.clone())
}

/// Nothing is wrong with a system at rest, nor with programs at work where their memory is.
pub fn healthy(context: &Context) -> Result<(), String> {
    let Nodes { ids: [a, b, ..], cpus: [on_a, on_b, ..] } = Nodes::find(context)?;
    Diagnosed::new(context)?.silent()?;
    let way = |node, cpu| format!("kib={MEMORY} cpu={cpu} policy=bind:{node} reads");
    let mut programs =
        [Observed::start("on a", &[], &way(a, on_a))?, Observed::start("on b", &[], &way(b, on_b))?];
    for program in &mut programs {
        program.ask("work")?;
    }
    Diagnosed::new(context)?.silent()
}

/// Memory that another node's thread touched first, with balancing off.
pub fn stranded(context: &Context) -> Result<(), String> {
    let Nodes { ids: [a, _, c, _], cpus: [on_a, _, on_c, _] } = Nodes::find(context)?;
    let _balancing = Setting::with(BALANCING, "0")?;
    let way = format!("kib={MEMORY} cpu={on_a} touched-on={on_c} reads");
    let mut program = Observed::start("stranded", &[], &way)?;
    program.ask("work")?;
    let _ = std::fs::remove_file(std::env::temp_dir().join(format!("nodewise-{}.moved", program.pid)));
    let head = mended_and_back(context, "memory-stranded", &["cpus-without-mems"])?;
    same("process", head["subject"]["pid"].as_u64(), Some(u64::from(program.pid)))?;
    let named: NodeSet =
        head["nodes"].as_str().unwrap_or_default().parse().map_err(|_| format!("nodes: {head}"))?;
    same("whether its node is named", named.contains(c), true)?;
    let stranded = head["concerns_bytes"].as_u64();
    // Where the host is busy, the figure is that of drawn pages.
    if stranded < Some((MEMORY << 10) / 20 * 19) || stranded > Some((MEMORY + OWN) << 10) {
        return Err(format!("{stranded:?} bytes of {} KiB: {head}", MEMORY));
    }
    let command = head["mend"][0]["commands"][0].as_str().unwrap_or_default();
    same("target of the mend", command.contains(&format!("--to {a} ")), true)
}

/// A binding to one node, and CPUs of another.
pub fn bound_away(context: &Context) -> Result<(), String> {
    let Nodes { ids: [_, _, c, _], cpus: [on_a, ..] } = Nodes::find(context)?;
    let way = format!("kib={MEMORY} cpu={on_a} policy=bind:{c} reads");
    let mut program = Observed::start("bound away", &[], &way)?;
    program.ask("work")?;
    let found = Diagnosed::new(context)?;
    let head = found.head("memory-stranded", &["bound-away"])?;
    same("process", head["subject"]["pid"].as_u64(), Some(u64::from(program.pid)))?;
    // A binding cannot be changed from outside: the mend is another start.
    drop(program);
    let way = format!("kib={MEMORY} cpu={on_a} reads");
    let mut program = Observed::start("bound right", &[], &way)?;
    program.ask("work")?;
    Diagnosed::new(context)?.silent()
}

/// Free memory of a node above its high watermarks; `None` where there is none.
fn room_above_edge(context: &Context, node: NodeId) -> Result<Option<Bytes>, String> {
    let seen = Diagnosed::new(context)?;
    let nodes = seen.document["nodes"].as_array().into_iter().flatten();
    let mut of_node = nodes.filter(|of| of["id"].as_u64() == Some(u64::from(node.number())));
    let found = of_node.next().ok_or("no node")?;
    let size = |key: &str| found[key].as_u64().ok_or_else(|| format!("no {key}: {found}"));
    let room = size("free_bytes")?.checked_sub(size("high_watermark_bytes")?);
    Ok(room.map(Bytes::new))
}

/// Programs that fill a node up to its edge, each with more words of its way.
pub(super) fn fill(context: &Context, node: NodeId, more: &str) -> Result<Vec<Observed>, String> {
    let on_it = context.seen.cpus_of(node).first().ok_or("a node without CPUs")?;
    let mut programs: Vec<Observed> = Vec::new();
    // Page cache that the kernel drops meanwhile leaves room again: then another program takes that.
    while let Some(room) = room_above_edge(context, node)? {
        if programs.len() == MOST_PROGRAMS {
            return Err(format!("{room} are free above the edge beside {MOST_PROGRAMS} programs"));
        }
        let taken = room + Bytes::from_mib(4);
        let way = format!("kib={} cpu={on_it}{more}", taken.get() >> 10);
        programs.push(Observed::start("fills a node", &[], &way)?);
    }
    Ok(programs)
}

/// A node that one program fills up to its edge.
pub fn full_node(context: &Context) -> Result<(), String> {
    let Nodes { ids: [_, b, ..], .. } = Nodes::find(context)?;
    setting::write("/proc/sys/vm/drop_caches", "3")?;
    let programs = fill(context, b, "")?;
    let program = programs.first().ok_or("the node was full before")?;
    let _ = std::fs::remove_file(std::env::temp_dir().join(format!("nodewise-{}.moved", program.pid)));
    let found = Diagnosed::new(context)?;
    let head = found.head("node-at-watermark", &[])?;
    run(context, &head["mend"][0]["commands"]).map_err(|error| format!("mend: {error}"))?;
    // The program is away from its memory now, which the mend says: only the node is expected to be well. The way
    // back would fill it up to its edge again, and migrate leaves there what has no room.
    let after = Diagnosed::new(context)?;
    same("rules of the node", after.ids().contains(&"node-at-watermark"), false)?;
    same("nodes", head["nodes"].as_str(), Some(b.to_string().as_str()))?;
    let holder = format!("({})", program.pid);
    let names = |evidence: &Value| evidence["fact"].as_str().is_some_and(|fact| fact.contains(&holder));
    same("holder", head["evidence"].as_array().into_iter().flatten().any(names), true)
}

/// A pool that one node has less of.
pub fn uneven_pool(context: &Context) -> Result<(), String> {
    let Nodes { ids: [a, b, c, d], .. } = Nodes::find(context)?;
    let set = |pages: [u64; 4]| {
        let words: Vec<String> =
            [a, b, c, d].iter().zip(pages).map(|(node, count)| format!("{node}={count}")).collect();
        let output = context.output(&["hugepages", "set", &words.join(","), "--huge-page-size=2M"])?;
        same(&format!("hugepages set: {}", complaint(&output)), output.status.code(), Some(0))
    };
    set([20, 20, 20, 12])?;
    let found = mended_and_back(context, "hugepages-uneven", &[]);
    set([0; 4])?;
    same("nodes", found?["nodes"].as_str(), Some(d.to_string().as_str()))
}
