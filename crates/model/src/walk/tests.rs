//! Runs against pages one by one, and what holds for every walk.

use nodewise_machine::{MemPolicy, ModeFlags, NodeId, NodeSet, PolicyMode};
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::memory::ZoneState;
use crate::policy::set::Scope;
use crate::reclaim::ZoneReclaim;
use crate::release::Release;
use crate::watermark::Watermarks;
use crate::zonelist::{BuiltAt, FallbackOrders};

fn n(number: u32) -> NodeId {
    NodeId::new(number)
}

fn zone(node: u32, kind: ZoneKind, free: u64, low: u64, min: u64) -> ZoneState {
    let marks = Watermarks { min, low, high: low, promo: low };
    ZoneState { node: n(node), kind, managed: free + 10, free, marks, reserves: [0; 4] }
}

fn memory(zones: Vec<ZoneState>, spec: &str) -> Memory {
    let machine = nodewise_machine::spec::machine(spec).unwrap();
    Memory::new(zones, FallbackOrders::from_machine(&machine, BuiltAt::Boot), Release::REFERENCE)
}

fn set(text: &str, allowed: &NodeSet) -> Policy {
    let policy: MemPolicy = text.parse().unwrap();
    Policy::from_mem_policy(&policy, Scope { allowed, max_nodes: 1024, release: Release::REFERENCE }).unwrap()
}

const TWO: &str = "2x(1c 1G)";

/// Node, mark and pages of every share, stretch by stretch.
fn stretches(outcome: &Outcome) -> Vec<Vec<(u32, Mark, u64)>> {
    let shares = |stretch: &Stretch| {
        stretch.shares.iter().map(|share| (share.node.number(), share.mark, share.pages)).collect()
    };
    outcome.stretches.iter().map(shares).collect()
}

/// A program on node 0 that touches small pages from address 0 on.
fn request<'a>(policy: &'a Policy, weights: &'a Weights, allowed: &'a NodeSet, pages: u64) -> Request<'a> {
    let (place, class) = (InterleavePosition::Address(0), Class::User);
    Request { policy, weights, cpu_node: n(0), allowed, pages, order: 0, place, class }
}

fn check(text: &str, allowed: &NodeSet, pages: u64, expected: &[&[(u32, Mark, u64)]]) -> Outcome {
    let mut memory =
        memory(vec![zone(0, ZoneKind::Normal, 100, 20, 10), zone(1, ZoneKind::Normal, 100, 20, 10)], TWO);
    let outcome = memory.allocate(&request(&set(text, allowed), &Weights::new(), allowed, pages));
    assert_eq!(stretches(&outcome), expected, "{text}");
    outcome
}

#[test]
fn nodes_are_drained_to_low_in_order_and_then_to_min() {
    let both = NodeSet::from([0, 1]);
    check("default", &both, 170, &[&[(0, Mark::Low, 80)], &[(1, Mark::Low, 80)], &[(0, Mark::Min, 10)]]);
}

#[test]
fn preferred_many_drains_its_nodes_to_min_before_the_others() {
    let both = NodeSet::from([0, 1]);
    check(
        "prefer (many):1",
        &both,
        100,
        &[&[(1, Mark::Low, 80)], &[(1, Mark::Min, 10)], &[(0, Mark::Low, 10)]],
    );
}

fn check_missed(text: &str, after: &[u32], expected: [(u64, u64, u64); 3]) -> Outcome {
    let zones = [0, 1, 2].map(|node| zone(node, ZoneKind::Normal, 100, 20, 10));
    let mut memory = memory(zones.to_vec(), "3x(1c 1G)");
    let (before, after) = (NodeSet::from([0, 1, 2]), after.iter().copied().map(n).collect());
    let outcome = memory.allocate(&request(&set(text, &before), &Weights::new(), &after, 100));
    let counted = |node: u32| memory.counters().get(&n(node)).copied().unwrap_or_default();
    let counted = [0, 1, 2].map(counted).map(|own| (own.hit, own.miss, own.foreign));
    assert_eq!(counted, expected, "{text}");
    outcome
}

