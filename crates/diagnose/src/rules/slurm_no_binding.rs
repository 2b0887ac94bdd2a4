//! Slurm runs steps here, and has no plugin that binds their tasks.

use nodewise_machine::printable::printable;
use nodewise_source::paths::shown;

use crate::finding::{Confidence, Evidence, Mend, Owner, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::Situation;

pub static RULE: Rule = Rule {
    id: "slurm-no-binding",
    title: "Slurm has no plugin that binds tasks: --cpu-bind and --mem-bind do nothing",
    severity: Severity::Note,
    on: several_nodes,
    needs: &[Fact::Processes, Fact::Slurm],
    sign: "slurmd, or a step of a job, runs here, and TaskPlugin of slurm.conf lacks task/affinity",
    thresholds: &[],
    traps: "a TaskPlugin that an included file sets; none at all, whose default depends on the version (silent)",
    explains: &[],
    sources: &["slurm.conf(5): TaskPlugin", "ansible-role-openhpc#42"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let plugins = situation.site.and_then(|site| site.task_plugins.known());
    let Some(Some(plugins)) = plugins else { return Vec::new() };
    let runs = situation
        .now
        .processes
        .iter()
        .any(|process| &*process.name == "slurmd" || Owner::from_process(process) == Owner::Slurm);
    if !runs || plugins.iter().any(|plugin| plugin == "task/affinity") {
        return Vec::new();
    }
    let summary = "jobs of Slurm run here, and nothing binds their tasks to CPUs or memory";
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.confidence = Confidence::Possible;
    let words = plugins.iter().map(|plugin| printable(plugin)).collect::<Vec<_>>().join(",");
    finding.evidence = vec![Evidence::new("TaskPlugin", Value::text(words), shown::SLURM)];
    finding.mends = vec![Mend::words(
        "in slurm.conf: TaskPlugin=task/affinity,task/cgroup, and in cgroup.conf ConstrainCores=yes; scontrol reconfigure on the \
         controller. Then --cpu-bind=cores and --mem-bind=local of srun bind",
        Scope::Restart,
    )];
    vec![finding]
}
