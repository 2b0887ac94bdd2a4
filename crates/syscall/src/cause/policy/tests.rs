use super::super::tests::check;
use super::*;
use crate::call::Call;
use nodewise_machine::{Bytes, KernelRelease};

/// Four nodes, node 2 without memory, in a cpuset with nodes 0 and 1.
fn four_nodes() -> Circumstances {
    Circumstances {
        release: KernelRelease::new("6.12.107+deb13-amd64"),
        online_nodes: Some(NodeSet::from([0, 1, 2, 3])),
        memory_nodes: Some(NodeSet::from([0, 1, 3])),
        allowed_nodes: Some(NodeSet::from([0, 1])),
        ..Circumstances::default()
    }
}

fn on(release: &str) -> Circumstances {
    Circumstances { release: KernelRelease::new(release), ..four_nodes() }
}

fn policy<const N: usize>(mode: PolicyMode, flags: ModeFlags, nodes: [u32; N]) -> MemPolicy {
    MemPolicy { mode, flags, nodes: NodeSet::from(nodes) }
}

fn check_set(policy: MemPolicy, circumstances: &Circumstances, limit: Limit, expected: &str) {
    check(Call::SetMempolicy { policy }, Errno::EINVAL, circumstances, limit, expected);
}

#[test]
fn nodes_of_which_none_can_be_used_are_named_with_their_reason() {
    let bind = |node| policy(PolicyMode::Bind, ModeFlags::NONE, [node]);
    check_set(
        bind(7),
        &four_nodes(),
        Limit::NoSuchNode,
        "set_mempolicy(bind, node 7): node 7 does not exist: this machine has nodes 0-3",
    );
    check_set(
        bind(2),
        &four_nodes(),
        Limit::NodeWithoutMemory,
        "set_mempolicy(bind, node 2): node 2 has no memory: nodes 0-1,3 do; choose nodes with memory",
    );
    check_set(
        bind(3),
        &four_nodes(),
        Limit::Cpuset,
        "set_mempolicy(bind, node 3): node 3 is outside this cpuset's memory nodes 0-1; choose among \
         these, or widen cpuset.mems of the cgroup (containers: --cpuset-mems)",
    );
}

#[test]
fn each_reason_takes_away_nodes_until_none_is_left() {
    check_set(
        policy(PolicyMode::Interleave, ModeFlags::NONE, [2, 3, 9]),
        &four_nodes(),
        Limit::Cpuset,
        "set_mempolicy(interleave, nodes 2-3,9): node 3 is outside this cpuset's memory nodes 0-1; \
         choose among these, or widen cpuset.mems of the cgroup (containers: --cpuset-mems)",
    );
    check_set(
        policy(PolicyMode::Bind, ModeFlags::NONE, [0, 1100]),
        &four_nodes(),
        Limit::NoSuchNode,
        "set_mempolicy(bind, nodes 0,1100): node 1100 does not exist: this machine has nodes 0-3",
    );
}

#[test]
fn nothing_is_concluded_from_what_is_not_known() {
    check_set(
        policy(PolicyMode::Bind, ModeFlags::NONE, [3]),
        &Circumstances::default(),
        Limit::Unknown,
        "set_mempolicy(bind, node 3): invalid argument (EINVAL)",
    );
    check_set(
        policy(PolicyMode::Bind, ModeFlags::RELATIVE_NODES, [9]),
        &four_nodes(),
        Limit::Unknown,
        "set_mempolicy(bind=relative, node 9): invalid argument (EINVAL)",
    );
}

