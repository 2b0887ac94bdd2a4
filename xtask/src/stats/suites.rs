//! Comparisons of suites in which nothing differs, under every disturbance.

use nodewise_experiment::synthetic::disturbance::Disturbance;
use nodewise_experiment::synthetic::suites::{Compared, Design, Tally};
use nodewise_experiment::verdict::ALPHA;

use super::equal::beside;

/// An interval of 95 % holds the truth in 93 % of comparisons at least.
const LEAST_HELD: f64 = 0.93;

/// Plays comparisons and prints how often something was called faster or slower, how often intervals held the
/// truth, and how often a change was found whose detection was stated; gives the rows in which more is false
/// than is promised.
pub fn compare(comparisons: u32, seed: u64) -> Vec<String> {
    println!(
        "{comparisons} comparisons a row, of suites of five benchmarks in which nothing differs, seed {seed}; shares of \
         comparisons that call a benchmark faster or slower, promised: at most {:.0} % (in brackets: not promised); shares \
         of 95 % intervals that hold the truth, promised: at least {:.0} %; found: how often the change of a benchmark was \
         found that was stated to be with 80 % power, promised: 75 to 85 %\n",
        ALPHA * 100.0,
        LEAST_HELD * 100.0
    );
    println!("| noise | compared | rounds | faster | slower | any | rows hold | means hold | found |");
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|");
    let designs = |noise| Design::ALL.map(|design| (noise, design));
    let rows: Vec<(Disturbance, Design)> = Disturbance::ALL.into_iter().flat_map(designs).collect();
    let with_gain = comparisons / 2;
    let played = beside(&rows, |(noise, design)| Tally::play(*noise, *design, comparisons, with_gain, seed));
    let mut broken = Vec::new();
    for ((noise, design), tally) in rows.iter().zip(&played) {
        let share = |count: u32, all: u32| match all {
            0 => "-".to_owned(),
            _ => format!("{:.1} %", 100.0 * f64::from(count) / f64::from(all)),
        };
        let name = match design.compared {
            Compared::Placements(1) => "2 placements".to_owned(),
            Compared::Placements(others) => format!("{} placements", others + 1),
            Compared::Sessions => "2 sessions".to_owned(),
        };
        let bracketed = |text: String, is_promised| if is_promised { text } else { format!("({text})") };
        let is_promised = design.promises(*noise);
        let is_power_promised = design.promises_power(*noise);
        println!(
            "| {} | {name} | {} | {} | {} | {} | {} | {} | {} |",
            noise.name(),
            design.rounds,
            share(tally.faster, tally.comparisons),
            share(tally.slower, tally.comparisons),
            bracketed(share(tally.any, tally.comparisons), is_promised),
            bracketed(share(tally.rows_held, tally.rows), is_promised),
            bracketed(share(tally.means_held, tally.means), is_promised),
            bracketed(share(tally.found, tally.stated), is_power_promised)
        );
        let row = format!("under {}, {name}, {} rounds", noise.name(), design.rounds);
        if is_promised && tally.breaks(ALPHA) {
            broken.push(format!("the promise is broken {row}"));
        }
        if is_promised && tally.breaks_intervals(LEAST_HELD) {
            broken.push(format!("{row} intervals hold the truth in fewer than 93 of 100 comparisons"));
        }
        if is_power_promised && tally.breaks_power() {
            broken.push(format!("{row} the stated change is not found in 75 to 85 of 100 comparisons"));
        }
    }
    broken
}
