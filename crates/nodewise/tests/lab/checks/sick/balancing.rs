//! Automatic balancing that costs, cannot help, is too slow, or is not alone.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{
    BALANCING, MEMORY, about, at_work, evidence, fires, is_silent, is_silent_about, names, restart,
    started_by, within,
};
use crate::checks::doctor::{Diagnosed, run};
use crate::checks::moving::file;
use crate::checks::running::{event, quick_balancing};
use crate::checks::same;
use crate::checks::short::WINDOW;
use crate::checks::ways::Nodes;
use crate::kernel;
use crate::nodewise::{Context, complaint};
use crate::observer::Observed;
use crate::setting::Setting;

/// Memory of a helper, in KiB: less than matters, with pages that each program has.
const HELPER: u64 = 14 << 10;
/// The age from which the rule about pages that move to and fro judges a process.
const YOUNG: Duration = Duration::from_secs(62);

const PACE: &str = "/sys/kernel/debug/sched/numa_balancing";

/// Memory on two nodes under a binding that keeps balancing away.
pub fn bound_over_two(context: &Context) -> Result<(), String> {
    let rule = "balancing-cannot";
    let Nodes { ids: [a, _, c, _], cpus: [on_a, _, on_c, _] } = Nodes::find(context)?;
    let _balancing = Setting::with(BALANCING, "1")?;
    let bound = [context.path(), "run", &format!("--membind={a},{c}"), "--"].map(str::to_owned);
    let way = format!("kib={MEMORY} cpu={on_a} touched-on={on_c} reads");
    let program = started_by(&bound, &way)?;
    let finding = about(context, rule, &program)?;
    names(&finding, c)?;
    within(&finding, "stranded", "share", 0.8..=1.0)?;
    let least = (MEMORY << 10) as f64;
    let concerns = finding["concerns_bytes"].as_f64().unwrap_or_default();
    same(&format!("whether {concerns} are stranded"), (least..=least * 1.25).contains(&concerns), true)?;
    drop(program);
    let program = started_by(&restart(context, &finding)?, &way)?;
    is_silent_about(context, rule, &program)
}

/// Thresholds of a site for this check.
fn thresholds(text: &str) -> Result<String, String> {
    let path: PathBuf = file("balancing.toml");
    fs::write(&path, text).map_err(|error| error.to_string())?;
    Ok(path.display().to_string())
}

/// A process that one pass takes longer to look at than a site allows.
pub fn slow_scan(context: &Context) -> Result<(), String> {
    let rule = "scan-too-slow";
    let Nodes { ids: [_, _, c, _], cpus: [on_a, _, on_c, _] } = Nodes::find(context)?;
    let _pace = quick_balancing();
    let _size = Setting::keep(format!("{PACE}/scan_size_mb"))?;
    // The first pass begins late, so that the memory stays where it is.
    let _delay = Setting::with(format!("{PACE}/scan_delay_ms"), "900000")?;
    let _balancing = Setting::with(BALANCING, "1")?;
    // A fiftieth of a second, where five minutes are the rule: 64 MiB stand for a terabyte.
    let path = thresholds("[scan-too-slow]\npass_s = 0.02\n")?;
    let way = format!("kib={MEMORY} cpu={on_a} touched-on={on_c} reads");
    let program = at_work("large", &[], &way)?;
    let pid = format!("--pid={}", program.pid);
    let look = || Diagnosed::with(context, &["--window=2s", "--thresholds", &path, &pid]);
    let found = look()?;
    let finding = found.finding(rule).ok_or_else(|| format!("{rule} does not fire: {}", found.document))?;
    super::is_about(finding, &program)?;
    names(finding, c)?;
    same("summary", finding["summary"].as_str().is_some_and(|text| text.ends_with(" s at best")), true)?;
    let before = kernel::line(&format!("{PACE}/scan_size_mb"))?;
    same(
        "undo",
        finding["mend"][0]["undo"][0].as_str(),
        Some(&*format!("echo {before} > {PACE}/scan_size_mb")),
    )?;
    let mended = |key: &str, fires: bool| {
        run(context, &finding["mend"][0][key])?;
        same(&format!("whether {rule} fires after {key}"), look()?.finding(rule).is_some(), fires)
    };
    mended("commands", false)?;
    mended("undo", true)
}

