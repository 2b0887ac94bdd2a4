//! Events of performance monitoring units (PMUs).
//!
//! # Source
//! `events/NAME`, `events/NAME.scale`, `events/NAME.unit` and `format/FIELD` below `/sys/bus/event_source/devices/PMU`:
//! `Documentation/ABI/testing/sysfs-bus-event_source-devices-events` and `-format`.

use super::{ParseError, digits};

/// The words of `struct perf_event_attr` that say what is counted: `config`, `config1` and `config2`.
pub type Configuration = [u64; 3];

/// A field of an event, by its place: `config:0-7`, `config1:0-3,32`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventField {
    /// The word, by its number.
    word: usize,
    /// Ranges of bits, the lowest bits of a value first.
    bits: Vec<(u32, u32)>,
}

impl EventField {
    /// All bits of a word, by its name.
    fn whole(name: &str) -> Option<Self> {
        let word = ["config", "config1", "config2"].iter().position(|word| *word == name)?;
        Some(Self { word, bits: vec![(0, 63)] })
    }

    /// Puts a value into its place; `None` where it does not fit.
    #[must_use]
    pub fn put(&self, value: u64, words: &mut Configuration) -> Option<()> {
        let mut rest = value;
        for (low, high) in &self.bits {
            let width = high - low + 1;
            let part = rest & (u64::MAX >> (64 - width));
            words[self.word] |= part << low;
            rest = rest.checked_shr(width).unwrap_or(0);
        }
        (rest == 0).then_some(())
    }
}

/// Reads the place of a field.
///
/// # Errors
/// Anything but `config`, `config1` or `config2` with bits from 0 to 63.
pub fn field(text: &str) -> Result<EventField, ParseError> {
    let text = text.trim();
    let fail = || ParseError::new(1, "a word and its bits, as in config:0-7,32", text);
    let (name, bits) = text.split_once(':').ok_or_else(fail)?;
    let word = EventField::whole(name).ok_or_else(fail)?.word;
    let range = |part: &str| {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high): (u32, u32) = (digits(low)?, digits(high)?);
        (low <= high && high < 64).then_some((low, high))
    };
    let bits: Option<Vec<(u32, u32)>> = bits.split(',').map(range).collect();
    // Each bit has one place in a value.
    let bits = bits.filter(|bits| {
        let all: u32 = bits.iter().map(|(low, high)| high - low + 1).sum();
        all <= 64
    });
    Ok(EventField { word, bits: bits.ok_or_else(fail)? })
}

/// Reads the terms of an event: `event=0x04,umask=0x03`. A term without a value is 1.
///
/// # Errors
/// A term without a name, or a value that is neither decimal nor hexadecimal: `?` is one that the user has to give.
pub fn terms(text: &str) -> Result<Vec<(String, u64)>, ParseError> {
    let text = text.trim();
    let fail = || ParseError::new(1, "terms with numbers, as in event=0x04,umask=0x03", text);
    let term = |term: &str| {
        let (name, value) = term.split_once('=').unwrap_or((term, "1"));
        let value = match value.strip_prefix("0x") {
            Some(hex) if !hex.is_empty() => super::number::hex_digits(hex),
            _ => digits(value),
        };
        // Names are those of files.
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let value = value.filter(|_| !name.is_empty() && name.bytes().all(is_name))?;
        Some((name.to_owned(), value))
    };
    text.split(',').map(term).collect::<Option<_>>().ok_or_else(fail)
}

/// The words for an event. `field` has the places of the PMU's fields; the words themselves need none.
///
/// # Errors
/// A term without a place, and one whose value does not fit there.
pub fn configuration<E: From<ParseError>>(
    terms: &[(String, u64)],
    mut field: impl FnMut(&str) -> Result<Option<EventField>, E>,
) -> Result<Configuration, E> {
    let mut words = Configuration::default();
    for (name, value) in terms {
        let place = match field(name)? {
            Some(place) => Some(place),
            None => EventField::whole(name),
        };
        let put = place.and_then(|place| place.put(*value, &mut words));
        put.ok_or_else(|| ParseError::new(1, "a field of this PMU that holds the value", name))?;
    }
    Ok(words)
}

