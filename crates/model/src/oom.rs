//! The process that the kernel kills when it finds no page and can make no room: the choice of the OOM killer.
//!
//! # Source
//! `out_of_memory`, `constrained_alloc`, `select_bad_process`, `oom_cpuset_eligible` and `oom_badness` in `mm/oom_kill.c`,
//! `mempolicy_in_oom_domain` in `mm/mempolicy.c`; 6.1 to 6.18. The kernel walks all processes in the order in which they
//! started, and of several that are equally bad the last is killed. Left out: processes that are about to end (they are
//! killed first), swapoff and KSM (which ask to be killed first), drivers that give memory back, and groups that are killed
//! together (`memory.oom.group`).
//!
//! Which process is killed is certain only as far as sizes are known: they are intervals here, and all processes that can
//! be the worst are named.
//!
//! # Units
//! Pages of the machine's own size.

use nodewise_machine::NodeSet;

use crate::caches::Interval;
use crate::zones::Zone;

/// The value of `oom_score_adj` that keeps a process from being killed: `OOM_SCORE_ADJ_MIN` of `include/uapi/linux/oom.h`.
pub const EXEMPT: i32 = -1000;

/// The memory policies of the threads of a process, as far as they keep it from being killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// They cannot be read.
    Unknown,
    /// Some thread has a policy other than bind: it may use every node. Policies of mappings do not count.
    Nowhere,
    /// Every thread is bound, all together to these nodes.
    To(NodeSet),
}

/// A process that may be killed: not init, and no thread of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OomCandidate {
    /// Its resident pages, those that are swapped out, and its page tables. Pages of pools of huge pages do not count, and
    /// pages that it shares count for each process.
    pub size: Interval,
    /// Its `oom_score_adj`.
    pub adjustment: i32,
    pub bound: Bound,
    /// The nodes that its cpuset allows; `None` where they are not known.
    pub allowed: Option<NodeSet>,
}

/// The reason why there is no memory although nodes may have some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OomLimit {
    /// All nodes of the machine are empty, or all that the cpuset of the process allows: these.
    Allowed(NodeSet),
    /// The nodes of a memory policy are empty.
    Policy(NodeSet),
    /// A control group has its limit. The candidates are its processes.
    Group,
}

/// The settings that decide, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OomSettings {
    /// `vm.panic_on_oom`: 1 where nothing but the machine limits the request, 2 always.
    pub panics: u32,
    /// `vm.oom_kill_allocating_task`.
    pub kills_asking: bool,
}

/// A request that finds no page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OomRequest {
    pub limit: OomLimit,
    /// Whether the cpuset keeps it from nodes with memory.
    pub is_confined: bool,
    /// Pages of the nodes of the limit and of all swap: a unit of `oom_score_adj` is a thousandth of them.
    pub total: u64,
    /// The process that asks, among the candidates.
    pub asking: Option<usize>,
    pub settings: OomSettings,
}

/// The decision of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OomChoice {
    /// It panics, as `vm.panic_on_oom` says.
    Panics,
    /// It panics, because no process may be killed. In a control group it kills none, and the request waits or fails.
    NoVictim,
    /// It kills one of these: the candidates that can be the worst, the likeliest first.
    Kills(Vec<usize>),
}

impl OomCandidate {
    /// Whether the kernel may kill it for a request; `None` where that is not known.
    pub fn is_eligible(&self, limit: &OomLimit) -> Option<bool> {
        if self.adjustment <= EXEMPT {
            return Some(false);
        }
        match (limit, &self.bound, &self.allowed) {
            (OomLimit::Group, ..) => Some(true),
            // Under a policy the cpuset does not count, and without one the policies do not.
            (OomLimit::Policy(_), Bound::Unknown, _) => None,
            (OomLimit::Policy(_), Bound::Nowhere, _) => Some(true),
            (OomLimit::Policy(nodes), Bound::To(own), _) => Some(!own.is_disjoint(nodes)),
            (OomLimit::Allowed(nodes), _, own) => own.as_ref().map(|own| !own.is_disjoint(nodes)),
        }
    }

    /// How bad it is, in pages: at least and at most.
    pub fn badness(&self, total: u64) -> (i64, i64) {
        let unit = i64::try_from(total / 1000).unwrap_or(i64::MAX);
        let adjustment = i64::from(self.adjustment).saturating_mul(unit);
        let of = |pages| i64::try_from(pages).unwrap_or(i64::MAX).saturating_add(adjustment);
        (of(self.size.least), of(self.size.most))
    }
}

