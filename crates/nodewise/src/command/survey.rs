//! `nodewise survey`: the documents of other verbs in one file.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nodewise_fleet::survey::{LackingPart, SurveyKey};
use nodewise_machine::printable::{printable, quote};
use nodewise_source::{Detail, machine_file};
use nodewise_view::json::survey::SurveyDraft;
use nodewise_view::json::{self, Saved};

use super::report::typed;
use super::{bandwidth, doctor, latency, show};
use crate::cli::survey::{Survey, SurveyPart};
use crate::cli::{self, Global};
use crate::failure::{Failure, Outcome};
use crate::{input, live, measuring, output};

/// The time of both measurements; with the rest a survey takes a minute at most.
const MEASURING: Duration = Duration::from_secs(48);

/// Runs the verb.
pub fn run(args: &Survey, global: &Global) -> Outcome {
    if let Some(output) = &args.output {
        output.check()?;
    }
    let made = make(args, global)?;
    match &args.output {
        Some(output) => {
            output.write(made.text.as_bytes())?;
            let lacking = if made.lacking.is_empty() {
                String::new()
            } else {
                format!(", without {}", made.lacking.join(", "))
            };
            output::say(&format!("wrote {output}{lacking}"));
        }
        None => output::print_json(&made.text)?,
    }
    Ok(u8::from(!made.lacking.is_empty()))
}

/// A survey as text, and the parts that it lacks.
pub struct MadeSurvey {
    pub text: String,
    pub lacking: Vec<String>,
}

/// Makes a survey.
///
/// # Errors
/// A key that is not one, a file that is not a result, and a machine that cannot be read; a part that cannot be made is
/// named in the survey instead.
pub fn make(args: &Survey, global: &Global) -> Result<MadeSurvey, Failure> {
    let key = key(args, global)?;
    let is_live = input::is_live(&global.machine);
    let recorded = recorded(&args.from)?;
    let (start, began) = (Instant::now(), SystemTime::now());
    let mut machine = input::load(&global.machine, Detail::Full)?.machine;
    input::date(&mut machine, &global.machine);
    show::remove_identity(&mut machine);
    let mut survey = Parts { parts: vec![("machine", machine_file::to_json(&machine))], ..Parts::default() };
    if !is_live {
        survey.recorded.push("machine".to_owned());
    }
    if args.parts.verbs.contains(&SurveyPart::Doctor) {
        let words: &[&str] = if is_live { &["--once"] } else { &[] };
        let document = typed(words).and_then(|options| doctor::document(&options, global));
        survey.add(SurveyPart::Doctor, document);
    }
    let measured = [SurveyPart::Latency, SurveyPart::Bandwidth].into_iter();
    let measured: Vec<SurveyPart> = measured
        .filter(|part| args.parts.verbs.contains(part) || recorded.iter().any(|(of, _)| of == part))
        .collect();
    let live_parts = measured.iter().filter(|part| !recorded.iter().any(|(of, _)| of == *part)).count();
    let each = MEASURING / u32::try_from(live_parts.max(1)).unwrap_or(1);
    for part in measured {
        let from_file = recorded.iter().find(|(of, _)| *of == part);
        let document = match from_file {
            Some((_, text)) => {
                survey.recorded.push(part.name().to_owned());
                Ok(text.clone())
            }
            None if is_live => measure(part, each),
            None => Err(Failure::cannot("another machine cannot be measured: --from gives a result of it")),
        };
        survey.add(part, document);
    }
    let text = json::survey(&SurveyDraft {
        key: &key,
        began_unix_s: began.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs()),
        took_s: start.elapsed().as_secs_f64(),
        recorded: &survey.recorded,
        lacking: &survey.lacking,
        conditions: &live::conditions(&machine, &[]),
        parts: &survey.parts,
    });
    Ok(MadeSurvey { text, lacking: survey.lacking.into_iter().map(|lack| lack.part).collect() })
}

/// Parts of a survey while it is made.
#[derive(Default)]
struct Parts {
    parts: Vec<(&'static str, String)>,
    recorded: Vec<String>,
    lacking: Vec<LackingPart>,
}

impl Parts {
    fn add(&mut self, part: SurveyPart, document: Result<String, Failure>) {
        match document {
            Ok(document) => self.parts.push((part.name(), document)),
            Err(failure) => {
                let reason = printable(&failure.message).into_owned();
                self.lacking.push(LackingPart { part: part.name().to_owned(), reason });
            }
        }
    }
}

fn key(args: &Survey, global: &Global) -> Result<SurveyKey, Failure> {
    let host = match &args.host {
        Some(host) => host.clone(),
        None if input::is_live(&global.machine) => {
            rustix::system::uname().nodename().to_string_lossy().into_owned()
        }
        None => {
            return Err(Failure::usage(
                "a machine from elsewhere has no host name: give it one with --host NAME",
            ));
        }
    };
    if !SurveyKey::is_host(&host) {
        return Err(Failure::usage(format_args!(
            "--host: {} is not a host name: expected letters, digits, dots, hyphens and underscores, as in web7.example.org",
            quote(&host)
        )));
    }
    check_run(&args.run)?;
    Ok(SurveyKey { run: args.run.clone(), host, attempt: args.attempt })
}

/// Whether a text can name a run.
///
/// # Errors
/// One that cannot, with what is expected.
pub fn check_run(run: &str) -> Result<(), Failure> {
    if SurveyKey::is_run(run) {
        return Ok(());
    }
    Err(Failure::usage(format_args!(
        "--run: {} is not the name of a run: expected up to 64 letters, digits, dots, hyphens and underscores",
        quote(run)
    )))
}

/// Results from files, with the part that each is.
fn recorded(paths: &[PathBuf]) -> Result<Vec<(SurveyPart, String)>, Failure> {
    let mut found: Vec<(SurveyPart, String)> = Vec::new();
    for path in paths {
        let text = measuring::read_saved("--from", path)?;
        let shown = quote(&path.display().to_string());
        let part = part_of(&text).map_err(|error| {
            Failure::usage(format_args!("--from: {shown} is not a result of latency or bandwidth: {error}"))
        })?;
        if found.iter().any(|(other, _)| *other == part) {
            return Err(Failure::usage(format_args!(
                "--from: {shown} is a second result of {}",
                part.name()
            )));
        }
        found.push((part, text));
    }
    Ok(found)
}

fn part_of(text: &str) -> Result<SurveyPart, String> {
    let saved = Saved::from_json(text)?;
    if saved.schema() == json::latency::SCHEMA {
        json::latency::read(&saved).map(|_| SurveyPart::Latency)
    } else {
        json::bandwidth::read(&saved).map(|_| SurveyPart::Bandwidth)
    }
}

/// Measures one part within this time.
fn measure(part: SurveyPart, limit: Duration) -> Result<String, Failure> {
    if part == SurveyPart::Latency {
        let mut options: cli::latency::Latency = typed(&["--quick"])?;
        options.measure.limit = Some(limit);
        return latency::document(&options);
    }
    let mut options: cli::bandwidth::Bandwidth = typed(&["--quick", "--matrix"])?;
    options.measure.limit = Some(limit);
    bandwidth::document(&options)
}
