//! What no file of the kernel says, as hwloc saves it in a capture.
//!
//! # Source
//! `/proc/hwloc-nofile-info` of a capture: `OSRelease: 5.15.0`, `Architecture: aarch64`,
//! `PageSize: 4096`. The running system has no such file.

use nodewise_machine::Bytes;

use super::{Parsed, digits, lines};

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct NoFileInfo {
    /// The kernel's release, as `uname -r` prints it.
    pub release: Option<String>,
    /// The architecture, as `uname -m` prints it.
    pub architecture: Option<String>,
    /// The size of an ordinary page.
    pub page_size: Option<Bytes>,
}

/// Reads the fields above; others are passed over.
pub fn parse(text: &str) -> Parsed<NoFileInfo> {
    let mut parsed = Parsed::<NoFileInfo>::default();
    for (number, line) in lines(text) {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match name {
            "OSRelease" => parsed.value.release = Some(value.to_owned()),
            "Architecture" => parsed.value.architecture = Some(value.to_owned()),
            "PageSize" => match digits(value).filter(|size: &u64| size.is_power_of_two()) {
                Some(size) => parsed.value.page_size = Some(Bytes::new(size)),
                None => parsed.problems.add(number, "a page size in bytes, a power of two", line),
            },
            _ => (),
        }
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[test]
    fn the_fields_are_read() {
        let parsed = parse(
            "OSName: Linux\nOSRelease: 4.14.0-49.el7a\nOSVersion: #1 SMP\nHostName: h\nArchitecture: ppc64le\nPageSize: 65536\n",
        );
        assert!(parsed.problems.is_empty());
        assert_eq!(parsed.value.release.as_deref(), Some("4.14.0-49.el7a"));
        assert_eq!(parsed.value.architecture.as_deref(), Some("ppc64le"));
        assert_eq!(parsed.value.page_size, Some(Bytes::from_kib(64)));
        assert_eq!(parse("PageSize: 0\nPageSize: 5000\n").problems.count(), 2);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            let _ = parse(&text);
        }
    }
}
