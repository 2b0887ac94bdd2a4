//! Files that are saved reduced.

use std::time::{SystemTime, UNIX_EPOCH};

use nodewise_machine::printable::printable;

use super::Identity;
use crate::smbios::blank::blank;

/// The rest of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// `/proc/stat`: times of CPUs and numbers of tasks.
    CpuTimes,
    /// `/proc/cpuinfo`: without serial numbers.
    CpuInfo,
    /// `/proc/version`: without builder and compiler.
    Version,
    /// `/proc/cmdline`: values of harmless parameters, names of the others.
    CommandLine,
    /// `/proc/mounts`: control groups.
    Mounts,
    /// `/proc/self/status`: what the process may use.
    Status,
    /// `/proc/hwloc-nofile-info`: without the host's name.
    NoFileInfo,
    /// The table of SMBIOS, or a structure of it: memory slots, without serial numbers.
    Dmi,
}

impl Filter {
    /// Reduces a file.
    pub(super) fn apply(self, contents: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(contents);
        let lines = |keep: fn(&str) -> bool| -> String {
            text.split_inclusive('\n').filter(|line| keep(line)).collect()
        };
        let kept = match self {
            Self::CpuTimes => lines(|line| line.starts_with("cpu") || line.starts_with("procs_")),
            Self::CpuInfo => text.split_inclusive('\n').filter_map(cpuinfo).collect(),
            Self::Version => version(&text),
            Self::CommandLine => command_line(&text),
            Self::Mounts => text.lines().filter_map(mount).collect(),
            Self::Status => lines(is_limit),
            Self::NoFileInfo => lines(|line| !line.starts_with("HostName")),
            Self::Dmi => return blank(contents),
        };
        kept.into_bytes()
    }
}

/// A line of cpuinfo without what identifies one machine: `Serial : 10000000abcd` on boards is left out
/// as a whole; of `processor 0: version = FF,  identification = 2233E8,  machine = 2964` on s390 the model stays.
fn cpuinfo(line: &str) -> Option<String> {
    let is_serial = |text: &str| {
        let text = text.to_ascii_lowercase();
        ["serial", "identification", "uuid"].iter().any(|word| text.contains(word))
    };
    let fields = line.strip_prefix("processor ").and_then(|rest| rest.split_once(": "));
    if let Some((number, fields)) = fields.filter(|_| is_serial(line)) {
        let kept: Vec<&str> = fields.split(',').filter(|field| !is_serial(field)).collect();
        let end = if kept.last().is_some_and(|field| field.ends_with('\n')) { "" } else { "\n" };
        return Some(format!("processor {number}: {}{end}", kept.join(",").trim_start_matches(' ')))
            .filter(|line| !is_serial(line));
    }
    (!is_serial(line)).then(|| line.to_owned())
}

fn is_limit(line: &str) -> bool {
    let fields = ["Cpus_allowed", "Mems_allowed", "Seccomp", "CapEff", "NoNewPrivs"];
    fields.iter().any(|field| line.starts_with(field))
}

fn version(text: &str) -> String {
    let words: Vec<&str> = text.split_ascii_whitespace().take(3).collect();
    format!("{}\n", words.join(" "))
}

/// One line of mounts, when it is of control groups: without the device and all options but words.
fn mount(line: &str) -> Option<String> {
    let mut words = line.split(' ').skip(1);
    let (folder, kind, options) = (words.next()?, words.next()?, words.next()?);
    let options = options.split(',').filter(|option| option.bytes().all(|byte| byte.is_ascii_lowercase()));
    let options = options.collect::<Vec<_>>().join(",");
    matches!(kind, "cgroup" | "cgroup2" | "cpuset").then(|| format!("none {folder} {kind} {options} 0 0\n"))
}

