//! `nodewise simulate`: a scenario, played by the model.

use std::path::Path;
use std::time::Duration;

use nodewise_machine::check::node_names;
use nodewise_machine::placement::Scope;
use nodewise_machine::printable::quote;
use nodewise_machine::{Bytes, MemPolicy, NodeId, NodeSet};
use nodewise_model::balancing::Balancing;
use nodewise_model::balancing::course::Pattern;
use nodewise_model::policy::weights;
use nodewise_model::ram::{Architecture, huge_order, huge_page_bytes};
use nodewise_model::simulate::{
    Act, Backing, FilePart, Flags, GroupLimits, Mapping, MemoryUse, Part, Refused, Simulation,
};
use nodewise_model::thp::TransparentHuge;
use nodewise_model::{BuiltAt, Release};
use nodewise_source::Detail;
use nodewise_view::digest::timeline::Timeline;
use nodewise_view::text::timeline::Zones as Told;
use nodewise_view::{csv, json, svg, text};

use super::explain;
use crate::cli::simulate::Simulate;
use crate::cli::{self, Global};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::{Form, Pictures};
use crate::scenario::{self, Scenario, Step, Written};
use crate::zones::Zones;
use crate::{input, output};

/// A long document is written when so much of it is there.
const CHUNK: usize = 1 << 16;

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
    let pictures = Pictures::new(&args.svg, &args.png);
    pictures.check()?;
    let wrong = |why: String| Failure::usage(format!("scenario {}: {why}", quote(&args.scenario)));
    let scenario = scenario::parse(&read).map_err(wrong)?;
    let own = scenario.machine.as_deref().filter(|_| input::is_live(&global.machine));
    let machine = own.unwrap_or(&global.machine);
    let mut input = input::load_for(&args.supplied, machine, Detail::Full)?;
    input::date(&mut input.machine, machine);
    let release = release(args, &scenario, &input).map_err(wrong)?;
    let zones = Zones::from_input(&input, release)?;
    let timeline = play(&scenario, &input, machine, (release, &zones)).map_err(wrong)?;
    if pictures.are_wanted() {
        pictures.draw(|theme| svg::timeline_svg(&timeline, theme))?;
        return Ok(0);
    }
    match Form::new(args.json, args.csv) {
        Form::Json => print_pieces(json::timeline::timeline(&timeline), output::print_json)?,
        Form::Csv => print_pieces(csv::timeline(&timeline), output::print)?,
        Form::Text => {
            let zones = if args.zones { Told::AfterEachStep } else { Told::AtTheEnd };
            output::print(&text::timeline::timeline(&timeline, zones, &output::style(global.color)))?;
        }
    }
    Ok(0)
}

/// Writes a long document as it comes.
fn print_pieces(
    pieces: impl Iterator<Item = String>,
    print: fn(&str) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut chunk = String::with_capacity(2 * CHUNK);
    for piece in pieces {
        chunk.push_str(&piece);
        if chunk.len() >= CHUNK {
            print(&chunk)?;
            chunk.clear();
        }
    }
    print(&chunk)
}

fn read(path: &str) -> Result<String, String> {
    input::read_text(Path::new(path), scenario::MOST_BYTES).map_err(|why| {
        let known = scenario::SHIPPED.map(|(name, _)| name).join(", ");
        format!("cannot read scenario {}: {why} (those that come with nodewise: {known})", quote(path))
    })
}

/// Seconds after which a page is on the disk that was written to: `dirty_expire_centisecs` and `dirty_writeback_centisecs` of the
/// kernel.
const WRITTEN_BACK_S: f64 = 35.0;

/// Plays all steps.
fn play(
    scenario: &Scenario,
    input: &Input,
    machine: &str,
    (release, zones): (Release, &Zones),
) -> Result<Timeline, String> {
    let before = zones.memory(&input.machine, BuiltAt::Boot, release);
    let allowed = Scope::from_machine(&input.machine).memory_nodes;
    let mut simulation = begin(scenario, input, release, &before)?;
    let named = if input::is_live(machine) { "this machine" } else { machine };
    let mut timeline = Timeline::new(&scenario.title, named, release, zones.basis, before)
        .about(scenario.about.clone())
        .read_at(input.machine.read_at);
    let mut written_s = f64::NEG_INFINITY;
    for step in &scenario.steps {
        if step.at_s - written_s >= WRITTEN_BACK_S {
            simulation.write_back();
        }
        if matches!(step.act, Written::Write(_)) {
            written_s = step.at_s;
        }
        let at = |why: String| format!("line {}: {why}", step.line);
        let act = act(step, input, &allowed, zones.page).map_err(at)?;
        let played =
            simulation.play(&step.program, &act).map_err(|refused| at(reason(&step.program, &refused)))?;
        timeline.add(step.at_s, &step.program, act, played, simulation.memory());
    }
    Ok(timeline.ended(&simulation))
}

