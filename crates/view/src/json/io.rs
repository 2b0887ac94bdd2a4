//! `nodewise.io/1`: devices, where they hang, and what reading them gave.

use nodewise_machine::{Bytes, NodeId};
use nodewise_measure::io::{Access, DeviceReport, Home, LARGE, Report, SMALL, WayReport};
use serde::Serialize;

use super::cells::{AccountJson, BackingJson, GbPerSJson, ReachJson};
use super::conditions::ConditionsJson;
use super::perftest::ComparisonJson;
use super::pretty;
use crate::digest::io::told;

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.io/1";

/// Writes a report as JSON, indented, with a line end.
pub fn io(report: &Report) -> String {
    pretty(&Document {
        schema: SCHEMA,
        conditions: ConditionsJson::of(&report.account.conditions),
        buffer_bytes: report.size.get(),
        large_block_bytes: LARGE.get(),
        small_block_bytes: SMALL.get(),
        account: AccountJson::of(&report.account),
        devices: report.devices.iter().map(DeviceJson::of).collect(),
        findings: told(report).into_iter().map(|told| told.sentence).collect(),
    })
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    conditions: ConditionsJson,
    buffer_bytes: u64,
    large_block_bytes: u64,
    small_block_bytes: u64,
    #[serde(flatten)]
    account: AccountJson,
    devices: Vec<DeviceJson>,
    findings: Vec<String>,
}

#[derive(Serialize)]
struct DeviceJson {
    name: String,
    kind: &'static str,
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

#[derive(Serialize)]
struct ReadJson {
    access: &'static str,
    #[serde(flatten)]
    rate: GbPerSJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    median_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    median_interval_95_us: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    best_us: Option<f64>,
    #[serde(flatten)]
    reach: ReachJson,
    #[serde(flatten)]
    backing: BackingJson,
}

impl DeviceJson {
    fn of(device: &DeviceReport) -> Self {
        let node_unknown = match &device.home {
            Home::Node(_) => None,
            Home::Unknown(why) => Some(why.clone()),
        };
        Self {
            name: device.name.clone(),
            kind: device.kind.word(),
            node: device.home.node().map(NodeId::number),
            node_unknown,
            size_bytes: device.size.map(Bytes::get),
            refused: device.refused.clone(),
            reads: device.ways.iter().map(ReadJson::of).collect(),
            perftest: device.perftest.iter().map(ComparisonJson::of).collect(),
        }
    }
}

impl ReadJson {
    fn of(way: &WayReport) -> Self {
        let of = |access| way.cell.figure.filter(|_| way.access == access);
        let (large, small) = (of(Access::Sequential), of(Access::Random));
        Self {
            access: way.access.word(),
            rate: GbPerSJson::of(large),
            median_us: small.map(|figure| figure.median),
            median_interval_95_us: small.and_then(|figure| figure.interval).map(super::ends),
            best_us: small.map(|figure| figure.best),
            reach: ReachJson::of(&way.cell),
            backing: BackingJson::of(&way.cell),
        }
    }
}
