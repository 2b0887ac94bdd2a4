//! Devices by node.

use nodewise_machine::Machine;

use crate::digest::counts::plural;
use crate::digest::device::{DevicesOfNode, ShownDevice, devices_by_node};
use crate::style::Ink;
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Writes the devices, if there are any with a name.
pub(super) fn devices(machine: &Machine, page: &mut Page) {
    let nodes = devices_by_node(machine);
    if nodes.is_empty() {
        return;
    }
    page.heading("Devices", "named as --near takes them");
    let left = |head, keep| Column { head, align: Align::Left, keep };
    let mut table = Table::new(vec![
        Column { head: "node", align: Align::Right, keep: Keep::Always },
        left("PCI address", Keep::Unless(2)),
        left("model", Keep::Unless(1)),
        left("names", Keep::Always),
    ]);
    // Nodes in order, then what hangs nowhere.
    let (nowhere, somewhere): (Vec<_>, Vec<_>) = nodes.iter().partition(|(node, _)| node.is_none());
    for (node, devices) in somewhere.into_iter().chain(nowhere) {
        let node = match node {
            Some(node) => Line::new().with(Ink::Strong, node.to_string()),
            None => Line::new().with(Ink::Notable, "none"),
        };
        // The node is named on its first line only.
        let mut node = std::iter::once(node).chain(std::iter::repeat_with(Line::blank));
        let mut next = || node.next().unwrap_or_default();
        let (alone, elsewhere): (Vec<_>, Vec<_>) =
            devices.shown.iter().partition(|shown| shown.device.pci.is_some() || shown.device.dax.is_some());
        for shown in alone {
            let address = shown.device.pci.map(|address| address.to_string()).unwrap_or_default();
            let model = Line::new().with(Ink::Faint, shown.model.as_deref().unwrap_or_default());
            let address = if address.is_empty() { Line::blank() } else { address.into() };
            table.row(vec![next(), address, model, names(&[shown])]);
        }
        if !elsewhere.is_empty() {
            table.row(vec![next(), Line::blank(), Line::blank(), names(&elsewhere)]);
        }
        if devices.others > 0 {
            let others = Line::new().with(Ink::Faint, others(devices));
            table.row(vec![next(), Line::blank(), Line::blank(), others]);
        }
    }
    table.write(page);
}

/// The names of devices, all in a row.
fn names(devices: &[&ShownDevice<'_>]) -> Line {
    let mut line = Line::new();
    for name in devices.iter().flat_map(|shown| &shown.names) {
        if !line.is_empty() {
            line.push(Ink::Plain, ", ");
        }
        line.push(Ink::Accent, name);
    }
    line
}

fn others(devices: &DevicesOfNode<'_>) -> String {
    let and = if devices.shown.is_empty() { "" } else { "and " };
    format!("{and}{} without a name", plural(devices.others, "PCI function"))
}
