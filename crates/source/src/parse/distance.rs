//! A row of distances.
//!
//! # Source
//! `/sys/devices/system/node/nodeN/distance`: one number per *online* node in ascending order, so
//! a column is not a node number where numbers have holes. Which node a column stands for is
//! decided where the row is read.

use nodewise_machine::NodeId;
use nodewise_machine::id::Id as _;

use super::{ParseError, digits};

/// Reads the row.
///
/// # Errors
/// Anything but numbers and blanks, no number at all, or more numbers than nodes can exist.
pub fn parse(text: &str) -> Result<Vec<u32>, ParseError> {
    let mut row = Vec::new();
    for word in text.split_ascii_whitespace() {
        if row.len() >= NodeId::LIMIT as usize {
            return Err(ParseError::new(1, format!("at most {} numbers", NodeId::LIMIT), word));
        }
        let place = row.len() + 1;
        let distance = digits(word)
            .ok_or_else(|| ParseError::new(1, format!("a distance as number {place} of the row"), word))?;
        row.push(distance);
    }
    if row.is_empty() {
        return Err(ParseError::new(1, "distances, one per online node", text.trim()));
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    #[test]
    fn a_row_is_read() {
        assert_eq!(parse("10 16 32 33\n"), Ok(vec![10, 16, 32, 33]));
        assert_eq!(parse("0\n"), Ok(vec![0]), "an old kernel prints 0: that is for a check to judge");
        assert_eq!(parse(" 10\t20 \n"), Ok(vec![10, 20]));
    }

    #[test]
    fn what_is_no_row_is_refused() {
        for (text, sentence) in [
            ("", "expected distances, one per online node, found nothing"),
            ("10 x 20", "expected a distance as number 2 of the row, found \"x\""),
            ("10 -1", "expected a distance as number 2 of the row, found \"-1\""),
            ("4294967296", "expected a distance as number 1 of the row, found \"4294967296\""),
        ] {
            assert_eq!(parse(text).unwrap_err().sentence(), sentence);
        }
        assert!(parse(&"10 ".repeat(20_000)).is_err(), "a row longer than any machine is refused");
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(row in prop::collection::vec(any::<u32>(), 1..64)) {
            let text = row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(parse(&(text + "\n")), Ok(row));
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>(), near in "[0-9 \n-]{0,40}") {
            let _ = parse(&text);
            let _ = parse(&near);
        }
    }
}
