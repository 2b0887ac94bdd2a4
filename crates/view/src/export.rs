//! A machine in the formats that other programs read: values in, text out.
//!
//! A fact that the machine does not give is left out of every format, never written as 0. Names that the machine gave are
//! escaped as each format wants it, so that a hostile one stays a name.
//!
//! # Modules
//!
//! - `hwloc.rs` hwloc's XML; in `hwloc/` the objects inside each other (`hwloc/tree.rs`) and their attributes
//!   (`hwloc/attributes.rs`)
//! - `metrics.rs` the state of nodes for Prometheus; in `metrics/` every metric (`metrics/families.rs`)
//! - `xml.rs` indented XML

mod hwloc;
mod metrics;
mod xml;

pub use hwloc::hwloc;
pub use metrics::{Exposition, metrics};

/// Why a format cannot hold a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotExpressible {
    /// The format, as its readers call it.
    pub format: &'static str,
    /// The fact that it needs and that the machine lacks.
    pub needs: &'static str,
}

impl std::fmt::Display for NotExpressible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} needs {}, which this machine does not say", self.format, self.needs)
    }
}

impl std::error::Error for NotExpressible {}
