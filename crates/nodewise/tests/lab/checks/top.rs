//! `top` with an interval: the program with the most stranded memory is its first row.

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::ways::{Nodes, Ten};
use crate::nodewise::Context;

/// Screens that must have the program first, while it rests and while it works.
const SCREENS: usize = 3;
/// The most screens until its memory has been looked at: on a slow machine one look takes all of a screen's budget.
const MOST: usize = 100;

/// `top` without a terminal, which prints a screen each second.
struct Top {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// The rows of processes of a screen: number, and whether stranded memory is known.
type Rows = Vec<(u32, bool)>;

impl Top {
    fn start(context: &Context) -> Result<Self, String> {
        let mut command = Command::new(context.path());
        let mut child =
            command.args(["top", "1"]).stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
        let lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        Ok(Self { child, lines })
    }

    fn line(&mut self) -> Result<String, String> {
        self.lines.next().ok_or("top has ended")?.map_err(|error| error.to_string())
    }

    /// The processes of the next screen.
    fn screen(&mut self) -> Result<Rows, String> {
        while !self.line()?.starts_with("Processes  ") {}
        let head = self.line()?;
        let end = head.find("stranded").map(|at| at + "stranded".len());
        let end = end.ok_or_else(|| format!("no column of stranded memory: {head:?}"))?;
        let mut rows = Rows::new();
        // A row may go on in further lines. A note explains the column.
        loop {
            let line = self.line()?;
            if line.starts_with("  stranded:") {
                return Ok(rows);
            }
            let pid = line.split_whitespace().next().and_then(|word| word.parse().ok());
            // Aligned with the end of its head.
            rows.extend(pid.map(|pid| (pid, line.chars().take(end).last() == Some('%'))));
        }
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Programs in ten ways, two of which use all the CPU time: the one with the most stranded memory is first as soon as its
/// memory has been looked at, and stays first.
pub fn offender_first(context: &Context) -> Result<(), String> {
    let mut ten = Ten::start(context, Nodes::find(context)?)?;
    ten.busy().try_for_each(|program| program.ask("work").map(drop))?;
    let far = ten.far().pid;
    let mut top = Top::start(context)?;
    let mut seen = 0;
    for number in 0.. {
        let rows = top.screen()?;
        let is_known = rows.contains(&(far, true));
        seen += usize::from(is_known);
        if is_known && rows.first() != Some(&(far, true)) {
            return Err(format!("screen {number}: {far} is not first: {rows:?}"));
        }
        if seen == 0 && number == MOST {
            return Err(format!("{MOST} screens without stranded memory of {far}: {rows:?}"));
        }
        if seen > 0 && !is_known {
            return Err(format!("screen {number}: stranded memory of {far} is no longer known: {rows:?}"));
        }
        match seen {
            SCREENS => drop(ten.far().ask("work")?),
            seen if seen == 3 * SCREENS => break,
            _ => {}
        }
    }
    Ok(())
}
