//! Expressions with which a user names nodes or CPUs.
//!
//! The grammar is [`Grammar::NODEWISE`] of the crate `notation`, with `same` for the whole; devices name nodes only.
//!
//! | form | means |
//! |---|---|
//! | `0-2,5` | these |
//! | `all` | every one this process may use |
//! | `!1` | every one this process may use, except these |
//! | `+0-1` | the first and second of those this process may use |
//! | `same` | what the option before said |
//! | `net:eth0`, `pci:21:00.0` | the node of that device |
//!
//! Parsing knows no machine; [`SetExpr::resolve`] brings the text and the machine together.

use std::fmt;
use std::marker::PhantomData;

use nodewise_notation::device::Device;
use nodewise_notation::string::{self, Fault, Grammar, Members, Reason};

use crate::device::{DeviceError, DeviceRef};
use crate::id::Id;
use crate::printable::quote;
use crate::set::{IdSet, column};

/// One item of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    One(u32),
    /// Two numbers and what lies between them.
    Range(u32, u32),
    /// Every one that may be used.
    All,
    /// The node of a device.
    Device(DeviceRef),
}

/// A set as typed, before it meets a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetExpr {
    /// `same`: what the option before said.
    Same,
    /// Items, perhaps inverted or counted by position.
    Items {
        /// `!`: those that are *not* named.
        invert: bool,
        /// `+`: numbers count positions among those that may be used.
        relative: bool,
        items: Vec<Item>,
    },
}

/// Finds the nodes of a device; the error is a finished sentence.
pub type FindDevice<'a, I> = dyn Fn(&DeviceRef) -> Result<IdSet<I>, String> + 'a;

/// The sets that an expression is resolved against.
pub struct Scope<'a, I> {
    /// Those that this machine has.
    pub existing: &'a IdSet<I>,
    /// Those that may be named one by one.
    pub allowed: &'a IdSet<I>,
    /// The limit behind `allowed`, for messages: `this cpuset's memory nodes`.
    pub limit: &'a str,
    /// Those that `all`, `!` and `+` speak of: what this process uses already. For CPUs these can
    /// be fewer than it could be given, as under `taskset`.
    pub own: &'a IdSet<I>,
    /// The set that `same` stands for, if an option came before.
    pub same: Option<&'a IdSet<I>>,
    /// Finds the nodes of a device. `None`: no devices here.
    pub device: Option<&'a FindDevice<'a, I>>,
}

/// Why an expression has no meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExprError {
    /// It is not of the grammar.
    Syntax {
        /// The text that was read.
        text: String,
        /// The kind of thing that is named: `node`, `CPU`.
        word: &'static str,
        /// Where it goes wrong, counted in characters from 1.
        column: usize,
        expected: String,
    },
    /// A device that is not of the grammar.
    Device(DeviceError),
    /// A device that has no node.
    DeviceNode(String),
    /// A number that the machine does not have.
    DoesNotExist {
        /// The kind of thing that is named: `node`, `CPU`.
        word: &'static str,
        number: u32,
        existing: String,
    },
    /// A number that exists and may not be used.
    NotAllowed {
        /// The kind of thing that is named: `node`, `CPU`.
        word: &'static str,
        number: u32,
        /// The name of the limit.
        limit: String,
        /// The ids that may be used, as a list.
        allowed: String,
    },
    /// A position beyond the number of those that may be used.
    NoSuchPosition {
        /// The kind of thing that is named: `node`, `CPU`.
        word: &'static str,
        position: u32,
        count: usize,
    },
    /// `same` without an option before it.
    NothingBefore,
    Empty {
        text: String,
        /// The kind of thing that is named: `node`, `CPU`.
        word: &'static str,
    },
}

impl fmt::Display for ExprError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { text, word, column, expected } => {
                write!(f, "{} does not name {word}s: expected {expected} (column {column})", quote(text))
            }
            Self::Device(error) => error.fmt(f),
            Self::DeviceNode(sentence) => f.write_str(sentence),
            Self::DoesNotExist { word, number, existing } => {
                write!(
                    f,
                    "{word} {number} does not exist: this machine has {word}{} {existing}",
                    plural(existing)
                )
            }
            Self::NotAllowed { word, number, limit, allowed } => {
                write!(f, "{word} {number} is outside {limit} {allowed}")
            }
            Self::NoSuchPosition { word, position, count } => {
                write!(f, "+{position} names no {word}: this process may use {count}, counted from +0")
            }
            Self::NothingBefore => f.write_str("\"same\" needs a node option before it"),
            Self::Empty { text, word } => write!(f, "{} names no {word} at all", quote(text)),
        }
    }
}

impl std::error::Error for ExprError {}

fn plural(list: &str) -> &'static str {
    if list.bytes().all(|b| b.is_ascii_digit()) { "" } else { "s" }
}

/// Whether an expression may hold devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Devices {
    Accepted,
    Refused,
}

