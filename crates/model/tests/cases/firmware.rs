//! Firmware tables and emulation.

use std::collections::BTreeMap;

use nodewise_machine::firmware::srat::{self, Memory, ProcessorApic, SratFixed};
use nodewise_machine::firmware::{Slit, Srat, SratEntry, Table, TableHeader, Tables};
use nodewise_machine::{NodeSet, spec};
use nodewise_model::fake::{Fake, pieces};
use nodewise_model::firmware::{Booted, Setting, boot};
use nodewise_model::ram::{Architecture, Range};
use nodewise_model::tier::{Performance, abstract_distance, best_initiators, demotion_targets, tier};
use nodewise_model::{BuiltAt, FallbackOrders};

use crate::server::n;

/// A CPU of a domain, by an APIC of the same number.
fn cpu(domain: u8) -> SratEntry {
    SratEntry::ProcessorApic(ProcessorApic {
        domain_low: domain,
        apic_id: domain,
        flags: srat::ENABLED,
        sapic_eid: 0,
        domain_high: [0; 3],
        clock_domain: 0,
    })
}

/// A GiB of memory of a domain.
fn memory(domain: u32, at_gib: u64) -> SratEntry {
    SratEntry::Memory(Memory {
        proximity_domain: domain,
        reserved1: 0,
        base_address: at_gib << 30,
        length: 1 << 30,
        reserved2: 0,
        flags: srat::ENABLED,
        reserved3: 0,
    })
}

#[test]
fn case_40_srat_numbering() {
    let booted = |entries: [SratEntry; 4], slit: &[Vec<u8>]| {
        let fixed = SratFixed { table_revision: 1, reserved: 0 };
        let srat = Table::Srat(Srat::new(TableHeader::new(srat::SIGNATURE, 3), fixed, entries));
        let tables = vec![srat, Table::Slit(Slit::new(slit))];
        boot(&Tables { tables, findings: Vec::new() }, &Setting::default())
    };
    let distance = |booted: &Booted, from, to| booted.distances.get(n(from), n(to)).copied();
    let mut slit = vec![vec![20; 6]; 6];
    for (at, row) in slit.iter_mut().enumerate() {
        row[at] = 10;
    }
    (slit[5][2], slit[2][5]) = (25, 32);
    let cpus_first = [cpu(5), cpu(2), memory(2, 0), memory(5, 1)];
    let memory_first = [memory(2, 0), memory(5, 1), cpu(5), cpu(2)];
    for entries in [cpus_first.clone(), memory_first] {
        let booted = booted(entries, &slit);
        assert_eq!(booted.domains, [(n(0), 5), (n(1), 2)]);
        assert_eq!((distance(&booted, 0, 1), distance(&booted, 1, 0)), (Some(25), Some(32)));
    }
    let small = booted(cpus_first, &[vec![10, 33], vec![33, 10]]);
    assert_eq!((distance(&small, 0, 1), distance(&small, 0, 0)), (Some(20), Some(10)));
}

fn speed(latency: u32, bandwidth: u32) -> Performance {
    Performance {
        read_latency_ns: latency,
        write_latency_ns: latency,
        read_bandwidth_mb_per_s: bandwidth,
        write_bandwidth_mb_per_s: bandwidth,
    }
}

/// Recorded on 6.12 only. Two nodes of DRAM with a CPU each, and a slow node behind each.
#[test]
fn case_42_hmat() {
    let dram = speed(100, 100_000);
    let slow = abstract_distance(speed(300, 20_000), dram);
    assert_eq!((slow, slow.map(tier)), (Some(8640), Some(67)));
    let narrow = abstract_distance(speed(100, 70_000), dram);
    assert_eq!((narrow, narrow.map(tier)), (Some(822), Some(6)));
    let reach = BTreeMap::from([(n(0), speed(300, 20_000)), (n(1), speed(400, 10_000))]);
    assert_eq!(best_initiators(&reach), NodeSet::from([0]));
    let machine =
        spec::machine("2x(1c 1G) 2x(1G); dist=10,21,17,28/21,10,28,17/17,28,10,28/28,17,28,10").unwrap();
    let orders = FallbackOrders::from_machine(&machine, BuiltAt::RunTime);
    let tiers = BTreeMap::from([(n(0), 4), (n(1), 4), (n(2), 67), (n(3), 67)]);
    let targets = demotion_targets(&tiers, |from, to| machine.distance(from, to).unwrap_or(20), &orders);
    assert_eq!(targets[&n(0)], NodeSet::from([2]));
    assert_eq!(targets[&n(1)], NodeSet::from([3]));
    assert_eq!(targets[&n(2)], NodeSet::new());
}

/// Recorded on 6.12 only: one node of 2 GiB.
#[test]
fn case_43_fake_1node() {
    let range = |start, end| Range { start, end, node: n(0) };
    let ram = [range(0x1000, 0x9f000), range(0x10_0000, 0x7ffe_0000)];
    let blocks = [range(0x1000, 0x7ffe_0000)];
    let check = |text: &str, expected: Option<&[u64]>| {
        let fake: Fake = text.parse().unwrap();
        let pieces = pieces(fake.form, Architecture::X86, 4096, &ram, &blocks);
        let bounds = pieces.map(|pieces| {
            assert_eq!(pieces[0].start, 0x1000);
            for (at, pair) in pieces.windows(2).enumerate() {
                assert_eq!((pair[0].end, pair[0].node), (pair[1].start, n(at as u32)));
            }
            pieces.iter().map(|piece| piece.end).collect::<Vec<u64>>()
        });
        assert_eq!(bounds.as_deref(), expected, "{text}");
    };
    const END: u64 = 0x7ffe_0000;
    check("4", Some(&[536_875_008, 1_073_745_920, 1_610_616_832, END]));
    check("3", Some(&[738_201_600, END]));
    check("7", Some(&[335_548_416, 637_538_304, 939_528_192, 1_241_518_080, 1_543_507_968, END]));
    check("1G", Some(&[END]));
    check("512M", Some(&[570_429_440, 1_107_300_352, END]));
    check("4U", Some(&[536_875_008, 1_073_745_920, 1_610_616_832, END]));
    check("100", None);
}
