use super::*;
use nodewise_machine::spec;
use proptest::prelude::{Strategy, prop, prop_assert, prop_assert_eq, proptest};

fn machine(text: &str) -> Machine {
    spec::machine(text).unwrap()
}

fn check(machine: &Machine, chosen: &[(&str, &str)], left_out: &[(&str, &str)]) {
    let scope = Scope::from_machine(machine);
    let candidates = Candidates::from_machine(machine);
    let found: Vec<(String, String)> = candidates
        .chosen
        .iter()
        .map(|candidate| {
            let options = candidate.placement.run_options(&scope).expect("candidates have options");
            (candidate.name.clone(), options.join(" "))
        })
        .collect();
    let found: Vec<(&str, &str)> = found.iter().map(|(name, options)| (&**name, &**options)).collect();
    assert_eq!(found, chosen);
    let found: Vec<(&str, &str)> = candidates.left_out.iter().map(|left| (&*left.name, &*left.why)).collect();
    assert_eq!(found, left_out);
}

const NO_WEIGHTS: (&str, &str) = ("weighted interleave", "the kernel does not say the weights of its nodes");
const NO_THREADS: (&str, &str) = ("one thread per core", "no core has two CPUs that may be used");
const NO_POOL: (&str, &str) = ("huge pages of the pool", "no pool has a free page");
const NO_HUGE: [(&str, &str); 3] = [
    ("huge pages on", "the kernel does not say whether it has transparent huge pages"),
    ("huge pages off", "the kernel does not say whether it has transparent huge pages"),
    NO_POOL,
];

#[test]
fn two_sockets() {
    let mut two = machine("2x(4c2t 64G l3=16M/2c); dist=21; kernel=6.12.1; weights=0:4,1:1");
    two.settings.transparent_hugepage = Some("always".to_owned());
    check(
        &two,
        &[
            ("default", ""),
            ("local to node 0", "--cpunodebind=0 --membind=0"),
            ("local to node 1", "--cpunodebind=1 --membind=1"),
            ("interleave all", "--interleave=all"),
            ("weighted interleave all", "--weighted-interleave=all"),
            ("prefer node 0", "--cpunodebind=0 --preferred=0"),
            ("compact: CPUs 0-1", "--physcpubind=0-1"),
            ("spread: CPUs 0,4", "--physcpubind=0,4"),
            ("one thread per core: CPUs 0-7", "--physcpubind=0-7"),
            ("huge pages off", "--huge=never"),
        ],
        &[
            (
                "preferred on the other nodes",
                "while a node has free memory this is the same as local to it; node 0 stands for all",
            ),
            ("huge pages on", "the same as default here"),
            NO_POOL,
        ],
    );
}

#[test]
fn balancing_can_be_kept_off_one_program_where_the_system_has_it_on() {
    let with = |setting| {
        let mut two = machine("2x(4c 64G); kernel=6.12.1");
        two.settings.numa_balancing = setting;
        let Candidates { chosen, left_out } = Candidates::from_machine(&two);
        let chosen = chosen.into_iter().find(|candidate| candidate.name.contains("balancing"));
        let left_out = left_out.into_iter().find(|left| left.name.contains("balancing"));
        (chosen.map(|candidate| candidate.placement), left_out.map(|left| left.why))
    };
    let local = Placement::memory(PolicyMode::Local, NodeSet::new());
    assert_eq!(with(Some(1)), (Some(local), None));
    let off = "the system's setting is off: no program is balanced".to_owned();
    assert_eq!(with(Some(0)), (None, Some(off)));
    assert_eq!(with(None), (None, None));
}

#[test]
fn one_node_leaves_what_does_not_need_two() {
    let mut one = machine("(2c 16G l3=32M/2c); kernel=6.18.44");
    one.settings.transparent_hugepage = Some("madvise".to_owned());
    let one_cache = "all CPUs that may be used share one last-level cache or one node";
    check(
        &one,
        &[("default", ""), ("huge pages on", "--huge=always"), ("huge pages off", "--huge=never")],
        &[
            ("local to node 0", "the same as default here"),
            ("interleave", "needs two nodes with memory: this machine has only node 0"),
            ("weighted interleave", "needs two nodes with memory: this machine has only node 0"),
            ("prefer node 0", "the same as default here"),
            ("compact", one_cache),
            ("spread", one_cache),
            NO_THREADS,
            NO_POOL,
        ],
    );
}

#[test]
fn emulated_nodes_without_cpus_use_those_of_the_first() {
    let two = machine("(4c 1G) 2x(1G); kernel=6.12");
    let one_cache = "all CPUs that may be used share one last-level cache or one node";
    check(
        &two,
        &[
            ("default", ""),
            ("memory of node 0", "--membind=0"),
            ("memory of node 1", "--membind=1"),
            ("memory of node 2", "--membind=2"),
            ("interleave all", "--interleave=all"),
            ("node 0 preferred", "--preferred=0"),
        ],
        &[
            NO_WEIGHTS,
            ("compact", one_cache),
            ("spread", one_cache),
            NO_THREADS,
            NO_HUGE[0],
            NO_HUGE[1],
            NO_POOL,
        ],
    );
}

