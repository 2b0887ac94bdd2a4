//! `nodewise advise`.

mod apply;
mod measured;
mod reading;
mod recipes;
mod trial;

use std::collections::BTreeSet;
use std::time::Duration;

use nodewise_diagnose::advice::{self, Advice, HORIZON, InForce, Profile, ProgramReading};
use nodewise_diagnose::finding::{Owner, Subject};
use nodewise_diagnose::knowledge::{self, Application};
use nodewise_diagnose::situation::Class;
use nodewise_diagnose::{Pid, Situation};
use nodewise_machine::Machine;
use nodewise_machine::printable::quote;
use nodewise_source::Detail;
use nodewise_source::sample::{Identity, ProcessSample, Sample};
use nodewise_source::tree::Tree;
use nodewise_view::digest::advice::{AdviceReport, AdvisedProgram};
use nodewise_view::{json, text};

use crate::cli::Global;
use crate::cli::advise::Advise;
use crate::command::doctor::watch;
use crate::command::run::full_paths;
use crate::command::subject::{self, WantedProcesses};
use crate::failure::{CANNOT, Failure, INTERNAL, Outcome};
use crate::{input, output};

/// Runs the verb.
pub fn run(args: &Advise, global: &Global) -> Outcome {
    let applications = knowledge::applications().map_err(|error| Failure::new(INTERNAL, error))?;
    let horizon = args.horizon.unwrap_or(HORIZON);
    if let Some(unit) = args.unit.as_ref().filter(|_| args.revert) {
        return apply::revert(unit);
    }
    if args.trial.is_some() && args.command.is_empty() {
        return Err(Failure::usage("--trial starts a program: expected -- PROGRAM"));
    }
    if !args.command.is_empty() {
        return match args.trial {
            Some(time) => {
                let trial = trial::run(&args.command, time)?;
                process(&trial, args, global, &applications, horizon)
            }
            None => unstarted(args, global, &applications, horizon),
        };
    }
    process(&watched(args)?, args, global, &applications, horizon)
}

/// A process at the ends of a window.
struct Watched {
    machine: Machine,
    before: Option<Sample>,
    now: Sample,
    process: Identity,
    reading: ProgramReading,
    /// Other processes that were asked for.
    others: usize,
}

fn watched(args: &Advise) -> Result<Watched, Failure> {
    let number = args.process.as_ref().and_then(|text| text.parse().ok());
    let names: Vec<String> = args.process.iter().filter(|_| number.is_none()).cloned().collect();
    let wanted = WantedProcesses {
        pids: number.into_iter().collect(),
        names: &names,
        unit: args.unit.as_deref(),
        ..WantedProcesses::default()
    };
    let Some(named) = subject::find(&wanted, Tree::live())? else {
        return Err(Failure::usage(
            "nothing to advise about: expected a process, --unit NAME, or -- PROGRAM",
        ));
    };
    let machine = input::load("live", Detail::Full)?.machine;
    // On one node there is nothing to choose, whatever a window shows.
    let is_decided = Class::from_machine(&machine) == Class::One && args.tune.is_none();
    let (before, now) = match args.window {
        None if is_decided => (None, watch::once(Some(&named))),
        window => watch::watch(window.unwrap_or(watch::WINDOW), Some(&named))?,
    };
    choose(machine, before, now, &named)
        .ok_or_else(|| Failure::cannot("the process ended while it was watched"))
}

/// Takes the largest of these processes, and reads about it what samples do not hold.
fn choose(
    machine: Machine,
    before: Option<Sample>,
    mut now: Sample,
    named: &BTreeSet<Pid>,
) -> Option<Watched> {
    let there = now.processes.iter().filter(|process| named.contains(&process.identity.pid));
    let process = there.max_by_key(|process| process.resident)?.identity;
    reading::add_mappings(&mut now, process);
    let reading = reading::read(process);
    Some(Watched { machine, before, now, process, reading, others: named.len() - 1 })
}

