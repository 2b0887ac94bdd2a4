//! The processes that may be killed, and the program that asks.
//!
//! Of each process no more is read than decides: first the kernel's own score, which is exact to a thousandth or two of the
//! memory, then the sizes of those that can be the worst by their scores, then, under a memory policy, the policies of
//! those that can be the worst by their sizes.

use nodewise_machine::order::Order as _;
use nodewise_machine::printable::printable;
use nodewise_machine::{Bytes, NodeSet, Pid};
use nodewise_model::Interval;
use nodewise_model::oom::{
    self, Bound, EXEMPT, OomCandidate, OomChoice, OomLimit, OomRequest, badness_of_score,
};
use nodewise_source::process::oom::{self as processes, Glance, Killable};
use nodewise_source::tree::Tree;
use nodewise_view::digest::walk::victim::{Next, Victim};

/// A program that takes memory has its own text, libraries and stack, too: up to so much.
const OTHER_MEMORY: Bytes = Bytes::from_mib(4);
/// Most processes that are read to name the one that comes next, and most whose threads' policies are read.
const MOST_READ: usize = 64;

/// How sizes are counted.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    /// Bytes of a page.
    pub page: u64,
    /// Pages by which a process may be larger or smaller for the kernel than it was read.
    pub blur: u64,
    /// Pages of the whole machine and of all swap: scores are thousandths of them.
    pub whole: u64,
    /// Whether thousandths of the request are of the same memory.
    pub is_whole: bool,
}

/// A process, or the program of the request.
struct Candidate {
    /// `None` for a program that does not run yet.
    pid: Option<Pid>,
    name: Option<String>,
    sizes: OomCandidate,
    /// Whether its size is that of its score, and no more is known.
    is_glance: bool,
    /// Whether its policies are known, or cannot be.
    has_policies: bool,
}

impl Candidate {
    /// A process with a size by its score; `None` where it has no score, or no adjustment and one counts.
    fn seen(glance: Glance, scale: Scale) -> Option<Self> {
        // Where a thousandth is one of the same memory, the size may as well contain the adjustment. What is below 0 then is
        // 0 for all, and they are compared when they are read.
        let adjustment = if scale.is_whole { Some(0) } else { glance.adjustment };
        let (score, adjustment) = glance.score.zip(adjustment)?;
        let unit = i64::try_from(scale.whole / 1000).unwrap_or(i64::MAX);
        let added = i64::from(adjustment).saturating_mul(unit);
        let size = |badness: i64| u64::try_from(badness.saturating_sub(added)).unwrap_or(0);
        let (least, most) = badness_of_score(score, scale.whole);
        let sizes = OomCandidate {
            size: Interval {
                least: size(least).saturating_sub(scale.blur),
                most: size(most).saturating_add(scale.blur),
            },
            adjustment,
            bound: Bound::Unknown,
            allowed: None,
        };
        Some(Self { pid: Some(glance.pid), name: None, sizes, is_glance: true, has_policies: false })
    }

    /// A process that was read.
    fn read(own: Killable, scale: Scale) -> Self {
        let pages = |size: Bytes| size.get() / scale.page;
        let exact = pages(own.resident).saturating_add(pages(own.swapped));
        let (least, most) = (exact.saturating_sub(scale.blur), exact.saturating_add(scale.blur));
        let size = Interval { least, most }.and(Interval::exactly(pages(own.page_tables)));
        Self {
            pid: Some(own.pid),
            name: own.name.as_deref().map(|name| printable(name).into_owned()),
            sizes: OomCandidate {
                size,
                adjustment: own.adjustment,
                bound: Bound::Unknown,
                allowed: own.allowed,
            },
            is_glance: false,
            has_policies: false,
        }
    }

    /// A program that starts and takes this much.
    fn program(taken: Interval, adjustment: i32, allowed: &NodeSet, page: u64) -> Self {
        let size = taken.and(Interval { least: 0, most: OTHER_MEMORY.get() / page });
        let sizes = OomCandidate { size, adjustment, bound: Bound::Nowhere, allowed: Some(allowed.clone()) };
        Self { pid: None, name: None, sizes, is_glance: false, has_policies: true }
    }

