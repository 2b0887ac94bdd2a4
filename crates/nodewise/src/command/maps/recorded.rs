//! `nodewise maps --from`: mappings in a recording, alone or beside those of another moment.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use nodewise_diagnose::Relation;
use nodewise_machine::printable::{printable, quote};
use nodewise_machine::{Machine, Origin};
use nodewise_source::process::{Pid, search};
use nodewise_source::sample::MappingsSample;
use nodewise_view::digest::maps::comparison::{MapsComparison, MapsMoment};
use nodewise_view::digest::provenance as caption;
use nodewise_view::{csv, json, text};

use super::named;
use crate::cli::Global;
use crate::cli::maps::Maps;
use crate::command::process::{is_number, listed, several};
use crate::command::recording::{OpenRecording, Recorded, relation};
use crate::failure::{Failure, Outcome};
use crate::output;

/// Shows the mappings of a moment, or their change.
pub(super) fn show(args: &Maps, global: &Global, file: &Path) -> Outcome {
    let recording = OpenRecording::open(file)?;
    let after = recording.moment(args.at)?;
    let process = find(&after, &args.process)?;
    let Some(against) = &args.against else {
        let mut mappings = (*process.mappings).clone();
        mappings.notes.extend(age(&after, process).map(text::maps::age_words));
        return super::show(args, global, &mappings, None, &|| Ok(provenance(&after)));
    };
    let before = recording.against(file, against)?;
    let (relation, _) = relation(&before.header, &after.header);
    let same = before
        .now
        .mappings
        .iter()
        .find(|other| relation == Relation::SameBoot && other.identity == process.identity);
    let earlier = match same {
        Some(same) => same,
        None => find(&before, &args.process)?,
    };
    let comparison = MapsComparison {
        before: &earlier.mappings,
        after: &process.mappings,
        relation,
        is_same: same.is_some(),
        moments: [moment(&before, earlier), moment(&after, process)],
    };
    if args.csv {
        output::print(&csv::maps_comparison(&comparison))?;
        return Ok(0);
    }
    let json = || json::maps_comparison(&comparison);
    let text = |style: &_| text::maps::comparison(&comparison, named(args), style);
    output::show(args.json, global.color, json, text)?;
    Ok(0)
}

/// The caption of a picture: the machine of the recording, and the time of the sample.
fn provenance(recorded: &Recorded) -> String {
    let mut machine = recorded.header.machine().ok().flatten().unwrap_or_else(|| Machine::new(Origin::Live));
    machine.origin = Origin::Live;
    machine.read_at = UNIX_EPOCH.checked_add(recorded.now.moment.wall);
    let source = format!("from recording {}", recorded.name);
    [caption::provenance(&machine), source]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}

fn moment(recorded: &Recorded, process: &MappingsSample) -> MapsMoment {
    MapsMoment { recording: recorded.name.clone(), at: recorded.at, age: age(recorded, process) }
}

/// How long before the moment the mappings were read; `None` where that is when the sample was taken.
fn age(recorded: &Recorded, process: &MappingsSample) -> Option<Duration> {
    let age = recorded.now.moment.since_boot.saturating_sub(process.seen.since_boot);
    (!age.is_zero()).then_some(age)
}

/// The process with a number or a name whose mappings a recording holds.
fn find<'r>(recorded: &'r Recorded, text: &str) -> Result<&'r MappingsSample, Failure> {
    let all = &recorded.now.mappings;
    let name_of = |process: &MappingsSample| {
        let sample = recorded.now.process(process.identity);
        sample.map(|sample| sample.name.to_string()).or_else(|| process.mappings.name.clone())
    };
    let is_number = is_number(text);
    let is_wanted = |process: &&MappingsSample| match text.parse::<u32>() {
        Ok(number) if is_number => process.identity.pid.number() == number,
        _ => name_of(process).is_some_and(|name| search::is_called(name.as_bytes(), text)),
    };
    let found: Vec<&MappingsSample> = all.iter().filter(is_wanted).collect();
    let name = &recorded.name;
    match found[..] {
        [process] => Ok(process),
        [] => Err(Failure::cannot(if all.is_empty() {
            format!("{name} holds no mappings at this moment: nodewise record --maps PID|NAME records them")
        } else {
            let named = |process: &MappingsSample| {
                let name = name_of(process).unwrap_or_default();
                format!("{} {}", process.identity.pid, printable(&name))
            };
            let known: Vec<String> = all.iter().map(named).collect();
            let what = if is_number { format!("process {text}") } else { quote(text) };
            format!("{name} holds no mappings of {what} at this moment: expected one of {}", listed(&known))
        })),
        _ => {
            let pids: Vec<Pid> = found.iter().map(|process| process.identity.pid).collect();
            Err(several(text, &pids))
        }
    }
}