/// Reads what a count is multiplied with.
///
/// # Errors
/// Anything but a number above 0.
pub fn scale(text: &str) -> Result<f64, ParseError> {
    let text = text.trim();
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| ParseError::new(1, "a number above 0", text))
}

/// Reads a unit: how many bytes it has.
///
/// # Errors
/// Any other unit than those of sizes.
pub fn unit(text: &str) -> Result<f64, ParseError> {
    let text = text.trim();
    let power = |letter: &str| ["", "K", "M", "G", "T"].iter().position(|known| *known == letter);
    let bytes = match text {
        "Bytes" | "bytes" => Some(1.0),
        _ => match (text.strip_suffix("iB"), text.strip_suffix('B')) {
            (Some(letter), _) => {
                power(letter).filter(|power| *power > 0).map(|power| 1024_f64.powi(power as i32))
            }
            (None, Some(letter)) => power(letter).map(|power| 1000_f64.powi(power as i32)),
            (None, None) => None,
        },
    };
    bytes.ok_or_else(|| ParseError::new(1, "a unit of sizes, as in MiB", text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    /// The fields of Intel's and AMD's memory controllers, and one in two parts.
    fn known(name: &str) -> Result<Option<EventField>, ParseError> {
        let place = match name {
            "event" => "config:0-7\n",
            "umask" => "config:8-15",
            "rdwrmask" => "config:8-9",
            "split" => "config1:0-3,32-35",
            _ => return Ok(None),
        };
        field(place).map(Some)
    }

    #[test]
    fn terms_go_to_the_bits_of_their_fields() {
        let check = |text: &str, expected: Configuration| {
            assert_eq!(configuration(&terms(text).unwrap(), known), Ok(expected), "{text}");
        };
        check("event=0x04,umask=0x03\n", [0x304, 0, 0]);
        check("event=10,rdwrmask=2", [0x20a, 0, 0]);
        check("event=0xff,umask=0x20", [0x20ff, 0, 0]);
        check("event", [1, 0, 0]);
        check("split=0xab,config2=0xffffffffffffffff", [0, 0xa_0000_000b, u64::MAX]);
    }

    #[test]
    fn what_a_field_cannot_hold_is_refused() {
        for text in ["event=0x100", "rdwrmask=4", "nothing=1"] {
            let refused = configuration(&terms(text).unwrap(), known).unwrap_err();
            assert!(refused.sentence().starts_with("expected a field of this PMU"), "{text}");
        }
        for text in [
            "",
            "event=",
            "event=?",
            "=1",
            "event=0x",
            "event=-1",
            "event=1,,umask=1",
            "../type=1",
            "event=0x1ffffffffffffffff",
        ] {
            assert!(terms(text).is_err(), "{text}");
        }
        for text in
            ["", "config", "config:", "config:7-0", "config:0-64", "config3:0", "config:0-63,0", "config:a"]
        {
            assert!(field(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_count_has_bytes() {
        assert_eq!((scale("6.103515625e-5\n"), unit("MiB\n")), (Ok(6.103515625e-5), Ok(1048576.0)));
        assert_eq!(scale("6.103515625e-5").unwrap() * unit("MiB").unwrap(), 64.0);
        assert_eq!((unit("Bytes"), unit("B"), unit("GB")), (Ok(1.0), Ok(1.0), Ok(1e9)));
        for text in ["", "0", "-1", "inf", "NaN", "one"] {
            assert!(scale(text).is_err(), "{text}");
        }
        for text in ["", "iB", "ns", "Joules", "MiB/s"] {
            assert!(unit(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>(), value in any::<u64>()) {
            let _ = (scale(&text), unit(&text));
            if let Ok(place) = field(&text) {
                let _ = place.put(value, &mut Configuration::default());
            }
            let _ = terms(&text).map(|terms| configuration(&terms, known));
        }

        #[test]
        fn a_value_in_two_parts_is_whole(value in 0u64..256) {
            let mut words = Configuration::default();
            prop_assert_eq!(field("config:4-7,60-63").unwrap().put(value, &mut words), Some(()));
            prop_assert_eq!(words[0] >> 4 & 0xf | words[0] >> 60 << 4, value);
        }
    }
}
