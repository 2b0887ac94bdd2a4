//! `nodewise._native`: policies, CPUs and places of pages of the calling process.
//!
//! Everything that only reads a machine or runs programs is in Python, through the command. What is here has to happen
//! inside of the process. Nodes and CPUs are lists of numbers, policies the words of `numa_maps`; a refused call is an
//! `OSError` with its number and a sentence.

use nodewise_machine::set::list::ListError;
use nodewise_machine::{Bytes, CpuId, CpuSet, DeviceRef, MemPolicy, NodeId, NodeSet, Origin, PolicyMode};
use nodewise_source::devices::node_of_device;
use nodewise_source::tree::Tree;
use nodewise_source::{Detail, sysfs};
use nodewise_syscall::{CallError, NodeBuffer, PageKind, PageLocation, Task, affinity, mempolicy, pages};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// A page that is nowhere yet, or swapped out.
const NOT_PRESENT: i64 = -1;
/// The zero page, which reads of untouched memory share, or nothing is mapped.
const ZERO_OR_UNMAPPED: i64 = -2;
/// The kernel gave an error for this page.
const UNKNOWN: i64 = -3;

fn refused(error: CallError) -> PyErr {
    PyOSError::new_err((error.errno.number(), error.to_string()))
}

fn set_of(nodes: Vec<u32>) -> NodeSet {
    nodes.into_iter().map(NodeId::new).collect()
}

fn policy_of(word: &str, nodes: Vec<u32>) -> PyResult<MemPolicy> {
    let mode = PolicyMode::ALL.into_iter().find(|mode| mode.word() == word);
    let words = || PolicyMode::ALL.map(PolicyMode::word).join(", ");
    let mode =
        mode.ok_or_else(|| PyValueError::new_err(format!("{word:?} is not a policy: expected {}", words())))?;
    Ok(MemPolicy::new(mode, set_of(nodes)))
}

/// The addresses of the small pages that a range touches, not only of those that begin in it.
fn touched(address: usize, length: usize) -> impl Iterator<Item = usize> {
    let page = pages::page_size();
    let start = address - address % page;
    let length = if length == 0 { 0 } else { length.saturating_add(address - start) };
    pages::addresses(start, length, page)
}

/// The node of each small page of a range; -1 not present, -2 the zero page or unmapped, -3 unknown.
#[pyfunction]
fn locate(py: Python<'_>, address: usize, length: usize) -> PyResult<Vec<i64>> {
    let mut places = Vec::new();
    let located = py.detach(|| {
        pages::locate(Task::CURRENT, touched(address, length), |_, place| {
            places.push(match place {
                PageLocation::Node(node) => i64::from(node.number()),
                PageLocation::NotPresent => NOT_PRESENT,
                PageLocation::ZeroOrUnmapped => ZERO_OR_UNMAPPED,
                PageLocation::Error(_) => UNKNOWN,
            });
        })
    });
    located.map_err(refused)?;
    Ok(places)
}

/// Moves the pages of a range to a node, and returns how many are there then.
#[pyfunction]
fn move_to(py: Python<'_>, address: usize, length: usize, node: u32) -> PyResult<u64> {
    let node = NodeId::new(node);
    let moves = touched(address, length).map(|page| (page, node));
    let counts = py.detach(|| pages::move_each(Task::CURRENT, moves, nodewise_syscall::PageScope::Own));
    Ok(counts.map_err(refused)?.on(node))
}

/// The policy of the calling thread: its word and its nodes.
#[pyfunction]
fn thread_policy() -> PyResult<(String, Vec<u32>)> {
    let policy = mempolicy::thread_policy().map_err(|error| PyOSError::new_err(error.to_string()))?;
    Ok((policy.mode.word().to_owned(), policy.nodes.iter().map(NodeId::number).collect()))
}

/// Sets the policy of the calling thread.
#[pyfunction]
fn set_thread_policy(word: &str, nodes: Vec<u32>) -> PyResult<()> {
    mempolicy::set_thread_policy(&policy_of(word, nodes)?).map_err(refused)
}

