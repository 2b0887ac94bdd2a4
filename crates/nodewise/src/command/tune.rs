//! `nodewise tune`: options to a plan, the plan to a study, the study to its reader.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use clap::{Args as _, FromArgMatches as _};
use nodewise_machine::{DeviceRef, Machine};
use nodewise_measure::candidates::{Candidates, LeftOut};
use nodewise_measure::command::{CommandExecutor, Program};
use nodewise_measure::experiment::{Experiment, Monotonic};
use nodewise_measure::metric::{Direction, Metric, Pattern};
use nodewise_measure::placement::{Placement, Scope};
use nodewise_measure::race::Rules;
use nodewise_measure::study::{End, Plan, Rounds, Study, Treatment};
use nodewise_measure::verdict::Analysis;
use nodewise_source::Detail;
use nodewise_syscall::StartError;
use nodewise_view::emit::{self, Target};
use nodewise_view::{json, text};

use crate::cli::Global;
use crate::cli::place::Place;
use crate::cli::tune::Tune;
use crate::failure::{CANNOT, Failure, INTERNAL, Outcome};
use crate::input::{self, Input};
use crate::placement::Resolver;
use crate::progress::Progress;
use crate::{huge, live, measuring, output, usage};

/// Most rounds when only the time is limited.
const MOST_ROUNDS: u32 = 200;

/// Runs the verb.
pub fn run(args: &Tune, global: &Global) -> Outcome {
    if !input::is_live(&global.machine) {
        return Err(Failure::usage("a program is tuned on this machine: --machine has no meaning with it"));
    }
    let metric = metric(args)?;
    let target = args.emit.as_deref().map(str::parse::<Target>).transpose();
    let target = target.map_err(|error| Failure::usage(format_args!("--emit: {error}")))?;
    let rounds = rounds(args)?;
    let command = command(args)?;
    let limit = args.run_limit.as_deref().map(|text| time("--run-limit", text)).transpose()?;
    let input = input::load("live", Detail::Full)?;
    let (treatments, left_out) = treatments(args, &input)?;
    let scope = Scope::of(&input.machine);
    let seed = measuring::seed(args.seed);
    let plan = Plan::new(treatments, metric, rounds, seed)
        .map_err(|error| Failure::usage(format_args!("--runs: {error}")))?;
    let plan = if args.no_race { plan } else { plan.with_race(Rules::DEFAULT) };
    if !args.json {
        output::tell(&beginning(args, &plan, &input.machine));
    }
    let study = conduct(plan, &command, limit, &input.machine)?;
    let analysis = Analysis::of(&study);
    if args.json {
        output::print_json(&json::tune(&study, &analysis, &scope, &left_out, target))?;
    } else {
        let style = output::style(global.color);
        output::print(&text::tune(&study, &analysis, &scope, &left_out, &style))?;
        if let Some(target) = target {
            emit(target, &study, &analysis, &scope)?;
        }
    }
    Ok(if matches!(study.end, End::BaselineFailed(_)) { CANNOT } else { 0 })
}

fn conduct(
    plan: Plan,
    command: &[OsString],
    limit: Option<Duration>,
    machine: &Machine,
) -> Result<Study, Failure> {
    let interrupt = measuring::interrupt()?;
    let program = Program::new(command).ok_or_else(|| Failure::usage("no program to tune"))?;
    let program = match limit {
        Some(limit) => program.with_time_limit(limit),
        None => program,
    };
    let mut witness = live::SystemWitness::new();
    let steal = live::Steal::begin();
    let mut conditions = live::conditions(machine, command);
    let mut executor = CommandExecutor::new(program, &plan, &mut witness, &interrupt);
    let mut progress = Progress::new(&plan);
    let mut study = Experiment {
        executor: &mut executor,
        clock: &Monotonic::start(),
        observer: &mut progress,
        interrupt: &interrupt,
    }
    .conduct(plan, std::mem::take(&mut conditions));
    progress.finish();
    study.conditions.steal_share = steal.end();
    Ok(study)
}

