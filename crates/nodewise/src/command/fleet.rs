//! `nodewise fleet`: many machines.

mod check;
mod files;
mod plan;
mod run;

use nodewise_fleet::FleetReport;
use nodewise_view::{json, report, text};

use crate::cli::Global;
use crate::cli::fleet::{Fleet, FleetReportOptions, FleetVerb};
use crate::failure::{Failure, Outcome};
use crate::{input, output};

use files::SurveyFolder;

/// Runs the verb.
pub fn run(args: &Fleet, global: &Global) -> Outcome {
    if !matches!(args.verb, FleetVerb::Check(_)) && !input::is_live(&global.machine) {
        return Err(Failure::usage("--machine has no meaning with nodewise fleet but with check"));
    }
    match &args.verb {
        FleetVerb::Plan(options) => plan::run(options),
        FleetVerb::Run(options) => run::run(options),
        FleetVerb::Report(options) => report(options, global),
        FleetVerb::Check(options) => check::run(options, global),
    }
}

/// Reports on surveys.
fn report(args: &FleetReportOptions, global: &Global) -> Outcome {
    if let Some(html) = &args.html {
        html.check()?;
    }
    if let Some(run) = &args.run {
        super::survey::check_run(run)?;
    }
    let now = SurveyFolder::open(&args.from)?.collect(args.run.as_deref())?;
    let before = args.against.as_deref().map(|from| SurveyFolder::open(from)?.collect(None)).transpose()?;
    let report = FleetReport::new(now, before.as_ref());
    drop(before);
    if let Some(html) = &args.html {
        let page = report::html(&report::fleet(&report));
        html.write(page.as_bytes())?;
        output::say(&format!("wrote {html}"));
    }
    output::show(args.json, global.color, || json::fleet(&report), |style| text::fleet(&report, style))?;
    if report.hosts.is_empty() {
        return Err(Failure::cannot("no survey was found"));
    }
    Ok(u8::from(report.has_findings()))
}
