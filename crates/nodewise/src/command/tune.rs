//! `nodewise tune`: options to a plan, the plan to a study, the study to its reader.

mod climate;
mod counted;
mod first;
pub mod options;
pub mod placements;
mod space;
mod threads;
pub(super) mod words;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use nodewise_experiment::command::CommandExecutor;
use nodewise_experiment::command::preparation::PreparedExecutor;
use nodewise_experiment::cooling::{Cooling, CoolingExecutor};
use nodewise_experiment::emit::{self, Paths, Target};
use nodewise_experiment::evidence::{Counter, Repeats};
use nodewise_experiment::executor::Executor;
use nodewise_experiment::experiment::Experiment;
use nodewise_experiment::journal::{self, Head, Journal, JournalError};
use nodewise_experiment::metric::Metric;
use nodewise_experiment::race::Rules;
use nodewise_experiment::serve::ServeExecutor;
use nodewise_experiment::study::{End, HangLimit, Plan, Rounds, Study, TooShort};
use nodewise_experiment::verdict::Analysis;
use nodewise_machine::Machine;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::placement::Scope;
use nodewise_machine::plural::plural;
use nodewise_machine::printable::{printable, quote};
use nodewise_source::Detail;
use nodewise_syscall::clock::Monotonic;
use nodewise_syscall::perf::Counting;
use nodewise_view::digest::example::predicted;
use nodewise_view::digest::placements::Placements;
use nodewise_view::digest::study::duration;
use nodewise_view::json::Saved;
use nodewise_view::svg::tune_svg;
use nodewise_view::text::Extent;
use nodewise_view::{csv, json, text};

use crate::cli::Global;
use crate::cli::tune::Tune;
use crate::command::run::full_paths;
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::output::Pictures;
use crate::progress::Progress;
use crate::witness::{CountingWitness, Steal};
use crate::{live, measuring, output};
use climate::Sensors;
use first::First;
use options::{Named, Subject};

/// Runs the verb.
pub fn run(args: &Tune, global: &Global) -> Outcome {
    pictures(args).check()?;
    if let Some(path) = &args.from {
        return show_saved(path, args, global);
    }
    if !input::is_live(&global.machine) {
        return counted::run(args, global);
    }
    counted::refuse_counting(args)?;
    let input = input::load("live", Detail::Full)?;
    let first = First::from_args(args, &input.machine);
    let (metric, also) = match first {
        First::OneNode => first::metrics(),
        _ => options::metrics(args)?,
    };
    let not_counted = not_counted();
    if let Metric::Counted(counter) = &metric {
        if let Some(why) = not_counted.get(counter) {
            return Err(Failure::cannot(format_args!("--metric: {counter} cannot be compared here: {why}")));
        }
    }
    let target = args.emit.as_deref().map(str::parse::<Target>).transpose();
    let target = target.map_err(|error| Failure::usage(format_args!("--emit: {error}")))?;
    let rounds = first.rounds(options::rounds(args)?, args);
    let named = Named::from_args(args, first.workload())?;
    let (mut treatments, mut left_out) = placements::treatments(args, &input, named.asks_for_threads())?;
    if first == First::OneNode {
        first::simplify(&mut treatments, &mut left_out, &input.machine);
    }
    let rounds = first::rounds_alone(rounds, treatments.len());
    let scope = Scope::from_machine(&input.machine);
    let mut journal = args.journal.as_deref().map(open).transpose()?;
    // A study that goes on has the seed that it had.
    let seed = measuring::seed(args.seed.or(journal.as_ref().and_then(Journal::seed)));
    let plan = Plan::new(treatments, metric, rounds, seed)
        .map_err(|error| Failure::usage(format_args!("--runs: {error}")))?
        .with_also(also)
        .with_repeats(Repeats::at_most(if first == First::OneNode { 0 } else { args.repeats }));
    // Those who name placements have named all that they want.
    let may_cross = args.placement.is_empty() && journal.as_ref().is_none_or(Journal::may_cross);
    let plan = match (args.no_race, may_cross) {
        (true, _) => plan,
        (false, false) => plan.with_race(Rules::DEFAULT),
        (false, true) => plan.with_race(Rules::DEFAULT).with_crossing(),
    };
    let plan = if args.run_limit.is_none() { plan.with_hang_limit(HangLimit::DEFAULT) } else { plan };
    if !is_for_programs(args) {
        output::say(&beginning(args, &plan));
    }
    let paths = full_paths(named.command.first());
    let conducted = conduct(plan, args, named, &input.machine, not_counted, journal.as_mut());
    let study = conducted?;
    let analysis = Analysis::from_study(&study);
    let style = output::style(global.color);
    let is_too_short = first.is_too_short(args, &study.end, &scope);
    let placements = Placements::from_study(&study, &analysis, &scope);
    let drawn = draw(args, &placements);
    if args.json {
        let example = if first == First::OneNode || is_too_short {
            predicted().unwrap_or_default()
        } else {
            Vec::new()
        };
        output::print_json(&json::tune(
            &study,
            &analysis,
            &scope,
            &left_out,
            target.map(|target| (target, &paths)),
            &example,
        ))?;
    } else if args.csv {
        output::print(&csv::tune(&placements))?;
    } else if matches!(study.end, End::BudgetTooShort(_)) {
        // What the first runs took is in the sentence that follows.
    } else if first == First::OneNode {
        let extent = if args.all { Extent::All } else { Extent::Brief };
        output::print(&text::first(&study, &analysis, &left_out, extent, &style))?;
    } else {
        let extent = if args.all { Extent::All } else { Extent::Brief };
        output::print(&text::tune(&study, &analysis, &scope, &left_out, extent, &style))?;
        if let Some(target) = target {
            emit(target, &study, &analysis, &scope, &paths)?;
        }
    }
    if let End::BudgetTooShort(short) = &study.end {
        let why = too_short(short, &study, args);
        if !is_too_short {
            return Err(why);
        }
        if !is_for_programs(args) {
            output::print(&text::tune::too_short(scope.memory_nodes.len(), &why.message, &style))?;
        }
    }
    drawn?;
    match journal.as_mut().and_then(Journal::failure) {
        Some(failure) => Err(unusable(args.journal.as_deref(), &failure)),
        // A study that others should not build on says so to scripts, too.
        None => text::nothing_works(&study).map_or(Ok(0), |why| Err(Failure::cannot(printable(&why)))),
    }
}

