//! Offsets of members of the kernel's structures.
//!
//! # Source
//! `/sys/kernel/btf/vmlinux`, Linux 5.4; the format is that of `Documentation/bpf/btf.rst` and `linux/btf.h`: a header, types,
//! strings. Only little-endian files are read.

const MAGIC: u16 = 0xeb9f;
/// Kinds of types.
const STRUCT: u32 = 4;
const UNION: u32 = 5;
/// Bytes of the head of a type, and of a member.
const HEAD: usize = 12;
const MEMBER: usize = 12;
/// How deep parts without a name are looked into, where the kernel's go three levels down, and how many members are looked at,
/// where the largest of its structures have some hundred.
const DEEPEST: usize = 8;
const MOST_MEMBERS: usize = 1 << 16;

/// Offsets in bytes of members of structures, in the order in which they were asked for. `None` for one that is missing or
/// does not begin at a byte; all of them where the file is damaged.
pub fn offsets<const N: usize>(file: &[u8], wanted: [(&str, &str); N]) -> [Option<u64>; N] {
    let walked = File::read(file).and_then(|mut file| {
        let structures = file.walk(wanted.map(|(structure, _)| structure))?;
        Some((file, structures))
    });
    let Some((file, structures)) = walked else { return [None; N] };
    let mut found = [None; N];
    for ((offset, place), (_, member)) in found.iter_mut().zip(structures).zip(wanted) {
        let mut left = MOST_MEMBERS;
        let bits = place.and_then(|place| file.member(place, member, 0, &mut left));
        *offset = bits.filter(|bits| bits % 8 == 0).map(|bits| bits / 8);
    }
    found
}

/// Bytes behind the head of a type of this kind. `None` for a kind that no kernel has.
///
/// # Source
/// `Documentation/bpf/btf.rst`, section "Type Encoding", Linux 6.18.
const fn length(kind: u32, count: usize) -> Option<usize> {
    Some(match kind {
        // Pointers, forward declarations, typedefs, qualifiers, functions, floats, type tags.
        2 | 7 | 8 | 9 | 10 | 11 | 12 | 16 | 18 => 0,
        // Integers, variables, declaration tags.
        1 | 14 | 17 => 4,
        // Arrays.
        3 => 12,
        // Structures, unions, sections, wide enumerations.
        STRUCT | UNION | 15 | 19 => 12 * count,
        // Enumerations, and parameters of functions.
        6 | 13 => 8 * count,
        _ => return None,
    })
}

struct File<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// Where each type begins, once they have been walked over; the first has the number 1.
    starts: Vec<usize>,
}

/// The head of a type, or a member.
struct Head {
    name: u32,
    /// Of a member: its type.
    info: u32,
    /// Of a type: its size, or the type that is meant. Of a member: its offset.
    other: u32,
}

impl Head {
    const fn kind(&self) -> u32 {
        self.info >> 24 & 0x1f
    }

    fn count(&self) -> usize {
        usize::from(self.info as u16)
    }
}

impl<'a> File<'a> {
    fn read(file: &'a [u8]) -> Option<Self> {
        let magic = file.first_chunk().copied().map(u16::from_le_bytes)?;
        let [header, types, types_length, strings, strings_length] =
            [4, 8, 12, 16, 20].map(|at| word(file, at).and_then(|word| usize::try_from(word).ok()));
        let part = |offset: Option<usize>, length: Option<usize>| {
            let start = header?.checked_add(offset?)?;
            file.get(start..start.checked_add(length?)?)
        };
        (magic == MAGIC).then_some(())?;
        Some(Self {
            types: part(types, types_length)?,
            strings: part(strings, strings_length)?,
            starts: Vec::new(),
        })
    }

    /// Walks over all types: where the structures of these names are.
    fn walk<const N: usize>(&mut self, wanted: [&str; N]) -> Option<[Option<usize>; N]> {
        let mut places = [None; N];
        let mut at = 0;
        while let Some(head) = self.head(at) {
            // A structure whose parts are not known is declared without any.
            if head.kind() == STRUCT && head.count() > 0 {
                let name = self.name(head.name)?;
                let found = places.iter_mut().zip(wanted).filter(|(_, wanted)| wanted.as_bytes() == name);
                found.for_each(|(place, _)| *place = Some(at));
            }
            self.starts.push(at);
            at = at.checked_add(HEAD + length(head.kind(), head.count())?)?;
        }
        Some(places)
    }

