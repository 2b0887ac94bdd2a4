//! Recordings for the verbs that show them: a file to its samples, and two files to how their machines are
//! related.

use std::path::Path;
use std::time::Duration;

use nodewise_diagnose::Relation;
use nodewise_machine::plural::plural;
use nodewise_machine::printable::printable;
use nodewise_machine::{Bytes, Machine, NodeId};
use nodewise_source::record::{Ends, Gap, Header, RecordError, Recording};
use nodewise_source::sample::Sample;

use crate::cli::recording::RecordedMoment;
use crate::failure::Failure;
use crate::output;

/// Sizes of memory that differ by less than this part differ by what the kernel keeps for itself.
const SAME_MEMORY: f64 = 0.02;

/// A recording that is open, for one moment of it or several.
pub struct OpenRecording {
    name: String,
    recording: Recording,
}

/// A recording, and the moment of it that is shown.
pub struct Recorded {
    pub name: String,
    pub header: Header,
    /// The sample that rates count from; `None` where there is only one.
    pub before: Option<Sample>,
    pub now: Sample,
    /// The time since the beginning of the recording.
    pub at: Duration,
}

impl OpenRecording {
    /// Opens a recording.
    ///
    /// # Errors
    /// A file that is not a recording.
    pub fn open(file: &Path) -> Result<Self, Failure> {
        let path = file.to_string_lossy();
        let name = printable(&path).into_owned();
        match Recording::open(file) {
            Ok(recording) => Ok(Self { name, recording }),
            Err(error) => Err(Failure::cannot(format_args!("{name}: {error}"))),
        }
    }

    /// Takes all of it, or a moment. Gaps are named on standard error.
    ///
    /// # Errors
    /// A recording that holds no whole sample.
    pub fn moment(&self, at: Option<Duration>) -> Result<Recorded, Failure> {
        let name = &self.name;
        let found = samples(&self.recording, at);
        let (before, now, gaps) = found.map_err(|error| Failure::cannot(format_args!("{name}: {error}")))?;
        for gap in &gaps {
            output::say(&format!("{name}: {}", gap_sentence(gap)));
        }
        let (first, _) = self.recording.span().unwrap_or_default();
        let at = now.moment.wall.saturating_sub(first);
        Ok(Recorded { name: name.clone(), header: self.recording.header().clone(), before, now, at })
    }

    /// Takes the moment that this one is compared with: of another recording, or of this one.
    ///
    /// # Errors
    /// A file that is not a recording, or holds no whole sample.
    pub fn against(&self, file: &Path, against: &RecordedMoment) -> Result<Recorded, Failure> {
        match against.file.as_deref().filter(|other| *other != file) {
            Some(other) => Self::open(other)?.moment(against.at),
            None => self.moment(against.at),
        }
    }
}

/// The sample that rates count from, the one to show, and the gaps of a whole recording.
fn samples(
    recording: &Recording,
    at: Option<Duration>,
) -> Result<(Option<Sample>, Sample, Vec<Gap>), RecordError> {
    if let Some(at) = at {
        let (first, _) = recording.span().unwrap_or_default();
        let (before, now) = recording.at(first.saturating_add(at))?;
        return Ok((before, now, Vec::new()));
    }
    let Ends { first, last, gaps } = recording.ends()?;
    Ok((first, last, gaps))
}

