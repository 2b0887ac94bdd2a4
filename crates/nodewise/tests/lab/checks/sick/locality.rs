//! Threads, files and page cache away from memory, and huge pages that stay where they are.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use nodewise_machine::Bytes;
use serde_json::Value;

use super::{
    BALANCING, MEMORY, about, about_nodes, at_work, is_silent, is_silent_about, left_about, names, pool,
    restart, started_by, within,
};
use crate::checks::doctor::{Diagnosed, run};
use crate::checks::moving::file;
use crate::checks::same;
use crate::checks::short::{DISK, Disk, HUGE, Loop, WINDOW, full_of_cache, reading, shell};
use crate::checks::ways::Nodes;
use crate::kernel;
use crate::nodewise::Context;
use crate::setting::Setting;

/// How often a state that comes and goes is looked for.
const LOOKS: usize = 10;
/// More than all nodes have.
const ENDLESS: &str = "4G";

/// Threads on all nodes, and memory that one of them filled.
pub fn one_toucher(context: &Context) -> Result<(), String> {
    let rule = "first-touch-on-one";
    let Nodes { ids: [a, ..], cpus } = Nodes::find(context)?;
    let _balancing = Setting::with(BALANCING, "0")?;
    let threads = cpus.map(|cpu| cpu.to_string()).join("+");
    let way = format!("kib={MEMORY} touched-on={} workers={threads} reads", cpus[0]);
    let mut program = at_work("filled by one thread", &[], &way)?;
    program.spent()?;
    let finding = about(context, rule, &program)?;
    about_nodes(&finding, &[a])?;
    let spent = program.spent()?;
    let on_a = spent.get(&a.number()).copied().unwrap_or_default() / spent.values().sum::<f64>();
    within(&finding, &format!("memory on node {a}"), "share", 0.8..=1.0)?;
    within(&finding, &format!("CPU time on node {a}"), "share", on_a - 0.1..=on_a + 0.1)?;
    let others = MEMORY as f64 * 1024.0 * (1.0 - on_a);
    let concerns = finding["concerns_bytes"].as_f64().unwrap_or_default();
    same(&format!("whether {concerns} is near {others}"), (concerns / others - 1.0).abs() < 0.25, true)?;
    drop(program);
    // As the mend says: each thread fills what it uses.
    let way = format!("kib=64 workers={threads} each={}", MEMORY / 4);
    is_silent_about(context, rule, &at_work("filled by each", &[], &way)?)
}

/// A thread that goes from node to node, as far as it may.
pub fn wanderer(context: &Context) -> Result<(), String> {
    let rule = "thread-wanders";
    let Nodes { ids: [a, ..], cpus } = Nodes::find(context)?;
    let _balancing = Setting::with(BALANCING, "0")?;
    let wanders = cpus.map(|cpu| cpu.to_string()).join("+");
    let way = format!("kib={MEMORY} touched-on={} wanders={wanders} reads", cpus[0]);
    let program = at_work("wanders", &[], &way)?;
    // One window in four ends where it began.
    let mut found = None;
    for _ in 0..LOOKS {
        found = left_about(context, rule, &[program.pid])?;
        if found.is_some() {
            break;
        }
    }
    let finding = found.ok_or("thread-wanders does not fire")?;
    super::is_about(&finding, &program)?;
    about_nodes(&finding, &[a])?;
    within(&finding, "threads that wander", "share", 1.0..=1.0)?;
    within(&finding, &format!("memory on node {a}"), "share", 0.8..=1.0)?;
    drop(program);
    let program = started_by(&restart(context, &finding)?, &way)?;
    for _ in 0..3 {
        is_silent_about(context, rule, &program)?;
    }
    Ok(())
}

/// A file that another node's job read: of a disk, since memory holds no copies of a file in memory. A guest has no module
/// for file systems that one could make there.
pub fn far_file(context: &Context) -> Result<(), String> {
    let rule = "file-cache-far";
    let Nodes { ids: [a, _, c, _], cpus: [on_a, _, on_c, _] } = Nodes::find(context)?;
    let _disk = Disk::with("256M")?;
    let model = file("model");
    let path = model.display().to_string();
    shell(&format!("mknod {path} b $(tr : ' ' < /sys/block/zram0/dev)"))?;
    // The cache of a disk goes with the last that has it open.
    let open = fs::File::open(&model).map_err(|error| format!("{path}: {error}"))?;
    shell(&format!("taskset -c {on_c} dd if={path} of=/dev/null bs=1M count={}", MEMORY >> 10))?;
    let way = format!("kib={MEMORY} file={path}");
    let program = at_work("reads it from another node", &[], &format!("{way} cpu={on_a}"))?;
    let finding = about(context, rule, &program)?;
    about_nodes(&finding, &[c])?;
    within(&finding, &format!("\"{path}\" on node {c}"), "share", 0.95..=1.0)?;
    let size = (MEMORY << 10) as f64;
    within(&finding, "in memory", "size_bytes", size..=size)?;
    drop(program);
    run(context, &finding["mend"][0]["commands"])?;
    let (cpus, memory) = (format!("--cpunodebind={a}"), format!("--membind={a}"));
    let program = at_work("reads it again", &[context.path(), "run", &cpus, &memory, "--"], &way)?;
    let silent = is_silent_about(context, rule, &program);
    drop((program, open));
    let _ = fs::remove_file(&model);
    silent
}

