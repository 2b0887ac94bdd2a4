//! Watches one run from its start to its end.

use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use nodewise_syscall::{Finished, Running, StartError};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::sampling::Sampling;
use crate::executor::{Ending, Residency, Witness};

/// How often the interrupt is looked at while nothing else is due.
const LOOK: Duration = Duration::from_millis(100);

/// How long a program has to end by itself after SIGTERM, before SIGKILL.
const GRACE: Duration = Duration::from_secs(1);

/// A run that has ended.
pub(crate) struct Ended {
    pub wall: Duration,
    pub finished: Finished,
    /// Set when it did not end by itself.
    pub cut_short: Option<Ending>,
    pub residency: Option<Residency>,
}

/// What a run is watched with.
pub(crate) struct Supervision<'a> {
    pub limit: Option<Duration>,
    pub interrupt: &'a AtomicBool,
    pub witness: &'a mut dyn Witness,
}

impl Supervision<'_> {
    /// Starts a program in a process group of its own and watches it until it has ended.
    ///
    /// A thread waits for the end and notes its time, so that what this thread is busy with (looking
    /// where pages are takes a while) does not count. It leaves the process unwaited for: until it
    /// is waited for here, nobody else can get its number, and its group can be ended safely.
    pub fn run(self, start: impl FnOnce() -> Result<Child, StartError>) -> Result<Ended, StartError> {
        thread::scope(|scope| {
            let (to_waiter, pid) = channel();
            let (to_us, end) = channel();
            thread::Builder::new()
                .name("wait for the program".to_owned())
                .spawn_scoped(scope, move || wait_for_end(&pid, &to_us))?;
            let began = Instant::now();
            let mut running = Running::from(start()?);
            let group = i32::try_from(running.id()).ok().and_then(Pid::from_raw);
            let group = group.expect("the kernel numbers processes from 1 to 2^22");
            // The waiter lives until it has sent the end, so this cannot fail.
            let _ = to_waiter.send(group);
            let (ended, cut_short, residency) = self.watch(group, began, &end);
            end_group(group, Signal::KILL);
            let finished = running.wait()?.clone();
            Ok(Ended { wall: ended.saturating_duration_since(began), finished, cut_short, residency })
        })
    }

    /// Waits for the end, and meanwhile looks at the program, the time limit and the interrupt.
    fn watch(
        self,
        group: Pid,
        began: Instant,
        end: &Receiver<Instant>,
    ) -> (Instant, Option<Ending>, Option<Residency>) {
        let mut sampling = Sampling::new();
        let limit = self.limit.unwrap_or(Duration::MAX);
        loop {
            let age = began.elapsed();
            let due = sampling.next().min(limit).min(age.saturating_add(LOOK));
            match end.recv_timeout(due.saturating_sub(age)) {
                Ok(ended) => return (ended, None, sampling.most()),
                // The waiter could not wait: the program has ended, and nobody noted when.
                Err(RecvTimeoutError::Disconnected) => return (Instant::now(), None, sampling.most()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let age = began.elapsed();
            let cut_short = if self.interrupt.load(Ordering::Relaxed) {
                Some(Ending::Interrupted)
            } else if age >= limit {
                Some(Ending::TimedOut(limit))
            } else {
                None
            };
            if cut_short.is_some() {
                return (end_now(group, end), cut_short, sampling.most());
            }
            if age >= sampling.next() {
                let seen = self.witness.residency(group.as_raw_nonzero().get().unsigned_abs());
                sampling.keep(seen, age, began.elapsed());
            }
        }
    }
}

/// Waits until the process that is sent has ended, and sends when that was; does nothing when none
/// is sent.
fn wait_for_end(pid: &Receiver<Pid>, end: &Sender<Instant>) {
    let Ok(pid) = pid.recv() else { return };
    loop {
        match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
            Ok(_) => break,
        }
    }
    // Nobody listens any more when the experiment is being torn down.
    let _ = end.send(Instant::now());
}

/// Ends a group that has not ended by itself; gives the time of its end.
fn end_now(group: Pid, end: &Receiver<Instant>) -> Instant {
    end_group(group, Signal::TERM);
    if let Ok(ended) = end.recv_timeout(GRACE) {
        return ended;
    }
    end_group(group, Signal::KILL);
    end.recv().unwrap_or_else(|_| Instant::now())
}

/// Sends a signal to what is left of a group. That nothing is left is no error, and what may not be
/// signalled (a set-user-ID program) cannot be helped.
fn end_group(group: Pid, signal: Signal) {
    let _ = kill_process_group(group, signal);
}
