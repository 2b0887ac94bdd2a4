//! A launcher of MPI binds each rank to a core or two, and the rank's threads share it.

use std::collections::BTreeMap;

use nodewise_machine::CpuSet;
use nodewise_machine::plural::plural;
use nodewise_machine::printable::quote;
use nodewise_source::paths::shown;
use nodewise_source::process::Pid;
use nodewise_source::sample::ProcessSample;

use crate::finding::{Evidence, Mend, Owner, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, any};
use crate::situation::Situation;
use crate::thresholds;

/// Programs that start ranks and bind them, as the kernel cuts their names, and the option that takes it back.
const LAUNCHERS: [(&str, &str); 10] = [
    ("mpirun", OPEN_MPI),
    ("mpiexec", OPEN_MPI),
    ("orterun", OPEN_MPI),
    ("orted", OPEN_MPI),
    ("prterun", OPEN_MPI),
    ("prte", OPEN_MPI),
    ("prted", OPEN_MPI),
    ("mpiexec.hydra", HYDRA),
    ("hydra_pmi_proxy", HYDRA),
    ("hydra_bstrap_pr", HYDRA),
];
const OPEN_MPI: &str = "mpirun --bind-to none COMMAND";
const HYDRA: &str = "mpiexec -bind-to none COMMAND";

pub static RULE: Rule = Rule {
    id: "ranks-on-one-core",
    title: "each rank of an MPI program is bound to a core or two, and all its threads share them",
    severity: Severity::Warning,
    on: any,
    needs: &[Fact::Rates, Fact::Processes],
    sign: "children of mpirun, prted or hydra that may use at most 2 CPUs of more, have at least 4 threads with 2 % of a \
           CPU each, and use at least 80 % of their CPUs",
    thresholds: &[
        &thresholds::RANKS_CPUS,
        &thresholds::RANKS_THREADS,
        &thresholds::RANKS_THREAD,
        &thresholds::RANKS_FULL,
    ],
    traps: "threads that sleep, such as those of communication libraries; ranks with a core for each of their threads; a rank \
            that a script starts is not a child of the launcher",
    explains: &["bound-away"],
    sources: &[
        "ompi#13009",
        "ompi#4799: up to two processes are bound to cores",
        "pi_examples#21: 4.15 s without, 0.50 s with",
    ],
    check,
};

/// A rank that has too few CPUs.
struct Rank<'a> {
    process: &'a ProcessSample,
    cpus: &'a CpuSet,
    threads: usize,
    /// The part of its CPUs that it uses.
    used: f64,
}

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let mut ranks: BTreeMap<Pid, Vec<Rank<'_>>> = BTreeMap::new();
    for process in situation.now.processes.iter().filter(|process| !process.kernel_thread) {
        if let (Some(parent), Some(rank)) = (process.parent, rank(situation, process)) {
            ranks.entry(parent).or_default().push(rank);
        }
    }
    ranks.iter().filter_map(|(launcher, ranks)| find(situation, *launcher, ranks)).collect()
}

fn rank<'a>(situation: &Situation<'_>, process: &'a ProcessSample) -> Option<Rank<'a>> {
    let cpus = process.allowed.as_ref()?.cpus.as_ref()?;
    let change = situation.delta.as_ref()?.process(process.identity)?;
    let shares = change.tasks.iter().filter_map(|task| change.window.share(Some(task.cpu.as_ref()?.used)));
    let least = situation.limit(&thresholds::RANKS_THREAD);
    let threads = shares.filter(|share| *share >= least).count();
    let used = change.window.share(Some(change.cpu.as_ref()?.used))? / cpus.len().max(1) as f64;
    let is_narrow = !cpus.is_empty()
        && cpus.len() < situation.now.cpus.len()
        && cpus.len() as f64 <= situation.limit(&thresholds::RANKS_CPUS);
    let is_busy = threads as f64 >= situation.limit(&thresholds::RANKS_THREADS)
        && threads > cpus.len()
        && used >= situation.limit(&thresholds::RANKS_FULL);
    (is_narrow && is_busy).then_some(Rank { process, cpus, threads, used })
}

fn find(situation: &Situation<'_>, launcher: Pid, ranks: &[Rank<'_>]) -> Option<RuleFinding> {
    let launcher = situation.now.processes.iter().find(|process| process.identity.pid == launcher)?;
    let (_, unbound) = LAUNCHERS.iter().find(|(name, _)| *name == &*launcher.name)?;
    let first = ranks.iter().max_by_key(|rank| rank.threads)?;
    let subject = Subject::Process {
        identity: launcher.identity,
        name: launcher.name.as_ref().to_owned(),
        owner: Owner::from_process(launcher),
    };
    let own = plural(first.cpus.len(), "CPU");
    let summary = match ranks.len() {
        1 => format!("a rank with {} busy threads is bound to {own}", first.threads),
        count => {
            format!("{count} ranks are bound to {own} each, the first with {} busy threads", first.threads)
        }
    };
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, subject, summary);
    let thresholds = situation.thresholds();
    let name = format!("{} ({})", quote(&first.process.name), first.process.identity.pid);
    finding.evidence = vec![
        Evidence::new(
            format!("CPUs of {name}"),
            Value::text(format!(
                "{} of {} CPUs ({})",
                first.cpus.len(),
                situation.now.cpus.len(),
                first.cpus
            )),
            shown::STATUS,
        )
        .at(thresholds, &thresholds::RANKS_CPUS),
        Evidence::new("its busy threads", Value::Count(first.threads as u64, "threads"), shown::TASK_SCHED)
            .at(thresholds, &thresholds::RANKS_THREADS),
        Evidence::new("its use of these CPUs", Value::Share(first.used), shown::TASK_SCHED)
            .at(thresholds, &thresholds::RANKS_FULL),
    ];
    finding.cause =
        Some("the launcher binds ranks to cores unless it is asked for something else".to_owned());
    finding.mends = vec![Mend {
        commands: vec![(*unbound).to_owned()],
        ..Mend::words(
            format!(
                "start it without binding, or with a core for each thread: --map-by slot:PE={}",
                first.threads
            ),
            Scope::Restart,
        )
    }];
    finding.nodes = situation.places.nodes(first.cpus);
    Some(finding)
}
