//! The same calls as runs and page by page: every page is on the same node, and every call has the same
//! answer.

use crate::walk::HUGE_ORDER;
use nodewise_machine::PolicyMode;
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, proptest};

use super::*;
use crate::hugetlb;
use crate::migrate::Present;
use crate::oracle::task::Surroundings;
use crate::oracle::task::Task;
use crate::oracle::task::family::{Family, Member};
use crate::oracle::task::pooled::Pooled;
use crate::policy::set::Policy;

/// Pages in a huge one.
const HUGE: u64 = 1 << HUGE_ORDER;

const MACHINE: &str = "2x(2x(1c 512M)); dist=11,20";
/// The pages of the mapping: some small ones, or two huge ones.
const SMALL: u64 = 48;
const LARGE: u64 = 2 * HUGE;

/// A call, in pages from the beginning of the mapping.
#[derive(Clone, Debug)]
enum Call {
    Touch(u64, u64),
    SetPolicy(MemPolicy),
    Bind(u64, u64, MemPolicy, Present),
    SetHome(u64, u64, NodeId),
    MovePages(u64, u64, NodeId),
    Migrate(NodeSet, NodeSet),
    RunOn(NodeId),
    Restrict(NodeSet),
}

fn four_nodes() -> impl Strategy<Value = NodeSet> {
    (0u32..16).prop_map(|bits| (0..4).filter(|node| bits >> node & 1 == 1).map(NodeId::new).collect())
}

fn calls(pages: u64, restricts: bool) -> impl Strategy<Value = Call> {
    let range =
        move || (0..pages, 1..=pages).prop_map(move |(first, count)| (first, (first + count).min(pages)));
    let node = || (0u32..5).prop_map(NodeId::new);
    let policy =
        || (0usize..7, four_nodes()).prop_map(|(mode, nodes)| MemPolicy::new(PolicyMode::ALL[mode], nodes));
    let present = proptest::prop_oneof![Just(Present::Stay), Just(Present::Refuse), Just(Present::Move)];
    let set = || four_nodes().prop_filter("some nodes", |nodes| !nodes.is_empty());
    proptest::prop_oneof![
        4 => range().prop_map(|(first, end)| Call::Touch(first, end)),
        1 => policy().prop_map(Call::SetPolicy),
        3 => (range(), policy(), present).prop_map(|((first, end), policy, present)| Call::Bind(first, end, policy, present)),
        1 => (range(), node()).prop_map(|((first, end), node)| Call::SetHome(first, end, node)),
        1 => (range(), node()).prop_map(|((first, end), node)| Call::MovePages(first, end, node)),
        1 => (four_nodes(), four_nodes()).prop_map(|(old, new)| Call::Migrate(old, new)),
        1 => (0u32..4).prop_map(|node| Call::RunOn(NodeId::new(node))),
        u32::from(restricts) => set().prop_map(Call::Restrict),
    ]
}

fn act(call: &Call) -> Act {
    let part = |first: &u64, end: &u64| Part { region: "heap".to_owned(), pages: Some(*first..*end) };
    match call {
        Call::Touch(first, end) => Act::Touch(part(first, end)),
        Call::SetPolicy(policy) => Act::SetPolicy(policy.clone()),
        Call::Bind(first, end, policy, present) => Act::Bind {
            part: part(first, end),
            policy: policy.clone(),
            flags: Flags {
                strict: *present == Present::Refuse,
                moves: *present == Present::Move,
                moves_all: false,
            },
        },
        Call::SetHome(first, end, node) => Act::SetHome { part: part(first, end), node: *node },
        Call::MovePages(first, end, node) => {
            Act::MovePages { part: part(first, end), node: *node, all: false }
        }
        Call::Migrate(old, new) => Act::Migrate { old: old.clone(), new: new.clone() },
        Call::RunOn(node) => Act::RunOn(*node),
        Call::Restrict(nodes) => Act::Restrict(nodes.clone()),
    }
}

