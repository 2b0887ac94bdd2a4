//! The nodes of a device tree: `numa-node-id` of CPUs and memory, and `distance-map`.

use nodewise_machine::firmware::devicetree::{DistanceMap, NodeProperty, NumaTree, Reg, TreeCpu, TreeMemory};

use super::blob::{Blob, DtbError, Event, number};
use crate::limits::MOST_CPUS;

/// Most nodes of memory that are kept: two for each node of the largest kernel.
const MOST_MEMORY: usize = 2 << 10;
/// `compatible` of a distance map.
const MAP: &[u8] = b"numa-distance-map-v1";

/// Reads what a device tree says of nodes.
///
/// # Errors
/// Bytes that are not a device tree. A property of the wrong form is not an error: it is given by its place
/// in the [`NumaTree`].
pub fn read(bytes: &[u8]) -> Result<NumaTree, DtbError> {
    let mut reader = Reader::default();
    Blob::new(bytes)?.walk(&mut |event| {
        reader.take(event);
        Ok(())
    })?;
    Ok(reader.found)
}

/// A node of the tree that has begun.
#[derive(Default)]
struct Open<'a> {
    name: &'a [u8],
    is_cpu: bool,
    is_memory: bool,
    is_disabled: bool,
    id: Option<&'a [u8]>,
    reg: Option<&'a [u8]>,
    compatible: Option<&'a [u8]>,
    matrix: Option<&'a [u8]>,
    model: Option<&'a [u8]>,
    /// `#address-cells` and `#size-cells` for the nodes inside.
    cells: Option<(u32, u32)>,
}

#[derive(Default)]
struct Reader<'a> {
    open: Vec<Open<'a>>,
    found: NumaTree,
}

impl<'a> Reader<'a> {
    fn take(&mut self, event: Event<'a>) {
        match event {
            Event::Begin(name) => self.begin(name),
            Event::Property(name, value) => self.property(name, value),
            Event::End => self.end(),
        }
    }

    fn begin(&mut self, name: &'a [u8]) {
        let is_cpu = self.open.len() == 2 && self.open[1].name == b"cpus" && name.starts_with(b"cpu@");
        self.open.push(Open { name, is_cpu, ..Open::default() });
    }

    fn property(&mut self, name: &[u8], value: &'a [u8]) {
        let Some(node) = self.open.last_mut() else { return };
        // The specification's values where one of the two is missing: 2 and 1.
        let cells = node.cells.unwrap_or((2, 1));
        let text = value.strip_suffix(b"\0").unwrap_or(value);
        match name {
            b"device_type" => {
                node.is_memory = text == b"memory";
                node.is_cpu |= text == b"cpu";
            }
            b"status" => node.is_disabled = !matches!(text, b"okay" | b"ok"),
            b"numa-node-id" => node.id = Some(value),
            b"reg" => node.reg = Some(value),
            b"compatible" => node.compatible = Some(value),
            b"distance-matrix" => node.matrix = Some(value),
            b"model" => node.model = Some(text),
            b"#address-cells" => node.cells = number(value, 0).map(|count| (count, cells.1)),
            b"#size-cells" => node.cells = number(value, 0).map(|count| (cells.0, count)),
            _ => {}
        }
    }

    fn end(&mut self) {
        let Some(node) = self.open.pop() else { return };
        let depth = self.open.len();
        if depth == 0 {
            self.found.model = node.model.map(|model| String::from_utf8_lossy(model).into_owned());
        }
        if node.is_cpu && self.found.cpus.len() < MOST_CPUS as usize {
            let own = id(node.id);
            let inherited = match own {
                NodeProperty::Missing => self.inherited(),
                own => own,
            };
            self.found.cpus.push(TreeCpu {
                path: self.path(node.name),
                own,
                inherited,
                enabled: !node.is_disabled,
            });
        }
        if node.is_memory && !node.is_disabled && self.found.memory.len() < MOST_MEMORY {
            let cells = self.open.last().and_then(|parent| parent.cells).unwrap_or((2, 1));
            let ranges = node.reg.and_then(|reg| ranges(reg, cells));
            self.found.memory.push(TreeMemory { path: self.path(node.name), node: id(node.id), ranges });
        }
        if depth == 1 && node.name == b"distance-map" {
            let is_known =
                node.compatible.is_some_and(|list| list.split(|byte| *byte == 0).any(|one| one == MAP));
            self.found.distance_map = Some(DistanceMap { is_known, triples: node.matrix.and_then(triples) });
        }
    }

    /// The node of the nearest parent that has one.
    fn inherited(&self) -> NodeProperty {
        let ids = self.open.iter().rev().map(|parent| id(parent.id));
        ids.into_iter().find(|id| *id != NodeProperty::Missing).unwrap_or(NodeProperty::Missing)
    }

    fn path(&self, name: &[u8]) -> String {
        let parents = self.open.iter().skip(1).map(|parent| parent.name);
        let names = parents.chain([name]).map(String::from_utf8_lossy);
        names.fold(String::new(), |path, name| format!("{path}/{name}"))
    }
}

fn id(value: Option<&[u8]>) -> NodeProperty {
    match value {
        None => NodeProperty::Missing,
        Some(value) if value.len() == 4 => number(value, 0).map_or(NodeProperty::Malformed, NodeProperty::Id),
        Some(_) => NodeProperty::Malformed,
    }
}

/// Addresses and sizes; `None` for a form that holds none.
fn ranges(reg: &[u8], (address, size): (u32, u32)) -> Option<Vec<Reg>> {
    // More than 64 bits are of other buses.
    if !(1..=2).contains(&address) || !(1..=2).contains(&size) {
        return None;
    }
    let (address, size) = (4 * address as usize, 4 * size as usize);
    if reg.len() % (address + size) != 0 {
        return None;
    }
    let value = |bytes: &[u8]| bytes.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    let range = |chunk: &[u8]| Reg { start: value(&chunk[..address]), size: value(&chunk[address..]) };
    Some(reg.chunks_exact(address + size).map(range).collect())
}

/// From, to, distance; `None` when the numbers do not come in threes.
fn triples(value: &[u8]) -> Option<Vec<[u32; 3]>> {
    if value.len() % 12 != 0 {
        return None;
    }
    let triple = |chunk: &[u8]| Some([number(chunk, 0)?, number(chunk, 4)?, number(chunk, 8)?]);
    value.chunks_exact(12).map(triple).collect()
}
