//! Where the pages of a process are, in sums: a pass over the bytes of `numa_maps` that keeps
//! nothing of a mapping but its pages.
//!
//! Databases and Java machines have a hundred thousand mappings. [`super::parse_line`] makes a value
//! of each; here a line costs its tokens, and the memory is that of the sums.

use nodewise_machine::id::Id as _;
use nodewise_machine::{Bytes, NodeId};

use super::super::{Parsed, Problems};

/// A line is cut here: the longest that the kernel prints has a path of 4,096 bytes, escaped, and a
/// count for each of 1,024 nodes.
const MOST_LINE_BYTES: usize = 64 << 10;

/// The use of a mapping in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Use {
    /// From a pool of huge pages (`huge`).
    Huge,
    /// The heap of `brk(2)` (`heap`).
    Heap,
    /// The stack of the main thread (`stack`).
    Stack,
    Private,
}

impl Use {
    /// Every use, in the order in which tables show them.
    pub const ALL: [Self; 4] = [Self::Huge, Self::Heap, Self::Stack, Self::Private];

    /// The use that a word of a line says; old releases print `stack:TID`.
    fn of_word(word: &[u8]) -> Option<Self> {
        match word {
            b"huge" => Some(Self::Huge),
            b"heap" => Some(Self::Heap),
            b"stack" => Some(Self::Stack),
            _ if word.starts_with(b"stack:") => Some(Self::Stack),
            _ => None,
        }
    }
}

/// The memory of a process on one node, by use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnNode {
    pub node: NodeId,
    own: Bytes,
    by_use: [Bytes; Use::ALL.len()],
}

impl OnNode {
    /// Returns the memory of one use.
    pub fn memory(&self, of: Use) -> Bytes {
        self.by_use[of as usize]
    }

    /// The part that is the process's own: memory without a file, pages of files that it wrote to for itself, and
    /// pages of pools and shared memory that no other process maps.
    pub const fn own(&self) -> Bytes {
        self.own
    }

    /// All of it.
    pub fn total(&self) -> Bytes {
        self.by_use.into_iter().sum()
    }
}

/// The memory of a process.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Sums {
    /// By node, ascending; only nodes that a line names.
    pub nodes: Vec<OnNode>,
    /// Pages in lines without a page size, as kernels before 3.8 print them: not in the sums.
    pub pages_of_unknown_size: u64,
}

impl Sums {
    /// Returns the memory on a node; `None` when no line names it.
    pub fn on(&self, node: NodeId) -> Option<&OnNode> {
        self.nodes.binary_search_by_key(&node, |on| on.node).ok().map(|at| &self.nodes[at])
    }

    fn add(&mut self, node: NodeId, of: Use, size: Bytes, is_own: bool) {
        // Most machines have one node, and most processes nearly all of their memory on the first.
        let first = self.nodes.first().is_some_and(|on| on.node == node);
        let found = if first { Ok(0) } else { self.nodes.binary_search_by_key(&node, |on| on.node) };
        let at = found.unwrap_or_else(|at| {
            self.nodes.insert(at, OnNode { node, own: Bytes::default(), by_use: Default::default() });
            at
        });
        if is_own {
            self.nodes[at].own += size;
        }
        self.nodes[at].by_use[of as usize] += size;
    }
}

/// Behind the address of a mapping of the usual policy that has no pages.
const UNTOUCHED: &[u8] = b" default\n";

/// A `numa_maps` file that comes in pieces.
///
/// Of a hundred thousand mappings most are like the one before: what was read of that is kept, and a
/// line that is the same but for its address is not taken apart again.
#[derive(Debug)]
pub struct Summing {
    sums: Sums,
    problems: Problems,
    /// The beginning of a line whose end has not come yet.
    rest: Vec<u8>,
    /// The number of the line that is read.
    line: u32,
    /// The last line that was taken apart, behind its address.
    like_before: Vec<u8>,
    pages: Vec<(NodeId, u64)>,
    of: Use,
    page_size: Option<Bytes>,
    backing: Backing,
    /// Pages without a file: of a file's mapping those that the process wrote to.
    anonymous: u64,
    most_mapped: u64,
}

/// The object behind a mapping, as its line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backing {
    Nothing,
    /// Shared memory.
    Shared,
    File,
}

