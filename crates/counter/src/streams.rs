//! Lines that are read one after the other, as a prefetcher of hardware would see them coming.
//!
//! Arrays that a program goes over at once are streams: each has the line that was read last and the step to the next. A line
//! is in order from the fourth of its stream on, when the same step came twice before. Real prefetchers stop at the ends of
//! pages, which costs one line of 64 here, too, where the next page has another step.

/// Streams that are followed at once: as many as the prefetcher of Intel Core Solo follows forwards (IA-32 Intel Architecture
/// Optimization Reference Manual, order number 248966).
const MOST: usize = 16;
/// The longest step, lines: 2 KiB, that of the prefetcher that follows an instruction (Intel 64 and IA-32 Architectures
/// Optimization Reference Manual).
const LONGEST: u64 = 32;
/// Steps that must be the same before the next line is expected.
const SURE: u8 = 2;

#[derive(Clone, Copy)]
struct Stream {
    /// One more than the number of the line that was read last; 0 stands for none.
    last: u64,
    /// The step to the line that is expected, in lines.
    step: i64,
    /// How often it came in a row.
    seen: u8,
}

/// No stream. A CPU that has not begun is zero, so that the library has no image of it.
const NONE: Stream = Stream { last: 0, step: 0, seen: 0 };

/// The streams of a CPU.
pub struct Streams {
    streams: [Stream; MOST],
    /// The place that the next new one takes.
    next: usize,
}

impl Streams {
    /// None yet.
    pub const fn new() -> Self {
        Self { streams: [NONE; MOST], next: 0 }
    }

    /// Whether a line that is read was expected; its successor is from now on.
    pub fn expects(&mut self, line: u64) -> bool {
        let tag = line + 1;
        let known = |stream: &&mut Stream| stream.last != 0;
        let is_next = |stream: &&mut Stream| stream.last.wrapping_add_signed(stream.step) == tag;
        if let Some(stream) = self.streams.iter_mut().filter(known).find(is_next)
            && stream.step != 0
        {
            let was_sure = stream.seen >= SURE;
            *stream = Stream { last: tag, step: stream.step, seen: SURE.min(stream.seen + 1) };
            return was_sure;
        }
        let near = self.streams.iter_mut().filter(known).min_by_key(|stream| stream.last.abs_diff(tag));
        match near {
            Some(stream) if stream.last.abs_diff(tag) <= LONGEST => {
                let step = tag.wrapping_sub(stream.last) as i64;
                *stream = Stream { last: tag, step, seen: 1 };
            }
            _ => {
                self.streams[self.next] = Stream { last: tag, ..NONE };
                self.next = (self.next + 1) % MOST;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    fn expected(lines: impl IntoIterator<Item = u64>) -> usize {
        let mut streams = Streams::new();
        lines.into_iter().filter(|line| streams.expects(*line)).count()
    }

    #[test]
    fn all_lines_of_a_stream_but_the_first_three_are_in_order() {
        assert_eq!(expected(0..1000), 997);
        assert_eq!(expected((0..1000).rev()), 997);
        assert_eq!(expected((0..1000).map(|line| line * 7)), 997);
        assert_eq!(expected((0..1000).map(|line| line * 33)), 0);
        assert_eq!(expected([5; 100]), 0);
    }

    #[test]
    fn sixteen_arrays_are_followed_and_seventeen_are_not() {
        let arrays = |count: u64| (0..count * 100).map(move |at| ((at % count) << 20) | (at / count));
        assert_eq!(expected(arrays(16)), 16 * 97);
        assert_eq!(expected(arrays(17)), 0);
    }

    /// Numbers that look drawn: a generator of the kind of Lehmer's.
    fn scattered(below: u64) -> impl Iterator<Item = u64> {
        let next = |state: &u64| Some(state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
        std::iter::successors(Some(1), next).map(move |state| (state >> 33) % below)
    }

    #[test]
    fn scattered_lines_are_hardly_ever_expected() {
        assert!(expected(scattered(1 << 20).take(100_000)) < 100);
        // In one page, a line of 64 is the expected one now and then, and seldom three times in a row.
        assert!(expected(scattered(64).take(100_000)) < 1000);
    }

    proptest! {
        #[test]
        fn any_line_is_taken(lines in proptest::collection::vec(any::<u64>(), 0..50)) {
            prop_assert!(expected(lines.iter().map(|line| line >> 6)) <= lines.len());
        }
    }
}
