mod controllers;
mod groups;
mod pages;
mod rest;
mod tasks;
mod users;

use std::time::Duration;

use nodewise_machine::{CpuId, NodeId};

use super::*;
use crate::sample::{Identity, ProcessSample};
use crate::tree::{Memory, ReadCause};

const NODE: &str = "/sys/devices/system/node/node1";

fn at(second: u64) -> Moment {
    Moment { since_boot: Duration::from_secs(second), wall: Duration::from_secs(1_700_000_000 + second) }
}

/// A machine of one node, number 1, with two CPUs.
fn machine() -> Memory {
    Memory::new()
        .file("/proc/stat", "cpu 9 0 0 90\ncpu4 5 0 0 50\ncpu5 4 0 0 40\nprocesses 10\n")
        .file("/proc/vmstat", "numa_hint_faults 5\npgmigrate_success 2\n")
        .file("/proc/meminfo", "MemTotal: 4096 kB\nMemFree: 1 kB\n")
        .file("/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n")
        .file("/proc/zoneinfo", "Node 1, zone Normal\n  pages free 1\n        high 3\n        present 1100\n        managed 1024\n")
        .file("/sys/devices/system/node/online", "1\n")
        .file(&format!("{NODE}/cpulist"), "4-5\n")
        .file(&format!("{NODE}/meminfo"), "Node 1 MemTotal: 4096 kB\nNode 1 MemFree: 1024 kB\n")
        .file(&format!("{NODE}/vmstat"), "nr_free_pages 256\nnuma_hit 1\nnuma_miss 2\nnuma_foreign 3\nnuma_interleave 4\nnuma_local 5\nnuma_other 6\n")
        .file(&format!("{NODE}/hugepages/hugepages-2048kB/nr_hugepages"), "4\n")
        .file(&format!("{NODE}/hugepages/hugepages-2048kB/free_hugepages"), "3\n")
}

/// With a process, or another state of it.
fn with(files: Memory, pid: u32, started: u64, ticks: u64) -> Memory {
    let stat = format!(
        "{pid} (p{pid}) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 {started} 8192 2 0 0 0 0 0 0 0 0 0 0 0 0 0 17 4 0\n"
    );
    files
        .file(&format!("/proc/{pid}/stat"), stat)
        .file(&format!("/proc/{pid}/status"), "Uid:\t7\t8\t8\t8\nCpus_allowed:\t30\nMems_allowed:\t2\n")
        .file(&format!("/proc/{pid}/cgroup"), "0::/system.slice/a.service\n")
}

fn forks(files: Memory, forks: u64) -> Memory {
    files.file("/proc/stat", format!("cpu 9 0 0 90\ncpu4 5 0 0 50\ncpu5 4 0 0 40\nprocesses {forks}\n"))
}

fn all() -> SampleOptions {
    SampleOptions { processes: ProcessScope::All, ..SampleOptions::default() }
}

/// Processes of a sample: number, beginning, ticks, and the second when each was read.
fn seen(sample: &Sample) -> Vec<(u32, u64, u64, u64)> {
    let of = |process: &Arc<ProcessSample>| {
        let Identity { pid, started_ticks } = process.identity;
        (pid.number(), started_ticks, process.cpu_ticks, process.polled.since_boot.as_secs())
    };
    sample.processes.iter().map(of).collect()
}