pub fn gap_sentence(gap: &Gap) -> String {
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

/// How the machines of two recordings are related, and their differences in words.
pub fn relation(before: &Header, after: &Header) -> (Relation, Vec<String>) {
    let machines = before.machine().ok().flatten().zip(after.machine().ok().flatten());
    let (hardware, software) = match &machines {
        Some((before, after)) => (hardware(before, after), software(before, after)),
        None => (Vec::new(), Vec::new()),
    };
    let relation = match (&before.boot, &after.boot) {
        // Within a start, memory and CPUs may come and go.
        (Some(before), Some(after)) if before == after => Relation::SameBoot,
        _ if !hardware.is_empty() => Relation::OtherMachine,
        (Some(_), Some(_)) => Relation::OtherBoot,
        _ => Relation::Unknown,
    };
    (relation, hardware.into_iter().chain(software).collect())
}

fn software(before: &Machine, after: &Machine) -> Vec<String> {
    let release = |machine: &Machine| machine.kernel.as_ref().map(ToString::to_string);
    match (release(before), release(after)) {
        (Some(before), Some(after)) if before != after => {
            vec![format!("Linux {} before, {} after", printable(&before), printable(&after))]
        }
        _ => Vec::new(),
    }
}

/// Differences that one machine does not have after a restart.
fn hardware(before: &Machine, after: &Machine) -> Vec<String> {
    let mut differences = Vec::new();
    let mut differ = |before: String, after: String| {
        if before != after {
            differences.push(format!("{} before, {} after", printable(&before), printable(&after)));
        }
    };
    // Only what both of them say can differ.
    if let Some((before, after)) = before.architecture.clone().zip(after.architecture.clone()) {
        differ(before, after);
    }
    let models = |machine: &Machine| {
        let names: Vec<&str> = machine.cpu_models.iter().map(|model| model.name.as_str()).collect();
        (!names.is_empty()).then(|| names.join(" and "))
    };
    if let Some((before, after)) = models(before).zip(models(after)) {
        differ(before, after);
    }
    let nodes = |machine: &Machine| format!("nodes {}", machine.node_ids());
    differ(nodes(before), nodes(after));
    let cpus = |machine: &Machine| plural(machine.cpu_ids().len(), "CPU");
    differ(cpus(before), cpus(after));
    let shared: Vec<NodeId> =
        before.node_ids().iter().filter(|node| after.node_ids().contains(*node)).collect();
    for node in shared {
        let (one, other) = (before.memory_of(node), after.memory_of(node));
        if let Some((one, other)) = one.zip(other).filter(|(one, other)| !is_same_size(*one, *other)) {
            differ(format!("node {node} {one}"), format!("{other}"));
        }
    }
    differences
}

fn is_same_size(one: Bytes, other: Bytes) -> bool {
    let larger = one.max(other).get() as f64;
    one.get().abs_diff(other.get()) as f64 <= larger * SAME_MEMORY
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{CpuModel, Origin};
    use nodewise_source::machine_file;
    use nodewise_source::record::Writer;
    use nodewise_source::sample::Moment;

    fn header(boot: Option<&str>, spec: Option<&str>) -> Header {
        let header = Header::new("1", Duration::from_secs(1), boot.map(str::to_owned));
        let Some(spec) = spec else { return header };
        let mut machine = nodewise_machine::spec::machine(spec).unwrap();
        machine.origin = Origin::Live;
        header.with_machine_file(&machine_file::to_json(&machine)).unwrap()
    }

    fn check(before: &Header, after: &Header, expected: Relation, words: &[&str]) {
        let (relation, differences) = relation(before, after);
        assert_eq!(relation, expected);
        assert_eq!(differences.len(), words.len(), "{differences:?}");
        for (difference, word) in differences.iter().zip(words) {
            assert!(difference.contains(word), "{difference:?}: {word}");
        }
    }

    #[test]
    fn a_boot_is_the_same_by_its_mark_and_a_machine_by_its_shape() {
        let small = Some("2x(4c 8G)");
        let one = header(Some("aaaaaaaa"), small);
        check(&one, &header(Some("aaaaaaaa"), small), Relation::SameBoot, &[]);
        check(&one, &header(Some("bbbbbbbb"), small), Relation::OtherBoot, &[]);
        check(&one, &header(None, small), Relation::Unknown, &[]);
        check(&header(None, None), &header(None, None), Relation::Unknown, &[]);
        let large = header(Some("bbbbbbbb"), Some("4x(4c 16G)"));
        let words =
            ["nodes 0-1 before, nodes 0-3 after", "8 CPUs", "node 0 8 GiB before, 16 GiB after", "node 1"];
        check(&one, &large, Relation::OtherMachine, &words);
        // A machine that does not say what its processors are may be the same.
        let mut named = nodewise_machine::spec::machine("2x(4c 8G)").unwrap();
        named.origin = Origin::Live;
        named.architecture = Some("x86_64".to_owned());
        named.cpu_models = vec![CpuModel { name: "EPYC".to_owned(), cpus: named.cpu_ids() }];
        let named = header(Some("bbbbbbbb"), None).with_machine_file(&machine_file::to_json(&named)).unwrap();
        check(&one, &named, Relation::OtherBoot, &[]);
        check(&named, &one, Relation::OtherBoot, &[]);
    }

    #[test]
    fn every_moment_that_can_be_typed_is_found() {
        let sample = |micros: u64| {
            let moment = Moment {
                since_boot: Duration::from_micros(micros),
                wall: Duration::from_micros(1_700_000_000_000_700 + micros),
            };
            Sample { moment, ..Sample::default() }
        };
        let mut writer = Writer::begin(Vec::new(), &header(None, None), None).unwrap();
        for second in 0..3 {
            writer.push(&sample(second * 1_000_000)).unwrap();
        }
        let recording = Recording::from_bytes(writer.finish().unwrap()).unwrap();
        let open = OpenRecording { name: "a".to_owned(), recording };
        let check = |at: Option<Duration>, before: u64, now: u64| {
            let found = open.moment(at).unwrap();
            let micros = |second: u64| Duration::from_secs(second);
            let from = found.before.unwrap().moment.since_boot;
            assert_eq!(
                (from, found.now.moment.since_boot, found.at),
                (micros(before), micros(now), micros(now))
            );
        };
        check(None, 0, 2);
        check(Some(Duration::MAX), 1, 2);
        check(Some(Duration::from_secs(2)), 1, 2);
        // A moment has the sample before it, and nothing of the one behind it.
        check(Some(Duration::from_micros(1_999_999)), 0, 1);
        check(Some(Duration::ZERO), 0, 1);
    }
}
