//! A node's meminfo.
//!
//! # Source
//! `/sys/devices/system/node/nodeN/meminfo`: `Node 0 MemTotal:  131732940 kB`, one field per line.
//! Sizes carry `kB` (1024 bytes), counts nothing. Releases before 2.6.2x start with an empty line.

use nodewise_machine::{Bytes, MeminfoField, MeminfoValue, NodeId};

use super::{ParseError, Parsed, digits, kib, lines};

/// More fields than any release prints; the rest of a hostile file is refused.
const MOST_FIELDS: usize = 512;

/// Reads every field in the kernel's order. A line of another node is refused.
pub fn parse(text: &str, node: NodeId) -> Parsed<Vec<MeminfoField>> {
    let mut parsed = Parsed::<Vec<MeminfoField>>::default();
    for (number, line) in lines(text).filter(|(_, line)| !line.trim().is_empty()) {
        match field(line, node) {
            Err(expected) => parsed.problems.add(number, expected, line.trim()),
            Ok(_) if parsed.value.len() >= MOST_FIELDS => {
                parsed.problems.add(number, format!("at most {MOST_FIELDS} fields"), line.trim());
            }
            Ok(field) if parsed.value.iter().any(|known| known.name == field.name) => {
                parsed.problems.add(number, format!("{} once only", field.name), line.trim());
            }
            Ok(field) => parsed.value.push(field),
        }
    }
    parsed
}

/// Reads the memory of the whole machine from `/proc/meminfo`: `MemTotal:  131732940 kB`; `None` where no line
/// gives it.
///
/// # Errors
/// A `MemTotal` without a number of kB.
pub fn system_total(text: &str) -> Result<Option<Bytes>, ParseError> {
    size(text, "MemTotal:")
}

/// Reads the space for swapping from `/proc/meminfo`: `SwapTotal:  8388604 kB`; `None` where no line gives it.
///
/// # Errors
/// A `SwapTotal` without a number of kB.
pub fn system_swap(text: &str) -> Result<Option<Bytes>, ParseError> {
    size(text, "SwapTotal:")
}

/// Reads the space for swapping that is free from `/proc/meminfo`: `SwapFree:  8388604 kB`; `None` where no line gives it.
///
/// # Errors
/// A `SwapFree` without a number of kB.
pub fn system_swap_free(text: &str) -> Result<Option<Bytes>, ParseError> {
    size(text, "SwapFree:")
}

/// Reads the size of a page of the default pool from `/proc/meminfo`: `Hugepagesize:  2048 kB`; `None` where no line
/// gives it.
///
/// # Errors
/// A `Hugepagesize` without a number of kB.
pub fn default_huge_page(text: &str) -> Result<Option<Bytes>, ParseError> {
    size(text, "Hugepagesize:")
}

/// The size in a line of `/proc/meminfo`.
fn size(text: &str, name: &str) -> Result<Option<Bytes>, ParseError> {
    let mut sizes = lines(text).filter_map(|(number, line)| Some((number, line.strip_prefix(name)?)));
    let Some((number, value)) = sizes.next() else { return Ok(None) };
    let size = value.trim().strip_suffix("kB").and_then(|size| kib(size.trim()));
    size.map(Some).ok_or_else(|| ParseError::new(number, "a number of kB below 2^54", value.trim()))
}

/// Reads one line, or says what was expected.
fn field(line: &str, node: NodeId) -> Result<MeminfoField, String> {
    let (prefix, value) = line.split_once(':').ok_or("a name and a colon")?;
    let mut words = prefix.split_ascii_whitespace();
    let number = match (words.next(), words.next()) {
        (Some("Node"), Some(number)) => number,
        _ => return Err(format!("\"Node {node}\" and a name")),
    };
    if digits(number) != Some(node.number()) {
        return Err(format!("a line of node {node}"));
    }
    let name = words.next().filter(|name| is_name(name)).ok_or("a name before the colon")?;
    if words.next().is_some() {
        return Err("one name before the colon".to_owned());
    }
    let mut words = value.split_ascii_whitespace().peekable();
    // The kernel pads with blanks: a zero in front is a digit that was another one.
    if words.peek().is_some_and(|number| number.len() > 1 && number.starts_with('0')) {
        return Err("a number without zeros in front".to_owned());
    }
    let value = match (words.next(), words.next(), words.next()) {
        (Some(size), Some("kB"), None) => {
            kib(size).map(MeminfoValue::Size).ok_or("a number of kB below 2^54")?
        }
        (Some(count), None, _) => digits(count).map(MeminfoValue::Count).ok_or("a number below 2^64")?,
        _ => return Err("a number, and kB or nothing".to_owned()),
    };
    Ok(MeminfoField { name: name.to_owned(), value })
}

