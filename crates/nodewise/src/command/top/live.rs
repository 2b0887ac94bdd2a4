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
    Moment, PageOptions, ProcessScope, Sample, SampleOptions, Sampler, ThreadScope,
};
use nodewise_source::tree::Tree;
use nodewise_terminal::{Interest, Mappings, Reading};
use nodewise_view::digest::running::{Choice, Running, Shown, Sort};

use super::message::{News, Request};
use crate::command::stat::{WARM_UP, page_budget};
use crate::failure::Failure;
use crate::live_pages::{LiveDrawer, LivePages};
use crate::measuring;

/// The share of an interval that the memory of processes may take.
const SHARE: f64 = 0.02;

/// The digest for screens: everything, since they choose themselves.
pub(super) fn digest(sample: &Sample, delta: &Delta) -> Arc<Running> {
    let choice = Choice {
        shown: Shown::All,
        sort: Sort::Pid,
        top: usize::MAX,
        threads: true,
        raw: false,
        services: false,
    };
    Arc::new(Running::new(sample, delta, choice))
}

/// Starts it.
pub(super) fn start(every: Duration) -> (Sender<Request>, Receiver<News>) {
    let (asker, requests) = mpsc::channel();
    let (sender, news) = mpsc::channel();
    thread::spawn(move || {
        // It ends with the view.
        let _ = Live { requests, sender, every, paused: false }.run();
    });
    (asker, news)
}

struct Live {
    requests: Receiver<Request>,
    sender: Sender<News>,
    every: Duration,
    paused: bool,
}

/// The view has gone.
struct Gone;

impl Live {
    fn run(mut self) -> Result<(), Gone> {
        let budget = page_budget(self.every, SHARE);
        let options = SampleOptions {
            processes: ProcessScope::All,
            threads: ThreadScope::Busy(BTreeSet::new()),
            pages: Some(PageOptions { budget, always: BTreeSet::new() }),
            ..SampleOptions::default()
        };
        let mut sampler =
            Sampler::new(Tree::live(), options).drawing(Box::new(LiveDrawer::new(measuring::seed(None))));
        let mut before = sampler.sample(Moment::now());
        if before.nodes.is_empty() {
            let failure = Failure::cannot("this kernel describes no NUMA node");
            return self.send(News::Failed(failure));
        }
        let mut deadline = Instant::now() + WARM_UP;
        loop {
            self.wait(&mut deadline, &mut sampler)?;
            let now = sampler.sample(Moment::now());
            // Two samples of one moment have no rates: the next has.
            if let Ok(delta) = Delta::between(&before, &now) {
                self.send(News::Reading(Reading { running: digest(&now, &delta), position: None }))?;
                before = now;
            }
            // A sample that came late, or a stop in between, moves the ones behind it.
            deadline = (deadline + self.every).max(Instant::now());
        }
    }

    fn send(&self, news: News) -> Result<(), Gone> {
        self.sender.send(news).map_err(|_| Gone)
    }

    /// Handles requests until the deadline, or while the view is paused.
    fn wait(&mut self, deadline: &mut Instant, sampler: &mut Sampler) -> Result<(), Gone> {
        loop {
            let request = if self.paused {
                self.requests.recv().map_err(|_| Gone)?
            } else {
                match self.requests.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                    Ok(request) => request,
                    Err(RecvTimeoutError::Timeout) => return Ok(()),
                    Err(RecvTimeoutError::Disconnected) => return Err(Gone),
                }
            };
            match request {
                Request::Interest(Interest { threads_of, interrupts }) => {
                    let named = threads_of.map(Pid::new).into_iter().collect();
                    sampler.look_at(ThreadScope::Busy(named), interrupts);
                }
                Request::Every(every) => {
                    self.every = every;
                    sampler.set_page_budget(page_budget(every, SHARE));
                    *deadline = (*deadline).min(Instant::now() + every);
                }
                Request::Pause(paused) => self.paused = paused,
                Request::Mappings(pid) => {
                    // It may take a second, and readings go on meanwhile.
                    let sender = self.sender.clone();
                    thread::spawn(move || sender.send(News::Mappings(mappings(pid))));
                }
                Request::Seek(_) => {}
            }
        }
    }
}

fn mappings(number: u32) -> Mappings {
    let pid = Pid::new(number);
    let mut pages = LivePages::open(pid);
    let source = Some(&mut pages as &mut dyn PageSource);
    match read(&Tree::live(), pid, Thoroughness::ByPrice, measuring::seed(None), source) {
        Ok(process) => Mappings::Read(Arc::new(process)),
        Err(error) => Mappings::Failed(number, printable(&error.to_string()).into_owned()),
    }
}
