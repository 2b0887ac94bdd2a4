//! Threads that move data while something else is measured, as much as a pause lets them.
//!
//! They begin before it and end after it, so that the time of what is measured is the window in which
//! their bytes are counted. Nothing is shared while the clock runs but two flags, which are written
//! before that time and after it.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::cell::seat::spin;
use crate::cell::{Probe, Refusal, Seat};
use crate::kernel::bandwidth::{Kernel, Variant};
use crate::stop::Stop;
use crate::team::{Away, Member, Throughput, Track, Work, throughput, work};
use crate::timer::{Moment, Timer};

/// How long a thread spins on its CPU before it fills its part.
const WARM_UP: Duration = Duration::from_millis(1);

/// The work of the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    pub kernel: Kernel,
    pub variant: Variant,
    /// The pause after each 4 KiB of an array, ns; 0 for none.
    pub pause_ns: u32,
}

/// Something that was measured while threads moved data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Meanwhile<T> {
    pub result: T,
    /// When it began and ended: the window in which bytes are counted.
    pub window: (Moment, Moment),
}

/// Measures something while these members move data; and how much they moved meanwhile.
///
/// # Errors
/// A CPU that cannot be used or was lost, parts that are too small, work that turns out to be wrong, a
/// time too short for the clock, an end of the measurement before; and those of what is measured.
pub fn during<T>(
    members: Vec<Member<'_>>,
    load: Load,
    timer: &Timer,
    end: &Stop,
    measure: impl FnOnce() -> Result<Meanwhile<T>, Refusal>,
) -> Result<(T, Throughput), Refusal> {
    let all = members.len();
    let shared = Shared { started: AtomicUsize::new(0), stop: AtomicBool::new(false), origin: timer.now() };
    let (measured, done) = thread::scope(|scope| {
        // Whatever becomes of the measurement: the threads end.
        let ends = EndsThreads(&shared.stop);
        let workers: Vec<_> = members
            .into_iter()
            .map(|member| {
                let shared = &shared;
                scope.spawn(move || generate(member, load, timer, (shared, end)))
            })
            .collect();
        while shared.started.load(Ordering::Acquire) < all {
            thread::yield_now();
        }
        let measured = end.check().and_then(|()| measure());
        drop(ends);
        let done = workers.into_iter().map(|worker| worker.join().expect("a pass does not panic"));
        (measured, done.collect::<Result<Vec<Done>, Refusal>>())
    });
    let (measured, done) = (measured?, done?);
    let (begin, end) = measured.window;
    let mut window = Track::with_capacity(2);
    window.note(begin.since(shared.origin), 0);
    window.note(end.since(shared.origin), 0);
    let switched = done.iter().map(|done| done.switched).sum();
    let tracks: Vec<Track> = done.into_iter().map(|done| done.track).chain([window]).collect();
    Ok((measured.result, Throughput { switched, ..throughput(&tracks, load.kernel, timer)? }))
}

/// Parts that the threads share.
struct Shared {
    /// How many have begun, or will never.
    started: AtomicUsize,
    stop: AtomicBool,
    origin: Moment,
}

/// Ends the threads when it is dropped.
struct EndsThreads<'a>(&'a AtomicBool);

impl Drop for EndsThreads<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Result of one thread.
struct Done {
    track: Track,
    switched: Option<u64>,
}

/// One thread: it counts itself as started whatever happens, so that no one waits for it.
fn generate(
    member: Member<'_>,
    load: Load,
    timer: &Timer,
    (shared, end): (&Shared, &Stop),
) -> Result<Done, Refusal> {
    let ready = Seat::take(member.cpu, WARM_UP, timer)
        .and_then(|seat| Ok((seat, Work::new(member.part, load.kernel, end)?)));
    let (seat, mut work) = match ready {
        Ok(ready) => ready,
        Err(refusal) => {
            shared.started.fetch_add(1, Ordering::Release);
            return Err(refusal);
        }
    };
    let (track, switched) = track(&mut work, load, timer, shared);
    seat.check()?;
    work.check().map_err(|what| Refusal::Wrong { what })?;
    Ok(Done { track, switched })
}

