//! Programs that fork, beside a plain list of copies of pages with who has each; and the steps of many forks.

use proptest::prelude::{Strategy, prop_assert_eq, proptest};

use super::*;

const PAGES: u64 = 12;

/// An act of one of the programs that run; ranges are in pages of the memory.
#[derive(Clone, Debug)]
enum Deed {
    Fork,
    Touch(Range<u64>),
    Free,
    End,
    RunOn(u32),
    Move(Range<u64>, u32, bool),
    Bind(Range<u64>, u32, bool),
    Migrate(u32, u32),
    Join(u8),
}

/// A copy of a page: where it is, and who pays for it.
#[derive(Clone, Debug)]
struct Copied {
    node: u32,
    group: Option<u8>,
}

/// A program: its copy of each page, the policy that each page has, and where it runs.
#[derive(Clone, Debug, Default)]
struct Member {
    is_mapped: bool,
    pages: BTreeMap<u64, usize>,
    bound: BTreeMap<u64, u32>,
    node: u32,
    group: Option<u8>,
}

/// The plain list.
#[derive(Default)]
struct Naive {
    members: BTreeMap<u32, Member>,
    copies: Vec<Copied>,
}

impl Naive {
    fn holders(&self, copy: usize) -> Vec<u32> {
        let has = |member: &&u32| self.members[*member].pages.values().any(|own| *own == copy);
        self.members.keys().filter(has).copied().collect()
    }

    /// Moves copies of a program in a range; without `all` those alone that no one else has.
    fn relocate(&mut self, id: u32, range: &Range<u64>, all: bool, to: impl Fn(u32) -> u32) {
        let pages: Vec<usize> = self.members[&id].pages.range(range.clone()).map(|(_, copy)| *copy).collect();
        for copy in pages {
            if all || self.holders(copy) == [id] {
                self.copies[copy].node = to(self.copies[copy].node);
            }
        }
    }

    fn play(&mut self, id: u32, deed: &Deed, child: u32) {
        let own = self.members.get_mut(&id).unwrap();
        match deed {
            Deed::Fork => {
                let forked = own.clone();
                self.members.insert(child, forked);
            }
            Deed::Touch(_) | Deed::Free | Deed::Move(..) | Deed::Bind(..) if !own.is_mapped => {}
            Deed::Touch(range) => {
                for page in range.clone() {
                    let copy = self.members[&id].pages.get(&page).copied();
                    if copy.is_some_and(|copy| self.holders(copy) == [id]) {
                        continue;
                    }
                    let own = self.members.get_mut(&id).unwrap();
                    let node = own.bound.get(&page).copied().unwrap_or(own.node);
                    own.pages.insert(page, self.copies.len());
                    self.copies.push(Copied { node, group: own.group });
                }
            }
            Deed::Free => {
                *own = Member { node: own.node, group: own.group, ..Member::default() };
            }
            Deed::End => {
                self.members.remove(&id);
            }
            Deed::RunOn(node) => own.node = *node,
            Deed::Move(range, node, all) => self.relocate(id, range, *all, |_| *node),
            Deed::Bind(range, node, all) => {
                own.bound.extend(range.clone().map(|page| (page, *node)));
                self.relocate(id, range, *all, |_| *node);
            }
            Deed::Migrate(old, new) => {
                self.relocate(id, &(0..PAGES), true, |node| if node == *old { *new } else { node });
            }
            Deed::Join(group) => own.group = Some(*group),
        }
    }

    /// Pages of a program by node: all, and those that one who started earlier has too.
    fn placement(&self, id: u32) -> Placement {
        let mut placement = Placement::default();
        for copy in self.members[&id].pages.values() {
            let node = NodeId::new(self.copies[*copy].node);
            *placement.nodes.entry(node).or_default() += 1;
            if self.holders(*copy)[0] != id {
                *placement.common.entry(node).or_default() += 1;
            }
        }
        placement
    }

    /// Pages that are there, each once, by a group or in all.
    fn there(&self, group: Option<u8>) -> u64 {
        let is_there = |copy: &usize| !self.holders(*copy).is_empty();
        let of_group = |copy: &usize| group.is_none() || self.copies[*copy].group == group;
        (0..self.copies.len()).filter(is_there).filter(of_group).count() as u64
    }
}

fn deeds() -> impl Strategy<Value = Deed> {
    let range = || (0..PAGES, 1..=PAGES).prop_map(|(first, count)| first..(first + count).min(PAGES));
    let node = || 0u32..3;
    let all = proptest::prelude::any::<bool>;
    proptest::prop_oneof![
        4 => proptest::strategy::Just(Deed::Fork),
        8 => range().prop_map(Deed::Touch),
        1 => proptest::strategy::Just(Deed::Free),
        2 => proptest::strategy::Just(Deed::End),
        1 => node().prop_map(Deed::RunOn),
        1 => (range(), node(), all()).prop_map(|(range, node, all)| Deed::Move(range, node, all)),
        1 => (range(), node(), all()).prop_map(|(range, node, all)| Deed::Bind(range, node, all)),
        1 => (node(), node()).prop_map(|(old, new)| Deed::Migrate(old, new)),
        1 => (0u8..2).prop_map(Deed::Join),
    ]
}

