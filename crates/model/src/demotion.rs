//! Demotion: pages that go to slower memory when a node is reclaimed, before anything is swapped out or ended.
//!
//! ```text
//! Memory::demote(&mut pages, from, wanted, owner, tiers) -> pages demoted
//! ```
//!
//! The pages of a request that finds no room ([`OutOfMemory`](crate::walk::OutOfMemory)) find some on the
//! nodes `inside` when pages there are demoted first, as far as `/sys/kernel/mm/numa/demotion_enabled` says
//! so. Which pages go, the kernel decides by how long no one has used them: here that is the caller's.
//!
//! # Source
//! `can_demote`, `demote_folio_list` and `alloc_demote_folio` in `mm/vmscan.c`; 5.15 to at least 7.2 with the
//! changes of [`Change`](crate::release::Change). Seen on 6.12, 6.16 and 6.18: demotion leaves the nodes of a
//! bind policy, where there would be an end of the program without it.

use nodewise_machine::{NodeId, NodeSet, PolicyMode};

use crate::memory::{Memory, Placed};
use crate::policy::interleave::{InterleavePosition, Weights};
use crate::policy::set::Policy;
use crate::tier::{Targets, Tiers};
use crate::walk::{Class, Request};
use crate::zones::ZoneKind;

impl Memory {
    /// Moves up to `wanted` of these pages from a node to slower memory; gives how many were moved. `owner`
    /// are the nodes that the cpuset of the pages' owner allows; its policy does not count.
    ///
    /// The kernel draws a node for each batch where several come first: they share the pages evenly here.
    /// Each is filled to its minimum, since nothing is reclaimed for demotion.
    pub fn demote(
        &mut self,
        pages: &mut Placed,
        from: NodeId,
        wanted: u64,
        owner: &NodeSet,
        tiers: &Tiers,
    ) -> u64 {
        let Some(targets) = tiers.targets(from, owner, self.release) else { return 0 };
        let there: Vec<(ZoneKind, u64)> = pages
            .iter()
            .filter(|((node, _), _)| *node == from)
            .map(|((_, kind), pages)| (*kind, *pages))
            .collect();
        // Whatever `vm.zone_reclaim_mode` says: a page to demote to is asked for without leave to wait.
        let reclaim = self.zone_reclaim.take();
        let mut left = wanted;
        for (kind, count) in there {
            let taken = self.take_demoted(from, count.min(left), &targets);
            left -= self.exchange(pages, (from, kind), taken);
        }
        self.zone_reclaim = reclaim;
        pages.retain(|_, count| *count > 0);
        wanted - left
    }

    /// Takes up to `wanted` pages of slower memory.
    fn take_demoted(&mut self, from: NodeId, wanted: u64, targets: &Targets) -> Vec<(NodeId, ZoneKind, u64)> {
        let mut taken = Vec::new();
        let mut left = wanted;
        let count = targets.preferred.len() as u64;
        for (target, place) in targets.preferred.iter().zip(0..) {
            // What does not divide falls to the first; what one has no room for to those behind it.
            left -= self.take_from(
                &[target].into_iter().collect(),
                target,
                from,
                left.div_ceil(count - place),
                &mut taken,
            );
        }
        let first = targets.preferred.first().or(targets.others.first());
        if let Some(first) = first.filter(|_| left > 0) {
            let all = targets.preferred.union(&targets.others);
            self.take_from(&all, first, from, left, &mut taken);
        }
        taken
    }

