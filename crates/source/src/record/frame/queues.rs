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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nodewise_machine::CpuId;

    use super::super::Frame;
    use super::*;
    use crate::record::change::change;
    use crate::sample::{Moment, Sample};

    #[test]
    fn queues_that_stay_the_same_are_not_written_again() {
        let queue = |number: u32| QueueSample { name: format!("rx-{number}"), ..QueueSample::default() };
        let sample = |seconds: u64| Sample {
            moment: Moment { since_boot: Duration::from_secs(seconds), ..Moment::default() },
            interrupts: vec![InterruptSample {
                device: "net:eth0".to_owned(),
                by_cpu: vec![(CpuId::new(0), 100 * seconds)],
                queues: (0..64).map(queue).collect(),
                ..InterruptSample::default()
            }],
            ..Sample::default()
        };
        let value = |seconds| serde_json::to_value(Frame::new(&sample(seconds), |_| false)).unwrap();
        let (before, now) = (value(1), value(2));
        let changed = change(&before, &now).unwrap();
        assert!(changed.get("interrupts").is_some() && changed.get("queues").is_none(), "{changed}");
    }

    #[test]
    fn queues_of_no_device_and_strange_cpus_are_a_fault() {
        let check = |place: usize, cpus: &str, expected: &str| {
            let frame = QueueFrame { name: "rx-0".to_owned(), cpus: Some(cpus.to_owned()), flows: Some(1) };
            let added = add(BTreeMap::from([(place, vec![frame])]), &mut [InterruptSample::default()]);
            let fault = added.err().unwrap_or_default();
            assert!(fault.contains(expected) && fault.is_empty() == expected.is_empty(), "{fault}");
        };
        check(0, "0-3", "");
        check(1, "0-3", "queues: device 1 of 1");
        check(usize::MAX, "0-3", "queues: device 18446744073709551615 of 1");
        check(0, "x", "CPUs: ");
    }
}
