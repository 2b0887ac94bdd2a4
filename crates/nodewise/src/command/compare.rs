//! `nodewise compare`: a suite to a session, sessions to a comparison, the comparison to its reader.

pub(in crate::command) mod circumstances;
mod inputs;
mod needs;
mod placements;
mod running;
mod versions;

use std::path::Path;
use std::slice;

use nodewise_experiment::compare::Comparison;
use nodewise_experiment::suite::session::Session;
use nodewise_experiment::suite::{Benchmark, SHIPPED, Suite, parse};
use nodewise_machine::printable::{printable, quote};
use nodewise_view::digest::compare::Shown;
use nodewise_view::svg::compare_svg;
use nodewise_view::{csv, json, text};

use crate::cli::Global;
use crate::cli::compare::Compare;
use crate::failure::{Failure, Outcome};
use crate::output::{Destination, Pictures, destination};
use crate::{input, measuring, output};
use needs::Lacking;

/// The exit code of a comparison that is lost: something became slower.
const LOST: u8 = 1;

/// Runs the verb.
pub fn run(args: &Compare, global: &Global) -> Outcome {
    destination::check([&args.save])?;
    pictures(args).check()?;
    match (&args.suite, &args.before, &args.after) {
        (Some(name), ..) => with_suite(args, global, name),
        (None, Some(before), Some(after)) => {
            let before = only(saved("--before", before)?, &args.only)?;
            let after = only(saved("--after", after)?, &args.only)?;
            show_change(args, global, &before, &after)
        }
        _ => Err(Failure::usage("nothing to compare: expected --suite, or --before and --after")),
    }
}

fn with_suite(args: &Compare, global: &Global, name: &str) -> Outcome {
    if args.source {
        let (_, source) = shipped(name).ok_or_else(|| unknown(name))?;
        output::print(source)?;
        return Ok(0);
    }
    let suite = suite(name)?.only(&args.only).map_err(|missing| {
        Failure::usage(format_args!(
            "--benchmark: suite {} has no benchmark {}",
            quote(name),
            quote(&missing)
        ))
    })?;
    if args.list {
        return list(args, global, &suite);
    }
    // A file that cannot be read must not be found out after an hour.
    let before = match &args.against {
        Some(path) => Some(only(saved("--against", path)?, &args.only)?),
        None => None,
    };
    if let Some(before) = before.as_ref().filter(|before| before.suite != suite.title) {
        let (theirs, own) = (quote(&before.suite), quote(&suite.title));
        return Err(Failure::usage(format_args!("--against: its suite is {theirs}: expected {own}")));
    }
    if args.install {
        needs::install(&suite)?;
    }
    let session = running::run(args, &suite)?;
    let save = |file: &Destination| file.write(json::suite::suite(&session).as_bytes());
    let saved = args.save.as_ref().map_or(Ok(()), save);
    let arms = || session.cases.iter().flat_map(|case| &case.arms);
    let works = arms().any(|arm| arm.failed.is_none());
    let shown = match &before {
        Some(before) => show_change(args, global, before, &session),
        None if session.placements.len() > 1 => {
            let comparison = Comparison::from_placements(&session);
            show(args, global, &Shown { before: &session, after: None, comparison: &comparison })
        }
        None => show_session(args, global, &session),
    };
    match (saved, shown) {
        (Err(not_saved), Err(not_shown)) => {
            output::say(&not_saved.message);
            Err(not_shown)
        }
        (Err(failure), Ok(_)) | (Ok(()), Err(failure)) => Err(failure),
        (Ok(()), Ok(shown)) if works => Ok(shown),
        (Ok(()), Ok(_)) => {
            let why = arms().find_map(|arm| arm.failed.as_deref()).unwrap_or("there is none");
            Err(Failure::cannot(format_args!("no benchmark of the suite worked: {}", printable(why))))
        }
    }
}

/// Shows what a suite holds and what is missing here.
fn list(args: &Compare, global: &Global, suite: &Suite) -> Outcome {
    let versions = versions::installed(&suite.benchmarks);
    if args.json {
        let lacking = Lacking::from_benchmarks(&suite.benchmarks);
        let install = lacking.apt_line();
        output::print_json(&json::benchmarks(suite, &lacking.needs, install.as_deref(), &versions))?;
    } else {
        let missing = |one: &Benchmark| Lacking::from_benchmarks(slice::from_ref(one)).sentence();
        let missing: Vec<Option<String>> = suite.benchmarks.iter().map(missing).collect();
        let installed = |one: &Benchmark| versions::installed_text(&one.needs, &versions);
        let installed: Vec<Option<String>> = suite.benchmarks.iter().map(installed).collect();
        output::print(&text::compare::list(suite, &missing, &installed, &output::style(global.color)))?;
    }
    Ok(0)
}

