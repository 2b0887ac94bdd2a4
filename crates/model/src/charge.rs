//! The limits of control groups that a request meets: when the kernel reclaims inside a group, slows its programs down, or
//! kills one of them, whatever is free on the nodes.
//!
//! # Source
//! `try_charge_memcg`, `mem_cgroup_handle_over_high` and `mem_cgroup_get_max` in `mm/memcontrol.c`, 6.1 to 6.18; documented in
//! `Documentation/admin-guide/cgroup-v2.rst` under `memory.high` and `memory.max`. A page is charged to the group of the program
//! that takes it and to all groups above, and so are the tables that map it. Not counted: protection of groups below the one
//! that meets its limit (`memory.min`), and pages that each CPU has charged ahead (64).
//!
//! # Units
//! Pages of the machine's own size.

use crate::caches::{Interval, Verdict};
use crate::simulate::GroupLimit;

/// Memory of a control group with its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChargedGroup {
    pub max: Option<u64>,
    pub high: Option<u64>,
    /// Pages that are charged to it and to groups below it.
    pub used: Interval,
    /// Those of them that can be dropped.
    pub caches: Interval,
    /// Pages that may still be swapped out; `None` without a limit.
    pub swap_left: Option<u64>,
}

/// The sources of room inside a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupRelief {
    pub caches: Interval,
    /// Pages that swap takes for the group; `None` where it is not known whether there is any.
    pub swap: Option<u64>,
}

/// A limit that stops a request, or slows it down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitRoom {
    /// The group, in the order that was given.
    pub group: usize,
    pub limit: GroupLimit,
    /// Pages of the request that need no reclaim inside the group.
    pub free: u64,
    /// Pages of the request that there is room for when everything is reclaimed that can be.
    pub room: Interval,
    pub relief: GroupRelief,
}

impl LimitRoom {
    /// Whether a request of this many pages gets past the limit: `Killed` stands for a request that does not.
    pub const fn verdict(&self, pages: u64) -> Verdict {
        match (pages <= self.room.least, pages > self.room.most) {
            (true, _) => Verdict::Survives,
            (_, true) => Verdict::Killed,
            _ => Verdict::Open,
        }
    }

    /// Pages that are dropped and swapped out for a request of this many.
    pub fn reclaimed(&self, pages: u64) -> (Interval, Option<Interval>) {
        let lacking = pages.saturating_sub(self.free);
        let GroupRelief { caches, swap } = self.relief;
        let disk = swap.unwrap_or(u64::MAX);
        let least = lacking.saturating_sub(disk).min(caches.least);
        let dropped = Interval { least, most: lacking.min(caches.most) };
        let swapped = swap.map(|swap| Interval {
            least: lacking.saturating_sub(caches.most).min(swap),
            most: lacking.min(swap),
        });
        (dropped, swapped)
    }
}

/// The limits of the groups of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupRooms {
    /// The `memory.max` that is met first.
    pub max: Option<LimitRoom>,
    /// The `memory.high` that is met first.
    pub high: Option<LimitRoom>,
}

impl GroupRooms {
    /// The limits that a program in some groups meets, its own group first and then those above it. `swap` is what the machine
    /// takes, `page` the size of a page.
    pub fn new(groups: &[ChargedGroup], swap: Option<u64>, page: u64) -> Self {
        let first = |kind: GroupLimit| {
            let rooms = (0..groups.len()).filter_map(|at| room(groups, at, kind, swap, page));
            let tightest = |one: LimitRoom, next: LimitRoom| {
                let (least, most) = ((one.room.least, one.room.most), (next.room.least, next.room.most));
                // Where either may be met first, no more than the smaller of both is certain.
                let room = Interval { least: least.0.min(most.0), most: least.1.min(most.1) };
                let is_next = (most.1, most.0) < (least.1, least.0);
                let free = one.free.min(next.free);
                LimitRoom { room, free, ..if is_next { next } else { one } }
            };
            rooms.reduce(tightest)
        };
        Self { max: first(GroupLimit::Max), high: first(GroupLimit::High) }
    }

