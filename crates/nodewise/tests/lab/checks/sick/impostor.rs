//! Programs under other names: the observed program as a rule recognises a server, a runtime or a virtual machine, where
//! the real one is too heavy for an emulated guest.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use nodewise_machine::{NodeId, NodeSet};
use serde_json::Value;

use super::super::doctor::{Diagnosed, fill};
use super::super::same;
use super::{COMMAND, is_about};
use crate::nodewise::Context;
use crate::observer::Observed;
use crate::setting;

/// How often a node is filled up to its edge.
const FILLS: usize = 4;
const WINDOW: &str = "--window=2s";

/// A file with the observed program, in a folder of its own; gone when dropped.
pub struct Impostor {
    folder: PathBuf,
    file: PathBuf,
}

impl Impostor {
    /// The program as this file: `bin/java`.
    pub fn new(path: &str) -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let folder = own.with_file_name("impostors");
        let file = folder.join(path);
        let parent = file.parent().ok_or("a file without a folder")?;
        let failed = |error: std::io::Error| format!("{}: {error}", file.display());
        fs::create_dir_all(parent).map_err(failed)?;
        // A process is the file of this path; a link that is followed would name the other one.
        fs::hard_link(&own, &file).map_err(failed)?;
        Ok(Self { folder, file })
    }

    /// The program as a file with other bytes.
    pub fn changed(path: &str, change: fn(&mut [u8]) -> Result<(), String>) -> Result<Self, String> {
        let impostor = Self::new(path)?;
        let failed = |error: std::io::Error| format!("{}: {error}", impostor.file.display());
        let mut bytes = fs::read(&impostor.file).map_err(failed)?;
        change(&mut bytes)?;
        // Not into the shared file.
        fs::remove_file(&impostor.file).map_err(failed)?;
        fs::write(&impostor.file, bytes).map_err(failed)?;
        fs::set_permissions(&impostor.file, fs::Permissions::from_mode(0o755)).map_err(failed)?;
        Ok(impostor)
    }

    /// Writes another file of its folder.
    pub fn write(&self, path: &str, text: &str) -> Result<PathBuf, String> {
        let file = self.folder.join(path);
        setting::write(&file.display().to_string(), text)?;
        Ok(file)
    }

    /// It at work, as words behind these.
    pub fn at_work<W: AsRef<str>>(&self, before: &[W], way: &str) -> Result<Observed, String> {
        let before: Vec<&str> = before.iter().map(AsRef::as_ref).collect();
        let mut program = Observed::start_file(&self.file, &self.file.display().to_string(), &before, way)?;
        program.ask("work")?;
        Ok(program)
    }
}

