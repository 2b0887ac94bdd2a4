//! Devices, a line per way; a device that was not read has one line.

use nodewise_measure::io::{DeviceReport, Home, IoReport, IoTransferReport};

use super::{backing, figures, known, names, optional, quoted};

/// Writes devices; a value that is not known is empty. Medians are in GB/s for sequential reads, in us for
/// random ones: `unit` says which.
pub fn io(report: &IoReport) -> String {
    let mut text = String::from(
        "device,kind,device_node,size_bytes,access,unit,from_node,cpus,memory_node,pages,median,interval_low,\
         interval_high,best,rounds,samples,disturbed_samples,disturbed,placed_before_share,placed_after_share,\
         refused\n",
    );
    for device in &report.devices {
        if device.ways.is_empty() {
            let mut fields = about(device);
            fields.extend(std::iter::repeat_n(String::new(), 16));
            fields.push(optional(device.refused.as_deref()));
            text.push_str(&(fields.join(",") + "\n"));
        }
        device.ways.iter().for_each(|way| text.push_str(&line(device, way)));
    }
    text
}

fn about(device: &DeviceReport) -> Vec<String> {
    let node = match &device.home {
        Home::Node(node) => node.to_string(),
        Home::Unknown(_) => String::new(),
    };
    let size = known(device.size.map(nodewise_machine::Bytes::get));
    vec![quoted(&device.name), device.kind.word().to_owned(), node, size]
}

fn line(device: &DeviceReport, way: &IoTransferReport) -> String {
    let cell = &way.cell;
    let mut fields = about(device);
    fields.extend([way.access.word().to_owned(), way.access.unit().to_owned()]);
    fields.extend(names(cell));
    fields.extend(figures(cell.figure.as_ref()));
    fields.extend(backing(cell));
    fields.push(optional(cell.refused.as_deref()));
    fields.join(",") + "\n"
}
