//! The text of `nodewise io`.

use nodewise_machine::NodeId;
use nodewise_measure::io::{Access, DeviceReport, IoReport, IoTransferReport};

use crate::digest::io::{about, ending, reader};
use crate::digest::survey::digits;
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};
use crate::text::{perftest, survey};

/// Writes devices, and the outcomes of reading them.
pub fn io(report: &IoReport, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.heading("Devices", "read past the page cache into buffers on each node");
    for device in &report.devices {
        write(device, &mut page);
    }
    for device in report.devices.iter().filter(|device| !device.perftest.is_empty()) {
        page.heading(&format!("perftest over {}", shown(&device.name)), "by node of the buffers");
        perftest::write(&device.perftest, &mut page);
    }
    survey::write(&ending(report), &mut page);
    page.finish()
}

fn shown(text: &str) -> String {
    nodewise_machine::printable::printable(text).into_owned()
}

fn write(device: &DeviceReport, page: &mut Page) {
    let mut line = Line::from("  ").with(Ink::Strong, &device.name);
    line.push(Ink::Faint, format!("  {}", about(device)));
    page.line(4, &line);
    if let Some(reader) = reader(device) {
        page.line(4, &Line::from("  ").with(Ink::Faint, reader));
        table(device).write(page);
    }
}

/// A row for each node of the buffers.
fn table(device: &DeviceReport) -> Table {
    let column = |head, keep| Column { head, align: Align::Right, keep };
    let mut table = Table::new(vec![
        column("buffers", Keep::Always),
        column("GB/s", Keep::Always),
        column("95% interval", Keep::Unless(1)),
        column("4 KiB, us", Keep::Always),
        column("95% interval", Keep::Unless(2)),
        Column { head: "", align: Align::Left, keep: Keep::Always },
    ]);
    let is_reached = |way: Option<&IoTransferReport>| way.is_some_and(|way| way.cell.is_reached());
    for node in device.memory_nodes() {
        let way = |access| device.way(access, node);
        let (large, small) = (way(Access::Sequential), way(Access::Random));
        if !is_reached(large) && !is_reached(small) {
            continue;
        }
        table.row(vec![
            Line::from(format!("node {node}")),
            number(large),
            interval(large),
            number(small),
            interval(small),
            remark(device, node),
        ]);
    }
    table
}

fn remark(device: &DeviceReport, node: NodeId) -> Line {
    if device.home.node() == Some(node) { Line::new().with(Ink::Faint, "near") } else { Line::blank() }
}

/// A median, and a mark where the way stayed disturbed.
fn number(way: Option<&IoTransferReport>) -> Line {
    let figure = way.and_then(|way| Some((way.cell.figure?, way.cell.disturbed)));
    match figure {
        Some((figure, true)) => Line::new().with(Ink::Notable, format!("{}!", digits(figure.median))),
        Some((figure, false)) => Line::from(digits(figure.median)),
        None => Line::new(),
    }
}

fn interval(way: Option<&IoTransferReport>) -> Line {
    let interval = way.and_then(|way| way.cell.figure?.interval);
    interval.map_or_else(Line::new, |interval| {
        Line::from(format!("{}-{}", digits(interval.low), digits(interval.high)))
    })
}
