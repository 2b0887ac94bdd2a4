//! `nodewise stat --from`: a recording in place of the running system, alone or beside another one.

use std::collections::BTreeSet;
use std::path::Path;

use nodewise_diagnose::{Delta, identity};
use nodewise_source::process::Pid;
use nodewise_source::sample::Sample;
use nodewise_view::digest::running::comparison::{Compared, RunningComparison};
use nodewise_view::digest::running::{Choice, Running};
use nodewise_view::{csv, json, text};

use super::words::Words;
use super::{Reader, wanted};
use crate::cli::Global;
use crate::cli::stat::Stat;
use crate::command::recording::{OpenRecording, Recorded, relation};
use crate::command::subject::{self, Found};
use crate::failure::{Failure, Outcome};
use crate::output;

/// Shows the whole recording, or one moment of it.
pub(super) fn show(args: &Stat, global: &Global, words: &Words, file: &Path) -> Outcome {
    let recording = OpenRecording::open(file)?;
    let mut recorded = recording.moment(args.at)?;
    if let Some(against) = &args.against {
        return compare(args, global, words, recording.against(file, against)?, recorded);
    }
    refuse_missing(args, &recorded)?;
    let named = subject::find_in(&wanted(args, words), &recorded.now).map(Found::all).transpose()?;
    keep(&mut recorded, named.as_ref());
    let Recorded { before, now, .. } = recorded;
    let delta = delta(before.as_ref(), &now)?;
    let reader = Reader { args, global, live: false, named, interval: None, count: None };
    let mut running = reader.digest(&now, &delta)?;
    if args.check {
        let readings = before.as_ref().map(|_| identity::Interval { delta: &delta, readings: 1 });
        running.checks = identity::check(&now, readings);
    }
    reader.show(&running, false)?;
    Ok(reader.code(&running))
}

/// Refuses options for parts that the recording does not hold.
fn refuse_missing(args: &Stat, recorded: &Recorded) -> Result<(), Failure> {
    let now = &recorded.now;
    let missing = if args.irq && now.interrupts.is_empty() {
        "interrupts of devices: nodewise record --irq adds them"
    } else if args.mbm && now.bandwidth.is_empty() {
        "memory bandwidth: nodewise record adds it where nodewise stat --mbm shows it"
    } else if args.uncore && now.controllers.is_empty() {
        "traffic of memory controllers: nodewise record adds it where nodewise stat --uncore shows it"
    } else if args.services && now.groups.is_empty() {
        "control groups: the recorded system has none that can be read"
    } else {
        return Ok(());
    };
    Err(Failure::cannot(format_args!("{} holds no {missing}", recorded.name)))
}

/// Shows the differences between two moments.
fn compare(
    args: &Stat,
    global: &Global,
    words: &Words,
    mut before: Recorded,
    mut after: Recorded,
) -> Outcome {
    let (relation, differences) = relation(&before.header, &after.header);
    let found = [&before, &after].map(|recorded| subject::find_in(&wanted(args, words), &recorded.now));
    if let [Some(earlier), Some(later)] = found {
        let [earlier, later] = Found::either(earlier, later)?;
        keep(&mut before, Some(&earlier));
        keep(&mut after, Some(&later));
    } else {
        // Threads of the kernel come and go by the hundred, and have no memory of their own.
        for recorded in [&mut before, &mut after] {
            recorded.now.processes.retain(|process| !process.kernel_thread);
        }
    }
    let (first, second) = (digest(&before)?, digest(&after)?);
    let comparison = RunningComparison::new(
        Compared { name: &before.name, at: before.at, running: &first },
        Compared { name: &after.name, at: after.at, running: &second },
        relation,
        differences,
        args.top,
    );
    if args.csv {
        output::print(&csv::stat_comparison(&comparison))?;
        return Ok(0);
    }
    let json = || json::stat_comparison(&comparison);
    output::show(args.json, global.color, json, |style| text::stat::comparison(&comparison, style))?;
    Ok(0)
}

fn digest(recorded: &Recorded) -> Result<Running, Failure> {
    if recorded.now.nodes.is_empty() {
        return Err(Failure::cannot(format_args!("{}: its kernel describes no NUMA node", recorded.name)));
    }
    let delta = delta(recorded.before.as_ref(), &recorded.now)?;
    Ok(Running::new(&recorded.now, &delta, Choice::every_process()))
}

fn delta(before: Option<&Sample>, now: &Sample) -> Result<Delta, Failure> {
    match before {
        Some(before) => Delta::between(before, now).map_err(Failure::cannot),
        None => Ok(Delta::since_boot(now)),
    }
}

/// Keeps the processes that were asked for.
fn keep(recorded: &mut Recorded, named: Option<&BTreeSet<Pid>>) {
    let Some(named) = named else { return };
    for sample in recorded.before.iter_mut().chain([&mut recorded.now]) {
        sample.processes.retain(|process| named.contains(&process.identity.pid));
    }
}
