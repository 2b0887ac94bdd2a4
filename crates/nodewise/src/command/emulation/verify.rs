//! `nodewise emulation verify`.

use std::path::Path;

use nodewise_boot::{Root, plan};
use nodewise_machine::{Machine, NodeSet};
use nodewise_model::fake::Fake;
use nodewise_model::fake::outcome::{Emulation, EmulationVariant, emulate, remark};
use nodewise_source::Detail;
use nodewise_view::digest::emulation::{Check, Verified, advice};
use nodewise_view::{json, text};

use super::before::Before;
use super::facts::Facts;
use super::ground::Ground;
use super::named;
use crate::cli::Global;
use crate::cli::emulation::Verify;
use crate::failure::Outcome;
use crate::{input, output};

/// Runs `emulation verify`.
pub(super) fn run(args: &Verify, global: &Global) -> Outcome {
    let input = input::load(&global.machine, Detail::Full)?;
    let is_live = input::is_live(&global.machine);
    let facts = Facts::from_input(&input, is_live);
    let machine = &input.machine;
    let before = args.against.as_deref().map(Before::read).transpose()?;
    let mut checks = Vec::new();
    if is_live {
        checks.extend(boot_files(&facts));
    }
    checks.push(asked(&facts));
    if let Some(text) = facts.command_line_fake() {
        checks.push(known(&facts));
        checks.extend(nodes(text, &facts, machine));
    }
    checks.extend(policy(&facts));
    let verified = Verified {
        checks,
        brought: before.map(|before| before.brought(machine, &facts)),
        advice: advice(&facts.effect(machine), facts.raspberry_pi().is_some()),
    };
    let json = || json::emulation::verify(&verified);
    output::show(args.json, global.color, json, |style| text::emulation::verify(&verified, style))?;
    Ok(u8::from(!verified.holds()))
}

/// Whether the running kernel was started with what the boot files say by now.
fn boot_files(facts: &Facts) -> Option<Check> {
    let what = "the boot files were in force at the last start";
    let asked = Root::open(Path::new("/")).and_then(|root| plan::asked(&root)).ok()?;
    let wanted = asked.iter().find_map(|asked| asked.fake.as_deref().map(|fake| (fake, &asked.path)))?;
    let (fake, path) = wanted;
    let reason = match facts.command_line_fake() {
        Some(running) if running == fake => {
            return Some(Check { what, holds: Some(true), reason: format!("{path} has numa=fake={fake}") });
        }
        Some(running) => {
            format!("{path} has numa=fake={fake}, the running kernel numa=fake={running}: reboot")
        }
        None => format!(
            "{path} has numa=fake={fake}, the running kernel was started without: reboot, after rebuilding the boot loader's menu"
        ),
    };
    Some(Check { what, holds: Some(false), reason })
}

fn asked(facts: &Facts) -> Check {
    let what = "the running kernel was asked for an emulation";
    match (&facts.command_line, facts.command_line_fake()) {
        (_, Some(fake)) => Check { what, holds: Some(true), reason: format!("numa=fake={fake}") },
        (Some(_), None) => {
            let reason =
                "its command line has no numa=fake=: nodewise emulation enable puts one there".to_owned();
            Check { what, holds: Some(false), reason }
        }
        (None, None) => Check { what, holds: None, reason: "its command line is not known".to_owned() },
    }
}

/// Whether the kernel knows the words.
fn known(facts: &Facts) -> Check {
    let what = "the kernel knows these words";
    match facts.ignored() {
        None => {
            let why = facts.no_log.clone();
            let reason = why.unwrap_or_else(|| "its log does not reach back to the start".to_owned());
            Check { what, holds: None, reason }
        }
        Some(words) if words.is_empty() => {
            Check { what, holds: Some(true), reason: "its log complains of none".to_owned() }
        }
        Some(words) => {
            let reason = format!("its log calls unknown: {}", words.join(" "));
            Check { what, holds: Some(false), reason }
        }
    }
}

