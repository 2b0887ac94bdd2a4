//! Passes over arrays from end to end: bandwidth.
//!
//! Plain loops, as a compiler makes them of a program's own. The operations and the way of counting
//! their bytes are those of McCalpin's STREAM, rewritten.

/// Operation on each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `a = b`.
    Copy,
    /// `a = b + c`.
    Add,
    /// `a = b + s * c`.
    Triad,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Copy, Self::Add, Self::Triad];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Add => "add",
            Self::Triad => "triad",
        }
    }

    /// The operation with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.name() == name)
    }

    /// Bytes of one element that the program reads and writes.
    ///
    /// Not what crosses the memory bus: a cache reads the line that is written before it is, unless
    /// the store avoids that, which adds 8 bytes here.
    pub const fn bytes_per_element(self) -> u64 {
        match self {
            Self::Copy => 16,
            Self::Add | Self::Triad => 24,
        }
    }

    /// Computes its result for one element.
    fn of(self, b: f64, c: f64, s: f64) -> f64 {
        match self {
            Self::Copy => b,
            Self::Add => b + c,
            Self::Triad => b + s * c,
        }
    }
}

/// The arrays of one thread.
pub struct Arrays {
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
    seed: u64,
}

impl Arrays {
    /// Makes and fills three arrays of this many elements; the calling thread touches all of their
    /// memory. `None` when the memory cannot be had.
    pub fn new(elements: usize, seed: u64) -> Option<Self> {
        let filled = |of: &dyn Fn(u64) -> f64| {
            let mut array = Vec::new();
            array.try_reserve_exact(elements).ok()?;
            array.extend((0..elements as u64).map(of));
            Some(array)
        };
        Some(Self {
            a: filled(&|_| -1.0)?,
            b: filled(&|at| first_of(at, seed))?,
            c: filled(&|at| second_of(at, seed))?,
            seed,
        })
    }

    /// Passes over the arrays once. This is what is timed.
    ///
    /// The factor `s` should differ from pass to pass, so that a pass that was left out shows.
    pub fn pass(&mut self, operation: Operation, s: f64) {
        match operation {
            Operation::Copy => copy(&mut self.a, &self.b),
            Operation::Add => add(&mut self.a, &self.b, &self.c),
            Operation::Triad => triad(&mut self.a, &self.b, &self.c, s),
        }
    }

    /// Whether every element is what this operation with this factor makes of what the arrays were
    /// filled with.
    pub fn is_right(&self, operation: Operation, s: f64) -> bool {
        (0u64..)
            .zip(&self.a)
            .all(|(at, a)| *a == operation.of(first_of(at, self.seed), second_of(at, self.seed), s))
    }
}

/// Whole numbers below 2^20, never all equal: memory full of zeros, or of one value, is special
/// to some CPUs and hypervisors.
fn first_of(at: u64, seed: u64) -> f64 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed) >> 44) as f64
}

fn second_of(at: u64, seed: u64) -> f64 {
    first_of(at ^ 0x5555, seed) + 1.0
}

// Loops of their own: inlined, the timed code would depend on its caller, and a pass could merge with the next.

#[inline(never)]
fn copy(a: &mut [f64], b: &[f64]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a = *b;
    }
}

#[inline(never)]
fn add(a: &mut [f64], b: &[f64], c: &[f64]) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = *b + *c;
    }
}

#[inline(never)]
fn triad(a: &mut [f64], b: &[f64], c: &[f64], s: f64) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = *b + s * *c;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    #[test]
    fn names_are_read_back() {
        for operation in Operation::ALL {
            assert_eq!(Operation::from_name(operation.name()), Some(operation));
        }
        assert_eq!(Operation::from_name("scale"), None);
    }

    #[test]
    fn arrays_that_cannot_be_had_are_refused() {
        assert!(Arrays::new(usize::MAX / 8, 1).is_none());
    }

    proptest! {
        #[test]
        fn passes_give_what_arithmetic_gives(elements in 1usize..3000, seed in any::<u64>(), s in 1.0..9.0f64) {
            for operation in Operation::ALL {
                let mut arrays = Arrays::new(elements, seed).unwrap();
                prop_assert!(!arrays.is_right(operation, s), "before the pass");
                arrays.pass(operation, s);
                prop_assert!(arrays.is_right(operation, s));
                let at = seed as usize % elements;
                arrays.a[at] = -arrays.a[at] - 1.0;
                prop_assert!(!arrays.is_right(operation, s), "one element is wrong");
            }
        }

        #[test]
        fn a_triad_with_another_factor_is_noticed(elements in 1usize..3000, seed in any::<u64>()) {
            let mut arrays = Arrays::new(elements, seed).unwrap();
            arrays.pass(Operation::Triad, 3.0);
            prop_assert!(!arrays.is_right(Operation::Triad, 4.0));
        }
    }
}
