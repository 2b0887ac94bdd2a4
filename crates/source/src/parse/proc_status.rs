//! The state and the rights of a process.
//!
//! # Source
//! `/proc/PID/status`: `Name:\tvalue` lines.

use nodewise_machine::{Bytes, CpuSet, NodeSet};

use super::number::hex_digits;
use super::{Parsed, digits, kib, lines, set};

/// A seccomp mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seccomp {
    Off,
    /// Only read, write, exit and sigreturn.
    Strict,
    /// A filter decides call by call, as in containers.
    Filter,
}

/// A process. `None`: the kernel does not say, or the line did not parse.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ProcessStatus {
    /// Its command name as it was read, not fit for a terminal.
    pub name: Option<String>,
    /// Its state: `R`, `S`, `D`, `Z` and so on.
    pub state: Option<char>,
    pub parent: Option<u32>,
    /// The process that the thread belongs to: `Tgid`.
    pub process: Option<u32>,
    /// Its session: `NSsid`, whose first number is that of the reader's namespace. Linux 4.1.
    pub session: Option<u32>,
    /// How many threads it has.
    pub threads: Option<u32>,
    /// The user in whose name it acts: the effective one of `Uid`.
    pub user: Option<u32>,
    /// Its resident memory: `VmRSS`, without pages of huge page pools.
    pub resident: Option<Bytes>,
    /// The most resident memory that it ever had: `VmHWM`.
    pub peak: Option<Bytes>,
    /// Memory that it locked: `VmLck`.
    pub locked: Option<Bytes>,
    /// Its pages of huge page pools: `HugetlbPages`, Linux 4.4.
    pub hugetlb: Option<Bytes>,
    /// Its memory that is swapped out: `VmSwap`, without that of shared memory. Linux 2.6.34.
    pub swapped: Option<Bytes>,
    /// Its page tables: `VmPTE`, since Linux 4.15 those of every level.
    pub page_tables: Option<Bytes>,
    /// Its memory that devices hold in place: `VmPin`, Linux 3.2.
    pub pinned: Option<Bytes>,
    /// The process that traces it; 0 for none.
    pub tracer: Option<u32>,
    /// CPUs it may run on.
    pub cpus_allowed: Option<CpuSet>,
    /// Memory nodes its cpuset allows.
    pub mems_allowed: Option<NodeSet>,
    /// Whether a filter watches its system calls. Linux 3.8.
    pub seccomp: Option<Seccomp>,
    /// Its effective capabilities as bits.
    pub effective_capabilities: Option<u64>,
    /// Whether the process may have transparent huge pages: `THP_enabled`, Linux 5.0.
    pub transparent_huge_pages: Option<bool>,
    /// Whether the process can gain no further privilege. Linux 4.10.
    pub no_new_privileges: Option<bool>,
}

/// Reads the fields above; others are passed over.
pub fn parse(text: &str) -> Parsed<ProcessStatus> {
    let mut parsed = Parsed::<ProcessStatus>::default();
    for (number, line) in lines(text) {
        let Some((name, value)) = line.split_once(':') else {
            if !line.trim().is_empty() {
                parsed.problems.add(number, "a name and a colon", line);
            }
            continue;
        };
        if let Err(expected) = parsed.value.take(name, value.trim()) {
            parsed.problems.add(number, expected, line);
        }
    }
    parsed
}

impl ProcessStatus {
    /// Whether the process has an effective capability, by its bit in `include/uapi/linux/capability.h`; `None` where that is
    /// not known.
    pub fn has_capability(&self, bit: u32) -> Option<bool> {
        self.effective_capabilities.map(|bits| bits.checked_shr(bit).unwrap_or(0) & 1 == 1)
    }

    fn take(&mut self, name: &str, value: &str) -> Result<(), &'static str> {
        match name {
            "Name" => self.name = Some(value.to_owned()),
            "State" => self.state = Some(value.chars().next().ok_or("a letter")?),
            "PPid" => self.parent = Some(digits(value).ok_or("a process number")?),
            "Tgid" => self.process = Some(digits(value).ok_or("a process number")?),
            "NSsid" => {
                let first = value.split_ascii_whitespace().next().and_then(digits);
                self.session = Some(first.ok_or("numbers of sessions")?);
            }
            "Threads" => self.threads = Some(digits(value).ok_or("a number")?),
            "Uid" => {
                let effective = value.split_ascii_whitespace().nth(1).and_then(digits);
                self.user = Some(effective.ok_or("four numbers of users")?);
            }
            "VmRSS" => self.resident = Some(size(value)?),
            "VmHWM" => self.peak = Some(size(value)?),
            "VmLck" => self.locked = Some(size(value)?),
            "HugetlbPages" => self.hugetlb = Some(size(value)?),
            "VmSwap" => self.swapped = Some(size(value)?),
            "VmPTE" => self.page_tables = Some(size(value)?),
            "VmPin" => self.pinned = Some(size(value)?),
            "TracerPid" => self.tracer = Some(digits(value).ok_or("a process number")?),
            // The mask comes first; every release since 2.6.26 has a list of the same behind it.
            "Cpus_allowed" => self.cpus_allowed = Some(set::mask(value).map_err(|_| "a mask of CPUs")?),
            "Mems_allowed" => self.mems_allowed = Some(set::mask(value).map_err(|_| "a mask of nodes")?),
            "Cpus_allowed_list" => {
                let list = set::list(value).map_err(|_| "a list of CPUs")?;
                agree(&mut self.cpus_allowed, list).ok_or("the CPUs of the mask above it")?;
            }
            "Mems_allowed_list" => {
                let list = set::list(value).map_err(|_| "a list of nodes")?;
                agree(&mut self.mems_allowed, list).ok_or("the nodes of the mask above it")?;
            }
            "Seccomp" => self.seccomp = Some(seccomp(value).ok_or("0, 1 or 2")?),
            "CapEff" => {
                let bits = hex_digits(value).filter(|_| value.len() == 16);
                self.effective_capabilities = Some(bits.ok_or("16 hexadecimal digits")?);
            }
            "NoNewPrivs" => self.no_new_privileges = Some(switch(value)?),
            "THP_enabled" => self.transparent_huge_pages = Some(switch(value)?),
            _ => (),
        }
        Ok(())
    }
}