/// Whether the nodes are those that the kernel makes of such words.
fn nodes(text: &str, facts: &Facts, machine: &Machine) -> Vec<Check> {
    let what = "the nodes are there";
    let there = machine.node_ids();
    let Ok(fake) = text.parse::<Fake>() else {
        let reason = format!("numa=fake={text} is nothing that a kernel understands");
        return vec![Check { what, holds: Some(false), reason }];
    };
    let ground = Ground::from_machine(machine, facts.log.as_ref());
    let has_log = facts.log.as_ref().is_some_and(|log| !log.ram.is_empty());
    let kind = EmulationVariant::from_machine(machine);
    // Without the log it is not known what the hardware has below.
    let made =
        if has_log { emulate(&fake, kind, &ground.hardware, &ground.ram, &ground.blocks) } else { None };
    let expected = match (&made, fake.form) {
        (Some(made), _) => Some(made.nodes.iter().map(|node| node.id).collect::<NodeSet>()),
        (None, nodewise_model::fake::Form::Count(count)) if !has_log => {
            Some((0..count).map(nodewise_machine::NodeId::new).collect())
        }
        _ => None,
    };
    let why = if has_log { remark(&fake, kind, made.as_ref()) } else { None };
    let because = why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    let (holds, reason) = match expected {
        Some(expected) if expected == there => (Some(true), format!("{}{because}", named(&there))),
        Some(expected) => {
            let support = if facts.support.is_there == Some(false) {
                format!(": the kernel is {}", facts.support.by)
            } else {
                because
            };
            (Some(false), format!("{} instead of {}{support}", named(&there), named(&expected)))
        }
        None if has_log => (Some(false), why.unwrap_or_else(|| "the kernel gave up".to_owned())),
        None => (
            None,
            format!("{}; without the kernel's log it is not known how many there should be", named(&there)),
        ),
    };
    let mut checks = vec![Check { what, holds, reason }];
    checks.extend(made.and_then(|made| ranges(&made, facts)));
    checks
}

/// Whether the kernel cut where it was expected to.
fn ranges(made: &Emulation, facts: &Facts) -> Option<Check> {
    let what = "memory is cut where the plan says";
    let log = facts.log.as_ref().filter(|log| !log.emulated.is_empty())?;
    let mut planned: Vec<(u32, u64, u64)> = made
        .nodes
        .iter()
        .flat_map(|node| node.ranges.iter().map(|(start, end)| (node.id.number(), *start, *end)))
        .collect();
    let mut kernels: Vec<(u32, u64, u64)> =
        log.emulated.iter().map(|range| (range.node.number(), range.start, range.end)).collect();
    planned.sort_unstable();
    kernels.sort_unstable();
    let differing = planned.iter().zip(&kernels).find(|(planned, kernel)| planned != kernel);
    let reason = match differing {
        None if planned.len() == kernels.len() => {
            let reason = format!("all {} ranges, to the byte", planned.len());
            return Some(Check { what, holds: Some(true), reason });
        }
        None => format!("{} ranges, {} expected", kernels.len(), planned.len()),
        Some((planned, kernel)) => format!(
            "node {} has {:#x}-{:#x}, expected {:#x}-{:#x}",
            kernel.0,
            kernel.1,
            kernel.2 - 1,
            planned.1,
            planned.2 - 1
        ),
    };
    Some(Check { what, holds: Some(false), reason })
}

/// Whether new processes have the policy that was asked for.
fn policy(facts: &Facts) -> Option<Check> {
    let what = "new processes have the policy that was asked for";
    let asked = facts.command_line_policy()?;
    let mode = asked.split([':', '=']).next().unwrap_or(asked);
    let (holds, reason) = match &facts.policy {
        Some(policy) if policy.starts_with(mode) => (Some(true), policy.clone()),
        Some(policy) => {
            let reason = format!(
                "{policy} instead of {asked}: this kernel does not have numa_policy=, or a program before this one changed it"
            );
            (Some(false), reason)
        }
        None => (None, "the policy is asked for on the running system only".to_owned()),
    };
    Some(Check { what, holds, reason })
}
