//! Threads of a program: each has a policy and a CPU of its own, and all have the same memory.
//!
//! # Source
//! `clone(2)` with `CLONE_VM`: a thread begins with the policy and the CPUs of the one that starts it (`mpol_dup` in
//! `kernel/fork.c`). `update_tasks_nodemask` in `kernel/cgroup/cpuset.c` rebinds the policies of all; 6.1 to at least
//! 6.18. From the source; not yet compared with a kernel.

use nodewise_machine::NodeId;

use super::Task;
use crate::policy::set::Policy;

/// Policy and CPU of a thread, while another makes the calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Thread {
    policy: Policy,
    cpu_node: NodeId,
}

impl Default for Thread {
    fn default() -> Self {
        Self { policy: Policy::DEFAULT, cpu_node: NodeId::new(0) }
    }
}

impl Task {
    /// Starts a thread, which has the caller's policy and CPU; returns its number. The first thread is number 0.
    pub fn start_thread(&mut self) -> usize {
        self.others.push(Thread { policy: self.policy.clone(), cpu_node: self.cpu_node });
        self.threads += 1;
        self.others.len() - 1
    }

    /// Makes a thread the one that calls and touches from now on; `false` where no such thread has started.
    pub fn continue_as(&mut self, thread: usize) -> bool {
        let Some(next) = self.others.get(thread).cloned() else { return false };
        if thread != self.current {
            self.others[self.current] = Thread { policy: self.policy.clone(), cpu_node: self.cpu_node };
            (self.policy, self.cpu_node, self.current) = (next.policy, next.cpu_node, thread);
        }
        true
    }

    /// The same program with the thread that makes the calls, and no other.
    pub(super) fn alone(&self) -> Self {
        Self { threads: 1, others: vec![Thread::default()], current: 0, ..self.clone() }
    }

    /// Makes the policies of all threads follow the nodes that may be used now.
    pub(super) fn rebind_threads(&mut self) {
        self.policy.rebind(&self.allowed);
        self.others.iter_mut().for_each(|thread| thread.policy.rebind(&self.allowed));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{policy, start};
    use nodewise_machine::{NodeId, NodeSet};

    #[test]
    fn each_thread_places_what_it_touches_first_by_its_own_policy_and_cpu() {
        let (mut task, mut memory) = start();
        task.map(0..6);
        task.set_policy(&policy("bind:1")).unwrap();
        assert_eq!(task.start_thread(), 1);
        assert!(task.continue_as(1));
        // It has the policy of the thread that started it.
        assert_eq!(task.touch(0, &mut memory), Some(NodeId::new(1)));
        task.set_policy(&policy("default")).unwrap();
        task.run_on(NodeId::new(2));
        assert_eq!(task.touch(1, &mut memory), Some(NodeId::new(2)));
        assert!(task.continue_as(0));
        assert_eq!(task.touch(2, &mut memory), Some(NodeId::new(1)));
        // A page belongs to whoever touches it first.
        assert_eq!(task.touch(1, &mut memory), Some(NodeId::new(2)));
        assert!(!task.continue_as(2));
    }

    #[test]
    fn policies_of_all_threads_follow_a_cpuset() {
        let (mut task, mut memory) = start();
        task.map(0..2);
        task.set_policy(&policy("bind:1")).unwrap();
        task.start_thread();
        task.restrict(&NodeSet::from([2]), &mut memory);
        assert_eq!(task.touch(0, &mut memory), Some(NodeId::new(2)));
        task.continue_as(1);
        assert_eq!(task.touch(1, &mut memory), Some(NodeId::new(2)));
    }
}
