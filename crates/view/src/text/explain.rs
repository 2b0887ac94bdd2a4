//! Where the pages of a program will come from: the words for `run --explain`.

use nodewise_machine::check::node_names;
use nodewise_machine::placement::Placement;
use nodewise_machine::{Machine, MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_model::policy::{Path, Start, WhenFull, path};
use nodewise_model::zonelist::FallbackOrders;

use crate::digest::walk::MemoryKind;
use crate::style::Style;
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// More rows than this are cut: the rest follow the same rule.
const MOST_ROWS: usize = 16;

/// Writes which nodes a program under a placement takes its memory from, in which order, and what
/// happens when they are full.
pub fn placement(machine: &Machine, placement: &Placement, orders: &FallbackOrders, style: &Style) -> String {
    let policy = placement.policy.clone().unwrap_or(MemPolicy::DEFAULT);
    let allowed = machine.allowed_nodes.clone().unwrap_or_else(|| machine.node_ids());
    let ways: Vec<(NodeId, Path)> = origins(machine, placement, &policy, &allowed)
        .into_iter()
        .map(|node| (node, path(&policy, node, Some(node), orders, &allowed)))
        .collect();
    let mut page = Page::new(*style);
    page.heading(&format!("Memory  {policy}"), "");
    page.line(2, &format!("  {}", rule(&policy)).into());
    page.line(0, &Line::new());
    orders_table(&ways, &policy).write(&mut page);
    if let Some((_, way)) = ways.first() {
        page.line(2, &format!("  {}", end(way)).into());
    }
    page.finish()
}

/// Returns the nodes of the table's rows: nodes whose CPUs touch pages, or nodes whose turn it is.
fn origins(machine: &Machine, placement: &Placement, policy: &MemPolicy, allowed: &NodeSet) -> Vec<NodeId> {
    match policy.mode {
        PolicyMode::Interleave | PolicyMode::WeightedInterleave => {
            policy.nodes.intersection(allowed).iter().collect()
        }
        PolicyMode::Preferred => policy.nodes.intersection(allowed).iter().take(1).collect(),
        _ => match &placement.cpus {
            Some(cpus) => {
                let nodes: NodeSet = cpus.iter().filter_map(|cpu| machine.node_of(cpu)).collect();
                nodes.iter().collect()
            }
            None => machine.nodes_with_cpus().iter().collect(),
        },
    }
}

/// How the node of a page of private memory is found.
fn rule(policy: &MemPolicy) -> String {
    rule_of(policy, None, MemoryKind::Private)
}

/// How the node of a page is found.
pub(super) fn rule_of(policy: &MemPolicy, home: Option<NodeId>, kind: MemoryKind) -> String {
    let nodes = node_names(&policy.nodes);
    let near =
        home.map_or("the CPU that touches it first".to_owned(), |home| format!("node {home}, its home"));
    let turn = match kind {
        MemoryKind::Private => "by their address: the order of touching does not matter",
        MemoryKind::PrivateFile => "by their number in the file: the order of touching does not matter",
        MemoryKind::Shared => {
            "by their number in the file and its inode: the order of touching does not matter"
        }
        MemoryKind::Cache => "one after the other as the task takes them, for whichever file",
    };
    match policy.mode {
        PolicyMode::Default | PolicyMode::Local => {
            "each page comes from the node of the CPU that touches it first".to_owned()
        }
        PolicyMode::Preferred => format!("each page comes from {nodes} while it has free memory"),
        PolicyMode::Bind if policy.nodes.len() == 1 => {
            format!("each page comes from {nodes}, and from no other")
        }
        PolicyMode::Bind => format!("each page comes from {nodes}, from the nearest to {near}"),
        PolicyMode::PreferredMany => {
            let near = home.map_or("the CPU".to_owned(), |home| format!("node {home}, its home,"));
            format!("each page comes from {nodes} while they have free memory, the nearest to {near} first")
        }
        PolicyMode::Interleave => format!("pages go to {nodes} in turn, {turn}"),
        PolicyMode::WeightedInterleave => {
            let turn = turn.split(':').next().unwrap_or(turn);
            format!("pages go to {nodes} in turn, {turn}, each node as often as its weight says")
        }
    }
}

fn orders_table(ways: &[(NodeId, Path)], policy: &MemPolicy) -> Table {
    let head = match ways.first().map(|(_, way)| way.start) {
        Some(Start::ByAddress | Start::ByWeight) => "turn of",
        Some(Start::Fixed(_)) => "begins at",
        _ => "CPU of",
    };
    let second = policy.mode == PolicyMode::PreferredMany;
    let mut columns = vec![Column { head, align: Align::Left, keep: Keep::Always }];
    if second {
        columns.push(Column { head: "nodes tried", align: Align::Left, keep: Keep::Always });
        columns.push(Column { head: "then", align: Align::Left, keep: Keep::Always });
    } else {
        columns.push(Column { head: "nodes tried, in this order", align: Align::Left, keep: Keep::Always });
    }
    let mut table = Table::new(columns);
    for (node, way) in ways.iter().take(MOST_ROWS) {
        let mut row = vec![Line::from(format!("node {node}").as_str()), in_order(&way.order)];
        if second {
            row.push(in_order(&way.then));
        }
        table.row(row);
    }
    if let Some(more) = ways.len().checked_sub(MOST_ROWS).filter(|more| *more > 0) {
        let rest = node_names(ways[MOST_ROWS..].iter().map(|(node, _)| *node));
        let mut row = vec![
            Line::from(format!("{more} more").as_str()),
            Line::from(format!("{rest} likewise").as_str()),
        ];
        if second {
            row.push(Line::new());
        }
        table.row(row);
    }
    table
}

/// Nodes in an order that is not that of their numbers.
fn in_order(nodes: &[NodeId]) -> Line {
    let words: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    Line::from(words.join(" ").as_str())
}

/// The effect when the nodes of the order are full.
fn end(way: &Path) -> &'static str {
    match way.when_full {
        WhenFull::ReclaimEverywhere => {
            "the next node takes over at the low watermark; when all are at it the kernel reclaims and swaps"
        }
        WhenFull::ReclaimInside => {
            "when these are at their minimum watermark the kernel reclaims and swaps inside them, then kills a process, \
             though other nodes may be empty"
        }
        WhenFull::SecondPass => {
            "the first nodes are drained to their minimum watermark before the others are tried"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{CpuSet, spec};
    use nodewise_model::zonelist::BuiltAt;

    fn check(mode: PolicyMode, nodes: &[u32], cpus: Option<CpuSet>, expected: &str) {
        let machine = spec::machine("2x(2x(1c 512M)); dist=11,20").unwrap();
        let orders = FallbackOrders::from_machine(&machine, BuiltAt::Boot);
        let nodes = nodes.iter().copied().map(NodeId::new).collect();
        let what = Placement { cpus, ..Placement::memory(mode, nodes) };
        assert_eq!(placement(&machine, &what, &orders, &Style::plain(76)), expected);
    }

    #[test]
    fn binding_says_that_others_stay_unused() {
        check(
            PolicyMode::Bind,
            &[1, 3],
            Some(CpuSet::from([0, 2])),
            "\
Memory  bind:1,3
  each page comes from nodes 1,3, from the nearest to the CPU that touches
  it first

  CPU of  nodes tried, in this order
  node 0  1 3
  node 2  3 1
  when these are at their minimum watermark the kernel reclaims and swaps
  inside them, then kills a process, though other nodes may be empty
",
        );
    }

    #[test]
    fn interleaving_has_a_way_for_each_turn() {
        check(
            PolicyMode::Interleave,
            &[1, 3],
            None,
            "\
Memory  interleave:1,3
  pages go to nodes 1,3 in turn, by their address: the order of touching
  does not matter

  turn of  nodes tried, in this order
  node 1   1 0 3 2
  node 3   3 2 1 0
  the next node takes over at the low watermark; when all are at it the
  kernel reclaims and swaps
",
        );
    }

    #[test]
    fn preferring_many_tells_both_passes() {
        check(
            PolicyMode::PreferredMany,
            &[1, 3],
            Some(CpuSet::from([0])),
            "\
Memory  prefer (many):1,3
  each page comes from nodes 1,3 while they have free memory, the nearest to
  the CPU first

  CPU of  nodes tried  then
  node 0  1 3          0 2
  the first nodes are drained to their minimum watermark before the others
  are tried
",
        );
    }

    #[test]
    fn many_rows_are_cut() {
        let machine = spec::machine("32x(1c 1G)").unwrap();
        let orders = FallbackOrders::from_machine(&machine, BuiltAt::Boot);
        let text = placement(&machine, &Placement::DEFAULT, &orders, &Style::plain(80));
        assert!(text.contains("  16 more  nodes 16-31 likewise\n"), "{text}");
    }
}
