//! Queues of network devices in a sample as JSON.
//!
//! They have a place of their own, by the place of their device among the devices with interrupts: queues hardly ever
//! change, and an array of devices is written whole as soon as one of their counters does.

use std::collections::BTreeMap;

use nodewise_machine::CpuSet;
use serde::{Deserialize, Serialize};

use super::{Fault, cpus};
use crate::sample::{InterruptSample, QueueSample};

/// Queues by device.
pub(super) type QueueFrames = BTreeMap<usize, Vec<QueueFrame>>;

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct QueueFrame {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flows: Option<u64>,
}

/// The queues of all devices that have some.
pub(super) fn frames(devices: &[InterruptSample]) -> QueueFrames {
    let frames =
        |device: &InterruptSample| device.queues.iter().map(QueueFrame::from).collect::<Vec<QueueFrame>>();
    devices.iter().map(frames).enumerate().filter(|(_, queues)| !queues.is_empty()).collect()
}

/// Gives devices their queues.
pub(super) fn add(frames: QueueFrames, devices: &mut [InterruptSample]) -> Result<(), Fault> {
    let count = devices.len();
    for (place, queues) in frames {
        let device = devices.get_mut(place).ok_or_else(|| format!("queues: device {place} of {count}"))?;
        device.queues = queues.into_iter().map(QueueSample::try_from).collect::<Result<_, Fault>>()?;
    }
    Ok(())
}

impl From<&QueueSample> for QueueFrame {
    fn from(queue: &QueueSample) -> Self {
        let cpus = queue.cpus.as_ref().map(CpuSet::to_string);
        Self { name: queue.name.clone(), cpus, flows: queue.flows }
    }
}

impl TryFrom<QueueFrame> for QueueSample {
    type Error = Fault;

    fn try_from(frame: QueueFrame) -> Result<Self, Fault> {
        let cpus = frame.cpus.as_deref().map(cpus).transpose()?;
        Ok(Self { name: frame.name, cpus, flows: frame.flows })
    }
}
