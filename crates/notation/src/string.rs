//! Node strings: what people type to name nodes or CPUs.
//!
//! ```text
//! string := ['!'] ['+'] item {',' item}
//! item   := number | number '-' number | "all" | device       a device only at the end
//! ```
//!
//! `+` counts positions among the members that may be named, `!` takes the others ([`Others`]). Of a range only the
//! ends must be members. `same` and the empty string belong to the options of the callers.

use crate::device::{self, Device};
use crate::number::{self, Base};

/// The differences between the strings of the originals and those of `nodewise run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grammar {
    pub numbers: Numbers,
    /// The places where `all` may appear.
    pub all: All,
    /// The meaning of a range whose end is below its start.
    pub backwards: Backwards,
}

/// The numbers of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// As `strtoul(3)` reads them: the originals hand every number to it.
    C(Base),
    /// Decimal digits. In `nodewise run` 010 is ten: an octal node is a mistake more often than an intention.
    Digits,
}

/// The places where `all` may appear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum All {
    /// As the last item: the originals compare the rest of the string with it.
    Last,
    Anywhere,
}

/// A range whose end is below its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backwards {
    /// Its start, as in the originals.
    IsItsStart,
    /// A fault: it is a mistake, and the message shows the right order.
    IsAFault,
}

impl Grammar {
    /// Strings of numactl and libnuma.
    pub const fn original(base: Base) -> Self {
        Self { numbers: Numbers::C(base), all: All::Last, backwards: Backwards::IsItsStart }
    }

    /// Strings of `nodewise run` and specs.
    pub const NODEWISE: Self =
        Self { numbers: Numbers::Digits, all: All::Anywhere, backwards: Backwards::IsAFault };
}

/// Among which numbers `!` takes the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Those that exist: in numactl and libnuma. It is what the originals do on a machine without holes.
    Existing,
    /// Those below the count of what exists; a number above stays what it was. The originals do this, also where
    /// numbers have holes and these are the wrong ones; numactl does it where it is strict.
    BelowTheCount,
    /// Those that the program may use: in `nodewise run`, which refuses a set with others instead of handing it to
    /// the kernel.
    Usable,
}

/// The members that a string can name.
pub trait Members {
    /// A member.
    type Member: Copy;
    /// Why a device has no members.
    type Failure;

    /// The member with a number, or the number that a warning names.
    ///
    /// # Errors
    /// A number that may not be named.
    fn named(&self, number: u64) -> Result<Self::Member, u64>;

    /// The member at a position, counted from 0, or the number that a warning names.
    ///
    /// # Errors
    /// A position that has no member.
    fn counted(&self, position: u64) -> Result<Self::Member, u64>;

    /// Takes a member, or a range of them with what lies between.
    fn put(&mut self, first: Self::Member, last: Self::Member);

    /// Takes all.
    fn put_all(&mut self);

    /// Takes the members of a device; `None` where devices of this kind are not known.
    fn put_device(&mut self, device: Device<'_>) -> Option<Result<(), Self::Failure>>;
}

/// The marks in front of the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Marks {
    /// `!`: the others are meant.
    pub inverse: bool,
    /// `+`: positions are meant.
    pub relative: bool,
}

/// Where and why a string names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault<'a, F> {
    /// The rest of the string from there.
    pub rest: &'a [u8],
    pub reason: Reason<F>,
}

/// Why a string names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason<F> {
    /// A number, named here, that is not a member.
    OutOfRange(u64),
    /// The same at the end of a range.
    EndOutOfRange(u64),
    /// A range without an end.
    NoEnd,
    /// A range with these ends.
    Backwards(u64, u64),
    /// Text that begins no item.
    Unparseable,
    /// Text behind an item that carries no string on.
    Behind,
    Device(F),
}

impl<F> Fault<'_, F> {
    /// The byte of the string, counted from 0.
    pub fn at(&self, string: &[u8]) -> usize {
        string.len().saturating_sub(self.rest.len())
    }
}

/// Reads a string and hands its members over. `!` is the caller's to apply, when this has succeeded.
///
/// # Errors
/// What is wrong first. Members before it were handed over.
pub fn read<'a, M: Members>(
    string: &'a [u8],
    grammar: Grammar,
    members: &mut M,
) -> Result<Marks, Fault<'a, M::Failure>> {
    let (inverse, rest) = strip(string, b'!');
    let (relative, rest) = strip(rest, b'+');
    let mut reader = Reader { rest, grammar, relative, members };
    loop {
        reader.item()?;
        match reader.rest.split_first() {
            None => return Ok(Marks { inverse, relative }),
            Some((b',', rest)) => reader.rest = rest,
            Some(_) => return Err(Fault { rest: reader.rest, reason: Reason::Behind }),
        }
    }
}

