//! Threads: a policy and a CPU of their own, and the memory of their program.
//!
//! # Source
//! `copy_process` in `kernel/fork.c`: a thread begins with a copy of the policy of the thread that starts it. Cpusets, control
//! groups and `oom_score_adj` are those of the whole program; a new cpuset changes the policies of all threads
//! (`cpuset_update_tasks_nodemask`).

use nodewise_machine::NodeId;

use super::act::{Act, Refused};
use super::program::{Id, Thread};
use super::{Simulation, Step};

impl Simulation {
    /// Whether a program or a thread of this name runs.
    pub(super) fn runs(&self, name: &str) -> bool {
        self.names.contains_key(name) || self.threads.contains_key(name)
    }

    /// The node that a program or a thread runs on.
    pub(super) fn cpu_node_of(&self, name: &str) -> Option<NodeId> {
        let thread = self.threads.get(name).and_then(|id| self.programs.get(id)?.threads.get(name));
        let program = self.names.get(name).and_then(|id| self.programs.get(id));
        thread.map(|thread| thread.cpu_node).or_else(|| program.map(|program| program.cpu_node))
    }

    /// Starts a thread of a program.
    pub(super) fn start_thread(&mut self, id: Id, name: &str) -> Result<Step, Refused> {
        if self.runs(name) {
            return Err(Refused::Started(name.to_owned()));
        }
        let program = self.program(id);
        let thread = Thread { policy: program.policy.clone(), cpu_node: program.cpu_node };
        program.threads.insert(name.to_owned(), thread);
        self.gone.remove(name);
        self.threads.insert(name.to_owned(), id);
        Ok(Step::default())
    }

    /// Plays what a thread does; when it ends, its program goes on.
    pub(super) fn act_as_thread(&mut self, id: Id, name: &str, act: &Act) -> Result<Step, Refused> {
        if *act == Act::End {
            self.threads.remove(name);
            self.program(id).threads.remove(name);
            return Ok(Step::default());
        }
        self.switch(id, name);
        let step = self.act_of(id, act);
        self.switch(id, name);
        step
    }

    /// Exchanges the thread that acts with another one.
    fn switch(&mut self, id: Id, name: &str) {
        // A program that was killed meanwhile has no threads.
        let Some(program) = self.programs.get_mut(&id) else { return };
        let Some(thread) = program.threads.get_mut(name) else { return };
        std::mem::swap(&mut program.policy, &mut thread.policy);
        std::mem::swap(&mut program.cpu_node, &mut thread.cpu_node);
    }
}
