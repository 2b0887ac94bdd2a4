//! Huge pages that a program gets where its malloc asks for them.

use std::ffi::OsString;

use nodewise_machine::placement::{HugePages, Placement};
use nodewise_machine::{HugePool, Machine};

/// The variable that tunes glibc's malloc.
pub const TUNABLES: &str = "GLIBC_TUNABLES";
/// The pages that malloc asks for (glibc 2.35): 1 for transparent ones with `madvise(2)`, else the size of
/// the pages of the pool that it maps (`MAP_HUGETLB`).
const HUGETLB: &str = "glibc.malloc.hugetlb";

/// The variable with its value that makes a program ask for huge pages: for those of the pool, or where the
/// placement allows transparent ones and the kernel waits to be asked.
pub fn variable(placement: &Placement, machine: &Machine) -> Option<(&'static str, OsString)> {
    let ours = tunable(placement, machine)?;
    Some((TUNABLES, with_ours(std::env::var_os(TUNABLES), &ours)))
}

/// Our tunable with its value.
pub fn tunable(placement: &Placement, machine: &Machine) -> Option<String> {
    let value = match placement.huge? {
        HugePages::ALWAYS if machine.settings.transparent_hugepage.as_deref() == Some("madvise") => 1,
        HugePages::Transparent(_) => return None,
        HugePages::Pool => HugePool::of_malloc(machine)?.get(),
    };
    Some(format!("{HUGETLB}={value}"))
}

/// The value of the variable with ours behind what is there.
fn with_ours(there: Option<OsString>, ours: &str) -> OsString {
    match there {
        Some(mut there) if !there.is_empty() => {
            there.push(":");
            there.push(ours);
            there
        }
        _ => ours.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    #[test]
    fn our_tunable_does_not_displace_others() {
        assert_eq!(with_ours(None, "a=1"), "a=1");
        assert_eq!(with_ours(Some(OsString::new()), "a=1"), "a=1");
        assert_eq!(with_ours(Some("glibc.malloc.check=1".into()), "a=1"), "glibc.malloc.check=1:a=1");
    }

    #[test]
    fn malloc_is_told_the_smallest_pages_that_a_pool_has() {
        let check = |spec: &str, huge: HugePages, setting: &str, expected: Option<&str>| {
            let mut machine = spec::machine(spec).unwrap();
            machine.settings.transparent_hugepage = Some(setting.to_owned());
            let placement = Placement { huge: Some(huge), ..Placement::DEFAULT };
            assert_eq!(tunable(&placement, &machine).as_deref(), expected, "{spec} {huge:?}");
        };
        let pools = "(2c 8G huge=1G:2 huge=2M:64)";
        check(pools, HugePages::Pool, "madvise", Some("glibc.malloc.hugetlb=2097152"));
        check("(2c 8G huge=1G:2)", HugePages::Pool, "never", Some("glibc.malloc.hugetlb=1073741824"));
        check("(2c 8G)", HugePages::Pool, "always", None);
        check(pools, HugePages::ALWAYS, "madvise", Some("glibc.malloc.hugetlb=1"));
        check(pools, HugePages::ALWAYS, "always", None);
        check(pools, HugePages::NEVER, "madvise", None);
    }
}
