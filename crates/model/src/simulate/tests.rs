//! Steps on small machines, and what holds for every scenario.

mod alike;
mod cache;
mod doubt;
mod drawn;
mod forks;
mod groups;
mod pressure;
mod threads;

use super::*;
use crate::zonelist::BuiltAt;

const GIB: u64 = 1 << 18;

fn simulation() -> Simulation {
    simulation_on("2x(8c 8G); dist=21", Release::REFERENCE)
}

fn simulation_on(spec: &str, release: Release) -> Simulation {
    let machine = nodewise_machine::spec::machine(spec).unwrap();
    let memory = Memory::from_machine(&machine, BuiltAt::Boot, release);
    Simulation::new(memory, Weights::new(), 1024, release).on(&machine)
}

fn start_in(policy: &str, allowed: NodeSet) -> Act {
    Act::Start { cpu_node: NodeId::new(0), policy: policy.parse().unwrap(), allowed }
}

fn start(policy: &str) -> Act {
    start_in(policy, (0..8).map(NodeId::new).collect())
}

fn mapping(region: &str, gib: u64, backing: Backing) -> Mapping {
    Mapping { region: region.to_owned(), pages: gib * GIB, backing, policy: None, first_page: None }
}

fn allocate(region: &str, gib: u64) -> Act {
    Act::Allocate(mapping(region, gib, Backing::Small))
}

fn whole(region: &str) -> Part {
    Part { region: region.to_owned(), pages: None }
}

fn free(region: &str) -> Act {
    Act::Free { region: region.to_owned() }
}

#[track_caller]
fn play(simulation: &mut Simulation, steps: &[(&str, Act)]) -> Vec<Step> {
    steps.iter().map(|(name, act)| simulation.play(name, act).unwrap()).collect()
}

/// GiB of somebody by node, rounded.
fn placed<const N: usize>(simulation: &Simulation, name: &str) -> [u64; N] {
    let all = simulation.placements();
    let nodes = all
        .get(&Owner::Program(name.to_owned()))
        .map(|placement| placement.nodes.clone())
        .unwrap_or_default();
    std::array::from_fn(|node| (nodes.get(&NodeId::new(node as u32)).copied().unwrap_or(0) + GIB / 2) / GIB)
}

fn killed(step: &Step) -> Vec<&str> {
    step.killed.iter().map(|killed| killed.program.as_str()).collect()
}

/// arm64 with pages of 64 KiB, and POWER with its two sizes of huge page.
#[test]
fn huge_pages_are_as_large_as_the_machines() {
    for (architecture, kib, huge_mib) in
        [("aarch64", 64, 512), ("aarch64", 16, 32), ("ppc64le", 64, 2), ("ppc64le", 64, 16)]
    {
        let mut machine = nodewise_machine::spec::machine("2x(8c 8G); dist=21").unwrap();
        machine.architecture = Some(architecture.to_owned());
        machine.page_size = Some(nodewise_machine::Bytes::from_kib(kib));
        machine.settings.transparent_hugepage_size = Some(nodewise_machine::Bytes::from_mib(huge_mib));
        let memory = Memory::from_machine(&machine, BuiltAt::Boot, Release::REFERENCE);
        let (mib, huge) = (1024 / kib, huge_mib * 1024 / kib);
        let mut simulation = Simulation::new(memory, Weights::new(), 1024, Release::REFERENCE).on(&machine);
        let take = |pages: u64, backing: Backing| {
            Act::Allocate(Mapping {
                region: format!("{backing:?}"),
                pages,
                backing,
                policy: None,
                first_page: None,
            })
        };
        play(&mut simulation, &[("a", start("interleave:0-1")), ("a", take(3 * huge, Backing::Huge))]);
        let had = |simulation: &Simulation| -> Vec<u64> {
            let all = simulation.placements();
            all[&Owner::Program("a".to_owned())].nodes.values().map(|pages| pages / mib).collect()
        };
        // A huge page has one turn.
        assert_eq!(had(&simulation).iter().sum::<u64>(), 3 * huge_mib, "{architecture} {kib}");
        assert_eq!(had(&simulation).iter().max(), Some(&(2 * huge_mib)), "{architecture} {kib}");
        // A part of a huge page is a whole one.
        play(&mut simulation, &[("a", Act::ResizePool { pages: 2 }), ("a", take(1, Backing::Pool))]);
        assert_eq!(had(&simulation).iter().sum::<u64>(), 4 * huge_mib, "{architecture} {kib}");
        let left = &simulation.placements()[&Owner::Pool];
        assert_eq!(left.pages() / mib, huge_mib, "{architecture} {kib}");
    }
}

