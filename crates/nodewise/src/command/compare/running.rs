//! A suite to a session: what is installed, inputs, rounds, a line of progress.

use std::collections::BTreeSet;
use std::slice;
use std::sync::atomic::Ordering;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use nodewise_experiment::metric::Metric;
use nodewise_experiment::schedule::Block;
use nodewise_experiment::study::{Plan, Rounds, Treatment};
use nodewise_experiment::suite::conduct::{Agenda, Conductor, Event, Outcome};
use nodewise_experiment::suite::programs::Programs;
use nodewise_experiment::suite::session::{End, Session, Skipped};
use nodewise_experiment::suite::{Case, Suite};
use nodewise_experiment::verdict::ALPHA;
use nodewise_machine::Machine;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::placement::Scope;
use nodewise_machine::printable::printable;
use nodewise_source::Detail;
use nodewise_stats::power::blocks_needed;
use nodewise_syscall::clock::Monotonic;
use nodewise_view::digest::compare::threads_words;
use nodewise_view::digest::study::duration;

use super::inputs::Folder;
use super::needs::Lacking;
use super::{circumstances, placements, versions};
use crate::cli::compare::Compare;
use crate::command::tune::options::time;
use crate::failure::{Failure, INTERNAL};
use crate::witness::{Steal, SystemWitness};
use crate::{input, live, measuring, output, progress};

/// Rounds by default: enough for a verdict among 85 rows of two sessions.
const ROUNDS: u32 = 7;
/// Rounds of a first look.
const QUICK: u32 = 3;
/// Most rounds when only the time is limited; what is saved is read back up to it.
const MOST_ROUNDS: u32 = 200;

/// Runs what can be run of a suite.
///
/// # Errors
/// Wrong options, a folder that cannot be made, and a suite without anything that can be run.
pub fn run(args: &Compare, suite: &Suite) -> Result<Session, Failure> {
    let budget = args.time.as_deref().map(|text| time("--time", text)).transpose()?;
    let input = input::load("live", Detail::Full)?;
    let treatments = placements::treatments(args.placements.as_deref(), &input)?;
    let (suite, skipped) = installed(suite)?;
    let machine = &input.machine;
    let cpus = u32::try_from(Scope::from_machine(machine).cpus.len()).unwrap_or(1).max(1);
    let cases = suite.cases(cpus);
    let rounds = rounds(args, budget, cases.len() * (treatments.len() - 1).max(1));
    let seed = measuring::seed(args.seed);
    let mut conditions = live::conditions(machine, &[]);
    let settings = circumstances::settings(machine);
    let tools = versions::installed(&suite.benchmarks);
    let steal = Steal::begin();
    let outcome = conduct(&suite, &cases, treatments.clone(), rounds, seed, machine)?;
    if let (Some(budget), Some(text), 0, End::BudgetSpent) = (budget, &args.time, outcome.rounds, outcome.end)
    {
        let round = if outcome.took < budget { duration(outcome.took) } else { "longer".to_owned() };
        return Err(Failure::usage(format_args!(
            "--time {} is too short: one round of this suite takes {round}, and the warm-up as long",
            printable(text)
        )));
    }
    conditions.steal_share = steal.end();
    Ok(Session {
        suite: suite.title.clone(),
        origin: None,
        conditions,
        settings,
        tools,
        seed,
        rounds: outcome.rounds,
        end: outcome.end,
        took: outcome.took,
        placements: treatments.into_iter().map(|treatment| treatment.name).collect(),
        cases: outcome.cases,
        skipped,
    })
}

/// How many rounds, for this many rows in all tables.
fn rounds(args: &Compare, budget: Option<Duration>, rows: usize) -> Rounds {
    let asked = if args.quick { Some(QUICK) } else { args.runs };
    // Pairs need more of them than sessions do before any difference among this many rows can be shown.
    let usual = if args.placements.is_some() { ROUNDS.max(blocks_needed(rows, ALPHA)) } else { ROUNDS };
    match budget {
        Some(budget) => Rounds::Within { budget, at_most: asked.unwrap_or(MOST_ROUNDS) },
        None => Rounds::Exactly(asked.unwrap_or(usual)),
    }
}

