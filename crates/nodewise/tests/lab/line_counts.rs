//! `nodewise lab --count`: the lines of a program whose lines can be worked out.
//!
//! The program walks over memory that is eight times the modelled cache, in a process, in a thread of it, and in a child that
//! becomes another program, all of them on one CPU in turns. Each round of a walk moves each line once.

pub mod ranked;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Failed;
use nodewise_lab::{KernelChoice, Lab};
use serde_json::Value;

/// Bytes that a walk goes over, and lines of that.
const BYTES: usize = 8 << 20;
const LINES: u64 = BYTES as u64 / 64;
/// Before the rounds each page is written to once: one line comes, and goes later.
const TOUCHED: u64 = 2 * BYTES as u64 / 4096;
/// Rounds of the thread, of the child, and of the process itself.
const ROUNDS: [u64; 3] = [6, 4, 2];
/// Lines of a thread beside its walk: its stack, what the C library keeps for it, and lines that others on its CPU wrote to and
/// it drives out. 5,520 were seen.
const OF_THREAD: u64 = 16_000;
/// Lines of a program that starts: what is written to when it is linked, its heap and its stack. 76,312 were seen, of debug builds
/// of nodewise and of this program, and more of either are more. Less than a round, so that none is missed or counted twice.
const OF_START: u64 = 120_000;

/// The program: `--walks`, or `--walk ROUNDS` as its child.
pub fn walk(words: &[String]) {
    match words {
        [rounds] => rounds_over(rounds.parse().expect("a number")),
        _ => walks(),
    }
}

fn walks() {
    let [of_thread, of_child, own] = ROUNDS;
    let program = std::env::current_exe().expect("its path is known");
    let child = Command::new(program).args(["--walk", &of_child.to_string()]).spawn();
    let thread = std::thread::spawn(move || rounds_over(of_thread));
    rounds_over(own);
    thread.join().expect("it does not panic");
    let status = child.expect("it starts").wait().expect("it is a child");
    assert!(status.success());
}

fn rounds_over(rounds: u64) {
    let mut memory = vec![0_u8; BYTES];
    memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    for _ in 0..rounds {
        (0..BYTES / 64).for_each(|line| _ = black_box(memory[line * 64]));
    }
}

/// All lines of the walks are counted, on the right nodes and for the right threads.
pub fn are_those_of_arithmetic() -> Result<(), Failed> {
    if let Err(line) = Lab::for_test(&KernelChoice::default()) {
        eprintln!("{line}");
        return Ok(());
    }
    let (nodewise, own) = (env!("CARGO_BIN_EXE_nodewise"), std::env::current_exe()?);
    let folder = tempfile::tempdir()?;
    let picture = folder.path().join("lines.svg");
    let mut command = Command::new(nodewise);
    command.args([
        "lab",
        "--machine",
        "2x(1c 512M); dist=21",
        "--timeout",
        "10m",
        "--count",
        "--json",
        "--svg",
    ]);
    command.arg(&picture);
    // Arrays of this size are of mmap.
    command.args(["--assert-local", "95", "--assert-local", "anonymous=90", "--assert-local", "stack=0"]);
    command.args(["--", nodewise, "run", "--cpunodebind=0", "--membind=1", "--"]);
    let output = command.arg(own).arg("--walks").output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let broke = "lines from CPUs of node 0 to memory of node 1";
    let broken = said.lines().filter(|line| line.contains(broke));
    let demands = ["95 % were demanded", "of the cache lines read are local: 90 % were demanded"];
    let has_both = broken.clone().zip(demands).filter(|(line, demand)| line.contains(demand)).count() == 2;
    if output.status.code() != Some(1) || !has_both || broken.count() != 2 {
        return Err(format!("{}: {said}", output.status).into());
    }
    let json: Value = serde_json::from_slice(&output.stdout)?;
    compare(&json).map_err(|why| format!("{why}\n{json:#}"))?;
    let local = format!("All CPUs: {}", verdict_of(&said));
    let drawn = std::fs::read_to_string(picture)?;
    if drawn.contains(&local) { Ok(()) } else { Err(format!("expected {local:?}:\n{drawn}").into()) }
}

/// A program of two phases: rounds over memory of its own node, then over memory of the other.
const PHASES: &str = r#"
#define _GNU_SOURCE
#include <nodewise.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BYTES (8ul << 20)

