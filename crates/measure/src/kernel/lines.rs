//! Cache lines that two CPUs hand to each other: core-to-core latency.
//!
//! Two things are timed. *Handing over* one line: each side waits for its turn and takes the line with
//! a compare-and-exchange; half a round trip is what one hand-over costs. *Reading* lines that another
//! core has: that core writes to some lines (they are dirty, and no one else has them) or drops them
//! everywhere and loads them (they are clean), and then the reader follows a chain through them, so
//! that no load begins before the last has ended.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};

use nodewise_stats::random::Random;

/// Words from one line to the next: 256 bytes, beyond the pair of lines that some processors fetch
/// together, and beyond the lines of 128 bytes that others have.
const SPACING: usize = 32;

/// Lines of the chain: 16 KiB with what lies between them, so that the first cache holds all.
pub const LINES: usize = 64;

/// Words that are needed: the chain, the line that is handed over, and the one that says whose turn
/// it is.
pub const WORDS: usize = (LINES + 2) * SPACING;

/// The contents of the line when it is handed over no more, and the turn when there are no more.
const END: u64 = u64::MAX;

/// Fruitless looks at a line between two questions whether to go on.
const PATIENCE: u32 = 1 << 14;

/// The other side did not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alone;

/// Lines that are shared by two threads.
#[derive(Debug)]
pub struct Lines<'a> {
    words: &'a [AtomicU64],
}

impl<'a> Lines<'a> {
    /// Lays a chain in an order drawn afresh. `None` for fewer than [`WORDS`] words.
    pub fn lay(words: &'a mut [u64], random: &mut Random) -> Option<Self> {
        let words = words.get_mut(..WORDS)?;
        words.fill(0);
        let mut order: Vec<usize> = (0..LINES).collect();
        random.shuffle(&mut order);
        for (at, line) in order.iter().enumerate() {
            words[line * SPACING] = (order[(at + 1) % LINES] * SPACING) as u64;
        }
        // SAFETY: the words are borrowed exclusively for as long as this lives, and an AtomicU64 has
        // the size, alignment and bit validity of a u64.
        let words = unsafe { std::slice::from_raw_parts(words.as_mut_ptr().cast(), words.len()) };
        Some(Self { words })
    }

    fn handed(&self) -> &AtomicU64 {
        &self.words[LINES * SPACING]
    }

    fn turn(&self) -> &AtomicU64 {
        &self.words[(LINES + 1) * SPACING]
    }

