//! Machines that are sick, or are made sick, for rules of doctor: `--sick` boots them.

mod modules;

use nodewise_lab::Arch;

use crate::LAYOUTS;
use crate::checks::Extent;
use crate::guest::Plan;
use modules::Module;

/// A machine with its checks.
pub struct SickGuest {
    pub name: &'static str,
    spec: &'static str,
    pub checks: Extent,
    /// Words for its kernel's command line.
    append: &'static str,
    /// Words for QEMU.
    qemu: &'static str,
    /// Slots of memory modules, where its firmware lists some of its own.
    slots: &'static [Module],
    /// The kernel that its rules need; `None`: the one that is asked for.
    pub kernel: Option<&'static str>,
}

impl SickGuest {
    const fn new(name: &'static str, spec: &'static str, checks: Extent) -> Self {
        Self { name, spec, checks, append: "", qemu: "", slots: &[], kernel: None }
    }

    const fn append(self, append: &'static str) -> Self {
        Self { append, ..self }
    }

    const fn qemu(self, qemu: &'static str) -> Self {
        Self { qemu, ..self }
    }

    const fn slots(self, slots: &'static [Module]) -> Self {
        Self { slots, ..self }
    }

    const fn kernel(self, kernel: &'static str) -> Self {
        Self { kernel: Some(kernel), ..self }
    }

    /// The plan of it. Tables of its slots are written for that.
    pub fn plan(&self) -> Plan {
        let words = |words: &str| Some(words.trim().to_owned()).filter(|words| !words.is_empty());
        let qemu = format!("{} {}", self.qemu, modules::words(self.name, self.slots));
        let plan = Plan::new(Arch::X86, self.spec, self.checks);
        Plan { append: words(self.append), qemu: words(&qemu), ..plan }
    }
}

/// A CPU that does not say that it is a virtual one.
const METAL: &str = "-cpu max,la57=off,erms=off,fsrm=off,hypervisor=off";
/// The CPUs of one node in two packages.
const TWO_PACKAGES: &str = "-smp cpus=4,sockets=2,cores=2,threads=1";
const TWO_PACKAGES_METAL: &str =
    "-smp cpus=4,sockets=2,cores=2,threads=1 -cpu max,la57=off,erms=off,fsrm=off,hypervisor=off";
/// A network card, a disk and a graphics processor behind a bridge of node 1, and a second card that no node is known of.
const BEHIND_A_BRIDGE: &str = "-device pxb-pcie,id=bridge,bus_nr=64,numa_node=1,bus=pcie.0 \
    -device pcie-root-port,id=port1,bus=bridge,chassis=1,slot=1 \
    -device pcie-root-port,id=port2,bus=bridge,chassis=2,slot=2 \
    -device pcie-root-port,id=port3,bus=bridge,chassis=3,slot=3 \
    -netdev hubport,hubid=0,id=far -device virtio-net-pci,netdev=far,romfile=,bus=pcie.0 \
    -netdev hubport,hubid=0,id=near -device virtio-net-pci,netdev=near,romfile=,bus=port1 \
    -blockdev driver=null-co,node-name=disk,size=1073741824,read-zeroes=on \
    -device nvme,serial=1,drive=disk,bus=port2 -device virtio-gpu-pci,bus=port3";
/// Two nodes with CPUs, and one whose memory is a third as fast by the firmware's tables.
const TIERS: &str = "2x(1c 512M) (512M); dist=10,20,20/20,10,28/20,28,10; \
    access=0>0:80ns/100G; access=1>1:80ns/100G; access=0>2:250ns/30G";
const EVEN: &[Module] =
    &[("CPU0_DIMM_A1", 16384), ("CPU0_DIMM_B1", 16384), ("CPU1_DIMM_A1", 16384), ("CPU1_DIMM_B1", 16384)];
const UNEVEN: &[Module] =
    &[("CPU0_DIMM_A1", 16384), ("CPU0_DIMM_B1", 16384), ("CPU1_DIMM_A1", 16384), ("CPU1_DIMM_B1", 0)];

pub const SICK: &[SickGuest] = &[
    SickGuest::new("sick", LAYOUTS[0].2, Extent::Sick).append("hugepages=8 numa_policy=interleave:all"),
    SickGuest::new("sick-without-nodes", LAYOUTS[0].2, Extent::Off).append("numa=off"),
    SickGuest::new("sick-emulated", "(2c 1G)", Extent::Emulated).append("numa=fake=4"),
    SickGuest::new("sick-without-memory", crate::PLUGGED.0, Extent::Bare),
    SickGuest::new("sick-movable", crate::PLUGGED.0, Extent::Movable)
        .append("memhp_default_state=online_movable")
        .qemu(crate::PLUGGED.1),
    SickGuest::new("sick-devices", "4x(1c 512M); dist=20", Extent::Devices).qemu(BEHIND_A_BRIDGE),
    SickGuest::new("sick-tiers", TIERS, Extent::Tiers),
    // Alone: what was demoted before would be promoted, too.
    SickGuest::new("sick-promotion", TIERS, Extent::Promotion),
    // The first kernel here with weights that it works out.
    SickGuest::new("sick-weights", TIERS, Extent::Weights).kernel("6.18"),
    // Before the kernel read the firmware's tables into tiers.
    SickGuest::new("sick-flat-tiers", TIERS, Extent::FlatTiers).kernel("6.1"),
    SickGuest::new("sick-flat", "2x(2x(1c 256M)); dist=20", Extent::Flat),
    SickGuest::new("sick-unreachable", "2x(1c 512M); dist=20", Extent::Unreachable)
        .qemu("-numa dist,src=0,dst=1,val=255"),
    SickGuest::new("sick-rejected", "2x(1c 512M); dist=20", Extent::Rejected)
        .qemu("-numa dist,src=0,dst=1,val=10 -numa dist,src=1,dst=0,val=10"),
    SickGuest::new("sick-one-node", "(4c 1G)", Extent::OneNode).qemu(TWO_PACKAGES),
    SickGuest::new("sick-hidden", "(4c 1G)", Extent::Hidden).qemu(TWO_PACKAGES_METAL),
    SickGuest::new("sick-misplaced", "(1c 512M) (1c); dist=20", Extent::Misplaced).qemu(METAL).slots(UNEVEN),
    SickGuest::new("sick-too-large", "(2c 1G)", Extent::TooLarge).append("numa=fake=8G"),
    SickGuest::new("sick-server", "2x(2x(1c 384M)); dist=11,20", Extent::Server).qemu(METAL).slots(EVEN),
    SickGuest::new("sick-servers", LAYOUTS[0].2, Extent::Servers),
    SickGuest::new("sick-runtimes", LAYOUTS[0].2, Extent::Runtimes),
    SickGuest::new("sick-nine-nodes", "(2c 512M) 8x(128M)", Extent::Nine),
    SickGuest::new("sick-locality", LAYOUTS[0].2, Extent::Locality),
    SickGuest::new("sick-balancing", LAYOUTS[0].2, Extent::Balancing),
    // CPUs for a cpuset of more than four, where a program uses one.
    SickGuest::new("sick-policies", "2x(3c 768M); dist=21", Extent::Policies),
];
