//! The text of `nodewise bandwidth --file`.

use nodewise_measure::bandwidth::file::{FileReport, file_findings};

use crate::digest::file::{COUNTED, is_noise, matrices, method, sentence};
use crate::digest::survey::{proof, refusals};
use crate::style::Style;
use crate::text::line::Page;
use crate::text::{matrix, survey};

/// Writes bandwidths of files in memory.
pub fn file(report: &FileReport, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.heading("Files in memory", "tmpfs through the page cache, one thread");
    for of_operation in matrices(report) {
        matrix::write(&of_operation, &mut page);
    }
    let proof = proof(report.cells(), report.size);
    survey::how([Some(method(report)), Some(COUNTED.to_owned()), proof].into_iter().flatten(), &mut page);
    survey::not_measured(refusals(report.cells()), &mut page);
    let found = file_findings(report);
    let found = found.iter().map(|finding| (survey::ink(is_noise(finding)), sentence(finding)));
    survey::findings(found.collect(), &mut page);
    page.finish()
}
