//! Where pages really are: what the tools say is compared with the kernel's own answer.

use std::io::Read as _;
use std::process::{Command, Stdio};

use nodewise_source::process::{self, Pid};
use nodewise_source::tree::Tree;

/// Pages of memory, in bytes, of a process on each node.
fn on_nodes(pid: u32) -> Result<Vec<(u32, u64)>, String> {
    let sums = process::sums(&Tree::live(), Pid::new(pid)).map_err(|error| error.to_string())?;
    let sums = sums.ok_or("the process is gone")?.value;
    Ok(sums.nodes.iter().map(|on| (on.node.number(), on.total().get())).collect())
}

fn of(nodes: &[(u32, u64)], node: u32) -> u64 {
    nodes.iter().find(|(known, _)| *known == node).map_or(0, |(_, bytes)| *bytes)
}

/// Runs a tool with these words; gives what it printed.
fn tool(path: &str, words: &[&str]) -> Result<String, String> {
    let output = Command::new(words[0]).args(&words[1..]).env("PATH", path).output();
    let output = output.map_err(|error| format!("{words:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{words:?}: {}{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// Moves a process from node 1 to node 0 and back, and looks where memhog's memory is.
pub fn check(path: &str) -> Result<(), String> {
    moved(path)?;
    filled(path, "membind", "1", |nodes| of(nodes, 1) >= 64 << 20)?;
    // Half of it on each; a few huge pages may be elsewhere than half of the small ones would be.
    filled(path, "interleave", "0,1", |nodes| of(nodes, 0).min(of(nodes, 1)) >= 24 << 20)
}

fn moved(path: &str) -> Result<(), String> {
    let mut command = Command::new("holder");
    let mut child =
        command.env("PATH", path).stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
    let mut line = [0; 6];
    let ready = child.stdout.as_mut().map_or(Ok(()), |out| out.read_exact(&mut line));
    let result = ready.map_err(|error| error.to_string()).and_then(|()| {
        let pid = child.id().to_string();
        let before = on_nodes(child.id())?;
        tool(path, &["migratepages", &pid, "1", "0"])?;
        let after = on_nodes(child.id())?;
        let moved = of(&before, 1) >= 2 << 20 && of(&after, 1) < 1 << 20 && of(&after, 0) >= 3 << 20;
        if !moved {
            return Err(format!("migratepages 1 to 0: {before:?}, then {after:?}"));
        }
        told(path, &pid, &after)
    });
    let _ = child.kill();
    let _ = child.wait();
    result
}

/// numastat's total of each node against the kernel's.
fn told(path: &str, pid: &str, nodes: &[(u32, u64)]) -> Result<(), String> {
    let json = tool(path, &["numastat", "--json", pid])?;
    let json: serde_json::Value = serde_json::from_str(&json).map_err(|error| error.to_string())?;
    for entry in json["processes"][0]["nodes"].as_array().ok_or("no process in the JSON")? {
        let node = entry["node"].as_u64().ok_or("an entry without node")? as u32;
        let uses = ["huge_bytes", "heap_bytes", "stack_bytes", "private_bytes"];
        let total: u64 = uses.iter().filter_map(|name| entry[name].as_u64()).sum();
        if total != of(nodes, node) {
            return Err(format!("numastat says {total} bytes on node {node}, the kernel {nodes:?}"));
        }
    }
    Ok(())
}

/// Stops memhog after its first pass and looks at its memory.
fn filled(
    path: &str,
    policy: &str,
    nodes: &str,
    right: impl Fn(&[(u32, u64)]) -> bool,
) -> Result<(), String> {
    let mut command = Command::new("memhog");
    command.args(["-r100000", "64m", policy, nodes]).env("PATH", path).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    // Seven points and a line feed are a pass over 64 MiB.
    let mut pass = [0; 8];
    let read = child.stdout.as_mut().map_or(Ok(()), |out| out.read_exact(&mut pass));
    let found = on_nodes(child.id());
    let _ = child.kill();
    let _ = child.wait();
    read.map_err(|error| error.to_string())?;
    let found = found?;
    if &pass == b".......\n" && right(&found) {
        Ok(())
    } else {
        Err(format!("memhog {policy} {nodes}: {pass:?}, {found:?}"))
    }
}
