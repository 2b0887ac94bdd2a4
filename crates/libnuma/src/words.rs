//! Bits in arrays of machine words, the form in which C and the kernel pass sets of nodes and CPUs.
//!
//! Nothing here can panic: a bit beyond the end is not set, and setting it does nothing.
#![forbid(unsafe_code)]

use core::ffi::c_ulong;

/// A word of a mask.
pub type Word = c_ulong;
/// Bits of a word.
pub const WORD_BITS: usize = Word::BITS as usize;

/// Words that hold this many bits.
pub const fn words_for(bits: usize) -> usize {
    bits.div_ceil(WORD_BITS)
}

const fn bit_of(bit: usize) -> Word {
    1 << (bit % WORD_BITS)
}

/// Whether a bit is set.
#[inline]
pub fn is_set(words: &[Word], bit: usize) -> bool {
    words.get(bit / WORD_BITS).is_some_and(|word| word & bit_of(bit) != 0)
}

/// Sets a bit.
#[inline]
pub fn set(words: &mut [Word], bit: usize) {
    if let Some(word) = words.get_mut(bit / WORD_BITS) {
        *word |= bit_of(bit);
    }
}

/// Sets those of 32 bits that are set in `bits`, the lowest at a multiple of 32; `None` when one has no place.
pub fn put(words: &mut [Word], first: usize, bits: u32) -> Option<()> {
    if bits != 0 {
        *words.get_mut(first / WORD_BITS)? |= Word::from(bits) << (first % WORD_BITS);
    }
    Some(())
}

/// Clears a bit.
#[inline]
pub fn clear(words: &mut [Word], bit: usize) {
    if let Some(word) = words.get_mut(bit / WORD_BITS) {
        *word &= !bit_of(bit);
    }
}

/// The bits of the last word that count in a mask of this size.
const fn tail(bits: usize) -> Word {
    match bits % WORD_BITS {
        0 => Word::MAX,
        rest => (1 << rest) - 1,
    }
}

/// The words of a mask of this size, the last without the bits behind its end.
pub fn trimmed(words: &[Word], bits: usize) -> impl Iterator<Item = Word> {
    let count = words_for(bits);
    let cut = move |(at, word): (usize, &Word)| if at + 1 == count { word & tail(bits) } else { *word };
    words.iter().take(count).enumerate().map(cut)
}

/// Sets the first `bits` bits and clears those behind them.
pub fn fill(words: &mut [Word], bits: usize) {
    words.fill(0);
    let whole = bits / WORD_BITS;
    for word in words.iter_mut().take(whole) {
        *word = Word::MAX;
    }
    if let Some(word) = words.get_mut(whole).filter(|_| bits % WORD_BITS > 0) {
        *word = tail(bits);
    }
}

/// How many of the first `bits` bits are set.
pub fn weight(words: &[Word], bits: usize) -> usize {
    let Some((last, whole)) = words.split_last() else { return 0 };
    let sum: usize = whole.iter().map(|word| word.count_ones() as usize).sum();
    sum + (last & tail(bits)).count_ones() as usize
}

/// Numbers of the set bits among the first `bits`, ascending.
pub fn ones(words: &[Word], bits: usize) -> impl Iterator<Item = usize> {
    trimmed(words, bits).enumerate().flat_map(|(at, word)| {
        let mut rest = word;
        core::iter::from_fn(move || {
            let bit = (rest != 0).then(|| at * WORD_BITS + rest.trailing_zeros() as usize);
            rest &= rest.wrapping_sub(1);
            bit
        })
    })
}

/// Copies as many words as fit and clears what is left.
pub fn copy(from: &[Word], to: &mut [Word]) {
    let (head, rest) = to.split_at_mut(from.len().min(to.len()));
    for (target, word) in head.iter_mut().zip(from) {
        *target = *word;
    }
    if !rest.is_empty() {
        rest.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use std::collections::BTreeSet;
    use std::vec::Vec;

    #[test]
    fn bits_beyond_the_end_are_not_there() {
        let mut words = [0; 2];
        set(&mut words, 128);
        set(&mut words, usize::MAX);
        clear(&mut words, usize::MAX);
        assert_eq!(words, [0, 0]);
        assert!(!is_set(&[Word::MAX], 64));
    }

    #[test]
    fn a_full_mask_ends_where_its_size_says() {
        for bits in [1, 63, 64, 65, 127, 128] {
            let mut words = std::vec![Word::MAX; words_for(bits)];
            fill(&mut words, bits);
            assert_eq!(weight(&words, bits), bits);
            assert_eq!(words.iter().map(|word| word.count_ones() as usize).sum::<usize>(), bits);
        }
    }

    proptest! {
        #[test]
        fn masks_are_sets(numbers in proptest::collection::btree_set(0usize..300, 0..40), bits in 1usize..300) {
            let mut words = std::vec![0; words_for(bits)];
            for number in &numbers {
                set(&mut words, *number);
            }
            let expected: BTreeSet<usize> = numbers.into_iter().filter(|number| *number < bits).collect();
            prop_assert_eq!(ones(&words, bits).collect::<BTreeSet<_>>(), expected.clone());
            prop_assert_eq!(weight(&words, bits), expected.len());
            for number in 0..310 {
                let inside = number < bits && expected.contains(&number);
                prop_assert_eq!(number < bits && is_set(&words, number), inside);
            }
        }

        #[test]
        fn copies_are_cut_or_filled_up(from in proptest::collection::vec(any::<Word>(), 0..5), length in 0usize..6) {
            let mut to = std::vec![Word::MAX; length];
            copy(&from, &mut to);
            let expected: Vec<Word> = (0..length).map(|at| from.get(at).copied().unwrap_or(0)).collect();
            prop_assert_eq!(to, expected);
        }
    }
}
