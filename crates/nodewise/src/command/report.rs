//! `nodewise report`: a page per verb, each from the document that the verb writes.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Parser;
use nodewise_machine::order::Order as _;
use nodewise_machine::printable::{io_words, printable, quote};
use nodewise_machine::{Bytes, Machine};
use nodewise_source::capture::{Overwrite, write_file};
use nodewise_source::{Detail, machine_file};
use nodewise_view::digest::diff::{Diff, DiffExtent};
use nodewise_view::json::Saved;
use nodewise_view::report::{self, Page, Part, html, machine_page};

use super::{bandwidth, c2c, doctor, figures, io, latency, show};
use crate::cli::measure_options::MeasureOptions;
use crate::cli::report::{ReportOptions, ReportPage};
use crate::cli::{self, Global};
use crate::failure::{Failure, INTERNAL, Outcome};
use crate::{input, measuring, output};

/// The time of all measurements with `--quick`: a report is there within a minute.
const QUICK: Duration = Duration::from_secs(50);
/// The window of `doctor` with `--quick`.
const WINDOW: Duration = Duration::from_secs(5);
/// The largest report that is read.
const MOST_READ: u64 = 256 << 20;

/// Runs the verb.
pub fn run(args: &ReportOptions, global: &Global) -> Outcome {
    if let Some(path) = &args.extract {
        return extract(path, &args.into);
    }
    args.output.check()?;
    let old = args.against.as_deref().map(old).transpose()?;
    let (mut made, lacking) =
        if args.from.is_empty() { measured(args, global)? } else { (saved(&args.from)?, 0) };
    if let Some(old) = old {
        let at = made.pages.iter().take_while(|page| page.conclusion.is_some()).count();
        let machines = machine_of(&old).zip(machine_of(&made));
        let diff = machines.as_ref().map(|(before, now)| Diff::new(before, now, DiffExtent::Lasting));
        made.pages.insert(at, report::changes(&old.pages, &made.pages, diff.as_ref()));
        made.facts.push(("Compared with".to_owned(), old.title));
    }
    let page = html(&made);
    args.output.write(page.as_bytes())?;
    let size = Bytes::new(page.len() as u64);
    let pages = made.pages.iter().map(|page| page.heading.to_lowercase()).collect::<Vec<_>>().join(", ");
    output::say(&format!("wrote {}: {size}, {pages}", args.output));
    Ok(u8::from(lacking > 0))
}

/// The machine of a report, where it has one.
fn machine_of(report: &report::HtmlReport) -> Option<Machine> {
    let documents = report.pages.iter().filter_map(|page| page.document.as_deref());
    documents.filter_map(|document| machine_file::from_json(document).ok()).next()
}

/// The report of the machine that `--machine` names, and how many of its pages have no figures.
fn measured(args: &ReportOptions, global: &Global) -> Result<(report::HtmlReport, usize), Failure> {
    let is_live = input::is_live(&global.machine);
    let mut wanted = args.with.clone();
    if wanted.is_empty() {
        wanted = if is_live { ReportPage::USUAL.to_vec() } else { vec![ReportPage::Doctor] };
    }
    wanted.order();
    wanted.dedup();
    let measuring: Vec<&str> =
        wanted.iter().filter(|page| **page != ReportPage::Doctor).map(|page| page.name()).collect();
    if !is_live && !measuring.is_empty() {
        return Err(Failure::usage(format_args!(
            "--with {}: another machine cannot be measured; --from shows results of it",
            measuring.join(",")
        )));
    }
    let each =
        args.quick.then(|| (QUICK - WINDOW) / u32::try_from(measuring.len().max(1)).unwrap_or(u32::MAX));
    let mut machine = input::load(&global.machine, Detail::Full)?.machine;
    input::date(&mut machine, &global.machine);
    show::remove_identity(&mut machine);
    let mut pages = Vec::new();
    for page in wanted {
        let is_over = measuring::interrupt()?.load(Ordering::Relaxed);
        let document = if is_over {
            Err(Failure::cannot("not measured: it was interrupted"))
        } else {
            document(page, args, each, global)
        };
        pages.push(match document {
            Ok(document) => {
                report::page(page.name(), &document).map_err(|error| Failure::new(INTERNAL, error))?
            }
            Err(failure) => missing(page, &failure),
        });
    }
    let lacking = pages.iter().filter(|page| page.document.is_none()).count();
    // Findings first, then the machine, then what it costs.
    let at = pages.iter().take_while(|page| page.name == ReportPage::Doctor.name()).count();
    pages.insert(at, machine_page(&machine, machine_file::to_json(&machine)));
    Ok((
        report::HtmlReport { title: report::title(&machine), facts: report::facts(&machine), pages },
        lacking,
    ))
}