/// Whether the text has the form of the kernel's names: `Active(anon)`, `HugePages_Total`.
fn is_name(name: &str) -> bool {
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'(' | b')');
    name.starts_with(|c: char| c.is_ascii_uppercase()) && name.bytes().all(in_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, any, prop, prop_assert_eq, proptest};

    fn check(text: &str, expected: &[(&str, MeminfoValue)], problems: &[&str]) {
        let parsed = parse(text, NodeId::new(0));
        let fields: Vec<_> = parsed.value.iter().map(|field| (field.name.as_str(), field.value)).collect();
        assert_eq!(fields, expected);
        assert_eq!(parsed.problems.first.iter().map(ToString::to_string).collect::<Vec<_>>(), problems);
    }

    fn size(kib: u64) -> MeminfoValue {
        MeminfoValue::Size(Bytes::from_kib(kib))
    }

    #[test]
    fn sizes_and_counts_of_two_releases_are_read() {
        // Linux 5.15 on arm64, then 2.6.18 on ia64 with its empty first line.
        check(
            "Node 0 MemTotal:       131732940 kB\nNode 0 Active(anon):       1452 kB\nNode 0 HugePages_Total:     4\n",
            &[
                ("MemTotal", size(131_732_940)),
                ("Active(anon)", size(1452)),
                ("HugePages_Total", MeminfoValue::Count(4)),
            ],
            &[],
        );
        check(
            "\nNode 0 MemTotal:     16709376 kB\nNode 0 LowFree:      14885248 kB\n",
            &[("MemTotal", size(16_709_376)), ("LowFree", size(14_885_248))],
            &[],
        );
    }

    #[test]
    fn the_memory_of_the_whole_machine_is_read_or_refused() {
        let total = |text: &str| system_total(text).map(|size| size.map(Bytes::get));
        assert_eq!(total("MemTotal:       16316412 kB\nMemFree: 1 kB\n"), Ok(Some(16_316_412 << 10)));
        assert_eq!(total("MemFree: 1 kB\n"), Ok(None));
        assert_eq!(
            total("\nMemTotal: lots\n").unwrap_err().to_string(),
            "line 2: expected a number of kB below 2^54, found \"lots\""
        );
    }

    #[test]
    fn a_bad_line_costs_one_line() {
        check(
            "Node 0 MemTotal: 8 kB\nNode 0 MemFree: x kB\nNode 1 MemUsed: 1 kB\nNode 0 Dirty\nNode 0 Dirty: 1 kB\n",
            &[("MemTotal", size(8)), ("Dirty", size(1))],
            &[
                "line 2: expected a number of kB below 2^54, found \"Node 0 MemFree: x kB\"",
                "line 3: expected a line of node 0, found \"Node 1 MemUsed: 1 kB\"",
                "line 4: expected a name and a colon, found \"Node 0 Dirty\"",
            ],
        );
        check(
            "Node 0 MemTotal: 0048576 kB\n",
            &[],
            &["line 1: expected a number without zeros in front, found \"Node 0 MemTotal: 0048576 kB\""],
        );
    }

    #[test]
    fn what_overflows_or_comes_twice_is_refused_and_never_0() {
        check(
            "Node 0 MemTotal: 18446744073709551615 kB\nNode 0 A: 18446744073709551616\nNode 0 B: 1\nNode 0 B: 2\n",
            &[("B", MeminfoValue::Count(1))],
            &[
                "line 1: expected a number of kB below 2^54, found \"Node 0 MemTotal: 18446744073709551615 kB\"",
                "line 2: expected a number below 2^64, found \"Node 0 A: 18446744073709551616\"",
                "line 4: expected B once only, found \"Node 0 B: 2\"",
            ],
        );
    }

    #[test]
    fn a_file_that_was_cut_keeps_its_whole_lines() {
        check(
            "Node 0 MemTotal: 8 kB\nNode 0 MemFr",
            &[("MemTotal", size(8))],
            &["line 2: expected a name and a colon, found \"Node 0 MemFr\""],
        );
    }

    fn fields() -> impl Strategy<Value = Vec<MeminfoField>> {
        let value = (any::<bool>(), 0u64..1 << 54)
            .prop_map(|(sized, number)| if sized { size(number) } else { MeminfoValue::Count(number) });
        prop::collection::btree_map("[A-Z][A-Za-z0-9_()]{0,12}", value, 0..20)
            .prop_map(|fields| fields.into_iter().map(|(name, value)| MeminfoField { name, value }).collect())
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(fields in fields(), node in 0u32..1024) {
            let line = |field: &MeminfoField| match field.value {
                MeminfoValue::Size(size) => format!("Node {node} {}: {:14} kB\n", field.name, size.get() / 1024),
                MeminfoValue::Count(count) => format!("Node {node} {}: {count}\n", field.name),
            };
            let text: String = fields.iter().map(line).collect();
            let parsed = parse(&text, NodeId::new(node));
            prop_assert_eq!(parsed.value, fields);
            prop_assert_eq!(parsed.problems.count(), 0);
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>(), near in r"(Node [01] [A-Z:()]{0,4}:? *[0-9]{0,21} ?[kB]{0,2}\n?){0,4}") {
            let _ = parse(&text, NodeId::new(0));
            let _ = parse(&near, NodeId::new(0));
        }
    }
}
