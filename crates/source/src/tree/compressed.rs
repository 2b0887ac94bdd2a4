//! Compressed data, member by member, down to the last checksum.
//!
//! A tar archive ends before the data that it is compressed into: whoever stops there never sees a wrong
//! checksum. Reading to the end makes the decoders compare all of them: CRC-32 and length of each member of
//! gzip (RFC 1952), the CRCs of each block and each stream of bzip2.

use std::io::{Error, ErrorKind, Read, Result};

use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;

/// How data are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Bzip2,
}

impl Compression {
    /// The bytes that each member begins with.
    const fn magic(self) -> &'static [u8] {
        match self {
            Self::Gzip => b"\x1f\x8b",
            Self::Bzip2 => b"BZh",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
        }
    }

    fn decoder(self, bytes: &[u8]) -> Decoder<'_> {
        match self {
            Self::Gzip => Decoder::Gzip(Box::new(GzDecoder::new(bytes))),
            Self::Bzip2 => Decoder::Bzip2(BzDecoder::new(bytes)),
        }
    }
}

enum Decoder<'a> {
    Gzip(Box<GzDecoder<&'a [u8]>>),
    Bzip2(BzDecoder<&'a [u8]>),
}

impl<'a> Decoder<'a> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match self {
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Bzip2(decoder) => decoder.read(buffer),
        }
    }

    fn into_rest(self) -> &'a [u8] {
        match self {
            Self::Gzip(decoder) => decoder.into_inner(),
            Self::Bzip2(decoder) => decoder.into_inner(),
        }
    }
}

/// All members of compressed data as one text. At its end every checksum was compared.
pub(super) struct Members<'a> {
    compression: Compression,
    current: Option<Decoder<'a>>,
    /// Members that were read to their end.
    done: usize,
    rest: &'a [u8],
}

impl<'a> Members<'a> {
    pub(super) fn new(compression: Compression, bytes: &'a [u8]) -> Self {
        Self { compression, current: Some(compression.decoder(bytes)), done: 0, rest: &[] }
    }

    /// How many bytes follow the last member and are neither one nor padding. gzip(1) and bzip2(1) ignore
    /// them with a warning; tapes pad with zeros.
    pub(super) const fn bytes_behind(&self) -> usize {
        self.rest.len()
    }

    fn next_member(&mut self, rest: &'a [u8]) {
        self.done += 1;
        if rest.starts_with(self.compression.magic()) {
            self.current = Some(self.compression.decoder(rest));
        } else if rest.iter().any(|byte| *byte != 0) {
            self.rest = rest;
        }
    }

    fn corrupt(&self, error: &Error) -> Error {
        let word = self.compression.word();
        let member = if self.done == 0 { String::new() } else { format!(" in member {}", self.done + 1) };
        let text = match error.kind() {
            ErrorKind::UnexpectedEof => format!("the {word} data end early{member}"),
            _ => format!("the {word} data are corrupt{member} ({error})"),
        };
        Error::new(error.kind(), text)
    }
}

impl Read for Members<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while let Some(mut decoder) = self.current.take() {
            let length = decoder.read(buffer).map_err(|error| self.corrupt(&error))?;
            if length > 0 {
                self.current = Some(decoder);
                return Ok(length);
            }
            self.next_member(decoder.into_rest());
        }
        Ok(0)
    }
}