/// The pages that a thousandth is taken of: all that the allocator has, or all of the nodes that limit the request, and
/// all swap. `None` for a control group, whose limit it is.
pub fn total_pages<'z>(
    zones: impl Iterator<Item = &'z Zone>,
    limit: &OomLimit,
    is_confined: bool,
    swap: u64,
) -> Option<u64> {
    let pages = |zone: &Zone| match limit {
        OomLimit::Allowed(_) if !is_confined => zone.managed,
        // Pages that the kernel kept for itself at boot count here.
        OomLimit::Allowed(nodes) | OomLimit::Policy(nodes) if nodes.contains(zone.node) => zone.present,
        _ => 0,
    };
    let is_known = *limit != OomLimit::Group;
    is_known.then(|| zones.map(pages).fold(swap, u64::saturating_add))
}

/// The badness that a score stands for, in pages of all memory and all swap, at least and at most.
///
/// # Source
/// `proc_oom_score` in `fs/proc/base.c`, since 5.9: two thirds of a thousand and the badness in thousandths. Before 5.9 the
/// score was the badness in thousandths alone.
pub fn badness_of_score(score: u32, total: u64) -> (i64, i64) {
    // Both divisions cut: a score is one and a half thousandths wide, and its first and last thousandth are cut, too.
    let thousandths = |score: i64| score * 3 / 2 - 1000;
    let of = |thousandths: i64| {
        let pages = i128::from(thousandths) * i128::from(total) / 1000;
        i64::try_from(pages).unwrap_or(if pages < 0 { i64::MIN } else { i64::MAX })
    };
    let score = i64::from(score);
    (of(thousandths(score) - 1), of(thousandths(score + 1) + 1))
}

/// Whom the kernel kills, of candidates in the order in which they started.
pub fn choose(candidates: &[OomCandidate], request: &OomRequest) -> OomChoice {
    let is_limited = request.is_confined || !matches!(request.limit, OomLimit::Allowed(_));
    if request.settings.panics == 2 || request.settings.panics != 0 && !is_limited {
        return OomChoice::Panics;
    }
    let eligible = |at: usize| candidates[at].is_eligible(&request.limit);
    let asking = request.asking.filter(|at| *at < candidates.len());
    let is_killed_at_once = request.settings.kills_asking && request.limit != OomLimit::Group;
    let asking = asking.filter(|_| is_killed_at_once);
    if let Some(at) = asking.filter(|at| eligible(*at) == Some(true)) {
        return OomChoice::Kills(vec![at]);
    }
    let rank = |at: usize| (candidates[at].badness(request.total), at);
    let certain = (0..candidates.len()).filter(|at| eligible(*at) == Some(true));
    // At least this bad is the one that is killed; later ones win a tie.
    let least = certain.map(|at| (rank(at).0.0, at)).max();
    let can_be = |at: &usize| {
        let ((_, most), at) = rank(*at);
        eligible(at) != Some(false) && least.is_none_or(|least| (most, at) >= least)
    };
    let mut worst: Vec<usize> = (0..candidates.len()).filter(can_be).collect();
    // One who asks and may be eligible may be killed at once.
    worst.extend(asking.filter(|at| eligible(*at).is_none() && !worst.contains(at)));
    worst.sort_by_key(|at| std::cmp::Reverse((rank(*at).0.1, *at)));
    if worst.is_empty() { OomChoice::NoVictim } else { OomChoice::Kills(worst) }
}

