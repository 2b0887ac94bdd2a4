//! Equal arms, and arms with a known gain, under every disturbance.

use std::thread;

use nodewise_experiment::race::Rules;
use nodewise_experiment::synthetic::disturbance::Disturbance;
use nodewise_experiment::synthetic::equal::{Design, FalseSayings, Known, rounds_until_shown};
use nodewise_stats::share::share_interval;

/// Plays equal arms and prints how often each false thing was said; gives the rows in which that is more
/// often than is promised.
pub fn equal(studies: u32, seed: u64) -> Vec<String> {
    let promise = Rules::DEFAULT.error;
    println!(
        "{studies} studies of equal placements a row, seed {seed}; shares of studies that say what is not so, with \
         95 % intervals of \"any\"; promised: at most {:.0} %\n",
        promise * 100.0
    );
    println!("| noise | placements | rounds | better | worse | out | use | any | interval | rounds run |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let rows = rows();
    let played = beside(&rows, |(noise, design)| FalseSayings::play(*noise, *design, studies, seed));
    let mut broken = Vec::new();
    for ((noise, design), said) in rows.iter().zip(&played) {
        let percent =
            |count: u32| format!("{:.1} %", 100.0 * f64::from(count) / f64::from(said.studies.max(1)));
        let (low, high) = share_interval(said.any, said.studies);
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {:.1}..{:.1} % | {:.1} |",
            noise.name(),
            design.arms,
            design.rounds,
            percent(said.better),
            percent(said.worse),
            percent(said.out),
            percent(said.used),
            percent(said.any),
            100.0 * low,
            100.0 * high,
            said.rounds as f64 / f64::from(said.studies.max(1))
        );
        if said.breaks(promise) {
            broken.push(format!(
                "the promise is broken under {}, {} placements, {} rounds",
                noise.name(),
                design.arms,
                design.rounds
            ));
        }
    }
    let (any, all) = played.iter().fold((0, 0), |(any, all), said| (any + said.any, all + said.studies));
    let share = 100.0 * f64::from(any) / f64::from(all.max(1));
    println!(
        "\n{any} of {all} studies said something false ({share:.2} %); rows that break the promise: {}\n",
        broken.len()
    );
    broken
}

/// A stated power of 80 % is 75 % at least when it is played.
const LEAST_FOUND: f64 = 0.75;

/// An interval of 95 % holds the truth in 93 % of studies at least.
const LEAST_HELD: f64 = 0.93;

/// Plays an arm with the gain that studies of equal arms stated, and prints how often it was found, and how
/// often the interval of the named arm held the truth; gives the rows that are shown to state too much.
pub fn known(studies: u32, seed: u64) -> Vec<String> {
    println!(
        "{studies} studies a row, seed {seed}; stated: the gain that a study of equal placements says would be found \
         with 80 % power, at least the margin (\"at margin\": how often it was that); found: how often it was when one placement had it; holds: how \
         often the 95 % interval of the named placement held its true change\n"
    );
    println!(
        "| noise | placements | stated, mean | at margin | found | named | holds |\n|---|---:|---:|---:|---:|---:|---:|"
    );
    let designs = [2, 4, 7].map(|arms| Design { arms, rounds: 40 });
    let rows: Vec<(Disturbance, Design)> = Disturbance::ALL
        .into_iter()
        .filter(|noise| *noise != Disturbance::Constant)
        .flat_map(|noise| designs.map(|design| (noise, design)))
        .collect();
    let played = beside(&rows, |(noise, design)| Known::play(*noise, *design, studies, seed));
    let share = |count: u32, all: u32| match all {
        0 => "-".to_owned(),
        _ => format!("{:.1} %", 100.0 * f64::from(count) / f64::from(all)),
    };
    let falls_short = |count: u32, all: u32, least: f64| all > 0 && share_interval(count, all).1 < least;
    let mut broken = Vec::new();
    let mut sum = Known::default();
    for ((noise, design), known) in rows.iter().zip(&played) {
        let stated = (known.gains / f64::from(known.stated.max(1))).exp_m1();
        let stated = if known.stated == 0 { "-".to_owned() } else { format!("{:.1} %", 100.0 * stated) };
        println!(
            "| {} | {} | {stated} | {} | {} | {} | {} |",
            noise.name(),
            design.arms,
            share(known.at_margin, known.stated),
            share(known.found, known.stated),
            known.named,
            share(known.held, known.named)
        );
        let row = format!("{}, {} placements", noise.name(), design.arms);
        if falls_short(known.found, known.stated, LEAST_FOUND) {
            broken.push(format!("under {row} the stated gain is found in fewer than 75 of 100 studies"));
        }
        if falls_short(known.held, known.named, LEAST_HELD) {
            broken.push(format!("under {row} intervals hold the truth in fewer than 93 of 100 studies"));
        }
        // At the margin the power stated is more than 80 %.
        if known.at_margin * 10 <= known.stated {
            sum.stated += known.stated;
            sum.found += known.found;
        }
        sum.named += known.named;
        sum.held += known.held;
    }
    println!(
        "\nwhere at most one in ten stated the margin, found in {} of {} studies; held in {} of all {}\n",
        share(sum.found, sum.stated),
        sum.stated,
        share(sum.held, sum.named),
        sum.named
    );
    broken.extend(known_without_race(studies, seed));
    broken
}

