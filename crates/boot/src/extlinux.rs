//! `extlinux.conf`, which U-Boot and extlinux read: entries of keywords, among them `append`.
//!
//! # Source
//! U-Boot, `doc/README.pxe`; The Syslinux Project, "Config". Keywords are read without regard to case, and an
//! entry lasts from its `label` to the next.

use crate::error::Refusal;
use crate::line::Change;

/// A word in the head of files that Debian's u-boot-menu writes, and would rewrite.
const GENERATED: &str = "u-boot-update";

/// The file with the change in every entry that starts a kernel; everything else stays byte for byte.
///
/// # Errors
/// A file that a program generates, one that includes another, an entry with several command lines or none,
/// and what [`Change::apply`] refuses.
pub fn edit(text: &str, change: &Change) -> Result<String, Refusal> {
    if text.lines().any(|line| line.starts_with('#') && line.contains(GENERATED)) {
        return Err(Refusal::Generated { by: GENERATED, from: "U_BOOT_PARAMETERS in /etc/default/u-boot" });
    }
    if let Some(line) = (1..).zip(text.lines()).find_map(|(at, line)| value_of(line, "include").map(|_| at)) {
        return Err(Refusal::Includes { line });
    }
    let entries = entries(text)?;
    if let Some(entry) = entries.iter().find(|entry| entry.append.is_none()) {
        if !change.words().is_empty() {
            return Err(Refusal::NoAppend { line: entry.line });
        }
    }
    let mut edited = String::with_capacity(text.len() + 64);
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let is_ours = entries.iter().any(|entry| entry.append == Some(number));
        match value_of(line, "append").filter(|_| is_ours) {
            None => edited.push_str(line),
            Some(value) => {
                let (value, end) = value.split_at(value.trim_end_matches(['\n', '\r']).len());
                let key = &line[..line.len() - value.len() - end.len()];
                let value = change.apply(value)?;
                // A keyword without a blank behind it would swallow the first word.
                let blank = if key.ends_with([' ', '\t']) || value.is_empty() { "" } else { " " };
                edited.extend([key, blank, value.as_str(), end]);
            }
        }
    }
    Ok(edited)
}

/// The words that the first entry gives to its kernel; `None` where no entry starts one.
pub fn words(text: &str) -> Option<String> {
    lines(text)?.first().map(|line| (*line).to_owned())
}

/// The words that each entry gives to its kernel; `None` where they are not clear.
pub(crate) fn lines(text: &str) -> Option<Vec<&str>> {
    let appends = entries(text).ok()?.into_iter().filter_map(|entry| entry.append);
    Some(appends.filter_map(|append| value_of(text.lines().nth(append - 1)?, "append")).collect())
}

/// An entry that starts a kernel. Lines count from 1.
struct Entry {
    /// Its `label`.
    line: usize,
    /// Its `append`.
    append: Option<usize>,
}

fn entries(text: &str) -> Result<Vec<Entry>, Refusal> {
    let mut entries: Vec<(Entry, bool)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if value_of(line, "label").is_some() {
            entries.push((Entry { line: number, append: None }, false));
        }
        // What comes before the first label belongs to none.
        let Some((entry, starts)) = entries.last_mut() else { continue };
        *starts |= ["linux", "kernel", "fit"].iter().any(|keyword| value_of(line, keyword).is_some());
        if value_of(line, "append").is_some() {
            if let Some(first) = entry.append.replace(number) {
                return Err(Refusal::Twice { name: "append", first, second: number });
            }
        }
    }
    Ok(entries.into_iter().filter(|(_, starts)| *starts).map(|(entry, _)| entry).collect())
}

/// Returns the text after a keyword, the line's end included.
fn value_of<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    let rest = line.trim_start_matches([' ', '\t']);
    let (word, rest) = rest.split_at_checked(keyword.len())?;
    let value = rest.trim_start_matches([' ', '\t']);
    let is_word = value.len() < rest.len() || value.trim_ascii_end().is_empty();
    (word.eq_ignore_ascii_case(keyword) && is_word).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::two;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[track_caller]
    fn check(text: &str, expected: Result<&str, Refusal>) {
        crate::tests::check(edit, text, expected);
    }

    #[test]
    fn every_entry_that_starts_a_kernel_is_changed() {
        check(
            "TIMEOUT 30\nDEFAULT a\n\nLABEL a\n\tMENU LABEL A\n\tLINUX /boot/Image\n\tAPPEND ${cbootargs} quiet\nlabel b\r\n  kernel /b\r\n  append root=b\r\n",
            Ok(
                "TIMEOUT 30\nDEFAULT a\n\nLABEL a\n\tMENU LABEL A\n\tLINUX /boot/Image\n\tAPPEND ${cbootargs} quiet numa=fake=2\nlabel b\r\n  kernel /b\r\n  append root=b numa=fake=2\r\n",
            ),
        );
        check("label a\nlinux /a\nappend numa=fake=8 ro", Ok("label a\nlinux /a\nappend numa=fake=2 ro"));
        check("label a\nlinux /a\nappend\n", Ok("label a\nlinux /a\nappend numa=fake=2\n"));
        check("label x\n  localboot 1\n", Ok("label x\n  localboot 1\n"));
        assert_eq!(words("label a\nlinux /a\nappend numa=fake=8 ro").as_deref(), Some("numa=fake=8 ro"));
    }

    #[test]
    fn what_would_not_last_or_is_not_clear_is_refused() {
        check(
            "## Do not edit this file manually, use: u-boot-update\nlabel a\nlinux /a\nappend ro\n",
            Err(Refusal::Generated { by: "u-boot-update", from: "U_BOOT_PARAMETERS in /etc/default/u-boot" }),
        );
        check("include more.conf\n", Err(Refusal::Includes { line: 1 }));
        check("label a\nlinux /a\n", Err(Refusal::NoAppend { line: 1 }));
        check(
            "label a\nlinux /a\nappend a\nappend b\n",
            Err(Refusal::Twice { name: "append", first: 3, second: 4 }),
        );
        check("label a\nlinux /a\nappend numa=off\n", Err(Refusal::NumaOff));
        assert_eq!(
            edit("label a\nlinux /a\n", &Change::none()).as_deref(),
            Ok("label a\nlinux /a\n"),
            "there is nothing to take out"
        );
    }

    proptest! {
        #[test]
        fn any_file_is_changed_once_and_keeps_its_lines(
            text in any::<String>(),
            near in "(label [ab]\n|\tlinux /v\n|  APPEND( a| numa=fake=[1-9]){0,3}\r?\n|# x\n|append\n){0,8}",
        ) {
            for text in [text, near] {
                if let Ok(edited) = edit(&text, &two()) {
                    prop_assert_eq!(edited.lines().count(), text.lines().count());
                    prop_assert_eq!(edit(&edited, &two()), Ok(edited));
                }
            }
        }
    }
}
