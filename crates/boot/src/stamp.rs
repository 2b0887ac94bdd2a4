//! Moments in the names of files.

use std::fmt;
use std::time::Duration;

/// A moment, to the second, in UTC: `20261121-134000`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(String);

impl Stamp {
    /// The moment so long after the beginning of 1970.
    pub fn since_1970(since: Duration) -> Self {
        let seconds = since.as_secs();
        let (days, second) = (seconds / 86_400, seconds % 86_400);
        let (year, month, day) = date(days);
        let (hour, minute) = (second / 3600, second / 60 % 60);
        Self(format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{:02}", second % 60))
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Year, month and day of a day counted from 1 January 1970: cycles of 400 years, which begin in March
/// so that the leap day is their last.
const fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (cycle, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (month_of_year, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (cycle * 400 + year + next_year, month_of_year, day - (153 * month + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_the_date_in_utc() {
        let check = |seconds, expected: &str| {
            assert_eq!(Stamp::since_1970(Duration::from_secs(seconds)).to_string(), expected)
        };
        check(0, "19700101-000000");
        check(951_827_696, "20000229-123456");
        check(1_795_268_400, "20261121-134000");
        check(4_107_542_399, "21000228-235959");
        check(4_107_542_400, "21000301-000000");
    }
}
