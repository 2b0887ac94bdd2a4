//! `nodewise.latency_loaded/1`: latency under load, as curves. Written, and read back to be drawn.
//!
//! A document of its own, as those of sweeps and tables are: a reader of `nodewise.latency/1` expects a
//! matrix.

use nodewise_machine::Bytes;
use nodewise_measure::kernel::bandwidth::Kernel;
use nodewise_measure::latency::loaded::{Curve, Knee, LoadedReport, Path, Point};
use nodewise_measure::survey::figure::rounded;
use serde::{Deserialize, Serialize};

use super::cells::{AccountJson, GbPerSJson, page_kind};
use super::conditions::ConditionsJson;
use super::latency::CellJson;
use super::pretty;
use super::reading::{Saved, items, kernel, node, pages, positive, set};
use crate::digest::loaded::finding_sentences;

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.latency_loaded/1";

/// More points than anybody measures, for documents that are read.
const MOST_POINTS: usize = 1 << 20;

/// Writes a report as JSON, indented, with a line end.
pub fn loaded(report: &LoadedReport) -> String {
    pretty(&Document::from_report(report))
}

/// Reads a report that [`loaded`] has written.
///
/// # Errors
/// What is wrong and where, fit to be shown.
pub fn read(saved: &Saved<'_>) -> Result<LoadedReport, String> {
    saved.contents::<Document>(SCHEMA)?.read()
}

#[derive(Serialize, Deserialize)]
struct Document {
    schema: String,
    conditions: ConditionsJson,
    pages: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    huge_page_bytes: Option<u64>,
    size_bytes: u64,
    traffic_size_bytes: u64,
    #[serde(flatten)]
    account: AccountJson,
    paths: Vec<PathJson>,
    #[serde(skip_deserializing)]
    findings: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct PathJson {
    idle: IdleJson,
    traffic_from_node: u32,
    traffic_cpus: String,
    traffic_memory_node: u32,
    shares_core: bool,
    curves: Vec<CurveJson>,
}

#[derive(Serialize, Deserialize)]
struct IdleJson {
    #[serde(flatten)]
    cell: CellJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    p90_ns: Option<f64>,
}

#[derive(Serialize, Deserialize)]
struct CurveJson {
    kernel: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    variant: Option<String>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    knee: Option<KneeJson>,
    points: Vec<PointJson>,
}

#[derive(Serialize)]
struct KneeJson {
    reached: bool,
    gb_per_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    times_idle_at_most: Option<f64>,
}

#[derive(Serialize, Deserialize)]
struct PointJson {
    pause_ns: u32,
    #[serde(flatten)]
    load: GbPerSJson,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    bus_gb_per_s_at_most: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p90_ns: Option<f64>,
    #[serde(flatten)]
    cell: CellJson,
}

impl Document {
    fn from_report(report: &LoadedReport) -> Self {
        let (pages, huge_page_bytes) = page_kind(report.pages);
        Self {
            schema: SCHEMA.to_owned(),
            conditions: ConditionsJson::from_conditions(&report.account.conditions),
            pages: pages.to_owned(),
            huge_page_bytes,
            size_bytes: report.size.get(),
            traffic_size_bytes: report.traffic_size.get(),
            account: AccountJson::from_account(&report.account),
            paths: report.paths.iter().map(PathJson::from_path).collect(),
            findings: finding_sentences(report).into_iter().map(|finding| finding.sentence).collect(),
        }
    }

    fn read(self) -> Result<LoadedReport, String> {
        let points =
            |path: &PathJson| 1 + path.curves.iter().map(|curve| 1 + curve.points.len()).sum::<usize>();
        if self.paths.iter().map(points).sum::<usize>() > MOST_POINTS {
            return Err(format!("it has more than {MOST_POINTS} points"));
        }
        Ok(LoadedReport {
            account: self.account.read(self.conditions.read())?,
            pages: pages(&self.pages, self.huge_page_bytes)?,
            size: Bytes::new(self.size_bytes),
            traffic_size: Bytes::new(self.traffic_size_bytes),
            paths: items("paths", self.paths, MOST_POINTS, PathJson::read)?,
        })
    }
}

impl PathJson {
    fn from_path(path: &Path) -> Self {
        Self {
            idle: IdleJson { cell: CellJson::from_cell(&path.idle), p90_ns: path.idle_p90_ns.map(rounded) },
            traffic_from_node: path.traffic_from.number(),
            traffic_cpus: path.traffic_cpus.to_string(),
            traffic_memory_node: path.traffic_memory.number(),
            shares_core: path.shares_core,
            curves: path.curves.iter().map(|curve| CurveJson::from_curve(path, curve)).collect(),
        }
    }

    fn read(self) -> Result<Path, String> {
        Ok(Path {
            idle: self.idle.cell.read()?,
            idle_p90_ns: self.idle.p90_ns.map(|p90| positive("p90_ns", p90)).transpose()?,
            traffic_from: node(self.traffic_from_node)?,
            traffic_cpus: set("traffic_cpus", &self.traffic_cpus)?,
            traffic_memory: node(self.traffic_memory_node)?,
            shares_core: self.shares_core,
            curves: items("curves", self.curves, MOST_POINTS, CurveJson::read)?,
        })
    }
}

impl CurveJson {
    fn from_curve(path: &Path, curve: &Curve) -> Self {
        let knee = path.knee(curve).map(|knee| match knee {
            Knee::At { gb_per_s } => {
                KneeJson { reached: true, gb_per_s: rounded(gb_per_s), times_idle_at_most: None }
            }
            Knee::NotReached { most, gb_per_s } => KneeJson {
                reached: false,
                gb_per_s: rounded(gb_per_s),
                times_idle_at_most: Some(rounded(most)),
            },
        });
        Self {
            kernel: curve.kernel.name().to_owned(),
            variant: curve.variant.clone(),
            knee,
            points: curve.points.iter().map(|point| PointJson::from_point(curve.kernel, point)).collect(),
        }
    }

    fn read(self) -> Result<Curve, String> {
        let points = items("points", self.points, MOST_POINTS, PointJson::read)?;
        Ok(Curve { kernel: kernel(&self.kernel)?, variant: self.variant, points })
    }
}

impl PointJson {
    fn from_point(kernel: Kernel, point: &Point) -> Self {
        let load = point.load.as_ref();
        Self {
            pause_ns: point.pause_ns,
            load: GbPerSJson::from_figure(point.load),
            bus_gb_per_s_at_most: load.map(|load| rounded(load.median * kernel.bus_factor())),
            p90_ns: point.p90_ns.map(rounded),
            cell: CellJson::from_cell(&point.cell),
        }
    }

    fn read(self) -> Result<Point, String> {
        let cell = self.cell.read()?;
        // The load was counted in the very samples of the latency.
        let (rounds, samples) = cell.figure.map_or((0, 0), |latency| (latency.rounds, latency.samples));
        let load = self.load.read(rounds, samples)?.filter(|_| cell.figure.is_some());
        let p90_ns = self.p90_ns.map(|p90| positive("p90_ns", p90)).transpose()?;
        Ok(Point { pause_ns: self.pause_ns, cell, p90_ns, load })
    }
}
