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

use libtest_mimic::{Arguments, Trial};

/// The machines: a name, and a spec for the lab.
pub const LAYOUTS: [(&str, &str); 3] = [
    // The four-node server of the articles on the kernel's allocator.
    ("four-nodes", "2x(2x(1c 512M)); dist=11,20"),
    ("two-sockets", "2x(2c 768M); dist=21"),
    // A Raspberry Pi 5 with emulated nodes: only node 0 has CPUs, every other distance is 20.
    ("pi-eight-nodes", "(4c 256M) 7x(256M)"),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("--guest") => return checks::run_all(&words[1], &words[2]),
        Some("--probe") => return probe::run(&words[1..]),
        _ => {}
    }
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for (layout, spec) in LAYOUTS {
        let guest = guest::Guest::new(layout, spec);
        for (name, _) in checks::CHECKS {
            let guest = guest.clone();
            trials.push(Trial::test(format!("{layout}::{name}"), move || guest.result(name)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}
