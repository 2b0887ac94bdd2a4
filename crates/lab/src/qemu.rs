//! Layout to QEMU's arguments. Pure: no program is looked for or started here.

use std::ffi::OsString;
use std::path::Path;

use nodewise_machine::NodeId;

use crate::arch::Arch;
use crate::engine;
use crate::layout::{AccessCell, GuestNode, Layout};

/// The firmware's word about the nodes of a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirmwareNodes {
    /// Its tables describe the nodes of the layout.
    #[default]
    Described,
    /// It has no tables of nodes: the guest has as many CPUs and as much memory, and one node.
    Missing,
}

/// An emulator as a guest of either architecture starts it, in the folder of a run.
pub(crate) struct Emulator<'a> {
    pub qemu: &'a Path,
    /// The kernel's image.
    pub kernel: &'a Path,
    pub machine: &'static str,
    pub cpu: &'static str,
    /// The engine, with its settings.
    pub accelerator: &'static str,
    /// The kernel's command line, and words to add to it.
    pub words: &'static str,
    pub append: &'a [&'a str],
    /// Devices beside the console, options with their values.
    pub devices: Vec<(&'static str, String)>,
    pub layout: &'a Layout,
    pub nodes: FirmwareNodes,
    pub arch: Arch,
    /// Arguments to add.
    pub more: &'a [OsString],
}

impl Emulator<'_> {
    /// Its command line.
    pub fn line(&self) -> Vec<OsString> {
        let mut line = vec![self.qemu.into(), "-kernel".into(), self.kernel.into()];
        let mut add = |option: &str, value: &str| line.extend([option.into(), value.into()]);
        add("-machine", self.machine);
        add("-cpu", self.cpu);
        add("-accel", self.accelerator);
        add("-display", "none");
        add("-initrd", engine::ARCHIVE);
        let words: Vec<&str> = [self.words].iter().chain(self.append).copied().collect();
        add("-append", &words.join(" "));
        add("-chardev", &format!("file,id=console,path={}", engine::CONSOLE));
        add("-serial", "chardev:console");
        self.devices.iter().for_each(|(option, value)| add(option, value));
        line.extend(["-nodefaults".into(), "-no-reboot".into()]);
        let of_layout = match self.nodes {
            FirmwareNodes::Described => arguments(self.layout, self.arch),
            FirmwareNodes::Missing => whole(self.layout, self.arch),
        };
        line.extend(of_layout.into_iter().map(OsString::from));
        line.extend(self.more.iter().cloned());
        line
    }
}

/// The arguments that give a guest the nodes of a layout: memory, CPUs, distances, and on x86-64 an
/// HMAT; the device tree of arm64 cannot express costs of accesses.
///
/// In QEMU's order: nodes before what speaks of them, and every pair of nodes has a distance, the
/// diagonal included, since QEMU refuses an asymmetric table with a gap.
pub fn arguments(layout: &Layout, arch: Arch) -> Vec<String> {
    let mut arguments = whole(layout, arch);
    let mut add = |option: &str, value: String| arguments.extend([option.to_owned(), value]);
    let has_hmat = arch == Arch::X86 && !layout.accesses.is_empty();
    if has_hmat {
        add("-machine", "hmat=on".to_owned());
    }
    for node in &layout.nodes {
        if let Some(memory) = node.memory {
            add("-object", format!("memory-backend-ram,id={},size={}M", backend(node.id), memory.mib()));
        }
        add("-numa", numa_node(node, has_hmat));
    }
    for (from, to, distance) in layout.distances.iter() {
        add("-numa", format!("dist,src={from},dst={to},val={distance}"));
    }
    for cell in layout.accesses.iter().filter(|_| has_hmat) {
        locality(cell).for_each(|locality| add("-numa", locality));
    }
    arguments
}

/// The arguments for memory and CPUs as a whole.
fn whole(layout: &Layout, arch: Arch) -> Vec<String> {
    let size = format!("size={}M", layout.memory().mib());
    ["-m".to_owned(), size, "-smp".to_owned(), processors(layout, arch)].to_vec()
}

fn processors(layout: &Layout, arch: Arch) -> String {
    let shape = layout.shape;
    // Each architecture has a word of its own for parts of a package and refuses that of the other.
    let part = if arch == Arch::X86 { "dies" } else { "clusters" };
    let dies = if shape.dies > 1 { format!(",{part}={}", shape.dies) } else { String::new() };
    format!(
        "cpus={},sockets={}{dies},cores={},threads={}",
        shape.cpus(),
        shape.packages,
        shape.cores,
        shape.threads
    )
}

/// The name of a node's memory backend.
fn backend(node: NodeId) -> String {
    format!("node{node}")
}

fn numa_node(node: &GuestNode, has_hmat: bool) -> String {
    let mut text = format!("node,nodeid={}", node.id);
    for (first, last) in node.cpus.ranges() {
        text.push_str(&format!(",cpus={first}-{last}"));
    }
    if node.memory.is_some() {
        text.push_str(&format!(",memdev={}", backend(node.id)));
    }
    if let Some(initiator) = node.initiator.filter(|_| has_hmat) {
        text.push_str(&format!(",initiator={initiator}"));
    }
    text
}

