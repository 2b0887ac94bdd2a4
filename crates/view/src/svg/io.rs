//! Devices as bars: for each, what buffers on each node get; tables of perftest as curves.

use nodewise_machine::NodeId;
use nodewise_measure::io::{Access, DeviceReport, IoReport};

use crate::digest::io::{about, ending, method, reader};
use crate::digest::survey::{caption, digits};
use crate::svg::frame::{Frame, Label, Role, Stack, Tone};
use crate::svg::legend::square;
use crate::svg::paint::paint;
use crate::svg::palette::Theme;
use crate::svg::perftest;
use crate::svg::sheet::{self, HEAD, MARGIN, SMALL, WIDTH};

/// Width of the bars of one access with all that is beside them, and the room for names and numbers.
const PANEL: f64 = 450.0;
const NAME: f64 = 60.0;
const NUMBER: f64 = 70.0;
const ROW: f64 = 18.0;
const BAR: f64 = 12.0;
/// This many devices are drawn, and this many nodes of each.
const MOST_DEVICES: usize = 32;
const MOST_NODES: usize = 64;

/// Bars of the node of the device, and of others.
const NEAR: Role = Role::Category(0);
const FAR: Role = Role::Category(1);

const TITLE: &str = "Devices by node";

/// Draws a report of devices as an SVG document.
///
/// # Units
/// Lengths in px.
pub fn io_svg(report: &IoReport, theme: Theme) -> String {
    let about = method(report).unwrap_or_default();
    paint(&io_page(report), TITLE, &about, theme)
}

/// Lays out the picture.
pub fn io_page(report: &IoReport) -> Frame {
    let mut stack = Stack::new(Role::Page, WIDTH + 2.0 * MARGIN, MARGIN);
    sheet::begin(TITLE, &caption(&report.account.conditions), &mut stack);
    for device in report.devices.iter().take(MOST_DEVICES) {
        stack.gap(14.0);
        stack.text(&device.name, HEAD, Tone::Plain, 2);
        let about: Vec<String> = [about(device)].into_iter().chain(reader(device)).collect();
        stack.text(&about.join("; "), SMALL, Tone::Faint, 3);
        stack.flow(Access::ALL.into_iter().filter_map(|access| bars(device, access)).collect(), 20.0);
        stack.flow(legend(device), 10.0);
        perftest::panels(&device.perftest, &mut stack);
    }
    sheet::more(report.devices.len(), MOST_DEVICES, "device", &mut stack);
    sheet::end(&ending(report), &mut stack);
    stack.finish()
}

/// The legend of the bars, where both colours occur.
fn legend(device: &DeviceReport) -> Vec<Frame> {
    let home = device.home.node();
    let measured = |node: &NodeId| {
        Access::ALL
            .into_iter()
            .any(|access| device.way(access, *node).is_some_and(|way| way.cell.figure.is_some()))
    };
    let nodes: Vec<NodeId> = device.memory_nodes().into_iter().filter(measured).collect();
    let near = nodes.iter().any(|node| Some(*node) == home);
    if near && nodes.len() > 1 {
        vec![square(NEAR, "node of the device"), square(FAR, "other node")]
    } else {
        Vec::new()
    }
}

/// A bar for each node with a figure; `None` without any.
fn bars(device: &DeviceReport, access: Access) -> Option<Frame> {
    let of_node = |node| Some((node, device.way(access, node)?.cell.figure?.median));
    let values: Vec<_> = device.memory_nodes().into_iter().filter_map(of_node).take(MOST_NODES).collect();
    let most = values.iter().map(|(_, value)| *value).reduce(f64::max).filter(|most| *most > 0.0)?;
    let title = match access {
        Access::Sequential => "large blocks, GB/s: longer is better",
        Access::Random => "4 KiB at random places, us: shorter is better",
    };
    let mut frame = Frame::new(Role::Group, PANEL, ROW * (values.len() + 1) as f64);
    frame.labels.push(Label::new(title, SMALL, 0.0, (0.0, ROW)).toned(Tone::Faint));
    for (row, (node, value)) in (1_u32..).zip(&values) {
        let top = f64::from(row) * ROW;
        let length = (value / most * (PANEL - NAME - NUMBER)).max(1.0);
        let near = device.home.node() == Some(*node);
        let role = if near { NEAR } else { FAR };
        frame.labels.push(Label::new(&format!("node {node}"), SMALL, 0.0, (top, ROW)));
        frame.children.push(Frame::new(role, length, BAR).moved(NAME, top + (ROW - BAR) / 2.0));
        let number = format!("{} {}", digits(*value), access.unit());
        frame.labels.push(Label::new(&number, SMALL, NAME + length + 6.0, (top, ROW)));
    }
    Some(frame)
}