/// The machine before the first step, with the settings of the scenario.
fn begin(
    scenario: &Scenario,
    input: &Input,
    release: Release,
    memory: &nodewise_model::Memory,
) -> Result<Simulation, String> {
    let machine = &input.machine;
    let max_nodes = Architecture::from_machine(machine).max_nodes();
    let weights = weights::in_force(machine, release);
    let mut simulation = Simulation::new(memory.clone(), weights, max_nodes, release).on(machine);
    if let Some(size) = &scenario.swap {
        let size = bytes("swap", size)?;
        if size > LARGEST_SWAP {
            return Err(format!("swap is {size}: expected at most {LARGEST_SWAP}"));
        }
        simulation = simulation.with_swap(size.get() / memory.page_bytes());
    }
    match scenario.transparent_hugepage.as_deref() {
        Some(enabled @ ("always" | "madvise" | "never")) => {
            let defrag = machine.settings.transparent_hugepage_defrag.as_deref();
            simulation = simulation.with_huge(TransparentHuge::from_settings(Some(enabled), defrag));
        }
        Some(other) => {
            return Err(format!(
                "transparent-hugepage is {}: expected always, madvise or never",
                quote(other)
            ));
        }
        None => {}
    }
    match scenario.numa_balancing {
        Some(setting @ 0..=3) => simulation = simulation.with_balancing(Balancing::from_setting(setting)),
        Some(other) => return Err(format!("numa-balancing is {other}: expected 0, 1, 2 or 3")),
        None => {}
    }
    Ok(simulation)
}

fn release(args: &Simulate, scenario: &Scenario, input: &Input) -> Result<Release, String> {
    let read = |text: &String| cli::explain::release(text).map_err(|why| format!("kernel {why}"));
    let written = scenario.kernel.as_ref().map(read);
    let written = written.transpose()?;
    Ok(Release::from_kernel(args.kernel.as_ref().or(written.as_ref()).or(input.machine.kernel.as_ref())))
}

