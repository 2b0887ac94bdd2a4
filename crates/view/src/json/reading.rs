//! Reading documents back: a schema that is expected, lists that are not endless, and values that can be
//! what their names say. What is wrong is refused with the name of the field and what would be right.

use nodewise_machine::id::Id as _;
use nodewise_machine::printable::{printable, quote};
use nodewise_machine::{Bytes, CpuId, CpuSet, NodeId};
use nodewise_measure::cell::{HugePageSize, PageKind};
use nodewise_measure::kernel::bandwidth::Kernel;
use nodewise_measure::survey::Figure;
use nodewise_measure::survey::figure::rounded;
use nodewise_stats::Interval;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The values that are read: what is measured lies far inside, and a number of nine digits between these is
/// read as exactly what was written.
const LEAST: f64 = 1e-9;
const MOST: f64 = 1e15;

/// A document whose schema is known and whose contents are not yet.
#[derive(Clone, Debug)]
pub struct Saved<'a> {
    text: &'a str,
    schema: String,
}

/// The only field that every document has.
#[derive(Deserialize)]
struct Named {
    schema: String,
}

impl<'a> Saved<'a> {
    /// Looks at the schema of a document.
    ///
    /// # Errors
    /// A text that is not JSON or has no schema, fit to be shown.
    pub fn from_json(text: &'a str) -> Result<Self, String> {
        let Named { schema } = serde_json::from_str(text).map_err(|error| fault(&error))?;
        Ok(Self { text, schema })
    }

    /// The schema that it names, which may be any text.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// The contents of a document of this schema.
    pub(super) fn contents<D: DeserializeOwned>(&self, expected: &str) -> Result<D, String> {
        self.contents_of(&[expected])
    }

    /// The contents of a document of one of these schemas, the version that is written first.
    pub(super) fn contents_of<D: DeserializeOwned>(&self, schemas: &[&str]) -> Result<D, String> {
        if !schemas.contains(&self.schema.as_str()) {
            return Err(other_schema(&self.schema, schemas));
        }
        serde_json::from_str(self.text).map_err(|error| fault(&error))
    }
}

/// The words for a document of a schema that is not one of these.
pub(super) fn other_schema(schema: &str, expected: &[&str]) -> String {
    format!("its schema is {}: expected {}", quote(schema), expected.join(" or "))
}

pub(super) fn fault(error: &serde_json::Error) -> String {
    printable(&error.to_string()).into_owned()
}

/// Reads the items of a list, where there are no more than this many. An error in one is reported with its
/// place.
pub(super) fn items<J, R>(
    name: &str,
    items: Vec<J>,
    most: usize,
    read: impl Fn(J) -> Result<R, String>,
) -> Result<Vec<R>, String> {
    if items.len() > most {
        return Err(format!("{name} has {} items: expected at most {most}", items.len()));
    }
    let read = |(at, item)| read(item).map_err(|error| format!("{name}[{at}]: {error}"));
    items.into_iter().enumerate().map(read).collect()
}

/// A node by its number.
pub(super) fn node(number: u32) -> Result<NodeId, String> {
    let most = NodeId::LIMIT;
    (number < most).then(|| NodeId::new(number)).ok_or_else(|| format!("node {number} is beyond {most}"))
}

/// A CPU by its number.
pub(super) fn cpu(name: &str, number: u32) -> Result<CpuId, String> {
    let most = CpuId::LIMIT;
    let right = (number < most).then(|| CpuId::new(number));
    right.ok_or_else(|| format!("{name} is {number}: expected a number below {most}"))
}

/// A set of CPUs.
pub(super) fn set(name: &str, text: &str) -> Result<CpuSet, String> {
    text.parse().map_err(|error| format!("{name}: {error}"))
}

/// A kernel by its name.
pub(super) fn kernel(name: &str) -> Result<Kernel, String> {
    Kernel::from_name(name).ok_or_else(|| format!("{} is not a kernel", quote(name)))
}

/// A kind of pages by its word, and their size where they come from a pool.
pub(super) fn pages(word: &str, size: Option<u64>) -> Result<PageKind, String> {
    match (word, size.map(Bytes::new).map(HugePageSize::new)) {
        ("small", None) => Ok(PageKind::Small),
        ("transparent_huge", None) => Ok(PageKind::TransparentHuge),
        ("hugetlb", Some(Some(size))) => Ok(PageKind::Hugetlb(size)),
        _ => Err(format!(
            "pages are {}: expected small, transparent_huge, or hugetlb with huge_page_bytes",
            quote(word)
        )),
    }
}

/// That one of some things which has this word of its own.
pub(super) fn named<T: Copy, W: AsRef<str>>(
    name: &str,
    word: &str,
    things: &[T],
    word_of: impl Fn(T) -> W,
) -> Result<T, String> {
    let found = things.iter().copied().find(|thing| word_of(*thing).as_ref() == word);
    found.ok_or_else(|| {
        let words: Vec<W> = things.iter().map(|thing| word_of(*thing)).collect();
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        format!("{name} is {}: expected {}", quote(word), words.join(", "))
    })
}

/// A time or a rate: above nothing, and of a size that can have been measured.
pub(super) fn positive(name: &str, value: f64) -> Result<f64, String> {
    if !(value.is_finite() && value > 0.0) {
        return Err(format!("{name} is {value}: expected a number above 0"));
    }
    let right = (LEAST..=MOST).contains(&value).then(|| rounded(value));
    right.ok_or_else(|| format!("{name} is {value:e}: expected a number from {LEAST:e} to {MOST:e}"))
}

/// Where a median lies.
pub(super) fn interval([low, high]: [f64; 2]) -> Result<Interval, String> {
    let interval = Interval { low: positive("an interval", low)?, high: positive("an interval", high)? };
    (low <= high).then_some(interval).ok_or_else(|| format!("an interval from {low} to {high} is none"))
}

/// The contents of a figure's fields.
pub(super) struct Fields {
    /// In which unit, as the names of the fields end: `ns`.
    pub(super) unit: &'static str,
    pub(super) median: Option<f64>,
    pub(super) interval: Option<[f64; 2]>,
    pub(super) best: Option<f64>,
    pub(super) rounds: usize,
    pub(super) samples: usize,
}

impl Fields {
    /// The figure; `None` where there is none.
    pub(super) fn read(self) -> Result<Option<Figure>, String> {
        let Self { unit, rounds, samples, .. } = self;
        match (self.median, self.best) {
            (Some(median), Some(best)) => Ok(Some(Figure {
                median: positive(&format!("median_{unit}"), median)?,
                interval: self.interval.map(interval).transpose()?,
                best: positive(&format!("best_{unit}"), best)?,
                rounds,
                samples,
            })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(format!("best_{unit} is missing: expected one beside median_{unit}")),
            (None, Some(_)) => Err(format!("median_{unit} is missing: expected one beside best_{unit}")),
        }
    }
}
