//! A scenario that was played, a line per step and one per node that it changed.

use std::collections::BTreeMap;

use nodewise_machine::NodeId;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_model::ZoneKind;
use nodewise_model::simulate::Relief;

use super::{known, quoted};
use crate::digest::timeline::{Moment, Timeline, skipped_word};

const HEADER: &str = "step,at_s,program,action,object,skipped,refused,killed,node,taken_pages,moved_pages,\
                      promoted_pages,stayed_pages,swapped_in_pages,missing_pages,swapped_out_pages,demoted_pages,\
                      free_pages,dropped_pages\n";

/// Writes a scenario, piece by piece. The line of a step has no node and the sums of the step; behind it comes a
/// line for each node that gave, swapped or demoted pages, or has more or fewer free ones, with what is its own.
/// Numbers are of pages.
pub fn timeline(timeline: &Timeline) -> impl Iterator<Item = String> + '_ {
    let zones = timeline.before.zones().iter();
    let mut free: BTreeMap<(NodeId, ZoneKind), u64> =
        zones.map(|zone| ((zone.node, zone.kind), zone.free)).collect_map();
    let steps = timeline.moments.iter().enumerate().map(move |(at, moment)| {
        free.extend(moment.zones.iter().map(|zone| ((zone.node, zone.kind), zone.free)));
        lines(at + 1, moment, &free)
    });
    [HEADER.to_owned()].into_iter().chain(steps)
}

/// Pages that a node gave in a step, and those that it has left.
#[derive(Default)]
struct Own {
    taken: u64,
    swapped_out: u64,
    demoted: u64,
    dropped: u64,
}

fn lines(at: usize, moment: &Moment, free: &BTreeMap<(NodeId, ZoneKind), u64>) -> String {
    let step = &moment.step;
    let mut nodes: BTreeMap<NodeId, Own> = BTreeMap::new();
    for zone in &moment.zones {
        nodes.entry(zone.node).or_default();
    }
    for (node, pages) in &step.taken {
        nodes.entry(*node).or_default().taken += pages;
    }
    for relief in &step.reliefs {
        match relief {
            Relief::Dropped { node, pages } => nodes.entry(*node).or_default().dropped += pages,
            Relief::Swapped { node, pages } => nodes.entry(*node).or_default().swapped_out += pages,
            Relief::Demoted { node, pages, .. } => nodes.entry(*node).or_default().demoted += pages,
        }
    }
    let sum = |count: fn(&Own) -> u64| nodes.values().map(count).sum::<u64>().to_string();
    let killed: Vec<&str> = step.killed.iter().map(|killed| killed.program.as_str()).collect();
    let head = [at.to_string(), moment.at_s.to_string(), quoted(&moment.program)];
    let own = [
        quoted(&moment.does()),
        quoted(&moment.object()),
        known(step.skipped.map(skipped_word)),
        known(step.refused.map(|errno| errno.name())),
        quoted(&killed.join(" ")),
        String::new(),
        sum(|own| own.taken),
        step.moved.to_string(),
        step.promoted.to_string(),
        step.stayed.to_string(),
        step.swapped_in.to_string(),
        known(step.missing.as_ref().map(|end| end.pages)),
        sum(|own| own.swapped_out),
        sum(|own| own.demoted),
        String::new(),
        sum(|own| own.dropped),
    ];
    let mut text = format!("{},{}\n", head.join(","), own.join(","));
    for (node, own) in nodes {
        let left: u64 =
            free.range((node, ZoneKind::Dma)..=(node, ZoneKind::Movable)).map(|(_, free)| free).sum();
        let Own { taken, swapped_out, demoted, dropped } = own;
        let head = head.join(",");
        text += &format!("{head},,,,,,{node},{taken},,,,,,{swapped_out},{demoted},{left},{dropped}\n");
    }
    text
}
