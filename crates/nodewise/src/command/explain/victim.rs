//! Who is killed where a request finds no room: the processes of the machine, and the program that asks.

mod candidates;

use nodewise_machine::{Machine, NodeSet, Pid};
use nodewise_model::oom::{OomChoice, OomLimit, OomRequest, OomSettings, total_pages};
use nodewise_model::walk::{Constraint, OutOfMemory};
use nodewise_model::{Interval, Verdict};
use nodewise_source::process::oom as processes;
use nodewise_source::spare::LimitedGroup;
use nodewise_source::tree::Tree;
use nodewise_view::digest::walk::Walk;
use nodewise_view::digest::walk::answers::Answers;
use nodewise_view::digest::walk::groups::WalkGroup;
use nodewise_view::digest::walk::victim::VictimAnswer;

use self::candidates::{Candidates, Scale};
use crate::input;
use crate::input::Input;
use crate::zones::Zones;

/// Who is killed; `None` where no process is.
pub(super) fn victim(
    walk: &Walk<'_>,
    groups: &[LimitedGroup],
    zones: &Zones,
    input: &Input,
    machine: &str,
) -> Option<VictimAnswer> {
    let answers = Answers::from_walk(walk);
    let scene = Scene::new(walk, &answers, groups)?;
    let live = Tree::live();
    let is_live = input::is_live(machine);
    let tree = if is_live { Some(&live) } else { input.tree() };
    let settings = tree.map(processes::settings).unwrap_or_default();
    let swap = settings.swap.or(input.machine.swap_free).unwrap_or_default();
    let page = walk.before.page_bytes();
    let swap = swap.get() / page;
    let managed = || zones.rows.iter().map(|row| &row.zone);
    let total = total_pages(managed(), &scene.limit, scene.is_confined, swap);
    let total = total.or_else(|| scene.group_total(swap))?;

    let everywhere = OomLimit::Allowed(NodeSet::new());
    let whole = total_pages(managed(), &everywhere, false, swap)?;
    let scale = Scale { page, blur: blur(&input.machine), whole, is_whole: total == whole };
    let mut candidates = scene.candidates(tree, is_live, scale);
    let is_named = !candidates.is_empty() || scene.is_alone();
    let asking = walk.process.and_then(|memory| candidates.add(Pid::new(memory.pid), scene.taken));
    let asking = asking.unwrap_or_else(|| {
        let own = Pid::new(std::process::id());
        let adjustment = tree.filter(|_| is_live).and_then(|tree| processes::adjustment(tree, own));
        candidates.start(scene.taken, adjustment.unwrap_or(0), walk.allowed)
    });
    let settings = OomSettings {
        panics: settings.panics.unwrap_or(0),
        kills_asking: settings.kills_asking.is_some_and(|set| set != 0),
    };
    let Scene { limit, is_confined, .. } = scene;
    let request = OomRequest { limit, is_confined, total, asking: Some(asking), settings };
    if !is_named {
        return Some(VictimAnswer::NoProcesses(candidates.victim(asking, &request)));
    }
    Some(match candidates.choose(&request) {
        OomChoice::Panics => VictimAnswer::Panics { setting: true },
        OomChoice::NoVictim => VictimAnswer::Panics { setting: false },
        OomChoice::Kills(worst) => {
            let next = if worst.len() == 1 { candidates.next(&request, &worst) } else { None };
            let worst = worst.iter().map(|at| candidates.victim(*at, &request)).collect();
            VictimAnswer::Kills { worst, next, unread: candidates.unread }
        }
    })
}

/// Where there is no memory, and for whom: the nodes, or a control group.
struct Scene<'g> {
    limit: OomLimit,
    is_confined: bool,
    /// Pages that the request has when the kernel gives up, and the page tables for them.
    taken: Interval,
    /// The group whose limit is met.
    group: Option<&'g WalkGroup>,
    /// The same as it was read; `None` for a limit that was typed.
    read: Option<&'g LimitedGroup>,
}

