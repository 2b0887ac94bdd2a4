//! `cargo xtask count-programs`: real programs counted under placements whose local share is known, and what counting costs.
//!
//! Programs that are bound to CPUs of one node, with memory of one node or of all in turns, have a share of local lines that
//! follows from the placement. What differs is named with the mapping that most of it is in. Lines of anonymous memory are
//! compared with its pages by node as the kernel reports them: our own programs ask it with `move_pages` at their end, and
//! `watch.c` looks at others from outside, in `numa_maps`, again and again while they run. All programs of a machine and a
//! placement run in one guest, each in a phase of its own. The cost of counting is measured apart: CPU time of the emulator with
//! the boot of the guest, once without and once with counting.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, anyhow, bail, ensure};
use nodewise_lab::tools::find_program;
use nodewise_machine::{NodeId, spec};
use serde_json::Value;

use crate::libnuma::build::target_folder;
use crate::program;

/// A program that runs in a guest.
struct Counted {
    name: &'static str,
    /// The programs that it needs, with Debian's packages.
    needs: &'static [(&'static str, &'static str)],
    /// The line of a shell, in a folder with our own programs and `data`.
    line: &'static str,
}

const fn own(name: &'static str, line: &'static str) -> Counted {
    Counted { name, needs: &[("gcc", "gcc")], line }
}

const PROGRAMS: [Counted; 13] = [
    own("stream", "./threads stream"),
    own("chase", "./threads chase"),
    own("first", "./threads first"),
    own("sharing", "./threads sharing"),
    own("queue", "./threads queue"),
    own("openmp", "./openmp"),
    Counted {
        name: "stress-ng",
        needs: &[("stress-ng", "stress-ng")],
        line: "stress-ng --temp-path /tmp --stream 2 --stream-ops 1 --stream-l3-size 4M --quiet",
    },
    Counted {
        name: "sysbench",
        needs: &[("sysbench", "sysbench")],
        line: "sysbench memory --threads=2 --memory-block-size=8M --memory-total-size=64M run",
    },
    Counted { name: "zstd", needs: &[("zstd", "zstd")], line: "zstd -q -T4 -B1M -c data" },
    Counted {
        name: "x265",
        needs: &[("x265", "x265")],
        line: "x265 --input data --input-res 320x180 --fps 25 --frames 4 --preset ultrafast --pools 2 -o /dev/null",
    },
    Counted {
        name: "sqlite",
        needs: &[("sqlite3", "sqlite3")],
        line: "sqlite3 :memory: 'create table t(a integer primary key, b text); with recursive n(i) as \
               (select 1 union all select i + 1 from n where i < 20000) insert into t select i, hex(i * 7919) from n; \
               select count(*), sum(length(b)) from t where b like \"%A%\"'",
    },
    Counted {
        name: "redis",
        needs: &[("redis-server", "redis-server"), ("redis-benchmark", "redis-tools")],
        line: "redis-server --port 0 --save '' --unixsocket /tmp/s > /tmp/log & \
               while [ ! -S /tmp/s ]; do sleep 0.1; done; redis-benchmark -q -s /tmp/s -n 2000 -d 2000 -r 2000 -t set,get; \
               kill $!; wait",
    },
    Counted {
        name: "java",
        needs: &[("java", "default-jre-headless")],
        line: "java -XX:+UseSerialGC -Xms64m -Xmx64m -XX:+AlwaysPreTouch -version",
    },
];

/// The machines that are counted unless others are named: two sockets, a ring of four nodes, and a node that has memory alone.
pub const MACHINES: [&str; 3] = [
    "2x(2c 1G); dist=21",
    "4x(1c 512M); dist=10,16,22,16/16,10,16,22/22,16,10,16/16,22,16,10",
    "(2c 640M) (2c 640M) (768M); dist=10,21,28/21,10,38/28,38,10",
];

/// A placement on CPUs of node 0.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Placed {
    Default,
    Near,
    /// With the memory of the node that is farthest from node 0.
    Far,
    Interleaved,
}

impl Placed {
    const ALL: [Self; 4] = [Self::Default, Self::Near, Self::Far, Self::Interleaved];