#[test]
fn a_program_larger_than_its_node_leaves_nothing_for_one_that_is_bound_there() {
    for (policy, placement, dead) in
        [("default", [8, 2], vec!["database"]), ("interleave:0-1", [5, 5], vec![])]
    {
        let mut simulation = simulation();
        let steps =
            [("database", start(policy)), ("database", allocate("pool", 10)), ("tool", start("bind:0"))];
        play(&mut simulation, &steps);
        assert_eq!(placed(&simulation, "database"), placement, "{policy}");
        let step = simulation.play("tool", &allocate("heap", 1)).unwrap();
        // Who is not bound counts as one that may use every node, and it is the larger.
        assert_eq!(killed(&step), dead, "{policy}");
        assert_eq!(placed(&simulation, "tool"), [1, 0], "{policy}");
    }
}

#[test]
fn who_is_bound_elsewhere_is_not_killed_for_a_bound_program() {
    let mut simulation = simulation();
    let steps = [("large", start("bind:1")), ("large", allocate("heap", 7)), ("small", start("bind:0"))];
    play(&mut simulation, &steps);
    let step = simulation.play("small", &allocate("heap", 9)).unwrap();
    assert_eq!(killed(&step), ["small"]);
    assert_eq!(simulation.play("small", &free("heap")).unwrap().skipped, Some(Skipped::Killed));
    assert_eq!(placed(&simulation, "large"), [0, 7]);
    // It may be started again.
    play(&mut simulation, &[("small", start("bind:0")), ("small", allocate("heap", 7))]);
}

#[test]
fn without_a_program_that_may_be_killed_the_rest_is_missing() {
    let mut simulation = simulation();
    play(&mut simulation, &[("a", start("bind:1"))]);
    let policy = Some("bind:0".parse().unwrap());
    let heap = Act::Allocate(Mapping { policy, ..mapping("heap", 9, Backing::Small) });
    let step = simulation.play("a", &heap).unwrap();
    assert!(
        step.missing.is_some_and(|end| end.pages > 0),
        "its policy binds it to node 1, its memory to node 0"
    );
    assert_eq!(placed(&simulation, "a"), [8, 0]);
}

#[test]
fn what_a_program_had_is_there_again_when_it_ends() {
    let mut simulation = simulation();
    let before = simulation.memory().zones().to_vec();
    play(
        &mut simulation,
        &[
            ("a", start("default")),
            ("a", allocate("heap", 3)),
            ("a", allocate("cache", 2)),
            ("a", free("heap")),
        ],
    );
    assert_eq!(placed(&simulation, "a"), [2, 0]);
    play(&mut simulation, &[("a", Act::End)]);
    assert_eq!(simulation.memory().zones(), before);
    assert!(simulation.placements().is_empty());
}

#[test]
fn pages_move_as_far_as_there_is_room() {
    let mut simulation = simulation();
    let steps = [
        ("a", start("bind:0")),
        ("a", allocate("heap", 6)),
        ("b", start("bind:1")),
        ("b", allocate("heap", 4)),
        ("a", Act::Migrate { old: NodeSet::from([0]), new: NodeSet::from([1]) }),
    ];
    let step = play(&mut simulation, &steps).pop().unwrap();
    assert_eq!((step.moved + GIB / 2) / GIB, 4);
    assert_eq!(step.moved + step.stayed, 6 * GIB);
    assert_eq!(placed(&simulation, "a"), [2, 4]);
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let mut simulation = simulation();
    assert_eq!(simulation.play("a", &Act::End), Err(Refused::NotThere));
    play(&mut simulation, &[("a", start("default")), ("a", allocate("heap", 1))]);
    assert_eq!(simulation.play("a", &start("default")), Err(Refused::Started("a".to_owned())));
    let fork = Act::Fork { child: "a".to_owned() };
    assert_eq!(simulation.play("a", &fork), Err(Refused::Started("a".to_owned())));
    assert_eq!(simulation.play("a", &allocate("heap", 1)), Err(Refused::Taken("heap".to_owned())));
    assert_eq!(simulation.play("a", &free("stack")), Err(Refused::NoRegion("stack".to_owned())));
    assert_eq!(placed(&simulation, "a"), [1, 0]);
}