    /// The offset of a member in bits, of the structure or union at a place and of its parts without a name.
    fn member(&self, place: usize, wanted: &str, depth: usize, left: &mut usize) -> Option<u64> {
        let whole = self.head(place)?;
        for number in 0..whole.count() {
            *left = left.checked_sub(1)?;
            let member = self.head(place + HEAD + number * MEMBER)?;
            // With bit fields, 8 bits of the word are the width.
            let bits = u64::from(if whole.info >> 31 == 1 { member.other & 0xff_ffff } else { member.other });
            let name = self.name(member.name)?;
            if name == wanted.as_bytes() {
                return Some(bits);
            }
            if name.is_empty() && depth < DEEPEST {
                let inside =
                    self.parts(member.info).and_then(|part| self.member(part, wanted, depth + 1, left));
                if let Some(inside) = inside {
                    return Some(bits + inside);
                }
            }
        }
        None
    }

    /// Where a type is, if it is a structure or a union.
    fn parts(&self, number: u32) -> Option<usize> {
        let place = *self.starts.get(usize::try_from(number).ok()?.checked_sub(1)?)?;
        let kind = self.head(place)?.kind();
        (kind == STRUCT || kind == UNION).then_some(place)
    }

    fn head(&self, at: usize) -> Option<Head> {
        let part = |offset: usize| word(self.types, at.checked_add(offset)?);
        Some(Head { name: part(0)?, info: part(4)?, other: part(8)? })
    }

    fn name(&self, at: u32) -> Option<&'a [u8]> {
        let rest = self.strings.get(usize::try_from(at).ok()?..)?;
        rest.split(|byte| *byte == 0).next()
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    const NAMES: [&str; 7] = ["", "int", "task", "pid", "flag", "comm", "end"];

    /// A file of these types, as words, and these names.
    fn file(types: &[u32], names: &[&str]) -> Vec<u8> {
        let strings: Vec<u8> = names.iter().flat_map(|name| name.bytes().chain([0])).collect();
        let length = types.len() as u32 * 4;
        let mut bytes = [&MAGIC.to_le_bytes()[..], &[1, 0]].concat();
        for word in [24, 0, length, length, strings.len() as u32].iter().chain(types) {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(strings);
        bytes
    }

    /// An integer, an enumeration of two, an empty `task`, one with `pid` (byte 8), `flag` (bit 65), `comm` (byte 16) and a
    /// union without a name at byte 32; that union, of an integer and of a structure without a name; that structure, with
    /// `end` at byte 4.
    fn sample() -> Vec<u8> {
        let types = [
            [1, 1 << 24, 4, 0x20].as_slice(),
            &[0, 6 << 24 | 2, 4, 0, 0, 0, 1],
            &[5, 4 << 24, 0],
            &[5, 1 << 31 | 4 << 24 | 4, 48, 10, 1, 64, 14, 1, 3 << 24 | 65, 19, 1, 128, 0, 5, 256],
            &[0, 5 << 24 | 2, 8, 0, 1, 0, 0, 6, 0],
            &[0, 4 << 24 | 1, 8, 24, 1, 32],
        ];
        file(&types.concat(), &NAMES)
    }

    #[test]
    fn members_are_found_by_name_also_in_parts_without_one() {
        let wanted = ["comm", "pid", "flag", "tgid", "end"].map(|member| ("task", member));
        assert_eq!(offsets(&sample(), wanted), [Some(16), Some(8), None, None, Some(36)]);
        assert_eq!(offsets(&sample(), [("other", "pid"), ("task", "pid")]), [None, Some(8)]);
    }

    #[test]
    fn a_file_that_is_cut_gives_nothing() {
        let whole = sample();
        let cut = (0..whole.len()).filter(|length| offsets(&whole[..*length], [("task", "comm")]) != [None]);
        assert_eq!(cut.count(), 0);
    }

    #[test]
    fn a_structure_that_holds_itself_ends() {
        let members = [0, 1, 0].repeat(1000);
        let types = [&[5, 4 << 24 | 1000, 8][..], &members].concat();
        assert_eq!(offsets(&file(&types, &NAMES), [("task", "pid")]), [None]);
    }

    proptest! {
        #[test]
        fn any_file_is_read(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            words in proptest::collection::vec(any::<u32>(), 0..60),
        ) {
            offsets(&bytes, [("task", "pid")]);
            offsets(&file(&words, &["", "task"]), [("task", "pid")]);
        }

        #[test]
        fn a_damaged_file_is_read(place in 0usize..300, byte in any::<u8>()) {
            let mut bytes = sample();
            let place = place % bytes.len();
            bytes[place] = byte;
            offsets(&bytes, [("task", "comm"), ("task", "end")]);
        }
    }
}