    const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Near => "near",
            Self::Far => "far",
            Self::Interleaved => "interleaved",
        }
    }

    /// The words before a program: numactl is small, few of the lines are its own.
    fn words(self, far: u32) -> Vec<String> {
        let memory = match self {
            Self::Default => return Vec::new(),
            Self::Near => "--membind=0".to_owned(),
            Self::Far => format!("--membind={far}"),
            Self::Interleaved => "--interleave=all".to_owned(),
        };
        vec!["numactl".to_owned(), "--cpunodebind=0".to_owned(), memory]
    }

    /// The share of local lines that follows from it on a machine with this number of nodes with memory, in percent.
    fn expected(self, nodes: usize) -> Option<f64> {
        match self {
            Self::Default => None,
            Self::Near => Some(100.0),
            Self::Far => Some(0.0),
            Self::Interleaved => Some(100.0 / nodes as f64),
        }
    }
}

/// Bytes that programs compress or encode.
const DATA: u64 = 4 << 20;
/// Percentage points between lines and pages, or between lines and arithmetic, above which a row is marked.
const BOUND: f64 = 2.0;
/// Lines and pages below which shares are not compared.
const FEW: u64 = 1000;
/// Kinds of mappings whose pages no file has.
const ANONYMOUS: [&str; 3] = ["anonymous", "heap", "stack"];

/// Choice of machines, programs and placements.
pub struct Choice {
    pub machines: Vec<String>,
    /// The beginning of the names of programs.
    pub program: String,
    /// The beginning of the names of placements.
    pub placement: String,
    /// Whether the cost of counting is measured instead.
    pub cost: bool,
}

/// Counts programs on machines under each placement: a row for each.
pub fn run(root: &Path, choice: &Choice) -> Result<()> {
    let programs: Vec<&Counted> =
        PROGRAMS.iter().filter(|program| program.name.starts_with(&choice.program)).collect();
    ensure!(!programs.is_empty(), "{}: expected the beginning of one of {}", choice.program, names());
    let placements: Vec<Placed> =
        Placed::ALL.into_iter().filter(|placed| placed.name().starts_with(&choice.placement)).collect();
    ensure!(!placements.is_empty(), "{}: expected default, near, far or interleaved", choice.placement);
    let needed = programs.iter().flat_map(|program| program.needs).chain(&[("numactl", "numactl")]);
    let missing: Vec<&str> =
        needed.filter(|(program, _)| find_program(program).is_none()).map(|(_, package)| *package).collect();
    program::need_packages(&missing)?;
    program::show(program::cargo(root).args(["build", "-q", "--package", "nodewise"]))?;
    let target = target_folder(root);
    let nodewise = target.join("debug/nodewise");
    let folder = prepare(&target.join("count-programs"), root, &nodewise)?;
    if choice.cost {
        println!("| machine | program | CPU time | counted | ratio |\n|---|---|---|---|---|");
    } else {
        println!(
            "| machine | program | placement | lines | local | expected | most of the difference | anonymous lines by \
             node | pages by node | difference | by mapping |\n|---|---|---|---|---|---|---|---|---|---|---|"
        );
    }
    for machine in &choice.machines {
        let guest = Guest { nodewise: &nodewise, folder: &folder, machine, far: farthest(machine)? };
        if choice.cost {
            programs.iter().try_for_each(|program| guest.cost(program))?;
        } else {
            placements.iter().try_for_each(|placed| guest.report(*placed, &programs))?;
        }
    }
    Ok(())
}

fn names() -> String {
    PROGRAMS.iter().map(|program| program.name).collect::<Vec<_>>().join(", ")
}

/// The node whose memory is farthest from node 0.
fn farthest(machine: &str) -> Result<u32> {
    let machine = spec::machine(machine).map_err(|error| anyhow!("{machine}: {error}"))?;
    let zero = NodeId::new(0);
    let far =
        machine.nodes.keys().filter(|node| **node != zero).max_by_key(|node| machine.distance(zero, **node));
    far.map(|node| node.number()).context("the machine needs two nodes")
}

/// Compiles our own programs, and writes what others read.
fn prepare(folder: &Path, root: &Path, nodewise: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let sources = root.join("xtask/src/count_programs");
    for (name, option) in [("threads", "-pthread"), ("openmp", "-fopenmp"), ("watch", "-pthread")] {
        let mut compile = Command::new("gcc");
        compile.args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", option, "-I"]);
        compile.arg(root.join("crates/counter/include")).arg("-o").arg(folder.join(name));
        program::quiet(compile.arg(sources.join(name).with_extension("c")))?;
    }
    let mut data = File::create(folder.join("data"))?;
    io::copy(&mut File::open(nodewise)?.take(DATA), &mut data)?;
    Ok(folder.to_owned())
}

