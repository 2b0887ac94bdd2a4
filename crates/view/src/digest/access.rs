//! Latency and bandwidth in words.

/// A rate in GB/s (10^9), with as many digits as it needs: `30 GB/s`, `4.8 GB/s`.
pub fn gb_per_s(mb_per_s: u32) -> String {
    let rate = f64::from(mb_per_s) / 1000.0;
    let decimals = match rate {
        rate if rate.fract() == 0.0 || rate >= 100.0 => 0,
        rate if rate >= 1.0 => 1,
        _ => 3,
    };
    format!("{rate:.decimals$} GB/s")
}

#[cfg(test)]
mod tests {
    use super::gb_per_s;

    #[test]
    fn rates_are_written_in_powers_of_ten() {
        for (mb_per_s, text) in
            [(30_000, "30 GB/s"), (4_806, "4.8 GB/s"), (204_500, "204 GB/s"), (12, "0.012 GB/s")]
        {
            assert_eq!(gb_per_s(mb_per_s), text);
        }
    }
}