/// The suite without what is not installed, which is reported.
fn installed(suite: &Suite) -> Result<(Suite, Vec<Skipped>), Failure> {
    let mut skipped = Vec::new();
    for benchmark in &suite.benchmarks {
        if let Some(why) = Lacking::from_benchmarks(slice::from_ref(benchmark)).sentence() {
            output::say(&format!("{} is left out: {why}", benchmark.name));
            skipped.push(Skipped { benchmark: benchmark.name.clone(), threads: None, why });
        }
    }
    let left_out: BTreeSet<&str> = skipped.iter().map(|one| one.benchmark.as_str()).collect_set();
    let mut kept = suite.clone();
    kept.benchmarks.retain(|benchmark| !left_out.contains(benchmark.name.as_str()));
    if kept.benchmarks.is_empty() {
        let line = Lacking::from_benchmarks(&suite.benchmarks).apt_line();
        let apt = line.map_or_else(String::new, |line| format!(": {line}, or --install"));
        return Err(Failure::cannot(format_args!("nothing of this suite can be run here{apt}")));
    }
    Ok((kept, skipped))
}

fn conduct(
    suite: &Suite,
    cases: &[Case<'_>],
    treatments: Vec<Treatment>,
    rounds: Rounds,
    seed: u64,
    machine: &Machine,
) -> Result<Outcome, Failure> {
    let interrupt = measuring::interrupt()?;
    let own = std::env::current_exe().map_err(|error| {
        Failure::new(INTERNAL, format_args!("cannot find nodewise itself to run its workloads: {error}"))
    })?;
    let fail = |error: std::io::Error| {
        let folder = std::env::temp_dir();
        let folder = printable(&folder.to_string_lossy()).into_owned();
        Failure::cannot(format_args!("no room for inputs in {folder} (TMPDIR names another folder): {error}"))
    };
    // The arms of any plan: its metric and rounds are each benchmark's own.
    let plan = Plan::new(treatments.clone(), Metric::Wall, rounds, seed)
        .map_err(|error| Failure::usage(format_args!("--placements: {error}")))?;
    let mut witness = SystemWitness::new();
    let mut programs = Programs::new(&own, treatments, &mut witness, &interrupt).map_err(fail)?;
    let agenda = Agenda { cases, arms: plan.arms(), rounds, seed };
    let per_round = cases.len() as u64 * u64::from(plan.runs_per_block());
    let one = if machine.nodes.len() < 2 { "; this machine has one node" } else { "" };
    output::say(&format!(
        "running {} of {}, {per_round} runs a round{one}; Ctrl-C ends it with the results so far",
        benchmarks(suite.benchmarks.len()),
        suite.title
    ));
    let line = Line::new(per_round);
    line.bar.set_message("generating inputs");
    let mut folder = Folder::make(programs.inputs(), &interrupt).map_err(fail)?;
    match suite.inputs_in_use().try_for_each(|input| input.generate(&mut folder)) {
        // The session ends before its first run, and says so.
        Err(_) if interrupt.load(Ordering::Relaxed) => {}
        generated => generated.map_err(fail)?,
    }
    let outcome = Conductor {
        stage: &mut programs,
        clock: &Monotonic::start(),
        observer: &mut |event| line.event(event),
        interrupt: &interrupt,
    }
    .conduct(&agenda);
    line.bar.finish_and_clear();
    Ok(outcome)
}

fn benchmarks(count: usize) -> String {
    if count == 1 { "1 benchmark".to_owned() } else { format!("{count} benchmarks") }
}

/// The line that shows how far it is: drawn between runs only.
struct Line {
    bar: ProgressBar,
    per_round: u64,
}

impl Line {
    fn new(per_round: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(per_round), progress::target());
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {pos}/{len}  {msg:!40}  {eta} left") {
            bar.set_style(style);
        }
        Self { bar, per_round }
    }

    fn event(&self, event: Event<'_>) {
        match event {
            Event::Begins { block, case, arm } => {
                let round = match block {
                    Block::WarmUp => "warm-up".to_owned(),
                    Block::Measured(number) => format!("round {number}"),
                };
                let (name, threads) = (&case.benchmark.name, threads_words(case.threads));
                self.bar.set_message(format!("{round}: {name}, {threads}, {}", arm.name));
                self.bar.tick();
            }
            Event::Ended => self.bar.inc(1),
            Event::Fixed { rounds, runs } => {
                self.bar.set_position(self.per_round);
                self.bar.set_length(self.per_round + u64::from(runs) * u64::from(rounds));
            }
            Event::GivenUp { case, why } => {
                let text = format!("{} is given up: {why}", case.benchmark.name);
                self.bar.suspend(|| output::say(&text));
            }
        }
    }
}
