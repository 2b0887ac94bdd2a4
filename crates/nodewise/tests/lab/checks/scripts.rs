//! Drawn scripts, played by the kernel and by the model side by side: the answer to every call, the
//! node of every page after it, and the policies.

mod family;
mod mapping;
mod pool;
mod stage;

use nodewise_machine::NodeId;
use nodewise_model::Weights;
use nodewise_model::release::Change;

use super::model::{memory, release};
use crate::cpuset::Cpuset;
use crate::nodewise::Context;
use crate::script::{Drawer, Script};
use crate::setting::{self, Setting};
use stage::Stage;

/// Scripts that are reported in full when many differ.
const MOST_TOLD: usize = 3;

/// How long the kernel waits before it looks again for small pages to make huge ones of, and as long as any.
const KHUGEPAGED: &str = "/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs";
const FOR_EVER: &str = "4294967295";

/// Plays the scripts of the guest.
pub fn play(context: &Context) -> Result<(), String> {
    let (all, cpus) = (context.seen.nodes_with_memory(), context.seen.online_cpus());
    let now = memory(context)?;
    // A page that follows its CPU would move while it is looked at.
    let balancing = Setting::with("/proc/sys/kernel/numa_balancing", "0")?;
    // Nor is a huge page to be made of small ones behind our back.
    let collapse = Setting::with(KHUGEPAGED, FOR_EVER)?;
    let has_weights = release(context).has(Change::WeightedInterleave);
    let with_weights = all.iter().filter(|_| has_weights);
    let kept: Vec<Setting> =
        with_weights.map(|node| Setting::keep(weight_path(node))).collect::<Result<_, _>>()?;
    let group = Cpuset::new(&cpus.to_string(), &all.to_string())?;
    group.enter()?;
    let mut wrong = Vec::new();
    for number in context.scripts.clone() {
        let script = Drawer::script(&context.seen, number);
        let weights = weights(context, &script)?;
        let result = std::thread::scope(|scope| {
            // A thread takes its policy and its CPU with it when it ends.
            let play = || Stage::new(context, &group, now.clone(), weights).play(&script);
            scope.spawn(play).join().map_err(|_| "the thread of a script panicked".to_owned())?
        });
        group.allow(&all.to_string())?;
        wrong.extend(result.err().map(|why| format!("script {number}: {why}")));
    }
    drop((balancing, collapse, kept));
    let count = wrong.len();
    wrong.truncate(MOST_TOLD);
    if wrong.is_empty() { Ok(()) } else { Err(format!("{count} scripts differ:\n{}", wrong.join("\n"))) }
}

fn weight_path(node: NodeId) -> String {
    format!("/sys/kernel/mm/mempolicy/weighted_interleave/node{node}")
}

/// Gives the nodes the weights of a script, where this kernel has weights.
fn weights(context: &Context, script: &Script) -> Result<Weights, String> {
    if !release(context).has(Change::WeightedInterleave) {
        return Ok(Weights::new());
    }
    for (node, weight) in &script.weights {
        setting::write(&weight_path(*node), &weight.to_string())?;
    }
    Ok(script.weights.iter().copied().collect())
}