/// Programs that are placed, and a small one for which balancing scans.
pub fn placed(context: &Context) -> Result<(), String> {
    let rule = "balancing-on-but-placed";
    let Nodes { ids: [a, b, ..], cpus } = Nodes::find(context)?;
    let _pace = quick_balancing();
    let balancing = Setting::with(BALANCING, "1")?;
    // Pages of their own, without a policy, are less than a tenth.
    let bound =
        |node, cpu| at_work("placed", &[], &format!("kib={} cpu={cpu} policy=bind:{node} reads", MEMORY * 3));
    let programs = [bound(a, cpus[0])?, bound(b, cpus[1])?];
    // Without names some are not read, which an emulated CPU takes long for.
    let [one, other] = programs.each_ref().map(|program| format!("--pid={}", program.pid));
    // An emulated CPU scans less in a second.
    let path = thresholds("[balancing-on-but-placed]\nupdates_per_s = 100\n")?;
    let look = || Diagnosed::with(context, &[WINDOW, "--thresholds", &path, &one, &other]);
    let helper = format!("kib={HELPER} wanders={}+{} reads", cpus[2], cpus[3]);
    let _helper = at_work("a helper", &[], &helper)?;
    let before = event("numa_pte_updates")?;
    let found = look()?;
    let updates = (event("numa_pte_updates")? - before) as f64;
    let finding = found
        .finding(rule)
        .ok_or_else(|| format!("{rule} does not fire, with {updates} scanned pages: {}", found.document))?;
    within(finding, "placed by policies and cpusets", "share", 0.9..=1.0)?;
    // A window of eight seconds lies between the two looks here.
    within(finding, "scanned", "per_s", 100.0..=updates / 8.0)?;
    parses(context, finding)?;
    balancing.set("0")?;
    look()?.finding(rule).map_or(Ok(()), |left| Err(format!("{rule} still fires: {left}")))
}

/// The experiment that a finding names, with two runs of a program that ends at once: a verdict takes minutes here.
fn parses(context: &Context, finding: &Value) -> Result<(), String> {
    let experiment = finding["experiment"].as_str().ok_or_else(|| format!("no experiment: {finding}"))?;
    let options = experiment.strip_prefix("nodewise").and_then(|rest| rest.strip_suffix("-- COMMAND"));
    let options = options.ok_or_else(|| format!("no command: {experiment}"))?;
    let command = format!("{}{options}--runs=2 --no-race -- true", context.path());
    let ran = Command::new("sh").args(["-c", &command]).stdin(Stdio::null()).output();
    let output: Output = ran.map_err(|error| format!("{command}: {error}"))?;
    same(&format!("{command}: {}", complaint(&output)), output.status.success(), true)
}

/// Threads of two nodes that use the same memory, scanned as often as can be.
pub fn costly(context: &Context) -> Result<(), String> {
    let rule = "balancing-costly";
    let Nodes { cpus, .. } = Nodes::find(context)?;
    let _pace = quick_balancing();
    let balancing = Setting::with(BALANCING, "1")?;
    let way = format!("kib={} workers={}+{} reads", MEMORY * 2, cpus[0], cpus[2]);
    let _program = at_work("shared by two nodes", &[], &way)?;
    // An emulated CPU takes tens of microseconds for a fault, which a site that has measured that says.
    let path = thresholds("[balancing-costly]\nfault_us = 30\nmove_us = 90\n")?;
    let look = || Diagnosed::with(context, &[WINDOW, "--thresholds", &path]);
    let count = || Ok::<_, String>([event("numa_hint_faults")?, event("numa_pages_migrated")?]);
    let before = count()?;
    let found = look()?;
    let after = count()?;
    let most = [0, 1].map(|at| (after[at] - before[at]) as f64 / 8.0);
    let finding = found.finding(rule).ok_or_else(|| {
        format!("{rule} does not fire, with {most:?} faults and moves a second: {}", found.document)
    })?;
    within(finding, "hint faults", "per_s", 1.0..=most[0])?;
    within(finding, "moved pages", "per_s", 0.0..=most[1])?;
    // By these prices, of the CPU time of four CPUs at most.
    let (faults, moves) =
        (evidence(finding, "hint faults", "per_s")?, evidence(finding, "moved pages", "per_s")?);
    let least = (30.0 * faults + 90.0 * moves) / 4e6;
    within(finding, "part of the CPU time", "share", least.max(0.03)..=8.0 * least)?;
    same("experiment", finding["experiment"].as_str(), Some("nodewise tune -- COMMAND"))?;
    balancing.set("0")?;
    look()?.finding(rule).map_or(Ok(()), |left| Err(format!("{rule} still fires: {left}")))
}

