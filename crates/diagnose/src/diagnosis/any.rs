//! Samples that no kernel would write: rules judge them without a panic, and say nothing that a terminal would obey.

use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::mapping::MappingKind;
use nodewise_machine::printable::printable;
use nodewise_machine::{Bytes, CpuId, KernelRelease, MemPolicy, NodeCounters, NodeId, PolicyMode};
use nodewise_source::sample::{InterruptSample, PoolSample, QueueSample};
use proptest::prelude::*;

use super::Diagnosis;
use crate::rules::irqbalance_against_you;
use crate::situation::Situation;
use crate::situation::fixture::hostile::texts;
use crate::situation::fixture::{Fixture, Work, counters, nodes};
use crate::thresholds::{self, Thresholds};

const FIELDS: [&str; 6] =
    ["MemTotal", "MemFree", "Active(file)", "Inactive(file)", "SReclaimable", "SUnreclaim"];
const EVENTS: [&str; 12] = [
    "pswpout",
    "zone_reclaim_failed",
    "zone_reclaim_success",
    "compact_stall",
    "numa_hint_faults",
    "numa_pages_migrated",
    "pgpromote_success",
    "pgdemote_kswapd",
    "oom_kill",
    "allocstall_normal",
    "pgalloc_normal",
    "numa_pte_updates",
];
const MACHINES: [&str; 5] =
    ["4x(2c 16G)", "2x(2c 16G) (32G tier=22)", "1x(2c 16G)", "2x(2c 16G) (2c)", "2x(2x(2c 16G)); dist=20"];

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..3, 0u64..1 << 34, Just(u64::MAX), any::<u64>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_sample_makes_a_rule_panic_or_write_control_bytes(
        machine in 0..MACHINES.len(),
        fields in prop::collection::vec((0u32..4, 0..FIELDS.len(), prop::option::of(number())), 0..12),
        events in prop::collection::vec((number(), number()), EVENTS.len()),
        marks in prop::option::of(number()),
        pools in prop::collection::vec((number(), prop::option::of(number())), 4),
        allocations in prop::collection::vec(number(), 4),
        processes in prop::collection::vec((prop::collection::vec((0u32..5, number()), 0..3), 0u32..8, number()), 0..4),
        policy in 0..PolicyMode::ALL.len(),
        kind in 0..MappingKind::ALL.len(),
        name in ".{0,15}",
        line in "(numa=|hugepages=|hugepagesz=|numa_policy=)?.{0,12}( .{0,12})?",
        settings in (any::<u32>(), any::<u32>(), any::<bool>()),
        resident in prop::collection::vec(prop::option::of(number()), 2),
        replaced in prop::collection::vec((0..thresholds::ALL.len(), 0.0..=1.0f64), 0..4),
    ) {
        let mut fixture = Fixture::new(MACHINES[machine]);
        let count = fixture.machine.nodes.len() as u32;
        for (node, field, size) in fields {
            let (node, field) = (node % count, FIELDS[field]);
            fixture.meminfo(node, field, Bytes::new(size.unwrap_or(0)));
            if size.is_none() {
                fixture.now.nodes[node as usize].memory.retain(|of| of.name != field);
            }
        }
        let pairs = |at: usize| EVENTS.iter().zip(&events).map(|(name, of)| (*name, if at == 0 { of.0 } else { of.1 })).collect::<Vec<_>>();
        fixture.before.events = counters(&pairs(0));
        fixture.now.events = counters(&pairs(1));
        for ((node, pool), hit) in fixture.now.nodes.iter_mut().zip(&pools).zip(&allocations) {
            node.high_watermark = marks.map(Bytes::new);
            node.pools = vec![PoolSample { page_size: Bytes::new(pool.0), total: pool.0, free: pool.1, surplus: None }];
            node.allocations = NodeCounters { hit: Some(*hit), foreign: pool.1, ..NodeCounters::default() };
        }
        let queue = QueueSample {
            name: format!("{}{line}", if settings.2 { "rx-" } else { "tx-" }),
            cpus: Some([CpuId::new(settings.0 % 16)].into_iter().collect()),
            flows: marks,
        };
        let device = |count: u64| InterruptSample {
            device: format!("net:{name}"),
            node: Some(NodeId::new(settings.1 % 5)),
            lines: vec![settings.1],
            by_cpu: vec![(CpuId::new(settings.0 % 16), count)],
            queues: vec![queue.clone()],
            allowed: vec![(settings.1, [CpuId::new((count % 16) as u32)].into_iter().collect())],
        };
        fixture.before.interrupts = vec![device(events[0].0)];
        fixture.now.interrupts = vec![device(events[0].1)];
        fixture.machine.settings.command_line = Some(line);
        fixture.machine.settings.numa_balancing = Some(settings.0);
        fixture.machine.settings.zone_reclaim_mode = Some(settings.1);
        fixture.machine.settings.demotion_enabled = Some(settings.2);
        fixture.machine.settings.transparent_hugepage_defrag = Some("always".to_owned());
        fixture.machine.kernel = KernelRelease::new("6.12.1");
        for (at, (memory, cpu, used)) in processes.iter().enumerate() {
            let pid = 100 * (at as u32 + 1);
            let memory: Vec<(u32, Bytes)> = memory.iter().map(|(node, size)| (*node, Bytes::new(*size))).collect();
            let cpu = [(*cpu, Duration::from_millis(*used % (1 << 40)))];
            fixture.process(&Work { pid, memory: &memory, cpu: &cpu, ..Work::default() });
            let policy = MemPolicy::new(PolicyMode::ALL[policy], nodes("0-1"));
            fixture.mappings(pid, &[(MappingKind::ALL[kind], policy, &memory)]);
        }
        for (sample, size) in [&mut fixture.before, &mut fixture.now].into_iter().zip(resident) {
            for process in sample.processes.iter_mut().filter(|process| !process.kernel_thread) {
                let process = Arc::make_mut(process);
                process.resident = size.map(Bytes::new);
                process.name = if settings.2 { irqbalance_against_you::PROGRAM.into() } else { name.as_str().into() };
            }
        }
        let mut limits = Thresholds::default();
        for (at, part) in replaced {
            let of = thresholds::ALL[at];
            limits.set(of, of.least + part * (of.most - of.least));
        }
        for before in [Some(&fixture.before), None] {
            let situation = Situation::new(&fixture.machine, before, &fixture.now).unwrap().with_thresholds(limits.clone());
            let found = Diagnosis::new(&situation, &[]);
            for finding in &found.findings {
                for text in texts(finding) {
                    let shown = printable(text);
                    prop_assert_eq!(shown.as_ref(), text);
                }
            }
        }
    }
}
