//! `nodewise.bandwidth/2`: bandwidths of memory, with how each way was measured. Written, and read back
//! to be drawn.

use std::collections::BTreeMap;

use nodewise_machine::id::Id as _;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, CpuId};
use nodewise_measure::bandwidth::{BandwidthReport, TransferReport};
use nodewise_measure::survey::Declared;
use nodewise_measure::survey::figure::rounded;
use serde::{Deserialize, Serialize};

use super::cells::{AccountJson, BackingJson, GbPerSJson, ReachJson};
use super::conditions::ConditionsJson;
use super::peak::YardstickJson;
use super::pretty;
use super::published::PublishedJson;
use super::reading::{Saved, items, kernel, node, other_schema, positive};
use crate::digest::bandwidth::{finding_sentences, published};

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.bandwidth/2";

/// The schemas of documents that are read. Version 1 had the number of disturbed samples without causes.
pub const READ: [&str; 2] = [SCHEMA, "nodewise.bandwidth/1"];

/// More ways than any machine has, for documents that are read: 1,024 nodes either way.
const MOST_WAYS: usize = 1024 * 1024;

/// Writes a report as JSON, indented, with a line end.
pub fn bandwidth(report: &BandwidthReport) -> String {
    pretty(&Document::from_report(report))
}

/// Reads a report that [`bandwidth`] has written.
///
/// # Errors
/// What is wrong and where, fit to be shown.
pub fn read(saved: &Saved<'_>) -> Result<BandwidthReport, String> {
    saved.contents_of::<Document>(&READ)?.read()
}

/// The document. Values derived of the ways are written for readers and not read.
#[derive(Serialize, Deserialize)]
pub(super) struct Document {
    schema: String,
    conditions: ConditionsJson,
    size_bytes: u64,
    #[serde(flatten)]
    account: AccountJson,
    kernel: String,
    matrix: Vec<WayJson>,
    kernels: Vec<WayJson>,
    threads: Vec<WayJson>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    knee_threads: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    all_nodes: Option<WayJson>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    interleave_weights: Option<BTreeMap<u32, u32>>,
    declared: Vec<DeclaredJson>,
    /// Left out in documents from before it was looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    peak: Option<YardstickJson>,
    #[serde(skip_deserializing)]
    published: Vec<PublishedJson>,
    #[serde(skip_deserializing)]
    findings: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct WayJson {
    kernel: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    variant: Option<String>,
    threads: usize,
    #[serde(flatten)]
    reach: ReachJson,
    #[serde(flatten)]
    rate: GbPerSJson,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    bus_gb_per_s_at_most: Option<f64>,
    #[serde(flatten)]
    backing: BackingJson,
}

#[derive(Serialize, Deserialize)]
struct DeclaredJson {
    from_node: u32,
    memory_node: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_gb_per_s: Option<f64>,
}

impl Document {
    fn from_report(report: &BandwidthReport) -> Self {
        let ways = |ways: &[TransferReport]| ways.iter().map(WayJson::from_transfer).collect();
        let weights = report.weights().map(|weights| {
            weights.weights.into_iter().map(|(node, weight)| (node.number(), weight)).collect_map()
        });
        Self {
            schema: SCHEMA.to_owned(),
            conditions: ConditionsJson::from_conditions(&report.account.conditions),
            size_bytes: report.size.get(),
            account: AccountJson::from_account(&report.account),
            kernel: report.kernel.name().to_owned(),
            matrix: ways(&report.matrix),
            kernels: ways(&report.kernels),
            threads: ways(&report.scaling),
            knee_threads: report.knee(),
            all_nodes: report.everywhere.as_ref().map(WayJson::from_transfer),
            interleave_weights: weights,
            declared: report.declared.iter().map(DeclaredJson::from_declared).collect(),
            peak: YardstickJson::from_report(report),
            published: published(report).into_iter().map(PublishedJson::from_range).collect(),
            findings: finding_sentences(report).into_iter().map(|finding| finding.sentence).collect(),
        }
    }

    /// The report, of a document inside another one.
    pub(super) fn embedded(self) -> Result<BandwidthReport, String> {
        if READ.contains(&self.schema.as_str()) {
            self.read()
        } else {
            Err(other_schema(&self.schema, &READ))
        }
    }

    fn read(self) -> Result<BandwidthReport, String> {
        let ways = |name, ways| items(name, ways, MOST_WAYS, |way| WayJson::read(way, false));
        Ok(BandwidthReport {
            account: self.account.read(self.conditions.read())?,
            size: Bytes::new(self.size_bytes),
            kernel: kernel(&self.kernel)?,
            matrix: ways("matrix", self.matrix)?,
            kernels: ways("kernels", self.kernels)?,
            scaling: ways("threads", self.threads)?,
            everywhere: self.all_nodes.map(|way| way.read(true)).transpose()?,
            declared: items("declared", self.declared, MOST_WAYS, DeclaredJson::read)?,
            yardstick: self.peak.map(YardstickJson::read).transpose()?,
        })
    }
}

impl WayJson {
    fn from_transfer(way: &TransferReport) -> Self {
        Self {
            kernel: way.kernel.name().to_owned(),
            variant: way.variant.clone(),
            threads: way.threads,
            reach: ReachJson::from_cell(&way.cell),
            rate: GbPerSJson::from_figure(way.cell.figure),
            bus_gb_per_s_at_most: way.bus_gb_per_s().map(rounded),
            backing: BackingJson::from_cell(&way.cell),
        }
    }

    fn read(self, everywhere: bool) -> Result<TransferReport, String> {
        let (threads, most) = (self.threads, CpuId::LIMIT);
        if threads == 0 || threads > most as usize {
            return Err(format!("threads is {threads}: expected 1 to {most}"));
        }
        Ok(TransferReport {
            kernel: kernel(&self.kernel)?,
            variant: self.variant,
            threads,
            everywhere,
            cell: self.reach.read(&self.rate, self.backing)?,
        })
    }
}

impl DeclaredJson {
    fn from_declared(declared: &Declared) -> Self {
        Self {
            from_node: declared.from.number(),
            memory_node: declared.memory.number(),
            distance: declared.distance,
            read_gb_per_s: declared.read_gb_per_s.map(rounded),
        }
    }

    fn read(self) -> Result<Declared, String> {
        // Firmware may declare nothing.
        let rate = |rate| if rate == 0.0 { Ok(rate) } else { positive("read_gb_per_s", rate) };
        Ok(Declared {
            from: node(self.from_node)?,
            memory: node(self.memory_node)?,
            distance: self.distance,
            read_latency_ns: None,
            read_gb_per_s: self.read_gb_per_s.map(rate).transpose()?,
        })
    }
}