impl Drop for Impostor {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The finding of a rule about a program, of a diagnosis that reads this program completely.
pub fn found_with(
    context: &Context,
    rule: &str,
    program: &Observed,
    options: &[&str],
) -> Result<Value, String> {
    let pid = format!("--pid={}", program.pid);
    let finding = Diagnosed::fires(context, &[&[WINDOW, &pid], options].concat(), rule)?;
    is_about(&finding, program)?;
    Ok(finding)
}

pub fn found(context: &Context, rule: &str, program: &Observed) -> Result<Value, String> {
    found_with(context, rule, program, &[])
}

/// The same on a node that others fill. The kernel drops page cache there meanwhile, which leaves the node above its edge
/// again: then they take that, too.
pub fn found_on_full(
    context: &Context,
    rule: &str,
    program: &Observed,
    node: NodeId,
) -> Result<(Vec<Observed>, Value), String> {
    let mut full = Vec::new();
    for _ in 0..FILLS {
        setting::write("/proc/sys/vm/drop_caches", "3")?;
        full.extend(fill(context, node, "")?);
        if let Ok(finding) = found(context, rule, program) {
            return Ok((full, finding));
        }
    }
    found(context, rule, program).map(|finding| (full, finding))
}

pub fn silent_with(
    context: &Context,
    rule: &str,
    program: &Observed,
    options: &[&str],
) -> Result<(), String> {
    let pid = format!("--pid={}", program.pid);
    let found = Diagnosed::with(context, &[&[WINDOW, &pid], options].concat())?;
    // Silence counts only where the rule was examined for this program.
    let lacks = [&found.document["not_examined"], &found.document["not_examined_processes"]];
    let lacks = lacks.map(ToString::to_string).join("");
    same(&format!("whether {rule} lacked facts: {lacks}"), lacks.contains(&format!("\"{rule}\"")), false)?;
    found.finding(rule).map_or(Ok(()), |finding| Err(format!("{rule} still fires: {finding}")))
}

pub fn silent(context: &Context, rule: &str, program: &Observed) -> Result<(), String> {
    silent_with(context, rule, program, &[])
}

/// The words before the program in the first command of a finding's mends that starts it again.
pub fn before_command(context: &Context, finding: &Value) -> Result<Vec<String>, String> {
    let mends = finding["mend"].as_array().into_iter().flatten();
    let commands = mends.flat_map(|mend| mend["commands"].as_array().into_iter().flatten());
    let own = COMMAND.trim_start_matches(" --");
    let words = commands.filter_map(Value::as_str).find_map(|command| command.strip_suffix(own));
    let words = words.ok_or_else(|| format!("no mend starts the program again: {finding}"))?.split(' ');
    Ok(words.map(|word| if word == "nodewise" { context.path() } else { word }.to_owned()).collect())
}

/// The text of a finding's mends.
pub fn mends(finding: &Value) -> String {
    let texts = finding["mend"].as_array().into_iter().flatten().filter_map(|mend| mend["what"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// A mend names these words, which are then used.
pub fn names<'a>(finding: &Value, words: &'a str) -> Result<&'a str, String> {
    same(&format!("whether a mend names {words:?}: {finding}"), mends(finding).contains(words), true)?;
    Ok(words)
}

/// The value of a fact in a finding's evidence.
pub fn evidence<'a>(finding: &'a Value, fact: &str) -> Result<&'a Value, String> {
    let all = finding["evidence"].as_array().into_iter().flatten();
    let mut of_fact = all.filter(|evidence| evidence["fact"].as_str() == Some(fact));
    of_fact.next().map(|evidence| &evidence["value"]).ok_or_else(|| format!("no {fact}: {finding}"))
}

/// The most memory of a program beside what its way asks for: that of its loader, and pages of its file that it wrote to.
pub const OWN: u64 = 16 << 20;

/// The part of memory by which an estimate from drawn pages may be low.
const DRAWN_ERROR: u64 = 50;

/// A finding names this node; beside it there may be that with the pages of the program's file.
pub fn names_node(finding: &Value, node: NodeId) -> Result<(), String> {
    let nodes = finding["nodes"].as_str().and_then(|nodes| nodes.parse::<NodeSet>().ok());
    let holds = nodes.is_some_and(|nodes| nodes.contains(node) && nodes.len() < 3);
    same(&format!("whether node {node} is among the nodes of {finding}"), holds, true)
}

/// A finding concerns as much memory on these nodes as the program itself counts there; a little less where pages were drawn
/// at the beginning of the window.
pub fn concerns_memory_on(finding: &Value, program: &mut Observed, nodes: &[NodeId]) -> Result<(), String> {
    let found = finding["concerns_bytes"].as_u64().ok_or_else(|| format!("no size: {finding}"))?;
    let counted = memory_on(program, nodes)?;
    let holds = (counted - counted / DRAWN_ERROR..=counted + OWN).contains(&found);
    same(&format!("whether {found} bytes are {counted} and a little"), holds, true)
}

/// Memory without a file that a program counts on nodes.
pub fn memory_on(program: &mut Observed, nodes: &[NodeId]) -> Result<u64, String> {
    let pages = program.pages()?;
    let own = pages.values().filter(|pages| !pages.name.starts_with('/'));
    Ok(own.flat_map(|pages| nodes.iter().filter_map(|node| pages.nodes.get(&node.number()))).sum())
}

/// `MemTotal` of the smallest node with memory, in KiB.
pub fn smallest_node(context: &Context) -> Result<u64, String> {
    let nodes = context.seen.nodes_with_memory();
    let size = |node: NodeId| {
        let path = format!("/sys/devices/system/node/node{node}/meminfo");
        let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let total = text.lines().find_map(|line| line.split_once("MemTotal:")?.1.trim().strip_suffix(" kB"));
        total.and_then(|number| number.parse::<u64>().ok()).ok_or_else(|| format!("no total: {text}"))
    };
    let sizes = nodes.iter().map(size).collect::<Result<Vec<u64>, String>>()?;
    sizes.into_iter().min().ok_or_else(|| "no node has memory".to_owned())
}
