//! Theoretical peaks of memory in the document of bandwidths: written, and read back.

use nodewise_machine::memory_slot::peak::{PeakBandwidth, PeakTerm};
use nodewise_measure::bandwidth::{BandwidthReport, BandwidthYardstick, PeakOwner, PeakShare};
use nodewise_measure::survey::figure::rounded;
use serde::{Deserialize, Serialize};

use super::reading::{items, node};

/// More nodes than any machine has, and more kinds of channels.
const MOST_NODES: usize = 1024;
const MOST_TERMS: usize = 64;

/// The peaks of a machine.
#[derive(Serialize, Deserialize)]
pub(super) struct YardstickJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    sockets: Option<u32>,
    nodes: Vec<NodeJson>,
    machine: PeakJson,
}

#[derive(Serialize, Deserialize)]
struct NodeJson {
    memory_node: u32,
    #[serde(flatten)]
    peak: PeakJson,
}

/// A peak, or why it is unknown, and what was reached of it: the latter is derived, and not read.
#[derive(Serialize, Deserialize)]
struct PeakJson {
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    peak_gb_per_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    channels: Vec<TermJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<String>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    reached_gb_per_s: Option<f64>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    reached_with: Option<&'static str>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
}

/// Channels that are alike.
#[derive(Serialize, Deserialize)]
struct TermJson {
    count: u32,
    mt_per_s: u32,
    bytes_per_transfer: u32,
}

impl YardstickJson {
    /// The peaks of a report; `None` where it has none.
    pub(super) fn from_report(report: &BandwidthReport) -> Option<Self> {
        let yardstick = report.yardstick.as_ref()?;
        let shares = report.peak_shares();
        let share = |owner: PeakOwner| shares.iter().find(|share| share.owner == owner);
        let of_node = |(node, peak): &(_, Result<PeakBandwidth, String>)| {
            let peak = PeakJson::new(peak, share(PeakOwner::Node(*node)));
            NodeJson { memory_node: node.number(), peak }
        };
        Some(Self {
            sockets: yardstick.sockets,
            nodes: yardstick.nodes.iter().map(of_node).collect(),
            machine: PeakJson::new(&yardstick.machine, share(PeakOwner::Machine)),
        })
    }

    pub(super) fn read(self) -> Result<BandwidthYardstick, String> {
        if self.sockets == Some(0) {
            return Err("peak.sockets is 0: expected 1 or more".to_owned());
        }
        let of_node = |one: NodeJson| Ok((node(one.memory_node)?, one.peak.read()?));
        Ok(BandwidthYardstick {
            nodes: items("peak.nodes", self.nodes, MOST_NODES, of_node)?,
            machine: self.machine.read().map_err(|error| format!("peak.machine: {error}"))?,
            sockets: self.sockets,
        })
    }
}

impl PeakJson {
    fn new(peak: &Result<PeakBandwidth, String>, share: Option<&PeakShare<'_>>) -> Self {
        let term = |term: &PeakTerm| TermJson {
            count: term.channels,
            mt_per_s: term.mt_per_s,
            bytes_per_transfer: term.bytes,
        };
        Self {
            peak_gb_per_s: peak.as_ref().ok().map(|peak| rounded(peak.gb_per_s())),
            channels: peak
                .as_ref()
                .map_or_else(|_| Vec::new(), |peak| peak.terms().iter().map(term).collect()),
            unknown: peak.as_ref().err().cloned(),
            reached_gb_per_s: share.and_then(PeakShare::reached_gb_per_s).map(rounded),
            reached_with: share.and_then(|share| share.most).map(|way| way.kernel.name()),
            share: share.and_then(PeakShare::share).map(rounded),
        }
    }

    fn read(self) -> Result<Result<PeakBandwidth, String>, String> {
        match (self.channels.is_empty(), self.unknown) {
            (true, Some(why)) => Ok(Err(why)),
            (true, None) => Err("expected either channels or unknown".to_owned()),
            (false, Some(_)) => Err("expected either channels or unknown, not both".to_owned()),
            (false, None) => {
                let term = |term: TermJson| {
                    let TermJson { count: channels, mt_per_s, bytes_per_transfer: bytes } = term;
                    Ok(PeakTerm { channels, mt_per_s, bytes })
                };
                let terms = items("channels", self.channels, MOST_TERMS, term)?;
                let wrong = || "channels: expected numbers above 0 that memory can have".to_owned();
                Ok(Ok(PeakBandwidth::new(terms).ok_or_else(wrong)?))
            }
        }
    }
}