/// A guest of a machine.
struct Guest<'a> {
    nodewise: &'a Path,
    folder: &'a Path,
    machine: &'a str,
    /// The node of the placement that is far.
    far: u32,
}

impl Guest<'_> {
    /// Runs all programs in one guest, one after the other, and prints a row for each.
    fn report(&self, placed: Placed, programs: &[&Counted]) -> Result<()> {
        let mut words = vec!["./watch".to_owned()];
        words.extend(placed.words(self.far));
        words.push("--".to_owned());
        words.extend(programs.iter().flat_map(|program| [program.name.to_owned(), program.line.to_owned()]));
        let output = self.run(&["--count", "--json"], &words)?;
        // For a closer look at a row.
        let name = format!("{}-{}.json", self.machine.replace(['/', ' '], "_"), placed.name());
        fs::write(self.folder.join(name), &output.stdout)?;
        let json: Value = serde_json::from_slice(&output.stdout).context("the counts are not JSON")?;
        let said = String::from_utf8_lossy(&output.stderr);
        for program in programs {
            println!("{}", row(self.machine, program, placed, &json, &said)?);
        }
        Ok(())
    }

    /// Prints the CPU time of a guest in which a program runs near its memory, without and with counting.
    fn cost(&self, counted: &Counted) -> Result<()> {
        let mut words = Placed::Near.words(self.far);
        words.extend(["sh", "-c", counted.line].map(str::to_owned));
        let seconds = |options: &[&str]| -> Result<f64> {
            let before = children_seconds()?;
            self.run(options, &words)?;
            Ok(children_seconds()? - before)
        };
        let (plain, with) = (seconds(&["--engine=tcg"])?, seconds(&["--count", "--json"])?);
        println!(
            "| {} | {} | {plain:.1} s | {with:.1} s | {:.2} |",
            self.machine,
            counted.name,
            with / plain
        );
        Ok(())
    }

    /// Runs a command in the guest.
    fn run(&self, options: &[&str], words: &[String]) -> Result<Output> {
        let mut command = Command::new(self.nodewise);
        command.current_dir(self.folder).stdin(Stdio::null());
        command
            .args(["lab", "--machine", self.machine, "--timeout", "2h"])
            .args(options)
            .arg("--")
            .args(words);
        let output =
            command.output().with_context(|| format!("cannot start: {}", program::line(&command)))?;
        if !output.status.success() {
            bail!(
                "{}: {}\n{}",
                program::line(&command),
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(output)
    }
}

/// The row of a program: its lines against arithmetic, and its anonymous lines against the pages that the kernel reports.
fn row(machine: &str, program: &Counted, placed: Placed, json: &Value, said: &str) -> Result<String> {
    let name = program.name;
    let watched =
        figures(said, "watched", name).with_context(|| format!("{name} was not watched: {said}"))?;
    ensure!(watched == [0], "{name}, {}: exit status {watched:?}\n{said}", placed.name());
    // Arrays of our own programs are looked at by themselves, at their end.
    let arrays = figures(said, "placed", name);
    let seen = if arrays.is_some() { Vec::new() } else { seen(said, name) };
    let phases = json["phases"].as_array().map_or(&[][..], Vec::as_slice);
    let at = phases
        .iter()
        .position(|phase| phase["name"] == name)
        .with_context(|| format!("{name} has no phase"))?;
    let nodes: Vec<u64> =
        json["memory_nodes"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    let is_anonymous =
        |mapping: &Value| mapping["kind"].as_str().is_some_and(|kind| ANONYMOUS.contains(&kind));
    let lines = lines(json, at, &nodes, is_anonymous);
    let of_pages: Vec<u64> = nodes
        .iter()
        .map(|node| {
            let of_node = |pages: &[u64]| pages.get(*node as usize).copied().unwrap_or(0);
            arrays.as_deref().map_or_else(|| seen.iter().map(|seen| of_node(&seen.pages)).sum(), of_node)
        })
        .collect();
    let mark = |is_off: bool| if is_off { " !" } else { "" };
    let points = |apart: Option<f64>| {
        apart.map_or_else(|| "-".to_owned(), |apart| format!("{apart:.1}{}", mark(apart > BOUND)))
    };
    let local = phases[at]["local_percent"].as_f64();
    let expected = placed.expected(nodes.len());
    let off = local.zip(expected).is_some_and(|(local, expected)| (local - expected).abs() > BOUND);
    let percent = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1} %"));
    Ok(format!(
        "| {machine} | {name} | {} | {} | {} | {}{} | {} | {} | {} | {} | {} |",
        placed.name(),
        phases[at]["lines"],
        percent(local),
        percent(expected),
        mark(off),
        expected.map(|expected| difference(json, at, expected)).unwrap_or_default(),
        shares(&lines),
        shares(&of_pages),
        points(apart(&lines, &of_pages)),
        by_mapping(json, at, &nodes, &seen)
            .map_or_else(|| "-".to_owned(), |(apart, worst)| format!("{}: {worst}", points(Some(apart)))),
    ))
}

/// The numbers behind two words.
fn figures(said: &str, word: &str, name: &str) -> Option<Vec<u64>> {
    let mut rests =
        said.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' ')?.strip_prefix(name));
    let rest = rests.find_map(|rest| rest.strip_prefix(' '))?;
    rest.split_whitespace().map(|number| number.parse().ok()).collect()
}

