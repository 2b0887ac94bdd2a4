//! A program bound itself to few of the CPUs that its cpuset allows, and its threads wait for them.

use nodewise_machine::CpuSet;
use nodewise_source::paths::shown;
use nodewise_source::sample::ProcessSample;

use crate::finding::{Evidence, Mend, Owner, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, any};
use crate::situation::Situation;
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "affinity-intersects-to-one",
    title: "a program's own binding leaves few CPUs of its cpuset, and its threads share them",
    severity: Severity::Warning,
    on: any,
    needs: &[Fact::Rates, Fact::Processes],
    sign: "a control group with a cpuset of some CPUs; a process in it that may use less than a quarter of these, has more \
           busy threads than CPUs, and uses at least 80 % of them",
    thresholds: &[&thresholds::SELF_BOUND, &thresholds::SELF_BOUND_THREAD, &thresholds::SELF_BOUND_FULL],
    traps: "programs of one thread; a binding with a CPU for each thread; ranks that mpirun binds (ranks-on-one-core)",
    explains: &[],
    sources: &["ceph#52307: an OSD on one CPU of its container"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let programs = situation.now.processes.iter().filter(|process| !process.kernel_thread);
    programs.filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessSample) -> Option<RuleFinding> {
    let group = situation.now.groups.iter().find(|group| Some(&group.path) == process.group.as_ref())?;
    let cpuset = group.allowed.cpus.as_ref().filter(|cpus| cpus.len() < situation.now.cpus.len())?;
    let cpus = every_cpu(process)?;
    let part = cpus.len() as f64 / cpuset.len().max(1) as f64;
    if cpus.is_empty() || !cpus.is_subset(cpuset) || part >= situation.limit(&thresholds::SELF_BOUND) {
        return None;
    }
    let change = situation.delta.as_ref()?.process(process.identity)?;
    let least = situation.limit(&thresholds::SELF_BOUND_THREAD);
    let shares = change.tasks.iter().filter_map(|task| change.window.share(Some(task.cpu.as_ref()?.used)));
    let busy = shares.filter(|share| *share >= least).count();
    let used = change.window.share(Some(change.cpu.as_ref()?.used))? / cpus.len() as f64;
    if busy <= cpus.len() || used < situation.limit(&thresholds::SELF_BOUND_FULL) {
        return None;
    }
    let subject = Subject::Process {
        identity: process.identity,
        name: process.name.as_ref().to_owned(),
        owner: Owner::from_process(process),
    };
    let summary =
        format!("{busy} busy threads share {} of the {} CPUs of its cpuset", cpus.len(), cpuset.len());
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, subject, summary);
    finding.evidence = vec![
        Evidence::new("CPUs that it may use", Value::text(format!("{cpus} of {cpuset}")), shown::STATUS)
            .at(situation.thresholds(), &thresholds::SELF_BOUND),
        Evidence::new("its use of these", Value::Share(used), shown::TASK_SCHED)
            .at(situation.thresholds(), &thresholds::SELF_BOUND_FULL),
    ];
    finding.cause = Some("it binds itself to CPUs that it chose without looking at its cpuset".to_owned());
    finding.mends = vec![Mend::words(
        "switch its own binding off (Ceph: osd_numa_auto_affinity=false), or give its container the CPUs of one node",
        Scope::Restart,
    )];
    finding.nodes = situation.places.nodes(&cpus);
    Some(finding)
}

/// The CPUs that some thread of a process may use.
fn every_cpu(process: &ProcessSample) -> Option<CpuSet> {
    let own = process.allowed.as_ref()?.cpus.clone()?;
    let of_tasks = process.tasks.iter().flatten().filter_map(|task| task.allowed.as_ref()?.cpus.as_ref());
    Some(of_tasks.fold(own, |all, cpus| all.union(cpus)))
}
