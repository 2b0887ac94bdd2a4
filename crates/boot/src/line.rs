//! A kernel command line: its words, and changing some of them while all others stay as they are.
//!
//! # Source
//! The kernel's own reading, as `Documentation/admin-guide/kernel-parameters.rst` describes it: words
//! are divided by blanks, double quotes protect blanks, `-` and `_` in names are the same, and what
//! follows `--` is not the kernel's.

use std::ops::Range;

use crate::error::Refusal;
use crate::policy::DefaultPolicy;
use crate::pool::{self, BootPools};

/// Bytes of a command line that x86-64 and arm64 kernels read (`COMMAND_LINE_SIZE` less the zero byte).
pub const MOST_BYTES: usize = 2047;

/// A parameter that is to have a value, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting {
    /// How its words begin: `numa=fake=`.
    prefix: &'static str,
    /// The whole word; `None`: no such word is to be there.
    word: Option<String>,
}

/// A change to a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    settings: Vec<Setting>,
    pools: Option<BootPools>,
}

/// How the word that asks for emulated nodes begins.
pub const FAKE: &str = "numa=fake=";
/// How the word begins that gives Raspberry Pi kernels another default policy.
pub const POLICY: &str = "numa_policy=";

/// A change to the default policy of Raspberry Pi kernels, `numa_policy=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy<'a> {
    /// It stays as it is, or is missing.
    Leave,
    /// It is taken out wherever it is.
    Remove,
    Set(&'a DefaultPolicy),
}

/// Whether a text can be a part of a word in every file this crate writes.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_=,:.+-".contains(c))
}

impl Change {
    /// `numa=fake=FAKE`, and what is to become of the default policy of Raspberry Pi kernels. `None` where
    /// a value holds anything else than letters, digits and `_=,:.+-`.
    pub fn emulate(fake: &str, policy: Policy<'_>) -> Option<Self> {
        let setting = |prefix, value: &str| {
            is_plain(value).then(|| Setting { prefix, word: Some(format!("{prefix}{value}")) })
        };
        let policy = match policy {
            Policy::Leave => None,
            Policy::Remove => Some(Setting { prefix: POLICY, word: None }),
            Policy::Set(policy) => Some(setting(POLICY, &policy.to_string())?),
        };
        let settings = [Some(setting(FAKE, fake)?), policy].into_iter().flatten().collect();
        Some(Self { settings, pools: None })
    }

    /// No emulation: none of these words.
    pub fn none() -> Self {
        let setting = |prefix| Setting { prefix, word: None };
        Self { settings: [FAKE, POLICY].map(setting).to_vec(), pools: None }
    }

    /// Pools of huge pages of one size.
    pub const fn pools(pools: BootPools) -> Self {
        Self { settings: Vec::new(), pools: Some(pools) }
    }

    /// One node only, in words, for boot loaders that ask for an emulation of their own: the last one takes
    /// precedence.
    pub fn one_node() -> Self {
        let mut change = Self::none();
        change.settings[0].word = Some(format!("{FAKE}1"));
        change
    }

    /// The same without the words that are wanted: for the parts of a line that do not get them.
    fn without_words(&self) -> Self {
        let settings = self.settings.iter().map(|setting| Setting { word: None, ..setting.clone() });
        Self { settings: settings.collect(), pools: self.pools.as_ref().map(BootPools::emptied) }
    }

    /// The words that are wanted.
    pub fn words(&self) -> Vec<String> {
        let pools = self.pools.iter().filter_map(BootPools::words);
        self.settings.iter().filter_map(|setting| setting.word.clone()).chain(pools).collect()
    }

