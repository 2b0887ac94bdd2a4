//! One thread's part of the memory: arrays, passed over piece by piece, and looked at afterwards.

use super::too_small;
use crate::cell::Refusal;
use crate::kernel::bandwidth::{Arrays, Instructions, Kernel, Variant, pass, portable};
use crate::stop::Stop;

/// Words of whole pages for one, two, three and four streams: arrays and pieces are made of these.
pub const GROUP: usize = 12 * PAGE;

/// Words of a page of 4 KiB: parts of the memory that begin with whole pages have whole lines.
pub const PAGE: usize = 512;

/// Words of a piece: about 1 MiB, some 50 us, against 20 ns for a look at the clock.
const PIECE: usize = 21 * GROUP;

/// Words between the arrays, so that they do not begin at the same place of a page: a processor takes
/// a load for one that depends on a recent store when the last 12 bits of their addresses are the
/// same. Whole lines, and no divisor of a page.
const SKEW: usize = 168;

/// Pieces that the processor's own loop is given at once, where there are that many: about 256 MiB. A
/// processor that sees from the start that a string is longer than its caches writes past them: on a
/// Zen 5 with 32 MiB of last-level cache `rep stosq` fills 29 GB/s in strings of 16 MiB, 39.5 in those of
/// 64 MiB and 40.7 in those of 256 MiB.
const STRING: usize = 260;

/// Pieces that are written past the caches at once: about 8 MiB. Each pass ends with a fence, at which the
/// processor waits for all that is on its way to memory.
const STREAMED: usize = 8;

/// How many words of a piece are looked at.
const LOOKED_AT: usize = 61;

/// The arrays of one thread and what was done with them.
#[derive(Debug)]
pub struct Work<'a> {
    kernel: Kernel,
    a: &'a mut [u64],
    b: &'a [u64],
    c: &'a [u64],
    pieces: Vec<Piece>,
    /// Which piece is next, and how many were done.
    next: usize,
    done: u64,
}

/// Operations done on a piece.
#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    /// The last factor; `None` before the first.
    factor: Option<f64>,
    /// The sum of the bits of all factors.
    added: u64,
    /// The sum that the last pass returned.
    sum: u64,
}

impl<'a> Work<'a> {
    /// Makes arrays of a part and fills them.
    ///
    /// # Errors
    /// A part that is too small for one group each, and an end of the measurement meanwhile.
    pub fn new(part: &'a mut [u64], kernel: Kernel, stop: &Stop) -> Result<Self, Refusal> {
        let arrays = kernel.arrays();
        let room = (part.len() / arrays).checked_sub(SKEW).ok_or_else(too_small)?;
        let words = room / GROUP * GROUP;
        if words == 0 {
            return Err(too_small());
        }
        let (a, rest) = part.split_at_mut(words + SKEW);
        let (b, c) = rest.split_at_mut(if arrays > 1 { words + SKEW } else { 0 });
        let of = |array: &'a mut [u64], wanted: bool| &mut array[..if wanted { words } else { 0 }];
        let (a, b, c) = (of(a, true), of(b, arrays > 1), of(c, arrays > 2));
        for (number, array) in [&mut *a, &mut *b, &mut *c].into_iter().enumerate() {
            for (start, part) in (0..).step_by(PIECE).zip(array.chunks_mut(PIECE)) {
                stop.check()?;
                for (at, word) in (start..).zip(part) {
                    *word = content(number, at);
                }
            }
        }
        let pieces = vec![Piece::default(); words.div_ceil(PIECE)];
        Ok(Self { kernel, a, b, c, pieces, next: 0, done: 0 })
    }

    /// Passes over the next pieces ([`Self::at_once`]); how many words these have.
    pub fn step(&mut self, variant: Variant) -> u64 {
        self.step_over(variant, self.at_once(variant), usize::MAX, || ())
    }

    /// How many of the next pieces one pass is over: one, or more where a pass has to be long to be fast. No
    /// short one is left at the end.
    fn at_once(&self, variant: Variant) -> usize {
        let wanted = match variant.instructions {
            Instructions::String => STRING,
            _ if self.kernel.is_non_temporal() => STREAMED,
            _ => 1,
        };
        let left = self.pieces.len() - self.next;
        if left < 2 * wanted { left } else { wanted }
    }

    /// Passes over the next piece in bursts of this many words with a pause after each; whole groups of pages
    /// of the kernel make a burst ([`burst`]).
    pub fn step_in_bursts(&mut self, variant: Variant, burst: usize, pause: impl FnMut()) -> u64 {
        self.step_over(variant, 1, burst, pause)
    }