/// Shows the placements of a study that was saved; as JSON all of it, as it was written.
fn show_saved(path: &Path, args: &Tune, global: &Global) -> Outcome {
    let read = measuring::read_saved_as("--from", path, "tune --json", |text| {
        let saved = Saved::from_json(text)?;
        if saved.schema() == json::ranking::SCHEMA {
            return json::ranking::read(&saved).map(|counts| (text.to_owned(), Err(counts)));
        }
        let placements = json::tune::read(&saved)?;
        Ok((text.to_owned(), Ok(placements)))
    })?;
    let (document, placements) = match read {
        (document, Ok(placements)) => (document, placements),
        (_, Err(counts)) => return counted::judge_saved(counts, args, global),
    };
    counted::refuse_another_machine(global)?;
    counted::refuse_counting(args)?;
    let drawn = draw(args, &placements);
    if args.json {
        output::print_json(&document)?;
    } else if args.csv {
        output::print(&csv::tune(&placements))?;
    } else {
        output::print(&text::tune::saved(&placements, &output::style(global.color)))?;
    }
    drawn.map(|()| 0)
}

/// Draws the placements where that is asked for. The result is shown before a picture that cannot be written
/// is an error.
fn draw(args: &Tune, placements: &Placements) -> Result<(), Failure> {
    if !placements.is_measured() && pictures(args).are_wanted() {
        output::say("nothing was measured, so there is no picture");
        return Ok(());
    }
    pictures(args).draw(|theme| tune_svg(placements, theme))
}

fn pictures(args: &Tune) -> Pictures<'_> {
    Pictures::new(&args.svg, &args.png)
}

/// Whether the output is read by programs: nothing is said beside it.
const fn is_for_programs(args: &Tune) -> bool {
    args.json || args.csv
}

/// Why nothing was measured: the time is too short for a round, which the warm-up has shown.
fn too_short(short: &TooShort, study: &Study, args: &Tune) -> Failure {
    let option = match &args.time {
        Some(text) => format!("--time {}", printable(text)),
        None => format!("{} without --time", duration(short.budget)),
    };
    let Some(round) = short.round else {
        return Failure::usage(format_args!("{option} is too short: one run of this command takes longer"));
    };
    let runs = study.records.iter().filter_map(|record| {
        let wall = record.run.wall.filter(|_| record.run.ending.is_done())?;
        Some(format!("{} {}", study.plan.arm(record.slot.arm).name, duration(wall)))
    });
    let runs = runs.collect::<Vec<_>>().join(", ");
    Failure::usage(format_args!(
        "{option} is too short: one round of this command takes {}, and the warm-up as long (it showed: {runs})",
        duration(round)
    ))
}

