use super::*;
use proptest::prelude::{any, prop_assert_eq, proptest};

/// A word before and behind every array, which no pass may touch.
const GUARD: u64 = 0x6775_6172_6475_6172;

/// Numbers that differ from each other, the same for the same seed.
fn numbers(words: usize, seed: u64) -> Vec<u64> {
    let number = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed) >> 30) as f64;
    (0..words as u64).map(|at| number(at).to_bits()).collect()
}

/// An array at this many words beyond a line, with its guards.
struct Guarded {
    memory: Vec<u64>,
    start: usize,
    words: usize,
}

impl Guarded {
    fn new(content: &[u64], skew: usize) -> Self {
        let mut memory = vec![GUARD; content.len() + 32];
        let to_line = (memory.as_ptr().addr().wrapping_neg() % LINE) / 8;
        let start = to_line + 8 + skew % 8;
        memory[start..start + content.len()].copy_from_slice(content);
        Self { memory, start, words: content.len() }
    }

    fn array(&mut self) -> &mut [u64] {
        &mut self.memory[self.start..self.start + self.words]
    }

    fn is_guarded(&self) -> bool {
        let outside = self.memory[..self.start].iter().chain(&self.memory[self.start + self.words..]);
        outside.into_iter().all(|word| *word == GUARD)
    }
}

/// Returns what a pass of a variant leaves: the sum, the target, and whether it stayed inside.
fn result(
    kernel: Kernel,
    variant: Variant,
    words: usize,
    skews: [usize; 3],
    seed: u64,
) -> (u64, Vec<u64>, bool) {
    let mut arrays: Vec<Guarded> = (0..3)
        .map(|of| Guarded::new(&numbers(words, seed.wrapping_add((of as u64) << 40)), skews[of]))
        .collect();
    let [a, b, c] = &mut arrays[..] else { unreachable!("three were made") };
    let mut all = Arrays { a: a.array(), b: &[], c: &[] };
    if kernel.arrays() > 1 {
        all.b = b.array();
    }
    if kernel.arrays() > 2 {
        all.c = c.array();
    }
    let sum = pass(kernel, variant, &mut all, 3.0);
    let guarded = arrays.iter().all(Guarded::is_guarded);
    (sum, arrays[0].array().to_vec(), guarded)
}

/// Holds every variant of a kernel to the portable one.
fn check(kernel: Kernel, words: usize, skews: [usize; 3], seed: u64) {
    let plain = match kernel {
        Kernel::WriteNt => Kernel::Write,
        Kernel::CopyNt => Kernel::Copy,
        Kernel::TriadNt => Kernel::Triad,
        _ => kernel,
    };
    let expected = result(plain, Variant::PORTABLE, words, skews, seed);
    assert!(expected.2, "{kernel}, portable");
    for variant in Variant::all(kernel) {
        let found = result(kernel, variant, words, skews, seed);
        assert!(found == expected, "{kernel}, {variant}: {words} words, skews {skews:?}");
    }
}

#[test]
fn every_variant_does_what_the_portable_one_does() {
    // Nothing, less than a line, a line, less than a page, pages and their neighbours for one, two,
    // three and four streams.
    for words in [0, 1, 7, 8, 9, 511, 512, 513, 520, 1024, 1537, 2047, 2048, 2061, 6144, 9001] {
        for kernel in Kernel::ALL {
            check(kernel, words, [0, 0, 0], 1);
            check(kernel, words, [3, 5, 1], 2);
        }
    }
}

#[test]
fn every_pass_is_different_from_no_pass() {
    for kernel in Kernel::ALL {
        for variant in Variant::all(kernel) {
            let (sum, target, _) = result(kernel, variant, 6144, [0; 3], 1);
            assert!(sum != 0 || target != numbers(6144, 1), "{kernel}, {variant}");
        }
    }
}

#[test]
#[should_panic(expected = "the first source is not as long as the target")]
fn a_source_that_is_too_short_is_refused() {
    let mut a = [0; 16];
    pass(Kernel::Copy, Variant::PORTABLE, &mut Arrays { a: &mut a, b: &[1; 15], c: &[] }, 1.0);
}

#[test]
#[should_panic(expected = "portable cannot run write-NT")]
fn a_kernel_past_the_caches_needs_instructions_for_it() {
    pass(Kernel::WriteNt, Variant::PORTABLE, &mut Arrays { a: &mut [0; 16], b: &[], c: &[] }, 1.0);
}

#[test]
fn instructions_of_another_architecture_are_not_available() {
    for foreign in [Instructions::Neon, Instructions::Avx512] {
        let own = Instructions::ALL.into_iter().filter(|of| of.are_available()).count();
        assert!(own >= 1 && own < Instructions::ALL.len(), "{foreign:?}");
    }
    assert!(!(Instructions::Neon.are_available() && Instructions::Sse2.are_available()));
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(40))]

    #[test]
    fn any_size_at_any_alignment_is_passed_over(
        words in 0usize..9000, skews in any::<[u8; 3]>(), seed in any::<u64>(), kernel in 0..Kernel::ALL.len(),
    ) {
        check(Kernel::ALL[kernel], words, skews.map(usize::from), seed);
    }

    #[test]
    fn bytes_are_counted_as_they_are_touched(words in 0usize..20_000) {
        for kernel in Kernel::ALL {
            let mut target = vec![1; words];
            let source = vec![1; if kernel.arrays() > 1 { words } else { 0 }];
            let second = vec![1; if kernel.arrays() > 2 { words } else { 0 }];
            let variant = Variant::all(kernel).into_iter().next().unwrap_or(Variant::PORTABLE);
            if !variant.instructions.can(kernel) {
                continue;
            }
            pass(kernel, variant, &mut Arrays { a: &mut target, b: &source, c: &second }, 3.0);
            let changed = target.iter().filter(|word| **word != 1).count() as u64;
            let copied = matches!(kernel, Kernel::Copy | Kernel::CopyNt);
            let expected = if copied { 0 } else { kernel.traffic(words).written / 8 };
            prop_assert_eq!(changed, expected, "{}", kernel);
        }
    }
}
