//! Segments of System V shared memory.
//!
//! # Source
//! `/proc/sysvipc/shm`: a line of names, then a line per segment. `rss` and `swap` since Linux 2.6.34.
//!
//! ```text
//!        key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap
//!          0          2  1600              67108864   812   812      1     0     0     0     0 1763856000          0 1763856000              67108864                     0
//! ```

use nodewise_machine::Bytes;

use super::{Parsed, digits, lines};

/// A segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The key that programs find it by; 0 for none.
    pub key: i32,
    pub id: u32,
    /// The rights as of a file, in the lowest nine bits.
    pub mode: u32,
    pub size: Bytes,
    /// How many mappings of it there are.
    pub attaches: u64,
    /// The user that it belongs to.
    pub user: u32,
    /// In memory. `None`: this release does not print it.
    pub resident: Option<Bytes>,
    pub swapped: Option<Bytes>,
}

/// Reads every line behind the names.
pub fn parse(text: &str) -> Parsed<Vec<Segment>> {
    let mut parsed = Parsed::<Vec<Segment>>::default();
    for (number, line) in lines(text).filter(|(_, line)| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if words.first() == Some(&"key") {
            continue;
        }
        match segment(&words) {
            Some(segment) => parsed.value.push(segment),
            None => parsed.problems.add(number, "the 14 or 16 numbers of a segment", line.trim()),
        }
    }
    parsed
}

fn segment(words: &[&str]) -> Option<Segment> {
    let [key, id, mode, size, _, _, attaches, user, rest @ ..] = words else { return None };
    if rest.len() < 6 {
        return None;
    }
    let bytes = |at: usize| rest.get(at).map(|text| digits(text).map(Bytes::new));
    Some(Segment {
        key: key.parse().ok()?,
        id: digits(id)?,
        mode: u32::from_str_radix(mode, 8).ok()?,
        size: Bytes::new(digits(size)?),
        attaches: digits(attaches)?,
        user: digits(user)?,
        resident: bytes(6).map_or(Some(None), |size| size.map(Some))?,
        swapped: bytes(7).map_or(Some(None), |size| size.map(Some))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    /// As Linux 6.18 prints it.
    const SAMPLE: &str = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n         0          2  1600              67108864   812   813      1     0     0     0     0 1763856000          0 1763856000              67104768                  4096\n-559038737         32769   666                 4096   812   813      0  1000  1000     0     0          0          0 1763856000                     0                     0\n";

    #[test]
    fn segments_are_read_with_keys_that_may_be_negative() {
        let parsed = parse(SAMPLE);
        assert!(parsed.problems.is_empty());
        let first = parsed.value[0];
        assert_eq!((first.id, first.mode, first.size), (2, 0o1600, Bytes::from_mib(64)));
        assert_eq!((first.resident, first.swapped), (Some(Bytes::new(67_104_768)), Some(Bytes::from_kib(4))));
        assert_eq!(
            (parsed.value[1].key, parsed.value[1].user, parsed.value[1].attaches),
            (-559_038_737, 1000, 0)
        );
    }

    #[test]
    fn a_release_without_resident_memory_leaves_it_out() {
        let parsed =
            parse("0 2 600 4096 1 1 1 0 0 0 0 0 0 0\n0 3 600 4096 1 1\n0 4 900 1 1 1 1 0 0 0 0 0 0 0\n");
        assert_eq!((parsed.value.len(), parsed.value[0].resident), (1, None));
        assert_eq!(parsed.problems.count(), 2);
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(key in any::<i32>(), id in any::<u32>(), size in any::<u64>(), rss in any::<u64>()) {
            let parsed = parse(&format!("{key:10} {id:10} 600 {size:21} 1 2 3 4 5 6 7 8 9 10 {rss:21} 0\n"));
            prop_assert!(parsed.problems.is_empty());
            let segment = parsed.value[0];
            prop_assert_eq!((segment.key, segment.id, segment.size), (key, id, Bytes::new(size)));
            prop_assert_eq!(segment.resident, Some(Bytes::new(rss)));
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>(), near in r"((-?[0-9]{1,21} ){0,17}\n){0,3}") {
            let _ = parse(&text);
            let _ = parse(&near);
        }
    }
}
