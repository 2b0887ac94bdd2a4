//! Threads that pass over memory at the same time, counted over one common window.
//!
//! Each thread is bound to a CPU, fills its part of the memory, waits for the others, and then passes
//! over its part, piece by piece, until the time is up. It notes when each piece was done, in memory
//! of its own: nothing is shared while the clock runs. What counts are the bytes within the time in
//! which all threads were running ([`window`]); rates of threads that ran at different times are not
//! added up. Afterwards each thread's arrays are looked at ([`work`]): a piece that was left out, or
//! done wrong, shows.

pub mod window;
pub mod work;

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nodewise_machine::CpuId;
use nodewise_syscall::Usage;

use crate::cell::{Refusal, Seat};
use crate::kernel::bandwidth::{Kernel, Variant};
use crate::stop::Stop;
use crate::timer::{Moment, Timer, thread_time};

pub use window::{Track, Window};
pub use work::Work;

/// How long a thread spins on its CPU before it fills its part.
const WARM_UP: Duration = Duration::from_millis(1);

/// The effect of a thread, and where.
#[derive(Debug)]
pub struct Member<'a> {
    pub cpu: CpuId,
    /// Its part of the memory; each word of it belongs to this thread alone.
    pub part: &'a mut [u64],
}

/// The work of all threads.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    pub kernel: Kernel,
    /// In which ways, one after the other over the same memory.
    pub variants: &'a [Variant],
    /// For how long each, from when the last thread has started; every thread ends the piece it is at.
    pub time: Duration,
    /// The signal to end before it is complete: looked at while parts are filled, and before each variant.
    pub stop: &'a Stop,
}

/// The work of a team in the time in which all of it was running.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    /// Bytes per second that the program read and wrote.
    pub program: f64,
    /// Bytes per second that crossed the bus, at most.
    pub bus: f64,
    /// How long all threads ran together.
    pub common: Duration,
    /// How often threads had to leave their CPUs meanwhile, during all variants of the task; `None`
    /// where the kernel does not say.
    pub switched: Option<u64>,
}

/// Runs a task with these threads, one per member; the outcomes of each variant, in their order.
///
/// # Errors
/// A CPU that cannot be used or was lost, parts that are too small, work that turns out to be wrong, an
/// end before all is done; for a variant alone: a time too short for the clock.
pub fn run(
    members: Vec<Member<'_>>,
    task: Task<'_>,
    timer: &Timer,
) -> Result<Vec<Result<Throughput, Refusal>>, Refusal> {
    let shared = Shared {
        together: Barrier::new(members.len()),
        started: task.variants.iter().map(|_| AtomicUsize::new(0)).collect(),
        all: members.len(),
        origin: timer.now(),
    };
    let done = thread::scope(|scope| {
        let workers: Vec<_> = members
            .into_iter()
            .map(|member| {
                let shared = &shared;
                scope.spawn(move || work_at(member, task, timer, shared))
            })
            .collect();
        // A thread that panicked has not come to the barrier, so the others would wait: passes and
        // their parts do not panic.
        workers
            .into_iter()
            .map(|worker| worker.join().expect("a pass does not panic"))
            .collect::<Result<Vec<Done>, Refusal>>()
    })?;
    let switched = done.iter().map(|done| done.switched).sum();
    let of_variant = |at: usize| {
        let tracks: Vec<Track> = done.iter().map(|done| done.tracks[at].clone()).collect();
        Ok(Throughput { switched, ..throughput(&tracks, task.kernel, timer)? })
    };
    Ok((0..task.variants.len()).map(of_variant).collect())
}

/// Computes the throughput of the threads with these tracks in the time in which all were running.
pub(crate) fn throughput(tracks: &[Track], kernel: Kernel, timer: &Timer) -> Result<Throughput, Refusal> {
    let window = Window::from_tracks(tracks).filter(|window| timer.resolves(window.length()));
    let Some(window) = window else { return Err(Refusal::TooShort) };
    let words = tracks.iter().map(|track| window.words(track)).sum::<f64>();
    let seconds = window.length().as_secs_f64();
    // Bytes for each word of an array: the same in every whole group.
    let rate = |bytes: u64| bytes as f64 / work::GROUP as f64 * words / seconds;
    let traffic = kernel.traffic(work::GROUP);
    Ok(Throughput {
        program: rate(traffic.program()),
        bus: rate(traffic.bus()),
        common: window.length(),
        switched: None,
    })
}

/// State shared by the threads of a team. None of it is written while the clock runs: that all have
/// started is seen once, and then is in every cache.
struct Shared {
    together: Barrier,
    /// For each variant, how many threads have started on it, or will never.
    started: Vec<AtomicUsize>,
    all: usize,
    origin: Moment,
}

/// Result of one thread.
struct Done {
    /// Its progress with each variant.
    tracks: Vec<Track>,
    switched: Option<u64>,
}

/// One thread: it comes to every barrier whatever happens, so that the others do not wait for it.
fn work_at(member: Member<'_>, task: Task<'_>, timer: &Timer, shared: &Shared) -> Result<Done, Refusal> {
    let seat = Seat::take(member.cpu, WARM_UP, timer);
    let work = Work::new(member.part, task.kernel, task.stop);
    let (mut work, mut ended) = match work {
        Err(Refusal::Stopped) => (None, true),
        work => (work.ok(), false),
    };
    let mut tracks = Vec::with_capacity(task.variants.len());
    let mut away = Away::default();
    for (variant, started) in task.variants.iter().zip(&shared.started) {
        shared.together.wait();
        ended = ended || task.stop.is_set();
        match (&mut work, &seat) {
            (Some(work), Ok(_)) if !ended => {
                let run = || track(work, *variant, task.time, timer, (shared, started));
                tracks.push(away.around(run));
            }
            _ => _ = started.fetch_add(1, Ordering::Relaxed),
        }
    }
    if ended {
        return Err(Refusal::Stopped);
    }
    let (seat, mut work) = (seat?, work.ok_or_else(too_small)?);
    seat.check()?;
    work.check().map_err(|what| Refusal::Wrong { what })?;
    Ok(Done { tracks, switched: away.switched() })
}

