//! Warnings in the words of libnuma; each number comes once per process.

use std::fmt::Display;
use std::io::Write;

use nodewise_notation::warning::Warning;

/// Where warnings go.
pub struct Warnings<'w> {
    err: &'w mut dyn Write,
    shown: Vec<i32>,
}

impl<'w> Warnings<'w> {
    /// Warnings that are written here.
    pub fn new(err: &'w mut dyn Write) -> Self {
        Self { err, shown: Vec::new() }
    }

    /// Writes a warning with its arguments, unless one of its number was written. Some end with a line feed, which
    /// then is followed by an empty line.
    pub fn warn(&mut self, warning: Warning, arguments: &[&dyn Display]) {
        if !self.shown.contains(&warning.number) {
            self.shown.push(warning.number);
            let _ = writeln!(self.err, "libnuma: Warning: {}", warning.with(arguments));
        }
    }

    /// The writer, for what is not a warning.
    pub fn err(&mut self) -> &mut dyn Write {
        self.err
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_notation::warning::{CPU_MASK, NODE_MISSING, NODE_UNPARSEABLE};

    #[test]
    fn a_number_is_written_once() {
        let mut text = Vec::new();
        let mut warnings = Warnings::new(&mut text);
        warnings.warn(NODE_UNPARSEABLE, &[&"one"]);
        warnings.warn(NODE_MISSING, &[&"two"]);
        warnings.warn(CPU_MASK, &[]);
        let expected = "libnuma: Warning: unparseable node description `one'\n\n\
                        libnuma: Warning: Cannot parse cpumap. Assuming one node\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
