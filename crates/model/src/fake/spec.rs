//! The text behind `numa=fake=`.

use std::fmt;
use std::str::FromStr;

use nodewise_machine::Bytes;
use nodewise_machine::printable::quote;

/// How memory is to be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `numa=fake=8`: this many nodes, as far as they come out.
    Count(u32),
    /// `numa=fake=512M`: nodes of this size.
    Size(Bytes),
    /// `numa=fake=4U`: this many of every physical node.
    PerNode(u32),
}

/// A whole parameter: the form, and distances row by row where it names some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fake {
    /// How memory is to be cut.
    pub form: Form,
    /// Distances between the emulated nodes, row by row; may be too few.
    pub distances: Vec<u32>,
}

/// Why a text is not an emulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FakeError {
    /// The text that was read.
    pub text: String,
}

impl fmt::Display for FakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = quote(&self.text);
        write!(
            f,
            "{text} is not an emulation: expected a number of nodes (8), a size (512M), or nodes per node (4U)"
        )
    }
}

impl std::error::Error for FakeError {}

/// The kernel's numbers are C's: `0x10` and `010` have other bases. What follows the digits is left.
fn number(text: &str) -> Option<(u64, &str)> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(rest) => (rest, 16),
        None if text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let value = u64::from_str_radix(&digits[..end], radix).ok()?;
    Some((value, &digits[end..]))
}

impl FromStr for Fake {
    type Err = FakeError;

    fn from_str(text: &str) -> Result<Self, FakeError> {
        let error = || FakeError { text: text.to_owned() };
        let (form, distances) = text.split_once(':').unwrap_or((text, ""));
        let (value, unit) = number(form).ok_or_else(error)?;
        let count = || u32::try_from(value).ok().filter(|count| *count > 0).ok_or_else(error);
        let form = match unit {
            "" => Form::Count(count()?),
            "U" => Form::PerNode(count()?),
            "M" | "G" => {
                let shift = if unit == "M" { 20 } else { 30 };
                let bytes = value.checked_mul(1 << shift).filter(|bytes| *bytes > 0).ok_or_else(error)?;
                Form::Size(Bytes::new(bytes))
            }
            _ => return Err(error()),
        };
        // An entry counts only with a comma behind it.
        let mut entries: Vec<&str> = distances.split(',').collect();
        entries.pop();
        let distances = entries.into_iter().map_while(|entry| entry.parse().ok()).collect();
        Ok(Self { form, distances })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<Form>) {
        assert_eq!(text.parse::<Fake>().ok().map(|fake| fake.form), expected, "{text}");
    }

    #[test]
    fn every_form_is_read() {
        check("8", Some(Form::Count(8)));
        check("0x10", Some(Form::Count(16)));
        check("010", Some(Form::Count(8)));
        check("4U", Some(Form::PerNode(4)));
        check("512M", Some(Form::Size(Bytes::from_mib(512))));
        check("1G:10,20,", Some(Form::Size(Bytes::from_gib(1))));
    }

    #[test]
    fn what_makes_no_node_is_refused() {
        for text in ["", "0", "M", "4x", "-1", "0M", "99999999999999999999", "17179869184G", "4294967296"] {
            check(text, None);
        }
        assert_eq!(
            "many".parse::<Fake>().unwrap_err().to_string(),
            "\"many\" is not an emulation: expected a number of nodes (8), a size (512M), or nodes per node (4U)"
        );
    }
}
