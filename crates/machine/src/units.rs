//! Sizes and how they are written.
//!
//! Sizes are counted in bytes and written in powers of 1024 (KiB, MiB, GiB, TiB): `kB` in the
//! kernel's files is 1024 bytes too. Rates are powers of ten (GB/s = 10^9 bytes per second), as
//! every bandwidth tool of this field writes them.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

use crate::printable::quote;

/// A size in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bytes(u64);

/// Names of the binary units with the power of 1024 they stand for.
const UNITS: [(&str, u32); 5] = [("KiB", 1), ("MiB", 2), ("GiB", 3), ("TiB", 4), ("PiB", 5)];

impl Bytes {
    /// One KiB.
    pub const KIB: Self = Self(1 << 10);
    /// One MiB.
    pub const MIB: Self = Self(1 << 20);
    /// One GiB.
    pub const GIB: Self = Self(1 << 30);

    /// This many bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// This many KiB; the largest size when that does not fit.
    pub const fn from_kib(kib: u64) -> Self {
        Self(kib.saturating_mul(1 << 10))
    }

    /// This many MiB; the largest size when that does not fit.
    pub const fn from_mib(mib: u64) -> Self {
        Self(mib.saturating_mul(1 << 20))
    }

    /// This many GiB; the largest size when that does not fit.
    pub const fn from_gib(gib: u64) -> Self {
        Self(gib.saturating_mul(1 << 30))
    }

    /// The size as a plain number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whole MiB in this size, rounded down, as `numactl --hardware` counts.
    pub const fn mib(self) -> u64 {
        self.0 >> 20
    }

    /// This size `count` times; the largest size when that does not fit.
    #[must_use]
    pub const fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }

    /// A part of this size, rounded; a share below 0 or above 1 is taken as these.
    #[must_use]
    pub fn share(self, share: f64) -> Self {
        Self((self.0 as f64 * share.clamp(0.0, 1.0)).round() as u64)
    }

    /// The size in its largest unit that divides it exactly, as a spec and an option write it:
    /// `128G`, `1536M`, `4097`.
    pub fn exact(self) -> String {
        for (unit, power) in UNITS.iter().rev() {
            let size = 1u64 << (10 * power);
            if self.0 >= size && self.0 % size == 0 {
                return format!("{}{}", self.0 / size, &unit[..1]);
            }
        }
        self.0.to_string()
    }
}

impl fmt::Display for Bytes {
    /// Writes the size for people, with about three digits: `125.6 GiB`, `512 MiB`, `37 B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = format!("{} B", self.0);
        for (unit, power) in UNITS {
            let value = self.0 as f64 / (1u64 << (10 * power)) as f64;
            if value < 1.0 {
                break;
            }
            let decimals = usize::from(value < 999.95 && value.fract() > 0.0);
            text = format!("{value:.decimals$} {unit}");
            if let Some(whole) = text.strip_suffix(&format!(".0 {unit}")) {
                text = format!("{whole} {unit}");
            }
        }
        f.pad(&text)
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Bytes {
    fn sum<T: Iterator<Item = Self>>(sizes: T) -> Self {
        sizes.fold(Self(0), Add::add)
    }
}

/// Why a text is not a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeError {
    /// The text that was read.
    pub text: String,
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is not a size: expected a number of bytes, or one with K, M, G or T as in 512M",
            quote(&self.text)
        )
    }
}

impl std::error::Error for SizeError {}

impl FromStr for Bytes {
    type Err = SizeError;

    /// Reads `512M`, `1.5G`, `2MiB`, `4096`, `64 kB`. Letters count in powers of 1024 and their
    /// case does not matter; the result must be a whole number of bytes.
    fn from_str(text: &str) -> Result<Self, SizeError> {
        let error = || SizeError { text: text.to_owned() };
        let trimmed = text.trim_matches([' ', '\t', '\n']);
        let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(split);
        let power = match unit.trim_start_matches(' ').to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 1,
            "m" | "mb" | "mib" => 2,
            "g" | "gb" | "gib" => 3,
            "t" | "tb" | "tib" => 4,
            "p" | "pb" | "pib" => 5,
            _ => return Err(error()),
        };
        let scale = 1u128 << (10 * power);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || number.ends_with('.') || fraction.len() > 12 {
            return Err(error());
        }
        let whole: u64 = whole.parse().map_err(|_| error())?;
        let parts = 10u128.pow(fraction.len() as u32);
        let fraction: u128 = if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| error())? };
        let scaled = fraction * scale;
        if scaled % parts != 0 {
            return Err(error());
        }
        u64::try_from(u128::from(whole) * scale + scaled / parts).map(Self).map_err(|_| error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn sizes_are_written_for_people() {
        for (bytes, text) in [
            (0, "0 B"),
            (37, "37 B"),
            (2048, "2 KiB"),
            (1536, "1.5 KiB"),
            (512 << 20, "512 MiB"),
            (134_867_992_576, "125.6 GiB"),
            (128 << 30, "128 GiB"),
            ((1 << 30) - 1, "1024 MiB"),
            (3 << 40, "3 TiB"),
            (u64::MAX, "16384 PiB"),
        ] {
            assert_eq!(Bytes::new(bytes).to_string(), text);
        }
    }

    #[test]
    fn sizes_are_read_with_units() {
        for (text, bytes) in [
            ("4096", 4096),
            ("512M", 512 << 20),
            ("1.5G", 3 << 29),
            ("2MiB", 2 << 20),
            ("64 kB\n", 64 << 10),
            ("0", 0),
        ] {
            assert_eq!(text.parse(), Ok(Bytes::new(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "",
            "G",
            "1.G",
            ".5G",
            "1.3",
            "-1",
            "1X",
            "18446744073709551616",
            "16384P",
            "1.0000000000001G",
            "1 0",
        ] {
            assert_eq!(text.parse::<Bytes>(), Err(SizeError { text: text.to_owned() }), "{text}");
        }
    }

    proptest! {
        #[test]
        fn exact_text_is_read_back(bytes in any::<u64>(), zeros in 0u32..40) {
            let size = Bytes::new(bytes >> zeros << zeros);
            prop_assert_eq!(size.exact().parse(), Ok(size));
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in "[0-9.kKmMgGiIbB \\-]{0,30}") {
            let _ = text.parse::<Bytes>();
        }
    }
}
