//! The running system at the two ends of a window. Between them nothing is read.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nodewise_diagnose::Pid;
use nodewise_source::sample::{
    BandwidthScope, InterruptScope, Moment, PageOptions, ProcessScope, Sample, SampleOptions, Sampler,
    ThreadScope,
};
use nodewise_source::tree::Tree;

use crate::command::stat::{ONCE, SHORTEST, WARM_UP, page_budget};
use crate::failure::Failure;
use crate::live_pages::LiveDrawer;
use crate::measuring;

/// The window, unless another one is typed.
pub const WINDOW: Duration = Duration::from_secs(10);
/// The share of the window that may go to finding the memory of processes, at each end.
const SHARE: f64 = 0.004;

fn sampler(budget: Duration, named: Option<&BTreeSet<Pid>>, interrupts: InterruptScope) -> Sampler {
    let named = named.cloned().unwrap_or_default();
    let options = SampleOptions {
        processes: ProcessScope::All,
        threads: ThreadScope::Busy(named.clone()),
        groups: true,
        pages: Some(PageOptions { budget, always: named, ..PageOptions::default() }),
        interrupts,
        bandwidth: BandwidthScope::None,
        controllers: BandwidthScope::None,
    };
    Sampler::new(Tree::live(), options).drawing(Box::new(LiveDrawer::new(measuring::seed(None))))
}

/// Leaves this process out: in a small machine it is among those that matter, and nothing about it is the system's.
fn without_own(mut sample: Sample) -> Sample {
    let own = Pid::new(std::process::id());
    sample.processes.retain(|process| process.identity.pid != own);
    sample
}

/// The running system now.
pub fn once(named: Option<&BTreeSet<Pid>>) -> Sample {
    without_own(sampler(ONCE, named, InterruptScope::All).sample(Moment::now()))
}

/// The running system at the beginning and at the end of a window. Ctrl-C ends it early; a window
/// without any time has no beginning.
pub fn watch(window: Duration, named: Option<&BTreeSet<Pid>>) -> Result<(Option<Sample>, Sample), Failure> {
    let interrupt = measuring::interrupt()?;
    let mut sampler = sampler(ONCE, named, InterruptScope::Counts);
    // A first reading finds busy processes, whose threads are then read from the beginning, and the memory of all.
    sampler.sample(Moment::now());
    sampler.look_at(ThreadScope::Busy(named.cloned().unwrap_or_default()), InterruptScope::All);
    sampler.set_page_budget(page_budget(window, SHARE));
    measuring::wait(Instant::now() + WARM_UP, &interrupt, || false);
    let began = Instant::now();
    let before = without_own(sampler.sample(Moment::now()));
    // A window beyond the clock's range lasts until Ctrl-C.
    let end = began.checked_add(window).unwrap_or_else(|| began + Duration::from_secs(u64::from(u32::MAX)));
    measuring::wait(end, &interrupt, || false);
    if interrupt.load(Ordering::Relaxed) && began.elapsed() < SHORTEST {
        return Ok((None, before));
    }
    let now = without_own(sampler.sample(Moment::now()));
    Ok((Some(before), now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_not_examined_and_its_parent_is() {
        let sample = once(None);
        let has = |pid: u32| sample.processes.iter().any(|process| process.identity.pid.number() == pid);
        assert!(!has(std::process::id()));
        assert!(has(std::os::unix::process::parent_id()));
    }
}
