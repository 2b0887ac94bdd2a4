//! Words: the `unsigned long` arrays that system calls take and give.
//!
//! The kernel numbers bits inside native words, so on a 64-bit machine word 0 holds ids 0-63 and
//! on a 32-bit one ids 0-31. Working in `usize`-wide words makes both right on any byte order.

use std::ffi::c_ulong;

use super::IdSet;
use crate::id::Id;

/// Bits in an `unsigned long` here.
pub const BITS_PER_WORD: usize = c_ulong::BITS as usize;

impl<I: Id> IdSet<I> {
    /// The set as native words, at least `bits` bits wide and never narrower than its last member.
    pub fn to_words(&self, bits: usize) -> Vec<c_ulong> {
        let needed = self.last().map_or(0, |last| last.number() as usize + 1);
        let mut words = vec![0; needed.max(bits).div_ceil(BITS_PER_WORD)];
        for id in self {
            let number = id.number() as usize;
            words[number / BITS_PER_WORD] |= 1 << (number % BITS_PER_WORD);
        }
        words
    }

    /// The set that native words stand for. Bits at or above the limit of the kind are left out:
    /// the kernel never sets them.
    pub fn from_native_words(words: &[c_ulong]) -> Self {
        let mut set = Self::new();
        for (index, word) in words.iter().enumerate() {
            // From one set bit to the next: masks are wide and nearly empty.
            let mut rest = *word;
            while rest != 0 {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                match u32::try_from(index * BITS_PER_WORD + bit) {
                    Ok(number) if number < I::LIMIT => set.insert(I::new(number)),
                    _ => continue,
                };
            }
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::BITS_PER_WORD;
    use crate::set::tests::any_set;
    use crate::{NodeId, NodeSet};
    use proptest::prelude::{prop_assert_eq, proptest};

    #[test]
    fn words_are_as_wide_as_asked_or_as_needed() {
        assert_eq!(NodeSet::new().to_words(1024).len(), 1024 / BITS_PER_WORD);
        assert_eq!(NodeSet::from([200]).to_words(0).len(), 200 / BITS_PER_WORD + 1);
        assert_eq!(NodeSet::from([1, 3]).to_words(4), [0b1010]);
    }

    proptest! {
        #[test]
        fn words_give_the_set_back(set in any_set::<NodeId>(), bits in 0usize..2048) {
            prop_assert_eq!(NodeSet::from_native_words(&set.to_words(bits)), set);
        }
    }
}
