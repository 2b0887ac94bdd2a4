//! Tables made by hand, and what a kernel was seen to make of them.

use nodewise_machine::firmware::hmat::{self, DataType, DomainAttributes, HmatFixed, Locality};
use nodewise_machine::firmware::madt::{self, LocalApic, MadtFixed};
use nodewise_machine::firmware::srat::{self, GenericDevice, Memory, ProcessorApic, SratFixed};
use nodewise_machine::firmware::{
    CedtEntry, Entry, FirmwareFinding, HmatEntry, MadtEntry, Slit, SratEntry, Subtables, Table, TableHeader,
    Tables, cedt,
};
use nodewise_machine::{AccessClass, CpuId, Machine, NodeId, NodeSet, OddityKind, Origin};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, prop_oneof, proptest};

use super::{Booted, NoteKind, Setting, boot};
use crate::release::Release;

const GIB: u64 = 1 << 30;

fn cpu(domain: u32, apic_id: u8, flags: u32) -> SratEntry {
    let [domain_low, a, b, c] = domain.to_le_bytes();
    let domain_high = [a, b, c];
    SratEntry::ProcessorApic(ProcessorApic {
        domain_low,
        apic_id,
        flags,
        sapic_eid: 0,
        domain_high,
        clock_domain: 0,
    })
}

fn memory(proximity_domain: u32, gib: std::ops::Range<u64>, flags: u32) -> SratEntry {
    SratEntry::Memory(Memory {
        proximity_domain,
        reserved1: 0,
        base_address: gib.start * GIB,
        length: (gib.end - gib.start) * GIB,
        reserved2: 0,
        flags,
        reserved3: 0,
    })
}

fn initiator(proximity_domain: u32, flags: u32) -> SratEntry {
    SratEntry::GenericInitiator(GenericDevice {
        reserved1: 0,
        device_handle_type: 1,
        proximity_domain,
        device_handle: [0; 16],
        flags,
        reserved2: 0,
    })
}

fn srat(revision: u8, bodies: impl IntoIterator<Item = SratEntry>) -> Table {
    let fixed = SratFixed { table_revision: 1, reserved: 0 };
    Table::Srat(Subtables::new(TableHeader::new(srat::SIGNATURE, revision), fixed, bodies))
}

fn window(gib: std::ops::Range<u64>) -> CedtEntry {
    CedtEntry::FixedWindow(cedt::FixedWindow {
        head: cedt::FixedWindowHead {
            reserved1: 0,
            base_hpa: gib.start * GIB,
            window_size: (gib.end - gib.start) * GIB,
            interleave_ways: 0,
            arithmetic: 0,
            reserved2: 0,
            granularity: 0,
            restrictions: 0,
            qtg_id: 0,
        },
        targets: vec![0],
    })
}

fn windows(bodies: impl IntoIterator<Item = CedtEntry>) -> Table {
    Table::Cedt(Subtables::new(TableHeader::new(cedt::SIGNATURE, 1), (), bodies))
}

fn tables(tables: impl IntoIterator<Item = Table>) -> Tables {
    Tables { tables: tables.into_iter().collect(), findings: Vec::<FirmwareFinding>::new() }
}

fn booted(list: impl IntoIterator<Item = Table>) -> Booted {
    boot(&tables(list), &Setting::default())
}

/// Domains by node, then the sentences of these kinds.
fn check(list: impl IntoIterator<Item = Table>, domains: &[u32], kind: NoteKind, notes: &[&str]) -> Booted {
    let booted = booted(list);
    let found: Vec<u32> = booted.domains.iter().map(|(_, domain)| *domain).collect();
    let told: Vec<String> =
        booted.notes.iter().filter(|note| note.kind == kind).map(ToString::to_string).collect();
    assert_eq!((found.as_slice(), told), (domains, notes.iter().map(|note| (*note).to_owned()).collect()));
    booted
}

fn distance(booted: &Booted, from: u32, to: u32) -> u32 {
    *booted.distances.get(NodeId::new(from), NodeId::new(to)).expect("both are possible")
}

#[test]
fn nodes_are_numbered_as_cpus_and_then_memory_name_their_domains() {
    let cpus = [cpu(5, 0, 1), cpu(2, 1, 1)];
    let memory = [memory(2, 0..1, 1), memory(5, 1..2, 1)];
    let orders = [[&cpus[..], &memory[..]].concat(), [&memory[..], &cpus[..]].concat()];
    for entries in orders {
        let booted = check([srat(3, entries)], &[5, 2], NoteKind::Rejected, &[]);
        assert_eq!(booted.memory(NodeId::new(0)), GIB);
        assert_eq!(booted.ranges[0].node, NodeId::new(1));
    }
}

