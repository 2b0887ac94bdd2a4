//! Answers to a program's calls about memory policies and CPUs, as the machine's kernel would give them.
//!
//! ```text
//! Request -> Call (arguments from the program's memory) -> World (model) -> Answer
//! ```
//!
//! The kernel of this computer holds the program's memory; the supervisor knows which node each page has on the machine. A
//! resident page gets its node when somebody asks for it, and before anything changes that decides about it: the
//! policy or the CPUs of a thread, or the policy of its mapping. What decides is then what it was when the page
//! was touched. Rules and errors are those of [`nodewise_model`]; this module keeps policies and nodes by thread, mapping and file.
//!
//! # Limits
//! - A page that several threads may have touched counts as touched by the one that calls next.
//! - After `fork(2)` a page that the child writes to keeps its node, though it is a copy.
//! - Pages of files that are not in memory file systems lie where a program without policy would have put them.

mod call;
mod cpus;
mod files;
mod moves;
mod node_files;
mod pages;
mod policies;
mod remap;
mod replaced;
mod space;
mod tasks;
#[cfg(test)]
mod tests;
mod world;

use std::os::fd::AsFd as _;

use nodewise_machine::Machine;
use nodewise_source::written::picture::Picture;
use nodewise_syscall::notify::{Answer, Listener, NotifyError, WatchedCall};
use nodewise_syscall::{Errno, notify};

use call::{Call, Stop};
use world::World;

/// Has the calls of this process answered, and of the program that it becomes, and of all that this starts.
///
/// The process must have a single thread. `picture` is the one that it has [entered](crate::enter).
///
/// # Errors
/// The kernel or a container allows no seccomp filter, or another supervisor is there already.
pub fn answer_calls(machine: &Machine, picture: &Picture) -> Result<(), NotifyError> {
    let bits = picture.cpu_mask_bits();
    notify::supervise_this_process(&WatchedCall::ALL, |listener| {
        supervise(listener, World::new(machine, bits))
    })
}

/// Answers until the last program has ended.
fn supervise(mut listener: Listener, mut world: World) {
    // When the kernel refuses requests, the listener is closed, and calls fail instead of waiting.
    while let Ok(Some(request)) = listener.next_request() {
        let call = Call::new(&listener, &request);
        let answer = match world.answer(&call) {
            Ok(value) => Answer::Value(value),
            Err(Stop::File(file)) => {
                // An old kernel cannot hand over files, and then the call still waits.
                if listener.answer(&request, Answer::File(file.as_fd())).is_err() {
                    let _ = listener.answer(&request, Answer::Continue);
                }
                continue;
            }
            Err(Stop::Errno(number)) => Answer::Error(Errno::new(number)),
            Err(Stop::Kernel) => Answer::Continue,
            Err(Stop::Gone) => continue,
        };
        // The thread may have ended meanwhile.
        let _ = listener.answer(&request, answer);
    }
}

impl World {
    /// The answer of the machine's kernel.
    fn answer(&mut self, call: &Call<'_>) -> Result<i64, Stop> {
        let answer = self.answered(call);
        // Only programs in the machine come here.
        if let Some(process) = self.threads.get(&call.thread()).map(|thread| thread.process) {
            self.processes.entry(process).or_default().is_inside = true;
        }
        answer
    }

    fn answered(&mut self, call: &Call<'_>) -> Result<i64, Stop> {
        match call.name() {
            WatchedCall::SetMempolicy => self.set_policy(call),
            WatchedCall::GetMempolicy => self.get_policy(call),
            WatchedCall::Mbind => self.bind(call),
            WatchedCall::SetMempolicyHomeNode => self.set_home(call),
            WatchedCall::MovePages => self.move_pages(call),
            WatchedCall::MigratePages => self.migrate_pages(call),
            WatchedCall::SchedSetaffinity => self.set_cpus(call),
            WatchedCall::SchedGetaffinity => self.get_cpus(call),
            WatchedCall::Getcpu => self.get_cpu(call),
            WatchedCall::Openat => self.open(call, call.argument(1), call.argument(2)),
            WatchedCall::Open => self.open(call, call.argument(0), call.argument(1)),
            WatchedCall::Munmap => self.unmap(call),
            WatchedCall::Mmap => self.map_fixed(call),
            WatchedCall::Mremap => self.remap(call),
            WatchedCall::Madvise => self.give_back(call),
            WatchedCall::ExitGroup => self.end(call.thread()),
            WatchedCall::Clone | WatchedCall::Clone3 | WatchedCall::Fork | WatchedCall::Vfork => {
                self.note_start(call.thread())?;
                Err(Stop::Kernel)
            }
        }
    }
}
