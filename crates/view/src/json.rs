//! The JSON twins of what is shown as text.
//!
//! Every document names its schema and version; units stand in the names of fields; what is not
//! known is left out. The machine file, the twin of `show`, is in the crate `source`, because it is
//! read back there.

pub mod tune;
pub mod walk;
pub mod workload;
pub mod zones;

pub use tune::tune;