    fn step_over(&mut self, variant: Variant, pieces: usize, burst: usize, mut pause: impl FnMut()) -> u64 {
        let last = self.next + pieces - 1;
        let range = self.range(self.next).start..self.range(last).end;
        let words = range.len() as u64;
        let factor = factor(self.done);
        let mut sum = 0_u64;
        for start in range.clone().step_by(burst.max(1)) {
            let part = start..range.end.min(start.saturating_add(burst));
            let source = |array: &'a [u64]| array.get(part.clone()).unwrap_or_default();
            let (b, c) = (source(self.b), source(self.c));
            let a = &mut self.a[part];
            sum = sum.wrapping_add(pass(self.kernel, variant, &mut Arrays { a, b, c }, factor));
            pause();
        }
        for piece in &mut self.pieces[self.next..=last] {
            let added = piece.added.wrapping_add(factor.to_bits());
            *piece = Piece { factor: Some(factor), added, sum };
        }
        self.done += 1;
        self.next = (last + 1) % self.pieces.len();
        words
    }

    fn range(&self, piece: usize) -> std::ops::Range<usize> {
        piece * PIECE..self.a.len().min((piece + 1) * PIECE)
    }

    /// Looks at some words of every piece, and at the sum of one.
    ///
    /// # Errors
    /// What is not as it should be.
    pub fn check(&mut self) -> Result<(), String> {
        for number in 0..self.pieces.len() {
            let Piece { factor: Some(factor), added, .. } = self.pieces[number] else { continue };
            let range = self.range(number);
            for at in range.clone().step_by(range.len().div_ceil(LOOKED_AT)) {
                let expected = self.expected(at, range.clone(), factor, added);
                if self.a[at] != expected {
                    return Err(format!(
                        "word {at} of {} is not what {} makes of it",
                        self.a.len(),
                        self.kernel
                    ));
                }
            }
        }
        self.check_sum()
    }

    /// Returns the expected value of a word of `a`.
    fn expected(&self, at: usize, range: std::ops::Range<usize>, factor: f64, added: u64) -> u64 {
        let mut word = [content(0, at)];
        let (b, c) = ([content(1, at)], [content(2, at)]);
        match self.kernel {
            Kernel::Read => {}
            Kernel::Write | Kernel::WriteNt => portable::write(&mut word, factor),
            Kernel::Copy | Kernel::CopyNt => portable::copy(&mut word, &b),
            Kernel::Scale => portable::scale(&mut word, &b, factor),
            Kernel::Add => portable::add(&mut word, &b, &c),
            Kernel::Triad | Kernel::TriadNt => portable::triad(&mut word, &b, &c, factor),
            Kernel::Mix3To1 | Kernel::Mix2To1 | Kernel::Mix1To1 => {
                let parts = self.kernel.mix().expect("a mix has parts");
                // Pieces are whole groups of pages, and the last is updated.
                let page = (at - range.start) / 512;
                if page % parts == parts - 1 {
                    word[0] = word[0].wrapping_add(added);
                }
            }
        }
        word[0]
    }

    /// The piece that was done last.
    fn last(&self) -> usize {
        (self.next + self.pieces.len() - 1) % self.pieces.len()
    }

    /// The sum of the piece that was done last, where the kernel makes one.
    fn check_sum(&mut self) -> Result<(), String> {
        let last = self.last();
        let Piece { factor: Some(_), sum, .. } = self.pieces[last] else { return Ok(()) };
        let range = self.range(last);
        let expected = match self.kernel.mix() {
            // What is read is never updated, so another pass finds the same.
            Some(parts) => portable::mix(&mut self.a[range], parts, 0.0),
            None if self.kernel == Kernel::Read => portable::read(&self.a[range]),
            None => return Ok(()),
        };
        if sum == expected { Ok(()) } else { Err(format!("{} found another sum", self.kernel)) }
    }
}

/// Pages of 4 KiB in a burst of a kernel: four, for as many streams, or three where a mix has groups of
/// three.
pub fn burst_pages(kernel: Kernel) -> usize {
    let parts = kernel.mix().unwrap_or(1);
    4 / parts * parts
}

/// Words in a burst of a kernel.
pub fn burst(kernel: Kernel) -> usize {
    burst_pages(kernel) * PAGE
}