fn conduct(
    plan: Plan,
    args: &Tune,
    named: Named,
    machine: &Machine,
    not_counted: BTreeMap<Counter, String>,
    journal: Option<&mut Journal>,
) -> Result<Study, Failure> {
    let interrupt = measuring::interrupt()?;
    let steal = Steal::begin();
    let conditions = live::conditions(machine, &named.command);
    let counters = Counter::HARDWARE.into_iter().filter(|counter| !not_counted.contains_key(counter));
    let mut witness = CountingWitness::new(machine);
    let head = head(&plan, args, &named, &conditions);
    let mut sensors = Sensors::new();
    let mut cooling = named.cool_down.map(|most| Cooling::begin(&mut sensors, most, &interrupt));
    if cooling.as_ref().is_some_and(|cooling| cooling.sum().began_millicelsius.is_none())
        && !is_for_programs(args)
    {
        output::say("no temperature of the CPUs is known here: --cool-down waits for nothing");
    }
    let executor: Box<dyn Executor> = match named.subject {
        Subject::Program(program) => {
            Box::new(CommandExecutor::new(program, &plan, &mut witness, &interrupt).with_counters(counters))
        }
        Subject::Service(service) => {
            let cpus = Scope::from_machine(machine).cpus;
            Box::new(
                ServeExecutor::new(*service, &plan, cpus, &mut witness, &interrupt).with_counters(counters),
            )
        }
    };
    let (prepare, program) = named.prepare.map(|prepare| (prepare.words, prepare.program)).unzip();
    let mut executor: Box<dyn Executor> = match program {
        Some(program) => Box::new(PreparedExecutor::new(executor, program, &interrupt)),
        None => executor,
    };
    if let Some(cooling) = &mut cooling {
        executor = Box::new(CoolingExecutor::new(executor, cooling));
    }
    let mut progress = Progress::new(&plan);
    let mut experiment = Experiment {
        executor: &mut *executor,
        clock: &Monotonic::start(),
        observer: &mut progress,
        interrupt: &interrupt,
    };
    let mut study = match journal {
        None => experiment.conduct(plan, conditions),
        Some(journal) => {
            let fail = |error: &JournalError| unusable(args.journal.as_deref(), error);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            let past = journal.past();
            journal.begin(&head, now, Some(env!("CARGO_PKG_VERSION"))).map_err(|error| fail(&error))?;
            if past > 0 && !is_for_programs(args) {
                output::say(&format!("resuming after {past} runs recorded in the journal"));
            }
            let study = experiment.conduct_with(plan, conditions, journal);
            if journal.past() > 0 {
                let why = journal.failure();
                return Err(why.as_ref().map_or_else(|| leftover(journal.past()), fail));
            }
            study
        }
    };
    drop(executor);
    progress.finish();
    study.conditions.steal_share = steal.end();
    study.service = named.drive;
    study.prepare = prepare;
    study.cool_down = cooling.map(|cooling| cooling.sum());
    study.not_counted = not_counted;
    Ok(study)
}

/// Opens a journal, or makes an empty one.
fn open(path: &Path) -> Result<Journal, Failure> {
    let file = OpenOptions::new().read(true).append(true).create(true).open(path);
    let file = file.map_err(|why| JournalError::File { what: "open", why });
    file.and_then(Journal::over).map_err(|error| unusable(Some(path), &error))
}

/// Why a journal cannot be used, with its name.
fn unusable(path: Option<&Path>, error: &JournalError) -> Failure {
    let name = path.map_or(String::new(), |path| quote(&path.to_string_lossy()));
    let message = format!("--journal {name}: {error}");
    match error {
        JournalError::File { .. } | JournalError::InUse => Failure::cannot(message),
        _ => Failure::usage(message),
    }
}

/// Runs of a journal that no round of its study has a place for.
fn leftover(runs: usize) -> Failure {
    Failure::usage(format_args!(
        "--journal: the last {runs} runs of the journal come after the end of its study: expected none"
    ))
}

/// Returns the head that a journal has to agree with.
fn head(
    plan: &Plan,
    args: &Tune,
    named: &Named,
    conditions: &nodewise_machine::conditions::Conditions,
) -> Head {
    let mut more = Vec::new();
    if let Some(drive) = &named.drive {
        more.push(("the client", journal::words(&drive.client)));
        more.push(("what says that the server is ready", drive.ready.clone()));
    }
    if let Some(prepare) = &named.prepare {
        more.push(("the preparation", journal::words(&prepare.words)));
    }
    if let Some(most) = &args.cool_down {
        more.push(("the time to cool down", most.clone()));
    }
    if let Some(limit) = &args.run_limit {
        more.push(("the limit of a run", limit.clone()));
    }
    Head::from_plan(plan, conditions, &more)
}

/// The events that cannot be counted here, and why.
fn not_counted() -> BTreeMap<Counter, String> {
    let refused = |counter: Counter| Counting::open(counter).err().map(|why| (counter, why.to_string()));
    Counter::HARDWARE.into_iter().filter_map(refused).collect_map()
}

/// Writes the best placement for another tool.
fn emit(
    target: Target,
    study: &Study,
    analysis: &Analysis,
    scope: &Scope,
    paths: &Paths,
) -> Result<(), Failure> {
    let Some(emitted) = emit::best(target, study, &analysis.advice, scope, paths) else {
        output::say(&emit::nothing(target, study, &analysis.advice));
        return Ok(());
    };
    let emitted =
        emitted.map_err(|error| Failure::cannot(format_args!("--emit {}: {error}", target.name())))?;
    emitted.notes.iter().for_each(|note| output::say(note));
    output::print(&format!("\n{}\n", emitted.text.trim_end()))?;
    Ok(())
}

/// Says in one line what is about to be done.
fn beginning(args: &Tune, plan: &Plan) -> String {
    let what = match (&args.serve, args.command.is_empty()) {
        (Some(_), _) => "the server",
        (None, true) => "a built-in workload",
        (None, false) => "the program",
    };
    let arms = plural(plan.arms().len(), "placement");
    let time = match plan.rounds {
        Rounds::Within { budget, .. } => format!(" for at most {}", duration(budget)),
        Rounds::Exactly(_) => String::new(),
    };
    format!("tuning {what} under {arms}{time}; Ctrl-C ends it with the results so far")
}