#[test]
fn distances_are_indexed_by_domain() {
    let entries = || srat(3, [cpu(5, 0, 1), cpu(2, 1, 1), memory(2, 0..1, 1), memory(5, 1..2, 1)]);
    let mut rows = vec![vec![20; 6]; 6];
    rows.iter_mut().enumerate().for_each(|(at, row)| row[at] = 10);
    (rows[5][2], rows[2][5]) = (25, 32);
    let large = booted([entries(), Table::Slit(Slit::new(&rows))]);
    assert_eq!((distance(&large, 0, 1), distance(&large, 1, 0)), (25, 32));
    let small = Table::Slit(Slit::new(&[vec![10, 33], vec![33, 10]]));
    let small = booted([entries(), small]);
    assert_eq!((distance(&small, 0, 1), distance(&small, 0, 0)), (20, 10));
}

#[test]
fn a_slit_is_used_whole_or_not_at_all() {
    let entries = || srat(3, [cpu(0, 0, 1), memory(0, 0..1, 1), memory(1, 1..2, 1)]);
    let rejected = "the kernel rejects the table, and distances are 10 and 20";
    for (rows, why) in [
        ([vec![10, 10], vec![30, 10]], "SLIT at 0x2d: the distance from domain 0 to 1 is 10, not above 10"),
        ([vec![10, 30], vec![30, 11]], "SLIT at 0x2f: the distance of domain 1 to itself is 11, not 10"),
    ] {
        let expected = format!("{why}: {rejected}");
        let list = [entries(), Table::Slit(Slit::new(&rows))];
        let booted = check(list, &[0, 1], NoteKind::Rejected, &[&expected]);
        assert_eq!(distance(&booted, 0, 1), 20);
    }
    let legal = Table::Slit(Slit::new(&[vec![10, 255], vec![11, 10]]));
    let booted = check([entries(), legal], &[0, 1], NoteKind::Rejected, &[]);
    assert_eq!((distance(&booted, 0, 1), distance(&booted, 1, 0)), (255, 11));
}

#[test]
fn old_tables_have_domains_of_8_bits() {
    let entries = [cpu(0x101, 0, 1), memory(0x0201, 0..1, 1), memory(2, 1..2, 1)];
    check([srat(1, entries.clone())], &[1, 2], NoteKind::Rejected, &[]);
    check([srat(2, entries)], &[0x101, 0x201, 2], NoteKind::Rejected, &[]);
}

#[test]
fn an_initiator_that_is_not_enabled_hides_the_cpus_behind_it() {
    let list = |flags| srat(3, [cpu(0, 0, 1), initiator(1, flags), cpu(2, 1, 1), memory(0, 0..1, 1)]);
    let whole = check([list(1)], &[0, 1, 2], NoteKind::Ignored, &[]);
    assert_eq!(whole.initiators, NodeSet::from([1]));
    // The CPU behind it is on node 0, as the kernel has it.
    let nodes = |booted: &Booted| booted.cpus.iter().map(|cpu| cpu.node).collect::<Vec<_>>();
    let apic = |apic_id| MadtEntry::LocalApic(LocalApic { processor_uid: apic_id, apic_id, flags: 1 });
    let madt = Subtables::new(
        TableHeader::new(madt::SIGNATURE, 5),
        MadtFixed { local_apic_address: 0, flags: 0 },
        [apic(0), apic(1)],
    );
    let lost = booted([list(0), Table::Madt(madt)]);
    assert_eq!(nodes(&lost), [Some(NodeId::new(0)); 2]);
    let machine = lost.machine(Origin::Firmware("x".to_owned()));
    assert_eq!(machine.cpus_of(NodeId::new(0)).len(), 2);
    assert!(machine.oddities.iter().all(|oddity| oddity.kind != OddityKind::CpuInNoNode));
    check(
        [list(0)],
        &[0],
        NoteKind::Ignored,
        &["SRAT at 0x0: a generic initiator that is not enabled ends the kernel's reading of CPUs: 1 \
           enabled structures behind it are ignored"],
    );
}

