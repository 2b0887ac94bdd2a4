#![expect(clippy::print_stderr, reason = "a test that cannot run says why")]

//! CPUs of a real process: narrowed, and back.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use nodewise_diagnose::balance::{Means, Named, Need, PageMove};
use nodewise_machine::{Machine, Origin};
use nodewise_source::balance_journal::{ActionEntry, OpenAction, ProcessEntry};
use nodewise_source::process::family;
use nodewise_source::sample::Identity;
use nodewise_syscall::clock::{Clock as _, Monotonic};

use nodewise_machine::NodeSet;

use super::super::undo::{Back, Parts, take_back};
use super::*;

/// A shell that ends when dropped, and its children with it.
struct Shell(Child);

impl Shell {
    /// Starts it, and waits for its first answer: the kernel lets the parent go on before the addresses of the new
    /// program are known.
    fn start() -> Self {
        let mut child = Command::new("sh").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        writeln!(child.stdin.as_mut().unwrap(), "echo").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        Self(child)
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
    let at_ticks = to_ticks(Moment::now().since_boot);
    let action = ActionEntry {
        need: "scattered".to_owned(),
        need_share: 0.5,
        remote_share: None,
        pages: Vec::new(),
        most_bytes: 0,
        spread: Vec::new(),
        cpus: None,
    };
    Entry::Began(Began { process, at_ticks, image: None, action })
}

/// A shell on this machine, and everything an action on it needs.
struct Scene {
    /// The CPUs that this test may use: two at least.
    own: CpuSet,
    tree: Tree,
    machine: Machine,
    everyone: Allowed,
    limits: Limits,
    kept: Kept,
    shell: Shell,
    _folder: tempfile::TempDir,
}

impl Scene {
    fn begin() -> Option<Self> {
        let own = affinity::cpus(Task::CURRENT).unwrap();
        if own.len() < 2 {
            eprintln!("skipped: this test may use one CPU only");
            return None;
        }
        let (tree, folder) = (Tree::live(), tempfile::tempdir().unwrap());
        Some(Self {
            kept: Kept::open(Some(&folder.path().join("journal")), &tree, false).unwrap(),
            everyone: Allowed { cpus: Some(own.clone()), nodes: None },
            own,
            tree,
            machine: Machine::new(Origin::Live),
            limits: Limits::default(),
            shell: Shell::start(),
            _folder: folder,
        })
    }

    /// Narrows the threads of the shell, as the next action.
    fn narrow(&mut self, cpus: &CpuSet, is_free: impl Fn(&CpuSet) -> bool) -> Result<(), String> {
        let actor = Actor {
            scope: PageScope::Own,
            tree: &self.tree,
            machine: &self.machine,
            limits: &self.limits,
            reason: Reason::Found,
            everyone: &self.everyone,
            interrupt: Arc::new(AtomicBool::new(false)),
            until: None,
        };
        let (id, pid) = (self.kept.next_id(), self.shell.pid());
        self.kept.write(Some(id), began(pid)).unwrap();
        actor.narrow(&mut self.kept, id, pid, cpus, is_free).unwrap()
    }

