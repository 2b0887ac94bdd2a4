//! Arguments one by one, and calls in order beside what a program's own calls answer.

use nodewise_machine::{MemPolicy, ModeFlags};
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::select;

use super::*;
use crate::Memory;
use crate::migrate::Present;
use crate::oracle::task::{Surroundings, Task};
use crate::policy::mask::Bits;
use crate::release::Release;
use crate::zonelist::BuiltAt;

const BIND: u32 = 2;
const ADDRESS: u64 = 1 << 30;

fn set(numbers: &[u32]) -> NodeSet {
    numbers.iter().copied().map(NodeId::new).collect()
}

fn mask(nodes: &[u32]) -> Mask {
    Mask { bits: Bits::Of(set(nodes)), maxnode: 65 }
}

/// The differences between callers.
#[derive(Clone)]
struct Who {
    allowed: NodeSet,
    is_privileged: bool,
    policy: &'static str,
    release: Release,
    architecture: Architecture,
}

/// Nodes 0-3 are there, all but 3 with memory. Mapped are 16 pages; 4-7 of them are bound to node 1, and
/// behind a hole of a page 4 more whose policy is to interleave; of some the kernel has given pages.
fn answer(call: &Call, who: &Who) -> Result<(), Errno> {
    let with_memory = set(&[0, 1, 2]);
    let scope = Scope { allowed: &who.allowed, max_nodes: 1024, release: who.release };
    let policy = |text: &str| {
        let asked: MemPolicy = text.parse().unwrap();
        Policy::from_mem_policy(&asked, Scope { allowed: &with_memory, ..scope }).unwrap()
    };
    let mapping = |pages: Range<u64>, own: Option<&str>, there: &[(u64, u32)]| Mapping {
        bytes: ADDRESS + pages.start * PAGE..ADDRESS + pages.end * PAGE,
        policy: own.map(policy),
        pages: there.iter().map(|(page, node)| (ADDRESS + page * PAGE, NodeId::new(*node))).collect(),
    };
    let mappings = [
        mapping(0..4, None, &[]),
        mapping(4..8, Some("bind:1"), &[(4, 1), (5, 1)]),
        mapping(8..16, None, &[(8, 0), (15, 1)]),
        mapping(17..21, Some("interleave:0-1"), &[]),
    ];
    check(
        call,
        &Caller {
            scope,
            architecture: who.architecture,
            online: &set(&[0, 1, 2, 3]),
            with_memory: &with_memory,
            nr_node_ids: 4,
            is_privileged: who.is_privileged,
            policy: &policy(who.policy),
            mappings: &mappings,
        },
    )
}

fn anybody() -> Who {
    Who {
        allowed: set(&[0, 1, 2]),
        is_privileged: false,
        policy: "default",
        release: Release::REFERENCE,
        architecture: Architecture::X86,
    }
}

#[track_caller]
fn expect(call: &Call, who: &Who, expected: Result<(), Errno>) {
    assert_eq!(answer(call, who), expected, "{call:x?}");
}

/// `mbind(2)` of pages from the first on.
fn bind(first: u64, pages: u64, mode: u32, nodes: &[u32], flags: u32) -> Call {
    Call::Bind {
        address: ADDRESS.wrapping_add(first * PAGE),
        length: pages * PAGE,
        mode,
        mask: mask(nodes),
        flags,
    }
}

#[test]
fn a_mask_is_checked_for_its_length_before_it_is_read() {
    let call = |bits: Bits, maxnode| Call::SetPolicy { mode: BIND, mask: Mask { bits, maxnode } };
    let check = |bits: Bits, maxnode, expected| expect(&call(bits, maxnode), &anybody(), expected);
    check(Bits::Unreadable, 65, Err(Errno::Efault));
    check(Bits::Unreadable, 40_000, Err(Errno::Einval));
    check(Bits::Unreadable, 0, Err(Errno::Einval));
    // Nothing is read, so the set is empty.
    check(Bits::Unreadable, 1, Err(Errno::Einval));
    check(Bits::Null, 65, Err(Errno::Einval));
    check(Bits::Of(set(&[0])), 2, Ok(()));
    check(Bits::Of(set(&[1])), 2, Err(Errno::Einval));
    let default = Call::SetPolicy { mode: 0, mask: Mask { bits: Bits::Unreadable, maxnode: 1 } };
    expect(&default, &anybody(), Ok(()));
}

