//! Strings of nodes and CPUs, as numactl and libnuma read them.
//!
//! The grammar is that of the crate `notation`. Only members of an allowed set may be named; of a range only the
//! ends must be. `+` counts inside the allowed set, `!` inverts the result.

use nodewise_machine::id::Id;
use nodewise_machine::printable::printable;
use nodewise_machine::{CpuId, IdSet, NodeId, NodeSet};
use nodewise_notation::device::Device;
use nodewise_notation::number::Base;
use nodewise_notation::string::{self, Fault, Grammar};
use nodewise_notation::warning::{self, Argument, Subject};

use crate::warning::Warnings;

/// A string that names no set. Its warning has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid;

/// The members that can be named, and the meanings of the words.
pub trait Members<I: Id> {
    /// Whether a number may be in a string.
    fn may_name(&self, id: I) -> bool;

    /// The members that `+` counts and `all` stands for.
    fn all(&self) -> &IdSet<I>;

    /// Returns the set that `!` makes of a set.
    fn inverse(&self, set: &IdSet<I>) -> IdSet<I>;

    /// The digits that a number may have.
    fn base(&self) -> Base;

    /// Returns the number that a number is taken for: the originals count with 32 bits.
    fn counts(&self, number: u64) -> u64;

    /// A number in a warning.
    fn shown(&self, number: u64) -> i64;

    /// The number that is in a warning for a member that `+` does not find.
    fn beyond(&self) -> u64;

    /// The nodes of a device; `None` for those that are not known here.
    fn device(&self, device: Device<'_>, warnings: &mut Warnings<'_>) -> Option<Result<NodeSet, Invalid>>;
}

/// A kind of id that strings name.
pub trait Named: Id {
    /// Which warnings are about it.
    const SUBJECT: Subject;

    /// The member of this kind that a device stands for; CPUs have none.
    fn of_nodes(nodes: NodeSet) -> Option<IdSet<Self>>;
}

impl Named for NodeId {
    const SUBJECT: Subject = Subject::Nodes;

    fn of_nodes(nodes: NodeSet) -> Option<NodeSet> {
        Some(nodes)
    }
}

impl Named for CpuId {
    const SUBJECT: Subject = Subject::Cpus;

    fn of_nodes(_: NodeSet) -> Option<IdSet<Self>> {
        None
    }
}

/// Reads a string. What is wrong with it is written as libnuma writes it; some wrong strings earn no
/// warning.
///
/// # Errors
/// A string that names no set of members.
pub fn parse<I: Named>(
    text: &str,
    members: &dyn Members<I>,
    warnings: &mut Warnings<'_>,
) -> Result<IdSet<I>, Invalid> {
    if text.is_empty() {
        return Ok(IdSet::new());
    }
    let mut reading = Reading { members, warnings, set: IdSet::new() };
    match string::read(text.as_bytes(), Grammar::original(members.base()), &mut reading) {
        Ok(marks) if marks.inverse => Ok(members.inverse(&reading.set)),
        Ok(_) => Ok(reading.set),
        Err(fault) => {
            warn(&fault, members, warnings);
            Err(Invalid)
        }
    }
}

fn warn<I: Named>(fault: &Fault<'_, Invalid>, members: &dyn Members<I>, warnings: &mut Warnings<'_>) {
    match warning::of_string(I::SUBJECT, fault) {
        Some((warning, Argument::Number(number))) => warnings.warn(warning, &[&members.shown(number)]),
        Some((warning, Argument::Typed(typed))) => {
            warnings.warn(warning, &[&printable(&String::from_utf8_lossy(typed))]);
        }
        None => {}
    }
}

/// A string that is being read.
struct Reading<'r, 'w, I> {
    members: &'r dyn Members<I>,
    warnings: &'r mut Warnings<'w>,
    set: IdSet<I>,
}

impl<I: Named> string::Members for Reading<'_, '_, I> {
    type Member = I;
    type Failure = Invalid;

    fn named(&self, number: u64) -> Result<I, u64> {
        let counted = u32::try_from(self.members.counts(number)).ok().filter(|number| *number < I::LIMIT);
        counted.map(I::new).filter(|id| self.members.may_name(*id)).ok_or(number)
    }

    fn counted(&self, position: u64) -> Result<I, u64> {
        // What is negative in C is counted as -1.
        if (position as i64) < 0 {
            return self.named(u64::MAX);
        }
        let found = usize::try_from(position).ok().and_then(|position| self.members.all().nth(position));
        self.named(found.map_or_else(|| self.members.beyond(), |id| u64::from(id.number())))
    }

    fn put(&mut self, first: I, last: I) {
        self.set.insert(first);
        let between = (first.number()..=last.number()).map(I::new);
        self.set.extend(between.filter(|id| self.members.may_name(*id)));
    }

    fn put_all(&mut self) {
        self.set = self.set.union(self.members.all());
    }

    fn put_device(&mut self, device: Device<'_>) -> Option<Result<(), Invalid>> {
        let found = self.members.device(device, self.warnings)?;
        Some(found.and_then(|nodes| {
            self.set = self.set.union(&I::of_nodes(nodes).ok_or(Invalid)?);
            Ok(())
        }))
    }
}

#[cfg(test)]
mod tests;