/// Parameters whose values say nothing about whose machine it is.
const HARMLESS: [&str; 61] = [
    "acpi",
    "amd_iommu",
    "amd_pstate",
    "cgroup_disable",
    "cgroup_enable",
    "cgroup_no_v1",
    "clocksource",
    "cma",
    "cpuidle.off",
    "cpufreq.default_governor",
    "crashkernel",
    "default_hugepagesz",
    "efi",
    "hugepages",
    "hugepagesz",
    "hugetlb_cma",
    "hugetlb_free_vmemmap",
    "idle",
    "init_on_alloc",
    "init_on_free",
    "intel_idle.max_cstate",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "iommu.passthrough",
    "isolcpus",
    "kernelcore",
    "kpti",
    "lru_gen",
    "maxcpus",
    "mce",
    "mem",
    "memhp_default_state",
    "memmap",
    "memory_hotplug.memmap_on_memory",
    "mitigations",
    "movablecore",
    "nohz",
    "nohz_full",
    "nosmt",
    "noht",
    "nr_cpus",
    "numa",
    "numa_balancing",
    "numa_policy",
    "numa_zonelist_order",
    "panic",
    "pci",
    "possible_cpus",
    "preempt",
    "processor.max_cstate",
    "psi",
    "rcu_nocbs",
    "sched_verbose",
    "skew_tick",
    "slab_nomerge",
    "spectre_v2",
    "swiotlb",
    "thp_anon",
    "transparent_hugepage",
    "tsc",
];

/// Words without a value that are kept.
const HARMLESS_WORDS: [&str; 17] = [
    "debug",
    "movable_node",
    "noapic",
    "nohz",
    "nolapic",
    "nopti",
    "nosmt",
    "nosmp",
    "nokaslr",
    "nox2apic",
    "quiet",
    "ro",
    "rw",
    "slab_nomerge",
    "slab_strict_numa",
    "splash",
    "threadirqs",
];

/// The command line with the values of unknown parameters hidden: `root=…`. Everything behind `--`
/// is meant for init and is left out.
pub fn command_line(text: &str) -> String {
    let words = words(text.trim_end_matches(['\n', '\0']));
    let words = words.into_iter().take_while(|word| word != "--").map(|word| {
        let (name, value) =
            word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        // The kernel takes - for _ in names.
        let known = name.replace('-', "_");
        match value {
            Some(_) if HARMLESS.contains(&known.as_str()) || known.starts_with("sysctl.vm.") => word,
            Some(_) => format!("{}=…", printable(name)),
            None if HARMLESS_WORDS.contains(&known.as_str()) => word,
            None => "…".to_owned(),
        }
    });
    format!("{}\n", words.collect::<Vec<_>>().join(" "))
}

