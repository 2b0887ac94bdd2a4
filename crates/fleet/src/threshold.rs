//! The threshold of the rule for outliers, by the size of the group and the error that is allowed.
//!
//! A fixed threshold is wrong in either direction: of eight healthy machines one exceeds 3.5 robust deviations in one group of
//! seven, of a thousand almost always. The table holds, for a group of `n` equal machines with normal noise, the number
//! of robust deviations (1.4826 times the median absolute deviation) that the slowest of them exceeds with the
//! probability of the column.
//!
//! # Source
//! `cargo xtask fleet-rates --calibrate` makes the table by [`crate::calibration`]; the factor and the form of the statistic
//! are those of Iglewicz and Hoaglin, "How to detect and handle outliers", 1993.

/// The probabilities of the columns.
pub(crate) const COLUMNS: [f64; 4] = [1e-2, 1e-3, 1e-4, 1e-5];

/// Sizes of groups, with a threshold for each column.
pub(crate) const TABLE: &[(u32, [f64; 4])] = &[
    (8, [6.67, 12.69, 23.46, 43.72]),
    (9, [6.94, 13.12, 23.98, 47.83]),
    (10, [5.95, 10.17, 16.72, 26.15]),
    (11, [6.12, 10.46, 16.96, 28.63]),
    (12, [5.51, 8.82, 13.62, 21.34]),
    (13, [5.61, 8.98, 14.02, 20.49]),
    (14, [5.22, 7.97, 11.58, 16.50]),
    (15, [5.30, 8.06, 11.77, 16.97]),
    (16, [5.01, 7.36, 10.41, 14.58]),
    (17, [5.07, 7.51, 10.68, 14.26]),
    (18, [4.86, 6.95, 9.59, 12.51]),
    (19, [4.90, 7.03, 9.72, 12.43]),
    (20, [4.74, 6.65, 9.01, 11.53]),
    (21, [4.77, 6.71, 8.91, 11.86]),
    (22, [4.65, 6.38, 8.46, 10.87]),
    (23, [4.67, 6.44, 8.48, 11.02]),
    (24, [4.57, 6.20, 8.14, 10.68]),
    (25, [4.59, 6.24, 8.06, 10.30]),
    (28, [4.45, 5.90, 7.53, 9.23]),
    (32, [4.38, 5.69, 7.12, 8.73]),
    (40, [4.26, 5.40, 6.59, 7.76]),
    (48, [4.20, 5.22, 6.29, 7.33]),
    (64, [4.13, 5.02, 5.91, 6.86]),
    (96, [4.14, 4.91, 5.64, 6.35]),
    (128, [4.12, 4.83, 5.50, 6.14]),
    (256, [4.13, 4.74, 5.29, 5.82]),
    (512, [4.21, 4.76, 5.26, 5.74]),
    (1024, [4.32, 4.83, 5.30, 5.74]),
    (4096, [4.59, 5.05, 5.48, 5.89]),
    (10000, [4.76, 5.21, 5.62, 6.01]),
];

/// The fewest machines of a group in which an outlier can be named.
pub const FEWEST: usize = 8;

/// How many robust deviations the slowest of `n` equal machines exceeds with this probability. Between the rows
/// in proportion to the logarithm of the size, between the columns to that of the probability; `None` below [`FEWEST`].
///
/// Beyond the last row the last step goes on, which is close for normal noise: the maximum of `n` values grows less than with
/// the logarithm of `n`. Beyond the last column likewise, in logarithms of both.
pub fn threshold(n: usize, probability: f64) -> Option<f64> {
    if n < FEWEST || probability <= 0.0 {
        return None;
    }
    let size = (n as f64).ln();
    let above = TABLE.iter().position(|(row, _)| *row as usize >= n).unwrap_or(TABLE.len() - 1).max(1);
    let ((low, a), (high, b)) = (TABLE[above - 1], TABLE[above]);
    let (low, high) = (f64::from(low).ln(), f64::from(high).ln());
    let share = (size - low) / (high - low);
    let row: [f64; 4] = std::array::from_fn(|at| a[at] + share * (b[at] - a[at]));
    Some(in_row(&row, probability))
}

/// The value of a row at a probability: on straight lines between logarithms.
fn in_row(row: &[f64; 4], probability: f64) -> f64 {
    let after = COLUMNS.iter().position(|column| *column <= probability).unwrap_or(COLUMNS.len() - 1).max(1);
    let (from, to) = (COLUMNS[after - 1].ln(), COLUMNS[after].ln());
    let share = (probability.ln() - from) / (to - from);
    let (low, high) = (row[after - 1].ln(), row[after].ln());
    (low + share * (high - low)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_are_met_and_what_is_between_lies_between() {
        for (n, row) in TABLE {
            for (column, value) in COLUMNS.into_iter().zip(row) {
                let found = threshold(*n as usize, column).unwrap();
                assert!((found - value).abs() < 1e-9, "{n} {column}: {found}");
            }
        }
        let between = threshold(30, 3e-3).unwrap();
        assert!(
            between > threshold(32, 1e-2).unwrap() && between < threshold(28, 1e-3).unwrap(),
            "{between}"
        );
        assert!(threshold(32, 1e-7).unwrap() > threshold(32, 1e-5).unwrap());
        assert!(threshold(100_000, 1e-2).unwrap() > threshold(10_000, 1e-2).unwrap());
        assert_eq!(threshold(7, 1e-2), None);
        assert_eq!(threshold(8, 0.0), None);
    }
}