/// One entry in each of the HMAT's tables for which the cell has a value.
///
/// QEMU counts bandwidths in MiB/s and writes that number into the table, where Linux reads it as
/// MB/s; so the number that Linux is to print is what QEMU gets, with `M`.
fn locality(cell: &AccessCell) -> impl Iterator<Item = String> {
    let pair = format!("hmat-lb,initiator={},target={},hierarchy=memory", cell.initiator, cell.target);
    let latency = |value: u32| format!("latency={value}");
    let bandwidth = |value: u32| format!("bandwidth={value}M");
    [
        cell.read_latency_ns.map(|value| ("read-latency", latency(value))),
        cell.write_latency_ns.map(|value| ("write-latency", latency(value))),
        cell.read_bandwidth_mb_per_s.map(|value| ("read-bandwidth", bandwidth(value))),
        cell.write_bandwidth_mb_per_s.map(|value| ("write-bandwidth", bandwidth(value))),
    ]
    .into_iter()
    .flatten()
    .map(move |(kind, value)| format!("{pair},data-type={kind},{value}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Limits;
    use nodewise_machine::spec;

    /// Options and values for a PC, one pair per line.
    fn check(spec: &str, expected: &str) {
        check_for(Arch::X86, spec, expected);
    }

    fn check_for(arch: Arch, spec: &str, expected: &str) {
        let layout = Layout::new(&spec::machine(spec).unwrap(), &Limits::default()).unwrap();
        let lines: Vec<String> = arguments(&layout, arch).chunks(2).map(|pair| pair.join(" ")).collect();
        let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        assert_eq!(lines, expected, "{spec}");
    }

    #[test]
    fn two_sockets() {
        check(
            "2x(10c2t 64G); dist=21",
            "-m size=2048M
             -smp cpus=8,sockets=2,cores=2,threads=2
             -object memory-backend-ram,id=node0,size=1024M
             -numa node,nodeid=0,cpus=0-3,memdev=node0
             -object memory-backend-ram,id=node1,size=1024M
             -numa node,nodeid=1,cpus=4-7,memdev=node1
             -numa dist,src=0,dst=0,val=10
             -numa dist,src=0,dst=1,val=21
             -numa dist,src=1,dst=0,val=21
             -numa dist,src=1,dst=1,val=10",
        );
    }

    #[test]
    fn nodes_without_cpus_or_memory_and_an_hmat() {
        check(
            "(2c 1G) (1c) (1G); dist=10,20,17/20,10,28/17,28,10; access=0>2:250ns,300ns/30G",
            "-m size=2048M
             -smp cpus=3,sockets=1,cores=3,threads=1
             -machine hmat=on
             -object memory-backend-ram,id=node0,size=1024M
             -numa node,nodeid=0,cpus=0-1,memdev=node0,initiator=0
             -numa node,nodeid=1,cpus=2-2,initiator=1
             -object memory-backend-ram,id=node2,size=1024M
             -numa node,nodeid=2,memdev=node2,initiator=0
             -numa dist,src=0,dst=0,val=10
             -numa dist,src=0,dst=1,val=20
             -numa dist,src=0,dst=2,val=17
             -numa dist,src=1,dst=0,val=20
             -numa dist,src=1,dst=1,val=10
             -numa dist,src=1,dst=2,val=28
             -numa dist,src=2,dst=0,val=17
             -numa dist,src=2,dst=1,val=28
             -numa dist,src=2,dst=2,val=10
             -numa hmat-lb,initiator=0,target=2,hierarchy=memory,data-type=read-latency,latency=250
             -numa hmat-lb,initiator=0,target=2,hierarchy=memory,data-type=write-latency,latency=300
             -numa hmat-lb,initiator=0,target=2,hierarchy=memory,data-type=read-bandwidth,bandwidth=30000M
             -numa hmat-lb,initiator=0,target=2,hierarchy=memory,data-type=write-bandwidth,bandwidth=30000M",
        );
    }

    #[test]
    fn packages_of_several_nodes_have_a_die_for_each() {
        check(
            "2x(2x(1c 128M)); dist=11,20",
            "-m size=640M
             -smp cpus=4,sockets=2,dies=2,cores=1,threads=1
             -object memory-backend-ram,id=node0,size=256M
             -numa node,nodeid=0,cpus=0-0,memdev=node0
             -object memory-backend-ram,id=node1,size=128M
             -numa node,nodeid=1,cpus=1-1,memdev=node1
             -object memory-backend-ram,id=node2,size=128M
             -numa node,nodeid=2,cpus=2-2,memdev=node2
             -object memory-backend-ram,id=node3,size=128M
             -numa node,nodeid=3,cpus=3-3,memdev=node3
             -numa dist,src=0,dst=0,val=10
             -numa dist,src=0,dst=1,val=11
             -numa dist,src=0,dst=2,val=20
             -numa dist,src=0,dst=3,val=20
             -numa dist,src=1,dst=0,val=11
             -numa dist,src=1,dst=1,val=10
             -numa dist,src=1,dst=2,val=20
             -numa dist,src=1,dst=3,val=20
             -numa dist,src=2,dst=0,val=20
             -numa dist,src=2,dst=1,val=20
             -numa dist,src=2,dst=2,val=10
             -numa dist,src=2,dst=3,val=11
             -numa dist,src=3,dst=0,val=20
             -numa dist,src=3,dst=1,val=20
             -numa dist,src=3,dst=2,val=11
             -numa dist,src=3,dst=3,val=10",
        );
    }

    #[test]
    fn arm64_has_clusters_in_its_packages_and_no_hmat() {
        check_for(
            Arch::Arm,
            "1x(2x(1c 512M)); dist=11; access=0>1:250ns/30G",
            "-m size=1024M
             -smp cpus=2,sockets=1,clusters=2,cores=1,threads=1
             -object memory-backend-ram,id=node0,size=512M
             -numa node,nodeid=0,cpus=0-0,memdev=node0
             -object memory-backend-ram,id=node1,size=512M
             -numa node,nodeid=1,cpus=1-1,memdev=node1
             -numa dist,src=0,dst=0,val=10
             -numa dist,src=0,dst=1,val=11
             -numa dist,src=1,dst=0,val=11
             -numa dist,src=1,dst=1,val=10",
        );
    }
}
