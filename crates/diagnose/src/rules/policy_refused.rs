//! A program in a container wants to place its memory, and the container's filter refuses that.

use nodewise_source::paths::shown;

use super::words;
use crate::finding::{Confidence, Evidence, Mend, Owner, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

/// Options by which a program places its memory, as parts of its command line.
const OPTIONS: [(&str, &[&str]); 4] = [
    ("mysqld", &["innodb-numa-interleave", "innodb_numa_interleave"]),
    ("llama-server", &["--numa"]),
    ("llama-cli", &["--numa"]),
    ("x265", &["--pools"]),
];

pub static RULE: Rule = Rule {
    id: "policy-refused",
    title: "a program in a container is asked to place its memory, and the container's filter refuses that",
    severity: Severity::Note,
    on: several_nodes,
    needs: &[Fact::Policies, Fact::Programs],
    sign: "a process with at least 300 MiB or 5 % of the smallest node in a container of Docker, Podman or the kubelet, with a filter \
           of system calls and without CAP_SYS_NICE, whose command line has an option that sets policies, and whose memory is \
           under none",
    thresholds: &[&thresholds::SIGNIFICANT, &thresholds::SIGNIFICANT_SHARE],
    traps: "a filter of its own that lets set_mempolicy and mbind pass; options in files (silent); an option that says off",
    explains: &[],
    sources: &[
        "moby#37241: the default profile asks for CAP_SYS_NICE",
        "docker-library/mysql#303",
        "containerd#13610",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(find).collect()
}

fn find(process: &ProcessState<'_>) -> Option<RuleFinding> {
    let program = process.program?;
    let is_contained = matches!(process.owner(), Owner::Container(..) | Owner::Kubelet);
    let is_filtered = program.is_filtered == Some(true) && program.has_nice == Some(false);
    if !is_contained || !is_filtered || !process.has_no_policy() {
        return None;
    }
    let (_, options) = OPTIONS.iter().find(|(name, _)| *name == &*process.process.name)?;
    let words = program.words.as_deref()?;
    let asked =
        options.iter().find(|option| words.iter().any(|word| word.contains(*option) && !is_off(word)))?;
    let summary =
        format!("{} was started with {asked}, and no memory is under a policy", words::process(process));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = Confidence::Likely;
    finding.concerns = Some(process.size());
    finding.evidence = vec![
        Evidence::new("filter of system calls", Value::text("yes"), shown::STATUS),
        Evidence::new("CAP_SYS_NICE", Value::text("no"), shown::STATUS),
        Evidence::new("policies", Value::text("none"), shown::NUMA_MAPS),
    ];
    finding.cause = Some("set_mempolicy and mbind fail with EPERM there".to_owned());
    finding.mends = vec![Mend::words(
        "give the container CAP_SYS_NICE (docker run --cap-add SYS_NICE; securityContext of a pod), or place it from outside \
         (--cpuset-cpus and --cpuset-mems)",
        Scope::Restart,
    )];
    finding.nodes = process.memory.keys().copied().collect();
    Some(finding)
}

/// Whether an option says that it is off: `--innodb-numa-interleave=0`, `--skip-innodb-numa-interleave`.
fn is_off(word: &str) -> bool {
    let value = word.split_once('=').map_or("", |(_, value)| value).to_ascii_lowercase();
    word.starts_with("--skip")
        || word.starts_with("--disable")
        || ["0", "off", "false"].contains(&value.as_str())
}
