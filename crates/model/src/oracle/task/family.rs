//! A program and its child, while they have pages in common.
//!
//! # Source
//! `fork(2)`: the child has copies of the policies and the same pages. `do_wp_page` in `mm/memory.c`: who
//! writes to a common page first gets a copy, and the other keeps the page; 5.19 to at least 7.2. Seen on
//! 6.1 and 6.12, where one exception showed that is not modelled: a page that another CPU touched so lately
//! that it still waits there for its place in the kernel's lists is copied for the other too.
//!
//! `do_huge_pmd_wp_page` in `mm/huge_memory.c`: of a huge page, too, one small page is copied, and the writer
//! has the rest of it in parts. Seen on 6.12 and 6.18.

use std::collections::BTreeSet;

use nodewise_machine::NodeId;

use super::Task;
use super::page::{Page, Size};
use crate::memory::Memory;

/// Who of the two does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// The program that has forked.
    Parent,
    Child,
}

impl Member {
    /// The other of the two.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Parent => Self::Child,
            Self::Child => Self::Parent,
        }
    }
}

/// A program that has forked, and its child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    parent: Task,
    child: Task,
    /// Private pages that neither has written to since: one page for both.
    common: BTreeSet<u64>,
}

impl Family {
    /// `fork(2)`. The child has one thread, and nothing that was kept from it
    /// ([`Task::keep_from_children`]).
    pub fn fork(parent: Task) -> Self {
        let inherited = parent.pages.iter().filter(|(_, page)| page.inherited);
        // Pages of a file are found again when they are touched.
        let copy = |page: &Page| Page { mapped: page.mapped && !page.is_file(), ..page.clone() };
        let pages = inherited.map(|(number, page)| (*number, copy(page))).collect();
        let child = Task { pages, ..parent.alone() };
        let is_common = |page: &Page| page.home.is_some() && !page.is_file();
        let common = child.pages.iter().filter(|(_, page)| is_common(page)).map(|(number, _)| *number);
        Self { common: common.collect(), parent, child }
    }

    /// One of the two.
    pub const fn member(&self, member: Member) -> &Task {
        match member {
            Member::Parent => &self.parent,
            Member::Child => &self.child,
        }
    }

    /// One of the two, for what it does with memory that the other does not have.
    pub const fn member_mut(&mut self, member: Member) -> &mut Task {
        match member {
            Member::Parent => &mut self.parent,
            Member::Child => &mut self.child,
        }
    }

    /// A call of one of the two that takes no page and moves none: policies of files are then those of the
    /// other too.
    pub fn call<T>(&mut self, member: Member, call: impl FnOnce(&mut Task) -> T) -> T {
        let (caller, other) = self.both(member);
        let answer = call(caller);
        for (number, page) in other.pages.iter_mut().filter(|(_, page)| page.is_file()) {
            if let Some(callers) = caller.pages.get(number) {
                page.policy.clone_from(&callers.policy);
            }
        }
        answer
    }

    /// The one and the other.
    const fn both(&mut self, member: Member) -> (&mut Task, &mut Task) {
        match member {
            Member::Parent => (&mut self.parent, &mut self.child),
            Member::Child => (&mut self.child, &mut self.parent),
        }
    }

    /// Writes to a page: the writer's node of it, or `None` as [`Task::touch`].
    pub fn write(&mut self, member: Member, page: u64, memory: &mut Memory) -> Option<NodeId> {
        if self.is_shared(member, page) {
            return self.copy(member, page, memory);
        }
        let (writer, other) = self.both(member);
        let files = |page: &&mut Page| page.is_file();
        if let Some(own) = writer.pages.get_mut(&page).filter(files) {
            // The other may have brought it into the file.
            own.home = own.home.or_else(|| other.pages.get(&page)?.home);
        }
        let node = writer.touch(page, memory);
        let home = writer.pages.get(&page)?.home;
        if let Some(others) = other.pages.get_mut(&page).filter(files) {
            others.home = home;
        }
        node
    }

    /// Whether a page, or the huge page that it is part of, is in common.
    fn is_shared(&self, member: Member, page: u64) -> bool {
        let (writer, other) = (self.member(member), self.member(member.other()));
        match writer.pages.get(&page).map(|page| page.size) {
            Some(Size::Huge) => self.common.range(writer.around.block_of(page)).next().is_some(),
            // Only a huge page that was in common is in parts.
            Some(Size::Part) => {
                other.pages.range(writer.around.block_of(page)).any(|(_, page)| page.size != Size::Small)
            }
            _ => self.common.contains(&page),
        }
    }

    /// Gives the writer a small page of its own in the place of one that is in common. A huge page stays
    /// with the other, and with the writer in parts.
    fn copy(&mut self, member: Member, page: u64, memory: &mut Memory) -> Option<NodeId> {
        let kept = self.common.remove(&page);
        let (writer, _) = self.both(member);
        for (_, part) in
            writer.pages.range_mut(writer.around.block_of(page)).filter(|(_, page)| page.size == Size::Huge)
        {
            part.size = Size::Part;
        }
        let copied = writer.pages.get_mut(&page)?;
        copied.size = Size::Small;
        let home = copied.home.take();
        if let Some((node, kind)) = home.filter(|_| !kept) {
            // A part that neither has any more. The kernel takes it back when it needs memory.
            memory.free(node, kind, 1);
        }
        writer.touch_small(page, memory)
    }