fn act(deed: &Deed, child: u32) -> Act {
    let part = |range: &Range<u64>| Part { region: "heap".to_owned(), pages: Some(range.clone()) };
    match deed {
        Deed::Fork => Act::Fork { child: child.to_string() },
        Deed::Touch(range) => Act::Touch(part(range)),
        Deed::Free => free("heap"),
        Deed::End => Act::End,
        Deed::RunOn(node) => Act::RunOn(NodeId::new(*node)),
        Deed::Move(range, node, all) => {
            Act::MovePages { part: part(range), node: NodeId::new(*node), all: *all }
        }
        Deed::Bind(range, node, all) => Act::Bind {
            part: part(range),
            policy: format!("bind:{node}").parse().unwrap(),
            flags: Flags { strict: false, moves: true, moves_all: *all },
        },
        Deed::Migrate(old, new) => Act::Migrate { old: NodeSet::from([*old]), new: NodeSet::from([*new]) },
        Deed::Join(group) => Act::Join { group: format!("g{group}") },
    }
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 300, ..Default::default() })]

    #[test]
    fn every_copy_is_with_those_who_have_it(
        has_other in proptest::prelude::any::<bool>(), steps in proptest::collection::vec((0usize..8, deeds()), 0..50),
    ) {
        let mut simulation = simulation_on("3x(1c 1G); dist=21", Release::REFERENCE);
        let free = |simulation: &Simulation| simulation.memory().zones().iter().map(|zone| zone.free).sum::<u64>();
        let all = free(&simulation);
        for group in ["g0", "g1"] {
            let limits = GroupLimits::default();
            play(&mut simulation, &[("", Act::Limit { group: group.to_owned(), parent: None, limits })]);
        }
        let heap = |region: &str| Act::Map(Mapping { pages: PAGES, ..mapping(region, 0, Backing::Small) });
        play(&mut simulation, &[("0", start("default"))]);
        if has_other {
            play(&mut simulation, &[("0", heap("other")), ("0", Act::Touch(whole("other")))]);
            play(&mut simulation, &[("0", super::free("other"))]);
        }
        play(&mut simulation, &[("0", heap("heap"))]);
        let mut naive = Naive::default();
        naive.members.insert(0, Member { is_mapped: true, ..Member::default() });
        let mut told = BTreeMap::new();
        for (number, (who, deed)) in steps.into_iter().enumerate() {
            let running: Vec<u32> = naive.members.keys().copied().collect();
            let Some(id) = running.get(who % running.len().max(1)).copied() else { break };
            let child = number as u32 + 1;
            if let Ok(step) = simulation.play(&id.to_string(), &act(&deed, child)) {
                for (owner, placement) in step.changed {
                    match placement {
                        Some(placement) => told.insert(owner, placement),
                        None => told.remove(&owner),
                    };
                }
            }
            naive.play(id, &deed, child);
            let expected: BTreeMap<Owner, Placement> =
                naive.members.keys().map(|id| (Owner::Program(id.to_string()), naive.placement(*id))).collect();
            let placements = simulation.placements();
            prop_assert_eq!(&placements, &expected, "{:?}", deed);
            told.entry(Owner::Program("0".to_owned())).or_default();
            told.retain(|owner, _| placements.contains_key(owner));
            prop_assert_eq!(&told, &expected, "{:?}", deed);
            prop_assert_eq!(all - free(&simulation), naive.there(None), "{:?}", deed);
            for (group, state) in (0u8..2).zip(simulation.groups().values()) {
                prop_assert_eq!(state.memory, naive.there(Some(group)), "{:?}", deed);
            }
        }
    }
}

/// Steps of many forks, each with what follows it.
fn steps_of(forks: u64, way: &Way) -> u64 {
    let mut simulation = simulation_on("8x(16c 128G)", Release::REFERENCE);
    play(&mut simulation, &[("0", start("default")), ("0", allocate("heap", 64))]);
    holders::steps::take();
    (1..=forks).for_each(|child| {
        for (program, act) in way(child) {
            play(&mut simulation, &[(&program.to_string(), act)]);
        }
    });
    holders::steps::take()
}

/// The acts of the fork of a child and of what follows it, each with its program.
type Way = dyn Fn(u64) -> Vec<(u64, Act)>;

fn fork(child: u64) -> Act {
    Act::Fork { child: child.to_string() }
}

/// Writes to a few pages from one on.
fn touch(first: u64) -> Act {
    Act::Touch(Part { region: "heap".to_owned(), pages: Some(first..first + 4) })
}

#[test]
fn twice_as_many_forks_cost_twice_as_many_steps() {
    let ways: [(&str, &Way); 7] = [
        ("children of one, and both write to other parts", &|child| {
            vec![(0, fork(child)), (child, touch(8 * child)), (0, touch(16 * child))]
        }),
        ("children of one, and both write to one part", &|child| {
            vec![(0, fork(child)), (child, touch(0)), (0, touch(0))]
        }),
        ("children of one that write and end", &|child| {
            vec![(0, fork(child)), (child, touch(8 * child)), (child, Act::End)]
        }),
        ("a chain that writes to other parts", &|child| {
            vec![(child - 1, fork(child)), (child, touch(8 * child))]
        }),
        ("a chain whose programs write to one part, and end", &|child| {
            vec![(child - 1, fork(child)), (child, touch(0)), (child - 1, Act::End)]
        }),
        ("a binary tree that writes to other parts", &|child| {
            vec![((child - 1) / 2, fork(child)), (child, touch(8 * child))]
        }),
        ("a binary tree whose programs write to one part, and end", &|child| {
            let parent = (child - 1) / 2;
            let mut acts = vec![(parent, fork(child)), (child, touch(0))];
            // Both its children are born.
            acts.extend((child % 2 == 0).then_some((parent, Act::End)));
            acts
        }),
    ];
    for (name, way) in ways {
        let (few, many) = (steps_of(512, way), steps_of(1024, way));
        assert!(few >= 512 && 10 * many <= 22 * few, "{name}: {few} and {many} steps");
    }
}