fn strip(text: &[u8], mark: u8) -> (bool, &[u8]) {
    match text.split_first() {
        Some((first, rest)) if *first == mark => (true, rest),
        _ => (false, text),
    }
}

struct Reader<'a, 'm, M> {
    rest: &'a [u8],
    grammar: Grammar,
    relative: bool,
    members: &'m mut M,
}

impl<'a, M: Members> Reader<'a, '_, M> {
    fn item(&mut self) -> Result<(), Fault<'a, M::Failure>> {
        if let Some(rest) = self.rest.strip_prefix(b"all") {
            if rest.is_empty() || self.grammar.all == All::Anywhere {
                self.members.put_all();
                self.rest = rest;
                return Ok(());
            }
        }
        let text = self.rest;
        let Some((number, rest)) = self.number(text) else { return self.device() };
        self.rest = rest;
        let first = self.member(number).map_err(|shown| fault(text, Reason::OutOfRange(shown)))?;
        let (true, end) = strip(rest, b'-') else {
            self.members.put(first, first);
            return Ok(());
        };
        let Some((end_number, rest)) = self.number(end) else { return Err(fault(end, Reason::NoEnd)) };
        let last = self.member(end_number).map_err(|shown| fault(end, Reason::EndOutOfRange(shown)))?;
        if end_number < number && self.grammar.backwards == Backwards::IsAFault {
            return Err(fault(text, Reason::Backwards(number, end_number)));
        }
        self.rest = rest;
        // What lies between is the caller's, and nothing does where the end is below the start.
        self.members.put(first, last);
        Ok(())
    }

    fn number(&self, text: &'a [u8]) -> Option<(u64, &'a [u8])> {
        match self.grammar.numbers {
            Numbers::C(base) => number::leading(text, base),
            // A number too large is one that no member has.
            Numbers::Digits if text.first().is_some_and(u8::is_ascii_digit) => {
                number::leading(text, Base::Decimal)
            }
            Numbers::Digits => None,
        }
    }

    fn member(&self, number: u64) -> Result<M::Member, u64> {
        if self.relative { self.members.counted(number) } else { self.members.named(number) }
    }

    fn device(&mut self) -> Result<(), Fault<'a, M::Failure>> {
        let text = self.rest;
        let taken = device::split(text).and_then(|device| self.members.put_device(device));
        match taken {
            Some(Ok(())) => {
                self.rest = &[];
                Ok(())
            }
            Some(Err(failure)) => Err(fault(text, Reason::Device(failure))),
            None => Err(fault(text, Reason::Unparseable)),
        }
    }
}