/// The candidate that is killed where none of some can be: the runner-up.
pub fn next(candidates: &[OomCandidate], request: &OomRequest, without: &[usize]) -> Option<usize> {
    let rest: Vec<OomCandidate> = (candidates.iter().enumerate())
        .map(|(at, own)| match without.contains(&at) {
            true => OomCandidate { adjustment: EXEMPT, ..own.clone() },
            false => own.clone(),
        })
        .collect();
    let settings = OomSettings::default();
    match choose(&rest, &OomRequest { settings, ..request.clone() }) {
        OomChoice::Kills(worst) => worst.first().copied(),
        OomChoice::Panics | OomChoice::NoVictim => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

    const TOTAL: u64 = 1_000_000;

    fn candidate(pages: u64, adjustment: i32) -> OomCandidate {
        let size = Interval::exactly(pages);
        OomCandidate { size, adjustment, bound: Bound::Nowhere, allowed: Some([0, 1].into()) }
    }

    fn request(limit: OomLimit) -> OomRequest {
        OomRequest { limit, is_confined: false, total: TOTAL, asking: None, settings: OomSettings::default() }
    }

    fn policy<const N: usize>(nodes: [u32; N]) -> OomLimit {
        OomLimit::Policy(nodes.into())
    }

    fn check(candidates: &[OomCandidate], request: &OomRequest, expected: &[usize]) {
        assert_eq!(choose(candidates, request), OomChoice::Kills(expected.to_vec()), "{candidates:?}");
    }

    #[test]
    fn the_largest_is_killed_unless_it_is_protected() {
        let request = request(OomLimit::Allowed([0, 1].into()));
        check(&[candidate(5000, 0), candidate(9000, 0), candidate(100, 0)], &request, &[1]);
        // A unit is a thousandth of all memory: 1,000 pages.
        check(&[candidate(5000, 0), candidate(9000, -5), candidate(100, 0)], &request, &[0]);
        check(&[candidate(5000, 0), candidate(9000, 0), candidate(100, 10)], &request, &[2]);
        // Below zero is not exempt, and of two that are equally bad the later one is killed.
        check(&[candidate(5000, -1000), candidate(9000, -999)], &request, &[1]);
        check(&[candidate(9000, 0), candidate(9000, 0), candidate(8999, 0)], &request, &[1]);
        let exempt = [candidate(5000, -1000)];
        assert_eq!(choose(&exempt, &request), OomChoice::NoVictim);
        assert_eq!(choose(&[], &request), OomChoice::NoVictim);
        assert_eq!(next(&[candidate(5000, 0), candidate(9000, 0)], &request, &[1]), Some(0));
        assert_eq!(next(&exempt, &request, &[]), None);
    }

    #[test]
    fn a_policy_spares_processes_whose_threads_are_all_bound_elsewhere() {
        let bound =
            |pages, nodes: [u32; 1]| OomCandidate { bound: Bound::To(nodes.into()), ..candidate(pages, 0) };
        let programs = [bound(9000, [0]), bound(5000, [1]), candidate(4000, 0)];
        check(&programs, &request(policy([1])), &[1]);
        check(&programs, &request(policy([0])), &[0]);
        // Policies do not count where no policy limits the request, and cpusets do not where one does.
        check(&programs, &request(OomLimit::Allowed([1].into())), &[0]);
        let confined = |nodes: [u32; 1]| OomCandidate { allowed: Some(nodes.into()), ..candidate(9000, 0) };
        check(&[confined([0]), candidate(1, 0)], &request(OomLimit::Allowed([1].into())), &[1]);
        check(&[confined([0]), candidate(1, 0)], &request(policy([1])), &[0]);
        let unknown = OomCandidate { bound: Bound::Unknown, ..candidate(9000, 0) };
        check(&[unknown.clone(), candidate(5000, 0)], &request(policy([1])), &[0, 1]);
        check(&[unknown, candidate(5000, 0)], &request(OomLimit::Group), &[0]);
    }

    #[test]
    fn sizes_that_are_not_known_to_the_page_leave_it_open() {
        let around = |least, most| OomCandidate { size: Interval { least, most }, ..candidate(0, 0) };
        let request = request(OomLimit::Allowed([0].into()));
        check(&[around(5000, 8000), around(7000, 9000), around(6000, 6999)], &request, &[1, 0]);
        check(&[around(5000, 6999), around(7000, 9000)], &request, &[1]);
    }

    #[test]
    fn a_unit_is_a_thousandth_of_what_limits_the_request() {
        let zone = |node: u32, present, managed| Zone {
            node: nodewise_machine::NodeId::new(node),
            kind: crate::zones::ZoneKind::Normal,
            start_page: 0,
            spanned: present,
            present,
            managed,
        };
        let zones = [zone(0, 5000, 4000), zone(1, 3000, 2000)];
        let total = |limit, is_confined| total_pages(zones.iter(), &limit, is_confined, 7);
        assert_eq!(total(OomLimit::Allowed([0, 1].into()), false), Some(6007));
        assert_eq!(total(OomLimit::Allowed([1].into()), true), Some(3007));
        assert_eq!(total(policy([0]), false), Some(5007));
        assert_eq!(total(OomLimit::Group, false), None);
    }

    #[test]
    fn settings_come_first() {
        let programs = [candidate(9000, 0), candidate(1, 0), candidate(1, -1000)];
        let with = |settings, limit, asking| OomRequest { settings, asking, ..request(limit) };
        let asking = OomSettings { kills_asking: true, ..OomSettings::default() };
        let everywhere = || OomLimit::Allowed([0, 1].into());
        check(&programs, &with(asking, everywhere(), Some(1)), &[1]);
        check(&programs, &with(asking, everywhere(), Some(2)), &[0]);
        check(&programs, &with(asking, OomLimit::Group, Some(1)), &[0]);
        let panics = |panics| OomSettings { panics, ..OomSettings::default() };
        assert_eq!(choose(&programs, &with(panics(1), everywhere(), None)), OomChoice::Panics);
        assert_eq!(choose(&programs, &with(panics(2), policy([1]), None)), OomChoice::Panics);
        check(&programs, &with(panics(1), policy([1]), None), &[0]);
        let confined = OomRequest { is_confined: true, ..with(panics(1), everywhere(), None) };
        check(&programs, &confined, &[0]);
    }

    /// The loop of `oom_evaluate_task`, for sizes that are known and candidates that are or are not eligible.
    fn as_the_kernel(candidates: &[(u64, i32, bool)], total: u64) -> Option<usize> {
        let mut chosen = None;
        let mut chosen_points = i64::MIN;
        for (at, (pages, adjustment, eligible)) in candidates.iter().enumerate() {
            if !eligible || *adjustment == -1000 {
                continue;
            }
            let points = *pages as i64 + i64::from(*adjustment) * (total / 1000) as i64;
            if points < chosen_points {
                continue;
            }
            (chosen, chosen_points) = (Some(at), points);
        }
        chosen
    }

    proptest! {
        #[test]
        fn a_score_has_the_badness_in_its_interval(
            pages in 0u64..1 << 40, adjustment in -999i64..=1000, total in 1000u64..1 << 40,
        ) {
            let total = total.max(pages);
            let badness = pages as i64 + adjustment * (total / 1000) as i64;
            // As the kernel writes it; its badness is above minus the whole memory.
            let score = (1000 + badness * 1000 / total as i64) * 2 / 3;
            let (least, most) = badness_of_score(u32::try_from(score).unwrap(), total);
            prop_assert!((least..=most).contains(&badness), "{least} {badness} {most}");
            prop_assert!((most - least) as u64 <= total / 250 + 1);
        }
    }

    fn any_candidate() -> impl Strategy<Value = (OomCandidate, u64)> {
        let adjustment = prop_oneof![Just(0), Just(-1000), -20..20, -1000..=1000];
        let bound = prop_oneof![
            Just(Bound::Nowhere),
            Just(Bound::Unknown),
            Just(Bound::To([0].into())),
            Just(Bound::To([1].into()))
        ];
        (0u64..40, 0u64..8, 0u64..8, adjustment, bound).prop_map(
            |(least, width, inside, adjustment, bound)| {
                let size = Interval { least, most: least + width };
                let allowed = Some([0, 1].into());
                (OomCandidate { size, adjustment, bound, allowed }, least + inside.min(width))
            },
        )
    }

    proptest! {
        #[test]
        fn the_kernels_choice_is_among_those_named(
            drawn in prop::collection::vec((any_candidate(), any::<bool>()), 0..8),
            total in prop_oneof![Just(0u64), 0u64..9_000],
        ) {
            let request = OomRequest { total, ..request(policy([1])) };
            let candidates: Vec<OomCandidate> = drawn.iter().map(|((own, _), _)| own.clone()).collect();
            // One way in which everything that is open may come out.
            let real: Vec<(u64, i32, bool)> = (drawn.iter())
                .map(|((own, pages), coin)| (*pages, own.adjustment, own.is_eligible(&request.limit).unwrap_or(*coin)))
                .collect();
            let named = match choose(&candidates, &request) {
                OomChoice::Kills(named) => named,
                other => {
                    prop_assert_eq!(other, OomChoice::NoVictim);
                    Vec::new()
                }
            };
            if let Some(killed) = as_the_kernel(&real, total) {
                prop_assert!(named.contains(&killed), "{killed} of {named:?}");
            }
            // Each that is named can be killed: where it is as large as can be, and the others as small.
            for worst in &named {
                let real: Vec<(u64, i32, bool)> = (candidates.iter().enumerate())
                    .map(|(at, own)| {
                        let is_it = at == *worst;
                        let pages = if is_it { own.size.most } else { own.size.least };
                        (pages, own.adjustment, own.is_eligible(&request.limit).unwrap_or(is_it))
                    })
                    .collect();
                prop_assert_eq!(as_the_kernel(&real, total), Some(*worst), "{:?}", candidates);
            }
        }
    }
}
