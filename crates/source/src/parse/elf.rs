//! Libraries that a program's file names: they are loaded whenever it is started.
//!
//! # Source
//! The ELF specification (gABI): program headers `PT_LOAD` and `PT_DYNAMIC`, entries `DT_NEEDED` and `DT_STRTAB` of the
//! dynamic section; `elf(5)`.

/// Part of a file: `None` where it has no such bytes.
pub type ReadPart<'a> = dyn FnMut(u64, usize) -> Option<Vec<u8>> + 'a;

/// The most program headers and entries that are looked at; programs have about ten and forty.
const MOST_HEADERS: u16 = 256;
const MOST_ENTRIES: u64 = 4096;
/// The longest name of a library, that of a file on Linux.
const MOST_NAME: usize = 255;

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;

/// How numbers are written.
#[derive(Clone, Copy)]
struct Form {
    is_wide: bool,
    is_little: bool,
}

impl Form {
    /// The number of some bytes at a place.
    fn number(self, bytes: &[u8], at: usize, length: usize) -> Option<u64> {
        let bytes = bytes.get(at..at.checked_add(length)?)?;
        let add = |sum: u64, byte: &u8| (sum << 8) | u64::from(*byte);
        Some(if self.is_little { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) })
    }

    /// A field that has another place and length in files of 32 bits.
    fn field(self, bytes: &[u8], wide: (usize, usize), narrow: (usize, usize)) -> Option<u64> {
        let (at, length) = if self.is_wide { wide } else { narrow };
        self.number(bytes, at, length)
    }
}

/// A program header: its type, its place in the file and in memory, and its length in the file.
struct Header {
    kind: u64,
    offset: u64,
    address: u64,
    length: u64,
}

/// The names, in the order of the file; `None` where it is not an ELF file, or a damaged one. A static program names none.
pub fn needed(read: &mut ReadPart<'_>) -> Option<Vec<String>> {
    let start = read(0, 64).or_else(|| read(0, 52))?;
    let form = match start.get(..6)? {
        [0x7f, b'E', b'L', b'F', class @ (1 | 2), order @ (1 | 2)] => {
            Form { is_wide: *class == 2, is_little: *order == 1 }
        }
        _ => return None,
    };
    let headers = headers(form, &start, read)?;
    let Some(dynamic) = headers.iter().find(|header| header.kind == PT_DYNAMIC) else {
        return Some(Vec::new());
    };
    let size = if form.is_wide { 16 } else { 8 };
    let (mut names, mut table) = (Vec::new(), None);
    for at in 0..(dynamic.length / size).min(MOST_ENTRIES) {
        let entry = read(dynamic.offset.checked_add(at * size)?, usize::try_from(size).ok()?)?;
        let tag = form.field(&entry, (0, 8), (0, 4))?;
        let value = form.field(&entry, (8, 8), (4, 4))?;
        match tag {
            DT_NULL => break,
            DT_NEEDED => names.push(value),
            DT_STRTAB => table = Some(value),
            _ => {}
        }
    }
    let Some(table) = table else { return names.is_empty().then(Vec::new) };
    let of = headers.iter().find(|header| {
        header.kind == PT_LOAD
            && table.checked_sub(header.address).is_some_and(|inside| inside < header.length)
    })?;
    let table = of.offset.checked_add(table - of.address)?;
    names.into_iter().map(|name| text(table.checked_add(name)?, read)).collect()
}

fn headers(form: Form, start: &[u8], read: &mut ReadPart<'_>) -> Option<Vec<Header>> {
    let at = form.field(start, (32, 8), (28, 4))?;
    let size = form.field(start, (54, 2), (42, 2))?;
    let count = form.field(start, (56, 2), (44, 2))?.min(u64::from(MOST_HEADERS));
    let least = if form.is_wide { 56 } else { 32 };
    let header = |number: u64| {
        let bytes = read(at.checked_add(number.checked_mul(size)?)?, least)?;
        Some(Header {
            kind: form.number(&bytes, 0, 4)?,
            offset: form.field(&bytes, (8, 8), (4, 4))?,
            address: form.field(&bytes, (16, 8), (8, 4))?,
            length: form.field(&bytes, (32, 8), (16, 4))?,
        })
    };
    (0..count).map(header).collect()
}

