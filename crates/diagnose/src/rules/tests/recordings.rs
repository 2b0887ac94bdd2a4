//! The recordings of `data/recordings`, which the page of `doctor` shows: each is a situation made here, and is read back
//! as it was made. `SNAPSHOTS=overwrite` writes them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::{CpuId, CpuSet, KernelRelease, NodeCounters, NodeId};
use nodewise_source::machine_file;
use nodewise_source::process::Pid;
use nodewise_source::record::{Header, Recording, Writer};
use nodewise_source::sample::InterruptSample;

use super::*;
use crate::{Diagnosis, Situation};

/// Two sockets with two nodes each.
const SERVER: &str = "2x(2x(12c 126G)); dist=11,20; kernel=6.12";

struct Scene {
    name: &'static str,
    fixture: Fixture,
    /// The rules of its findings, the first first.
    rules: &'static [&'static str],
}

fn mib(count: u64) -> Bytes {
    Bytes::from_mib(count)
}

/// Gives a process its name, its parent and its control group, in both samples.
fn named(fixture: &mut Fixture, pid: u32, name: &str, parent: Option<u32>, group: Option<&str>) {
    for sample in [&mut fixture.before, &mut fixture.now] {
        let of = sample.processes.iter_mut().find(|of| of.identity.pid.number() == pid).unwrap();
        let process = Arc::make_mut(of);
        (process.name, process.parent) = (name.into(), parent.map(Pid::new));
        process.group = group.map(Into::into);
    }
}

/// A server on which node 1 has this much free memory.
fn server(free: Bytes) -> Fixture {
    let mut fixture = Fixture::new(SERVER);
    fixture.meminfo(1, "MemFree", free);
    for field in ["Active(file)", "Inactive(file)"] {
        fixture.meminfo(1, field, mib(120));
    }
    for sample in [&mut fixture.before, &mut fixture.now] {
        sample.nodes.iter_mut().for_each(|node| node.high_watermark = Some(mib(291)));
    }
    fixture
}

fn bound(fixture: &mut Fixture, pid: u32, mode: PolicyMode, of: &str, memory: &[(u32, Bytes)]) {
    fixture.mappings(pid, &[(MappingKind::Anonymous, MemPolicy::new(mode, nodes(of)), memory)]);
}

/// A database that is bound to a node, which swaps while the others have memory.
fn swap_beside_free() -> Fixture {
    let mut fixture = server(mib(131));
    let memory: &[(u32, Bytes)] = &[(1, gib(118))];
    fixture.process(&Work {
        pid: 2417,
        memory,
        cpu: &[(12, seconds(9)), (13, seconds(8))],
        ..Work::default()
    });
    bound(&mut fixture, 2417, PolicyMode::Bind, "1", memory);
    named(&mut fixture, 2417, "mysqld", None, Some("/system.slice/mysqld.service"));
    fixture.happened(&[("pswpout", 114_820)]);
    fixture.reclaimer(1, Duration::from_millis(6_200));
    fixture
}

/// A program that grows under a policy bind, on a node that is nearly full.
fn bound_and_growing() -> Fixture {
    let mut fixture = server(gib(3));
    let memory: &[(u32, Bytes)] = &[(1, gib(96))];
    fixture.process(&Work { pid: 3310, memory, cpu: &[(12, seconds(10))], ..Work::default() });
    bound(&mut fixture, 3310, PolicyMode::Bind, "1", memory);
    named(&mut fixture, 3310, "solver", None, None);
    let process = fixture.before.processes.iter_mut().find(|of| of.identity.pid == Pid::new(3310)).unwrap();
    let share = Arc::make_mut(process).pages.as_mut().unwrap().nodes.get_mut(&NodeId::new(1)).unwrap();
    (share.size, share.own) = (mib(97_200), Some(mib(97_200)));
    fixture
}

/// Two databases without a policy of their own.
fn databases() -> Fixture {
    let mut fixture = server(mib(131));
    let mongod: &[(u32, Bytes)] = &[(1, gib(52)), (0, gib(6))];
    fixture.process(&Work {
        pid: 900,
        memory: mongod,
        cpu: &[(12, seconds(4)), (0, seconds(4))],
        ..Work::default()
    });
    named(&mut fixture, 900, "mongod", None, Some("/system.slice/mongod.service"));
    let mysqld: &[(u32, Bytes)] = &[(1, gib(66)), (2, gib(8))];
    fixture.process(&Work {
        pid: 2417,
        memory: mysqld,
        cpu: &[(13, seconds(5)), (24, seconds(5))],
        ..Work::default()
    });
    named(&mut fixture, 2417, "mysqld", None, Some("/system.slice/mysqld.service"));
    fixture
}

