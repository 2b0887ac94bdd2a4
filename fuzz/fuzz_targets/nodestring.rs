#![no_main]
//! Strings of nodes and CPUs as numactl reads them.

use libfuzzer_sys::fuzz_target;
use nodewise_compat::nodestring::{self, Invalid, Members};
use nodewise_compat::warning::Warnings;
use nodewise_machine::id::Id;
use nodewise_machine::{CpuSet, IdSet, NodeSet};
use nodewise_notation::device::{Device, DeviceKind};
use nodewise_notation::number::Base;

struct Plain<I>(IdSet<I>);

impl<I: Id> Members<I> for Plain<I> {
    fn may_name(&self, id: I) -> bool {
        self.0.contains(id)
    }

    fn all(&self) -> &IdSet<I> {
        &self.0
    }

    fn inverse(&self, set: &IdSet<I>) -> IdSet<I> {
        self.0.difference(set)
    }

    fn beyond(&self) -> u64 {
        1024
    }

    fn base(&self) -> Base {
        Base::PrefixedOrBinary
    }

    fn counts(&self, number: u64) -> u64 {
        number
    }

    fn shown(&self, number: u64) -> i64 {
        number as i64
    }

    fn device(&self, device: Device<'_>, _: &mut Warnings<'_>) -> Option<Result<NodeSet, Invalid>> {
        (device.kind == DeviceKind::Pci).then(|| Ok(NodeSet::from([1])))
    }
}

fuzz_target!(|text: &str| {
    let mut err = Vec::new();
    let nodes = Plain(NodeSet::from([0, 1, 5, 63, 64]));
    if let Ok(set) = nodestring::parse(text, &nodes, &mut Warnings::new(&mut err)) {
        assert!(set.is_subset(&nodes.0), "{text:?} gave {set}");
    }
    let cpus = Plain(CpuSet::from([0, 2, 3, 700]));
    if let Ok(set) = nodestring::parse(text, &cpus, &mut Warnings::new(&mut err)) {
        assert!(set.is_subset(&cpus.0), "{text:?} gave {set}");
    }
    // What was typed must not drive the terminal.
    let told = String::from_utf8(err).expect("warnings are text");
    assert!(told.chars().all(|c| c == '\n' || !c.is_control()), "{told:?}");
});