/// A step with its words read; programs may use these nodes' memory.
fn act(step: &Step, input: &Input, all: &NodeSet, page: u64) -> Result<Act, String> {
    let policy = |text: &str| explain::parse(text, input, all);
    let nodes = |text: &str| explain::node_set(text, input, all);
    let mapping = |written: &scenario::Mapping, key: &str| -> Result<Mapping, String> {
        if matches!(written.backing, scenario::Backing::Huge | scenario::Backing::Pool) {
            huge_pages(input)?;
        }
        if written.backing == scenario::Backing::Pool {
            pool(input)?;
        }
        Ok(Mapping {
            region: written.region.clone().unwrap_or_else(|| "heap".to_owned()),
            pages: bytes(key, &written.size)?.get().div_ceil(page),
            backing: match &written.backing {
                scenario::Backing::Small => Backing::Small,
                scenario::Backing::NeverHuge => Backing::NeverHuge,
                scenario::Backing::PrivateFile(name) => Backing::PrivateFile(name.clone()),
                scenario::Backing::Huge => Backing::Huge,
                scenario::Backing::Pool => Backing::Pool,
                scenario::Backing::File(name) => Backing::File(name.clone()),
            },
            policy: written.policy.as_deref().map(policy).transpose()?,
            // Addresses have 64 bits.
            first_page: written.first_page.map(|page| page % (1 << 52)),
        })
    };
    Ok(match &step.act {
        Written::Start { cpu_node, policy: text, nodes: allowed } => Act::Start {
            cpu_node: cpu(*cpu_node, input)?,
            policy: text.as_deref().map_or(Ok(MemPolicy::DEFAULT), policy)?,
            allowed: allowed.as_deref().map_or_else(|| Ok(all.clone()), nodes)?,
        },
        Written::Map(written) => Act::Map(mapping(written, "map")?),
        Written::Allocate(written) => Act::Allocate(mapping(written, "allocate")?),
        Written::Touch(written) => Act::Touch(part(written, page)?),
        Written::Read(written) => Act::Read(file_part(written, "read", page)?),
        Written::Write(written) => Act::Write(file_part(written, "write", page)?),
        Written::Sync => Act::Sync,
        Written::DropCaches => Act::DropCaches,
        Written::Free(region) => Act::Free { region: region.clone() },
        Written::SetPolicy(text) => Act::SetPolicy(policy(text)?),
        Written::Mbind { part: written, policy: text, strict, moves, moves_all } => Act::Bind {
            part: part(written, page)?,
            policy: policy(text)?,
            flags: Flags { strict: *strict, moves: *moves, moves_all: *moves_all },
        },
        Written::HomeNode { part: written, node } => {
            Act::SetHome { part: part(written, page)?, node: NodeId::new(*node) }
        }
        Written::MovePages { part: written, to, all } => {
            Act::MovePages { part: part(written, page)?, node: one_node(to, input)?, all: *all }
        }
        Written::MigratePages { old, new } => Act::Migrate { old: nodes(old)?, new: nodes(new)? },
        Written::Remap { region, size, first_page } => {
            let size = size.as_deref().map(|size| bytes("size", size)).transpose()?;
            let pages = size.map(|size| size.get().div_ceil(page));
            Act::Remap { region: region.clone(), pages, first_page: first_page.map(|page| page % (1 << 52)) }
        }
        Written::OomScoreAdj(value) => Act::AdjustOom(*value),
        Written::RunOn(node) => Act::RunOn(cpu(Some(*node), input)?),
        Written::Cpuset(text) => Act::Restrict(nodes(text)?),
        Written::Fork(child) => Act::Fork { child: child.clone() },
        Written::Thread(name) => Act::StartThread { name: name.clone() },
        Written::Balance => Act::Balance,
        Written::BalanceFor { seconds, touches: text, sweeps } => Act::BalanceFor(MemoryUse {
            time: Duration::from_secs_f64(*seconds),
            touches_per_s: touches(text)?,
            pattern: if *sweeps { Pattern::Sweep } else { Pattern::Uniform },
        }),
        Written::End => Act::End,
        Written::HugePages(pages) => {
            huge_pages(input)?;
            pool(input)?;
            Act::ResizePool { pages: *pages }
        }
        Written::Demotion(enabled) => Act::SetDemotion(*enabled),
        Written::Limit(written) => limits(written, page)?,
        Written::Join(group) => Act::Join { group: group.clone() },
    })
}

/// The least `memory.max` that is played: below it no program starts.
const LEAST_GROUP: Bytes = Bytes::from_mib(1);

/// A control group with its limits in pages of this many bytes.
fn limits(written: &scenario::Group, page: u64) -> Result<Act, String> {
    let pages = |key: &str, text: &Option<String>| -> Result<Option<u64>, String> {
        let Some(text) = text.as_deref().filter(|text| *text != "max") else { return Ok(None) };
        Ok(Some(bytes(key, text)?.get() / page))
    };
    let limits = GroupLimits {
        max: pages("max", &written.max)?,
        high: pages("high", &written.high)?,
        low: pages("low", &written.low)?,
        min: pages("min", &written.min)?,
        swap_max: pages("swap-max", &written.swap_max)?,
        kills_all: written.oom_group,
    };
    let least = LEAST_GROUP.get() / page;
    if [limits.max, limits.high].into_iter().flatten().any(|pages| pages < least) {
        return Err(format!(
            "the group {}: max and high are at least {LEAST_GROUP} here",
            quote(&written.name)
        ));
    }
    Ok(Act::Limit { group: written.name.clone(), parent: written.parent.clone(), limits })
}

/// Refuses huge pages of unknown size.
fn huge_pages(input: &Input) -> Result<(), String> {
    huge_order(&input.machine).map(|_| ()).ok_or_else(|| explain::no_huge_pages(&input.machine))
}

/// Refuses a default pool whose pages are not as large as transparent ones.
fn pool(input: &Input) -> Result<(), String> {
    let (own, huge) = (input.machine.settings.default_huge_page_size, huge_page_bytes(&input.machine));
    match own.zip(huge.map(Bytes::new)).filter(|(own, huge)| own != huge) {
        Some((own, huge)) => Err(format!(
            "the default pool has pages of {own}, and transparent huge pages are of {huge}: a pool of another size is \
             not modelled"
        )),
        None => Ok(()),
    }
}