/// Writes the best placement for another tool.
fn emit(target: Target, study: &Study, analysis: &Analysis, scope: &Scope) -> Result<(), Failure> {
    let Some(emitted) = emit::best(target, study, &analysis.advice, scope) else {
        output::tell(&format!("nothing to write for {}: the default is to be kept", target.name()));
        return Ok(());
    };
    let emitted =
        emitted.map_err(|error| Failure::cannot(format_args!("--emit {}: {error}", target.name())))?;
    emitted.notes.iter().for_each(|note| output::tell(note));
    output::print(&format!("\n{}\n", emitted.text.trim_end()))?;
    Ok(())
}

/// What is about to be done, in one line.
fn beginning(args: &Tune, plan: &Plan, machine: &Machine) -> String {
    let what = if args.command.is_empty() { "the built-in stream workload" } else { "the program" };
    let arms = plan.arms().len();
    let one =
        if machine.nodes.len() < 2 { "; this machine has one node, so few placements differ" } else { "" };
    format!(
        "tuning {what} under {arms} placement{}{one}; Ctrl-C ends it with the results so far",
        if arms == 1 { "" } else { "s" }
    )
}

/// The program: the user's, or one of ours.
fn command(args: &Tune) -> Result<Vec<OsString>, Failure> {
    if !args.command.is_empty() {
        return Ok(args.command.clone());
    }
    let own = std::env::current_exe().map_err(|error| {
        Failure::new(INTERNAL, format_args!("cannot find nodewise itself to run its workload: {error}"))
    })?;
    Ok(vec![own.into(), "workload".into(), "stream".into()])
}

fn metric(args: &Tune) -> Result<Metric, Failure> {
    let direction = if args.higher_is_better { Direction::HigherIsBetter } else { Direction::LowerIsBetter };
    match args.metric.as_str() {
        "wall" if args.higher_is_better => {
            Err(Failure::usage("--higher-is-better contradicts --metric=wall: less time is better"))
        }
        "wall" => Ok(Metric::Wall),
        pattern => {
            let pattern =
                Pattern::new(pattern).map_err(|error| Failure::usage(format_args!("--metric: {error}")))?;
            Ok(Metric::Printed(pattern, direction))
        }
    }
}

fn rounds(args: &Tune) -> Result<Rounds, Failure> {
    let budget = args.time.as_deref().map(|text| time("--time", text)).transpose()?;
    Ok(match (args.runs, budget) {
        (Some(runs), None) => Rounds::Exactly(runs),
        (runs, Some(budget)) => Rounds::Within { budget, at_most: runs.unwrap_or(MOST_ROUNDS) },
        (None, None) if args.no_race => Rounds::DEFAULT,
        (None, None) => Rounds::RACE,
    })
}

/// `500ms`, `90s`, `1.5m`, `2h`; a bare number is seconds.
fn time(option: &str, text: &str) -> Result<Duration, Failure> {
    let fail = || {
        let text = nodewise_machine::printable::quote(text);
        Failure::usage(format_args!(
            "{option}: {text} is not a time: expected seconds, or a number with ms, s, m or h as in 10m"
        ))
    };
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(fail()),
    };
    let number: f64 = number.parse().map_err(|_| fail())?;
    Duration::try_from_secs_f64(number * scale).ok().filter(|time| !time.is_zero()).ok_or_else(fail)
}

/// What is compared: the placements that were named, or those that make sense here.
fn treatments(args: &Tune, input: &Input) -> Result<(Vec<Treatment>, Vec<LeftOut>), Failure> {
    if args.placement.is_empty() {
        return Ok(candidates(&input.machine));
    }
    let scope = Scope::of(&input.machine);
    let mut treatments = vec![Treatment::new("default", Placement::DEFAULT)];
    for words in &args.placement {
        let placement =
            named(words, input).map_err(|error| Failure::usage(format_args!("--placement: {error}")))?;
        // The default is there already, and so is what was named twice.
        if treatments.iter().any(|treatment| treatment.placement == placement) {
            continue;
        }
        if let Err(error) = CommandExecutor::check(&placement) {
            return Err(Failure::cannot(format_args!("--placement: {}", why(error, &input.machine))));
        }
        treatments.push(treatment(placement.name(&scope), placement, &input.machine));
    }
    Ok((treatments, Vec::new()))
}

