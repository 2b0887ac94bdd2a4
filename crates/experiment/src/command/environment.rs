//! The same environment size in every arm.
//!
//! The size of the environment moves the stack, and with it how data falls into cache lines and
//! pages; that alone has made programs faster or slower by more than the effects that are looked for.
//!
//! # Source
//! Mytkowicz, Diwan, Hauswirth and Sweeney, "Producing wrong data without doing anything obviously
//! wrong!", ASPLOS 2009.

use std::collections::BTreeMap;

/// The variable that fills the difference up.
pub const VARIABLE: &str = "NODEWISE_PADDING";

/// Variables that set the number of threads of programs: of OpenMP, BLAS libraries, Rayon, Go, Julia and
/// NumExpr.
pub const THREAD_VARIABLES: [&str; 7] = [
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "GOMAXPROCS",
    "JULIA_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
];

/// How much the arms of a plan add to the environment at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Padding {
    largest: usize,
}

impl Padding {
    /// Computes the padding that makes these additions equally large.
    pub fn over<'a>(additions: impl Iterator<Item = &'a BTreeMap<String, String>>) -> Self {
        Self { largest: additions.map(size).max().unwrap_or(0) }
    }

    /// The variable that brings one of them to the size of the largest.
    pub fn variable(&self, addition: &BTreeMap<String, String>) -> (&'static str, String) {
        (VARIABLE, "x".repeat(self.largest.saturating_sub(size(addition))))
    }
}

/// The bytes that variables take at the top of the stack: each is a text `name=value` with a NUL at
/// its end, and a pointer to it.
fn size(variables: &BTreeMap<String, String>) -> usize {
    variables.iter().map(|(name, value)| name.len() + value.len() + 2 + size_of::<usize>()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn every_arm_has_an_environment_of_the_same_size(
            arms in prop::collection::vec(prop::collection::btree_map("[A-Z]{1,8}", "[ -~]{0,20}", 0..5), 1..6),
        ) {
            let padding = Padding::over(arms.iter());
            let sizes: Vec<usize> = arms
                .iter()
                .map(|arm| {
                    let (name, value) = padding.variable(arm);
                    let mut all = arm.clone();
                    all.insert(name.to_owned(), value);
                    size(&all)
                })
                .collect();
            prop_assert_eq!(&sizes, &vec![sizes[0]; sizes.len()]);
        }
    }
}