/// Pages that the watch saw.
struct Seen {
    process: u64,
    /// `heap`, `stack` or `anonymous`.
    kind: String,
    /// By the number of the node, the sum of all looks.
    pages: Vec<u64>,
}

/// The pages of a program by process and kind of mapping.
fn seen(said: &str, name: &str) -> Vec<Seen> {
    let of_program =
        said.lines().filter_map(|line| line.strip_prefix("pages ")?.strip_prefix(name)?.strip_prefix(' '));
    let read = |text: &str| {
        let mut words = text.split(' ');
        let (process, kind) = (words.next()?.parse().ok()?, words.next()?.to_owned());
        Some(Seen { process, kind, pages: words.filter_map(|word| word.parse().ok()).collect() })
    };
    of_program.filter_map(read).collect()
}

/// Lines that a phase read from mappings, by node.
fn lines(json: &Value, phase: usize, nodes: &[u64], is_wanted: impl Fn(&Value) -> bool) -> Vec<u64> {
    let mut lines = vec![0; nodes.len()];
    for part in json["parts"].as_array().into_iter().flatten().filter(|part| part["phase_index"] == phase) {
        let at = part["mapping_index"].as_u64().and_then(|at| usize::try_from(at).ok());
        let mapping = at.and_then(|at| json["mappings"].get(at)).unwrap_or(&Value::Null);
        let node = nodes.iter().position(|node| part["memory_node"] == *node);
        if let Some(node) = node.filter(|_| is_wanted(mapping)) {
            lines[node] += part["lines_read"].as_u64().unwrap_or(0);
        }
    }
    lines
}

/// Percentage points between lines and pages where each kind of mapping of each process counts by its lines, and the mapping
/// that most of them is in; `None` where no pages were seen. What is left is read more often in one part than in another.
fn by_mapping(json: &Value, phase: usize, nodes: &[u64], seen: &[Seen]) -> Option<(f64, String)> {
    let mut all = 0.0;
    let mut off = vec![0.0; nodes.len()];
    let mut worst = (0.0, String::new());
    for Seen { process, kind, pages } in seen {
        let lines =
            lines(json, phase, nodes, |mapping| mapping["process"] == *process && mapping["kind"] == **kind);
        let (of_lines, of_pages) = (lines.iter().sum::<u64>() as f64, pages.iter().sum::<u64>() as f64);
        if of_pages == 0.0 {
            continue;
        }
        all += of_lines;
        let mut most: f64 = 0.0;
        for ((node, lines), off) in nodes.iter().zip(lines).zip(&mut off) {
            let share = pages.get(*node as usize).map_or(0.0, |pages| *pages as f64 / of_pages);
            let own = lines as f64 - of_lines * share;
            *off += own;
            most = most.max(own.abs());
        }
        if most > worst.0 {
            worst = (most, format!("{} of {}", kind, process_name(json, *process)));
        }
    }
    let most = off.into_iter().map(f64::abs).max_by(f64::total_cmp)?;
    (all >= FEW as f64).then(|| (100.0 * most / all, worst.1))
}

/// The name of a process, that of its first thread.
fn process_name(json: &Value, process: u64) -> &str {
    let mut threads = json["threads"].as_array().into_iter().flatten();
    let first = threads.find(|thread| thread["thread"] == process && thread["process"] == process);
    first.and_then(|thread| thread["name"].as_str()).unwrap_or("unknown")
}

/// Shares of nodes in percent, one after the other.
fn shares(counts: &[u64]) -> String {
    let all: u64 = counts.iter().sum();
    if all == 0 {
        return "-".to_owned();
    }
    let share = |count: &u64| format!("{:.1}", 100.0 * *count as f64 / all as f64);
    counts.iter().map(share).collect::<Vec<_>>().join(" ")
}

