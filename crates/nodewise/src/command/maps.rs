//! `nodewise maps`: a process to its mappings, the mappings to their reader.

mod recorded;

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::Pid;
use nodewise_machine::mapping::{FileId, ProcessMappings};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::{printable, quote};
use nodewise_source::Detail;
use nodewise_source::mappings::sharers::sharers;
use nodewise_source::mappings::{PageError, PageSource, Thoroughness, read};
use nodewise_source::paths;
use nodewise_source::process::search;
use nodewise_source::tree::Tree;
use nodewise_view::digest::maps::{GroupBy, Maps as Shown, PageRuns, SharedWith};
use nodewise_view::digest::provenance::provenance;
use nodewise_view::svg::maps_svg;
use nodewise_view::text::maps::Named;
use nodewise_view::{csv, json, text};

use crate::cli::Global;
use crate::cli::maps::{By, Maps};
use crate::command::process;
use crate::failure::{Failure, Outcome};
use crate::live_pages::LivePages;
use crate::output::Pictures;
use crate::{input, measuring, output};

/// Most pages of a range: a TiB of small ones.
const MOST_PAGES: u64 = 1 << 28;
/// Pages per question.
const BATCH: usize = 4096;

/// Runs the verb.
pub fn run(args: &Maps, global: &Global) -> Outcome {
    pictures(args).check()?;
    let is_live = input::is_live(&global.machine);
    if let Some(file) = &args.from {
        if !is_live {
            return Err(Failure::usage("--from shows a recording: --machine does not go with it"));
        }
        return recorded::show(args, global, file);
    }
    let opened;
    let live = Tree::live();
    let tree = if is_live {
        &live
    } else {
        opened = input::load(&global.machine, Detail::Overview)?;
        opened.tree().ok_or_else(|| {
            Failure::usage(format_args!(
                "--machine {} has no processes: expected this machine, or a capture that holds their files",
                quote(&global.machine)
            ))
        })?
    };
    let pid = process::find(tree, &args.process)?;
    let mut pages = is_live.then(|| LivePages::open(pid));
    if let Some(range) = args.range {
        let pages = pages.as_mut().ok_or_else(|| {
            Failure::usage(
                "--range has no meaning with --machine: a capture does not hold the nodes of single pages",
            )
        })?;
        return page_runs(tree, pid, range, pages, args, global);
    }
    let thoroughness = match (args.exact, args.sample) {
        (true, _) => Thoroughness::Exact,
        (false, Some(most)) => Thoroughness::Sample(most),
        (false, None) => Thoroughness::ByPrice,
    };
    let source = pages.as_mut().map(|pages| pages as &mut dyn PageSource);
    let process =
        read(tree, pid, thoroughness, measuring::seed(args.seed), source).map_err(Failure::cannot)?;
    let shared_with = if args.who { Some(who(tree, &process)?) } else { None };
    let provenance = || -> Result<String, Failure> {
        let mut machine = input::load(&global.machine, Detail::Full)?.machine;
        input::date(&mut machine, &global.machine);
        Ok(provenance(&machine))
    };
    show(args, global, &process, shared_with.as_ref(), &provenance)
}

/// Shows the mappings of a process. `provenance` gives the caption of a picture.
fn show(
    args: &Maps,
    global: &Global,
    process: &ProcessMappings,
    shared_with: Option<&SharedWith>,
    provenance: &dyn Fn() -> Result<String, Failure>,
) -> Outcome {
    let by = match args.by {
        By::Kind => GroupBy::Kind,
        By::File => GroupBy::File,
        By::Policy => GroupBy::Policy,
    };
    let shown = Shown { process, by, shared_with };
    // A picture that cannot be written is a failure, but no reason to keep the rest back.
    let drawn = pictures(args).are_wanted().then(|| -> Result<(), Failure> {
        let provenance = provenance()?;
        pictures(args).draw(|theme| maps_svg(&shown, &provenance, theme))
    });
    let printed = print(args, global, &shown);
    drawn.transpose()?;
    printed
}

fn pictures(args: &Maps) -> Pictures<'_> {
    Pictures::new(&args.svg, &args.png)
}

fn print(args: &Maps, global: &Global, shown: &Shown<'_>) -> Outcome {
    if args.csv {
        output::print(&csv::maps(shown))?;
        return Ok(0);
    }
    let json = || json::maps::maps(shown);
    output::show(args.json, global.color, json, |style| text::maps::maps(shown, named(args), style))?;
    Ok(0)
}

const fn named(args: &Maps) -> Named {
    if args.all { Named::All } else { Named::Largest }
}

/// The other processes that map the same files.
fn who(tree: &Tree, process: &ProcessMappings) -> Result<SharedWith, Failure> {
    let files: BTreeSet<FileId> = process.mappings.iter().filter_map(|mapping| mapping.file).collect_set();
    let found = sharers(tree, &files, process.pid).map_err(Failure::cannot)?;
    let mut names: BTreeMap<Pid, Option<String>> = BTreeMap::new();
    let mut processes = BTreeMap::new();
    for (at, mapping) in process.mappings.iter().enumerate() {
        let Some(others) = mapping.file.and_then(|file| found.by_file.get(&file)) else { continue };
        let mut named = Vec::new();
        for pid in others {
            let name = names.entry(*pid).or_insert_with(|| name_of(tree, *pid));
            named.push((pid.number(), name.clone()));
        }
        processes.insert(at, named);
    }
    Ok(SharedWith { processes, unreadable: found.unreadable })
}

fn name_of(tree: &Tree, pid: Pid) -> Option<String> {
    let name = search::name(tree, pid).ok().flatten()?;
    Some(printable(&String::from_utf8_lossy(&name)).into_owned())
}

/// Shows the node of each page of a range.
fn page_runs(
    tree: &Tree,
    pid: Pid,
    (from, to): (u64, u64),
    pages: &mut LivePages,
    args: &Maps,
    global: &Global,
) -> Outcome {
    let size = pages.page_size();
    let (from, to) = (from - from % size, to.div_ceil(size).saturating_mul(size));
    if (to - from) / size > MOST_PAGES {
        return Err(Failure::usage(format_args!(
            "--range has {} pages: expected at most {MOST_PAGES}",
            (to - from) / size
        )));
    }
    if !tree.exists(&paths::process(pid)) {
        return Err(Failure::cannot(format_args!("process {pid} does not exist")));
    }
    let mut runs = PageRuns { page_size: size, runs: Vec::new() };
    let mut next = from;
    while next < to {
        let batch: Vec<u64> = (next..to).step_by(size as usize).take(BATCH).collect();
        next = next.saturating_add(size * batch.len() as u64);
        pages.locate(&batch, &mut |address, node| runs.push(address, node)).map_err(|error| {
            Failure::cannot(match error {
                PageError::Gone => format!("process {pid} has ended, or has no memory of its own"),
                PageError::Unsupported => "this kernel does not say where single pages are".to_owned(),
                PageError::Refused(why) => why,
            })
        })?;
    }
    let json = || json::maps::page_runs(pid.number(), &runs);
    output::show(args.json, global.color, json, |style| text::maps::page_runs(&runs, style))?;
    Ok(0)
}
