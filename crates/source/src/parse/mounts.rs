//! The mounted file systems and their folders.
//!
//! # Source
//! `/proc/mounts`: `device folder type options 0 0`, with octal escapes in the first two.

use super::{Parsed, lines, unescape};

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Where, escapes decoded and otherwise as it was read.
    pub folder: String,
    /// Its type: `cgroup2`, `tmpfs`.
    pub kind: String,
    pub options: Vec<String>,
}

impl Mount {
    /// Whether the file system was mounted with this option.
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|known| known == option)
    }
}

/// Reads every line.
pub fn parse(text: &str) -> Parsed<Vec<Mount>> {
    let mut parsed = Parsed::<Vec<Mount>>::default();
    for (number, line) in lines(text).filter(|(_, line)| !line.trim().is_empty()) {
        let mut words = line.split(' ').skip(1);
        match (words.next(), words.next(), words.next()) {
            (Some(folder), Some(kind), Some(options)) if folder.starts_with('/') => {
                parsed.value.push(Mount {
                    folder: unescape(folder),
                    kind: kind.to_owned(),
                    options: options.split(',').map(str::to_owned).collect(),
                })
            }
            _ => parsed.problems.add(number, "a device, a folder, a type and options", line),
        }
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[test]
    fn mounts_are_read() {
        let parsed = parse(
            "cpuset /dev/cpu\\040set cgroup rw,relatime,cpuset,noprefix 0 0\nnone /cg cgroup2 rw 0 0\nbroken\n",
        );
        assert_eq!(parsed.value.len(), 2);
        assert_eq!(
            (parsed.value[0].folder.as_str(), parsed.value[0].kind.as_str()),
            ("/dev/cpu set", "cgroup")
        );
        assert!(parsed.value[0].has("noprefix") && !parsed.value[1].has("noprefix"));
        assert_eq!(parsed.problems.first[0].line, 3);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>(), near in r"([a-z] /[a-z\\0-9]{0,6} [a-z]{0,3} ?[a-z,]{0,6}\n){0,3}") {
            let _ = parse(&text);
            let _ = parse(&near);
        }
    }
}
