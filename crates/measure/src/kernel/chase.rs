//! One load after another, each at an address that the one before gave: latency.
//!
//! The chain is a single cycle through all lines of its memory in random order, so that no load can
//! begin before the last has ended and no prefetcher can guess the next. That it is one cycle and
//! not several short ones is what makes the result true (a plain shuffle leaves half of the memory
//! out, on average, and then measures a cache), so it is proven by a walk and not believed.

use std::cell::Cell;
use std::hint::black_box;

use nodewise_stats::random::Random;

/// Bytes from one link to the next: the size of a cache line on x86 and on most Arm servers, half of
/// one on Apple's and on POWER, where two links then share a line.
pub const LINE: usize = 64;

/// Loads in one turn of the timed loop; what the loop itself does is then a hundredth of a cycle per
/// load.
pub const TURN: u64 = 32;

/// A line of the chain: the address of the next one, at offset 0, so that a load needs no
/// arithmetic.
#[repr(C, align(64))]
struct Link {
    next: Cell<*const Link>,
}

const _: () = assert!(size_of::<Link>() == LINE);

/// A chain of lines in random order, closed to one cycle.
pub struct Chain {
    links: Vec<Link>,
}

impl Chain {
    /// Makes a chain of this many lines; the calling thread touches all of its memory.
    ///
    /// `None` when the memory cannot be had, and without lines.
    ///
    /// # Source
    /// Sattolo, "An algorithm to generate a random cyclic permutation", Inf. Proc. Letters 22, 1986:
    /// a shuffle that never leaves an item in its place and gives every cycle with equal probability.
    pub fn new(lines: usize, random: &mut Random) -> Option<Self> {
        if lines == 0 {
            return None;
        }
        let mut links = Vec::new();
        links.try_reserve_exact(lines).ok()?;
        links.extend((0..lines).map(|_| Link { next: Cell::new(std::ptr::null()) }));
        for link in &links {
            link.next.set(link);
        }
        // A partner strictly below `last`: with `last` among them this is the plain shuffle, of several cycles.
        for last in (1..lines).rev() {
            links[last].next.swap(&links[random.index(last)].next);
        }
        Some(Self { links })
    }

    /// How many lines it has.
    pub fn lines(&self) -> usize {
        self.links.len()
    }

    /// Its first line.
    pub fn start(&self) -> Position<'_> {
        Position { link: &self.links[0] }
    }

    /// Proves by a walk that the chain is one cycle through all of its lines, and says where this many
    /// turns from the start will end: what follows the chain and ends elsewhere has skipped a load.
    ///
    /// # Errors
    /// After how many steps it came back to its start, where that is too early; one step more than it
    /// has lines, where it did not come back.
    pub fn prove(&self, turns: u64) -> Result<Position<'_>, usize> {
        // On a cycle only the remainder counts, so one walk tells the end of any number of turns.
        let remainder = u128::from(turns) * u128::from(TURN) % self.links.len() as u128;
        let (mut at, mut marked) = (self.start(), self.start());
        for steps in 1..=self.links.len() {
            at = at.next();
            if steps as u128 == remainder {
                marked = at;
            }
            if at == self.start() {
                return if steps == self.links.len() { Ok(marked) } else { Err(steps) };
            }
        }
        Err(self.links.len() + 1)
    }

    /// Follows the chain for this many [turns](TURN). This is what is timed.
    pub fn follow<'a>(&'a self, from: Position<'a>, turns: u64) -> Position<'a> {
        // The boxes hide the start, which would make the end known, and use the end, without which no load is needed.
        let mut at = black_box(from);
        for _ in 0..turns {
            // The compiler writes this out: the bound is a constant.
            for _ in 0..TURN {
                at = at.next();
            }
        }
        black_box(at)
    }
}

/// A line of a chain.
#[derive(Clone, Copy)]
pub struct Position<'a> {
    link: &'a Link,
}

impl PartialEq for Position<'_> {
    /// Whether the two positions are the same line.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.link, other.link)
    }
}

impl std::fmt::Debug for Position<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line at {:p}", self.link)
    }
}

impl Position<'_> {
    /// The line that this one points to.
    #[inline(always)]
    fn next(self) -> Self {
        let next = self.link.next.get();
        // SAFETY: `next` was made from a reference to an element of the same `Vec<Link>` in
        // `Chain::new` and only ever exchanged with others of them, so it is not null, aligned, and
        // points to an initialised `Link`. The chain is borrowed for as long as this position lives,
        // so the vector is neither changed nor dropped, and its elements are only ever shared: what
        // changes in them is in a `Cell`.
        Self { link: unsafe { &*next } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    fn chain(lines: usize, seed: u64) -> Chain {
        Chain::new(lines, &mut Random::new(seed)).unwrap()
    }

    #[test]
    fn every_small_chain_is_one_cycle() {
        for lines in 1..600 {
            let chain = chain(lines, lines as u64);
            assert!(chain.prove(0).is_ok(), "{lines} lines");
        }
    }

    #[test]
    fn a_chain_of_two_cycles_is_not_taken_for_one() {
        let broken = chain(100, 1);
        // Two links exchange their targets: one cycle becomes two.
        broken.links[10].next.swap(&broken.links[60].next);
        let steps = broken.prove(0).unwrap_err();
        assert!(steps < 100, "{steps}");
        // The start is left out of the cycle that its successor is on.
        let tail = chain(100, 1);
        let second = tail.start().next();
        let last = tail.links.iter().find(|link| std::ptr::eq(link.next.get(), &tail.links[0])).unwrap();
        last.next.set(second.link);
        assert_eq!(tail.prove(0), Err(101));
    }

    #[test]
    fn a_chain_without_lines_or_with_too_many_is_refused() {
        assert!(Chain::new(0, &mut Random::new(1)).is_none());
        assert!(Chain::new(usize::MAX / 128, &mut Random::new(1)).is_none());
    }

    #[test]
    fn a_turn_too_few_is_noticed() {
        let chain = chain(1000, 3);
        let expected = chain.prove(500).unwrap();
        assert_eq!(chain.follow(chain.start(), 500), expected);
        assert_ne!(chain.follow(chain.start(), 499), expected);
    }

    #[test]
    fn a_chain_may_be_moved() {
        let chain = chain(500, 9);
        let moved = Box::new(chain);
        assert!(moved.prove(1).is_ok());
    }

    proptest! {
        #[test]
        fn any_chain_is_one_cycle_and_followed_to_the_right_end(
            lines in 1usize..5000, seed in any::<u64>(), parts in proptest::collection::vec(0u64..400, 1..4),
        ) {
            let chain = chain(lines, seed);
            let expected = chain.prove(parts.iter().sum());
            let end = parts.iter().fold(chain.start(), |at, turns| chain.follow(at, *turns));
            prop_assert_eq!(expected, Ok(end));
            prop_assert!(chain.prove(u64::MAX).is_ok());
        }
    }
}