/// The first of the CPU's nodes is the wanted one then, and no zone has to stay above its low mark. Seen on
/// 6.12 and 6.18.
#[test]
fn preferred_nodes_that_a_new_cpuset_leaves_out_are_given_up_at_the_minimum() {
    let outcome = check_missed("prefer (many):0", &[1, 2], [(0, 0, 100), (0, 90, 0), (0, 10, 0)]);
    assert_eq!(stretches(&outcome), [[(1, Mark::Min, 90)], [(2, Mark::Min, 10)]]);
}

#[test]
fn of_a_mask_also_a_node_is_wanted_that_a_new_cpuset_leaves_out() {
    check_missed("prefer (many):0-1", &[1, 2], [(0, 0, 90), (0, 90, 10), (0, 10, 0)]);
    // As a file's policy, which no cpuset changes.
    check_missed("bind:0,1,2", &[1, 2], [(0, 0, 100), (0, 80, 0), (0, 20, 0)]);
    check_missed("default", &[1, 2], [(0, 0, 0), (80, 0, 20), (0, 20, 0)]);
}

#[test]
fn interleaving_goes_on_where_the_other_node_has_room() {
    let both = NodeSet::from([0, 1]);
    check("interleave:0-1", &both, 5, &[&[(0, Mark::Low, 3), (1, Mark::Low, 2)]]);
}

#[test]
fn a_bound_request_ends_though_the_other_node_is_empty() {
    let both = NodeSet::from([0, 1]);
    let outcome = check("bind:1", &both, 100, &[&[(1, Mark::Low, 80)], &[(1, Mark::Min, 10)]]);
    let expected =
        OutOfMemory { pages: 10, inside: NodeSet::from([1]), constraint: Constraint::MemoryPolicy };
    assert_eq!(outcome.out_of_memory, Some(expected));
}

#[test]
fn a_cpuset_ends_a_request_too() {
    let one = NodeSet::from([1]);
    let outcome = check("default", &one, 91, &[&[(1, Mark::Low, 80)], &[(1, Mark::Min, 10)]]);
    assert_eq!(outcome.out_of_memory.unwrap().constraint, Constraint::Cpuset);
}

#[test]
fn since_6_18_the_order_is_open_where_nodes_are_reclaimed() {
    let both = NodeSet::from([0, 1]);
    let busy = |text: &str, pages: u64, release: Release| {
        let zones = vec![zone(0, ZoneKind::Normal, 100, 20, 10), zone(1, ZoneKind::Normal, 100, 20, 10)];
        let mut memory = Memory { release, ..memory(zones, TWO) };
        let outcome = memory.allocate(&request(&set(text, &both), &Weights::new(), &both, pages));
        outcome.busy.map(|busy| (busy.after, busy.nodes))
    };
    let new = Release::new(6, 18);
    assert_eq!(busy("prefer (many):1", 100, Release::new(6, 17)), None);
    assert_eq!(busy("prefer (many):1", 80, new), None);
    assert_eq!(busy("prefer (many):1", 100, new), Some((80, NodeSet::from([1]))));
    assert_eq!(busy("interleave:0-1", 170, new), Some((160, both.clone())));
    assert_eq!(busy("bind:0", 85, new), Some((80, NodeSet::from([0]))));
}

#[test]
fn kernel_pages_are_not_bound_to_movable_memory() {
    let zones = vec![zone(0, ZoneKind::Normal, 100, 20, 10), zone(1, ZoneKind::Movable, 100, 20, 10)];
    let allowed = NodeSet::from([0, 1]);
    let policy = set("bind:1", &allowed);
    let weights = Weights::new();
    let node = |class: Class| {
        let request = Request { class, ..request(&policy, &weights, &allowed, 1) };
        memory(zones.clone(), TWO).allocate(&request).nodes()[0].0.number()
    };
    assert_eq!((node(Class::User), node(Class::Kernel)), (1, 0));
}

