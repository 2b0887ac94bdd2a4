//! `nodewise stat`.

pub mod recorded;
mod words;

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nodewise_diagnose::{Delta, identity};
use nodewise_source::Detail;
use nodewise_source::sample::{
    BandwidthScope, InterruptScope, Moment, PageOptions, ProcessScope, Sample, SampleOptions, Sampler,
    ThreadScope,
};
use nodewise_source::tree::Tree;
use nodewise_view::digest::running::{Choice, Running, Shown, Sort};
use nodewise_view::{csv, json, text};

use crate::cli::Global;
use crate::cli::stat::{SortBy, Stat};
use crate::command::subject::{self, WantedProcesses};
use crate::failure::{Failure, Outcome};
use crate::live_counters::LiveCounters;
use crate::live_pages::LiveDrawer;
use crate::{input, measuring, output};

use words::Words;

/// CPU time for the memory of processes where there is one reading.
pub(super) const ONCE: Duration = Duration::from_secs(1);
/// The share of an interval that it may take otherwise.
const SHARE: f64 = 0.05;
/// The least CPU time for it.
const LEAST: Duration = Duration::from_millis(3);
/// Time in which a first reading finds busy processes, whose threads are then read from the beginning.
pub(super) const WARM_UP: Duration = Duration::from_millis(100);
/// A shorter interval, which Ctrl-C has cut, says little.
pub(super) const SHORTEST: Duration = Duration::from_millis(100);
/// The interval of --check, --mbm and --uncore, whose counters say nothing since boot.
const CHECKED: Duration = Duration::from_secs(1);

/// The CPU time for the memory of processes in an interval: this share of it, within bounds.
pub(super) fn page_budget(interval: Duration, share: f64) -> Duration {
    interval.mul_f64(share).clamp(LEAST, ONCE)
}

/// Runs the verb.
pub fn run(args: &Stat, global: &Global) -> Outcome {
    let words = Words::read(&args.words, args.every, args.count).map_err(Failure::usage)?;
    let live = input::is_live(&global.machine);
    if let Some(file) = &args.from {
        if !live || words.every.is_some() {
            return Err(Failure::usage(
                "--from shows a recording: neither an interval nor --machine goes with it, but --at TIME",
            ));
        }
        return recorded::show(args, global, &words, file);
    }
    let needs_interval = args.check || args.mbm || args.uncore;
    let interval = words.every.or_else(|| (needs_interval && live).then_some(CHECKED));
    if !live && (interval.is_some() || !wanted(args, &words).is_empty()) {
        return Err(Failure::usage(
            "--machine shows one moment: intervals and processes exist on the running system only",
        ));
    }
    let processes = if live { subject::find(&wanted(args, &words), Tree::live())? } else { None };
    let count = words.count.or_else(|| (needs_interval && words.every.is_none()).then_some(1));
    let reader = Reader { args, global, live, named: processes, interval, count };
    match interval {
        Some(interval) => reader.intervals(interval),
        None => reader.once(),
    }
}

/// The processes that were asked for.
fn wanted<'a>(args: &'a Stat, words: &'a Words) -> WantedProcesses<'a> {
    WantedProcesses {
        pids: args.pid.iter().chain(&words.pids).copied().collect(),
        names: &words.names,
        cgroup: args.cgroup.as_deref(),
        unit: args.unit.as_deref(),
        container: args.container.as_deref(),
    }
}

/// The readings of a run.
struct Reader<'a> {
    args: &'a Stat,
    global: &'a Global,
    live: bool,
    /// Processes that were asked for; `None`: those that matter.
    named: Option<BTreeSet<nodewise_source::process::Pid>>,
    interval: Option<Duration>,
    count: Option<u64>,
}