#[test]
fn mbind_checks_mode_mask_flags_capability_and_addresses_in_this_order() {
    let check = |call: &Call, expected| expect(call, &anybody(), expected);
    let any = |address, length, mode, flags| Call::Bind { address, length, mode, mask: mask(&[1]), flags };
    check(&any(ADDRESS, PAGE, 99, MOVE_ALL), Err(Errno::Einval));
    check(&any(ADDRESS, PAGE, BIND, 8 | MOVE_ALL), Err(Errno::Einval));
    check(&any(ADDRESS + 1, PAGE, BIND, MOVE_ALL), Err(Errno::Eperm));
    check(&any(ADDRESS + 1, PAGE, BIND, 0), Err(Errno::Einval));
    check(&any(ADDRESS, u64::MAX - PAGE, BIND, 0), Err(Errno::Einval));
    // Nothing is left of these lengths, and then missing nodes do not matter either.
    let nowhere = |length| Call::Bind { address: ADDRESS, length, mode: BIND, mask: mask(&[9]), flags: 0 };
    check(&nowhere(0), Ok(()));
    check(&nowhere(u64::MAX), Ok(()));
    check(&nowhere(PAGE), Err(Errno::Einval));
    check(&any(ADDRESS, 1, BIND, 0), Ok(()));
    let privileged = Who { is_privileged: true, ..anybody() };
    expect(&any(ADDRESS, PAGE, BIND, MOVE_ALL), &privileged, Ok(()));
}

#[test]
fn mbind_wants_memory_without_holes_unless_it_takes_a_policy_away() {
    let check = |call: &Call, expected| expect(call, &anybody(), expected);
    check(&bind(0, 16, BIND, &[1], 0), Ok(()));
    check(&bind(0, 17, BIND, &[1], 0), Err(Errno::Efault));
    check(&bind(16, 1, BIND, &[1], 0), Err(Errno::Efault));
    check(&bind(0, 64, 0, &[], 0), Ok(()));
    check(&bind(16, 1, 0, &[], 0), Err(Errno::Efault));
}

#[test]
fn mbind_is_strict_about_pages_that_would_stay_outside() {
    let check = |call: &Call, expected| expect(call, &anybody(), expected);
    check(&bind(0, 8, BIND, &[1], STRICT), Ok(()));
    check(&bind(0, 9, BIND, &[1], STRICT), Err(Errno::Eio));
    check(&bind(9, 7, BIND, &[1], STRICT), Ok(()));
    // The mapping with the page comes before the one with the hole behind it; then the hole comes first.
    check(&bind(4, 16, BIND, &[0], STRICT), Err(Errno::Eio));
    check(&bind(8, 12, BIND, &[1], STRICT), Err(Errno::Efault));
    check(&bind(0, 9, BIND, &[1], STRICT | MOVE), Ok(()));
    check(&bind(0, 9, 0, &[], STRICT), Ok(()));
}

#[test]
fn get_mempolicy_checks_the_mask_before_the_flags() {
    let call = |maxnode: Option<u64>, address, flags| Call::GetPolicy {
        has_mask: maxnode.is_some(),
        maxnode: maxnode.unwrap_or(0),
        address,
        flags,
    };
    let check =
        |maxnode, address, flags, expected| expect(&call(maxnode, address, flags), &anybody(), expected);
    check(Some(3), 0, 0, Err(Errno::Einval));
    check(Some(4), 0, 0, Ok(()));
    check(None, 0, 0, Ok(()));
    check(None, 0, 8, Err(Errno::Einval));
    check(None, 0, MEMS_ALLOWED | ADDR, Err(Errno::Einval));
    check(None, ADDRESS, MEMS_ALLOWED, Ok(()));
    check(None, ADDRESS, 0, Err(Errno::Einval));
    check(None, ADDRESS + 5, ADDR, Ok(()));
    check(None, ADDRESS + 16 * PAGE, ADDR, Err(Errno::Efault));
    check(None, ADDRESS, ADDR | NODE, Ok(()));
    check(None, 0, NODE, Err(Errno::Einval));
    let turns = Who { policy: "interleave:0-1", ..anybody() };
    expect(&call(None, 0, NODE), &turns, Ok(()));
    // A page of bits.
    check(Some(8 * 4096 + 1), 0, 0, Ok(()));
    check(Some(8 * 4096 + 2), 0, 0, Err(Errno::Einval));
}

