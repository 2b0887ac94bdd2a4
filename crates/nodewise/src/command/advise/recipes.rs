//! A placement as command lines and files of other tools, and the commands that would say more.

use std::ffi::OsString;

use nodewise_diagnose::advice::{Advice, Profile};
use nodewise_diagnose::finding::Owner;
use nodewise_diagnose::knowledge::Application;
use nodewise_experiment::emit::{self, Target};
use nodewise_experiment::shell;
use nodewise_machine::placement::Placement;
use nodewise_view::digest::advice::Recipe;

use crate::command::run::full_paths;

/// The placements for `run`, for the tool of the owner, and for that of the program.
pub(super) fn recipes(
    profile: &Profile,
    placements: &[Placement],
    owner: &Owner,
    application: Option<&Application>,
    command: &[OsString],
) -> Vec<Recipe> {
    let words = words(command);
    let program = if words.is_empty() { "PROGRAM".to_owned() } else { shell::shown(&words) };
    let line = |placement: &Placement| {
        let options = placement.run_options(&profile.scope)?;
        Some(format!("nodewise run {} -- {program}", options.join(" ")))
    };
    let lines: Vec<String> = placements.iter().filter_map(line).collect();
    let mut recipes = Vec::new();
    if !lines.is_empty() {
        recipes.push(Recipe { tool: "run", text: lines.join("\n"), notes: Vec::new() });
    }
    // Other tools have one placement each: of several instances the first is an example.
    let Some(placement) = placements.first() else { return recipes };
    let mut targets: Vec<Target> = of_owner(owner).into_iter().collect();
    targets.extend(application.and_then(|of| of.emit.as_ref()?.parse::<Target>().ok()));
    targets.dedup();
    for target in targets {
        let emitted = emit::emit(target, placement, &words, &profile.scope, &full_paths(command.first()));
        recipes.push(match emitted {
            Ok(emitted) => {
                Recipe { tool: target.name(), text: emitted.text.trim_end().to_owned(), notes: emitted.notes }
            }
            // Why a tool cannot is worth knowing before someone tries.
            Err(unsaid) => {
                Recipe { tool: target.name(), text: String::new(), notes: vec![unsaid.to_string()] }
            }
        });
    }
    recipes
}

fn of_owner(owner: &Owner) -> Option<Target> {
    match owner {
        Owner::Itself => None,
        Owner::Service(_) => Some(Target::Systemd),
        Owner::Container("podman", _) => Some(Target::Podman),
        Owner::Container(..) => Some(Target::Docker),
        Owner::Kubelet => Some(Target::K8s),
        Owner::Slurm => Some(Target::Slurm),
        Owner::Libvirt(_) => Some(Target::Libvirt),
    }
}

/// The `tune` command that compares exactly the candidates.
pub(super) fn tune(
    profile: &Profile,
    advice: &Advice,
    command: &[OsString],
    is_service: bool,
) -> Option<String> {
    let name = |placement: &Placement| {
        let options = placement.run_options(&profile.scope)?;
        let words: Vec<&str> = options.iter().map(|option| option.trim_start_matches('-')).collect();
        let text = if words.is_empty() { "default".to_owned() } else { words.join(" ") };
        Some(format!("--placement {}", shell::shown([text])))
    };
    let placements: Vec<String> = advice.ask.iter().filter_map(name).collect();
    if placements.len() < 2 {
        return None;
    }
    let placements = placements.join(" ");
    let words = words(command);
    Some(match (is_service, words.is_empty()) {
        (true, _) => {
            format!("nodewise tune {placements} --serve 'PROGRAM' --ready PORT --drive 'CLIENT'")
        }
        (false, true) => format!("nodewise tune {placements} -- PROGRAM"),
        (false, false) => format!("nodewise tune {placements} -- {}", shell::shown(words)),
    })
}

/// The command that starts a program for a while and watches it.
pub(super) fn trial(command: &[OsString]) -> String {
    format!("nodewise advise --trial 30s -- {}", shell::shown(words(command)))
}

fn words(command: &[OsString]) -> Vec<String> {
    command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_of_the_file_of_programs_is_one_of_run() {
        for application in nodewise_diagnose::knowledge::applications().unwrap() {
            if let Some(tool) = application.emit {
                assert!(tool.parse::<Target>().is_ok(), "{}: {tool}", application.id);
            }
        }
    }
}
