//! A guest whose command is counted.

use std::ffi::OsString;
use std::io::Write;

use nodewise_counter::PLUGIN;

use crate::counting::{Counting, Counts};
use crate::guest::{BootEvent, Guest, GuestError, Threads, judge};
use crate::layout::Layout;
use crate::tools;

/// The oldest QEMU whose plugins can read registers.
const OLDEST: (u32, u32) = (9, 0);

/// Result of a command whose cache lines were counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Its exit status, as in [`Output`](crate::Output).
    pub status: i32,
    pub counts: Counts,
    /// `/proc/kallsyms` of the guest, where the kernel's code is counted by place; empty where it is not, or has none.
    pub symbols: String,
}

impl Guest {
    /// As [`Guest::stream_watched`], with the cache lines that the command moved.
    ///
    /// # Errors
    /// As there; this guest cannot be counted; the counts are missing.
    pub fn count(
        &self,
        counting: &Counting,
        command: &[OsString],
        streams: (&mut (dyn Write + Send), &mut (dyn Write + Send)),
        watch: &mut dyn FnMut(BootEvent<'_>),
    ) -> Result<Counted, GuestError> {
        let version = tools::qemu_version(&self.tools.qemu);
        if let Some(reason) = obstacle(version, self.threads, &self.layout, &self.append) {
            return Err(GuestError::Uncountable { reason });
        }
        let mut report = self.boot(Some(counting), command, streams, watch)?;
        let (counts, symbols) = (std::mem::take(&mut report.counts), std::mem::take(&mut report.symbols));
        let status = judge(report, self.timeout)?;
        let counts = Counts::parse(&counts).map_err(|source| GuestError::Counts { status, source })?;
        Ok(Counted { status, counts, symbols })
    }
}

/// Why a guest cannot be counted; `None` if it can.
fn obstacle(
    version: Option<(u32, u32)>,
    threads: Threads,
    layout: &Layout,
    append: &[String],
) -> Option<String> {
    if PLUGIN.is_empty() {
        return Some(
            "this nodewise was built without the plugin for QEMU, which hosts of x86-64 have".to_owned(),
        );
    }
    if version.is_none_or(|version| version < OLDEST) {
        let found = version.map_or_else(|| "unknown".to_owned(), |(major, minor)| format!("{major}.{minor}"));
        return Some(format!("plugins need QEMU {}.{} or newer: this one is {found}", OLDEST.0, OLDEST.1));
    }
    if threads == Threads::Shared && layout.shape.cpus() > 1 {
        return Some(
            "with all CPUs on one thread QEMU names the wrong CPU to plugins: each CPU needs its own thread"
                .to_owned(),
        );
    }
    // The firmware's table of memory does not know the nodes that the kernel makes.
    let mut words = append.iter().flat_map(|words| words.split_ascii_whitespace());
    let emulated = words.find(|word| word.starts_with("numa="))?;
    Some(format!("the counts are by the nodes of the firmware, and {emulated} makes others"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Limits;
    use nodewise_machine::spec;

    #[test]
    fn what_cannot_be_counted_is_refused() {
        let layout = |text: &str| Layout::new(&spec::machine(text).unwrap(), &Limits::default()).unwrap();
        let (one, two) = (layout("(1c 512M)"), layout("2x(1c 512M)"));
        let check = |version, threads, layout: &Layout, append: &str, expected: Option<&str>| {
            let found = obstacle(version, threads, layout, &[append.to_owned()]);
            let fits = expected
                .map_or(found.is_none(), |part| found.as_deref().is_some_and(|why| why.contains(part)));
            assert!(fits, "{found:?}, expected {expected:?}");
        };
        check(Some((10, 0)), Threads::PerCpu, &two, "quiet", None);
        check(Some((10, 0)), Threads::Shared, &one, "", None);
        check(Some((10, 0)), Threads::Shared, &two, "", Some("wrong CPU"));
        check(Some((8, 2)), Threads::PerCpu, &two, "", Some("this one is 8.2"));
        check(None, Threads::PerCpu, &two, "", Some("unknown"));
        check(Some((10, 0)), Threads::PerCpu, &two, "quiet numa=fake=4", Some("numa=fake=4"));
    }
}
