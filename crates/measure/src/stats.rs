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
//! | whether paired differences are centred on zero | [`signed_rank`] |
//! | whether two samples that are not paired lie at the same place | [`rank_sum`] |
//! | whether a mean is zero, looked at as often as one likes | [`anytime`] |
//! | several tests at once | [`multiple`] |
//! | what a study of this size can and cannot see | [`power`] |
//! | the normal and Student's t distribution | [`distribution`] |

pub mod anytime;
pub mod bootstrap;
pub mod distribution;
pub mod location;
pub mod multiple;
pub mod order;
pub mod power;
pub mod rank_sum;
pub mod signed_rank;

pub use bootstrap::{Bootstrap, Interval};
pub use location::{geometric_mean, hodges_lehmann, mean, median, median_absolute_deviation, quantile};
pub use order::median_interval;