/// The placements that make sense here, without those that this process may not apply.
fn candidates(machine: &Machine) -> (Vec<Treatment>, Vec<LeftOut>) {
    let Candidates { chosen, mut left_out } = Candidates::of(machine);
    let mut treatments = Vec::new();
    for candidate in chosen {
        // The default is what others are compared with; that it works is for the first run to show.
        let checked = match &candidate.placement {
            default if *default == Placement::DEFAULT => Ok(()),
            placement => CommandExecutor::check(placement),
        };
        match checked {
            Ok(()) => treatments.push(treatment(candidate.name, candidate.placement, machine)),
            Err(error) => left_out.push(LeftOut { name: candidate.name, why: why(error, machine) }),
        }
    }
    (treatments, left_out)
}

fn why(error: StartError, machine: &Machine) -> String {
    match error {
        StartError::Setup(error) => live::explain(&error, machine).to_string(),
        StartError::Start(error) => error.to_string(),
    }
}

fn treatment(name: String, placement: Placement, machine: &Machine) -> Treatment {
    let mut environment = BTreeMap::new();
    if let Some((variable, value)) = huge::variable(&placement, machine) {
        environment.insert(variable.to_owned(), value.to_string_lossy().into_owned());
    }
    Treatment { environment, ..Treatment::new(name, placement) }
}

/// A placement from its words: options of `run`, with or without the dashes, separated by blanks.
fn named(words: &str, input: &Input) -> Result<Placement, String> {
    let dashed = |word: &str| if word.starts_with('-') { word.to_owned() } else { format!("--{word}") };
    let options = words.split_ascii_whitespace().filter(|word| *word != "default").map(dashed);
    let command =
        Place::augment_args(clap::Command::new("placement").no_binary_name(true).disable_help_flag(true));
    let sentence = |error: clap::Error| usage::sentence(&error, "nodewise run");
    let matches = command.try_get_matches_from(options).map_err(sentence)?;
    let place = Place::from_arg_matches(&matches).map_err(sentence)?;
    let find = |device: &DeviceRef| input.node_of(device);
    let resolver =
        Resolver { place: &place, order: Place::typed_order(&matches), machine: &input.machine, find: &find };
    resolver.resolve().map(|resolved| resolved.placement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_units() {
        for (text, seconds) in [("90", 90.0), ("90s", 90.0), ("1.5m", 90.0), ("2h", 7200.0), ("500ms", 0.5)] {
            assert_eq!(time("--time", text).unwrap(), Duration::from_secs_f64(seconds), "{text}");
        }
        for text in ["", "m", "1d", "-1", "0", "1e9h", "1.2.3", "99999999999999999999h"] {
            assert!(time("--time", text).is_err(), "{text}");
        }
    }

    #[test]
    fn placements_are_options_of_run_without_dashes() {
        let input = input::open("2x(2c 1G)", Detail::Full).unwrap();
        let scope = Scope::of(&input.machine);
        let name = |words: &str| named(words, &input).map(|placement| placement.name(&scope));
        assert_eq!(name("cpunodebind=0 membind=same").as_deref(), Ok("local to node 0"));
        assert_eq!(name("interleave=all huge=never").as_deref(), Ok("interleave all, huge pages off"));
        assert_eq!(name("--cpunodebind=0 -m0").as_deref(), Ok("local to node 0"));
        assert_eq!(name("default").as_deref(), Ok("default"));
        assert_eq!(
            name("membind=9"),
            Err("--membind: node 9 does not exist: this machine has nodes 0-1".to_owned())
        );
        assert_eq!(name("nosuch=1"), Err("--nosuch is no option of nodewise run".to_owned()));
    }
}
