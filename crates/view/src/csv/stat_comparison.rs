//! Two moments of the running system, a line per fact.

use nodewise_machine::Bytes;

use super::{known, quoted};
use crate::digest::running::comparison::{BeforeAfter, FactUnit, ProcessComparison, RunningComparison};

/// The first line.
const HEAD: &str = "pid,process,node,name,before,after,change,unit\n";

/// Writes the facts. What is not known is empty; a process that is in one moment only has 0 in the other. Several
/// processes of a name have the number of the first.
pub fn stat_comparison(comparison: &RunningComparison) -> String {
    let mut text = String::from(HEAD);
    for fact in &comparison.facts {
        let node = fact.node.map(|node| node.to_string()).unwrap_or_default();
        let value = fact.value;
        let [before, after, change] = [value.before, value.after, value.change()].map(|value| {
            known(value.map(|value| match fact.unit {
                FactUnit::Bytes => format!("{value:.0}"),
                FactUnit::Share | FactUnit::PerSecond => decimal(value),
            }))
        });
        text.push_str(&format!(",,{node},{},{before},{after},{change},{}\n", fact.name, fact.unit.word()));
    }
    let all = [&comparison.processes, &comparison.only_before, &comparison.only_after];
    for row in all.into_iter().flatten() {
        process(row, &mut text);
    }
    text
}

fn decimal(value: f64) -> String {
    format!("{value:.6}")
}

fn process(row: &ProcessComparison, text: &mut String) {
    let pid = row.after.as_ref().or(row.before.as_ref()).and_then(|side| side.pids.first());
    let who = format!("{},{}", known(pid), quoted(&row.name));
    let (memory, cpu) = (row.resident(), row.cpu());
    let [before, after, change] =
        [cpu.before, cpu.after, cpu.change()].map(|share| known(share.map(decimal)));
    text.push_str(&format!("{who},,cpu,{before},{after},{change},share\n"));
    let mut sizes = |node: String, name: &str, sizes: BeforeAfter<Bytes>| {
        let ends = [sizes.before, sizes.after].map(|size| known(size.map(Bytes::get)));
        let change = known(sizes.change());
        text.push_str(&format!("{who},{node},{name},{},{},{change},bytes\n", ends[0], ends[1]));
    };
    sizes(String::new(), "resident", memory);
    for (node, size) in row.nodes() {
        sizes(node.to_string(), "memory", size);
    }
}
