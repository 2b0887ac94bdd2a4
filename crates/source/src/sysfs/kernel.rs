//! Which kernel, which architecture, which page size.

use nodewise_machine::printable::{printable, quote};
use nodewise_machine::{Bytes, KernelRelease, Machine, OddityKind, Product};

use super::Reader;
use crate::parse::nofile_info::{self, NoFileInfo};
use crate::parse::{cpu_architecture, meminfo};
use crate::smbios::slots::known;

const CPUINFO: &str = "/proc/cpuinfo";
const MEMINFO: &str = "/proc/meminfo";
const NOFILE_INFO: &str = "/proc/hwloc-nofile-info";
const DMI: &str = "/sys/class/dmi/id";
const VERSION: &str = "/proc/version";

/// Fills architecture, kernel, page size, model and firmware, the time of a capture and the memory of the whole machine.
pub(super) fn read(reader: &mut Reader<'_>, machine: &mut Machine) {
    if !reader.wants_only_nodes() {
        machine.system_memory = reader.value(MEMINFO, meminfo::system_total).flatten();
        machine.swap_free = reader.value(MEMINFO, meminfo::system_swap_free).flatten();
    }
    if !reader.is_quick() {
        machine.product = product(reader);
    }
    if reader.tree.is_live() {
        let names = rustix::system::uname();
        machine.architecture = Some(printable(&names.machine().to_string_lossy()).into_owned());
        machine.kernel = KernelRelease::new(&names.release().to_string_lossy());
        machine.page_size = Some(Bytes::new(rustix::param::page_size() as u64));
        return;
    }
    let info: NoFileInfo = reader.parsed(NOFILE_INFO, nofile_info::parse).unwrap_or_default();
    // Linux 6.1 has a file for the architecture.
    let architecture = reader.text("/proc/sys/kernel/arch", |text| text.trim().to_owned());
    let architecture =
        architecture.or_else(|| info.architecture.clone()).map(|text| printable(&text).into_owned());
    machine.architecture = architecture
        .or_else(|| reader.text(CPUINFO, cpu_architecture::parse).flatten().map(ToOwned::to_owned));
    machine.page_size = info.page_size;
    machine.read_at = info.captured_at;
    machine.kernel = release(reader, "/proc/sys/kernel/osrelease", |text| Some(text))
        .or_else(|| release(reader, VERSION, release_of_version))
        .or_else(|| {
            let text = info.release.clone()?;
            let release = KernelRelease::new(&printable(&text));
            if release.is_none() {
                not_a_release(reader, NOFILE_INFO, &text);
            }
            release
        });
    compare(reader, machine, &info);
}

/// The model of the machine and its firmware. What a maker never filled in is not known; any bytes are allowed in
/// these texts, so that none of them is a fault.
fn product(reader: &Reader<'_>) -> Product {
    let text = |name: &str| {
        let text = reader.tree.read_text(&format!("{DMI}/{name}")).ok().flatten()?;
        known(&text).map(|text| printable(&text).into_owned())
    };
    Product {
        vendor: text("sys_vendor"),
        name: text("product_name"),
        firmware_vendor: text("bios_vendor"),
        firmware_version: text("bios_version"),
        firmware_date: text("bios_date"),
    }
}

/// Several files of a capture say which kernel it is, and on which architecture.
fn compare(reader: &mut Reader<'_>, machine: &Machine, info: &NoFileInfo) {
    let kernel = machine.kernel.as_ref().map(KernelRelease::text);
    let version = release(reader, VERSION, release_of_version);
    let said = [
        (VERSION, version.as_ref().map(KernelRelease::text), kernel),
        (NOFILE_INFO, info.release.as_deref(), kernel),
        (NOFILE_INFO, info.architecture.as_deref(), machine.architecture.as_deref()),
    ];
    for (path, says, known) in said {
        if let Some((says, known)) = says.zip(known).filter(|(says, known)| says != known) {
            let text = format!("it says {}, but other files say {}", quote(says), quote(known));
            reader.note_in(OddityKind::Disagreement, path, text);
        }
    }
}

/// The release in the kernel's own line about itself.
fn release_of_version(text: &str) -> Option<&str> {
    text.strip_prefix("Linux version ")?.split(' ').next()
}

/// The release in a file, where `find` says.
fn release(reader: &mut Reader<'_>, path: &str, find: fn(&str) -> Option<&str>) -> Option<KernelRelease> {
    let text = reader.text(path, |text| {
        let release = find(text).and_then(|text| KernelRelease::new(&printable(text.trim())));
        (release, text.trim().to_owned())
    })?;
    if text.0.is_none() {
        not_a_release(reader, path, &text.1);
    }
    text.0
}

fn not_a_release(reader: &mut Reader<'_>, path: &str, text: &str) {
    let text = format!("expected a kernel release as in 6.12.1, found {}", quote(text));
    reader.note_in(OddityKind::Unparseable, path, text);
}
