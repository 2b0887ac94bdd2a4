//! `stats`: what the experiment engine behind `tune` does where the truth is known.

use nodewise_measure::race::Rules;
use nodewise_measure::study::Rounds;
use nodewise_measure::synthetic::{Comparison, Tally};

/// Blocks of the fixed designs that the race is compared with.
const DESIGNS: [u32; 8] = [6, 10, 15, 20, 30, 40, 60, 80];

/// Plays studies and prints two tables: the race by kind of noise, and fixed designs beside it.
pub fn run(studies: u32, seed: u64) {
    let Rounds::Exactly(rounds) = Rounds::RACE else { unreachable!("the default is a number of rounds") };
    let rules = Rules::DEFAULT;
    println!(
        "{studies} studies of 2 to 13 placements, seed {seed}; wrong: the advice is more than {:.0} % worse than the best\n",
        rules.margin * 100.0
    );
    let comparison = Comparison::play(studies, seed, rounds, &DESIGNS);
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
