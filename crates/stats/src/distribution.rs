//! The normal and Student's t distribution, to about 14 digits.

use std::f64::consts::{FRAC_1_PI, PI, SQRT_2};

/// The probability that a standard normal variable is at most `x`.
///
/// # Source
/// Near the middle the series of Marsaglia, "Evaluating the normal distribution", J. Stat. Soft.
/// 11(4), 2004; in the tails, where that loses digits, the continued fraction of Laplace
/// (Abramowitz and Stegun 26.2.14).
pub fn normal_cdf(x: f64) -> f64 {
    if x > 3.0 {
        return 1.0 - normal_tail(x);
    }
    if x < -3.0 {
        return normal_tail(-x);
    }
    let (mut sum, mut term, mut odd) = (x, x, 1.0);
    while term.abs() > 1e-17 * sum.abs() {
        odd += 2.0;
        term *= x * x / odd;
        sum += term;
    }
    0.5 + sum * normal_density(x)
}

fn normal_density(x: f64) -> f64 {
    (-x * x / 2.0).exp() / (SQRT_2 * PI.sqrt())
}

/// The probability above `x`, for `x` above 3.
fn normal_tail(x: f64) -> f64 {
    let fraction = (1..=60).rev().fold(0.0, |below, k| f64::from(k) / (x + below));
    normal_density(x) / (x + fraction)
}

/// The value that a standard normal variable does not exceed with probability `p`; infinite for 0
/// and 1.
pub fn normal_quantile(p: f64) -> f64 {
    quantile_by_halving(p, normal_cdf)
}

/// The probability that Student's t with `degrees` of freedom is at most `t`.
///
/// # Source
/// Abramowitz and Stegun 26.7.3 and 26.7.4: a finite sum for whole degrees of freedom.
///
/// # Panics
/// Without a degree of freedom.
pub fn student_cdf(t: f64, degrees: u32) -> f64 {
    assert!(degrees > 0, "Student's t has at least one degree of freedom");
    let angle = (t / f64::from(degrees).sqrt()).atan();
    let cosine_squared = angle.cos() * angle.cos();
    // Terms 1, 2/3 c^2, (2*4)/(3*5) c^4 ... for odd degrees and 1, 1/2 c^2, (1*3)/(2*4) c^4 ... for
    // even ones.
    let odd = degrees % 2 == 1;
    let (mut sum, mut term, mut n) = (0.0, 1.0, if odd { 3 } else { 2 });
    while n <= degrees {
        sum += term;
        let (above, below) = (f64::from(n - 1), f64::from(n));
        term *= cosine_squared * above / below;
        n += 2;
    }
    let both_sides =
        if odd { 2.0 * FRAC_1_PI * (angle + angle.sin() * angle.cos() * sum) } else { angle.sin() * sum };
    0.5 + both_sides / 2.0
}

/// The value that Student's t with `degrees` of freedom does not exceed with probability `p`;
/// infinite for 0 and 1.
///
/// # Panics
/// Without a degree of freedom.
pub fn student_quantile(p: f64, degrees: u32) -> f64 {
    quantile_by_halving(p, |t| student_cdf(t, degrees))
}

/// The inverse of a continuous distribution symmetric around zero.
///
/// Halving is slow beside the usual rational approximations and needs none of their tables; it is
/// called a few times per result.
fn quantile_by_halving(p: f64, cdf: impl Fn(f64) -> f64) -> f64 {
    if p.is_nan() {
        return f64::NAN;
    }
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    let tail = p.min(1.0 - p);
    let mut low = -1.0;
    while cdf(low) > tail {
        low *= 2.0;
    }
    let mut high = 0.0;
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if cdf(middle) > tail { high = middle } else { low = middle }
    }
    let found = (low + high) / 2.0;
    if p < 0.5 { found } else { -found }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, proptest};

    fn check(value: f64, expected: f64, digits: f64) {
        let error = (value - expected).abs() / expected.abs().max(1e-300);
        assert!(error < digits, "{value} is not {expected}");
    }

    // scipy.stats.norm.cdf(x), SciPy 1.17.1
    #[test]
    fn normal_probabilities_are_scipys() {
        for (x, expected) in NORMAL {
            check(normal_cdf(x), expected, 1e-12);
        }
    }

    // scipy.stats.t.cdf(t, degrees), SciPy 1.17.1
    #[test]
    fn student_probabilities_are_scipys() {
        for (t, degrees, expected) in STUDENT {
            check(student_cdf(t, degrees), expected, 1e-11);
        }
    }

    // scipy.stats.norm.ppf(p) and scipy.stats.t.ppf(p, degrees), SciPy 1.17.1
    #[test]
    fn quantiles_are_scipys() {
        for (p, expected) in NORMAL_QUANTILES {
            check(normal_quantile(p), expected, 1e-10);
        }
        for (p, degrees, expected) in STUDENT_QUANTILES {
            check(student_quantile(p, degrees), expected, 1e-9);
        }
    }

    #[test]
    fn quantiles_of_certainty_are_infinite() {
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
        check(student_cdf(f64::INFINITY, 9), 1.0, 1e-15);
    }

    proptest! {
        #[test]
        fn a_quantile_is_the_inverse(p in 1e-9..1.0f64, degrees in 1u32..200) {
            prop_assert!((normal_cdf(normal_quantile(p)) - p).abs() < 1e-12);
            prop_assert!((student_cdf(student_quantile(p, degrees), degrees) - p).abs() < 1e-11);
        }
    }

    const NORMAL: [(f64, f64); 8] = [
        (-8.0, 6.22096057427174e-16),
        (-5.0, 2.866515718791933e-07),
        (-3.0, 0.0013498980316300933),
        (-1.96, 0.024997895148220435),
        (0.0, 0.5),
        (0.5, 0.6914624612740131),
        (2.5, 0.9937903346742238),
        (3.5, 0.9997673709209645),
    ];
    const STUDENT: [(f64, u32, f64); 8] = [
        (1.0, 1, 0.75),
        (-2.0, 2, 0.09175170953613698),
        (2.571, 5, 0.9750126826580743),
        (-2.262, 9, 0.025006422751227313),
        (1.5, 10, 0.9177463367772799),
        (0.3, 19, 0.6162826698303683),
        (-4.0, 19, 0.0003830961686143225),
        (2.0, 120, 0.9761207363298358),
    ];
    const NORMAL_QUANTILES: [(f64, f64); 4] = [
        (1e-06, -4.753424308822899),
        (0.025, -1.9599639845400545),
        (0.8, 0.8416212335729143),
        (0.9975, 2.807033768343811),
    ];
    const STUDENT_QUANTILES: [(f64, u32, f64); 5] = [
        (0.025, 5, -2.5705818356363155),
        (0.025, 9, -2.2621571627982053),
        (0.975, 19, 2.0930240544083087),
        (0.01, 30, -2.4572615424005915),
        (0.9, 1, 3.0776835371752544),
    ];
}
