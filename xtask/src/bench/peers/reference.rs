//! Plain code in C for what is not packaged, compiled here: `reference.c`.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};
use nodewise_machine::{Bytes, CpuId};
use nodewise_measure::cell::PageKind;
use tempfile::TempDir;

use crate::program;

const SOURCE: &str = include_str!("reference.c");

/// How it is compiled: what everybody does, and what those do who want more. A loop that copies stays a
/// loop: what libc does has a name of its own.
const BUILDS: [(&str, &[&str]); 2] =
    [("C -O3", &["-O3"]), ("C -O3 -march=native", &["-O3", "-march=native"])];

/// The program, as one compiler line makes it.
#[derive(Clone)]
pub struct Reference {
    /// Its name in the table.
    pub name: &'static str,
    path: PathBuf,
    _folder: Rc<TempDir>,
}

/// Its task.
pub struct Question<'a> {
    pub operation: &'a str,
    pub size: Bytes,
    pub pages: PageKind,
    pub time: Duration,
    pub cpus: &'a [CpuId],
    pub seed: usize,
}

impl Reference {
    /// Compiles all builds.
    pub fn build() -> Result<Vec<Self>> {
        let folder = Rc::new(tempfile::tempdir()?);
        let source = folder.path().join("reference.c");
        std::fs::write(&source, SOURCE)?;
        let build = |(at, (name, options)): (usize, &(&'static str, &[&str]))| {
            let path = folder.path().join(format!("reference-{at}"));
            let mut compiler = Command::new("cc");
            compiler.args(*options).args([
                "-Wall",
                "-Wextra",
                "-pthread",
                "-fno-tree-loop-distribute-patterns",
            ]);
            program::quiet(compiler.arg("-o").arg(&path).arg(&source)).context("a C compiler is needed")?;
            Ok(Self { name, path, _folder: Rc::clone(&folder) })
        };
        BUILDS.iter().enumerate().map(build).collect()
    }

    /// GB/s of a pass, or ns per load of a chase; `None` where it fails.
    pub fn ask(&self, question: &Question<'_>) -> Option<f64> {
        let cpus: Vec<String> = question.cpus.iter().map(ToString::to_string).collect();
        let pages = if question.pages == PageKind::Small { "small" } else { "huge" };
        let mut command = Command::new(&self.path);
        command.arg(question.operation).arg(question.size.get().to_string()).arg(pages);
        command.arg(question.time.as_millis().to_string()).arg(cpus.join(",")).arg(question.seed.to_string());
        let output = command.stdin(Stdio::null()).output().ok()?;
        figure(&String::from_utf8_lossy(&output.stdout))
    }
}

fn figure(text: &str) -> Option<f64> {
    let figure = text.strip_prefix("GB/s: ").or_else(|| text.strip_prefix("ns: "))?;
    figure.trim().parse().ok().filter(|figure: &f64| figure.is_finite() && *figure > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_syscall::{Task, affinity};

    #[test]
    fn what_it_prints_is_read() {
        for (text, expected) in [
            ("GB/s: 12.5\n", Some(12.5)),
            ("ns: 0.95769\n", Some(0.95769)),
            ("GB/s: -1\n", None),
            ("ns: nan\n", None),
            ("", None),
            ("12.5", None),
        ] {
            assert_eq!(figure(text), expected, "{text}");
        }
    }

    #[test]
    fn every_operation_of_it_has_a_figure_and_no_other() {
        let Ok(references) = Reference::build() else {
            return println!("skipped: there is no C compiler");
        };
        let cpus: Vec<CpuId> = affinity::cpus(Task::CURRENT).unwrap().iter().take(2).collect();
        let ask = |operation, pages| {
            let size = Bytes::from_mib(2);
            let question =
                Question { operation, size, pages, time: Duration::from_millis(1), cpus: &cpus, seed: 3 };
            references[0].ask(&question)
        };
        let operations = [
            "read", "write", "copy", "scale", "add", "triad", "update", "memcpy", "memset", "chase", "window",
        ];
        for operation in operations {
            for pages in [PageKind::Small, PageKind::TransparentHuge] {
                assert!(ask(operation, pages).is_some(), "{operation}");
            }
        }
        assert_eq!(ask("jump", PageKind::Small), None);
    }
}
