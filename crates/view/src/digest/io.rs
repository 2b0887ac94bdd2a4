//! Words and sentences of a report of devices.

use nodewise_measure::io::{
    Access, DeviceKind, DeviceReport, Home, IoFinding, IoReport, LARGE, SMALL, findings,
};
use nodewise_measure::survey::{CellReport, extent};

use crate::digest::survey::{Ending, FindingSentence, missing, proof, refusals};

/// Names the kind of a device, in words.
const fn kind_words(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Block => "block device",
        DeviceKind::File => "file",
        DeviceKind::Network => "network interface",
        DeviceKind::Rdma => "RDMA device",
        DeviceKind::Unknown => "not found",
    }
}

/// Describes a device: its kind, its size, and where it hangs: `block device, 256 GiB, on node 0`.
pub fn about(device: &DeviceReport) -> String {
    if device.kind == DeviceKind::Unknown {
        return kind_words(device.kind).to_owned();
    }
    let size = device.size.map_or_else(String::new, |size| format!(", {size}"));
    let home = match &device.home {
        Home::Node(node) => format!("on node {node}"),
        Home::Unknown(why) => format!("its node is not known: {why}"),
    };
    format!("{}{size}, {home}", kind_words(device.kind))
}

/// Where the thread ran that read a device: `read by CPU 1 of node 0`; `None` where nothing was read.
pub fn reader(device: &DeviceReport) -> Option<String> {
    let cell = &device.ways.iter().find(|way| way.cell.figure.is_some())?.cell;
    let cpu = cell.cpus.first()?;
    Some(format!("read by CPU {cpu} of node {}", cell.from))
}

/// A finding as a sentence.
fn sentence(finding: &IoFinding) -> String {
    match finding {
        IoFinding::Far { device, access, nodes: (best, worst), times, home } => {
            let what = match access {
                Access::Sequential => "bandwidth",
                Access::Random => "latency",
            };
            let near = match home {
                Some(home) if home == best => " (the node of the device)",
                _ => "",
            };
            format!(
                "{device}: buffers on node {best}{near} have {times:.2} times better {what} than on node {worst}"
            )
        }
    }
}

/// Returns the findings of the report, and how far they can be believed.
pub fn finding_sentences(report: &IoReport) -> Vec<FindingSentence> {
    findings(report).iter().map(|finding| FindingSentence::from_finding(finding, sentence)).collect()
}

/// How the report ends.
pub fn ending(report: &IoReport) -> Ending {
    let counted = method(report).map(|method| [method, COUNTED.to_owned()]);
    let proof = counted.as_ref().and_then(|_| proof(report.cells(), report.size));
    Ending {
        how: counted.into_iter().flatten().chain(proof).collect(),
        not_measured: report.devices.iter().flat_map(refusals_of).collect(),
        findings: finding_sentences(report).into_iter().collect(),
    }
    .with_not_reached(missing("way", report.cells().map(CellReport::is_reached)))
}

/// Lists the parts that were not read: the device as a whole, or its ways by reason.
fn refusals_of(device: &DeviceReport) -> Vec<(String, String)> {
    let whole = device.refused.iter().map(|why| (device.name.clone(), why.clone()));
    let place = |(place, why): (String, String)| (format!("{}, {place}", device.name), why);
    let parts = refusals(device.ways.iter().map(|way| &way.cell)).into_iter().map(place);
    whole.chain(parts).collect()
}

/// How it was measured, in one line; `None` where nothing was.
pub fn method(report: &IoReport) -> Option<String> {
    let (rounds, samples) = extent(report.cells().filter_map(|cell| cell.figure.as_ref()));
    (samples > 0).then(|| {
        format!(
            "direct I/O (O_DIRECT), opened for reading alone, one read at a time: blocks of up to {LARGE} one after \
             the other, and of {SMALL} at random places; buffers of {}; {rounds} rounds, {samples} samples per way, \
             interleaved; seed {}; {:.0} s",
            report.size,
            report.account.seed,
            report.account.took.as_secs_f64()
        )
    })
}

/// The meaning of the figures, in one line.
const COUNTED: &str = "GB/s are 10^9 bytes that the device gave; us is the median of the reads of a sample, from \
                           the call to its return; both the median over rounds";