/* Memory of a node, by mbind with MPOL_BIND. */
static volatile char *memory(unsigned long node)
{
	unsigned long mask = 1ul << node;
	volatile char *start = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (start == MAP_FAILED || syscall(SYS_mbind, start, BYTES, 2, &mask, 64ul, 0))
		_exit(9);
	for (unsigned long at = 0; at < BYTES; at += 4096)
		start[at] = 1;
	return start;
}

static void rounds(volatile char *start, int count)
{
	for (int round = 0; round < count; round++)
		for (unsigned long at = 0; at < BYTES; at += 64)
			(void)start[at];
}

int main(void)
{
	volatile char *near = memory(0), *far = memory(1);

	nodewise_phase("near");
	rounds(near, 4);
	nodewise_phase("a far away phase: the name is cut");
	rounds(far, 2);
	nodewise_phase("");
	return 0;
}
"#;
/// The name that is left of the second.
const FAR: &str = "a far away phase: the na";
/// Lines of others in a phase: those of timer ticks, and what a phase finds in the cache.
const BESIDE: u64 = 40_000;

/// A program of C in a folder.
fn compile(folder: &Path, name: &str, text: &str) -> Result<PathBuf, Failed> {
    let (source, program) = (folder.join(name).with_extension("c"), folder.join(name));
    std::fs::write(&source, text)?;
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../counter/include");
    let mut compiler = Command::new("cc");
    compiler.args([
        "-std=gnu11",
        "-O1",
        "-g",
        "-pthread",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-I",
        include,
        "-o",
    ]);
    let compiled = compiler.args([&program, &source]).output()?;
    if compiled.status.success() {
        Ok(program)
    } else {
        Err(String::from_utf8_lossy(&compiled.stderr).into())
    }
}

/// Lines of marked phases are counted apart, and one phase can be chosen.
pub fn phases() -> Result<(), Failed> {
    if let Err(line) = Lab::for_test(&KernelChoice::default()) {
        eprintln!("{line}");
        return Ok(());
    }
    let folder = tempfile::Builder::new().prefix("phases").tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let program = compile(folder.path(), "phases", PHASES)?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodewise"));
    command.args(["lab", "--machine", "2x(1c 512M); dist=21", "--timeout", "10m", "--count", "--json"]);
    command.args(["--by", "line", "--", env!("CARGO_BIN_EXE_nodewise"), "run", "--cpunodebind=0", "--"]);
    // Twice: the second process has its code at other addresses, in the same pages of memory.
    let output = command.args(["sh", "-c", "\"$0\" && \"$0\""]).arg(&program).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let json: Value = serde_json::from_slice(&output.stdout)?;
    for (name, lines, is_local) in [("near", 2 * 4 * LINES, true), (FAR, 2 * 2 * LINES, false)] {
        let phases = json["phases"].as_array().into_iter().flatten();
        let phase = phases.clone().find(|phase| phase["name"] == name).ok_or_else(|| format!("{json:#}"))?;
        let local = phase["local_lines"].as_u64().unwrap_or_default();
        let all = phase["lines"].as_u64().unwrap_or_default();
        let walked = if is_local { local } else { all - local };
        if !(lines..=lines + BESIDE).contains(&walked) || all - walked > BESIDE {
            return Err(
                format!("{name}: expected {lines} lines and up to {BESIDE} beside:\n{phase:#}").into()
            );
        }
    }
    // Without the option the kernel's lines are not counted.
    if json.get("kernel").is_some() {
        return Err(format!("lines of the kernel: {}", json["kernel"]).into());
    }
    let line = line_of(PHASES, "(void)start[at];");
    let read = read_by(&json, "phases.c", line);
    let walked = [4, 2].map(|rounds| 2 * rounds * LINES);
    let is_right =
        read.iter().zip(walked).all(|(read, walked)| (walked - walked / 1000..=walked).contains(read));
    if is_right {
        Ok(())
    } else {
        Err(format!("phases.c:{line}: expected {walked:?} lines, found {read:?}").into())
    }
}

/// The number of the line of a program that has a text.
fn line_of(program: &str, text: &str) -> u64 {
    let line = program.lines().zip(1..).find(|(line, _)| line.contains(text));
    line.map_or(0, |(_, number)| number)
}

/// Whether a place in code is on this line of a source.
fn is_at(place: &Value, source: &str, line: u64) -> bool {
    let has_name = |path: &str| path.rsplit('/').next() == Some(source);
    place["source"].as_str().is_some_and(has_name) && place["line"] == line
}

