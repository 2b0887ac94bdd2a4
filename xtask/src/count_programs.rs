//! `cargo xtask count-programs`: real programs counted under placements whose local share is known, and what counting costs.
//!
//! Programs that are bound to CPUs of one node, with memory of one node or of all in turns, have a share of local lines that
//! follows from the placement. What differs is named with the mapping that most of it is in. CPU time is that of the emulator
//! with the boot of the guest, once without and once with counting.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail, ensure};
use nodewise_lab::tools::find_program;
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
        line: "stress-ng --temp-path /tmp --stream 2 --stream-ops 2 --stream-l3-size 4M --quiet",
    },
    Counted {
        name: "sysbench",
        needs: &[("sysbench", "sysbench")],
        line: "sysbench memory --threads=2 --memory-block-size=8M --memory-total-size=128M run",
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
               (select 1 union all select i + 1 from n where i < 60000) insert into t select i, hex(i * 7919) from n; \
               select count(*), sum(length(b)) from t where b like \"%A%\"'",
    },
    Counted {
        name: "redis",
        needs: &[("redis-server", "redis-server"), ("redis-benchmark", "redis-tools")],
        line: "redis-server --port 0 --save '' --unixsocket /tmp/s > /tmp/log & \
               while [ ! -S /tmp/s ]; do sleep 0.1; done; redis-benchmark -q -s /tmp/s -n 5000 -d 2000 -r 5000 -t set,get; \
               kill $!; wait",
    },
    Counted {
        name: "java",
        needs: &[("java", "default-jre-headless")],
        line: "java -XX:+UseSerialGC -Xms64m -Xmx64m -XX:+AlwaysPreTouch -version",
    },
];

/// A placement on CPUs of node 0.
struct CountedPlacement {
    name: &'static str,
    options: &'static [&'static str],
    /// The share of local lines that follows from it on a machine with this number of nodes, in percent.
    expected: Option<fn(usize) -> f64>,
}

const PLACEMENTS: [CountedPlacement; 4] = [
    CountedPlacement { name: "default", options: &[], expected: None },
    CountedPlacement {
        name: "near",
        options: &["--cpunodebind=0", "--membind=0"],
        expected: Some(|_| 100.0),
    },
    CountedPlacement { name: "far", options: &["--cpunodebind=0", "--membind=1"], expected: Some(|_| 0.0) },
    CountedPlacement {
        name: "interleaved",
        options: &["--cpunodebind=0", "--interleave=all"],
        expected: Some(|nodes| 100.0 / nodes as f64),
    },
];

/// Bytes that programs compress or encode.
const DATA: u64 = 8 << 20;

/// Counts programs, all or those whose names begin with `chosen`, on machines.
pub fn run(root: &Path, machines: &[String], chosen: &str) -> Result<()> {
    let programs = || PROGRAMS.iter().filter(|program| program.name.starts_with(chosen));
    ensure!(programs().next().is_some(), "{chosen}: expected the beginning of one of {}", names());
    let needed = programs().flat_map(|program| program.needs).chain(&[("numactl", "numactl")]);
    let missing: Vec<&str> =
        needed.filter(|(program, _)| find_program(program).is_none()).map(|(_, package)| *package).collect();
    program::need_packages(&missing)?;
    program::show(program::cargo(root).args(["build", "-q", "--package", "nodewise"]))?;
    let target = target_folder(root);
    let nodewise = target.join("debug/nodewise");
    let folder = prepare(&target.join("count-programs"), root, &nodewise)?;
    println!(
        "| machine | program | placement | lines | local | expected | most of the difference | CPU time, counted |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for machine in machines {
        for counted in programs() {
            let guest = Guest { nodewise: &nodewise, folder: &folder, machine, line: counted.line };
            guest.report(counted.name)?;
        }
    }
    Ok(())
}

fn names() -> String {
    PROGRAMS.iter().map(|program| program.name).collect::<Vec<_>>().join(", ")
}

/// Compiles our own programs, and writes what others read.
fn prepare(folder: &Path, root: &Path, nodewise: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let sources = root.join("xtask/src/count_programs");
    for (name, option) in [("threads", "-pthread"), ("openmp", "-fopenmp")] {
        let mut compile = Command::new("gcc");
        compile.args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", option, "-o"]).arg(folder.join(name));
        program::quiet(compile.arg(sources.join(name).with_extension("c")))?;
    }
    let mut data = File::create(folder.join("data"))?;
    io::copy(&mut File::open(nodewise)?.take(DATA), &mut data)?;
    Ok(folder.to_owned())
}

/// A program in a guest of a machine.
struct Guest<'a> {
    nodewise: &'a Path,
    folder: &'a Path,
    machine: &'a str,
    line: &'a str,
}

impl Guest<'_> {
    /// Prints a row for each placement, and the cost of counting.
    fn report(&self, name: &str) -> Result<()> {
        for placement in &PLACEMENTS {
            let (counted, seconds) = self.run(&["--count", "--json"], placement.options)?;
            let json: Value = serde_json::from_slice(&counted.stdout).context("the counts are not JSON")?;
            let nodes = json["memory_nodes"].as_array().map_or(0, Vec::len);
            let expected = placement.expected.map(|expected| expected(nodes));
            let local = json["local_percent"].as_f64().context("no local share")?;
            let mut cost = format!("{seconds:.1} s");
            if placement.name == "near" {
                let (_, plain) = self.run(&[], placement.options)?;
                cost = format!("{seconds:.1} s, {plain:.1} s without: {:.2} times", seconds / plain);
            }
            let difference = expected.map(|expected| difference(&json, expected)).unwrap_or_default();
            println!(
                "| {} | {name} | {} | {} | {local:.1} % | {} | {difference} | {cost} |",
                self.machine,
                placement.name,
                json["lines"],
                expected.map_or_else(|| "-".to_owned(), |share| format!("{share:.1} %")),
            );
        }
        Ok(())
    }

    /// Runs the program in a guest; its output and the seconds of CPU time.
    fn run(&self, options: &[&str], placement: &[&str]) -> Result<(Output, f64)> {
        let before = children_seconds()?;
        let mut command = Command::new(self.nodewise);
        command.current_dir(self.folder).stdin(Stdio::null());
        command.args(["lab", "--machine", self.machine, "--timeout", "20m"]).args(options).arg("--");
        // numactl is small: few of the lines are its own.
        if !placement.is_empty() {
            command.arg("numactl").args(placement);
        }
        command.args(["sh", "-c", self.line]);
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
        Ok((output, children_seconds()? - before))
    }
}

/// The mapping with most lines whose share of local lines is not the expected one, and how far the sum of its lines is off.
fn difference(json: &Value, expected: f64) -> String {
    let mappings = json["mappings"].as_array().map_or(&[][..], Vec::as_slice);
    let off = |at: usize| {
        let of_it = json["parts"].as_array().into_iter().flatten().filter(|part| part["mapping_index"] == at);
        let (mut local, mut all) = (0.0, 0.0);
        for part in of_it {
            let lines = part["lines_read"].as_f64().unwrap_or(0.0);
            all += lines;
            local += if part["cpu_node"] == part["memory_node"] { lines } else { 0.0 };
        }
        (local - all * expected / 100.0).round()
    };
    let worst = (0..mappings.len()).map(|at| (at, off(at))).max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
    let Some((at, lines)) = worst.filter(|(_, lines)| *lines != 0.0) else { return String::new() };
    let name = mappings[at]["file"].as_str().or_else(|| mappings[at]["kind"].as_str()).unwrap_or("unknown");
    format!("{name}: {lines:+} local")
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
