//! Statistics: numbers in, numbers out. No clock, no I/O, nothing of nodewise.
//!
//! Every statistic names its source, and is held to values that SciPy and statsmodels gave:
//! `tests/reference` has them as data, with the script that makes them.
//!
//! | to find | look in |
//! |---|---|
//! | median, quantiles, spread, geometric mean, Hodges-Lehmann | [`location`] |
//! | an interval for any of them | [`bootstrap`] |
//! | an interval for a median of few values | [`order`] |
//! | an interval for a share | [`share`] |
//! | whether one run of each block differs from the others of it | [`aligned`] |
//! | whether paired differences are centred on zero | [`signed_rank`] |
//! | whether two samples that are not paired lie at the same place | [`rank_sum`] |
//! | whether a median is zero, whatever the noise and however often one looks | [`betting`] |
//! | several tests at once | [`multiple`] |
//! | which shift bets would find, and in how many rounds | [`detection`] |
//! | what a study of this size can and cannot see | [`power`] |
//! | the normal and Student's t distribution | [`distribution`] |
//! | seeded random numbers | [`random`] |
//! | which of two numbers is better | [`direction`] |
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