/// Lines that a source line read on CPUs of node 0, from memory of node 0 and of node 1.
fn read_by(json: &Value, source: &str, line: u64) -> [u64; 2] {
    let places = json["code"]["places"].as_array().into_iter().flatten();
    let found: Vec<u64> =
        places.zip(0..).filter(|(place, _)| is_at(place, source, line)).map(|(_, at)| at).collect();
    [0, 1].map(|node| {
        let reads = json["code"]["reads"].as_array().into_iter().flatten();
        let chosen = reads.filter(|reads| {
            let is_there = reads["place_index"].as_u64().is_some_and(|place| found.contains(&place));
            is_there && reads["cpu_node"] == 0 && reads["memory_node"] == node
        });
        chosen.filter_map(|reads| reads["lines_read"].as_u64()).sum()
    })
}

/// Pairs of threads, one after the other on CPUs of two nodes, write to words of the same line, to the same word, and to lines of
/// their own; a child writes to a line that it shares with its parent, and to one that it has a copy of.
const SHARING: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define WRITES 100000

struct work { int cpu; volatile int *place; };

static void *write_often(void *of)
{
	struct work *work = of;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(work->cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		exit(9);
	for (int count = 0; count < WRITES; count++)
		__atomic_fetch_add(work->place, 1, __ATOMIC_RELAXED);
	return 0;
}

static void pair(volatile int *first, volatile int *second)
{
	struct work works[] = { { 0, first }, { 1, second } };
	pthread_t thread;

	/* One after the other: no line moves, and it would in a run in which they meet. */
	for (int number = 0; number < 2; number++)
		if (pthread_create(&thread, 0, write_often, &works[number]) || pthread_join(thread, 0))
			exit(8);
}

static void parent_and_child(volatile int *place)
{
	struct work work = { 0, place }, of_child = { 1, place + 1 };
	int child = fork(), status;

	if (child < 0)
		exit(7);
	if (child == 0) {
		write_often(&of_child);
		exit(0);
	}
	write_often(&work);
	if (waitpid(child, &status, 0) != child || status)
		exit(6);
}

int main(void)
{
	int rights = PROT_READ | PROT_WRITE;
	volatile int *own = mmap(0, 4096, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile int *all = mmap(0, 4096, rights, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (own == MAP_FAILED || all == MAP_FAILED)
		return 5;
	pair(own, own + 1);
	pair(own + 64, own + 64);
	pair(own + 128, own + 144);
	parent_and_child(all);
	parent_and_child(own + 256);
	fprintf(stderr, "false %p\ntrue %p\nprocesses %p\n", (void *)own, (void *)(own + 64), (void *)all);
	return 0;
}
"#;
/// Writes of each thread there.
const WRITES: u64 = 100_000;

/// Lines that threads of two nodes write to are found, whenever these ran, and no others of the program.
pub fn shared_lines() -> Result<(), Failed> {
    if let Err(line) = Lab::for_test(&KernelChoice::default()) {
        eprintln!("{line}");
        return Ok(());
    }
    let folder = tempfile::Builder::new().prefix("sharing").tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let program = compile(folder.path(), "sharing", SHARING)?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodewise"));
    command.args(["lab", "--machine", "2x(1c 512M); dist=21", "--timeout", "10m", "--count", "--json"]);
    let output = command.args(["--by", "line", "--"]).arg(&program).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(said.into());
    }
    let json: Value = serde_json::from_slice(&output.stdout)?;
    let expected = [
        ("false", "false", ["0-3", "4-7"]),
        ("true", "true", ["0-3", "0-3"]),
        ("processes", "false", ["0-3", "4-7"]),
    ];
    let lines = json["shared_lines"].as_array().ok_or("no shared lines")?;
    for (name, sharing, bytes) in expected {
        let printed = |line: &str| line.trim().strip_prefix(name).map(|address| address.trim().to_owned());
        let address = said.lines().find_map(printed).ok_or_else(|| format!("no {name}: {said}"))?;
        let line = lines.iter().find(|line| line["address"] == address.as_str());
        let line = line.ok_or_else(|| format!("{name} at {address}: {lines:#?}"))?;
        let writers = line["writers"].as_array().ok_or("no writers")?;
        let found: Vec<_> =
            writers.iter().map(|writer| (&writer["cpu_node"], &writer["bytes"], &writer["writes"])).collect();
        let source = line_of(SHARING, "__atomic_fetch_add");
        let by = |writer: &Value| {
            let place = writer["place_index"].as_u64().and_then(|at| usize::try_from(at).ok());
            place.is_some_and(|at| is_at(&json["code"]["places"][at], "sharing.c", source))
        };
        let is_writer = |(node, bytes): (u64, &str)| {
            let right = |writer: &&Value| {
                writer["cpu_node"] == node && writer["bytes"] == bytes && writer["writes"] == WRITES
            };
            writers.iter().any(|writer| right(&writer) && by(writer))
        };
        let is_right = line["sharing"] == sharing && writers.len() == 2 && (0..).zip(bytes).all(is_writer);
        if !is_right {
            return Err(format!(
                "{name}: expected {sharing} sharing of bytes {bytes:?}, {WRITES} each: {found:?}"
            )
            .into());
        }
    }
    let of_others = lines.len() - expected.len();
    if of_others == 0 { Ok(()) } else { Err(format!("{of_others} more lines: {lines:#?}").into()) }
}

/// Memory that is first touched, then a file of the page cache that is read into a small buffer.
const KERNEL: &str = r#"
#define _GNU_SOURCE
#include <nodewise.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES (8ul << 20)

static char buffer[4096];

int main(void)
{
	char name[] = "/tmp/touches-XXXXXX";
	int file = mkstemp(name);
	char *start = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (file < 0 || start == MAP_FAILED || madvise(start, BYTES, MADV_NOHUGEPAGE))
		return 9;
	nodewise_phase("touch");
	for (unsigned long at = 0; at < BYTES; at += 4096)
		*(volatile char *)(start + at) = 1;
	nodewise_phase("");
	for (unsigned long at = 0; at < BYTES; at += sizeof buffer)
		if (write(file, buffer, sizeof buffer) != sizeof buffer)
			return 8;
	nodewise_phase("read");
	if (lseek(file, 0, SEEK_SET))
		return 7;
	for (unsigned long at = 0; at < BYTES; at += sizeof buffer)
		if (read(file, buffer, sizeof buffer) != sizeof buffer)
			return 6;
	nodewise_phase("");
	return unlink(name);
}
"#;
/// The part of the lines of a phase that the kernel reads beside them: 64 bytes for each page that it keeps of it (`struct page`),
/// page tables, lists of free pages. 1.9 to 3.3 % were seen on Linux 6.1 to 6.18.
const BESIDE_PAGES: u64 = 16;
/// Lines of the program itself in a phase, which finds what the kernel has just written in its cache. 4 and 144 were seen; without
/// the kernel's accesses it is two for each page.
const OF_PROGRAM: u64 = 1000;

/// The kernel's lines are counted where it zeroes and copies, on the node of the memory, and the program finds them in its cache.
pub fn kernel() -> Result<(), Failed> {
    if let Err(line) = Lab::for_test(&KernelChoice::default()) {
        eprintln!("{line}");
        return Ok(());
    }
    let folder = tempfile::Builder::new().prefix("touches").tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let program = compile(folder.path(), "touches", KERNEL)?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodewise"));
    command.args(["lab", "--machine", "2x(1c 512M); dist=21", "--timeout", "10m", "--count", "--json"]);
    command.args(["--with-kernel", "--by", "line"]);
    command.args(["--assert-local", "90", "--assert-local", "kernel=90", "--"]);
    command.args([env!("CARGO_BIN_EXE_nodewise"), "run", "--cpunodebind=0", "--membind=1", "--"]);
    let output = command.arg(&program).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let demands =
        ["of the cache lines are local: 90 % were", "kernel: ", "of the cache lines read are local: 90 %"];
    if output.status.code() != Some(1) || !demands.iter().all(|demand| said.contains(demand)) {
        return Err(format!("{}: {said}", output.status).into());
    }
    let json: Value = serde_json::from_slice(&output.stdout)?;
    let mut phases = ["touch", "read"].into_iter();
    phases.try_for_each(|phase| moved_by_kernel(&json, phase)).map_err(|why| format!("{why}\n{json:#}"))?;
    // Kernels zero pages in functions whose names begin so: those that are touched, and those of the file.
    let zeroed = read_by_kernel(&json, "clear_page");
    if zeroed >= 2 * LINES {
        Ok(())
    } else {
        Err(format!("clear_page: expected {} lines, found {zeroed}:\n{json:#}", 2 * LINES).into())
    }
}

/// Lines that functions of the kernel read whose names begin so.
fn read_by_kernel(json: &Value, name: &str) -> u64 {
    let is_named = |place: &Value| {
        let function = place["function"].as_str();
        place["in_kernel"] == true && function.is_some_and(|function| function.starts_with(name))
    };
    let places = &json["code"]["places"];
    let reads = json["code"]["reads"].as_array().into_iter().flatten();
    let chosen = reads.filter(|reads| {
        let place = reads["place_index"].as_u64().and_then(|place| usize::try_from(place).ok());
        place.is_some_and(|place| is_named(&places[place]))
    });
    chosen.filter_map(|reads| reads["lines_read"].as_u64()).sum()
}

/// Whether the kernel read the lines of a phase, from memory of node 1, and the program hardly any.
fn moved_by_kernel(json: &Value, phase: &str) -> Result<(), String> {
    let phases = json["phases"].as_array().into_iter().flatten();
    let index = phases.zip(0_u64..).find(|(it, _)| it["name"] == phase).map(|(_, index)| index);
    let index = index.ok_or_else(|| format!("no phase {phase}"))?;
    // Lines read by the program, and by the kernel: from memory of node 1, from other memory.
    let mut read = [[0; 2]; 2];
    for cell in json["cells"].as_array().into_iter().flatten().filter(|cell| cell["phase_index"] == index) {
        let lines = cell["lines_read"].as_u64().ok_or_else(|| format!("no lines_read: {cell}"))?;
        let in_kernel = cell["in_kernel"].as_bool().ok_or_else(|| format!("no in_kernel: {cell}"))?;
        let is_right = cell["cpu_node"] == 0 && cell["memory_node"] == 1;
        read[usize::from(in_kernel)][usize::from(!is_right)] += lines;
    }
    let [of_program, [right, elsewhere]] = read;
    let beside = LINES / BESIDE_PAGES;
    if !(LINES..=LINES + beside).contains(&right) || elsewhere > beside {
        return Err(format!(
            "{phase}: expected {LINES} lines of the kernel and up to {beside} beside: {read:?}"
        ));
    }
    let is_right = of_program.iter().sum::<u64>() <= OF_PROGRAM;
    if is_right {
        Ok(())
    } else {
        Err(format!("{phase}: expected up to {OF_PROGRAM} of the program: {read:?}"))
    }
}

/// The local share of all lines as the verdict has it.
fn verdict_of(said: &str) -> &str {
    let line = said.lines().find(|line| line.contains(" of the cache lines are local: 95 %"));
    let line = line.unwrap_or_default();
    let share = line.strip_prefix("nodewise: ").and_then(|line| line.split_once(" of the cache"));
    share.map_or("no verdict", |(share, _)| share)
}

fn compare(json: &Value) -> Result<(), String> {
    let mut lines: Vec<u64> = Vec::new();
    let (mut read, mut in_order) = (0, 0);
    for cell in json["cells"].as_array().ok_or("no cells")? {
        let number = |name: &str| cell[name].as_u64().ok_or_else(|| format!("{name} of {cell}"));
        if (number("cpu_node")?, number("memory_node").unwrap_or(9)) == (0, 1) {
            lines.push(number("lines_read")? + number("lines_written_back")?);
            read += number("lines_read")?;
            in_order += number("lines_read_in_order")?;
        }
    }
    lines.sort_unstable_by(|a, b| b.cmp(a));
    if lines.len() != ROUNDS.len() {
        return Err(format!("threads that moved lines: {lines:?}"));
    }
    for ((found, rounds), beside) in lines.iter().zip(ROUNDS).zip([OF_THREAD, OF_START, OF_START]) {
        let expected = rounds * LINES + TOUCHED;
        if !(expected..=expected + beside).contains(found) {
            return Err(format!(
                "{rounds} rounds are {expected} lines and up to {beside}: {found} were counted"
            ));
        }
    }
    // A walk begins again in each round, and expects a page of another place in memory as it expects the next line.
    let walked: u64 = ROUNDS.iter().map(|rounds| rounds * (LINES - 3)).sum();
    if in_order < walked - walked / 50 || in_order > read {
        return Err(format!("{in_order} lines of {read} are in order, expected {walked}"));
    }
    let remote = json["lines"].as_u64().zip(json["local_lines"].as_u64()).map(|(all, local)| all - local);
    let walked: u64 = ROUNDS.iter().map(|rounds| rounds * LINES + TOUCHED).sum();
    let is_right = remote.is_some_and(|remote| remote >= walked);
    if is_right { Ok(()) } else { Err(format!("{remote:?} remote lines, expected {walked} or more")) }
}