impl Backing {
    /// The beginnings of names that shared memory has on every system; blanks are escaped.
    const SHARED: [&'static [u8]; 4] = [b"/dev/zero\\040(deleted)", b"/dev/shm/", b"/memfd:", b"/SYSV"];

    fn of_file(name: &[u8]) -> Self {
        if Self::SHARED.iter().any(|known| name.starts_with(known)) { Self::Shared } else { Self::File }
    }
}

impl Default for Summing {
    fn default() -> Self {
        Self {
            sums: Sums::default(),
            problems: Problems::default(),
            rest: Vec::new(),
            line: 0,
            like_before: Vec::new(),
            pages: Vec::new(),
            of: Use::Private,
            page_size: None,
            backing: Backing::Nothing,
            anonymous: 0,
            most_mapped: 0,
        }
    }
}

impl Summing {
    /// Takes the next piece.
    pub fn push(&mut self, piece: &[u8]) {
        let Some(last) = piece.iter().rposition(|byte| *byte == b'\n') else {
            self.keep(piece);
            return;
        };
        let (whole, tail) = piece.split_at(last + 1);
        let mut at = 0;
        if !self.rest.is_empty() {
            at = whole.iter().position(|byte| *byte == b'\n').unwrap_or(last) + 1;
            self.keep(&whole[..at]);
            self.take_rest();
        }
        while at < whole.len() {
            at = self.line(whole, at);
        }
        self.keep(tail);
    }

