//! Runs of pages of this process.

use std::fs::File;
use std::os::fd::AsFd as _;

use nodewise_machine::Bytes;
use nodewise_syscall::pagemap::{PageRun, PageState, scan};
use nodewise_syscall::{Errno, NodeBuffer, PageKind, pages};

use crate::here::skip;

/// Runs of a range of this process; `None` on a kernel without the call.
fn runs(start: usize, length: usize) -> Option<Vec<PageRun>> {
    let pagemap = File::open("/proc/self/pagemap").expect("a process may read its own");
    let (start, end) = (start as u64, (start + length) as u64);
    let mut runs = Vec::new();
    match scan(pagemap.as_fd(), (start, end), |run| runs.push(run)) {
        Ok(()) => Some(runs),
        Err(Errno::ENOTTY | Errno::ENOSYS) => {
            skip("this kernel has no PAGEMAP_SCAN (Linux 6.7)");
            None
        }
        Err(errno) => panic!("{errno}"),
    }
}

#[test]
fn every_second_page_that_is_written_is_a_run_of_its_own() {
    let page = pages::page_size();
    // More runs than one call takes.
    let count = 5000;
    let mut buffer = NodeBuffer::reserve(Bytes::new((count * page) as u64), PageKind::Small, None).unwrap();
    let (start, length) = (buffer.address(), count * page);
    let Some(before) = runs(start, length) else { return };
    assert_eq!(before, []);
    for at in (0..count).step_by(2) {
        buffer.as_mut_slice()[at * page] = 1;
    }
    let found = runs(start, length).unwrap();
    assert_eq!(found.len(), count / 2);
    for (at, run) in found.iter().enumerate() {
        let from = (start + 2 * at * page) as u64;
        assert_eq!(*run, PageRun { start: from, end: from + page as u64, state: PageState::Small });
    }
    // What is read and was never written is the page of zeros.
    assert_eq!(std::hint::black_box(buffer.as_slice())[page], 0);
    let zero = runs(start + page, page).unwrap();
    assert_eq!(zero.iter().map(|run| run.state).collect::<Vec<_>>(), [PageState::Zero]);
}

#[test]
fn a_file_that_is_no_pagemap_is_refused() {
    let other = File::open("/proc/self/status").unwrap();
    let error = scan(other.as_fd(), (0, 4096), |_| ()).unwrap_err();
    assert_eq!(error, Errno::ENOTTY);
}
