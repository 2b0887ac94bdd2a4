//! `nodewise.io/2`: devices, where they hang, and what reading them gave. Written, and read back to be drawn.

use nodewise_machine::{Bytes, NodeId};
use nodewise_measure::io::{
    Access, DeviceKind, DeviceReport, Home, IoReport, IoTransferReport, LARGE, SMALL,
};
use nodewise_measure::survey::Figure;
use nodewise_measure::survey::figure::rounded;
use serde::{Deserialize, Serialize};

use super::cells::{AccountJson, BackingJson, GbPerSJson, ReachJson};
use super::conditions::ConditionsJson;
use super::perftest::{self, ComparisonJson};
use super::pretty;
use super::reading::{Fields, Saved, items, named, node};
use crate::digest::io::finding_sentences;

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.io/2";

/// The schemas of documents that are read. Version 1 had the number of disturbed samples without causes.
pub const READ: [&str; 2] = [SCHEMA, "nodewise.io/1"];

/// More than any machine has, for documents that are read.
const MOST_DEVICES: usize = 64 * 1024;
/// Two ways for each of 1,024 nodes.
const MOST_READS: usize = 2 * 1024;

/// Writes a report as JSON, indented, with a line end.
pub fn io(report: &IoReport) -> String {
    pretty(&Document {
        schema: SCHEMA.to_owned(),
        conditions: ConditionsJson::from_conditions(&report.account.conditions),
        buffer_bytes: report.size.get(),
        large_block_bytes: LARGE.get(),
        small_block_bytes: SMALL.get(),
        account: AccountJson::from_account(&report.account),
        devices: report.devices.iter().map(DeviceJson::from_device).collect(),
        findings: finding_sentences(report).into_iter().map(|finding| finding.sentence).collect(),
    })
}

/// Reads a report that [`io`] has written.
///
/// # Errors
/// What is wrong and where, fit to be shown.
pub fn read(saved: &Saved<'_>) -> Result<IoReport, String> {
    let document: Document = saved.contents_of(&READ)?;
    Ok(IoReport {
        account: document.account.read(document.conditions.read())?,
        size: Bytes::new(document.buffer_bytes),
        devices: items("devices", document.devices, MOST_DEVICES, DeviceJson::read)?,
    })
}

/// The document. Values derived of the devices are written for readers and not read.
#[derive(Serialize, Deserialize)]
struct Document {
    schema: String,
    conditions: ConditionsJson,
    buffer_bytes: u64,
    #[serde(skip_deserializing)]
    large_block_bytes: u64,
    #[serde(skip_deserializing)]
    small_block_bytes: u64,
    #[serde(flatten)]
    account: AccountJson,
    devices: Vec<DeviceJson>,
    #[serde(skip_deserializing)]
    findings: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct DeviceJson {
    name: String,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_unknown: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    reads: Vec<ReadJson>,
    perftest: Vec<ComparisonJson>,
}

#[derive(Serialize, Deserialize)]
struct ReadJson {
    access: String,
    #[serde(flatten)]
    rate: GbPerSJson,
    #[serde(flatten)]
    time: MicrosecondsJson,
    #[serde(flatten)]
    reach: ReachJson,
    #[serde(flatten)]
    backing: BackingJson,
}

/// A figure in us.
#[derive(Serialize, Deserialize)]
struct MicrosecondsJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    median_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    median_interval_95_us: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    best_us: Option<f64>,
}

impl MicrosecondsJson {
    fn from_figure(figure: Option<Figure>) -> Self {
        let interval = figure.and_then(|figure| figure.interval);
        Self {
            median_us: figure.map(|figure| rounded(figure.median)),
            median_interval_95_us: interval.map(|interval| [rounded(interval.low), rounded(interval.high)]),
            best_us: figure.map(|figure| rounded(figure.best)),
        }
    }

    fn read(&self, rounds: usize, samples: usize) -> Result<Option<Figure>, String> {
        let (median, interval) = (self.median_us, self.median_interval_95_us);
        Fields { unit: "us", median, interval, best: self.best_us, rounds, samples }.read()
    }
}

impl DeviceJson {
    fn from_device(device: &DeviceReport) -> Self {
        let node_unknown = match &device.home {
            Home::Node(_) => None,
            Home::Unknown(why) => Some(why.clone()),
        };
        Self {
            name: device.name.clone(),
            kind: device.kind.word().to_owned(),
            node: device.home.node().map(NodeId::number),
            node_unknown,
            size_bytes: device.size.map(Bytes::get),
            refused: device.refused.clone(),
            reads: device.ways.iter().map(ReadJson::from_transfer).collect(),
            perftest: device.perftest.iter().map(ComparisonJson::from_comparison).collect(),
        }
    }

    fn read(self) -> Result<DeviceReport, String> {
        let home = match (self.node, self.node_unknown) {
            (Some(number), None) => Home::Node(node(number)?),
            (None, Some(why)) => Home::Unknown(why),
            _ => return Err("expected either node or node_unknown".to_owned()),
        };
        Ok(DeviceReport {
            name: self.name,
            kind: named("kind", &self.kind, &DeviceKind::ALL, DeviceKind::word)?,
            home,
            size: self.size_bytes.map(Bytes::new),
            refused: self.refused,
            ways: items("reads", self.reads, MOST_READS, ReadJson::read)?,
            perftest: perftest::tables("perftest", self.perftest)?,
        })
    }
}

impl ReadJson {
    fn from_transfer(way: &IoTransferReport) -> Self {
        let of = |access| way.cell.figure.filter(|_| way.access == access);
        Self {
            access: way.access.word().to_owned(),
            rate: GbPerSJson::from_figure(of(Access::Sequential)),
            time: MicrosecondsJson::from_figure(of(Access::Random)),
            reach: ReachJson::from_cell(&way.cell),
            backing: BackingJson::from_cell(&way.cell),
        }
    }

    fn read(self) -> Result<IoTransferReport, String> {
        let access = named("access", &self.access, &Access::ALL, Access::word)?;
        let (rounds, samples) = (self.backing.rounds, self.backing.samples);
        let figure = match access {
            Access::Sequential => self.rate.read(rounds, samples)?,
            Access::Random => self.time.read(rounds, samples)?,
        };
        Ok(IoTransferReport { access, cell: self.reach.read_with(figure, self.backing)? })
    }
}
