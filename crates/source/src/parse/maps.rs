//! The mappings of a process: ranges of addresses, and the objects behind them.
//!
//! # Source
//! `/proc/PID/maps`. One line per mapping:
//!
//! ```text
//! 7f2c00000000-7f2c00200000 rw-s 00001000 00:01 2054                       /dev/zero (deleted)
//! ```
//!
//! The kernel escapes nothing in a name but the line feed (`\012`), so that a file can be called
//! `[heap]`, or end in ` (deleted)`, without being either: only a device or an inode shows that there is a file. The
//! inode alone does not: that of a System V segment is its number, and the first segment of a system has number 0.

use nodewise_machine::mapping::{FileId, Permissions};

use super::number::hex_digits;
use super::{Parsed, Problems, digits};

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    /// The first address behind it.
    pub end: u64,
    pub permissions: Permissions,
    /// Its first byte in the file, in bytes.
    pub offset: u64,
    /// The file or the shared memory behind it; `None` for memory without one.
    pub file: Option<FileId>,
    /// Its name as it was read, line feeds decoded: a path, `[heap]`, `[anon:NAME]`.
    pub name: Option<String>,
}

/// The words behind the path of a file whose last name was removed.
const DELETED: &str = " (deleted)";

impl Mapping {
    /// Its length in bytes.
    pub const fn length(&self) -> u64 {
        self.end - self.start
    }

    /// The path of its file, and whether the file was deleted.
    pub fn path(&self) -> Option<(&str, bool)> {
        self.file?;
        let name = self.name.as_deref()?;
        Some(name.strip_suffix(DELETED).map_or((name, false), |path| (path, true)))
    }

    /// The word in brackets of memory that belongs to no file: `heap`, `stack`, `vdso`, `anon:NAME`.
    pub fn word(&self) -> Option<&str> {
        if self.file.is_some() {
            return None;
        }
        self.name.as_deref()?.strip_prefix('[')?.strip_suffix(']')
    }
}

/// Reads every line.
pub fn parse(text: &str) -> Parsed<Vec<Mapping>> {
    let mut parsed = Parsed::<Vec<Mapping>>::default();
    // Not `lines`: a name may end in a carriage return.
    for (number, line) in (1u32..).zip(text.split('\n')).filter(|(_, line)| !line.is_empty()) {
        let mapping = parse_line(line, number, &mut parsed.problems);
        parsed.value.extend(mapping);
    }
    parsed
}

/// Reads one line, without its line feed; `None` and a problem when it is not a mapping.
pub fn parse_line(line: &str, number: u32, problems: &mut Problems) -> Option<Mapping> {
    let read = fields(line);
    if let Err(expected) = &read {
        problems.add(number, *expected, line);
    }
    read.ok()
}

fn fields(line: &str) -> Result<Mapping, &'static str> {
    let mut words = line.splitn(6, ' ');
    let mut word = || words.next().unwrap_or_default();
    let (start, end) = range(word()).ok_or("two addresses, the higher one behind \"-\"")?;
    let permissions = permissions(word()).ok_or("permissions as in rw-p")?;
    let offset = hex_digits(word()).ok_or("an offset in hexadecimal")?;
    let device = device(word()).ok_or("a device as in fe:00")?;
    let inode = digits(word()).ok_or("an inode")?;
    let name = word().trim_start_matches(' ');
    // Memory without a file has neither; every file system has a device.
    let file = (inode != 0 || device != (0, 0)).then_some(FileId { device, inode });
    let name = (!name.is_empty()).then(|| name.replace("\\012", "\n"));
    Ok(Mapping { start, end, permissions, offset, file, name })
}

/// Two addresses with `-` between them, the lower one first.
pub(super) fn range(word: &str) -> Option<(u64, u64)> {
    let (start, end) = word.split_once('-')?;
    let (start, end) = (hex_digits(start)?, hex_digits(end)?);
    (start < end).then_some((start, end))
}

/// Four letters, as in `rw-p`.
pub(crate) fn permissions(word: &str) -> Option<Permissions> {
    let [read, write, execute, shared] = word.as_bytes() else { return None };
    let is = |byte: &u8, letter: u8| match *byte {
        b'-' => Some(false),
        byte => (byte == letter).then_some(true),
    };
    let shared = match shared {
        b's' => true,
        b'p' => false,
        _ => return None,
    };
    Some(Permissions { read: is(read, b'r')?, write: is(write, b'w')?, execute: is(execute, b'x')?, shared })
}

