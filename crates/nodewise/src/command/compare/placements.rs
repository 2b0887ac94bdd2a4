//! `--placements default,interleave=all`: words to treatments.

use clap::Args as _;
use nodewise_experiment::command::CommandExecutor;
use nodewise_experiment::study::Treatment;
use nodewise_machine::placement::{Placement, Scope};

use crate::cli::place::PlacementOptions;
use crate::command::tune::placements as tune;
use crate::failure::Failure;
use crate::input::Input;

/// The placements to compare, the first the one that others are compared with; without a list only what
/// there is anyway.
///
/// # Errors
/// A placement that cannot be read or applied, one that is named twice, and a list of a single one.
pub fn treatments(list: Option<&str>, input: &Input) -> Result<Vec<Treatment>, Failure> {
    let Some(list) = list else { return Ok(vec![Treatment::new("default", Placement::DEFAULT)]) };
    let scope = Scope::from_machine(&input.machine);
    let wrong = |why: String| Failure::usage(format_args!("--placements: {why}"));
    let mut treatments: Vec<Treatment> = Vec::new();
    for words in split(list) {
        let placement = tune::named(words, input).map_err(wrong)?;
        let name = placement.name(&scope);
        if treatments.iter().any(|other| other.placement == placement || other.name == name) {
            return Err(wrong(format!("{name} is listed twice")));
        }
        if let Err(error) = CommandExecutor::check(&placement) {
            let why = tune::why(error, &input.machine);
            return Err(Failure::cannot(format_args!("--placements: {why}")));
        }
        treatments.push(tune::treatment(name, placement, &input.machine));
    }
    if treatments.len() < 2 {
        return Err(wrong("expected two or more with commas between, as default,interleave=all".to_owned()));
    }
    Ok(treatments)
}

/// The placements of a list. A comma ends one where an option of `run` follows it, or `default`: others
/// belong to lists of nodes.
fn split(list: &str) -> Vec<&str> {
    let options = PlacementOptions::augment_args(clap::Command::new("placement"));
    let begins = |rest: &str| {
        let word = rest.trim_start().trim_start_matches('-');
        let end = word.find(['=', ' ', ',']).unwrap_or(word.len());
        let word = &word[..end];
        word == "default" || options.get_arguments().any(|option| option.get_long() == Some(word))
    };
    let mut placements = Vec::new();
    let mut start = 0;
    for (comma, _) in list.match_indices(',') {
        if begins(&list[comma + 1..]) {
            placements.push(list[start..comma].trim());
            start = comma + 1;
        }
    }
    placements.push(list[start..].trim());
    placements
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;
    use nodewise_source::Detail;

    #[test]
    fn commas_inside_of_node_lists_are_left_alone() {
        for (list, expected) in [
            ("default,interleave=all", vec!["default", "interleave=all"]),
            ("interleave=0,2, default", vec!["interleave=0,2", "default"]),
            ("cpunodebind=0 membind=0,1,--preferred=1", vec!["cpunodebind=0 membind=0,1", "--preferred=1"]),
            ("localalloc,huge=never", vec!["localalloc", "huge=never"]),
            ("membind=0,all", vec!["membind=0,all"]),
            ("", vec![""]),
        ] {
            assert_eq!(split(list), expected, "{list}");
        }
    }

    #[test]
    fn a_list_needs_two_placements_that_differ() {
        let input = input::open("2x(2c 1G)", Detail::Full).unwrap();
        let refused = |list| treatments(Some(list), &input).map(drop).unwrap_err().message;
        assert_eq!(
            refused("default"),
            "--placements: expected two or more with commas between, as default,interleave=all"
        );
        assert_eq!(refused("default,default"), "--placements: default is listed twice");
        assert!(refused("default,membind=9").starts_with("--placements: --membind: node 9 does not exist"));
        assert_eq!(treatments(None, &input).unwrap().len(), 1);
    }
}