impl<'g> Scene<'g> {
    /// `None` where no process is killed.
    fn new(walk: &Walk<'g>, answers: &Answers, groups: &'g [LimitedGroup]) -> Option<Self> {
        let page = walk.before.page_bytes();
        let max =
            answers.group.filter(|group| group.verdict != Verdict::Survives).and_then(|group| group.max);
        if let Some(max) = max.filter(|_| answers.of_nodes == Verdict::Survives) {
            let room = max.room;
            let most = walk.size_bytes.map_or(room.most, |size| room.most.min(size.div_ceil(page)));
            return Some(Self {
                limit: OomLimit::Group,
                is_confined: false,
                taken: Interval { least: with_tables(room.least, page), most: with_tables(most, page) },
                group: walk.groups.and_then(|own| own.groups.get(max.group)),
                read: groups.get(max.group),
            });
        }
        let end = walk.outcome.out_of_memory.as_ref().filter(|_| answers.of_nodes != Verdict::Survives)?;
        Some(Self {
            limit: limit(end, walk.allowed),
            is_confined: end.constraint == Constraint::Cpuset,
            taken: taken(walk, end, answers.given, page),
            group: None,
            read: None,
        })
    }

    /// The processes that may be killed.
    fn candidates<'t>(&self, tree: Option<&'t Tree>, is_live: bool, scale: Scale) -> Candidates<'t> {
        let mut candidates = Candidates::new(tree, scale);
        let Some(tree) = tree.filter(|_| !self.is_alone()) else { return candidates };
        let own = Pid::new(std::process::id());
        let pids = processes::all(tree).into_iter().filter(|pid| !is_live || *pid != own);
        let pids: Vec<Pid> = pids.collect();
        match self.read {
            // The limit of a group can be less than a step of scores.
            Some(group) => {
                let is_inside =
                    |pid| Some((pid, group.holds(tree, pid))).filter(|(_, is)| *is != Some(false));
                let (inside, unseen): (Vec<_>, Vec<_>) =
                    processes::in_turns(&pids, is_inside).into_iter().partition(|(_, is)| is.is_some());
                candidates.read(&inside.into_iter().map(|(pid, _)| pid).collect::<Vec<_>>());
                // Those that have ended meanwhile and threads of the kernel have no memory.
                let unseen: Vec<Pid> = unseen.into_iter().map(|(pid, _)| pid).collect();
                candidates.unread += processes::read(tree, &unseen).len();
            }
            None if is_live => candidates.glance(&pids, own),
            None => candidates.read(&pids),
        }
        candidates
    }

    /// Whether the program has its group for itself.
    const fn is_alone(&self) -> bool {
        self.group.is_some() && self.read.is_none()
    }

    /// The pages that a thousandth is taken of: the limit of the group and the swap that it may use.
    ///
    /// # Source
    /// `mem_cgroup_get_max` in `mm/memcontrol.c`.
    fn group_total(&self, swap: u64) -> Option<u64> {
        let group = self.group?;
        let swap = group.swap_max.map_or(swap, |max| max.min(swap));
        Some(group.memory.max?.saturating_add(swap))
    }
}

fn limit(end: &OutOfMemory, allowed: &NodeSet) -> OomLimit {
    match end.constraint {
        Constraint::MemoryPolicy => OomLimit::Policy(end.inside.clone()),
        Constraint::None | Constraint::Cpuset => OomLimit::Allowed(allowed.clone()),
    }
}

/// Pages of a program and the page tables for them. A table of 64-bit entries fills a page.
const fn with_tables(pages: u64, page: u64) -> u64 {
    pages.saturating_add(pages.div_ceil(page / 8))
}

/// Pages that the request has when the kernel gives up, and the page tables for them.
fn taken(walk: &Walk<'_>, end: &OutOfMemory, given: u64, page: u64) -> Interval {
    let (least, most) = match (walk.relief, walk.takes_all()) {
        (Some(relief), false) => {
            let all = given.saturating_add(end.pages);
            (all.saturating_sub(relief.unplaced.most), all.saturating_sub(relief.unplaced.least))
        }
        (Some(relief), true) => {
            let swap = Interval::exactly(walk.swap.unwrap_or(0));
            let all = Interval::exactly(given).and(relief.caches).and(swap);
            (all.least, all.most)
        }
        (None, _) => (given, given.saturating_add(end.pages)),
    };
    Interval { least: with_tables(least, page), most: with_tables(most, page) }
}

/// Pages by which the kernel's quick counters of a process may be off: of each of four counters each CPU keeps a batch
/// to itself.
///
/// # Source
/// `percpu_counter_read_positive` in `get_mm_counter`, since 6.2; `compute_batch_value` in `lib/percpu_counter.c`.
fn blur(machine: &Machine) -> u64 {
    let cpus = machine.online_cpus().len() as u64;
    4 * (2 * cpus).max(32) * cpus
}
