//! Facts that no file of the kernel holds, as hwloc saves them in a capture.
//!
//! # Source
//! `/proc/hwloc-nofile-info` of a capture: `OSRelease: 5.15.0`, `Architecture: aarch64`,
//! `PageSize: 4096`. The running system has no such file. nodewise adds `CaptureTime: 1795609800`, in seconds
//! since the beginning of 1970; hwloc passes over fields that it does not know.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nodewise_machine::Bytes;

use super::{Parsed, digits, lines};

/// The text of the file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct NoFileInfo {
    /// The kernel's release, as `uname -r` prints it.
    pub release: Option<String>,
    /// The architecture, as `uname -m` prints it.
    pub architecture: Option<String>,
    /// The size of an ordinary page.
    pub page_size: Option<Bytes>,
    /// When the capture was made.
    pub captured_at: Option<SystemTime>,
}

/// Fields that hwloc writes and nodewise has no use for.
const OTHERS: [&str; 4] = ["OSName", "OSVersion", "HostName", "FallbackNbProcessors"];

/// The beginning of the year 10000, which ends what a date can name.
const MOST_SECONDS: u64 = 253_402_300_800;

/// Reads the fields above; others of hwloc's are passed over.
pub fn parse(text: &str) -> Parsed<NoFileInfo> {
    let mut parsed = Parsed::<NoFileInfo>::default();
    for (number, line) in lines(text) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.trim();
        match name {
            "OSRelease" if !is_release(value) => parsed.problems.add(number, "a release, as in 6.12.1", line),
            "Architecture" if !is_word(value) => {
                parsed.problems.add(number, "an architecture, as in x86_64", line)
            }
            "OSRelease" => parsed.value.release = Some(value.to_owned()),
            "Architecture" => parsed.value.architecture = Some(value.to_owned()),
            "PageSize" => match digits(value).filter(|size: &u64| size.is_power_of_two()) {
                Some(size) => parsed.value.page_size = Some(Bytes::new(size)),
                None => parsed.problems.add(number, "a page size in bytes, a power of two", line),
            },
            "CaptureTime" => match digits(value).filter(|seconds: &u64| *seconds < MOST_SECONDS) {
                Some(seconds) => parsed.value.captured_at = Some(UNIX_EPOCH + Duration::from_secs(seconds)),
                None => {
                    parsed.problems.add(number, "a time in seconds since 1970, before the year 10000", line)
                }
            },
            _ if OTHERS.contains(&name) => (),
            // A damaged name would be a value that is lost without a word.
            _ => parsed.problems.add(number, "a field of hwloc's, as in \"PageSize: 4096\"", line),
        }
    }
    parsed
}

fn is_release(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
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
        let captured = |text| parse(text).value.captured_at;
        assert_eq!(
            captured("CaptureTime: 1795609800\n"),
            Some(UNIX_EPOCH + Duration::from_secs(1_795_609_800))
        );
        assert_eq!(captured("OSRelease: 6.1\n"), None);
        for wrong in ["CaptureTime: -1\n", "CaptureTime: 253402300800\n", "CaptureTime: now\n"] {
            assert_eq!((captured(wrong), parse(wrong).problems.count()), (None, 1), "{wrong}");
        }
        // A part was cut out, and two lines became one.
        let cut = parse("OSRelease: 3.10.0-957MP Thu Nov 8 2018\n");
        assert_eq!((cut.value.release, cut.problems.count()), (None, 1));
        assert_eq!(parse("PageSize: 0\nPageSize: 5000\n").problems.count(), 2);
        assert_eq!(parse("0-3\nPageSyze: 4096\nArchitecture:\nArchitecture:- arm\n").problems.count(), 4);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            let _ = parse(&text);
        }
    }
}
