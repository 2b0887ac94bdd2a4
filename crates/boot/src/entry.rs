//! Boot loader entries: `loader/entries/*.conf` of systemd-boot and of GRUB on Fedora and its kin.
//!
//! # Source
//! The Boot Loader Specification: lines of a key and a value, `options` may appear several times and
//! is joined.

use crate::error::Refusal;
use crate::line::{self, Change};

/// The entry with the change; `None` for an entry that starts no kernel, or one that carries its
/// command line inside (a unified kernel image).
///
/// # Errors
/// What [`Change::apply`] refuses, for all lines together.
pub fn edit(text: &str, change: &Change) -> Result<Option<String>, Refusal> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let has = |wanted: &str| lines.iter().any(|line| value_of(line, wanted).is_some());
    if !has("linux") {
        return Ok(None);
    }
    let values: Vec<&str> = lines
        .iter()
        .filter_map(|line| value_of(line, "options"))
        .map(|value| value.trim_end_matches(['\n', '\r']))
        .collect();
    if values.is_empty() {
        let words = change.words();
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let added = format!("{text}{end}options {}\n", words.join(" "));
        return Ok(Some(if words.is_empty() { text.to_owned() } else { added }));
    }
    // Behind `--` nothing is the kernel's, also not in the lines below.
    let last = values.iter().position(|value| line::ends(value)).unwrap_or(values.len() - 1);
    let mut changed = change.apply_to_parts(&values, last)?.into_iter();
    let mut edited = String::with_capacity(text.len() + 64);
    for line in &lines {
        match value_of(line, "options").and_then(|value| Some((value, changed.next()?))) {
            None => edited.push_str(line),
            Some((old, value)) => {
                let key = &line[..line.len() - old.len()];
                let end = &old[old.trim_end_matches(['\n', '\r']).len()..];
                // A key without a blank behind it would swallow the first word.
                let blank = if key.ends_with([' ', '\t']) || value.is_empty() { "" } else { " " };
                edited.extend([key, blank, value.as_str(), end]);
            }
        }
    }
    Ok(Some(edited))
}

/// The words that the entry gives to its kernel; `None` for an entry that starts none.
pub fn words(text: &str) -> Option<String> {
    let of = |key| text.lines().filter_map(move |line| value_of(line, key));
    of("linux").next()?;
    Some(of("options").collect::<Vec<_>>().join(" "))
}

/// Returns the text after a key, the line's end included.
fn value_of<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = line.trim_start_matches([' ', '\t']).strip_prefix(key)?;
    let value = rest.trim_start_matches([' ', '\t']);
    (value.len() < rest.len() || value.trim_ascii_end().is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::two;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[track_caller]
    fn check(change: &Change, text: &str, expected: Option<&str>) {
        assert_eq!(edit(text, change).as_ref().map(Option::as_deref), Ok(expected), "{text}");
    }

    #[test]
    fn the_last_options_get_the_words() {
        check(
            &two(),
            "title A\nlinux /vmlinuz\noptions root=a ro\n",
            Some("title A\nlinux /vmlinuz\noptions root=a ro numa=fake=2\n"),
        );
        check(
            &two(),
            "linux /v\noptions root=a numa=fake=8\ninitrd /i\noptions $kernelopts",
            Some("linux /v\noptions root=a\ninitrd /i\noptions $kernelopts numa=fake=2"),
        );
        check(
            &two(),
            "linux /v\noptions a -- b\noptions c\n",
            Some("linux /v\noptions a numa=fake=2 -- b\noptions c\n"),
        );
        check(&two(), "linux /v", Some("linux /v\noptions numa=fake=2\n"));
        check(&two(), "linux /v\noptions\n", Some("linux /v\noptions numa=fake=2\n"));
        check(&Change::none(), "linux /v\noptions\tnuma=fake=8 a\r\n", Some("linux /v\noptions\ta\r\n"));
    }

    #[test]
    fn a_number_of_pages_belongs_to_the_size_in_the_line_above() {
        let pools = crate::tests::four_pages();
        check(
            &pools,
            "linux /v\noptions hugepagesz=1G\noptions hugepages=1 ro\n",
            Some("linux /v\noptions hugepagesz=1G\noptions hugepages=1 ro hugepagesz=2M hugepages=0:4\n"),
        );
        check(
            &pools,
            "linux /v\noptions hugepagesz=2M\noptions hugepages=1 ro\n",
            Some("linux /v\noptions \noptions ro hugepagesz=2M hugepages=0:4\n"),
        );
    }

    #[test]
    fn entries_without_a_kernel_are_left_alone() {
        check(&two(), "title Firmware\nefi /EFI/setup.efi\n", None);
        check(&two(), "title x\n# linux /v\nlinuxx /v\n", None);
    }

    #[test]
    fn an_option_that_forbids_it_is_found_in_any_line() {
        assert_eq!(edit("linux /v\noptions numa=off\noptions ro\n", &two()), Err(Refusal::NumaOff));
    }

    proptest! {
        #[test]
        fn any_entry_is_changed_once(text in any::<String>(), near in "(linux /v\n|options( a| numa=fake=[1-9]){0,3}\r?\n|#x\n){0,6}") {
            for text in [text, near] {
                if let Ok(Some(edited)) = edit(&text, &two()) {
                    prop_assert_eq!(edit(&edited, &two()), Ok(Some(edited)));
                }
            }
        }
    }
}