#[test]
fn a_call_that_the_kernel_refuses_is_a_step() {
    let mut simulation = simulation();
    let bind =
        |policy: &str, flags| Act::Bind { part: whole("heap"), policy: policy.parse().unwrap(), flags };
    let strict = Flags { strict: true, ..Flags::default() };
    let beyond = Part { region: "heap".to_owned(), pages: Some(0..9 * GIB) };
    play(&mut simulation, &[("a", start_in("default", NodeSet::from([0]))), ("a", allocate("heap", 1))]);
    for (act, errno) in [
        (Act::SetPolicy("bind:7".parse().unwrap()), Errno::Einval),
        (Act::Migrate { old: NodeSet::from([0]), new: NodeSet::from([7]) }, Errno::Einval),
        (Act::MovePages { part: whole("heap"), node: NodeId::new(1), all: false }, Errno::Eacces),
        (Act::MovePages { part: whole("heap"), node: NodeId::new(9), all: false }, Errno::Enodev),
        (bind("bind:1", Flags::default()), Errno::Einval),
        (Act::Touch(beyond), Errno::Efault),
        (Act::SetHome { part: whole("heap"), node: NodeId::new(0) }, Errno::Enoent),
        (Act::SetHome { part: whole("heap"), node: NodeId::new(9) }, Errno::Einval),
        (Act::Map(mapping("pool", 1, Backing::Pool)), Errno::Enomem),
    ] {
        assert_eq!(simulation.play("a", &act).unwrap().refused, Some(errno), "{act:?}");
    }
    assert_eq!(simulation.play("a", &Act::Touch(whole("pool"))).unwrap().skipped, Some(Skipped::NotMapped));
    assert_eq!(simulation.play("b", &start("bind:7")).unwrap().refused, Some(Errno::Einval));
    assert_eq!(simulation.play("b", &Act::Balance).unwrap().skipped, Some(Skipped::NotStarted));
    play(
        &mut simulation,
        &[("a", Act::Restrict(NodeSet::from([0, 1]))), ("a", bind("interleave:1", Flags::default()))],
    );
    assert_eq!(simulation.play("a", &bind("bind:1", strict)).unwrap().refused, Some(Errno::Eio));
    let home = Act::SetHome { part: whole("heap"), node: NodeId::new(1) };
    assert_eq!(simulation.play("a", &home).unwrap().refused, Some(Errno::Eopnotsupp));
    assert_eq!(placed(&simulation, "a"), [1, 0]);
}

#[test]
fn a_home_node_is_unknown_before_5_17() {
    let mut simulation = simulation_on("2x(8c 8G); dist=21", Release::new(5, 16));
    play(&mut simulation, &[("a", start("default")), ("a", allocate("heap", 1))]);
    let home = Act::SetHome { part: whole("heap"), node: NodeId::new(1) };
    assert_eq!(simulation.play("a", &home).unwrap().refused, Some(Errno::Enosys));
}

#[test]
fn pages_follow_the_cpuset_of_a_program_and_its_children() {
    let mut simulation = simulation();
    let steps = [
        ("a", start("bind:0")),
        ("a", allocate("heap", 2)),
        ("a", Act::Fork { child: "b".to_owned() }),
        ("b", allocate("own", 1)),
        ("a", Act::Restrict(NodeSet::from([1]))),
        ("b", allocate("more", 1)),
    ];
    let steps = play(&mut simulation, &steps);
    assert_eq!(steps[4].moved, 3 * GIB);
    assert_eq!((placed(&simulation, "a"), placed(&simulation, "b")), ([0, 2], [0, 4]));
}

