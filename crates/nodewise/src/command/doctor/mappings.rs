//! The mappings of processes that matter, read after the window, at a bounded price: policies, kinds of memory.

use std::collections::BTreeSet;
use std::time::Duration;

use nodewise_diagnose::{Pid, Situation};
use nodewise_machine::Machine;
use nodewise_source::mappings::{MappingsError, Thoroughness, read};
use nodewise_source::sample::{Identity, MappingsSample, Moment, Remedy, Sample, Unread};
use nodewise_source::tree::Tree;

use crate::live_pages::LivePages;
use crate::measuring;

/// The fact, as rules name it.
const FACT: &str = "mappings of processes";
/// CPU time for all of them. One process takes 20 ms at most, and its list of mappings.
const BUDGET: Duration = Duration::from_millis(100);

/// Adds mappings to the last sample: of processes that were asked for, then of those that matter, the largest first.
pub(super) fn add(machine: &Machine, now: &mut Sample, named: Option<&BTreeSet<Pid>>) {
    let wanted = wanted(machine, now, named);
    let (mut left, mut refused, mut unreadable, mut unpaid) = (BUDGET, 0, None, 0);
    for identity in wanted {
        if left.is_zero() {
            unpaid += 1;
            continue;
        }
        let pid = identity.pid;
        let pages = &mut LivePages::open(pid);
        // Who names a process wants to know all about it.
        let is_named = named.is_some_and(|named| named.contains(&pid));
        let thoroughness = if is_named { Thoroughness::Exact } else { Thoroughness::ByPrice };
        match read(&Tree::live(), pid, thoroughness, measuring::seed(None), Some(pages)) {
            // A number can be that of another process by now.
            Ok(_) if Identity::read(&Tree::live(), pid) != Some(identity) => {}
            Ok(mappings) => {
                left = left.saturating_sub(mappings.took.unwrap_or(mappings.predicted));
                now.mappings.push(MappingsSample {
                    identity,
                    seen: Moment::now(),
                    mappings: mappings.into(),
                });
            }
            Err(MappingsError::NoProcess(_) | MappingsError::Ended(_) | MappingsError::Zombie(_)) => {}
            Err(MappingsError::OtherUser(_) | MappingsError::Protected(_)) => refused += 1,
            Err(error) => unreadable = unreadable.or_else(|| Some(error.to_string())),
        }
    }
    let mut unread = |reason: String, objects: usize, remedy: Option<Remedy>| {
        now.unread.push(Unread { fact: FACT.to_owned(), reason, objects, remedy });
    };
    if refused > 0 {
        unread("permission denied".to_owned(), refused, Some(Remedy::Root));
    }
    if let Some(reason) = unreadable {
        unread(reason, 1, None);
    }
    if unpaid > 0 {
        let reason = format!("reading them takes more than {} ms of CPU time", BUDGET.as_millis());
        unread(reason, unpaid, Some("name the process with --pid".into()));
    }
}

fn wanted(machine: &Machine, now: &Sample, named: Option<&BTreeSet<Pid>>) -> Vec<Identity> {
    let is_named = |identity: &Identity| named.is_some_and(|named| named.contains(&identity.pid));
    let there = now.processes.iter().filter(|process| !process.kernel_thread);
    let mut wanted: Vec<Identity> = there.map(|process| process.identity).filter(is_named).collect();
    // Which processes matter is a question of one moment.
    if let Ok(situation) = Situation::new(machine, None, now) {
        let significant = situation.significant().map(|process| process.process.identity);
        wanted.extend(significant.filter(|identity| !is_named(identity)));
    }
    wanted
}