/// How long a thread did not have its CPU while it should have worked.
#[derive(Default)]
pub(crate) struct Away {
    /// How often it had to leave.
    switches: u64,
    lost: Duration,
    time: Duration,
    is_unknown: bool,
}

impl Away {
    /// Runs something, and looks at how much of the time the thread had its CPU.
    pub(crate) fn around<T>(&mut self, run: impl FnOnce() -> T) -> T {
        let (before, start, working) = (Usage::of_this_thread(), Instant::now(), thread_time());
        let result = run();
        let (worked, time, after) =
            (thread_time().saturating_sub(working), start.elapsed(), Usage::of_this_thread());
        match before.zip(after) {
            Some((before, after)) => {
                self.switches += after.involuntary_switches.saturating_sub(before.involuntary_switches);
                self.lost += time.saturating_sub(worked);
                self.time += time;
            }
            None => self.is_unknown = true,
        }
        result
    }

    /// How often it had to leave. Work of the kernel that took less than a hundredth of the time is none:
    /// every sample as long as these has some.
    pub(crate) fn switched(&self) -> Option<u64> {
        let matters = self.lost > self.time / 100;
        (!self.is_unknown).then_some(if matters { self.switches } else { 0 })
    }
}

/// The refusal of a part of which no arrays can be made.
pub(crate) fn too_small() -> Refusal {
    Refusal::Other("a thread's part of the memory is too small: expected a larger --size".to_owned())
}

/// Passes over the memory until all threads have done so for the time. This is what is timed.
fn track(
    work: &mut Work<'_>,
    variant: Variant,
    time: Duration,
    timer: &Timer,
    (shared, started): (&Shared, &AtomicUsize),
) -> Track {
    let mut track = Track::with_capacity(1024);
    // One piece before anything counts: the thread is awake and past the barrier.
    work.step(variant);
    started.fetch_add(1, Ordering::Relaxed);
    track.note(timer.now().since(shared.origin), 0);
    let mut since: Option<Moment> = None;
    loop {
        let words = work.step(variant);
        let now = timer.now();
        track.note(now.since(shared.origin), words);
        // On a busy machine a thread may come much later than the others.
        if since.is_none() && started.load(Ordering::Relaxed) == shared.all {
            since = Some(now);
        }
        if since.is_some_and(|since| now.since(since) >= time) {
            return track;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_syscall::affinity;

    fn members(memory: &mut [u64], count: usize) -> Vec<Member<'_>> {
        let cpus = affinity::cpus(nodewise_syscall::Task::CURRENT).unwrap();
        let cpus: Vec<CpuId> = cpus.iter().cycle().take(count).collect();
        let part = memory.len() / count;
        cpus.into_iter().zip(memory.chunks_mut(part)).map(|(cpu, part)| Member { cpu, part }).collect()
    }

    fn task(kernel: Kernel, variants: &[Variant]) -> Task<'_> {
        Task { kernel, variants, time: Duration::from_millis(1), stop: &Stop::NEVER }
    }

    #[test]
    fn every_variant_of_every_kernel_has_a_throughput() {
        let timer = Timer::choose();
        let mut memory = vec![1; 3 << 18];
        for kernel in Kernel::ALL {
            let variants: Vec<Variant> = Variant::all(kernel).into_iter().step_by(5).collect();
            let all = run(members(&mut memory, 1), task(kernel, &variants), &timer).unwrap();
            assert_eq!(all.len(), variants.len());
            let traffic = kernel.traffic(work::GROUP);
            for (throughput, variant) in all.into_iter().zip(variants) {
                let Throughput { program, bus, common, .. } = throughput.unwrap();
                assert!(program > 0.0 && common >= Duration::from_millis(1), "{kernel}, {variant}");
                let expected = traffic.bus() as f64 / traffic.program() as f64;
                assert!((bus / program - expected).abs() < 1e-9, "{kernel}, {variant}");
            }
        }
    }

    #[test]
    fn threads_have_a_common_window_however_busy_their_cpus_are() {
        let timer = Timer::choose();
        let mut memory = vec![1; 3 << 18];
        // More threads than CPUs: they run in turns.
        let variants = [Variant::PORTABLE; 2];
        for throughput in run(members(&mut memory, 5), task(Kernel::Copy, &variants), &timer).unwrap() {
            assert!(throughput.unwrap().common >= Duration::from_millis(1));
        }
    }

    #[test]
    fn a_part_that_is_too_small_and_a_cpu_that_is_not_there_are_refused_without_waiting() {
        let timer = Timer::choose();
        let mut memory = vec![1; 64];
        let refused = run(members(&mut memory, 2), task(Kernel::Read, &[Variant::PORTABLE; 3]), &timer);
        assert_eq!(refused, Err(too_small()));
        let mut memory = vec![1; 3 << 16];
        let mut team = members(&mut memory, 2);
        team[1].cpu = CpuId::new(u32::MAX >> 12);
        let cpu = team[1].cpu;
        let refused = run(team, task(Kernel::Read, &[Variant::PORTABLE; 3]), &timer);
        assert_eq!(refused, Err(Refusal::CpuLost { cpu }));
    }
}
