//! The System Locality Information Table: distances between domains.
//!
//! # Source
//! ACPI 6.5, section 5.2.17.

use super::layout::{Field, Value};
use super::table::TableHeader;

/// The signature of the table.
pub const SIGNATURE: [u8; 4] = *b"SLIT";
/// Bytes before the first distance: the header and the number of localities.
pub const FIXED: usize = 44;

/// The table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slit {
    pub header: TableHeader,
    /// The declared number of rows and columns.
    pub localities: u64,
    /// The distances that are there, row by row; as many as localities squared, unless the table is
    /// cut short.
    pub distances: Vec<u8>,
    /// Bytes behind the distances.
    pub rest: Vec<u8>,
}

impl Slit {
    /// A table to be written, from its rows.
    pub fn new(rows: &[Vec<u8>]) -> Self {
        Self {
            header: TableHeader::new(SIGNATURE, 1),
            localities: rows.len() as u64,
            distances: rows.concat(),
            rest: Vec::new(),
        }
    }

    /// Whether all declared distances are present.
    pub fn is_whole(&self) -> bool {
        self.localities.checked_mul(self.localities) == Some(self.distances.len() as u64)
    }

    /// The rows. Only what is there: the last may be shorter, and others missing.
    pub fn rows(&self) -> impl Iterator<Item = &[u8]> {
        let width = usize::try_from(self.localities).unwrap_or(usize::MAX).max(1);
        self.distances.chunks(width)
    }

    /// The distance from one domain to another; `None` outside the table.
    pub fn distance(&self, from: u32, to: u32) -> Option<u8> {
        let (from, to) = (u64::from(from), u64::from(to));
        if from >= self.localities || to >= self.localities {
            return None;
        }
        let at = from.checked_mul(self.localities)?.checked_add(to)?;
        self.distances.get(usize::try_from(at).ok()?).copied()
    }

    /// Its fields behind the header: the number of localities, and one field per row.
    pub fn fields(&self) -> Vec<Field> {
        let mut offset = FIXED;
        let localities = Value::Number(self.localities);
        let first = Field { offset: FIXED - 8, width: 8, name: "Localities", value: localities };
        let rows = self.rows().map(|row| {
            let field =
                Field { offset, width: row.len(), name: "Locality", value: Value::Bytes(row.to_vec()) };
            offset += row.len();
            field
        });
        std::iter::once(first).chain(rows).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_indexed_by_domain() {
        let slit = Slit::new(&[vec![10, 20], vec![30, 10]]);
        assert_eq!(slit.distance(1, 0), Some(30));
        assert_eq!(slit.distance(2, 0), None);
        assert_eq!(slit.distance(0, 2), None);
        assert!(slit.is_whole());
        assert!(!Slit { localities: u64::MAX, ..slit }.is_whole());
    }
}