/// Passes over the memory, with pauses, until it is asked to stop; and how often it had to leave its CPU
/// after its first step.
fn track(work: &mut Work<'_>, load: Load, timer: &Timer, shared: &Shared) -> (Track, Option<u64>) {
    let burst = work::burst(load.kernel);
    let pages = u32::try_from(work::burst_pages(load.kernel)).unwrap_or(u32::MAX);
    let steps = Probe::take(timer).steps(load.pause_ns.saturating_mul(pages));
    let mut seed = 1;
    let mut step = |work: &mut Work<'_>| match load.pause_ns {
        // Without pauses there are no bursts: beginning one costs some percent.
        0 => work.step(load.variant),
        _ => work.step_in_bursts(load.variant, burst, || seed = spin(seed, steps)),
    };
    let mut track = Track::with_capacity(1024);
    track.note(timer.now().since(shared.origin), 0);
    // What is noted before the others have begun is outside of every window.
    let mut words = step(work);
    shared.started.fetch_add(1, Ordering::Release);
    let mut away = Away::default();
    away.around(|| {
        loop {
            track.note(timer.now().since(shared.origin), words);
            if shared.stop.load(Ordering::Relaxed) {
                break;
            }
            words = step(work);
        }
    });
    black_box(seed);
    (track, away.switched())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::too_small;
    use nodewise_machine::CpuId;
    use nodewise_syscall::{Task, affinity};

    fn members(memory: &mut [u64], count: usize) -> Vec<Member<'_>> {
        let cpus = affinity::cpus(Task::CURRENT).unwrap();
        let cpus: Vec<CpuId> = cpus.iter().cycle().take(count).collect();
        let part = memory.len() / count;
        cpus.into_iter().zip(memory.chunks_mut(part)).map(|(cpu, part)| Member { cpu, part }).collect()
    }

    fn load(kernel: Kernel, pause_ns: u32) -> Load {
        let variant = Variant::all(kernel).pop().unwrap_or(Variant::PORTABLE);
        Load { kernel, variant, pause_ns }
    }

    /// Waits for so long, and says when.
    fn wait(timer: &Timer, time: Duration) -> Result<Meanwhile<u8>, Refusal> {
        let begin = timer.now();
        while timer.now().since(begin) < time {
            thread::yield_now();
        }
        Ok(Meanwhile { result: 7, window: (begin, timer.now()) })
    }

    #[test]
    fn bytes_are_counted_in_the_time_of_what_is_measured() {
        let timer = Timer::choose();
        let mut memory = vec![1; 1 << 18];
        for kernel in [Kernel::Read, Kernel::Mix3To1, Kernel::Mix1To1, Kernel::Copy] {
            for pause in [0, 500] {
                let time = Duration::from_millis(2);
                let (result, moved) =
                    during(members(&mut memory, 2), load(kernel, pause), &timer, &Stop::NEVER, || {
                        wait(&timer, time)
                    })
                    .unwrap();
                assert_eq!(result, 7);
                assert!(moved.program > 0.0, "{kernel}, {pause} ns");
                assert!(moved.common >= time, "{kernel}, {pause} ns: {:?}", moved.common);
            }
        }
    }

    #[test]
    fn threads_that_cannot_begin_are_not_waited_for() {
        let timer = Timer::choose();
        let measure = || wait(&timer, Duration::from_millis(1));
        let refused = during(members(&mut [1; 64], 2), load(Kernel::Read, 0), &timer, &Stop::NEVER, measure);
        assert_eq!(refused, Err(too_small()));
        let mut memory = vec![1; 1 << 16];
        let mut lost = members(&mut memory, 2);
        lost[1].cpu = CpuId::new(u32::MAX >> 12);
        let cpu = lost[1].cpu;
        let refused = during(lost, load(Kernel::Read, 0), &timer, &Stop::NEVER, measure);
        assert_eq!(refused, Err(Refusal::CpuLost { cpu }));
    }

    #[test]
    fn threads_end_when_the_measurement_fails() {
        let timer = Timer::choose();
        let mut memory = vec![1; 1 << 16];
        let failed: Result<(u8, Throughput), Refusal> =
            during(members(&mut memory, 1), load(Kernel::Read, 0), &timer, &Stop::NEVER, || {
                Err(Refusal::TooShort)
            });
        assert_eq!(failed, Err(Refusal::TooShort));
    }
}
