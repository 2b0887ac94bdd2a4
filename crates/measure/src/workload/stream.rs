//! Passes over large arrays with several threads: bytes per second.
//!
//! Each thread makes and touches the arrays it passes over, so they lie where the policy of the
//! program puts the memory of that thread. All threads begin a pass together, and a pass lasts from
//! the first thread's beginning to the last one's end: rates of threads that ran at different times
//! are not added up.

use std::sync::Barrier;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use nodewise_machine::Bytes;

use super::{WorkloadError, resolved};
use crate::kernel::stream::{Arrays, Operation};
use crate::timer::{Moment, Timer};
use nodewise_stats::median;

/// Bytes of a run by default: about half a second on one core of a server.
const TRAFFIC: u64 = 8_000_000_000;

/// Bytes of one element in all three arrays.
const ELEMENT: u64 = 24;

/// The command to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    pub operation: Operation,
    /// Size of the three arrays of all threads together.
    pub size: Bytes,
    /// How many threads share them.
    pub threads: u32,
    /// How often they are passed over, each time timed for itself; a first pass is not.
    pub passes: u32,
    pub seed: u64,
}

impl StreamOptions {
    /// A triad over this size with this many threads, which takes about a second on one core. The same
    /// work whatever the number of threads.
    pub fn new(size: Bytes, threads: u32) -> Self {
        let passes = (TRAFFIC / size.get().max(1)).clamp(3, 1000) as u32;
        Self { operation: Operation::Triad, size, threads, passes, seed: 1 }
    }
}

/// The measured values.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamResult {
    pub operation: Operation,
    /// Size of the arrays: of whole elements.
    pub size: Bytes,
    pub threads: u32,
    /// Bytes that the program read and wrote in one pass; see [`Operation::bytes_per_element`].
    pub bytes_per_pass: Bytes,
    /// GB/s (10^9 bytes per second) of each pass, in order.
    pub gb_per_s: Vec<f64>,
    /// Time to make and fill the arrays, and of the first pass.
    pub setup: Duration,
    /// Time of the timed passes.
    pub timed: Duration,
    pub timer: Timer,
}

impl StreamResult {
    /// The median over passes: what a program gets.
    pub fn median_gb_per_s(&self) -> f64 {
        median(&self.gb_per_s).expect("there is at least one pass")
    }

    /// The most over passes: what the hardware does when nothing disturbs it.
    pub fn most_gb_per_s(&self) -> f64 {
        self.gb_per_s.iter().copied().fold(0.0, f64::max)
    }
}

/// The time of one pass in one thread.
type Window = (Moment, Moment);

/// Fills the arrays, passes over them, and checks every element.
///
/// # Errors
/// Without memory or threads, for sizes of less than one element per thread, and when a check fails.
pub fn run(options: &StreamOptions) -> Result<StreamResult, WorkloadError> {
    let StreamOptions { operation, size, threads, passes, .. } = *options;
    if threads == 0 || passes == 0 {
        return Err(WorkloadError::Nothing { what: if threads == 0 { "threads" } else { "passes" } });
    }
    let elements = usize::try_from(size.get() / ELEMENT / u64::from(threads)).unwrap_or(usize::MAX);
    if elements == 0 {
        let least = Bytes::new(ELEMENT).times(threads.into());
        return Err(WorkloadError::TooSmall { size, threads, least });
    }
    let timer = Timer::choose();
    let begin = timer.now();
    let passes_of_threads = run_threads(options, elements, timer)?;
    let windows: Vec<Window> = (0..=passes as usize).map(|pass| window(&passes_of_threads, pass)).collect();
    let all = elements as u64 * u64::from(threads);
    let bytes_per_pass = Bytes::new(operation.bytes_per_element()).times(all);
    let (mut gb_per_s, mut timed) = (Vec::new(), Duration::ZERO);
    for (from, to) in &windows[1..] {
        let elapsed = resolved(to.since(*from), &timer)?;
        gb_per_s.push(bytes_per_pass.get() as f64 / elapsed.as_secs_f64() / 1e9);
        timed += elapsed;
    }
    let size = Bytes::new(ELEMENT).times(all);
    let setup = windows[1].0.since(begin);
    Ok(StreamResult { operation, size, threads, bytes_per_pass, gb_per_s, setup, timed, timer })
}

/// When the first thread began a pass and the last one ended it.
fn window(threads: &[Vec<Window>], pass: usize) -> Window {
    let windows = || threads.iter().map(|passes| passes[pass]);
    let begin = windows().map(|(begin, _)| begin).min().expect("there is at least one thread");
    let end = windows().map(|(_, end)| end).max().expect("there is at least one thread");
    (begin, end)
}