/// An expression that is being read.
struct Reading<I> {
    items: Vec<Item>,
    devices: Devices,
    kind: PhantomData<I>,
}

/// Why a device cannot appear in an expression.
enum NoDevice {
    Refused,
    /// It is not of the grammar.
    Invalid(DeviceError),
}

impl<I: Id> Reading<I> {
    /// A number, or a position, that some machine could have.
    fn below_the_limit(number: u64) -> Result<u32, u64> {
        u32::try_from(number).ok().filter(|number| *number < I::LIMIT).ok_or(number)
    }
}

impl<I: Id> Members for Reading<I> {
    type Member = u32;
    type Failure = NoDevice;

    fn named(&self, number: u64) -> Result<u32, u64> {
        Self::below_the_limit(number)
    }

    fn counted(&self, position: u64) -> Result<u32, u64> {
        Self::below_the_limit(position)
    }

    fn put(&mut self, first: u32, last: u32) {
        self.items.push(if first == last { Item::One(first) } else { Item::Range(first, last) });
    }

    fn put_all(&mut self) {
        self.items.push(Item::All);
    }

    fn put_device(&mut self, device: Device<'_>) -> Option<Result<(), NoDevice>> {
        if self.devices == Devices::Refused {
            return Some(Err(NoDevice::Refused));
        }
        let device = String::from_utf8_lossy(device.text).parse();
        Some(device.map(|device| self.items.push(Item::Device(device))).map_err(NoDevice::Invalid))
    }
}

/// A fault in words.
fn syntax<I: Id>(text: &str, devices: Devices, fault: Fault<'_, NoDevice>) -> ExprError {
    let expected = match fault.reason {
        Reason::Device(NoDevice::Invalid(error)) => return ExprError::Device(error),
        Reason::Device(NoDevice::Refused) => format!("{} numbers, not a device", I::WORD),
        Reason::OutOfRange(_) | Reason::EndOutOfRange(_) => format!("a number below {}", I::LIMIT),
        Reason::NoEnd => "a number after \"-\"".to_owned(),
        Reason::Backwards(first, last) => format!("the smaller number first, {last}-{first}"),
        Reason::Unparseable if devices == Devices::Accepted => {
            "a number, \"all\", or a device such as net:eth0".to_owned()
        }
        Reason::Unparseable => "a number or \"all\"".to_owned(),
        Reason::Behind => "\",\", \"-\" or the end".to_owned(),
    };
    let column = column(text, fault.at(text.as_bytes()));
    ExprError::Syntax { text: text.to_owned(), word: I::WORD, column, expected }
}

impl SetExpr {
    /// Reads an expression for ids of kind `I`.
    ///
    /// # Errors
    /// [`ExprError::Syntax`] or [`ExprError::Device`], with the column.
    pub fn parse<I: Id>(text: &str, devices: Devices) -> Result<Self, ExprError> {
        if text == "same" {
            return Ok(Self::Same);
        }
        let mut reading = Reading::<I> { items: Vec::new(), devices, kind: PhantomData };
        let marks = string::read(text.as_bytes(), Grammar::NODEWISE, &mut reading)
            .map_err(|fault| syntax::<I>(text, devices, fault))?;
        Ok(Self::Items { invert: marks.inverse, relative: marks.relative, items: reading.items })
    }

    /// Returns the ids that the expression names on a machine; never empty.
    ///
    /// The ends of a range must exist and be allowed; ids between them that do not exist or are
    /// not allowed are left out, so that `0-8` works where only 0 and 8 exist.
    ///
    /// # Errors
    /// Every variant of [`ExprError`] but the first two.
    pub fn resolve<I: Id>(&self, scope: &Scope<'_, I>) -> Result<IdSet<I>, ExprError> {
        let (invert, relative, items) = match self {
            Self::Same => return scope.same.cloned().ok_or(ExprError::NothingBefore),
            Self::Items { invert, relative, items } => (*invert, *relative, items),
        };
        let one = |number: u32| if relative { position(scope, number) } else { member(scope, number) };
        let mut named = IdSet::new();
        for item in items {
            match item {
                Item::One(number) => {
                    named.insert(one(*number)?);
                }
                Item::Range(first, last) => {
                    let range = IdSet::range(one(*first)?, one(*last)?);
                    named = named.union(&range.intersection(scope.allowed));
                }
                Item::All => named = named.union(scope.own),
                Item::Device(device) => {
                    let Some(find) = scope.device else {
                        return Err(ExprError::DeviceNode(format!("{device} cannot be looked up here")));
                    };
                    named = named.union(&find(device).map_err(ExprError::DeviceNode)?);
                }
            }
        }
        // `Others::Usable` of the crate `notation`.
        let named = if invert { scope.own.difference(&named) } else { named };
        if named.is_empty() {
            return Err(ExprError::Empty { text: self.to_string(), word: I::WORD });
        }
        Ok(named)
    }
}

