//! The programs of a suite: each case in a folder of its own, its command behind `sh -c`.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use nodewise_machine::printable::printable;

use super::Case;
use super::command::{Command, Places, quoted};
use super::conduct::Stage;
use crate::command::{CommandExecutor, Program, preparation};
use crate::executor::{Arm, Ending, Executor, Run, Unprepared, Witness};
use crate::metric::Metric;
use crate::study::{Plan, Rounds, Treatment};

/// Starts programs in a folder for temporary files, which goes away with this.
pub struct Programs<'a> {
    folder: tempfile::TempDir,
    nodewise: PathBuf,
    treatments: Vec<Treatment>,
    witness: &'a mut dyn Witness,
    interrupt: &'a AtomicBool,
}

impl<'a> Programs<'a> {
    /// A stage for runs under these placements. `nodewise` is this program, for commands that name it.
    ///
    /// # Errors
    /// A folder for temporary files that cannot be made.
    pub fn new(
        nodewise: &Path,
        treatments: Vec<Treatment>,
        witness: &'a mut dyn Witness,
        interrupt: &'a AtomicBool,
    ) -> std::io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("nodewise-compare-").tempdir()?;
        Ok(Self { folder, nodewise: nodewise.to_owned(), treatments, witness, interrupt })
    }

    /// The folder that commands know as `{inputs}`. Whoever fills it makes it.
    pub fn inputs(&self) -> PathBuf {
        self.folder.path().join("inputs")
    }

    /// The folder of a case. Names can hold anything, so its number of bytes and its place in the
    /// alphabet of hexadecimal digits name it.
    fn folder_of(&self, case: &Case<'_>) -> PathBuf {
        let name: String = case.benchmark.name.bytes().map(|byte| format!("{byte:02x}")).collect();
        self.folder.path().join(format!("{name}-{}", case.threads))
    }

    fn plan(&self, metric: &Metric) -> Result<Plan, String> {
        let treatments = self.treatments.iter().cloned();
        Plan::new(treatments, metric.clone(), Rounds::DEFAULT, 0).map_err(|error| error.to_string())
    }

    fn program(&self, case: &Case<'_>, command: &Command) -> Program {
        let inputs = self.inputs();
        let places = Places { threads: case.threads, inputs: &inputs, nodewise: &self.nodewise };
        let folder = quoted(&self.folder_of(case));
        Self::shell(case, &format!("cd {folder} || exit 126\n{}", command.fill(&places)))
    }

    fn shell(case: &Case<'_>, script: &str) -> Program {
        let program = Program::new(["/bin/sh", "-c", script]).expect("these are words");
        program.with_time_limit(case.benchmark.timeout)
    }

    /// Runs what comes before a run, under no placement.
    fn run_before(&self, program: &Program) -> Result<(), Unprepared> {
        preparation::run(program, None, self.interrupt)
    }

    fn run_measured(&mut self, case: &Case<'_>, arm: &Arm) -> Run {
        let program = self.program(case, &case.benchmark.command);
        match self.plan(&case.benchmark.metric.metric) {
            Ok(plan) => CommandExecutor::new(program, &plan, self.witness, self.interrupt).run(arm),
            Err(why) => Run::ended(Ending::NotStarted(why)),
        }
    }
}

impl Stage for Programs<'_> {
    fn prepare(&mut self, case: &Case<'_>) -> Result<(), String> {
        let folder = format!("mkdir {}", quoted(&self.folder_of(case)));
        let told = |why: Unprepared| match why.ending {
            // It says nothing of the case, and is heard before the next run.
            Ending::Interrupted => Ok(()),
            _ => Err(failed(&why)),
        };
        self.run_before(&Self::shell(case, &folder)).or_else(told)?;
        let Some(command) = &case.benchmark.prepare else { return Ok(()) };
        self.run_before(&self.program(case, command)).or_else(told)
    }

    fn run(&mut self, case: &Case<'_>, arm: &Arm) -> Run {
        if let Some(command) = &case.benchmark.prepare_each {
            if let Err(why) = self.run_before(&self.program(case, command)) {
                return Run::ended(match why.ending {
                    Ending::Interrupted => Ending::Interrupted,
                    _ => Ending::NotStarted(failed(&why)),
                });
            }
        }
        self.run_measured(case, arm)
    }
}

/// How a preparation failed.
fn failed(why: &Unprepared) -> String {
    printable(&format!("its preparation {why}")).into_owned()
}

#[cfg(test)]
mod tests;
