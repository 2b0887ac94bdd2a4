//! Sizes that were counted or estimated, and changes between them.

use std::ops::Add;

use nodewise_machine::Bytes;

/// A size that was counted, or estimated with the ends of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Estimate {
    pub size: Bytes,
    pub low: Bytes,
    pub high: Bytes,
}

impl Estimate {
    /// A size that was counted.
    pub const fn exact(size: Bytes) -> Self {
        Self { size, low: size, high: size }
    }

    /// Whether the size was counted.
    pub fn is_exact(&self) -> bool {
        self.low == self.high
    }
}

/// The sum; its ends are further apart than those of 95 %.
impl Add for Estimate {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { size: self.size + other.size, low: self.low + other.low, high: self.high + other.high }
    }
}

/// A change between two sizes, with its ends where one of them is an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SizeChange {
    pub change: i128,
    pub low: i128,
    pub high: i128,
}

impl SizeChange {
    /// The change from one size to another.
    pub fn between(before: Estimate, after: Estimate) -> Self {
        let minus = |one: Bytes, other: Bytes| i128::from(one.get()) - i128::from(other.get());
        Self {
            change: minus(after.size, before.size),
            low: minus(after.low, before.high),
            high: minus(after.high, before.low),
        }
    }

    /// Whether both sizes were counted.
    pub const fn is_exact(&self) -> bool {
        self.low == self.high
    }

    /// Its ends where it is an estimate.
    pub fn ends(self) -> Option<(i128, i128)> {
        (!self.is_exact()).then_some((self.low, self.high))
    }

    /// Whether there may be no change: none was counted, or the intervals of both sizes overlap.
    pub const fn may_be_none(&self) -> bool {
        self.low <= 0 && self.high >= 0
    }

    /// Its size, and 0 where there may be none.
    pub const fn weight(&self) -> u128 {
        if self.may_be_none() { 0 } else { self.change.unsigned_abs() }
    }
}

impl Add for SizeChange {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { change: self.change + other.change, low: self.low + other.low, high: self.high + other.high }
    }
}

/// A change in words: `+1.5 GiB`, `-12 KiB`, `0`.
pub fn signed(change: i128) -> String {
    let size = magnitude(change);
    match change {
        0 => "0".to_owned(),
        1.. => format!("+{size}"),
        _ => format!("-{size}"),
    }
}

/// A change without its sign.
pub fn magnitude(change: i128) -> Bytes {
    Bytes::new(u64::try_from(change.unsigned_abs()).unwrap_or(u64::MAX))
}

/// A change as a number that readers of JSON can hold.
pub fn in_bytes(change: i128) -> i64 {
    i64::try_from(change).unwrap_or(if change < 0 { i64::MIN } else { i64::MAX })
}
