//! A survey as a whole, as it is reported: under which circumstances, how it went, and what of that
//! says that its figures may not repeat.

use std::time::Duration;

use nodewise_machine::NodeId;

use super::{CellReport, Figure, LeftOut, Survey};
use crate::cell::Glance;
use crate::latency::cache::LastLevel;
use nodewise_machine::conditions::Conditions;

/// A cell is not known well when its interval reaches this far from its median.
const UNCERTAIN: f64 = 0.05;
/// The share of the CPUs' time that makes a machine too noisy: stolen by its host, or used by other
/// programs, as a share of one CPU.
const STOLEN: f64 = 0.01;
const OTHERS: f64 = 0.25;

/// A survey as a whole.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Account {
    pub conditions: Conditions,
    /// The seed of the order of samples, and of all else that is drawn.
    pub seed: u64,
    /// The kernel's name of the clock.
    pub clock: String,
    /// How long all of it took.
    pub took: Duration,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// The parts that a limit of time has left out.
    pub left_out: Option<LeftOut>,
    /// Events around the survey, from its beginning to its end.
    pub meanwhile: Glance,
    /// The cache that decided how much memory was used; `None` where the user did.
    pub last_level: Option<LastLevel>,
}

/// A reason to believe figures less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// It was ended early. Fewer samples than wanted are not noise yet.
    Interrupted,
    /// A limit of time has left something out.
    LeftOut(LeftOut),
    /// The system's host took time while this was measured.
    Stolen {
        /// Of one CPU's time, of 1.
        share: f64,
    },
    Others {
        /// CPUs that they used on average.
        cpus: f64,
    },
    /// Some cells stay disturbed after they were measured once more.
    Disturbed { cells: usize, of: usize },
    Uncertain {
        cells: usize,
        of: usize,
        /// The widest: half of it as a share of the median.
        widest: f64,
    },
}

impl Noise {
    /// Whether figures may not repeat for it, rather than be fewer.
    pub const fn is_disturbance(&self) -> bool {
        !matches!(self, Self::Interrupted | Self::LeftOut(_))
    }
}

impl Account {
    /// The account of a survey that has ended.
    pub fn from_survey(survey: &Survey, conditions: Conditions, clock: &str) -> Self {
        Self {
            conditions,
            seed: survey.seed,
            clock: clock.to_owned(),
            took: survey.took,
            interrupted: survey.interrupted,
            left_out: survey.left_out,
            meanwhile: survey.meanwhile,
            last_level: None,
        }
    }

    /// The account of a survey over as much memory as this cache asks for.
    #[must_use]
    pub fn sized_by(self, last_level: Option<LastLevel>) -> Self {
        Self { last_level, ..self }
    }

    /// Why it holds less than was planned, if it does.
    pub fn shortened(&self) -> Option<Noise> {
        self.interrupted.then_some(Noise::Interrupted).or(self.left_out.map(Noise::LeftOut))
    }

    /// Whether the system's host took too much time.
    pub fn stolen(&self) -> Option<Noise> {
        let share = self.share(self.meanwhile.stolen).filter(|share| *share > STOLEN)?;
        Some(Noise::Stolen { share })
    }

    /// Whether other programs took too much.
    pub fn others(&self) -> Option<Noise> {
        let cpus = self.share(self.meanwhile.others).filter(|cpus| *cpus > OTHERS)?;
        Some(Noise::Others { cpus })
    }

    fn share(&self, time: Option<Duration>) -> Option<f64> {
        let took = self.took.as_secs_f64();
        time.filter(|_| took > 0.0).map(|time| time.as_secs_f64() / took)
    }

    /// How far the figures of these cells can be believed.
    pub fn noise<'c>(&self, cells: impl Iterator<Item = &'c CellReport>) -> Vec<Noise> {
        let measured: Vec<(&CellReport, &Figure)> =
            cells.filter_map(|cell| Some((cell, cell.figure.as_ref()?))).collect();
        let mut noise: Vec<Noise> = self.shortened().into_iter().collect();
        let of = measured.len();
        if of == 0 {
            // There is nothing that noise could have changed.
            return noise;
        }
        noise.extend(self.stolen().into_iter().chain(self.others()));
        let cells = measured.iter().filter(|(cell, _)| cell.disturbed).count();
        noise.extend((cells > 0).then_some(Noise::Disturbed { cells, of }));
        // Without an interval nothing is known of how sure a figure is.
        let uncertainty = |figure: &Figure| figure.uncertainty().unwrap_or(f64::INFINITY);
        let all = measured.iter().map(|(_, figure)| uncertainty(figure));
        let wide: Vec<f64> = all.filter(|wide| *wide > UNCERTAIN).collect();
        let widest = wide.iter().copied().reduce(f64::max);
        noise.extend(widest.map(|widest| Noise::Uncertain { cells: wide.len(), of, widest }));
        noise
    }
}

/// The figures of the kernel and the firmware for a pair of nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Declared {
    /// The node of the CPUs.
    pub from: NodeId,
    /// The node of the memory.
    pub memory: NodeId,
    /// Its distance in the SLIT: 10 is local.
    pub distance: Option<u32>,
    /// Its read latency in the HMAT, ns.
    pub read_latency_ns: Option<u32>,
    /// Its read bandwidth in the HMAT, GB/s.
    pub read_gb_per_s: Option<f64>,
}

/// The most rounds and the most samples that any of these figures has.
pub fn extent<'f>(figures: impl Iterator<Item = &'f Figure>) -> (usize, usize) {
    figures.fold((0, 0), |(rounds, samples), figure| (rounds.max(figure.rounds), samples.max(figure.samples)))
}

/// Collects the items that there are, each once, ascending.
pub(crate) fn distinct<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}