    /// Pages of a request that the nodes give: what is reclaimed inside a group makes room for the others.
    pub fn from_nodes(&self, pages: u64) -> u64 {
        let high = self.high.map_or(pages, |high| {
            let (_, swapped) = high.reclaimed(pages);
            let caches = high.reclaimed(pages).0.most;
            let freed = caches.saturating_add(swapped.map_or(0, |swapped| swapped.most));
            high.free.max(pages.saturating_sub(freed))
        });
        let max = self.max.map_or(pages, |max| max.free);
        pages.min(high).min(max)
    }
}

/// The room below a limit of a group; `None` where it has none.
fn room(
    groups: &[ChargedGroup],
    at: usize,
    limit: GroupLimit,
    swap: Option<u64>,
    page: u64,
) -> Option<LimitRoom> {
    let ChargedGroup { max, high, used, caches, .. } = &groups[at];
    let size = match limit {
        GroupLimit::Max => *max,
        GroupLimit::High => *high,
    }?;
    // Swap counts for the group whose pages it takes and for those above: the program's own pages pass every limit.
    let least = |groups: &[ChargedGroup]| groups.iter().filter_map(|group| group.swap_left).min();
    let limited = |limit: Option<u64>| match (limit, swap) {
        (Some(limit), swap) => Some(swap.map_or(limit, |swap| swap.min(limit))),
        (None, swap) => swap,
    };
    let (own, others) = (limited(least(groups)), limited(least(&groups[at..])));
    // A limit of 0 is certain where the swap of the machine is not known.
    let is_known = swap.is_some() || others == Some(0);
    let (least_swap, most_swap) = match is_known {
        true => (own.unwrap_or(0), others.unwrap_or(0)),
        false => (0, others.unwrap_or(u64::MAX)),
    };
    let free = size.saturating_sub(used.most);
    let least = free.saturating_add(caches.least).saturating_add(least_swap);
    let most = size.saturating_sub(used.least).saturating_add(caches.most).saturating_add(most_swap);
    let mapped = |pages| without_tables(pages, page);
    Some(LimitRoom {
        group: at,
        limit,
        free: mapped(free),
        room: Interval { least: mapped(least), most: mapped(most) },
        relief: GroupRelief { caches: *caches, swap: is_known.then_some(most_swap) },
    })
}

