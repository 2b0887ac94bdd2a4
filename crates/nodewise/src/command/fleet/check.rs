//! `nodewise fleet check`: this machine against its group, in one line.

use std::path::Path;

use nodewise_fleet::HostSurvey;
use nodewise_fleet::check::{CheckFinding, HostCheck, Reference};
use nodewise_machine::printable::{printable, quote};
use nodewise_source::machine_file;
use nodewise_view::json::{self, Saved};
use nodewise_view::text::check::{check as line_of, cut, nagios};

use super::files;
use crate::cli::Global;
use crate::cli::fleet::{CheckStyle, FleetCheck};
use crate::cli::survey::{Survey, SurveyPart, SurveyParts};
use crate::command::survey;
use crate::failure::{CANNOT, Failure, Outcome};
use crate::{input, output};

/// The largest report that is read as a reference.
const MOST_READ: u64 = 256 << 20;
/// Letters that node-problem-detector keeps of a line by default.
const NPD_LETTERS: usize = 80;
/// The host of a machine from elsewhere, which has no name.
const ELSEWHERE: &str = "machine";

/// Runs the check.
pub fn run(args: &FleetCheck, global: &Global) -> Outcome {
    let (state, line, check) = match examine(args, global) {
        Ok((check, lacking)) => {
            let state = CheckState::from_check(&check, &lacking);
            let mut line = line_of(&check);
            if !lacking.is_empty() {
                line.push_str(&format!("; not examined: {}", lacking.join(", ")));
            }
            (state, line, Some(check))
        }
        Err(failure) if args.style == CheckStyle::Plain => return Err(failure),
        Err(failure) => (CheckState::Unknown, printable(&failure.message).into_owned(), None),
    };
    let line = match args.style {
        CheckStyle::Plain | CheckStyle::Slurm => format!("nodewise: {line}"),
        CheckStyle::Npd => cut(&line, NPD_LETTERS),
        CheckStyle::Nagios => nagios(state.word(), &line, check.as_ref()),
    };
    output::print(&format!("{line}\n"))?;
    Ok(state.code(args))
}

/// The state of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckState {
    Healthy,
    Warning,
    Critical,
    Unknown,
}

impl CheckState {
    fn from_check(check: &HostCheck, lacking: &[String]) -> Self {
        match (check.findings.first(), lacking) {
            (Some(worst), _) if worst.is_critical() => Self::Critical,
            (Some(CheckFinding::UnknownKind { .. }), _) if check.findings.len() == 1 => Self::Unknown,
            (Some(_), _) => Self::Warning,
            (None, []) => Self::Healthy,
            (None, _) => Self::Unknown,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Healthy => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// The exit code that the caller expects.
    const fn code(self, args: &FleetCheck) -> u8 {
        match (args.style, self) {
            // Slurm logs another code, and newer releases keep a node from registering.
            (CheckStyle::Slurm, _) if !args.fail => 0,
            (_, Self::Healthy) => 0,
            (CheckStyle::Plain | CheckStyle::Slurm | CheckStyle::Npd, Self::Warning | Self::Critical) => 1,
            (CheckStyle::Nagios, Self::Warning) => 1,
            (CheckStyle::Nagios, Self::Critical) => 2,
            (CheckStyle::Npd, Self::Unknown) => 2,
            (_, Self::Unknown) => CANNOT,
        }
    }
}

/// The result, and the parts that could not be examined.
fn examine(args: &FleetCheck, global: &Global) -> Result<(HostCheck, Vec<String>), Failure> {
    let reference = args.reference.as_deref().map(reference).transpose()?;
    let survey = match &args.survey {
        Some(path) => files::read(path).map_err(|why| {
            let path = quote(&path.display().to_string());
            Failure::usage(format_args!("--survey: {path} was not read: {why}"))
        })?,
        None => surveyed(args, global)?,
    };
    let lacking = survey.lacking.iter().map(|lack| format!("{} ({})", lack.part, lack.reason)).collect();
    Ok((HostCheck::new(&survey, reference.as_ref()), lacking))
}

fn reference(path: &Path) -> Result<Reference, Failure> {
    let shown = || quote(&path.display().to_string());
    let text = input::read_text(path, MOST_READ)
        .map_err(|why| Failure::usage(format_args!("--reference: cannot read {}: {why}", shown())))?;
    Saved::from_json(&text).and_then(|saved| json::fleet::read(&saved)).map_err(|error| {
        Failure::usage(format_args!(
            "--reference: {} is not a result of nodewise fleet report: {error}",
            shown()
        ))
    })
}

/// Surveys this machine, or that of `--machine`.
fn surveyed(args: &FleetCheck, global: &Global) -> Result<HostSurvey, Failure> {
    let mut verbs = vec![SurveyPart::Show, SurveyPart::Doctor];
    if args.measure {
        verbs.extend([SurveyPart::Latency, SurveyPart::Bandwidth]);
    }
    let host = (!input::is_live(&global.machine)).then(|| ELSEWHERE.to_owned());
    let options = Survey {
        output: None,
        parts: SurveyParts { verbs },
        from: Vec::new(),
        host,
        run: String::new(),
        attempt: 0,
    };
    let made = survey::make(&options, global)?;
    json::survey::read(&made.text, |machine| {
        machine_file::from_json(machine).map_err(|error| error.to_string())
    })
    .map_err(Failure::cannot)
}
