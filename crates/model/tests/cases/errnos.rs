//! Answers of `set_mempolicy(2)`.

use nodewise_machine::{NodeId, NodeSet};
use nodewise_model::policy::mask::Bits;
use nodewise_model::{Errno, Mask, Policy};

use crate::server::{all, scope};

const STATIC: u32 = 0x8000;
const RELATIVE: u32 = 0x4000;
const BALANCING: u32 = 0x2000;
const DEFAULT: u32 = 0;
const PREFERRED: u32 = 1;
const BIND: u32 = 2;
const INTERLEAVE: u32 = 3;
const LOCAL: u32 = 4;
const MANY: u32 = 5;
const WEIGHTED: u32 = 6;

/// Checks what a call leaves: the mode that is then in force, the nodes it works with, and those it reports.
fn check_mask(word: u32, nodes: &[u32], maxnode: u64, expected: Result<(u32, &[u32], &[u32]), Errno>) {
    let set = |numbers: &[u32]| numbers.iter().copied().map(NodeId::new).collect::<NodeSet>();
    let result = Policy::set(word, &Mask { bits: Bits::Of(set(nodes)), maxnode }, scope(&all()));
    let result =
        result.map(|policy| (u32::from(policy.mode.number()), policy.reported().nodes, policy.nodes));
    let expected = expected.map(|(mode, works, tells)| (mode, set(tells), set(works)));
    assert_eq!(result, expected, "mode {word:#x} with nodes {nodes:?}, maxnode {maxnode}");
}

fn check(word: u32, nodes: &[u32], expected: Result<(u32, &[u32], &[u32]), Errno>) {
    check_mask(word, nodes, 1025, expected);
}

#[test]
fn case_46_errno_set_mempolicy() {
    const EINVAL: Result<(u32, &[u32], &[u32]), Errno> = Err(Errno::Einval);
    check(DEFAULT, &[], Ok((DEFAULT, &[], &[])));
    check(DEFAULT, &[0], EINVAL);
    check(DEFAULT | STATIC, &[], Ok((DEFAULT, &[], &[])));
    check(DEFAULT | BALANCING, &[], EINVAL);
    check(LOCAL, &[0], EINVAL);
    check(LOCAL | STATIC, &[], EINVAL);
    check(PREFERRED, &[], Ok((LOCAL, &[], &[])));
    check(PREFERRED | STATIC, &[], EINVAL);
    check(PREFERRED | BALANCING, &[1], EINVAL);
    check(BIND, &[], EINVAL);
    check(BIND, &[9], EINVAL);
    check(BIND, &[0, 9], Ok((BIND, &[0], &[0])));
    check(BIND | STATIC, &[0, 9], Ok((BIND, &[0], &[0, 9])));
    check(BIND | RELATIVE, &[9], Ok((BIND, &[1], &[9])));
    check(INTERLEAVE | RELATIVE, &[1, 5], Ok((INTERLEAVE, &[1], &[1, 5])));
    check(BIND | STATIC | RELATIVE, &[0], EINVAL);
    check(BIND | BALANCING, &[1, 2], Ok((BIND, &[1, 2], &[1, 2])));
    check(MANY | BALANCING, &[1, 2], Ok((MANY, &[1, 2], &[1, 2])));
    check(INTERLEAVE | BALANCING, &[0, 1], EINVAL);
    check(WEIGHTED | BALANCING, &[0, 1], EINVAL);
    check(7, &[0], EINVAL);
    check(0x1003, &[0], EINVAL);
    check_mask(BIND, &[0, 1, 2, 3], 4, Ok((BIND, &[0, 1, 2], &[0, 1, 2])));
    check_mask(BIND, &[3], 4, EINVAL);
    check_mask(BIND, &[0, 1100], 2048, EINVAL);
    check_mask(BIND, &[0], 32_770, EINVAL);
}
