//! Strings of nodes and CPUs, as numactl and libnuma read them.
//!
//! ```text
//! string := ['!'] ['+'] item {',' item} | ""
//! item   := number | number '-' number | "all" | device       the last two only at the end
//! ```
//!
//! A number is one of C, so `0x1` and `010` are numbers. Only members of an allowed set may be
//! named; of a range only the ends must be. `+` counts inside the allowed set, `!` inverts the
//! result.

use std::marker::PhantomData;

use nodewise_machine::id::Id;
use nodewise_machine::printable::printable;
use nodewise_machine::{CpuId, IdSet, NodeId, NodeSet};

use crate::number::{self, Base};
use crate::warning::{Kind, Warnings};

/// A string that names no set. Its warning has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid;

/// What can be named, and what the words stand for.
pub trait Members<I: Id> {
    /// Whether a number may stand in a string.
    fn may_name(&self, id: I) -> bool;

    /// The members that `+` counts and `all` stands for.
    fn all(&self) -> &IdSet<I>;

    /// What `!` makes of a set.
    fn inverse(&self, set: &IdSet<I>) -> IdSet<I>;

    /// The digits that a number may have.
    fn base(&self) -> Base;

    /// What a number is taken for: the originals count with 32 bits.
    fn counts(&self, number: u64) -> u64;

    /// A number in a warning.
    fn shown(&self, number: u64) -> i64;

    /// The number that stands in a warning for a member that `+` does not find.
    fn beyond(&self) -> u64;

    /// The nodes of a device; `None` when the text begins like none.
    fn device(&self, text: &str, warnings: &mut Warnings<'_>) -> Option<Result<NodeSet, Invalid>>;
}

/// A kind of id that strings name.
pub trait Named: Id {
    /// What a warning calls it.
    const NAME: &'static str;
    /// Which warnings are about it.
    const KIND: Kind;

    /// What a warning names that is out of range: the number, or the rest of the string.
    fn out_of_range(number: i64, rest: &str) -> String;

    /// The member of this kind that a device stands for; CPUs have none.
    fn of_nodes(nodes: NodeSet) -> Option<IdSet<Self>>;
}

impl Named for NodeId {
    const NAME: &'static str = "node";
    const KIND: Kind = Kind::NodeString;

    fn out_of_range(number: i64, _: &str) -> String {
        number.to_string()
    }

    fn of_nodes(nodes: NodeSet) -> Option<NodeSet> {
        Some(nodes)
    }
}

impl Named for CpuId {
    const NAME: &'static str = "cpu";
    const KIND: Kind = Kind::CpuString;

    fn out_of_range(_: i64, rest: &str) -> String {
        printable(rest).into_owned()
    }

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
    let (inverse, text) = strip(text, '!');
    let (relative, text) = strip(text, '+');
    let mut reader = Reader { rest: text, relative, members, warnings, kind: PhantomData };
    let set = reader.items()?;
    Ok(if inverse { members.inverse(&set) } else { set })
}

fn strip(text: &str, prefix: char) -> (bool, &str) {
    text.strip_prefix(prefix).map_or((false, text), |rest| (true, rest))
}

struct Reader<'r, 'w, I> {
    rest: &'r str,
    relative: bool,
    members: &'r dyn Members<I>,
    warnings: &'r mut Warnings<'w>,
    kind: PhantomData<I>,
}

impl<I: Named> Reader<'_, '_, I> {
    fn items(&mut self) -> Result<IdSet<I>, Invalid> {
        let mut set = IdSet::new();
        loop {
            if self.rest == "all" {
                return Ok(set.union(self.members.all()));
            }
            let item = self.rest;
            let Some(number) = self.number() else { return self.device(set) };
            let Some(first) = self.member(number) else {
                let shown = I::out_of_range(self.members.shown(number), item);
                return self.warn(&format!("argument {shown} is out of range"));
            };
            set.insert(first);
            if let Some(rest) = self.rest.strip_prefix('-') {
                self.rest = rest;
                let last = self.range_end()?;
                let between = (first.number()..=last.number()).map(I::new);
                set.extend(between.filter(|id| self.members.may_name(*id)));
            }
            match self.rest.strip_prefix(',') {
                Some(rest) => self.rest = rest,
                None if self.rest.is_empty() => return Ok(set),
                None => return Err(Invalid),
            }
        }
    }

    fn range_end(&mut self) -> Result<I, Invalid> {
        let item = self.rest;
        let Some(number) = self.number() else {
            let text = format!("missing {} argument {}\n", I::NAME, printable(item));
            self.warnings.warn(I::KIND, &text);
            return Err(Invalid);
        };
        match self.member(number) {
            Some(last) => Ok(last),
            None => {
                let shown = I::out_of_range(self.members.shown(number), item);
                self.warn(&format!("argument {shown} out of range"))
            }
        }
    }

    /// The next number; one that counts inside the allowed set is already what it counts to.
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = number::leading(self.rest, self.members.base())?;
        self.rest = rest;
        if !self.relative {
            return Some(number);
        }
        // What is negative in C is counted as -1.
        if (number as i64) < 0 {
            return Some(u64::MAX);
        }
        let counted = usize::try_from(number).ok().and_then(|index| self.members.all().nth(index));
        Some(counted.map_or_else(|| self.members.beyond(), |id| u64::from(id.number())))
    }

    fn member(&self, number: u64) -> Option<I> {
        let number = self.members.counts(number);
        let number = u32::try_from(number).ok().filter(|number| *number < I::LIMIT)?;
        Some(I::new(number)).filter(|id| self.members.may_name(*id))
    }

    /// What is no number may be a device, which reaches to the end of the string.
    fn device(&mut self, set: IdSet<I>) -> Result<IdSet<I>, Invalid> {
        let found = self.members.device(self.rest, self.warnings);
        match found {
            Some(nodes) => I::of_nodes(nodes?).map(|found| set.union(&found)).ok_or(Invalid),
            None => {
                let text = format!("unparseable {} description `{}'\n", I::NAME, printable(self.rest));
                self.warnings.warn(I::KIND, &text);
                Err(Invalid)
            }
        }
    }

    fn warn<T>(&mut self, text: &str) -> Result<T, Invalid> {
        self.warnings.warn(I::KIND, &format!("{} {text}\n", I::NAME));
        Err(Invalid)
    }
}

#[cfg(test)]
mod tests;
