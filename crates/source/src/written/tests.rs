use super::*;
use crate::sysfs::{self, Detail};
use crate::{facts, tree::Tree};
use nodewise_machine::{NodeId, NodeSet, Origin, spec};
use proptest::prelude::{Strategy, prop, prop_assert_eq, proptest};

#[test]
fn the_files_of_a_spec_say_what_the_spec_says() {
    let machine = spec::machine("2x(2c 512M) (1G); dist=10,21,17/21,10,28/17,28,10").unwrap();
    let tree = tree_of(&machine);
    assert_eq!(facts::nodes(&tree).unwrap(), NodeSet::from([0, 1, 2]));
    for (id, node) in &machine.nodes {
        assert_eq!(facts::cpus_of(&tree, *id).unwrap().unwrap(), node.cpus);
        assert_eq!(facts::memory_of(&tree, *id).unwrap().unwrap().total, node.memory_total());
    }
    assert_eq!(facts::distances_from(&tree, NodeId::new(2)).unwrap(), Some(vec![17, 28, 10]));
}

/// Reads the files of a machine as those of a capture.
fn read_back(machine: &Machine) -> Machine {
    sysfs::load(&tree_of(machine), Origin::Capture("written".to_owned()), Detail::Full)
}

/// A machine with the parts alone that have files here.
fn with_files(machine: &Machine) -> Machine {
    Machine {
        possible_nodes: machine.possible_nodes.clone(),
        nodes: machine.nodes.clone(),
        possible_cpus: machine.possible_cpus.clone(),
        cpus: machine.cpus.clone(),
        caches: machine.caches.clone(),
        distances: machine.distances.clone(),
        accesses: machine.accesses.clone(),
        tiers: machine.tiers.clone(),
        ..Machine::new(Origin::Live)
    }
}

fn any_spec() -> impl Strategy<Value = String> {
    let node = (0u32..9, 1u32..3, 0u64..70).prop_map(|(cores, threads, size)| match (cores, size) {
        (0, 0) => "(1c 1G)".to_owned(),
        (0, size) => format!("({size}G)"),
        (cores, 0) => format!("({cores}c{threads}t)"),
        (cores, size) => format!("({cores}c{threads}t {size}G)"),
    });
    prop::collection::vec(node, 1..9).prop_map(|nodes| format!("(1c 1G) {}", nodes.join(" ")))
}

proptest! {
    #[test]
    fn a_machine_is_read_back_from_its_files(spec in any_spec()) {
        let machine = spec::machine(&spec).unwrap();
        let found = read_back(&machine);
        prop_assert_eq!(with_files(&found), with_files(&machine), "{}", spec);
    }
}

#[test]
fn a_file_is_listed_once() {
    let machine = spec::machine("2x(4c2t 8G)").unwrap();
    let files = files(&machine);
    let names: std::collections::BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(names.len(), files.len());
    let _: Tree = tree_of(&machine);
}
