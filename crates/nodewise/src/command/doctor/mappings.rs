//! The mappings of processes that matter, read after the window, at a bounded price: policies, kinds of memory.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use nodewise_diagnose::{Pid, Situation};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, Machine};
use nodewise_source::mappings::{MappingsError, Thoroughness};
use nodewise_source::sample::{Identity, MappingsSample, Moment, ProcessSample, Remedy, Sample, Unread};
use nodewise_source::tree::Tree;

use crate::live_pages;

/// The fact, as rules name it.
const FACT: &str = "mappings of processes";
/// CPU time for all of them. One process takes 20 ms at most, and its list of mappings.
const BUDGET: Duration = Duration::from_millis(100);
/// How often a wait looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// The result of reading one process.
enum Read {
    Mappings(MappingsSample),
    /// It ended, or has no memory.
    Nothing,
    Refused,
    Unreadable(String),
    Unpaid,
}

/// Adds mappings to the last sample: of processes that were asked for, then of those that matter, the largest first.
/// Ctrl-C ends it with those that were read.
pub(in crate::command) fn add(
    machine: &Machine,
    now: &mut Sample,
    named: Option<&BTreeSet<Pid>>,
    interrupt: &AtomicBool,
) {
    let wanted = wanted(machine, now, named);
    let count = wanted.len();
    let named = named.cloned().unwrap_or_default();
    let (sender, results) = mpsc::channel();
    // The kernel does not interrupt the walk of a process: whoever waits for it must not be the one who reads.
    thread::spawn(move || read_all(&wanted, &named, &sender));
    let read = collect(&results, interrupt);
    record(now, read, count);
}

/// Reads processes one after the other until no one listens.
fn read_all(wanted: &[Identity], named: &BTreeSet<Pid>, sender: &mpsc::Sender<Read>) {
    let mut left = BUDGET;
    for identity in wanted {
        // Who names a process wants to know all about it.
        let is_named = named.contains(&identity.pid);
        let read =
            if left.is_zero() && !is_named { Read::Unpaid } else { read_one(*identity, is_named, &mut left) };
        if sender.send(read).is_err() {
            return;
        }
    }
}

/// The mappings of one process; `None` where its number is that of another one by now.
pub(in crate::command) fn sample(
    identity: Identity,
    thoroughness: Thoroughness,
) -> Result<Option<MappingsSample>, MappingsError> {
    let tree = Tree::live();
    let mappings = live_pages::mappings(&tree, identity.pid, thoroughness)?;
    let is_same = Identity::read(&tree, identity.pid) == Some(identity);
    Ok(is_same.then(|| MappingsSample { identity, seen: Moment::now(), mappings: mappings.into() }))
}

fn read_one(identity: Identity, is_named: bool, left: &mut Duration) -> Read {
    let thoroughness = if is_named { Thoroughness::Exact } else { Thoroughness::ByPrice };
    match sample(identity, thoroughness) {
        Ok(None) => Read::Nothing,
        Ok(Some(sample)) => {
            if !is_named {
                *left = left.saturating_sub(sample.mappings.took.unwrap_or(sample.mappings.predicted));
            }
            Read::Mappings(sample)
        }
        Err(MappingsError::NoProcess(_) | MappingsError::Ended(_) | MappingsError::Zombie(_)) => {
            Read::Nothing
        }
        Err(MappingsError::OtherUser(_) | MappingsError::Protected(_)) => Read::Refused,
        Err(error) => Read::Unreadable(error.to_string()),
    }
}

