//! Machines that are sick, or are made sick, for rules of doctor: `--sick` boots them.

use nodewise_lab::Arch;

use crate::LAYOUTS;
use crate::checks::Extent;
use crate::guest::Plan;

/// A machine with its checks.
pub struct SickGuest {
    pub name: &'static str,
    spec: &'static str,
    checks: Extent,
    /// Words for its kernel's command line.
    append: &'static str,
    /// Words for QEMU.
    qemu: &'static str,
    /// The kernel that its rules need; `None`: the one that is asked for.
    pub kernel: Option<&'static str>,
}

impl SickGuest {
    const fn new(name: &'static str, spec: &'static str, checks: Extent) -> Self {
        Self { name, spec, checks, append: "", qemu: "", kernel: None }
    }

    const fn append(self, append: &'static str) -> Self {
        Self { append, ..self }
    }

    pub fn plan(&self) -> Plan {
        let words = |words: &str| Some(words.to_owned()).filter(|words| !words.is_empty());
        let plan = Plan::new(Arch::X86, self.spec, self.checks);
        Plan { append: words(self.append), qemu: words(self.qemu), ..plan }
    }
}

pub const SICK: &[SickGuest] = &[
    SickGuest::new("sick", LAYOUTS[0].2, Extent::Sick).append("hugepages=8 numa_policy=interleave:all"),
    SickGuest::new("sick-without-nodes", LAYOUTS[0].2, Extent::Off).append("numa=off"),
    SickGuest::new("sick-emulated", "(2c 1G)", Extent::Emulated).append("numa=fake=4"),
    SickGuest::new("sick-without-memory", crate::PLUGGED.0, Extent::Bare),
];
