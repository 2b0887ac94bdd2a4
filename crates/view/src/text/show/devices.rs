//! Devices by node.

use nodewise_machine::{Device, Machine};

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
    let has_links = nodes.values().flat_map(|of| &of.shown).any(|shown| shown.device.link.is_some());
    let mut columns = vec![
        Column { head: "node", align: Align::Right, keep: Keep::Always },
        left("PCI address", Keep::Unless(2)),
        left("model", Keep::Unless(1)),
        left("names", Keep::Always),
    ];
    if has_links {
        columns.insert(3, left("link", Keep::Unless(3)));
    }
    let mut table = Table::new(columns);
    let with_link = |mut row: Vec<Line>, link: Line| {
        if has_links {
            row.insert(3, link);
        }
        row
    };
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
            table.row(with_link(vec![next(), address, model, names(&[shown])], link(shown.device)));
        }
        if !elsewhere.is_empty() {
            let row = vec![next(), Line::blank(), Line::blank(), names(&elsewhere)];
            table.row(with_link(row, Line::blank()));
        }
        if devices.others > 0 {
            let others = Line::new().with(Ink::Faint, others(devices));
            table.row(with_link(vec![next(), Line::blank(), Line::blank(), others], Line::blank()));
        }
    }
    table.write(page);
    let is_below = |shown: &ShownDevice<'_>| shown.device.link.is_some_and(|link| link.is_below_max());
    if nodes.values().flat_map(|of| &of.shown).any(is_below) {
        let text =
            "A link below its maximum: a narrower or slower slot, or a device that saves power while idle.";
        page.line(0, &Line::new().with(Ink::Faint, text));
    }
}

/// The link of a device, marked where it is below its maximum.
fn link(device: &Device) -> Line {
    let Some(link) = device.link else { return Line::blank() };
    let ink = if link.is_below_max() { Ink::Notable } else { Ink::Faint };
    Line::new().with(ink, link.to_string())
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

#[cfg(test)]
mod tests {
    use crate::style::Style;
    use crate::svg::{Caches, Theme, machine_svg};
    use nodewise_machine::{Machine, PciLink, spec};

    fn machine(width: u32) -> Machine {
        let mut machine = spec::machine("2x(2c 8G); dev=net:eth0@0; dev=block:nvme0n1@1").unwrap();
        machine.devices[0].pci = "17:00.0".parse().ok();
        let (speed, max) = (Some(16_000), Some(16));
        machine.devices[0].link =
            Some(PciLink { speed, width: Some(width), max_speed: speed, max_width: max });
        machine
    }

    #[test]
    fn links_are_shown_and_those_below_their_maximum_explained() {
        let page = |machine: &Machine| crate::text::show(machine, &Style::plain(100));
        let (whole, half) = (page(&machine(16)), page(&machine(8)));
        assert!(whole.contains("16 GT/s x16") && !whole.contains("A link below"), "{whole}");
        assert!(half.contains("16 GT/s x8 of x16") && half.contains("A link below its maximum"), "{half}");
        let without = page(&spec::machine("2x(2c 8G); dev=net:eth0@0").unwrap());
        assert!(!without.contains("link"), "{without}");
    }

    #[test]
    fn the_picture_has_the_link_at_its_device() {
        let picture = machine_svg(&machine(8), Caches::LastLevel, Theme::Auto);
        assert!(picture.contains("net:eth0 16 GT/s x8 of x16"), "{picture}");
    }
}
