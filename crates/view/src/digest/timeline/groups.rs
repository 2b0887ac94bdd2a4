//! Control groups in the words of a played scenario: their limits, and what happened at one.

use nodewise_machine::NodeId;
use nodewise_machine::check::node_names;
use nodewise_model::Memory;
use nodewise_model::simulate::{GroupLimit, GroupLimits, LimitMet, LimitOutcome};

use super::shares;
use crate::digest::counts::by_count;
use crate::digest::walk::size_of;

/// The word for a limit, which is that of its file.
pub const fn limit_word(limit: GroupLimit) -> &'static str {
    match limit {
        GroupLimit::Max => "max",
        GroupLimit::High => "high",
    }
}

/// The word for what happened at a limit, in JSON.
pub const fn outcome_word(outcome: LimitOutcome) -> &'static str {
    match outcome {
        LimitOutcome::Fits => "swapped",
        LimitOutcome::Throttled => "throttled",
        LimitOutcome::Killed => "killed",
        LimitOutcome::NoVictim => "no_victim",
    }
}

/// The limits of a group in one line.
pub(super) fn in_words(parent: Option<&str>, limits: &GroupLimits, page: u64) -> String {
    let sizes = [
        ("max", limits.max),
        ("high", limits.high),
        ("low", limits.low),
        ("min", limits.min),
        ("swap.max", limits.swap_max),
    ];
    let mut words: Vec<String> = parent.map(|parent| format!("in {parent}")).into_iter().collect();
    let sizes = sizes.into_iter().filter_map(|(word, size)| Some((word, size?)));
    words.extend(sizes.map(|(word, size)| format!("{word} {}", size_of(size, page))));
    words.extend(limits.kills_all.then(|| "oom.group".to_owned()));
    if words.is_empty() { "no limit".to_owned() } else { words.join(", ") }
}

/// A word on a limit in the line of a step; whoever is killed has its own.
pub(super) fn outcome(met: &LimitMet) -> Option<String> {
    let limit = limit_word(met.limit);
    match met.outcome {
        LimitOutcome::Fits => Some(format!("memory.{limit} of {} reached", met.group)),
        LimitOutcome::Throttled => Some(format!("{} slowed down by memory.high", met.group)),
        LimitOutcome::NoVictim => Some(format!("waits for memory of {}", met.group)),
        LimitOutcome::Killed => None,
    }
}

/// The sentence on a limit that was met; `None` where that on the killed program says it all.
pub(super) fn sentence(
    met: &LimitMet,
    program: &str,
    memory: &Memory,
    free: &dyn Fn(NodeId) -> u64,
) -> Option<String> {
    let page = memory.page_bytes();
    let of_group = match program {
        "" => format!("memory.{} of the group {}", limit_word(met.limit), met.group),
        program => format!("{program} takes the group {} to its memory.{}", met.group, limit_word(met.limit)),
    };
    let reached = format!("{of_group} ({})", size_of(met.size, page));
    let dropped: u64 = met.dropped.iter().map(|(_, pages)| pages).sum();
    let cache = shares(met.dropped.iter().copied(), page);
    let cache =
        (dropped > 0).then(|| format!("{} of its page cache are dropped ({cache})", size_of(dropped, page)));
    let swapped: u64 = met.swapped.iter().map(|(_, pages)| pages).sum();
    let nodes = shares(met.swapped.iter().copied(), page);
    let out =
        (swapped > 0).then(|| format!("{} of its own pages go to swap ({nodes})", size_of(swapped, page)));
    let out = match (cache, out) {
        (Some(cache), Some(out)) => Some(format!("{cache}, {out}")),
        (cache, out) => cache.or(out),
    };
    let though = though(memory, free);
    Some(match (met.outcome, out) {
        (LimitOutcome::Fits | LimitOutcome::Killed, None) => return None,
        (LimitOutcome::Fits | LimitOutcome::Killed, Some(out)) => format!("{reached}: {out}{though}"),
        (LimitOutcome::Throttled, None) => {
            format!(
                "{reached}, and none of its pages can be swapped: it is slowed down, and no process is killed{though}"
            )
        }
        (LimitOutcome::Throttled, Some(out)) => {
            format!("{reached}: {out}, then it is slowed down, and no process is killed{though}")
        }
        (LimitOutcome::NoVictim, out) => {
            let out = out.map_or_else(String::new, |out| format!("{out}; "));
            format!(
                "{reached}: {out}it waits, as no process of the group may be killed (oom_score_adj -1000)"
            )
        }
    })
}

/// The memory that is free on the nodes and that a group may not have.
pub(super) fn though(memory: &Memory, free: &dyn Fn(NodeId) -> u64) -> String {
    let nodes = memory.nodes();
    let all: u64 = nodes.iter().map(free).sum();
    let has = by_count(&nodes.len(), "has", "have");
    format!(", though {} {has} {} free", node_names(&nodes), size_of(all, memory.page_bytes()))
}
