//! The buffer pool of a MySQL server lies on one node, and its threads run on several.

use nodewise_source::paths::shown;

use super::mongod_start::interleave;
use super::words;
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "mysqld-interleave",
    title: "the memory of a MySQL server is uneven over the nodes that use it",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Pages, Fact::Policies],
    sign: "mysqld or mariadbd with more than 50 % of the smallest node, no policy, threads on two nodes or more, and a node with 20 \
           points more of its memory than an even part",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::RUNS,
        &thresholds::MYSQL_SIZE,
        &thresholds::MYSQL_SKEW,
    ],
    traps: "a server that is bound to one node; one that still fills its pool; containers, whose seccomp filter refuses \
            interleaving",
    explains: &["first-touch-on-one"],
    sources: &[
        "MySQL manual: innodb_numa_interleave",
        "percona-server#6038",
        "MariaDB system variables: the option was removed",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let is_server = |process: &&ProcessState<'_>| matches!(&*process.process.name, "mysqld" | "mariadbd");
    situation.significant().filter(is_server).filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let all = situation.memory_nodes();
    let is_free = process.allowed_nodes().is_none_or(|allowed| all.is_subset(allowed));
    let runs = process.runs_on();
    let (node, most) =
        process.memory.iter().max_by_key(|(_, size)| **size).map(|(node, size)| (*node, *size))?;
    let limit = 1.0 / all.len().max(1) as f64 + situation.limit(&thresholds::MYSQL_SKEW);
    let least = situation.smallest()?.share(situation.limit(&thresholds::MYSQL_SIZE));
    if !is_free
        || !process.has_no_policy()
        || runs.len() < 2
        || process.size() <= least
        || process.share(most) < limit
    {
        return None;
    }
    let summary =
        format!("{most} of {} are on node {node}; it runs on nodes {runs}", words::process(process));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = process.confidence.min(Confidence::Likely);
    finding.concerns = Some(most);
    finding.evidence = vec![
        Evidence::new(
            format!("its memory on node {node}"),
            Value::Share(process.share(most)),
            shown::NUMA_MAPS,
        )
        .at_part(Value::Share(limit), situation.thresholds(), &thresholds::MYSQL_SKEW),
        Evidence::new("its memory", Value::Size(process.size()), shown::NUMA_MAPS).at_part(
            Value::Size(least),
            situation.thresholds(),
            &thresholds::MYSQL_SIZE,
        ),
        Evidence::new("policy", Value::text("none"), shown::NUMA_MAPS),
    ];
    if &*process.process.name == "mysqld" {
        finding.mends.push(Mend::words(
            "in my.cnf: innodb_numa_interleave=ON (on by default since MySQL 8.4)",
            Scope::Restart,
        ));
    }
    finding.mends.push(interleave(process));
    finding.nodes.insert(node);
    Some(finding)
}
