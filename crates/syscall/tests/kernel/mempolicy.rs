//! Policies of threads and ranges.

use nodewise_machine::{Bytes, MemPolicy, ModeFlags, NodeId, NodeSet, PolicyMode};
use nodewise_syscall::{
    Availability, BindOptions, Errno, Limit, NodeBuffer, PageKind, PageScope, ReadError, Support, Task,
    explain, mempolicy, pages,
};

use crate::here::{absent_node, circumstances, on_own_thread, skip, status, unless_blocked, usable_nodes};

fn policy(mode: PolicyMode, flags: ModeFlags, nodes: NodeSet) -> MemPolicy {
    MemPolicy { mode, flags, nodes }
}

/// A policy that was read, or nothing where reading is blocked.
fn read(result: Result<MemPolicy, ReadError>) -> Option<MemPolicy> {
    match result {
        Ok(policy) => Some(policy),
        Err(ReadError::Call(error)) => unless_blocked(Err(error)),
        Err(error @ ReadError::UnknownMode { .. }) => panic!("{error}"),
    }
}

#[test]
fn every_mode_that_this_kernel_has_is_read_back_as_it_was_set() {
    on_own_thread(|| {
        let Some(nodes) = usable_nodes() else { return };
        let support = Support::probe();
        for mode in PolicyMode::ALL {
            if support.mode(mode) != Availability::Present {
                skip(&format!("{mode}: {}", support.mode(mode)));
                continue;
            }
            let wanted = match mode {
                PolicyMode::Default | PolicyMode::Local => NodeSet::new(),
                // The kernel keeps one node of a preferred policy, the lowest.
                PolicyMode::Preferred => nodes.first().into_iter().collect(),
                _ => nodes.clone(),
            };
            let wanted = MemPolicy::new(mode, wanted);
            mempolicy::set_thread_policy(&wanted).unwrap();
            assert_eq!(mempolicy::thread_policy(), Ok(wanted));
        }
    });
}

#[test]
fn flags_come_back_with_the_nodes_that_were_asked_for() {
    on_own_thread(|| {
        let Some(nodes) = usable_nodes() else { return };
        let wider = nodes.union(&[absent_node()].into_iter().collect());
        for flags in [ModeFlags::STATIC_NODES, ModeFlags::RELATIVE_NODES] {
            let wanted = policy(PolicyMode::Bind, flags, wider.clone());
            if unless_blocked(mempolicy::set_thread_policy(&wanted)).is_some() {
                assert_eq!(mempolicy::thread_policy(), Ok(wanted));
            }
        }
    });
}

#[test]
fn nodes_that_cannot_be_used_are_left_out_in_silence_while_one_remains() {
    on_own_thread(|| {
        let Some(nodes) = usable_nodes() else { return };
        let wider = nodes.union(&[absent_node()].into_iter().collect());
        let wanted = MemPolicy::new(PolicyMode::Bind, wider);
        if unless_blocked(mempolicy::set_thread_policy(&wanted)).is_some() {
            assert_eq!(mempolicy::thread_policy(), Ok(MemPolicy::new(PolicyMode::Bind, nodes)));
        }
    });
}

/// Sets a policy and compares the answer.
fn check_set(mode: PolicyMode, flags: ModeFlags, nodes: &NodeSet, expected: Result<(), Errno>) {
    let wanted = policy(mode, flags, nodes.clone());
    let got = mempolicy::set_thread_policy(&wanted).map_err(|error| error.errno);
    assert_eq!(got, expected, "{wanted:?}");
}

#[test]
fn the_kernel_refuses_what_never_goes_together() {
    on_own_thread(|| {
        let Some(usable) = usable_nodes() else { return };
        if unless_blocked(mempolicy::set_thread_policy(&MemPolicy::DEFAULT)).is_none() {
            return;
        }
        let none = NodeSet::new();
        let absent = [absent_node()].into_iter().collect();
        let (plain, fixed) = (ModeFlags::NONE, ModeFlags::STATIC_NODES);
        let balancing = ModeFlags::NUMA_BALANCING;
        let both = fixed.with(ModeFlags::RELATIVE_NODES);
        let invalid = Err(Errno::EINVAL);
        for (mode, flags, nodes, expected) in [
            (PolicyMode::Default, plain, &none, Ok(())),
            (PolicyMode::Default, plain, &usable, invalid),
            (PolicyMode::Default, fixed, &none, Ok(())),
            (PolicyMode::Default, balancing, &none, invalid),
            (PolicyMode::Local, plain, &usable, invalid),
            (PolicyMode::Local, fixed, &none, invalid),
            (PolicyMode::Preferred, plain, &none, Ok(())),
            (PolicyMode::Preferred, fixed, &none, invalid),
            (PolicyMode::Preferred, balancing, &usable, invalid),
            (PolicyMode::Bind, plain, &none, invalid),
            (PolicyMode::Bind, plain, &absent, invalid),
            (PolicyMode::Bind, ModeFlags::RELATIVE_NODES, &absent, Ok(())),
            (PolicyMode::Bind, both, &usable, invalid),
            (PolicyMode::Interleave, balancing, &usable, invalid),
        ] {
            check_set(mode, flags, nodes, expected);
        }
    });
}

