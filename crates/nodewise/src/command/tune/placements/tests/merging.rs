//! Placements that are run once because they are the same, held against the model of the kernel: what
//! `Placement::within` calls equal must put pages in the same places, on any machine.
//!
//! Not to the page: whether a request goes on at a node's low watermark or at its minimum differs by half a
//! percent of a node that is full, and turns of interleaving may end in another order.

use nodewise_machine::placement::{Placement, Scope};
use nodewise_machine::{Machine, MemPolicy, ModeFlags, NodeId, NodeSet, PolicyMode, spec};
use nodewise_model::policy::interleave::InterleavePosition;
use nodewise_model::policy::set;
use nodewise_model::policy::weights;
use nodewise_model::walk::{Class, Request};
use nodewise_model::zonelist::BuiltAt;
use nodewise_model::{Memory, Policy, Release};
use proptest::prelude::{ProptestConfig, Strategy, prop, prop_assert, proptest};

/// Pages by node.
type Pages = Vec<(NodeId, u64)>;

/// The outcome of a program that touches this share of the machine's memory, from each node with CPUs:
/// its pages by node. `None` where the kernel refuses the policy.
fn pages(machine: &Machine, policy: Option<&MemPolicy>, percent: u64) -> Option<Vec<Pages>> {
    let release = Release::from_kernel(machine.kernel.as_ref());
    let allowed = Scope::from_machine(machine).memory_nodes;
    let policy = match policy {
        None => Policy::DEFAULT,
        Some(policy) => {
            Policy::from_mem_policy(policy, set::Scope { allowed: &allowed, max_nodes: 1024, release })
                .ok()?
        }
    };
    let weights = weights::in_force(machine, release);
    let memory = Memory::from_machine(machine, BuiltAt::Boot, release);
    let all: u64 = allowed.iter().map(|node| memory.free_of(node)).sum();
    let played = |cpu_node: NodeId| {
        let request = Request {
            policy: &policy,
            weights: &weights,
            cpu_node,
            allowed: &allowed,
            pages: all * percent / 100,
            order: 0,
            place: InterleavePosition::Address(0),
            class: Class::User,
        };
        let mut nodes = memory.clone().allocate(&request).nodes();
        nodes.sort_unstable();
        nodes
    };
    Some(Scope::from_machine(machine).cpus_of.keys().copied().map(played).collect())
}

/// Machines of up to four nodes, with and without CPUs, memory, several distances and weights.
fn any_machine() -> impl Strategy<Value = Machine> {
    let node = (prop::bool::ANY, 0u32..4).prop_map(|(cpus, gib)| match (cpus, gib) {
        (true, 0) => "(2c)".to_owned(),
        (true, gib) => format!("(2c {gib}G)"),
        (false, gib) => format!("({}G)", gib + 1),
    });
    let others = prop::collection::vec(node, 0..4);
    (others, 11u32..40, prop::collection::vec(1u32..4, 4), prop::bool::ANY).prop_map(
        |(others, distance, weights, with_weights)| {
            let nodes = others.len() + 1;
            let of_node = |node: usize| format!("{node}:{}", weights[node]);
            let weights = (0..nodes).map(of_node).collect::<Vec<_>>().join(",");
            let weights = if with_weights { format!("; weights={weights}") } else { String::new() };
            let distance = if nodes > 1 { format!("; dist={distance}") } else { String::new() };
            let text = format!("(2c 2G) {}{distance}{weights}; kernel=6.12", others.join(" "));
            spec::machine(text.trim()).unwrap_or_else(|error| panic!("{text}: {error}"))
        },
    )
}

