//! Output of STREAM.
//!
//! # Source
//! What `stream.c` prints, releases 5.6 to 5.10: a table below a line that begins with `Function`, with the best rate
//! of each of four kernels in MB/s of 10^6 bytes.

use super::text::{MOST_FIGURES, Read, in_range, note, number, table};
use super::{FigureTable, FigureUnit};

const BEGINNING: &str = "STREAM version";
const HEADS: &str = "Function";
const KERNELS: [&str; 4] = ["Copy:", "Scale:", "Add:", "Triad:"];
/// Lines that say how it was measured.
const NOTES: [&str; 6] = [
    "Array size",
    "Memory per array",
    "Number of Threads counted",
    "Each kernel will be executed",
    "Number of processors",
    "This system uses",
];

/// Whether an output can begin with this line.
pub(super) fn is_beginning(line: &str) -> bool {
    line.starts_with(BEGINNING) || is_heads(line)
}

fn is_heads(line: &str) -> bool {
    line.starts_with(HEADS) && line.contains("Rate") && line.contains("MB/s")
}

/// Reads a text with one table or several.
pub(super) fn parse(text: &str) -> Read {
    let mut read = Read::default();
    let mut notes = Vec::new();
    let mut figures: Option<Vec<(String, f64)>> = None;
    let finish = |figures: Option<Vec<(String, f64)>>, notes: Vec<String>, read: &mut Read| {
        let figures = figures.unwrap_or_default();
        read.add(table("bandwidth", notes, FigureTable::List { unit: FigureUnit::GbPerS, figures }));
    };
    for (at, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix(BEGINNING) {
            finish(figures.take(), std::mem::take(&mut notes), &mut read);
            read.version(rest.replace("$Revision:", "").trim_matches(|end: char| end == '$' || end == ' '));
        } else if is_heads(line) {
            if let Some(done) = figures.replace(Vec::new()) {
                finish(Some(done), std::mem::take(&mut notes), &mut read);
            }
        } else if NOTES.iter().any(|beginning| line.starts_with(beginning)) && figures.is_none() {
            note(&mut notes, line);
        } else if let Some(figures) = &mut figures {
            row(at, line, figures, &mut read);
        }
    }
    finish(figures, notes, &mut read);
    read
}

/// `Triad:          123121.2     0.039070     0.038986     0.039528`
fn row(at: usize, line: &str, figures: &mut Vec<(String, f64)>, read: &mut Read) {
    let Some(kernel) = KERNELS.iter().find(|kernel| line.starts_with(**kernel)) else { return };
    let rate = line[kernel.len()..].split_whitespace().next().and_then(number);
    match rate.and_then(|rate| in_range(rate / 1e3)) {
        Some(rate) if figures.len() < MOST_FIGURES => {
            figures.push((kernel.trim_end_matches(':').to_owned(), rate));
        }
        Some(_) => read.problem(at, "fewer rows", line),
        None => read.problem(at, "a rate in MB/s above 0", line),
    }
}