/// Advises about a process.
fn process(
    watched: &Watched,
    args: &Advise,
    global: &Global,
    applications: &[Application],
    horizon: Duration,
) -> Outcome {
    let Watched { machine, before, now, reading, .. } = watched;
    let situation = Situation::new(machine, before.as_ref(), now).map_err(Failure::cannot)?;
    let process =
        now.process(watched.process).ok_or_else(|| Failure::new(INTERNAL, "the process is lost"))?;
    if process.kernel_thread {
        let name = quote(&process.name);
        return Err(Failure::cannot(format_args!(
            "{name} is a thread of the kernel: it has no memory of its own"
        )));
    }
    let application = knowledge::recognise(applications, &reading.facts);
    let profile = advice::from_process(&situation, process, reading, application, horizon);
    let advice = advice_for(&profile, application, reading, args)?;
    let owner = Owner::from_process(process);
    let in_force = advice.in_force(&profile);
    let recipes = recipes::recipes(&profile, &advice.placements, &owner, application, &[]);
    let at_once = match in_force {
        InForce::Yes => Vec::new(),
        _ => advice.at_once(&profile, watched.process.pid.number(), &owner),
    };
    let applied = if args.apply {
        let (name, in_force, recipes) = (&process.name, &in_force, &recipes);
        let placed = apply::Placed {
            watched,
            name,
            profile: &profile,
            advice: &advice,
            owner: &owner,
            in_force,
            recipes,
        };
        Some(apply::apply(&placed, args)?)
    } else {
        None
    };
    let wall = now.moment.wall;
    let subject = subject(process, &owner);
    let report = AdviceReport {
        program: AdvisedProgram::Process(&subject),
        others: watched.others,
        window: situation.window(),
        taken_at: (!wall.is_zero()).then_some(wall),
        profile: &profile,
        advice: &advice,
        application,
        in_force: Some(in_force.clone()),
        recipes: &recipes,
        at_once: &at_once,
        ask: recipes::tune(&profile, &advice, &args.command, matches!(owner, Owner::Service(_))),
        trial: None,
        applied: applied.as_ref(),
    };
    show(&report, args, global)?;
    if let Some(applied) = &applied {
        return Ok(apply::code(applied));
    }
    Ok(match in_force {
        _ if !args.check => 0,
        InForce::Yes => 0,
        InForce::No(_) => 1,
        InForce::Unknown(_) => CANNOT,
    })
}

/// By the table, or by the study that was named.
fn advice_for(
    profile: &Profile,
    application: Option<&Application>,
    reading: &ProgramReading,
    args: &Advise,
) -> Result<Advice, Failure> {
    let Some(path) = &args.tune else { return Ok(Advice::new(profile, application)) };
    let measured = measured::read(path, &reading.facts)?;
    Ok(Advice::from_measurement(profile, application, &measured.best, &measured.words))
}

fn subject(process: &ProcessSample, owner: &Owner) -> Subject {
    Subject::Process {
        identity: process.identity,
        name: process.name.as_ref().to_owned(),
        owner: owner.clone(),
    }
}

/// Says what is known of a program that was not started.
fn unstarted(args: &Advise, global: &Global, applications: &[Application], horizon: Duration) -> Outcome {
    if args.check {
        return Err(Failure::usage("--check compares with a running process: expected one, or --trial TIME"));
    }
    let machine = input::load("live", Detail::Full)?.machine;
    let now = watch::once(None);
    let situation = Situation::new(&machine, None, &now).map_err(Failure::cannot)?;
    let path = full_paths(args.command.first()).program;
    let path = path.ok_or_else(|| {
        let name = args.command.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Failure::cannot(format_args!("{} is not found: no folder of PATH has it", quote(&name)))
    })?;
    let reading = reading::of_file(&path, &args.command);
    let application = knowledge::recognise(applications, &reading.facts);
    let profile: Profile = advice::unstarted(&situation, &reading, application, horizon);
    let advice = advice_for(&profile, application, &reading, args)?;
    let recipes = recipes::recipes(&profile, &advice.placements, &Owner::Itself, application, &args.command);
    let report = AdviceReport {
        program: AdvisedProgram::File(&path),
        others: 0,
        window: None,
        taken_at: Some(now.moment.wall),
        profile: &profile,
        advice: &advice,
        application,
        in_force: None,
        recipes: &recipes,
        at_once: &[],
        ask: recipes::tune(&profile, &advice, &args.command, false),
        trial: Some(recipes::trial(&args.command)),
        applied: None,
    };
    show(&report, args, global)?;
    Ok(0)
}

fn show(report: &AdviceReport<'_>, args: &Advise, global: &Global) -> Result<(), Failure> {
    Ok(output::show(args.json, global.color, || json::advice(report), |style| text::advice(report, style))?)
}