/// The same for studies without a race.
fn known_without_race(studies: u32, seed: u64) -> Vec<String> {
    println!(
        "\nwithout a race (--no-race); found in brackets: not promised, because the noise changes with time, or most of it is in \
         rare runs that few rounds do not see\n"
    );
    println!("| noise | placements | rounds | stated, mean | found |\n|---|---:|---:|---:|---:|");
    let designs = [Design { arms: 2, rounds: 10 }, Design { arms: 4, rounds: 20 }];
    let rows: Vec<(Disturbance, Design)> = Disturbance::ALL
        .into_iter()
        .filter(|noise| *noise != Disturbance::Constant)
        .flat_map(|noise| designs.map(|design| (noise, design)))
        .collect();
    let played = beside(&rows, |(noise, design)| Known::play_fixed(*noise, *design, studies, seed));
    let mut broken = Vec::new();
    for ((noise, design), known) in rows.iter().zip(&played) {
        let mean = 100.0 * (known.gains / f64::from(known.stated.max(1))).exp_m1();
        let found = 100.0 * f64::from(known.found) / f64::from(known.stated.max(1));
        let Design { arms, rounds } = design;
        let is_promised = design.promises_power_without_race(*noise);
        let found = format!("{found:.1} %");
        let found = if is_promised { found } else { format!("({found})") };
        println!("| {} | {arms} | {rounds} | {mean:.1} % | {found} |", noise.name());
        if is_promised && known.stated > 0 && share_interval(known.found, known.stated).1 < LEAST_FOUND {
            let row = format!("{}, {arms} placements, without a race", noise.name());
            broken.push(format!("under {row} the stated gain is found in fewer than 75 of 100 studies"));
        }
    }
    broken
}

/// Prints after how many rounds a gain of one arm is shown, by noise, gain and number of arms.
pub fn effects(studies: u32, seed: u64) {
    const ARMS: [u32; 4] = [2, 4, 7, 13];
    println!(
        "{studies} studies a figure, seed {seed}: rounds until a gain of one placement is shown, median of the studies that \
         show it within 40 rounds, and their share\n"
    );
    println!("| noise | gain | 2 placements | 4 | 7 | 13 |\n|---|---:|---:|---:|---:|---:|");
    let noises = [
        Disturbance::Normal,
        Disturbance::Lognormal,
        Disturbance::Exponential,
        Disturbance::Pareto,
        Disturbance::Levels(0.35, 0.5, 0.02),
        Disturbance::Spikes(0.2),
        Disturbance::Recorded,
    ];
    let gains = [0.03, 0.05, 0.1];
    let rows: Vec<(Disturbance, f64)> =
        noises.into_iter().flat_map(|noise| gains.map(|gain| (noise, gain))).collect();
    let play = |(noise, gain): &(Disturbance, f64)| {
        ARMS.map(|arms| {
            let design = Design { arms, rounds: 40 };
            let all = rounds_until_shown(*noise, design, gain.ln_1p(), studies, seed);
            let mut shown: Vec<u32> = all.iter().copied().flatten().collect();
            shown.sort_unstable();
            let share = 100.0 * shown.len() as f64 / all.len().max(1) as f64;
            shown
                .get(shown.len() / 2)
                .map_or_else(|| "never".to_owned(), |median| format!("{median} ({share:.0} %)"))
        })
    };
    for ((noise, gain), cells) in rows.iter().zip(beside(&rows, play)) {
        println!("| {} | {:.0} % | {} |", noise.name(), 100.0 * gain, cells.join(" | "));
    }
    println!();
}

fn rows() -> Vec<(Disturbance, Design)> {
    Disturbance::ALL.into_iter().flat_map(|noise| Design::ALL.map(|design| (noise, design))).collect()
}

/// Plays rows on all CPUs; the results are in the order of the rows, and do not depend on how many CPUs
/// there are.
pub(super) fn beside<R: Sync, T: Send>(rows: &[R], play: impl Fn(&R) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (play, next) = (&play, &std::sync::atomic::AtomicUsize::new(0));
    let mut played: Vec<(usize, T)> = thread::scope(|scope| {
        let worker = || {
            let mut played = Vec::new();
            loop {
                let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let Some(row) = rows.get(at) else { return played };
                played.push((at, play(row)));
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no row panics")).collect()
    });
    played.sort_unstable_by_key(|(at, _)| *at);
    played.into_iter().map(|(_, result)| result).collect()
}
