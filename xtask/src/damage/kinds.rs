//! Kinds of damage to a file.

use nodewise_stats::random::Random;

use super::specimen::{Content, Specimen};

/// A change of one path; `None` takes away what is there.
pub type Change = (String, Option<Content>);

/// The kind of damage to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Damage {
    BitFlipped,
    ByteReplaced,
    DigitChanged,
    CutOff,
    CutOut,
    LineLost,
    LineDoubled,
    Emptied,
    Deleted,
    Zeroed,
    Swapped,
    LongLine,
    Negative,
    Overflowing,
    WrongList,
    Unreadable,
    Folder,
    LinkLoop,
    LineEnds,
}

impl Damage {
    /// Every kind.
    pub const ALL: [Self; 19] = [
        Self::BitFlipped,
        Self::ByteReplaced,
        Self::DigitChanged,
        Self::CutOff,
        Self::CutOut,
        Self::LineLost,
        Self::LineDoubled,
        Self::Emptied,
        Self::Deleted,
        Self::Zeroed,
        Self::Swapped,
        Self::LongLine,
        Self::Negative,
        Self::Overflowing,
        Self::WrongList,
        Self::Unreadable,
        Self::Folder,
        Self::LinkLoop,
        Self::LineEnds,
    ];

    /// Its name in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BitFlipped => "a bit flipped",
            Self::ByteReplaced => "a byte replaced",
            Self::DigitChanged => "a digit changed",
            Self::CutOff => "cut off",
            Self::CutOut => "a part cut out",
            Self::LineLost => "a line lost",
            Self::LineDoubled => "a line doubled",
            Self::Emptied => "emptied",
            Self::Deleted => "deleted",
            Self::Zeroed => "bytes zeroed",
            Self::Swapped => "two files swapped",
            Self::LongLine => "a very long line",
            Self::Negative => "a negative number",
            Self::Overflowing => "an overflowing number",
            Self::WrongList => "a wrong list",
            Self::Unreadable => "unreadable",
            Self::Folder => "a folder in its place",
            Self::LinkLoop => "a loop of links",
            Self::LineEnds => "other line ends",
        }
    }

    /// Damages a file of a specimen, and for a swap another of its kind.
    pub fn apply(
        self,
        specimen: &Specimen,
        path: &str,
        alike: &[String],
        random: &mut Random,
    ) -> Vec<Change> {
        let Some(Content::File(bytes)) = specimen.files.get(path) else { return Vec::new() };
        let one = |content: Option<Content>| vec![(path.to_owned(), content)];
        match self {
            Self::Deleted => one(None),
            Self::Unreadable => one(Some(Content::Closed)),
            Self::Folder => one(Some(Content::Folder)),
            Self::LinkLoop => one(Some(Content::Link(path.to_owned()))),
            Self::Swapped => {
                let other = &alike[random.index(alike.len())];
                let theirs = specimen.files.get(other).cloned();
                vec![(path.to_owned(), theirs), (other.clone(), Some(Content::File(bytes.clone())))]
            }
            _ => one(Some(Content::File(self.of_bytes(bytes, random)))),
        }
    }

    /// Damages bytes.
    pub fn of_bytes(self, bytes: &[u8], random: &mut Random) -> Vec<u8> {
        let mut damaged = bytes.to_vec();
        let at = random.index(bytes.len().max(1));
        match self {
            Self::BitFlipped => {
                damaged.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.below(8))
            }
            Self::ByteReplaced => {
                damaged.iter_mut().skip(at).take(1).for_each(|byte| *byte = random.bits() as u8)
            }
            Self::DigitChanged => {
                let digits: Vec<usize> =
                    (0..bytes.len()).filter(|at| bytes[*at].is_ascii_hexdigit()).collect();
                if let Some(at) = digits.get(random.index(digits.len())) {
                    damaged[*at] = b'0' + random.below(10) as u8;
                }
            }
            Self::CutOff => damaged.truncate(at),
            Self::CutOut => {
                let end = at + 1 + random.index((bytes.len() - at.min(bytes.len())).clamp(1, 200));
                damaged.drain(at.min(bytes.len())..end.min(bytes.len()));
            }
            Self::Emptied => damaged.clear(),
            Self::Zeroed => damaged.iter_mut().skip(at).take(1 + random.index(8)).for_each(|byte| *byte = 0),
            Self::LineEnds => return change_line_ends(bytes, random),
            _ => return self.of_text(bytes, at, random),
        }
        damaged
    }

    /// Damages lines and numbers.
    fn of_text(self, bytes: &[u8], at: usize, random: &mut Random) -> Vec<u8> {
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let line = random.index(lines.len().max(1));
        let text = match self {
            Self::LineLost | Self::LineDoubled => {
                if self == Self::LineLost && line < lines.len() {
                    lines.remove(line);
                } else if line < lines.len() {
                    lines.insert(line, lines[line]);
                }
                return lines.concat();
            }
            Self::LongLine => {
                let filler: &[u8] = [&b"9"[..], b"0-", b"f,", b" ", b"A"][random.index(5)];
                filler.repeat(100_000)
            }
            Self::Negative => b"-".to_vec(),
            Self::Overflowing => [&b"99999999999999999999"[..], b"4294967296", b"18446744073709551616"]
                [random.index(3)]
            .to_vec(),
            _ => {
                let lists: [&[u8]; 8] =
                    [b"3-1", b"0-4294967295", b"0,,2", b"0-3:1/2", b"0-", b"-3", b"0-3,", b"0x3"];
                return [lists[random.index(lists.len())], b"\n"].concat();
            }
        };
        // In front of a number, where there is one.
        let start = (at..bytes.len()).find(|at| bytes[*at].is_ascii_digit()).unwrap_or(at);
        let start =
            bytes[..start].iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |before| before + 1);
        [&bytes[..start], &text, &bytes[start..]].concat()
    }
}

/// Line ends of another system, or more or fewer blanks.
fn change_line_ends(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    match random.below(4) {
        0 => text.replace('\n', "\r\n"),
        1 => text + "\n",
        2 => text.replace('\n', " \n"),
        _ => format!(" {text}"),
    }
    .into_bytes()
}
