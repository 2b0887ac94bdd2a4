//! A machine in the formats that other programs read: values in, text out.
//!
//! A fact that the machine does not give is left out of every format, never written as 0. Names that the machine gave are
//! escaped as each format wants it, so that a hostile one stays a name.
//!
//! # Modules
//!
//! - `hwloc.rs` hwloc's XML; in `hwloc/` the objects inside each other (`hwloc/tree.rs`) and their attributes
//!   (`hwloc/attributes.rs`), and measured values in place of the firmware's (`measured.rs`)
//! - `metrics.rs` the state of nodes for Prometheus; in `metrics/` every metric (`metrics/families.rs`)
//! - `dot.rs` and `mermaid.rs` diagrams for Graphviz and Mermaid, both of `diagram.rs`; `markdown.rs` tables
//! - `libvirt.rs` a domain of libvirt, made of `guest.rs`, a virtual machine like a machine
//! - `kubernetes.rs`, `nfd.rs` and `slurm.rs` the words of schedulers
//! - `udev.rs` rules that fill pools of huge pages
//! - `xml.rs` indented XML

mod diagram;
mod dot;
mod guest;
mod hwloc;
mod kubernetes;
mod libvirt;
mod markdown;
mod measured;
mod mermaid;
mod metrics;
mod nfd;
mod slurm;
mod udev;
mod xml;

pub use dot::dot;
pub use hwloc::hwloc;
pub use kubernetes::kubernetes;
pub use libvirt::libvirt;
pub use markdown::markdown;
pub use measured::MeasuredMemory;
pub use mermaid::mermaid;
pub use metrics::{Exposition, metrics};
pub use nfd::nfd;
pub use slurm::slurm;
pub use udev::udev;

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
