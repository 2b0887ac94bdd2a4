//! Reading many things in several threads, which take turns at them.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use nodewise_machine::order::Order as _;

/// The work of each thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// Things that a thread takes at once.
    pub size: usize,
    /// The most threads; not more than there are CPUs and turns.
    pub most_threads: usize,
}

impl Turns {
    /// Reads something of each, in the order of the things.
    pub fn read<I: Sync, T: Send>(self, things: &[I], read: impl Fn(&I) -> Option<T> + Sync) -> Vec<T> {
        let size = self.size.max(1);
        let next = AtomicUsize::new(0);
        let work = || {
            let turn = || {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let of: Vec<T> = things.chunks(size).nth(at)?.iter().filter_map(&read).collect();
                Some((at, of))
            };
            std::iter::from_fn(turn).collect::<Vec<(usize, Vec<T>)>>()
        };
        let threads = match things.len() / size {
            0 | 1 => 1,
            turns => {
                thread::available_parallelism().map_or(1, NonZero::get).min(self.most_threads).min(turns)
            }
        };
        let mut found = thread::scope(|scope| {
            // Where the system refuses a thread, those that there are read the rest.
            let others: Vec<_> =
                (1..threads).map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
            let mut found = work();
            for other in others {
                found.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            found
        });
        found.order_by_key(|(at, _)| *at);
        found.into_iter().flat_map(|(_, of)| of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_threads_read_things_in_their_order_like_one() {
        for count in [0u32, 1, 15, 16, 17, 33, 1000] {
            let things: Vec<u32> = (0..count).collect();
            for (size, most_threads) in [(16, 8), (1, 8), (16, 1), (0, 0), (2000, 3)] {
                let turns = Turns { size, most_threads };
                let odd = turns.read(&things, |number| (number % 2 == 1).then_some(*number));
                assert_eq!(odd, (0..count).filter(|number| number % 2 == 1).collect::<Vec<_>>(), "{turns:?}");
            }
        }
    }
}