/// Returns the initial word of an array: whole numbers, never all equal, for memory full of one value
/// is special to some processors and hypervisors.
fn content(array: usize, at: usize) -> u64 {
    let mixed = (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add((array as u64) << 56);
    ((mixed >> 40) as f64).to_bits()
}

/// Another factor for each piece that is done, so that one that was left out shows.
fn factor(done: u64) -> f64 {
    (done % 8191 + 3) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kernel: Kernel, words: usize, steps: usize) {
        let mut part = vec![9; words];
        let mut work = Work::new(&mut part, kernel, &Stop::NEVER).unwrap();
        let variants = Variant::all(kernel);
        let done: u64 = variants.iter().cycle().take(steps).map(|variant| work.step(*variant)).sum();
        assert!(done > 0);
        assert_eq!(work.check(), Ok(()), "{kernel}");
    }

    #[test]
    fn what_was_done_is_found_right() {
        for kernel in Kernel::ALL {
            check(kernel, 3 * (GROUP + SKEW), 1);
            check(kernel, 3 * (2 * PIECE + GROUP + SKEW) + 7, 8);
        }
    }

    #[test]
    fn passes_that_must_be_long_are_and_none_is_short() {
        let check = |kernel, pieces: usize, expected: &[usize]| {
            let wanted = |of: &Variant| kernel != Kernel::Write || of.instructions == Instructions::String;
            let Some(variant) = Variant::all(kernel).into_iter().find(wanted) else { return };
            let mut part = vec![9; kernel.arrays() * (pieces * PIECE + SKEW)];
            let mut work = Work::new(&mut part, kernel, &Stop::NEVER).unwrap();
            let words: Vec<u64> = expected.iter().map(|_| work.step(variant)).collect();
            let expected: Vec<u64> = expected.iter().map(|pieces| (pieces * PIECE) as u64).collect();
            assert_eq!(words, expected, "{pieces} pieces");
            assert_eq!((work.next, work.check()), (0, Ok(())));
        };
        check(Kernel::Read, 2, &[1, 1]);
        check(Kernel::Write, 1, &[1]);
        check(Kernel::Write, 3, &[3]);
        for kernel in [Kernel::WriteNt, Kernel::CopyNt, Kernel::TriadNt] {
            check(kernel, 1, &[1]);
            check(kernel, 2 * STREAMED - 1, &[2 * STREAMED - 1]);
            check(kernel, 2 * STREAMED + 1, &[STREAMED, STREAMED + 1]);
        }
    }

    #[test]
    fn bursts_with_pauses_do_the_same_as_whole_pieces() {
        for kernel in Kernel::ALL {
            assert_eq!(GROUP % burst(kernel), 0, "{kernel}");
            let mut part = vec![9; 3 * (2 * PIECE + GROUP + SKEW)];
            let mut work = Work::new(&mut part, kernel, &Stop::NEVER).unwrap();
            let (mut pauses, mut words) = (0, 0);
            for variant in Variant::all(kernel).iter().cycle().take(5) {
                words += work.step_in_bursts(*variant, burst(kernel), || pauses += 1);
            }
            assert_eq!(words, pauses * burst(kernel) as u64, "{kernel}");
            assert_eq!(work.check(), Ok(()), "{kernel}");
        }
    }

    #[test]
    fn a_step_that_was_left_out_is_noticed() {
        for kernel in [Kernel::Write, Kernel::Scale, Kernel::Triad, Kernel::Mix1To1] {
            let mut part = vec![9; 3 * (3 * PIECE + SKEW)];
            let mut work = Work::new(&mut part, kernel, &Stop::NEVER).unwrap();
            for _ in 0..5 {
                work.step(Variant::PORTABLE);
            }
            // As if the last step had touched nothing: the piece is as the step before left it.
            let range = work.range(work.last());
            for at in range {
                work.a[at] = content(0, at);
            }
            let wrong = work.check().unwrap_err();
            assert!(wrong.contains(&format!("is not what {kernel} makes of it")), "{wrong}");
        }
    }

    #[test]
    fn a_sum_of_something_else_is_noticed() {
        let mut part = vec![9; PIECE + SKEW];
        let mut work = Work::new(&mut part, Kernel::Read, &Stop::NEVER).unwrap();
        work.step(Variant::PORTABLE);
        work.pieces[0].sum ^= 1;
        assert_eq!(work.check(), Err("read found another sum".to_owned()));
    }

    #[test]
    fn a_part_that_is_too_small_makes_no_arrays() {
        for (kernel, least) in [(Kernel::Read, 1), (Kernel::Copy, 2), (Kernel::Triad, 3)] {
            let mut part = vec![9; least * (GROUP + SKEW)];
            assert!(Work::new(&mut part, kernel, &Stop::NEVER).is_ok());
            assert!(Work::new(&mut part[1..], kernel, &Stop::NEVER).is_err());
            assert!(Work::new(&mut [], kernel, &Stop::NEVER).is_err());
        }
    }
}
