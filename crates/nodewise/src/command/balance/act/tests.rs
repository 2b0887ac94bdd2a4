#![expect(clippy::print_stderr, reason = "a test that cannot run says why")]

//! CPUs of a real process: narrowed, and back.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use nodewise_machine::{Machine, Origin};
use nodewise_source::balance_journal::{ActionEntry, ProcessEntry};
use nodewise_source::process::family;
use nodewise_source::sample::Identity;
use nodewise_syscall::clock::{Clock as _, Monotonic};

use super::super::undo::{Parts, take_back};
use super::*;

/// A shell that ends when dropped, and its children with it.
struct Shell(Child);

impl Shell {
    fn start() -> Self {
        let started = Command::new("sh").stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        Self(started.unwrap())
    }

    fn pid(&self) -> Pid {
        Pid::new(self.0.id())
    }

    /// Starts a child of it, and returns its number.
    fn child(&mut self) -> Pid {
        let before = family(&Tree::live(), self.pid());
        writeln!(self.0.stdin.as_mut().unwrap(), "sleep 60 &").unwrap();
        loop {
            let new = family(&Tree::live(), self.pid()).into_iter().find(|pid| !before.contains(pid));
            if let Some(pid) = new {
                return pid;
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        for pid in family(&Tree::live(), self.pid()).into_iter().skip(1) {
            let _ = Command::new("kill").arg(pid.to_string()).status();
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn cpus_of(pid: Pid) -> CpuSet {
    claims::cpus(&Tree::live(), pid, pid.number()).unwrap().unwrap()
}

fn began(pid: Pid) -> Entry {
    let process = ProcessEntry {
        pid: pid.number(),
        started_ticks: Identity::read(&Tree::live(), pid).unwrap().started_ticks,
        name: "sh".to_owned(),
    };
    let at_ticks = u64::try_from(Moment::now().since_boot.as_millis() * TICKS / 1000).unwrap();
    let action = ActionEntry {
        need: "scattered".to_owned(),
        need_share: 0.5,
        remote_share: None,
        pages: Vec::new(),
        most_bytes: 0,
        cpus: None,
    };
    Entry::Began(Began { process, at_ticks, image: None, action })
}

#[test]
fn threads_and_what_they_start_get_their_old_cpus_back() {
    let own = affinity::cpus(Task::CURRENT).unwrap();
    let one = CpuSet::from_iter(own.first());
    if own.len() < 2 {
        return eprintln!("skipped: this test may use one CPU only");
    }
    let (tree, machine) = (Tree::live(), Machine::new(Origin::Live));
    let folder = tempfile::tempdir().unwrap();
    let mut kept = Kept::open(Some(&folder.path().join("journal")), &tree, false).unwrap();
    let mut shell = Shell::start();
    let older = shell.child();
    let before = cpus_of(shell.pid());
    let everyone = Allowed { cpus: Some(own.clone()), nodes: None };
    let limits = Limits::default();
    let interrupt = Arc::new(AtomicBool::new(false));
    let actor = Actor {
        tree: &tree,
        machine: &machine,
        limits: &limits,
        everyone: &everyone,
        interrupt,
        until: None,
    };
    let id = kept.next_id();
    kept.write(Some(id), began(shell.pid())).unwrap();
    actor.narrow(&mut kept, id, shell.pid(), &one, |_| true).unwrap().unwrap();
    assert_eq!((cpus_of(shell.pid()), cpus_of(older)), (one.clone(), before.clone()));
    // A child that is born later inherits, and one more is then changed by another hand.
    let clock = Monotonic::start();
    while clock.now() < Duration::from_millis(20) {
        std::thread::yield_now();
    }
    let (heir, taken) = (shell.child(), shell.child());
    assert_eq!(cpus_of(heir), one);
    let other = CpuSet::from_iter(own.last());
    affinity::set_cpus(Task::new(taken.number()).unwrap(), &other).unwrap();
    let open = kept.open_actions().remove(0);
    let back = take_back(&tree, &machine, &mut kept, &open, Parts::Threads, None).unwrap();
    assert_eq!((back.threads, back.changed, back.refused), (2, 0, None));
    assert_eq!((cpus_of(shell.pid()), cpus_of(heir), cpus_of(taken)), (before.clone(), before, other));
    assert_eq!(kept.open_actions(), []);
}

#[test]
fn a_thread_that_another_hand_has_changed_is_left_alone_and_an_ended_process_needs_nothing() {
    let own = affinity::cpus(Task::CURRENT).unwrap();
    if own.len() < 2 {
        return eprintln!("skipped: this test may use one CPU only");
    }
    let (tree, machine) = (Tree::live(), Machine::new(Origin::Live));
    let folder = tempfile::tempdir().unwrap();
    let mut kept = Kept::open(Some(&folder.path().join("journal")), &tree, false).unwrap();
    let shell = Shell::start();
    let (first, last) = (CpuSet::from_iter(own.first()), CpuSet::from_iter(own.last()));
    let change = ThreadChange {
        tid: shell.pid().number(),
        started_ticks: Identity::read(&tree, shell.pid()).unwrap().started_ticks,
        before: own.to_string(),
        after: first.to_string(),
    };
    for id in [1, 2] {
        kept.write(Some(id), began(shell.pid())).unwrap();
        kept.write(Some(id), Entry::Affinity { threads: vec![change.clone()] }).unwrap();
    }
    affinity::set_cpus(Task::new(shell.pid().number()).unwrap(), &last).unwrap();
    let open = kept.open_actions();
    let back = take_back(&tree, &machine, &mut kept, &open[1], Parts::All, None).unwrap();
    assert_eq!((back.threads, back.changed), (0, 1));
    assert_eq!(cpus_of(shell.pid()), last);
    drop(shell);
    let back = take_back(&tree, &machine, &mut kept, &open[0], Parts::All, None).unwrap();
    assert!(back.has_ended && kept.open_actions().is_empty());
}

#[test]
fn threads_that_another_hand_has_placed_are_not_narrowed() {
    let own = affinity::cpus(Task::CURRENT).unwrap();
    if own.len() < 2 {
        return eprintln!("skipped: this test may use one CPU only");
    }
    let (tree, machine) = (Tree::live(), Machine::new(Origin::Live));
    let folder = tempfile::tempdir().unwrap();
    let mut kept = Kept::open(Some(&folder.path().join("journal")), &tree, false).unwrap();
    let shell = Shell::start();
    let (first, last) = (CpuSet::from_iter(own.first()), CpuSet::from_iter(own.last()));
    affinity::set_cpus(Task::new(shell.pid().number()).unwrap(), &last).unwrap();
    let everyone = Allowed { cpus: Some(own.clone()), nodes: None };
    let limits = Limits::default();
    let interrupt = Arc::new(AtomicBool::new(false));
    let actor = Actor {
        tree: &tree,
        machine: &machine,
        limits: &limits,
        everyone: &everyone,
        interrupt,
        until: None,
    };
    let identity = Identity::read(&tree, shell.pid()).unwrap();
    let guard = Guard::new(&tree, &limits, &everyone, own.clone(), identity, NodeSet::new(), Some(&first));
    let why = guard.confirm().unwrap_err();
    let id = kept.next_id();
    kept.write(Some(id), began(shell.pid())).unwrap();
    let narrowed = actor.narrow(&mut kept, id, shell.pid(), &first, |cpus| guard.is_free(cpus)).unwrap();
    assert_eq!(
        (narrowed.unwrap_err().as_str(), why.as_str()),
        (
            "changed meanwhile: another program set the CPUs of its threads",
            "changed meanwhile: another program set the CPUs of its threads",
        )
    );
    assert_eq!(cpus_of(shell.pid()), last);
}