#[test]
fn the_machine_and_its_nodes_are_read() {
    let mut sampler = Sampler::new(Tree::memory(machine()), SampleOptions::default());
    let sample = sampler.sample(at(5));
    assert_eq!((sample.moment, sample.forks), (at(5), Some(10)));
    assert_eq!(sample.memory, Some(Bytes::from_kib(4096)));
    assert_eq!(sample.events.get("numa_hint_faults"), Some(5));
    assert_eq!(
        sample.cpus.iter().map(|(cpu, times)| (cpu.number(), times.user)).collect::<Vec<_>>(),
        [(4, 5), (5, 4)]
    );
    assert!(sample.pressure.memory.is_some() && sample.pressure.cpu.is_none());
    let [node] = &sample.nodes[..] else { panic!("one node") };
    assert_eq!(node.node, NodeId::new(1));
    assert_eq!(sample.node_with_cpu(CpuId::new(5)), Some(NodeId::new(1)));
    assert_eq!(node.size("MemFree"), Some(Bytes::from_kib(1024)));
    assert_eq!(
        (node.allocations.interleave_hit, node.allocations.local, node.allocations.other),
        (Some(4), Some(5), Some(6))
    );
    assert_eq!((node.present, node.high_watermark), (Some(Bytes::from_kib(4400)), Some(Bytes::from_kib(12))));
    let [pool] = &node.pools[..] else { panic!("one pool") };
    assert_eq!((pool.page_size, pool.total, pool.free, pool.surplus), (Bytes::from_mib(2), 4, Some(3), None));
    assert_eq!(sample.unread, []);
    assert!(sample.processes.is_empty(), "not asked for");
}

#[test]
fn allocations_come_from_numastat_where_vmstat_lacks_them() {
    let files = machine()
        .file(&format!("{NODE}/vmstat"), "nr_free_pages 256\nnuma_hit 1\n")
        .file(&format!("{NODE}/numastat"), "numa_hit 11\nlocal_node 12\n");
    let sample = Sampler::new(Tree::memory(files), SampleOptions::default()).sample(at(1));
    let allocations = sample.nodes[0].allocations;
    assert_eq!((allocations.hit, allocations.local, allocations.miss), (Some(11), Some(12), None));
}

#[test]
fn what_cannot_be_read_is_named_once() {
    let files = machine()
        .unreadable("/proc/vmstat", ReadCause::System(13))
        .file("/proc/meminfo", "MemTotal: many kB\n")
        .without("/proc/pressure/memory")
        .file("/sys/devices/system/node/online", "1-2\n")
        .directory("/sys/devices/system/node/node2");
    let sample = Sampler::new(Tree::memory(files), SampleOptions::default()).sample(at(1));
    assert!(sample.events.is_empty() && sample.memory.is_none());
    let told: Vec<_> = sample
        .unread
        .iter()
        .map(|line| (line.fact.as_str(), line.reason.as_str(), line.remedy.is_some()))
        .collect();
    assert_eq!(
        told,
        [
            ("events", "permission denied", true),
            (
                "memory of the machine",
                "/proc/meminfo:1: expected a number of kB below 2^54, found \"many kB\"",
                false
            ),
            ("pressure", "this kernel does not count it", true),
        ]
    );
    assert_eq!(sample.nodes.len(), 2, "a node without files is a node of which nothing is known");
    assert_eq!(sample.nodes[1], super::super::NodeSample::new(NodeId::new(2)));
}

#[test]
fn a_cpu_and_a_node_can_go_and_come_back() {
    let mut sampler = Sampler::new(Tree::memory(machine()), SampleOptions::default());
    assert_eq!(sampler.sample(at(1)).cpus.len(), 2);
    let one_cpu =
        machine().file("/proc/stat", "cpu 9 0 0 90\ncpu4 6 0 0 49\n").file(&format!("{NODE}/cpulist"), "4\n");
    sampler.continue_with(Tree::memory(one_cpu));
    let sample = sampler.sample(at(2));
    assert_eq!(sample.cpus.len(), 1);
    assert_eq!(
        (sample.cpus[0].1.user, sample.cpus[0].1.idle),
        (6, 49),
        "a counter that ran backwards is shown as it is"
    );
    assert_eq!(sample.node_with_cpu(CpuId::new(5)), None);
    sampler.continue_with(Tree::memory(machine().without(NODE)));
    assert!(sampler.sample(at(3)).nodes.is_empty());
    sampler.continue_with(Tree::memory(machine()));
    let sample = sampler.sample(at(4));
    assert_eq!((sample.nodes.len(), sample.cpus.len()), (1, 2));
    assert_eq!(sample.nodes[0].present, Some(Bytes::from_kib(4400)), "zones are read again for it");
}

