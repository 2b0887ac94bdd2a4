//! The JSON twins of what is shown as text.
//!
//! Every document names its schema and version; units stand in the names of fields; what is not
//! known is left out. The machine file, the twin of `show`, is in the crate `source`, because it is
//! read back there.

pub mod acpi;
pub mod bandwidth;
pub mod c2c;
mod cells;
mod conditions;
pub mod emulation;
pub mod latency;
pub mod sweep;
pub mod timeline;
pub mod tune;
pub mod walk;
pub mod workload;
pub mod zones;

pub use acpi::acpi;
pub use bandwidth::bandwidth;
pub use c2c::c2c;
pub use latency::latency;
pub use tune::tune;

use serde::Serialize;

/// A document as JSON, indented, with a line end.
fn pretty(document: &impl Serialize) -> String {
    let mut text =
        serde_json::to_string_pretty(document).expect("the document holds no map with foreign keys");
    text.push('\n');
    text
}