/// A rule that speaks about a state that comes and goes.
fn found_once(context: &Context, rule: &str) -> Result<Value, String> {
    let mut last = Value::Null;
    for _ in 0..LOOKS {
        let found = Diagnosed::with(context, &[WINDOW])?;
        if let Some(finding) = found.finding(rule) {
            return Ok(finding.clone());
        }
        last = found.document;
    }
    Err(format!("{rule} does not fire: {last}"))
}

/// A job whose page cache fills its node and goes on elsewhere.
pub fn full_of_files(context: &Context) -> Result<(), String> {
    let rule = "cache-fills-node";
    let Nodes { ids: [_, b, ..], cpus: [_, on_b, ..] } = Nodes::find(context)?;
    let foreign = || kernel::numastat().get(&b.number()).map_or(0, |counters| counters.foreign);
    shell("echo 3 > /proc/sys/vm/drop_caches")?;
    let _disk = Disk::with("640M")?;
    // The cache of a disk goes with the last that has it open: the job holds it for a while.
    let job = format!("{{ {}; sleep 4; }} 3< {DISK}", reading());
    let reader = Loop::on(on_b, &[], &job)?;
    let before = foreign();
    let finding = found_once(context, rule)?;
    about_nodes(&finding, &[b])
        .or_else(|_| same("subject", finding["subject"]["nodes"].as_str(), Some(b.to_string().as_str())))?;
    within(&finding, "page cache", "share", 0.6..=1.0)?;
    within(&finding, "from other nodes", "share", 0.01..=1.0)?;
    same("whether the kernel took pages of others for its own", foreign() > before, true)?;
    drop(reader);
    // Its first mend makes room at once; with the second the job leaves its node free.
    run(context, &finding["mend"][0]["commands"])?;
    let spread =
        finding["mend"][1]["commands"][0].as_str().and_then(|command| command.strip_suffix("COMMAND"));
    let spread = spread.ok_or_else(|| format!("no mend spreads the job: {finding}"))?;
    let words: Vec<&str> = spread
        .split_whitespace()
        .map(|word| if word == "nodewise" { context.path() } else { word })
        .collect();
    let _reader = Loop::on(on_b, &words, &job)?;
    for _ in 0..3 {
        let left = Diagnosed::with(context, &[WINDOW])?;
        left.finding(rule).map_or(Ok(()), |left| Err(format!("{rule} still fires: {left}")))?;
    }
    Ok(())
}

/// Page cache that goes round on one node.
pub fn one_reclaimer(context: &Context) -> Result<(), String> {
    let rule = "kswapd-one-node";
    let Nodes { ids: [_, b, ..], cpus: [on_a, ..] } = Nodes::find(context)?;
    shell("echo 3 > /proc/sys/vm/drop_caches")?;
    let disk = Disk::with(ENDLESS)?;
    let bound = format!("--membind={b}");
    let reader = Loop::on(on_a, &[context.path(), "run", &bound, "--"], &reading())?;
    full_of_cache(context, b, 8)?;
    let finding = found_once(context, rule)?;
    same("subject", finding["subject"]["nodes"].as_str(), Some(b.to_string().as_str()))?;
    within(&finding, &format!("kswapd{b}"), "share", 0.2..=1.0)?;
    // Page cache is replaced by page cache.
    same("severity", finding["severity"].as_str(), Some("note"))?;
    drop(reader);
    drop(disk);
    is_silent(context, rule)
}

