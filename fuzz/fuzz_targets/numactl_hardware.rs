//! Any text as an output of numactl --hardware: the files that are made of it say the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_machine::Origin;
use nodewise_source::numactl::tree;
use nodewise_source::parse::numactl_hardware::parse;
use nodewise_source::sysfs::{Detail, load};

fuzz_target!(|text: &str| {
    let Ok(hardware) = parse(text) else { return };
    if let Some(Ok(tree)) = tree(text.as_bytes()) {
        let machine = load(&tree, Origin::Capture(String::new()), Detail::Full);
        for (id, node) in hardware.nodes.iter().take(1024) {
            let read = &machine.nodes[id];
            assert_eq!(read.memory_total(), node.size);
            assert!(read.cpus.is_subset(&node.cpus));
        }
    }
});
