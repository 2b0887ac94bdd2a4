//! Counters of devices, opened with the kernel for the samples of `source`.

use nodewise_source::sample::{EventCount, EventCounter, EventOpener, EventRefusal, PmuEvent};
use nodewise_syscall::Errno;
use nodewise_syscall::perf::DeviceCounter;

/// Opens counters of this machine.
#[derive(Debug)]
pub struct LiveCounters;

impl EventOpener for LiveCounters {
    fn open(&mut self, event: PmuEvent) -> Result<Box<dyn EventCounter>, EventRefusal> {
        match DeviceCounter::open(event.pmu, event.config, event.config1, event.cpu) {
            Ok(counter) => Ok(Box::new(LiveCounter(counter))),
            Err(Errno::EPERM | Errno::EACCES) => Err(EventRefusal::Rights),
            Err(Errno::ENOSYS) => {
                Err(EventRefusal::Other("this kernel counts no events (CONFIG_PERF_EVENTS)".to_owned()))
            }
            Err(errno) => Err(EventRefusal::Other(format!("the kernel does not count it: {errno}"))),
        }
    }
}

#[derive(Debug)]
struct LiveCounter(DeviceCounter);

impl EventCounter for LiveCounter {
    fn read(&mut self) -> Option<EventCount> {
        let count = self.0.read().ok()?;
        Some(EventCount { value: count.value, enabled_ns: count.enabled_ns, running_ns: count.running_ns })
    }
}
