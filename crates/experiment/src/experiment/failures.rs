//! When an arm that fails is given up: a program that never works at once, one that fails now and then
//! only when that is often.

/// An arm that has never worked is given up when it has failed this many times. The arms of a plan run
/// once per block, so these are different blocks; the baseline runs twice, and a program that does not
/// work at all is noticed before any placement has been tried.
pub const AT_FIRST: u32 = 2;

/// An arm that has worked is given up when it fails this many times in a row.
pub const IN_A_ROW: u32 = 3;

/// An arm is also given up when one run in this many failed ...
pub const ONE_IN: u32 = 5;

/// ... of at least this many runs.
pub const SHARE_OF: u32 = 10;

/// The failures of one arm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    runs: u32,
    failed: u32,
    in_a_row: u32,
}

impl Failures {
    /// Counts a run.
    pub fn count(&mut self, failed: bool) {
        self.runs += 1;
        self.failed += u32::from(failed);
        self.in_a_row = if failed { self.in_a_row + 1 } else { 0 };
    }

    /// Whether the arm has failed too often to go on with; asked after a failure.
    pub const fn are_too_many(&self) -> bool {
        let never_worked = self.failed == self.runs && self.failed >= AT_FIRST;
        let often = self.runs >= SHARE_OF && self.failed.saturating_mul(ONE_IN) >= self.runs;
        never_worked || self.in_a_row >= IN_A_ROW || often
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs, `x` for a failure; the number of the run after which the arm is given up.
    #[track_caller]
    fn check(runs: &str, expected: Option<usize>) {
        let mut failures = Failures::default();
        let mut given_up = runs.chars().map(|run| {
            failures.count(run == 'x');
            run == 'x' && failures.are_too_many()
        });
        assert_eq!(given_up.position(|given_up| given_up).map(|at| at + 1), expected, "{runs}");
    }

    #[test]
    fn what_never_works_is_given_up_after_two_runs_and_what_works_is_not() {
        check("xx", Some(2));
        check("x.xx", None);
        check(".xx", None);
        check(".xxx", Some(4));
    }

    #[test]
    fn a_few_failures_of_many_runs_are_forgiven_and_one_in_five_is_not() {
        check(&format!("{}x{}x.", ".".repeat(60), ".".repeat(67)), None);
        check("..x...x...", None);
        check("..x...x........x....x...", None);
        check("..x...x..x", Some(10));
        check("x....x....x", Some(11));
    }
}
