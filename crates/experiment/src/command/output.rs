//! Where a program writes, and the end of what it wrote.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use crate::metric::SEARCHED_BYTES;

/// Longest complaint that is kept, in bytes and in lines.
const COMPLAINT_BYTES: usize = 2 << 10;
const COMPLAINT_LINES: usize = 5;

/// Files without a name for what a program writes.
///
/// Not a pipe, which would make the program wait for the reader, and not `/dev/null`, which some
/// programs recognise and then do less (`grep` stops at its first match).
pub(crate) struct Output {
    /// `None`: thrown away.
    stdout: Option<File>,
    stderr: File,
}

impl Output {
    /// Two empty files in the folder for temporary ones; they vanish when this is dropped.
    pub fn new() -> io::Result<Self> {
        Ok(Self { stdout: Some(tempfile::tempfile()?), stderr: tempfile::tempfile()? })
    }

    /// One for a program that nothing but a complaint is wanted of. A file with what it prints would push
    /// out of the page cache what it has read into it.
    pub fn of_complaints() -> io::Result<Self> {
        Ok(Self { stdout: None, stderr: tempfile::tempfile()? })
    }

    /// Makes a program write here, and read from an empty input.
    pub fn attach(&self, command: &mut Command) -> io::Result<()> {
        let stdout = match &self.stdout {
            Some(file) => file.try_clone()?.into(),
            None => Stdio::null(),
        };
        command.stdin(Stdio::null()).stdout(stdout).stderr(self.stderr.try_clone()?);
        Ok(())
    }

    /// The end of what it wrote to its standard output.
    pub fn stdout_end(&self) -> String {
        self.stdout.as_ref().map_or_else(String::new, |file| end_of(file, SEARCHED_BYTES))
    }

    /// The end of what it wrote to its standard error.
    pub fn stderr_end(&self) -> String {
        end_of(&self.stderr, SEARCHED_BYTES)
    }

    /// The last lines of its standard error; `None` when it wrote nothing there.
    pub fn complaint(&self) -> Option<String> {
        let end = end_of(&self.stderr, COMPLAINT_BYTES);
        let lines: Vec<&str> = end.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(COMPLAINT_LINES)..].join("\n");
        (!last.is_empty()).then_some(last)
    }
}

/// At most the last `limit` bytes of a file as text; what cannot be read is left out, and what is
/// not UTF-8 replaced.
fn end_of(file: &File, limit: usize) -> String {
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let mut at = length.saturating_sub(limit as u64);
    let mut bytes = vec![0; limit.min(usize::try_from(length).unwrap_or(limit))];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], at) {
            Ok(0) => break,
            Ok(read) => {
                filled += read;
                at += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&bytes[..filled]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn written(text: &[u8]) -> Output {
        let mut output = Output::new().unwrap();
        output.stderr.write_all(text).unwrap();
        output
    }

    #[test]
    fn only_the_end_of_long_output_is_read() {
        let output = written(&[b"a".repeat(SEARCHED_BYTES), b"end".to_vec()].concat());
        let end = output.stderr_end();
        assert_eq!(end.len(), SEARCHED_BYTES);
        assert!(end.ends_with("aend"));
        assert_eq!(output.stdout_end(), "");
    }

    #[test]
    fn a_complaint_is_the_last_lines() {
        let output = written(b"1\n2\n\n3\n4\n5\n6\n\n");
        assert_eq!(output.complaint().as_deref(), Some("2\n3\n4\n5\n6"));
        assert_eq!(written(b"\n \n").complaint(), None);
        assert_eq!(written(b"\xff\x00").complaint().as_deref(), Some("\u{fffd}\0"));
    }

    #[test]
    fn a_hole_in_a_huge_file_costs_no_memory() {
        let output = Output::new().unwrap();
        output.stdout.as_ref().unwrap().set_len(1 << 40).unwrap();
        assert_eq!(output.stdout_end().len(), SEARCHED_BYTES);
    }
}
