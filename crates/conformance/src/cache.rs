//! Programs that use files on a disk and memory of their own, as data, and in words.

mod draw;
mod simpler;

use nodewise_machine::{MemPolicy, NodeId};

pub use draw::drawn;

/// A program that uses files and memory, both under one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheProgram {
    /// The node of its CPU.
    pub cpu_node: NodeId,
    pub policy: Option<MemPolicy>,
}

/// Pages of a file, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePages {
    pub file: usize,
    pub first: u64,
    pub count: u64,
}

/// A step of a program, or of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheStep {
    Read(usize, FilePages),
    Write(usize, FilePages),
    /// A program writes to this many pages of memory that it has not written to before.
    Take(usize, u64),
    Sync,
    /// `drop_caches` is written.
    Drop,
}

/// Files and programs, for so long as the steps take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheScript {
    pub programs: Vec<CacheProgram>,
    pub steps: Vec<CacheStep>,
}

impl CacheScript {
    /// Pages that a program takes in all steps, at least one.
    pub fn pages_of(&self, program: usize) -> u64 {
        let taken = self.steps.iter().map(|step| match step {
            CacheStep::Take(own, pages) if *own == program => *pages,
            _ => 0,
        });
        taken.sum::<u64>().max(1)
    }

    /// Pages that a file has, so that all that is used of it exists.
    pub fn pages_of_file(&self, file: usize) -> u64 {
        let used = self.steps.iter().filter_map(CacheStep::file).filter(|used| used.file == file);
        used.map(|used| used.first + used.count).max().unwrap_or(0)
    }

    /// The number of files.
    pub fn files(&self) -> usize {
        self.steps.iter().filter_map(CacheStep::file).map(|used| used.file + 1).max().unwrap_or(0)
    }

    /// The script in words.
    pub fn text(&self) -> String {
        let programs = self.programs.iter().enumerate().map(|(number, program)| {
            let policy = program.policy.as_ref().map(|policy| format!(" with {policy}")).unwrap_or_default();
            format!("p{number} on a CPU of node {}{policy}", program.cpu_node)
        });
        let programs = programs.collect::<Vec<_>>().join(", ");
        let steps = self.steps.iter().map(CacheStep::text).collect::<Vec<_>>().join("; ");
        format!("with files on a disk: {programs}: {steps}")
    }
}

impl CacheStep {
    /// The step in words.
    pub fn text(&self) -> String {
        match self {
            Self::Read(program, pages) => format!("p{program} reads {}", pages.text()),
            Self::Write(program, pages) => format!("p{program} writes {}", pages.text()),
            Self::Take(program, pages) => format!("p{program} writes to {pages} more pages of memory"),
            Self::Sync => "sync".to_owned(),
            Self::Drop => "drop_caches = 1".to_owned(),
        }
    }

    /// The program of the step.
    pub const fn program(&self) -> Option<usize> {
        match self {
            Self::Read(program, _) | Self::Write(program, _) | Self::Take(program, _) => Some(*program),
            Self::Sync | Self::Drop => None,
        }
    }

    const fn file(&self) -> Option<FilePages> {
        match self {
            Self::Read(_, pages) | Self::Write(_, pages) => Some(*pages),
            Self::Take(..) | Self::Sync | Self::Drop => None,
        }
    }
}

impl FilePages {
    fn text(self) -> String {
        let from = if self.first == 0 { String::new() } else { format!(" from page {} on", self.first) };
        format!("{} pages of f{}{from}", self.count, self.file)
    }
}
