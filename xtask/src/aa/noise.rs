//! `aa --noise`: the real program tunes a command that prints a number which ignores its placement.

use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use clap::ValueEnum;
use nodewise_experiment::synthetic::disturbance::Disturbance;
use serde_json::Value;

use crate::program::{cargo, quiet, read};

/// The disturbance of the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Noise {
    /// One of two levels 35 % apart, each in half of the runs, with 2 % of jitter
    Bimodal,
    /// One run in five longer by anything up to a half
    Spikes,
    /// Exponential, 3 %
    Exponential,
    /// Pareto with the index 1.5
    Pareto,
    /// One of two values 10 % apart
    TwoValued,
    /// Normal, 2 %
    Normal,
}

impl Noise {
    const fn disturbance(self) -> Disturbance {
        match self {
            Self::Bimodal => Disturbance::Levels(0.35, 0.5, 0.02),
            Self::Spikes => Disturbance::Spikes(0.2),
            Self::Exponential => Disturbance::Exponential,
            Self::Pareto => Disturbance::Pareto,
            Self::TwoValued => Disturbance::TwoValued,
            Self::Normal => Disturbance::Normal,
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Prints one number, drawn afresh in each process.
pub fn draw(noise: Noise) -> anyhow::Result<()> {
    let mut seed = [0; 8];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut seed))
        .context("/dev/urandom")?;
    println!("score: {:.6}", 10.0 * noise.disturbance().begin(u64::from_le_bytes(seed)).next_run().exp());
    Ok(())
}

/// Four equal arms: the default, and three placements that are possible on every machine.
const PLACEMENTS: [&str; 3] = ["localalloc", "huge=never", "membind=0"];

/// Tunes that command again and again and prints what each study said; fails where more said something
/// than may.
pub fn run(
    root: &Path,
    noise: Noise,
    studies: u32,
    rounds: u32,
    seed: u64,
    allowed: u32,
) -> anyhow::Result<()> {
    quiet(cargo(root).args(["build", "-q", "-p", "nodewise"]))?;
    let this = std::env::current_exe().context("the path of xtask")?;
    let nodewise = this.with_file_name("nodewise");
    println!(
        "{studies} studies of at most {rounds} rounds: nodewise tune with the default and {}, of a command that prints \
         a number with {} noise\n",
        PLACEMENTS.join(", "),
        noise.name()
    );
    println!("| study | rounds | verdicts | out | advice |\n|---:|---:|---|---|---|");
    let mut found = 0;
    for study in 0..u64::from(studies) {
        let mut tune = Command::new(&nodewise);
        tune.args(["tune", "--json", "--metric", "score: ([0-9.]+)"]);
        tune.args([format!("--seed={}", seed + study), format!("--runs={rounds}")]);
        tune.args(PLACEMENTS.map(|placement| format!("--placement={placement}")));
        tune.arg("--").arg(&this).args(["aa-draw", &noise.name()]);
        let document: Value =
            serde_json::from_str(&read(&mut tune)?).context("the document of nodewise tune")?;
        found += u32::from(look(study + 1, &document)?);
    }
    println!("\n{found} of {studies} named a difference or dropped a placement; {allowed} may");
    ensure!(found <= allowed, "more studies said something false than may");
    Ok(())
}

/// Prints what a study said; whether that was something false.
fn look(number: u64, study: &Value) -> anyhow::Result<bool> {
    let arms = study["arms"].as_array().context("arms")?;
    let verdicts: Vec<&str> = arms.iter().skip(1).filter_map(|arm| arm["verdict"].as_str()).collect();
    ensure!(verdicts.len() == PLACEMENTS.len(), "a study has the verdicts {verdicts:?}: expected three");
    let advice = study["advice"]["kind"].as_str().context("advice")?;
    let out: Vec<String> = study["race"]["out"]
        .as_array()
        .context("race.out")?
        .iter()
        .map(|out| format!("{} in round {}", out["arm"], out["round"]))
        .collect();
    println!("| {number} | {} | {} | {} | {advice} |", study["rounds"], verdicts.join(", "), out.join(", "));
    let names = verdicts.iter().any(|verdict| matches!(*verdict, "better" | "worse" | "out_of_the_race"));
    Ok(names || !out.is_empty() || advice == "use")
}