fn device(word: &str) -> Option<(u32, u32)> {
    let (major, minor) = word.split_once(':')?;
    let number = |text: &str| u32::try_from(hex_digits(text)?).ok();
    Some((number(major)?, number(minor)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};

    /// Linux 6.18, and the thread stack that Linux 3.4 to 4.4 named.
    const SAMPLE: &str = "\
55d0c8e42000-55d0c8e63000 rw-p 00000000 00:00 0                          [heap]
7f2c00000000-7f2c00200000 rw-s 00001000 00:01 2054                       /dev/zero (deleted)
7f8864c5e000-7f8864c84000 r-xp 00001000 fe:00 325843                     /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
7f8864d00000-7f8864d20000 rw-p 00000000 00:00 0                          [anon:glibc: malloc arena]
7f8864e00000-7f8864e01000 rw-p 00000000 00:00 0\x20
7ffd86e15000-7ffd86e36000 rw-p 00000000 00:00 0                          [stack:812]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";

    fn one(line: &str) -> Mapping {
        let parsed = parse(line);
        assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
        parsed.value.into_iter().next().unwrap()
    }

    #[test]
    fn mappings_are_read_with_their_objects() {
        let parsed = parse(SAMPLE);
        assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
        let words: Vec<Option<&str>> = parsed.value.iter().map(Mapping::word).collect();
        assert_eq!(
            words,
            [
                Some("heap"),
                None,
                None,
                Some("anon:glibc: malloc arena"),
                None,
                Some("stack:812"),
                Some("vsyscall")
            ]
        );
        let zero = &parsed.value[1];
        assert_eq!(zero.path(), Some(("/dev/zero", true)));
        assert_eq!(zero.file, Some(FileId { device: (0, 1), inode: 2054 }));
        assert_eq!(
            (zero.length(), zero.offset, zero.permissions.to_string()),
            (2 << 20, 0x1000, "rw-s".into())
        );
        assert_eq!(parsed.value[2].file.unwrap().device, (0xfe, 0));
        assert_eq!((parsed.value[4].name.as_deref(), parsed.value[4].file), (None, None));
    }

    #[test]
    fn a_file_with_the_name_of_a_stack_is_a_file() {
        let hostile = one("1000-2000 rw-p 00000000 08:01 77 [stack]");
        assert_eq!((hostile.word(), hostile.path()), (None, Some(("[stack]", false))));
        let spaces = one("1000-2000 rw-p 00000000 08:01 77      /tmp/a  b \\012\x1b[2J (deleted) (deleted)");
        assert_eq!(spaces.path(), Some(("/tmp/a  b \n\x1b[2J (deleted)", true)));
        let carriage = one("1000-2000 rw-p 00000000 08:01 77 /a\r\n");
        assert_eq!(carriage.path(), Some(("/a\r", false)));
    }

    #[test]
    fn the_first_segment_of_a_system_has_inode_0_and_is_shared_memory() {
        let segment = one("7f0000000000-7f0000800000 rw-s 00000000 00:01 0      /SYSV6e6f6465 (deleted)");
        assert_eq!(segment.file, Some(FileId { device: (0, 1), inode: 0 }));
        assert_eq!(segment.path(), Some(("/SYSV6e6f6465", true)));
    }

    #[test]
    fn bad_lines_cost_one_line_each_and_are_named() {
        let parsed = parse(
            "2000-1000 rw-p 0 00:00 0\n1000-2000 rwxz 0 00:00 0\n1000-2000 rw-p x 00:00 0\n\
             1000-2000 rw-p 0 0 0\n1000-2000 rw-p 0 00:00\n1000-2000 rw-p 0 00:00 -1\n\
             1000-10000000000000000 r--p 0 00:00 0\n3000-4000 r--p 0 00:00 0",
        );
        assert_eq!(parsed.problems.count(), 7);
        assert_eq!(
            parsed.problems.first[4].to_string(),
            "line 5: expected an inode, found \"1000-2000 rw-p 0 00:00\""
        );
        assert_eq!(parsed.value.len(), 1, "the line that was cut before its line feed is whole here");
    }

    fn mapping() -> impl Strategy<Value = Mapping> {
        let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
        let numbers = (any::<u64>(), 1u64.., any::<u64>(), any::<(u32, u32)>(), any::<u64>());
        let name = prop::option::of("[!-~][ -~\n\u{e9}]{0,20}")
            .prop_filter("the kernel's own escape", |name| {
                name.as_ref().is_none_or(|name| !name.contains("\\012"))
            });
        (flags, numbers, name).prop_map(
            |((read, write, execute, shared), (start, length, offset, device, inode), name)| {
                let start = start.min(u64::MAX - 1);
                Mapping {
                    start,
                    end: start.saturating_add(length),
                    permissions: Permissions { read, write, execute, shared },
                    offset,
                    file: (inode != 0 || device != (0, 0)).then_some(FileId { device, inode }),
                    name,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn what_the_kernel_prints_is_read_back(mappings in prop::collection::vec(mapping(), 0..4)) {
            let print = |mapping: &Mapping| {
                let FileId { device: (major, minor), inode } =
                    mapping.file.unwrap_or(FileId { device: (0, 0), inode: 0 });
                let name = mapping.name.as_deref().unwrap_or_default().replace('\n', "\\012");
                let (start, end) = (mapping.start, mapping.end);
                let (permissions, offset) = (mapping.permissions, mapping.offset);
                let head = format!("{start:08x}-{end:08x} {permissions} {offset:08x} {major:02x}:{minor:02x} {inode} ");
                format!("{head:73}{name}\n")
            };
            let parsed = parse(&mappings.iter().map(print).collect::<String>());
            prop_assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
            prop_assert_eq!(parsed.value, mappings);
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(
            text in any::<String>(),
            near in r"([0-9a-f]{1,17}-[0-9a-f]{1,17} [rwxsp-]{3,5} [0-9a-f]{1,9} [0-9a-f]{1,9}:[0-9a-f]{1,2} [0-9]{1,21} {1,5}[\[/(deleted) \\012]{0,12}\n){0,4}",
        ) {
            for text in [text, near] {
                for mapping in parse(&text).value {
                    let _ = (mapping.path(), mapping.word());
                    prop_assert!(mapping.length() > 0);
                }
            }
        }
    }
}
