//! `fleet-rates`: how often the rule for outliers of `nodewise fleet` is wrong, and what it finds; and the table that it
//! rests on.

use nodewise_fleet::calibration::{Noise, SIZES, SimulatedGroup, rates, thresholds};
use nodewise_fleet::group::FALSE_ALARMS;

/// Sizes of the groups that are played.
const MACHINES: [usize; 7] = [8, 10, 16, 32, 100, 1000, 10_000];
/// Figures by which a machine of two nodes is judged: latency and bandwidth, each over all pairs and of each node's memory.
const FIGURES: f64 = 6.0;
/// Differences between healthy machines, as a part of the usual figure.
const SPREADS: [f64; 3] = [0.01, 0.02, 0.04];
/// How many times slower the sick machine is.
const EFFECTS: [f64; 4] = [1.05, 1.1, 1.2, 1.3];
/// Values that are drawn for a row of the table of thresholds, and the most groups.
const VALUES: usize = 160_000_000;
const GROUPS: (usize, usize) = (200_000, 4_000_000);
/// The columns of that table.
const COLUMNS: [f64; 4] = [1e-2, 1e-3, 1e-4, 1e-5];

/// Prints the tables of docs/fleet.md.
pub fn run(groups: usize, seed: u64) {
    let played = |machines: usize| (groups * 100 / machines.max(100)).max(200);
    let group = |machines, noise, spread, effect| SimulatedGroup {
        machines,
        noise,
        spread,
        effect,
        probability: FALSE_ALARMS / FIGURES,
    };
    println!(
        "Groups with an outlier although all are healthy, %, of one figure; of all {FIGURES} together at most as many times.\n"
    );
    println!("| machines | groups | noise | 1 % | 2 % | 4 % |\n|--:|--:|---|--:|--:|--:|");
    for machines in MACHINES {
        for noise in Noise::ALL {
            let shares = SPREADS.map(|spread| {
                let rates = rates(group(machines, noise, spread, 1.0), played(machines), seed);
                format!("{:.2}", 100.0 * rates.false_alarms)
            });
            println!("| {machines} | {} | {} | {} |", played(machines), noise.words(), shares.join(" | "));
        }
    }
    println!("\nSick machines that are found, %, with normal noise.\n");
    println!("| machines | noise | 1.05 times | 1.1 | 1.2 | 1.3 |\n|--:|--:|--:|--:|--:|--:|");
    for machines in MACHINES {
        for spread in SPREADS {
            let shares = EFFECTS.map(|effect| {
                let rates = rates(group(machines, Noise::Normal, spread, effect), played(machines) / 2, seed);
                format!("{:.0}", 100.0 * rates.found)
            });
            println!("| {machines} | {:.0} % | {} |", 100.0 * spread, shares.join(" | "));
        }
    }
}

/// Prints the table of thresholds as the crate `fleet` holds it. It takes some minutes.
pub fn calibrate(seed: u64) {
    for size in SIZES {
        let groups = (VALUES / size as usize).clamp(GROUPS.0, GROUPS.1);
        let row = thresholds(size as usize, &COLUMNS, groups, seed);
        let row: Vec<String> = row.iter().map(|value| format!("{value:.2}")).collect();
        println!("    ({size}, [{}]),", row.join(", "));
    }
}
