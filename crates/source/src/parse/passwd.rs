//! Names of users.
//!
//! # Source
//! `/etc/passwd`, passwd(5): `name:password:number:group:comment:home:shell`. Users of other services, such as LDAP,
//! are not in it.

use std::collections::BTreeMap;

use super::{Parsed, digits, lines};

/// The longest name that is taken.
const MOST_NAME_BYTES: usize = 256;

/// Digits of the largest number.
const MOST_DIGITS: usize = 10;

/// Reads the name of each number; of several the first, as the C library does.
pub fn parse(text: &str) -> Parsed<BTreeMap<u32, String>> {
    let mut parsed = Parsed::<BTreeMap<_, _>>::default();
    // A leading + or - stands for entries of NIS.
    let is_entry = |line: &str| !line.trim().is_empty() && !line.starts_with(['#', '+', '-']);
    for (number, line) in lines(text).filter(|(_, line)| is_entry(line)) {
        let mut fields = line.split(':');
        let (name, user) = (fields.next().unwrap_or_default(), fields.nth(1).unwrap_or_default());
        match digits::<u32>(user) {
            Some(user) if !name.is_empty() && name.len() <= MOST_NAME_BYTES => {
                parsed.value.entry(user).or_insert_with(|| name.to_owned());
            }
            // Not the whole line, and nothing long: it may hold a password.
            _ => {
                let shown = if user.len() <= MOST_DIGITS && !user.contains('$') { user } else { "..." };
                parsed.problems.add(number, "a name, a password and a number, with colons between", shown);
            }
        }
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    /// Debian 12.
    const SAMPLE: &str = "\
root:x:0:0:root:/root:/bin/bash
toor:x:0:0:also root:/root:/bin/sh
# a comment
+nis::::::
postgres:x:107:113:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash

nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
";

    #[test]
    fn the_first_name_of_a_number_counts() {
        let parsed = parse(SAMPLE);
        assert!(parsed.problems.is_empty());
        let expected = [(0, "root"), (107, "postgres"), (65534, "nobody")];
        assert_eq!(parsed.value, expected.map(|(user, name)| (user, name.to_owned())).into());
    }

    #[test]
    fn a_line_without_a_name_or_a_number_costs_itself_and_shows_no_password() {
        let hostile =
            "a:$6$secret:x:0\na::$6$secret$hash:1000\nb:$6$secret\n:x:5:5\nc:x:-1:\nd:x:4294967296\ne:x:7\n";
        let parsed = parse(&format!("{hostile}{}:x:8:8\n", "f".repeat(1 << 12)));
        assert_eq!(parsed.value, BTreeMap::from([(7, "e".to_owned())]));
        assert_eq!(parsed.problems.count(), 7);
        assert!(!format!("{:?}", parsed.problems).contains("secret"));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in any::<String>()) {
            let parsed = parse(&text);
            prop_assert!(parsed.value.len() <= text.lines().count());
        }

        #[test]
        fn what_is_written_is_read(name in "[a-z_][^:\n\r]{0,30}", user in any::<u32>()) {
            let parsed = parse(&format!("{name}:x:{user}:100::/:/bin/sh\n"));
            prop_assert_eq!(parsed.value, BTreeMap::from([(user, name)]));
        }
    }
}
