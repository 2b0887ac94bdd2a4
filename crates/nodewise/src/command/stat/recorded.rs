//! `nodewise stat --from`: a recording in place of the running system.

use std::collections::BTreeSet;
use std::path::Path;

use nodewise_diagnose::{Delta, identity};
use nodewise_machine::printable::printable;
use nodewise_source::process::Pid;
use nodewise_source::record::{Gap, RecordError, Recording};
use nodewise_source::sample::Sample;

use super::words::Words;
use super::{Reader, subject};
use crate::cli::Global;
use crate::cli::stat::Stat;
use crate::failure::{Failure, Outcome};
use crate::output;

/// Shows the whole recording, or one moment of it.
pub(super) fn show(args: &Stat, global: &Global, words: &Words, file: &Path) -> Outcome {
    let name = file.to_string_lossy();
    let fail = |error: RecordError| Failure::cannot(format_args!("{}: {error}", printable(&name)));
    let recording = Recording::open(file).map_err(fail)?;
    let (before, mut now, gaps) = samples(&recording, args).map_err(fail)?;
    for gap in &gaps {
        output::say(&format!("{}: {}", printable(&name), gap_sentence(gap)));
    }
    let named = subject::find_in(args, words, &now)?;
    let mut before = before;
    if let Some(named) = &named {
        keep(&mut now, named);
        before.iter_mut().for_each(|before| keep(before, named));
    }
    let delta = match &before {
        Some(before) => Delta::between(before, &now).map_err(Failure::cannot)?,
        None => Delta::since_boot(&now),
    };
    let reader = Reader { args, global, live: false, named, interval: None, count: None };
    let mut running = reader.digest(&now, &delta)?;
    if args.check {
        let readings = before.as_ref().map(|_| identity::Interval { delta: &delta, readings: 1 });
        running.checks = identity::check(&now, readings);
    }
    reader.show(&running, false)?;
    Ok(reader.code(&running))
}

/// The sample to show, the one it is compared with, and the gaps of a whole recording.
fn samples(recording: &Recording, args: &Stat) -> Result<(Option<Sample>, Sample, Vec<Gap>), RecordError> {
    if let Some(at) = args.at {
        let (first, _) = recording.span().unwrap_or_default();
        let (before, now) = recording.at(first + at)?;
        return Ok((before, now, Vec::new()));
    }
    let (mut first, mut last) = (None, None);
    let gaps = recording.read(|sample| {
        if first.is_none() {
            first = Some(sample);
        } else {
            last = Some(sample);
        }
        true
    });
    match (first, last) {
        (first, Some(last)) => Ok((first, last, gaps)),
        (Some(only), None) => Ok((None, only, gaps)),
        (None, None) => Err(RecordError::NoSamples(recording.damaged_bytes())),
    }
}

fn keep(sample: &mut Sample, named: &BTreeSet<Pid>) {
    sample.processes.retain(|process| named.contains(&process.identity.pid));
}

fn gap_sentence(gap: &Gap) -> String {
    let reason = &gap.reason;
    match (gap.from, gap.to) {
        (Some(from), Some(to)) => {
            let seconds = to.saturating_sub(from).as_secs();
            format!("{seconds} s between two samples are missing: {reason}")
        }
        (None, _) => format!("its beginning is missing: {reason}"),
        (Some(_), None) => format!("its end is missing: {reason}"),
    }
}
