//! The threads of a script: each makes its calls itself, one after the other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, scope};

use crate::difference::Trouble;
use crate::script::{Call, Script};

/// The way to a thread, and back from it.
type Jobs<'s> = Sender<(Job<'s>, Sender<Result<(), Trouble>>)>;
type Arriving<'s> = Receiver<(Job<'s>, Sender<Result<(), Trouble>>)>;

/// Something for a thread to do.
enum Job<'s> {
    Play(&'s [Call]),
    /// Start a thread, which has the policy and the CPUs of the one that starts it.
    Start(Arriving<'s>),
}

/// Has the calls of a script made up to the first difference, in threads that end with it: they take their policies and CPUs
/// with them. `steps` makes some calls one after the other, in the thread in which it is called.
pub fn play(
    script: &Script,
    steps: impl FnMut(&[Call]) -> Result<(), Trouble> + Send,
) -> Result<(), Trouble> {
    let steps = Mutex::new(steps);
    scope(|scope| {
        let (first, jobs) = channel();
        let steps = &steps;
        scope.spawn(move || work(scope, steps, jobs));
        turns(first, &script.calls)
    })
}

/// Has each stretch of calls played by its thread; a stretch begins with the call that names the thread.
fn turns<'s>(first: Jobs<'s>, mut calls: &'s [Call]) -> Result<(), Trouble> {
    // The first thread begins, even if another makes the first call: those that it starts have its CPUs.
    done_by(&first, Job::Play(&[]))?;
    let mut threads = vec![(0, first)];
    let mut current = 0;
    while let Some(call) = calls.first() {
        if let Call::Thread(number) = call {
            let known = threads.iter().position(|(other, _)| other == number);
            if known.is_none() {
                let (new, jobs) = channel();
                done_by(&threads[current].1, Job::Start(jobs))?;
                threads.push((*number, new));
            }
            current = known.unwrap_or(threads.len() - 1);
        }
        let next = calls[1..].iter().position(|call| matches!(call, Call::Thread(_)));
        let (own, later) = calls.split_at(next.map_or(calls.len(), |at| at + 1));
        done_by(&threads[current].1, Job::Play(own))?;
        calls = later;
    }
    Ok(())
}

fn done_by<'s>(thread: &Jobs<'s>, job: Job<'s>) -> Result<(), Trouble> {
    let (reply, answer) = channel();
    let gone = "the thread of a script panicked";
    thread.send((job, reply)).map_err(|_| gone)?;
    answer.recv().map_err(|_| gone)?
}

/// A thread: it does its jobs until nothing sends more.
fn work<'s, S>(scope: &'s Scope<'s, '_>, steps: &'s Mutex<S>, jobs: Arriving<'s>)
where
    S: FnMut(&[Call]) -> Result<(), Trouble> + Send,
{
    for (job, reply) in jobs {
        let done = match job {
            Job::Start(jobs) => {
                scope.spawn(move || work(scope, steps, jobs));
                Ok(())
            }
            Job::Play(calls) => {
                let play = || steps.lock().map_err(|_| Trouble::from("a thread panicked"))?(calls);
                catch_unwind(AssertUnwindSafe(play)).unwrap_or_else(|_| Err("a step panicked".into()))
            }
        };
        // Whoever has sent the job waits for the answer.
        let _ = reply.send(done);
    }
}