fn show_change(args: &Compare, global: &Global, before: &Session, after: &Session) -> Outcome {
    if before.suite != after.suite {
        let (before, after) = (quote(&before.suite), quote(&after.suite));
        return Err(Failure::usage(format_args!("the suites are {before} and {after}: expected the same")));
    }
    let comparison = Comparison::between(before, after);
    show(args, global, &Shown { before, after: Some(after), comparison: &comparison })
}

fn show(args: &Compare, global: &Global, shown: &Shown<'_>) -> Outcome {
    let drawn = pictures(args).draw(|theme| compare_svg(shown, theme));
    if args.json {
        output::print_json(&json::compare(shown))?;
    } else if args.csv {
        output::print(&csv::compare(shown.comparison))?;
    } else {
        output::print(&text::compare::compare(shown, &output::style(global.color)))?;
    }
    drawn?;
    Ok(if shown.comparison.is_lost() { LOST } else { 0 })
}

fn pictures(args: &Compare) -> Pictures<'_> {
    Pictures::new(&args.svg, &args.png)
}

fn show_session(args: &Compare, global: &Global, session: &Session) -> Outcome {
    if pictures(args).are_wanted() {
        output::say("nothing is compared, so there is no picture (--against or --placements compare)");
    }
    if args.json {
        output::print_json(&json::suite::suite(session))?;
    } else if args.csv {
        output::print(&csv::suite(session))?;
    } else {
        output::print(&text::compare::session(session, &output::style(global.color)))?;
    }
    Ok(0)
}

/// A session that was saved.
fn saved(option: &str, path: &Path) -> Result<Session, Failure> {
    session(option, path, &measuring::read_saved(option, path)?)
}

/// The session of a file that was read.
pub(in crate::command) fn session(option: &str, path: &Path, text: &str) -> Result<Session, Failure> {
    let mut session = json::suite::read(text).map_err(|error| {
        let path = quote(&path.display().to_string());
        Failure::usage(format_args!("{option}: {path} is not a session of nodewise compare: {error}"))
    })?;
    circumstances::hide_identity(&mut session);
    Ok(session)
}

/// The session with only these benchmarks; all of them without a name.
fn only(mut session: Session, names: &[String]) -> Result<Session, Failure> {
    let known = |name: &String| {
        session.cases.iter().any(|case| case.benchmark == *name)
            || session.skipped.iter().any(|one| one.benchmark == *name)
    };
    if let Some(missing) = names.iter().find(|name| !known(name)) {
        let message = format!("--benchmark: no benchmark {} was saved", quote(missing));
        return Err(Failure::usage(message));
    }
    if !names.is_empty() {
        session.cases.retain(|case| names.contains(&case.benchmark));
        session.skipped.retain(|one| names.contains(&one.benchmark));
    }
    Ok(session)
}

fn shipped(name: &str) -> Option<&'static (&'static str, &'static str)> {
    SHIPPED.iter().find(|(known, _)| *known == name)
}

fn unknown(name: &str) -> Failure {
    let known = SHIPPED.map(|(name, _)| name).join(" and ");
    Failure::usage(format_args!("--suite: {} does not come with nodewise: {known} do", quote(name)))
}

/// A suite that comes with nodewise, or a file.
fn suite(name: &str) -> Result<Suite, Failure> {
    let text = match shipped(name) {
        Some((_, source)) => (*source).to_owned(),
        None => read(name)?,
    };
    parse::parse(&text).map_err(|error| Failure::usage(format_args!("--suite: {}: {error}", quote(name))))
}

fn read(name: &str) -> Result<String, Failure> {
    input::read_text(Path::new(name), parse::MOST_BYTES as u64).map_err(|why| {
        let known = SHIPPED.map(|(name, _)| name).join(" and ");
        Failure::usage(format_args!(
            "--suite: cannot read {}: {why} ({known} come with nodewise)",
            quote(name)
        ))
    })
}