/// The same call page by page; huge pages are whole.
fn call(task: &mut Task, call: &Call, first_page: u64, grain: u64, memory: &mut Memory) -> Option<Errno> {
    let pages =
        |first: &u64, end: &u64| first_page + first - first % grain..first_page + end.next_multiple_of(grain);
    match call {
        Call::Touch(first, end) => {
            for page in pages(first, end) {
                task.touch(page, memory);
            }
            None
        }
        Call::SetPolicy(policy) => task.set_policy(policy).err(),
        Call::Bind(first, end, policy, present) => {
            task.bind(pages(first, end), policy, *present, memory).err()
        }
        Call::SetHome(first, end, node) => task.set_home(pages(first, end), *node).err(),
        Call::MovePages(first, end, node) => {
            let mut pages = pages(first, end).step_by(grain as usize);
            pages.find_map(|page| task.move_page(page, *node, memory).err())
        }
        Call::Migrate(old, new) => task.migrate_pages(old, new, memory).err(),
        Call::RunOn(node) => {
            task.run_on(*node);
            None
        }
        Call::Restrict(nodes) => {
            task.restrict(nodes, memory);
            None
        }
    }
}

fn pair(release: Release) -> (Simulation, Task, Memory) {
    let machine = nodewise_machine::spec::machine(MACHINE).unwrap();
    let memory = Memory::from_machine(&machine, BuiltAt::Boot, release);
    let weights = Weights::from([(NodeId::new(1), 3), (NodeId::new(2), 2)]);
    let around = Surroundings { weights: weights.clone(), ..Surroundings::new(&machine, release) };
    let mut simulation = Simulation::new(memory.clone(), weights, 1024, release).on(&machine);
    play(&mut simulation, &[("a", start("default"))]);
    (simulation, Task::new(around, NodeId::new(0)), memory)
}

/// The node of each page of a program's mapping, by runs.
fn nodes_of(simulation: &Simulation, name: &str) -> Vec<Option<NodeId>> {
    let id = simulation.names[name];
    let region = &simulation.programs[&id].regions["heap"];
    let extents = &simulation.objects[&region.object].extents;
    let node = |page: u64| {
        let own = extents.iter().find(|extent| {
            extent.holders.contains(id, &simulation.family) && extent.run.pages.contains(&page)
        })?;
        let is_it = |held: &&run::Held| own.run.held.count(&(page..page + 1), |other| other == *held) == 1;
        own.run.held.values().find(is_it)?.node()
    };
    region.pages.clone().map(node).collect()
}

fn map(simulation: &mut Simulation, backing: Backing, pages: u64) -> u64 {
    let mapping = Mapping { region: "heap".to_owned(), pages, backing, policy: None, first_page: None };
    play(simulation, &[("a", Act::Map(mapping))]);
    simulation.programs[&0].regions["heap"].pages.start
}