/// As a call of the lab's machine 1102.
#[test]
fn arm64_passes_over_the_highest_byte_of_an_address() {
    let arm = Who { architecture: Architecture::Arm, ..anybody() };
    let call = |address, flags| Call::GetPolicy { has_mask: false, maxnode: 0, address, flags };
    expect(&call(0x40 << 56, 0), &arm, Ok(()));
    expect(&call(0x40 << 56, 0), &anybody(), Err(Errno::Einval));
    expect(&call(0x40 << 56 | ADDRESS, ADDR), &arm, Ok(()));
    expect(&call(0x40 << 56 | ADDRESS, ADDR), &anybody(), Err(Errno::Efault));
    // Of the kernel's half no byte is a tag.
    expect(&call(0x80 << 48, 0), &arm, Err(Errno::Einval));
}

#[test]
fn a_home_node_is_checked_before_the_memory_it_is_for() {
    let call = |first: u64, pages: u64, node, flags| Call::SetHome {
        address: ADDRESS + first * PAGE,
        length: pages * PAGE,
        node,
        flags,
    };
    let check =
        |first, pages, node, flags, expected| expect(&call(first, pages, node, flags), &anybody(), expected);
    check(4, 4, 3, 0, Ok(()));
    check(0, 16, 3, 0, Ok(()));
    check(0, 4, 3, 0, Err(Errno::Enoent));
    check(4, 20, 3, 0, Err(Errno::Eopnotsupp));
    check(4, 4, 4, 0, Err(Errno::Einval));
    check(4, 4, 1 << 32, 0, Err(Errno::Einval));
    check(4, 4, 3, 1, Err(Errno::Einval));
    check(4, 0, 3, 0, Ok(()));
    let unaligned = Call::SetHome { address: ADDRESS + 1, length: 0, node: 3, flags: 0 };
    expect(&unaligned, &anybody(), Err(Errno::Einval));
    let old = Who { release: Release::new(5, 16), ..anybody() };
    expect(&call(4, 4, 3, 0), &old, Err(Errno::Enosys));
}

#[test]
fn moving_another_programs_pages_needs_the_right_to() {
    let other = |is_open, nodes: &[u32]| Process::Other { allowed: set(nodes), is_open };
    let call = |process, new: &[u32]| Call::Migrate { process, old: mask(&[0]), new: mask(new) };
    let check = |process, new: &[u32], expected| expect(&call(process, new), &anybody(), expected);
    check(Process::Own, &[1], Ok(()));
    check(Process::Own, &[1, 3], Err(Errno::Eperm));
    check(Process::Own, &[], Err(Errno::Einval));
    check(Process::Missing, &[1], Err(Errno::Esrch));
    check(other(false, &[0, 1]), &[1], Err(Errno::Eperm));
    check(other(true, &[0, 1]), &[2], Err(Errno::Eperm));
    check(other(true, &[0, 1]), &[1], Ok(()));
    let privileged = Who { is_privileged: true, ..anybody() };
    expect(&call(Process::Own, &[1, 3]), &privileged, Ok(()));
    expect(&call(Process::Own, &[3]), &privileged, Err(Errno::Einval));
    let long = Mask { bits: Bits::Null, maxnode: 0 };
    let new = Mask { bits: Bits::Unreadable, maxnode: 65 };
    let unreadable = Call::Migrate { process: Process::Missing, old: long, new };
    expect(&unreadable, &anybody(), Err(Errno::Efault));
}

#[test]
fn move_pages_checks_flags_process_and_each_node() {
    let call = |process, nodes: Option<&[i32]>, flags| Call::Move {
        process,
        nodes: nodes.map(<[_]>::to_vec),
        flags,
    };
    let check = |process, nodes: Option<&[i32]>, flags, expected| {
        expect(&call(process, nodes, flags), &anybody(), expected);
    };
    check(Process::Own, Some(&[0, 2]), 0, Ok(()));
    check(Process::Own, Some(&[0, 2]), STRICT, Err(Errno::Einval));
    check(Process::Own, Some(&[0]), MOVE_ALL, Err(Errno::Eperm));
    check(Process::Missing, None, MOVE, Err(Errno::Esrch));
    check(Process::Own, None, MOVE, Ok(()));
    check(Process::Own, Some(&[-1]), MOVE, Err(Errno::Enodev));
    check(Process::Own, Some(&[3]), MOVE, Err(Errno::Enodev));
    check(Process::Own, Some(&[5000]), MOVE, Err(Errno::Enodev));
    let inside = Who { allowed: set(&[0, 1]), ..anybody() };
    expect(&call(Process::Own, Some(&[1, 2]), MOVE), &inside, Err(Errno::Eacces));
}

