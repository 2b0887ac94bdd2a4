//! Pictures: values in, SVG out.
//!
//! [`machine_svg`] draws a machine, [`latency_svg`] what each way to memory costs. A picture is made
//! in three steps that can be looked at apart: what is drawn (folded where things are alike), where it is (a
//! tree of [`Frame`]s with every text measured, in which nothing overlaps), and the SVG text. The result
//! depends on nothing but the machine: the same bytes every time, no fonts or scripts from elsewhere, colours
//! for light and for dark viewers in one style sheet.

pub mod bandwidth;
pub mod c2c;
mod changes;
pub mod compare;
pub mod figures;
pub mod file;
pub mod fleet;
pub mod font;
pub mod frame;
mod heatmap;
pub mod io;
pub mod latency;
mod legend;
pub mod line_counts;
pub mod loaded;
pub mod machine;
pub mod maps;
mod paint;
mod palette;
pub mod perftest;
mod plot;
mod sheet;
pub mod sweep;
mod threads;
pub mod timeline;
pub mod tune;
pub(crate) mod writer;

pub use bandwidth::bandwidth_svg;
pub use c2c::c2c_svg;
pub use compare::compare_svg;
pub use figures::figures_svg;
pub use file::file_svg;
pub use fleet::fleet_svg;
pub use frame::{Frame, Label, Rect, Role, Tone};
pub use io::io_svg;
pub use latency::latency_svg;
pub use line_counts::line_counts_svg;
pub use loaded::loaded_svg;
pub use machine::{Caches, layout, machine_svg};
pub use maps::maps_svg;
pub use palette::Theme;
pub use perftest::perftest_svg;
pub use sweep::sweep_svg;
pub use timeline::timeline_svg;
pub use tune::tune_svg;
