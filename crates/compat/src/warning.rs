//! Warnings in the words of libnuma, of which each kind comes once per process.

use std::io::Write;

/// What a warning is about; libnuma counts these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A string of nodes.
    NodeString,
    /// A string of CPUs.
    CpuString,
    /// The CPUs of a node.
    NodeCpus,
    /// A file that a device's node was looked for in.
    DeviceFile,
    /// A device.
    Device,
}

/// Where warnings go.
pub struct Warnings<'w> {
    err: &'w mut dyn Write,
    shown: Vec<Kind>,
}

impl<'w> Warnings<'w> {
    /// Warnings that are written here.
    pub fn new(err: &'w mut dyn Write) -> Self {
        Self { err, shown: Vec::new() }
    }

    /// Writes a warning, unless one of its kind was written. `text` ends as libnuma's own does, some
    /// with a line feed, which then is followed by an empty line.
    pub fn warn(&mut self, kind: Kind, text: &str) {
        if !self.shown.contains(&kind) {
            self.shown.push(kind);
            let _ = writeln!(self.err, "libnuma: Warning: {text}");
        }
    }

    /// The writer, for what is no warning.
    pub fn err(&mut self) -> &mut dyn Write {
        self.err
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_written_once() {
        let mut text = Vec::new();
        let mut warnings = Warnings::new(&mut text);
        warnings.warn(Kind::NodeString, "one\n");
        warnings.warn(Kind::NodeString, "two\n");
        warnings.warn(Kind::CpuString, "three");
        assert_eq!(text, b"libnuma: Warning: one\n\nlibnuma: Warning: three\n");
    }
}