/// The CPUs that the calling thread may run on.
#[pyfunction]
fn cpus() -> PyResult<Vec<u32>> {
    Ok(affinity::cpus(Task::CURRENT).map_err(refused)?.iter().map(CpuId::number).collect())
}

/// Sets the CPUs that the calling thread may run on.
#[pyfunction]
fn set_cpus(cpus: Vec<u32>) -> PyResult<()> {
    let cpus: CpuSet = cpus.into_iter().map(CpuId::new).collect();
    affinity::set_cpus(Task::CURRENT, &cpus).map_err(refused)
}

/// The nodes that this process may take memory from.
#[pyfunction]
fn allowed_nodes() -> PyResult<Vec<u32>> {
    Ok(mempolicy::allowed_nodes().map_err(refused)?.iter().map(NodeId::number).collect())
}

/// The nodes of this machine with their CPUs.
#[pyfunction]
fn nodes() -> Vec<(u32, Vec<u32>)> {
    let machine = sysfs::load(&Tree::live(), Origin::Live, Detail::Nodes);
    machine
        .nodes
        .iter()
        .map(|(id, node)| (id.number(), node.cpus.iter().map(CpuId::number).collect()))
        .collect()
}

/// Reads a list of nodes as the kernel writes it: `0-2,5`.
#[pyfunction]
fn parse_nodes(text: &str) -> PyResult<Vec<u32>> {
    let set: NodeSet = text.parse().map_err(|error: ListError| PyValueError::new_err(error.to_string()))?;
    Ok(set.iter().map(NodeId::number).collect())
}

/// The node of a device such as `gpu:0` or `net:eth0`.
#[pyfunction]
fn node_of(device: &str) -> PyResult<u32> {
    let tree = Tree::live();
    let machine = sysfs::load(&tree, Origin::Live, Detail::Overview);
    let device: DeviceRef = device.parse().map_err(|error| PyValueError::new_err(format!("{error}")))?;
    let node = node_of_device(Some(&tree), &machine, &device);
    Ok(node.map_err(|error| PyValueError::new_err(error.to_string()))?.number())
}

/// Memory with a policy of its own, unmapped with the last reference to it.
#[pyclass(frozen)]
struct Buffer(NodeBuffer);

#[pymethods]
impl Buffer {
    /// Maps `size` bytes; touched at once, or page by page by whoever writes first.
    #[new]
    fn new(
        py: Python<'_>,
        size: u64,
        policy: &str,
        nodes: Vec<u32>,
        huge: bool,
        touch: bool,
    ) -> PyResult<Self> {
        let policy = policy_of(policy, nodes)?;
        let policy = Some(&policy).filter(|policy| policy.mode != PolicyMode::Default);
        let kind = if huge { PageKind::TransparentHuge } else { PageKind::Small };
        let size = Bytes::new(size);
        let buffer = py.detach(|| {
            if touch { NodeBuffer::new(size, kind, policy) } else { NodeBuffer::reserve(size, kind, policy) }
        });
        buffer.map(Self).map_err(refused)
    }

    #[getter]
    fn address(&self) -> usize {
        self.0.address()
    }
}

#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Buffer>()?;
    module.add_function(wrap_pyfunction!(locate, module)?)?;
    module.add_function(wrap_pyfunction!(move_to, module)?)?;
    module.add_function(wrap_pyfunction!(thread_policy, module)?)?;
    module.add_function(wrap_pyfunction!(set_thread_policy, module)?)?;
    module.add_function(wrap_pyfunction!(cpus, module)?)?;
    module.add_function(wrap_pyfunction!(set_cpus, module)?)?;
    module.add_function(wrap_pyfunction!(allowed_nodes, module)?)?;
    module.add_function(wrap_pyfunction!(nodes, module)?)?;
    module.add_function(wrap_pyfunction!(parse_nodes, module)?)?;
    module.add_function(wrap_pyfunction!(node_of, module)?)?;
    module.add("PAGE_SIZE", pages::page_size())?;
    Ok(())
}
