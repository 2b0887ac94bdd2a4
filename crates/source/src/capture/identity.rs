//! Taking identifiers out of names and texts.
//!
//! The rules keep identifying files out; what is left are identifiers inside names that are needed:
//! `enx001122334455` is a network interface called by its MAC address, and virtual buses name their
//! devices by GUID. Each is replaced by a word with a number, the same one everywhere.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The groups of digits of a UUID or GUID, with `-` between them.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];
/// Runs of groups with `:` between them: digits in a group, the fewest groups, and the word that
/// replaces them. MAC addresses and world wide names; identifiers of InfiniBand and IPv6 addresses.
const RUNS: [(usize, usize, &str); 2] = [(2, 6, "mac"), (4, 4, "guid")];
/// Prefixes of interface names that end in a MAC address (`systemd.net-naming-scheme`).
const NAMES: [&str; 4] = ["enx", "wlx", "wwx", "slx"];

/// Replaces identifiers, each by the same word wherever it comes.
#[derive(Default)]
pub(super) struct Scrubber {
    known: BTreeMap<String, String>,
}

impl Scrubber {
    /// Takes identifiers out of the content of a file; a binary one is left alone, the rules name
    /// none that holds any.
    pub(super) fn bytes(&mut self, contents: Vec<u8>) -> Vec<u8> {
        match std::str::from_utf8(&contents) {
            Ok(text) => match self.text(text) {
                Cow::Borrowed(_) => contents,
                Cow::Owned(text) => text.into_bytes(),
            },
            Err(_) => contents,
        }
    }

    /// Takes identifiers out of a text.
    pub(super) fn text<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        let bytes = text.as_bytes();
        let mut out = String::new();
        let mut copied = 0;
        let mut at = 0;
        while at < bytes.len() {
            let starts = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
            let found = if starts { identifier(&bytes[at..]) } else { None };
            match found {
                Some((length, word)) => {
                    out.push_str(&text[copied..at]);
                    out.push_str(&self.replacement(&text[at..at + length], word));
                    at += length;
                    copied = at;
                }
                None => at += 1,
            }
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(&text[copied..]);
        Cow::Owned(out)
    }

    fn replacement(&mut self, identifier: &str, word: &str) -> String {
        let number = self.known.len() + 1;
        self.known.entry(identifier.to_ascii_lowercase()).or_insert_with(|| format!("{word}{number}")).clone()
    }
}

/// The identifier at the start of a text: its length, and the word to replace it.
fn identifier(bytes: &[u8]) -> Option<(usize, &'static str)> {
    let uuid = || Some((groups(bytes, &UUID)?, "uuid"));
    let run = || RUNS.iter().find_map(|(digits, fewest, word)| Some((run(bytes, *digits, *fewest)?, *word)));
    let name = || {
        let prefix = NAMES.iter().find(|prefix| bytes.starts_with(prefix.as_bytes()))?;
        Some((prefix.len() + groups(&bytes[prefix.len()..], &[12])?, *prefix))
    };
    let found = uuid().or_else(run).or_else(name);
    found.filter(|(length, _)| !bytes.get(*length).is_some_and(u8::is_ascii_alphanumeric))
}

/// The length of a group of digits at the start of a text.
fn group(bytes: &[u8], digits: usize) -> Option<usize> {
    bytes.get(..digits).filter(|group| group.iter().all(u8::is_ascii_hexdigit)).map(|_| digits)
}

/// The length of exactly these groups with `-` between them.
fn groups(bytes: &[u8], sizes: &[usize]) -> Option<usize> {
    let mut at = 0;
    for (place, digits) in sizes.iter().enumerate() {
        if place > 0 {
            at += bytes[at..].strip_prefix(b"-").map(|_| 1)?;
        }
        at += group(&bytes[at..], *digits)?;
    }
    Some(at)
}

/// The length of a run of at least this many groups with `:` between them.
fn run(bytes: &[u8], digits: usize, fewest: usize) -> Option<usize> {
    let mut at = group(bytes, digits)?;
    let mut count = 1;
    while let Some(length) = bytes[at..].strip_prefix(b":").and_then(|rest| group(rest, digits)) {
        at += 1 + length;
        count += 1;
    }
    (count >= fewest).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    fn check(text: &str, expected: &str) {
        assert_eq!(Scrubber::default().text(text), expected);
    }

    #[test]
    fn identifiers_are_replaced() {
        check("root=UUID=b77565b5-aded-4851-94b9-7d2e4674a268 ro", "root=UUID=uuid1 ro");
        check("/sys/class/net/enx001122AAbbcc", "/sys/class/net/enx1");
        check("../net/enx001122aabbcc/x enx001122aabbcd", "../net/enx1/x enx2");
        check("link 00:11:22:aa:bb:cc 00:11:22:AA:BB:CC", "link mac1 mac1");
        check("guid 0002:c903:0007:aa4a", "guid guid1");
        check("wwn 20:00:00:11:22:33:44:55,", "wwn mac1,");
    }

    #[test]
    fn what_only_looks_alike_is_left() {
        for text in [
            "0000:00:1f.2",
            "00000000,ffffffff",
            "enp3s0 enx00 enx001122334455667788",
            "1:2:3:4:5:6",
            "b77565b5-aded-4851-94b9-7d2e4674a2689",
            "größer",
        ] {
            check(text, text);
        }
    }

    proptest! {
        #[test]
        fn no_address_survives(octets in any::<[u8; 6]>(), before in "[ =/]", after in "[ ,/\n]?") {
            let mac = octets.map(|octet| format!("{octet:02x}")).join(":");
            let text = format!("x{before}{mac}{after}");
            prop_assert_eq!(Scrubber::default().text(&text), format!("x{before}mac1{after}"));
            let name = format!("enx{}", octets.map(|octet| format!("{octet:02x}")).concat());
            let text = format!("/sys/class/net/{name}");
            prop_assert!(!Scrubber::default().text(&text).contains(&name));
        }

        #[test]
        fn any_text_is_scrubbed_without_a_panic(text in any::<String>()) {
            let once = Scrubber::default().text(&text).into_owned();
            prop_assert_eq!(Scrubber::default().text(&once), once.as_str());
        }
    }
}
