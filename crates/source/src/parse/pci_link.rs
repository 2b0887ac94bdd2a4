//! Speeds and widths of PCI Express links.
//!
//! # Source
//! `/sys/bus/pci/devices/*/current_link_speed` and its kin, Linux 4.13: `16.0 GT/s PCIe` since 5.8, `16 GT/s` before,
//! `Unknown` (older: `Unknown speed`) where the device has no link. Widths are a number of lanes; 0 and 255 stand
//! for no link.

use super::{ParseError, digits};

/// Speeds that there are, in MT/s (PCI Express 1.0 to 7.0).
const SPEEDS: [u32; 7] = [2500, 5000, 8000, 16_000, 32_000, 64_000, 128_000];
/// Widths that there are, in lanes.
const WIDTHS: [u32; 7] = [1, 2, 4, 8, 12, 16, 32];
/// Widths of a device without a link.
const NO_WIDTH: [u32; 2] = [0, 255];

/// Reads a speed in MT/s; `None` without a link.
///
/// # Errors
/// Anything else.
pub fn speed(text: &str) -> Result<Option<u32>, ParseError> {
    let text = text.trim();
    if matches!(text, "Unknown" | "Unknown speed") {
        return Ok(None);
    }
    let error = || ParseError::new(1, "a link speed, as in 16.0 GT/s PCIe", text);
    let number = text.strip_suffix(" GT/s PCIe").or_else(|| text.strip_suffix(" GT/s")).ok_or_else(error)?;
    let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
    let value = |text: &str| digits::<u32>(text).filter(|value| *value < 1000);
    let (whole, tenths) = value(whole).zip(value(tenths).filter(|tenths| *tenths < 10)).ok_or_else(error)?;
    let speed = whole * 1000 + tenths * 100;
    if SPEEDS.contains(&speed) { Ok(Some(speed)) } else { Err(error()) }
}

/// Reads a width in lanes; `None` without a link.
///
/// # Errors
/// Anything else.
pub fn width(text: &str) -> Result<Option<u32>, ParseError> {
    let text = text.trim();
    match digits::<u32>(text) {
        Some(width) if NO_WIDTH.contains(&width) => Ok(None),
        Some(width) if WIDTHS.contains(&width) => Ok(Some(width)),
        _ => Err(ParseError::new(1, "a number of lanes, as in 16", text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[test]
    fn speeds_and_widths_of_all_releases_are_read() {
        for (text, expected) in [
            ("16.0 GT/s PCIe\n", Some(16_000)),
            ("8 GT/s\n", Some(8000)),
            ("2.5 GT/s PCIe\n", Some(2500)),
            ("Unknown\n", None),
            ("Unknown speed\n", None),
        ] {
            assert_eq!(speed(text), Ok(expected), "{text}");
        }
        assert_eq!([width("16\n"), width("0\n"), width("255\n")], [Ok(Some(16)), Ok(None), Ok(None)]);
    }

    #[test]
    fn a_speed_or_width_that_no_link_has_is_refused() {
        for text in [
            "",
            "6.0 GT/s PCIe",
            "16.0",
            "16.0 GT/s PCIex",
            ".0 GT/s",
            "16.55 GT/s",
            "-8 GT/s",
            "9999999999 GT/s",
        ] {
            assert!(speed(text).is_err(), "{text}");
        }
        for text in ["", "6", "x16", "-1", "161"] {
            assert!(width(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            let _ = (speed(&text), width(&text));
        }
    }
}
