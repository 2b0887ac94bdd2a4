//! The process that the kernel kills: the one that `nodewise explain` names, and then the one that it names next.

use nodewise_machine::NodeId;
use serde_json::Value;

use super::cache::Last;
use super::same;
use crate::guest::FIGURE;
use crate::nodewise::Context;
use crate::observer::Observed;
use crate::{kernel, setting};

/// Who is killed, or would be: 0 for the program that asks.
type Kills = Vec<u32>;

/// Programs that sit on the first node, each killed or spared for another reason.
struct Others {
    /// The largest, bound where the memory is that does not run out.
    bound: Observed,
    /// Its memory is bound there, and itself is not.
    unbound: Observed,
    small: Observed,
}

impl Others {
    fn start(context: &Context, node: NodeId) -> Result<Self, String> {
        let (nodewise, membind) = (context.path(), format!("--membind={node}"));
        let mapped =
            |name: &str, kib: u64| Observed::start(name, &[], &format!("kib={kib} policy=bind:{node}"));
        Ok(Self {
            bound: Observed::start(
                "bound",
                &[nodewise, "run", &membind, "--"],
                &format!("kib={}", 160 << 10),
            )?,
            unbound: mapped("unbound", 100 << 10)?,
            small: mapped("small", 24 << 10)?,
        })
    }

    fn pids(&self) -> [u32; 3] {
        [self.bound.pid, self.unbound.pid, self.small.pid]
    }
}

/// The one that is killed, and the next, by explain.
fn foreseen(last: &Last<'_>, kib: u64) -> Result<Kills, String> {
    let answers = last.explained(kib)?["answers"].clone();
    println!("{FIGURE}{}", answers["summary"].as_str().unwrap_or_default());
    let killed = &answers["killed"];
    let pid = |victim: &Value| match victim["asks"].as_bool() {
        Some(true) => Some(0),
        _ => victim["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()),
    };
    let worst = killed["worst"].as_array().filter(|worst| worst.len() == 1);
    let one = worst.ok_or_else(|| format!("more than one: {killed}"))?;
    [&one[0], &killed["next"]]
        .into_iter()
        .map(pid)
        .collect::<Option<Kills>>()
        .ok_or_else(|| killed.to_string())
}

/// Lines of the kernel's log about kills.
fn kills() -> Vec<String> {
    kernel::log().into_iter().filter(|line| line.contains("Out of memory: Killed process")).collect()
}

/// The processes that the kernel killed while a program took more than there is, in order.
fn observed(last: &Last<'_>, kib: u64, others: &Others) -> Result<Kills, String> {
    let before = kills().len();
    same("whether the program that asks is killed at last", last.taken(kib).is_err(), true)?;
    let pid = |line: &String| {
        let number = line.split("Killed process ").nth(1)?.split_whitespace().next()?.parse().ok()?;
        Some(if others.pids().contains(&number) { number } else { 0 })
    };
    let lines = kills().split_off(before);
    lines.iter().map(pid).collect::<Option<Kills>>().ok_or_else(|| format!("{lines:?}"))
}

/// Of several programs the kernel kills the largest of those that its policy does not spare, and with oom_score_adj another
/// one first.
pub fn victim(context: &Context) -> Result<(), String> {
    let nodes = context.seen.nodes_with_memory();
    let (first, node) = nodes.first().zip(nodes.last()).ok_or("no node has memory")?;
    setting::write("/proc/sys/vm/drop_caches", "3")?;
    let mut others = Others::start(context, first)?;
    let last = Last { context, node };
    let kib = last.too_much()?;
    let expected = foreseen(&last, kib)?;
    same("who is killed and who would be next, of equals", &expected, &vec![0, others.unbound.pid])?;
    same("kills", observed(&last, kib, &others)?, expected[..1].to_vec())?;

    setting::write(&format!("/proc/{}/oom_score_adj", others.small.pid), "980")?;
    let kib = last.too_much()?;
    let expected = foreseen(&last, kib)?;
    same("who is killed first, by oom_score_adj", &expected, &vec![others.small.pid, 0])?;
    // It has nothing on this node, so that the next has to follow.
    same("kills in order", observed(&last, kib, &others)?, expected)?;
    for program in [&mut others.bound, &mut others.unbound] {
        program.sampled().map_err(|error| format!("it is to be spared: {error}"))?;
    }
    Ok(())
}