/// Pages of a pool on another node, which balancing never moves.
pub fn pool_that_stays(context: &Context) -> Result<(), String> {
    let rule = "hugetlb-stays";
    let Nodes { ids: [_, _, c, _], cpus: [on_a, _, on_c, _] } = Nodes::find(context)?;
    let _balancing = Setting::with(BALANCING, "1")?;
    pool(context, [0, 0, 20, 0])?;
    let size = Bytes::from_mib(32);
    let way = format!("kib={} pages=pool cpu={on_a} reads", size.get() >> 10);
    let checked = at_work("in a pool", &[], &format!("{way} touched-on={on_c}")).and_then(|program| {
        let finding = about(context, rule, &program)?;
        names(&finding, c)?;
        within(&finding, "in pools", "share", 0.8..=1.0)?;
        within(&finding, "stranded", "share", 0.8..=1.0)?;
        drop(program);
        // A pool on its own node, and another start there.
        run(context, &finding["mend"][0]["commands"])?;
        let program = started_by(&restart(context, &finding)?, &way)?;
        is_silent_about(context, rule, &program)
    });
    pool(context, [0; 4])?;
    checked
}

/// A store that fills memory in huge pages, forks, and writes a byte of each of them: what was copied meanwhile, in KiB.
const STORE: &str = r#"
$0 = "redis-server";
my $size = 64 << 20;
my $store = "x" x $size;
sub sum {
    my ($name, $sum) = (shift, 0);
    open(my $rollup, "<", "/proc/self/smaps_rollup") or die;
    while (<$rollup>) { $sum += $1 if /^$name:\s+(\d+)/ }
    return $sum;
}
my $huge = sum("AnonHugePages");
my $child = fork() // die;
if ($child == 0) { sleep 600; exit }
my $before = sum("Private_Dirty");
for (my $at = 0; $at < $size; $at += 2 << 20) { substr($store, $at, 1) = "y" }
my $copied = sum("Private_Dirty") - $before;
# Some huge pages are left: of those that were not written to since the fork the kernel took none apart.
my $more = "z" x ($size + 1);
$| = 1;
print "$huge $copied ", sum("AnonHugePages"), "\n";
my $end = <STDIN>;
kill "KILL", $child;
"#;

/// The store, and its child; both end when dropped.
struct Store {
    child: Child,
    huge: u64,
    copied: u64,
    left: u64,
}

impl Store {
    fn start() -> Result<Self, String> {
        let mut command = Command::new("perl");
        command.args(["-e", STORE]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("perl: {error}"))?;
        let mut line = String::new();
        let output = child.stdout.take().ok_or("no output")?;
        BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let [huge, copied, left] = numbers[..] else { return Err(format!("the store printed {line:?}")) };
        Ok(Self { child, huge, copied, left })
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// A store with huge pages and a child: this kernel copies small pages, so nothing is wrong.
pub fn forking_store(context: &Context) -> Result<(), String> {
    let _mode = Setting::with(HUGE, "always")?;
    let store = Store::start()?;
    let at_least = |what: &str, kib: u64, least: u64| {
        if kib >= least { Ok(()) } else { Err(format!("{what}: got {kib} KiB, expected {least}")) }
    };
    at_least("huge pages of the store", store.huge, 32 << 10)?;
    at_least("huge pages after the fork", store.left, 32 << 10)?;
    // A byte of each of 32 huge pages: 128 KiB, where older kernels copied 64 MiB.
    same(&format!("whether {} KiB are small copies", store.copied), store.copied < 4 << 10, true)?;
    let name = fs::read_to_string(format!("/proc/{}/comm", store.child.id())).unwrap_or_default();
    same("name", name.trim(), "redis-server")?;
    let left = left_about(context, "thp-and-fork", &[store.child.id()])?;
    left.map_or(Ok(()), |finding| Err(format!("thp-and-fork fires: {finding}")))
}

/// A server of MongoDB and the mode of huge pages that another version wants.
pub fn outdated_advice(context: &Context) -> Result<(), String> {
    let rule = "thp-advice-outdated";
    for (version, sick, right) in [("8.0.4", "never", "always"), ("7.0.14", "always", "never")] {
        let _mode = Setting::with(HUGE, sick)?;
        let variable = format!("MONGO_VERSION={version}");
        let program = at_work("mongod", &["env", &variable], &format!("kib={MEMORY} name=mongod"))?;
        let finding = about(context, rule, &program)?;
        let value = |fact: &str, key: &str| {
            let evidence = finding["evidence"].as_array().into_iter().flatten();
            evidence.filter(|of| of["fact"] == fact).map(|of| of["value"][key].clone()).next()
        };
        same("mode", value("mode", "text"), Some(Value::from(sick)))?;
        let major = version.split('.').next().and_then(|number| number.parse::<u64>().ok());
        same("version", value("version", "count").and_then(|count| count.as_u64()), major)?;
        run(context, &finding["mend"][0]["commands"])?;
        let mode = kernel::line(HUGE)?;
        same(&format!("whether {mode} is {right}"), mode.contains(&format!("[{right}]")), true)?;
        is_silent_about(context, rule, &program)?;
        run(context, &finding["mend"][0]["undo"])?;
        about(context, rule, &program)?;
    }
    Ok(())
}
