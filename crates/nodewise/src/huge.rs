//! Huge pages on kernels that give them only where a program asks for them.

use std::ffi::OsString;

use nodewise_machine::Machine;
use nodewise_measure::placement::Placement;
use nodewise_syscall::TransparentHuge;

/// The variable that tunes glibc's malloc.
pub const TUNABLES: &str = "GLIBC_TUNABLES";
/// Makes malloc ask for huge pages with `madvise(2)` (glibc 2.35, `glibc.malloc.hugetlb`).
const ASK: &str = "glibc.malloc.hugetlb=1";

/// The variable with its value that makes a program ask for huge pages, where the placement allows
/// them and the kernel waits to be asked.
pub fn variable(placement: &Placement, machine: &Machine) -> Option<(&'static str, OsString)> {
    let wanted = placement.huge == Some(TransparentHuge::Allowed);
    let waits = machine.settings.transparent_hugepage.as_deref() == Some("madvise");
    (wanted && waits).then(|| (TUNABLES, with_ours(std::env::var_os(TUNABLES))))
}

/// The value of the variable with ours behind what is there.
fn with_ours(there: Option<OsString>) -> OsString {
    match there {
        Some(mut there) if !there.is_empty() => {
            there.push(":");
            there.push(ASK);
            there
        }
        _ => ASK.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_tunable_does_not_displace_others() {
        assert_eq!(with_ours(None), ASK);
        assert_eq!(with_ours(Some(OsString::new())), ASK);
        assert_eq!(
            with_ours(Some("glibc.malloc.check=1".into())),
            "glibc.malloc.check=1:glibc.malloc.hugetlb=1"
        );
    }
}
