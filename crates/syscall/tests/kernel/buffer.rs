//! Buffers of every kind.

use nodewise_machine::{Bytes, MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_syscall::{
    CallError, Errno, HugePageSize, Limit, NodeBuffer, PageKind, explain, huge, mempolicy, pages,
};

use crate::here::{absent_node, circumstances, skip, unless_blocked, usable_nodes};

/// A new buffer; `None`, with a line, where this machine cannot give one.
fn buffer(length: Bytes, kind: PageKind, policy: Option<&MemPolicy>) -> Option<NodeBuffer> {
    match NodeBuffer::new(length, kind, policy) {
        // No pool of that size (EINVAL), or an empty one (ENOMEM; EFAULT on the nodes asked for).
        Err(error) if matches!(kind, PageKind::Hugetlb(_)) && is_about_the_pool(&error) => {
            skip(&explain(&error, &circumstances()).to_string());
            None
        }
        result => unless_blocked(result),
    }
}

fn is_about_the_pool(error: &CallError) -> bool {
    let limit = explain(error, &circumstances()).limit;
    matches!(error.errno, Errno::ENOMEM | Errno::EFAULT) && limit == Limit::Memory
        || error.errno == Errno::EINVAL && limit == Limit::KernelBuild
}

/// Makes a buffer on each node and checks all that must hold of one.
fn check(length: Bytes, kind: PageKind) {
    let Some(nodes) = usable_nodes() else { return };
    for node in &nodes {
        check_on(length, kind, node);
    }
}

fn check_on(length: Bytes, kind: PageKind, node: NodeId) {
    let policy = MemPolicy::new(PolicyMode::Bind, [node].into_iter().collect());
    let Some(mut buffer) = buffer(length, kind, Some(&policy)) else { return };
    assert_eq!(buffer.as_slice().len() as u64, length.get());
    assert_eq!(buffer.as_words().len() as u64, length.get() / 8);
    assert_eq!(mempolicy::policy_at(buffer.address()), Ok(policy.clone()));
    assert_eq!(buffer.policy(), Some(&policy));
    let pages: Vec<&[u8]> = buffer.as_slice().chunks(pages::page_size()).collect();
    assert!(pages.iter().all(|page| page.iter().any(|byte| *byte != 0)), "every page was written");
    assert!(pages.windows(2).all(|two| two[0] != two[1]), "no two neighbours are alike");
    if let Some(counts) = unless_blocked(buffer.locations()) {
        assert_eq!(counts.on(node), counts.total(), "{counts:?}");
    }
    let words = buffer.as_mut_words();
    words[0] = 0x0102_0304_0506_0708;
    let last = words.len() - 1;
    words[last] = u64::MAX;
    assert_eq!(buffer.as_slice()[..8], 0x0102_0304_0506_0708_u64.to_ne_bytes());
}

#[test]
fn a_buffer_of_small_pages_is_where_its_policy_says() {
    check(Bytes::from_kib(512), PageKind::Small);
}

#[test]
fn a_buffer_need_not_be_whole_pages_long() {
    check(Bytes::new(12_345), PageKind::Small);
    check(Bytes::new(3 * (1 << 20) + 17), PageKind::TransparentHuge);
}

#[test]
fn a_buffer_of_transparent_huge_pages_starts_on_one() {
    let length = Bytes::new(2 * huge::transparent_huge_size() as u64);
    check(length, PageKind::TransparentHuge);
    let Some(buffer) = buffer(length, PageKind::TransparentHuge, None) else { return };
    assert_eq!(buffer.address() % huge::transparent_huge_size(), 0);
}

#[test]
fn a_buffer_of_pool_pages_is_given_or_the_pool_is_named() {
    check(Bytes::from_mib(2), PageKind::Hugetlb(HugePageSize::MIB_2));
    check(Bytes::from_gib(1), PageKind::Hugetlb(HugePageSize::GIB_1));
    let unheard_of = HugePageSize::new(Bytes::from_mib(128)).unwrap();
    check(Bytes::from_mib(128), PageKind::Hugetlb(unheard_of));
}

#[test]
fn a_buffer_of_no_bytes_is_refused() {
    for kind in [PageKind::Small, PageKind::TransparentHuge] {
        let error = NodeBuffer::new(Bytes::new(0), kind, None).unwrap_err();
        assert_eq!(error.errno, Errno::EINVAL, "{kind}");
        assert_eq!(explain(&error, &circumstances()).limit, Limit::Arguments);
    }
}

#[test]
fn a_policy_that_is_refused_leaves_no_buffer() {
    let nowhere: NodeSet = [absent_node()].into_iter().collect();
    let policy = MemPolicy::new(PolicyMode::Bind, nowhere);
    let error = NodeBuffer::new(Bytes::from_kib(64), PageKind::Small, Some(&policy)).unwrap_err();
    if error.errno == Errno::EINVAL {
        assert_eq!(error.call.name(), "mbind");
    } else {
        unless_blocked::<()>(Err(error));
    }
}

#[test]
fn a_buffer_is_given_back_when_it_is_dropped() {
    // Twice the address space of a program (2^48 bytes at most), 16 GiB at a time.
    let length = Bytes::from_gib(16);
    if let Err(error) = NodeBuffer::reserve(length, PageKind::Small, None) {
        // ENOMEM: a limit on address space, or on what may be committed.
        assert_eq!(explain(&error, &circumstances()).limit, Limit::Memory, "{error}");
        skip(&error.to_string());
        return;
    }
    for _ in 0..(2_u64 << 48) / length.get() {
        NodeBuffer::reserve(length, PageKind::TransparentHuge, None)
            .or_else(|_| NodeBuffer::reserve(length, PageKind::Small, None))
            .unwrap();
    }
}

#[test]
fn a_buffer_can_be_filled_by_another_thread() {
    let mut buffer = NodeBuffer::reserve(Bytes::from_kib(64), PageKind::Small, None).unwrap();
    let buffer = std::thread::spawn(move || {
        buffer.prefault().unwrap();
        buffer
    })
    .join()
    .unwrap();
    assert_eq!(buffer.as_words()[0], 1);
}
