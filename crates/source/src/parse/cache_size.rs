//! The size of a cache.
//!
//! # Source
//! `/sys/devices/system/cpu/cpuN/cache/indexM/size`: `32K`; a few firmware tables make it `0K`.

use nodewise_machine::Bytes;

use super::{ParseError, kib};

/// Reads the size; `None` for `0K`, which is how the kernel says that it does not know.
///
/// # Errors
/// Anything but a number and a K: what was cut is not a smaller size.
pub fn parse(text: &str) -> Result<Option<Bytes>, ParseError> {
    let text = text.trim();
    let size =
        text.strip_suffix('K').and_then(kib).ok_or_else(|| ParseError::new(1, "a size as in 32K", text))?;
    Ok(Some(size).filter(|size| size.get() > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn sizes_are_read_and_0_is_unknown() {
        for (text, kib) in [("32K\n", Some(32)), ("32768K", Some(32768)), ("0K\n", None)] {
            assert_eq!(parse(text), Ok(kib.map(Bytes::from_kib)), "{text}");
        }
        for text in ["", "K", "32", "1M", "-1K", "32 K", "32KB", "18446744073709551615K"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(kib in 1u64..1 << 54) {
            prop_assert_eq!(parse(&format!("{kib}K\n")), Ok(Some(Bytes::from_kib(kib))));
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            let _ = parse(&text);
        }
    }
}
