//! Whether a process has run since it was read, from a file that costs a quarter of the whole one.

use std::time::Duration;

use super::Moment;
use super::reading::Reading;
use crate::parse::schedstat::{self, SchedStat};
use crate::parse::text_of;
use crate::paths::PROCESSES;
use crate::process::Pid;
use crate::tree::Kept;

/// A process that rests is read as a whole this often: the kernel may take its memory while it sleeps.
const WHOLE_EVERY: Duration = Duration::from_secs(60);

/// The rest of a process with one thread. While that is put on no CPU, nothing of the process changes by itself: not
/// its CPU time, state, name or number of threads.
///
/// # Source
/// `/proc/PID/schedstat`: 0.9 us in the kernel where `/proc/PID/stat` takes 3.8 (Linux 6.18). It
/// counts the first thread only.
#[derive(Debug)]
pub(super) struct Rest {
    file: Kept,
    times: SchedStat,
    whole: Moment,
}

impl Rest {
    /// Begins to watch a process, which is read as a whole afterwards; `None` where the kernel does not count times.
    pub(super) fn begin(reading: &mut Reading<'_>, pid: Pid) -> Option<Self> {
        let mut file = reading.tree.keep(&format!("{PROCESSES}/{pid}/schedstat"));
        let times = times(reading, &mut file)?;
        Some(Self { file, times, whole: reading.now })
    }

    /// Whether the process has not run; otherwise it is read as a whole afterwards.
    pub(super) fn goes_on(&mut self, reading: &mut Reading<'_>) -> bool {
        let now = times(reading, &mut self.file);
        let is_fresh = reading.now.since(self.whole).is_some_and(|age| age < WHOLE_EVERY);
        if is_fresh && now == Some(self.times) {
            return true;
        }
        // A time that is read before the whole: what happens in between is seen the next time.
        self.times = now.unwrap_or_default();
        self.whole = reading.now;
        false
    }

    /// Whether the file is open, and so takes a descriptor.
    pub(super) const fn is_open(&self) -> bool {
        self.file.is_open()
    }
}

/// The times; `None` where there are none, or the kernel does not count them: every process was put on a CPU once.
fn times(reading: &mut Reading<'_>, file: &mut Kept) -> Option<SchedStat> {
    let is_there = reading.tree.read_kept(file, reading.buffer).is_ok_and(|is_there| is_there);
    let times = is_there.then(|| schedstat::parse(&text_of(reading.buffer).0).ok()).flatten();
    times.filter(|times| times.slices > 0)
}
