//! Where RAM is: memory maps as a kernel shows them.
//!
//! # Source
//! `/proc/iomem`, whose addresses are zeros for all but root (`00100000-bffdffff : System RAM`), and the lines
//! in which a kernel on x86 logs the firmware's map (`BIOS-e820: [mem 0x0000000000000000-0x000000000009fbff]
//! usable`, Linux 3.5; `/sys/firmware/memmap` has the same in files).

use super::number::hex_digits;
use super::{ParseError, lines};

/// Ranges that are kept at most: a firmware's map has room for some hundreds.
const MOST: usize = 4096;
/// The name of RAM in either map.
pub(crate) const RAM: &str = "System RAM";

/// Reads the ranges of RAM: each the first byte, and the first behind it. Other lines are passed over.
///
/// # Errors
/// A text without any, or whose addresses are hidden.
pub fn parse(text: &str) -> Result<Vec<(u64, u64)>, ParseError> {
    let found = lines(text).filter_map(|(_, line)| of_line(line));
    let ranges: Vec<(u64, u64)> = found.take(MOST).collect();
    if ranges.is_empty() {
        let expected = "lines as \"00100000-bffdffff : System RAM\" of /proc/iomem, or \"BIOS-e820: [mem \
                        0x0-0x9fbff] usable\" of the kernel log";
        return Err(ParseError::new(1, expected, text.lines().next().unwrap_or_default().trim()));
    }
    // As everybody but root sees them; the first byte alone is not the RAM of any machine.
    if ranges.iter().all(|range| *range == (0, 1)) {
        let expected = "addresses: /proc/iomem shows them to root only";
        return Err(ParseError::new(1, expected, text.lines().next().unwrap_or_default().trim()));
    }
    Ok(ranges)
}

fn of_line(line: &str) -> Option<(u64, u64)> {
    if let Some((_, rest)) = line.split_once("BIOS-e820: [mem 0x") {
        let (range, kind) = rest.split_once(']')?;
        let (start, last) = range.split_once("-0x")?;
        return (kind.trim() == "usable").then(|| range_of(start, last)).flatten();
    }
    // What is inside of RAM is indented.
    let (range, kind) = line.split_once(" : ")?;
    let (start, last) = range.split_once('-')?;
    (kind.trim_end() == RAM).then(|| range_of(start, last)).flatten()
}

/// A range of its first and its last byte, both in hexadecimal.
pub(crate) fn range_of(start: &str, last: &str) -> Option<(u64, u64)> {
    let (start, end) = (hex_digits(start)?, hex_digits(last)?.checked_add(1)?);
    (start < end).then_some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    /// Linux 6.18 on x86-64, shortened.
    const IOMEM: &str = "\
00000000-00000fff : Reserved
00001000-0009fbff : System RAM
0009fc00-000fffff : Reserved
  000f0000-000fffff : System ROM
00100000-bfffffff : System RAM
  01000000-01dfffff : Kernel code
  02000000-02ffffff : System RAM
100000000-63fffffff : System RAM
";

    /// Linux 6.12 in QEMU, shortened.
    const LOG: &str = "\
[    0.000000] BIOS-provided physical RAM map:
[    0.000000] BIOS-e820: [mem 0x0000000000000000-0x000000000009fbff] usable
[    0.000000] BIOS-e820: [mem 0x000000000009fc00-0x000000000009ffff] reserved
[    0.000000] BIOS-e820: [mem 0x0000000000100000-0x000000005ffdffff] usable
";

    fn refuse(text: &str, expected: &str) {
        let error = parse(text).unwrap_err().sentence();
        assert!(error.contains(expected), "{text}: {error}");
    }

    #[test]
    fn ram_is_found_in_either_map() {
        let ranges = [(0x1000, 0x9fc00), (0x10_0000, 0xc000_0000), (0x1_0000_0000, 0x6_4000_0000)];
        assert_eq!(parse(IOMEM).unwrap(), ranges);
        assert_eq!(parse(LOG).unwrap(), [(0, 0x9fc00), (0x10_0000, 0x5ffe_0000)]);
    }

    #[test]
    fn a_map_without_ram_or_addresses_is_refused() {
        refuse("", "expected lines as");
        refuse("hello\n", "found \"hello\"");
        refuse("9-1 : System RAM\n", "expected lines as");
        refuse("0-ffffffffffffffff : System RAM\n", "expected lines as");
        refuse("00000000-00000000 : System RAM\n00000000-00000000 : System RAM\n", "shows them to root only");
    }

    proptest! {
        #[test]
        fn any_map_is_survived(text in any::<String>(), near in "([0-9a-f]{0,17}-[0-9a-f]{0,17} : (System RAM|Reserved)\n|BIOS-e820: \\[mem 0x[0-9a-f]{0,17}-0x[0-9a-f]{0,17}\\] usable\n){0,9}") {
            let _ = parse(&text);
            let _ = parse(&near);
        }

        #[test]
        fn a_range_that_is_printed_is_read_back(start in 1_u64..1 << 60, length in 1_u64..1 << 60) {
            let last = start + length - 1;
            prop_assert_eq!(parse(&format!("{start:08x}-{last:08x} : System RAM\n")).unwrap(), [(start, start + length)]);
            let line = format!("[    0.000000] BIOS-e820: [mem {start:#018x}-{last:#018x}] usable\n");
            prop_assert_eq!(parse(&line).unwrap(), [(start, start + length)]);
        }
    }
}