#[test]
fn a_preferred_policy_without_nodes_becomes_local() {
    on_own_thread(|| {
        let wanted = MemPolicy::new(PolicyMode::Preferred, NodeSet::new());
        if unless_blocked(mempolicy::set_thread_policy(&wanted)).is_none() {
            return;
        }
        if let Some(got) = read(mempolicy::thread_policy()) {
            assert_eq!(got, MemPolicy::new(PolicyMode::Local, NodeSet::new()));
        }
    });
}

#[test]
fn a_node_that_does_not_exist_is_explained_with_those_that_do() {
    on_own_thread(|| {
        let absent = [absent_node()].into_iter().collect();
        let error = mempolicy::set_thread_policy(&MemPolicy::new(PolicyMode::Bind, absent)).unwrap_err();
        if error.errno != Errno::EINVAL {
            unless_blocked::<()>(Err(error));
            return;
        }
        let explanation = explain(&error, &circumstances());
        if circumstances().online_nodes.is_some() {
            assert_eq!(explanation.limit, Limit::NoSuchNode, "{explanation}");
        }
    });
}

#[test]
fn the_nodes_that_are_allowed_are_those_of_the_status_file() {
    if let Some(nodes) = unless_blocked(mempolicy::allowed_nodes()) {
        assert_eq!(Some(nodes.to_string()), status("Mems_allowed_list"));
    }
}

fn small_buffer() -> NodeBuffer {
    NodeBuffer::reserve(Bytes::from_kib(256), PageKind::Small, None).unwrap()
}

#[test]
fn a_range_has_the_policy_that_was_set_and_no_other() {
    let Some(nodes) = usable_nodes() else { return };
    let buffer = small_buffer();
    let (start, half) = (buffer.address(), buffer.length().get() as usize / 2);
    let wanted = MemPolicy::new(PolicyMode::Bind, nodes);
    if unless_blocked(mempolicy::bind_range(start, half, &wanted, BindOptions::default())).is_none() {
        return;
    }
    assert_eq!(mempolicy::policy_at(start), Ok(wanted.clone()));
    assert_eq!(mempolicy::policy_at(start + half - 1), Ok(wanted));
    assert_eq!(mempolicy::policy_at(start + half), Ok(MemPolicy::DEFAULT));
}

#[test]
fn pages_on_the_nodes_of_the_policy_pass_the_strict_test_and_others_are_moved_there() {
    let Some(nodes) = usable_nodes() else { return };
    let buffer = NodeBuffer::new(Bytes::from_kib(256), PageKind::Small, None).unwrap();
    let (start, length) = (buffer.address(), buffer.length().get() as usize);
    let wanted = MemPolicy::new(PolicyMode::Bind, nodes.clone());
    for moving in [None, Some(PageScope::Own)] {
        let options = BindOptions { moving, strict: true };
        if unless_blocked(mempolicy::bind_range(start, length, &wanted, options)).is_none() {
            return;
        }
    }
    if let Some(counts) = unless_blocked(buffer.locations()) {
        assert!(counts.node_set().is_subset(&nodes), "{counts:?}");
    }
}

#[test]
fn pages_on_another_node_fail_the_strict_test_until_they_are_moved() {
    let Some(nodes) = usable_nodes() else { return };
    let (Some(here), Some(there)) = (nodes.nth(0), nodes.nth(1)) else {
        skip("one node: nothing can be misplaced");
        return;
    };
    let only = |node| MemPolicy::new(PolicyMode::Bind, [node].into_iter().collect());
    let buffer = NodeBuffer::new(Bytes::from_kib(256), PageKind::Small, Some(&only(here))).unwrap();
    let (start, length) = (buffer.address(), buffer.length().get() as usize);
    let strict = BindOptions { moving: None, strict: true };
    let error = mempolicy::bind_range(start, length, &only(there), strict).unwrap_err();
    assert_eq!((error.errno, explain(&error, &circumstances()).limit), (Errno::EIO, Limit::Misplaced));
    assert_eq!(mempolicy::policy_at(start), Ok(only(here)), "a failed strict call changes nothing");
    let moving = BindOptions { moving: Some(PageScope::Own), strict: true };
    mempolicy::bind_range(start, length, &only(there), moving).unwrap();
    if let Some(counts) = unless_blocked(buffer.locations()) {
        assert_eq!(counts.on(there), counts.total(), "{counts:?}");
    }
}

