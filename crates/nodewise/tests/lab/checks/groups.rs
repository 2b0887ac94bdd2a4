//! Programs in control groups with limits of memory on nodes with room: what `nodewise explain` says, and what the kernel does.

use std::fs::File;
use std::process::Command;

use serde_json::Value;

use super::same;
use super::short::{DISK, Disk, shell};
use super::sick::group::Group;
use crate::guest::FIGURE;
use crate::kernel;
use crate::nodewise::{Context, complaint};
use crate::observer::Observed;
use crate::setting;

/// The limits, in MiB, and what a program takes that goes beyond them or stays below.
const MAX: u64 = 160;
const HIGH: u64 = 96;
const BEYOND: u64 = 48 << 10;
/// Memory in KiB that a program has beside what it is asked to take: its own pages, its stack, and what the kernel keeps for it.
const OWN: u64 = 4 << 10;
/// How far a program goes above `memory.high`, in KiB: the kernel makes it wait the longer the further it is above.
const ABOVE: u64 = 4 << 10;

/// A group with a limit, and a program that sits in it.
struct Limited<'a> {
    context: &'a Context,
    /// Before the group: one with programs inside cannot be removed.
    resident: Observed,
    group: Group,
}

/// A program that the kernel has killed at the limit of a group.
#[derive(Debug, PartialEq, Eq)]
struct Killed {
    pid: u32,
    anonymous_kib: u64,
}

impl<'a> Limited<'a> {
    fn new(context: &'a Context, name: &str, limit: (&str, u64)) -> Result<Self, String> {
        setting::write("/sys/fs/cgroup/cgroup.subtree_control", "+memory")?;
        let group = Group::new(name, &[(limit.0, &(limit.1 << 20).to_string())])?;
        let words = group.inside([]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let resident = Observed::start("a resident program", &words, &format!("kib={}", 24 << 10))?;
        Ok(Self { context, resident, group })
    }

    /// A request of the program that sits in the group.
    fn explained(&self, kib: u64) -> Result<Value, String> {
        let (pid, size) = (self.resident.pid.to_string(), format!("--size={kib}K"));
        let words = ["explain", "--pid", &pid, &size, "--thp=never", "--json"];
        let answers = self.context.json(&words)?["answers"].clone();
        println!("{FIGURE}{}", answers["summary"].as_str().unwrap_or_default());
        Ok(answers)
    }

    /// Who is killed by a program that starts in the group: 0 for the program itself.
    fn foreseen(&self, kib: u64) -> Result<u32, String> {
        let size = format!("--size={kib}K");
        let words = self.group.inside([self.context.path(), "explain", &size, "--thp=never", "--json"]);
        let output = Command::new(&words[0]).args(&words[1..]).output().map_err(|error| error.to_string())?;
        let document: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("explain in a group: {error}: {}", complaint(&output)))?;
        let answers = &document["answers"];
        println!("{FIGURE}{}", answers["summary"].as_str().unwrap_or_default());
        let victim = &answers["killed"]["worst"][0];
        match (victim["asks"].as_bool(), victim["pid"].as_u64()) {
            (Some(true), _) => Ok(0),
            (_, Some(pid)) => u32::try_from(pid).map_err(|error| error.to_string()),
            _ => Err(format!("no process is named: {answers}")),
        }
    }

