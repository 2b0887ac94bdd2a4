//! `stats`: what the experiment engine behind `tune` does where the truth is known.

mod equal;
mod suites;

use anyhow::ensure;
use clap::ValueEnum;
use nodewise_experiment::race::Rules;
use nodewise_experiment::study::Rounds;
use nodewise_experiment::synthetic::{
    Comparison, LEAST_CERTAIN, MOST_CERTAIN_AND_WRONG, MOST_RUNS, MOST_WRONG, Tally,
};

/// Blocks of the fixed designs that the race is compared with.
const DESIGNS: [u32; 10] = [6, 10, 15, 20, 25, 30, 35, 40, 60, 80];

/// Which experiments are played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Table {
    /// Equal arms under every noise: how often something false is said
    Equal,
    /// Arms with a known gain: how often a stated gain is found, and an interval holds
    Known,
    /// Arms with a known gain: after how many rounds it is shown
    Effects,
    /// Arms of all kinds: how often the advice is wrong, and the runs beside fixed designs
    Advice,
    /// Suites in which nothing differs: how often a comparison calls something faster or slower
    Compare,
}

/// Plays studies and prints tables: all of them, or one. Fails when any of them breaks a promise, after all
/// were printed.
pub fn run(studies: Option<u32>, seed: u64, table: Option<Table>) -> anyhow::Result<()> {
    let wanted = |one: Table| table.is_none_or(|table| table == one);
    let mut broken = Vec::new();
    if wanted(Table::Equal) {
        broken.extend(equal::equal(studies.unwrap_or(500), seed));
    }
    if wanted(Table::Known) {
        broken.extend(equal::known(studies.unwrap_or(1000), seed));
    }
    if wanted(Table::Effects) {
        equal::effects(studies.unwrap_or(500), seed);
    }
    if wanted(Table::Advice) {
        broken.extend(advice(studies.unwrap_or(2100), seed));
    }
    if wanted(Table::Compare) {
        broken.extend(suites::compare(studies.unwrap_or(400), seed));
    }
    ensure!(broken.is_empty(), "{}", broken.join("; "));
    Ok(())
}

/// The race by kind of noise, and fixed designs beside it; then another table of studies in which the race
/// has a second stage.
fn advice(studies: u32, seed: u64) -> Vec<String> {
    let Rounds::Exactly(rounds) = Rounds::RACE else { unreachable!("the default is a number of rounds") };
    let rules = Rules::DEFAULT;
    println!(
        "{studies} studies of 2 to 13 placements, seed {seed}; wrong: the advice is more than {:.0} % worse than the best\n",
        rules.margin * 100.0
    );
    let single = Comparison::play(studies, seed, rounds, &DESIGNS);
    fixed(&single, rounds);
    println!("\nplacements that differ in memory, CPUs or huge pages; those that help are crossed\n");
    let crossed = Comparison::play_kinds(studies, seed, rounds, &DESIGNS);
    fixed(&crossed, rounds);
    println!("{} of the studies went on with crosses", crossed.crossed);
    let mut broken = wrong("a race", &single.race);
    broken.extend(wrong("a race with crosses", &crossed.race));
    for (kind, tally) in &single.by_kind {
        broken.extend(wrong(&format!("a race, {}", kind.name()), tally));
    }
    if single.race.share(single.race.certain) < LEAST_CERTAIN {
        broken.push(format!("a race is settled in fewer than {:.0} % of studies", 100.0 * LEAST_CERTAIN));
    }
    let half = |(_, tally): &(u32, Tally)| single.race.mean_runs() <= MOST_RUNS * tally.mean_runs();
    if !single.equal().is_some_and(half) {
        broken.push(format!("a race takes more than {MOST_RUNS} of the runs of a fixed design"));
    }
    broken
}

/// The bounds that a tally breaks.
fn wrong(name: &str, tally: &Tally) -> Vec<String> {
    let bounds = [
        ("wrong", tally.wrong, MOST_WRONG),
        ("certain and wrong", tally.certain_and_wrong, MOST_CERTAIN_AND_WRONG),
    ];
    let broken = bounds.into_iter().filter(|(_, count, most)| tally.share(*count) > *most);
    broken.map(|(what, _, most)| format!("{name} is {what} in more than {:.0} %", 100.0 * most)).collect()
}

fn fixed(comparison: &Comparison, rounds: u32) {
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
