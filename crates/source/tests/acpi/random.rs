//! Tables of every kind, drawn.

use nodewise_machine::firmware::hmat::{
    DomainAttributes, HmatFixed, Locality, LocalityHead, MemorySideCache, MemorySideCacheHead,
};
use nodewise_machine::firmware::layout::Layout;
use nodewise_machine::firmware::msct::MsctFixed;
use nodewise_machine::firmware::srat::SratFixed;
use nodewise_machine::firmware::{
    CedtEntry, Entries, Entry, HmatEntry, MsctEntry, Slit, SratEntry, Subtables, Table, TableHeader, cedt,
    hmat, msct, slit, srat,
};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};

/// A table in which nothing is wrong.
pub fn table() -> impl Strategy<Value = Table> {
    prop_oneof![srat(), slit(), hmat(), cedt(), msct()]
}

/// A table as if it had been made to be written: without offsets, length and checksum.
pub fn without_places(mut table: Table) -> Table {
    match &mut table {
        Table::Srat(table) => forget(table),
        Table::Hmat(table) => forget(table),
        Table::Cedt(table) => forget(table),
        Table::Msct(table) => forget(table),
        Table::Madt(table) => forget(table),
        Table::Slit(table) => (table.header.length, table.header.checksum) = (0, 0),
        Table::Other(table) => (table.header.length, table.header.checksum) = (0, 0),
    }
    table
}

fn forget<H, E>(table: &mut Subtables<H, E>) {
    (table.header.length, table.header.checksum) = (0, 0);
    table.entries.iter_mut().for_each(|entry: &mut Entry<E>| entry.offset = 0);
}

fn header(signature: [u8; 4], revision: u8) -> TableHeader {
    TableHeader::new(signature, revision)
}

/// A structure of any bytes.
fn structure<T: Layout + std::fmt::Debug>(width: usize) -> impl Strategy<Value = T> {
    vec(any::<u8>(), width).prop_map(|bytes| T::take(&mut &bytes[..]).unwrap())
}

fn subtables<H: Layout, E: Entries>(header: TableHeader, fixed: H, bodies: Vec<E>) -> Subtables<H, E> {
    Subtables::new(header, fixed, bodies)
}

pub fn srat() -> impl Strategy<Value = Table> {
    let entry = prop_oneof![
        structure(srat::ProcessorApic::WIDTH).prop_map(SratEntry::ProcessorApic),
        memory().prop_map(SratEntry::Memory),
        structure(srat::ProcessorX2Apic::WIDTH).prop_map(SratEntry::ProcessorX2Apic),
        structure(srat::Gicc::WIDTH).prop_map(SratEntry::Gicc),
        structure(srat::GicIts::WIDTH).prop_map(SratEntry::GicIts),
        device().prop_map(SratEntry::GenericInitiator),
        device().prop_map(SratEntry::GenericPort),
        structure(srat::Rintc::WIDTH).prop_map(SratEntry::Rintc),
    ];
    (any::<u32>(), any::<u64>(), vec(entry, 0..12)).prop_map(|(table_revision, reserved, bodies)| {
        let fixed = SratFixed { table_revision, reserved };
        Table::Srat(subtables(header(srat::SIGNATURE, 3), fixed, bodies))
    })
}

fn memory() -> impl Strategy<Value = srat::Memory> {
    structure::<srat::Memory>(srat::Memory::WIDTH).prop_map(|memory| srat::Memory {
        length: memory.length.min(u64::MAX - memory.base_address),
        ..memory
    })
}

fn device() -> impl Strategy<Value = srat::GenericDevice> {
    structure::<srat::GenericDevice>(srat::GenericDevice::WIDTH).prop_map(|device| srat::GenericDevice {
        device_handle_type: device.device_handle_type % 2,
        ..device
    })
}

pub fn slit() -> impl Strategy<Value = Table> {
    let rows = (0usize..9).prop_flat_map(|n| vec(vec(any::<u8>(), n), n));
    rows.prop_map(|rows| {
        let table = Slit::new(&rows);
        Table::Slit(Slit { header: header(slit::SIGNATURE, 1), ..table })
    })
}

pub fn hmat() -> impl Strategy<Value = Table> {
    let entry = prop_oneof![
        structure::<DomainAttributes>(DomainAttributes::WIDTH).prop_map(HmatEntry::DomainAttributes),
        locality().prop_map(HmatEntry::Locality),
        cache().prop_map(HmatEntry::MemorySideCache),
    ];
    (any::<u32>(), vec((any::<u16>(), entry), 0..6)).prop_map(|(reserved, bodies)| {
        let entries = bodies.into_iter().map(|(reserved, body)| Entry { reserved, ..Entry::new(body) });
        let header = header(hmat::SIGNATURE, 2);
        Table::Hmat(Subtables {
            header,
            fixed: HmatFixed { reserved },
            entries: entries.collect(),
            rest: Vec::new(),
        })
    })
}