#[test]
fn what_costs_the_kernel_the_table_is_told() {
    let refuse = |entries: Vec<SratEntry>, text: &str| {
        let booted = check([srat(3, entries)], &[], NoteKind::Rejected, &[text]);
        assert_eq!(booted.online, NodeSet::from([0]));
        assert!(!booted.is_accepted);
    };
    let good = memory(0, 0..1, 1);
    refuse(
        vec![good.clone(), memory(5000, 1..2, 1)],
        "SRAT at 0x0: domain 5000 has no room: the kernel takes 1024 nodes and domains below 1024, rejects \
         the table and has one node",
    );
    refuse(
        vec![good.clone(), SratEntry::Unknown(1, vec![0; 4])],
        "SRAT at 0x0: a structure of the wrong length: the kernel rejects the table and has one node",
    );
    refuse(vec![memory(0, 0..1, 0)], "SRAT: no memory is enabled, so there is one node");
    refuse(
        vec![memory(0, 0..2, 1), memory(1, 1..3, 1)],
        "SRAT: memory of nodes 0 and 1 overlaps at 0x40000000: the kernel rejects the table and has one node",
    );
    let mut table = Subtables::new(
        TableHeader::new(srat::SIGNATURE, 3),
        SratFixed { table_revision: 1, reserved: 0 },
        [good],
    );
    table.rest = vec![1, 0, 0];
    check(
        [Table::Srat(table)],
        &[],
        NoteKind::Rejected,
        &["SRAT: a structure of length 0: the kernel rejects the table and has one node"],
    );
}

#[test]
fn a_processor_with_more_bytes_than_it_has_fields_costs_the_table() {
    let entry = |extra| Entry { extra, ..Entry::new(cpu(0, 0, 1)) };
    let table = |extra| {
        let mut table = Subtables::new(
            TableHeader::new(srat::SIGNATURE, 3),
            SratFixed { table_revision: 1, reserved: 0 },
            [memory(0, 0..1, 1)],
        );
        table.entries.push(entry(extra));
        booted([Table::Srat(table)]).is_accepted
    };
    assert_eq!((table(vec![]), table(vec![0])), (true, false));
}

// Found by the fuzz target.
#[test]
fn a_range_without_a_byte_adds_no_memory_now_or_later() {
    let empty = srat(3, [cpu(0, 0, 1), memory(0, 0..1, 1), memory(1, 0..0, 1 | srat::HOT_PLUGGABLE)]);
    let told = [
        "SRAT at 0x0: a range of memory without a byte: all it does is to make node 1 known",
        "SRAT: node 1 of the table has neither CPUs nor RAM, and stays offline",
    ];
    let booted = check([empty], &[0, 1], NoteKind::Unusual, &told);
    assert_eq!(booted.possible, NodeSet::from([0, 1]));
}

#[test]
fn windows_that_meet_no_memory_become_nodes() {
    let entries = || {
        srat(
            3,
            [cpu(0, 0, 1), memory(0, 0..1, 1), memory(1, 1..2, 1), memory(1, 8..12, 1 | srat::HOT_PLUGGABLE)],
        )
    };
    let slit = || Table::Slit(Slit::new(&[vec![10, 30, 40], vec![30, 10, 50], vec![40, 50, 10]]));
    let list = [entries(), slit(), windows([window(16..20), window(20..24)])];
    let both = check(list, &[0, 1, 2, 3], NoteKind::Rejected, &[]);
    assert_eq!((both.possible, both.online), (NodeSet::range(n(0), n(3)), NodeSet::from([0, 1])));
    // The SLIT has a third domain, but the node was made after the table was read.
    let both = booted([entries(), slit(), windows([window(16..20)])]);
    assert_eq!((distance(&both, 0, 1), distance(&both, 0, 2)), (30, 20));
    let half = booted([entries(), windows([window(10..20)])]);
    assert_eq!(half.possible, NodeSet::from([0, 1]));
    let behind = half.reserved.iter().map(|range| (range.start / GIB, range.end / GIB, range.node.number()));
    assert_eq!(behind.collect::<Vec<_>>(), [(8, 20, 1)]);
}

#[test]
fn since_7_0_a_window_does_not_fill_another() {
    let list = [srat(3, [cpu(0, 0, 1), memory(0, 0..1, 1)]), windows([window(16..20), window(18..24)])];
    let tables = tables(list);
    let reserved = |release| {
        let booted = boot(&tables, &Setting { release, ..Setting::default() });
        let reserved =
            booted.reserved.iter().map(|range| (range.start / GIB, range.end / GIB, range.node.number()));
        reserved.collect::<Vec<_>>()
    };
    assert_eq!(reserved(Release::new(6, 18)), [(16, 24, 1)]);
    assert_eq!(reserved(Release::new(7, 0)), [(16, 20, 1), (18, 24, 2)]);
}

