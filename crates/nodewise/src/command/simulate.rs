//! `nodewise simulate`: a scenario, played by the model.

use std::path::Path;

use nodewise_machine::printable::quote;
use nodewise_machine::{Bytes, MemPolicy, NodeId, NodeSet};
use nodewise_measure::placement::Scope;
use nodewise_model::policy::weights;
use nodewise_model::ram::{Architecture, PAGE};
use nodewise_model::simulate::{Act, Refused, Simulation};
use nodewise_model::{BuiltAt, Release};
use nodewise_source::Detail;
use nodewise_view::digest::timeline::{Moment, Timeline};
use nodewise_view::svg::Theme;
use nodewise_view::{json, svg, text};

use super::explain;
use crate::cli::simulate::Simulate;
use crate::cli::{self, Global};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::scenario::{self, Scenario, Step, Written};
use crate::zones::Zones;
use crate::{input, output};

/// Runs `simulate`.
pub fn run(args: &Simulate, global: &Global) -> Outcome {
    let shipped = scenario::SHIPPED.iter().find(|(name, _)| *name == args.scenario);
    if args.source {
        let known = scenario::SHIPPED.map(|(name, _)| name).join(", ");
        let (_, source) = shipped.ok_or_else(|| {
            let name = quote(&args.scenario);
            Failure::usage(format!("{name} does not come with nodewise: expected one of {known}"))
        })?;
        output::print(source)?;
        return Ok(0);
    }
    let read = match shipped {
        Some((_, source)) => (*source).to_owned(),
        None => read(&args.scenario).map_err(Failure::usage)?,
    };
    let wrong = |why: String| Failure::usage(format!("scenario {}: {why}", quote(&args.scenario)));
    let scenario = scenario::parse(&read).map_err(wrong)?;
    let own = scenario.machine.as_deref().filter(|_| input::is_live(&global.machine));
    let machine = own.unwrap_or(&global.machine);
    let input = input::load(machine, Detail::Full)?;
    let timeline = play(args, &scenario, &input, machine).map_err(wrong)?;
    if let Some(path) = &args.svg {
        output::write_file(path, svg::timeline_svg(&timeline, Theme::Auto).as_bytes())?;
        return Ok(0);
    }
    if args.json {
        output::print_json(&json::timeline::timeline(&timeline))?;
    } else {
        output::print(&text::timeline::timeline(&timeline, &output::style(global.color)))?;
    }
    Ok(0)
}

fn read(path: &str) -> Result<String, String> {
    input::read_text(Path::new(path), scenario::MOST_BYTES).map_err(|why| {
        let known = scenario::SHIPPED.map(|(name, _)| name).join(", ");
        format!("cannot read scenario {}: {why} (those that come with nodewise: {known})", quote(path))
    })
}

/// Plays all steps.
fn play(args: &Simulate, scenario: &Scenario, input: &Input, machine: &str) -> Result<Timeline, String> {
    let release = release(args, scenario, input)?;
    let zones = Zones::of(input, release);
    let before = zones.memory(&input.machine, BuiltAt::Boot, release);
    let allowed = Scope::of(&input.machine).memory_nodes;
    let max_nodes = Architecture::of(&input.machine).max_nodes();
    let weights = weights::of(&input.machine, release);
    let mut simulation = Simulation::new(before.clone(), weights, max_nodes, release);
    let mut moments = Vec::new();
    for step in &scenario.steps {
        let at = |why: String| format!("line {}: {why}", step.line);
        let act = act(step, input, &allowed).map_err(at)?;
        let result = simulation.play(&step.program, &act);
        let played = result.map_err(|refused| at(reason(&step.program, &act, &refused, release)))?;
        moments.push(Moment {
            at_s: step.at_s,
            program: step.program.clone(),
            act,
            step: played,
            programs: simulation
                .programs()
                .into_iter()
                .map(|(name, nodes)| (name.to_owned(), nodes))
                .collect(),
            memory: simulation.memory().clone(),
        });
    }
    Ok(Timeline {
        title: scenario.title.clone(),
        about: scenario.about.clone(),
        machine: if input::is_live(machine) { "this machine".to_owned() } else { machine.to_owned() },
        release,
        basis: zones.basis,
        before,
        moments,
    })
}

fn release(args: &Simulate, scenario: &Scenario, input: &Input) -> Result<Release, String> {
    let read = |text: &String| cli::explain::release(text).map_err(|why| format!("kernel {why}"));
    let written = scenario.kernel.as_ref().map(read);
    let written = written.transpose()?;
    Ok(Release::of(args.kernel.as_ref().or(written.as_ref()).or(input.machine.kernel.as_ref())))
}

/// A step with its words read; programs may use these nodes' memory.
fn act(step: &Step, input: &Input, all: &NodeSet) -> Result<Act, String> {
    let policy = |text: &str| explain::parse(text, input, all);
    let nodes = |text: &str| explain::node_set(text, input, all);
    Ok(match &step.act {
        Written::Start { cpu_node, policy: text, nodes: allowed } => Act::Start {
            cpu_node: cpu(*cpu_node, input)?,
            policy: text.as_deref().map_or(Ok(MemPolicy::DEFAULT), policy)?,
            allowed: allowed.as_deref().map_or_else(|| Ok(all.clone()), nodes)?,
        },
        Written::Allocate { size, region, huge, policy: text } => Act::Allocate {
            region: region.clone().unwrap_or_else(|| "heap".to_owned()),
            pages: bytes(size)?.get().div_ceil(PAGE),
            huge: *huge,
            policy: text.as_deref().map(policy).transpose()?,
        },
        Written::Free(region) => Act::Free { region: region.clone() },
        Written::SetPolicy(text) => Act::SetPolicy(policy(text)?),
        Written::RunOn(node) => Act::RunOn(cpu(Some(*node), input)?),
        Written::Move { old, new } => Act::Migrate { old: nodes(old)?, new: nodes(new)? },
        Written::End => Act::End,
    })
}

fn bytes(text: &str) -> Result<Bytes, String> {
    text.parse().map_err(|_| format!("allocate: {} is not a size: expected one as 512M or 80G", quote(text)))
}

/// The node of a CPU: a program without one is on the first that has any.
fn cpu(number: Option<u32>, input: &Input) -> Result<NodeId, String> {
    let with_cpus: NodeSet = input.machine.nodes_with_cpus();
    let Some(number) = number else { return with_cpus.first().ok_or_else(|| "no node has CPUs".to_owned()) };
    let node = NodeId::new(number);
    if with_cpus.contains(node) {
        Ok(node)
    } else {
        Err(format!("a program cannot run on node {node}: nodes {with_cpus} have CPUs"))
    }
}

/// Why a step cannot be played.
fn reason(program: &str, act: &Act, refused: &Refused, release: Release) -> String {
    let program = quote(program);
    match refused {
        Refused::NotThere => format!("{program} does not run: a [[program]] starts it"),
        Refused::Started => format!("{program} runs already"),
        Refused::NoRegion(region) => format!("{program} has no region {}", quote(region)),
        Refused::Taken(region) => {
            format!("{program} has a region {} already: region names another", quote(region))
        }
        Refused::Kernel(errno) => {
            let what = match act {
                Act::Start { policy, .. } | Act::SetPolicy(policy) => policy.to_string(),
                Act::Allocate { policy: Some(policy), .. } => policy.to_string(),
                _ => "the move".to_owned(),
            };
            format!("{program}: Linux {release} answers {errno} to {what}")
        }
    }
}