    /// One that has ended, or cannot be read.
    const fn spare(&mut self) {
        self.is_glance = false;
        self.sizes.adjustment = EXEMPT;
    }

    /// Whether a score and what was read of the same process may both be right.
    fn agrees(&self, read: &Self, whole: u64) -> bool {
        let badness = |own: &Self| own.sizes.badness(whole);
        let ((least, most), (read_least, read_most)) = (badness(self), badness(read));
        least.max(0) <= read_most.max(0) && read_least.max(0) <= most.max(0)
    }
}

/// The processes of a tree in the order in which they started, and behind them a program that does not run yet.
pub(super) struct Candidates<'t> {
    all: Vec<Candidate>,
    /// Processes that cannot be read.
    pub unread: usize,
    tree: Option<&'t Tree>,
    scale: Scale,
    /// How many more processes may have their policies read.
    left: usize,
}

impl<'t> Candidates<'t> {
    /// None yet.
    pub const fn new(tree: Option<&'t Tree>, scale: Scale) -> Self {
        Self { all: Vec::new(), unread: 0, tree, scale, left: MOST_READ }
    }

    /// Reads processes.
    pub fn read(&mut self, pids: &[Pid]) {
        for (_, own) in self.tree.map(|tree| processes::read(tree, pids)).unwrap_or_default() {
            match own {
                Some(own) => self.all.push(Candidate::read(own, self.scale)),
                None => self.unread += 1,
            }
        }
    }