    /// Takes memory in another program of the group; an error where the kernel kills it.
    fn taken(&self, kib: u64) -> Result<Observed, String> {
        let words = self.group.inside([]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Observed::start("a program in a group", &words, &format!("kib={kib}"))
    }

    /// Reads a disk inside the group, which is charged for its page cache.
    fn read_disk(&self, mebibytes: u64) -> Result<(), String> {
        let read = format!("dd if={DISK} of=/dev/null bs=1M count={mebibytes} 2> /dev/null");
        let words = self.group.inside(["sh", "-c", &read]);
        let status = Command::new(&words[0]).args(&words[1..]).status().map_err(|error| error.to_string())?;
        same(&read, status.success(), true)
    }

    /// How often something has happened to the group.
    fn events(&self, name: &str) -> Result<u64, String> {
        let text = self.group.text("memory.events")?;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.ok_or_else(|| format!("memory.events has no {name}: {text}"))
    }
}

/// The room of a limit, in KiB, at least and at most.
fn room(limit: &Value) -> Result<(u64, u64), String> {
    let of = |end: &str| limit["room_pages"][end].as_u64().map(|pages| pages * 4);
    of("least").zip(of("most")).ok_or_else(|| format!("no room: {limit}"))
}

/// Processes that the kernel has killed at limits of groups, by its log.
fn killed() -> Result<Vec<Killed>, String> {
    let one = |line: String| {
        let number = |before: &str| {
            let digits = line.split(before).nth(1)?.split(|c: char| !c.is_ascii_digit()).next()?;
            digits.parse::<u64>().ok()
        };
        let pid = number("Killed process ").and_then(|pid| u32::try_from(pid).ok());
        let killed = pid.zip(number("anon-rss:")).map(|(pid, anonymous_kib)| Killed { pid, anonymous_kib });
        killed.ok_or_else(|| format!("not understood: {line}"))
    };
    let lines = kernel::log().into_iter();
    lines.filter(|line| line.contains("Memory cgroup out of memory: Killed process")).map(one).collect()
}

/// A program that goes beyond the `memory.max` of its group is killed at the size that explain names, whatever the nodes have
/// free, and with `oom_score_adj` another one of the group before it.
pub fn largest(context: &Context) -> Result<(), String> {
    let limited = Limited::new(context, "nodewise-max", ("memory.max", MAX))?;
    let kib = (MAX << 10) + BEYOND;
    let answers = limited.explained(kib)?;
    same(&format!("verdict of {answers}"), answers["verdict"].as_str(), Some("killed"))?;
    let (least, most) = room(&answers["group"]["max"])?;

    let before = killed()?.len();
    drop(limited.taken(least - OWN)?);
    same("kills below the limit", killed()?.len() - before, 0)?;
    same("who would be killed", limited.foreseen(kib)?, 0)?;
    same("whether a program beyond the limit is killed", limited.taken(kib).is_err(), true)?;
    let kills = killed()?.split_off(before);
    let [one] = &kills[..] else { return Err(format!("kills beyond the limit: {kills:?}")) };
    println!("{FIGURE}killed with {} KiB, room for {least} to {most} KiB", one.anonymous_kib);
    let is_inside = (least - OWN..=most + OWN).contains(&one.anonymous_kib);
    same(&format!("whether {one:?} is in {least} to {most} KiB"), is_inside, true)?;
    same("kills that the group has counted", limited.events("oom_kill")?, 1)?;

    // The one that goes first leaves too little.
    setting::write(&format!("/proc/{}/oom_score_adj", limited.resident.pid), "900")?;
    let resident = limited.resident.pid;
    same("who would be killed, by oom_score_adj", limited.foreseen(kib)?, resident)?;
    let before = killed()?.len();
    same("whether the program is killed after it", limited.taken(kib).is_err(), true)?;
    let order: Vec<bool> = killed()?.split_off(before).iter().map(|killed| killed.pid == resident).collect();
    same("whether each that was killed is the resident one", order, vec![true, false])
}

/// Page cache of the group makes room before a program of it is killed, as far as explain says.
pub fn cached(context: &Context) -> Result<(), String> {
    const CACHE: u64 = 64;
    let _disk = Disk::with("128M")?;
    // The cache of a disk goes with the last that has it open; what was read before is charged elsewhere.
    let _open = File::open(DISK).map_err(|error| format!("{DISK}: {error}"))?;
    shell("echo 3 > /proc/sys/vm/drop_caches")?;
    let limited = Limited::new(context, "nodewise-cached", ("memory.max", MAX))?;
    let kib = (MAX << 10) + BEYOND;
    let explained = || {
        limited.read_disk(CACHE)?;
        let answers = limited.explained(kib)?;
        let free = answers["group"]["reclaims_after_pages"].as_u64().ok_or("no free pages")? * 4;
        Ok::<_, String>((free, room(&answers["group"]["max"])?))
    };
    let (free, (least, _)) = explained()?;
    let cache = least.saturating_sub(free) >> 10;
    same(&format!("whether {cache} MiB of page cache can go"), (CACHE - 4..=CACHE).contains(&cache), true)?;
    let before = killed()?.len();
    drop(limited.taken(least - OWN)?);
    same("kills while page cache goes", killed()?.len() - before, 0)?;

    let (_, (least, most)) = explained()?;
    same("whether a program beyond the limit is killed", limited.taken(kib).is_err(), true)?;
    let kills = killed()?.split_off(before);
    let [one] = &kills[..] else { return Err(format!("kills beyond the limit: {kills:?}")) };
    println!("{FIGURE}killed with {} KiB, room for {least} to {most} KiB", one.anonymous_kib);
    let is_inside = (least - OWN..=most + OWN).contains(&one.anonymous_kib);
    same(&format!("whether {one:?} is in {least} to {most} KiB"), is_inside, true)
}

/// A program that goes beyond the `memory.high` of its group is slowed down and not killed.
pub fn high(context: &Context) -> Result<(), String> {
    let limited = Limited::new(context, "nodewise-high", ("memory.high", HIGH))?;
    let (least, most) = room(&limited.explained((HIGH << 10) + BEYOND)?["group"]["slowed_by"])?;
    drop(limited.taken(least - OWN)?);
    same("times that the group was above its limit", limited.events("high")?, 0)?;
    let answers = limited.explained(most + ABOVE)?;
    same(&format!("verdict of {answers}"), answers["verdict"].as_str(), Some("survives"))?;
    let mut program = limited.taken(most + ABOVE)?;
    let pages: u64 = program.sampled()?.values().sum();
    same("whether all of its memory is there", pages > 0, true)?;
    let (above, killed) = (limited.events("high")?, limited.events("oom_kill")?);
    same(&format!("whether the group was above its limit, {above} times"), above > 0, true)?;
    same("kills that the group has counted", killed, 0)
}