fn position<I: Id>(scope: &Scope<'_, I>, position: u32) -> Result<I, ExprError> {
    scope.own.nth(position as usize).ok_or(ExprError::NoSuchPosition {
        word: I::WORD,
        position,
        count: scope.own.len(),
    })
}

fn member<I: Id>(scope: &Scope<'_, I>, number: u32) -> Result<I, ExprError> {
    let id = I::new(number);
    if !scope.existing.contains(id) {
        let existing = scope.existing.to_string();
        return Err(ExprError::DoesNotExist { word: I::WORD, number, existing });
    }
    if !scope.allowed.contains(id) {
        return Err(ExprError::NotAllowed {
            word: I::WORD,
            number,
            limit: scope.limit.to_owned(),
            allowed: scope.allowed.to_string(),
        });
    }
    Ok(id)
}

impl fmt::Display for SetExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (invert, relative, items) = match self {
            Self::Same => return f.write_str("same"),
            Self::Items { invert, relative, items } => (*invert, *relative, items),
        };
        f.write_str(if invert { "!" } else { "" })?;
        f.write_str(if relative { "+" } else { "" })?;
        for (at, item) in items.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "," })?;
            match item {
                Item::One(number) => write!(f, "{number}")?,
                Item::Range(first, last) => write!(f, "{first}-{last}")?,
                Item::All => f.write_str("all")?,
                Item::Device(device) => write!(f, "{device}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{CpuId, NodeId};
    use crate::set::NodeSet;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn resolve(text: &str) -> Result<String, String> {
        let existing = NodeSet::from([0, 2, 5, 7]);
        let allowed = NodeSet::from([0, 2, 5]);
        let device = |device: &DeviceRef| match device {
            DeviceRef::Net(name) if name == "eth0" => Ok(NodeSet::from([5])),
            other => Err(format!("{other} does not exist")),
        };
        let same = NodeSet::from([2]);
        let scope = Scope {
            existing: &existing,
            allowed: &allowed,
            limit: "this cpuset's memory nodes",
            own: &allowed,
            same: Some(&same),
            device: Some(&device),
        };
        SetExpr::parse::<NodeId>(text, Devices::Accepted)
            .and_then(|expr| expr.resolve(&scope))
            .map(|set| set.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn every_form_is_resolved() {
        for (text, expected) in [
            ("0", "0"),
            ("0-2,5", "0,2,5"),
            ("0-5", "0,2,5"),
            ("all", "0,2,5"),
            ("!2", "0,5"),
            ("!0,5", "2"),
            ("+0-1", "0,2"),
            ("!+0", "2,5"),
            ("+2", "5"),
            ("same", "2"),
            ("net:eth0", "5"),
            ("0,netdev:eth0", "0,5"),
            ("!net:eth0", "0,2"),
        ] {
            assert_eq!(resolve(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_has_no_meaning_is_explained() {
        for (text, expected) in [
            ("1", "node 1 does not exist: this machine has nodes 0,2,5,7"),
            ("7", "node 7 is outside this cpuset's memory nodes 0,2,5"),
            ("0-7", "node 7 is outside this cpuset's memory nodes 0,2,5"),
            ("+3", "+3 names no node: this process may use 3, counted from +0"),
            ("!all", "\"!all\" names no node at all"),
            (
                "",
                "\"\" does not name nodes: expected a number, \"all\", or a device such as net:eth0 (column 1)",
            ),
            ("0-", "\"0-\" does not name nodes: expected a number after \"-\" (column 3)"),
            ("5-0", "\"5-0\" does not name nodes: expected the smaller number first, 0-5 (column 1)"),
            ("0;1", "\"0;1\" does not name nodes: expected \",\", \"-\" or the end (column 2)"),
            ("all0", "\"all0\" does not name nodes: expected \",\", \"-\" or the end (column 4)"),
            ("net:eth9", "net:eth9 does not exist"),
            ("99999", "\"99999\" does not name nodes: expected a number below 16384 (column 1)"),
        ] {
            assert_eq!(resolve(text).unwrap_err(), expected, "{text}");
        }
    }

    #[test]
    fn cpus_have_no_devices() {
        let error = SetExpr::parse::<CpuId>("net:eth0", Devices::Refused).unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"net:eth0\" does not name CPUs: expected CPU numbers, not a device (column 1)"
        );
    }

    proptest! {
        #[test]
        fn parse_then_print_is_identity(text in r"!?\+?([0-9]{1,3}|[0-9]-[1-9][0-9]|all)(,([0-9]{1,3}|all)){0,4}") {
            let expr = SetExpr::parse::<CpuId>(&text, Devices::Refused).unwrap();
            prop_assert_eq!(SetExpr::parse::<CpuId>(&expr.to_string(), Devices::Refused).unwrap(), expr);
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            let _ = SetExpr::parse::<NodeId>(&text, Devices::Accepted);
        }

        #[test]
        fn nearly_expressions_are_resolved_or_refused_without_a_panic(text in r"[!+0-9,al\-:net]{0,20}") {
            let _ = resolve(&text);
        }
    }
}
