//! nodewise inside real kernels: three machines are booted once each, and every check runs there.
//!
//! The same program has three roles. On the host it boots the guests and makes a test of each check
//! (`guest`); inside a guest, started with `--guest`, it runs the checks and writes their results
//! (`checks`); and as a `--probe` it is the program whose pages are looked at (`probe`).

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a guest speaks to its host through them")]

mod checks;
mod guest;
mod kernel;
mod nodewise;
mod probe;
mod random;

use libtest_mimic::{Arguments, Trial};

/// The machines: a name, and a spec for the lab.
pub const LAYOUTS: [(&str, &str); 3] = [
    // The four-node server of the articles on the kernel's allocator.
    ("four-nodes", "2x(2x(1c 512M)); dist=11,20"),
    ("two-sockets", "2x(2c 768M); dist=21"),
    // A Raspberry Pi 5 with emulated nodes: only node 0 has CPUs, every other distance is 20.
    ("pi-eight-nodes", "(4c 256M) 7x(256M)"),
];

/// Machines that are drawn for the checks of the model.
const DRAWN: u64 = 2;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("--guest") => return checks::run_all(&words[1], &words[2], words[3] == "drawn"),
        Some("--probe") => return probe::run(&words[1..]),
        _ => {}
    }
    // `--soak=N`: so many drawn machines instead of a few.
    let (soak, words): (Vec<String>, Vec<String>) =
        std::env::args().partition(|word| word.starts_with("--soak="));
    let soak = soak.first().and_then(|word| word.strip_prefix("--soak=")?.parse().ok());
    let arguments = Arguments::from_iter(words);
    let fixed = LAYOUTS.map(|(layout, spec)| guest::Guest::new(layout.to_owned(), spec.to_owned(), false));
    let drawn = (0..soak.unwrap_or(DRAWN))
        .map(|seed| guest::Guest::new(format!("drawn-{seed}"), random::machine(seed), true));
    let trials = fixed.into_iter().chain(drawn).flat_map(trials).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

/// The tests of a machine, which is booted for the first of them.
fn trials(guest: guest::Guest) -> Vec<Trial> {
    let trial = |(name, _): &'static (&'static str, checks::Check)| {
        let (layout, guest) = (guest.layout.clone(), guest.clone());
        Trial::test(format!("{layout}::{name}"), move || guest.result(name))
    };
    checks::of_machine(guest.drawn).map(trial).collect()
}
