//! Counters of the resource-control file system.
//!
//! # Source
//! `mon_data/mon_L3_XX/mbm_total_bytes`, `mbm_local_bytes` and `llc_occupancy` below `/sys/fs/resctrl`, Linux 4.14;
//! `mon_sub_L3_XX` where a cache is split into nodes, Linux 6.11.

use super::{ParseError, digits};

/// Reads a counter; `None` where the hardware does not give it now.
///
/// # Errors
/// A text that is neither a number nor one of the kernel's words: `Unavailable`, `Error`, `Unassigned`.
pub fn count(text: &str) -> Result<Option<u64>, ParseError> {
    match text.trim() {
        "Unavailable" | "Error" | "Unassigned" => Ok(None),
        number => match digits(number) {
            Some(count) => Ok(Some(count)),
            None => Err(ParseError::new(1, "a number, Unavailable, Unassigned or Error", number)),
        },
    }
}

/// The number in the name of a folder of counters of a last-level cache: `mon_L3_01`.
pub fn domain(folder: &str) -> Option<u32> {
    digits(folder.strip_prefix("mon_L3_")?)
}

/// The number in the name of a folder of counters of a node's part of a cache: `mon_sub_L3_01`.
pub fn part(folder: &str) -> Option<u32> {
    digits(folder.strip_prefix("mon_sub_L3_")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn a_counter_that_is_not_there_is_missing_and_not_0() {
        assert_eq!(count("123\n"), Ok(Some(123)));
        for word in ["Unavailable\n", "Error", "Unassigned\n"] {
            assert_eq!(count(word), Ok(None));
        }
        assert_eq!(
            count("many\n").unwrap_err().sentence(),
            "expected a number, Unavailable, Unassigned or Error, found \"many\""
        );
    }

    #[test]
    fn a_domain_is_named_by_its_folder() {
        assert_eq!((domain("mon_L3_00"), domain("mon_L3_17")), (Some(0), Some(17)));
        assert_eq!((domain("mon_L3_"), domain("mon_L2_00"), domain("mon_sub_L3_00")), (None, None, None));
        assert_eq!((part("mon_sub_L3_02"), part("mon_L3_02")), (Some(2), None));
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(number in any::<u64>(), cache in any::<u32>()) {
            prop_assert_eq!(count(&format!("{number}\n")), Ok(Some(number)));
            prop_assert_eq!(domain(&format!("mon_L3_{cache:02}")), Some(cache));
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            let _ = count(&text);
            let _ = domain(&text);
        }
    }
}