/// Order, node and pages of every share of four huge pages on a CPU of node 0.
#[track_caller]
fn check_huge(free: [u64; 2], text: &str, expected: &[(u32, u32, u64)]) {
    let zones = vec![zone(0, ZoneKind::Normal, free[0], 20, 10), zone(1, ZoneKind::Normal, free[1], 20, 10)];
    let allowed = NodeSet::from([0, 1]);
    let (policy, weights) = (set(text, &allowed), Weights::new());
    let request = Request { order: HUGE_ORDER, ..request(&policy, &weights, &allowed, 4) };
    let outcome = memory(zones, TWO).allocate(&request);
    let shares = |stretch: &Stretch| {
        let order = stretch.order;
        stretch.shares.iter().map(|share| (order, share.node.number(), share.pages)).collect::<Vec<_>>()
    };
    let shares: Vec<_> = outcome.stretches.iter().flat_map(shares).collect();
    assert_eq!(shares, expected, "{text}");
}

#[test]
fn a_huge_page_comes_from_another_node_before_small_ones_come() {
    check_huge([1600, 5000], "default", &[(9, 0, 3), (9, 1, 1)]);
    check_huge([1600, 5000], "prefer:0", &[(9, 0, 3), (9, 1, 1)]);
    check_huge([1600, 5000], "bind:0-1", &[(9, 0, 3), (9, 1, 1)]);
    check_huge([100, 5000], "interleave:0-1", &[(9, 1, 4)]);
}

#[test]
fn small_pages_follow_when_no_huge_one_is_left() {
    // Of the fourth 44 small ones fit above the low mark of node 0, the rest goes elsewhere.
    check_huge([1600, 500], "default", &[(9, 0, 3), (0, 0, 44), (0, 1, 468)]);
    check_huge([1600, 5000], "bind:0", &[(9, 0, 3), (0, 0, 44), (0, 0, 10)]);
}

/// Free pages, marks and reserves of up to five nodes with up to two zones.
fn any_zones() -> impl Strategy<Value = Vec<ZoneState>> {
    let one = (0u64..300, 0u64..60, 0u64..30, 0u64..80, any::<bool>());
    proptest::collection::vec(one, 5).prop_map(|zones| {
        let both = |(node, (free, gap, min, reserve, two)): (u32, &(u64, u64, u64, u64, bool))| {
            let mut upper = zone(node, ZoneKind::Normal, *free, min + gap, *min);
            let mut lower = zone(node, ZoneKind::Dma32, free / 2, min / 2 + gap, min / 2);
            lower.reserves = [0, 0, *reserve, *reserve];
            upper.reserves = [0; 4];
            if *two { vec![lower, upper] } else { vec![upper] }
        };
        (0..).zip(&zones).flat_map(both).collect()
    })
}

fn expanded(outcome: &Outcome, pages: &mut [u64; 5]) {
    for (node, count) in outcome.nodes() {
        pages[node.number() as usize] += count;
    }
}