/// Plays calls both ways.
fn check(backing: &Backing, script: &[Call]) -> Result<(), proptest::test_runner::TestCaseError> {
    let (mut simulation, mut task, mut memory) = pair(Release::REFERENCE);
    let (pages, grain) = if *backing == Backing::Huge { (LARGE, HUGE) } else { (SMALL, 1) };
    let first = map(&mut simulation, backing.clone(), pages);
    match backing {
        Backing::Huge => task.map_huge(first..first + pages),
        Backing::File(_) => task.map_file(first..first + pages, first, 0),
        _ => task.map(first..first + pages),
    }
    for one in script {
        let step = simulation.play("a", &act(one)).unwrap();
        let errno = call(&mut task, one, first, grain, &mut memory);
        prop_assert_eq!(step.refused, errno, "{:?}", one);
        let expected: Vec<Option<NodeId>> = (first..first + pages).map(|page| task.node_of(page)).collect();
        prop_assert_eq!(nodes_of(&simulation, "a"), expected, "{:?}", one);
        prop_assert_eq!(simulation.memory().zones(), memory.zones(), "{:?}", one);
        prop_assert_eq!(simulation.memory().counters(), memory.counters(), "{:?}", one);
    }
    Ok(())
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 200, ..Default::default() })]

    #[test]
    fn small_pages_are_where_they_are_page_by_page(script in proptest::collection::vec(calls(SMALL, true), 0..14)) {
        check(&Backing::Small, &script)?;
    }

    #[test]
    fn pages_of_a_file_are_where_they_are_page_by_page(script in proptest::collection::vec(calls(SMALL, true), 0..14)) {
        check(&Backing::File("shm".to_owned()), &script)?;
    }

    #[test]
    fn pages_of_threads_are_where_they_are_page_by_page(
        script in proptest::collection::vec((any::<bool>(), 0usize..4, calls(SMALL, true)), 0..14),
    ) {
        let (mut simulation, mut task, mut memory) = pair(Release::REFERENCE);
        let first = map(&mut simulation, Backing::Small, SMALL);
        task.map(first..first + SMALL);
        let mut names = vec!["a".to_owned()];
        for (starts, thread, one) in script {
            let thread = thread % names.len();
            prop_assert_eq!(task.continue_as(thread), true);
            if starts {
                let name = format!("t{}", task.start_thread());
                let act = Act::StartThread { name: name.clone() };
                prop_assert_eq!(simulation.play(&names[thread], &act), Ok(Step::default()));
                names.push(name);
            }
            let step = simulation.play(&names[thread], &act(&one)).unwrap();
            let errno = call(&mut task, &one, first, 1, &mut memory);
            prop_assert_eq!(step.refused, errno, "{:?}", one);
            let expected: Vec<Option<NodeId>> =
                (first..first + SMALL).map(|page| task.node_of(page)).collect();
            prop_assert_eq!(nodes_of(&simulation, "a"), expected, "{:?}", one);
            prop_assert_eq!(simulation.memory().zones(), memory.zones(), "{:?}", one);
            prop_assert_eq!(simulation.memory().counters(), memory.counters(), "{:?}", one);
        }
    }

    #[test]
    fn a_family_has_its_pages_where_it_has_them_page_by_page(
        before in proptest::collection::vec(calls(SMALL, false), 0..5),
        writes in proptest::collection::vec((any::<bool>(), 0..SMALL, 1..SMALL, 0u32..4), 0..8),
    ) {
        let (mut simulation, mut task, mut memory) = pair(Release::REFERENCE);
        let first = map(&mut simulation, Backing::Small, SMALL);
        task.map(first..first + SMALL);
        for one in &before {
            simulation.play("a", &act(one)).unwrap();
            call(&mut task, one, first, 1, &mut memory);
        }
        let mut family = Family::fork(task);
        play(&mut simulation, &[("a", Act::Fork { child: "b".to_owned() })]);
        for (childs, from, count, node) in writes {
            let (name, member) = if childs { ("b", Member::Child) } else { ("a", Member::Parent) };
            let node = NodeId::new(node);
            let to = (from + count).min(SMALL);
            let touch = Act::Touch(Part { region: "heap".to_owned(), pages: Some(from..to) });
            play(&mut simulation, &[(name, Act::RunOn(node)), (name, touch)]);
            family.call(member, |task| task.run_on(node));
            for page in first + from..first + to {
                family.write(member, page, &mut memory);
            }
            for (name, member) in [("a", Member::Parent), ("b", Member::Child)] {
                let expected: Vec<Option<NodeId>> =
                    (first..first + SMALL).map(|page| family.member(member).node_of(page)).collect();
                prop_assert_eq!(nodes_of(&simulation, name), expected, "{}", name);
            }
            prop_assert_eq!(simulation.memory().zones(), memory.zones());
        }
        family.end(&mut memory);
        play(&mut simulation, &[("b", Act::End)]);
        prop_assert_eq!(simulation.memory().zones(), memory.zones());
    }
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 40, ..Default::default() })]

    #[test]
    fn huge_pages_are_where_they_are_page_by_page(script in proptest::collection::vec(calls(LARGE, true), 0..10)) {
        check(&Backing::Huge, &script)?;
    }
}