#[test]
fn a_mode_that_is_newer_than_the_kernel_names_both_releases() {
    check_set(
        policy(PolicyMode::WeightedInterleave, ModeFlags::NONE, [0, 1]),
        &on("6.6.31"),
        Limit::KernelRelease,
        "set_mempolicy(weighted-interleave, nodes 0-1): weighted interleave needs Linux 6.9 or newer: \
         this is 6.6.31; use interleave instead",
    );
    check_set(
        policy(PolicyMode::PreferredMany, ModeFlags::NONE, [0, 1]),
        &on("5.10.0-28-amd64"),
        Limit::KernelRelease,
        "set_mempolicy(preferred-many, nodes 0-1): preferred many needs Linux 5.15 or newer: this is \
         5.10.0-28-amd64; use preferred instead",
    );
    check_set(
        policy(PolicyMode::Bind, ModeFlags::NUMA_BALANCING, [0]),
        &on("5.4.0"),
        Limit::KernelRelease,
        "set_mempolicy(bind=balancing, node 0): balancing inside a bind policy needs Linux 5.12 or \
         newer: this is 5.4.0; leave the balancing flag out",
    );
    check_set(
        policy(PolicyMode::PreferredMany, ModeFlags::NUMA_BALANCING, [0]),
        &on("6.8.0"),
        Limit::KernelRelease,
        "set_mempolicy(preferred-many=balancing, node 0): balancing inside a preferred-many policy needs \
         Linux 6.10 or newer: this is 6.8.0; leave the balancing flag out",
    );
}

#[test]
fn a_release_text_reaches_no_terminal_raw() {
    check_set(
        policy(PolicyMode::WeightedInterleave, ModeFlags::NONE, [0]),
        &on("6.6.31-\u{1b}[2J"),
        Limit::KernelRelease,
        "set_mempolicy(weighted-interleave, node 0): weighted interleave needs Linux 6.9 or newer: this \
         is 6.6.31-\\x1b[2J; use interleave instead",
    );
}

#[test]
fn what_never_goes_together_is_said() {
    let both = ModeFlags::STATIC_NODES.with(ModeFlags::RELATIVE_NODES);
    let balancing = ModeFlags::NUMA_BALANCING;
    let none = ModeFlags::NONE;
    for (policy, cause) in [
        (policy(PolicyMode::Bind, none, []), "bind needs at least one node"),
        (policy(PolicyMode::Interleave, none, []), "interleave needs at least one node"),
        (policy(PolicyMode::PreferredMany, none, []), "preferred-many needs at least one node"),
        (policy(PolicyMode::Bind, both, [0]), "nodes are either static or relative, not both"),
        (policy(PolicyMode::Default, none, [0]), "default takes no nodes"),
        (policy(PolicyMode::Local, none, [0]), "local takes no nodes"),
        (policy(PolicyMode::Local, ModeFlags::STATIC_NODES, []), "local takes neither static nor relative"),
        (
            policy(PolicyMode::Preferred, ModeFlags::STATIC_NODES, []),
            "static and relative need at least one node",
        ),
        (
            policy(PolicyMode::Preferred, balancing, [1]),
            "balancing goes with bind and preferred-many, not with preferred",
        ),
        (
            policy(PolicyMode::Default, balancing, []),
            "balancing goes with bind and preferred-many, not with default",
        ),
        (
            policy(PolicyMode::WeightedInterleave, balancing, [0]),
            "balancing goes with bind and preferred-many, not with weighted-interleave",
        ),
    ] {
        let call = Call::SetMempolicy { policy };
        let expected = format!("{call}: {cause}");
        check(call, Errno::EINVAL, &four_nodes(), Limit::Arguments, &expected);
    }
}

fn mbind(options: BindOptions) -> Call {
    Call::Mbind {
        address: 0x7f2c_0000_0000,
        length: Bytes::from_mib(64),
        policy: policy(PolicyMode::Bind, ModeFlags::NONE, [0, 1]),
        options,
    }
}