fn n(number: u32) -> NodeId {
    NodeId::new(number)
}

#[test]
fn where_ram_is_told_ranges_are_fitted_to_it() {
    let entries = [cpu(0, 0, 1), memory(0, 0..4, 1), memory(1, 4..8, 1), memory(2, 8..9, 1)];
    let setting = Setting { ram: Some(vec![(0, 3 * GIB), (4 * GIB, 5 * GIB)]), ..Setting::default() };
    let booted = boot(&tables([srat(3, entries)]), &setting);
    assert_eq!(booted.online, NodeSet::from([0, 1]));
    assert_eq!((booted.memory(n(0)), booted.memory(n(1))), (3 * GIB, GIB));
}

#[test]
fn cpus_are_numbered_by_the_madt() {
    let apic =
        |processor_uid, apic_id, flags| MadtEntry::LocalApic(LocalApic { processor_uid, apic_id, flags });
    let fixed = MadtFixed { local_apic_address: 0, flags: 0 };
    let bodies = [apic(0, 4, 1), apic(1, 9, 0), apic(2, 0, 1), apic(3, 7, 1)];
    let madt = Table::Madt(Subtables::new(TableHeader::new(madt::SIGNATURE, 3), fixed, bodies));
    let entries = srat(3, [cpu(0, 0, 1), cpu(1, 4, 1), memory(0, 0..1, 1), memory(1, 1..2, 1)]);
    let booted = booted([entries, madt]);
    let nodes: Vec<(u32, Option<u32>)> =
        booted.cpus.iter().map(|cpu| (cpu.id.number(), cpu.node.map(NodeId::number))).collect();
    // The last has no structure: as the kernel has it on AMD processors.
    assert_eq!(nodes, [(0, Some(1)), (1, Some(0)), (2, Some(0))]);
}

fn attached(initiator_domain: u32, memory_domain: u32) -> HmatEntry {
    HmatEntry::DomainAttributes(DomainAttributes {
        flags: hmat::INITIATOR_VALID,
        reserved1: 0,
        initiator_domain,
        memory_domain,
        reserved2: 0,
        reserved3: 0,
        reserved4: 0,
    })
}

fn hmat(bodies: impl IntoIterator<Item = HmatEntry>) -> Table {
    Table::Hmat(Subtables::new(TableHeader::new(hmat::SIGNATURE, 2), HmatFixed { reserved: 0 }, bodies))
}

/// Four nodes, the last two without CPUs, and costs between them.
fn with_hmat(bodies: impl IntoIterator<Item = HmatEntry>) -> Machine {
    with_hmat_in(Release::REFERENCE, bodies)
}

fn with_hmat_in(release: Release, bodies: impl IntoIterator<Item = HmatEntry>) -> Machine {
    let memory = (0..4).map(|node| memory(node, u64::from(node)..u64::from(node) + 1, 1));
    let entries = srat(3, [cpu(0, 0, 1), cpu(1, 1, 1)].into_iter().chain(memory));
    let tables = tables([entries, hmat(bodies)]);
    boot(&tables, &Setting { release, ..Setting::default() }).machine(Origin::Firmware("x".to_owned()))
}

/// Recorded on 6.12: latencies 100/150/300/400 ns, bandwidths 100/50/20/10 GB/s.
fn costs() -> [HmatEntry; 2] {
    let domains = || (vec![0, 1], vec![0, 1, 2, 3]);
    let latency = vec![100, 150, 300, 400, 150, 100, 400, 300];
    let bandwidth = vec![100, 50, 20, 10, 50, 100, 10, 20];
    [
        HmatEntry::Locality(Locality::new(DataType::AccessLatency, 1000, domains(), latency)),
        HmatEntry::Locality(Locality::new(DataType::AccessBandwidth, 1000, domains(), bandwidth)),
    ]
}

