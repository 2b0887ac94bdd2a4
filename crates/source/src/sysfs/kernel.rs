//! Which kernel, which architecture, which page size.

use nodewise_machine::printable::{printable, quote};
use nodewise_machine::{Bytes, KernelRelease, Machine, OddityKind};

use super::Reader;
use crate::parse::nofile_info::{self, NoFileInfo};

const NOFILE_INFO: &str = "/proc/hwloc-nofile-info";

/// Fills architecture, kernel and page size.
pub(super) fn read(reader: &mut Reader<'_>, machine: &mut Machine) {
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
    machine.architecture = architecture.or(info.architecture).map(|text| printable(&text).into_owned());
    machine.page_size = info.page_size;
    machine.kernel = release(reader, "/proc/sys/kernel/osrelease", |text| Some(text))
        .or_else(|| {
            release(reader, "/proc/version", |text| text.strip_prefix("Linux version ")?.split(' ').next())
        })
        .or_else(|| {
            let text = info.release?;
            let release = KernelRelease::new(&printable(&text));
            if release.is_none() {
                not_a_release(reader, NOFILE_INFO, &text);
            }
            release
        });
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