    /// How the words begin that the change replaces or takes out.
    pub(crate) fn prefixes(&self) -> impl Iterator<Item = &'static str> {
        let pools: &[_] = if self.pools.is_some() { &[pool::SIZE, pool::PAGES] } else { &[] };
        self.settings.iter().map(|setting| setting.prefix).chain(pools.iter().copied())
    }

    /// Whether the change asks for emulated nodes.
    fn is_emulation(&self) -> bool {
        self.settings.iter().any(|setting| setting.word.is_some())
    }

    /// The edit that a person would make with an editor.
    pub fn by_hand(&self) -> String {
        let words = self.words();
        if words.is_empty() && self.pools.is_some() {
            "take hugepages= and the hugepagesz= before it out of the kernel's command line".to_owned()
        } else if words.is_empty() {
            "take numa=fake= and numa_policy= out of the kernel's command line".to_owned()
        } else {
            let takes_out = self.settings.iter().any(|setting| setting.word.is_none());
            let rest = if takes_out { ", and take numa_policy= out of it" } else { "" };
            format!("put {} into the kernel's command line{rest}", words.join(" "))
        }
    }

    /// The line with the change. What is there already stays where it is.
    ///
    /// # Errors
    /// A quote that is not closed, `numa=off` where an emulation is wanted, and a line that would be too
    /// long.
    pub fn apply(&self, line: &str) -> Result<String, Refusal> {
        Ok(self.apply_to_parts(&[line], 0)?.concat())
    }

    /// The same for a line that a boot loader joins from parts; one part gets the words.
    ///
    /// # Errors
    /// Those of [`Change::apply`], for all parts together, and pools whose size is named in another part than
    /// their number, if the change would give that number another size.
    pub(crate) fn apply_to_parts(&self, parts: &[&str], wanted: usize) -> Result<Vec<String>, Refusal> {
        let before = parts.join(" ");
        if self.is_emulation() && kernel_words(&before)?.iter().any(|word| is_off(&before[word.clone()])) {
            return Err(Refusal::NumaOff);
        }
        let rest = self.without_words();
        let mut size = pool::SizeInForce::default();
        let mut changed = Vec::with_capacity(parts.len());
        for (at, part) in parts.iter().enumerate() {
            let change = if at == wanted { self } else { &rest };
            let mut line = (*part).to_owned();
            for setting in &change.settings {
                setting.apply(&mut line)?;
            }
            if let Some(pools) = &change.pools {
                size = pools.apply(&mut line, size)?;
            }
            changed.push(line);
        }
        let after = changed.join(" ");
        if let Some(pools) = &self.pools {
            pools.check_others(&before, &after)?;
        }
        if after.len() > MOST_BYTES && after.len() > before.len() {
            return Err(Refusal::TooLong { bytes: after.len(), most: MOST_BYTES });
        }
        Ok(changed)
    }
}

impl Setting {
    fn apply(&self, line: &mut String) -> Result<(), Refusal> {
        let is_ours = |line: &str, word: &Range<usize>| begins(&line[word.clone()], self.prefix);
        let mut ours = kernel_words(line)?;
        ours.retain(|word| is_ours(line, word));
        // The last word counts, so it is the one that stays.
        let kept = if self.word.is_some() { ours.pop() } else { None };
        if let Some(word) = &self.word {
            match kept {
                Some(there) => line.replace_range(there, word),
                None => insert(line, word, 0)?,
            }
        }
        // From the end on, so that the ranges before stay true; the kept word was behind them all.
        for word in ours.into_iter().rev() {
            remove(line, word);
        }
        Ok(())
    }
}

/// The value of the last word of a line that begins so: `8` for `numa=fake=`.
///
/// ```
/// assert_eq!(nodewise_boot::line::value("root=/dev/sda1 numa=fake=4 ro", "numa=fake="), Some("4"));
/// ```
pub fn value<'a>(line: &'a str, prefix: &str) -> Option<&'a str> {
    let words = kernel_words(line).ok()?;
    let last = words.into_iter().rev().find(|word| begins(&line[word.clone()], prefix))?;
    value_of(&line[last], prefix)
}

/// The value of a word that begins so; `None` for another word.
pub(crate) fn value_of<'a>(word: &'a str, prefix: &str) -> Option<&'a str> {
    begins(word, prefix).then(|| word.trim_matches('"')[prefix.len()..].trim_matches('"'))
}

/// Whether a text that is more than a line of words has a word that begins so.
pub(crate) fn mentions(text: &str, prefix: &str) -> bool {
    let is_start = |at: usize| {
        let before = text[..at].chars().next_back();
        before.is_none_or(|c| !c.is_ascii_alphanumeric() && !"_-.".contains(c))
    };
    text.char_indices().any(|(at, _)| is_start(at) && begins(&text[at..], prefix))
}