#[test]
fn after_a_fork_who_writes_has_a_copy_and_the_other_keeps_the_page() {
    let mut simulation = simulation();
    let steps = [
        ("a", start("default")),
        ("a", allocate("heap", 2)),
        ("a", Act::Fork { child: "b".to_owned() }),
        ("b", Act::RunOn(NodeId::new(1))),
        ("b", Act::Touch(Part { region: "heap".to_owned(), pages: Some(0..GIB) })),
    ];
    play(&mut simulation, &steps);
    assert_eq!((placed(&simulation, "a"), placed(&simulation, "b")), ([2, 0], [1, 1]));
    let common = |simulation: &Simulation, name: &str| {
        simulation.placements()[&Owner::Program(name.to_owned())].common.values().sum::<u64>()
    };
    assert_eq!((common(&simulation, "a"), common(&simulation, "b")), (0, GIB));
    // The child's pages alone are moved without MPOL_MF_MOVE_ALL.
    let go = |all| Act::MovePages { part: whole("heap"), node: NodeId::new(1), all };
    let step = play(&mut simulation, &[("b", go(false))]).remove(0);
    assert_eq!((step.moved, step.stayed), (0, GIB));
    play(&mut simulation, &[("b", go(true))]);
    assert_eq!((placed(&simulation, "a"), placed(&simulation, "b")), ([1, 1], [0, 2]));
    play(&mut simulation, &[("a", Act::End)]);
    assert_eq!((placed(&simulation, "b"), common(&simulation, "b")), ([0, 2], 0));
}

#[test]
fn pages_of_a_file_are_where_the_first_put_them_and_its_policy_is_everybodys() {
    let mut simulation = simulation();
    let file = |touched: bool| {
        let mapping = mapping("cache", 2, Backing::File("shm".to_owned()));
        if touched { Act::Allocate(mapping) } else { Act::Map(mapping) }
    };
    let part = |from: u64, to: u64| Part { region: "cache".to_owned(), pages: Some(from * GIB..to * GIB) };
    let bind = Act::Bind { part: part(1, 2), policy: "bind:1".parse().unwrap(), flags: Flags::default() };
    let steps = [
        ("a", start("default")),
        ("b", start("default")),
        ("a", file(false)),
        ("b", file(false)),
        ("a", Act::Touch(part(0, 1))),
        ("a", bind),
        ("b", Act::Touch(whole("cache"))),
    ];
    play(&mut simulation, &steps);
    assert_eq!((placed(&simulation, "a"), placed(&simulation, "b")), ([1, 0], [1, 1]));
    assert_eq!(simulation.play("a", &file(true)), Err(Refused::Taken("cache".to_owned())));
    play(&mut simulation, &[("b", Act::End)]);
    // It is there as long as somebody has it mapped, touched or not.
    let left = &simulation.placements()[&Owner::File("shm".to_owned())];
    assert_eq!(left.pages(), GIB);
    play(&mut simulation, &[("a", Act::End)]);
    assert!(simulation.placements().is_empty());
    assert_eq!(simulation.memory().free_of(NodeId::new(1)), simulation.memory().managed_of(NodeId::new(1)));
}

#[test]
fn turns_begin_with_the_first_node_unless_the_first_page_is_another() {
    let check = |nodes: u32, first_page: Option<u64>, backing: Backing, expected: u32| {
        let mut simulation = simulation_on(&format!("{nodes}x(1c 1G)"), Release::REFERENCE);
        let pages = if backing == Backing::Huge { 512 } else { 1 };
        let heap = Mapping { region: "heap".to_owned(), pages, backing, policy: None, first_page };
        let steps = [("a", start(&format!("interleave:0-{}", nodes - 1))), ("a", Act::Allocate(heap))];
        let steps = play(&mut simulation, &steps);
        assert_eq!(steps[1].taken, [(NodeId::new(expected), pages)], "{nodes} nodes, {first_page:?}");
    };
    for nodes in 2..=16 {
        check(nodes, None, Backing::Small, 0);
        check(nodes, None, Backing::Huge, 0);
    }
    check(3, Some(4), Backing::Small, 1);
    check(3, Some(2 * 512), Backing::Huge, 2);
}

