//! `nodewise doctor`.

mod catalogue;
mod ignored;
pub(in crate::command) mod mappings;
mod programs;
pub mod watch;

use std::collections::BTreeSet;
use std::path::Path;

use nodewise_diagnose::finding::{RuleFinding, Severity, Subject};
use nodewise_diagnose::{Diagnosis, Pid, Situation, Thresholds, diagnosis, thresholds};
use nodewise_experiment::shell;
use nodewise_machine::Machine;
use nodewise_machine::printable::printable;
use nodewise_source::sample::{Moment, Sample, SampleOptions, Sampler};
use nodewise_source::site::Site;
use nodewise_source::tree::Tree;
use nodewise_source::{Detail, system};
use nodewise_view::digest::doctor::DoctorReport;
use nodewise_view::{csv, json, metrics, text};

use crate::cli::Global;
use crate::cli::doctor::{Doctor, DoctorVerb, FailOn};
use crate::command::recording::OpenRecording;
use crate::command::subject::{self, Found, WantedProcesses};
use crate::failure::{CANNOT, Failure, Outcome};
use crate::output::Form;
use crate::{firmware, input, measuring, output};

use ignored::Ignored;

/// Runs the verb.
pub fn run(args: &Doctor, global: &Global) -> Outcome {
    if let Some(DoctorVerb::Rules(rules)) = &args.verb {
        return catalogue::run(rules, global);
    }
    examine(args, global, |report| show(report, args, global))?
}

/// The document of a diagnosis, in place of showing it.
///
/// # Errors
/// As the verb.
pub fn document(args: &Doctor, global: &Global) -> Result<String, Failure> {
    examine(args, global, json::doctor)
}

/// Shows a report as the options want it.
fn show(report: &DoctorReport<'_>, args: &Doctor, global: &Global) -> Outcome {
    if args.brief {
        output::print(&format!("{}\n", printable(&report.brief())))?;
    } else if args.metrics {
        output::print(&metrics::doctor(report))?;
    } else {
        let (json, csv) = (|| json::doctor(report), || csv::doctor(report));
        let form = Form::new(args.json, args.csv);
        output::show_table(form, global.color, json, csv, |style| text::doctor(report, style))?;
    }
    let least = match args.fail_on {
        FailOn::Info => Severity::Info,
        FailOn::Note => Severity::Note,
        FailOn::Warning => Severity::Warning,
        FailOn::Critical => Severity::Critical,
    };
    if report.is_void() {
        return Ok(CANNOT);
    }
    Ok(u8::from(report.diagnosis.at_least(least) > 0))
}