/// Whether a word sets what begins so. A quote may be around the whole word, and `-` for `_`.
pub(crate) fn begins(word: &str, prefix: &str) -> bool {
    let word = word.strip_prefix('"').unwrap_or(word).as_bytes();
    let name = prefix.find('=').unwrap_or(prefix.len());
    word.len() >= prefix.len()
        && word
            .iter()
            .zip(prefix.bytes())
            .enumerate()
            .all(|(at, (found, wanted))| *found == wanted || at < name && *found == b'-' && wanted == b'_')
}

fn is_off(word: &str) -> bool {
    word.trim_matches('"') == "numa=off"
}

/// The words of a line, as ranges of it.
///
/// # Errors
/// A quote that is not closed.
pub(crate) fn words(line: &str) -> Result<Vec<Range<usize>>, Refusal> {
    let (mut words, mut start, mut quote) = (Vec::new(), None, None);
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'"' => {
                quote = if quote.is_some() { None } else { Some(at) };
                start = start.or(Some(at));
            }
            _ if quote.is_none() && is_blank(byte) => words.extend(start.take().map(|start| start..at)),
            _ => start = start.or(Some(at)),
        }
    }
    if let Some(at) = quote {
        return Err(Refusal::Quote { column: line[..at].chars().count() + 1 });
    }
    words.extend(start.map(|start| start..line.len()));
    Ok(words)
}

/// The words before `--`.
pub(crate) fn kernel_words(line: &str) -> Result<Vec<Range<usize>>, Refusal> {
    let mut words = words(line)?;
    let end = words.iter().position(|word| &line[word.clone()] == "--").unwrap_or(words.len());
    words.truncate(end);
    Ok(words)
}

