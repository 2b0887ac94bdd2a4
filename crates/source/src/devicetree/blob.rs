//! The flattened form: a header, names of properties, and a stream of nodes and properties.
//!
//! Nothing is built in memory: the stream is walked, and what it says is borrowed from it.

use super::MAGIC;

/// The oldest and the newest version of the form that is read: 17 is the only one in use, and 16
/// lacks no more than the size of the structure block.
const VERSIONS: (u32, u32) = (16, 17);
/// Deepest nesting. Trees of real machines have up to ten levels.
const MOST_LEVELS: usize = 32;
/// The longest name of a node: the specification has 31 characters before the address.
const LONGEST_NAME: usize = 128;

/// Why bytes are not a device tree: the byte at which it shows, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("device tree at {offset:#x}: {text}")]
pub struct DtbError {
    /// Bytes from the start.
    pub offset: usize,
    pub text: String,
}

fn fail<T>(offset: usize, text: impl Into<String>) -> Result<T, DtbError> {
    Err(DtbError { offset, text: text.into() })
}

/// The text of a tree, one thing after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A node begins: its name, empty for the root.
    Begin(&'a [u8]),
    /// A property of the node that began last and has not ended: name and value.
    Property(&'a [u8], &'a [u8]),
    End,
}

/// A device tree.
#[derive(Clone, Copy, Debug)]
pub struct Blob<'a> {
    structure: &'a [u8],
    strings: &'a [u8],
    /// Where the structure begins, for messages.
    start: usize,
}

/// A number of 32 bits, the most significant byte first.
pub(super) fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(word.try_into().ok()?))
}

impl<'a> Blob<'a> {
    /// Takes the header apart.
    ///
    /// # Errors
    /// Bytes that are not device tree, and blocks outside of them.
    pub fn new(bytes: &'a [u8]) -> Result<Self, DtbError> {
        /// Where the header has its fields.
        const TOTAL: usize = 4;
        const STRUCTURE: usize = 8;
        const STRINGS: usize = 12;
        const VERSION: usize = 20;
        const COMPATIBLE: usize = 24;
        const STRINGS_SIZE: usize = 32;
        const STRUCTURE_SIZE: usize = 36;
        if bytes.get(..4) != Some(&MAGIC) {
            return fail(0, "the first bytes are not d0 0d fe ed");
        }
        let field = |at| match number(bytes, at) {
            Some(value) => Ok(value),
            None => fail(at, format!("{} bytes: expected a header of 40", bytes.len())),
        };
        let (version, compatible) = (field(VERSION)?, field(COMPATIBLE)?);
        if version < VERSIONS.0 || compatible > VERSIONS.1 {
            return fail(VERSION, format!("version {version}: expected 16 or 17"));
        }
        let total = field(TOTAL)? as usize;
        let Some(bytes) = bytes.get(..total) else {
            return fail(TOTAL, format!("the size is {total}, and {} bytes are there", bytes.len()));
        };
        let block = |name: &str, at: usize, offset: usize, size: usize| {
            let end = offset.checked_add(size).filter(|end| *end <= bytes.len());
            let text = || format!("the {name} of {size} bytes at {offset:#x} ends behind the tree");
            end.map_or_else(|| fail(at, text()), |end| Ok(&bytes[offset..end]))
        };
        let start = field(STRUCTURE)? as usize;
        // Version 16 does not say how long the structure is; it has an end of its own.
        let size = match version {
            16 => total.saturating_sub(start),
            _ => field(STRUCTURE_SIZE)? as usize,
        };
        let strings = (field(STRINGS)? as usize, field(STRINGS_SIZE)? as usize);
        Ok(Self {
            structure: block("structure", STRUCTURE, start, size)?,
            strings: block("strings", STRINGS, strings.0, strings.1)?,
            start,
        })
    }

    /// Walks the tree.
    ///
    /// # Errors
    /// Where the tree cannot be read on, and what `take` refuses.
    pub fn walk(&self, take: &mut dyn FnMut(Event<'a>) -> Result<(), DtbError>) -> Result<(), DtbError> {
        const BEGIN: u32 = 1;
        const END: u32 = 2;
        const PROPERTY: u32 = 3;
        const NOTHING: u32 = 4;
        const LAST: u32 = 9;
        let mut cursor = Cursor { blob: *self, at: 0 };
        let mut level = 0;
        let mut is_over = false;
        loop {
            let at = self.start + cursor.at;
            match cursor.number()? {
                NOTHING => {}
                LAST if level == 0 => return Ok(()),
                LAST => return fail(at, format!("the tree ends within {level} nodes")),
                _ if is_over => return fail(at, "something follows the root node: expected the end"),
                BEGIN if level == MOST_LEVELS => {
                    return fail(at, format!("a node at level {level}: expected at most {MOST_LEVELS}"));
                }
                BEGIN => {
                    level += 1;
                    take(Event::Begin(cursor.name()?))?;
                }
                END if level == 0 => return fail(at, "a node ends that has not begun"),
                END => {
                    level -= 1;
                    is_over = level == 0;
                    take(Event::End)?;
                }
                PROPERTY if level == 0 => return fail(at, "a property outside of all nodes"),
                PROPERTY => {
                    let (name, value) = cursor.property()?;
                    take(Event::Property(name, value))?;
                }
                token => return fail(at, format!("token {token:#x}: expected 1, 2, 3, 4 or 9")),
            }
        }
    }
}

/// A place in the structure.
struct Cursor<'a> {
    blob: Blob<'a>,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn fail<T>(&self, text: impl Into<String>) -> Result<T, DtbError> {
        fail(self.blob.start + self.at, text)
    }

    fn number(&mut self) -> Result<u32, DtbError> {
        let Some(value) = number(self.blob.structure, self.at) else {
            return self.fail("the structure ends without its end token");
        };
        self.at += 4;
        Ok(value)
    }

    /// To the next multiple of four, where every token begins.
    fn align(&mut self) {
        self.at = self.at.next_multiple_of(4);
    }

    /// The name of a node: up to a byte of 0.
    fn name(&mut self) -> Result<&'a [u8], DtbError> {
        let rest = &self.blob.structure[self.at.min(self.blob.structure.len())..];
        let within = &rest[..rest.len().min(LONGEST_NAME + 1)];
        let Some(length) = within.iter().position(|byte| *byte == 0) else {
            return self.fail(format!("a name without end: expected at most {LONGEST_NAME} bytes"));
        };
        self.at += length + 1;
        self.align();
        Ok(&rest[..length])
    }

    fn property(&mut self) -> Result<(&'a [u8], &'a [u8]), DtbError> {
        let length = self.number()? as usize;
        let place = self.number()? as usize;
        let Some(name) = self.blob.strings.get(place..) else {
            let size = self.blob.strings.len();
            return self.fail(format!("the property's name is at {place} of {size} bytes of strings"));
        };
        let Some(end) = name.iter().position(|byte| *byte == 0) else {
            return self.fail(format!("the property's name at {place} of the strings has no end"));
        };
        let left = self.blob.structure.len() - self.at;
        if length > left {
            return self.fail(format!("a value of {length} bytes, and {left} are left"));
        }
        let value = &self.blob.structure[self.at..self.at + length];
        self.at += length;
        self.align();
        Ok((&name[..end], value))
    }
}
