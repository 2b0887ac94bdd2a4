//! Huge pages of the nodes' pools: which node a fault takes one from, and where one moves to.

use std::collections::BTreeMap;
use std::fs;

use nodewise_machine::{Bytes, NodeId};
use nodewise_model::Release;
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

/// All nodes together.
const WHOLE: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";

fn resize(path: &str, pages: u64) -> Result<(), String> {
    fs::write(path, pages.to_string()).map_err(|error| format!("{path}: {error}"))
}

fn read(node: NodeId, file: &str) -> Result<u64, String> {
    let text = kernel::line(&path(node, file))?;
    text.parse().map_err(|_| format!("{file}: {text}"))
}

/// Free pages in the pools of some nodes; the pools are empty again when dropped.
struct Pools(Vec<NodeId>);

impl Pools {
    /// Asks for this many pages; a node that has no room for them has fewer. Gives the model's pool, too.
    fn fill(asked: &[(NodeId, u64)], release: Release) -> Result<(Self, Pool), String> {
        let pools = Self(asked.iter().map(|(node, _)| *node).collect());
        let mut ours = Pool::new(&pools.0.iter().copied().collect()).under(release);
        // The next page of the whole pool comes from the node that was written last, and the next to leave it is one of the node
        // that the last one left: here of the first that had one to give, for those outside the cpuset have none.
        for node in pools.0.iter().rev() {
            resize(&path(*node, "nr_hugepages"), 1)?;
            let has_given = read(*node, "free_hugepages")? > 0;
            resize(&path(*node, "nr_hugepages"), 0)?;
            for pages in [1, 0] {
                ours.resize_node(*node, pages, |_| has_given);
            }
        }
        for node in &pools.0 {
            for file in ["nr_hugepages", "surplus_hugepages"] {
                let left = read(*node, file)?;
                if left > 0 {
                    return Err(format!("{file} of node {node} is {left} before its pool is filled"));
                }
            }
        }
        for (node, pages) in asked {
            resize(&path(*node, "nr_hugepages"), *pages)?;
            // A node that gives fewer has had its turn, too.
            let mut left = read(*node, "free_hugepages")?;
            ours.resize_node(*node, *pages, |_| {
                let has = left > 0;
                left = left.saturating_sub(1);
                has
            });
        }
        Ok((pools, ours))
    }
}

impl Drop for Pools {
    fn drop(&mut self) {
        // A free page can be a surplus one after moves: the pool keeps it until it has grown by it.
        for node in &self.0 {
            let pages = read(*node, "nr_hugepages").unwrap_or_default();
            let _ = fs::write(path(*node, "nr_hugepages"), pages.to_string());
        }
        for node in &self.0 {
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
        let (pools, pool) = Pools::fill(asked, self.arena.prediction.release)?;
        let size = Bytes::new(pages * HUGE);
        let mapping = NodeBuffer::reserve(size, PageKind::Hugetlb(HugePageSize::MIB_2), None);
        let ours = Pooled::map(pool, pages as usize, &self.task);
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
        let left = Self::compare_counts(&ours.unmap());
        drop(pools);
        left
    }

    fn pool_step(&mut self, start: usize, ours: &mut Pooled, step: &PoolStep) -> Result<(), Trouble> {
        let address = |page: u64| start + (page * HUGE) as usize;
        let (task, memory) = (&mut self.task, &mut self.memory);
        let (ours, kernels) = match step {
            // How much there is to take depends on what else has happened.
            PoolStep::Resize(Some(node), _) if ours.pool().takes_all(*node) => {
                self.trace.tally.left_out += 1;
                return Ok(());
            }
            PoolStep::Resize(node, pages) => {
                let file = node.map_or_else(|| WHOLE.to_owned(), |node| path(node, "nr_hugepages"));
                resize(&file, *pages)?;
                let read = kernel::line(&file)?;
                let ours = ours.set_pages(*node, *pages, task, memory).to_string();
                return alike(Aspect::Pools, &format!("pages after {}", step.text()), &read, &ours);
            }
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
        let pool = ours.pool();
        let listed =
            |counts: &BTreeMap<NodeId, u64>| counts.iter().map(|(node, pages)| (*node, *pages)).collect();
        let free = listed(pool.free());
        let last = self.trace.pools.last_mut().ok_or("pages without a pool")?;
        *last = ExpectedPool { address: Some(start), nodes: nodes.clone(), free };
        let mut kernels = Nodes::default();
        for page in 0..nodes.0.len() as u64 {
            let first = start as u64 / PAGE + page * BLOCK;
            kernels.0.extend(Nodes::located(Task::CURRENT, first..first + 1)?.0);
        }
        alike(Aspect::Pages, "huge pages from the pools", &kernels, &nodes)?;
        Self::compare_counts(pool)
    }

    /// Compares free and surplus pages of each node.
    fn compare_counts(pool: &Pool) -> Result<(), Trouble> {
        for (words, file, ours) in [
            ("free huge", "free_hugepages", pool.free()),
            ("surplus huge", "surplus_hugepages", pool.surplus()),
        ] {
            for (node, pages) in ours {
                let what = format!("{words} pages of node {node}");
                alike(Aspect::Pools, &what, &read(*node, file)?, pages)?;
            }
        }
        Ok(())
    }
}