/// A part of a region, in pages of this many bytes.
fn part(written: &scenario::Part, page: u64) -> Result<Part, String> {
    let region = written.region.clone();
    let offset = written.offset.as_deref().map(|text| bytes("offset", text)).transpose()?;
    let Some(length) = &written.length else {
        return match offset {
            None => Ok(Part { region, pages: None }),
            Some(_) => Err("offset needs a length, as in length = \"1G\"".to_owned()),
        };
    };
    let (first, count) = (first_page(offset, page)?, bytes("length", length)?.get().div_ceil(page));
    Ok(Part { region, pages: Some(first..first.saturating_add(count)) })
}

/// The page that is so far behind the beginning.
fn first_page(offset: Option<Bytes>, page: u64) -> Result<u64, String> {
    let offset = offset.unwrap_or(Bytes::new(0)).get();
    if offset % page != 0 {
        return Err(format!("offset: {offset} bytes are not a whole number of pages of {page}"));
    }
    Ok(offset / page)
}

/// The largest swap that is played: memory beyond the room goes there as often as it fills the room.
const LARGEST_SWAP: Bytes = Bytes::from_gib(16 << 10);

/// The largest part of a file that is played: its pages come and go as often as they fill the memory.
const LARGEST_PART: Bytes = Bytes::from_gib(64 << 10);

/// A part of a file on a disk, in pages of this many bytes.
fn file_part(written: &scenario::FilePart, key: &str, page: u64) -> Result<FilePart, String> {
    if bytes(key, &written.size)? > LARGEST_PART {
        return Err(format!("{key}: a part of a file is at most {LARGEST_PART}"));
    }
    let offset = written.offset.as_deref().map(|text| bytes("offset", text)).transpose()?;
    let (first, count) = (first_page(offset, page)?, bytes(key, &written.size)?.get().div_ceil(page));
    Ok(FilePart { file: written.file.clone(), pages: first..first.saturating_add(count) })
}

/// A rate, or the least and the most that it may be.
fn touches(text: &str) -> Result<[u64; 2], String> {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<u64>().ok();
    match (number(least), number(most)) {
        (Some(least), Some(most)) if least <= most => Ok([least, most]),
        _ => Err(format!(
            "touches: {} is not a rate: expected pages in a second of CPU time, such as \"150\" or \"150-200\"",
            quote(text)
        )),
    }
}

fn bytes(key: &str, text: &str) -> Result<Bytes, String> {
    text.parse().map_err(|_| format!("{key}: {} is not a size: expected one as 512M or 80G", quote(text)))
}

/// A node that a call is asked about: the kernel says whether it will do.
fn one_node(text: &str, input: &Input) -> Result<NodeId, String> {
    if let Ok(number) = text.parse() {
        return Ok(NodeId::new(number));
    }
    let all = input.machine.node_ids();
    let nodes = explain::node_set(text, input, &all)?;
    match (nodes.first(), nodes.len()) {
        (Some(node), 1) => Ok(node),
        _ => Err(format!("to: {} is not one node", quote(text))),
    }
}

/// The node of a CPU: a program without one is on the first that has any.
fn cpu(number: Option<u32>, input: &Input) -> Result<NodeId, String> {
    let with_cpus: NodeSet = input.machine.nodes_with_cpus();
    let Some(number) = number else { return with_cpus.first().ok_or_else(|| "no node has CPUs".to_owned()) };
    let node = NodeId::new(number);
    if with_cpus.contains(node) {
        Ok(node)
    } else {
        let has = if with_cpus.len() == 1 { "has" } else { "have" };
        Err(format!("a program cannot run on node {node}: {} {has} CPUs", node_names(&with_cpus)))
    }
}

/// Why a step makes no sense.
fn reason(program: &str, refused: &Refused) -> String {
    let program = quote(program);
    match refused {
        Refused::NotThere => format!("{program} does not run: a [[program]], a fork or a thread starts it"),
        Refused::Started(name) => format!("{} runs already", quote(name)),
        Refused::Shrinks(region) => {
            format!("mremap: {} of {program} is larger: memory only grows here", quote(region))
        }
        Refused::NoGroup(group) => {
            format!("the group {} does not exist: a [[group]] before this makes it", quote(group))
        }
        Refused::NoRegion(region) => format!("{program} has no region {}", quote(region)),
        Refused::Taken(region) => {
            format!("{program} has {} mapped already: region names another", quote(region))
        }
    }
}