    /// Hands the line over this many times from the side that begins, and takes it back each time but
    /// the last; `from` is how often it has done so before.
    ///
    /// # Errors
    /// When the other side does not come and `go_on` says so.
    pub fn ask(&self, from: u64, times: u64, go_on: impl Fn() -> bool) -> Result<(), Alone> {
        let line = self.handed();
        for turn in from..from + times {
            wait(&go_on, || {
                line.compare_exchange_weak(2 * turn, 2 * turn + 1, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
            })?;
        }
        Ok(())
    }

    /// Ends what [`Lines::ask`] began: the other side needs to answer no more.
    pub fn end(&self) {
        self.handed().store(END, Ordering::Release);
    }

    /// Hands the line back each time, from the other side, until that ends it; how often.
    ///
    /// # Errors
    /// When the other side does not come and `go_on` says so.
    pub fn answer(&self, go_on: impl Fn() -> bool) -> Result<u64, Alone> {
        let line = self.handed();
        let (mut turns, mut ended) = (0, false);
        while !ended {
            let (mine, next) = (2 * turns + 1, 2 * turns + 2);
            wait(&go_on, || {
                let result = line.compare_exchange_weak(mine, next, Ordering::AcqRel, Ordering::Relaxed);
                ended = result == Err(END);
                ended || result.is_ok()
            })?;
            turns += u64::from(!ended);
        }
        Ok(turns)
    }

    /// Waits until it is this turn: the owner of the lines and their reader take turns. `false` when the
    /// other side has ended them.
    ///
    /// # Errors
    /// When the other side does not come and `go_on` says so.
    pub fn await_turn(&self, turn: u64, go_on: impl Fn() -> bool) -> Result<bool, Alone> {
        let mut now = END;
        wait(&go_on, || {
            now = self.turn().load(Ordering::Acquire);
            now == turn || now == END
        })?;
        Ok(now == turn)
    }

    /// Says whose turn it is.
    pub fn set_turn(&self, turn: u64) {
        self.turn().store(turn, Ordering::Release);
    }

    /// Says that there are no more turns.
    pub fn end_turns(&self) {
        self.set_turn(END);
    }

    /// Writes a mark to every line.
    pub fn mark(&self, mark: u64) {
        for line in 0..LINES {
            self.words[line * SPACING + 1].store(mark, Ordering::Relaxed);
        }
    }

    /// Drops every line from all caches and loads it here, so that it is clean. `false` where this
    /// processor has no way to drop a line.
    pub fn clean(&self) -> bool {
        for line in 0..LINES {
            if !flush(&self.words[line * SPACING]) {
                return false;
            }
        }
        self.are_marked(0);
        true
    }

    /// Whether every line has this mark.
    pub fn are_marked(&self, mark: u64) -> bool {
        (0..LINES).all(|line| self.words[line * SPACING + 1].load(Ordering::Relaxed) == mark)
    }

    /// Follows the chain through all lines, and says whether it came back to its beginning: a load of
    /// each line. This is what is timed.
    pub fn chase(&self) -> bool {
        let mut at = 0;
        for _ in 0..LINES {
            at = self.words[at].load(Ordering::Relaxed) as usize;
        }
        at == 0
    }
}

/// Looks until something is there.
fn wait(go_on: &impl Fn() -> bool, mut there: impl FnMut() -> bool) -> Result<(), Alone> {
    loop {
        for _ in 0..PATIENCE {
            if there() {
                return Ok(());
            }
            spin_loop();
        }
        if !go_on() {
            return Err(Alone);
        }
    }
}

/// Drops the line of a word from all caches, after writing it back.
#[cfg(target_arch = "x86_64")]
fn flush(word: &AtomicU64) -> bool {
    // SAFETY: any address that may be read may be flushed; the contents do not change.
    unsafe { std::arch::x86_64::_mm_clflush(word.as_ptr().cast_const().cast()) };
    // SAFETY: a fence has no conditions; the flush is done when it ends.
    unsafe { std::arch::asm!("mfence", options(nostack, preserves_flags)) };
    true
}

/// Drops the line of a word from all caches, after writing it back. Linux lets programs do this.
#[cfg(target_arch = "aarch64")]
fn flush(word: &AtomicU64) -> bool {
    // SAFETY: any address that may be read may be cleaned and invalidated; the contents do not change.
    unsafe {
        std::arch::asm!("dc civac, {0}", "dsb ish", in(reg) word.as_ptr(), options(nostack, preserves_flags));
    }
    true
}

/// There is no way known here.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn flush(_: &AtomicU64) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lay(words: &mut [u64], seed: u64) -> Lines<'_> {
        Lines::lay(words, &mut Random::new(seed)).unwrap()
    }

    #[test]
    fn the_chain_leads_through_every_line_once() {
        for seed in 0..50 {
            let mut words = vec![9; WORDS];
            let lines = lay(&mut words, seed);
            assert!(lines.chase());
            let mut seen = std::collections::BTreeSet::new();
            let mut at = 0;
            while seen.insert(at) {
                at = lines.words[at].load(Ordering::Relaxed) as usize;
            }
            assert_eq!((seen.len(), at), (LINES, 0));
        }
        assert!(Lines::lay(&mut [0; WORDS - 1], &mut Random::new(1)).is_none());
    }

    #[test]
    fn a_line_is_handed_back_as_often_as_it_is_handed_over() {
        let mut words = vec![0; WORDS];
        let lines = lay(&mut words, 1);
        let patient = || {
            std::thread::yield_now();
            true
        };
        let answered = std::thread::scope(|scope| {
            let other = scope.spawn(|| lines.answer(patient));
            lines.ask(0, 30, patient).unwrap();
            lines.ask(30, 20, patient).unwrap();
            // Taking it once more shows that the last one was answered.
            lines.ask(50, 1, patient).unwrap();
            lines.end();
            other.join().unwrap()
        });
        // Whether the last one was answered before the end is not known.
        assert!(matches!(answered, Ok(50 | 51)), "{answered:?}");
    }

    #[test]
    fn who_is_alone_gives_up() {
        let mut words = vec![0; WORDS];
        let lines = lay(&mut words, 1);
        assert_eq!(lines.answer(|| false), Err(Alone));
        assert_eq!(lines.ask(0, 1, || false), Ok(()), "the first side begins alone");
        assert_eq!(lines.ask(1, 1, || false), Err(Alone));
        lines.end();
        assert_eq!(lines.answer(|| false), Ok(0));
        assert_eq!(lines.await_turn(1, || false), Err(Alone));
        lines.set_turn(1);
        assert_eq!(lines.await_turn(1, || false), Ok(true));
        lines.end_turns();
        assert_eq!(lines.await_turn(2, || false), Ok(false));
    }

    #[test]
    fn marks_are_kept_when_lines_are_dropped_from_the_caches() {
        let mut words = vec![0; WORDS];
        let lines = lay(&mut words, 1);
        lines.mark(7);
        assert!(lines.are_marked(7) && !lines.are_marked(8));
        assert_eq!(lines.clean(), cfg!(any(target_arch = "x86_64", target_arch = "aarch64")));
        assert!(lines.are_marked(7) && lines.chase());
    }
}