impl Reader<'_> {
    fn options(&self) -> SampleOptions {
        let always = self.named.clone().unwrap_or_default();
        let budget = self.interval.map_or(ONCE, |interval| page_budget(interval, SHARE));
        SampleOptions {
            processes: match (&self.named, self.live) {
                (_, false) => ProcessScope::None,
                (Some(named), _) => ProcessScope::Only(named.clone()),
                (None, _) => ProcessScope::All,
            },
            threads: match (&self.named, self.live) {
                (_, false) => ThreadScope::None,
                (Some(named), _) => ThreadScope::Only(named.clone()),
                (None, _) => ThreadScope::Busy(BTreeSet::new()),
            },
            groups: (self.args.check || self.args.services) && self.live,
            pages: self.live.then_some(PageOptions { budget, always, ..PageOptions::default() }),
            interrupts: if self.args.irq { InterruptScope::Queues } else { InterruptScope::None },
            bandwidth: if self.args.mbm { BandwidthScope::All } else { BandwidthScope::None },
            controllers: if self.args.uncore { BandwidthScope::All } else { BandwidthScope::None },
        }
    }

    fn sampler(&self, tree: Tree) -> Sampler {
        let sampler = Sampler::new(tree, self.options());
        if self.live {
            sampler.drawing(Box::new(LiveDrawer::new(measuring::seed(None)))).counting(Box::new(LiveCounters))
        } else {
            sampler
        }
    }

    /// One reading, since boot.
    fn once(&self) -> Outcome {
        let tree = if self.live {
            Tree::live()
        } else {
            input::load(&self.global.machine, Detail::Overview)?.into_tree()
        };
        let mut sampler = self.sampler(tree);
        let now = if self.live { Moment::now() } else { Moment::default() };
        let sample = sampler.sample(now);
        let mut running = self.digest(&sample, &Delta::since_boot(&sample))?;
        if self.args.check {
            running.checks = identity::check(&sample, None);
        }
        self.show(&running, false)?;
        Ok(self.code(&running))
    }

    /// Readings with an interval between them, until there are enough or Ctrl-C.
    fn intervals(&self, interval: Duration) -> Outcome {
        let interrupt = measuring::interrupt()?;
        let mut sampler = self.sampler(Tree::live());
        if self.named.is_none() {
            sampler.sample(Moment::now());
            measuring::wait(Instant::now() + WARM_UP, &interrupt, || false);
        }
        let mut deadline = Instant::now();
        let first = sampler.sample(Moment::now());
        let (mut before, mut code, mut shown) = (first.clone(), 0, 0);
        let several = self.count != Some(1);
        while !interrupt.load(Ordering::Relaxed) && self.count.is_none_or(|count| shown < count) {
            // A sample that came late, or a stop in between, moves the ones behind it.
            deadline = (deadline + interval).max(Instant::now());
            let began = Instant::now();
            measuring::wait(deadline, &interrupt, output::has_lost_its_reader);
            if output::has_lost_its_reader() {
                return Ok(code);
            }
            if interrupt.load(Ordering::Relaxed) && began.elapsed() < SHORTEST {
                break;
            }
            let now = sampler.sample(Moment::now());
            let delta = Delta::between(&before, &now).map_err(Failure::cannot)?;
            let mut running = self.digest(&now, &delta)?;
            if self.args.check {
                let readings = identity::Interval { delta: &delta, readings: 1 };
                running.checks = identity::check(&now, Some(readings));
            }
            code = code.max(self.code(&running));
            if shown == 0 && self.args.csv {
                output::print(csv::stat::HEAD)?;
            } else if shown > 0 && self.is_text() {
                output::print("\n")?;
            }
            self.show(&running, several)?;
            shown += 1;
            before = now;
        }
        // As the averages of pidstat and mpstat.
        if shown > 1 && self.is_text() {
            let all = Delta::between(&first, &before).map_err(Failure::cannot)?;
            output::print(&format!("\nAll {shown} intervals\n"))?;
            self.show(&self.digest(&before, &all)?, several)?;
        }
        Ok(code)
    }

    fn is_text(&self) -> bool {
        !self.args.json && !self.args.csv
    }

    fn digest(&self, sample: &Sample, delta: &Delta) -> Result<Running, Failure> {
        if sample.nodes.is_empty() {
            return Err(Failure::cannot("this kernel describes no NUMA node"));
        }
        let choice = Choice {
            shown: if self.named.is_some() { Shown::All } else { Shown::Notable },
            sort: match self.args.sort {
                SortBy::Notable => Sort::Notable,
                SortBy::Cpu => Sort::Cpu,
                SortBy::Memory => Sort::Memory,
                SortBy::Stranded => Sort::Stranded,
                SortBy::Moved => Sort::Moved,
                SortBy::Pid => Sort::Pid,
            },
            top: self.args.top,
            threads: self.args.threads,
            raw: self.args.raw,
            services: self.args.services,
        };
        Ok(Running::new(sample, delta, choice))
    }

    fn show(&self, running: &Running, several: bool) -> io::Result<()> {
        if self.args.csv {
            let head = if self.interval.is_none() { csv::stat::HEAD } else { "" };
            return output::print(&format!("{head}{}", csv::stat(running)));
        }
        let json = || if several { json::stat_line(running) } else { json::stat(running) };
        output::show(self.args.json, self.global.color, json, |style| text::stat(running, style))
    }

    fn code(&self, running: &Running) -> u8 {
        u8::from(running.checks.iter().any(|check| !check.holds))
    }
}