#[test]
fn zones_are_read_once_a_minute() {
    let mut sampler = Sampler::new(Tree::memory(machine()), SampleOptions::default());
    sampler.sample(at(10));
    let grown = machine().file(
        "/proc/zoneinfo",
        "Node 1, zone Normal\n  pages free 1\n        present 2000\n        managed 1024\n",
    );
    sampler.continue_with(Tree::memory(grown));
    let mut present = |second| sampler.sample(at(second)).nodes[0].present.map(|size| size.get() >> 10);
    assert_eq!((present(69), present(70)), (Some(4400), Some(8000)));
}

#[test]
fn zones_that_cannot_be_read_are_not_read_again_in_the_same_minute() {
    let check = |files: Memory, reasons: &[&str]| {
        let mut sampler = Sampler::new(Tree::memory(files), SampleOptions::default());
        let mut present = |second| {
            let sample = sampler.sample(at(second));
            let found: Vec<&str> = sample.unread.iter().map(|line| line.reason.as_str()).collect();
            if second < 70 {
                assert_eq!(found, reasons, "{second}");
            }
            // From now on all is well, but the zones are not looked at.
            sampler.continue_with(Tree::memory(machine()));
            sample.nodes[0].present.map(|size| size.get() >> 10)
        };
        assert_eq!((present(10), present(69), present(70)), (None, None, Some(4400)));
    };
    check(machine().without("/proc/zoneinfo"), &[]);
    let closed = machine().unreadable("/proc/zoneinfo", ReadCause::System(13));
    check(closed, &["permission denied"]);
    let other = "Node 7, zone Normal\n  pages free 1\n        present 1100\n        managed 1024\n";
    check(machine().file("/proc/zoneinfo", other), &[]);
}

#[test]
fn pools_are_looked_for_once_a_minute_also_without_zones() {
    let files = machine().without("/proc/zoneinfo");
    let mut sampler = Sampler::new(Tree::memory(files.clone()), SampleOptions::default());
    assert_eq!(sampler.sample(at(10)).nodes[0].pools.len(), 1);
    let more = files.file(&format!("{NODE}/hugepages/hugepages-1048576kB/nr_hugepages"), "1\n");
    sampler.continue_with(Tree::memory(more));
    let pools: Vec<usize> = [69, 70].map(|second| sampler.sample(at(second)).nodes[0].pools.len()).into();
    assert_eq!(pools, [1, 2]);
}

#[test]
fn a_process_is_read_with_what_it_may_use() {
    let sample = Sampler::new(Tree::memory(with(machine(), 30, 7, 11)), all()).sample(at(1));
    let process = &sample.processes[0];
    assert_eq!((&*process.name, process.state, process.parent), ("p30", 'S', Some(Pid::new(1))));
    assert_eq!((process.user, process.group.as_deref()), (Some(8), Some("/system.slice/a.service")));
    assert_eq!((process.resident, process.processor), (Some(Bytes::from_kib(8)), Some(CpuId::new(4))));
    let allowed = process.allowed.as_ref().unwrap();
    assert_eq!(allowed.cpus.as_ref().unwrap().to_string(), "4-5");
    assert_eq!(allowed.nodes.as_ref().unwrap().to_string(), "1");
}

#[test]
fn births_are_found_after_forks_and_deaths_when_they_are_read() {
    let first = with(with(machine(), 30, 7, 1), 31, 8, 1);
    let mut sampler = Sampler::new(Tree::memory(first.clone()), all());
    assert_eq!(sampler.sample(at(0)).processes.len(), 2);
    // There was no fork: nothing new is looked for.
    let third = with(first.clone(), 32, 9, 1);
    sampler.continue_with(Tree::memory(third.clone()));
    assert_eq!(sampler.sample(at(6)).processes.len(), 2);
    let third = forks(third, 11);
    sampler.continue_with(Tree::memory(third.clone()));
    assert_eq!(seen(&sampler.sample(at(7))).last(), Some(&(32, 9, 1, 7)));
    sampler.continue_with(Tree::memory(third.without("/proc/31")));
    let left: Vec<u32> = (8..20).map(|second| sampler.sample(at(second)).processes.len() as u32).collect();
    assert_eq!(left.last(), Some(&2), "{left:?}");
}

