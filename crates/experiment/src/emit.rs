//! A placement in the words of the tool that will apply it: a command line, a drop-in, a manifest.
//!
//! Most tools can say less than the kernel: a container engine binds memory and cannot interleave it,
//! Slurm neither. Where one cannot, the text starts the program through `nodewise run`, which can, and a
//! note says why; where that is impossible too there is no text but an [`Unsaid`]. Nothing here is
//! tried: whether a program is better off is for `tune` to find out.
//!
//! One file per kind of tool: [`command`] for command lines, [`service`] for systemd and the databases it
//! starts, [`container`] for container engines and Kubernetes, [`machine`] for virtual ones,
//! [`runtime`] for OpenMP, PyTorch and Java; [`threads`] is how each of them learns the number of threads.

mod command;
mod container;
mod machine;
mod runtime;
mod service;
mod threads;

use std::fmt;
use std::str::FromStr;

use crate::executor::Arm;
use crate::study::Study;
use crate::verdict::Advice;
use nodewise_machine::placement::{HugePages, Placement, Scope};
use nodewise_machine::printable::printable;
use nodewise_machine::{CpuSet, MemPolicy, NodeSet, PolicyMode};

use crate::shell;
use threads::Threads;

/// A tool that starts programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Numactl,
    /// A drop-in of a systemd service.
    Systemd,
    /// `docker run`.
    Docker,
    /// `podman run`.
    Podman,
    Slurm,
    Mpi,
    /// A Kubernetes pod and the kubelet's settings.
    K8s,
    Libvirt,
    /// The environment of an OpenMP program.
    OpenMp,
    Torchrun,
    Jvm,
    Mongod,
    Mysqld,
    Postgres,
}

impl Target {
    /// All of them, in the order of the help.
    pub const ALL: [Self; 14] = [
        Self::Numactl,
        Self::Systemd,
        Self::Docker,
        Self::Podman,
        Self::Slurm,
        Self::Mpi,
        Self::K8s,
        Self::Libvirt,
        Self::OpenMp,
        Self::Torchrun,
        Self::Jvm,
        Self::Mongod,
        Self::Mysqld,
        Self::Postgres,
    ];

    /// The word for it on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Numactl => "numactl",
            Self::Systemd => "systemd",
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::Slurm => "slurm",
            Self::Mpi => "mpi",
            Self::K8s => "k8s",
            Self::Libvirt => "libvirt",
            Self::OpenMp => "openmp",
            Self::Torchrun => "torchrun",
            Self::Jvm => "jvm",
            Self::Mongod => "mongod",
            Self::Mysqld => "mysqld",
            Self::Postgres => "postgres",
        }
    }
}

/// A word that names no tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTarget(String);

impl fmt::Display for UnknownTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Target::ALL.map(Target::name).join(", ");
        write!(f, "{} is not a supported tool: expected one of {names}", self.0)
    }
}

impl std::error::Error for UnknownTarget {}

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let quoted = || UnknownTarget(nodewise_machine::printable::quote(text).to_string());
        Self::ALL.into_iter().find(|target| target.name() == text).ok_or_else(quoted)
    }
}

/// The needs of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// Lines to type or to put into a file; comments in them say which file.
    pub text: String,
    /// Remarks for the reader beside it, a sentence each.
    pub notes: Vec<String>,
}

/// Why a tool cannot apply a placement, not even through `nodewise run`; a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsaid(pub String);

impl fmt::Display for Unsaid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsaid {}

/// Full paths, for tools that do not look for programs as a shell does; `None` where one is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    pub nodewise: Option<String>,
    pub program: Option<String>,
}

/// Writes a placement for a tool. `program` is the program with its arguments, as a user would type
/// them; `scope` what it may use here.
///
/// # Errors
/// Where the tool cannot apply it.
pub fn emit(
    target: Target,
    placement: &Placement,
    program: &[String],
    scope: &Scope,
    paths: &Paths,
) -> Result<Emitted, Unsaid> {
    write(target, &Wish { placement, program, scope, paths, threads: Threads::Untold })
}

/// Writes the placement that a study advises, with the number of threads that goes with it; `None` where
/// it advises none: [`nothing`] says why.
pub fn best(
    target: Target,
    study: &Study,
    advice: &Advice,
    scope: &Scope,
    paths: &Paths,
) -> Option<Result<Emitted, Unsaid>> {
    let Advice::Use { best, .. } = advice else { return None };
    let arm = study.plan.arm(*best);
    Some(of_arm(target, arm, &study.program_of(*best), scope, paths))
}

/// Writes the placement of an arm, with its number of threads. `program` has that filled in already.
fn of_arm(
    target: Target,
    arm: &Arm,
    program: &[String],
    scope: &Scope,
    paths: &Paths,
) -> Result<Emitted, Unsaid> {
    write(target, &Wish { placement: &arm.placement, program, scope, paths, threads: Threads::from_arm(arm) })
}

