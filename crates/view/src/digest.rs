//! What a reader wants to know about a machine, worked out once for the text and for the picture.
//!
//! Pure functions from a [`Machine`](nodewise_machine::Machine) to small values; no words about
//! layout here, and nothing that the machine does not say.

pub mod access;
pub mod cache;
pub mod counts;
pub mod device;
pub mod distance;
pub mod node;
pub mod oddity;

pub use cache::CacheLevel;
pub use counts::Counts;
pub use device::{DevicesOfNode, ShownDevice};
pub use distance::Distances;
pub use node::NodeKind;
