//! Watches one run from its start to its end.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use nodewise_syscall::{Finished, Guarded, StartError};

use super::sampling::{STOPPED, Sampling, Standstill};
use crate::executor::{Ending, Witness};
use crate::fidelity::Look;

/// How often the interrupt is looked at while nothing else is due.
const LOOK: Duration = Duration::from_millis(100);

/// How long a program has to end by itself after SIGTERM, before SIGKILL: with [`LOOK`] less than the second in
/// which Ctrl-C promises an end, with room for what follows.
const GRACE: Duration = Duration::from_millis(700);

/// A run that has ended.
pub(crate) struct Ended {
    pub wall: Duration,
    pub finished: Finished,
    /// Set when it did not end by itself.
    pub cut_short: Option<Ending>,
    pub seen: Look,
}

/// The limit, the interrupt flag and the witness with which a run is watched.
pub(crate) struct Supervision<'a> {
    pub limit: Option<Duration>,
    pub interrupt: &'a AtomicBool,
    pub witness: &'a mut dyn Witness,
}

impl Supervision<'_> {
    /// Starts a program under guard and watches it until it has ended; then what it left behind is ended.
    ///
    /// A thread waits for the end and notes its time, so that what this thread is busy with (looking
    /// where pages are takes a while) does not count.
    pub fn run(self, start: impl FnOnce() -> Result<Guarded, StartError>) -> Result<Ended, StartError> {
        let started = OnceLock::new();
        let (wall, cut_short, seen) = thread::scope(|scope| {
            let (to_waiter, program) = channel();
            let (to_us, end) = channel();
            thread::Builder::new()
                .name("wait for the program".to_owned())
                .spawn_scoped(scope, move || wait_for_end(&program, &to_us))?;
            let began = Instant::now();
            let program = start()?;
            let program = started.get_or_init(|| program);
            // The waiter lives until it has sent the end, so this cannot fail.
            let _ = to_waiter.send(program);
            let (ended, cut_short, seen) = self.watch(program, began, &end);
            Ok::<_, StartError>((ended.saturating_duration_since(began), cut_short, seen))
        })?;
        let finished = started.into_inner().expect("it was started above").finish()?;
        Ok(Ended { wall, finished, cut_short, seen })
    }

    /// Waits for the end, and meanwhile looks at the program, the time limit and the interrupt.
    fn watch(
        self,
        program: &Guarded,
        began: Instant,
        end: &Receiver<Instant>,
    ) -> (Instant, Option<Ending>, Look) {
        let mut sampling = Sampling::new();
        let mut standstill = Standstill::default();
        let limit = self.limit.unwrap_or(Duration::MAX);
        loop {
            let age = began.elapsed();
            let due = sampling.next().min(limit).min(age.saturating_add(LOOK));
            match end.recv_timeout(due.saturating_sub(age)) {
                Ok(ended) => return (ended, None, sampling.seen()),
                // The waiter could not wait: the program has ended, and no one noted when.
                Err(RecvTimeoutError::Disconnected) => return (Instant::now(), None, sampling.seen()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let age = began.elapsed();
            let cut_short = if self.interrupt.load(Ordering::Relaxed) {
                Some(Ending::Interrupted)
            } else if age >= limit {
                Some(Ending::TimedOut(limit))
            } else if standstill.is_due(age) {
                let is_stopped = self.witness.is_stopped(program.program());
                standstill.note(age, is_stopped, began.elapsed()).then_some(Ending::Stopped(STOPPED))
            } else {
                None
            };
            if cut_short.is_some() {
                return (end_now(program, end), cut_short, sampling.seen());
            }
            if age >= sampling.next() {
                let seen = self.witness.look(program.program());
                sampling.keep(seen, age, began.elapsed());
            }
        }
    }
}

/// Waits until the program that is sent has ended, and sends when that was; does nothing when none is
/// sent.
fn wait_for_end(program: &Receiver<&Guarded>, end: &Sender<Instant>) {
    let Ok(program) = program.recv() else { return };
    program.wait_for_end();
    // No one listens any more when the experiment is being torn down.
    let _ = end.send(Instant::now());
}

/// Ends a program that has not ended by itself; gives the time of its end.
fn end_now(program: &Guarded, end: &Receiver<Instant>) -> Instant {
    program.terminate();
    if let Ok(ended) = end.recv_timeout(GRACE) {
        return ended;
    }
    program.end();
    end.recv().unwrap_or_else(|_| Instant::now())
}