proptest! {
    #[test]
    fn mbind_in_order_answers_as_the_programs_call_does(
        mode in select(PolicyMode::ALL.to_vec()),
        flags in 0u16..8,
        nodes in proptest::collection::vec(0u32..5, 0..4),
        first in 0u64..20,
        count in 1u64..10,
        is_strict in any::<bool>(),
    ) {
        let machine = nodewise_machine::spec::machine("3x(1c 1G)").unwrap();
        let with_memory = machine.nodes_with_memory();
        let around = Surroundings::new(&machine, Release::REFERENCE);
        let (mut task, mut memory) =
            (Task::new(around, NodeId::new(0)), Memory::from_machine(&machine, BuiltAt::Boot, Release::REFERENCE));
        task.map(0..16);
        task.touch(3, &mut memory);
        let pages = [(3 * PAGE, NodeId::new(0))].into();
        let mappings = [Mapping { bytes: 0..16 * PAGE, policy: None, pages }];
        let asked = MemPolicy { mode, flags: ModeFlags::from_bits(flags << 13), nodes: set(&nodes) };
        let call = Call::Bind {
            address: first * PAGE,
            length: count * PAGE,
            mode: u32::from(mode.number() | asked.flags.bits()),
            mask: mask(&nodes),
            flags: if is_strict { STRICT } else { 0 },
        };
        let caller = Caller {
            scope: Scope { allowed: &with_memory, max_nodes: 1024, release: Release::REFERENCE },
            architecture: Architecture::X86,
            online: &machine.node_ids(),
            with_memory: &with_memory,
            nr_node_ids: 3,
            is_privileged: false,
            policy: &Policy::DEFAULT,
            mappings: &mappings,
        };
        let present = if is_strict { Present::Refuse } else { Present::Stay };
        let done = task.bind(first..first + count, &asked, present, &mut memory);
        let told = check(&call, &caller);
        // What takes a policy away may have holes; the program's own call is of what is mapped.
        if !(mode == PolicyMode::Default && done == Err(Errno::Efault)) {
            prop_assert_eq!(told, done);
        }
    }

    #[test]
    fn any_numbers_have_an_answer(
        numbers in proptest::array::uniform8(any::<u64>()),
        small in proptest::array::uniform4(0u64..40),
        nodes in proptest::collection::vec(0u32..1100, 0..4),
        is_privileged in any::<bool>(),
        is_small in any::<bool>(),
    ) {
        let [address, length, maxnode, flags] =
            if is_small { [small[0] * PAGE / 2, small[1] * PAGE / 2, small[2], small[3]] } else { [numbers[0], numbers[1], numbers[2], numbers[3]] };
        let mask = Mask { bits: Bits::Of(set(&nodes)), maxnode };
        let who = Who { is_privileged, ..anybody() };
        let (process, node) = (Process::Own, numbers[5]);
        let calls = [
            Call::SetPolicy { mode: numbers[4] as u32, mask: mask.clone() },
            Call::Bind { address, length, mode: small[3] as u32, mask: mask.clone(), flags: flags as u32 },
            Call::GetPolicy { has_mask: is_small, maxnode, address, flags },
            Call::SetHome { address, length, node, flags },
            Call::Migrate { process: process.clone(), old: mask.clone(), new: mask },
            Call::Move { process, nodes: Some(vec![numbers[6] as i32]), flags: flags as u32 },
        ];
        for call in calls {
            let privileged = answer(&call, &Who { is_privileged: true, ..who.clone() });
            let own = answer(&call, &who);
            // A capability takes no answer away but EPERM.
            prop_assert!(own == Err(Errno::Eperm) || privileged == own, "{call:x?}");
        }
    }
}