#[test]
fn a_number_that_is_used_again_is_another_process() {
    let mut sampler = Sampler::new(Tree::memory(with(machine(), 30, 7, 900)), all());
    sampler.sample(at(0));
    sampler.continue_with(Tree::memory(with(machine(), 30, 55, 2)));
    let sample = sampler.sample(at(1));
    assert_eq!(seen(&sample), [(30, 55, 2, 1)]);
    assert_eq!(sample.processes[0].user, Some(8), "all of it is read again");
}

#[test]
fn an_idle_process_is_read_less_often_and_a_busy_one_each_time() {
    let state = |ticks| Tree::memory(with(with(machine(), 30, 7, 1), 31, 8, ticks));
    let mut sampler = Sampler::new(state(0), all());
    let mut read = [0, 0];
    for second in 0..64 {
        sampler.continue_with(state(second));
        for (count, process) in read.iter_mut().zip(sampler.sample(at(second)).processes) {
            *count += u32::from(process.polled == at(second));
        }
    }
    assert_eq!(read[1], 64);
    assert!((8..=12).contains(&read[0]), "{read:?}");
    // It wakes up, and is followed.
    let last = at(64 + 8);
    sampler.continue_with(Tree::memory(with(machine(), 30, 7, 99)));
    let mut found = Vec::new();
    (64..=72).for_each(|second| found = seen(&sampler.sample(at(second))));
    assert_eq!(found[0].2, 99);
    assert!(found[0].3 >= last.since_boot.as_secs() - 8);
}

#[test]
fn processes_that_were_found_together_are_not_read_together() {
    let files = (1..=64).fold(machine(), |files, pid| with(files, pid, 1, 1));
    let mut sampler = Sampler::new(Tree::memory(files), all());
    let mut read = |second| {
        let sample = sampler.sample(at(second));
        sample.processes.iter().filter(|process| process.polled == at(second)).count()
    };
    let counts: Vec<usize> = (0..40).map(&mut read).collect();
    assert_eq!(counts[0], 64);
    assert!(counts[16..].iter().all(|count| *count == 8), "{counts:?}");
}

#[test]
fn rare_samples_read_everything() {
    let mut sampler = Sampler::new(Tree::memory(with(machine(), 30, 7, 1)), all());
    for second in [0, 10, 20, 30, 40] {
        assert_eq!(seen(&sampler.sample(at(second)))[0].3, second);
    }
}

#[test]
fn selected_processes_are_read_each_time_and_others_never() {
    let files = with(with(machine(), 30, 7, 1), 31, 7, 1);
    let only = ProcessScope::Only([Pid::new(31), Pid::new(99)].into());
    let mut sampler =
        Sampler::new(Tree::memory(files), SampleOptions { processes: only, ..SampleOptions::default() });
    for second in 0..5 {
        let sample = sampler.sample(at(second));
        assert_eq!(seen(&sample), [(31, 7, 1, second)]);
        assert_eq!(sample.unread[0].reason, "there is no process 99");
    }
}

#[test]
fn a_selected_process_that_cannot_be_read_does_exist() {
    let check = |files: Memory, reasons: &[&str]| {
        let processes = ProcessScope::Only([Pid::new(30)].into());
        let mut sampler =
            Sampler::new(Tree::memory(files), SampleOptions { processes, ..SampleOptions::default() });
        let sample = sampler.sample(at(1));
        assert!(sample.processes.is_empty());
        let found: Vec<&str> = sample.unread.iter().map(|line| line.reason.as_str()).collect();
        assert_eq!(found, reasons);
    };
    // hidepid=1 and EMFILE.
    for (errno, reason) in [(13, "permission denied"), (24, "too many open files")] {
        let closed = with(machine(), 30, 7, 1).unreadable("/proc/30/stat", ReadCause::System(errno));
        check(closed, &[reason]);
    }
    let garbage = with(machine(), 30, 7, 1).file("/proc/30/stat", "30 (x) S 1\n");
    check(garbage, &["/proc/PID/stat: expected field 9, found nothing"]);
    check(machine(), &["there is no process 30"]);
}