#[test]
fn the_best_initiators_are_found_where_none_is_attached() {
    let machine = with_hmat(costs());
    let access = machine.access(n(2), AccessClass::Any).unwrap();
    assert_eq!(access.initiators, NodeSet::from([0]));
    assert_eq!((access.read_latency_ns, access.write_bandwidth_mb_per_s), (Some(300), Some(20_000)));
    let tiers: Vec<(u32, String)> =
        machine.tiers.iter().map(|tier| (tier.id.number(), tier.nodes.to_string())).collect();
    assert_eq!(tiers, [(4, "0-1".to_owned()), (67, "2-3".to_owned())]);
}

#[test]
fn before_6_7_all_memory_of_the_tables_is_in_one_tier() {
    for (release, tiers) in [(Release::new(6, 6), 1), (Release::new(6, 7), 2)] {
        assert_eq!(with_hmat_in(release, costs()).tiers.len(), tiers, "{release}");
    }
}

#[test]
fn the_attached_initiator_counts_before_the_best() {
    let machine = with_hmat([attached(1, 2)].into_iter().chain(costs()));
    let access = machine.access(n(2), AccessClass::Any).unwrap();
    assert_eq!(access.initiators, NodeSet::from([1]));
    assert_eq!(access.read_latency_ns, Some(400));
}

#[test]
fn an_hmat_of_unknown_domains_is_rejected() {
    for (entry, domain) in [(attached(9, 2), "initiator domain 9"), (attached(0, 9), "memory domain 9")] {
        let machine = with_hmat([entry].into_iter().chain(costs()));
        assert_eq!(machine.accesses, []);
        assert!(machine.oddities.iter().any(|oddity| oddity.text.contains(domain)), "{domain}");
    }
}

#[test]
fn nothing_is_made_up_without_tables() {
    let machine = booted([]).machine(Origin::Firmware("x".to_owned()));
    assert_eq!(machine.node_ids(), NodeSet::from([0]));
    assert_eq!((machine.nodes[&n(0)].memory_total(), machine.cpus.get(&CpuId::new(0))), (None, None));
}

fn any_entry() -> impl Strategy<Value = SratEntry> {
    let flags = || 0u32..8;
    prop_oneof![
        (0u32..6, any::<u8>(), flags()).prop_map(|(domain, apic, flags)| cpu(domain, apic, flags)),
        (any::<u32>(), flags()).prop_map(|(domain, flags)| initiator(domain, flags)),
        (0u32..6, 0u64..64, 0u64..16, flags()).prop_map(|(domain, start, size, flags)| memory(
            domain,
            start..start + size,
            flags
        )),
        (any::<u32>(), any::<u64>(), any::<u64>()).prop_map(|(proximity_domain, base_address, length)| {
            SratEntry::Memory(Memory {
                proximity_domain,
                reserved1: 0,
                base_address,
                length,
                reserved2: 0,
                flags: 1,
                reserved3: 0,
            })
        }),
    ]
}

proptest! {
    #[test]
    fn any_tables_give_a_machine_that_holds_together(
        entries in vec(any_entry(), 0..12),
        spans in vec((0u64..64, 0u64..8), 0..4),
        cells in vec(any::<u8>(), 16),
        ram in proptest::option::of(vec((0u64..64, 0u64..32), 0..4)),
        is_new in any::<bool>(),
    ) {
        let spans = spans.into_iter().map(|(start, size)| window(start..start + size));
        let rows: Vec<Vec<u8>> = cells.chunks(4).map(<[u8]>::to_vec).collect();
        let ram = ram.map(|ram| {
            ram.into_iter().map(|(start, size)| (start * GIB, (start + size) * GIB)).collect()
        });
        let tables = tables([srat(3, entries), windows(spans), Table::Slit(Slit::new(&rows))]);
        let release = if is_new { Release::new(7, 0) } else { Release::REFERENCE };
        let booted = boot(&tables, &Setting { ram, release });
        prop_assert!(!booted.online.is_empty());
        prop_assert!(booted.online.is_subset(&booted.possible));
        for range in &booted.ranges {
            prop_assert!(range.start < range.end && booted.possible.contains(range.node));
        }
        let total: u64 = booted.online.iter().map(|node| booted.memory(node)).sum();
        let ram: u64 = booted.ram.iter().map(|(start, end)| end - start).sum();
        prop_assert!(total <= ram);
        let machine = booted.machine(Origin::Firmware("x".to_owned()));
        prop_assert!(machine.node_ids() == booted.online);
        for (from, to, distance) in machine.distances.iter() {
            prop_assert!((from == to) == (*distance == 10) && *distance >= 10);
        }
    }
}
