//! Huge pages: transparent ones, and those of the pools.

use nodewise_machine::NodeSet;
use nodewise_model::hugetlb::Pool;
use nodewise_model::policy::interleave::Place;
use nodewise_model::walk::{HUGE_ORDER, Request};
use nodewise_model::{BuiltAt, Errno, FallbackOrders, Policy, Weights};

use crate::server::{all, machine, memory, n, nodes_of_pages, policy, request};

#[test]
fn case_25_thp() {
    let weights: Weights = [3, 1, 2, 1].into_iter().zip(0..).map(|(w, node)| (n(node), w)).collect();
    let allowed = all();
    let check = |text: &str, weights: &Weights, address: u64, expected: &[u32]| {
        let policy = policy(text);
        let small = request(&policy, weights, 0, &allowed, expected.len() as u64);
        let huge = Request { order: HUGE_ORDER, place: Place::Address(address), ..small };
        assert_eq!(nodes_of_pages(&mut memory(), huge), expected, "{text} at {address:x}");
    };
    let even = Weights::new();
    check("interleave:0-3", &even, 0x100_0000_0000, &[0, 1, 2, 3, 0, 1, 2, 3]);
    check("interleave:0-3", &even, 0x100_4020_0000, &[1, 2, 3, 0, 1, 2, 3, 0]);
    check("interleave:1,3", &even, 0x100_0000_0000, &[1, 3, 1, 3, 1, 3, 1, 3]);
    check("prefer:3", &even, 0x100_0000_0000, &[3; 4]);
    check("bind:1-2", &even, 0x100_0000_0000, &[1; 4]);
    check("prefer (many):2-3", &even, 0x100_0000_0000, &[2; 4]);
    // With all weights 1, as on that boot. With others: 2^19 huge pages before it, modulo 7.
    check("weighted interleave:0-3", &even, 0x100_c000_0000, &[0, 1, 2, 3, 0, 1, 2, 3]);
    check("weighted interleave:0-3", &weights, 0x100_0000_0000, &[0, 1, 2, 2, 3, 0, 0, 0]);
}

fn pool_after(pool: &Pool) -> Vec<u64> {
    pool.free().values().copied().collect()
}

#[test]
fn case_26_hugetlb_pool() {
    let mut pool = Pool::new(&all());
    for (asked, expected) in [(8, [2, 2, 2, 2]), (7, [1, 2, 2, 2]), (5, [1, 1, 1, 2]), (9, [2, 2, 2, 3])] {
        assert_eq!(pool.resize(asked, |_| true), asked);
        assert_eq!(pool_after(&pool), expected, "after {asked}");
    }
    pool.resize(0, |_| true);
    pool.resize_node(n(1), 2);
    pool.resize_node(n(3), 3);
    pool.resize(16, |_| true);
    assert_eq!(pool_after(&pool), [3, 5, 2, 6]);
}

#[test]
fn case_27_hugetlb_dequeue() {
    let machine = machine();
    let orders = FallbackOrders::of(&machine, BuiltAt::Boot);
    let faults = |pages: [u64; 4], policy: &Policy, cpu_node: u32, count: u64| -> Vec<u32> {
        let mut pool =
            Pool::with(&pages.into_iter().zip(0..).map(|(p, node)| (n(node), p)).collect::<Vec<_>>());
        // The index is the page's number in the mapping. Script 5010 on `drawn-5`: at whatever address.
        (0..count)
            .filter_map(|at| pool.fault(policy, &Weights::new(), at, n(cpu_node), &orders, &all()))
            .map(|node| node.number())
            .collect()
    };
    assert_eq!(faults([0, 2, 0, 3], &Policy::DEFAULT, 0, 4), [1, 1, 3, 3]);
    assert_eq!(faults([0, 2, 0, 3], &Policy::DEFAULT, 2, 4), [3, 3, 3, 1]);
    let interleave = policy("interleave:0-3");
    assert_eq!(faults([3, 5, 2, 6], &interleave, 0, 6), [0, 1, 2, 3, 0, 1]);
    let bind = policy("bind:1");
    assert_eq!(faults([3, 5, 2, 6], &bind, 0, 4), [1; 4]);
    let pool = Pool::with(&[(n(0), 3), (n(1), 5), (n(2), 2), (n(3), 6)]);
    assert_eq!(pool.reserve(20, &bind, &all()), Err(Errno::Enomem));
    assert_eq!(pool.reserve(5, &bind, &all()), Ok(()));
    assert_eq!(pool.reserve(7, &Policy::DEFAULT, &NodeSet::from([0, 2])), Err(Errno::Enomem));
}
