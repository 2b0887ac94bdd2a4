//! The placements that `tune` compares: those that were named, or those that make sense here.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Args as _, FromArgMatches as _};
use nodewise_experiment::candidates::{Candidates, LeftOut};
use nodewise_experiment::command::CommandExecutor;
use nodewise_experiment::study::Treatment;
use nodewise_machine::placement::{Placement, Scope};
use nodewise_machine::printable::quote;
use nodewise_machine::{DeviceRef, Machine};
use nodewise_syscall::StartError;

use super::space::{self, Options, Origin, Space};
use super::threads::{self, Count};
use crate::cli::place::PlacementOptions;
use crate::cli::tune::Tune;
use crate::failure::Failure;
use crate::input::Input;
use crate::placement::Resolver;
use crate::{huge, live, usage};

/// Collects the compared treatments, and those left out with the reason: the placements that were named,
/// those of a space, or those that make sense here, each with every number of threads. `asks` shows
/// whether the program's words ask for that number.
///
/// # Errors
/// Options and files that do not read, or name what this machine does not have.
pub fn treatments(args: &Tune, input: &Input, asks: bool) -> Result<(Vec<Treatment>, Vec<LeftOut>), Failure> {
    let machine = &input.machine;
    let threads = args.threads.as_deref().map(Count::parse_list).transpose();
    let mut threads =
        threads.map_err(|error| Failure::usage(format_args!("--threads: {error}")))?.unwrap_or_default();
    let (treatments, mut left_out) = match &args.space {
        Some(path) => {
            let space = space::read(path, machine)?;
            if !space.threads.is_empty() && !threads.is_empty() {
                return Err(Failure::usage("--threads: the file of --space says how many threads already"));
            }
            threads.extend(&space.threads);
            let within = of_space(space, input);
            within.map_err(|why| {
                let name = quote(&path.to_string_lossy());
                Failure::usage(format_args!("--space {name}: {why}"))
            })?
        }
        None if args.placement.is_empty() => candidates(machine),
        None => (of_options(args, input)?, Vec::new()),
    };
    if asks && threads.is_empty() {
        threads.push(Count::Cpus);
    }
    if threads.is_empty() {
        return Ok((treatments, left_out));
    }
    let (treatments, same) = threads::with_thread_counts(treatments, &threads, asks, machine);
    left_out.extend(same);
    Ok((treatments, left_out))
}

/// The placements of a space, without those that are the same here or cannot be had. Words that give
/// none at all are wrong, and not this machine.
fn of_space(space: Space, input: &Input) -> Result<(Vec<Treatment>, Vec<LeftOut>), String> {
    let machine = &input.machine;
    let scope = Scope::from_machine(machine);
    let (mut treatments, mut left_out) = match space.usual {
        true => candidates(machine),
        false => (vec![Treatment::new("default", Placement::DEFAULT)], Vec::new()),
    };
    left_out.extend(space.left_out);
    let mut refused: Vec<(&Options, String)> = Vec::new();
    let mut good: BTreeSet<Origin> = BTreeSet::new();
    for options in &space.options {
        let placement = match named(&options.words, input) {
            Ok(placement) => placement,
            Err(error) => {
                refused.push((options, error));
                continue;
            }
        };
        good.extend(&options.origins);
        let (name, simple) = (placement.name(&scope), placement.within(&scope));
        if let Some(same) = treatments.iter().find(|treatment| treatment.placement.within(&scope) == simple) {
            // That nothing is nothing needs no words.
            if name != same.name {
                left_out.push(LeftOut { name, why: format!("the same as {} here", same.name) });
            }
            continue;
        }
        match CommandExecutor::check(&simple) {
            Ok(()) => treatments.push(treatment(simple.name(&scope), simple, machine)),
            Err(error) => left_out.push(LeftOut { name, why: why(error, machine) }),
        }
    }
    for (options, error) in refused {
        if let Some(origin) = options.origins.iter().find(|origin| !good.contains(origin)) {
            return Err(format!("line {}: {error}", origin.line));
        }
        left_out.push(LeftOut { name: options.words.clone(), why: error });
    }
    Ok((treatments, left_out))
}

/// The default and the placements that were named.
fn of_options(args: &Tune, input: &Input) -> Result<Vec<Treatment>, Failure> {
    let scope = Scope::from_machine(&input.machine);
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
    Ok(treatments)
}

/// The placements that make sense here, without those that this process may not apply.
fn candidates(machine: &Machine) -> (Vec<Treatment>, Vec<LeftOut>) {
    let Candidates { chosen, mut left_out } = Candidates::from_machine(machine);
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

pub fn why(error: StartError, machine: &Machine) -> String {
    match error {
        StartError::Setup(error) => live::explain(&error, machine).to_string(),
        StartError::Start(error) => error.to_string(),
    }
}

pub fn treatment(name: String, placement: Placement, machine: &Machine) -> Treatment {
    let mut environment = BTreeMap::new();
    if let Some((variable, value)) = huge::variable(&placement, machine) {
        environment.insert(variable.to_owned(), value.to_string_lossy().into_owned());
    }
    Treatment { environment, ..Treatment::new(name, placement) }
}

/// A placement from its words, as [`typed`] reads them.
pub fn named(words: &str, input: &Input) -> Result<Placement, String> {
    let (place, order) = typed(words)?;
    let find = |device: &DeviceRef| input.node_of(device);
    let resolver = Resolver { place: &place, order, machine: &input.machine, find: &find };
    resolver.resolve().map(|resolved| resolved.placement)
}

/// Options of `run`, with or without the dashes, separated by blanks; and those that take nodes in the order
/// in which they are.
pub fn typed(words: &str) -> Result<(PlacementOptions, Vec<&'static str>), String> {
    let dashed = |word: &str| if word.starts_with('-') { word.to_owned() } else { format!("--{word}") };
    let options = words.split_ascii_whitespace().filter(|word| *word != "default").map(dashed);
    let command = PlacementOptions::augment_args(
        clap::Command::new("placement").no_binary_name(true).disable_help_flag(true),
    );
    let sentence = |error: clap::Error| usage::sentence(&error, &["nodewise", "run"]);
    let matches = command.try_get_matches_from(options).map_err(sentence)?;
    Ok((
        PlacementOptions::from_arg_matches(&matches).map_err(sentence)?,
        PlacementOptions::typed_order(&matches),
    ))
}

#[cfg(test)]
mod tests {
    mod merging;

    use super::*;
    use crate::input;
    use nodewise_source::Detail;

    #[test]
    fn placements_are_options_of_run_without_dashes() {
        let input = input::open("2x(2c 1G)", Detail::Full).unwrap();
        let scope = Scope::from_machine(&input.machine);
        let name = |words: &str| named(words, &input).map(|placement| placement.name(&scope));
        assert_eq!(name("cpunodebind=0 membind=same").as_deref(), Ok("local to node 0"));
        assert_eq!(name("interleave=all huge=never").as_deref(), Ok("interleave all, huge pages off"));
        assert_eq!(name("--cpunodebind=0 -m0").as_deref(), Ok("local to node 0"));
        assert_eq!(name("default").as_deref(), Ok("default"));
        assert_eq!(
            name("membind=9"),
            Err("--membind: node 9 does not exist: this machine has nodes 0-1".to_owned())
        );
        assert_eq!(name("nosuch=1"), Err("--nosuch is not an option of nodewise run".to_owned()));
    }
}