/// Whether the kernel's words end in this line.
pub(crate) fn ends(line: &str) -> bool {
    words(line).is_ok_and(|words| words.into_iter().any(|word| &line[word] == "--"))
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Puts words before `rootwait`, behind which some guides and tools want nothing, or before `--`, or
/// at the end; only a `rootwait` from the word of this number on counts.
pub(crate) fn insert(line: &mut String, new: &str, from: usize) -> Result<(), Refusal> {
    let all = words(line)?;
    let kernels = kernel_words(line)?.len();
    let is_rootwait = |at: &usize| &line[all[*at].clone()] == "rootwait";
    let place = (from..kernels).find(is_rootwait).unwrap_or(kernels);
    // Behind the word before, so that all blanks stay those between the others.
    match place.checked_sub(1) {
        Some(before) => line.insert_str(all[before].end, &format!(" {new}")),
        None if line.is_empty() => line.push_str(new),
        None => line.insert_str(0, &format!("{new} ")),
    }
    Ok(())
}

/// Takes a word out, with the blank before it, or behind it where it is the first.
pub(crate) fn remove(line: &mut String, word: Range<usize>) {
    let bytes = line.as_bytes();
    let range = if word.start > 0 {
        word.start - 1..word.end
    } else if bytes.get(word.end).copied().is_some_and(is_blank) {
        word.start..word.end + 1
    } else {
        word
    };
    line.replace_range(range, "");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    fn four() -> Change {
        Change::emulate("4", Policy::Set(&DefaultPolicy::interleave())).unwrap()
    }

    #[track_caller]
    fn check(change: &Change, line: &str, expected: &str) {
        assert_eq!(change.apply(line).as_deref(), Ok(expected), "{line}");
        // Done twice it is done once.
        assert_eq!(change.apply(expected).as_deref(), Ok(expected), "{line}");
    }

    #[test]
    fn the_words_go_before_rootwait() {
        check(
            &four(),
            "console=tty1 root=PARTUUID=1-02 fsck.repair=yes rootwait quiet",
            "console=tty1 root=PARTUUID=1-02 fsck.repair=yes numa=fake=4 numa_policy=interleave rootwait quiet",
        );
        check(&four(), "ro  quiet \n", "ro  quiet numa=fake=4 numa_policy=interleave \n");
        check(&four(), "ro -- rootwait", "ro numa=fake=4 numa_policy=interleave -- rootwait");
        check(&four(), "", "numa=fake=4 numa_policy=interleave");
    }

    #[test]
    fn words_that_are_there_are_changed_where_they_stand() {
        check(&four(), "numa=fake=8 a rootwait", "numa=fake=4 a numa_policy=interleave rootwait");
        check(
            &four(),
            "a numa=fake=8 b numa=fake=2 numa-policy=bind:0",
            "a b numa=fake=4 numa_policy=interleave",
        );
        check(&four(), "a \"numa=fake=8\"", "a numa=fake=4 numa_policy=interleave");
        // Words of other programs, and other parameters, are not ours.
        check(
            &four(),
            "xnuma=fake=8 -- numa=fake=2",
            "xnuma=fake=8 numa=fake=4 numa_policy=interleave -- numa=fake=2",
        );
        let only = |policy| Change::emulate("2", policy).unwrap();
        check(&only(Policy::Leave), "a numa_policy=interleave", "a numa_policy=interleave numa=fake=2");
        check(&only(Policy::Remove), "a numa_policy=interleave", "a numa=fake=2");
    }

    #[test]
    fn an_emulation_is_taken_out() {
        check(&Change::none(), "numa=fake=8 a numa_policy=interleave rootwait", "a rootwait");
        check(&Change::none(), "numa=fake=8", "");
        check(&Change::none(), "a  b", "a  b");
        check(&Change::one_node(), "a numa_policy=interleave rootwait", "a numa=fake=1 rootwait");
    }

    #[test]
    fn blanks_in_quotes_divide_no_words() {
        check(&four(), "a=\"b rootwait c\"", "a=\"b rootwait c\" numa=fake=4 numa_policy=interleave");
        assert_eq!(four().apply("añb \"c d"), Err(Refusal::Quote { column: 5 }));
    }

    #[test]
    fn what_would_have_no_effect_is_refused() {
        assert_eq!(four().apply("a numa=off"), Err(Refusal::NumaOff));
        assert_eq!(Change::none().apply("a numa=off").as_deref(), Ok("a numa=off"));
        let line = "x".repeat(2040);
        assert_eq!(four().apply(&line), Err(Refusal::TooLong { bytes: 2075, most: 2047 }));
        for value in ["", "4 init=/bin/sh", "4\"", "$(a)", "4\n"] {
            assert_eq!(Change::emulate(value, Policy::Leave), None, "{value}");
        }
    }

    #[test]
    fn the_last_value_counts() {
        assert_eq!(value("numa=fake=2 numa=fake=8 ro -- numa=fake=9", FAKE), Some("8"));
        assert_eq!(value("\"numa=fake=2\"", FAKE), Some("2"));
        assert_eq!(value("numa=off", FAKE), None);
        assert_eq!(value("numa-policy=interleave", POLICY), Some("interleave"));
    }

    proptest! {
        #[test]
        fn everything_else_stays_byte_for_byte(line in "([a-z]{1,4}(=\"[a-z ]{0,4}\")?|rootwait|--|é)([ \t]{1,3}([a-z]{1,4}|rootwait|--)){0,6}[ \t]{0,2}\n?") {
            let with = four().apply(&line).unwrap();
            prop_assert_eq!(value(&with, FAKE), Some("4"));
            prop_assert_eq!(Change::none().apply(&with).unwrap(), line);
        }

        #[test]
        fn any_line_is_changed_once_or_refused(line in any::<String>(), near in "(numa=fake=[0-9]|numa_policy=i|\"| |--|rootwait|é){0,12}") {
            for line in [line, near] {
                for change in [four(), Change::none(), Change::one_node()] {
                    let Ok(changed) = change.apply(&line) else { continue };
                    prop_assert_eq!(change.apply(&changed), Ok(changed.clone()));
                    for word in change.words() {
                        prop_assert!(changed.split([' ', '\t', '\n', '\r', '\x0b', '\x0c']).any(|found| found == word));
                    }
                }
            }
        }
    }
}