    /// The child ends: its own pages are given back.
    pub fn end(self, memory: &mut Memory) -> Task {
        let own =
            self.child.pages.iter().filter(|(number, page)| !page.is_file() && !self.common.contains(number));
        for (node, kind) in own.filter_map(|(_, page)| page.home) {
            memory.free(node, kind, 1);
        }
        self.parent
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{policy, start, start_on};
    use super::*;
    use crate::release::Release;
    use Member::{Child, Parent};
    use proptest::prelude::{any, prop_assert_eq, proptest};

    /// The nodes of pages 0-3 of one of the two; 9 for a page that it does not have.
    #[track_caller]
    fn check(family: &Family, member: Member, expected: [u32; 4]) {
        let node = |page: u64| family.member(member).node_of(page).map_or(9, |node| node.number());
        assert_eq!([0, 1, 2, 3].map(node), expected, "{member:?}");
    }

    /// A huge page on node 0, in common with a child on node 2.
    fn huge_family(release: Release) -> (Family, Memory) {
        let (mut task, mut memory) = start_on(release);
        task.map_huge(0..512);
        task.touch(0, &mut memory);
        let mut family = Family::fork(task);
        family.call(Child, |child| child.run_on(NodeId::new(2)));
        (family, memory)
    }

    /// Two pages of four on node 0, a child on node 2.
    fn family() -> (Family, Memory) {
        let (mut task, mut memory) = start();
        task.map(0..4);
        task.touch(0, &mut memory);
        task.touch(1, &mut memory);
        let mut family = Family::fork(task);
        family.call(Child, |child| child.run_on(NodeId::new(2)));
        (family, memory)
    }

    #[test]
    fn who_writes_first_gets_the_copy_and_the_other_keeps_the_page() {
        let (mut family, mut memory) = family();
        family.write(Child, 0, &mut memory);
        family.call(Parent, |parent| parent.run_on(NodeId::new(3)));
        family.write(Parent, 0, &mut memory);
        family.write(Parent, 1, &mut memory);
        family.write(Child, 1, &mut memory);
        check(&family, Child, [2, 0, 9, 9]);
        check(&family, Parent, [0, 3, 9, 9]);
    }

    #[test]
    fn a_copy_is_placed_by_the_policy_of_its_writer() {
        let (mut family, mut memory) = family();
        family.call(Parent, |parent| parent.set_policy(&policy("prefer:1"))).unwrap();
        family.write(Child, 0, &mut memory);
        family.write(Parent, 1, &mut memory);
        check(&family, Child, [2, 0, 9, 9]);
        check(&family, Parent, [0, 1, 9, 9]);
    }

    #[test]
    fn what_is_touched_later_is_not_common() {
        let (mut family, mut memory) = family();
        family.write(Child, 2, &mut memory);
        family.write(Parent, 3, &mut memory);
        check(&family, Child, [0, 0, 2, 9]);
        check(&family, Parent, [0, 0, 9, 0]);
    }

    #[test]
    fn a_page_of_a_file_is_where_the_first_of_the_two_put_it() {
        let (mut task, mut memory) = start();
        task.map_file(0..4, 0, 0);
        let mut family = Family::fork(task);
        family.call(Child, |child| child.run_on(NodeId::new(2)));
        family.write(Child, 0, &mut memory);
        check(&family, Parent, [9; 4]);
        family.write(Parent, 0, &mut memory);
        family.write(Parent, 1, &mut memory);
        check(&family, Parent, [2, 0, 9, 9]);
        // The policy is the file's, whoever sets it.
        let stay = crate::migrate::Present::Stay;
        family.call(Parent, |parent| parent.bind(2..4, &policy("bind:3"), stay, &mut memory)).unwrap();
        family.write(Child, 2, &mut memory);
        check(&family, Child, [2, 9, 3, 9]);
    }

    #[test]
    fn a_page_of_a_file_that_only_the_child_touched_does_not_move_for_the_parent() {
        // Scripts 500034 on 6.18 and 401052 on 6.12: move_pages finds nothing at the address.
        let (mut task, mut memory) = start();
        task.map_file(0..4, 0, 0);
        let mut family = Family::fork(task);
        family.call(Child, |child| child.run_on(NodeId::new(2)));
        family.write(Child, 0, &mut memory);
        family.write(Parent, 1, &mut memory);
        for page in [0, 1] {
            family.call(Parent, |parent| parent.move_page(page, NodeId::new(3), &mut memory)).unwrap();
        }
        check(&family, Parent, [9, 3, 9, 9]);
        family.write(Parent, 0, &mut memory);
        check(&family, Parent, [2, 3, 9, 9]);
    }

    #[test]
    fn of_a_huge_page_in_common_one_small_page_is_copied() {
        let (mut family, mut memory) = huge_family(Release::REFERENCE);
        family.write(Child, 1, &mut memory);
        check(&family, Child, [0, 2, 0, 0]);
        check(&family, Parent, [0; 4]);
        family.call(Parent, |parent| parent.run_on(NodeId::new(3)));
        family.write(Parent, 1, &mut memory);
        family.write(Parent, 2, &mut memory);
        check(&family, Parent, [0, 3, 3, 0]);
        check(&family, Child, [0, 2, 0, 0]);
    }

    #[test]
    fn a_huge_page_that_was_not_split_is_the_parents_again() {
        let (mut family, mut memory) = huge_family(Release::REFERENCE);
        family.write(Child, 1, &mut memory);
        let mut parent = family.end(&mut memory);
        parent.run_on(NodeId::new(3));
        parent.touch(2, &mut memory);
        assert_eq!(parent.node_of(2), Some(NodeId::new(0)));
    }

    #[test]
    fn parts_of_a_huge_page_are_copied_without_a_child_before_6_15() {
        for (release, node) in [(Release::REFERENCE, 3), (Release::new(6, 18), 0)] {
            let (mut family, mut memory) = huge_family(release);
            family.write(Parent, 1, &mut memory);
            let mut parent = family.end(&mut memory);
            parent.run_on(NodeId::new(3));
            parent.touch(2, &mut memory);
            assert_eq!(parent.node_of(2), Some(NodeId::new(node)), "{release}");
        }
    }

    #[test]
    fn parts_of_a_huge_page_move_together_and_are_small_ones_then() {
        let moved = |release: Release| {
            let (mut family, mut memory) = huge_family(release);
            family.write(Parent, 1, &mut memory);
            let mut parent = family.end(&mut memory);
            for (page, node) in [(1, 2), (3, 1), (2, 3)] {
                parent.move_page(page, NodeId::new(node), &mut memory).unwrap();
            }
            parent.touch(2, &mut memory);
            [0, 1, 2, 3].map(|page| parent.node_of(page).map(NodeId::number))
        };
        // Before 6.10 they move as one page, and a write to a part is a copy still: script 300029 on
        // `drawn-300`, 6.1.
        assert_eq!(moved(Release::new(6, 1)), [Some(3), Some(2), Some(0), Some(3)]);
        // Pages 2 and 3 held nothing but zeros when the first was moved.
        assert_eq!(moved(Release::REFERENCE), [Some(1), Some(2), Some(0), None]);
    }

    #[test]
    fn what_is_kept_from_children_is_missing() {
        let (mut task, mut memory) = start();
        task.map(0..4);
        task.touch(0, &mut memory);
        task.keep_from_children(0..2);
        let mut family = Family::fork(task);
        assert_eq!(family.write(Child, 0, &mut memory), None);
        assert_eq!(family.write(Child, 2, &mut memory), Some(NodeId::new(0)));
    }

    #[test]
    fn the_childs_end_gives_back_what_was_its_own() {
        let (mut family, mut memory) = family();
        let free = |memory: &Memory| memory.nodes().iter().map(|node| memory.free_of(node)).sum::<u64>();
        let before = free(&memory);
        for (member, page) in [(Child, 0), (Parent, 0), (Parent, 1), (Child, 2), (Parent, 3)] {
            family.write(member, page, &mut memory);
        }
        assert_eq!(before - free(&memory), 4);
        let parent = family.end(&mut memory);
        assert_eq!(before - free(&memory), 1);
        assert_eq!(parent.node_of(2), None);
    }

    proptest! {
        #[test]
        fn no_page_is_lost_or_given_twice(writes in proptest::collection::vec((any::<bool>(), 0u64..16), 0..40)) {
            let (mut task, mut memory) = start();
            let free = |memory: &Memory| memory.nodes().iter().map(|node| memory.free_of(node)).sum::<u64>();
            let before = free(&memory);
            task.map(0..4);
            task.map_file(4..8, 9, 0);
            task.map_huge(512..1024);
            for page in [0, 1, 4, 512] {
                task.touch(page, &mut memory);
            }
            let mut family = Family::fork(task);
            for (childs, page) in writes {
                let page = if page < 8 { page } else { 512 + page };
                family.write(if childs { Child } else { Parent }, page, &mut memory);
                let of = |member: Member, page: u64| family.member(member).pages[&page].home.is_some();
                let private = (0..4).chain(512..1024).map(|page| u64::from(of(Parent, page)) + u64::from(of(Child, page))).sum::<u64>();
                let files = (4..8).filter(|page| of(Parent, *page)).count() as u64;
                prop_assert_eq!(before - free(&memory), private - family.common.len() as u64 + files);
            }
            let parent = family.end(&mut memory);
            let kept = parent.pages.values().filter(|page| page.home.is_some()).count() as u64;
            prop_assert_eq!(before - free(&memory), kept);
        }
    }
}
