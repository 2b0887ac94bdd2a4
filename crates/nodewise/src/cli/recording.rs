//! Recordings and moments of them, as they are typed.

use std::path::PathBuf;
use std::time::Duration;

use nodewise_machine::duration;
use nodewise_machine::printable::quote;

/// A recording, a moment of it, or both: `FILE`, `FILE@TIME`, `@TIME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedMoment {
    /// `None`: the recording of `--from`.
    pub file: Option<PathBuf>,
    /// The time since its beginning; `None`: all of it.
    pub at: Option<Duration>,
}

/// Reads a recording and a moment of it. What follows the last `@` is a time, unless it can be only the end of a
/// file's name: it holds a `/`, or ends as recordings do.
///
/// # Errors
/// Any other text, with the forms that are expected.
pub fn recorded_moment(text: &str) -> Result<RecordedMoment, String> {
    let split = text.rsplit_once('@').filter(|(_, time)| !time.contains('/') && !time.ends_with(".nwr"));
    let (file, at) = match split {
        Some((file, time)) => (file, Some(duration::moment(time).map_err(|error| error.to_string())?)),
        None => (text, None),
    };
    if file.is_empty() && at.is_none() {
        return Err(format!("{} names no recording: expected FILE, FILE@TIME or @TIME", quote(text)));
    }
    Ok(RecordedMoment { file: (!file.is_empty()).then(|| PathBuf::from(file)), at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn check(text: &str, file: Option<&str>, at: Option<u64>) {
        let expected = RecordedMoment { file: file.map(PathBuf::from), at: at.map(Duration::from_secs) };
        assert_eq!(recorded_moment(text), Ok(expected), "{text}");
    }

    #[test]
    fn a_recording_and_a_moment_of_it_are_one_word() {
        check("night.nwr", Some("night.nwr"), None);
        check("night.nwr@90m", Some("night.nwr"), Some(5400));
        check("@10s", None, Some(10));
        check("@0", None, Some(0));
        check("a@b@2h", Some("a@b"), Some(7200));
        check("b@1.nwr", Some("b@1.nwr"), None);
        check("/home/me@work/night.nwr", Some("/home/me@work/night.nwr"), None);
        for (text, message) in [
            ("", "names no recording"),
            ("@", "is not a time"),
            ("night.nwr@", "is not a time"),
            ("night.nwr@noon", "\"noon\" is not a time"),
        ] {
            assert!(recorded_moment(text).unwrap_err().contains(message), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_file_and_time_are_read_back(file in "[a-z@./]{1,12}", seconds in 0u64..100_000) {
            let read = recorded_moment(&format!("{file}@{seconds}s"));
            let expected = RecordedMoment {
                file: Some(PathBuf::from(&file)),
                at: Some(Duration::from_secs(seconds)),
            };
            prop_assert_eq!(read, Ok(expected));
        }

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            let _ = recorded_moment(&text);
        }
    }
}
