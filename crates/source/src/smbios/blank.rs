//! Tables without what identifies one machine, for captures.
//!
//! All that is kept are the structures that [`slots`](super::slots) reads, of them the fields that it reads. All
//! other bytes become zeros and the strings dashes, each in its place, so that the lengths still agree with the
//! entry point.

use super::slots::{ARRAY, ARRAY_RANGE, DEVICE, DEVICE_RANGE, PROCESSOR, STATUS, SYSTEM};
use super::structure::{END, Ending, HEADER, Structure, walk};

/// The fields that stay of a structure: the length of its formatted area, those inside that go, and the places of
/// numbers of strings whose texts stay.
struct Kept {
    bytes: usize,
    without: &'static [std::ops::Range<usize>],
    /// Names of places: no two machines of a model differ in them.
    names: &'static [usize],
    models: &'static [usize],
    /// Serial numbers, tags and the like: a string that one of them names never stays, whatever else names it.
    private: &'static [usize],
}

const fn kept(kind: u8) -> Option<Kept> {
    Some(match kind {
        // Version, serial number, UUID, SKU go.
        SYSTEM => Kept { bytes: 5, without: &[], names: &[], models: &[4], private: &[5, 6, 7, 0x19, 0x1a] },
        // The name of the socket, its type and whether it has a processor; not which one.
        PROCESSOR => Kept {
            bytes: STATUS + 1,
            without: &[6..8, 8..STATUS],
            names: &[4],
            models: &[],
            private: &[7, 0x10, 0x20, 0x21, 0x22],
        },
        ARRAY => Kept { bytes: 23, without: &[], names: &[], models: &[], private: &[] },
        // Not the serial number, the asset tag, and the version of its firmware.
        DEVICE => Kept {
            bytes: 0x5c,
            without: &[0x18..0x1a, 0x2b..0x2c],
            names: &[0x10, 0x11],
            models: &[0x17, 0x1a],
            private: &[0x18, 0x19, 0x2b],
        },
        ARRAY_RANGE => Kept { bytes: 0x1f, without: &[], names: &[], models: &[], private: &[] },
        DEVICE_RANGE => Kept { bytes: 0x23, without: &[], names: &[], models: &[], private: &[] },
        _ => return None,
    })
}

/// A table without serial numbers, asset tags and structures that are not about memory. What cannot be followed
/// becomes zeros.
pub fn blank(table: &[u8]) -> Vec<u8> {
    let mut out = vec![0; table.len()];
    for one in walk(table, Ending::Open).all {
        let area = one.offset..one.offset + one.area.len();
        let fields = kept(one.kind);
        let length = fields.as_ref().map_or(HEADER, |fields| fields.bytes).min(one.area.len());
        out[area.start..area.start + length].copy_from_slice(&one.area[..length]);
        let mut stay = Vec::new();
        if let Some(fields) = &fields {
            for range in fields.without {
                let end = range.end.min(length);
                out[area.start..][range.start.min(end)..end].fill(0);
            }
            stay = strings_that_stay(&one, fields);
        }
        for (number, (from, to)) in (1..).zip(one.string_places()) {
            if stay.contains(&number) {
                out[from..to].copy_from_slice(&table[from..to]);
            } else {
                out[from..to].fill(b'-');
            }
        }
        if one.kind == END {
            break;
        }
    }
    out
}

/// The numbers of strings that stay.
fn strings_that_stay(one: &Structure<'_>, fields: &Kept) -> Vec<usize> {
    let numbers = |places: &[usize]| {
        places.iter().filter_map(|place| one.byte(*place)).map(usize::from).collect::<Vec<_>>()
    };
    let private = numbers(fields.private);
    let named = [numbers(fields.names), numbers(fields.models)].concat();
    named.into_iter().filter(|number| !private.contains(number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smbios::slots::decode;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    /// A module with manufacturer, serial number, asset tag and part, as a machine of 2012 has it; a board with a
    /// serial number; the end.
    fn table() -> Vec<u8> {
        let mut device = vec![0x11, 0x22, 0, 0x11, 0, 0x10, 0xfe, 0xff, 0x48, 0, 0x40, 0, 0, 0x10, 9, 1];
        device.extend([1, 0, 0x18, 0x80, 0x20, 0x40, 6, 2, 3, 4, 5, 2, 0, 0, 0, 0, 0x40, 6]);
        device.extend(b"DIMM_A1\0MAKER\x0036679587\0ASSET77\0PART\0\0");
        let board = b"\x02\x06\x01\x00\x01\x00SERIAL\0\0";
        [&device[..], board, b"\x7f\x04\xff\xfe\0\0"].concat()
    }

    fn without(table: &[u8]) -> String {
        let blanked = blank(table);
        assert_eq!(blanked.len(), table.len());
        String::from_utf8_lossy(&blanked).into_owned()
    }

    #[test]
    fn the_slots_are_the_same_and_the_identity_is_gone() {
        let text = without(&table());
        for word in ["36679587", "ASSET77", "SERIAL"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
        let (slots, problems) = decode(&blank(&table()), Ending::Marked);
        assert_eq!(problems, []);
        assert_eq!((slots, problems), decode(&table(), Ending::Marked));
    }

    #[test]
    fn a_processor_is_there_or_not_and_nothing_else_about_it() {
        let mut processor = vec![4, 0x23, 4, 0, 1, 3, 0xb3, 2];
        processor.extend([0x5a; STATUS - 8]);
        processor.extend([0x41, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 3, 4, 5]);
        let table = [&processor[..], b"CPU1\0MAKER\0SERIAL\0ASSET\0PART\0\0", &table()].concat();
        let text = without(&table);
        for word in ["MAKER", "SERIAL", "ASSET", "PART", "ZZ"] {
            assert!(!text[..70].contains(word), "{word}: {text}");
        }
        let (slots, _) = decode(&blank(&table), Ending::Marked);
        assert_eq!(slots.board.processors, [Some(true)]);
    }

    #[test]
    fn a_model_that_shares_its_string_with_a_serial_number_goes() {
        let mut shared = table();
        shared[0x1a] = shared[0x18];
        let (slots, problems) = decode(&blank(&shared), Ending::Marked);
        assert_eq!(problems, []);
        let module = slots.slots[0].module().unwrap();
        assert_eq!(module.part_number.as_deref(), Some("--------"));
        assert_eq!(module.manufacturer.as_deref(), Some("MAKER"));
    }

    #[test]
    fn a_serial_number_goes_whatever_else_names_it() {
        let mut shared = table();
        shared[0x11] = shared[0x18];
        assert!(!without(&shared).contains("36679587"), "the bank of a module");
        let mut system = vec![1, 8, 0, 1, 1, 0, 0, 1];
        system.extend(b"SERIAL\0\0");
        assert!(!without(&system).contains("SERIAL"), "the vendor of a system");
    }

    #[test]
    fn what_cannot_be_followed_is_not_kept() {
        let table = [&table()[..], b"SERIAL"].concat();
        assert!(!without(&table).contains("SERIAL"), "behind the end");
        assert!(!without(b"\x11\x22SERIAL").contains("SERIAL"));
        assert!(!without(b"\x11\x05\0\0SERIAL").contains("SERIAL"), "strings without an end");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived_and_blanking_twice_is_blanking_once(bytes in any::<Vec<u8>>(), at in 0_usize..90, byte in any::<u8>()) {
            let mut near = table();
            near[at] = byte;
            for table in [bytes, near] {
                let once = blank(&table);
                prop_assert_eq!(blank(&once), once);
            }
        }
    }
}