    /// Reads the scores of processes where scores are as this kernel would write them of a process that is known: this one.
    /// Others are read.
    pub fn glance(&mut self, pids: &[Pid], own: Pid) {
        let Some(tree) = self.tree else { return };
        let seen = |glance: &Glance| Candidate::seen(*glance, self.scale);
        let scored = processes::glances(tree, &[own], true).first().and_then(seen);
        let known = processes::read(tree, &[own]).pop().and_then(|(_, own)| own);
        let known = known.map(|own| Candidate::read(own, self.scale));
        if !scored.zip(known).is_some_and(|(scored, known)| scored.agrees(&known, self.scale.whole)) {
            return self.read(pids);
        }
        let glances = processes::glances(tree, pids, !self.scale.is_whole);
        let unseen: Vec<Pid> =
            glances.iter().filter(|glance| seen(glance).is_none()).map(|glance| glance.pid).collect();
        self.all = glances.iter().filter_map(seen).collect();
        self.read(&unseen);
        self.all.order_by_key(|own| own.pid);
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds memory that a process takes before it is a matter of killing; its place.
    pub fn add(&mut self, pid: Pid, more: Interval) -> Option<usize> {
        let at = self.all.iter().position(|own| own.pid == Some(pid))?;
        self.complete(&[at]);
        let size = &mut self.all[at].sizes.size;
        *size = size.and(more);
        Some(at)
    }

    /// Adds a program that starts and takes this much; its place.
    pub fn start(&mut self, taken: Interval, adjustment: i32, allowed: &NodeSet) -> usize {
        self.all.push(Candidate::program(taken, adjustment, allowed, self.scale.page));
        self.all.len() - 1
    }

    /// Whom the kernel kills.
    pub fn choose(&mut self, request: &OomRequest) -> OomChoice {
        loop {
            while let Some(unread) = self.unread_above(request, &[]) {
                self.complete(&unread.places);
            }
            match oom::choose(&self.sizes(), request) {
                OomChoice::Kills(worst) if self.read_more(&worst, request) => {}
                choice => return choice,
            }
        }
    }

    /// Whom it would kill if it were not for some.
    pub fn next(&mut self, request: &OomRequest, without: &[usize]) -> Option<Next> {
        loop {
            while let Some(unread) = self.unread_above(request, without) {
                if unread.places.len() > MOST_READ {
                    let most_share = share(unread.most, request.total).saturating_add(1);
                    return Some(Next::OneOf { processes: unread.among, most_share });
                }
                self.complete(&unread.places);
            }
            let at = oom::next(&self.sizes(), request, without)?;
            if !self.read_more(&[at], request) {
                return Some(Next::Process(self.victim(at, request)));
            }
        }
    }

    pub fn victim(&self, at: usize, request: &OomRequest) -> Victim {
        let own = &self.all[at];
        let (least, most) = own.sizes.badness(request.total);
        Victim {
            pid: own.pid.map(Pid::number),
            name: own.name.clone(),
            is_asking: request.asking == Some(at),
            size: own.sizes.size,
            adjustment: own.sizes.adjustment,
            share: (share(least, request.total), share(most, request.total)),
        }
    }

    fn sizes(&self) -> Vec<OomCandidate> {
        self.all.iter().map(|own| own.sizes.clone()).collect()
    }

    /// The processes that can be the worst by their scores and were not read; `None` where there are none.
    fn unread_above(&self, request: &OomRequest, without: &[usize]) -> Option<Unread> {
        let may_be_killed = |at: &usize| {
            let own = &self.all[*at];
            !without.contains(at) && own.sizes.is_eligible(&request.limit) != Some(false)
        };
        let badness = |at: usize| self.all[at].sizes.badness(request.total);
        let open = || (0..self.all.len()).filter(may_be_killed);
        let bar = open().map(|at| badness(at).0).max()?;
        let among = || open().filter(|at| badness(*at).1 >= bar);
        let places: Vec<usize> = among().filter(|at| self.all[*at].is_glance).collect();
        let most = among().map(|at| badness(at).1).max()?;
        (!places.is_empty()).then(|| Unread { places, among: among().count(), most })
    }

    /// Reads those of these whose scores are known; whether there was one.
    fn complete(&mut self, places: &[usize]) -> bool {
        let places: Vec<usize> = places.iter().copied().filter(|at| self.all[*at].is_glance).collect();
        let Some(tree) = self.tree.filter(|_| !places.is_empty()) else { return false };
        let pids: Vec<Pid> = places.iter().filter_map(|at| self.all[*at].pid).collect();
        let mut found = processes::read(tree, &pids).into_iter().peekable();
        let mut agree = true;
        for at in places {
            let place = &mut self.all[at];
            match found.next_if(|(pid, _)| Some(*pid) == place.pid) {
                Some((_, Some(own))) => {
                    let own = Candidate::read(own, self.scale);
                    agree &= place.agrees(&own, self.scale.whole);
                    *place = own;
                }
                Some((_, None)) => {
                    place.spare();
                    self.unread += 1;
                }
                None => place.spare(),
            }
        }
        // The scores are of another machine than this container shows, or a process grew meanwhile.
        if !agree {
            self.complete(&(0..self.all.len()).collect::<Vec<_>>());
        }
        true
    }

    /// Reads more of some that can be the worst; whether there was anything to read.
    fn read_more(&mut self, of: &[usize], request: &OomRequest) -> bool {
        self.complete(of) || self.read_policies(of, request)
    }

    /// Reads the policies of the first of these whose policies matter and were not read; whether there was one.
    fn read_policies(&mut self, of: &[usize], request: &OomRequest) -> bool {
        let is_limit = matches!(request.limit, OomLimit::Policy(_));
        let unread = of.iter().find(|at| is_limit && !self.all[**at].has_policies);
        let (Some(at), Some(tree)) = (unread.filter(|_| self.left > 0), self.tree) else { return false };
        let own = &mut self.all[*at];
        self.left -= 1;
        own.has_policies = true;
        own.sizes.bound = match own.pid.and_then(|pid| processes::bound(tree, pid)) {
            None => Bound::Unknown,
            Some(None) => Bound::Nowhere,
            Some(Some(nodes)) => Bound::To(nodes),
        };
        true
    }
}

/// Processes whose scores do not say which of them is the worst.
struct Unread {
    places: Vec<usize>,
    /// How many can be the worst, with those that were read.
    among: usize,
    /// The highest badness that one of them can have, in pages.
    most: i64,
}

/// A badness in thousandths, without what is left over.
fn share(badness: i64, total: u64) -> i64 {
    let thousandths = i128::from(badness) * 1000 / i128::from(total.max(1));
    i64::try_from(thousandths).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_model::oom::OomSettings;
    use nodewise_source::tree::Memory;
    use proptest::prelude::{Just, Strategy, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

    /// 4 GiB in pages.
    const WHOLE: u64 = 1 << 20;
    /// The process that looks.
    const OWN: u32 = 9;

    /// A process: pages in memory, in swap and of page tables, `oom_score_adj`, and the node that its thread is bound to.
    type Drawn = (u64, u64, u64, i64, Option<u32>);

    /// `proc_oom_score` of Linux 5.9 and later, for a process that has memory.
    fn score((resident, swapped, tables, adjustment, _): Drawn) -> i64 {
        let badness = (resident + swapped + tables) as i64 + adjustment * (WHOLE / 1000) as i64;
        if adjustment == -1000 { 0 } else { (1000 + badness * 1000 / WHOLE as i64) * 2 / 3 }
    }

    /// The files of processes, which `scored` writes the score of.
    fn files(drawn: &[Drawn], scored: impl Fn(Drawn) -> i64) -> Tree {
        let own = (900, 0, 9, 0, None);
        let all = drawn.iter().enumerate().map(|(at, own)| (20 + at as u32, *own)).chain([(OWN, own)]);
        let mut files = Memory::new();
        for (pid, process) in all {
            let (resident, swapped, tables, adjustment, node) = process;
            let status = format!(
                "Name:\tp{pid}\nVmRSS:\t{} kB\nVmSwap:\t{} kB\nVmPTE:\t{} kB\nMems_allowed_list:\t0-1\n",
                4 * resident,
                4 * swapped,
                4 * tables
            );
            let policy = node.map_or("default".to_owned(), |node| format!("bind:{node}"));
            let stat = format!("{pid} (x) S {}100 0 0 {}3 0 0 0\n", "1 ".repeat(18), "0 ".repeat(14));
            let folder = format!("/proc/{pid}");
            files = files
                .file(&format!("{folder}/status"), status)
                .file(&format!("{folder}/oom_score_adj"), format!("{adjustment}\n"))
                .file(&format!("{folder}/oom_score"), format!("{}\n", scored(process)))
                .file(&format!("{folder}/task/{pid}/stat"), stat)
                .file(&format!("{folder}/task/{pid}/maps"), "5000-9000 r--p 00000000 fe:00 1 /bin/x\n")
                .file(
                    &format!("{folder}/task/{pid}/numa_maps"),
                    format!("5000 {policy} file=/bin/x mapped=1 N0=1\n"),
                );
        }
        Tree::memory(files)
    }

    /// Who is killed and who is next, where the program itself takes some pages; and how many were read.
    fn answer(
        tree: &Tree,
        drawn: usize,
        look: impl Fn(&mut Candidates<'_>, &[Pid]),
        taken: u64,
        limit: OomLimit,
    ) -> (OomChoice, Option<Next>, usize) {
        let pids: Vec<Pid> = (20..20 + drawn as u32).map(Pid::new).collect();
        let total = if limit == OomLimit::Policy([1].into()) { WHOLE / 2 } else { WHOLE };
        let scale = Scale { page: 4096, blur: 256, whole: WHOLE, is_whole: total == WHOLE };
        let mut candidates = Candidates::new(Some(tree), scale);
        look(&mut candidates, &pids);
        let asking = candidates.start(Interval::exactly(taken), 0, &[0, 1].into());
        let settings = OomSettings::default();
        let request = OomRequest { limit, is_confined: false, total, asking: Some(asking), settings };
        let choice = candidates.choose(&request);
        let next = match &choice {
            OomChoice::Kills(worst) if worst.len() == 1 => candidates.next(&request, worst),
            _ => None,
        };
        let read = candidates.all.iter().filter(|own| own.name.is_some()).count();
        let named = |at: &usize| candidates.all[*at].pid.map_or(0, Pid::number) as usize;
        let choice = match choice {
            OomChoice::Kills(worst) => OomChoice::Kills(worst.iter().map(named).collect()),
            other => other,
        };
        (choice, next, read)
    }

    fn read_all(candidates: &mut Candidates<'_>, pids: &[Pid]) {
        candidates.read(pids);
    }

    fn glance(candidates: &mut Candidates<'_>, pids: &[Pid]) {
        candidates.glance(pids, Pid::new(OWN));
    }

    #[test]
    fn small_processes_are_not_read_one_by_one() {
        let small = [(300, 0, 20, 0, None); 500];
        let anywhere = || OomLimit::Allowed([0, 1].into());
        let all =
            |drawn: &[Drawn], taken| answer(&files(drawn, score), drawn.len(), glance, taken, anywhere());
        let one_of = |processes| Some(Next::OneOf { processes, most_share: 2 });
        assert_eq!(all(&small, 300_000), (OomChoice::Kills(vec![0]), one_of(500), 0));
        // Few are compared, and a large one among many is found.
        let (choice, next, read) = all(&small[..50], 300_000);
        assert!(matches!(next, Some(Next::Process(Victim { pid: Some(_), .. }))), "{next:?}");
        assert_eq!((choice, read), (OomChoice::Kills(vec![0]), 50));
        let mut one = small;
        one[77] = (40_000, 0, 90, 0, None);
        let (choice, next, read) = all(&one, 300_000);
        assert!(matches!(next, Some(Next::Process(Victim { pid: Some(97), .. }))), "{next:?}");
        assert_eq!((choice, read), (OomChoice::Kills(vec![0]), 1));
        // The one that is killed is always named.
        let (choice, _, read) = all(&[(2_000, 0, 20, 0, None); 100], 100);
        assert!(matches!(&choice, OomChoice::Kills(worst) if worst.len() == 100), "{choice:?}");
        assert_eq!(read, 100);
    }

    #[test]
    fn scores_of_another_kernel_are_not_believed() {
        // Before 5.9 a score was the badness in thousandths.
        let old = |process: Drawn| (process.0 * 1000 / WHOLE) as i64;
        let drawn = [(300, 0, 20, 0, None), (90_000, 0, 20, 0, None), (400, 0, 20, 0, None)];
        let limit = || OomLimit::Allowed([0, 1].into());
        let (choice, _, read) = answer(&files(&drawn, old), 3, glance, 5, limit());
        assert_eq!((choice, read), (OomChoice::Kills(vec![21]), 3));
        // Of a machine half as large all scores of large processes are wrong.
        let half = |(resident, ..): Drawn| score((2 * resident, 0, 0, 0, None));
        let (choice, _, read) = answer(&files(&drawn, half), 3, glance, 5, limit());
        assert_eq!((choice, read), (OomChoice::Kills(vec![21]), 3));
    }

    fn any_process() -> impl Strategy<Value = Drawn> {
        let size = || prop_oneof![Just(0), 0u64..2_000, 0u64..60_000, 0u64..500_000];
        let adjustment = prop_oneof![4 => Just(0), 1 => Just(-1000), 2 => -20i64..20, 2 => -999i64..=1000];
        let node = prop_oneof![Just(None), Just(Some(0)), Just(Some(1))];
        (size(), size(), 0u64..300, adjustment, node)
    }

    proptest! {
        #[test]
        fn a_look_at_scores_changes_no_answer(
            mut drawn in prop::collection::vec(any_process(), 0..20),
            same in 0usize..100,
            taken in prop_oneof![0u64..2_000, 0u64..500_000],
            is_policy in prop_oneof![Just(true), Just(false)],
        ) {
            // Many that are alike, as the workers of a server.
            drawn.extend(drawn.first().copied().into_iter().cycle().take(same));
            let limit = || match is_policy {
                true => OomLimit::Policy([1].into()),
                false => OomLimit::Allowed([0, 1].into()),
            };
            let tree = files(&drawn, score);
            let all = answer(&tree, drawn.len(), read_all, taken, limit());
            let few = answer(&tree, drawn.len(), glance, taken, limit());
            prop_assert_eq!(&few.0, &all.0);
            match (few.1, all.1) {
                (Some(Next::OneOf { most_share, processes }), Some(Next::Process(next))) => {
                    prop_assert!(next.share.1 <= most_share && processes > MOST_READ);
                }
                (few, all) => prop_assert_eq!(few, all),
            }
            prop_assert!(few.2 <= all.2);
        }
    }
}
