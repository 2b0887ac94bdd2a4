//! Control groups.

use super::*;

fn groups_of(sample: &Sample) -> Vec<(&str, Option<u64>, Option<u64>)> {
    let anon = |group: &crate::sample::GroupSample| {
        group.memory.get("anon")?.get(&NodeId::new(1)).map(|size| size.get())
    };
    sample
        .groups
        .iter()
        .map(|group| (&*group.path, group.cpu.map(|cpu| cpu.as_millis() as u64), anon(group)))
        .collect()
}

#[test]
fn groups_of_version_2_are_read_with_their_parents() {
    let group = |files: Memory, path: &str, usage: u64, anon: u64| {
        let folder = format!("/sys/fs/cgroup{path}");
        files
            .file(
                &format!("{folder}/cpu.stat"),
                format!("usage_usec {usage}\ncore_sched.force_idle_usec 0\n"),
            )
            .file(&format!("{folder}/memory.numa_stat"), format!("anon N1={anon}\n"))
            .file(&format!("{folder}/cpuset.cpus.effective"), "4-5\n")
            .file(&format!("{folder}/cpuset.mems.effective"), "1\n")
            .file(&format!("{folder}/memory.pressure"), "some avg10=0.00 avg60=0.00 avg300=0.00 total=3\n")
    };
    let files = with(machine(), 30, 7, 1).file("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
    let files = group(group(files, "/system.slice", 9000, 900), "/system.slice/a.service", 5000, 500);
    let files = group(files, "/other", 1, 1).file("/sys/fs/cgroup/cpu.stat", "usage_usec 10000\n");
    let mut sampler = Sampler::new(Tree::memory(files.clone()), SampleOptions { groups: true, ..all() });
    let sample = sampler.sample(at(1));
    assert_eq!(
        groups_of(&sample),
        [
            ("/", Some(10), None),
            ("/system.slice", Some(9), Some(900)),
            ("/system.slice/a.service", Some(5), Some(500))
        ]
    );
    let service = &sample.groups[2];
    assert_eq!(service.allowed.cpus.as_ref().unwrap().to_string(), "4-5");
    assert!(service.memory_pressure.is_some() && service.polled == at(1));
    assert_eq!(sample.unread, []);
    // A group that goes with its process is gone, and one that moves is followed.
    let moved = files.clone().file("/proc/30/cgroup", "0::/other\n").without("/sys/fs/cgroup/system.slice");
    sampler.continue_with(Tree::memory(
        forks(with(moved, 30, 77, 1), 11).file("/proc/30/cgroup", "0::/other\n"),
    ));
    let paths: Vec<String> =
        groups_of(&sampler.sample(at(2))).iter().map(|group| group.0.to_owned()).collect();
    assert_eq!(paths, ["/", "/other"]);
    // Groups that are requested later are found, too.
    let mut sampler = Sampler::new(Tree::memory(files), all());
    assert!(sampler.sample(at(1)).groups.is_empty());
    sampler.look_at_groups(true);
    assert_eq!(groups_of(&sampler.sample(at(2))).len(), 3);
    sampler.look_at_groups(false);
    assert!(sampler.sample(at(3)).groups.is_empty());
}

#[test]
fn groups_of_version_1_count_those_below_them_too() {
    let files = with(machine(), 30, 7, 1)
        .file("/proc/30/cgroup", "4:memory:/jobs/1\n2:cpuacct:/\n0::/\n")
        .file(
            "/proc/mounts",
            "cgroup /cg/memory cgroup rw,memory 0 0\ncgroup /cg/cpu cgroup rw,cpuacct 0 0\n",
        )
        .file("/cg/memory/jobs/1/memory.numa_stat", "anon=1 N1=1\nhierarchical_anon=2 N1=2\n")
        .file("/cg/cpu/cpuacct.usage", "7000000\n");
    let sample = Sampler::new(Tree::memory(files), SampleOptions { groups: true, ..all() }).sample(at(1));
    assert_eq!(groups_of(&sample), [("/", Some(7), None), ("/jobs/1", None, Some(8192))]);
}
