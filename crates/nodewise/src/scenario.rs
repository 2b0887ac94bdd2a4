//! Scenarios for `nodewise simulate`: their files, read and put in order, and those that come with
//! nodewise.

mod event;
#[cfg(test)]
mod tests;

use nodewise_experiment::toml_text::TomlText;
use nodewise_machine::order::Order as _;
use nodewise_machine::printable::quote;
use serde::Deserialize;
use toml::Spanned;

/// The scenarios that come with nodewise: the name and the file.
pub const SHIPPED: [(&str, &str); 10] = [
    ("database", include_str!("../../../scenarios/database.toml")),
    ("database-interleaved", include_str!("../../../scenarios/database-interleaved.toml")),
    ("jvm", include_str!("../../../scenarios/jvm.toml")),
    ("hpc", include_str!("../../../scenarios/hpc.toml")),
    ("pi5", include_str!("../../../scenarios/pi5.toml")),
    ("cxl", include_str!("../../../scenarios/cxl.toml")),
    ("pods", include_str!("../../../scenarios/pods.toml")),
    ("cache", include_str!("../../../scenarios/cache.toml")),
    ("fork", include_str!("../../../scenarios/fork.toml")),
    ("calls", include_str!("../../../scenarios/calls.toml")),
];

/// The largest file that is read, and the most steps in it.
pub const MOST_BYTES: u64 = 1 << 20;
const MOST_STEPS: usize = 10_000;

/// A scenario as it is written: nodes and policies are still words.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    pub title: String,
    pub about: Option<String>,
    /// The machine, as `--machine` would name it.
    pub machine: Option<String>,
    /// The kernel, as `--kernel` would name it.
    pub kernel: Option<String>,
    pub swap: Option<String>,
    /// The setting `transparent_hugepage/enabled`.
    pub transparent_hugepage: Option<String>,
    /// The value of `kernel.numa_balancing`.
    pub numa_balancing: Option<u32>,
    /// By time; at the same time as they are written, starts first.
    pub steps: Vec<Step>,
}

/// A step as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub at_s: f64,
    /// Whose; empty where it is the system's.
    pub program: String,
    /// The line of the file, from 1.
    pub line: usize,
    pub act: Written,
}

/// The effect of a program, in words.
#[derive(Clone, Debug, PartialEq)]
pub enum Written {
    Start { cpu_node: Option<u32>, policy: Option<String>, nodes: Option<String> },
    Map(Mapping),
    Allocate(Mapping),
    Touch(Part),
    Read(FilePart),
    Write(FilePart),
    Free(String),
    SetPolicy(String),
    Mbind { part: Part, policy: String, strict: bool, moves: bool, moves_all: bool },
    HomeNode { part: Part, node: u32 },
    MovePages { part: Part, to: String, all: bool },
    MigratePages { old: String, new: String },
    Remap { region: String, size: Option<String>, first_page: Option<u64> },
    OomScoreAdj(i32),
    RunOn(u32),
    Cpuset(String),
    Fork(String),
    Thread(String),
    Balance,
    BalanceFor { seconds: f64, touches: String, sweeps: bool },
    End,
    HugePages(u64),
    Demotion(bool),
    Sync,
    DropCaches,
    Limit(Group),
    Join(String),
}

/// A control group and its limits, in words; `None` where there is none.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Group {
    pub name: String,
    /// The group that it is in.
    pub parent: Option<String>,
    pub max: Option<String>,
    pub high: Option<String>,
    pub low: Option<String>,
    pub min: Option<String>,
    pub swap_max: Option<String>,
    #[serde(default)]
    pub oom_group: bool,
    /// The memory nodes of its programs.
    pub nodes: Option<String>,
}

/// New memory, in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    pub size: String,
    pub region: Option<String>,
    pub backing: Backing,
    pub policy: Option<String>,
    pub first_page: Option<u64>,
}

/// The kind of new memory.
#[derive(Clone, Debug, PartialEq)]
pub enum Backing {
    Small,
    NeverHuge,
    PrivateFile(String),
    Huge,
    Pool,
    File(String),
}

/// Some of a region, in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub region: String,
    pub offset: Option<String>,
    pub length: Option<String>,
}