    /// Ends the file. What came after the last line feed was cut somewhere, perhaps in the middle
    /// of a number, and is not counted.
    pub fn finish(mut self) -> Parsed<Sums> {
        if !self.rest.is_empty() {
            self.line = self.line.saturating_add(1);
            let rest = std::mem::take(&mut self.rest);
            self.problem("a whole line", &rest);
        }
        Parsed { value: self.sums, problems: self.problems }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = (MOST_LINE_BYTES + 1).saturating_sub(self.rest.len());
        self.rest.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Reads the line that came in pieces, unless it is too long to be one of the kernel's.
    fn take_rest(&mut self) {
        let rest = std::mem::take(&mut self.rest);
        if rest.len() > MOST_LINE_BYTES {
            self.line = self.line.saturating_add(1);
            self.problem("a line of at most 64 KiB", &rest);
        } else {
            self.line(&rest, 0);
        }
    }

    /// Reads the line that begins at `start`; returns where the next one begins.
    fn line(&mut self, bytes: &[u8], start: usize) -> usize {
        self.line = self.line.saturating_add(1);
        let at = word_end(bytes, start);
        // The first byte is enough to distinguish a line from another file's.
        if !bytes.get(start).is_some_and(u8::is_ascii_hexdigit) {
            self.problem("an address in hexadecimal", &bytes[start..at]);
        }
        if bytes[at..].starts_with(UNTOUCHED) {
            return at + UNTOUCHED.len();
        }
        let like_before = !self.like_before.is_empty() && bytes[at..].starts_with(&self.like_before);
        let end = if like_before { at + self.like_before.len() } else { self.words(bytes, at) };
        self.add();
        end
    }

    /// Reads the words of a line behind its address, and keeps what they say for the next line unless
    /// something is wrong with them; returns where the next line begins.
    fn words(&mut self, bytes: &[u8], start: usize) -> usize {
        let problems = self.problems.count();
        self.pages.clear();
        (self.of, self.page_size) = (Use::Private, None);
        (self.backing, self.anonymous, self.most_mapped) = (Backing::Nothing, 0, 0);
        // The first word is the policy, whatever it looks like; what may follow a blank in it,
        // `(many):3` or `interleave:0-1`, looks like no count.
        let mut at = if bytes.get(start) == Some(&b' ') { word_end(bytes, start + 1) } else { start };
        while bytes.get(at).is_some_and(|end| *end != b'\n') {
            let word = at + 1;
            at = match bytes.get(word) {
                Some(b'N') => self.count(bytes, word),
                Some(b'k') => self.page_size(bytes, word),
                Some(b'h' | b's') => {
                    let end = word_end(bytes, word);
                    self.of = Use::of_word(&bytes[word..end]).unwrap_or(self.of);
                    end
                }
                Some(b'f' | b'a' | b'm') => {
                    let end = word_end(bytes, word);
                    self.origin(&bytes[word..end]);
                    end
                }
                _ => word_end(bytes, word),
            };
        }
        self.like_before.clear();
        if self.problems.count() == problems {
            self.like_before.extend_from_slice(&bytes[start..bytes.len().min(at + 1)]);
        }
        at + 1
    }

    /// Reads a word that says whose the pages are.
    fn origin(&mut self, word: &[u8]) {
        let count = |digits: &[u8]| number(digits, 0).0.unwrap_or(u64::MAX);
        if let Some(name) = word.strip_prefix(b"file=") {
            self.backing = Backing::of_file(name);
        } else if let Some(digits) = word.strip_prefix(b"anon=") {
            self.anonymous = count(digits);
        } else if let Some(digits) = word.strip_prefix(b"mapmax=") {
            self.most_mapped = count(digits);
        }
    }

    /// Whether the pages of a line are the process's own. A mapping of a file has few pages that are, unless all are.
    fn is_own(&self) -> bool {
        let is_alone = self.most_mapped <= 1;
        match self.backing {
            _ if self.of == Use::Huge => is_alone,
            Backing::Nothing => true,
            Backing::Shared => is_alone,
            Backing::File => {
                let all = self.pages.iter().map(|(_, pages)| *pages).fold(0, u64::saturating_add);
                self.anonymous >= all
            }
        }
    }

    /// Adds the counts of a line to the sums.
    fn add(&mut self) {
        let is_own = self.is_own();
        for (node, pages) in &self.pages {
            match self.page_size {
                Some(size) => self.sums.add(*node, self.of, size.times(*pages), is_own),
                None => {
                    let known = &mut self.sums.pages_of_unknown_size;
                    *known = known.saturating_add(*pages);
                }
            }
        }
    }

    /// Reads `N0=12`; returns where it ends. A word that only begins like it is none of this
    /// release's.
    fn count(&mut self, bytes: &[u8], word: usize) -> usize {
        let (node, equals) = number(bytes, word + 1);
        let (pages, end) = number(bytes, equals + 1);
        let whole = ends_word(bytes, end) && bytes.get(equals) == Some(&b'=');
        if let (true, Some(node), Some(pages)) = (whole, node, pages) {
            if let Some(node) = u32::try_from(node).ok().filter(|node| *node < NodeId::LIMIT) {
                self.pages.push((NodeId::new(node), pages));
                return end;
            }
        }
        let end = word_end(bytes, word);
        if bytes[word..end].contains(&b'=') {
            self.problem("a node and a number of pages as in N0=1", &bytes[word..end]);
        }
        end
    }

    /// Reads `kernelpagesize_kB=4`; returns where the word ends.
    fn page_size(&mut self, bytes: &[u8], word: usize) -> usize {
        const NAME: &[u8] = b"kernelpagesize_kB=";
        if !bytes[word..].starts_with(NAME) {
            return word_end(bytes, word);
        }
        let (kib, end) = number(bytes, word + NAME.len());
        let found = kib.filter(|_| ends_word(bytes, end)).and_then(|kib| kib.checked_mul(1024));
        if let Some(found) = found {
            self.page_size = Some(Bytes::new(found));
            return end;
        }
        let end = word_end(bytes, word);
        self.problem("a page size in kB below 2^54", &bytes[word..end]);
        end
    }

    #[cold]
    fn problem(&mut self, expected: &'static str, word: &[u8]) {
        self.problems.add(self.line, expected, &String::from_utf8_lossy(&word[..word.len().min(120)]));
    }
}

/// The decimal number at a place and where it ends; `None` where there is no digit or the number does
/// not fit.
#[inline(always)]
fn number(bytes: &[u8], start: usize) -> (Option<u64>, usize) {
    /// Numbers of so few digits fit always.
    const FEW: usize = 19;
    let (mut value, mut at) = (0u64, start);
    while let Some(digit) = bytes.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    let value = match at - start {
        0 => None,
        1..=FEW => Some(value),
        _ => long_number(&bytes[start..at]),
    };
    (value, at)
}

#[cold]
fn long_number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Whether no word goes on at a place.
fn ends_word(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_none_or(|byte| *byte <= b' ')
}

/// Where the word at a place ends: at the next blank or line feed. No byte of a word is below them,
/// as the kernel writes paths with escapes.
///
/// Eight bytes are looked at in a step. A byte below `!` leaves its highest bit set in
/// `word - 0x21…21 & !word`; those behind it may be wrong (a borrow), the first is not.
#[inline(always)]
fn word_end(bytes: &[u8], start: usize) -> usize {
    const EACH: u64 = u64::MAX / 255;
    let mut at = start;
    while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*eight);
        let below = word.wrapping_sub(EACH * 0x21) & !word & (EACH * 0x80);
        if below != 0 {
            return at + (below.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|byte| *byte > b' ') {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests;
