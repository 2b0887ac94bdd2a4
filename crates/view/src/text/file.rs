//! The text of `nodewise bandwidth --file`.

use nodewise_measure::bandwidth::file::FileReport;

use crate::digest::file::{ending, matrices};
use crate::style::Style;
use crate::text::line::Page;
use crate::text::{matrix, survey};

/// Writes bandwidths of files in memory.
pub fn file(report: &FileReport, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.heading("Files in memory", "tmpfs through the page cache, one thread");
    for of_operation in matrices(report) {
        matrix::write_measured(&of_operation, &mut page);
    }
    survey::write(&ending(report), &mut page);
    page.finish()
}
