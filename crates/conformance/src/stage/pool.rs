//! Huge pages of the nodes' pools: which node a fault takes one from, and where one moves to.

use std::fs;

use nodewise_machine::{Bytes, NodeId};
use nodewise_model::hugetlb::Pool;
use nodewise_model::oracle::task::pooled::Pooled;
use nodewise_syscall::advice::advise;
use nodewise_syscall::{Advice, HugePageSize, NodeBuffer, PageKind, PageScope, Task, mempolicy, pages};

use super::{Stage, of_kernel, of_model, present};
use crate::difference::{Aspect, Trouble, alike};
use crate::kernel;
use crate::nodes::{Nodes, PAGE};
use crate::script::{BLOCK, PoolStep};
use crate::trace::{Answer, ExpectedPool};

const HUGE: u64 = BLOCK * PAGE;

fn path(node: NodeId, file: &str) -> String {
    format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/{file}")
}

/// Free pages in the pools of some nodes; the pools are empty again when dropped.
struct Pools(Vec<(NodeId, u64)>);

impl Pools {
    /// Asks for this many pages; a node that has no room for them has fewer.
    fn fill(asked: &[(NodeId, u64)]) -> Result<Self, String> {
        let mut pools = Self(asked.to_vec());
        for (node, pages) in &mut pools.0 {
            let all = path(*node, "nr_hugepages");
            fs::write(&all, pages.to_string()).map_err(|error| format!("{all}: {error}"))?;
            let free = kernel::line(&path(*node, "free_hugepages"))?;
            *pages = free.parse().map_err(|_| format!("free_hugepages: {free}"))?;
        }
        Ok(pools)
    }
}

impl Drop for Pools {
    fn drop(&mut self) {
        for (node, _) in &self.0 {
            let _ = fs::write(path(*node, "nr_hugepages"), "0");
        }
    }
}

impl Stage<'_> {
    pub(super) fn pool(
        &mut self,
        asked: &[(NodeId, u64)],
        pages: u64,
        steps: &[PoolStep],
    ) -> Result<(), Trouble> {
        let pools = Pools::fill(asked)?;
        let size = Bytes::new(pages * HUGE);
        let mapping = NodeBuffer::reserve(size, PageKind::Hugetlb(HugePageSize::MIB_2), None);
        let ours = Pooled::map(Pool::with(&pools.0), pages as usize, &self.task);
        self.trace.pools.push(ExpectedPool::default());
        let kernels: Answer =
            mapping.as_ref().map(drop).map_err(|error| error.errno.name().unwrap_or("?").to_owned());
        let predicted = ours.as_ref().map(drop).map_err(|errno| errno.name().to_owned());
        self.answered(&format!("mmap of {pages} pages from the pools"), kernels, predicted)?;
        let (Ok(mapping), Ok(mut ours)) = (mapping, ours) else { return Ok(()) };
        for step in steps {
            self.pool_step(mapping.address(), &mut ours, step)?;
            self.compare_pool(mapping.address(), &ours)?;
        }
        // Its pages go back before the pools are emptied.
        drop(mapping);
        Ok(())
    }

    fn pool_step(&mut self, start: usize, ours: &mut Pooled, step: &PoolStep) -> Result<(), Trouble> {
        let address = |page: u64| start + (page * HUGE) as usize;
        let (task, memory) = (&mut self.task, &mut self.memory);
        let (ours, kernels) = match step {
            PoolStep::Touch(page) => {
                let had = ours.touch(*page as usize, task, memory).is_some();
                let kernels = advise(address(*page), PAGE as usize, Advice::Populate);
                (if had { Ok(()) } else { Err("EFAULT".to_owned()) }, of_kernel(kernels))
            }
            PoolStep::Bind(policy, options) => {
                let length = ours.nodes().len() * HUGE as usize;
                let kernels = mempolicy::bind_range(start, length, policy, *options);
                (of_model(ours.bind(policy, present(*options), task, memory)), of_kernel(kernels))
            }
            PoolStep::Move(page, node) => {
                let kernels = pages::move_each(Task::CURRENT, [(address(*page), *node)], PageScope::Own);
                (of_model(ours.move_page(*page as usize, *node, task, memory)), of_kernel(kernels))
            }
            PoolStep::Migrate(old, new) => {
                let kernels = pages::migrate(Task::CURRENT, old, new);
                // The program's other pages go too.
                let others = task.migrate_pages(old, new, memory);
                let answer = ours.migrate_pages(old, new, task, memory).and(others);
                (of_model(answer), of_kernel(kernels))
            }
        };
        self.answered(&step.text(), kernels, ours)
    }

    /// Compares pages and pools of the model and the kernel.
    fn compare_pool(&mut self, start: usize, ours: &Pooled) -> Result<(), Trouble> {
        let nodes = Nodes(ours.nodes().to_vec());
        let free: Vec<(NodeId, u64)> = ours.pool().free().iter().map(|(node, free)| (*node, *free)).collect();
        let last = self.trace.pools.last_mut().ok_or("pages without a pool")?;
        *last = ExpectedPool { address: Some(start), nodes: nodes.clone(), free: free.clone() };
        let mut kernels = Nodes::default();
        for page in 0..nodes.0.len() as u64 {
            let first = start as u64 / PAGE + page * BLOCK;
            kernels.0.extend(Nodes::located(Task::CURRENT, first..first + 1)?.0);
        }
        alike(Aspect::Pages, "huge pages from the pools", &kernels, &nodes)?;
        for (node, free) in free {
            let kernels = kernel::line(&path(node, "free_hugepages"))?;
            let what = format!("free huge pages of node {node}");
            alike(Aspect::Pools, &what, &kernels, &free.to_string())?;
        }
        Ok(())
    }
}