proptest! {
    #[test]
    fn runs_give_what_pages_one_by_one_give(
        zones in any_zones(),
        mode in 0usize..7,
        nodes in 1u32..32,
        allowed in 1u32..32,
        weights in proptest::collection::vec(1u32..5, 5),
        cpu_node in 0u32..5,
        pages in 0u64..1500,
        start in 0u64..1000,
        kernel in any::<bool>(),
        reclaimed in proptest::option::of((proptest::collection::vec(0u64..100, 5), 8u32..32)),
    ) {
        let members = |bits: u32| (0..5).filter(|node| bits >> node & 1 == 1).map(NodeId::new).collect::<NodeSet>();
        let (asked, allowed) = (members(nodes), members(allowed));
        let mode = PolicyMode::ALL[mode];
        let takes = !matches!(mode, PolicyMode::Default | PolicyMode::Local);
        let asked = MemPolicy { mode, flags: ModeFlags::NONE, nodes: if takes { asked } else { NodeSet::new() } };
        let scope = Scope { allowed: &allowed, max_nodes: 1024, release: Release::REFERENCE };
        if let Ok(policy) = Policy::from_mem_policy(&asked, scope) {
            let weights: Weights = (0..5).map(NodeId::new).zip(weights).collect();
            let class = if kernel { Class::Kernel } else { Class::User };
            let place = InterleavePosition::Address(start << 12);
            let request = Request { policy: &policy, weights: &weights, cpu_node: n(cpu_node), allowed: &allowed, pages, order: 0, place, class };
            let spec = "3x(1c 1G) 2x(1G); dist=10,12,20,20,30/12,10,20,20,25/20,20,10,12,20/20,20,12,10,20/30,25,20,20,10";
            let memory = || {
                let zones = zones.iter().map(|zone| ZoneState { managed: zone.free + 200, ..zone.clone() });
                let memory = memory(zones.collect(), spec);
                let Some((spare, farthest)) = &reclaimed else { return memory };
                let mut machine = nodewise_machine::spec::machine(spec).unwrap();
                machine.settings.zone_reclaim_mode = Some(7);
                let spare = (0..5).map(NodeId::new).zip(spare.iter().copied()).collect();
                let reclaim = ZoneReclaim::from_machine(&machine, Release::REFERENCE).with_spare(spare).with_farthest(*farthest);
                memory.with_zone_reclaim(reclaim)
            };
            let mut runs = memory();
            let outcome = runs.allocate(&request);
            let mut single = memory();
            let mut one_by_one = [0u64; 5];
            let mut given = 0;
            let mut route = single.route(&request);
            for at in 0..pages {
                // A route that was used before gives what one made for this page alone gives.
                let outcome = match at % 2 {
                    0 => single.allocate_along(&mut route, 1, place.after(at)),
                    _ => single.allocate(&Request { pages: 1, place: place.after(at), ..request }),
                };
                if outcome.out_of_memory.is_some() {
                    break;
                }
                given += 1;
                expanded(&outcome, &mut one_by_one);
            }
            let mut in_runs = [0u64; 5];
            expanded(&outcome, &mut in_runs);
            prop_assert_eq!(in_runs, one_by_one);
            prop_assert_eq!(outcome.out_of_memory.map_or(pages, |end| pages - end.pages), given);
            prop_assert_eq!(runs.zones(), single.zones());
            prop_assert_eq!(runs.counters(), single.counters());
            prop_assert_eq!(runs.reclaimed(), single.reclaimed());
            let counters = runs.counters().values();
            let sums = counters.fold([0; 4], |[miss, foreign, places, all], one| {
                [miss + one.miss, foreign + one.foreign, places + one.local + one.other, all + one.hit + one.miss]
            });
            prop_assert_eq!((sums[0], sums[2], sums[3]), (sums[1], given, given));
        }
    }

    #[test]
    fn no_size_is_too_large(free in any::<u64>(), low in any::<u64>(), pages in any::<u64>(), interleave in any::<bool>()) {
        let zones = vec![zone(0, ZoneKind::Normal, free / 2, low, low / 2), zone(1, ZoneKind::Normal, free / 3, low, low / 2)];
        let allowed = NodeSet::from([0, 1]);
        let policy = set(if interleave { "interleave:0-1" } else { "default" }, &allowed);
        let weights = Weights::new();
        let request = Request { policy: &policy, weights: &weights, cpu_node: n(0), allowed: &allowed, pages, order: 0, place: InterleavePosition::Address(u64::MAX), class: Class::User };
        let outcome = memory(zones, TWO).allocate(&request);
        let given: u64 = outcome.nodes().iter().map(|(_, pages)| pages).sum();
        prop_assert!(given + outcome.out_of_memory.map_or(0, |end| end.pages) == pages);
    }
}