/// A program by this name that does nothing; it ends when dropped.
struct Idle(Child);

impl Idle {
    fn start(name: &str) -> Result<Self, String> {
        let path = std::env::temp_dir().join(name);
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        fs::write(&path, "#!/bin/sh\nread line\n").map_err(failed)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(failed)?;
        Command::new(&path).stdin(Stdio::piped()).spawn().map(Self).map_err(failed)
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// A daemon that places programs, beside the kernel's balancing and beside another one.
pub fn two_placers(context: &Context) -> Result<(), String> {
    let rule = "two-placers";
    let balancing = Setting::with(BALANCING, "1")?;
    is_silent(context, rule)?;
    let numad = Idle::start("numad")?;
    let finding = fires(context, rule)?;
    let process = format!("process {}", numad.0.id());
    same("the daemon", finding["evidence"][0]["value"]["text"].as_str(), Some(&*process))?;
    same("balancing", finding["evidence"][1]["value"]["text"].as_str(), Some("1"))?;
    // As the mend says, the work is left to one of them: to the daemon, or to the kernel.
    balancing.set("0")?;
    is_silent(context, rule)?;
    let other = Idle::start("memtierd")?;
    same("evidence", fires(context, rule)?["evidence"].as_array().map(Vec::len), Some(3))?;
    drop((numad, other));
    balancing.set("1")?;
    is_silent(context, rule)
}

/// A thread that goes to and fro between two nodes, and whose memory follows each time.
pub fn to_and_fro(context: &Context) -> Result<(), String> {
    let rule = "balancing-ping-pong";
    let Nodes { ids: [a, _, c, _], cpus: [on_a, _, on_c, _] } = Nodes::find(context)?;
    let _pace = quick_balancing();
    let _balancing = Setting::with(BALANCING, "1")?;
    let kib = MEMORY / 2;
    let way = format!("kib={kib} touched-on={on_a} wanders={on_a}+{on_c} stays=300 reads");
    let program = at_work("goes to and fro", &[], &way)?;
    let moved = || Ok::<_, String>(event("numa_pages_migrated")? << 12);
    // The rule leaves the first minute of a process alone. Meanwhile the host shows its pace.
    let (began, before) = (Instant::now(), moved()?);
    std::thread::sleep(YOUNG);
    let pace = (moved()? - before) as f64 / began.elapsed().as_secs_f64();
    let size = (kib << 10) as f64;
    // Long enough for its memory to follow four times.
    let window = (4.0 * size / pace.max(1.0)).clamp(20.0, 150.0);
    let look = |program: &Observed| {
        let pid = format!("--pid={}", program.pid);
        Diagnosed::with(context, &[&format!("--window={window:.0}s"), &pid])
    };
    let before = moved()?;
    let found = look(&program)?;
    let most = moved()? - before;
    let finding = found
        .finding(rule)
        .ok_or_else(|| format!("{rule} does not fire; {most} bytes moved in {window:.0} s"))?;
    super::is_about(finding, &program)?;
    let concerns = finding["concerns_bytes"].as_f64().unwrap_or_default();
    same(&format!("whether {concerns} moved, of {most}"), (size..=most as f64).contains(&concerns), true)?;
    within(finding, "changed nodes", "size_bytes", 0.0..=size * 1.25)?;
    names(finding, a)?;
    names(finding, c)?;
    drop(program);
    let program = started_by(&restart(context, finding)?, &way)?;
    std::thread::sleep(YOUNG);
    let left = look(&program)?;
    left.finding(rule).map_or(Ok(()), |left| Err(format!("{rule} still fires: {left}")))
}
