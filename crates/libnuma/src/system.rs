//! The files of the kernel: the only door of the library to /sys and /proc.

use core::ffi::{CStr, c_int};

use crate::kernel::{self, Failed};
use crate::text;

/// Bytes of the longest of the kernel's files that is read here: the map of 8,192 CPUs has 2,304.
pub const FILE_BYTES: usize = 4096;

/// A text that grows in place and is cut at its end: a path, or a message. Always ends with NUL.
pub struct Text<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Text<N> {
    /// An empty text.
    pub const fn new() -> Self {
        Self { bytes: [0; N], length: 0 }
    }

    /// A text with these very bytes; `None` when there is no room for them.
    pub fn exactly(bytes: &[u8]) -> Option<Self> {
        let mut text = Self::new();
        let place = text.bytes.get_mut(..bytes.len()).filter(|_| bytes.len() < N)?;
        for (place, byte) in place.iter_mut().zip(bytes) {
            *place = *byte;
        }
        text.length = bytes.len();
        Some(text)
    }

    /// Adds bytes. Those that a terminal could take for commands become `?`.
    #[must_use]
    pub fn push(mut self, bytes: &[u8]) -> Self {
        for byte in bytes {
            // The last byte stays NUL.
            if self.length + 1 < N {
                if let Some(place) = self.bytes.get_mut(self.length) {
                    *place = if byte.is_ascii_control() && *byte != b'\n' { b'?' } else { *byte };
                    self.length += 1;
                }
            }
        }
        self
    }

    /// Adds a number in decimal digits.
    #[must_use]
    pub fn number(self, number: i64) -> Self {
        let mut digits = [0; 20];
        let mut rest = number.unsigned_abs();
        let mut length = 0;
        for place in digits.iter_mut().rev() {
            *place = b'0' + (rest % 10) as u8;
            rest /= 10;
            length += 1;
            if rest == 0 {
                break;
            }
        }
        let text = if number < 0 { self.push(b"-") } else { self };
        let start = digits.len().saturating_sub(length);
        text.push(digits.get(start..).unwrap_or_default())
    }

    /// Adds a number in hexadecimal digits, with zeros before them to a width of up to 8.
    #[must_use]
    pub fn hexadecimal(self, number: u32, width: u32) -> Self {
        let is_shown = |place: &u32| *place < width || number >> (4 * place) != 0;
        (0..8).rev().filter(is_shown).fold(self, |text, place| {
            let digit = char::from_digit(number >> (4 * place) & 15, 16).unwrap_or('0');
            text.push(&[digit as u8])
        })
    }

    /// The bytes without the NUL.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// The text for C.
    pub fn c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

/// A path.
pub type Path = Text<512>;

/// The path of a file of a node: `node_file(2, b"cpumap")`.
pub fn node_file(node: usize, name: &[u8]) -> Path {
    Path::new().push(b"/sys/devices/system/node/node").number(node as i64).push(b"/").push(name)
}

/// Reads a file, or its first [`FILE_BYTES`], into a buffer.
pub fn read<'a>(path: &CStr, buffer: &'a mut [u8; FILE_BYTES]) -> Result<&'a [u8], Failed> {
    let file = kernel::open(path)?;
    let length = fill(file, buffer);
    kernel::close(file);
    Ok(buffer.get(..length?).unwrap_or_default())
}

/// Reads until the end or until the buffer is full. Files of /proc come in pieces.
fn fill(file: c_int, buffer: &mut [u8]) -> Result<usize, Failed> {
    let mut length = 0;
    while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match kernel::read(file, rest) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(_) if kernel::errno() == libc::EINTR => {}
            Err(failed) => return Err(failed),
        }
    }
    Ok(length)
}

/// Calls `each` for every node that exists, ascending, with numbers below `limit`.
pub fn online_nodes(limit: usize, mut each: impl FnMut(usize)) -> Result<(), Failed> {
    let mut buffer = [0; FILE_BYTES];
    if let Ok(list) = read(c"/sys/devices/system/node/online", &mut buffer) {
        if text::list(list, limit, |_| {}).is_some() {
            text::list(list, limit, each);
            return Ok(());
        }
    }
    // A simulated tree may have the folders of nodes and no list of them.
    if !kernel::exists(c"/sys/devices/system/node") {
        return Err(Failed);
    }
    for node in (0..limit.min(NODE_LIMIT)).filter(|node| kernel::exists(node_file(*node, b"").c_str())) {
        each(node);
    }
    Ok(())
}

/// Nodes that any kernel can have (`NODES_SHIFT` is at most 10), and a reserve.
pub const NODE_LIMIT: usize = 4096;

/// The link that a path is, as text.
pub fn link(path: &CStr) -> Option<Path> {
    let mut buffer = [0u8; 511];
    let length = kernel::read_link(path, &mut buffer).ok()?;
    Some(Path::new().push(buffer.get(..length)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use std::format;
    use std::vec::Vec;

    #[test]
    fn texts_are_cut_and_end_with_nul() {
        let text = Text::<8>::new().push(b"node").number(-12345);
        assert_eq!(text.bytes(), b"node-12");
        assert_eq!(text.c_str().to_bytes(), b"node-12");
        assert_eq!(Text::<16>::new().push(b"a\x1b[31m\nb").bytes(), b"a?[31m\nb");
    }

    #[test]
    fn files_of_nodes_have_their_paths() {
        let expected = "/sys/devices/system/node/node12/cpumap";
        assert_eq!(node_file(12, b"cpumap").c_str().to_str(), Ok(expected));
    }

    #[test]
    fn a_file_is_read_whole_and_a_missing_one_is_told() {
        let mut buffer = [0; FILE_BYTES];
        let text = read(c"/proc/self/status", &mut buffer).unwrap();
        assert!(text::line_with(text, b"Mems_allowed:").is_some());
        assert_eq!(read(c"/no/such/file", &mut buffer), Err(Failed));
        assert_eq!(kernel::errno(), libc::ENOENT);
    }

    #[test]
    fn the_list_of_nodes_and_their_folders_agree() {
        let mut listed = Vec::new();
        online_nodes(NODE_LIMIT, |node| listed.push(node)).expect("the kernel has files of nodes");
        let folders = (0..NODE_LIMIT).filter(|node| kernel::exists(node_file(*node, b"").c_str()));
        assert!(folders.eq(listed));
    }

    proptest! {
        #[test]
        fn numbers_are_written_as_rust_writes_them(number in any::<i64>()) {
            let text = Text::<32>::new().number(number);
            let expected = format!("{number}");
            prop_assert_eq!(text.bytes(), expected.as_bytes());
        }
    }
}