/// Binds the thread to a node that exists and cannot be used, and compares the explanation.
fn check_unusable(node: Option<NodeId>, limit: Limit) {
    let Some(node) = node else {
        skip(&format!("{limit:?}: there is no such node"));
        return;
    };
    let policy = MemPolicy::new(PolicyMode::Bind, [node].into_iter().collect());
    let error = mempolicy::set_thread_policy(&policy).unwrap_err();
    if error.errno == Errno::EINVAL {
        assert_eq!(explain(&error, &circumstances()).limit, limit, "{error}");
    } else {
        unless_blocked::<()>(Err(error));
    }
}

#[test]
fn a_node_that_exists_and_cannot_be_used_is_explained_by_cpuset_or_memory() {
    on_own_thread(|| {
        let known = circumstances();
        let (Some(online), Some(memory), Some(allowed)) =
            (known.online_nodes, known.memory_nodes, known.allowed_nodes)
        else {
            skip("the nodes are not listed here");
            return;
        };
        check_unusable(online.difference(&memory).first(), Limit::NodeWithoutMemory);
        check_unusable(memory.difference(&allowed).first(), Limit::Cpuset);
    });
}

#[test]
fn what_is_not_mapped_has_no_policy_and_takes_none() {
    // Nothing is ever mapped at address 0 of a process.
    let absent = mempolicy::policy_at(0);
    if let Err(ReadError::Call(error)) = &absent {
        if error.errno == Errno::EFAULT {
            assert_eq!(explain(error, &circumstances()).limit, Limit::Address);
        } else {
            unless_blocked::<()>(Err(error.clone()));
        }
    } else {
        panic!("{absent:?}");
    }
    let error = mempolicy::bind_range(0, 4096, &MemPolicy::DEFAULT, BindOptions::default()).unwrap_err();
    if error.errno == Errno::EFAULT {
        assert_eq!(explain(&error, &circumstances()).limit, Limit::Address);
    } else {
        unless_blocked::<()>(Err(error));
    }
}

#[test]
fn the_node_of_an_address_is_where_move_pages_finds_its_page() {
    let buffer = NodeBuffer::new(Bytes::from_kib(64), PageKind::Small, None).unwrap();
    let Some(node) = unless_blocked(mempolicy::node_at(buffer.address())) else { return };
    if let Some(counts) = unless_blocked(pages::count(Task::CURRENT, [buffer.address()])) {
        assert_eq!(counts.on(node), 1, "{counts:?}");
    }
}

#[test]
fn the_next_interleaved_node_is_the_first_of_a_new_policy() {
    on_own_thread(|| {
        let Some(nodes) = usable_nodes() else { return };
        let error = mempolicy::next_interleaved_node().unwrap_err();
        assert_eq!(error.errno, Errno::EINVAL);
        assert_eq!(explain(&error, &circumstances()).limit, Limit::Arguments);
        let wanted = MemPolicy::new(PolicyMode::Interleave, nodes.clone());
        if unless_blocked(mempolicy::set_thread_policy(&wanted)).is_some() {
            // Kernel memory of the calls in between may have moved the cursor on.
            let node = mempolicy::next_interleaved_node().unwrap();
            assert!(nodes.contains(node), "{node:?}");
        }
    });
}

/// Sets the home node of a new buffer under a policy and compares the answer.
fn check_home(policy: Option<&MemPolicy>, home: NodeId, expected: Result<(), Errno>, limit: Option<Limit>) {
    let buffer = small_buffer();
    let (start, length) = (buffer.address(), buffer.length().get() as usize);
    if let Some(policy) = policy {
        if unless_blocked(mempolicy::bind_range(start, length, policy, BindOptions::default())).is_none() {
            return;
        }
    }
    let got = mempolicy::set_home_node(start, length, home);
    if let Err(error) = &got {
        if error.errno == Errno::ENOSYS || error.errno == Errno::EPERM {
            unless_blocked(got);
            return;
        }
        assert_eq!(Some(explain(error, &circumstances()).limit), limit, "{error}");
    }
    assert_eq!(got.map_err(|error| error.errno), expected);
}

#[test]
fn a_home_node_goes_with_bind_and_is_refused_elsewhere() {
    let Some(nodes) = usable_nodes() else { return };
    let home = nodes.first().unwrap();
    let bind = MemPolicy::new(PolicyMode::Bind, nodes.clone());
    let interleave = MemPolicy::new(PolicyMode::Interleave, nodes);
    check_home(Some(&bind), home, Ok(()), None);
    check_home(None, home, Err(Errno::ENOENT), Some(Limit::Address));
    check_home(Some(&interleave), home, Err(Errno::EOPNOTSUPP), Some(Limit::Arguments));
    check_home(Some(&bind), absent_node(), Err(Errno::EINVAL), Some(Limit::NoSuchNode));
}