/// A page that says why it has no figures.
fn missing(page: ReportPage, failure: &Failure) -> Page {
    Page {
        name: page.name().to_owned(),
        heading: report::heading(page.name()).to_owned(),
        conclusion: None,
        parts: vec![Part::Note(printable(&failure.message).into_owned())],
        document: None,
    }
}

/// The options of a verb, as if these words had been typed.
#[derive(Parser)]
struct Typed<A: clap::Args> {
    #[command(flatten)]
    options: A,
}

pub(super) fn typed<A: clap::Args>(words: &[&str]) -> Result<A, Failure> {
    let typed = Typed::try_parse_from(std::iter::once("nodewise").chain(words.iter().copied()));
    typed.map(|typed: Typed<A>| typed.options).map_err(|error| Failure::new(INTERNAL, error))
}

/// Measures for one page.
fn document(
    page: ReportPage,
    args: &ReportOptions,
    each: Option<Duration>,
    global: &Global,
) -> Result<String, Failure> {
    let mut words = Vec::new();
    words.extend(args.quick.then_some("--quick"));
    words.extend(args.thorough.then_some("--thorough"));
    let within = |measure: &mut MeasureOptions| measure.limit = each;
    match page {
        ReportPage::Doctor => {
            let words: &[&str] =
                if args.quick && input::is_live(&global.machine) { &["--window=5s"] } else { &[] };
            doctor::document(&typed(words)?, global)
        }
        ReportPage::Latency => {
            let mut options: cli::latency::Latency = typed(&words)?;
            within(&mut options.measure);
            latency::document(&options)
        }
        ReportPage::Loaded => {
            words.push("--loaded");
            let mut options: cli::latency::Latency = typed(&words)?;
            within(&mut options.measure);
            latency::document(&options)
        }
        ReportPage::Bandwidth => {
            let mut options: cli::bandwidth::Bandwidth = typed(&words)?;
            within(&mut options.measure);
            bandwidth::document(&options)
        }
        ReportPage::C2c => {
            let mut options: cli::c2c::C2c = typed(&words)?;
            within(&mut options.measure);
            c2c::document(&options)
        }
        ReportPage::Io => {
            let mut options: cli::io::Io = typed(&words)?;
            within(&mut options.measure);
            io::document(&options, global)
        }
    }
}

/// The report of results from elsewhere.
fn saved(paths: &[PathBuf]) -> Result<report::HtmlReport, Failure> {
    let mut made = Assembled::default();
    for path in paths {
        let text = measuring::read_saved("--from", path)?;
        let name = free_name(path, &made.report.pages);
        let document = figures::document(&text).map(|document| document.unwrap_or(text));
        document.and_then(|text| made.add(name, text)).map_err(|error| {
            let path = quote(&path.display().to_string());
            Failure::usage(format_args!("--from: {path} is not a result that a report shows: {error}"))
        })?;
    }
    Ok(made.finish())
}

