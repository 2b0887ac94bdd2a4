//! CXL: the CEDT.

use nodewise_machine::Bytes;
use nodewise_machine::firmware::{Cedt, CedtEntry};

use super::{address, column, extra, flags};
use crate::text::line::Page;
use crate::text::table::{Align, Table};

/// Writes the CEDT: windows, then host bridges, then the rest.
pub(super) fn cedt(table: &Cedt, page: &mut Page) {
    let mut windows = Table::new(vec![
        column("Base HPA", Align::Right),
        column("Window Size", Align::Right),
        column("Ways", Align::Right),
        extra("Granularity", Align::Right, 1),
        extra("Targets", Align::Left, 2),
        column("Restrictions", Align::Left),
    ]);
    let mut bridges = Table::new(vec![
        column("UID", Align::Right),
        column("CXL version", Align::Right),
        column("Base", Align::Right),
        column("Length", Align::Left),
    ]);
    let mut others = Vec::new();
    let (mut has_windows, mut has_bridges) = (false, false);
    for body in table.bodies() {
        match body {
            CedtEntry::FixedWindow(window) => {
                has_windows = true;
                let head = &window.head;
                let targets: Vec<String> = window.targets.iter().map(ToString::to_string).collect();
                windows.row(vec![
                    address(head.base_hpa),
                    Bytes::new(head.window_size).to_string().into(),
                    window.ways().map(|ways| ways.to_string()).unwrap_or_default().into(),
                    granularity(head.granularity).into(),
                    targets.join(" ").into(),
                    flags(head.restrictions.into(), RESTRICTIONS).into(),
                ]);
            }
            CedtEntry::HostBridge(bridge) => {
                has_bridges = true;
                let version = if bridge.version == 0 { "1.1" } else { "2.0 or later" };
                bridges.row(vec![
                    bridge.uid.to_string().into(),
                    version.into(),
                    address(bridge.base),
                    Bytes::new(bridge.length).to_string().into(),
                ]);
            }
            CedtEntry::InterleaveMath(math) => {
                let bitmaps: Vec<String> = math.bitmaps.iter().map(|bits| format!("{bits:#x}")).collect();
                let granularity = granularity(math.head.granularity.into());
                others.push(("CXIMS", format!("granularity {granularity}, XOR of {}", bitmaps.join(" "))));
            }
            CedtEntry::DownstreamPort(port) => {
                let (bus, function) = (port.bdf >> 8, port.bdf & 0xff);
                let text = format!(
                    "PCI {:04x}:{bus:02x}:{:02x}.{}, registers at {:#x}",
                    port.segment,
                    function >> 3,
                    function & 7,
                    port.base
                );
                others.push(("RDPAS", text));
            }
            CedtEntry::Unknown(..) => {}
        }
    }
    if has_windows {
        page.heading("CEDT", "CXL Fixed Memory Window Structures (CFMWS)");
        windows.write(page);
    }
    if has_bridges {
        page.heading("CEDT", "CXL Host Bridge Structures (CHBS)");
        bridges.write(page);
    }
    if !others.is_empty() {
        page.heading("CEDT", "how windows are interleaved, and ports");
        let mut rest = Table::new(vec![column("Type", Align::Left), column("", Align::Left)]);
        others.into_iter().for_each(|(kind, text)| rest.row(vec![kind.into(), text.into()]));
        rest.write(page);
    }
}

const RESTRICTIONS: &[&str] = &["type 2", "type 3", "volatile", "persistent", "fixed"];

/// From 256 bytes on in powers of two, to 16 KiB.
fn granularity(code: u32) -> String {
    match code {
        0..=6 => Bytes::new(256 << code).to_string(),
        code => format!("code {code}"),
    }
}
