//! Programs of processes that matter, read after the window, at a bounded price: how they were started, what limits them,
//! which devices they have open. Nothing of it is recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use nodewise_diagnose::rules::irqbalance_against_you;
use nodewise_diagnose::{Pid, Situation};
use nodewise_source::program::running::{self, RunningProgram};
use nodewise_source::sample::{Identity, Unread};
use nodewise_source::tree::Tree;

/// The fact, as rules name it.
const FACT: &str = "programs of processes";
/// The time for all of them. One takes less than a millisecond, unless it has thousands of open files.
const BUDGET: Duration = Duration::from_millis(50);

/// Small programs whose command lines say what they do to others.
const SMALL: [&str; 1] = [irqbalance_against_you::PROGRAM];

/// Reads the programs of processes that were asked for, then of small ones that rules ask for by name, then of those that
/// matter or are at work, the largest first. Ended processes are left out; a line says how many were too many.
pub(super) fn read(
    situation: &Situation<'_>,
    named: Option<&BTreeSet<Pid>>,
) -> (BTreeMap<Identity, RunningProgram>, Option<Unread>) {
    let tree = Tree::live();
    let is_named = |identity: &Identity| named.is_some_and(|named| named.contains(&identity.pid));
    let floor = situation.floor();
    let all = || situation.now.processes.iter().filter(|process| !process.kernel_thread);
    let mut wanted: Vec<Identity> = all().map(|process| process.identity).filter(is_named).collect();
    // Anybody can give a program such a name.
    let by_root = all().filter(|process| process.user.is_none_or(|user| user == 0));
    let small = by_root.filter(|process| SMALL.contains(&&*process.name)).map(|process| process.identity);
    let small: Vec<Identity> = small.filter(|identity| !is_named(identity)).collect();
    wanted.extend(&small);
    let matters =
        situation.processes.iter().filter(|process| process.size() >= floor || process.is_at_work());
    let matters = matters.map(|process| process.process.identity);
    wanted.extend(matters.filter(|identity| !is_named(identity) && !small.contains(identity)));
    let end = Instant::now() + BUDGET;
    let mut programs = BTreeMap::new();
    let mut unpaid = 0;
    for identity in wanted {
        if Instant::now() >= end && !is_named(&identity) {
            unpaid += 1;
            continue;
        }
        let program = running::read(&tree, identity.pid);
        // The number can be that of another process by now.
        if Identity::read(&tree, identity.pid) == Some(identity) {
            programs.insert(identity, program);
        }
    }
    let unread = (unpaid > 0).then(|| Unread {
        fact: FACT.to_owned(),
        reason: format!("reading them takes more than {} ms", BUDGET.as_millis()),
        objects: unpaid,
        remedy: Some("name the process with --pid".into()),
    });
    (programs, unread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{Machine, Origin};
    use nodewise_source::sample::{Moment, ProcessScope, SampleOptions, Sampler};

    #[test]
    fn a_process_that_was_named_is_read_however_small_it_is() {
        let options = SampleOptions { processes: ProcessScope::All, ..SampleOptions::default() };
        let now = Sampler::new(Tree::live(), options).sample(Moment::now());
        let machine = Machine::new(Origin::Live);
        let situation = Situation::new(&machine, None, &now).expect("one sample");
        let own = Pid::new(std::process::id());
        let (programs, unread) = read(&situation, Some(&[own].into()));
        let program = programs.iter().find(|(identity, _)| identity.pid == own).expect("this process").1;
        assert!(program.words.is_some() && program.variables.is_some() && program.devices.is_some());
        assert!(unread.is_none_or(|unread| unread.fact == FACT));
    }
}
