//! Round trip of a status: what is read of it is printed as the kernel prints it and read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_source::parse::proc_status::{ProcessStatus, Seccomp, parse};

/// The fields as the kernel prints them.
fn print(status: &ProcessStatus) -> String {
    let mut text = String::new();
    text.extend(status.name.as_ref().map(|name| format!("Name:\t{name}\n")));
    text.extend(status.state.map(|state| format!("State:\t{state} (some)\n")));
    text.extend(status.parent.map(|parent| format!("PPid:\t{parent}\n")));
    text.extend(status.threads.map(|threads| format!("Threads:\t{threads}\n")));
    text.extend(status.user.map(|user| format!("Uid:\t{user}\t{user}\t{user}\t{user}\n")));
    let sizes = [("VmRSS", status.resident), ("HugetlbPages", status.hugetlb), ("VmSwap", status.swapped)];
    text.extend(
        sizes.iter().filter_map(|(name, size)| Some(format!("{name}:\t{:8} kB\n", (*size)?.get() / 1024))),
    );
    text.extend(status.cpus_allowed.as_ref().map(|cpus| format!("Cpus_allowed_list:\t{cpus}\n")));
    text.extend(status.mems_allowed.as_ref().map(|nodes| format!("Mems_allowed_list:\t{nodes}\n")));
    text.extend(status.effective_capabilities.map(|bits| format!("CapEff:\t{bits:016x}\n")));
    text.extend(status.no_new_privileges.map(|set| format!("NoNewPrivs:\t{}\n", u8::from(set))));
    let mode = |mode| match mode {
        Seccomp::Off => 0,
        Seccomp::Strict => 1,
        Seccomp::Filter => 2,
    };
    text.extend(status.seccomp.map(|seccomp| format!("Seccomp:\t{}\n", mode(seccomp))));
    text
}

fuzz_target!(|text: &str| {
    let parsed = parse(text);
    assert!(parsed.problems.count() <= text.lines().count());
    let again = parse(&print(&parsed.value));
    assert!(again.problems.is_empty(), "{:?}", again.problems);
    assert_eq!(again.value, parsed.value);
});
