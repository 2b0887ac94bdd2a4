//! The guest's SLIT.

use nodewise_machine::distance::{LOCAL, REMOTE};
use nodewise_machine::{Machine, NodeId, NodeMatrix};

use super::GuestNode;

/// The smallest distance between two nodes: Linux drops the whole table when one of them is 10 or
/// less (`slit_valid`, drivers/acpi/numa/srat.c, 6.12).
const NEAREST: u32 = 11;
/// The largest: 255 means "unreachable" in ACPI.
const FARTHEST: u32 = 254;

/// Distances between the guest's nodes: the machine's where a SLIT can hold them, else the nearest
/// that it can hold.
pub(super) fn between(machine: &Machine, nodes: &[GuestNode], notes: &mut Vec<String>) -> NodeMatrix<u32> {
    let mut table = NodeMatrix::new(nodes.iter().map(|node| node.id));
    let mut illegal: Vec<(NodeId, NodeId, u32, u32)> = Vec::new();
    let mut missing: Vec<(NodeId, NodeId)> = Vec::new();
    for (from, to) in nodes.iter().flat_map(|from| nodes.iter().map(move |to| (from, to))) {
        let same = from.id == to.id;
        let told = machine.distance(from.stands_for, to.stands_for);
        let here = match told {
            _ if same => LOCAL,
            Some(distance) => distance.clamp(NEAREST, FARTHEST),
            None => REMOTE,
        };
        table.set(from.id, to.id, here);
        match told {
            Some(distance) if distance != here => {
                illegal.push((from.stands_for, to.stands_for, distance, here));
            }
            None if !same => missing.push((from.stands_for, to.stands_for)),
            _ => {}
        }
    }
    if let [(from, to), others @ ..] = &missing[..] {
        if missing.len() == nodes.len() * (nodes.len() - 1) {
            notes.push(format!("the machine has no distances: between nodes they are {REMOTE} here"));
        } else {
            let more = and_others(others.len());
            notes.push(format!(
                "the distance from node {from} to node {to} is missing and {REMOTE} here{more}"
            ));
        }
    }
    if let [(from, to, distance, here), others @ ..] = &illegal[..] {
        let more = and_others(others.len());
        notes.push(format!(
            "the distance from node {from} to node {to} is {distance}, which no SLIT can say, and {here} here{more}"
        ));
    }
    table
}

fn and_others(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => "; so with one other pair".to_owned(),
        _ => format!("; so with {count} other pairs"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layout, Limits};
    use super::*;
    use nodewise_machine::spec;

    fn check(spec: &str, changes: &[(u32, u32, Option<u32>)], rows: &[&[u32]], notes: &[&str]) {
        let mut machine = spec::machine(spec).unwrap();
        let told = machine.distances.clone();
        machine.distances = NodeMatrix::new(told.nodes().iter().copied());
        let change = |from: NodeId, to: NodeId| {
            changes.iter().find(|(f, t, _)| (*f, *t) == (from.number(), to.number())).map(|change| change.2)
        };
        for (from, to, distance) in told.iter() {
            if let Some(distance) = change(from, to).unwrap_or(Some(*distance)) {
                machine.distances.set(from, to, distance);
            }
        }
        let layout = Layout::new(&machine, &Limits::default()).unwrap();
        let found: Vec<Vec<u32>> =
            layout.distances.rows().map(|(_, row)| row.iter().flatten().copied().collect()).collect();
        assert_eq!(found, rows, "{spec}");
        assert_eq!(layout.notes, notes, "{spec}");
    }

    #[test]
    fn asymmetric_distances_are_kept() {
        check("(1c 512M) (1c 512M); dist=10,15/30,10", &[], &[&[10, 15], &[30, 10]], &[]);
    }

    #[test]
    fn distances_follow_their_nodes_when_numbers_change() {
        check(
            "(512M) (1c 512M); dist=10,15/30,10",
            &[],
            &[&[10, 30], &[15, 10]],
            &["node 1 of the machine is node 0 of the guest, node 0 is node 1"],
        );
    }

    #[test]
    fn what_no_slit_can_say_becomes_the_nearest_that_it_can() {
        check(
            "2x(1c 512M)",
            &[(0, 1, Some(10)), (1, 0, Some(255)), (1, 1, Some(0))],
            &[&[10, 11], &[254, 10]],
            &[
                "the distance from node 0 to node 1 is 10, which no SLIT can say, and 11 here; so with 2 other \
                 pairs",
            ],
        );
    }

    #[test]
    fn missing_distances_are_those_that_linux_assumes() {
        check(
            "2x(1c 512M); dist=30",
            &[(0, 1, None)],
            &[&[10, 20], &[30, 10]],
            &["the distance from node 0 to node 1 is missing and 20 here"],
        );
        check(
            "2x(1c 512M)",
            &[(0, 0, None), (0, 1, None), (1, 0, None), (1, 1, None)],
            &[&[10, 20], &[20, 10]],
            &["the machine has no distances: between nodes they are 20 here"],
        );
    }
}
