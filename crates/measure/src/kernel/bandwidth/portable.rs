//! The kernels in plain Rust: the definition that the loops in assembly are held to, and
//! the code that runs their heads and tails.

use super::STRIDE_WORDS;

/// The sum of all words, wrapping: the same in whatever order it is made.
pub fn read(a: &[u64]) -> u64 {
    a.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

/// Writes the value to every word.
pub fn write(a: &mut [u64], value: f64) {
    a.fill(value.to_bits());
}

/// Copies.
pub fn copy(a: &mut [u64], b: &[u64]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a = *b;
    }
}

/// Multiplies each number.
pub fn scale(a: &mut [u64], b: &[u64], factor: f64) {
    for (a, b) in a.iter_mut().zip(b) {
        *a = (factor * f64::from_bits(*b)).to_bits();
    }
}

/// Adds two numbers each.
pub fn add(a: &mut [u64], b: &[u64], c: &[u64]) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = (f64::from_bits(*b) + f64::from_bits(*c)).to_bits();
    }
}

/// Adds to each number another one times the factor, rounded twice: no fused operation.
pub fn triad(a: &mut [u64], b: &[u64], c: &[u64], factor: f64) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = (f64::from_bits(*b) + factor * f64::from_bits(*c)).to_bits();
    }
}

/// Of each `parts` pages sums all but the last, and adds the bits of the value to each word of that.
/// A rest of less is treated as whole groups are, with pages as much shorter.
pub fn mix(a: &mut [u64], parts: usize, value: f64) -> u64 {
    let mut sum = 0_u64;
    for group in a.chunks_mut(parts * STRIDE_WORDS) {
        let (summed, updated) = group.split_at_mut(group.len() - group.len() / parts);
        sum = sum.wrapping_add(read(summed));
        for word in updated {
            *word = word.wrapping_add(value.to_bits());
        }
    }
    sum
}

/// How many of this many words a [`mix`] updates.
pub fn updated(words: usize, parts: usize) -> usize {
    let group = parts * STRIDE_WORDS;
    words / group * STRIDE_WORDS + words % group / parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_updates_as_many_words_as_are_counted() {
        for parts in 1..=3 {
            for words in [0, 1, 2, 5, 511, 512, 513, 1024, 1535, 1536, 1540, 5000] {
                let mut a = vec![7; words];
                let sum = mix(&mut a, parts, f64::from_bits(1));
                let changed = a.iter().filter(|word| **word == 8).count();
                assert_eq!(changed, updated(words, parts), "{words} words, {parts} parts");
                assert_eq!(sum, 7 * (words - changed) as u64);
            }
        }
    }

    #[test]
    fn the_operations_are_those_of_their_names() {
        let numbers = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        let (b, c) = (numbers(&[1.0, 2.0]), numbers(&[10.0, 20.0]));
        let check = |run: &dyn Fn(&mut [u64]), expected: &[f64]| {
            let mut a = vec![0; 2];
            run(&mut a);
            assert_eq!(a, numbers(expected));
        };
        check(&|a| write(a, 3.0), &[3.0, 3.0]);
        check(&|a| copy(a, &b), &[1.0, 2.0]);
        check(&|a| scale(a, &b, 3.0), &[3.0, 6.0]);
        check(&|a| add(a, &b, &c), &[11.0, 22.0]);
        check(&|a| triad(a, &b, &c, 3.0), &[31.0, 62.0]);
        assert_eq!(read(&[u64::MAX, 3]), 2);
    }
}
