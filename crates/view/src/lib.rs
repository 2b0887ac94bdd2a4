//! Showing it: values in, text out.
//!
//! Nothing in this crate prints, opens a file, asks the terminal or reads a clock: how wide the
//! text may be and whether it has colour comes in as a [`Style`], and what comes out is a `String`.
//!
//! # Modules
//!
//! - `digest.rs` what a reader wants to know, worked out once for every form; in `digest/` a file per
//!   subject, and what several share: numbers with their words (`digest/counts.rs`), changes
//!   (`digest/change.rs`), matrices (`digest/matrix.rs`), how a report ends (`digest/survey.rs`), where figures come
//!   from (`digest/provenance.rs`), an example of a server with nodes (`digest/example.rs`); the facts of two machines
//!   side by side, a file per kind (`digest/diff/`)
//! - `text.rs` text for people: in `text/` what each verb prints (for `show` a file per section in
//!   `text/show/`, for `tune` a file per part of its page in `text/tune/`), tables that fit and lines that
//!   wrap; `style.rs` width and colour
//! - `json.rs` the JSON twins: in `json/` a file per schema, what several share (`json/cells.rs`,
//!   `json/conditions.rs`, `json/published.rs`), peaks of memory (`json/peak.rs`), and reading them back (`json/reading.rs`,
//!   `json/fleet/reference.rs`)
//! - `csv.rs` measured matrices for spreadsheets; in `csv/` a file per measurement
//! - `metrics.rs` a diagnosis for Prometheus
//! - `plan.rs` scripts that survey many machines, from templates
//! - `report.rs` the results of several verbs as one HTML file; in `report/` the page of findings, the pages of
//!   a fleet, the HTML, pictures within a page, and documents that go in and come out
//! - `export.rs` a machine in the formats of other programs; in `export/` a file per format
//! - `svg.rs` pictures: in `svg/` a file per picture, and frames, fonts and writing; how sheets begin and end
//!   (`svg/sheet.rs`), all colours (`svg/palette.rs`) and, for its tests, how readers see them
//!   (`svg/palette/vision.rs`), matrices in colours (`svg/heatmap.rs`), axes and their points
//!   (`svg/plot.rs`), the curve of threads (`svg/threads.rs`), legends and colour bars (`svg/legend.rs`); in
//!   `svg/machine/` what a picture shows of a machine, folded and arranged
#![forbid(unsafe_code)]

pub mod csv;
pub mod digest;
pub mod export;
pub mod json;
pub mod metrics;
pub mod plan;
pub mod report;
pub mod style;
pub mod svg;
pub mod text;

pub use style::{Colour, Style};
