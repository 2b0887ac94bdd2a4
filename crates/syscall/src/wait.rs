//! Waiting for a program, and what it used.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use nodewise_machine::Bytes;

use crate::call::{Call, Task};
use crate::error::{CallError, Errno};
use crate::raw;

/// The resources that a process used, together with the children it waited for.
///
/// # Source
/// `struct rusage` of `wait4(2)`; `getrusage(2)` explains the fields that Linux fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Time on CPUs in the program.
    pub user: Duration,
    /// Time on CPUs in the kernel.
    pub system: Duration,
    /// Most memory that was resident at once, in the process or in any one child.
    pub max_rss: Bytes,
    /// Page faults that needed no reading.
    pub minor_faults: u64,
    /// Page faults that had to read.
    pub major_faults: u64,
    /// Times it gave up the CPU, mostly to wait.
    pub voluntary_switches: u64,
    /// Times the CPU was taken from it.
    pub involuntary_switches: u64,
}

impl Usage {
    fn new(usage: &libc::rusage) -> Self {
        Self {
            user: duration(usage.ru_utime),
            system: duration(usage.ru_stime),
            max_rss: Bytes::from_kib(count(usage.ru_maxrss)),
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
        }
    }
}

impl Usage {
    /// Time on CPUs, in the program and in the kernel for it.
    pub fn cpu_time(&self) -> Duration {
        self.user.saturating_add(self.system)
    }

    /// Returns the resources that the calling thread has used up to now; [`Usage::max_rss`] is that of its
    /// process. `None` where a filter forbids to ask.
    ///
    /// # Source
    /// `getrusage(2)`, `RUSAGE_THREAD`, Linux 2.6.26.
    pub fn of_this_thread() -> Option<Self> {
        raw::thread_usage().ok().map(|usage| Self::new(&usage))
    }
}

/// A counter of the kernel, which is a `long` there and never negative.
fn count(value: libc::c_long) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

fn duration(time: libc::timeval) -> Duration {
    let micros = Duration::from_micros(count(time.tv_usec));
    Duration::from_secs(count(time.tv_sec)).saturating_add(micros)
}

/// A process that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// How: with a code, or by a signal.
    pub status: ExitStatus,
    pub usage: Usage,
}

/// A process that was started, to be waited for with its usage.
///
/// The standard library's `Child` forgets what the process used. This keeps the `Child` to itself,
/// because its number must not be waited for, or killed, once it has been waited for here.
/// Dropping it neither waits nor kills.
#[derive(Debug)]
pub struct Running {
    child: Child,
    finished: Option<Finished>,
}

impl From<Child> for Running {
    /// Takes over a process that no one has waited for yet.
    fn from(child: Child) -> Self {
        Self { child, finished: None }
    }
}

impl Running {
    /// Its process id. After it has ended, another process may get the same.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has ended. Closes its standard input first, as `Child::wait` does, so that
    /// it cannot wait for us while we wait for it.
    ///
    /// # Source
    /// `wait4(2)`.
    ///
    /// # Errors
    /// `ECHILD` when somebody else has waited for it.
    pub fn wait(&mut self) -> Result<&Finished, CallError> {
        drop(self.child.stdin.take());
        if self.finished.is_none() {
            self.finished = Some(self.collect()?);
        }
        Ok(self.finished.as_ref().expect("collected above"))
    }

    fn collect(&self) -> Result<Finished, CallError> {
        let pid = self.child.id();
        let failed = |errno| CallError::new(Call::Wait4 { pid }, errno);
        let task = Task::new(pid).ok_or(failed(Errno::ECHILD))?;
        loop {
            match raw::wait4(task.number(), 0) {
                Err(Errno::EINTR) => {}
                result => {
                    let (_, status, usage) = result.map_err(failed)?;
                    return Ok(Finished { status: ExitStatus::from_raw(status), usage: Usage::new(&usage) });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_told_its_own_faults() {
        let before = Usage::of_this_thread().expect("no filter forbids getrusage(2) here");
        let mut memory = vec![0_u8; 1 << 22];
        memory.iter_mut().step_by(1 << 12).for_each(|byte| *byte = 1);
        let after = Usage::of_this_thread().expect("it was told before");
        assert!(after.minor_faults > before.minor_faults, "{}", memory.len());
        assert!(after.user >= before.user);
    }
}