/// The report that `--against` names.
fn old(path: &Path) -> Result<report::HtmlReport, Failure> {
    let shown = printable(&path.to_string_lossy()).into_owned();
    let mut made = Assembled::default();
    for (name, text) in read_documents("--against", path)? {
        made.add(name, text).map_err(|error| Failure::usage(format_args!("--against: {shown}: {error}")))?;
    }
    Ok(made.finish())
}

/// A report that is made from documents, one by one.
struct Assembled {
    report: report::HtmlReport,
}

impl Default for Assembled {
    fn default() -> Self {
        let title = "Results of nodewise".to_owned();
        Self { report: report::HtmlReport { title, facts: Vec::new(), pages: Vec::new() } }
    }
}

impl Assembled {
    fn add(&mut self, name: String, text: String) -> Result<(), String> {
        let is_machine = Saved::from_json(&text).is_ok_and(|saved| saved.schema() == machine_file::SCHEMA);
        let page = if is_machine {
            let machine = machine_file::from_json(&text).map_err(|error| error.to_string())?;
            (self.report.title, self.report.facts) = (report::title(&machine), report::facts(&machine));
            Page { name, ..machine_page(&machine, text) }
        } else {
            report::page(&name, &text)?
        };
        self.report.pages.push(page);
        Ok(())
    }

    /// The report, findings first.
    fn finish(mut self) -> report::HtmlReport {
        self.report.pages.order_by_key(|page| page.conclusion.is_none());
        self.report
    }
}

/// A name for a page after that of its file, which no other page has.
fn free_name(path: &Path, pages: &[Page]) -> String {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().to_lowercase()).unwrap_or_default();
    let fit: String = stem
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
        .take(48)
        .collect();
    let fit = if fit.is_empty() { "result".to_owned() } else { fit };
    let taken = |name: &str| pages.iter().any(|page| page.name == name);
    let numbered = (2..).map(|number| format!("{fit}-{number}"));
    std::iter::once(fit.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or(fit)
}

/// The documents of a report that an option names.
fn read_documents(option: &str, path: &Path) -> Result<Vec<(String, String)>, Failure> {
    let shown = printable(&path.to_string_lossy()).into_owned();
    let text = input::read_text(path, MOST_READ)
        .map_err(|why| Failure::usage(format_args!("{option}: cannot read {shown}: {why}")))?;
    report::documents(&text).map_err(|error| Failure::usage(format_args!("{option}: {shown}: {error}")))
}

/// Takes the documents out of a report.
fn extract(path: &Path, into: &Path) -> Outcome {
    let documents = read_documents("--extract", path)?;
    std::fs::create_dir_all(into).map_err(|error| {
        let into = quote(&into.display().to_string());
        Failure::cannot(format_args!("--into: cannot make {into}: {}", io_words(&error)))
    })?;
    for (name, document) in &documents {
        let file = into.join(format!("{name}.json"));
        write_file(&file, document.as_bytes(), Overwrite::Refuse).map_err(Failure::cannot)?;
        output::say(&format!("wrote {}", printable(&file.to_string_lossy())));
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_files_have_names_that_differ() {
        let mut pages = Vec::new();
        for expected in ["latency-web-7", "latency-web-7-2", "latency-web-7-3"] {
            let name = free_name(Path::new("/x/Latency web.7.json"), &pages);
            assert_eq!(name, expected);
            pages.push(missing(ReportPage::Latency, &Failure::cannot("x")));
            pages.last_mut().unwrap().name = name;
        }
        assert_eq!(free_name(Path::new(".."), &[]), "result");
    }

    #[test]
    fn each_page_has_options_of_its_verb() {
        assert!(typed::<cli::latency::Latency>(&["--quick", "--loaded"]).is_ok());
        assert!(typed::<cli::doctor::Doctor>(&["--window=5s"]).is_ok());
        for page in [ReportPage::Latency, ReportPage::Bandwidth, ReportPage::C2c, ReportPage::Io] {
            assert!(!report::heading(page.name()).is_empty(), "{page:?}");
        }
    }
}