/// Takes results up to the last one, or until the user wants an end.
fn collect(results: &mpsc::Receiver<Read>, interrupt: &AtomicBool) -> Vec<Read> {
    let mut read = Vec::new();
    while !interrupt.load(Ordering::Relaxed) {
        match results.recv_timeout(LOOK) {
            Ok(one) => read.push(one),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    // Those that were ready when the end was wanted.
    read.extend(results.try_iter());
    read
}

/// Puts results into the sample, and what is missing with its reason.
fn record(now: &mut Sample, read: Vec<Read>, wanted: usize) {
    let interrupted = wanted - read.len();
    let (mut refused, mut unreadable, mut unpaid) = (0, None, 0);
    for read in read {
        match read {
            Read::Mappings(mappings) => now.mappings.push(mappings),
            Read::Nothing => {}
            Read::Refused => refused += 1,
            Read::Unreadable(reason) => unreadable = unreadable.or(Some(reason)),
            Read::Unpaid => unpaid += 1,
        }
    }
    if refused > 0 {
        now.unread.push(Unread::refused(&Tree::live(), FACT, refused));
    }
    let mut unread = |reason: String, objects: usize, remedy: Option<Remedy>| {
        now.unread.push(Unread { fact: FACT.to_owned(), reason, objects, remedy });
    };
    if let Some(reason) = unreadable {
        unread(reason, 1, None);
    }
    if unpaid > 0 {
        let reason = format!("reading them takes more than {} ms of CPU time", BUDGET.as_millis());
        unread(reason, unpaid, Some("name the process with --pid".into()));
    }
    if interrupted > 0 {
        unread("interrupted".to_owned(), interrupted, None);
    }
}

fn wanted(machine: &Machine, now: &Sample, named: Option<&BTreeSet<Pid>>) -> Vec<Identity> {
    let is_named = |identity: &Identity| named.is_some_and(|named| named.contains(&identity.pid));
    let there = now.processes.iter().filter(|process| !process.kernel_thread);
    let mut wanted: Vec<Identity> = there.map(|process| process.identity).filter(is_named).collect();
    // Which processes matter is a question of one moment.
    if let Ok(situation) = Situation::new(machine, None, now) {
        wanted.extend(that_matter(&situation).into_iter().filter(|identity| !is_named(identity)));
    }
    wanted
}

/// Processes whose own memory matters, then their parents, whose policy they may have, then those that use much of other
/// memory: segments and files.
fn that_matter(situation: &Situation<'_>) -> Vec<Identity> {
    let significant: Vec<_> = situation.significant().map(|process| process.process).collect();
    let parents: BTreeSet<Pid> = significant.iter().filter_map(|process| process.parent).collect_set();
    let mut matter: Vec<Identity> = significant.iter().map(|process| process.identity).collect();
    let others = || situation.processes.iter().map(|process| process.process);
    // The first program of all is the parent of services, which have policies of their own.
    matter.extend(
        others()
            .map(|process| process.identity)
            .filter(|identity| parents.contains(&identity.pid) && identity.pid != Pid::new(1)),
    );
    let mut users: Vec<_> = others().map(|process| (pages_of(process), process.identity)).collect();
    users.retain(|(size, _)| *size >= situation.floor());
    users.order_by_key(|(size, identity)| (Reverse(*size), *identity));
    matter.extend(users.into_iter().map(|(_, identity)| identity));
    let mut seen = BTreeSet::new();
    matter.retain(|identity| seen.insert(*identity));
    matter
}

/// All pages of a process, those of others included.
fn pages_of(process: &ProcessSample) -> Bytes {
    process.pages.iter().flat_map(|pages| pages.nodes.values()).map(|share| share.size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(pid: u32) -> Identity {
        Identity { pid: Pid::new(pid), started_ticks: 5 }
    }

    #[test]
    fn an_interrupt_ends_the_wait_with_what_was_read() {
        let (sender, results) = mpsc::channel();
        let mappings = nodewise_machine::mapping::ProcessMappings::new(Pid::new(7), Vec::new());
        let sample =
            MappingsSample { identity: identity(7), seen: Moment::default(), mappings: mappings.into() };
        sender.send(Read::Mappings(sample)).unwrap();
        // The reader is still at the second of three, and sends nothing more.
        let read = collect(&results, &AtomicBool::new(true));
        drop(sender);
        let mut now = Sample::default();
        record(&mut now, read, 3);
        assert_eq!(now.mappings.len(), 1);
        let [unread] = &now.unread[..] else { panic!("{:?}", now.unread) };
        assert_eq!((unread.fact.as_str(), unread.reason.as_str(), unread.objects), (FACT, "interrupted", 2));
    }

    #[test]
    fn every_process_that_was_wanted_is_accounted_for() {
        let (sender, results) = mpsc::channel();
        let me = Identity::read(&Tree::live(), Pid::new(std::process::id())).expect("this process");
        read_all(&[me, identity(u32::MAX >> 1)], &[me.pid].into(), &sender);
        drop(sender);
        let read = collect(&results, &AtomicBool::new(false));
        let mut now = Sample::default();
        record(&mut now, read, 2);
        assert_eq!((now.mappings.len(), now.mappings[0].identity), (1, me));
        assert_eq!(now.unread, []);
    }
}