#[test]
fn memory_without_cpus_is_reached_from_the_nearest_node() {
    let cxl = machine(
        "2x(2c 64G) (256G tier=22); dist=10,21,14/21,10,24/14,24,10; kernel=6.6.31; weights=0:1,1:1,2:1",
    );
    check(
        &cxl,
        &[
            ("default", ""),
            ("local to node 0", "--cpunodebind=0 --membind=0"),
            ("local to node 1", "--cpunodebind=1 --membind=1"),
            ("CPUs of node 0, memory of node 2", "--cpunodebind=0 --membind=2"),
            ("interleave all", "--interleave=all"),
            ("interleave 0-1", "--interleave=0-1"),
            ("prefer node 0", "--cpunodebind=0 --preferred=0"),
            ("compact: CPUs of node 0", "--cpunodebind=0"),
            ("spread: CPUs 0,2", "--physcpubind=0,2"),
        ],
        &[
            ("weighted interleave", "needs Linux 6.9 or newer: this is 6.6.31"),
            (
                "preferred on the other nodes",
                "while a node has free memory this is the same as local to it; node 0 stands for all",
            ),
            NO_THREADS,
            NO_HUGE[0],
            NO_HUGE[1],
            NO_POOL,
        ],
    );
}

#[test]
fn alike_nodes_of_a_large_machine_are_represented_by_the_first() {
    let large = machine("32x(2x(4c 8G)); dist=16,40; kernel=6.12; weights=0:1");
    let candidates = Candidates::from_machine(&large);
    let names: Vec<&str> = candidates.chosen.iter().map(|candidate| &*candidate.name).collect();
    assert_eq!(
        names,
        [
            "default",
            "local to node 0",
            "interleave all",
            "prefer node 0",
            "compact: CPUs of node 0",
            "spread: CPUs 0,4,8,12",
        ]
    );
    assert_eq!(
        candidates.left_out[0],
        LeftOut {
            name: "local to nodes 1-63".to_owned(),
            why: "with more than 4 nodes, node 0 stands for all with the same CPUs, memory and distances"
                .to_owned(),
        }
    );
}

#[test]
fn unlike_nodes_beyond_the_limit_are_named() {
    let unlike = machine("(1c 1G) (2c 2G) (3c 3G) (4c 4G) (5c 5G) (6c 6G) 2x(1c 1G)");
    let candidates = Candidates::from_machine(&unlike);
    let left: Vec<(&str, &str)> = candidates.left_out.iter().map(|left| (&*left.name, &*left.why)).collect();
    assert_eq!(
        left[..2],
        [
            (
                "local to nodes 6-7",
                "with more than 4 nodes, node 0 stands for all with the same CPUs, memory and distances"
            ),
            ("local to nodes 4-5", "only the first 4 nodes that differ are tried one by one"),
        ]
    );
}

#[test]
fn equal_weights_are_said_to_be_interleave() {
    let two = machine("2x(4c 8G); kernel=6.12; weights=0:1,1:1");
    assert!(Candidates::from_machine(&two).left_out.contains(&LeftOut {
        name: "weighted interleave all".to_owned(),
        why: "the same as interleave all here".to_owned(),
    }));
}

#[test]
fn a_cpuset_limits_what_is_tried() {
    let mut two = machine("2x(4c 8G); kernel=6.12");
    two.allowed_cpus = Some(CpuSet::from([0, 1]));
    two.allowed_nodes = Some(NodeSet::from([0]));
    let names: Vec<String> =
        Candidates::from_machine(&two).chosen.into_iter().map(|chosen| chosen.name).collect();
    assert_eq!(names, ["default"]);
}

#[test]
fn a_machine_of_which_nothing_is_known_still_has_the_default() {
    let unknown = Machine::new(nodewise_machine::Origin::Live);
    let candidates = Candidates::from_machine(&unknown);
    assert_eq!(candidates.chosen.len(), 1);
    assert!(candidates.left_out.iter().all(|left| !left.why.is_empty()));
}

/// Machines of a few groups of nodes with or without CPUs, memory and caches.
fn any_machine() -> impl Strategy<Value = Machine> {
    let part = prop::sample::select(vec![
        "(4c 8G)",
        "(2c2t 4G)",
        "(8c2t 8G l3=16M/4c)",
        "(16G tier=5)",
        "(3c)",
        "(1c 1G)",
        "3x(2c 8G l3=4M/2c)",
        "9x(2G)",
    ]);
    let kernel = prop::sample::select(vec!["6.12", "6.6", "5.10"]);
    let huge = prop::sample::select(vec![None, Some("always"), Some("madvise"), Some("never"), Some("?")]);
    (prop::collection::vec(part, 1..5), kernel, huge).prop_map(|(parts, kernel, huge)| {
        let mut machine = machine(&format!("{}; kernel={kernel}", parts.join(" ")));
        machine.settings.transparent_hugepage = huge.map(str::to_owned);
        machine
    })
}

proptest! {
    #[test]
    fn candidates_differ_stay_inside_the_machine_and_are_few(machine in any_machine()) {
        let scope = Scope::from_machine(&machine);
        let candidates = Candidates::from_machine(&machine);
        prop_assert_eq!(&candidates.chosen[0].placement, &Placement::DEFAULT);
        prop_assert!(candidates.chosen.len() <= MOST_NODES + 9);
        for (at, candidate) in candidates.chosen.iter().enumerate() {
            prop_assert_eq!(&candidate.placement.within(&scope), &candidate.placement);
            prop_assert!(candidate.placement.run_options(&scope).is_some());
            for other in &candidates.chosen[..at] {
                prop_assert!(other.placement != candidate.placement);
                prop_assert!(other.name != candidate.name);
            }
            if let Some(cpus) = &candidate.placement.cpus {
                prop_assert!(!cpus.is_empty() && cpus.is_subset(&scope.cpus));
            }
            if let Some(policy) = &candidate.placement.policy {
                prop_assert!(!policy.nodes.is_empty() && policy.nodes.is_subset(&scope.memory_nodes));
            }
        }
    }
}
