//! An expression that is read is printed and read back the same; resolving it stays inside what may
//! be used.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_machine::expr::{Devices, Scope, SetExpr};
use nodewise_machine::{DeviceRef, NodeId, NodeSet};

fuzz_target!(|text: &str| {
    let Ok(expr) = SetExpr::parse::<NodeId>(text, Devices::Accepted) else { return };
    let printed = expr.to_string();
    assert_eq!(
        SetExpr::parse::<NodeId>(&printed, Devices::Accepted).expect("what was printed is an expression"),
        expr
    );
    let existing = NodeSet::from([0, 2, 5, 7, 255]);
    let allowed = NodeSet::from([0, 2, 5, 255]);
    let same = NodeSet::from([2]);
    let device = |_: &DeviceRef| Ok(NodeSet::from([5]));
    let scope = Scope {
        existing: &existing,
        allowed: &allowed,
        limit: "this cpuset's memory nodes",
        own: &allowed,
        same: Some(&same),
        device: Some(&device),
    };
    if let Ok(nodes) = expr.resolve(&scope) {
        assert!(nodes.is_subset(&allowed), "{text} gives {nodes}");
    }
});