fn switch(value: &str) -> Result<bool, &'static str> {
    match value {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("0 or 1"),
    }
}

fn size(value: &str) -> Result<Bytes, &'static str> {
    value.strip_suffix("kB").map(str::trim).and_then(kib).ok_or("a number of kB")
}

/// Keeps a set, unless another is known; `None` where they differ.
fn agree<T: PartialEq>(known: &mut Option<T>, set: T) -> Option<()> {
    match known {
        Some(known) => (*known == set).then_some(()),
        None => {
            *known = Some(set);
            Some(())
        }
    }
}

fn seccomp(value: &str) -> Option<Seccomp> {
    match value {
        "0" => Some(Seccomp::Off),
        "1" => Some(Seccomp::Strict),
        "2" => Some(Seccomp::Filter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    /// Linux 6.18, shortened.
    const SAMPLE: &str = "\
Name:\tcat
Umask:\t0022
State:\tR (running)
Tgid:\t8600
Pid:\t8609
PPid:\t8596
TracerPid:\t7
Uid:\t1000\t1001\t1000\t1000
VmLck:	      64 kB
VmPin:	       0 kB
VmHWM:	    1800 kB
VmRSS:\t    1736 kB
VmPTE:\t      44 kB
VmSwap:\t       8 kB
HugetlbPages:\t    2048 kB
Threads:\t1
CapEff:\t000001fffeffffff
NSsid:\t8005\t1
NoNewPrivs:\t0
THP_enabled:\t1
Seccomp:\t2
Cpus_allowed:\t3
Cpus_allowed_list:\t0-1
Mems_allowed:\t00000000,00000001
Mems_allowed_list:\t0
nonvoluntary_ctxt_switches:\t0
";

    #[test]
    fn the_fields_are_read() {
        let parsed = parse(SAMPLE);
        assert!(parsed.problems.is_empty());
        assert_eq!(
            parsed.value,
            ProcessStatus {
                name: Some("cat".into()),
                state: Some('R'),
                parent: Some(8596),
                process: Some(8600),
                session: Some(8005),
                threads: Some(1),
                user: Some(1001),
                resident: Some(Bytes::from_kib(1736)),
                peak: Some(Bytes::from_kib(1800)),
                locked: Some(Bytes::from_kib(64)),
                hugetlb: Some(Bytes::from_mib(2)),
                swapped: Some(Bytes::from_kib(8)),
                page_tables: Some(Bytes::from_kib(44)),
                pinned: Some(Bytes::new(0)),
                tracer: Some(7),
                cpus_allowed: Some(CpuSet::from([0, 1])),
                mems_allowed: Some(NodeSet::from([0])),
                seccomp: Some(Seccomp::Filter),
                effective_capabilities: Some(0x1ff_feff_ffff),
                transparent_huge_pages: Some(true),
                no_new_privileges: Some(false),
            }
        );
    }

    #[test]
    fn a_kernel_thread_has_no_memory_and_an_old_kernel_no_lists() {
        let parsed =
            parse("Name:\tkworker/0:1\nState:\tI (idle)\nPPid:\t2\nCpus_allowed:\t0f\nMems_allowed:\t1\n");
        assert_eq!(parsed.value.resident, None);
        assert_eq!(parsed.value.cpus_allowed, Some(CpuSet::from([0, 1, 2, 3])));
        assert_eq!(parsed.value.name.as_deref(), Some("kworker/0:1"));
    }

    #[test]
    fn what_does_not_parse_is_none_and_told() {
        let parsed = parse(
            "PPid:\t-1\nUid:\t0\nVmRSS:\t12 pages\nCpus_allowed_list:\t0-x\nCapEff:\t+00001fffeffffff\nSeccomp:\t9\nNoNewPrivs:\t\nState:\t\ngarbage\nTgid:\t\nNSsid:\tx 1\n",
        );
        assert_eq!(parsed.value, ProcessStatus::default());
        assert_eq!(parsed.problems.count(), 11);
    }

    proptest! {
        #[test]
        fn allowed_sets_are_read_back(cpus in prop::collection::btree_set(0u32..4096, 0..20), bits in any::<u64>(), resident in 0u64..1 << 50) {
            let cpus: CpuSet = cpus.into_iter().map(nodewise_machine::CpuId::new).collect();
            let parsed = parse(&format!("Cpus_allowed_list:\t{cpus}\nCapEff:\t{bits:016x}\nVmRSS:\t{resident:8} kB\n"));
            prop_assert!(parsed.problems.is_empty());
            prop_assert_eq!(parsed.value.cpus_allowed, Some(cpus));
            prop_assert_eq!(parsed.value.effective_capabilities, Some(bits));
            prop_assert_eq!(parsed.value.resident, Some(Bytes::from_kib(resident)));
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>(), near in r"((Name|State|PPid|Uid|VmRSS|VmSwap|CapEff|Cpus_allowed|Mems_allowed_list):\s?[0-9a-f, -]{0,20}\n){0,5}") {
            let _ = parse(&text);
            let _ = parse(&near);
        }
    }
}
