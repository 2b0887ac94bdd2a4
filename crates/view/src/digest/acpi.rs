//! Firmware tables and what a kernel makes of them: what text and JSON both show.

use nodewise_machine::firmware::Tables;
use nodewise_model::firmware::Booted;

/// The facts of tables that are shown.
#[derive(Clone, Copy, Debug)]
pub struct Acpi<'a> {
    /// Where they come from, as the user named it.
    pub source: &'a str,
    pub tables: &'a Tables,
    pub booted: &'a Booted,
}

/// Numbers as ranges: `0-3,8`. They are the firmware's, so they may be any and come twice.
pub fn ranges(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut numbers: Vec<u32> = numbers.into_iter().collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |(first, last): (u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.into_iter().map(text).collect::<Vec<_>>().join(",")
}

/// An id in ASCII, as people read it: without the blanks and zeros at its end.
pub fn id(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches(['\0', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_folded_to_ranges() {
        assert_eq!(ranges([5, 0, 1, 1, 2, u32::MAX]), "0-2,5,4294967295");
        assert_eq!(ranges([]), "");
        assert_eq!(id(b"A M I \0\0"), "A M I");
    }
}