fn locality() -> impl Strategy<Value = Locality> {
    let domains = || vec(any::<u32>(), 0..5);
    (structure::<LocalityHead>(LocalityHead::WIDTH), domains(), domains())
        .prop_flat_map(|(head, initiators, targets)| {
            let cells = vec(any::<u16>(), initiators.len() * targets.len());
            cells.prop_map(move |entries| (head.clone(), initiators.clone(), targets.clone(), entries))
        })
        .prop_map(|(head, initiators, targets, entries)| {
            let head = LocalityHead {
                data_type: head.data_type % 6,
                initiators: initiators.len() as u32,
                targets: targets.len() as u32,
                base_unit: head.base_unit.max(1),
                ..head
            };
            Locality { head, initiators, targets, entries }
        })
}

fn cache() -> impl Strategy<Value = MemorySideCache> {
    let head = structure::<MemorySideCacheHead>(MemorySideCacheHead::WIDTH);
    (head, vec(any::<u16>(), 0..4)).prop_map(|(head, handles)| MemorySideCache {
        head: MemorySideCacheHead { handles: handles.len() as u16, ..head },
        handles,
    })
}

pub fn cedt() -> impl Strategy<Value = Table> {
    let entry = prop_oneof![
        structure::<cedt::HostBridge>(cedt::HostBridge::WIDTH).prop_map(CedtEntry::HostBridge),
        window().prop_map(CedtEntry::FixedWindow),
        math().prop_map(CedtEntry::InterleaveMath),
        structure::<cedt::DownstreamPort>(cedt::DownstreamPort::WIDTH).prop_map(CedtEntry::DownstreamPort),
    ];
    vec((any::<u8>(), entry), 0..6).prop_map(|bodies| {
        let entry =
            |(reserved, body): (u8, CedtEntry)| Entry { reserved: reserved.into(), ..Entry::new(body) };
        let entries = bodies.into_iter().map(entry).collect();
        Table::Cedt(Subtables { header: header(cedt::SIGNATURE, 1), fixed: (), entries, rest: Vec::new() })
    })
}

fn window() -> impl Strategy<Value = cedt::FixedWindow> {
    let codes = prop_oneof![0u8..5, 8u8..11];
    (structure::<cedt::FixedWindowHead>(cedt::FixedWindowHead::WIDTH), codes, vec(any::<u32>(), 16)).prop_map(
        |(head, interleave_ways, mut targets)| {
            let window_size = head.window_size.min(u64::MAX - head.base_hpa);
            let head = cedt::FixedWindowHead { interleave_ways, window_size, ..head };
            let mut window = cedt::FixedWindow { head, targets: Vec::new() };
            targets.truncate(window.ways().unwrap().into());
            window.targets = targets;
            window
        },
    )
}

fn math() -> impl Strategy<Value = cedt::InterleaveMath> {
    let head = structure::<cedt::InterleaveMathHead>(cedt::InterleaveMathHead::WIDTH);
    (head, vec(any::<u64>(), 0..4)).prop_map(|(head, bitmaps)| cedt::InterleaveMath {
        head: cedt::InterleaveMathHead { bitmaps: bitmaps.len() as u8, ..head },
        bitmaps,
    })
}

pub fn msct() -> impl Strategy<Value = Table> {
    let fixed = (any::<u32>(), any::<u32>(), any::<u64>()).prop_map(
        |(max_proximity_domains, max_clock_domains, max_physical_address)| MsctFixed {
            proximity_offset: (TableHeader::WIDTH + MsctFixed::WIDTH) as u32,
            max_proximity_domains,
            max_clock_domains,
            max_physical_address,
        },
    );
    let domains = structure::<msct::DomainMaximum>(msct::DomainMaximum::WIDTH).prop_map(|domains| {
        let (first, last) = (domains.first.min(domains.last), domains.first.max(domains.last));
        MsctEntry::DomainMaximum(msct::DomainMaximum { first, last, ..domains })
    });
    (fixed, vec(domains, 0..5))
        .prop_map(|(fixed, bodies)| Table::Msct(subtables(header(msct::SIGNATURE, 1), fixed, bodies)))
}
