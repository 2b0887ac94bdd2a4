//! `stats`: what the experiment engine behind `tune` does where the truth is known.

use nodewise_measure::race::Rules;
use nodewise_measure::study::Rounds;
use nodewise_measure::synthetic::{Comparison, Tally};

/// Blocks of the fixed designs that the race is compared with.
const DESIGNS: [u32; 8] = [6, 10, 15, 20, 30, 40, 60, 80];

/// Plays studies and prints a table: the race by kind of noise, and fixed designs beside it; then another
/// of studies in which the race has a second stage.
pub fn run(studies: u32, seed: u64) {
    let Rounds::Exactly(rounds) = Rounds::RACE else { unreachable!("the default is a number of rounds") };
    let rules = Rules::DEFAULT;
    println!(
        "{studies} studies of 2 to 13 placements, seed {seed}; wrong: the advice is more than {:.0} % worse than the best\n",
        rules.margin * 100.0
    );
    table(&Comparison::play(studies, seed, rounds, &DESIGNS), rounds);
    println!("\nplacements that differ in memory, CPUs or huge pages; those that help are crossed\n");
    let crossed = Comparison::play_kinds(studies, seed, rounds, &DESIGNS);
    table(&crossed, rounds);
    println!("{} of the studies went on with crosses", crossed.crossed);
}

fn table(comparison: &Comparison, rounds: u32) {
    println!("| design | wrong | certain | certain and wrong | runs a study |\n|---|---:|---:|---:|---:|");
    for (kind, tally) in &comparison.by_kind {
        row(&format!("race, {}", kind.name()), tally);
    }
    row(&format!("race of at most {rounds} rounds"), &comparison.race);
    for (blocks, tally) in &comparison.fixed {
        row(&format!("{blocks} rounds of all"), tally);
    }
    let runs = comparison.race.mean_runs();
    match comparison.equal() {
        Some((blocks, tally)) => println!(
            "\nthe race takes {:.2} of the runs of {blocks} rounds of all, which are wrong no more often and certain as often",
            runs / tally.mean_runs()
        ),
        None => println!("\nnone of the fixed designs is wrong as seldom and certain as often as the race"),
    }
}

fn row(name: &str, tally: &Tally) {
    let percent = |count| 100.0 * tally.share(count);
    println!(
        "| {name} | {:.2} % | {:.1} % | {:.2} % | {:.1} |",
        percent(tally.wrong),
        percent(tally.certain),
        percent(tally.certain_and_wrong),
        tally.mean_runs()
    );
}
