//! Pools that are set, and pages that are moved while their program runs: this one.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nodewise_machine::{Bytes, MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_source::tree::Tree;
use nodewise_source::{facts, settings::Setting};
use nodewise_syscall::{NodeBuffer, PageCounts, PageKind, Task, pages};
use serde_json::Value;

use super::same;
use crate::cpuset::Cpuset;
use crate::nodewise::{Context, complaint};

/// The rate that is asked for.
const RATE: Bytes = Bytes::from_mib(16);

/// A file for one check.
pub fn file(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("nodewise-{name}"));
    let _ = fs::remove_file(&path);
    path
}

/// The first two nodes with memory.
pub fn two(context: &Context) -> Result<(NodeId, NodeId), String> {
    let mut nodes = context.seen.nodes_with_memory();
    let first = nodes.first().ok_or("no node has memory")?;
    nodes.remove(first);
    Ok((first, nodes.first().ok_or("one node has memory")?))
}

pub fn free(node: NodeId) -> Result<Bytes, String> {
    let memory = facts::memory_of(&Tree::live(), node).map_err(|error| error.to_string())?;
    memory.and_then(|memory| memory.free).ok_or_else(|| format!("node {node} has no MemFree"))
}

/// A size in whole huge pages, two at least.
fn whole(size: u64) -> Bytes {
    const TWO: u64 = 4 << 20;
    Bytes::new((size / TWO).max(1) * TWO)
}

/// Small pages on a node.
fn taken(node: NodeId, size: Bytes) -> Result<NodeBuffer, String> {
    let policy = MemPolicy::new(PolicyMode::Bind, NodeSet::from_iter([node]));
    NodeBuffer::new(size, PageKind::Small, Some(&policy)).map_err(|error| error.to_string())
}

fn counted(buffer: &NodeBuffer) -> Result<PageCounts, String> {
    let addresses = pages::addresses(buffer.address(), buffer.length().get() as usize, 0);
    pages::count(Task::CURRENT, addresses).map_err(|error| error.to_string())
}

/// The words for moving a buffer of this process.
fn words(buffer: &NodeBuffer, to: NodeId) -> Vec<String> {
    let end = buffer.address() + buffer.length().get() as usize;
    let range = format!("--range={:x}-{end:x}", buffer.address());
    ["migrate".to_owned(), std::process::id().to_string(), format!("--to={to}"), range, "--json".to_owned()]
        .to_vec()
}

/// Runs nodewise: its exit code and its JSON.
pub fn run(context: &Context, words: &[String]) -> Result<(Option<i32>, Value), String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = context.output(&words)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let value =
        serde_json::from_str(&text).map_err(|error| format!("{error}: {text}{}", complaint(&output)))?;
    Ok((output.status.code(), value))
}