#[test]
fn a_line_that_is_no_process_is_named_and_costs_one_process() {
    let files = with(machine(), 30, 7, 1).file("/proc/31/stat", "31 (x) S 1\n").file("/proc/32/stat", "");
    let sample = Sampler::new(Tree::memory(files), all()).sample(at(1));
    assert_eq!(sample.processes.len(), 1);
    let told: Vec<_> = sample.unread.iter().map(|line| (line.reason.as_str(), line.objects)).collect();
    assert_eq!(told, [("/proc/PID/stat: expected field 9, found nothing", 1)]);
}

#[test]
fn groups_that_this_process_cannot_see_are_named() {
    let files = with(machine(), 30, 7, 1);
    let unread = |files: Memory| {
        let sample = Sampler::new(Tree::memory(files), SampleOptions { groups: true, ..all() }).sample(at(1));
        assert!(sample.groups.is_empty());
        sample.unread.into_iter().map(|line| line.reason).collect::<Vec<_>>()
    };
    assert_eq!(unread(files.clone()), ["no hierarchy is mounted"]);
    let outside =
        files.file("/proc/mounts", "cgroup2 /cg cgroup2 rw 0 0\n").file("/proc/30/cgroup", "0::/../x\n");
    assert_eq!(unread(outside), ["outside of this control group namespace"]);
}

#[test]
fn interrupts_are_summed_by_device_and_cpu() {
    let pci = "/sys/devices/pci0000:00/0000:00:03.0";
    let files = machine()
        .link_to("/sys/class/net/eth0", "../../devices/pci0000:00/0000:00:03.0/virtio2/net/eth0")
        .link_to("/sys/class/net/lo", "../../devices/virtual/net/lo")
        .link_to("/sys/class/block/vda", "../../devices/pci0000:00/0000:00:03.0/virtio2/block/vda")
        .file(&format!("{pci}/msi_irqs/37"), "msix")
        .file(&format!("{pci}/msi_irqs/38"), "msix")
        .file(&format!("{pci}/numa_node"), "-1\n")
        .file(
            "/proc/interrupts",
            "       CPU4  CPU5\n 36:  9  9  x\n 37:  1  20  x\n 38:  2  30  x\nERR:  4\n",
        );
    let with = |files: Memory, interrupts: InterruptScope| {
        let options = SampleOptions { interrupts, ..SampleOptions::default() };
        Sampler::new(Tree::memory(files), options).sample(at(1))
    };
    let read = |files: Memory| with(files, InterruptScope::Counts);
    let files = files.file(&format!("{pci}/virtio2/net/eth0/queues/rx-0/rps_cpus"), "30\n");
    assert_eq!(with(files.clone(), InterruptScope::None).interrupts, []);
    let queued = with(files.clone(), InterruptScope::Queues).interrupts.remove(0).queues;
    assert_eq!(queued[0].cpus.as_ref().map(ToString::to_string).as_deref(), Some("4-5"));
    let files =
        files.file("/proc/irq/37/smp_affinity_list", "4-5\n").file("/proc/irq/38/smp_affinity_list", "x\n");
    let all = with(files.clone(), InterruptScope::All).interrupts.remove(0);
    let allowed: Vec<_> = all.allowed.iter().map(|(line, cpus)| format!("{line}: {cpus}")).collect();
    assert_eq!((allowed, all.queues), (vec!["37: 4-5".to_owned()], queued));
    let sample = read(files.clone());
    assert_eq!(
        (&sample.interrupts[0].queues, &sample.interrupts[0].allowed),
        (&vec![], &vec![]),
        "not asked for"
    );
    let [device] = &sample.interrupts[..] else { panic!("one device: {:?}", sample.interrupts) };
    assert_eq!((device.device.as_str(), device.node, &device.lines[..]), ("net:eth0", None, &[37, 38][..]));
    assert_eq!(device.by_cpu, [(CpuId::new(4), 3), (CpuId::new(5), 50)]);
    let sample = read(files.file(&format!("{pci}/numa_node"), "1\n").file("/proc/interrupts", "x\n"));
    assert!(sample.unread.iter().any(|line| line.fact == "interrupts"));
}

