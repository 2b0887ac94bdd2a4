//! A call that waits: its arguments, and the memory that they point to.

use std::ffi::c_ulong;
use std::fs::File;
use std::ops::Range;

use nodewise_machine::NodeSet;
use nodewise_model::errno;
use nodewise_model::policy::mask::{Bits, Mask};
use nodewise_syscall::notify::{Listener, NotifyError, Request, WatchedCall};

/// `EFAULT`, for memory that cannot be read or written.
pub const EFAULT: i32 = errno::Errno::Efault.number();
pub const EINVAL: i32 = errno::Errno::Einval.number();
pub const ESRCH: i32 = errno::Errno::Esrch.number();

/// Bytes of a page in arguments.
pub const PAGE: u64 = 4096;
/// Bytes of a word of a mask.
const WORD: u64 = size_of::<c_ulong>() as u64;
/// More bits are refused whatever they are ([`Mask::read`]).
const MOST_BITS: u64 = 8 * 4096;

/// Why a call is not answered with a value.
#[derive(Debug)]
pub enum Stop {
    /// It fails.
    Errno(i32),
    /// The real kernel carries it out.
    Kernel,
    /// It opens this file.
    File(File),
    /// The thread does not wait any more.
    Gone,
}

impl From<errno::Errno> for Stop {
    fn from(errno: errno::Errno) -> Self {
        Self::Errno(errno.number())
    }
}

impl From<NotifyError> for Stop {
    fn from(error: NotifyError) -> Self {
        match error {
            NotifyError::Io(error) => Self::Errno(error.raw_os_error().unwrap_or(EFAULT)),
            _ => Self::Gone,
        }
    }
}

/// A request with the way to the program's memory.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    listener: &'a Listener,
    request: &'a Request,
}

impl<'a> Call<'a> {
    /// A request that came to a listener.
    pub const fn new(listener: &'a Listener, request: &'a Request) -> Self {
        Self { listener, request }
    }

    /// The call by its name.
    pub const fn name(&self) -> WatchedCall {
        self.request.call
    }

    /// The thread that calls.
    pub const fn thread(&self) -> u32 {
        self.request.thread
    }

    /// An argument, counted from 0.
    pub const fn argument(&self, number: usize) -> u64 {
        self.request.arguments[number]
    }

    /// Bytes at an address.
    pub fn read(&self, address: u64, length: u64) -> Result<Vec<u8>, Stop> {
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| Stop::Errno(EFAULT))?];
        if !bytes.is_empty() {
            self.listener.read(self.request, address, &mut bytes)?;
        }
        Ok(bytes)
    }

    /// Writes bytes to an address.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Stop> {
        if bytes.is_empty() {
            return Ok(());
        }
        Ok(self.listener.write(self.request, address, bytes)?)
    }

    /// A node mask as the kernel would find it; bits are read in whole words.
    pub fn node_mask(&self, address: u64, maxnode: u64) -> Result<Mask, Stop> {
        let bits = maxnode.wrapping_sub(1);
        if address == 0 {
            return Ok(Mask { bits: Bits::Null, maxnode });
        }
        if bits == 0 || bits > MOST_BITS {
            return Ok(Mask { bits: Bits::Of(NodeSet::new()), maxnode });
        }
        let bits = match self.read(address, bits.div_ceil(8 * WORD) * WORD) {
            Ok(bytes) => Bits::Of(NodeSet::from_native_words(&words(&bytes))),
            Err(Stop::Errno(_)) => Bits::Unreadable,
            Err(stop) => return Err(stop),
        };
        Ok(Mask { bits, maxnode })
    }

    /// A text that ends with a zero, read no further than the page that it ends in; `None` where it is longer than any
    /// path of interest or cannot be read.
    pub fn short_text(&self, address: u64) -> Result<Option<Vec<u8>>, Stop> {
        const LONGEST: u64 = 64;
        let in_page = (PAGE - address % PAGE).min(LONGEST);
        let end = |bytes: &[u8]| bytes.iter().position(|byte| *byte == 0);
        let mut bytes = match self.read(address, in_page) {
            Ok(bytes) => bytes,
            Err(Stop::Errno(_)) => return Ok(None),
            Err(stop) => return Err(stop),
        };
        if end(&bytes).is_none() && in_page < LONGEST {
            match self.read(address.wrapping_add(in_page), LONGEST - in_page) {
                Ok(more) => bytes.extend(more),
                Err(Stop::Errno(_)) => return Ok(None),
                Err(stop) => return Err(stop),
            }
        }
        let end = end(&bytes);
        Ok(end.map(|end| bytes[..end].to_vec()))
    }
}

/// Bytes as words of a mask, zeros behind the last byte.
pub fn words(bytes: &[u8]) -> Vec<c_ulong> {
    let word = |chunk: &[u8]| {
        let mut word = [0; size_of::<c_ulong>()];
        word[..chunk.len()].copy_from_slice(chunk);
        c_ulong::from_ne_bytes(word)
    };
    bytes.chunks(WORD as usize).map(word).collect()
}

/// Words of a mask as bytes, cut or filled up with zeros.
pub fn mask_bytes(words: &[c_ulong], length: u64) -> Vec<u8> {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes.resize(length as usize, 0);
    bytes
}

/// The bytes of whole pages; none where the kernel refuses or ignores them.
pub fn rounded(address: u64, length: u64) -> Range<u64> {
    let end = length.checked_next_multiple_of(PAGE).and_then(|length| address.checked_add(length));
    // Addresses of arm64 may carry a tag in their highest byte; mappings never do.
    let untagged = |address: u64| address & (u64::MAX >> 8);
    match end {
        Some(end) if address % PAGE == 0 && untagged(address) < untagged(end) => {
            untagged(address)..untagged(end)
        }
        _ => 0..0,
    }
}
