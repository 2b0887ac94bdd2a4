//! The evidence as a list: each value with its unit and quality, or the reason why it is missing.

use std::collections::BTreeMap;

use nodewise_machine::{Bytes, NodeId};

use super::decision::Quantity;
use super::known::{Known, Quality};
use super::profile::{Profile, Sharing, total};
use crate::finding::Value;

/// A fact about a program.
#[derive(Clone, Debug, PartialEq)]
pub struct AdviceEvidence {
    pub name: &'static str,
    /// The value with its quality, or the reason why there is none.
    pub value: Result<(Value, Quality), String>,
}

impl Profile {
    /// All of it, in the order in which people ask.
    pub fn evidence(&self) -> Vec<AdviceEvidence> {
        let size = |size: &Bytes| Value::Size(*size);
        let flag = |yes: &bool| Value::text(if *yes { "yes" } else { "no" });
        let nodes = |memory: &BTreeMap<NodeId, Bytes>| {
            let all = total(memory).get().max(1) as f64;
            let part = |(node, size): (&NodeId, &Bytes)| {
                let share = 100.0 * size.get() as f64 / all;
                (share >= 0.5).then(|| format!("node {node} {share:.0} %"))
            };
            Value::Text(memory.iter().filter_map(part).collect::<Vec<_>>().join(", "))
        };
        let mut evidence = vec![
            entry("size", &self.size, size),
            entry("peak", &self.peak, size),
            entry("declared size", &self.declared, size),
            entry("memory limit", &self.limit, size),
            entry(Quantity::Growth.name(), &self.growth, |growth| Quantity::Growth.value(*growth)),
            entry(Quantity::Need.name(), &self.need, size),
            entry("memory by node", &self.memory, nodes),
            entry("threads", &self.threads, |count| Value::Count(*count, "")),
            entry(Quantity::Parallelism.name(), &self.parallelism, |busy| Quantity::Parallelism.value(*busy)),
            entry("nodes of its threads", &self.runs_on, |nodes| Value::text(nodes.to_string())),
            entry("remote if shared evenly", &self.remote, |share| Value::Share(*share)),
            entry("stranded memory", &self.stranded, size),
            entry("sharing", &self.sharing, |sharing| {
                Value::text(match sharing {
                    Sharing::Private => "each thread has memory of its own",
                    Sharing::Shared => "shared by its threads",
                })
            }),
            entry(Quantity::Bandwidth.name(), &self.bandwidth, |share| Quantity::Bandwidth.value(*share)),
            entry("need for latency", &self.latency, flag),
            entry("device", &self.device, |node| match node {
                Some(node) => Value::Text(format!("on node {node}")),
                None => Value::text("none of one node"),
            }),
            entry("snapshots by fork", &self.snapshot, flag),
            entry("can be split", &self.splittable, flag),
            entry("placement in force", &self.placed, |placed| match placed {
                Some(words) => Value::text(words.clone()),
                None => Value::text("none"),
            }),
            entry("findings of doctor", &self.complaints, |rules| {
                if rules.is_empty() { Value::text("none") } else { Value::Text(rules.join(", ")) }
            }),
        ];
        // Left out of a program that shares nothing.
        let common = total(&self.common);
        if common.get() > 0 {
            let common = Known::certain(common);
            evidence.push(entry("memory shared with other processes", &common, size));
            let away =
                Known::or_unknown(self.common_away, Quality::Sampled, "none, or one of them is not known");
            evidence.push(entry("of it away from all of them", &away, size));
        }
        evidence
    }
}

fn entry<T>(name: &'static str, known: &Known<T>, show: impl Fn(&T) -> Value) -> AdviceEvidence {
    let value = match known {
        Known::Value { value, quality } => Ok((show(value), *quality)),
        Known::Unknown { reason } => Err(reason.clone()),
    };
    AdviceEvidence { name, value }
}