fn fault<F>(rest: &[u8], reason: Reason<F>) -> Fault<'_, F> {
    Fault { rest, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceKind;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use std::collections::BTreeSet;

    /// Members 0, 2, 5 and 7; the interface eth0 is at 5.
    #[derive(Default)]
    struct Four(BTreeSet<u64>);

    const ALL: [u64; 4] = [0, 2, 5, 7];

    impl Members for Four {
        type Member = u64;
        type Failure = String;

        fn named(&self, number: u64) -> Result<u64, u64> {
            if ALL.contains(&number) { Ok(number) } else { Err(number) }
        }

        fn counted(&self, position: u64) -> Result<u64, u64> {
            usize::try_from(position).ok().and_then(|at| ALL.get(at)).copied().ok_or(64)
        }

        fn put(&mut self, first: u64, last: u64) {
            self.0.insert(first);
            self.0.extend(ALL.into_iter().filter(|number| (first..=last).contains(number)));
        }

        fn put_all(&mut self) {
            self.0.extend(ALL);
        }

        fn put_device(&mut self, device: Device<'_>) -> Option<Result<(), String>> {
            (device.kind == DeviceKind::Net).then(|| {
                let found = device.name == b"eth0";
                self.0.extend(found.then_some(5));
                found.then_some(()).ok_or_else(|| String::from_utf8_lossy(device.name).into_owned())
            })
        }
    }

    fn shown(string: &str, grammar: Grammar) -> String {
        let mut members = Four::default();
        match read(string.as_bytes(), grammar, &mut members) {
            Ok(Marks { inverse, .. }) => {
                let set = members.0.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
                format!("{}{set}", if inverse { "others than " } else { "" })
            }
            Err(fault) => format!("{:?} at {}", fault.reason, fault.at(string.as_bytes())),
        }
    }

    fn check(string: &str, expected: &str) {
        assert_eq!(shown(string, Grammar::original(Base::Prefixed)), expected, "{string:?}");
    }

    fn check_run(string: &str, expected: &str) {
        assert_eq!(shown(string, Grammar::NODEWISE), expected, "{string:?}");
    }

    #[test]
    fn every_form_is_read_in_both_grammars() {
        for (string, expected) in [
            ("0", "0"),
            ("0,5", "0,5"),
            ("0-7", "0,2,5,7"),
            ("2-5,7", "2,5,7"),
            ("all", "0,2,5,7"),
            ("0,all", "0,2,5,7"),
            ("!2", "others than 2"),
            ("+0", "0"),
            ("+1-2", "2,5"),
            ("!+0", "others than 0"),
            ("netdev:eth0", "5"),
            ("0,netdev:eth0", "0,5"),
            ("0-3", "EndOutOfRange(3) at 2"),
            ("1", "OutOfRange(1) at 0"),
            ("0,1", "OutOfRange(1) at 2"),
            ("+4", "OutOfRange(64) at 1"),
            ("0-", "NoEnd at 2"),
            ("0-x", "NoEnd at 2"),
            ("", "Unparseable at 0"),
            ("!", "Unparseable at 1"),
            ("0,", "Unparseable at 2"),
            ("+!0", "Unparseable at 1"),
            ("disk:0", "Unparseable at 0"),
            ("pci:0", "Unparseable at 0"),
            ("netdev:lo", "Device(\"lo\") at 0"),
            ("0;2", "Behind at 1"),
            ("0-2-5", "Behind at 3"),
        ] {
            check(string, expected);
            check_run(string, expected);
        }
    }

    #[test]
    fn the_originals_have_numbers_of_c_and_backward_ranges() {
        check("0x5", "5");
        check("05", "5");
        check(" 5", "5");
        check("++3", "7");
        check("+++3", "Unparseable at 1");
        check("-1", "OutOfRange(18446744073709551615) at 0");
        check("5-2", "5");
        check("all,0", "Unparseable at 0");
        check("allx", "Unparseable at 0");
    }

    #[test]
    fn nodewise_has_digits_and_refuses_backward_ranges() {
        check_run("0x5", "Behind at 1");
        check_run("010", "OutOfRange(10) at 0");
        check_run(" 5", "Unparseable at 0");
        check_run("++3", "Unparseable at 1");
        check_run("-1", "Unparseable at 0");
        check_run("5-2", "Backwards(5, 2) at 0");
        check_run("all,0", "0,2,5,7");
        check_run("all0", "Behind at 3");
        check_run("99999999999999999999", "OutOfRange(18446744073709551615) at 0");
    }

    #[test]
    fn the_first_fault_is_the_one_that_is_named() {
        check("1-x", "OutOfRange(1) at 0");
        check("5-1", "EndOutOfRange(1) at 2");
    }

    fn grammars() -> [Grammar; 3] {
        [Grammar::NODEWISE, Grammar::original(Base::Prefixed), Grammar::original(Base::PrefixedOrBinary)]
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            for grammar in grammars() {
                if let Err(fault) = read(&bytes, grammar, &mut Four::default()) {
                    prop_assert!(bytes.ends_with(fault.rest));
                }
            }
        }

        #[test]
        fn nearly_strings_name_members_or_nothing(string in r"[!+0-9,al\-:netdvx ]{0,20}") {
            for grammar in grammars() {
                let mut members = Four::default();
                let _ = read(string.as_bytes(), grammar, &mut members);
                prop_assert!(members.0.iter().all(|number| ALL.contains(number)));
            }
        }

        #[test]
        fn a_list_of_members_names_them(numbers in proptest::collection::btree_set(0usize..4, 1..4)) {
            let text = |each: fn(usize) -> u64| {
                numbers.iter().map(|number| each(*number).to_string()).collect::<Vec<_>>().join(",")
            };
            for grammar in grammars() {
                let plain = shown(&text(|at| ALL[at]), grammar);
                prop_assert_eq!(&plain, &text(|at| ALL[at]));
                prop_assert_eq!(shown(&format!("+{}", text(|at| at as u64)), grammar), plain);
            }
        }
    }
}
