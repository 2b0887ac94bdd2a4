//! A child that shares memory with the thread of the script: which policy places the copies.

use nodewise_machine::CpuSet;
use nodewise_model::migrate::Present;
use nodewise_model::oracle::task::family::Family;
use nodewise_syscall::fork::Twin;
use nodewise_syscall::{BindOptions, Task, affinity, mempolicy, pages};

use super::{Stage, has_huge_pages, is_alone, of_kernel, of_model};
use crate::difference::{Aspect, Trouble, alike};
use crate::nodes::{Nodes, PAGE};
use crate::script::{Member, Step};
use crate::trace::Answer;

impl Stage<'_> {
    pub(super) fn fork(&mut self, steps: &[Step]) -> Result<(), Trouble> {
        // A page that waits on another CPU for its place in the kernel's lists has one user more, and would
        // be copied for its last owner too. Moving pages from nodes to themselves puts all in their places.
        let nodes = self.task.allowed();
        pages::migrate(Task::CURRENT, nodes, nodes).map_err(|error| error.to_string())?;
        let mut twin = Twin::fork().map_err(|error| format!("fork: {error}"))?;
        let mut family = Family::fork(self.task.clone());
        self.trace.forks.push(Vec::new());
        for step in steps {
            self.family_step(&mut twin, &mut family, step)?;
            self.compare_child(&twin, &family)?;
        }
        drop(twin);
        self.task = family.end(&mut self.memory);
        Ok(())
    }

    fn family_step(&mut self, twin: &mut Twin, family: &mut Family, step: &Step) -> Result<(), Trouble> {
        let answers = match step {
            Step::RunOn(member, node) => {
                let cpu = self.arena.machine.cpus_of(*node).first().ok_or("the node has a CPU")?;
                let task = if *member == Member::Child { twin.task() } else { Task::CURRENT };
                family.call(*member, |task| task.run_on(*node));
                (of_kernel(affinity::set_cpus(task, &CpuSet::from_iter([cpu]))), Ok(()))
            }
            Step::Write(member, mapping, numbers) => {
                return numbers
                    .iter()
                    .try_for_each(|number| self.write(twin, family, *member, *mapping, *number));
            }
            Step::SetPolicy(policy) => {
                let ours = family.call(Member::Parent, |task| task.set_policy(policy));
                (of_kernel(mempolicy::set_thread_policy(policy)), of_model(ours))
            }
            Step::Bind(part, policy) => {
                let ((address, length), pages) = (self.whole_places(*part)?, self.pages(*part));
                let memory = &mut self.memory;
                let ours =
                    family.call(Member::Parent, |task| task.bind(pages, policy, Present::Stay, memory));
                let kernels = mempolicy::bind_range(address, length, policy, BindOptions::default());
                (of_kernel(kernels), of_model(ours))
            }
        };
        self.answered(&step.text(), answers.0, answers.1)
    }

    fn write(
        &mut self,
        twin: &mut Twin,
        family: &mut Family,
        member: Member,
        mapping: usize,
        number: u64,
    ) -> Result<(), Trouble> {
        let page = self.page(mapping, number);
        let task = match member {
            Member::Parent => {
                self.mappings[mapping].write(number)?;
                Task::CURRENT
            }
            Member::Child => {
                let kernels = of_kernel(twin.write((page * PAGE) as usize, PAGE as usize));
                let has = family.member(member).is_mapped(page);
                let ours: Answer = if has { Ok(()) } else { Err("ENOMEM".to_owned()) };
                self.answered(&format!("the child's write to page {number} of m{mapping}"), kernels, ours)?;
                twin.task()
            }
        };
        // Around a page that is there others may be missing, too: zeros of a huge page that has moved.
        let is_new = family.member(member).node_of(page).is_none();
        if is_new && has_huge_pages(self.mappings[mapping].kind) && is_alone(task, page)? {
            family.member_mut(member).touch_small(page, &mut self.memory);
        } else {
            family.write(member, page, &mut self.memory);
        }
        Ok(())
    }

    /// Where the two have their pages.
    fn compare_child(&mut self, twin: &Twin, family: &Family) -> Result<(), Trouble> {
        let members = [(Member::Parent, Task::CURRENT), (Member::Child, twin.task())];
        let mut looks = Vec::new();
        for (number, mapping) in self.mappings.iter().enumerate() {
            let pages = mapping.page(0)..mapping.page(mapping.pages());
            for (member, task) in members {
                let ours = pages.clone().map(|page| family.member(member).node_of(page)).collect();
                looks.push((number, member, Nodes(ours), task, pages.clone()));
            }
        }
        let ours = looks.iter().map(|(number, member, nodes, ..)| (*number, *member, nodes.clone()));
        let last = self.trace.forks.last_mut().ok_or("a child without a fork")?;
        *last = ours.collect();
        looks.into_iter().try_for_each(|(number, member, ours, task, pages)| {
            let kernels = Nodes::located(task, pages)?;
            alike(Aspect::Pages, &format!("pages of m{number} of {}", member_text(member)), &kernels, &ours)
        })
    }
}

/// The member in words.
const fn member_text(member: Member) -> &'static str {
    match member {
        Member::Parent => "the parent",
        Member::Child => "the child",
    }
}
