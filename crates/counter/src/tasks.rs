//! Which of the guest's tasks are counted: the command's, and all that descend from it.
//!
//! The kernel's address of a task is its identity from its start to its end: `execve` keeps it, and fork, vfork and clone
//! make a new one, and the kernel says who made it.

use crate::pages::{Zeroed, zeroed};

/// Most threads that are distinguished, over the whole run; the last of them stands for all further ones.
pub const MOST_THREADS: usize = 16384;

/// Bytes of a task's name, its NUL included (`TASK_COMM_LEN`).
pub const NAME: usize = 16;

/// A task that has not ended.
#[derive(Clone, Copy)]
struct Live {
    task: u64,
    thread: usize,
}

// SAFETY: all members are integers.
unsafe impl Zeroed for Live {}

/// A thread that is, or was, counted.
#[derive(Clone, Copy)]
pub struct Thread {
    /// The thread that made it; itself for the first.
    pub parent: usize,
    /// Times that it has yet to become another program before it is counted.
    pub execs_left: u64,
    pub pid: u32,
    /// The number of its process.
    pub tgid: u32,
    pub name: [u8; NAME],
}

// SAFETY: all members are integers, or arrays of them.
unsafe impl Zeroed for Thread {}

/// The tasks.
pub struct Tasks {
    live: &'static mut [Live],
    living: usize,
    threads: &'static mut [Thread],
    known: usize,
    /// Threads beyond [`MOST_THREADS`], and tasks for which there was no room.
    pub lost: u64,
}

impl Tasks {
    /// No task.
    pub const fn new() -> Self {
        Self { live: &mut [], living: 0, threads: &mut [], known: 0, lost: 0 }
    }

    /// The first task: it is counted from its `execs`-th `execve` on. `false` without memory, or if there is one.
    pub fn begin(&mut self, task: u64, execs: u64) -> bool {
        if self.known > 0 {
            return false;
        }
        self.live = zeroed(MOST_THREADS);
        self.threads = zeroed(MOST_THREADS);
        self.add(task, 0, execs).is_some()
    }

    fn add(&mut self, task: u64, parent: usize, execs_left: u64) -> Option<usize> {
        let Some(live) = self.live.get_mut(self.living) else {
            self.lost += 1;
            return None;
        };
        let thread = self.known.min(MOST_THREADS - 1);
        let record = self.threads.get_mut(thread)?;
        self.lost += u64::from(self.known == MOST_THREADS);
        *live = Live { task, thread };
        self.living += 1;
        self.known = (self.known + 1).min(MOST_THREADS);
        *record = Thread { parent, execs_left, pid: 0, tgid: 0, name: [0; NAME] };
        Some(thread)
    }

    fn place(&self, task: u64) -> Option<usize> {
        self.live[..self.living].iter().position(|live| live.task == task)
    }

    /// The thread of a task that is the command's.
    pub fn find(&self, task: u64) -> Option<usize> {
        self.place(task).map(|place| self.live[place].thread)
    }

    /// The thread of a task that is counted now.
    pub fn counted(&self, task: u64) -> Option<usize> {
        self.find(task).filter(|thread| self.threads[*thread].execs_left == 0)
    }

    /// A task has made another: the thread of that, if the first is the command's.
    pub fn start(&mut self, parent: u64, child: u64) -> Option<usize> {
        let parent = self.find(parent)?;
        self.add(child, parent, self.threads[parent].execs_left)
    }

    /// A task has become another program.
    pub fn exec(&mut self, task: u64) {
        if let Some(thread) = self.find(task) {
            let left = &mut self.threads[thread].execs_left;
            *left = left.saturating_sub(1);
        }
    }

    /// A task ends. Its address can be that of another one later.
    pub fn exit(&mut self, task: u64) {
        if let Some(place) = self.place(task) {
            self.living -= 1;
            self.live[place] = self.live[self.living];
        }
    }

    /// All threads, in the order in which they began.
    pub fn threads(&self) -> &[Thread] {
        &self.threads[..self.known]
    }

    /// A thread, to be named.
    pub fn thread_mut(&mut self, thread: usize) -> Option<&mut Thread> {
        self.threads[..self.known].get_mut(thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_of_the_command_are_counted_and_no_others() {
        let mut tasks = Tasks::new();
        assert_eq!((tasks.start(1, 2), tasks.counted(1)), (None, None));
        assert!(tasks.begin(10, 0) && !tasks.begin(11, 0));
        assert_eq!(tasks.start(10, 20), Some(1));
        assert_eq!(tasks.start(20, 30), Some(2));
        assert_eq!(tasks.start(1, 40), None);
        assert_eq!(
            [10, 20, 30, 40, 1].map(|task| tasks.counted(task)),
            [Some(0), Some(1), Some(2), None, None]
        );
        let parents: Vec<usize> = tasks.threads().iter().map(|thread| thread.parent).collect();
        assert_eq!(parents, [0, 0, 1]);
    }

    #[test]
    fn an_address_that_is_used_again_is_a_task_of_its_own() {
        let mut tasks = Tasks::new();
        tasks.begin(10, 0);
        tasks.start(10, 20);
        tasks.start(10, 30);
        tasks.exit(20);
        assert_eq!([20, 30].map(|task| tasks.counted(task)), [None, Some(2)]);
        // A stranger gets the address, then a child.
        assert_eq!(tasks.start(1, 20), None);
        assert_eq!(tasks.start(30, 20), Some(3));
        tasks.exit(99);
        assert_eq!([10, 20, 30].map(|task| tasks.counted(task)), [Some(0), Some(3), Some(2)]);
    }

    #[test]
    fn counting_begins_with_the_exec_that_was_named() {
        let mut tasks = Tasks::new();
        tasks.begin(10, 2);
        assert_eq!((tasks.find(10), tasks.counted(10)), (Some(0), None));
        tasks.exec(10);
        tasks.exec(11);
        assert_eq!(tasks.counted(10), None);
        tasks.exec(10);
        assert_eq!(tasks.counted(10), Some(0));
        tasks.exec(10);
        tasks.start(10, 20);
        assert_eq!([10, 20].map(|task| tasks.counted(task)), [Some(0), Some(1)]);
    }

    #[test]
    fn more_threads_than_there_is_room_for_share_the_last_place() {
        let mut tasks = Tasks::new();
        tasks.begin(1, 0);
        for task in 2..MOST_THREADS as u64 + 10 {
            assert!(tasks.start(1, task).is_some());
            tasks.exit(task);
        }
        assert_eq!((tasks.threads().len(), tasks.lost), (MOST_THREADS, 9));
        // More that live at once than there is room for are counted as lost.
        let mut tasks = Tasks::new();
        tasks.begin(1, 0);
        let started = (2..MOST_THREADS as u64 + 10).filter(|task| tasks.start(1, *task).is_some());
        assert_eq!((started.count(), tasks.lost), (MOST_THREADS - 1, 9));
    }
}
