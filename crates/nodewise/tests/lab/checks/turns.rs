//! Whose turn a page is in memory that has moved, in a private file, and in huge pages that no one asked for: what a program without a policy of its own for
//! the memory sees, as the interpreter of Python maps it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use nodewise_machine::PolicyMode;
use nodewise_model::policy::interleave::{InterleavePosition, Turns, Weights};

use super::same;
use super::short::HUGE;
use crate::nodewise::Context;
use crate::setting::Setting;

/// Maps memory, touches it, lets `mremap(2)` double it, which moves it, and touches the rest; maps a file from its fourth page
/// on, privately, and writes to all of it (a file in memory would add its inode to the turns); and touches 8 MiB without advice.
/// Prints the addresses: before it was moved, behind it, of the file, and of the 8 MiB.
const PROGRAM: &str = "
import ctypes, mmap, sys, typing
PAGE, PAGES = mmap.PAGESIZE, 12
def address(memory):
    place = ctypes.c_char.from_buffer(memory)
    try:
        return ctypes.addressof(place)
    finally:
        del place
def write(memory, first, end):
    for page in range(first, end):
        memory[page * PAGE] = 1
above = mmap.mmap(-1, 2 * PAGE * PAGES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
moved = mmap.mmap(-1, PAGE * PAGES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
write(moved, 0, PAGES)
before = address(moved)
moved.resize(2 * PAGE * PAGES)
write(moved, PAGES, 2 * PAGES)
file = open(typing.__file__, 'rb')
private = mmap.mmap(file.fileno(), PAGE * PAGES, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE, offset=3 * PAGE)
write(private, 0, PAGES)
large = mmap.mmap(-1, 2048 * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
write(large, 0, 2048)
print(before, address(moved), address(private), address(large), flush=True)
sys.stdin.read()
";
const PAGES: u64 = 12;
const SKIPPED: u64 = 3;
const LARGE: u64 = 2048;
const IN_HUGE: u64 = 512;
const PAGE: u64 = 4096;

/// Pages go by the address before the move, and by their numbers in the file.
pub fn moved_and_private(context: &Context) -> Result<(), String> {
    if Command::new("python3").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("python3 is missing: memory that has moved is not looked at");
        return Ok(());
    }
    let _huge = Setting::with(HUGE, "always")?;
    let mut program = Command::new(context.path())
        .args(["run", "--interleave=all", "--", "python3", "-c", PROGRAM])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("python3: {error}"))?;
    let checked = looked_at(context, &mut program);
    // It ends when its input does.
    drop(program.stdin.take().map(|mut input| input.flush()));
    let _ = program.wait();
    checked
}

fn looked_at(context: &Context, program: &mut std::process::Child) -> Result<(), String> {
    let mut line = String::new();
    let output = program.stdout.as_mut().ok_or("no output")?;
    BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
    let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [before, moved, private, large] = numbers[..] else {
        return Err(format!("expected four addresses: {line:?}"));
    };
    same("whether it was moved", before != moved, true)?;
    let first = |place: InterleavePosition| -> Result<(), String> {
        let (kind, at) = match place {
            InterleavePosition::Address(_) => ("private", moved),
            InterleavePosition::File { .. } => ("private-file", private),
        };
        let count = if at == moved { 2 * PAGES } else { PAGES };
        compare(context, program.id(), (at, count), place, kind)
    };
    first(InterleavePosition::Address(before))?;
    first(InterleavePosition::File { inode: 0, page: SKIPPED })?;
    huge(context, program.id(), large)
}

/// Memory that is not advised has turns of whole huge pages where `transparent_hugepage` is `always`.
fn huge(context: &Context, pid: u32, address: u64) -> Result<(), String> {
    let (first, end) = (address / PAGE, address / PAGE + LARGE);
    let nodes = context.seen.nodes_with_memory();
    let turns = Turns::new(PolicyMode::Interleave, &nodes, &Weights::new());
    let node = |page: u64| {
        let block = page - page % IN_HUGE;
        let is_whole = first <= block && block + IN_HUGE <= end;
        turns.node(if is_whole { page / IN_HUGE } else { page }).map(|node| node.number().into())
    };
    let foreseen: Vec<Option<u64>> = (first..end).map(node).collect();
    let seen = on_nodes(context, pid, (address, LARGE))?;
    same("nodes of pages that no one advised", seen, foreseen.clone())?;
    let size = format!("--size={}K", (LARGE * PAGE) >> 10);
    let words = ["explain", "interleave:all", &size, &format!("--first-page={first}"), "--json"];
    let explained = context.json(&words)?;
    same("reason for huge pages", explained["huge_pages"].as_str(), Some("setting"))?;
    for own in explained["nodes"].as_array().into_iter().flatten() {
        let pages = |name: &str| own[name].as_u64().unwrap_or(0);
        let count = foreseen.iter().filter(|node| **node == own["id"].as_u64()).count() as u64;
        let taken = pages("free_before_pages") - pages("free_after_pages");
        same(&format!("pages that explain has on node {}", own["id"]), taken, count)?;
    }
    Ok(())
}

/// The node of each page of a range.
fn on_nodes(context: &Context, pid: u32, (address, count): (u64, u64)) -> Result<Vec<Option<u64>>, String> {
    let range = format!("--range={address:x}-{:x}", address + count * PAGE);
    let seen = context.json(&["maps", &pid.to_string(), &range, "--json"])?;
    let mut nodes = Vec::new();
    for run in seen["runs"].as_array().into_iter().flatten() {
        let node = run["node"].as_u64();
        nodes.extend((0..run["pages"].as_u64().unwrap_or(0)).map(|_| node));
    }
    Ok(nodes)
}

/// Holds the nodes of pages against those of the model, and the first of them against what explain says.
fn compare(
    context: &Context,
    pid: u32,
    (address, count): (u64, u64),
    place: InterleavePosition,
    kind: &str,
) -> Result<(), String> {
    let nodes = on_nodes(context, pid, (address, count))?;
    let turns = Turns::new(PolicyMode::Interleave, &context.seen.nodes_with_memory(), &Weights::new());
    let node = |page: u64| turns.node(place.after(page).index(0)).map(|node| node.number().into());
    let foreseen: Vec<Option<u64>> = (0..count).map(node).collect();
    same(&format!("nodes of pages, {kind}"), nodes, foreseen.clone())?;
    let first = format!("--first-page={}", place.page());
    let kind = format!("--kind={kind}");
    let words = ["explain", "interleave:all", "--size=4K", &kind, &first, "--thp=never", "--json"];
    let explained = context.json(&words)?["steps"][0]["shares"][0]["node"].as_u64();
    same(&format!("node of the first page, {kind} {first}"), explained, foreseen[0])
}