/// Buffers of an RDMA benchmark on the other socket than its CPUs and its card.
fn rdma_buffers() -> Fixture {
    let mut fixture = Fixture::new("2x(12c 126G); dist=21; kernel=6.12; dev=ib:mlx5_0@0");
    let memory: &[(u32, Bytes)] = &[(1, gib(8))];
    fixture.process(&Work {
        pid: 5120,
        memory,
        cpu: &[(0, seconds(10))],
        cpus: Some("0-11"),
        ..Work::default()
    });
    bound(&mut fixture, 5120, PolicyMode::Bind, "1", memory);
    named(&mut fixture, 5120, "ib_write_bw", None, None);
    let sample = |count| InterruptSample {
        device: "ib:mlx5_0".to_owned(),
        node: Some(NodeId::new(0)),
        lines: vec![131, 132],
        by_cpu: vec![(CpuId::new(3), count), (CpuId::new(14), 3 * count)],
        ..InterruptSample::default()
    };
    (fixture.before.interrupts, fixture.now.interrupts) = (vec![sample(0)], vec![sample(24_000)]);
    fixture
}

/// A Raspberry Pi 5 with eight emulated nodes and without interleaving; mpirun binds a rank with four threads to a CPU and
/// its node.
fn board_with_ranks() -> Fixture {
    let mut fixture = Fixture::new("8x(4c 1G); arch=aarch64");
    let all: CpuSet = "0-3".parse().unwrap();
    fixture.machine.kernel = KernelRelease::new("6.12.25+rpt-rpi-2712");
    fixture.machine.settings.command_line = Some("root=/dev/mmcblk0p2 rootwait numa=fake=8".to_owned());
    fixture.machine.cpus.retain(|id, _| id.number() < 4);
    fixture.machine.possible_cpus = all.clone();
    for node in fixture.machine.nodes.values_mut() {
        node.cpus = all.clone();
    }
    fixture.machine.cpus.values_mut().for_each(|cpu| cpu.node = Some(NodeId::new(0)));
    fixture.machine.check();
    for sample in [&mut fixture.before, &mut fixture.now] {
        sample.nodes.iter_mut().for_each(|node| node.cpus = all.clone());
        sample.cpus.retain(|(id, _)| id.number() < 4);
    }
    let memory: &[(u32, Bytes)] = &[(2, mib(700))];
    let busy = [(2, Duration::from_millis(2_400)); 4];
    fixture.process(&Work { pid: 700, cpu: &[], cpus: Some("0-3"), ..Work::default() });
    named(&mut fixture, 700, "mpirun", None, None);
    fixture.process(&Work { pid: 710, memory, cpu: &busy, cpus: Some("2"), ..Work::default() });
    bound(&mut fixture, 710, PolicyMode::Bind, "2", memory);
    named(&mut fixture, 710, "xhpl", Some(700), None);
    fixture
}

/// The node of the report with 849 MiB free, with its zones and rates: nothing is short.
fn watermarks() -> Fixture {
    let mut fixture = server(mib(849));
    fixture.process(&Work {
        pid: 640,
        memory: &[(1, gib(96))],
        cpu: &[(12, seconds(10))],
        ..Work::default()
    });
    named(&mut fixture, 640, "solver", None, None);
    let allocations =
        |hit, foreign| NodeCounters { hit: Some(hit), foreign: Some(foreign), ..Default::default() };
    for node in 0..4 {
        fixture.before.nodes[node].allocations = allocations(1_000_000, 0);
        fixture.now.nodes[node].allocations = allocations(1_090_000, 0);
    }
    fixture
}

fn scenes() -> Vec<Scene> {
    let scene = |name, fixture, rules| Scene { name, fixture, rules };
    vec![
        scene("swap-beside-free", swap_beside_free(), &["swap-while-free"]),
        scene("bound-and-growing", bound_and_growing(), &["bind-too-small"]),
        scene("databases", databases(), &["node-at-watermark", "mysqld-interleave", "mongod-start"]),
        scene("rdma-buffers", rdma_buffers(), &["memory-stranded", "irq-remote"]),
        scene(
            "pi5-ranks",
            board_with_ranks(),
            &["fake-nodes-bound", "ranks-on-one-core", "fake-nodes-local"],
        ),
        scene("watermarks", watermarks(), &[]),
    ]
}

#[test]
fn the_recordings_of_the_page_are_what_is_made_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/recordings");
    let overwrite = std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite");
    for Scene { name, fixture, rules } in scenes() {
        let Fixture { machine, before, now, .. } = &fixture;
        let situation = Situation::new(machine, Some(before), now).unwrap();
        let found = Diagnosis::new(&situation, &[]).findings;
        let found: Vec<_> = found.iter().map(|finding| finding.rule).collect();
        assert_eq!(found, rules, "{name}");
        let path = folder.join(format!("{name}.nwr"));
        let header = Header::new("0.1.0", seconds(10), None);
        let header = header.with_machine_file(&machine_file::to_json(machine)).unwrap();
        if overwrite {
            let mut writer = Writer::begin(Vec::new(), &header, None).unwrap();
            for sample in [before, now] {
                writer.push(sample).unwrap();
            }
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, writer.finish().unwrap()).unwrap();
        }
        let recording = Recording::from_bytes(std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(recording.header(), &header, "{name} (SNAPSHOTS=overwrite writes it)");
        let (read, gaps) = recording.samples().unwrap();
        assert_eq!(gaps, [], "{name}");
        assert_eq!(read, [before.clone(), now.clone()], "{name} (SNAPSHOTS=overwrite writes it)");
    }
}
