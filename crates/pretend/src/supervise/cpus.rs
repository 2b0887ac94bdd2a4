//! Affinity, and the CPU that a thread is on.

use nodewise_machine::CpuSet;
use nodewise_syscall::{Task, affinity};

use super::call::{Call, EINVAL, Stop, mask_bytes, words};
use super::space::ALL;
use super::world::World;

/// Bytes of a word of a mask.
const WORD: u64 = size_of::<std::ffi::c_ulong>() as u64;

impl World {
    /// Bytes of a CPU mask of the machine's kernel.
    const fn mask_length(&self) -> u64 {
        (self.facts.cpu_mask_bits as u64).div_ceil(8 * WORD) * WORD
    }

    /// The thread that an argument names, and its process; 0 is the caller.
    fn named(&mut self, call: &Call<'_>) -> Result<(u32, u32), Stop> {
        let thread = match call.argument(0) as u32 {
            0 => call.thread(),
            other => other,
        };
        Ok((thread, self.process_of(thread)?))
    }

    /// `sched_setaffinity(2)`.
    pub fn set_cpus(&mut self, call: &Call<'_>) -> Result<i64, Stop> {
        // An int in the kernel; a longer mask is read as far as the kernel's own goes.
        let length = u64::from(call.argument(1) as u32).min(self.mask_length());
        let mask = call.read(call.argument(2), length)?;
        let caller = self.process_of(call.thread())?;
        self.processes.entry(caller).or_default().is_inside = true;
        let (thread, process) = self.named(call)?;
        let cpus = CpuSet::from_native_words(&words(&mask)).intersection(&self.facts.cpus);
        if cpus.is_empty() {
            return Err(Stop::Errno(EINVAL));
        }
        self.settle(process, thread, &ALL)?;
        // On the CPUs that both have, what the program learns without a call is right, too. Other programs stay where they are.
        let is_inside = self.processes.get(&process).is_some_and(|process| process.is_inside);
        let common = cpus.intersection(&self.real_cpus);
        if let Some(task) = Task::new(thread).filter(|_| is_inside && !common.is_empty()) {
            let _ = affinity::set_cpus(task, &common);
        }
        if let Some(known) = self.threads.get_mut(&thread) {
            known.own.cpus = cpus;
        }
        Ok(0)
    }

    /// `sched_getaffinity(2)`.
    pub fn get_cpus(&mut self, call: &Call<'_>) -> Result<i64, Stop> {
        let length = u64::from(call.argument(1) as u32);
        if length * 8 < u64::from(self.facts.nr_cpu_ids) || length % WORD != 0 {
            return Err(Stop::Errno(EINVAL));
        }
        let (thread, _) = self.named(call)?;
        let length = length.min(self.mask_length());
        let mask = mask_bytes(&self.own(thread).cpus.to_words(0), length);
        call.write(call.argument(2), &mask)?;
        Ok(length as i64)
    }

    /// `getcpu(2)`.
    pub fn get_cpu(&mut self, call: &Call<'_>) -> Result<i64, Stop> {
        self.process_of(call.thread())?;
        let cpu = self.cpu_of(call.thread());
        let node = self.facts.node_of(cpu);
        for (argument, number) in [(0, cpu.number()), (1, node.number())] {
            if call.argument(argument) != 0 {
                call.write(call.argument(argument), &number.to_ne_bytes())?;
            }
        }
        Ok(0)
    }
}