#[test]
fn a_pool_gives_huge_pages_to_those_that_have_reserved_them() {
    let mut simulation = simulation();
    let pool = |pages| ("", Act::ResizePool { pages });
    let region = |region: &str, gib| Act::Map(mapping(region, gib, Backing::Pool));
    play(&mut simulation, &[pool(2048), ("a", start("bind:0")), ("a", region("tables", 1))]);
    let free = |simulation: &Simulation| {
        let all = simulation.placements();
        [0, 1].map(|node| all[&Owner::Pool].nodes.get(&NodeId::new(node)).copied().unwrap_or(0) / GIB)
    };
    assert_eq!(free(&simulation), [2, 2]);
    // Two of node 0 are left, and one is reserved: for two more there are too few.
    assert_eq!(simulation.play("a", &region("more", 3)).unwrap().refused, Some(Errno::Enomem));
    play(&mut simulation, &[("a", Act::Touch(whole("tables")))]);
    assert_eq!((placed(&simulation, "a"), free(&simulation)), ([1, 0], [1, 2]));
    // The reservation does not see a policy that comes later, and the fault finds nothing.
    let bind = |node| Act::Bind {
        part: whole("late"),
        policy: format!("bind:{node}").parse().unwrap(),
        flags: Flags::default(),
    };
    play(&mut simulation, &[("b", start("default")), ("b", region("late", 2)), ("b", bind(0))]);
    let step = simulation.play("b", &Act::Touch(whole("late"))).unwrap();
    assert_eq!(step.killed.iter().map(|killed| &killed.cause).collect::<Vec<_>>(), [&Cause::NoHugePage]);
    assert_eq!(free(&simulation), [1, 2]);
    play(&mut simulation, &[pool(0)]);
    assert_eq!(simulation.placements().get(&Owner::Pool), None);
    play(&mut simulation, &[("a", Act::End), pool(0)]);
    let all = |node| simulation.memory().free_of(node) == simulation.memory().managed_of(node);
    assert!(all(NodeId::new(0)) && all(NodeId::new(1)));
}

#[test]
fn pages_follow_their_cpu_as_far_as_policy_and_room_let_them() {
    for (policy, there) in [("default", [0, 6]), ("bind:0", [6, 0]), ("interleave:0-1", [3, 3])] {
        let mut simulation = simulation();
        simulation.balancing = Balancing::from_setting(1);
        let steps = [
            ("a", start(policy)),
            ("a", allocate("heap", 6)),
            ("a", Act::RunOn(NodeId::new(1))),
            ("a", Act::Balance),
        ];
        let step = play(&mut simulation, &steps).pop().unwrap();
        assert_eq!(placed(&simulation, "a"), there, "{policy}");
        assert_eq!((step.moved + GIB / 2) / GIB, if policy == "default" { 6 } else { 0 });
    }
}

#[test]
fn a_forecast_says_how_much_of_what_follows_has_done_so() {
    let after = |seconds, touches| {
        let mut simulation = simulation();
        simulation.balancing = Balancing::from_setting(1);
        let usage = MemoryUse {
            time: std::time::Duration::from_secs(seconds),
            touches_per_s: [touches; 2],
            pattern: crate::balancing::course::Pattern::Sweep,
        };
        let steps = [
            ("a", start("default")),
            ("a", allocate("heap", 6)),
            ("a", Act::RunOn(NodeId::new(1))),
            ("a", Act::BalanceFor(usage)),
        ];
        let step = play(&mut simulation, &steps).pop().unwrap();
        assert_eq!(placed(&simulation, "a"), [0, 6], "all of it is there in the end");
        let after = step.local_after.unwrap();
        (after.low_permille, after.high_permille)
    };
    assert_eq!(after(1, 10_000_000), (0, 0), "no scan before the delay");
    // 24 windows: of a forked process in 2.4 s, of a spawned one one each second from the second on.
    let (low, high) = after(10, 10_000_000);
    assert!((320..=400).contains(&low) && high > 950, "{low} {high}");
    assert_eq!(after(60, 10_000_000), (1000, 1000));
    let (low, high) = after(60, 1000);
    assert!(low > 5 && high < 40, "{low} {high}");
}

