//! A domain of libvirt like a machine: cells with distances and access costs, each bound to the node that it is like.
//!
//! # Source
//! libvirt, "Domain XML format": cells are numbered from 0 without holes, a distance is at least 10, latencies are in
//! nanoseconds, and bandwidths have a unit of their own.

use nodewise_machine::{Bytes, Machine};

use super::NotExpressible;
use super::guest::{Guest, shape};
use super::xml::{Attributes, Xml};

/// Writes a domain as large as the machine, to edit: its memory is that of every node.
///
/// # Errors
/// A machine without CPUs, or with nodes whose memory or CPUs are not known.
pub fn libvirt(machine: &Machine) -> Result<String, NotExpressible> {
    let needs = "CPUs that are each in a node, and the memory of nodes";
    let guest = Guest::new(machine).ok_or(NotExpressible { format: "a domain of libvirt", needs })?;
    let mut xml = Xml::default();
    xml.open("domain", &[("type", "kvm".to_owned())]);
    xml.text("name", &[], "nodewise");
    xml.text("memory", &[unit()], &kib(guest.memory()));
    xml.text("vcpu", &[("placement", "static".to_owned())], &guest.cpus.len().to_string());
    xml.open("cputune", &[]);
    for (number, cpu) in guest.cpus.iter().enumerate() {
        xml.empty("vcpupin", &[("vcpu", number.to_string()), ("cpuset", cpu.to_string())]);
    }
    xml.close();
    xml.open("numatune", &[]);
    for (number, cell) in guest.cells.iter().enumerate().filter(|(_, cell)| cell.memory > Bytes::new(0)) {
        let attributes = [
            ("cellid", number.to_string()),
            ("mode", "strict".to_owned()),
            ("nodeset", cell.node.to_string()),
        ];
        xml.empty("memnode", &attributes);
    }
    xml.close();
    xml.open("os", &[]);
    xml.text("type", &architecture(machine), "hvm");
    xml.close();
    xml.open("cpu", &[("mode", "host-passthrough".to_owned())]);
    if let Some(topology) = topology(machine, guest.cpus.len()) {
        xml.empty("topology", &topology);
    }
    cells(&guest, &mut xml);
    Ok(xml.finish())
}

fn unit() -> (&'static str, String) {
    ("unit", "KiB".to_owned())
}

fn kib(size: Bytes) -> String {
    (size.get() / 1024).to_string()
}

/// The architecture, where libvirt has one of this name.
fn architecture(machine: &Machine) -> Attributes {
    const KNOWN: [&str; 5] = ["x86_64", "aarch64", "ppc64le", "s390x", "riscv64"];
    let known = machine.architecture.as_deref().filter(|name| KNOWN.contains(name));
    known.map(|name| ("arch", name.to_owned())).into_iter().collect()
}

/// Sockets, cores and threads, where every package has as many of each.
fn topology(machine: &Machine, cpus: usize) -> Option<Attributes> {
    let [sockets, cores, threads] = shape(machine, cpus)?;
    let counts = [("sockets", sockets), ("dies", 1), ("cores", cores), ("threads", threads)];
    Some(counts.into_iter().map(|(name, count)| (name, count.to_string())).collect())
}

fn cells(guest: &Guest, xml: &mut Xml) {
    xml.open("numa", &[]);
    for (number, cell) in guest.cells.iter().enumerate() {
        let mut attributes = vec![("id", number.to_string())];
        if !cell.cpus.is_empty() {
            attributes.push(("cpus", cell.cpus.to_string()));
        }
        attributes.extend([("memory", kib(cell.memory)), unit()]);
        let Some(row) = guest.distances.as_ref().and_then(|rows| rows.get(number)) else {
            xml.empty("cell", &attributes);
            continue;
        };
        xml.open("cell", &attributes);
        xml.open("distances", &[]);
        for (to, distance) in row.iter().enumerate() {
            xml.empty("sibling", &[("id", to.to_string()), ("value", distance.to_string())]);
        }
        xml.close();
        xml.close();
    }
    interconnects(guest, xml);
    xml.close();
}

/// Latencies, then bandwidths: the grammar wants them so.
fn interconnects(guest: &Guest, xml: &mut Xml) {
    let mut values: [Vec<Attributes>; 2] = Default::default();
    for link in &guest.links {
        let attributes = |kind: &str, value: u64| {
            vec![
                ("initiator", link.initiator.to_string()),
                ("target", link.target.to_string()),
                ("type", kind.to_owned()),
                ("value", value.to_string()),
            ]
        };
        for ((kind, latency), bandwidth) in
            ["read", "write"].into_iter().zip(link.latency_ns).zip(link.bandwidth_mb_per_s)
        {
            values[0].extend(latency.map(|latency| attributes(kind, u64::from(latency))));
            let kib_per_s = |mb: u32| u64::from(mb) * 1_000_000 / 1024;
            values[1].extend(bandwidth.map(|bandwidth| {
                let mut attributes = attributes(kind, kib_per_s(bandwidth));
                attributes.push(unit());
                attributes
            }));
        }
    }
    if values.iter().all(Vec::is_empty) {
        return;
    }
    xml.open("interconnects", &[]);
    for (name, values) in ["latency", "bandwidth"].into_iter().zip(&values) {
        values.iter().for_each(|attributes| xml.empty(name, attributes));
    }
    xml.close();
}