/// A text up to its zero byte, which may be the last of the file.
fn text(at: u64, read: &mut ReadPart<'_>) -> Option<String> {
    let mut name = Vec::new();
    while name.len() <= MOST_NAME {
        match read(at.checked_add(name.len() as u64)?, 1)?.first()? {
            0 => return String::from_utf8(name).ok(),
            byte => name.push(*byte),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, proptest};

    fn of(bytes: &[u8]) -> Option<Vec<String>> {
        needed(&mut |at, length| {
            let at = usize::try_from(at).ok()?;
            bytes.get(at..at.checked_add(length)?).map(<[u8]>::to_vec)
        })
    }

    /// A file with a table of names behind one loaded part, in any of the four forms.
    fn file(is_wide: bool, is_little: bool, names: &[&str]) -> Vec<u8> {
        let number = |value: u64, length: usize| {
            let bytes = value.to_le_bytes()[..length].to_vec();
            if is_little { bytes } else { bytes.into_iter().rev().collect() }
        };
        let word = if is_wide { 8 } else { 4 };
        let (head, header) = if is_wide { (64, 56) } else { (52, 32) };
        let base = 0x40_0000;
        let mut table = vec![0];
        let starts: Vec<u64> = names
            .iter()
            .map(|name| {
                let start = table.len() as u64;
                table.extend(name.bytes().chain([0]));
                start
            })
            .collect();
        let dynamic_at = (head + 2 * header) as u64;
        let entries = starts.iter().map(|start| (DT_NEEDED, *start));
        let entries: Vec<(u64, u64)> = [(21, 0)].into_iter().chain(entries).collect();
        let dynamic_length = ((entries.len() + 2) * 2 * word) as u64;
        let table_at = dynamic_at + dynamic_length;
        let all = table_at + table.len() as u64;
        let mut bytes =
            vec![0x7f, b'E', b'L', b'F', if is_wide { 2 } else { 1 }, if is_little { 1 } else { 2 }];
        bytes.resize(if is_wide { 32 } else { 28 }, 0);
        bytes.extend(number(head as u64, word));
        bytes.resize(if is_wide { 54 } else { 42 }, 0);
        bytes.extend([number(header as u64, 2), number(2, 2)].concat());
        bytes.resize(head, 0);
        for (kind, offset, length) in [(PT_LOAD, 0, all), (PT_DYNAMIC, dynamic_at, dynamic_length)] {
            let at = bytes.len();
            let address = base + offset;
            let fields = if is_wide {
                vec![
                    number(kind, 4),
                    number(0, 4),
                    number(offset, 8),
                    number(address, 8),
                    number(0, 8),
                    number(length, 8),
                ]
            } else {
                vec![number(kind, 4), number(offset, 4), number(address, 4), number(0, 4), number(length, 4)]
            };
            bytes.extend(fields.concat());
            bytes.resize(at + header, 0);
        }
        for (tag, value) in entries.into_iter().chain([(DT_STRTAB, base + table_at), (DT_NULL, 0)]) {
            bytes.extend([number(tag, word), number(value, word)].concat());
        }
        bytes.extend(table);
        bytes
    }

    #[test]
    fn names_are_read_from_files_of_every_form() {
        for (is_wide, is_little) in [(true, true), (true, false), (false, true), (false, false)] {
            let bytes = file(is_wide, is_little, &["libgomp.so.1", "libc.so.6"]);
            assert_eq!(of(&bytes).unwrap(), ["libgomp.so.1", "libc.so.6"], "{is_wide} {is_little}");
            assert_eq!(of(&file(is_wide, is_little, &[])), Some(Vec::new()), "a static program");
            for length in 0..bytes.len() - 1 {
                assert_eq!(of(&bytes[..length]), None, "cut after {length}");
            }
        }
        assert_eq!(
            of(b"#!/bin/sh\necho a script that is long enough to have a header of its own, if it were one\n"),
            None
        );
    }

    #[test]
    fn this_test_names_the_library_of_c() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(of(&own).unwrap().iter().any(|name| name.starts_with("libc.so")), "{:?}", of(&own));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(
            noise in prop::collection::vec(any::<u8>(), 0..300),
            at in 0_usize..400,
            byte in any::<u8>(),
        ) {
            let _ = of(&noise);
            let mut near = file(true, true, &["libgomp.so.1"]);
            let length = near.len();
            near[at % length] = byte;
            let _ = of(&near);
        }
    }
}