#[test]
fn what_is_promoted_has_a_forecast_by_the_room_of_the_fast_node() {
    let after = |setting, taken| {
        let slow = "(1c 8G) (8G); dist=10,20/20,10; access=0>0:80ns/100G; access=0>1:250ns/30G";
        let mut simulation = simulation_on(slow, Release::REFERENCE);
        simulation.balancing = Balancing::from_setting(setting);
        let usage = MemoryUse {
            time: std::time::Duration::from_secs(10),
            touches_per_s: [30_000; 2],
            pattern: crate::balancing::course::Pattern::Uniform,
        };
        let half = Mapping { pages: GIB / 2, ..mapping("heap", 1, Backing::Small) };
        let steps = [
            ("b", start("bind:0")),
            ("b", allocate("heap", taken)),
            ("a", start("bind:1")),
            ("a", Act::Allocate(half)),
            ("a", Act::SetPolicy(MemPolicy::DEFAULT)),
            ("a", Act::BalanceFor(usage)),
        ];
        let step = play(&mut simulation, &steps).pop().unwrap();
        let after = step.local_after.map(|after| (after.low_permille, after.high_permille));
        (step.moved, step.promoted, after)
    };
    let half = GIB / 2;
    let (_, _, followed) = after(1, 1);
    // With room to spare each touch promotes; without it pages have to be hot.
    assert_eq!(after(2, 1), (half, half, followed));
    let (moved, promoted, hot) = after(2, 7);
    assert_eq!((moved, promoted), (half, half));
    let (hot, followed) = (hot.unwrap(), followed.unwrap());
    assert!(0 < hot.0 && hot.0 < hot.1 && hot.1 < followed.0, "{hot:?} {followed:?}");
    assert_eq!(after(3, 7), (half, half, None), "fast pages are marked as well");
}

#[test]
fn the_cost_of_a_step_is_that_of_its_runs_and_not_of_its_pages() {
    // 1 TiB over four nodes, and everything that can be done with it: no extent is cut up.
    let mut simulation = simulation_on("4x(8c 512G); dist=21", Release::REFERENCE).with_swap(GIB << 10);
    let mapped = |region: &str, backing| Act::Allocate(mapping(region, 1024, backing));
    let move_to = |nodes: &str| Act::Bind {
        part: whole("heap"),
        policy: nodes.parse().unwrap(),
        flags: Flags { moves: true, ..Flags::default() },
    };
    let steps = [
        ("a", start("interleave:0-2")),
        ("a", mapped("heap", Backing::Small)),
        ("a", move_to("weighted interleave:1-3")),
        ("a", move_to("interleave:0-3")),
        ("a", Act::Fork { child: "b".to_owned() }),
        ("a", Act::Touch(Part { region: "heap".to_owned(), pages: Some(0..GIB << 8) })),
        ("b", Act::End),
        ("a", Act::Migrate { old: NodeSet::from([0, 1]), new: NodeSet::from([2, 3]) }),
        ("b", start("bind:0-1")),
        ("b", mapped("heap", Backing::Huge)),
        ("b", Act::Balance),
        ("a", Act::Touch(whole("heap"))),
    ];
    for (name, act) in &steps {
        let step = simulation.play(name, act).unwrap();
        assert_eq!(step.killed, [], "{act:?}");
        let extents: usize = simulation.objects.values().map(|object| object.extents.len()).sum();
        assert!(extents <= 40, "{extents} extents after {act:?}");
    }
}

#[test]
fn memory_of_many_forks_grows_with_their_number_and_not_with_its_square() {
    let cost = |forks: u64| {
        let mut simulation = simulation_on("8x(16c 128G)", Release::REFERENCE);
        play(&mut simulation, &[("parent", start("default")), ("parent", allocate("heap", 64))]);
        let part = |first| Act::Touch(Part { region: "heap".to_owned(), pages: Some(first..first + 1024) });
        for fork in 0..forks {
            let child = format!("child {fork}");
            let steps = [
                ("parent", Act::Fork { child: child.clone() }),
                (&child, part(fork << 10)),
                ("parent", part(fork << 11)),
            ];
            play(&mut simulation, &steps);
        }
        let extents = simulation.objects.values().flat_map(|object| &object.extents);
        extents.map(|extent| extent.holders.range_count() as u64).sum::<u64>()
    };
    let (few, many) = (cost(50), cost(200));
    assert!(few >= 100 && many <= 5 * few, "{few} and {many} ranges of programs");
}