/// Some of a file on a disk, in words.
#[derive(Clone, Debug, PartialEq)]
pub struct FilePart {
    pub file: String,
    pub offset: Option<String>,
    pub size: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    title: Option<String>,
    about: Option<String>,
    machine: Option<String>,
    kernel: Option<String>,
    swap: Option<String>,
    transparent_hugepage: Option<String>,
    numa_balancing: Option<u32>,
    #[serde(default)]
    group: Vec<Spanned<Group>>,
    #[serde(default)]
    program: Vec<Spanned<Program>>,
    #[serde(default)]
    event: Vec<Spanned<event::Event>>,
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
    oom_score_adj: Option<i32>,
    group: Option<String>,
}

/// Reads a scenario.
///
/// # Errors
/// What is wrong and in which line, as a sentence.
pub fn parse(text: &str) -> Result<Scenario, String> {
    let toml = TomlText::new(text);
    let file: File = toml.read().map_err(|error| error.to_string())?;
    if file.group.len() + file.program.len() + file.event.len() > MOST_STEPS {
        return Err(format!("more than {MOST_STEPS} groups, programs and events"));
    }
    let mut steps = Vec::new();
    for group in &file.group {
        let line = toml.line(group.span().start);
        let group = group.get_ref();
        if steps.iter().any(|step: &Step| matches!(&step.act, Written::Limit(own) if own.name == group.name))
        {
            return Err(format!("line {line}: the group {} is there already", quote(&group.name)));
        }
        let act = Written::Limit(group.clone());
        steps.push(Step { at_s: 0.0, program: String::new(), line, act });
    }
    for program in &file.program {
        let line = toml.line(program.span().start);
        let program = program.get_ref();
        let started = start(program, line, &file.group)?;
        let joins = program.group.clone().map(|group| Step { act: Written::Join(group), ..started.clone() });
        if let Some(value) = program.oom_score_adj {
            let act = event::adjusted(value).map_err(|why| format!("line {line}: {why}"))?;
            steps.push(started.clone());
            steps.push(Step { act, ..started });
        } else {
            steps.push(started);
        }
        steps.extend(joins);
    }
    for event in &file.event {
        let line = toml.line(event.span().start);
        let at_s = time(event.get_ref().at, "at", line)?;
        let (program, act) = event::act(event.get_ref()).map_err(|why| format!("line {line}: {why}"))?;
        steps.push(Step { at_s, program, line, act });
    }
    if steps.is_empty() {
        return Err("it has neither a [[program]] nor an [[event]]".to_owned());
    }
    steps.order_by(|a, b| a.at_s.total_cmp(&b.at_s));
    Ok(Scenario {
        title: file.title.unwrap_or_else(|| "Simulation".to_owned()),
        about: file.about,
        machine: file.machine,
        kernel: file.kernel,
        swap: file.swap,
        transparent_hugepage: file.transparent_hugepage,
        numa_balancing: file.numa_balancing,
        steps,
    })
}

fn time(at_s: f64, key: &str, line: usize) -> Result<f64, String> {
    if at_s.is_finite() && at_s >= 0.0 {
        // A zero with a sign would come before others.
        Ok(at_s.abs())
    } else {
        Err(format!("line {line}: {key} is {at_s}: expected seconds, 0 or more"))
    }
}

/// The step that starts a program: the nodes of its group are its own, unless it has others.
fn start(program: &Program, line: usize, groups: &[Spanned<Group>]) -> Result<Step, String> {
    let named = |name: &Option<String>| {
        let mut groups = groups.iter().map(Spanned::get_ref);
        name.as_ref().and_then(|name| groups.find(|group| group.name == *name))
    };
    // Groups that name each other as parents are refused when they are made; here they must only come to an end.
    let mut above =
        std::iter::successors(named(&program.group), |group| named(&group.parent)).take(groups.len());
    let of_group = above.find_map(|group| group.nodes.clone());
    let Program { name, start, cpu_node, policy, nodes, .. } = program;
    let act =
        Written::Start { cpu_node: *cpu_node, policy: policy.clone(), nodes: nodes.clone().or(of_group) };
    Ok(Step { at_s: time(*start, "start", line)?, program: name.clone(), line, act })
}
