//! Samples made by hand.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nodewise_diagnose::Pid;
use nodewise_diagnose::sample::{
    Allowed, BalancingFaults, BalancingSample, Denied, GroupSample, Identity, InterruptSample, Moment,
    NodeSample, PageMethod, PageSample, PageShare, PoolSample, ProcessSample, Sample, TaskSample, Unread,
};
use nodewise_machine::mapping::{MappedPages, Mapping, MappingKind, ProcessMappings};
use nodewise_machine::{Bytes, CpuId, CpuSet, MeminfoField, MeminfoValue, NodeCounters, NodeId, NodeSet};
use nodewise_source::parse::proc_stat::CpuTimes;

/// Names that could drive a terminal, or that are not as wide as they are long.
pub const HOSTILE: [&str; 6] = [
    "a\x1b[2Jb\x1b]0;x",
    "\u{9b}1m\r\n\t\0",
    "日本語の名前です",
    "e\u{301}\u{301}\u{200b}o\u{202e}x",
    "\u{1f468}\u{200d}\u{1f469}\u{fe0f}",
    "",
];

pub fn moment(seconds: u64) -> Moment {
    let since_boot = Duration::from_secs(seconds);
    Moment { since_boot, wall: since_boot + Duration::from_secs(1_700_000_000) }
}

/// A node of four CPUs and 64 GiB; the last of several has next to no free memory.
fn node(number: u32, count: u32, seconds: u64) -> NodeSample {
    let mut node = NodeSample::new(NodeId::new(number));
    node.cpus = CpuSet::range(CpuId::new(number * 4), CpuId::new(number * 4 + 3));
    let free = if count > 1 && number == count - 1 { Bytes::from_mib(40) } else { Bytes::from_gib(40) };
    let field = |name: &str, size| MeminfoField { name: name.to_owned(), value: MeminfoValue::Size(size) };
    node.memory = vec![
        field("MemTotal", Bytes::from_gib(64)),
        field("MemFree", free),
        field("AnonPages", Bytes::from_mib(12_345)),
        field("FilePages", Bytes::from_gib(9)),
        field("Shmem", Bytes::from_gib(1)),
        field("Slab", Bytes::from_mib(700)),
    ];
    node.high_watermark = Some(Bytes::from_mib(96));
    let per_second = |rate: u64| Some(rate * seconds);
    node.allocations = NodeCounters {
        hit: per_second(81_203),
        miss: per_second(u64::from(number) * 812),
        foreign: per_second(u64::from(count - 1 - number) * 812),
        interleave_hit: per_second(0),
        local: per_second(80_000 + u64::from(number) * 812),
        other: per_second(1203),
    };
    node.pools =
        vec![PoolSample { page_size: Bytes::from_mib(2), total: 512, free: Some(12), surplus: None }];
    node
}

pub fn identity(number: u32) -> Identity {
    Identity { pid: Pid::new(number), started_ticks: 9_000 }
}

/// A process of some threads; every fifth may not be looked into, every seventh is large and drawn.
pub fn process(number: u32, name: &str, nodes: u32, seconds: u64) -> ProcessSample {
    let identity = identity(4000 + number);
    let home = number % nodes;
    let away = (number * 3 + 1) % nodes;
    let is_drawn = number % 7 == 2;
    let share = |mib: u64| PageShare {
        size: Bytes::from_mib(mib),
        low: Bytes::from_mib(if is_drawn { mib - mib / 20 } else { mib }),
        high: Bytes::from_mib(if is_drawn { mib + mib / 20 } else { mib }),
        own: (!is_drawn).then(|| Bytes::from_mib(mib / 2)),
    };
    let is_closed = number % 5 == 3;
    let size = 8 + u64::from(number % 50) * 40;
    let mut places: BTreeMap<NodeId, PageShare> = BTreeMap::from([(NodeId::new(home), share(size))]);
    places.insert(NodeId::new(away), share(size * 3));
    let method = if is_drawn { PageMethod::Drawn(1000) } else { PageMethod::Exact };
    let pages = PageSample { seen: moment(seconds), method, nodes: places };
    let resident: Bytes = pages.nodes.values().map(|share| share.size).sum();
    let ticks = u64::from(number % 97) * (seconds - 100);
    let cpus = CpuSet::range(CpuId::new(home * 4), CpuId::new(home * 4 + 3));
    let allowed = Some(Allowed { cpus: Some(cpus), nodes: None });
    let task = |at: u32, part: u64| TaskSample {
        identity: self::identity(4000 + number + at),
        name: name.into(),
        cpu_ticks: ticks / part,
        run: Some(Duration::from_millis(ticks / part * 10)),
        processor: Some(CpuId::new(home * 4 + at)),
        // Where it ran is unsure in half of the processes.
        allowed: if at == 1 && number.is_multiple_of(2) { None } else { allowed.clone() },
        cpu_changes: Some(4 + seconds * u64::from(at)),
        balancing: Some(BalancingSample {
            scans: Some(3),
            migrated_pages: Some(u64::from(number) * seconds),
            preferred: Some(NodeId::new(away)),
            faults: BTreeMap::from([(NodeId::new(away), BalancingFaults { private: 310, shared: 12 })]),
        }),
    };
    ProcessSample {
        polled: moment(seconds),
        name: name.into(),
        user: Some(1000 + number % 3),
        state: 'R',
        threads: 2,
        cpu_ticks: ticks,
        resident: Some(resident),
        allowed: allowed.clone(),
        group: Some("/system.slice/postgresql.service".into()),
        tasks: Some(vec![task(0, 2), task(1, 2)]),
        denied: is_closed.then_some(Denied::Rights),
        pages: (!is_closed).then_some(pages),
        kernel_thread: number % 11 == 10,
        ..ProcessSample::new(identity)
    }
}

