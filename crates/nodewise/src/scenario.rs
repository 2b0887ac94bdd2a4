//! Scenarios for `nodewise simulate`: their files, read and put in order, and those that come with
//! nodewise.

#[cfg(test)]
mod tests;

use nodewise_machine::printable::quote;
use serde::Deserialize;
use toml::Spanned;

use crate::toml_text::{self, line_of};

/// The scenarios that come with nodewise: the name and the file.
pub const SHIPPED: [(&str, &str); 6] = [
    ("database", include_str!("../../../scenarios/database.toml")),
    ("database-interleaved", include_str!("../../../scenarios/database-interleaved.toml")),
    ("jvm", include_str!("../../../scenarios/jvm.toml")),
    ("hpc", include_str!("../../../scenarios/hpc.toml")),
    ("pi5", include_str!("../../../scenarios/pi5.toml")),
    ("cxl", include_str!("../../../scenarios/cxl.toml")),
];

/// The largest file that is read, and the most steps in it.
pub const MOST_BYTES: u64 = 1 << 20;
const MOST_STEPS: usize = 10_000;

/// A scenario as it is written: nodes and policies are still words.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    pub title: String,
    pub about: Option<String>,
    /// What `--machine` would say.
    pub machine: Option<String>,
    /// What `--kernel` would say.
    pub kernel: Option<String>,
    /// By time; at the same time as they are written, starts first.
    pub steps: Vec<Step>,
}

/// A step as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub at_s: f64,
    pub program: String,
    /// The line of the file, from 1.
    pub line: usize,
    pub act: Written,
}

/// What a program does, in words.
#[derive(Clone, Debug, PartialEq)]
pub enum Written {
    Start { cpu_node: Option<u32>, policy: Option<String>, nodes: Option<String> },
    Allocate { size: String, region: Option<String>, huge: bool, policy: Option<String> },
    Free(String),
    SetPolicy(String),
    RunOn(u32),
    Move { old: String, new: String },
    End,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    title: Option<String>,
    about: Option<String>,
    machine: Option<String>,
    kernel: Option<String>,
    #[serde(default)]
    program: Vec<Spanned<Program>>,
    #[serde(default)]
    event: Vec<Spanned<Event>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Program {
    name: String,
    #[serde(default)]
    start: f64,
    cpu_node: Option<u32>,
    policy: Option<String>,
    nodes: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Event {
    at: f64,
    program: String,
    allocate: Option<String>,
    region: Option<String>,
    huge: Option<bool>,
    policy: Option<String>,
    free: Option<String>,
    set_policy: Option<String>,
    run_on: Option<u32>,
    move_from: Option<String>,
    move_to: Option<String>,
    end: Option<bool>,
}

/// Reads a scenario.
///
/// # Errors
/// What is wrong and in which line, as a sentence.
pub fn parse(text: &str) -> Result<Scenario, String> {
    let file: File = toml_text::read(text)?;
    if file.program.len() + file.event.len() > MOST_STEPS {
        return Err(format!("more than {MOST_STEPS} programs and events"));
    }
    let mut steps = Vec::new();
    for program in &file.program {
        steps.push(start(program.get_ref(), line_of(text, program.span().start))?);
    }
    for event in &file.event {
        steps.push(step(event.get_ref(), line_of(text, event.span().start))?);
    }
    if steps.is_empty() {
        return Err("it has neither a [[program]] nor an [[event]]".to_owned());
    }
    steps.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    let title = file.title.unwrap_or_else(|| "Simulation".to_owned());
    Ok(Scenario { title, about: file.about, machine: file.machine, kernel: file.kernel, steps })
}

fn time(at_s: f64, key: &str, line: usize) -> Result<f64, String> {
    if at_s.is_finite() && at_s >= 0.0 {
        Ok(at_s)
    } else {
        Err(format!("line {line}: {key} is {at_s}: expected seconds, 0 or more"))
    }
}

fn start(program: &Program, line: usize) -> Result<Step, String> {
    let Program { name, start, cpu_node, policy, nodes } = program;
    let act = Written::Start { cpu_node: *cpu_node, policy: policy.clone(), nodes: nodes.clone() };
    Ok(Step { at_s: time(*start, "start", line)?, program: name.clone(), line, act })
}

fn step(event: &Event, line: usize) -> Result<Step, String> {
    let mut acts = Vec::new();
    if let Some(size) = &event.allocate {
        let (region, policy) = (event.region.clone(), event.policy.clone());
        acts.push(Written::Allocate {
            size: size.clone(),
            region,
            huge: event.huge.unwrap_or(false),
            policy,
        });
    } else if event.region.is_some() || event.huge.is_some() || event.policy.is_some() {
        return Err(format!("line {line}: region, huge and policy belong to allocate, which is missing"));
    }
    acts.extend(event.free.clone().map(Written::Free));
    acts.extend(event.set_policy.clone().map(Written::SetPolicy));
    acts.extend(event.run_on.map(Written::RunOn));
    match (&event.move_from, &event.move_to) {
        (Some(old), Some(new)) => acts.push(Written::Move { old: old.clone(), new: new.clone() }),
        (None, None) => {}
        _ => return Err(format!("line {line}: move-from and move-to belong together")),
    }
    acts.extend(event.end.filter(|end| *end).map(|_| Written::End));
    match <[Written; 1]>::try_from(acts) {
        Ok([act]) => {
            Ok(Step { at_s: time(event.at, "at", line)?, program: event.program.clone(), line, act })
        }
        Err(acts) => Err(format!(
            "line {line}: the event of {} has {} things to do: expected one of allocate, free, set-policy, run-on, \
             move-from with move-to, end",
            quote(&event.program),
            acts.len()
        )),
    }
}
