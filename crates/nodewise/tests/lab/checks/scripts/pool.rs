//! Huge pages of the nodes' pools: which node a fault takes one from, and where one moves to.

use std::fs;

use nodewise_machine::{Bytes, NodeId};
use nodewise_model::hugetlb::Pool;
use nodewise_model::oracle::task::pooled::Pooled;
use nodewise_syscall::advice::advise;
use nodewise_syscall::{Advice, HugePageSize, NodeBuffer, PageKind, PageScope, Task, mempolicy, pages};

use super::super::same;
use super::mapping::PAGE;
use super::stage::{Answer, Stage, located, of_kernel, of_model, present};
use crate::kernel;
use crate::script::{BLOCK, PoolStep};

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
    pub fn pool(&mut self, asked: &[(NodeId, u64)], pages: u64, steps: &[PoolStep]) -> Result<(), String> {
        let pools = Pools::fill(asked)?;
        let size = Bytes::new(pages * HUGE);
        let mapping = NodeBuffer::reserve(size, PageKind::Hugetlb(HugePageSize::MIB_2), None);
        let ours = Pooled::map(Pool::with(&pools.0), pages as usize, &self.task);
        let what = format!("mapping from pools of {:?}", pools.0);
        let kernels: Answer =
            mapping.as_ref().map(drop).map_err(|error| error.errno.name().unwrap_or("?").to_owned());
        same(&what, ours.as_ref().map(drop).map_err(|errno| errno.name().to_owned()), kernels)?;
        let (Ok(mapping), Ok(mut ours)) = (mapping, ours) else { return Ok(()) };
        for step in steps {
            let done = self.pool_step(mapping.address(), &mut ours, step);
            done.and_then(|()| compare(mapping.address(), &ours))
                .map_err(|why| format!("{step:?} with pools of {:?}: {why}", pools.0))?;
        }
        // Its pages go back before the pools are emptied.
        drop(mapping);
        Ok(())
    }

    fn pool_step(&mut self, start: usize, ours: &mut Pooled, step: &PoolStep) -> Result<(), String> {
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
        same("the answers of model and kernel", ours, kernels)
    }
}

/// Holds pages and pools of the model and the kernel together.
fn compare(start: usize, ours: &Pooled) -> Result<(), String> {
    let first_pages = (0..ours.nodes().len()).map(|page| start + page * HUGE as usize);
    let mut kernels = Vec::new();
    for address in first_pages {
        let page = address as u64 / PAGE;
        kernels.extend(located(Task::CURRENT, page..page + 1)?);
    }
    same("nodes of the pages (the model's first)", ours.nodes(), &kernels)?;
    for (node, free) in ours.pool().free() {
        let kernels = kernel::line(&path(*node, "free_hugepages"))?;
        same(&format!("free pages of node {node}"), free.to_string(), kernels)?;
    }
    Ok(())
}