fn write(target: Target, wish: &Wish<'_>) -> Result<Emitted, Unsaid> {
    match target {
        Target::Numactl => command::numactl(wish),
        Target::Systemd => service::systemd(wish),
        Target::Docker | Target::Podman => container::engine(target.name(), wish),
        Target::Slurm => command::slurm(wish),
        Target::Mpi => command::mpi(wish),
        Target::K8s => container::kubernetes(wish),
        Target::Libvirt => machine::libvirt(wish),
        Target::OpenMp => runtime::openmp(wish),
        Target::Torchrun => runtime::torchrun(wish),
        Target::Jvm => runtime::java(wish),
        Target::Mongod => service::MONGOD.drop_in(wish),
        Target::Mysqld => service::mysqld(wish),
        Target::Postgres => service::POSTGRES.drop_in(wish),
    }
}

/// Why there is nothing to write for a tool after a study that advises no placement, as a sentence.
pub fn nothing(target: Target, study: &Study, advice: &Advice) -> String {
    let why = match advice {
        Advice::TooFewRounds { .. } => "too few rounds were run to show anything".to_owned(),
        Advice::BaselineFailed(_) => "the program does not work without any placement".to_owned(),
        Advice::NothingToCompare => "no placement could be compared".to_owned(),
        // With numbers of threads the first of them is part of what is kept.
        Advice::Use { .. } | Advice::Keep { .. } => match study.plan.arms().first() {
            Some(arm) if arm.name != "default" => format!("{} is to be kept", printable(&arm.name)),
            _ => "the default is to be kept".to_owned(),
        },
    };
    format!("nothing to write for {}: {why}", target.name())
}

/// The text to print.
struct Wish<'a> {
    placement: &'a Placement,
    program: &'a [String],
    scope: &'a Scope,
    paths: &'a Paths,
    threads: Threads,
}

impl Wish<'_> {
    /// The program's words for a shell; `else_` when none was named.
    fn program_or(&self, else_: &str) -> String {
        if self.program.is_empty() {
            return else_.to_owned();
        }
        shell::shown(self.program)
    }

    fn cpus(&self) -> Option<&CpuSet> {
        self.placement.cpus.as_ref()
    }

    /// The policy, where it changes anything.
    fn policy(&self) -> Option<&MemPolicy> {
        self.placement.policy.as_ref().filter(|policy| policy.mode != PolicyMode::Default)
    }

    /// The nodes of a policy that only binds memory.
    fn bound(&self) -> Option<&NodeSet> {
        self.policy().filter(|policy| policy.mode == PolicyMode::Bind).map(|policy| &policy.nodes)
    }

    /// The words before a program that place it through `nodewise run`.
    fn run_words(&self) -> Result<Vec<String>, Unsaid> {
        let options = self.placement.run_options(self.scope);
        let options =
            options.ok_or_else(|| Unsaid("no option of nodewise run says this placement".to_owned()))?;
        let run = ["nodewise".to_owned(), "run".to_owned()].into_iter();
        Ok(run.chain(options).chain(["--".to_owned()]).collect())
    }

    /// The words before a program that place it: those of numactl where it can say it, else of
    /// `nodewise run`; none where nothing is to be changed.
    fn words(&self) -> Result<Vec<String>, Unsaid> {
        match self.placement.numactl(self.scope) {
            Some(options) if options.is_empty() => Ok(options),
            Some(options) => Ok(["numactl".to_owned()].into_iter().chain(options).collect()),
            None => self.run_words(),
        }
    }

    /// A program, as a shell reads it, placed through `nodewise run`.
    fn through_run(&self, program: &str) -> Result<String, Unsaid> {
        Ok(joined(self.run_words()?.into_iter().chain([program.to_owned()])))
    }

    /// A program, as a shell reads it, placed through what can do so.
    fn wrapped(&self, program: &str) -> Result<String, Unsaid> {
        Ok(joined(self.words()?.into_iter().chain([program.to_owned()])))
    }

    /// A command line with the variables before it that show how many threads to use.
    fn with_variables(&self, line: String) -> String {
        joined(self.threads.assignments().into_iter().chain([line]))
    }

    /// Notes that a tool without a word for huge pages leaves them out.
    fn huge_note(&self) -> Option<String> {
        let huge = self.placement.huge?;
        let kind = if huge == HugePages::Pool { "" } else { "transparent " };
        let wish = format!("{kind}huge pages {}", huge.words());
        Some(format!("{wish} cannot be said here: start the program through nodewise run for it"))
    }
}

fn joined(words: impl IntoIterator<Item = String>) -> String {
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

impl Emitted {
    fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), notes: Vec::new() }
    }

    fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    fn notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.notes.extend(notes);
        self
    }
}

#[cfg(test)]
mod tests;
