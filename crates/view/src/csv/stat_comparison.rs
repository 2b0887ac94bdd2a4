//! Two moments of the running system, a line per fact.

use nodewise_machine::Bytes;

use super::{decimal, fact_value, known, quoted};
use crate::digest::estimate::SizeChange;
use crate::digest::running::comparison::{ProcessComparison, RunningComparison};

/// The first line.
const HEAD: &str = "pid,process,node,name,before,after,change,change_low,change_high,unit\n";

/// Writes the facts. What is not known is empty, and so are the ends of a change where pages were counted; a process
/// that is in one moment only has 0 in the other. Several processes of a name have the number of the first.
pub fn stat_comparison(comparison: &RunningComparison) -> String {
    let mut text = String::from(HEAD);
    for fact in &comparison.facts {
        let value = fact.value;
        let [before, after, change] = [value.before, value.after, value.change()]
            .map(|value| known(value.map(|value| fact_value(fact.unit, value))));
        let (node, name, unit) = (known(fact.node), fact.name, fact.unit.word());
        text.push_str(&format!(",,{node},{name},{before},{after},{change},,,{unit}\n"));
    }
    let all = [&comparison.processes, &comparison.only_before, &comparison.only_after];
    for row in all.into_iter().flatten() {
        process(row, &mut text);
    }
    text
}

fn process(row: &ProcessComparison, text: &mut String) {
    let pid = row.after.as_ref().or(row.before.as_ref()).and_then(|side| side.pids.first());
    let who = format!("{},{}", known(pid), quoted(&row.name));
    let (memory, cpu) = (row.resident(), row.cpu());
    let [before, after, change] =
        [cpu.before, cpu.after, cpu.change()].map(|share| known(share.map(decimal)));
    text.push_str(&format!("{who},,cpu,{before},{after},{change},,,share\n"));
    let [before, after] = [memory.before, memory.after].map(|size| known(size.map(Bytes::get)));
    text.push_str(&format!("{who},,resident,{before},{after},{},,,bytes\n", known(memory.change())));
    for (node, sizes) in row.nodes().into_iter().flatten() {
        let [before, after] = [sizes.before, sizes.after].map(|size| known(size.map(|size| size.size.get())));
        let change = sizes.change();
        let (low, high) = change.and_then(SizeChange::ends).unzip();
        let (change, low, high) = (known(change.map(|change| change.change)), known(low), known(high));
        text.push_str(&format!("{who},{node},memory,{before},{after},{change},{low},{high},bytes\n"));
    }
}
