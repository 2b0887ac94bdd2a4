//! Who is killed where a request finds no room: the processes of the machine, and the program that asks.

use nodewise_machine::printable::printable;
use nodewise_machine::{Bytes, Machine, NodeSet, Pid};
use nodewise_model::oom::{
    self, Bound, OomCandidate, OomChoice, OomLimit, OomRequest, OomSettings, choose, total_pages,
};
use nodewise_model::walk::{Constraint, OutOfMemory};
use nodewise_model::{Interval, Verdict};
use nodewise_source::process::oom::{self as processes, Killable};
use nodewise_source::spare::LimitedGroup;
use nodewise_source::tree::Tree;
use nodewise_view::digest::walk::Walk;
use nodewise_view::digest::walk::answers::Answers;
use nodewise_view::digest::walk::groups::WalkGroup;
use nodewise_view::digest::walk::victim::{Victim, VictimAnswer};

use crate::input;
use crate::input::Input;
use crate::zones::Zones;

/// A program that takes memory has its own text, libraries and stack, too: up to so much.
const OTHER_MEMORY: Bytes = Bytes::from_mib(4);
/// Most processes whose threads' policies are read.
const MOST_READ: usize = 64;

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
    let found = tree.and_then(processes::killables).unwrap_or_default();
    let settings = tree.map(processes::settings).unwrap_or_default();
    let swap = settings.swap.or(input.machine.swap_free).unwrap_or_default();
    let page = walk.before.page_bytes();
    let swap = swap.get() / page;
    let total = total_pages(zones.rows.iter().map(|row| &row.zone), &scene.limit, scene.is_confined, swap);
    let total = total.or_else(|| scene.group_total(swap))?;

    let blur = blur(&input.machine);
    let own = std::process::id();
    let others = found.processes.into_iter().filter(|other| !is_live || other.pid.number() != own);
    let (mut candidates, mut unread) = (Vec::new(), found.unread);
    for other in others {
        match tree.map_or(Some(true), |tree| scene.holds(tree, other.pid)) {
            Some(true) => candidates.push(Candidate::new(&other, &scene.limit, page, blur)),
            Some(false) => {}
            None => unread += 1,
        }
    }
    let is_named = !candidates.is_empty() || scene.is_alone();
    let more = scene.taken;
    let asking = walk.process.and_then(|memory| candidates.iter().position(|other| other.is(memory.pid)));
    let asking = match asking {
        Some(at) => {
            let size = &mut candidates[at].sizes.size;
            *size = size.and(more);
            at
        }
        None => {
            let adjustment =
                tree.filter(|_| is_live).and_then(|tree| processes::adjustment(tree, Pid::new(own)));
            candidates.push(Candidate::program(more, adjustment.unwrap_or(0), walk.allowed, page));
            candidates.len() - 1
        }
    };
    if !is_named {
        return Some(VictimAnswer::NoProcesses(candidates[asking].victim(total, true)));
    }
    let settings = OomSettings {
        panics: settings.panics.unwrap_or(0),
        kills_asking: settings.kills_asking.is_some_and(|set| set != 0),
    };
    let Scene { limit, is_confined, .. } = scene;
    let request = OomRequest { limit, is_confined, total, asking: Some(asking), settings };
    Some(answer(candidates, &request, tree, unread))
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

    /// Whether a process is among those that may be killed; `None` where its group cannot be seen.
    fn holds(&self, tree: &Tree, pid: Pid) -> Option<bool> {
        match (self.group, self.read) {
            (None, _) => Some(true),
            (Some(_), None) => Some(false),
            (Some(_), Some(read)) => read.holds(tree, pid),
        }
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

/// Chooses, and reads the policies of those that may be chosen until no more of them matters.
fn answer(
    mut candidates: Vec<Candidate>,
    request: &OomRequest,
    tree: Option<&Tree>,
    unread: usize,
) -> VictimAnswer {
    let mut left = MOST_READ;
    let asking = request.asking;
    let worst = loop {
        match choose(&sizes(&candidates), request) {
            OomChoice::Panics => return VictimAnswer::Panics { setting: true },
            OomChoice::NoVictim => return VictimAnswer::Panics { setting: false },
            OomChoice::Kills(worst) => {
                if !read_one(&mut candidates, &worst, tree, &mut left) {
                    break worst;
                }
            }
        }
    };
    let next = loop {
        let next = oom::next(&sizes(&candidates), request, &worst);
        if next.is_none_or(|at| !read_one(&mut candidates, &[at], tree, &mut left)) {
            break next;
        }
    };
    let victim = |at: usize| candidates[at].victim(request.total, asking == Some(at));
    let next = next.filter(|_| worst.len() == 1).map(victim);
    VictimAnswer::Kills { worst: worst.iter().map(|at| victim(*at)).collect(), next, unread }
}

fn sizes(candidates: &[Candidate]) -> Vec<OomCandidate> {
    candidates.iter().map(|own| own.sizes.clone()).collect()
}

/// Reads the policies of the first of these whose policies were not read yet; whether there was one.
fn read_one(candidates: &mut [Candidate], of: &[usize], tree: Option<&Tree>, left: &mut usize) -> bool {
    let unread = of.iter().find(|at| !candidates[**at].is_read);
    let (Some(at), Some(tree)) = (unread.filter(|_| *left > 0), tree) else { return false };
    let own = &mut candidates[*at];
    *left -= 1;
    own.is_read = true;
    own.sizes.bound = match own.pid.and_then(|pid| processes::bound(tree, Pid::new(pid))) {
        None => Bound::Unknown,
        Some(None) => Bound::Nowhere,
        Some(Some(nodes)) => Bound::To(nodes),
    };
    true
}

/// A process, or the program of the request.
struct Candidate {
    pid: Option<u32>,
    name: Option<String>,
    sizes: OomCandidate,
    /// Whether its policies are known, or do not matter.
    is_read: bool,
}

impl Candidate {
    fn new(own: &Killable, limit: &OomLimit, page: u64, blur: u64) -> Self {
        let pages = |size: Bytes| size.get() / page;
        let exact = pages(own.resident).saturating_add(pages(own.swapped));
        let tables = Interval::exactly(pages(own.page_tables));
        let size =
            Interval { least: exact.saturating_sub(blur), most: exact.saturating_add(blur) }.and(tables);
        let is_read = !matches!(limit, OomLimit::Policy(_));
        Self {
            pid: Some(own.pid.number()),
            name: own.name.as_deref().map(|name| printable(name).into_owned()),
            sizes: OomCandidate {
                size,
                adjustment: own.adjustment,
                bound: Bound::Unknown,
                allowed: own.allowed.clone(),
            },
            is_read,
        }
    }

    /// A program that starts and takes this much.
    fn program(taken: Interval, adjustment: i32, allowed: &NodeSet, page: u64) -> Self {
        let size = taken.and(Interval { least: 0, most: OTHER_MEMORY.get() / page });
        let sizes = OomCandidate { size, adjustment, bound: Bound::Nowhere, allowed: Some(allowed.clone()) };
        Self { pid: None, name: None, sizes, is_read: true }
    }

    fn is(&self, pid: u32) -> bool {
        self.pid == Some(pid)
    }

    fn victim(&self, total: u64, is_asking: bool) -> Victim {
        let (least, most) = self.sizes.badness(total);
        let share = |badness: i64| {
            let thousandths = i128::from(badness) * 1000 / i128::from(total.max(1));
            i64::try_from(thousandths).unwrap_or(i64::MAX)
        };
        Victim {
            pid: self.pid,
            name: self.name.clone(),
            is_asking,
            size: self.sizes.size,
            adjustment: self.sizes.adjustment,
            share: (share(least), share(most)),
        }
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
