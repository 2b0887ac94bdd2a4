//! Which of two numbers is better.

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Times, events, memory in use.
    LowerIsBetter,
    HigherIsBetter,
}
