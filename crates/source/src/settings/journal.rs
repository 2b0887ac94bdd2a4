//! The journal of settings: what they were before nodewise changed them, and what it left there.
//!
//! ```text
//! nodewise.settings/1
//! change 1763856000 6f1d2c3b-0000-4000-8000-123456789abc
//! hugepages 1 2048 0 232
//! ```
//!
//! A change has the seconds since 1970 and the boot in which it was made: the settings of an earlier boot are gone.
//! Below it is each setting with its old value and the one that was left: a pool of huge pages with its node and
//! the size of a page in KiB, `weight` with its node, or `auto`.

use std::collections::BTreeSet;

use nodewise_machine::id::Id as _;
use nodewise_machine::printable::quote;
use nodewise_machine::{Bytes, NodeId};

use super::Setting;
use crate::boot;
use crate::parse::digits;

/// The first line.
pub const SCHEMA: &str = "nodewise.settings/1";

/// One setting that was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    pub setting: Setting,
    /// The value that it had.
    pub before: u64,
    /// The value that was left there.
    pub after: u64,
}

/// Settings that were changed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Seconds since 1970.
    pub at_unix_s: u64,
    /// The boot in which it was made.
    pub boot: String,
    /// In the order in which they were written.
    pub settings: Vec<Changed>,
}

/// Changes that were not taken back, the oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Journal {
    pub changes: Vec<Change>,
}

impl Journal {
    /// Writes it as text.
    pub fn to_text(&self) -> String {
        let mut text = format!("{SCHEMA}\n");
        for change in &self.changes {
            text.push_str(&format!("change {} {}\n", change.at_unix_s, change.boot));
            text.extend(change.settings.iter().map(line));
        }
        text
    }

    /// Reads what [`Journal::to_text`] wrote.
    ///
    /// # Errors
    /// The first line that is none of these, with its number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = (1..).zip(text.lines());
        match lines.next() {
            Some((_, SCHEMA)) => {}
            first => {
                let first = first.map_or("", |(_, line)| line);
                return Err(format!("line 1 is {}: expected {SCHEMA}", quote(first)));
            }
        }
        let mut journal = Self::default();
        for (number, line) in lines {
            let wrong = |expected: &str| format!("line {number} is {}: expected {expected}", quote(line));
            let words: Vec<&str> = line.split(' ').collect();
            if let ["change", rest @ ..] = words.as_slice() {
                let change = head(rest).ok_or_else(|| wrong(HEAD))?;
                journal.changes.push(change);
                continue;
            }
            let changed = setting(&words).ok_or_else(|| wrong(SETTING))?;
            let change = journal.changes.last_mut().ok_or_else(|| wrong(HEAD))?;
            change.settings.push(changed);
        }
        let twice = |change: &&Change| {
            let mut seen = BTreeSet::new();
            !change.settings.iter().all(|changed| seen.insert(changed.setting))
        };
        match journal.changes.iter().find(twice) {
            Some(change) => Err(format!("the change of {} names a setting twice", change.at_unix_s)),
            None => Ok(journal),
        }
    }
}

const HEAD: &str = "change, the seconds since 1970 and a boot id";
const SETTING: &str = "hugepages NODE KIB, weight NODE or auto, then the old and the new value";

fn line(changed: &Changed) -> String {
    let Changed { setting, before, after } = changed;
    let name = match setting {
        Setting::HugePages { node, size } => format!("hugepages {node} {}", size.get() >> 10),
        Setting::InterleaveWeight { node } => format!("weight {node}"),
        Setting::InterleaveWeightsAuto => "auto".to_owned(),
    };
    format!("{name} {before} {after}\n")
}

fn head(words: &[&str]) -> Option<Change> {
    let [at, boot] = words else { return None };
    let boot = Some(*boot).filter(|boot| boot::is_id(boot))?.to_owned();
    Some(Change { at_unix_s: digits(at)?, boot, settings: Vec::new() })
}

fn setting(words: &[&str]) -> Option<Changed> {
    let node = |text: &str| digits(text).filter(|node| *node < NodeId::LIMIT).map(NodeId::new);
    let (setting, values) = match words {
        ["hugepages", id, kib, values @ ..] => {
            let kib = digits::<u64>(kib).filter(|kib| kib.is_power_of_two() && *kib < 1 << 50)?;
            (Setting::HugePages { node: node(id)?, size: Bytes::from_kib(kib) }, values)
        }
        ["weight", id, values @ ..] => (Setting::InterleaveWeight { node: node(id)? }, values),
        ["auto", values @ ..] => (Setting::InterleaveWeightsAuto, values),
        _ => return None,
    };
    let [before, after] = values else { return None };
    Some(Changed { setting, before: digits(before)?, after: digits(after)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert_eq, prop_oneof, proptest};
    use proptest::strategy::Strategy;

    fn check(text: &str, expected: &str) {
        assert_eq!(Journal::parse(text).unwrap_err(), expected, "{text:?}");
    }

    #[test]
    fn a_journal_that_cannot_be_trusted_is_refused_with_the_line() {
        check("", "line 1 is \"\": expected nodewise.settings/1");
        check("nodewise.weights/1\n", "line 1 is \"nodewise.weights/1\": expected nodewise.settings/1");
        let begin = "nodewise.settings/1\n";
        check(
            &format!("{begin}hugepages 0 2048 0 1\n"),
            "line 2 is \"hugepages 0 2048 0 1\": expected change, the seconds since 1970 and a boot id",
        );
        let begin = format!("{begin}change 5 a-b\n");
        for line in [
            "hugepages ../../x 2048 0 1",
            "hugepages 0 2047 0 1",
            "hugepages 0 2048 0",
            "weight 99999 1 2",
            "file /etc/passwd 1 2",
            "",
        ] {
            let expected = format!(
                "line 3 is \"{line}\": expected hugepages NODE KIB, weight NODE or auto, then the old and the new value"
            );
            check(&format!("{begin}{line}\n"), &expected);
        }
        check(&format!("{begin}weight 0 1 2\nweight 0 2 3\n"), "the change of 5 names a setting twice");
    }

    fn settings() -> impl Strategy<Value = Setting> {
        let node = (0u32..1024).prop_map(NodeId::new);
        prop_oneof![
            (node.clone(), 0u32..40)
                .prop_map(|(node, power)| Setting::HugePages { node, size: Bytes::from_kib(1 << power) }),
            node.prop_map(|node| Setting::InterleaveWeight { node }),
            proptest::strategy::Just(Setting::InterleaveWeightsAuto),
        ]
    }

    proptest! {
        #[test]
        fn a_journal_is_read_back(
            changes in prop::collection::vec(
                (any::<u64>(), "[0-9a-f-]{1,36}", prop::collection::btree_map(settings(), any::<(u64, u64)>(), 0..6)),
                0..4,
            ),
        ) {
            let change = |(at_unix_s, boot, settings): (u64, String, std::collections::BTreeMap<Setting, (u64, u64)>)| {
                let changed = |(setting, (before, after))| Changed { setting, before, after };
                Change { at_unix_s, boot, settings: settings.into_iter().map(changed).collect() }
            };
            let journal = Journal { changes: changes.into_iter().map(change).collect() };
            prop_assert_eq!(Journal::parse(&journal.to_text()), Ok(journal));
        }

        #[test]
        fn any_text_is_survived(text in any::<String>(), lines in "((change|weight|hugepages|auto)( [0-9a-z-]{0,12}){0,4}\n){0,5}") {
            let _ = Journal::parse(&text);
            let _ = Journal::parse(&format!("{SCHEMA}\n{lines}"));
        }
    }
}
