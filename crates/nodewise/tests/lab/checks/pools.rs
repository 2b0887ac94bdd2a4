//! The pool of huge pages of the whole system: `nodewise simulate` beside programs that do the same.

use std::fs;

use nodewise_machine::{Bytes, CpuSet, MemPolicy, NodeId};
use nodewise_syscall::arguments::BindOptions;
use nodewise_syscall::{HugePageSize, NodeBuffer, PageKind, PageScope, Task, affinity, mempolicy};

use super::same;
use crate::kernel;
use crate::nodewise::Context;

const ALL: &str = "/proc/sys/vm/nr_hugepages";
const HUGE: u64 = 2 << 20;

fn of_node(node: NodeId, file: &str) -> String {
    format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/{file}")
}

fn write(path: &str, pages: u64) -> Result<(), String> {
    fs::write(path, pages.to_string()).map_err(|error| format!("{path}: {error}"))
}

/// The pool as a kernel begins: empty, and with its first page on the first node. It is empty again when dropped.
struct Empty;

impl Empty {
    fn pool(context: &Context) -> Result<Self, String> {
        write(ALL, 0)?;
        let first = context.seen.nodes_with_memory().first().ok_or("no node has memory")?;
        // Growing and shrinking one node lets both go on with it.
        write(&of_node(first, "nr_hugepages"), 1)?;
        write(&of_node(first, "nr_hugepages"), 0)?;
        Ok(Self)
    }
}

impl Drop for Empty {
    fn drop(&mut self) {
        let _ = write(ALL, 0);
    }
}

/// Free pages of each node's pool, as the kernel has them.
fn free(context: &Context) -> Result<Vec<u64>, String> {
    let nodes = context.seen.nodes_with_memory();
    let read = |node| {
        let line = kernel::line(&of_node(node, "free_hugepages"))?;
        line.parse().map_err(|_| format!("free_hugepages: {line}"))
    };
    nodes.iter().map(read).collect()
}

/// The same at the end of a scenario, as the model has them.
fn foreseen(context: &Context, name: &str, events: &str) -> Result<Vec<u64>, String> {
    let path = std::env::temp_dir().join(format!("{name}.toml"));
    fs::write(&path, events).map_err(|error| format!("{}: {error}", path.display()))?;
    let json = context.json(&["simulate", &path.display().to_string(), "--json"])?;
    let pool = json["after"]["pool"].as_array().cloned().unwrap_or_default();
    let of = |node: NodeId| {
        let own = pool.iter().filter(|own| own["node"].as_u64() == Some(node.number().into()));
        own.filter_map(|own| own["pages"].as_u64()).sum::<u64>() / (HUGE / 4096)
    };
    Ok(context.seen.nodes_with_memory().iter().map(of).collect())
}

/// Puts this thread on the first CPU of a node.
pub(super) fn run_on(context: &Context, node: NodeId) -> Result<(), String> {
    let cpu = context.seen.cpus_of(node).first().ok_or("the node has a CPU")?;
    affinity::set_cpus(Task::CURRENT, &CpuSet::from_iter([cpu])).map_err(|error| error.to_string())
}

/// Memory of the pool under a policy, touched.
fn taken(pages: u64, policy: &str) -> Result<NodeBuffer, String> {
    let policy: MemPolicy = policy.parse().map_err(|_| format!("{policy} is not a policy"))?;
    let size = Bytes::new(pages * HUGE);
    let mut buffer = NodeBuffer::reserve(size, PageKind::Hugetlb(HugePageSize::MIB_2), Some(&policy))
        .map_err(|error| error.to_string())?;
    buffer.prefault().map_err(|error| error.to_string())?;
    Ok(buffer)
}

/// A program has more of the pool than it is to hold, and frees it.
pub fn too_small(context: &Context) -> Result<(), String> {
    let ours = foreseen(
        context,
        "surplus",
        "[[program]]\nname = \"a\"\n[[event]]\nat = 0\nprogram = \"a\"\nhugepages = 6\n\
         [[event]]\nat = 1\nprogram = \"a\"\nallocate = \"8M\"\npool = true\n\
         [[event]]\nat = 2\nprogram = \"a\"\nhugepages = 1\n[[event]]\nat = 3\nprogram = \"a\"\nfree = \"heap\"\n",
    )?;
    let _pool = Empty::pool(context)?;
    run_on(context, context.seen.nodes_with_cpus().first().ok_or("a node has CPUs")?)?;
    write(ALL, 6)?;
    let heap = taken(4, "local")?;
    write(ALL, 1)?;
    drop(heap);
    same("free pages of the pool (the model's first)", ours, free(context)?)
}

/// A page that moves leaves one behind, which the next page may get.
pub fn moved(context: &Context) -> Result<(), String> {
    let nodes = context.seen.nodes_with_memory();
    let with_cpus = context.seen.nodes_with_cpus();
    let (Some(first), Some(last)) = (with_cpus.first(), nodes.last()) else {
        return Err("no nodes".to_owned());
    };
    let all = 2 * nodes.len();
    let ours = foreseen(
        context,
        "moved",
        &format!(
            "[[program]]\nname = \"a\"\ncpu-node = {first}\n\
             [[event]]\nat = 0\nprogram = \"a\"\nhugepages = {all}\n\
             [[event]]\nat = 1\nprogram = \"a\"\nallocate = \"4M\"\npool = true\npolicy = \"bind:{last}\"\n\
             [[event]]\nat = 2\nprogram = \"a\"\nallocate = \"2M\"\nregion = \"other\"\npool = true\npolicy = \"bind:{first}\"\n\
             [[event]]\nat = 3\nprogram = \"a\"\nmbind = \"heap\"\npolicy = \"local\"\nmove = true\n"
        ),
    )?;
    let _pool = Empty::pool(context)?;
    run_on(context, first)?;
    write(ALL, all as u64)?;
    let heap = taken(2, &format!("bind:{last}"))?;
    let other = taken(1, &format!("bind:{first}"))?;
    let options = BindOptions { moving: Some(PageScope::Own), strict: false };
    let local: MemPolicy = "local".parse().map_err(|_| "local is not a policy")?;
    let length = heap.length().get() as usize;
    mempolicy::bind_range(heap.address(), length, &local, options).map_err(|error| error.to_string())?;
    let found = free(context)?;
    drop((heap, other));
    same("free pages of the pool (the model's first)", ours, found)
}