#[test]
fn a_refused_range_is_explained_by_its_mapping_and_its_pages() {
    let here = four_nodes();
    let strict = BindOptions { moving: None, strict: true };
    let moving = BindOptions { moving: Some(PageScope::Own), strict: true };
    let all = BindOptions { moving: Some(PageScope::All), strict: false };
    for (options, errno, limit, cause) in [
        (BindOptions::default(), Errno::EFAULT, Limit::Address, "part of the range is not mapped"),
        (
            strict,
            Errno::EIO,
            Limit::Misplaced,
            "pages of the range are outside nodes 0-1, and strict forbids that; move them, or leave \
             strict out",
        ),
        (
            moving,
            Errno::EIO,
            Limit::Misplaced,
            "some pages could not be moved: shared with other processes, pinned, or no room on the nodes",
        ),
        (
            all,
            Errno::EPERM,
            Limit::Privilege,
            "moving pages that other processes share needs CAP_SYS_NICE; move own pages only, or run as \
             root",
        ),
        (
            BindOptions::default(),
            Errno::ENOMEM,
            Limit::Memory,
            "the process has as many mappings as it may have, or no memory is left; bind fewer and \
             larger ranges, or raise vm.max_map_count",
        ),
    ] {
        let call = mbind(options);
        let expected = format!("{call}: {cause}");
        check(call, errno, &here, limit, &expected);
    }
}

#[test]
fn a_range_outside_of_the_cpuset_is_explained_like_a_thread_policy() {
    let here = Circumstances { allowed_nodes: Some(NodeSet::from([3])), ..four_nodes() };
    check(
        mbind(BindOptions::default()),
        Errno::EINVAL,
        &here,
        Limit::Cpuset,
        "mbind(0x7f2c00000000, 64 MiB, bind, nodes 0-1): nodes 0-1 are outside this cpuset's memory node \
         3; choose among these, or widen cpuset.mems of the cgroup (containers: --cpuset-mems)",
    );
    let crooked = Call::Mbind {
        address: 0x1001,
        length: Bytes::MIB,
        policy: MemPolicy::DEFAULT,
        options: BindOptions::default(),
    };
    check(
        crooked,
        Errno::EINVAL,
        &here,
        Limit::Arguments,
        "mbind(0x1001, 1 MiB, default): 0x1001 is not the start of a page",
    );
}

#[test]
fn a_home_node_needs_a_policy_that_takes_one() {
    let home = |address, node| Call::SetHomeNode { address, length: Bytes::MIB, node: NodeId::new(node) };
    for (call, errno, limit, cause) in [
        (
            home(0x1000, 1),
            Errno::ENOENT,
            Limit::Address,
            "no part of the range has a policy; bind the range first, with bind or preferred-many",
        ),
        (
            home(0x1000, 1),
            Errno::EOPNOTSUPP,
            Limit::Arguments,
            "the range has a policy that takes no home node; bind the range with bind or preferred-many",
        ),
        (
            home(0x1000, 9),
            Errno::EINVAL,
            Limit::NoSuchNode,
            "node 9 does not exist: this machine has nodes 0-3",
        ),
        (home(0x1001, 1), Errno::EINVAL, Limit::Arguments, "0x1001 is not the start of a page"),
        (home(0x1000, 1), Errno::EINVAL, Limit::Unknown, "invalid argument (EINVAL)"),
    ] {
        let expected = format!("{call}: {cause}");
        check(call, errno, &four_nodes(), limit, &expected);
    }
}

#[test]
fn a_question_about_an_address_or_an_interleave_that_is_not_there_is_explained() {
    let here = four_nodes();
    check(
        Call::GetMempolicy { query: PolicyQuery::At(0x1000) },
        Errno::EFAULT,
        &here,
        Limit::Address,
        "get_mempolicy(policy at 0x1000): nothing is mapped at 0x1000",
    );
    check(
        Call::GetMempolicy { query: PolicyQuery::NextInterleaved },
        Errno::EINVAL,
        &here,
        Limit::Arguments,
        "get_mempolicy(next interleaved node): the policy of this thread does not interleave",
    );
    check(
        Call::SetMempolicy { policy: MemPolicy::DEFAULT },
        Errno::ENOMEM,
        &here,
        Limit::Memory,
        "set_mempolicy(default): the kernel has no memory left for itself",
    );
}
