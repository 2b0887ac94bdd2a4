//! The types of the file systems that a process sees, by the numbers of their devices.
//!
//! # Source
//! `/proc/PID/mountinfo`, Linux 2.6.26: `36 35 98:0 /root /folder options optional... - type source options`.

use std::collections::BTreeMap;

use super::{Parsed, digits, lines};

/// Reads every line.
pub fn parse(text: &str) -> Parsed<BTreeMap<(u32, u32), String>> {
    let mut parsed = Parsed::<BTreeMap<_, _>>::default();
    for (number, line) in lines(text).filter(|(_, line)| !line.trim().is_empty()) {
        match mount(line) {
            Some((device, kind)) => {
                parsed.value.insert(device, kind.to_owned());
            }
            None => parsed.problems.add(number, "a device as in 98:0, and a type behind \"-\"", line),
        }
    }
    parsed
}

fn mount(line: &str) -> Option<((u32, u32), &str)> {
    let (major, minor) = line.split(' ').nth(2)?.split_once(':')?;
    // Blanks in folders are escaped, so that only the separator is a "-" alone.
    let mut behind = line.split(' ').skip_while(|word| *word != "-").skip(1);
    Some(((digits(major)?, digits(minor)?), behind.next().filter(|kind| !kind.is_empty())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    /// Linux 6.18.
    const SAMPLE: &str = "\
26 1 254:0 / / rw,relatime - ext4 /dev/vda rw
27 26 0:23 / /dev rw,nosuid - devtmpfs devtmpfs rw,size=1k
29 27 0:25 / /dev/shm\\040x rw,nosuid,nodev master:3 shared:2 - tmpfs tmpfs rw
";

    #[test]
    fn types_are_read_behind_any_number_of_optional_fields() {
        let parsed = parse(SAMPLE);
        assert!(parsed.problems.is_empty());
        assert_eq!(parsed.value[&(0, 25)], "tmpfs");
        assert_eq!(parsed.value[&(254, 0)], "ext4");
    }

    #[test]
    fn a_line_without_a_type_is_named() {
        let parsed = parse("26 1 254:0 / / rw - \n1 2 x:0 / / rw - ext4 a\n1 2 3:4 / / - ext4");
        assert_eq!((parsed.problems.count(), parsed.value.len()), (2, 1));
    }

    proptest! {
        #[test]
        fn what_the_kernel_prints_is_read(major in any::<u32>(), minor in any::<u32>(), kind in "[a-z0-9.]{1,12}") {
            let parsed = parse(&format!("1 2 {major}:{minor} / / rw shared:1 - {kind} none rw\n"));
            prop_assert_eq!(parsed.value.get(&(major, minor)), Some(&kind));
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>(), near in r"([0-9]{1,2} [0-9]{1,2} [0-9]{1,11}:[0-9]{1,2} / / - ?[a-z]{0,3}\n){0,3}") {
            let _ = parse(&text);
            let _ = parse(&near);
        }
    }
}
