//! `aa`: a program against itself, under two names, again and again: a difference that is found is none.

pub mod noise;

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, bail, ensure};
use nodewise_experiment::command::{CommandExecutor, Program};
use nodewise_experiment::executor::NoWitness;
use nodewise_experiment::experiment::Monotonic;
use nodewise_experiment::experiment::{Event, Experiment};
use nodewise_experiment::metric::Metric;
use nodewise_experiment::race::Rules;
use nodewise_experiment::schedule::ArmId;
use nodewise_experiment::study::{End, Plan, Rounds, Treatment};
use nodewise_experiment::verdict::{Analysis, Verdict};
use nodewise_machine::conditions::Conditions;
use nodewise_machine::placement::Placement;
use nodewise_stats::random::Random;

/// The share of studies that may find a difference.
const ALLOWED: f64 = 0.05;

/// How many studies may find a difference: 5 of 100, rounded up to a whole study, so one of 20 and three of 46.
/// This forgives nothing: a program that errs in exactly 5 of 100 studies finds more than three of 46 in one
/// experiment of five.
pub fn allowed(studies: u32) -> u32 {
    (f64::from(studies) * ALLOWED).ceil() as u32
}

/// Plays studies of the default against itself and prints what each found.
pub fn run(studies: u32, rounds: u32, seed: u64, words: &[String]) -> anyhow::Result<()> {
    println!("{studies} studies of at most {rounds} rounds: {} against itself\n", words.join(" "));
    println!("| study | rounds | change | 95 % interval | verdict |\n|---:|---:|---:|---:|---|");
    let mut found = 0;
    for study in 0..studies {
        found += u32::from(play(study, rounds, seed + u64::from(study), words)?);
    }
    let allowed = allowed(studies);
    println!("\n{found} of {studies} found a difference where there is none; {allowed} may");
    ensure!(found <= allowed, "more studies found a difference than may");
    Ok(())
}

/// Plays one; whether it found a difference.
fn play(number: u32, rounds: u32, seed: u64, words: &[String]) -> anyhow::Result<bool> {
    let arms = ["one", "the same"].map(|name| Treatment::new(name, Placement::DEFAULT));
    let plan = Plan::new(arms, Metric::Wall, Rounds::Exactly(rounds), seed)?.with_race(Rules::DEFAULT);
    let interrupt = AtomicBool::new(false);
    let mut witness = NoWitness;
    let program = Program::new(words).context("no program: expected one behind --")?;
    let mut executor = CommandExecutor::new(program, &plan, &mut witness, &interrupt);
    let study = Experiment {
        executor: &mut executor,
        clock: &Monotonic::start(),
        observer: &mut |_: Event<'_>| {},
        interrupt: &interrupt,
    }
    .conduct(plan, Conditions::default());
    if let End::BaselineFailed(dropped) = &study.end {
        bail!("{} {}", words.join(" "), dropped.ending);
    }
    let analysis = Analysis::from_study(&study);
    let result = analysis.arms.last().context("a study has two arms")?;
    let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
    let (change, interval) = result.effect.map_or_else(Default::default, |effect| {
        let interval = effect.interval.map_or_else(String::new, |interval| {
            format!("{}..{}", percent(interval.low), percent(interval.high))
        });
        (percent(effect.ratio), interval)
    });
    let difference = matches!(result.verdict, Verdict::Better | Verdict::Worse | Verdict::Out(_))
        || study.race.out(ArmId::BASELINE).is_some();
    let verdict = if difference { "difference" } else { "none" };
    println!("| {} | {} | {change} | {interval} | {verdict} |", number + 1, study.blocks_begun());
    Ok(difference)
}

/// Writes a file that compresses about as source text does: words drawn from a vocabulary that itself is
/// drawn, the frequent ones more often.
pub fn input(path: &Path, megabytes: u64, seed: u64) -> anyhow::Result<()> {
    let mut random = Random::stream(seed, 0);
    let letters = b"etaoinshrdlucmfwypvbgkjqxz";
    let mut vocabulary: Vec<Vec<u8>> = Vec::new();
    for _ in 0..20_000 {
        let length = 2 + random.index(9);
        vocabulary.push((0..length).map(|_| letters[random.index(letters.len())]).collect());
    }
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut file = BufWriter::new(file);
    let (mut written, all) = (0_u64, megabytes * 1_000_000);
    while written < all {
        // The least of three draws: low numbers come most often.
        let word = (0..3).map(|_| random.index(vocabulary.len())).min().unwrap_or(0);
        file.write_all(&vocabulary[word])?;
        file.write_all(if random.below(12) == 0 { b"\n" } else { b" " })?;
        written += vocabulary[word].len() as u64 + 1;
    }
    file.flush()?;
    println!("{}: {written} bytes, seed {seed}", path.display());
    Ok(())
}
