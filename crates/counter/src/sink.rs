//! A file to write text to.

use core::ffi::{CStr, c_int, c_void};
use core::fmt;

unsafe extern "C" {
    fn open(path: *const core::ffi::c_char, flags: c_int, ...) -> c_int;
    fn write(file: c_int, bytes: *const c_void, count: usize) -> isize;
    fn close(file: c_int) -> c_int;
}

/// `O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC`
const FLAGS: c_int = 1 | 0o100 | 0o1000 | 0o2_000_000;
/// Readable and writable for its owner.
const MODE: c_int = 0o600;
/// Bytes that are written at once.
const BUFFER: usize = 16 << 10;

/// A file with a buffer; what cannot be written is lost, and the text then lacks its last line.
pub struct Sink {
    file: c_int,
    buffer: [u8; BUFFER],
    held: usize,
}

impl Sink {
    /// Creates the file, or empties it; `None` if that is impossible.
    pub fn create(path: &CStr) -> Option<Self> {
        // SAFETY: the path ends with a NUL, and flags that create a file come with its mode.
        let file = unsafe { open(path.as_ptr(), FLAGS, MODE) };
        (file >= 0).then_some(Self { file, buffer: [0; BUFFER], held: 0 })
    }

    fn flush(&mut self) -> fmt::Result {
        let mut rest = &self.buffer[..self.held];
        while !rest.is_empty() {
            // SAFETY: pointer and count are those of a slice that lives until the call returns.
            let written = unsafe { write(self.file, rest.as_ptr().cast(), rest.len()) };
            rest = usize::try_from(written)
                .ok()
                .filter(|written| *written > 0)
                .and_then(|written| rest.get(written..))
                .ok_or(fmt::Error)?;
        }
        self.held = 0;
        Ok(())
    }
}

impl fmt::Write for Sink {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if self.held == BUFFER {
                self.flush()?;
            }
            self.buffer[self.held] = byte;
            self.held += 1;
        }
        Ok(())
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        let _ = self.flush();
        // SAFETY: the file is open, and known to this value alone.
        unsafe { close(self.file) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::fmt::Write as _;

    #[test]
    fn a_text_longer_than_the_buffer_arrives_whole() {
        let path = std::env::temp_dir().join(format!("nodewise-counter-{}", std::process::id()));
        let text = "a line of text\n".repeat(3000);
        let name = CString::new(path.to_str().unwrap()).unwrap();
        Sink::create(&name).unwrap().write_str(&text).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        std::fs::remove_file(&path).unwrap();
        assert!(Sink::create(c"/nonexistent/file").is_none());
    }
}
