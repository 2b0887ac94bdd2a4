//! Readings of the running system, by a thread of their own.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use nodewise_diagnose::Delta;
use nodewise_machine::Pid;
use nodewise_machine::printable::printable;
use nodewise_source::mappings::{PageSource, Thoroughness, read};
use nodewise_source::sample::{
    InterruptScope, Moment, PageOptions, ProcessScope, Sample, SampleOptions, Sampler, ThreadScope,
};
use nodewise_source::tree::Tree;
use nodewise_terminal::{Interest, Mappings, Reading};
use nodewise_view::digest::running::{Choice, Identity, Running};

use super::message::{Event, Gone, News, Reporter, Request};
use super::pace::Pace;
use crate::command::stat::{WARM_UP, page_budget};
use crate::failure::Failure;
use crate::live_pages::{LiveDrawer, LivePages};
use crate::measuring;

/// The share of an interval that the memory of processes may take.
const SHARE: f64 = 0.02;

/// The digest for screens: everything, since they choose themselves.
pub(super) fn digest(sample: &Sample, delta: &Delta) -> Arc<Running> {
    Arc::new(Running::new(sample, delta, Choice { services: true, ..Choice::every_process() }))
}

/// Starts it.
pub(super) fn start(every: Duration, events: Sender<Event>) -> Sender<Request> {
    let (asker, requests) = mpsc::channel();
    // Reading mappings may take a second, and readings go on meanwhile.
    let (mappings, wanted) = mpsc::channel();
    let found = events.clone();
    thread::spawn(move || {
        while let Some(identity) = newest(&wanted) {
            let _ = found.send(Event::News(News::Mappings(read_mappings(identity))));
        }
    });
    thread::spawn(move || {
        // It ends with the view.
        let _ = Live { requests, mappings, reporter: Reporter(events), paused: false }.run(every);
    });
    asker
}

/// The newest of the processes that are asked for; waits for one, and returns `None` when there will be no more.
fn newest(wanted: &Receiver<Identity>) -> Option<Identity> {
    let first = wanted.recv().ok()?;
    Some(wanted.try_iter().last().unwrap_or(first))
}

struct Live {
    requests: Receiver<Request>,
    /// Processes whose mappings are asked for.
    mappings: Sender<Identity>,
    reporter: Reporter,
    paused: bool,
}

impl Live {
    fn run(mut self, every: Duration) -> Result<(), Gone> {
        let budget = page_budget(every, SHARE);
        let options = SampleOptions {
            processes: ProcessScope::All,
            threads: ThreadScope::Busy(BTreeSet::new()),
            pages: Some(PageOptions { budget, ..PageOptions::default() }),
            ..SampleOptions::default()
        };
        let mut sampler =
            Sampler::new(Tree::live(), options).drawing(Box::new(LiveDrawer::new(measuring::seed(None))));
        let mut before = sampler.sample(Moment::now());
        if before.nodes.is_empty() {
            let failure = Failure::cannot("this kernel describes no NUMA node");
            return self.reporter.send(News::Failed(failure));
        }
        let mut pace = Pace::new(every, Instant::now() + WARM_UP);
        loop {
            self.wait(&mut pace, &mut sampler)?;
            let now = sampler.sample(Moment::now());
            // Two samples of one moment have no rates: the next has.
            if let Ok(delta) = Delta::between(&before, &now) {
                let reading = Reading { running: digest(&now, &delta), position: None };
                self.reporter.send(News::Reading(reading))?;
                before = now;
            }
            pace.advance(Instant::now());
        }
    }

    /// Handles requests until the next sample is due, or while the view is paused.
    fn wait(&mut self, pace: &mut Pace, sampler: &mut Sampler) -> Result<(), Gone> {
        loop {
            let request = if self.paused {
                self.requests.recv().map_err(|_| Gone)?
            } else {
                match self.requests.recv_timeout(pace.left(Instant::now())) {
                    Ok(request) => request,
                    Err(RecvTimeoutError::Timeout) => return Ok(()),
                    Err(RecvTimeoutError::Disconnected) => return Err(Gone),
                }
            };
            match request {
                Request::Interest(Interest { threads_of, interrupts, services }) => {
                    let named = threads_of.map(Pid::new).into_iter().collect();
                    // Its screen of devices has no queues.
                    let interrupts = if interrupts { InterruptScope::Counts } else { InterruptScope::None };
                    sampler.look_at(ThreadScope::Busy(named), interrupts);
                    sampler.look_at_groups(services);
                }
                Request::Every(every) => {
                    sampler.set_page_budget(page_budget(every, SHARE));
                    pace.change(every, Instant::now());
                }
                Request::Pause(paused) => self.paused = paused,
                Request::Mappings(identity) => {
                    let _ = self.mappings.send(identity);
                }
                Request::Seek(_) => {}
            }
        }
    }
}

fn read_mappings(identity: Identity) -> Mappings {
    let (tree, pid) = (Tree::live(), identity.pid);
    let mut pages = LivePages::open(pid);
    let source = Some(&mut pages as &mut dyn PageSource);
    let found = read(&tree, pid, Thoroughness::ByPrice, measuring::seed(None), source);
    // Its number may be another's by now.
    if Identity::read(&tree, pid) != Some(identity) {
        return Mappings::Failed(identity, "it has ended".to_owned());
    }
    match found {
        Ok(process) => Mappings::Read(identity, Arc::new(process)),
        Err(error) => Mappings::Failed(identity, printable(&error.to_string()).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_process_that_was_asked_for_is_read_next() {
        let (asker, wanted) = mpsc::channel();
        let identity = |number| Identity { pid: Pid::new(number), started_ticks: 7 };
        for number in [1, 2, 3] {
            asker.send(identity(number)).unwrap();
        }
        assert_eq!(newest(&wanted), Some(identity(3)));
        asker.send(identity(1)).unwrap();
        assert_eq!(newest(&wanted), Some(identity(1)));
        drop(asker);
        assert_eq!(newest(&wanted), None);
    }

    #[test]
    fn mappings_of_an_earlier_process_of_the_same_number_are_not_those_of_the_later() {
        let pid = Pid::new(std::process::id());
        let own = Identity::read(&Tree::live(), pid).unwrap();
        assert!(matches!(read_mappings(own), Mappings::Read(read, _) if read == own));
        let earlier = Identity { started_ticks: own.started_ticks - 1, ..own };
        assert_eq!(read_mappings(earlier), Mappings::Failed(earlier, "it has ended".to_owned()));
    }
}
