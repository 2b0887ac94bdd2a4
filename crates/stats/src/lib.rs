//! Statistics: numbers in, numbers out. No clock, no I/O, nothing of nodewise.
//!
//! Every statistic names its source, and is held to values that SciPy and statsmodels gave:
//! `tests/reference` has them as data, with the script that makes them.
//!
//! # Modules
//!
//! - `location.rs` medians, quantiles, Hodges-Lehmann; `bootstrap.rs`, `order.rs`, `share.rs` intervals
//! - `signed_rank.rs`, `rank_sum.rs`, `aligned.rs` tests by ranks; `betting.rs` a test that holds at every
//!   look and under any noise; `multiple.rs` several tests at once
//! - `power.rs`, `detection.rs` the effects that a study can detect
//! - `distribution.rs` the normal and Student's t distribution; `direction.rs` which of two numbers is
//!   better; `random.rs` the generator and its seed
#![forbid(unsafe_code)]

pub mod aligned;
pub mod betting;
pub mod bootstrap;
pub mod detection;
pub mod direction;
pub mod distribution;
pub mod location;
pub mod multiple;
pub mod order;
pub mod power;
pub mod random;
pub mod rank_sum;
pub mod share;
pub mod signed_rank;

pub use bootstrap::{Bootstrap, Interval};
pub use direction::Direction;
pub use location::{geometric_mean, hodges_lehmann, mean, median, median_absolute_deviation, quantile};
pub use order::median_interval;
