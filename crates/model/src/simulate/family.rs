//! Who is whose child.

use super::holders::Id;

/// Parents and children of all programs that ever ran.
#[derive(Clone, Debug, Default)]
pub(super) struct Family {
    /// By number.
    members: Vec<Member>,
    births: Vec<Births>,
}

/// A program among its relatives.
#[derive(Clone, Debug)]
struct Member {
    /// The parent, and the number of the step that forked; `None` for who was started.
    parent: Option<(Id, u64)>,
    /// An ancestor so far away that any other is few leaps away; itself for who was started.
    leap: Id,
    /// Its ancestors.
    depth: u32,
    /// In the order of their births.
    children: Vec<Id>,
}

/// Children of one parent, with no other program between them.
#[derive(Clone, Debug)]
pub(super) struct Births {
    pub parent: Id,
    pub first: Id,
    pub last: Id,
}

impl Family {
    /// The number of the next program.
    pub fn next(&self) -> Id {
        self.members.len() as Id
    }

    /// Adds a program that starts, or is forked by another in a step.
    pub fn add(&mut self, parent: Option<(Id, u64)>) -> Id {
        let id = self.next();
        let (leap, depth) = parent.map_or((id, 0), |(parent, _)| self.below(parent));
        self.members.push(Member { parent, leap, depth, children: Vec::new() });
        if let Some((parent, _)) = parent {
            self.members[parent as usize].children.push(id);
            match self.births.last_mut().filter(|last| last.parent == parent && last.last + 1 == id) {
                Some(last) => last.last = id,
                None => self.births.push(Births { parent, first: id, last: id }),
            }
        }
        id
    }

    /// Where a child leaps to, and its depth. Two leaps of one length are followed by one over both, as digits are in a skew
    /// binary number: a way to an ancestor then takes steps by the logarithm of the depth.
    fn below(&self, parent: Id) -> (Id, u32) {
        let member = |id: Id| &self.members[id as usize];
        let (near, far) = (member(parent), member(member(parent).leap));
        let is_pair = near.depth - far.depth == far.depth - member(far.leap).depth;
        (if is_pair { far.leap } else { parent }, near.depth + 1)
    }

    /// The parent of a program, and the step that forked.
    pub fn parent(&self, id: Id) -> Option<(Id, u64)> {
        self.members.get(id as usize)?.parent
    }

    /// The nearest of a program and its ancestors whose number is below another.
    pub fn ancestor_below(&self, mut id: Id, bound: Id) -> Option<Id> {
        while id >= bound {
            let member = self.members.get(id as usize)?;
            let (parent, _) = member.parent?;
            id = if member.leap >= bound { member.leap } else { parent };
        }
        Some(id)
    }

    /// The births from the number of a program on; the first may have begun before.
    pub fn births_since(&self, id: Id) -> &[Births] {
        &self.births[self.births.partition_point(|births| births.last < id)..]
    }

    /// The children of a program from a number on.
    pub fn children_since(&self, parent: Id, id: Id) -> &[Id] {
        let children = self.members.get(parent as usize).map_or(&[][..], |member| &member.children);
        &children[children.partition_point(|child| *child < id)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn leaps_end_where_single_steps_do(back in proptest::collection::vec(0u32..4, 1..300), bound in 0u32..300) {
            let mut family = Family::default();
            for (id, back) in (0u32..).zip(back) {
                // Some are started, and most have the newest program for a parent: chains grow long.
                let parent = id.checked_sub(1 + back / 3 * (id / 2)).filter(|_| id % 97 > 0);
                prop_assert_eq!(family.add(parent.map(|parent| (parent, u64::from(id)))), id);
            }
            for id in 0..family.next() {
                let mut single = Some(id);
                while let Some(ancestor) = single.filter(|ancestor| *ancestor >= bound) {
                    single = family.parent(ancestor).map(|(parent, _)| parent);
                }
                prop_assert_eq!(family.ancestor_below(id, bound), single);
            }
        }
    }
}