/// Pages of a program, of those that are charged for them and for the tables that map them: a table of 64-bit entries fills a
/// page.
const fn without_tables(charged: u64, page: u64) -> u64 {
    let entries = page / 8;
    if charged == u64::MAX { charged } else { charged - charged.div_ceil(entries + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Just, Strategy, any, prop, prop_assert, prop_oneof, proptest};

    const PAGE: u64 = 4096;

    fn group(max: Option<u64>, used: u64) -> ChargedGroup {
        let exactly = Interval::exactly;
        ChargedGroup { max, high: None, used: exactly(used), caches: exactly(0), swap_left: None }
    }

    fn rooms(groups: &[ChargedGroup], swap: Option<u64>) -> GroupRooms {
        GroupRooms::new(groups, swap, PAGE)
    }

    #[test]
    fn a_limit_leaves_what_is_not_charged_less_the_page_tables() {
        let max = rooms(&[group(Some(5130), 0)], Some(0)).max.unwrap();
        assert_eq!((max.free, max.room), (5120, Interval::exactly(5120)));
        assert_eq!([5120, 5121].map(|pages| max.verdict(pages)), [Verdict::Survives, Verdict::Killed]);
        let full = rooms(&[group(Some(10), 50)], Some(0)).max.unwrap();
        assert_eq!((full.free, full.verdict(0), full.verdict(1)), (0, Verdict::Survives, Verdict::Killed));
        assert_eq!(rooms(&[group(None, 5)], Some(0)), GroupRooms { max: None, high: None });
    }

    #[test]
    fn the_group_above_counts_where_it_has_less_room() {
        let at = |groups: &[ChargedGroup]| rooms(groups, Some(0)).max.unwrap().group;
        assert_eq!(at(&[group(Some(5130), 0), group(Some(6000), 2000)]), 1);
        assert_eq!(at(&[group(Some(5130), 0), group(Some(9000), 2000)]), 0);
        assert_eq!(at(&[group(None, 0), group(Some(9000), 2000), group(Some(9000), 2000)]), 1);
        // Where either can be first, the least of one and the most of the other hold.
        let wide = ChargedGroup { caches: Interval { least: 0, most: 5130 }, ..group(Some(5130), 0) };
        let both = rooms(&[wide, group(Some(7695), 0)], Some(0)).max.unwrap();
        assert_eq!((both.group, both.room), (1, Interval { least: 5120, most: 7680 }));
        assert_eq!(both.verdict(6000), Verdict::Open);
    }

    #[test]
    fn caches_and_swap_make_room_as_far_as_the_groups_may_swap() {
        let cached = |swap_left| ChargedGroup {
            caches: Interval { least: 1000, most: 1500 },
            swap_left,
            ..group(Some(10_000), 8000)
        };
        let max = |groups: &[ChargedGroup], swap| rooms(groups, swap).max.unwrap();
        let none = max(&[cached(Some(0))], None);
        assert_eq!(none.relief.swap, Some(0));
        assert_eq!(
            none.room,
            Interval { least: without_tables(3000, PAGE), most: without_tables(3500, PAGE) }
        );
        let swapping = max(&[cached(None)], Some(700));
        assert_eq!(swapping.room.least, without_tables(3700, PAGE));
        assert_eq!(max(&[cached(Some(300))], Some(700)).room.least, without_tables(3300, PAGE));
        // A group above keeps the limit of the one below for its pages, and other members may swap more.
        let above = max(&[group(None, 0), cached(None)], Some(700));
        assert_eq!(above.room, swapping.room);
        let held = ChargedGroup { swap_left: Some(0), ..group(None, 0) };
        let open = max(&[held, cached(None)], Some(700));
        assert_eq!((open.room.least, open.room.most), (none.room.least, without_tables(4200, PAGE)));
        assert_eq!(max(&[cached(None)], None).room.most, u64::MAX);
        let (dropped, swapped) = swapping.reclaimed(swapping.free + 1200);
        assert_eq!(dropped, Interval { least: 500, most: 1200 });
        assert_eq!(swapped, Some(Interval { least: 0, most: 700 }));
        assert_eq!(swapping.reclaimed(5).0, Interval::exactly(0));
    }

    #[test]
    fn reclaim_at_a_soft_limit_leaves_fewer_pages_to_the_nodes() {
        let soft = ChargedGroup {
            high: Some(5130),
            caches: Interval::exactly(100),
            used: Interval::exactly(0),
            ..group(Some(10_260), 0)
        };
        let rooms = rooms(&[soft], Some(0));
        let of = |pages| rooms.from_nodes(pages);
        assert_eq!([of(5000), of(5120), of(5200), of(6000), of(u64::MAX)], [5000, 5120, 5120, 5900, 10_240]);
        assert_eq!(rooms.high.unwrap().room, Interval::exactly(without_tables(5230, PAGE)));
    }

    fn any_group() -> impl Strategy<Value = ChargedGroup> {
        let pages = || prop_oneof![0u64..9000, any::<u64>()];
        let some = || prop_oneof![Just(None), pages().prop_map(Some)];
        (some(), some(), (pages(), pages()), (pages(), pages()), some()).prop_map(
            |(max, high, used, caches, swap_left)| {
                let sorted =
                    |(one, other): (u64, u64)| Interval { least: one.min(other), most: one.max(other) };
                ChargedGroup { max, high, used: sorted(used), caches: sorted(caches), swap_left }
            },
        )
    }

    proptest! {
        #[test]
        fn more_groups_never_leave_more_room(
            groups in prop::collection::vec(any_group(), 0..5),
            swap in prop_oneof![Just(None), (0u64..9000).prop_map(Some), any::<u64>().prop_map(Some)],
            pages in any::<u64>(),
        ) {
            let all = rooms(&groups, swap);
            for limit in [all.max, all.high].into_iter().flatten() {
                prop_assert!(limit.free <= limit.room.least && limit.room.least <= limit.room.most, "{limit:?}");
                let (dropped, swapped) = limit.reclaimed(pages);
                prop_assert!(dropped.least <= dropped.most);
                prop_assert!(swapped.is_none_or(|swapped| swapped.least <= swapped.most));
            }
            prop_assert!(all.from_nodes(pages) <= pages);
            let Some((_, above)) = groups.split_first() else { return Ok(()) };
            let fewer = rooms(above, swap);
            if let (Some(one), Some(other)) = (all.max, fewer.max) {
                prop_assert!(one.room.least <= other.room.least && one.room.most <= other.room.most);
            }
        }
    }
}