proptest! {
    #[test]
    fn a_pool_grows_and_shrinks_as_it_does_page_by_page(sizes in proptest::collection::vec(0u64..200, 1..6)) {
        let (mut simulation, ..) = pair(Release::REFERENCE);
        let mut pool = hugetlb::Pool::new(&simulation.memory().nodes());
        for pages in sizes {
            play(&mut simulation, &[("a", Act::ResizePool { pages })]);
            pool.resize(pages, |_| true);
            let free: BTreeMap<NodeId, u64> = simulation.memory().nodes().iter().map(|node| (node, simulation.pool.free.free_of(node))).collect();
            prop_assert_eq!(&free, pool.free());
        }
    }

    #[test]
    fn a_pool_in_use_grows_and_shrinks_as_it_does_page_by_page(
        steps in proptest::collection::vec((0u8..4, 0u64..12), 1..24),
    ) {
        let (mut simulation, _, memory) = pair(Release::REFERENCE);
        let nodes = memory.nodes();
        let mut pool = hugetlb::Pool::new(&nodes);
        let mut regions: Vec<(String, u64, Vec<NodeId>)> = Vec::new();
        for (number, (kind, pages)) in steps.into_iter().enumerate() {
            let act = match (kind, regions.first().map(|(name, ..)| name.clone())) {
                (0 | 1, _) if pages > 0 => {
                    let region = format!("region {number}");
                    let mapping = Mapping { region: region.clone(), pages: pages * HUGE, backing: Backing::Pool, policy: None, first_page: None };
                    let reserved = pool.reserve(pages, &Policy::DEFAULT, &nodes);
                    let touched = if kind == 0 { pages } else { 0 };
                    if reserved.is_ok() {
                        let fault = |page| pool.fault(&Policy::DEFAULT, &Weights::new(), page, NodeId::new(0), memory.orders(), &nodes);
                        let had: Option<Vec<NodeId>> = (0..touched).map(fault).collect();
                        regions.push((region, pages - touched, had.unwrap()));
                    }
                    let act = if kind == 0 { Act::Allocate(mapping) } else { Act::Map(mapping) };
                    prop_assert_eq!(simulation.play("a", &act).unwrap().refused, reserved.err());
                    continue;
                }
                (2, Some(region)) => {
                    let (_, reserved, had) = regions.remove(0);
                    had.into_iter().for_each(|node| pool.release(node));
                    pool.unreserve(reserved);
                    Act::Free { region }
                }
                _ => {
                    pool.resize(pages, |_| true);
                    Act::ResizePool { pages }
                }
            };
            play(&mut simulation, &[("a", act)]);
            let free: BTreeMap<NodeId, u64> = nodes.iter().map(|node| (node, simulation.pool.free.free_of(node))).collect();
            prop_assert_eq!(&free, pool.free(), "{}", number);
        }
        // What is not in the pool is ordinary memory again. A free page can stay in it as surplus.
        play(&mut simulation, &[("a", Act::End), ("", Act::ResizePool { pages: 0 })]);
        for node in &nodes {
            let all = simulation.memory().free_of(node) + simulation.pool.free.free_of(node) * HUGE;
            prop_assert_eq!(all, memory.free_of(node));
        }
    }

    #[test]
    fn pages_of_one_node_move_in_a_pool_as_they_do_page_by_page(
        filled in 0u64..14,
        smaller in 0u64..14,
        (first, others, mode, bits) in (0u32..4, 0u64..4, 0usize..5, 0u32..16),
    ) {
        let (mut simulation, mut task, memory) = pair(Release::REFERENCE);
        let mut pool = hugetlb::Pool::new(&memory.nodes());
        pool.resize(filled, |_| true);
        play(&mut simulation, &[("", Act::ResizePool { pages: filled }), ("b", start("local"))]);
        // Another program has some of node 0.
        let others = others.min(pool.free_on(&NodeSet::from([0])));
        let mapping = |name: &str, pages| Mapping { region: name.to_owned(), pages: pages * HUGE, backing: Backing::Pool, policy: None, first_page: None };
        if others > 0 {
            play(&mut simulation, &[("b", Act::Allocate(mapping("b", others)))]);
            pool.reserve(others, &Policy::DEFAULT, &memory.nodes()).unwrap();
            for page in 0..others {
                pool.fault(&Policy::DEFAULT, &Weights::new(), page, NodeId::new(0), memory.orders(), &memory.nodes());
            }
        }
        // All free pages of one node.
        let own = NodeId::new(first);
        let pages = pool.free_on(&NodeSet::from_iter([own]));
        let bind = MemPolicy::new(PolicyMode::Bind, NodeSet::from_iter([own]));
        play(&mut simulation, &[("a", Act::SetPolicy(bind.clone()))]);
        task.set_policy(&bind).unwrap();
        if pages == 0 {
            return Ok(());
        }
        play(&mut simulation, &[("a", Act::Allocate(mapping("heap", pages)))]);
        pool.reserve(pages, &Policy::DEFAULT, &memory.nodes()).unwrap();
        let mut mapped = Pooled::map(hugetlb::Pool::new(&memory.nodes()), 0, &task).unwrap();
        mapped.take_over(pool, pages as usize);
        for page in 0..pages as usize {
            prop_assert_eq!(mapped.touch(page, &task, &memory), Some(own));
        }
        let smaller = smaller.min(filled);
        mapped.resize(smaller);
        play(&mut simulation, &[("", Act::ResizePool { pages: smaller })]);
        let nodes: NodeSet = (0..4).filter(|node| bits >> node & 1 == 1).map(NodeId::new).collect();
        let modes = [PolicyMode::Local, PolicyMode::Local, PolicyMode::Bind, PolicyMode::Preferred, PolicyMode::PreferredMany];
        let policy = MemPolicy::new(modes[mode], if mode < 2 { NodeSet::new() } else { nodes });
        let errno = mapped.bind(&policy, Present::Move, &task, &memory).err();
        let step = simulation.play("a", &act(&Call::Bind(0, pages * HUGE, policy.clone(), Present::Move))).unwrap();
        prop_assert_eq!(step.refused, errno, "{}", policy);
        prop_assert_eq!(
            nodes_of(&simulation, "a").into_iter().step_by(HUGE as usize).collect::<Vec<_>>(),
            mapped.nodes(),
            "{}", policy
        );
        let free: BTreeMap<NodeId, u64> = memory.nodes().iter().map(|node| (node, simulation.pool.free.free_of(node))).collect();
        prop_assert_eq!(&free, mapped.pool().free(), "{}", policy);
    }

    #[test]
    fn pages_of_a_pool_are_where_they_are_page_by_page(
        filled in 0u64..12,
        script in proptest::collection::vec(calls(4 * HUGE, false), 0..10),
    ) {
        let (mut simulation, mut task, memory) = pair(Release::REFERENCE);
        play(&mut simulation, &[("a", Act::ResizePool { pages: filled })]);
        let mut pool = hugetlb::Pool::new(&memory.nodes());
        pool.resize(filled, |_| true);
        let mapping = Mapping { region: "heap".to_owned(), pages: 4 * HUGE, backing: Backing::Pool, policy: None, first_page: None };
        let step = simulation.play("a", &Act::Map(mapping)).unwrap();
        let mapped = Pooled::map(pool, 4, &task);
        prop_assert_eq!(step.refused, mapped.as_ref().err().copied());
        let Ok(mut mapped) = mapped else { return Ok(()) };
        for one in &script {
            // The mapping as a whole, as the other way takes it.
            let one = match one.clone() {
                // Which page gets which of the others' places is reported for moves to one node only.
                Call::Bind(_, _, policy, Present::Move) => Call::Bind(0, 4 * HUGE, policy, Present::Stay),
                Call::Bind(_, _, policy, present) => Call::Bind(0, 4 * HUGE, policy, present),
                Call::SetHome(..) => continue,
                other => other,
            };
            let step = simulation.play("a", &act(&one)).unwrap();
            let pages = |first: &u64, end: &u64| (first / HUGE) as usize..end.div_ceil(HUGE) as usize;
            let errno = match &one {
                Call::Touch(first, end) => {
                    let lost = pages(first, end).any(|page| mapped.touch(page, &task, &memory).is_none());
                    prop_assert_eq!(step.killed.len(), usize::from(lost));
                    if lost {
                        return Ok(());
                    }
                    None
                }
                Call::Bind(_, _, policy, present) => mapped.bind(policy, *present, &task, &memory).err(),
                Call::MovePages(first, end, node) => pages(first, end).find_map(|page| mapped.move_page(page, *node, &task, &memory).err()),
                Call::Migrate(old, new) => mapped.migrate_pages(old, new, &task, &memory).err(),
                other => call(&mut task, other, 0, HUGE, &mut memory.clone()),
            };
            prop_assert_eq!(step.refused, errno, "{:?}", one);
            prop_assert_eq!(
                nodes_of(&simulation, "a").into_iter().step_by(HUGE as usize).collect::<Vec<_>>(),
                mapped.nodes(),
                "{:?}", one
            );
        }
    }
}
