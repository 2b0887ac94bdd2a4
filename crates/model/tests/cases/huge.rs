//! Huge pages: transparent ones, and those of the pools.

use nodewise_machine::{MemPolicy, NodeSet, spec};
use nodewise_model::hugetlb::Pool;
use nodewise_model::migrate::Present;
use nodewise_model::oracle::Task;
use nodewise_model::oracle::task::Surroundings;
use nodewise_model::oracle::task::family::{Family, Member};
use nodewise_model::oracle::task::pooled::Pooled;
use nodewise_model::policy::interleave::InterleavePosition;
use nodewise_model::walk::{HUGE_ORDER, Request};
use nodewise_model::{BuiltAt, Errno, FallbackOrders, Memory, Policy, Release, Weights};

use crate::server::{all, machine, memory, n, nodes_of_pages, policy, request};

#[test]
fn case_25_thp() {
    let weights: Weights = [3, 1, 2, 1].into_iter().zip(0..).map(|(w, node)| (n(node), w)).collect();
    let allowed = all();
    let check = |text: &str, weights: &Weights, address: u64, expected: &[u32]| {
        let policy = policy(text);
        let small = request(&policy, weights, 0, &allowed, expected.len() as u64);
        let huge = Request { order: HUGE_ORDER, place: InterleavePosition::Address(address), ..small };
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
    assert_eq!(pool.resize_node(n(1), 2, |_| true), 2);
    assert_eq!(pool.resize_node(n(3), 3, |_| true), 3);
    pool.resize(16, |_| true);
    assert_eq!(pool_after(&pool), [3, 5, 2, 6]);
}

#[test]
fn case_27_hugetlb_dequeue() {
    let machine = machine();
    let orders = FallbackOrders::from_machine(&machine, BuiltAt::Boot);
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
    let mut pool = Pool::with(&[(n(0), 3), (n(1), 5), (n(2), 2), (n(3), 6)]);
    assert_eq!(pool.reserve(20, &bind, &all()), Err(Errno::Enomem));
    assert_eq!(pool.reserve(5, &bind, &all()), Ok(()));
    assert_eq!(pool.reserve(7, &Policy::DEFAULT, &NodeSet::from([0, 2])), Err(Errno::Enomem));
}

/// Script pools-32 on `4x(1c 512M); dist=20`, 6.1.
#[test]
fn case_48_mbind_move_hugetlb() {
    for (minor, filled, expected) in [(1, 1, 0), (12, 1, 3), (18, 1, 0), (1, 2, 3), (12, 2, 3), (18, 2, 3)] {
        let release = Release::new(6, minor);
        let task = Task::new(Surroundings::new(&machine(), release), n(0));
        let memory = Memory::from_machine(&machine(), BuiltAt::Boot, release);
        let pool = Pool::with(&[(n(0), filled), (n(1), 0), (n(2), 0), (n(3), 0)]);
        let mut mapping = Pooled::map(pool, 1, &task).unwrap();
        mapping.touch(0, &task, &memory);
        for policy in ["local", "bind:3"] {
            let policy: MemPolicy = policy.parse().unwrap();
            mapping.bind(&policy, Present::Move, &task, &memory).unwrap();
        }
        assert_eq!(mapping.nodes(), [Some(n(expected))], "{release}, a pool of {filled}");
    }
}

/// A program on a CPU of node 0 of the machine that the cases below were recorded on.
fn three_nodes(release: Release) -> (Task, Memory) {
    let text = "(1c 512M) (1c 512M) (512M); dist=10,20,30/20,10,30/30,30,10";
    let machine = spec::machine(text).expect("the spec is right");
    let around = Surroundings::new(&machine, release);
    (Task::new(around, n(0)), Memory::from_machine(&machine, BuiltAt::Boot, release))
}

/// Runs of pages on one node, 9 for none, of 512 pages from page 0 on.
fn runs(task: &Task) -> Vec<(u32, u64)> {
    let mut runs: Vec<(u32, u64)> = Vec::new();
    for node in (0..512).map(|page| task.node_of(page).map_or(9, |node| node.number())) {
        match runs.last_mut() {
            Some((last, count)) if *last == node => *count += 1,
            _ => runs.push((node, 1)),
        }
    }
    runs
}

/// A huge page on node 0 whose first small page was written to, and a child. Parent and child write from a
/// CPU of node 1.
fn with_child(release: Release) -> (Family, Memory) {
    let (mut task, mut memory) = three_nodes(release);
    task.map_huge(0..512);
    task.touch(0, &mut memory);
    let mut family = Family::fork(task);
    family.call(Member::Parent, |parent| parent.run_on(n(1)));
    family.call(Member::Child, |child| child.run_on(n(1)));
    (family, memory)
}

#[test]
fn a_huge_page_in_common_is_split_by_each_who_writes_to_it() {
    for (release, eleven) in [(Release::REFERENCE, 1), (Release::new(6, 18), 0)] {
        let (mut family, mut memory) = with_child(release);
        family.write(Member::Child, 5, &mut memory);
        let expected = ([(0, 512)].to_vec(), [(0, 5), (1, 1), (0, 506)].to_vec());
        assert_eq!((runs(family.member(Member::Parent)), runs(family.member(Member::Child))), expected);
        family.write(Member::Parent, 5, &mut memory);
        family.write(Member::Parent, 9, &mut memory);
        let split = [(0, 5), (1, 1), (0, 3), (1, 1), (0, 502)];
        assert_eq!(runs(family.member(Member::Parent)), split);
        let mut parent = family.end(&mut memory);
        parent.touch(11, &mut memory);
        assert_eq!(parent.node_of(11), Some(n(eleven)), "{release}");
        // Whichever part is named, all move; those that hold nothing but zeros are gone then.
        parent.move_page(20, n(1), &mut memory).unwrap();
        let moved = [(1, 1), (9, 4), (1, 1), (9, 3), (1, 1), (9, 1), (1, 1), (9, 500)];
        assert_eq!(runs(&parent), moved, "{release}");
    }
}

#[test]
fn a_huge_page_that_only_the_child_has_split_stays() {
    let (mut family, mut memory) = with_child(Release::REFERENCE);
    family.write(Member::Child, 5, &mut memory);
    let mut parent = family.end(&mut memory);
    parent.touch(7, &mut memory);
    assert_eq!(runs(&parent), [(0, 512)]);
}

/// Free pages on nodes 0-2 before; nodes of the two pages and free pages after each call.
#[test]
fn pages_of_a_pool_move_into_free_ones_or_take_the_pool_along() {
    type After = ([u32; 2], [u64; 3]);
    let check = |free: [u64; 3], expected: [After; 5]| {
        let (task, memory) = three_nodes(Release::REFERENCE);
        let pages: Vec<_> = (0..3).map(n).zip(free).collect();
        let mut mapping = Pooled::map(Pool::with(&pages), 2, &task).unwrap();
        mapping.touch(0, &task, &memory);
        mapping.touch(1, &task, &memory);
        let policy = |text: &str| -> MemPolicy { text.parse().expect("the kernel's words") };
        let (old, new) = (NodeSet::from([1, 2]), NodeSet::from([0]));
        type Step<'a> = &'a dyn Fn(&mut Pooled) -> Result<(), Errno>;
        let steps: [Step<'_>; 5] = [
            &|mapping| mapping.move_page(0, n(1), &task, &memory),
            &|mapping| mapping.move_page(1, n(2), &task, &memory),
            &|mapping| mapping.migrate_pages(&old, &new, &task, &memory),
            &|mapping| mapping.bind(&policy("bind:1"), Present::Move, &task, &memory),
            &|mapping| mapping.bind(&policy("interleave:0,2"), Present::Move, &task, &memory),
        ];
        for (step, (nodes, left)) in steps.into_iter().zip(expected) {
            step(&mut mapping).unwrap();
            let seen: Vec<u32> = mapping.nodes().iter().flatten().map(|node| node.number()).collect();
            assert_eq!((seen, pool_after(mapping.pool())), (nodes.to_vec(), left.to_vec()));
        }
        assert_eq!(mapping.bind(&policy("bind:1"), Present::Refuse, &task, &memory), Err(Errno::Eio));
    };
    let none = [0; 3];
    check([2, 0, 0], [([1, 0], none), ([1, 2], none), ([0, 0], none), ([1, 1], none), ([0, 2], none)]);
    check(
        [2, 1, 0],
        [
            ([1, 0], [1, 0, 0]),
            ([1, 2], [1, 0, 0]),
            ([0, 0], [0, 1, 0]),
            ([1, 1], [1, 0, 0]),
            ([0, 1], [0, 1, 0]),
        ],
    );
    check(
        [2, 3, 0],
        [
            ([1, 0], [1, 2, 0]),
            ([1, 2], [1, 2, 0]),
            ([0, 0], [0, 3, 0]),
            ([1, 1], [2, 1, 0]),
            ([0, 0], [0, 3, 0]),
        ],
    );
}