pub fn expect(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// More huge pages are asked for than a node has room for.
pub fn pool_that_is_short(context: &Context) -> Result<(), String> {
    let (_, node) = two(context)?;
    let size = Bytes::from_mib(2);
    let setting = Setting::HugePages { node, size };
    let pool = || setting.read(&Tree::live()).map_err(|error| error.to_string())?.ok_or("no pool".to_owned());
    let before = pool()?;
    let asked = before + free(node)?.get() / size.get() + 64;
    let journal = format!("--journal={}", file("journal").display());
    let set =
        ["hugepages", "set", &format!("{node}={asked}"), "--size=2M", &journal, "--json"].map(str::to_owned);
    let (code, changed) = run(context, &set)?;
    let got = pool()?;
    expect(before < got && got < asked, || format!("{got} of {asked} pages, {before} before"))?;
    same("exit code", code, Some(1))?;
    same("pages after", changed["pools"][0]["after_pages"].as_u64(), Some(got))?;
    expect(changed["pools"][0]["compactions"].as_u64() > Some(0), || format!("no compaction: {changed}"))?;
    let (code, _) = run(context, &["hugepages", "undo", &journal, "--json"].map(str::to_owned))?;
    same("exit code of undo", code, Some(0))?;
    same("pages after undo", pool()?, before)?;
    let whole: Vec<String> = set.iter().cloned().chain(["--all-or-nothing".to_owned()]).collect();
    let (code, changed) = run(context, &whole)?;
    same("exit code of all or nothing", code, Some(1))?;
    same("given back", &changed["given_back"], &Value::Bool(true))?;
    same("pages given back", pool()?, before)?;
    // Somebody else changes a pool that nodewise has set.
    let few = ["hugepages", "set", &format!("{node}={}", before + 2), "--size=2M", &journal, "--json"];
    same("exit code of few", run(context, &few.map(str::to_owned))?.0, Some(0))?;
    setting.write(before + 1).map_err(|error| error.to_string())?;
    let refused = context.output(&["hugepages", "undo", &journal])?;
    same("exit code of undo of others' values", refused.status.code(), Some(3))?;
    let why = complaint(&refused);
    expect(why.contains(&format!("{} now, nodewise left {}", before + 1, before + 2)), || why.clone())?;
    let forced = context.output(&["hugepages", "undo", &journal, "--force"])?;
    same("exit code of force", forced.status.code(), Some(0))?;
    same("pages after force", pool()?, before)
}

/// Pages go to another node at a rate, and back.
pub fn there_and_back(context: &Context) -> Result<(), String> {
    let (from, to) = two(context)?;
    let size = whole(free(to)?.min(free(from)?).get() / 4);
    let buffer = taken(from, size)?;
    let all = size.get() / pages::page_size() as u64;
    let saved = file("moved");
    let rate = format!("--rate={}/s", RATE.exact());
    let more = [rate, "--pause-psi=100".to_owned(), format!("--save={}", saved.display())];
    let there: Vec<String> = words(&buffer, to).into_iter().chain(more).collect();
    let (code, moved) = run(context, &there)?;
    same("exit code", code, Some(0))?;
    same("bytes", moved["moved_bytes"].as_u64(), Some(size.get()))?;
    same("pages on the target", counted(&buffer)?.on(to), all)?;
    let took = moved["took_s"].as_f64().ok_or("no time")?;
    let rate = size.get() as f64 / took / RATE.get() as f64;
    // The first chunk does not wait, so a little more than the rate is right. Pauses are part of the time: the
    // rate is an upper bound, and one that overlaps with its waits would be taken off twice.
    expect(rate <= 1.1 + 4.0 / (size.get() >> 20) as f64, || {
        format!("{rate:.2} of the rate that was asked for")
    })?;
    // Done twice it is done once.
    let (code, again) = run(context, &words(&buffer, to))?;
    same("a second time", (code, again["calls"].as_u64()), (Some(0), Some(0)))?;
    let back = ["migrate", "--undo", &saved.display().to_string(), "--json"].map(str::to_owned);
    let (code, undone) = run(context, &back)?;
    same("exit code of undo", code, Some(0))?;
    same("bytes back", undone["moved_bytes"].as_u64(), Some(size.get()))?;
    same("pages back", counted(&buffer)?.on(from), all)
}

/// Ctrl-C ends it after a chunk, and the rest moves later.
pub fn interrupted(context: &Context) -> Result<(), String> {
    let (from, to) = two(context)?;
    let size = whole(free(to)?.min(free(from)?).get() / 4);
    let buffer = taken(from, size)?;
    let slow: Vec<String> = words(&buffer, to).into_iter().chain(["--rate=4M/s".to_owned()]).collect();
    let child =
        Command::new(context.path()).args(&slow).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.map_err(|error| error.to_string())?;
    while counted(&buffer)?.on(to) == 0 {
        std::thread::yield_now();
    }
    let pid = child.id().to_string();
    Command::new("kill").args(["-INT", &pid]).status().map_err(|error| error.to_string())?;
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let ended: Value =
        serde_json::from_str(&text).map_err(|error| format!("{error}: {text}{}", complaint(&output)))?;
    same("exit code", output.status.code(), Some(1))?;
    same("ending", ended["ending"].as_str(), Some("interrupted"))?;
    let there = counted(&buffer)?.on(to) * pages::page_size() as u64;
    same("bytes that are there", ended["moved_bytes"].as_u64(), Some(there))?;
    expect(there < size.get(), || "all had moved".to_owned())?;
    let (code, rest) = run(context, &words(&buffer, to))?;
    same("exit code of the rest", code, Some(0))?;
    same("the rest", rest["moved_bytes"].as_u64(), Some(size.get() - there))
}

/// The target has less memory than is to go there.
pub fn target_too_small(context: &Context) -> Result<(), String> {
    let (from, to) = two(context)?;
    let size = whole(free(from)?.get() / 2);
    let buffer = taken(from, size)?;
    let filler = taken(to, whole(free(to)?.get().saturating_sub(size.get() / 2)))?;
    let (code, moved) = run(context, &words(&buffer, to))?;
    let there = counted(&buffer)?.on(to) * pages::page_size() as u64;
    drop(filler);
    same("bytes that are there", moved["moved_bytes"].as_u64(), Some(there))?;
    same("exit code", code, Some(if there == 0 { 3 } else { 1 }))?;
    same("reason", moved["failed"][0]["reason"].as_str(), Some("no_room"))?;
    same("bytes that stayed", moved["failed"][0]["size_bytes"].as_u64(), Some(size.get() - there))
}

/// Another user's process, and a node outside of the cpuset.
pub fn refused(context: &Context) -> Result<(), String> {
    let (from, to) = two(context)?;
    let own = std::process::id().to_string();
    let target = format!("--to={to}");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", context.path()]);
    let output = command.args(["migrate", &own, &target]).output().map_err(|error| error.to_string())?;
    same("exit code as another user", output.status.code(), Some(3))?;
    let why = complaint(&output);
    expect(why.contains("is another user's: its pages need root, or CAP_SYS_PTRACE"), || why.clone())?;
    let group = Cpuset::new("0", &from.to_string())?;
    group.enter()?;
    let output = context.output(&["migrate", &own, &target]);
    drop(group);
    let output = output?;
    same("exit code outside of the cpuset", output.status.code(), Some(3))?;
    let why = complaint(&output);
    let expected = format!(
        "node {to} is outside the cpuset of process {own}, which allows node {from}; add to cpuset.mems"
    );
    expect(why.contains(&expected), || why.clone())
}

/// A file of tmpfs with a hole: looked at, given a policy, and moved.
pub fn shared_memory(context: &Context) -> Result<(), String> {
    let (_, to) = two(context)?;
    let half = Bytes::from_mib(4);
    let path = PathBuf::from("/dev/shm/nodewise-shared");
    let error = |error: std::io::Error| error.to_string();
    fs::write(&path, vec![1; half.get() as usize]).map_err(error)?;
    fs::File::options()
        .write(true)
        .open(&path)
        .and_then(|file| file.set_len(2 * half.get()))
        .map_err(error)?;
    let held = || fs::metadata(&path).map(|found| found.blocks() * 512).map_err(error);
    let name = path.display().to_string();
    let memory = |of: &Value| -> u64 {
        of["nodes"].as_array().into_iter().flatten().filter_map(|node| node["size_bytes"].as_u64()).sum()
    };
    let (code, seen) = run(context, &["shm", "show", &name, "--json"].map(str::to_owned))?;
    same("exit code", code, Some(0))?;
    same("memory and holes", (memory(&seen), seen["absent_bytes"].as_u64()), (half.get(), Some(half.get())))?;
    same("memory of the file afterwards", held()?, half.get())?;
    let policy = format!("bind:{to}");
    let set = ["shm", "policy", &name, &policy, "--move", "--verify", "--json"].map(str::to_owned);
    let (code, moved) = run(context, &set)?;
    same("exit code of policy", code, Some(0))?;
    same("nodes", moved["nodes"].as_array().map(Vec::len), Some(1))?;
    same("node", moved["nodes"][0]["node"].as_u64(), Some(u64::from(to.number())))?;
    same("policy", moved["policies"][0]["policy"].as_str(), Some(policy.as_str()))?;
    same("memory of the file after moving", held()?, half.get())?;
    fs::remove_file(&path).map_err(error)
}