fn any_policy() -> impl Strategy<Value = MemPolicy> {
    let flags = prop::sample::select(vec![ModeFlags::NONE, ModeFlags::STATIC_NODES]);
    let nodes = prop::collection::vec(0u32..4, 0..4);
    (prop::sample::select(PolicyMode::ALL.to_vec()), flags, nodes).prop_map(|(mode, flags, nodes)| {
        let nodes = nodes.into_iter().map(NodeId::new).collect();
        let without = matches!(mode, PolicyMode::Default | PolicyMode::Local);
        MemPolicy { mode, flags, nodes: if without { NodeSet::new() } else { nodes } }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_placement_and_its_simplest_form_put_every_page_in_the_same_place(
        machine in any_machine(), policy in any_policy(), percent in 1u64..130,
    ) {
        let placement = Placement { policy: Some(policy), ..Placement::DEFAULT };
        let simple = placement.within(&Scope::from_machine(&machine));
        // What the kernel refuses puts no page anywhere.
        if let Some(placed) = pages(&machine, placement.policy.as_ref(), percent) {
            let simply = pages(&machine, simple.policy.as_ref(), percent).unwrap_or_default();
            let apart = farthest(&placed, &simply);
            prop_assert!(apart <= SAME, "{:?} and {:?} are {} apart", placement.policy, simple.policy, apart);
        }
    }
}

/// The largest share of all pages that is not a difference.
const SAME: f64 = 0.01;

/// The largest share of the pages by which two outcomes differ on a node.
fn farthest(one: &[Pages], other: &[Pages]) -> f64 {
    let on = |pages: &[(NodeId, u64)], node| {
        pages.iter().find(|(there, _)| *there == node).map_or(0, |(_, pages)| *pages)
    };
    let of_cpu = |(one, other): (&Pages, &Pages)| {
        let all: u64 = one.iter().map(|(_, pages)| pages).sum();
        let nodes = one.iter().chain(other).map(|(node, _)| *node);
        let most = nodes.map(|node| on(one, node).abs_diff(on(other, node))).max().unwrap_or(0);
        most as f64 / all.max(1) as f64
    };
    assert_eq!(one.len(), other.len());
    one.iter().zip(other).map(of_cpu).fold(0.0, f64::max)
}

/// Two policies that are run both, and a share of the memory for which they differ.
fn differ(machine: &str, one: &str, other: &str, percent: u64) {
    let machine = spec::machine(&format!("{machine}; kernel=6.12")).unwrap();
    let scope = Scope::from_machine(&machine);
    let [one, other] = [one, other].map(|text| {
        let policy: MemPolicy = text.parse().unwrap();
        Placement { policy: Some(policy), ..Placement::DEFAULT }.within(&scope)
    });
    assert_ne!(one, other);
    let placed = [one, other].map(|placement| pages(&machine, placement.policy.as_ref(), percent).unwrap());
    assert!(farthest(&placed[0], &placed[1]) > SAME, "{placed:?}");
}

#[test]
fn placements_that_are_both_run_differ_somewhere() {
    differ("2x(2c 2G)", "default", "interleave:0-1", 10);
    differ("2x(2c 2G)", "default", "prefer:1", 10);
    differ("2x(2c 2G)", "bind:0", "prefer:0", 80);
    differ("2x(2c 2G)", "bind:0-1", "interleave:0-1", 10);
    differ("3x(2c 2G)", "interleave:0-1", "interleave:0-2", 10);
    differ("2x(2c 2G); weights=0:3,1:1", "interleave:0-1", "weighted interleave:0-1", 10);
    differ("2x(2c 2G) (2G)", "prefer (many):0-1", "bind:0-1", 90);
    differ("3x(2c 2G); dist=10,20,30/20,10,40/30,25,10", "prefer (many):2", "prefer:2", 50);
}

#[test]
fn equal_weights_and_one_node_are_merged_for_the_model_too() {
    let machine = spec::machine("2x(2c 2G); weights=0:2,1:2; kernel=6.12").unwrap();
    let of = |text: &str| pages(&machine, Some(&text.parse().unwrap()), 40);
    let same = |one: &str, other: &str| farthest(&of(one).unwrap(), &of(other).unwrap()) <= SAME;
    assert!(same("weighted interleave:0-1", "interleave:0-1") && same("interleave:1", "prefer:1"));
    assert!(!same("interleave:0-1", "prefer:1"));
}
