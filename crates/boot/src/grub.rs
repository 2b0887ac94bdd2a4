//! `/etc/default/grub`: assignments in the shell's language, from which GRUB's menu is made.
//!
//! # Source
//! The shell's quoting, POSIX.1-2024 XCU 2.2; which variable goes where, the GRUB manual, "Simple
//! configuration handling".

mod shell;

use crate::error::Refusal;
use crate::line::{Change, mentions};
use nodewise_machine::order::Order as _;
use shell::{Assignment, Value, assignments};

/// The words of all entries of the menu.
pub const LINUX: &str = "GRUB_CMDLINE_LINUX";
/// More words, behind those, of entries that are not for recovery.
pub const DEFAULT: &str = "GRUB_CMDLINE_LINUX_DEFAULT";

/// The file with the change: words go into `GRUB_CMDLINE_LINUX`, and none of ours stay in
/// `GRUB_CMDLINE_LINUX_DEFAULT`, which would take precedence.
///
/// # Errors
/// A file with anything but assignments, values of these variables that the shell works out, and what
/// [`Change::apply`] refuses.
pub fn edit(text: &str, change: &Change) -> Result<String, Refusal> {
    let all = assignments(text)?;
    let main = only(&all, LINUX)?;
    let default = only(&all, DEFAULT)?;
    // GRUB joins them, so what one holds must suit the other.
    let words = |found: Option<&Assignment>| found.map_or("", |found| &text[found.value.content()]);
    let changed = change.apply_to_parts(&[words(main), words(default)], 0)?;
    let mut edits: Vec<_> = [main, default]
        .into_iter()
        .zip(&changed)
        .filter_map(|(found, words)| edited(text, found?, words))
        .collect();
    edits.order_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut new = text.to_owned();
    for (range, value) in edits {
        new.replace_range(range, &value);
    }
    if main.is_none() && !changed[0].is_empty() {
        let end = if new.is_empty() || new.ends_with('\n') { "" } else { "\n" };
        new.push_str(&format!("{end}{LINUX}=\"{}\"\n", changed[0]));
    }
    Ok(new)
}

/// The words that the file gives to a kernel; `None` where the shell works them out.
pub fn words(text: &str) -> Option<String> {
    let all = assignments(text).ok()?;
    let of = |name| only(&all, name).ok().map(|found| found.map_or("", |found| &text[found.value.content()]));
    Some(format!("{} {}", of(LINUX)?, of(DEFAULT)?))
}

/// The variables that a snippet in `grub.d`, which is read behind the file, takes away from it.
/// A snippet that is more than assignments is searched for the names anyway.
pub fn takes_away(snippet: &str, change: &Change) -> Option<&'static str> {
    let code = snippet.lines().filter(|line| !line.trim_start().starts_with('#'));
    let sets = |line: &str, name: &str| {
        let rest = line.trim_start().trim_start_matches("export ").strip_prefix(name);
        // NAME="$NAME more" adds to it.
        rest.is_some_and(|rest| {
            rest.starts_with('=')
                && !rest.contains(&format!("${name}"))
                && !rest.contains(&format!("${{{name}}}"))
        })
    };
    for line in code {
        if sets(line, LINUX) {
            return Some(LINUX);
        }
        let name = change.prefixes().find(|prefix| mentions(line, prefix));
        if name.is_some() && !change.words().iter().any(|word| line.contains(word)) {
            return name;
        }
    }
    None
}

/// The one assignment of a variable.
fn only<'a, 't>(
    all: &'a [Assignment<'t>],
    name: &'static str,
) -> Result<Option<&'a Assignment<'t>>, Refusal> {
    let mut ours = all.iter().filter(|found| found.name == name);
    let (first, second) = (ours.next(), ours.next());
    if let (Some(first), Some(second)) = (first, second) {
        return Err(Refusal::Twice { name, first: first.line, second: second.line });
    }
    if let Some(Assignment { value: Value::Other(_), line, .. }) = first {
        return Err(Refusal::Expansion { line: *line, name });
    }
    Ok(first)
}

/// Returns the part of the file to replace, and its replacement; `None` where nothing changes.
fn edited(text: &str, found: &Assignment, words: &str) -> Option<(std::ops::Range<usize>, String)> {
    let content = found.value.content();
    if text[content.clone()] == *words {
        return None;
    }
    // Several words need quotes.
    let bare = matches!(found.value, Value::Bare(_)) && words.contains(' ');
    Some((content, if bare { format!("\"{words}\"") } else { words.to_owned() }))
}

#[cfg(test)]
mod tests;