#[test]
fn bandwidth_is_the_sum_of_all_groups() {
    let counters = |files: Memory, folder: &str, total: &str, local: &str| {
        files
            .file(&format!("/rc/{folder}/mbm_total_bytes"), total)
            .file(&format!("/rc/{folder}/mbm_local_bytes"), local)
    };
    let files = machine().file("/proc/mounts", "resctrl /rc resctrl rw 0 0\n");
    let files = files
        .file("/sys/devices/system/cpu/cpu4/cache/index3/id", "7\n")
        .file("/sys/devices/system/cpu/cpu4/cache/index3/shared_cpu_list", "4-5\n")
        .file("/rc/info/last_cmd_status", "ok\n");
    let files = counters(files, "mon_data/mon_L3_07", "100\n", "40\n");
    let read = |files: Memory| {
        let options = SampleOptions { bandwidth: BandwidthScope::All, ..SampleOptions::default() };
        let sample = Sampler::new(Tree::memory(files), options).sample(at(1));
        let of = |domain: &crate::sample::BandwidthSample| {
            (domain.domain, domain.cpus.to_string(), domain.total_bytes, domain.local_bytes)
        };
        (sample.bandwidth.iter().map(of).collect::<Vec<_>>(), sample.unread)
    };
    let cpus = || "4-5".to_owned();
    assert_eq!(read(files.clone()).0, [(7, cpus(), Some(100), Some(40))]);
    let two = counters(files.clone(), "job/mon_data/mon_L3_07", "5\n", "Unavailable\n");
    let two = counters(two, "mon_groups/m/mon_data/mon_L3_07", "3\n", "3\n");
    assert_eq!(read(two).0, [(7, cpus(), Some(105), None)], "a part is no sum, and root counts its monitors");
    let parts = counters(files, "mon_data/mon_L3_07/mon_sub_L3_01", "60\n", "30\n");
    assert_eq!(read(parts).0, [(1, cpus(), Some(60), Some(30))]);
    let (none, unread) = read(machine());
    assert!(none.is_empty() && unread[0].remedy.is_some());
}

#[test]
fn a_capture_gives_one_sample_since_boot() {
    let files = machine().without("/proc/stat").without("/sys/devices/system/node/online");
    let sample = Sampler::new(Tree::memory(files), all()).sample(Moment::default());
    assert_eq!(sample.nodes.len(), 1, "the folder says it");
    assert_eq!(sample.nodes[0].allocations.hit, Some(1));
    assert!(sample.cpus.is_empty() && sample.forks.is_none() && sample.processes.is_empty());
}

#[test]
fn this_machine_is_sampled() {
    let own = Pid::new(std::process::id());
    let options = SampleOptions {
        threads: ThreadScope::Busy([own].into()),
        groups: true,
        ..pages::looking(Duration::from_millis(3), &[own.number()])
    };
    let mut sampler = Sampler::new(Tree::live(), options);
    let (first, second) = (sampler.sample(Moment::now()), sampler.sample(Moment::now()));
    assert!(second.moment.since(first.moment).is_some());
    let me = |sample: &Sample| {
        sample.processes.iter().find(|process| process.identity.pid.number() == std::process::id()).cloned()
    };
    let (before, after) = (me(&first).unwrap(), me(&second).unwrap());
    assert_eq!(before.identity, after.identity);
    assert!(after.cpu_ticks >= before.cpu_ticks);
    assert!(after.tasks.as_ref().is_some_and(|tasks| !tasks.is_empty()));
    assert!(!first.cpus.is_empty() && first.cpus.len() == second.cpus.len());
    assert!(first.processes.windows(2).all(|pair| pair[0].identity.pid < pair[1].identity.pid));
}
