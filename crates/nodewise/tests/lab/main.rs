//! nodewise inside real kernels: machines are booted once each, and every check runs there.
//!
//! The same program has three roles. On the host it boots the guests and makes a test of each check
//! (`guest`); inside a guest, started with `--guest`, it runs the checks and writes their results
//! (`checks`); and as a `--probe` it is the program whose pages are looked at (`probe`).

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a guest speaks to its host through them")]

mod arm64;
mod checks;
mod cpuset;
mod firmware;
mod guest;
mod kernel;
mod nodewise;
mod probe;
mod random;
mod script;

use libtest_mimic::{Arguments, Trial};
use nodewise_lab::{Arch, KernelChoice};

use crate::checks::Extent;
use crate::guest::{Guest, Plan};

/// The machines: architecture, name, and a spec for the lab.
pub const LAYOUTS: [(Arch, &str, &str); 4] = [
    // The four-node server of the articles on the kernel's allocator.
    (Arch::X86, "four-nodes", "2x(2x(1c 512M)); dist=11,20"),
    (Arch::X86, "two-sockets", "2x(2c 768M); dist=21"),
    // A Raspberry Pi 5 with emulated nodes: only node 0 has CPUs, every other distance is 20.
    (Arch::X86, "pi-eight-nodes", "(4c 256M) 7x(256M)"),
    // Nodes of a device tree, with a way back that is longer. RAM starts at 1 GiB, so node 2 has memory on
    // both sides of 4 GiB: in two zones.
    (
        Arch::Arm,
        "arm64-device-tree",
        "(1c 2G) (1c 768M) (512M) (512M); dist=10,20,17,28/21,10,28,17/17,28,10,28/28,17,28,10",
    ),
];

/// Machines that are drawn for the checks of the model, and scripts that are played on each machine: 240
/// scripts in all.
const DRAWN: u64 = 9;
const SCRIPTS: u64 = 20;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("--guest") => return checks::run_all(&Plan::read(&words[2..]), &words[1]),
        Some("--probe") => return probe::run(&words[1..]),
        _ => {}
    }
    let (options, words): (Vec<String>, Vec<String>) = std::env::args().partition(|word| is_own(word));
    let value = |name: &str| options.iter().rev().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let number = |name: &str, otherwise: u64| {
        value(name).map_or(otherwise, |text| {
            text.parse().unwrap_or_else(|_| panic!("{name}={text}: expected a number"))
        })
    };
    let (drawn, scripts) = (number("--soak", DRAWN), number("--scripts", SCRIPTS));
    let first = number("--first", 0);
    let kernel: KernelChoice = value("--kernel").map_or_else(KernelChoice::default, |text| {
        let Ok(choice) = text.parse();
        choice
    });
    let arch = value("--arch").map_or_else(Arch::default, |text| {
        Arch::from_debian(text).unwrap_or_else(|| panic!("--arch={text}: expected amd64 or arm64"))
    });
    let scripts = |number: u64| number * 1000..number * 1000 + scripts.min(1000);
    let fixed = (0..).zip(LAYOUTS).map(|(number, (arch, name, spec))| {
        let plan = Plan {
            arch,
            spec: spec.to_owned(),
            append: None,
            qemu: None,
            checks: if arch == Arch::X86 { Extent::All } else { Extent::Own },
            scripts: scripts(1_000_000 + number),
        };
        (name.to_owned(), plan)
    });
    let drawn = (first..first + drawn).map(|seed| {
        let draw = if arch == Arch::X86 { random::machine } else { random::plain_machine };
        let random::Drawn { spec, append, qemu } = draw(seed);
        let plan = Plan { arch, spec, append, qemu, checks: Extent::Model, scripts: scripts(seed) };
        (format!("drawn-{seed}"), plan)
    });
    let guests = fixed.chain(drawn).map(|(name, plan)| Guest::new(name, plan, kernel.clone()));
    let mut trials: Vec<(usize, Trial)> =
        guests.flat_map(|guest| trials(guest).into_iter().enumerate()).collect();
    // The first check of a guest boots it, so those come first: as many boots at once as tests.
    trials.sort_by_key(|(place, _)| *place);
    let trials = trials.into_iter().map(|(_, trial)| trial).collect();
    libtest_mimic::run(&Arguments::from_iter(words), trials).exit();
}

/// Whether a word is an option of ours: `--soak=N` for so many drawn machines, from number `--first=N` on,
/// `--scripts=N` for so many scripts on each, `--kernel=V` for another kernel, `--arch=A` for the architecture
/// of drawn machines. `cargo xtask lab-soak` has words for them.
fn is_own(word: &str) -> bool {
    let options = ["--soak=", "--first=", "--scripts=", "--kernel=", "--arch="];
    options.iter().any(|option| word.starts_with(option))
}

/// The tests of a machine, which is booted for the first of them.
fn trials(guest: Guest) -> Vec<Trial> {
    let trial = |(name, _): &'static (&'static str, checks::Check)| {
        let (layout, guest) = (guest.layout.clone(), guest.clone());
        Trial::test(format!("{layout}::{name}"), move || guest.result(name))
    };
    checks::of_machine(guest.plan.checks).map(trial).collect()
}
