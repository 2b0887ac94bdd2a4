//! The record of `nodewise latency --loaded`: everything that is shown, as plain data.

use nodewise_machine::{Bytes, CpuSet, NodeId};
use nodewise_syscall::PageKind;

use super::{Knee, Loaded, best_cpu, knee};
use crate::cell::{Cell, Refusal};
use crate::kernel::bandwidth::Kernel;
use crate::survey::{Account, CellReport, Figure, Outcome};
use nodewise_stats::Direction;

/// Curves of latency against bandwidth, and how they were measured.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedReport {
    /// The survey as a whole.
    pub account: Account,
    pub pages: PageKind,
    /// The size of the buffer that is chased through.
    pub size: Bytes,
    /// The size of the memory of all traffic on a node.
    pub traffic_size: Bytes,
    /// Who chases where, and who moves data meanwhile.
    pub paths: Vec<Path>,
}

/// One chase, and the traffic of some CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    pub idle: CellReport,
    /// The 90th percentile of its latency, over blocks of loads: its median over the rounds, ns.
    pub idle_p90_ns: Option<f64>,
    /// The node of the CPUs that move data.
    pub traffic_from: NodeId,
    pub traffic_cpus: CpuSet,
    /// The node of their memory.
    pub traffic_memory: NodeId,
    /// Whether one of them shares its core with the one that chases: there is no other.
    pub shares_core: bool,
    /// A curve per kind of traffic.
    pub curves: Vec<Curve>,
}

/// Latency against bandwidth, for one kind of traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    pub kernel: Kernel,
    /// How, in words; `None` where there was no contest.
    pub variant: Option<String>,
    /// Its points, from the longest pause to none.
    pub points: Vec<Point>,
}

/// A point of a curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The pause after each 4 KiB, ns.
    pub pause_ns: u32,
    /// The latency, and where the memory of chase and traffic was, both counted together.
    pub cell: CellReport,
    /// The 90th percentile of the latency, over blocks of loads: its median over the rounds, ns.
    pub p90_ns: Option<f64>,
    /// The rate of the traffic meanwhile, GB/s that the program names; the chase not counted.
    pub load: Option<Figure>,
}

/// The 90th percentile of the latency of a point.
pub fn p90_ns(outcome: &Outcome) -> Option<f64> {
    let figure = outcome.figure_of(Direction::LowerIsBetter, |sample| Some(sample.beside?.p90));
    figure.map(|figure| figure.median)
}

/// The outcome of the chase of a point; `explain` makes a sentence of a refusal.
pub fn cell(loaded: &Loaded, outcome: &Outcome, explain: &dyn Fn(&Refusal) -> String) -> CellReport {
    let cell: &Cell = &loaded.chase.cell;
    let cpus: CpuSet = best_cpu(&cell.cpus).into_iter().collect();
    let mut report = CellReport::new(cell, cpus, outcome, Direction::LowerIsBetter, explain);
    let placed = outcome.after.as_ref().filter(|_| outcome.refusal.is_none() && outcome.has_moved());
    if let (Some(placed), Some(_)) = (placed, &loaded.traffic) {
        report.refused = Some(format!(
            "pages of the chase and of the traffic did not stay: {} of {} were left where they should be",
            placed.on_node, placed.pages
        ));
    }
    report
}

impl Point {
    /// The outcome of a point with traffic; `None` for one without.
    pub fn new(loaded: &Loaded, outcome: &Outcome, explain: &dyn Fn(&Refusal) -> String) -> Option<Self> {
        let pause_ns = loaded.traffic.as_ref()?.pause_ns;
        let load = outcome.figure_of(Direction::HigherIsBetter, |sample| sample.beside?.load);
        let cell = cell(loaded, outcome, explain);
        Some(Self { pause_ns, cell, p90_ns: p90_ns(outcome), load })
    }

    /// Bandwidth and latency, medians: GB/s that the program names, and ns.
    pub fn place(&self) -> Option<(f64, f64)> {
        Some((self.load.as_ref()?.median, self.cell.figure.as_ref()?.median))
    }
}

impl Curve {
    /// The points that have figures: GB/s and ns, from the longest pause to none.
    pub fn places(&self) -> Vec<(f64, f64)> {
        self.points.iter().filter_map(Point::place).collect()
    }

    /// The point with the most traffic.
    pub fn most(&self) -> Option<&Point> {
        let rated = self.points.iter().filter_map(|point| Some((point.place()?.0, point)));
        rated.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, point)| point)
    }
}

impl Path {
    /// The median of the idle latency, ns.
    pub fn idle_ns(&self) -> Option<f64> {
        self.idle.figure.as_ref().map(|figure| figure.median)
    }

    /// Where one of its curves bends; `None` without an idle latency, or points.
    pub fn knee(&self, curve: &Curve) -> Option<Knee> {
        knee(self.idle_ns()?, &curve.places())
    }
}

impl LoadedReport {
    /// The cells of all points, idle ones first in each path.
    pub fn cells(&self) -> impl Iterator<Item = &CellReport> {
        self.paths.iter().flat_map(|path| {
            let points = path.curves.iter().flat_map(|curve| &curve.points);
            std::iter::once(&path.idle).chain(points.map(|point| &point.cell))
        })
    }

    /// The loads of all points.
    pub fn loads(&self) -> impl Iterator<Item = &Figure> {
        let curves = self.paths.iter().flat_map(|path| &path.curves);
        curves.flat_map(|curve| &curve.points).filter_map(|point| point.load.as_ref())
    }
}
