//! The firmware's tables through the model, against what the kernel shows.

use std::path::Path;

use nodewise_machine::{NodeId, NodeMatrix, Origin};
use nodewise_model::fake::Fake;
use nodewise_model::fake::outcome::{Emulation, EmulationVariant, emulate};
use nodewise_model::firmware::{Booted, Setting, boot, boot_tree};
use nodewise_model::ram::{Architecture, PAGE, Range};
use nodewise_model::{Change, FallbackOrders};

use super::model::release;
use super::same;
use crate::firmware::compare;
use crate::kernel;
use crate::nodewise::Context;

const ACPI: &str = "/sys/firmware/acpi/tables";
const TREE: &str = "/sys/firmware/fdt";

/// The memory that no kernel for a PC takes for RAM, whatever the memory map says:
/// the first page, and the BIOS area.
const NOT_RAM: [(u64, u64); 2] = [(0, PAGE), (0xa_0000, 0x10_0000)];

/// Nodes, ranges of memory to the byte, CPUs, distances and orders of fallback that follow from the tables, and
/// from `numa=fake=` where the guest was started with it, are those of the kernel.
pub fn tables(context: &Context) -> Result<(), String> {
    let booted = booted(context)?;
    let ram: Vec<Range> = clipped(&booted.ranges, &booted.ram);
    let command_line = kernel::line("/proc/cmdline")?;
    let fake = command_line.split_whitespace().find_map(|word| word.strip_prefix("numa=fake="));
    let Some(fake) = fake else {
        same("ranges of the nodes", &bounds(ram), &kernel::node_ranges())?;
        return shown(context, &booted);
    };
    let fake: Fake = fake.parse().map_err(|error| format!("numa=fake={fake}: {error}"))?;
    let mut machine = booted.machine(Origin::Live);
    machine.kernel.clone_from(&context.seen.kernel);
    let emulation = emulate(&fake, EmulationVariant::from_machine(&machine), &machine, &ram, &booted.ranges);
    emulated(&emulation.ok_or("the model's kernel does not emulate nodes here")?, &booted)
}

/// Computes the nodes that the model makes of the tables and the memory map.
fn booted(context: &Context) -> Result<Booted, String> {
    match Architecture::from_machine(&context.seen) {
        Architecture::X86 => {
            let tables = nodewise_source::acpi::files::from_paths(&[Path::new(ACPI)]);
            let ram = Some(without(kernel::usable_ranges(), &NOT_RAM));
            let setting = Setting { ram, release: release(context) };
            Ok(boot(&tables.map_err(|error| error.to_string())?, &setting))
        }
        _ => {
            let tree = nodewise_source::devicetree::from_path(Path::new(TREE));
            let tree = tree.map_err(|error| error.to_string())?;
            Ok(boot_tree(&tree, &Setting { ram: None, release: release(context) }))
        }
    }
}

/// Whole pages of some ranges, less others.
fn without(ranges: Vec<(u64, u64)>, others: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let left = others.iter().fold(ranges, |ranges, (start, end)| {
        let around = |range: (u64, u64)| [(range.0, range.1.min(*start)), (range.0.max(*end), range.1)];
        ranges.into_iter().flat_map(around).filter(|(start, end)| start < end).collect()
    });
    let pages = left.into_iter().map(|(start, end)| (start.next_multiple_of(PAGE), end / PAGE * PAGE));
    pages.filter(|(start, end)| start < end).collect()
}

/// The parts of the nodes' ranges that are RAM, in order; those that touch are one.
fn clipped(nodes: &[Range], ram: &[(u64, u64)]) -> Vec<Range> {
    let parts = nodes.iter().flat_map(|node| {
        let part = |(start, end): &(u64, u64)| Range {
            start: node.start.max(*start),
            end: node.end.min(*end),
            node: node.node,
        };
        ram.iter().map(part)
    });
    let mut parts: Vec<Range> = parts.filter(|part| part.start < part.end).collect();
    parts.sort_unstable();
    parts.dedup_by(|next, part| {
        let touch = part.end == next.start && part.node == next.node;
        if touch {
            part.end = next.end;
        }
        touch
    });
    parts
}

/// As the kernel prints them.
fn bounds(ranges: Vec<Range>) -> Vec<(u32, u64, u64)> {
    ranges.into_iter().map(|range| (range.node.number(), range.start, range.end - 1)).collect()
}

/// Checks what nodewise shows of the machine: from the tables, and from the kernel's files.
fn shown(context: &Context, booted: &Booted) -> Result<(), String> {
    let firmware = match Architecture::from_machine(&context.seen) {
        Architecture::X86 => format!("acpi:{ACPI}"),
        _ => format!("dtb:{TREE}"),
    };
    let mut tables = context.json(&["show", "--json", "--machine", &firmware])?;
    let live = context.json(&["show", "--json"])?;
    // What is shown of tables are the rules of another release, which has tiers of latencies.
    if !release(context).has(Change::TiersOfLatencies) {
        let ours = booted.machine(Origin::Live).tiers.len();
        same("number of tiers, whatever the tables say", live["tiers"].as_array().map(Vec::len), Some(ours))?;
        tables["tiers"] = live["tiers"].clone();
    }
    compare(&tables, &live)
}

/// The nodes that an emulation makes.
fn emulated(ours: &Emulation, booted: &Booted) -> Result<(), String> {
    let pieces = ours.nodes.iter().flat_map(|node| {
        node.ranges.iter().map(|(start, end)| Range { start: *start, end: *end, node: node.id })
    });
    let pieces: Vec<Range> = pieces.collect();
    same("ranges of the nodes", &bounds(clipped(&pieces, &booted.ram)), &kernel::node_ranges())?;
    let numbers: Vec<u32> = ours.nodes.iter().map(|node| node.id.number()).collect();
    same("nodes", &numbers, &kernel::online_nodes())?;
    for node in &ours.nodes {
        let what = format!("node {}", node.id);
        let cpus: Vec<u32> = node.cpus.iter().map(|cpu| cpu.number()).collect();
        same(&format!("CPUs of {what}"), cpus, kernel::cpus_of(node.id.number()))?;
        let row = row(&ours.distances, node.id, &numbers);
        same(&format!("distances of {what}"), row, kernel::distances_of(node.id.number()))?;
        same(
            &format!("fallback order of {what}"),
            order(&ours.orders, node.id),
            kernel::fallback_orders().remove(&node.id.number()),
        )?;
    }
    Ok(())
}

fn row(distances: &NodeMatrix<u32>, from: NodeId, nodes: &[u32]) -> Vec<u32> {
    nodes.iter().filter_map(|to| distances.get(from, NodeId::new(*to)).copied()).collect()
}

fn order(orders: &FallbackOrders, node: NodeId) -> Option<Vec<u32>> {
    Some(orders.from(node).iter().map(|node| node.number()).collect())
}