    fn take_back(&mut self, action: &OpenAction, parts: Parts) -> Back {
        take_back(&self.tree, &self.machine, &mut self.kept, action, parts, None).unwrap()
    }
}

#[test]
fn threads_and_what_they_start_get_their_old_cpus_back() {
    let Some(mut scene) = Scene::begin() else { return };
    let one = CpuSet::from_iter(scene.own.first());
    let older = scene.shell.child();
    let pid = scene.shell.pid();
    let before = cpus_of(pid);
    scene.narrow(&one, |_| true).unwrap();
    assert_eq!((cpus_of(pid), cpus_of(older)), (one.clone(), before.clone()));
    // A child that is born later inherits, and one more is then changed by another hand.
    let clock = Monotonic::start();
    while clock.now() < Duration::from_millis(20) {
        std::thread::yield_now();
    }
    let (heir, taken) = (scene.shell.child(), scene.shell.child());
    assert_eq!(cpus_of(heir), one);
    let other = CpuSet::from_iter(scene.own.last());
    affinity::set_cpus(Task::new(taken.number()).unwrap(), &other).unwrap();
    let open = scene.kept.open_actions().remove(0);
    let back = scene.take_back(&open, Parts::Threads);
    assert_eq!((back.threads, back.changed, back.refused), (2, 0, None));
    assert_eq!((cpus_of(pid), cpus_of(heir), cpus_of(taken)), (before.clone(), before, other));
    assert_eq!(scene.kept.open_actions(), []);
}

#[test]
fn a_thread_that_another_hand_has_changed_is_left_alone_and_an_ended_process_needs_nothing() {
    let Some(mut scene) = Scene::begin() else { return };
    let pid = scene.shell.pid();
    let (first, last) = (CpuSet::from_iter(scene.own.first()), CpuSet::from_iter(scene.own.last()));
    let change = ThreadChange {
        tid: pid.number(),
        started_ticks: Identity::read(&scene.tree, pid).unwrap().started_ticks,
        before: scene.own.to_string(),
        after: first.to_string(),
    };
    for id in [1, 2] {
        scene.kept.write(Some(id), began(pid)).unwrap();
        scene.kept.write(Some(id), Entry::Affinity { threads: vec![change.clone()] }).unwrap();
    }
    affinity::set_cpus(Task::new(pid.number()).unwrap(), &last).unwrap();
    let open = scene.kept.open_actions();
    let back = scene.take_back(&open[1], Parts::All);
    assert_eq!((back.threads, back.changed), (0, 1));
    assert_eq!(cpus_of(pid), last);
    drop(std::mem::replace(&mut scene.shell, Shell::start()));
    let back = scene.take_back(&open[0], Parts::All);
    assert!(back.has_ended && scene.kept.open_actions().is_empty());
}

#[test]
fn an_action_whose_bytes_have_all_moved_is_done_unless_the_budget_cut_it() {
    let size = Bytes::from_mib(64);
    let (from, to) = (NodeId::new(2), NodeId::new(0));
    let pages = vec![PageMove { from, to, size }];
    let identity = Identity { pid: Pid::new(7), started_ticks: 5 };
    let whole = Action {
        process: Named { identity, name: "solver".to_owned() },
        need: Need::Stranded(1.0),
        means: Means { pages, ..Means::default() },
        most: size,
        remote: None,
    };
    let cut = Action { most: Bytes::from_mib(32), ..whole.clone() };
    let said = |has_moved_all, action| words(&Ending::Interrupted, has_moved_all, action);
    assert_eq!((said(true, &whole).as_str(), said(false, &whole).as_str()), (DONE, "interrupted"));
    assert_eq!(said(true, &cut), "the bytes that the hour or the day leaves have moved");
}

#[test]
fn threads_that_another_hand_has_placed_are_not_narrowed() {
    let Some(mut scene) = Scene::begin() else { return };
    let pid = scene.shell.pid();
    let (first, last) = (CpuSet::from_iter(scene.own.first()), CpuSet::from_iter(scene.own.last()));
    affinity::set_cpus(Task::new(pid.number()).unwrap(), &last).unwrap();
    let (tree, limits, everyone) = (Tree::live(), Limits::default(), scene.everyone.clone());
    let identity = Identity::read(&tree, pid).unwrap();
    let guard = |reason| {
        let own = scene.own.clone();
        Guard::new(&tree, &limits, reason, &everyone, own, identity, NodeSet::new()).giving(Some(&first))
    };
    let of_other = Guard::confirm(&mut guard(Reason::Named)).unwrap_err();
    assert_eq!(of_other, "some of its threads have CPUs of their own, which are left alone");
    let mut guard = guard(Reason::Found);
    let why = guard.confirm().unwrap_err();
    let narrowed = scene.narrow(&first, |cpus| guard.is_free(cpus));
    assert_eq!(
        (narrowed.unwrap_err().as_str(), why.as_str()),
        (
            "changed meanwhile: another program set the CPUs of its threads",
            "changed meanwhile: another program set the CPUs of its threads",
        )
    );
    assert_eq!(cpus_of(pid), last);
}