/// Takes the evidence and asks the rules.
fn examine<R>(
    args: &Doctor,
    global: &Global,
    then: impl FnOnce(&DoctorReport<'_>) -> R,
) -> Result<R, Failure> {
    let rules = args.rule.iter().map(|id| Ok(catalogue::rule(id)?.id.to_owned()));
    let rules = rules.collect::<Result<Vec<_>, Failure>>()?;
    let ignored = args.ignore.iter().map(|text| Ignored::read(text)).collect::<Result<Vec<_>, _>>()?;
    let thresholds = args.thresholds.as_deref().map(thresholds).transpose()?.unwrap_or_default();
    let file = args.thresholds.as_deref().map(|path| shell::shown([path.to_string_lossy()]));
    let evidence = Examined::take(args, global)?;
    let mut situation = Situation::new(&evidence.machine, evidence.before.as_ref(), &evidence.now)
        .map_err(Failure::cannot)?
        .with_thresholds(thresholds);
    let mut unread = evidence.now.unread.clone();
    let read = evidence.source.is_none().then(|| programs::read(&situation, evidence.named.as_ref()));
    if let Some((programs, unpaid)) = &read {
        situation = situation.with_programs(programs);
        unread.extend(unpaid.clone());
    }
    // Elsewhere than on x86 a machine that names no hypervisor may have one.
    let names_it = evidence.source.is_none() && cfg!(target_arch = "x86_64");
    situation.virtual_machine = names_it.then(|| system::hypervisor(&Tree::live()).is_some());
    situation.site = evidence.site.as_ref();
    let mut found = Diagnosis::new(&situation, &rules);
    let others = evidence.leave_others_out(&mut found.findings);
    let hidden = ignored::take(&mut found.findings, &ignored);
    let wall = evidence.now.moment.wall;
    let report = DoctorReport {
        diagnosis: &found,
        machine: &evidence.machine,
        taken_at: (!wall.is_zero()).then_some(wall),
        source: evidence.source.as_deref(),
        unread: &unread,
        ignored: &hidden,
        others,
        all: args.all,
        thresholds: file.as_deref(),
    };
    Ok(then(&report))
}

/// Reads a file of thresholds.
fn thresholds(path: &Path) -> Result<Thresholds, Failure> {
    let name = printable(&path.to_string_lossy()).into_owned();
    let text = input::read_text(path, thresholds::MOST_BYTES as u64)
        .map_err(|why| Failure::usage(format_args!("cannot read {name}: {why}")))?;
    thresholds::read(&text).map_err(|error| Failure::usage(format_args!("{name}: {error}")))
}

/// A machine, and one or two samples of it.
struct Examined {
    machine: Machine,
    before: Option<Sample>,
    now: Sample,
    site: Option<Site>,
    /// The file in place of the running system.
    source: Option<String>,
    /// Processes that were asked for; `None`: all.
    named: Option<BTreeSet<Pid>>,
}

impl Examined {
    fn take(args: &Doctor, global: &Global) -> Result<Self, Failure> {
        let wanted = WantedProcesses {
            pids: args.pid.clone(),
            unit: args.unit.as_deref(),
            container: args.container.as_deref(),
            ..WantedProcesses::default()
        };
        let live = input::is_live(&global.machine);
        match &args.from {
            Some(_) if !live => {
                Err(Failure::usage("--from examines a recording: --machine does not go with it"))
            }
            Some(file) => Self::from_recording(file, args, &wanted),
            None if live => Self::watched(args, &wanted),
            None if args.window.is_some() || !wanted.is_empty() => Err(Failure::usage(
                "--machine shows one moment: --window and processes exist on the running system only",
            )),
            None => Self::from_machine(&global.machine),
        }
    }

    /// The running system.
    fn watched(args: &Doctor, wanted: &WantedProcesses<'_>) -> Result<Self, Failure> {
        let named = subject::find(wanted, Tree::live())?;
        let mut machine = input::load("live", Detail::Full)?.machine;
        firmware::add_tables(&mut machine, &Tree::live());
        let (before, mut now) = match args.once {
            true => (None, watch::once(named.as_ref())),
            false => watch::watch(args.window.unwrap_or(watch::WINDOW), named.as_ref())?,
        };
        mappings::add(&machine, &mut now, named.as_ref(), &*measuring::interrupt()?);
        let site = Some(Site::read(&Tree::live()));
        Ok(Self { machine, before, now, site, source: None, named })
    }

    /// A machine that is not this one: a moment of it.
    fn from_machine(typed: &str) -> Result<Self, Failure> {
        let input = input::load(typed, Detail::Full)?;
        let machine = input.machine.clone();
        let site = input.tree().map(Site::read);
        let now = Sampler::new(input.into_tree(), SampleOptions::default()).sample(Moment::default());
        let source = Some(printable(typed).into_owned());
        Ok(Self { machine, before: None, now, site, source, named: None })
    }

    fn from_recording(file: &Path, args: &Doctor, wanted: &WantedProcesses<'_>) -> Result<Self, Failure> {
        let recorded = OpenRecording::open(file)?.moment(args.at)?;
        let name = recorded.name;
        let machine =
            recorded.header.machine().map_err(|error| Failure::cannot(format_args!("{name}: {error}")))?;
        let machine = machine.ok_or_else(|| {
            Failure::cannot(format_args!("{name} holds no description of its machine, which rules need"))
        })?;
        let named = subject::find_in(wanted, &recorded.now).map(Found::all).transpose()?;
        Ok(Self {
            machine,
            before: recorded.before,
            now: recorded.now,
            site: None,
            source: Some(name),
            named,
        })
    }

    /// Takes out findings about other processes than those that were asked for, and counts them.
    fn leave_others_out(&self, findings: &mut Vec<RuleFinding>) -> usize {
        let Some(named) = &self.named else { return 0 };
        let left_out = keep(findings, named);
        diagnosis::sort(findings);
        left_out
    }
}

/// Keeps findings about these processes and about no process; those that another one explains are findings of their
/// own then.
fn keep(findings: &mut Vec<RuleFinding>, named: &BTreeSet<Pid>) -> usize {
    let mut left_out = 0;
    let mut kept = Vec::new();
    for mut finding in findings.drain(..) {
        left_out += keep(&mut finding.explains, named);
        let is_wanted = match &finding.subject {
            Subject::Process { identity, .. } => named.contains(&identity.pid),
            Subject::Machine | Subject::Nodes(_) | Subject::Device(_) => true,
        };
        if is_wanted {
            kept.push(finding);
        } else {
            kept.append(&mut finding.explains);
            left_out += 1;
        }
    }
    *findings = kept;
    left_out
}