    /// Takes pages of some nodes, in the order of the first of them.
    fn take_from(
        &mut self,
        nodes: &NodeSet,
        first: NodeId,
        from: NodeId,
        pages: u64,
        taken: &mut Vec<(NodeId, ZoneKind, u64)>,
    ) -> u64 {
        let policy =
            Policy { mode: PolicyMode::Bind, nodes: nodes.clone(), home: Some(first), ..Policy::DEFAULT };
        let request = Request {
            policy: &policy,
            weights: &Weights::new(),
            // The node's own kswapd, or a program that needs the room.
            cpu_node: from,
            allowed: &self.nodes(),
            pages,
            order: 0,
            place: InterleavePosition::Address(0),
            class: Class::User,
        };
        let zones = self.allocate(&request).zones();
        taken.extend(zones.iter().copied());
        zones.iter().map(|(.., pages)| pages).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balancing::{Balancing, User};
    use crate::memory::ZoneState;
    use crate::reclaim::ZoneReclaim;
    use crate::release::Release;
    use crate::zonelist::BuiltAt;
    use nodewise_machine::spec;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use proptest::sample::select;

    /// Two nodes with CPUs, a slow one behind each, and one that is slower still.
    const TIERED: &str = "2x(1c 1G) 2x(1G tier=6) (1G tier=22); \
                          dist=10,21,17,28,30/21,10,28,17,30/17,28,10,28,30/28,17,28,10,30/30,30,30,30,10";

    /// Demotes pages of node 0 of an owner in a cpuset; how many there are by node then.
    fn check(release: Release, owner: &[u32], wanted: u64, expected: &[(u32, u64)]) {
        let machine = spec::machine(TIERED).unwrap();
        let mut memory = Memory::from_machine(&machine, BuiltAt::Boot, release);
        let kind = memory.zones().iter().rfind(|zone| zone.node == NodeId::new(0)).unwrap().kind;
        let mut pages = Placed::from([((NodeId::new(0), kind), 400_000)]);
        let owner = owner.iter().copied().map(NodeId::new).collect();
        let moved = memory.demote(
            &mut pages,
            NodeId::new(0),
            wanted,
            &owner,
            &Tiers::from_machine(&machine, release),
        );
        let mut nodes: Vec<(u32, u64)> = Vec::new();
        for ((node, _), count) in &pages {
            match nodes.last_mut() {
                Some((last, sum)) if *last == node.number() => *sum += count,
                _ => nodes.push((node.number(), *count)),
            }
        }
        assert_eq!(nodes, expected, "{release}");
        assert_eq!(nodes.iter().skip(1).map(|(_, pages)| pages).sum::<u64>(), moved);
    }

    #[test]
    fn pages_go_to_the_next_tier_whatever_the_cpuset_before_6_16() {
        check(Release::REFERENCE, &[0], 1000, &[(0, 399_000), (2, 1000)]);
        check(Release::new(6, 16), &[0], 1000, &[(0, 400_000)]);
        check(Release::new(6, 16), &[0, 2], 1000, &[(0, 399_000), (2, 1000)]);
    }

    #[test]
    fn since_7_0_every_target_is_in_the_cpuset() {
        check(Release::new(7, 0), &[0, 3], 1000, &[(0, 399_000), (3, 1000)]);
        check(Release::new(7, 0), &[0, 1], 1000, &[(0, 400_000)]);
        check(Release::new(6, 18), &[0, 3], 1000, &[(0, 400_000)]);
    }

    #[test]
    fn nothing_is_reclaimed_to_demote() {
        let mut machine = spec::machine(TIERED).unwrap();
        machine.settings.zone_reclaim_mode = Some(7);
        let free = Memory::from_machine(&machine, BuiltAt::Boot, Release::REFERENCE);
        // The slow nodes have no page above their low marks, and as many to reclaim as they have.
        let zones = free.zones().iter().map(|zone| ZoneState { free: 0, ..zone.clone() });
        let spare = machine.node_ids().iter().map(|node| (node, 1 << 18)).collect();
        let reclaim = ZoneReclaim::from_machine(&machine, Release::REFERENCE).with_spare(spare);
        let mut memory = Memory::new(zones.collect(), free.orders().clone(), Release::REFERENCE);
        memory = memory.with_zone_reclaim(reclaim);
        let before = memory.clone();
        let kind = memory.zones()[0].kind;
        let mut pages = Placed::from([((NodeId::new(0), kind), 1000)]);
        let (owner, tiers) = (memory.nodes(), Tiers::from_machine(&machine, Release::REFERENCE));
        assert_eq!(memory.demote(&mut pages, NodeId::new(0), 1000, &owner, &tiers), 0);
        assert_eq!(memory, before);
    }

    proptest! {
        #[test]
        fn no_page_is_lost_on_its_way_down_or_up(
            free in proptest::collection::vec(0u64..3000, 5),
            counts in proptest::collection::vec(0u64..2000, 5),
            wanted in 0u64..3000,
            from in 0u32..5,
            cpu_node in 0u32..2,
            owner in 1u32..32,
            balancing in 0u32..4,
            is_hot in any::<bool>(),
            release in select(vec![Release::REFERENCE, Release::new(6, 16), Release::new(7, 0)]),
        ) {
            let machine = spec::machine(TIERED).unwrap();
            let (tiers, of) = (Tiers::from_machine(&machine, release), Memory::from_machine(&machine, BuiltAt::Boot, release));
            let zones = of.zones().iter().map(|zone| {
                let kept = zone.marks.low + zone.reserves[ZoneKind::Movable as usize];
                ZoneState { free: (kept + free[zone.node.number() as usize]).min(zone.managed), ..zone.clone() }
            });
            let mut memory = Memory::new(zones.collect(), of.orders().clone(), release);
            let zone_of = |node: u32| {
                let own = memory.zones().iter().filter(|zone| zone.node == NodeId::new(node));
                own.max_by_key(|zone| zone.managed).unwrap()
            };
            let mut pages: Placed =
                (0..5).map(|node| ((NodeId::new(node), zone_of(node).kind), counts[node as usize])).collect();
            let all = |memory: &Memory, pages: &Placed| {
                pages.values().sum::<u64>() + memory.zones().iter().map(|zone| zone.free).sum::<u64>()
            };
            let owner: NodeSet = (0..5).filter(|node| owner >> node & 1 == 1).map(NodeId::new).collect();
            let (before, had) = (all(&memory, &pages), pages.clone());
            let moved = memory.demote(&mut pages, NodeId::new(from), wanted, &owner, &tiers);
            prop_assert!(moved <= wanted);
            prop_assert_eq!(all(&memory, &pages), before);
            let on = |pages: &Placed, node: u32| {
                let own = pages.iter().filter(|((own, _), _)| own.number() == node);
                own.map(|(_, count)| count).sum::<u64>()
            };
            for node in (0..5).filter(|node| *node != from) {
                // Nothing goes up, and with 7.0 nothing leaves the cpuset.
                let gained = on(&pages, node) - on(&had, node);
                let outside = release >= Release::new(7, 0) && !owner.contains(NodeId::new(node));
                prop_assert!(gained == 0 || (!outside && !tiers.is_top(NodeId::new(node))));
            }
            let user = User { policy: &Policy::DEFAULT, cpu_node: NodeId::new(cpu_node), allowed: &owner, is_hot };
            let demoted = pages.clone();
            let balanced = memory.balance(&mut pages, &user, Balancing::from_setting(balancing), &tiers);
            prop_assert_eq!(all(&memory, &pages), before);
            prop_assert_eq!(on(&pages, cpu_node) - on(&demoted, cpu_node), balanced.moved);
            prop_assert!(balanced.promoted <= balanced.moved);
        }
    }
}