/// Words of a command line; double quotes hold blanks together, as in the kernel.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_ascii_whitespace() && !quoted => {
                words.push(String::new());
                continue;
            }
            _ => (),
        }
        if let Some(word) = words.last_mut() {
            word.push(c);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the facts of `uname(2)` and `getpagesize(3)`, in hwloc's words, and the time.
pub(super) fn nofile_info(identity: Identity, now: SystemTime) -> String {
    let names = rustix::system::uname();
    let word = |text: &std::ffi::CStr| printable(&text.to_string_lossy()).into_owned();
    let host = match identity {
        Identity::With => format!("HostName: {}\n", word(names.nodename())),
        Identity::Without => String::new(),
    };
    let seconds = now.duration_since(UNIX_EPOCH).map(|since| since.as_secs());
    let time = seconds.map(|seconds| format!("CaptureTime: {seconds}\n")).unwrap_or_default();
    format!(
        "OSName: {}\nOSRelease: {}\nOSVersion: {}\n{host}Architecture: {}\nFallbackNbProcessors: {}\nPageSize: {}\n{time}",
        word(names.sysname()),
        word(names.release()),
        word(names.version()),
        word(names.machine()),
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        rustix::param::page_size(),
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    fn check(filter: Filter, text: &str, expected: &str) {
        assert_eq!(String::from_utf8(filter.apply(text.as_bytes())).unwrap(), expected);
    }

    #[test]
    fn only_harmless_values_of_the_command_line_are_kept() {
        check(
            Filter::CommandLine,
            "BOOT_IMAGE=/boot/vmlinuz root=UUID=b77565b5-aded-4851 ro numa=fake=4 ip=10.0.0.1 secret isolcpus=2-5 foo=\"a b\" nosmt -- --token x\n",
            "BOOT_IMAGE=… root=… ro numa=fake=4 ip=… … isolcpus=2-5 foo=… nosmt\n",
        );
        check(
            Filter::CommandLine,
            "default-hugepagesz=1G sysctl.vm.swappiness=1\n",
            "default-hugepagesz=1G sysctl.vm.swappiness=1\n",
        );
        check(Filter::CommandLine, "", "\n");
    }

    #[test]
    fn serial_numbers_of_cpus_are_left_out() {
        check(
            Filter::CpuInfo,
            "processor\t: 0\nSerial\t\t: 10000000abcdef01\nModel\t\t: Raspberry Pi 5\n",
            "processor\t: 0\nModel\t\t: Raspberry Pi 5\n",
        );
        check(
            Filter::CpuInfo,
            "processor 0: version = FF,  identification = 2233E8,  machine = 2964\nprocessor serial: 7, uuid\n",
            "processor 0: version = FF,  machine = 2964\n",
        );
    }

    #[test]
    fn builders_hosts_and_users_are_left_out() {
        check(
            Filter::Version,
            "Linux version 5.3.0-rc7 (bgoglin@leonide) (gcc) #4 SMP\n",
            "Linux version 5.3.0-rc7\n",
        );
        check(
            Filter::NoFileInfo,
            "OSName: Linux\nHostName: ubuntu\nPageSize: 4096\n",
            "OSName: Linux\nPageSize: 4096\n",
        );
        check(
            Filter::Mounts,
            "/dev/sda1 /home/me ext4 rw 0 0\ncgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset,release_agent=/home/me/x 0 0\n",
            "none /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n",
        );
        check(
            Filter::Status,
            "Name:\tsecret\nUid:\t1000\nCpus_allowed_list:\t0-1\nSeccomp:\t2\n",
            "Cpus_allowed_list:\t0-1\nSeccomp:\t2\n",
        );
        check(
            Filter::CpuTimes,
            "cpu 1 2 3 4\nintr 5\nbtime 1700000000\nprocs_running 1\n",
            "cpu 1 2 3 4\nprocs_running 1\n",
        );
    }

    #[test]
    fn what_uname_says_and_the_time_are_read_back() {
        let now = UNIX_EPOCH + Duration::from_secs(1_795_609_800);
        let parsed = crate::parse::nofile_info::parse(&nofile_info(Identity::Without, now));
        assert!(parsed.problems.is_empty());
        assert!(parsed.value.release.is_some() && parsed.value.page_size.is_some());
        assert_eq!(parsed.value.captured_at, Some(now));
        assert!(!nofile_info(Identity::Without, now).contains("HostName"));
        assert!(nofile_info(Identity::With, now).contains("HostName: "));
    }

    proptest! {
        #[test]
        fn a_value_is_kept_for_harmless_parameters_only(name in "[a-z_.]{1,12}", value in "[A-Z]{6}") {
            let kept = command_line(&format!("{name}={value}"));
            prop_assert!(!kept.contains(&value) || HARMLESS.contains(&name.as_str()));
        }

        #[test]
        fn any_bytes_are_reduced_without_a_panic(bytes in any::<Vec<u8>>()) {
            for filter in [Filter::CpuTimes, Filter::CpuInfo, Filter::Version, Filter::CommandLine, Filter::Mounts, Filter::Status, Filter::NoFileInfo, Filter::Dmi] {
                let _ = filter.apply(&bytes);
            }
        }
    }
}
