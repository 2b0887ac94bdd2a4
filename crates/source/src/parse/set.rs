//! Lists and masks as files hold them. The formats are those of [`nodewise_machine::set`]; here
//! their errors become errors of a file.

use nodewise_machine::id::Id;
use nodewise_machine::set::IdSet;

use super::ParseError;

/// Digits of a mask between two commas: 32 bits, zeros in front included (`bitmap_string()` in `lib/vsprintf.c`, `%*pb`).
const GROUP: usize = 8;

/// Reads a file with a list: `0-3,8`.
///
/// # Errors
/// What is not a list; the error names the column.
pub fn list<I: Id>(text: &str) -> Result<IdSet<I>, ParseError> {
    // People may type strides; the kernel reads them and never prints one.
    if text.contains(':') {
        return Err(ParseError::new(1, "ranges as in 0-3,8", text.trim()));
    }
    text.parse().map_err(|error: nodewise_machine::set::list::ListError| {
        ParseError::new(1, format!("{} in column {}", error.expected, error.column), text.trim())
    })
}

/// Reads a file with a mask: `00000001,ffffffff`.
///
/// # Errors
/// What is not a mask; the error names the column. A group of fewer than eight digits behind the first: the kernel
/// pads them all, so that the mask was cut.
pub fn mask<I: Id>(text: &str) -> Result<IdSet<I>, ParseError> {
    if text.trim().split(',').skip(1).any(|group| group.len() != GROUP) {
        let expected = format!("groups of {GROUP} hexadecimal digits behind the first comma");
        return Err(ParseError::new(1, expected, text.trim()));
    }
    IdSet::from_mask(text).map_err(|error| {
        ParseError::new(1, format!("{} in column {}", error.expected, error.column), text.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{CpuId, CpuSet};

    #[test]
    fn an_error_names_the_column() {
        assert_eq!(list::<CpuId>("0-3\n"), Ok(CpuSet::from([0, 1, 2, 3])));
        assert_eq!(list::<CpuId>("0-3:1/2\n").unwrap_err().expected, "ranges as in 0-3,8");
        assert_eq!(mask::<CpuId>("0000,0000000f\n"), Ok(CpuSet::from([0, 1, 2, 3])));
        assert_eq!(
            list::<CpuId>("0-x\n").unwrap_err().sentence(),
            "expected a number after \"-\" in column 3, found \"0-x\""
        );
        assert_eq!(
            mask::<CpuId>("f,0000000g\n").unwrap_err().sentence(),
            "expected a hexadecimal digit or \",\" in column 10, found \"f,0000000g\""
        );
        assert_eq!(
            mask::<CpuId>("00000000,001\n").unwrap_err().sentence(),
            "expected groups of 8 hexadecimal digits behind the first comma, found \"00000000,001\""
        );
    }
}
