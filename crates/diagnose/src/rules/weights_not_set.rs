//! Weighted interleaving with the same weight for unlike nodes.

use nodewise_machine::{AccessClass, MemPolicy, PolicyMode};
use nodewise_source::paths::shown;

use super::words;
use crate::finding::{Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

/// The file for the old weights.
const WEIGHTS: &str = "nodewise-weights.saved";

pub static RULE: Rule = Rule {
    id: "weights-not-set",
    title: "weighted interleaving has the same weight for unlike nodes",
    severity: Severity::Note,
    on: several_nodes,
    needs: &[Fact::Policies],
    sign: "a policy weighted interleave, equal weights, and read bandwidths of its nodes in the firmware's tables that \
           differ by more than 1.3 times",
    thresholds: &[&thresholds::SIGNIFICANT, &thresholds::SIGNIFICANT_SHARE, &thresholds::WEIGHTS_UNLIKE],
    traps: "tables of the firmware that are wrong: nodewise bandwidth measures",
    explains: &[],
    sources: &["Documentation/ABI/testing/sysfs-kernel-mm-mempolicy-weighted-interleave"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let machine = situation.machine;
    let (policy, size) =
        process.policy().filter(|(policy, _)| policy.mode == PolicyMode::WeightedInterleave)?;
    let weights: Vec<u32> = policy
        .nodes
        .iter()
        .filter_map(|node| machine.settings.interleave_weights.get(&node).copied())
        .collect();
    let rates: Vec<u32> = policy
        .nodes
        .iter()
        .filter_map(|node| machine.access(node, AccessClass::Any)?.read_bandwidth_mb_per_s)
        .collect();
    let complete = weights.len() == policy.nodes.len() && rates.len() == policy.nodes.len();
    let equal = weights.windows(2).all(|pair| pair[0] == pair[1]);
    let (slowest, fastest) = (*rates.iter().min()?, *rates.iter().max()?);
    let ratio = f64::from(fastest) / f64::from(slowest.max(1));
    if !complete || !equal || ratio <= situation.limit(&thresholds::WEIGHTS_UNLIKE) {
        return None;
    }
    let summary = format!(
        "{} interleaves {size} evenly over nodes of {ratio:.1} times the bandwidth",
        words::process(process)
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.concerns = Some(size);
    finding.evidence = vec![
        Evidence::new("weight of every node", Value::text(weights.first()?.to_string()), shown::WEIGHTS),
        Evidence::new("bandwidth, fastest to slowest", Value::text(format!("{ratio:.1}")), "HMAT")
            .at(situation.thresholds(), &thresholds::WEIGHTS_UNLIKE),
    ];
    finding.mends = automatic(situation, policy, &weights).into_iter().collect();
    finding.mends.push(Mend {
        commands: vec![format!("nodewise bandwidth --apply-weights {WEIGHTS}")],
        needs_root: true,
        undo: vec![format!("nodewise bandwidth --undo-weights {WEIGHTS}")],
        ..Mend::words(
            "set the weights by measured bandwidth; pages that are there stay where they are",
            Scope::Now,
        )
    });
    finding.nodes = policy.nodes.clone();
    Some(finding)
}

/// Weights that the kernel works out from the bandwidths of the firmware's tables, where it can but an administrator forbade it.
fn automatic(situation: &Situation<'_>, policy: &MemPolicy, weights: &[u32]) -> Option<Mend> {
    let off = situation.machine.settings.interleave_weights_auto == Some(false);
    let weight = |(node, weight)| format!("echo {weight} > {}/node{node}", shown::WEIGHTS);
    off.then(|| Mend {
        // The file is called auto, and __auto_type in Linux 6.18.
        commands: vec![format!("echo 1 | tee {}/*auto*", shown::WEIGHTS)],
        needs_root: true,
        // A weight that is written ends the automatic ones.
        undo: policy.nodes.iter().zip(weights).map(weight).collect(),
        ..Mend::words(
            "let the kernel work out the weights from the firmware's bandwidths (Linux 6.16); pages that are there stay where \
             they are",
            Scope::Now,
        )
    })
}