/// The machine with these nodes and processes after these seconds.
pub fn sample(nodes: u32, processes: u32, seconds: u64) -> Sample {
    const NAMES: [&str; 5] = ["postgres", "java", "qemu-system-x86", "node_exporter", "sshd"];
    let named = |number: u32| process(number, NAMES[number as usize % NAMES.len()], nodes, seconds);
    sample_with(nodes, seconds, (0..processes).map(named).collect())
}

/// The same with control groups.
pub fn with_groups(nodes: u32, processes: u32, seconds: u64) -> Sample {
    let group = |path: &str, ticks: u64, mib: u64| {
        let on = |part: u64| {
            BTreeMap::from([
                (NodeId::new(0), Bytes::from_mib(mib / part)),
                (NodeId::new(nodes - 1), Bytes::from_mib(mib)),
            ])
        };
        let mut group = GroupSample {
            path: path.into(),
            polled: moment(seconds),
            cpu: Some(Duration::from_millis(ticks * seconds)),
            ..GroupSample::default()
        };
        if mib > 0 {
            group.memory = BTreeMap::from([("anon".to_owned(), on(3)), ("file".to_owned(), on(1))]);
        }
        group.allowed.nodes = Some(NodeSet::range(NodeId::new(0), NodeId::new(nodes - 1)));
        group
    };
    let groups = vec![
        group("/", 0, 0),
        group(&format!("/{}.service", HOSTILE[0]), 1, 3),
        group("/system.slice", 0, 9000),
        group("/system.slice/cron.service", 0, 0),
        group("/system.slice/postgresql.service", 740, 8000),
    ];
    Sample { groups, ..sample(nodes, processes, seconds) }
}

/// The machine with processes whose names, groups and devices are hostile.
pub fn hostile(seconds: u64) -> Sample {
    let processes = (0..).zip(HOSTILE).map(|(number, name)| {
        let group = Some(format!("/{name}.slice/{name}").into());
        ProcessSample { group, ..process(number, name, 4, seconds) }
    });
    let mut sample = sample_with(4, seconds, processes.collect());
    sample.users.insert(1000, HOSTILE[0].into());
    for device in &mut sample.interrupts {
        device.device = format!("net:{}", HOSTILE[0]);
    }
    sample
}

fn sample_with(nodes: u32, seconds: u64, processes: Vec<ProcessSample>) -> Sample {
    let last = nodes - 1;
    let times =
        |busy: u64, idle: u64| CpuTimes { user: busy * seconds, idle: idle * seconds, ..CpuTimes::default() };
    let load = |cpu: u32| u64::from(cpu * 7 % 101);
    let cpus = (0..nodes * 4).map(|cpu| (CpuId::new(cpu), times(load(cpu), 100 - load(cpu))));
    let closed = processes.iter().filter(|process| process.denied.is_some()).count();
    let unread = Unread {
        fact: "memory of processes by node".to_owned(),
        reason: "permission denied".to_owned(),
        objects: closed,
        remedy: Some("run as root".into()),
    };
    Sample {
        moment: moment(seconds),
        nodes: (0..nodes).map(|number| node(number, nodes, seconds)).collect(),
        cpus: cpus.collect(),
        memory: Some(Bytes::from_gib(64 * u64::from(nodes))),
        processes: processes.into_iter().map(Arc::new).collect(),
        // User 1001 has none.
        users: BTreeMap::from([(1000, "alice".into()), (1002, "postgres".into())]),
        interrupts: vec![InterruptSample {
            device: "net:eth0".to_owned(),
            node: Some(NodeId::new(last)),
            lines: vec![30, 31],
            by_cpu: vec![(CpuId::new(0), 700 * seconds), (CpuId::new(last * 4 + 1), 100 * seconds)],
            ..InterruptSample::default()
        }],
        unread: if closed > 0 { vec![unread] } else { Vec::new() },
        ..Sample::default()
    }
}

/// The mappings of a process of that machine.
pub fn mappings(pid: u32, name: &str) -> ProcessMappings {
    let mapping = |at: u64, kind, file: Option<&str>, mib: u64| Mapping {
        name: file.map(str::to_owned),
        page_size: Some(Bytes::from_kib(4)),
        pages: MappedPages::Counted(BTreeMap::from([
            (NodeId::new(0), Bytes::from_mib(mib / 4)),
            (NodeId::new(3), Bytes::from_mib(mib - mib / 4)),
        ])),
        ..Mapping::new(0x7f2c_0000_0000 + (at << 30)..0x7f2c_0000_0000 + (at << 30) + (mib << 20), kind)
    };
    let mappings = vec![
        mapping(1, MappingKind::Heap, Some("[heap]"), 100),
        mapping(2, MappingKind::Anonymous, None, 1000),
        mapping(3, MappingKind::File, Some(&format!("/srv/{name}/libpq.so.5")), 200),
    ];
    ProcessMappings {
        name: Some(name.to_owned()),
        resident: Some(Bytes::from_mib(1300)),
        took: Some(Duration::from_millis(41)),
        predicted: Duration::from_millis(41),
        ..ProcessMappings::new(Pid::new(pid), mappings)
    }
}
