//! Packages that have no number of their own.
//!
//! `physical_package_id` is -1 on ppc and riscv guests and where s390 numbers only books, and on s390 numbers may repeat
//! in each book. The kernel always gives the CPUs of a package: these sets are counted, as lscpu and hwloc do.

use std::collections::BTreeMap;

use nodewise_machine::{BookId, CpuId, CpuSet, DrawerId, Machine, PackageId};

use super::{Reader, cpus};
use crate::parse::number;

/// Files with the CPUs of a CPU's package.
pub(super) const SIBLINGS: [&str; 3] = ["core_siblings_list", "core_siblings", "package_cpus_list"];

/// Fills books and drawers, and numbers packages that the kernel does not number.
pub(super) fn read(reader: &mut Reader<'_>, machine: &mut Machine) {
    let online = machine.online_cpus();
    let unnumbered = online.iter().all(|id| machine.cpus.get(&id).is_none_or(|cpu| cpu.package.is_none()));
    if reader.is_quick() && !unnumbered {
        return;
    }
    if !reader.is_quick() {
        read_books(reader, machine, &online);
    }
    if unnumbered || repeats(machine) {
        number_by_siblings(reader, machine, &online);
    }
}

fn read_books(reader: &mut Reader<'_>, machine: &mut Machine, online: &CpuSet) {
    for id in online {
        let root = format!("{}/topology", cpus::folder(id));
        let book = reader.value(&format!("{root}/book_id"), number::number_or_unknown).flatten();
        let drawer = reader.value(&format!("{root}/drawer_id"), number::number_or_unknown).flatten();
        // Only s390 has either; one CPU speaks for all.
        if (book, drawer) == (None, None) {
            return;
        }
        if let Some(cpu) = machine.cpus.get_mut(&id) {
            cpu.book = book.map(BookId::new);
            cpu.drawer = drawer.map(DrawerId::new);
        }
    }
}

/// Whether CPUs of different books have the same package number.
fn repeats(machine: &Machine) -> bool {
    let mut books: BTreeMap<PackageId, (Option<DrawerId>, Option<BookId>)> = BTreeMap::new();
    let mut places = machine.cpus.values().filter_map(|cpu| Some((cpu.package?, (cpu.drawer, cpu.book))));
    places.any(|(package, place)| *books.entry(package).or_insert(place) != place)
}

fn number_by_siblings(reader: &mut Reader<'_>, machine: &mut Machine, online: &CpuSet) {
    let mut numbers: BTreeMap<CpuId, u32> = BTreeMap::new();
    let mut next = 0;
    for id in online {
        if numbers.contains_key(&id) {
            continue;
        }
        let Some(siblings) = reader.cpus(&format!("{}/topology", cpus::folder(id)), &SIBLINGS) else {
            continue;
        };
        let siblings = siblings.intersection(online);
        if siblings.contains(id) {
            // The first claim stays, as everywhere.
            siblings.iter().for_each(|cpu| {
                numbers.entry(cpu).or_insert(next);
            });
            next += 1;
        }
    }
    for (id, number) in numbers {
        if let Some(cpu) = machine.cpus.get_mut(&id) {
            cpu.package = Some(PackageId::new(number));
        }
    }
}