/// The windows of all passes of each thread.
fn run_threads(
    options: &StreamOptions,
    elements: usize,
    timer: Timer,
) -> Result<Vec<Vec<Window>>, WorkloadError> {
    let threads = options.threads;
    let together = Barrier::new(threads as usize);
    thread::scope(|scope| {
        let mut workers = Vec::new();
        for number in 1..=threads {
            let (go, wait) = channel();
            let worker = Worker { options, elements, number, timer, together: &together };
            let started = thread::Builder::new().spawn_scoped(scope, move || worker.run(&wait));
            // The threads that did start see that the signal to start will not come, and end.
            let started = started.map_err(|error| WorkloadError::NoThread {
                number,
                threads,
                reason: error.to_string(),
            })?;
            workers.push((go, started));
        }
        for (go, _) in &workers {
            // A thread that is gone has panicked, which joining reports.
            let _ = go.send(());
        }
        workers
            .into_iter()
            .map(|(_, worker)| worker.join().expect("a pass over arrays does not panic"))
            .collect()
    })
}

/// One thread and its part.
struct Worker<'a> {
    options: &'a StreamOptions,
    elements: usize,
    number: u32,
    timer: Timer,
    /// Where the threads meet: all of them, once per pass, even one that has no arrays.
    together: &'a Barrier,
}

impl Worker<'_> {
    fn run(self, go: &Receiver<()>) -> Result<Vec<Window>, WorkloadError> {
        if go.recv().is_err() {
            return Ok(Vec::new());
        }
        let seed = self.options.seed.wrapping_add(self.number.into());
        let mut arrays = Arrays::new(self.elements, seed);
        // Room for the usual number of passes: it is not certain that as many as were asked for fit.
        let mut windows = Vec::with_capacity(self.options.passes.min(1000) as usize + 1);
        for pass in 0..=self.options.passes {
            self.together.wait();
            let begin = self.timer.now();
            if let Some(arrays) = &mut arrays {
                arrays.pass(self.options.operation, factor(pass));
            }
            windows.push((begin, self.timer.now()));
        }
        let Some(arrays) = arrays else {
            return Err(WorkloadError::NoMemory { size: self.options.size });
        };
        if arrays.is_right(self.options.operation, factor(self.options.passes)) {
            return Ok(windows);
        }
        let what = format!("the arrays of thread {} do not hold what the last pass makes", self.number);
        Err(WorkloadError::Wrong { what })
    }
}

/// Another factor for each pass; small whole numbers, so that nothing is rounded.
fn factor(pass: u32) -> f64 {
    f64::from(pass % 64 + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(operation: Operation, threads: u32) -> StreamOptions {
        StreamOptions { operation, size: Bytes::from_mib(24), threads, passes: 4, seed: 2 }
    }

    #[test]
    fn every_operation_runs_with_any_number_of_threads() {
        for operation in Operation::ALL {
            for threads in [1, 2, 5] {
                let result = run(&options(operation, threads)).unwrap();
                assert_eq!(result.gb_per_s.len(), 4);
                assert!(result.median_gb_per_s() > 0.0 && result.most_gb_per_s() >= result.median_gb_per_s());
                let elements = result.size.get() / ELEMENT;
                assert_eq!(elements, (1 << 20) / u64::from(threads) * u64::from(threads));
                assert_eq!(result.bytes_per_pass.get(), elements * operation.bytes_per_element());
                let seconds: f64 =
                    result.gb_per_s.iter().map(|rate| result.bytes_per_pass.get() as f64 / rate / 1e9).sum();
                assert!((result.timed.as_secs_f64() / seconds - 1.0).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let check = |options: StreamOptions, expected: &str| {
            assert_eq!(run(&options).unwrap_err().to_string(), expected);
        };
        let usual = options(Operation::Add, 2);
        check(StreamOptions { threads: 0, ..usual }, "0 threads were asked for: expected 1 or more");
        check(StreamOptions { passes: 0, ..usual }, "0 passes were asked for: expected 1 or more");
        check(
            StreamOptions { size: Bytes::new(47), ..usual },
            "47 B is too small for 2 threads: expected at least 48 B",
        );
        check(
            StreamOptions { size: Bytes::new(u64::MAX), ..usual },
            "no memory for 16384 PiB: expected a smaller size",
        );
    }

    #[test]
    fn the_work_does_not_depend_on_the_number_of_threads() {
        let size = Bytes::from_mib(192);
        assert_eq!(StreamOptions::new(size, 1).passes, StreamOptions::new(size, 64).passes);
        assert_eq!(StreamOptions::new(size, 1).passes, 39);
        assert_eq!(StreamOptions::new(Bytes::from_gib(4), 1).passes, 3);
    }
}