/// Percentage points between two shares of the node where they are farthest apart; `None` where there is too little of either.
fn apart(lines: &[u64], pages: &[u64]) -> Option<f64> {
    let (all, of_pages): (u64, u64) = (lines.iter().sum(), pages.iter().sum());
    if all < FEW || of_pages == 0 {
        return None;
    }
    let points = lines.iter().zip(pages).map(|(lines, pages)| {
        (100.0 * *lines as f64 / all as f64 - 100.0 * *pages as f64 / of_pages as f64).abs()
    });
    points.max_by(f64::total_cmp)
}

/// The mapping of a phase with most lines whose share of local lines is not the expected one, and how far the sum of its lines is
/// off. Mappings of several processes of one kind or file are one.
fn difference(json: &Value, phase: usize, expected: f64) -> String {
    let mut off: BTreeMap<&str, f64> = BTreeMap::new();
    for part in json["parts"].as_array().into_iter().flatten().filter(|part| part["phase_index"] == phase) {
        let at = part["mapping_index"].as_u64().and_then(|at| usize::try_from(at).ok());
        let mapping = at.and_then(|at| json["mappings"].get(at)).unwrap_or(&Value::Null);
        let name = mapping["file"].as_str().or_else(|| mapping["kind"].as_str()).unwrap_or("unknown");
        let lines = part["lines_read"].as_f64().unwrap_or(0.0);
        let local = if part["cpu_node"] == part["memory_node"] { lines } else { 0.0 };
        *off.entry(name).or_default() += local - lines * expected / 100.0;
    }
    let worst = off.into_iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
    worst
        .filter(|(_, lines)| lines.round() != 0.0)
        .map_or_else(String::new, |(name, lines)| format!("{name}: {lines:+.0} local"))
}

/// Seconds of CPU time that ended children of this process had, with theirs: `cutime` and `cstime` of proc_pid_stat(5).
fn children_seconds() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks =
        |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).context("/proc/self/stat");
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    Ok((ticks(13)? + ticks(14)?) / per_second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn far_memory_is_the_farthest_from_the_first_node() {
        let far = MACHINES.map(|machine| farthest(machine).unwrap());
        assert_eq!(far, [1, 2, 2]);
        assert!(farthest("(2c 1G)").is_err() && farthest("x").is_err());
    }

    #[test]
    fn a_row_compares_lines_with_pages_and_arithmetic() {
        let part = |phase: u64, mapping: u64, node: u64, lines: u64| json!({"phase_index": phase, "mapping_index": mapping, "cpu_node": 0, "memory_node": node, "lines_read": lines});
        let json = json!({
            "memory_nodes": [0, 1],
            "phases": [{"lines": 9}, {"name": "stream", "lines": 4100, "local_percent": 72.0}],
            "mappings": [{"kind": "unknown"}, {"process": 7, "kind": "anonymous"}, {"kind": "file", "file": "libc.so.6"}],
            "threads": [{"thread": 8, "process": 7, "name": "other"}, {"thread": 7, "process": 7, "name": "own"}],
            "parts": [part(1, 1, 0, 3000), part(1, 1, 1, 1000), part(1, 2, 0, 100), part(0, 1, 1, 5)],
        });
        let said = "noise\nplaced stream 512 512 0\nwatched stream 0\npages stream 7 anonymous 600 400 0\n";
        let row = |placed, said: &str| row("M", &PROGRAMS[0], placed, &json, said);
        assert_eq!(
            row(Placed::Interleaved, said).unwrap(),
            "| M | stream | interleaved | 4100 | 72.0 % | 50.0 % ! | anonymous: +1000 local | 75.0 25.0 | 50.0 50.0 | \
             25.0 ! | - |"
        );
        // Without what it says itself, pages are those that were seen from outside.
        let said = "watched stream 0\npages stream 7 anonymous 370 130\npages stream 8 heap 130 370\n";
        assert_eq!(
            row(Placed::Default, said).unwrap(),
            "| M | stream | default | 4100 | 72.0 % | - |  | 75.0 25.0 | 50.0 50.0 | 25.0 ! | 1.0: anonymous of own |"
        );
        assert!(row(Placed::Near, "watched stream 1\n").is_err());
        assert!(row(Placed::Near, "watched stream-ng 0\n").is_err());
    }
}
