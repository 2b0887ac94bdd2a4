//! Where pages are, and moving them.

use nodewise_machine::{Bytes, NodeSet};
use nodewise_syscall::{
    Errno, Limit, NodeBuffer, PageCounts, PageKind, PageLocation, PageScope, Task, explain, pages,
};

use crate::here::{absent_node, circumstances, skip, unless_blocked, usable_node, usable_nodes};

/// A process that does not exist: Linux numbers processes below 2^22.
fn nobody() -> Task {
    Task::new(i32::MAX as u32).unwrap()
}

/// Where the page at an address is; `None` where the question is blocked.
fn locate(address: usize) -> Option<PageLocation> {
    let mut found = None;
    unless_blocked(pages::locate(Task::CURRENT, [address], |_, location| found = Some(location)))?;
    Some(found.expect("one page was asked for"))
}

#[test]
fn a_page_is_nowhere_then_zero_then_on_a_node() {
    let mut buffer = NodeBuffer::reserve(Bytes::from_kib(64), PageKind::Small, None).unwrap();
    let Some(untouched) = locate(buffer.address()) else { return };
    assert_eq!(untouched, PageLocation::NotPresent);
    assert_eq!(std::hint::black_box(buffer.as_slice())[0], 0);
    assert_eq!(locate(buffer.address()), Some(PageLocation::ZeroOrUnmapped));
    buffer.as_mut_slice()[0] = 1;
    let written = locate(buffer.address());
    assert!(matches!(written, Some(PageLocation::Node(_))), "{written:?}");
    assert_eq!(locate(0), Some(PageLocation::ZeroOrUnmapped));
}

#[test]
fn more_pages_than_fit_in_one_call_are_each_counted_once() {
    let page = pages::page_size();
    let length = Bytes::new(page as u64 * 9001);
    let buffer = NodeBuffer::new(length, PageKind::Small, None).unwrap();
    let Some(counts) = unless_blocked(buffer.locations()) else { return };
    assert_eq!(counts.total(), 9001);
    assert_eq!(counts.present(), 9001, "{counts:?}");
    let mut next = buffer.address();
    pages::locate(Task::CURRENT, pages::addresses(buffer.address(), page * 9001, page), |address, _| {
        assert_eq!(address, next);
        next += page;
    })
    .unwrap();
    assert_eq!(next, buffer.address() + page * 9001);
}

#[test]
fn pages_are_moved_to_where_they_were_told() {
    let Some(nodes) = usable_nodes() else { return };
    let buffer = NodeBuffer::new(Bytes::from_kib(256), PageKind::Small, None).unwrap();
    let addresses = || pages::addresses(buffer.address(), buffer.length().get() as usize, pages::page_size());
    for node in &nodes {
        let moves = addresses().map(|address| (address, node));
        let Some(counts) = unless_blocked(pages::move_each(Task::CURRENT, moves, PageScope::Own)) else {
            return;
        };
        // A page may be busy for a moment; none may be lost, and none elsewhere.
        assert_eq!(counts.total(), addresses().count() as u64);
        assert!(counts.on(node) > 0, "{counts:?}");
    }
    assert_eq!(buffer.as_words()[0], 1, "moving keeps what the pages hold");
}

#[test]
fn a_page_cannot_be_moved_to_a_node_that_does_not_exist() {
    let buffer = NodeBuffer::new(Bytes::from_kib(64), PageKind::Small, None).unwrap();
    let moves = [(buffer.address(), absent_node())];
    let error = pages::move_each(Task::CURRENT, moves, PageScope::Own).unwrap_err();
    if error.errno == Errno::ENODEV {
        assert_eq!(explain(&error, &circumstances()).limit, Limit::NoSuchNode);
    } else {
        unless_blocked::<()>(Err(error));
    }
}

#[test]
fn a_page_cannot_be_moved_out_of_the_cpuset() {
    let known = circumstances();
    let outside = known.memory_nodes.zip(known.allowed_nodes);
    let Some(node) = outside.and_then(|(memory, allowed)| memory.difference(&allowed).first()) else {
        skip("the cpuset allows every node");
        return;
    };
    let buffer = NodeBuffer::new(Bytes::from_kib(64), PageKind::Small, None).unwrap();
    let error = pages::move_each(Task::CURRENT, [(buffer.address(), node)], PageScope::Own).unwrap_err();
    if error.errno == Errno::EACCES {
        assert_eq!(explain(&error, &circumstances()).limit, Limit::Cpuset);
    } else {
        unless_blocked::<()>(Err(error));
    }
}

#[test]
fn moving_shared_pages_works_or_names_the_capability() {
    let Some(node) = usable_node() else { return };
    let buffer = NodeBuffer::new(Bytes::from_kib(64), PageKind::Small, None).unwrap();
    match pages::move_each(Task::CURRENT, [(buffer.address(), node)], PageScope::All) {
        Ok(counts) => assert_eq!(counts.total(), 1),
        Err(error) => {
            // Without CAP_SYS_NICE of the first user namespace: EPERM. Under a filter: blocked.
            let limit = explain(&error, &circumstances()).limit;
            assert!(matches!(limit, Limit::Privilege | Limit::Seccomp), "{error}");
        }
    }
}

#[test]
fn all_pages_of_this_process_can_be_migrated_to_where_they_are() {
    let Some(nodes) = usable_nodes() else { return };
    if let Some(left) = unless_blocked(pages::migrate(Task::CURRENT, &nodes, &nodes)) {
        assert_eq!(left, 0);
    }
    let empty = NodeSet::new();
    if let Some(left) = unless_blocked(pages::migrate(Task::CURRENT, &empty, &nodes)) {
        assert_eq!(left, 0, "no pages are on no nodes");
    }
}

#[test]
fn a_migration_to_nowhere_is_explained_by_its_targets() {
    let Some(nodes) = usable_nodes() else { return };
    let to = [absent_node()].into_iter().collect();
    let error = pages::migrate(Task::CURRENT, &nodes, &to).unwrap_err();
    // The kernel looks first whether the targets are allowed (EPERM without CAP_SYS_NICE), then
    // whether any can be used (EINVAL).
    if error.errno == Errno::EINVAL {
        assert_eq!(explain(&error, &circumstances()).limit, Limit::NoSuchNode);
    } else if explain(&error, &circumstances()).limit != Limit::Cpuset {
        unless_blocked::<()>(Err(error));
    }
}

#[test]
fn a_process_that_does_not_exist_is_said_to_be_gone() {
    let Some(nodes) = usable_nodes() else { return };
    for error in
        [pages::count(nobody(), [0]).unwrap_err(), pages::migrate(nobody(), &nodes, &nodes).unwrap_err()]
    {
        if error.errno == Errno::ESRCH {
            assert_eq!(explain(&error, &circumstances()).limit, Limit::Gone);
        } else {
            unless_blocked::<()>(Err(error));
        }
    }
}

#[test]
fn asking_for_no_pages_is_answered_with_none() {
    let counts = pages::count(nobody(), []).unwrap();
    assert_eq!(counts, PageCounts::default());
}
