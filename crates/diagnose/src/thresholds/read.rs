//! Reads a file that replaces thresholds: a table for each rule, a number for each key.

use std::ops::Range;

use nodewise_machine::nearest::nearest;
use nodewise_machine::order::Order as _;
use nodewise_machine::printable::{printable, quote};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{ALL, ALL_RULES, RuleThreshold, Thresholds};
use crate::rules;

/// The largest file that is read, in bytes: a hundred times one that replaces all thresholds.
pub const MOST_BYTES: usize = 256 << 10;
/// The most letters of the file in a message.
const LONGEST: usize = 60;

/// A fault in the file, with its line from 1.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ThresholdsError {
    #[error("it has {0} bytes: at most {MOST_BYTES} are read")]
    TooLarge(usize),
    #[error("line {line}: this is not TOML: {message}")]
    Syntax { line: usize, message: String },
    #[error("line {line}: {name} is not a rule: {hint}")]
    UnknownRule { line: usize, name: String, hint: String },
    #[error(
        "line {line}: expected a table of a rule, such as [memory-stranded]; found {name} outside of one"
    )]
    NoTable { line: usize, name: String },
    #[error("line {line}: rule {rule} has no thresholds")]
    NoThresholds { line: usize, rule: String },
    #[error("line {line}: [{table}] has no threshold {key}: expected {expected}")]
    UnknownKey { line: usize, table: String, key: String, expected: String },
    #[error("line {line}: {table}.{key}: expected a number from {least} to {most} ({unit}); found {found}")]
    Number {
        line: usize,
        table: &'static str,
        key: &'static str,
        least: f64,
        most: f64,
        unit: &'static str,
        found: String,
    },
}

/// Reads a file of thresholds.
///
/// # Errors
/// The first fault.
pub fn read(text: &str) -> Result<Thresholds, ThresholdsError> {
    if text.len() > MOST_BYTES {
        return Err(ThresholdsError::TooLarge(text.len()));
    }
    let line = |span: &Range<usize>| line_of(text, span.start);
    let document = DeTable::parse(text).map_err(|error| ThresholdsError::Syntax {
        line: error.span().map_or(1, |span| line(&span)),
        message: printable(error.message()).into_owned(),
    })?;
    let mut tables: Vec<(Spanned<_>, Spanned<DeValue<'_>>)> = document.into_inner().into_iter().collect();
    // By place, not by name: the first fault is the topmost one.
    tables.order_by_key(|(name, _)| name.span().start);
    let mut thresholds = Thresholds::default();
    for (name, value) in tables {
        let at = line(&name.span());
        let DeValue::Table(keys) = value.into_inner() else {
            return Err(ThresholdsError::NoTable { line: at, name: short(name.get_ref()) });
        };
        let of_table = of_table(name.get_ref(), at)?;
        let mut keys: Vec<_> = keys.into_iter().collect();
        keys.order_by_key(|(key, _)| key.span().start);
        for (key, value) in keys {
            let at = line(&key.span());
            let threshold = threshold(&of_table, key.get_ref(), at)?;
            thresholds.set(threshold, number(threshold, value.get_ref(), at)?);
        }
    }
    Ok(thresholds)
}

/// The line of a byte, from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

/// The thresholds of a table.
fn of_table(name: &str, line: usize) -> Result<Vec<&'static RuleThreshold>, ThresholdsError> {
    let of_table: Vec<_> = ALL.iter().copied().filter(|threshold| threshold.table == name).collect();
    if !of_table.is_empty() {
        return Ok(of_table);
    }
    if rules::ALL.iter().any(|rule| rule.id == name) {
        return Err(ThresholdsError::NoThresholds { line, rule: name.to_owned() });
    }
    let names = rules::ALL.iter().map(|rule| rule.id).chain([ALL_RULES]);
    let hint = nearest(name, names).map_or_else(
        || "nodewise doctor rules lists them".to_owned(),
        |near| format!("did you mean {near}?"),
    );
    Err(ThresholdsError::UnknownRule { line, name: short(name), hint })
}

/// The threshold of a key.
fn threshold(
    of_table: &[&'static RuleThreshold],
    key: &str,
    line: usize,
) -> Result<&'static RuleThreshold, ThresholdsError> {
    let found = of_table.iter().copied().find(|threshold| threshold.key == key);
    found.ok_or_else(|| {
        let keys: Vec<&str> = of_table.iter().map(|threshold| threshold.key).collect();
        let table = of_table.first().map_or(ALL_RULES, |threshold| threshold.table);
        let expected = keys.join(", ");
        ThresholdsError::UnknownKey { line, table: table.to_owned(), key: short(key), expected }
    })
}

/// The number, within its range.
fn number(
    threshold: &'static RuleThreshold,
    value: &DeValue<'_>,
    line: usize,
) -> Result<f64, ThresholdsError> {
    let RuleThreshold { table, key, unit, least, most, .. } = *threshold;
    let (number, found) = match value {
        DeValue::Integer(whole) => {
            let number = i128::from_str_radix(whole.as_str(), whole.radix()).ok();
            (number.map(|number| number as f64), whole.to_string())
        }
        DeValue::Float(float) => (float.as_str().parse().ok(), float.to_string()),
        DeValue::String(text) => (None, format!("the text {}", short(text))),
        DeValue::Boolean(word) => (None, word.to_string()),
        DeValue::Datetime(date) => (None, date.to_string()),
        DeValue::Array(_) => (None, "a list".to_owned()),
        DeValue::Table(_) => (None, "a table".to_owned()),
    };
    // NaN is in no range.
    let number = number.filter(|number: &f64| (least..=most).contains(number));
    // There is one zero.
    number.map(|number| number + 0.0).ok_or_else(|| ThresholdsError::Number {
        line,
        table,
        key,
        least,
        most,
        unit: unit.word(),
        found: printable(&found.chars().take(LONGEST).collect::<String>()).into_owned(),
    })
}

/// The beginning of a word of the file.
fn short(word: &str) -> String {
    quote(&word.chars().take(LONGEST).collect::<String>())
}
