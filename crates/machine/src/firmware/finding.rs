//! The fault in a table of the firmware: which, where, and the rule that it breaks.

use std::fmt;

/// The rules that a table can break. Each has a word that does not change, for scripts and JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A table has a header of 36 bytes, with a signature of four letters.
    Header,
    /// A table is as long as its header says.
    Length,
    /// The sum of all bytes of a table is a multiple of 256.
    Checksum,
    /// A structure is as long as its fields, and ends before its table does.
    StructureLength,
    Count,
    /// A structure is of a type that is known.
    Type,
    /// A value is one that the specification defines.
    Value,
    /// A machine has one table of a kind.
    Duplicate,
    /// The lines of a dump are lines of one.
    Dump,
    /// A file can be read and holds a table.
    File,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Self; 10] = [
        Self::Header,
        Self::Length,
        Self::Checksum,
        Self::StructureLength,
        Self::Count,
        Self::Type,
        Self::Value,
        Self::Duplicate,
        Self::Dump,
        Self::File,
    ];

    /// The word for scripts: `structure-length`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Length => "length",
            Self::Checksum => "checksum",
            Self::StructureLength => "structure-length",
            Self::Count => "count",
            Self::Type => "type",
            Self::Value => "value",
            Self::Duplicate => "duplicate",
            Self::Dump => "dump",
            Self::File => "file",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirmwareFinding {
    /// The table's signature, or the name of the file where no table was found. Foreign text.
    pub table: String,
    /// Bytes from the start of the table.
    pub offset: Option<usize>,
    /// The rule that is broken.
    pub rule: Rule,
    /// A sentence: what is there, and what would be right. Fit for a terminal.
    pub text: String,
}

impl FirmwareFinding {
    /// A finding at a place of a table.
    pub fn at(table: impl Into<String>, offset: usize, rule: Rule, text: impl Into<String>) -> Self {
        Self { table: table.into(), offset: Some(offset), rule, text: text.into() }
    }

    /// A finding of a table or file as a whole.
    pub fn in_table(table: impl Into<String>, rule: Rule, text: impl Into<String>) -> Self {
        Self { table: table.into(), offset: None, rule, text: text.into() }
    }
}

impl fmt::Display for FirmwareFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::printable::visible(&self.table))?;
        if let Some(offset) = self.offset {
            write!(f, " at {offset:#x}")?;
        }
        write!(f, ": {}", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_table_and_offset() {
        let finding = FirmwareFinding::at("SRAT", 48, Rule::Count, "too many");
        assert_eq!(finding.to_string(), "SRAT at 0x30: too many");
        assert_eq!(FirmwareFinding::in_table("a\u{1b}", Rule::File, "empty").to_string(), "a\\x1b: empty");
    }

    #[test]
    fn rules_have_different_words() {
        let words: std::collections::BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.word()).collect();
        assert_eq!(words.len(), Rule::ALL.len());
    }
}
