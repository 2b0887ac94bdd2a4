//! The kind of a file, by its first bytes. Names are not trusted: a capture may be called anything.

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Nothing in it, or nothing but white space.
    Empty,
    Gzip,
    /// Compressed with bzip2.
    Bzip2,
    Tar,
    /// JSON, by its first brace.
    Json,
    /// Something else, in words: `a PNG image`.
    Other(&'static str),
}

/// First bytes of kinds of files that people give by mistake.
const KNOWN: [(&[u8], &str); 14] = [
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"%PDF", "a PDF document"),
    (b"\x7fELF", "a program"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\xfd7zXZ", "compressed with xz"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd"),
    (b"\x04\x22\x4d\x18", "compressed with lz4"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"070701", "a cpio archive"),
    (b"<?xml", "an XML file"),
    (b"<svg", "an SVG image"),
    (b"SRAT", "an ACPI table"),
    (b"#!", "a script"),
];

impl Format {
    /// Looks at the content.
    pub fn from_content(bytes: &[u8]) -> Self {
        let text = bytes.trim_ascii_start();
        if text.is_empty() {
            return Self::Empty;
        }
        if bytes.starts_with(b"\x1f\x8b") {
            return Self::Gzip;
        }
        if bytes.starts_with(b"BZh") {
            return Self::Bzip2;
        }
        if is_tar(bytes) {
            return Self::Tar;
        }
        if text.starts_with(b"{") {
            return Self::Json;
        }
        let known = KNOWN.iter().find(|(magic, _)| bytes.starts_with(magic));
        Self::Other(known.map_or_else(|| unknown(bytes), |(_, what)| what))
    }
}

fn unknown(bytes: &[u8]) -> &'static str {
    let start = &bytes[..bytes.len().min(512)];
    let printable = start.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    if printable { "a text file" } else { "a file of unknown kind" }
}

/// Whether the first 512 bytes are the header of a tar entry: its checksum is right. That holds for
/// every dialect of tar, while only some have a magic word.
fn is_tar(bytes: &[u8]) -> bool {
    let Some(header) = bytes.get(..512) else { return false };
    let stored = header[148..156].trim_ascii_start();
    let digits: Vec<u8> = stored.iter().copied().take_while(|byte| (b'0'..=b'7').contains(byte)).collect();
    let stored = digits.iter().fold(0u32, |sum, digit| sum * 8 + u32::from(digit - b'0'));
    let sum: u32 = header
        .iter()
        .enumerate()
        .map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u32::from(*byte) })
        .sum();
    !digits.is_empty() && stored == sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[test]
    fn files_are_known_by_content() {
        for (bytes, format) in [
            (&b""[..], Format::Empty),
            (b" \n", Format::Empty),
            (b"\x1f\x8b\x08", Format::Gzip),
            (b"BZh91AY", Format::Bzip2),
            (b" \n{\"schema\"", Format::Json),
            (b"\x89PNG\r\n", Format::Other("a PNG image")),
            (b"hello", Format::Other("a text file")),
            (b"\x00\x01", Format::Other("a file of unknown kind")),
        ] {
            assert_eq!(Format::from_content(bytes), format);
        }
    }

    #[test]
    fn a_tar_header_is_known_by_its_checksum() {
        let mut header = tar::Header::new_old();
        header.set_path("a").unwrap();
        header.set_size(0);
        header.set_cksum();
        assert_eq!(Format::from_content(header.as_bytes()), Format::Tar);
        let mut bytes = *header.as_bytes();
        bytes[0] += 1;
        assert_ne!(Format::from_content(&bytes), Format::Tar);
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_format(bytes in any::<Vec<u8>>(), filler in any::<u8>()) {
            let _ = Format::from_content(&bytes);
            let _ = Format::from_content(&vec![filler; 600]);
        }
    }
}
