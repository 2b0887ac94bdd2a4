//! `nodewise bandwidth --file`: files in memory with their pages on each node.

use std::path::Path;

use nodewise_machine::{Bytes, Machine};
use nodewise_measure::bandwidth::file::{
    FileBench, FileReport, FileTransfer, FileTransferReport, Operation, TmpfsLocation,
};
use nodewise_measure::cell::PageKind;
use nodewise_measure::survey::Account;
use nodewise_source::Detail;
use nodewise_view::svg::file_svg;
use nodewise_view::{csv, json, text};

use super::{PART_OF_SPARE, checked};
use crate::cli::Global;
use crate::cli::bandwidth::Bandwidth;
use crate::failure::{Failure, Outcome};
use crate::measuring::{self, Field, Forms, Measurement, Share};
use crate::{input, live};

/// The size of a file that no one chose: larger than most caches, written within some 100 ms.
const SIZE: Bytes = Bytes::from_mib(256);
/// The same with `--quick`.
const QUICK: Bytes = Bytes::from_mib(64);

/// Measures and shows files in a folder, or in the kernel's own tmpfs.
pub fn run(args: &Bandwidth, folder: Option<&Path>, global: &Global) -> Outcome {
    let measurement = Measurement::begin(&args.measure)?;
    let machine = input::load("live", Detail::Full)?.machine;
    show(&measure(args, folder, &machine, measurement)?, args, global)
}

/// Shows a report as the options want it.
pub(super) fn show(report: &FileReport, args: &Bandwidth, global: &Global) -> Outcome {
    let forms = Forms {
        picture: &|theme| file_svg(report, theme),
        json: &|| json::file(report),
        csv: &|| csv::file(report),
        text: &|style| text::file(report, style),
    };
    measuring::show(&args.measure, global, &forms)?;
    let refused = report.cells().map(|cell| cell.refused.as_deref());
    measuring::ended(report.cells().any(|cell| cell.figure.is_some()), &report.account, refused)
}

fn measure(
    args: &Bandwidth,
    folder: Option<&Path>,
    machine: &Machine,
    measurement: Measurement,
) -> Result<FileReport, Failure> {
    let field = Field::from_options(&args.measure, machine)?;
    let seed = measuring::seed(args.measure.seed);
    let mut facts = measurement.facts(machine, &args.measure, field.nodes());
    let size = match args.size {
        Some(size) => checked(size)?,
        None => {
            let share = Share { part: PART_OF_SPARE, nodes: field.targets.len() };
            let wanted = if args.measure.quick { QUICK } else { SIZE };
            measuring::default_size(wanted.into(), &args.measure, &field, share, &mut facts)
        }
    };
    let place = folder.map_or(TmpfsLocation::Kernel, |folder| TmpfsLocation::Folder(folder.to_owned()));
    let cells = field.cells(&[PageKind::Small]);
    let ways: Vec<FileTransfer> = cells
        .iter()
        .flat_map(|cell| Operation::ALL.map(|operation| FileTransfer { cell: cell.clone(), operation }))
        .collect();
    let mut bench = FileBench::new(size, place.clone());
    let conditions = live::conditions(machine, &[]);
    let pace = measuring::pace(&args.measure, field.nodes());
    let survey = measuring::conduct(&mut bench, &ways, pace, seed, &mut facts);
    let explain = |refusal: &_| measuring::explain(refusal, machine);
    let reports = ways.iter().zip(&survey.outcomes);
    Ok(FileReport {
        account: Account::from_survey(&survey, conditions, bench.timer().source().name()),
        size,
        place,
        ways: reports.map(|(way, outcome)| FileTransferReport::new(way, outcome, &explain)).collect(),
    })
}
