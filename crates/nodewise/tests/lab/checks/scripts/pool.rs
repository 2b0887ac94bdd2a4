//! Huge pages of the nodes' pools: which node a fault takes one from.

use std::fs;

use nodewise_machine::{Bytes, MemPolicy, NodeId};
use nodewise_model::hugetlb::Pool;
use nodewise_model::{Policy, Scope};
use nodewise_syscall::advice::advise;
use nodewise_syscall::{Advice, BindOptions, HugePageSize, NodeBuffer, PageKind, Task, mempolicy};

use super::super::model::release;
use super::super::same;
use super::mapping::PAGE;
use super::stage::{Answer, Stage, located, of_kernel, of_model};
use crate::kernel;
use crate::script::BLOCK;

const HUGE: u64 = BLOCK * PAGE;

fn path(node: NodeId, file: &str) -> String {
    format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/{file}")
}

/// Free pages in the pools of some nodes; the pools are empty again when dropped.
struct Pools(Vec<(NodeId, u64)>);

impl Pools {
    /// Asks for so many pages; a node that has no room for them has fewer.
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
    pub fn pool(
        &mut self,
        asked: &[(NodeId, u64)],
        pages: u64,
        policy: Option<&MemPolicy>,
        touched: &[u64],
    ) -> Result<(), String> {
        let pools = Pools::fill(asked)?;
        let mut pool = Pool::with(&pools.0);
        let size = Bytes::new(pages * HUGE);
        let mapping = NodeBuffer::reserve(size, PageKind::Hugetlb(HugePageSize::MIB_2), None);
        let ours = pool.reserve(pages, self.task.policy(), self.task.allowed());
        let what = format!("mapping from pools of {:?}", pools.0);
        let kernels: Answer =
            mapping.as_ref().map(drop).map_err(|error| error.errno.name().unwrap_or("?").to_owned());
        same(&what, of_model(ours), kernels)?;
        let Ok(mapping) = mapping else { return Ok(()) };
        let allowed = self.task.allowed().clone();
        let scope = Scope { allowed: &allowed, max_nodes: 1024, release: release(self.context) };
        let mut own = self.task.policy().clone();
        if let Some(policy) = policy {
            let kernels =
                mempolicy::bind_range(mapping.address(), size.get() as usize, policy, BindOptions::default());
            let ours = Policy::of(policy, scope);
            same("the answer for memory from pools", of_model(ours.clone().map(drop)), of_kernel(kernels))?;
            own = ours.ok().filter(|policy| *policy != Policy::DEFAULT).unwrap_or(own);
        }
        let mut places = vec![None; pages as usize];
        for number in touched {
            let address = mapping.address() as u64 + number * HUGE;
            let kernels = of_kernel(advise(address as usize, PAGE as usize, Advice::Populate));
            let place = &mut places[*number as usize];
            if place.is_none() {
                *place = self.task.fault_from(&mut pool, &own, *number, &self.memory);
            }
            let ours: Answer = if place.is_some() { Ok(()) } else { Err("EFAULT".to_owned()) };
            same(&format!("page {number} of pools of {:?}", pools.0), ours, kernels)?;
            let page = address / PAGE;
            let seen = located(Task::CURRENT, page..page + 1)?;
            same(
                &format!("node of page {number} of pools of {:?} (the model's first)", pools.0),
                vec![*place],
                seen,
            )?;
        }
        // Its pages go back before the pools are emptied.
        drop(mapping);
        Ok(())
    }
}
